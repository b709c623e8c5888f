/* Devices: one chip by compute capability, as often as FAKE_DEVICES says. */
#include "core.h"

struct chip {
    int major, minor;
    const char *chip, *name;
    int sms, warps_per_sm, blocks_per_sm, shared_per_sm, shared_optin, shared_reserved, l2_bytes, clock_khz;
    int memory_clock_khz, bus_bits, clusters;
    size_t memory;
};

/* Figures of the public architecture documents; the first row is the default, the last a chip that CUPTI does not
 * know. */
static const struct chip chips[] = {
    {9, 0, "GH100", "NVIDIA H200", 132, 64, 32, 233472, 232448, 1024, 62914560, 1980000, 3201000, 6144, 1,
     150754820096},
    {7, 0, "GV100", "Tesla V100-SXM2-16GB", 80, 64, 32, 98304, 98304, 0, 6291456, 1530000, 877000, 4096, 0,
     16945512448},
    {7, 5, "TU102", "NVIDIA TITAN RTX", 72, 32, 16, 65536, 65536, 0, 6291456, 1770000, 7001000, 384, 0, 25396838400},
    {8, 0, "GA100", "NVIDIA A100-SXM4-40GB", 108, 64, 32, 167936, 166912, 1024, 41943040, 1410000, 1215000, 5120, 0,
     42405855232},
    {8, 6, "GA102", "NVIDIA GeForce RTX 3090", 82, 48, 16, 102400, 101376, 1024, 6291456, 1695000, 9751000, 384, 0,
     25438126080},
    {8, 9, "AD102", "NVIDIA L40S", 142, 48, 24, 102400, 101376, 1024, 100663296, 2520000, 9001000, 384, 0, 47810936832},
    {10, 0, "GB100", "NVIDIA B200", 148, 64, 32, 233472, 232448, 1024, 132644864, 1965000, 3996000, 8192, 1,
     191503138816},
    {12, 0, "GB202", "NVIDIA GeForce RTX 5090", 170, 48, 24, 102400, 101376, 1024, 100663296, 2407000, 14001000, 512, 1,
     33670758400},
    {99, 0, "ZZ999", "NVIDIA of Tomorrow", 64, 64, 32, 233472, 232448, 1024, 62914560, 1000000, 1000000, 4096, 1,
     17179869184},
};

static const struct chip *the_chip(void)
{
    const char *cc = getenv("FAKE_CC");
    char text[16];

    for (size_t i = 0; cc && i < sizeof(chips) / sizeof(chips[0]); i++) {
        snprintf(text, sizeof(text), "%d.%d", chips[i].major, chips[i].minor);
        if (!strcmp(cc, text))
            return &chips[i];
    }
    return &chips[0];
}

static int n_devices(void)
{
    const char *text = getenv("FAKE_DEVICES");

    return text ? atoi(text) : 1;
}

static size_t device_memory(void)
{
    const char *text = getenv("FAKE_MEMORY");

    return text ? strtoull(text, NULL, 10) : the_chip()->memory;
}

#define ENTER_DEVICE(dev)                                                                                              \
    ENTER(NEED_INIT);                                                                                                  \
    if ((dev) < 0 || (dev) >= n_devices())                                                                             \
    return CUDA_ERROR_INVALID_DEVICE

CUresult cuDeviceGetCount(int *count)
{
    ENTER(NEED_INIT);
    *count = n_devices();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER_DEVICE(ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice dev)
{
    ENTER_DEVICE(dev);
    snprintf(name, length, "%s", the_chip()->name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    ENTER_DEVICE(dev);
    for (size_t i = 0; i < sizeof(uuid->bytes); i++)
        uuid->bytes[i] = (char)(0x10 * dev + (int)i);
    return CUDA_SUCCESS;
}
__typeof__(cuDeviceGetUuid_v2) cuDeviceGetUuid __attribute__((alias("cuDeviceGetUuid_v2")));

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice dev)
{
    ENTER_DEVICE(dev);
    snprintf(id, length, "0000:%02X:00.0", 0x1b + dev);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
    unsigned int bus;

    ENTER(NEED_INIT);
    if (sscanf(id, "%*x:%x", &bus) != 1 || bus < 0x1b || (int)bus >= 0x1b + n_devices())
        return CUDA_ERROR_INVALID_VALUE;
    *dev = (CUdevice)bus - 0x1b;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    ENTER_DEVICE(dev);
    *bytes = device_memory();
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    ENTER_DEVICE(dev);
    *major = the_chip()->major;
    *minor = the_chip()->minor;
    return CUDA_SUCCESS;
}

/* An attribute is a field of the chip's row, or (field 0) the same for all. */
static const struct {
    CUdevice_attribute attr;
    size_t field;
    int value;
} attributes[] = {
#define CHIP(attr, member)                                                                                             \
    {                                                                                                                  \
        CU_DEVICE_ATTRIBUTE_##attr, offsetof(struct chip, member) + 1, 0                                               \
    }
#define SAME(attr, value)                                                                                              \
    {                                                                                                                  \
        CU_DEVICE_ATTRIBUTE_##attr, 0, value                                                                           \
    }
    CHIP(COMPUTE_CAPABILITY_MAJOR, major),
    CHIP(COMPUTE_CAPABILITY_MINOR, minor),
    CHIP(MULTIPROCESSOR_COUNT, sms),
    CHIP(MAX_BLOCKS_PER_MULTIPROCESSOR, blocks_per_sm),
    CHIP(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, shared_per_sm),
    CHIP(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared_optin),
    CHIP(RESERVED_SHARED_MEMORY_PER_BLOCK, shared_reserved),
    CHIP(L2_CACHE_SIZE, l2_bytes),
    CHIP(CLOCK_RATE, clock_khz),
    CHIP(MEMORY_CLOCK_RATE, memory_clock_khz),
    CHIP(GLOBAL_MEMORY_BUS_WIDTH, bus_bits),
    CHIP(CLUSTER_LAUNCH, clusters),
    SAME(WARP_SIZE, 32),
    SAME(MAX_THREADS_PER_BLOCK, 1024),
    SAME(MAX_BLOCK_DIM_X, 1024),
    SAME(MAX_BLOCK_DIM_Y, 1024),
    SAME(MAX_BLOCK_DIM_Z, 64),
    SAME(MAX_GRID_DIM_X, 2147483647),
    SAME(MAX_GRID_DIM_Y, 65535),
    SAME(MAX_GRID_DIM_Z, 65535),
    SAME(MAX_SHARED_MEMORY_PER_BLOCK, 49152),
    SAME(MAX_REGISTERS_PER_BLOCK, 65536),
    SAME(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536),
    SAME(TOTAL_CONSTANT_MEMORY, 65536),
    SAME(COOPERATIVE_LAUNCH, 1),
    SAME(CONCURRENT_KERNELS, 1),
    SAME(UNIFIED_ADDRESSING, 1),
    SAME(MANAGED_MEMORY, 1),
    SAME(STREAM_PRIORITIES_SUPPORTED, 1),
    SAME(ASYNC_ENGINE_COUNT, 3),
    SAME(ECC_ENABLED, 1),
    SAME(COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT),
    SAME(MEMORY_POOLS_SUPPORTED, 1),
    SAME(PCI_DOMAIN_ID, 0),
    SAME(PCI_DEVICE_ID, 0),
#undef CHIP
#undef SAME
};

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice dev)
{
    const struct chip *chip = the_chip();

    ENTER_DEVICE(dev);
    if (attr <= 0 || attr >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    if (attr == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
        *value = 32 * chip->warps_per_sm;
    if (attr == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *value = 0x1b + dev;
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
        if (attributes[i].attr == attr)
            *value = attributes[i].field ? *(const int *)((const char *)chip + attributes[i].field - 1)
                                         : attributes[i].value;
    return CUDA_SUCCESS;
}

/* The fake has no MIG. */
static CUresult sm_resource(CUdevResource *resource, CUdevResourceType type, unsigned int sms)
{
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    memset(resource, 0, sizeof(*resource));
    resource->type = type;
    resource->sm.smCount = sms;
    resource->sm.minSmPartitionSize = 8;
    resource->sm.smCoscheduledAlignment = 8;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDevResource(CUdevice dev, CUdevResource *resource, CUdevResourceType type)
{
    ENTER_DEVICE(dev);
    return sm_resource(resource, type, the_chip()->sms);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *parts, unsigned int *n, const CUdevResource *of,
                                     CUdevResource *remaining, unsigned int flags, unsigned int sms)
{
    ENTER(NEED_INIT);
    if (!parts || *n != 1 || flags || !sms || sms >= of->sm.smCount)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *parts = *of;
    parts->sm.smCount = sms;
    if (remaining) {
        *remaining = *of;
        remaining->sm.smCount = of->sm.smCount - sms;
    }
    return CUDA_SUCCESS;
}

/* A description is the number of SMs, and stays. */
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *parts, unsigned int n)
{
    unsigned int *sms = malloc(sizeof(*sms));

    ENTER(NEED_INIT);
    if (!sms || n != 1)
        return CUDA_ERROR_INVALID_VALUE;
    *sms = parts->sm.smCount;
    *out = (CUdevResourceDesc)sms;
    return CUDA_SUCCESS;
}
