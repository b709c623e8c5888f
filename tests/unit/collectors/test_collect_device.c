/* What is read of devices, contexts and functions, over a table of driver functions that answer what a test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "collectors/facts/device.h"
#include "tests/support/occupancy_launches.h"

/* ---- the driver ---- */

enum { MAX_PARAMS = 20 };

static CUfunction const function = (CUfunction)(uintptr_t)0x1000;
static CUkernel const kernel = (CUkernel)(uintptr_t)0x2000;

static struct {
    int registers, static_shared, max_threads, local_bytes, cluster[3], policy;
    int blocks; /* what the driver's occupancy calculation answers */
    CUresult blocks_rc;
    int asked_threads;
    size_t asked_shared;
    const char *name;
    struct kp_param params[MAX_PARAMS];
    size_t n_params;
    unsigned sms; /* of the context's resource; 0: the query fails */
    int refused_attribute;
    int pageable, mps;
    CUresult limit_rc, persisting_rc;
} driver;

static CUresult device_attribute(int *value, CUdevice_attribute a, CUdevice device)
{
    assert_int_equal(device, 3);
    if (driver.refused_attribute == (int)a)
        return CUDA_ERROR_INVALID_DEVICE;
    switch ((int)a) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = 0;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 132;
        break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = 2048;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = 32;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        *value = 65536;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = 233472;
        break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        *value = 1024;
        break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = 62914560;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = 49152;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = 232448;
        break;
    case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
        *value = driver.mps;
        break;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        *value = driver.pageable;
        break;
    default:
        fail_msg("attribute %d is not one that is needed", (int)a);
    }
    return CUDA_SUCCESS;
}

static CUresult device_name(char *name, int size, CUdevice device)
{
    (void)device;
    snprintf(name, (size_t)size, "NVIDIA H200");
    return CUDA_SUCCESS;
}

static CUresult device_bus_id(char *id, int size, CUdevice device)
{
    (void)device;
    snprintf(id, (size_t)size, "0000:05:00.0");
    return CUDA_SUCCESS;
}

static CUresult ctx_limit(size_t *value, CUlimit limit)
{
    *value = limit == CU_LIMIT_STACK_SIZE ? 2048 : 11796480;
    if (limit == CU_LIMIT_STACK_SIZE)
        return driver.limit_rc;
    assert_int_equal(limit, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
    return driver.persisting_rc;
}

static CUresult ctx_cache_config(CUfunc_cache *config)
{
    *config = CU_FUNC_CACHE_PREFER_L1;
    return CUDA_SUCCESS;
}

static CUresult ctx_resource(CUcontext ctx, CUdevResource *resource, CUdevResourceType type)
{
    (void)ctx;
    assert_int_equal(type, CU_DEV_RESOURCE_TYPE_SM);
    resource->sm.smCount = driver.sms ? driver.sms : 77;
    return driver.sms ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult func_attribute(int *value, CUfunction_attribute a, CUfunction f)
{
    if (f != function)
        return CUDA_ERROR_INVALID_HANDLE; /* a CUkernel in place of a function */
    switch ((int)a) {
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = driver.registers;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = driver.static_shared;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = driver.max_threads;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = driver.local_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = driver.cluster[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = driver.policy;
        return CUDA_SUCCESS;
    default:
        *value = 12345; /* of an attribute that an older driver does not have */
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult func_name(const char **name, CUfunction f)
{
    if (f != function || !driver.name)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = driver.name;
    return CUDA_SUCCESS;
}

static CUresult func_param(CUfunction f, size_t i, size_t *offset, size_t *size)
{
    assert_ptr_equal(f, function);
    if (i >= driver.n_params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = driver.params[i].offset;
    *size = driver.params[i].size;
    return CUDA_SUCCESS;
}

static CUresult kernel_function(CUfunction *f, CUkernel k)
{
    if (k != kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *f = function;
    return CUDA_SUCCESS;
}

static CUresult max_blocks(int *blocks, CUfunction f, int threads, size_t shared)
{
    assert_ptr_equal(f, function);
    driver.asked_threads = threads;
    driver.asked_shared = shared;
    *blocks = driver.blocks;
    return driver.blocks_rc;
}

static struct kp_driver table(void)
{
    memset(&driver, 0, sizeof(driver));
    driver.registers = 16;
    driver.blocks = 32;
    driver.name = "_Z6kernelPf";
    driver.refused_attribute = -1;
    return (struct kp_driver){
        .cuDeviceGetAttribute = device_attribute,
        .cuDeviceGetName = device_name,
        .cuDeviceGetPCIBusId = device_bus_id,
        .cuCtxGetLimit = ctx_limit,
        .cuCtxGetCacheConfig = ctx_cache_config,
        .cuCtxGetDevResource = ctx_resource,
        .cuFuncGetAttribute = func_attribute,
        .cuFuncGetName = func_name,
        .cuFuncGetParamInfo = func_param,
        .cuKernelGetFunction = kernel_function,
        .cuOccupancyMaxActiveBlocksPerMultiprocessor = max_blocks,
    };
}

/* ---- devices and contexts ---- */

static void test_device(void **state)
{
    struct kp_driver d = table();
    struct kp_device device;
    (void)state;
    assert_int_equal(kp_device_read(&d, 3, &device), CUDA_SUCCESS);
    assert_int_equal(device.device, 3);
    assert_int_equal(device.cc_major, 9);
    assert_int_equal(device.cc_minor, 0);
    assert_int_equal(device.sm_count, kp_test_h200.sm_count);
    assert_int_equal(device.warp_size, kp_test_h200.warp_size);
    assert_int_equal(device.max_warps, kp_test_h200.max_warps);
    assert_int_equal(device.max_blocks, kp_test_h200.max_blocks);
    assert_int_equal(device.registers, kp_test_h200.registers);
    assert_int_equal(device.schedulers, kp_test_h200.schedulers);
    assert_int_equal(device.shared_per_sm, kp_test_h200.shared_per_sm);
    assert_int_equal(device.shared_per_block, kp_test_h200.shared_per_block);
    assert_int_equal(device.shared_per_block_optin, kp_test_h200.shared_per_block_optin);
    assert_int_equal(device.reserved_shared, kp_test_h200.reserved_shared);
    assert_int_equal(device.mps, 0);
    assert_int_equal(device.l2_size, 62914560);
    assert_string_equal(device.name, "NVIDIA H200");
    assert_string_equal(device.pci_bus_id, "0000:05:00.0");
    assert_false(device.pageable_access);
    driver.pageable = 1;
    driver.mps = 1;
    assert_int_equal(kp_device_read(&d, 3, &device), CUDA_SUCCESS);
    assert_true(device.pageable_access);
    assert_int_equal(device.mps, 1);
    driver.refused_attribute = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS; /* a driver that does not know it */
    assert_int_equal(kp_device_read(&d, 3, &device), CUDA_SUCCESS);
    assert_false(device.pageable_access);
    driver.refused_attribute = CU_DEVICE_ATTRIBUTE_MPS_ENABLED;
    assert_int_equal(kp_device_read(&d, 3, &device), CUDA_SUCCESS);
    assert_int_equal(device.mps, -1);
    driver.refused_attribute = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
    assert_int_equal(kp_device_read(&d, 3, &device), CUDA_ERROR_INVALID_DEVICE);
}

static void test_context(void **state)
{
    struct kp_driver d = table();
    struct kp_context_facts facts;
    (void)state;
    assert_int_equal(kp_read_context_facts(&d, NULL, &kp_test_h200, &facts), CUDA_SUCCESS);
    assert_int_equal(facts.stack_size, 2048);
    assert_int_equal(facts.cache_config, CU_FUNC_CACHE_PREFER_L1);
    assert_true(facts.persisting_l2_known);
    assert_int_equal(facts.persisting_l2, 11796480);
    assert_int_equal(facts.sm_count, 132); /* the resource query failed */
    driver.sms = 16;                       /* a green context */
    assert_int_equal(kp_read_context_facts(&d, NULL, &kp_test_h200, &facts), CUDA_SUCCESS);
    assert_int_equal(facts.sm_count, 16);
    d.cuCtxGetDevResource = NULL; /* a driver before 12.4 */
    assert_int_equal(kp_read_context_facts(&d, NULL, &kp_test_h200, &facts), CUDA_SUCCESS);
    assert_int_equal(facts.sm_count, 132);
    driver.persisting_rc = CUDA_ERROR_UNSUPPORTED_LIMIT; /* before compute capability 8.0 */
    assert_int_equal(kp_read_context_facts(&d, NULL, &kp_test_h200, &facts), CUDA_SUCCESS);
    assert_false(facts.persisting_l2_known);
    driver.limit_rc = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    assert_int_equal(kp_read_context_facts(&d, NULL, &kp_test_h200, &facts), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

/* ---- functions ---- */

static void read_function(const struct kp_driver *d, CUfunction handle, struct kp_function *f)
{
    memset(f, 0xa5, sizeof(*f)); /* nothing of it is read on entry */
    assert_int_equal(kp_function_read(d, &kp_test_h200, handle, f), CUDA_SUCCESS);
}

static void check_function(const struct kp_function *f)
{
    assert_ptr_equal(f->handle, function);
    assert_string_equal(f->mangled, "_Z6kernelPf");
    assert_int_equal(f->registers, 40);
    assert_int_equal(f->static_shared, 4096);
    assert_int_equal(f->max_threads, 512);
    assert_int_equal(f->local_bytes, 48);
    assert_int_equal(f->cluster[0], 4);
    assert_int_equal(f->cluster[1], 2);
    assert_int_equal(f->cluster[2], 1);
    assert_int_equal(f->cluster_policy, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    assert_true(f->params_known);
    assert_int_equal(f->n_params, 2);
    assert_int_equal(f->params[1].offset, 16);
    assert_int_equal(f->params[1].size, 24);
    assert_int_equal(f->params_bytes, 40);
}

static struct kp_driver rich_function(void)
{
    struct kp_driver d = table();
    driver.registers = 40;
    driver.static_shared = 4096;
    driver.max_threads = 512;
    driver.local_bytes = 48;
    memcpy(driver.cluster, (int[]){4, 2, 1}, sizeof(driver.cluster));
    driver.policy = CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
    driver.n_params = 2;
    driver.params[0] = (struct kp_param){0, 8};
    driver.params[1] = (struct kp_param){16, 24}; /* a structure by value */
    return d;
}

static void test_function(void **state)
{
    struct kp_driver d = rich_function();
    struct kp_function f;
    (void)state;
    read_function(&d, function, &f);
    check_function(&f);
    kp_function_free(&f);
    assert_null(f.mangled);
    assert_null(f.params);
    kp_function_free(&f);
}

/* The function queries refuse a CUkernel; what is read is the function it gives. */
static void test_kernel_handle(void **state)
{
    struct kp_driver d = rich_function();
    struct kp_function f;
    (void)state;
    read_function(&d, (CUfunction)kernel, &f);
    check_function(&f);
    kp_function_free(&f);
}

static void test_bad_handle(void **state)
{
    struct kp_driver d = table();
    CUfunction nobody = (CUfunction)(uintptr_t)0x3000;
    struct kp_function f;
    (void)state;
    assert_int_equal(kp_function_read(&d, &kp_test_h200, nobody, &f), CUDA_ERROR_INVALID_HANDLE);
    d.cuKernelGetFunction = NULL; /* a driver before 12.0 has no CUkernel */
    assert_int_equal(kp_function_read(&d, &kp_test_h200, (CUfunction)kernel, &f), CUDA_ERROR_INVALID_HANDLE);
}

static void test_many_parameters(void **state)
{
    struct kp_driver d = table();
    struct kp_function f;
    (void)state;
    for (size_t i = 0; i < MAX_PARAMS; i++)
        driver.params[i] = (struct kp_param){8 * i, i % 8 + 1};
    driver.n_params = MAX_PARAMS;
    read_function(&d, function, &f);
    assert_int_equal(f.n_params, MAX_PARAMS);
    for (size_t i = 0; i < MAX_PARAMS; i++) {
        assert_int_equal(f.params[i].offset, 8 * i);
        assert_int_equal(f.params[i].size, i % 8 + 1);
    }
    assert_int_equal(f.params_bytes, 8 * (MAX_PARAMS - 1) + (MAX_PARAMS - 1) % 8 + 1);
    kp_function_free(&f);
}

static void test_older_driver(void **state)
{
    struct kp_driver d = table();
    struct kp_function f;
    (void)state;
    d.cuFuncGetParamInfo = NULL;
    d.cuFuncGetName = NULL;
    read_function(&d, function, &f);
    assert_false(f.params_known);
    assert_int_equal(f.n_params, 0);
    assert_string_equal(f.mangled, "");
    kp_function_free(&f);
    d = table(); /* no parameters is known, too */
    driver.name = NULL;
    read_function(&d, function, &f);
    assert_true(f.params_known);
    assert_int_equal(f.n_params, 0);
    assert_string_equal(f.mangled, "");
    kp_function_free(&f);
}

/* ---- named barriers ---- */

static uint32_t barrier_limit(int registers, int static_shared, int blocks, CUresult rc)
{
    struct kp_driver d = table();
    struct kp_function f;
    driver.registers = registers;
    driver.static_shared = static_shared;
    driver.blocks = blocks;
    driver.blocks_rc = rc;
    read_function(&d, function, &f);
    assert_int_equal(driver.asked_threads, 32);
    assert_int_equal(driver.asked_shared, 0);
    uint32_t limit = f.barrier_limit;
    kp_function_free(&f);
    return limit;
}

/* The H200 has 64 named barriers an SM: a kernel of 6 leaves room for 10 blocks, of 0 or 1 for all 32. */
static void test_barriers_bind(void **state)
{
    (void)state;
    assert_int_equal(barrier_limit(16, 0, 10, CUDA_SUCCESS), 10);
    assert_int_equal(barrier_limit(16, 0, 4, CUDA_SUCCESS), 4);
    assert_int_equal(barrier_limit(16, 0, 31, CUDA_SUCCESS), 31);
    assert_int_equal(barrier_limit(16, 0, 32, CUDA_SUCCESS), 32);
    /* 255 registers leave room for 8 blocks of one warp; fewer are the barriers' doing */
    assert_int_equal(barrier_limit(255, 0, 4, CUDA_SUCCESS), 4);
}

/* The driver's answer is what registers or shared memory allow: the barriers are somewhere at or above it. */
static void test_barriers_do_not_show(void **state)
{
    (void)state;
    assert_int_equal(barrier_limit(255, 0, 8, CUDA_SUCCESS), 0);
    assert_int_equal(barrier_limit(128, 0, 16, CUDA_SUCCESS), 0);
    assert_int_equal(barrier_limit(16, 40000, 5, CUDA_SUCCESS), 0);
    assert_int_equal(barrier_limit(16, 40000, 4, CUDA_SUCCESS), 4);
    assert_int_equal(barrier_limit(16, 0, 32, CUDA_ERROR_INVALID_VALUE), 0);
    assert_int_equal(barrier_limit(16, 0, 0, CUDA_SUCCESS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_function),
        cmocka_unit_test(test_kernel_handle),
        cmocka_unit_test(test_bad_handle),
        cmocka_unit_test(test_many_parameters),
        cmocka_unit_test(test_older_driver),
        cmocka_unit_test(test_barriers_bind),
        cmocka_unit_test(test_barriers_do_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
