/*
 * The doors: typed entry points for launches, graphs, host memory, and functions that return entry points. Other
 * functions have trampolines (trampolines.h). Each door exists twice: as the exported symbol, in front of the
 * definition that the dynamic linker would have bound, and as the pointer returned by dlsym and cuGetProcAddress, in
 * front of the real resolver's pointer. doors.def lists them.
 */
#ifndef KP_PRELOAD_DOORS_DOORS_H
#define KP_PRELOAD_DOORS_DOORS_H

#include <stdint.h>

/* Returns the replacement for `real`, which a lookup of `symbol` by name found: a door, a trampoline, or `real`
 * itself (NULL included). */
void *kp_door_wrap_symbol(const char *symbol, void *real);

/* Does the same for cuGetProcAddress: base name, requested version and flags. */
void *kp_door_wrap_base(const char *base, int version, uint64_t flags, void *real);

#endif
