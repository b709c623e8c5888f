/* Tells whose driver calls this thread is in. */
#ifndef KP_PRELOAD_OS_GUARD_H
#define KP_PRELOAD_OS_GUARD_H

/* Depth of kprof's own driver calls on this thread: while it is not 0, doors only pass calls on. */
extern __thread int kp_guard __attribute__((tls_model("initial-exec")));

/* Depth of the program's own driver calls on this thread, those behind trampolines. */
extern __thread int kp_in_driver __attribute__((tls_model("initial-exec")));

#endif
