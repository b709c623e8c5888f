/*
 * Makes our exit handlers run before those of the libraries loaded so far, which ours still need. Handlers run in
 * reverse order of registration.
 * Threads: any, once the handlers are set.
 */
#ifndef KP_PRELOAD_OS_EXIT_FIRST_H
#define KP_PRELOAD_OS_EXIT_FIRST_H

/* Sets the handlers, in the order in which they run. */
void kp_exit_handlers(void (*first)(void), void (*second)(void));

/* Registers them again, so that they run before all handlers registered until now. Does nothing before they are set. */
void kp_exit_first(void);

#endif
