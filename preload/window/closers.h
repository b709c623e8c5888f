/*
 * What closed the windows that were replayed, and whether that made profiling slow. Inside the gate's exclusive
 * section.
 */
#ifndef KP_PRELOAD_WINDOW_CLOSERS_H
#define KP_PRELOAD_WINDOW_CLOSERS_H

#include <stddef.h>

/* The reason of a window that holds as many launches as it may. */
extern const char kp_closed_full[];

/* A window of so many launches was closed by `what`: static text, the driver's function or a reason. */
void kp_closers_note(const char *what, size_t launches);

/* After a window, which took so much of our time, ns. Says once, early enough to be of use, that windows hold about one
 * launch each, what closes them, and what costs less. */
void kp_closers_tell_early(double took_ns);

/* Says in one line what closed the windows, where these held so few launches that profiling took much longer than it
 * needs to. Once, at the end. */
void kp_closers_tell(void);

#endif
