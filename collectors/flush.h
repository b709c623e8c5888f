/*
 * Cache control: a small kernel reads a buffer several times the size of the L2, so that what the caches hold
 * afterwards is clean and none of the program's. A memset or a copy would leave dirty lines, whose write-back would be
 * charged to the kernel measured next.
 */
#ifndef KP_COLLECTORS_FLUSH_H
#define KP_COLLECTORS_FLUSH_H

#include "collectors/device.h"

struct kp_flush;

/* Loads the kernel into the current context. Returns CUDA_SUCCESS or the driver's code. */
CUresult kp_flush_open(const struct kp_driver *d, const struct kp_device *device, struct kp_flush **out);
/* Gives module and buffer back. `context_alive` false: only the host's memory. */
void kp_flush_close(struct kp_flush *f, bool context_alive);

/* Sweeps, waits for the end, and empties the instruction caches. The first sweep takes the buffer from device memory:
 * several L2 sizes, less when memory is short. */
CUresult kp_flush_run(struct kp_flush *f);

/* Gives the buffer back: it is held only while a window is replayed, so that the program finds its memory as large as
 * without kprof. */
void kp_flush_give(struct kp_flush *f);

#endif
