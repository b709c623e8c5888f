/*
 * Device memory of kprof's own, through the virtual memory functions: neither making nor freeing it waits for the work
 * of the device, which may itself wait for what the program does next. It is not cleared: unlike a part of a block of
 * cuMemAlloc it goes back to the kernel driver, which clears memory before it hands it on (KP_VENDOR:
 * bScrubOnFreeEnabled of open-gpu-kernel-modules; tests/gpu/contact/fresh.cu looks).
 *
 * Threads: any; each piece by one thread at a time. The context must be current.
 */
#ifndef KP_COLLECTORS_REPLAY_VMEM_H
#define KP_COLLECTORS_REPLAY_VMEM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "collectors/facts/driver.h"

struct kp_vmem {
    CUdeviceptr at; /* 0: none */
    size_t bytes;   /* what it uses */
};

/* Returns true if the driver has the functions. */
bool kp_vmem_available(const struct kp_driver *d);

/* Makes memory of `bytes` or slightly more on `device`, which may read and write it. */
CUresult kp_vmem_make(const struct kp_driver *d, CUdevice device, size_t bytes, struct kp_vmem *out);

/* Ends the mapping of the first `mapped` bytes of `bytes` reserved ones, and frees the addresses. If the driver does
 * not end the mapping, they stay reserved, so that nothing else can be placed there. */
void kp_vmem_unmap(const struct kp_driver *d, CUdeviceptr at, size_t bytes, size_t mapped);

/* Frees it; no work may use it any more. *m is empty afterwards. Does nothing if it is empty. */
void kp_vmem_free(const struct kp_driver *d, struct kp_vmem *m);

#endif
