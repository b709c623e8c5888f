/* The command's own messages, on stderr, and its exit statuses. Only cmd/ may print and exit. On a terminal long lines
 * are broken. */
#ifndef KP_CMD_CONSOLE_H
#define KP_CMD_CONSOLE_H

/* Exit statuses; for a program that cannot be started they are the shell's. */
enum {
    KP_EXIT_FAILED = 1,
    KP_EXIT_USAGE = 2,
    KP_EXIT_NOT_EXECUTABLE = 126,
    KP_EXIT_NOT_FOUND = 127,
    KP_EXIT_SIGNAL = 128, /* plus the signal's number */
};

/* Ends a line about the command line. */
#define KP_TRY_HELP   "`kprof --help` lists the options"
#define KP_TRY_RECORD "`kprof -o FILE program` makes one"

/* Prints `==ERROR== text` to stderr and returns `status`. */
int kp_console_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints `==WARNING== line` to stderr for each line of `text`. */
void kp_console_warn(const char *text);

/* Prints `==KPROF== text` to stderr. */
void kp_console_note(const char *text);

/* Flushes stdout and reports a failure: that of the flush, or `rc`, which `err` (or NULL) describes. Returns the
 * exit status. */
int kp_console_end(int rc, const char *err);

#endif
