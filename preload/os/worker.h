/*
 * A thread of our own, started when first needed: evaluation and storage of finished windows go on while the program
 * does. It blocks all signals, calls no CUDA function, and ends with the process.
 */
#ifndef KP_PRELOAD_OS_WORKER_H
#define KP_PRELOAD_OS_WORKER_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread with all signals blocked; *thread is to be joined. False when the process has no threads, or none to
 * spare. */
bool kp_thread_start(void *(*fn)(void *arg), void *arg, pthread_t *thread);
/* Waits for the very end of a thread whose function has returned, or is about to. What libraries keep for a thread is
 * taken down after that, and must not meet the libraries' own exit handlers. */
void kp_thread_join(pthread_t thread);
/* From here on, threads that were started here wait for the end of the process when their functions have returned. When
 * the last thread of the program's has ended by pthread_exit, the C library calls exit on it, and would again for each
 * thread of ours that ends meanwhile: the process would be gone before the report is written. Should the calling thread
 * end that way itself, at_end is called, and the others go on to their ends. */
void kp_thread_park(void (*at_end)(void));

/* Runs fn(arg) on the worker after everything submitted before. False when no thread is to be had (or after a fork):
 * nothing was taken, the caller runs it itself. */
bool kp_worker_submit(void (*fn)(void *arg), void *arg);

/* Waits until all that was submitted is done, at most `patience_ms` (KP_FOREVER of lock.h: without end). False when it
 * was not. On the worker itself: true at once. */
bool kp_worker_drain(long patience_ms);

/* In a forked child: the thread does not exist any more, what was queued belongs to the parent. */
void kp_worker_forked(void);

#endif
