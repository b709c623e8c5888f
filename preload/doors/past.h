/*
 * Libraries whose calls bypass the doors: those opened with RTLD_DEEPBIND are bound to the driver itself, those opened
 * by dlmopen have a driver of their own. The former are redirected to the doors; a line at the end reports the latter.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_DOORS_PAST_H
#define KP_PRELOAD_DOORS_PAST_H

#include <stdatomic.h>
#include <stdbool.h>

/* Set while a library may have been opened whose calls have not been examined (read from lookup.S). */
extern atomic_int kp_past_waits;

/* Notes that a library is about to be opened with RTLD_DEEPBIND. Returns true if its location does not depend on the
 * caller: then kp_past_open opens it. Otherwise the next lookup of a symbol reaches kp_past_look. Called from
 * lookup.S. */
bool kp_past_deep(const char *file);
void *kp_past_open(const char *file, int flags);
void kp_past_look(void);

/* Notes that a library is opened in a namespace of its own (called from lookup.S). */
void kp_past_namespace(void);

/* Notes that a library is about to be closed (called from lookup.S). */
void kp_past_close(void);

#endif
