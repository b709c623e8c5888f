/* Trampolines (trampolines.S): doors that need no knowledge of a function's signature. */
#ifndef KP_PRELOAD_DOORS_TRAMPOLINES_H
#define KP_PRELOAD_DOORS_TRAMPOLINES_H

#include "preload/doors/api.h"
#include "preload/program/device_memory.h"

/* Returns a trampoline for the driver's function `real`, or `real` itself if the class needs none or none is left. The
 * program asked for it by exported symbol, or by the base name of cuGetProcAddress. `owns` is its row's, `words` the
 * size of its stack arguments. Threads: any. */
void *kp_trampoline_for(enum kp_api_class class, const char *symbol, const struct kp_owning *owns, unsigned words,
                        void *real);

#endif
