/*
 * The doors: typed entry points for launches and for what hands out entry points. Each stands twice, as the exported
 * symbol (in front of whatever the dynamic linker would have bound) and as the pointer given out by dlsym and
 * cuGetProcAddress (in front of the pointer that the real resolver gave). doors.def lists them.
 */
#ifndef KP_PRELOAD_DOORS_DOORS_H
#define KP_PRELOAD_DOORS_DOORS_H

#include <stdint.h>

/* What to hand out for `real`, which a lookup of `symbol` by name returned: a door, a trampoline, or `real` itself
 * (NULL included). */
void *kp_door_wrap_symbol(const char *symbol, void *real);

/* The same for cuGetProcAddress: base name, requested version and flags. */
void *kp_door_wrap_base(const char *base, int version, uint64_t flags, void *real);

#endif
