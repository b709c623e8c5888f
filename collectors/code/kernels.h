/*
 * Facts about kernels from the code of loaded modules, beyond what the driver knows. Threads: any.
 */
#ifndef KP_COLLECTORS_CODE_KERNELS_H
#define KP_COLLECTORS_CODE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_kernels;

struct kp_kernel_code {
    uint32_t barriers;  /* named barriers per thread block */
    uint32_t functions; /* the kernel and the functions it calls */
    bool launches;      /* it may launch others */
    bool spills;        /* registers to memory, by the compiler's annotations */
    unsigned once;      /* of enum kp_once (cubin.h): why it must not run twice */
};

/* `cubin_at` returns the i-th loaded image, valid for ever, or NULL if there are no more yet. NULL without memory. */
struct kp_kernels *kp_kernels_new(const void *(*cubin_at)(size_t i, size_t *size));
void kp_kernels_free(struct kp_kernels *k);

/* Fills *out for kernel `name` (mangled). False if no module has it, or if several modules disagree. First reads
 * modules loaded since the last call. */
bool kp_kernels_find(struct kp_kernels *k, const char *name, struct kp_kernel_code *out);

/* Returns why kernel `name` must not run twice: bits of enum kp_once, 0 without a known reason. If several modules have
 * it, or its calls cannot be followed, these are the reasons of all of them. "" means any kernel. */
unsigned kp_kernels_once(struct kp_kernels *k, const char *name);

#endif
