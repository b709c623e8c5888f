/*
 * Modules with a kernel launched outside any window. They are loaded, with their variables, so a first launch inside a
 * window adds no variables that the saved memory lacks. Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_LOADED_MODULES_H
#define KP_PRELOAD_PROGRAM_LOADED_MODULES_H

#include "preload/program/launch.h"

/* Returns the module of a CUfunction, or the library of a CUkernel cast to one; NULL if the driver does not say. */
const void *kp_launched_module(const struct kp_driver *d, CUfunction f);

/* Returns true if the function's launches were noted before. Any thread, without a lock. */
bool kp_launched_is_noted(CUfunction f);

/* Notes a launch made outside any window. Returns true if it may be the first of its function; from the second time on
 * it costs one table lookup. The caller is not under the guard. */
bool kp_launched_note(const struct kp_driver *d, const struct kp_launch *l);

bool kp_launched_has(CUcontext ctx, const void *module);

/* Calls `fn` with a function of each such module of the context, as the program launched it. Returns false once `fn`
 * does, or if one is missing because memory was short. */
bool kp_launched_each(CUcontext ctx, bool (*fn)(void *arg, CUfunction f), void *arg);

/* Notes that modules or contexts may end, so that their handles may be reused. */
void kp_launched_forget(void);

#endif
