/*
 * Mutes kernels that print: the driver writes their output to stdout when the host waits for them, once for each
 * execution. During a replay the driver's prints are dropped, so that the program prints only once. The stream's lock
 * is held meanwhile, so other threads that print wait and lose nothing. Output that bypasses the C library (write(2),
 * Python) is not affected. Only the C library's descriptor of the stream is redirected: a thread that asks for
 * fileno(stdout) in that time gets the redirected one.
 *
 * Threads: one at a time, and begin and end on the same one.
 */
#ifndef KP_PRELOAD_OS_STDOUT_MUTE_H
#define KP_PRELOAD_OS_STDOUT_MUTE_H

#include <stdbool.h>
#include <stdio.h>

struct kp_mute {
    bool on;
    int fd, nowhere;
    FILE *stream; /* the program may replace `stdout` meanwhile */
};

/* Writes the program's buffered output, unless another thread holds stdout, or its reader stalls or is gone. Keeps
 * errno. */
void kp_stdout_flush(void);

/* Drops all that this thread writes to stdout through the C library from now on, after writing the program's buffered
 * output. Does nothing if another thread holds stdout for longer than a second, if its reader stalls that long or is
 * gone, if the program locks the stream itself (__fsetlocking), or if /dev/null cannot be opened. Keeps errno. */
void kp_mute_begin(struct kp_mute *m);
void kp_mute_end(struct kp_mute *m);

/* Restores stdout in a forked child whose parent was muted by a thread that does not exist here. */
void kp_mute_forked(void);

#endif
