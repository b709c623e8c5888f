/*
 * Device memory of kprof's own, by the functions for virtual memory: neither making it nor freeing it waits for the
 * work of the device, which may wait for what the program does next.
 *
 * Threads: any; each piece by one at a time. The context must be current.
 */
#ifndef KP_COLLECTORS_REPLAY_VMEM_H
#define KP_COLLECTORS_REPLAY_VMEM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "collectors/facts/driver.h"

struct kp_vmem {
    CUdeviceptr at; /* 0: none */
    size_t bytes;   /* what it takes */
};

/* Whether the driver has the functions. */
bool kp_vmem_available(const struct kp_driver *d);

/* Makes memory of `bytes` or a little more on `device`, which may read and write it. */
CUresult kp_vmem_make(const struct kp_driver *d, CUdevice device, size_t bytes, struct kp_vmem *out);

/* Ends the mapping of the first `mapped` byte of `bytes` reserved ones, and gives the addresses back. Those of a
 * mapping that the driver does not end stay reserved: nothing else may come to lie there. */
void kp_vmem_unmap(const struct kp_driver *d, CUdeviceptr at, size_t bytes, size_t mapped);

/* Frees it; no work may use it any more. *m is empty afterwards. Frees nothing of an empty one. */
void kp_vmem_free(const struct kp_driver *d, struct kp_vmem *m);

#endif
