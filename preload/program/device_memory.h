/*
 * The program's device memory, as known from its calls: what a save by change looks through. The checkpoint finds
 * memory by itself, but must copy all of it.
 *
 * Threads: any; kp_owned_list inside the gate's exclusive section, so that no call is under way.
 */
#ifndef KP_PRELOAD_PROGRAM_DEVICE_MEMORY_H
#define KP_PRELOAD_PROGRAM_DEVICE_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/driver.h"
#include "collectors/replay/shadow.h"
#include "report/model/reasons.h"

enum { KP_OWNED_ARGS = 6 }; /* arguments that are examined */

/* A row of device_memory.def. */
struct kp_owning {
    const char *symbol;
    int does;       /* private to device_memory.c */
    unsigned tells; /* which argument has the size, or the kind of a node, from 1 on; 0 = none */
};

/* Returns the row of a driver function, or NULL. */
const struct kp_owning *kp_owned_row(const char *symbol);

/* Returns how much memory the call is about to allocate, bytes; 0 = none, or the row does not say. */
uint64_t kp_owned_takes(const struct kp_owning *row, const uint64_t *args);

/* Notes a call that succeeded, with the driver's own functions at `d`. `held`: bytes of device memory that kprof uses
 * and that must count as free for the program. */
void kp_owned_note(const struct kp_driver *d, const struct kp_owning *row, const uint64_t *args, uint64_t held);

/* Notes a variable of a loaded module. */
void kp_owned_variable(CUdeviceptr at, size_t bytes);

/* Returns true if memory of cuMemCreate is mapped, so that it stays when its handle is released. */
bool kp_owned_is_mapped(CUmemGenericAllocationHandle memory);

/* Returns true if the program has allocated the memory at this address, so that it may free it there. Mappings, host
 * memory and variables do not count, though the driver knows their addresses. */
bool kp_owned_is_allocated(CUdeviceptr at);

/* Lists the memory of `device`, sorted, and without what has ended meanwhile: *parts (malloc'ed). Returns false if
 * there is memory that cannot be listed, such as that allocated by a context other than the current one, with *why. */
bool kp_owned_list(const struct kp_driver *d, CUdevice device, struct kp_part **parts, size_t *n, enum kp_reason *why);

/* Forgets everything in a forked child, where CUDA is unusable. */
void kp_owned_forked(void);

#endif
