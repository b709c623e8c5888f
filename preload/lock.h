/*
 * A lock that can be waited for with a limit, also on C libraries whose libc has no pthread_mutex_timedlock. Needed
 * where a program ends: an exit from a signal handler may have interrupted the very thread that holds the lock.
 */
#ifndef KP_PRELOAD_LOCK_H
#define KP_PRELOAD_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

struct kp_lock {
    atomic_bool held;
};

enum { KP_FOREVER = -1 };

/* Waits at most `patience_ms` (KP_FOREVER: without end; 0: not at all). False when it was not to be had. */
bool kp_lock_take(struct kp_lock *l, long patience_ms);
void kp_lock_give(struct kp_lock *l);

/* Monotonic clock. */
long kp_now_ms(void);
double kp_now_ns(void);

/* The shortest wait worth a system call when polling. */
void kp_nap(void);

#endif
