/*
 * Kernels that print: the driver writes their output to stdout when the host waits for them, once for each execution.
 * While a replay runs, what the driver prints is dropped, so that the program's output is what one execution prints.
 *
 * The stream's lock is held meanwhile, so other threads that print wait and nothing of theirs is lost. What they write
 * past the C library (write(2), Python) is not touched. Only the C library's own descriptor of the stream is another
 * one meanwhile: a thread that asks for fileno(stdout) in that time gets it.
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
    FILE *stream; /* the program may put another one into `stdout` meanwhile */
};

/* Drops what this thread writes to stdout through the C library from now on. What the program had in the stream's
 * buffer is written first. Does nothing when another thread holds stdout for longer than a second, when its reader does
 * not take that for as long or is gone, when the program does the stream's locking itself (__fsetlocking), or when
 * /dev/null cannot be opened. errno is kept. */
void kp_mute_begin(struct kp_mute *m);
void kp_mute_end(struct kp_mute *m);

/* In a forked child, whose parent was muted by a thread that does not exist here: stdout is the program's again. */
void kp_mute_forked(void);

#endif
