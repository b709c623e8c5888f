/* Facts about a device, a context and a kernel function, each read once from the driver. */
#ifndef KP_COLLECTORS_FACTS_DEVICE_H
#define KP_COLLECTORS_FACTS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/code/kernels.h"
#include "collectors/facts/driver.h"

struct kp_device {
    CUdevice device;
    int cc_major, cc_minor;
    uint32_t sm_count, warp_size, max_warps, max_blocks, registers, schedulers;
    uint64_t shared_per_sm, reserved_shared, l2_size;  /* bytes */
    uint64_t shared_per_block, shared_per_block_optin; /* bytes; the second for kernels that opt in to more */
    bool pageable_access;                              /* kernels can read and write any host memory */
    int mps; /* contexts share the device through MPS: 1, 0, or -1 if the driver does not say */
    char name[256], pci_bus_id[32];
};

/* Facts about the context that are the same for each of its launches. */
struct kp_context_facts {
    uint64_t stack_size; /* bytes per thread */
    bool persisting_l2_known;
    uint64_t persisting_l2; /* bytes of L2 set aside */
    uint32_t sm_count;      /* fewer than the device's in a green context */
    CUfunc_cache cache_config;
};

/* One argument in the kernel's parameter buffer, in bytes. */
struct kp_param {
    size_t offset, size;
};

struct kp_function {
    CUfunction handle; /* a CUfunction, even if the program launches by CUkernel */
    char *mangled;     /* "" if the driver does not know it */
    uint32_t registers, max_threads, local_bytes;
    uint64_t static_shared;
    uint32_t cluster[3];    /* required by the code; 0 = none */
    int cluster_policy;     /* CUclusterSchedulingPolicy of the function */
    uint32_t barrier_limit; /* blocks per SM that named barriers allow; 0 = unknown to the driver */
    bool code_known;        /* set by the caller, who has the module's image: kp_function_read leaves it false */
    struct kp_kernel_code code;
    bool params_known;
    struct kp_param *params;
    size_t n_params, params_bytes;
};

/* Read facts about the device or context. Return CUDA_SUCCESS or the driver's code. A context must be current. */
CUresult kp_device_read(const struct kp_driver *d, CUdevice device, struct kp_device *out);
CUresult kp_read_context_facts(const struct kp_driver *d, CUcontext ctx, const struct kp_device *device,
                               struct kp_context_facts *out);

/* Reads the sizes of the parameters of out->handle; `params_known` if the driver reports all. The caller frees
 * `params`. */
CUresult kp_function_read_params(const struct kp_driver *d, struct kp_function *out);

/* Reads `f`, a CUfunction or a CUkernel cast to one (both can be launched). Frees nothing of *out on entry. */
CUresult kp_function_read(const struct kp_driver *d, const struct kp_device *device, CUfunction f,
                          struct kp_function *out);
void kp_function_free(struct kp_function *f);

#endif
