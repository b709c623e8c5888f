#include "collectors/facts/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "collectors/facts/occupancy.h"
#include "report/model/model.h"

/* An upper bound against a driver that never ends the list: the parameter space is 32,764 bytes. */
enum { MAX_PARAMS = 8192 };

/* Attributes in the order in which kp_device_read assigns them. */
enum {
    CC_MAJOR,
    CC_MINOR,
    SM_COUNT,
    WARP_SIZE,
    THREADS,
    BLOCKS,
    REGISTERS,
    SHARED,
    SHARED_BLOCK,
    SHARED_OPTIN,
    RESERVED,
    L2,
    N_ATTRIBUTES
};

static const CUdevice_attribute attributes[N_ATTRIBUTES] = {
    [CC_MAJOR] = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
    [CC_MINOR] = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    [SM_COUNT] = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    [WARP_SIZE] = CU_DEVICE_ATTRIBUTE_WARP_SIZE,
    [THREADS] = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
    [BLOCKS] = CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
    [REGISTERS] = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
    [SHARED] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
    [SHARED_BLOCK] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
    [SHARED_OPTIN] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    [RESERVED] = CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
    [L2] = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
};

CUresult kp_device_read(const struct kp_driver *d, CUdevice device, struct kp_device *out)
{
    int v[N_ATTRIBUTES] = {0};
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < N_ATTRIBUTES; i++) {
        CUresult rc = d->cuDeviceGetAttribute(&v[i], attributes[i], device);
        if (rc != CUDA_SUCCESS)
            return rc;
    }
    out->device = device;
    out->cc_major = v[CC_MAJOR];
    out->cc_minor = v[CC_MINOR];
    out->sm_count = (uint32_t)v[SM_COUNT];
    out->warp_size = (uint32_t)v[WARP_SIZE];
    out->max_warps = (uint32_t)(v[THREADS] / v[WARP_SIZE]);
    out->max_blocks = (uint32_t)v[BLOCKS];
    out->registers = (uint32_t)v[REGISTERS];
    out->shared_per_sm = (uint64_t)v[SHARED];
    out->shared_per_block = (uint64_t)v[SHARED_BLOCK];
    out->shared_per_block_optin = (uint64_t)v[SHARED_OPTIN];
    out->reserved_shared = (uint64_t)v[RESERVED];
    out->l2_size = (uint64_t)v[L2];
    int pageable = 0;
    out->pageable_access =
        d->cuDeviceGetAttribute(&pageable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device) == CUDA_SUCCESS &&
        pageable;
    if (d->cuDeviceGetAttribute(&out->mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) != CUDA_SUCCESS)
        out->mps = -1;
    out->schedulers = 4; /* sub-partitions of a multiprocessor on every chip from compute capability 7.0 on */
    d->cuDeviceGetName(out->name, sizeof(out->name), device);
    d->cuDeviceGetPCIBusId(out->pci_bus_id, sizeof(out->pci_bus_id), device);
    return CUDA_SUCCESS;
}

CUresult kp_read_context_facts(const struct kp_driver *d, CUcontext ctx, const struct kp_device *device,
                               struct kp_context_facts *out)
{
    size_t stack = 0, persisting = 0;
    memset(out, 0, sizeof(*out));
    CUresult rc = d->cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE);
    if (rc == CUDA_SUCCESS)
        rc = d->cuCtxGetCacheConfig(&out->cache_config);
    out->stack_size = stack;
    out->persisting_l2_known = d->cuCtxGetLimit(&persisting, CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == CUDA_SUCCESS;
    out->persisting_l2 = persisting;
    out->sm_count = device->sm_count;
    CUdevResource sms;
    memset(&sms, 0, sizeof(sms));
    if (d->cuCtxGetDevResource && d->cuCtxGetDevResource(ctx, &sms, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS &&
        sms.sm.smCount)
        out->sm_count = sms.sm.smCount;
    return rc;
}

static int attribute_of(const struct kp_driver *d, CUfunction f, CUfunction_attribute a)
{
    int value = 0;
    return d->cuFuncGetAttribute(&value, a, f) == CUDA_SUCCESS ? value : 0;
}

CUresult kp_function_read_params(const struct kp_driver *d, struct kp_function *out)
{
    if (!d->cuFuncGetParamInfo)
        return CUDA_SUCCESS;
    for (size_t i = 0; i < MAX_PARAMS; i++) {
        struct kp_param p;
        CUresult rc = d->cuFuncGetParamInfo(out->handle, i, &p.offset, &p.size);
        if (rc != CUDA_SUCCESS) {
            out->params_known = rc == CUDA_ERROR_INVALID_VALUE; /* the index past the last parameter */
            return CUDA_SUCCESS;
        }
        if (!KP_ROOM(out->params, i))
            return CUDA_ERROR_OUT_OF_MEMORY;
        out->params[i] = p;
        out->n_params = i + 1;
        if (p.offset + p.size > out->params_bytes)
            out->params_bytes = p.offset + p.size;
    }
    return CUDA_SUCCESS;
}

/* Finds how many blocks the named barriers allow. The driver's occupancy answer includes them, so the driver is asked
 * about blocks of one warp without dynamic shared memory. If the answer is below the other limits, the barriers bind.
 * If the other limits leave room for an SM's most blocks and the driver grants all of them, the barriers do not limit.
 * Otherwise nothing is known. */
static uint32_t read_barrier_limit(const struct kp_driver *d, const struct kp_device *device,
                                   const struct kp_function *f)
{
    int blocks = 0;
    struct kp_occupancy_in in = {
        .cc_major = device->cc_major,
        .warp_size = device->warp_size,
        .schedulers = device->schedulers,
        .max_warps = device->max_warps,
        .max_blocks = device->max_blocks,
        .registers = device->registers,
        .reserved_shared = (uint32_t)device->reserved_shared,
        .registers_per_thread = f->registers,
    };
    if (d->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f->handle, (int)device->warp_size, 0) != CUDA_SUCCESS ||
        blocks <= 0)
        return 0;
    uint32_t others = kp_occupancy_without_barriers(&in, device->warp_size, f->static_shared, device->shared_per_sm);
    if ((uint32_t)blocks < others || (uint32_t)blocks == device->max_blocks)
        return (uint32_t)blocks;
    return 0;
}

CUresult kp_function_read(const struct kp_driver *d, const struct kp_device *device, CUfunction f,
                          struct kp_function *out)
{
    int registers = 0;
    const char *name = NULL;
    memset(out, 0, sizeof(*out));
    out->handle = f;
    /* Function queries refuse a CUkernel, so get its function for the current context. */
    CUresult rc = d->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f);
    if (rc != CUDA_SUCCESS && d->cuKernelGetFunction) {
        rc = d->cuKernelGetFunction(&out->handle, (CUkernel)f);
        if (rc == CUDA_SUCCESS)
            rc = d->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, out->handle);
    }
    if (rc != CUDA_SUCCESS)
        return rc;
    out->registers = (uint32_t)registers;
    out->static_shared = (uint64_t)attribute_of(d, out->handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    out->max_threads = (uint32_t)attribute_of(d, out->handle, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    out->local_bytes = (uint32_t)attribute_of(d, out->handle, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    out->cluster[0] = (uint32_t)attribute_of(d, out->handle, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
    out->cluster[1] = (uint32_t)attribute_of(d, out->handle, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
    out->cluster[2] = (uint32_t)attribute_of(d, out->handle, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
    out->cluster_policy = attribute_of(d, out->handle, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    if (d->cuFuncGetName)
        d->cuFuncGetName(&name, out->handle);
    out->mangled = kp_strdup(name);
    rc = out->mangled ? kp_function_read_params(d, out) : CUDA_ERROR_OUT_OF_MEMORY;
    if (rc != CUDA_SUCCESS) {
        kp_function_free(out);
        return rc;
    }
    out->barrier_limit = read_barrier_limit(d, device, out);
    return CUDA_SUCCESS;
}

void kp_function_free(struct kp_function *f)
{
    free(f->mangled);
    free(f->params);
    memset(f, 0, sizeof(*f));
}
