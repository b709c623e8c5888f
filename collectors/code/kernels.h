/*
 * What the code of loaded modules tells of kernels, beyond what the driver tells. Threads: any.
 */
#ifndef KP_COLLECTORS_CODE_KERNELS_H
#define KP_COLLECTORS_CODE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_kernels;

struct kp_kernel_code {
    uint32_t barriers;  /* named barriers a thread block */
    uint32_t functions; /* the kernel and those it calls */
    bool launches;      /* it may launch others */
    bool spills;        /* registers to memory, by the compiler's notes */
    unsigned once;      /* of enum kp_once (cubin.h): why it must not be run twice */
};

/* `cubin_at` gives the i-th image that was loaded, valid for ever, or NULL when there are no more yet. NULL without
 * memory. */
struct kp_kernels *kp_kernels_new(const void *(*cubin_at)(size_t i, size_t *size));
void kp_kernels_free(struct kp_kernels *k);

/* Fills *out for kernel `name` (mangled). False when no module has it, or when several have it that do not agree.
 * Reads the modules first that were loaded since the last call. */
bool kp_kernels_find(struct kp_kernels *k, const char *name, struct kp_kernel_code *out);

/* Why kernel `name` must not be run twice: bits of enum kp_once, 0 where no module tells of a reason. Where several
 * modules have it, or its calls cannot be followed, it has the reasons of them all. "" stands for any kernel there
 * is. */
unsigned kp_kernels_once(struct kp_kernels *k, const char *name);

#endif
