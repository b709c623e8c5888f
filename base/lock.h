/*
 * Locks, clocks and waits. There is one kind of lock. The table of all locks (locks.def) gives their order. A wait
 * for a lock can have a limit. The end of a program needs that: an exit from a signal handler may have interrupted
 * the thread that holds the lock. Waiting threads sleep in the kernel.
 *
 * Threads: any. The thread that took a lock gives it back.
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
    atomic_int word; /* id of the holding thread, and whether others wait; 0 = free */
    int rank;        /* of KP_LOCK_… */
};

/* All locks by rank, except for those with several instances, which start as KP_LOCK_FREE(NAME). */
extern struct kp_lock kp_locks[KP_LOCKS];

#define KP_LOCK_FREE(name) ((struct kp_lock){.rank = KP_LOCK_##name})

enum { KP_FOREVER = -1 };

/* Takes the lock; waits at most `patience_ms` (KP_FOREVER: without limit; 0: not at all). False when the time is
 * over, or at once if this thread holds the lock itself and the wait has a limit. A thread that has ended holds
 * nothing any more. A thread that waits without limit may hold only locks that come before this one. The builds with
 * ASan or TSan check that order: they name both locks on stderr and abort. */
bool kp_lock_take(struct kp_lock *l, long patience_ms);
void kp_lock_give(struct kp_lock *l);

/* Notes that the program ends on this thread. A signal may have interrupted it while it held locks, so the order is
 * checked only among locks taken from here on. */
void kp_locks_at_end(void);

/* ---- forks ---- */

/* Watches forks from now on; call it once. The forking thread acquires the locks that the table marks, in its order, so
 * that their data is whole in the child. It skips a lock that is not free soon: it may hold that one itself. In the
 * child all locks are free, and in_child is called. */
void kp_locks_watch_forks(void (*in_child)(void));
/* In the child: returns true if another thread of the parent held the lock at the fork, so its work may be half
 * done. */
bool kp_locks_broken(int lock);
/* Returns true if this thread is forking and holds them. A signal handler that interrupts it must not wait for a
 * lock. */
bool kp_locks_forking(void);

/* ---- signals ---- */

/* Block all signals on this thread over a fork, and while it starts a thread of ours, which inherits that. Work on a
 * thread of the program has a scope (base/work.h). */
sigset_t kp_signals_hold(void);
void kp_signals_let(const sigset_t *before);

/* ---- waiting ---- */

/* Sleeps while *word is `value`, at most `ms` (KP_FOREVER: without end), and wakes early now and then. Before and after
 * are safe points (base/work.h). */
void kp_lock_wait_while(atomic_int *word, int value, long ms);
/* Wakes all threads that wait for a change of *word. */
void kp_wake_all(atomic_int *word);

/* Returns the system's id of this thread. */
int kp_thread_id(void);

/* Returns the CPU time of the process's thread `id`, in ns; -1: there is none. KP_VENDOR: computes the kernel's number
 * of a thread's clock as pthread_getcpuclockid does, which libc lacks before glibc 2.34. */
double kp_thread_cpu_time(int id);

/* Reads the kernel's monotonic clock, for waits: the C library's may be a preloaded library's that runs faster. */
long kp_now_ms(void);
/* Reads the C library's monotonic clock. */
double kp_now_ns(void);

/* Sleeps between two polls: a sixteenth of the time waited so far, at least 50 us and at most 5 ms. A safe point. */
void kp_nap(long waited_ms);

#endif
