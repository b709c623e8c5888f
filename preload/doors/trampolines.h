/* Trampolines (trampolines.S): doors that need no knowledge of a function's signature. */
#ifndef KP_PRELOAD_DOORS_TRAMPOLINES_H
#define KP_PRELOAD_DOORS_TRAMPOLINES_H

#include "preload/doors/api.h"

/* The function to hand out for the driver's function `real`, which the program asked for by exported symbol, or by the
 * base name of cuGetProcAddress: a trampoline, or `real` itself where the class needs none or no trampoline is left.
 * Threads: any. */
void *kp_trampoline_for(enum kp_api_class class, const char *symbol, void *real);

#endif
