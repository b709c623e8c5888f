/*
 * Locks, clocks and waits. There is one kind of lock, and one table of all locks (locks.def), which is their order. A
 * lock can be waited for with a limit, which a program's end needs: an exit from a signal handler may have interrupted
 * the very thread that holds the lock. Waiting threads sleep in the kernel.
 *
 * Threads: any. A lock is given back by the thread that took it.
 */
#ifndef KP_BASE_LOCK_H
#define KP_BASE_LOCK_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
#define KP_LOCK(name, fork, file, what) KP_LOCK_##name,
#include "base/locks.def"
#undef KP_LOCK
    KP_LOCKS
};

struct kp_lock {
    atomic_int word; /* id of the thread that holds it, and whether others wait; 0 = free */
    int rank;        /* of KP_LOCK_… */
};

/* By rank. A lock of which there are several is no part of it: it starts as KP_LOCK_FREE(NAME). */
extern struct kp_lock kp_locks[KP_LOCKS];

#define KP_LOCK_FREE(name) ((struct kp_lock){.rank = KP_LOCK_##name})

enum { KP_FOREVER = -1 };

/* Waits at most `patience_ms` (KP_FOREVER: without end; 0: not at all). False when it was not to be had; at once where
 * this very thread holds it and the wait has a limit. A holder that has ended holds nothing any more.
 *
 * A thread that waits without end holds only locks that come before this one. The builds with ASan or TSan check that:
 * they name both locks on stderr and abort. */
bool kp_lock_take(struct kp_lock *l, long patience_ms);
void kp_lock_give(struct kp_lock *l);

/* The program ends on this thread, maybe in a handler of a signal that interrupted it while it held locks: the order is
 * checked among those that it takes from here on. */
void kp_locks_at_end(void);

/* ---- forks ---- */

/* Over each fork from now on the thread that forks holds the locks that the table says so of, taken in its order, so
 * that what they guard is whole in the child. Those that are not to be had soon are left: the thread may hold one
 * itself. In the child all are free, and in_child is called. Once. */
void kp_locks_watch_forks(void (*in_child)(void));
/* In the child: whether another thread of the parent's held the lock at the fork, and left its work half done. */
bool kp_locks_broken(int lock);
/* Whether this thread forks and holds them: a signal handler that interrupts it must not wait for one. */
bool kp_locks_forking(void);

/* ---- signals ---- */

/* Signals wait on this thread while it allocates or frees, and nothing may take long meanwhile: an exit() from a
 * handler that interrupted an allocation would wait for ever for the C library's lock, which what runs at the end
 * needs. */
sigset_t kp_signals_hold(void);
void kp_signals_let(const sigset_t *before);

/* ---- waiting ---- */

/* Sleeps while *word is `value`, at most `ms` (KP_FOREVER: without end), and wakes early now and then. */
void kp_wait_while(atomic_int *word, int value, long ms);
/* Wakes all who wait for a change of *word. */
void kp_wake_all(atomic_int *word);

/* The system's id of this thread. */
int kp_thread_id(void);

/* Monotonic clock. */
long kp_now_ms(void);
double kp_now_ns(void);

/* For polling what nobody tells of: sleeps for a sixteenth of what has been waited so far, in all from 50 us to 5 ms.
 */
void kp_nap(long waited_ms);

#endif
