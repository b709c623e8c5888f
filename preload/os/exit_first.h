/*
 * Exit handlers run in reverse order: ours is to run before those of the libraries loaded so far, which would no longer
 * answer. Threads: any, once the handlers are set.
 */
#ifndef KP_PRELOAD_OS_EXIT_FIRST_H
#define KP_PRELOAD_OS_EXIT_FIRST_H

/* The handlers, in the order in which they are to run. */
void kp_exit_handlers(void (*first)(void), void (*second)(void));

/* Registers them once more, so that they run before all that was registered until now. Nothing before they are set. */
void kp_exit_first(void);

#endif
