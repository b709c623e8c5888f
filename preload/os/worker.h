/*
 * A thread of our own, started when first needed: it evaluates and stores finished windows while the program goes
 * on. It blocks all signals, calls no CUDA function, and ends with the process.
 */
#ifndef KP_PRELOAD_OS_WORKER_H
#define KP_PRELOAD_OS_WORKER_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread with all signals blocked. *thread receives a handle for kp_worker_thread_join, which the caller must
 * call; the handle is not for the C library. Returns false if the process has no threads, or cannot start one. */
bool kp_worker_thread_start(void *(*fn)(void *arg), void *arg, pthread_t *thread);
/* Returns the handle of the calling thread, which kp_worker_thread_start has started. */
pthread_t kp_worker_thread_own(void);
/* Waits for the very end of a thread whose function has returned, or is about to. Libraries tear down their data of the
 * thread after that, which must not overlap with their own exit handlers. Returns at once for a thread that was joined
 * before, as all are once the thread of kp_worker_thread_park has ended. */
void kp_worker_thread_join(pthread_t thread);
/* Parks threads started here: when their functions have returned, they wait for the end of the process. When the
 * program's last thread has ended by pthread_exit, the C library calls exit on it. It would call exit again for each
 * thread of ours that ends meanwhile, and end the process before the report is written. If the calling thread itself
 * ends that way, at_end is called, and it waits for the other threads to end. */
void kp_worker_thread_park(void (*at_end)(void));

/* Runs fn(arg) on the worker after everything submitted before. Returns false without a thread (or after a fork): the
 * caller must run it itself. */
bool kp_worker_submit(void (*fn)(void *arg), void *arg);

/* Waits until all submitted work is done, at most `patience_ms` (KP_FOREVER of lock.h: without limit). False if the
 * time ran out. On the worker itself: true at once. */
bool kp_worker_drain(long patience_ms);

/* Resets the worker in a forked child: its thread does not exist there, and the queue belongs to the parent. */
void kp_worker_forked(void);

#endif
