/*
 * Modules of which a kernel was launched outside of any window: they have been loaded, with their variables, so a first
 * launch inside a window brings nothing along that the saved memory lacks. Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_LOADED_MODULES_H
#define KP_PRELOAD_PROGRAM_LOADED_MODULES_H

#include "preload/program/launch.h"

/* The module of a CUfunction, or the library of a CUkernel cast to one; NULL when the driver does not tell. */
const void *kp_launched_module(const struct kp_driver *d, CUfunction f);

/* After a launch outside of any window was made. Whether it may be the first of its function; from the second time on
 * it costs a look into a table. The caller is not under the guard. */
bool kp_launched_note(const struct kp_driver *d, const struct kp_launch *l);

bool kp_launched_has(CUcontext ctx, const void *module);

/* Modules or contexts may end, and their handles come again. */
void kp_launched_forget(void);

#endif
