/*
 * The scope of kprof's own work on a thread of the program. Every way into kprof goes through it.
 *
 * Inside the scope signals wait, except those of faults. A handler that exits, forks, or leaves by siglongjmp would
 * find locks of the C library, the driver or CUPTI held by its own thread. The program's own calls of the driver run
 * outside of the scope, with the program's mask.
 *
 * Long work has safe points (kp_safe_point; also kp_lock_wait_while and kp_nap). There the handlers of pending signals
 * run on the program's stack, with the program's mask, and the work is paused meanwhile. It has a stack of its own,
 * which survives a handler that never returns: the thread finishes the work when it next comes into kprof, when it
 * ends, or when it ends the process.
 *
 * Threads: any; each has its own state.
 */
#ifndef KP_BASE_WORK_H
#define KP_BASE_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Depth of kprof's own driver calls on this thread: while it is not 0, doors only pass calls on. */
extern __thread int kp_guard __attribute__((tls_model("initial-exec")));

/* Depth of the program's own driver calls on this thread, made through trampolines. */
extern __thread int kp_in_driver __attribute__((tls_model("initial-exec")));

/* Begin and end short work, without safe points. They may be nested, in each other and in kp_work_run. CUPTI callbacks
 * and uses of the C library outside of kp_work_run are such work. errno stays. */
void kp_work_begin(void);
void kp_work_end(void);

/* Runs fn(arg) as work with safe points, on a stack of kprof's own: 8 MiB, or the caller's if there is no memory for
 * it. Nested in other work it is a plain call. First it finishes the thread's paused work. `arg` has `bytes` (at most
 * KP_WORK_MOST); the work gets a copy, which replaces `arg` at the end. No copy comes back if the work was paused at a
 * fork and this is the child: then `arg` must have held the answer. */
enum { KP_WORK_MOST = 4096 };
void kp_work_run(void (*fn)(void *arg), void *arg, size_t bytes);

/* The same, with the argument made in place, for doors that take little of the program's stack. kp_work_room begins the
 * work and returns KP_WORK_MOST bytes of its own stack, aligned as by malloc. kp_work_go runs fn(room) and copies the
 * first `bytes` of the room to `answer`; it must follow. NULL: there is none, and kp_work_run is to be called. */
void *kp_work_room(void);
void kp_work_go(void (*fn)(void *room), void *room, void *answer, size_t bytes);

/* Returns true if the caller of kp_work_run is gone, or will never go on: a handler at a safe point has left for good,
 * or ends the process. Nothing on the program's stack may be looked at any more, and the program's call must not be
 * made. */
bool kp_work_abandoned(void);

/* Lets signals without a handler act at once from now on until the work ends. Call it before work that may be long even
 * between two safe points. The safe points notice handlers that are set later. */
void kp_work_takes_long(void);

/* The program's own call of the driver, within work: runs fn(arg) outside of the scope, on the program's stack. Returns
 * false if it was not made, or if a handler has left it for good. */
bool kp_work_call(void (*fn)(void *arg), void *arg);

/* Notes the thread's outermost call of the driver by a trampoline: its register arguments, their place in the
 * trampoline's frame, and what makes it return as if the driver had refused the call. */
enum { KP_WORK_ARGS = 6 };
void kp_work_call_begins(const uint64_t *at, const uint64_t *args, void (*refuse)(uint64_t slot, uint32_t entered),
                         uint64_t slot, uint32_t entered);
/* Ends the thread's driver call (noted by a trampoline or made by kp_work_call) if a handler has left it for good, so
 * that doors handle the thread's calls again. Doors call it when kp_guard stops them. */
void kp_work_reclaim(void);

/* A safe point: call it between two steps of long work, while no lock of the C library, the driver or CUPTI is held.
 * Does nothing outside of kp_work_run, and inside of work without safe points; returns false there. */
bool kp_safe_point(void);

/* The thread ends the process: paused work that it finishes stops at its next step, which asks kp_work_is_cut. Once it
 * has worked after that, nobody can cancel it. */
void kp_work_ends_process(void);
bool kp_work_is_cut(void);
/* Returns how long such work still waits, ms: at most half a second, else `ms`. */
long kp_work_patience(long ms);

/* Notes that a thread has ended within a call of the driver, which may hold locks for good; and returns true if one
 * has. Nothing calls the driver then as the process ends. Any thread. */
void kp_work_left_driver(void);
bool kp_work_driver_is_left(void);

/* Drops the thread's paused work in a forked child. */
void kp_work_forked(void);

#endif
