/*
 * A stack of our own, for what a program has us do on its alternate signal stack: those are often of 8 KiB, and a crash
 * handler that ends the process there would overrun it in our report.
 */
#ifndef KP_PRELOAD_OS_OWN_STACK_H
#define KP_PRELOAD_OS_OWN_STACK_H

/* Calls `fn`: on a stack of 1 MiB, with signals held, where the caller stands on an alternate signal stack with little
 * left; else on the caller's. Without memory for it, on the caller's, too. Any thread; safe in a signal handler. */
void kp_on_own_stack(void (*fn)(void));

#endif
