/* Hides signals that our writes may raise from the program. Threads: any; begin and end on the same one. */
#ifndef KP_PRELOAD_OS_QUIET_H
#define KP_PRELOAD_OS_QUIET_H

#include <signal.h>
#include <stdbool.h>

/* Used around the lines of the log and around the session file's writes. */
struct kp_quiet {
    sigset_t raised, before;
    bool had_pipe, had_size;
};
struct kp_quiet kp_quiet_begin(void);
void kp_quiet_end(struct kp_quiet *q);

#endif
