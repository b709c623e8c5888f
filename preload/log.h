/*
 * Where kprof's lines go: a copy of the program's stderr, or the log file. Lines are written whole with write(2), so
 * they neither mix with the program's own buffers nor depend on them.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_LOG_H
#define KP_PRELOAD_LOG_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "report/render.h"

/* Signals that a write of ours may raise, kept from the program; used around the session file's writes too. */
struct kp_quiet {
    sigset_t raised, before;
    bool had_pipe, had_size;
};
struct kp_quiet kp_quiet_begin(void);
void kp_quiet_end(struct kp_quiet *q);

/* To be called when the library is loaded: a program may later put a file of its own into descriptor 2, and that must
 * not receive our lines. */
void kp_log_remember_stderr(void);

/* Takes a private copy of stderr, above the numbers a program uses, so that a program that closes or reuses descriptor
 * 2 does not lose or receive the report. Lines before this go to descriptor 2. */
void kp_log_open(void);

/* Sends all that follows to `path` instead ("stdout" and "stderr" are understood). 0 or a negative errno; then nothing
 * changes. */
int kp_log_to(const char *path);
void kp_log_quiet(bool quiet); /* drops progress lines */

/* One line each: "==KPROF== ...", "==WARNING== ...", "==ERROR== ...". */
void kp_log_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void kp_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void kp_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For rendering the report to the same place. */
const struct kp_sink *kp_log_sink(void);

#endif
