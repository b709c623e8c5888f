/* The doors of the CUDA runtime (runtime.def). */
#ifndef KP_PRELOAD_DOORS_RUNTIME_H
#define KP_PRELOAD_DOORS_RUNTIME_H

/* The door to hand out for the runtime function `real` that a lookup of `symbol` returned; NULL when it is no door's,
 * or when the door already stands in front of another runtime's function. Any thread. */
void *kp_runtime_wrap(const char *symbol, void *real);

#endif
