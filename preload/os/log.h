/*
 * The destination of kprof's lines: a copy of the program's stderr, or the log file. Lines are written whole with
 * write(2), so they neither mix with the program's own buffers nor depend on them.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_OS_LOG_H
#define KP_PRELOAD_OS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/sink.h"

/* Notes stderr when the library is loaded: a program may later put a file of its own at descriptor 2, which must not
 * receive our lines. */
void kp_log_remember_stderr(void);

/* Makes a private copy of stderr, above the numbers that programs use, so a program that closes or reuses descriptor 2
 * neither loses nor receives the report. Earlier lines go to descriptor 2. */
void kp_log_open(void);

/* Sends all further lines to `path` instead ("stdout" and "stderr" are understood). A file is emptied, unless the
 * program's own output goes there; a new one has mode 0600, like a session. Returns 0, or a negative errno if nothing
 * has changed. */
int kp_log_to(const char *path);

/* Sends the report to stdout instead, if that is the file with this inode, and leaves all other lines where they go.
 * Once a pipe is closed, the report is dropped. Returns true if it does; otherwise nothing changes. */
bool kp_log_report_to_pipe(uint64_t inode);

/* If the report goes to stdout, first writes the program's output that the C library has buffered. */
void kp_log_behind_stdout(void);

/* Returns the descriptor that the report goes to; negative: none. */
int kp_log_descriptor(void);

/* Returns the descriptor, 1 or 2, by which the program writes into that file; -1 = neither. */
int kp_log_own_output(const struct stat *s);
void kp_log_quiet(bool quiet);   /* drops progress lines */
void kp_log_as_ncu(bool as_ncu); /* drops those that ncu has not, and marks the others like ncu */
bool kp_log_is_writing(void);    /* a write is in progress, which may wait for a reader */
void kp_log_apart(void);         /* from here on, lines go to stderr even if the report goes to a file */

/* Print one line each: "==KPROF== ...", "==WARNING== ...", "==ERROR== ...". */
void kp_log_profiler(const char *format, ...) __attribute__((format(printf, 1, 2))); /* a progress line of ncu's, too */
void kp_log_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void kp_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void kp_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a progress line that never goes to stdout, even if the report does. */
void kp_log_still(const char *text);

/* Progress lines written together. A window has hundreds of launches, and a system call for each line would cost
 * more than the rest of the result. Zero-initialised. One thread at a time. */
struct kp_log_lines {
    FILE *to;
    char *text;
    size_t len;
};
void kp_log_lines_add(struct kp_log_lines *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes and releases them; `l` is empty again. */
void kp_log_lines_write(struct kp_log_lines *l);

/* Reports the outcome after the report, or when there will be none: see kp_outcome_ended. */
void kp_log_outcome(uint64_t seen, uint64_t matched);

/* Returns a sink that writes the report to the same destination. */
const struct kp_sink *kp_log_sink(void);

#endif
