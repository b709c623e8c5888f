/* The doors of the CUDA runtime (runtime.def). */
#ifndef KP_PRELOAD_DOORS_RUNTIME_H
#define KP_PRELOAD_DOORS_RUNTIME_H

/* Returns the door for the runtime function `real` that a lookup of `symbol` found. NULL if there is no such door, or
 * if it already fronts another runtime's function. Threads: any. */
void *kp_runtime_wrap(const char *symbol, void *real);

#endif
