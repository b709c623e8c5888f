/* The look-alikes that the other tests trust: that they keep what they promise, and notice what they must notice. Each
 * case runs in a child, as misuse ends the process; the driver is opened there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti/checkpoint_abi.h"
#include "tests/fake/fake_hooks.h"
#include "tests/fake/fake_image.h"
#include "tests/support/child_support.h"
#include "tests/support/report_support.h"

enum { N = 64 };

static struct {
    void *cuda;
    CUcontext ctx;
    CUmodule module;
    CUfunction increment, atomic_count;
    CUdeviceptr values;
    int n;
} gpu;

static void open_gpu(void)
{
    gpu.cuda = kp_test_open_fake("libcuda.so.1");
    CHECK(!TAKE(gpu.cuda, cuInit)(0));
    CHECK(!TAKE(gpu.cuda, cuDevicePrimaryCtxRetain)(&gpu.ctx, 0));
    CHECK(!TAKE(gpu.cuda, cuCtxSetCurrent)(gpu.ctx));
    CHECK(!TAKE(gpu.cuda, cuModuleLoadData)(&gpu.module, "FAKEMOD increment atomic_count fail"));
    CHECK(!TAKE(gpu.cuda, cuModuleGetFunction)(&gpu.increment, gpu.module, "increment"));
    CHECK(!TAKE(gpu.cuda, cuModuleGetFunction)(&gpu.atomic_count, gpu.module, "atomic_count"));
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&gpu.values, N * sizeof(int)));
    CHECK(!TAKE(gpu.cuda, cuMemsetD8)(gpu.values, 0, N * sizeof(int)));
    gpu.n = N;
}

static void launch(CUfunction f)
{
    void *params[] = {&gpu.values, &gpu.n};

    CHECK(!TAKE(gpu.cuda, cuLaunchKernel)(f, 1, 1, 1, N, 1, 1, 0, NULL, params, NULL));
}

static int value_at(int index)
{
    int value;

    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoH)(&value, gpu.values + index * sizeof(int), sizeof(value)));
    return value;
}

static void body_restore(void)
{
    kp_checkpoint_abi saved = {.structSize = KP_CHECKPOINT_ABI_SIZE};
    CUdeviceptr large;
    void *library;
    int marker = 7, value = 0;

    open_gpu();
    library = kp_test_open_fake("libcheckpoint.so");
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&large, (size_t)64 << 20));
    CHECK(!TAKE(gpu.cuda, cuMemcpyHtoD)(large + (1 << 20), &marker, sizeof(marker)));
    saved.ctx = gpu.ctx;
    launch(gpu.increment);
    CHECK(!TAKE(library, cuptiCheckpointSave)(&saved));
    for (int i = 0; i < 3; i++) {
        launch(gpu.increment);
        CHECK(!TAKE(gpu.cuda, cuMemsetD8)(large, 0xff, (size_t)64 << 20));
        CHECK(value_at(N - 1) == 2);
        CHECK(!TAKE(library, cuptiCheckpointRestore)(&saved));
        CHECK(value_at(N - 1) == 1);
    }
    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoH)(&value, large + (1 << 20), sizeof(value)) && value == marker);
    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoH)(&value, large + (2 << 20), sizeof(value)) && value == 0);
    CHECK(!TAKE(library, cuptiCheckpointFree)(&saved));
    CHECK(TAKE(library, cuptiCheckpointRestore)(&saved) == CUPTI_ERROR_INVALID_OPERATION);
}

/* ---- work that is put off: a kernel that waits, and what comes behind it ---- */

static struct {
    CUfunction wait_flag, late_increment, print_line;
    CUstream blocking, other;
    int flag;
} late;

static void open_late(void)
{
    CUmodule module;

    CHECK(!TAKE(gpu.cuda, cuModuleLoadData)(&module, "FAKEMOD wait_flag late_increment print_line"));
    CHECK(!TAKE(gpu.cuda, cuModuleGetFunction)(&late.wait_flag, module, "wait_flag"));
    CHECK(!TAKE(gpu.cuda, cuModuleGetFunction)(&late.late_increment, module, "late_increment"));
    CHECK(!TAKE(gpu.cuda, cuModuleGetFunction)(&late.print_line, module, "print_line"));
    CHECK(!TAKE(gpu.cuda, cuStreamCreate)(&late.blocking, CU_STREAM_DEFAULT));
    CHECK(!TAKE(gpu.cuda, cuStreamCreate)(&late.other, CU_STREAM_NON_BLOCKING));
}

static void launch_into(CUstream stream, CUfunction f, void **params)
{
    CHECK(!TAKE(gpu.cuda, cuLaunchKernel)(f, 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
}

/* Waits until the flag is set, and adds it to the first value. */
static void wait_in(CUstream stream)
{
    const int *flag = &late.flag;

    launch_into(stream, late.wait_flag, (void *[]){&flag, &gpu.values});
}

static void increment_in(CUstream stream)
{
    launch_into(stream, gpu.increment, (void *[]){&gpu.values, &gpu.n});
}

/* Without a call that would wait. */
static int first_value(void)
{
    return *(volatile int *)(uintptr_t)gpu.values;
}

static void body_put_off(void)
{
    open_gpu();
    open_late();
    wait_in(late.blocking);
    increment_in(late.blocking);
    CHECK(first_value() == 0);
    CHECK(TAKE(gpu.cuda, cuStreamQuery)(late.blocking) == CUDA_ERROR_NOT_READY);
    increment_in(late.other); /* is held up by nothing */
    CHECK(first_value() == 1);
    CHECK(!TAKE(gpu.cuda, cuStreamQuery)(late.other));
    late.flag = 5;
    CHECK(!TAKE(gpu.cuda, cuStreamQuery)(late.blocking));
    CHECK(first_value() == 7);
}

static void body_default_stream(void)
{
    open_gpu();
    open_late();
    wait_in(late.blocking);
    increment_in(NULL);
    increment_in(late.other);
    CHECK(first_value() == 1); /* the other stream's */
    late.flag = 5;
    CHECK(!TAKE(gpu.cuda, cuCtxSynchronize)());
    CHECK(first_value() == 7);
    late.flag = 0;
    wait_in(NULL);
    increment_in(late.blocking);
    CHECK(first_value() == 7);
    late.flag = 3;
    CHECK(!TAKE(gpu.cuda, cuStreamSynchronize)(late.blocking));
    CHECK(first_value() == 11);
}

/* Pageable memory is read by the call, pinned memory when the copy is done. */
static void body_sources_put_off(void)
{
    int pageable = 20, *pinned;

    open_gpu();
    open_late();
    CHECK(!TAKE(gpu.cuda, cuMemHostAlloc)((void **)&pinned, sizeof(*pinned), 0));
    *pinned = 30;
    wait_in(late.other);
    CHECK(!TAKE(gpu.cuda, cuMemcpyHtoDAsync)(gpu.values, &pageable, sizeof(int), late.other));
    CHECK(!TAKE(gpu.cuda, cuMemcpyHtoDAsync)(gpu.values + sizeof(int), pinned, sizeof(int), late.other));
    pageable = *pinned = 40;
    late.flag = 1;
    CHECK(!TAKE(gpu.cuda, cuStreamSynchronize)(late.other));
    CHECK(value_at(0) == 20);
    CHECK(value_at(1) == 40);
}

/* An event stands for what was enqueued before it. */
static void body_event_put_off(void)
{
    CUevent event;

    open_gpu();
    open_late();
    CHECK(!TAKE(gpu.cuda, cuEventCreate)(&event, CU_EVENT_DEFAULT));
    wait_in(late.blocking);
    CHECK(!TAKE(gpu.cuda, cuEventRecord)(event, late.blocking));
    CHECK(TAKE(gpu.cuda, cuEventQuery)(event) == CUDA_ERROR_NOT_READY);
    CHECK(!TAKE(gpu.cuda, cuStreamWaitEvent)(late.other, event, 0));
    increment_in(late.other);
    CHECK(first_value() == 0);
    late.flag = 1;
    CHECK(!TAKE(gpu.cuda, cuEventSynchronize)(event));
    CHECK(!TAKE(gpu.cuda, cuStreamSynchronize)(late.other));
    CHECK(first_value() == 2);
}

static void late_increment(void)
{
    int ms = 20;

    launch_into(NULL, late.late_increment, (void *[]){&gpu.values, &gpu.n, &ms});
}

static void body_late(void)
{
    open_gpu();
    open_late();
    late_increment();
    CHECK(first_value() == 0);
    CHECK(value_at(0) == 1); /* the copy waits for it */
}

/* What a kernel printed comes out when the program waits for it. */
static void body_prints(void)
{
    FILE *out = tmpfile();
    int number = 4;

    open_gpu();
    open_late();
    CHECK(out);
    stdout = out;
    launch_into(NULL, late.print_line, (void *[]){&number});
    CHECK(ftell(out) == 0);
    CHECK(!TAKE(gpu.cuda, cuCtxSynchronize)());
    CHECK(ftell(out) == (long)strlen("kernel prints 4\n"));
}

static void body_restore_freed(void)
{
    kp_checkpoint_abi saved = {.structSize = KP_CHECKPOINT_ABI_SIZE};
    void *library;

    open_gpu();
    library = kp_test_open_fake("libcheckpoint.so");
    saved.ctx = gpu.ctx;
    CHECK(!TAKE(library, cuptiCheckpointSave)(&saved));
    CHECK(!TAKE(gpu.cuda, cuMemFree)(gpu.values));
    TAKE(library, cuptiCheckpointRestore)(&saved);
}

static void body_no_arguments(void)
{
    open_gpu();
    TAKE(gpu.cuda, cuLaunchKernel)(gpu.increment, 1, 1, 1, N, 1, 1, 0, NULL, NULL, NULL);
}

static void body_freed_pointer(void)
{
    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuMemFree)(gpu.values));
    launch(gpu.increment);
}

static void body_unloaded_module(void)
{
    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuModuleUnload)(gpu.module));
    launch(gpu.increment);
}

static void body_context_gone(void)
{
    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuDevicePrimaryCtxReset)(0));
    launch(gpu.increment);
}

static void body_written_beyond(void)
{
    open_gpu();
    ((char *)gpu.values)[N * sizeof(int)] = 1;
    TAKE(gpu.cuda, cuMemFree)(gpu.values);
}

static void body_injected(void)
{
    CUdeviceptr p;

    setenv("FAKE_FAIL", "cuMemFree_v2:1,cuMemAlloc_v2:2:3", 1);
    open_gpu(); /* the first allocation */
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&p, 16));
    CHECK(TAKE(gpu.cuda, cuMemAlloc)(&p, 16) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&p, 16));
    CHECK(TAKE(gpu.cuda, cuMemFree)(p) == CUDA_ERROR_INVALID_VALUE);
}

static void body_sticky(void)
{
    CUfunction fail;

    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuModuleGetFunction)(&fail, gpu.module, "fail"));
    CHECK(!TAKE(gpu.cuda, cuLaunchKernel)(fail, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CHECK(TAKE(gpu.cuda, cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(TAKE(gpu.cuda, cuMemFree)(gpu.values) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void body_before_init(void)
{
    int n;

    gpu.cuda = kp_test_open_fake("libcuda.so.1");
    CHECK(TAKE(gpu.cuda, cuDeviceGetCount)(&n) == CUDA_ERROR_NOT_INITIALIZED);
}

/* --- virtual memory management --- */

enum { PIECE = 2 << 20 };

static CUmemGenericAllocationHandle create(CUmemLocationType type, size_t bytes)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = type}};
    CUmemGenericAllocationHandle handle;

    CHECK(!TAKE(gpu.cuda, cuMemCreate)(&handle, bytes, &prop, 0));
    return handle;
}

static CUdeviceptr reserve(size_t bytes)
{
    CUdeviceptr p;

    CHECK(!TAKE(gpu.cuda, cuMemAddressReserve)(&p, bytes, 0, 0, 0));
    CHECK(p % PIECE == 0);
    return p;
}

static void map(CUdeviceptr p, CUmemGenericAllocationHandle handle)
{
    CHECK(!TAKE(gpu.cuda, cuMemMap)(p, PIECE, 0, handle, 0));
}

static CUresult allow(CUdeviceptr p, size_t bytes, CUmemLocationType type)
{
    const CUmemAccessDesc desc = {.location = {.type = type}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    return TAKE(gpu.cuda, cuMemSetAccess)(p, bytes, &desc, 1);
}

/* `n` pieces of addresses with the same memory of the device behind each. */
static CUdeviceptr map_repeatedly(int n)
{
    CUmemGenericAllocationHandle handle = create(CU_MEM_LOCATION_TYPE_DEVICE, PIECE);
    CUdeviceptr p = reserve((size_t)n * PIECE);

    for (int i = 0; i < n; i++)
        map(p + (size_t)i * PIECE, handle);
    CHECK(!TAKE(gpu.cuda, cuMemRelease)(handle));
    CHECK(!allow(p, (size_t)n * PIECE, CU_MEM_LOCATION_TYPE_DEVICE));
    return p;
}

static CUdeviceptr map_host(void)
{
    CUmemGenericAllocationHandle handle = create(CU_MEM_LOCATION_TYPE_HOST_NUMA, PIECE);
    CUdeviceptr p = reserve(PIECE);

    map(p, handle);
    CHECK(!TAKE(gpu.cuda, cuMemRelease)(handle));
    CHECK(!allow(p, PIECE, CU_MEM_LOCATION_TYPE_DEVICE));
    CHECK(!allow(p, PIECE, CU_MEM_LOCATION_TYPE_HOST_NUMA));
    return p;
}

static unsigned char byte_at(CUdeviceptr p)
{
    unsigned char value;

    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoH)(&value, p, 1));
    return value;
}

static void body_mapped_repeatedly(void)
{
    enum { PIECES = 3 };
    CUdeviceptr p, source;
    size_t before, during, total;

    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&source, (size_t)PIECES * PIECE));
    for (int i = 0; i < PIECES; i++)
        CHECK(!TAKE(gpu.cuda, cuMemsetD8)(source + (size_t)i * PIECE, (unsigned char)(i + 1), PIECE));
    CHECK(!TAKE(gpu.cuda, cuMemGetInfo)(&before, &total));
    p = map_repeatedly(PIECES);
    CHECK(!TAKE(gpu.cuda, cuMemGetInfo)(&during, &total) && during == before - PIECE);
    CHECK(byte_at(p) == 0);
    CHECK(!TAKE(gpu.cuda, cuMemsetD8)(p + PIECE + 5, 77, 1));
    CHECK(byte_at(p + 5) == 77 && byte_at(p + 2 * PIECE + 5) == 77);
    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoDAsync)(p, source, (size_t)PIECES * PIECE, NULL));
    CHECK(byte_at(p) == PIECES && byte_at(p + PIECE - 1) == PIECES);
    /* a copy that ends within a piece leaves the rest of it as the one before did */
    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoD)(p, source, PIECE + PIECE / 2));
    CHECK(byte_at(p) == 2 && byte_at(p + PIECE / 2 - 1) == 2 && byte_at(p + PIECE / 2) == 1);
    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoD)(p + 10, source, 2 * PIECE));
    CHECK(byte_at(p + 9) == 2 && byte_at(p + 10) == 2 && byte_at(p + PIECE - 1) == 2);
    CHECK(TAKE(gpu.cuda, cuMemcpyDtoD)(p + 10, source, (size_t)PIECES * PIECE) == CUDA_ERROR_INVALID_VALUE);
    CHECK(!TAKE(gpu.cuda, cuMemUnmap)(p, (size_t)PIECES * PIECE));
    CHECK(!TAKE(gpu.cuda, cuMemAddressFree)(p, (size_t)PIECES * PIECE));
    CHECK(!TAKE(gpu.cuda, cuMemGetInfo)(&during, &total) && during == before);
}

/* Of a sweep a page is left. */
static void body_swept(void)
{
    enum { PIECES = 16, PAGE = 4096 };
    CUdeviceptr p, source;

    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&source, (size_t)PIECES * PIECE));
    CHECK(!TAKE(gpu.cuda, cuMemsetD8)(source, 3, (size_t)PIECES * PIECE));
    p = map_repeatedly(PIECES);
    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoDAsync)(p, source, (size_t)PIECES * PIECE, NULL));
    CHECK(byte_at(p) == 3 && byte_at(p + PAGE - 1) == 3 && byte_at(p + PAGE) == 0);
}

static void body_mapped_anew(void)
{
    CUmemGenericAllocationHandle first, second;
    CUdeviceptr p, q;

    open_gpu();
    first = create(CU_MEM_LOCATION_TYPE_DEVICE, PIECE);
    second = create(CU_MEM_LOCATION_TYPE_DEVICE, PIECE);
    p = reserve(PIECE);
    map(p, first);
    CHECK(!allow(p, PIECE, CU_MEM_LOCATION_TYPE_DEVICE));
    CHECK(!TAKE(gpu.cuda, cuMemsetD8)(p, 1, PIECE));
    CHECK(!TAKE(gpu.cuda, cuMemUnmap)(p, PIECE));
    map(p, second);
    CHECK(!allow(p, PIECE, CU_MEM_LOCATION_TYPE_DEVICE));
    CHECK(byte_at(p) == 0);
    CHECK(!TAKE(gpu.cuda, cuMemUnmap)(p, PIECE));
    map(p, first);
    CHECK(!allow(p, PIECE, CU_MEM_LOCATION_TYPE_DEVICE));
    CHECK(byte_at(p) == 1);
    q = reserve(2 * PIECE); /* both, side by side */
    map(q, first);
    map(q + PIECE, second);
    CHECK(!allow(q, 2 * PIECE, CU_MEM_LOCATION_TYPE_DEVICE));
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&p, 2 * PIECE));
    CHECK(!TAKE(gpu.cuda, cuMemsetD8)(p, 7, 2 * PIECE));
    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoD)(q, p, 2 * PIECE));
    CHECK(byte_at(q) == 7 && byte_at(q + 2 * PIECE - 1) == 7);
}

static void body_mapping_refused(void)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
    CUmemGenericAllocationHandle handle, other;
    CUdeviceptr p, q;
    size_t granularity;

    open_gpu();
    CHECK(TAKE(gpu.cuda, cuMemCreate)(&other, PIECE, &prop, 0) == CUDA_ERROR_INVALID_DEVICE);
    handle = create(CU_MEM_LOCATION_TYPE_DEVICE, PIECE);
    p = reserve(2 * PIECE);
    CHECK(TAKE(gpu.cuda, cuMemAddressReserve)(&q, PIECE + 4096, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(TAKE(gpu.cuda, cuMemMap)(p, 2 * PIECE, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(TAKE(gpu.cuda, cuMemMap)(p + 4096, PIECE, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(TAKE(gpu.cuda, cuMemMap)(p + 2 * PIECE, PIECE, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
    map(p, handle);
    CHECK(allow(p, 2 * PIECE, CU_MEM_LOCATION_TYPE_DEVICE) == CUDA_ERROR_INVALID_VALUE); /* half of it is not mapped */
    CHECK(allow(p, PIECE, CU_MEM_LOCATION_TYPE_HOST_NUMA) == CUDA_ERROR_INVALID_VALUE);
    CHECK(TAKE(gpu.cuda, cuMemAddressFree)(p, PIECE) == CUDA_ERROR_INVALID_VALUE);
    CHECK(TAKE(gpu.cuda, cuMemFree)(p) == CUDA_ERROR_INVALID_VALUE);
    CHECK(TAKE(gpu.cuda, cuMemFreeHost)((void *)map_host()) == CUDA_ERROR_INVALID_VALUE);
    CHECK(TAKE(gpu.cuda, cuMemGetAllocationGranularity)(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
          CUDA_ERROR_INVALID_DEVICE);
}

static void body_mapped_over(void)
{
    open_gpu();
    map(map_repeatedly(1), create(CU_MEM_LOCATION_TYPE_DEVICE, PIECE));
}

static void body_addresses_in_use(void)
{
    open_gpu();
    TAKE(gpu.cuda, cuMemAddressFree)(map_repeatedly(1), PIECE);
}

static void body_unmapped_in_part(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;

    open_gpu();
    handle = create(CU_MEM_LOCATION_TYPE_DEVICE, 2 * PIECE);
    p = reserve(2 * PIECE);
    CHECK(!TAKE(gpu.cuda, cuMemMap)(p, 2 * PIECE, 0, handle, 0));
    TAKE(gpu.cuda, cuMemUnmap)(p, PIECE);
}

static void body_unmapped_twice(void)
{
    CUdeviceptr p;

    open_gpu();
    p = map_repeatedly(1);
    CHECK(!TAKE(gpu.cuda, cuMemUnmap)(p, PIECE));
    TAKE(gpu.cuda, cuMemUnmap)(p, PIECE);
}

static void body_released_twice(void)
{
    CUmemGenericAllocationHandle handle;

    open_gpu();
    handle = create(CU_MEM_LOCATION_TYPE_DEVICE, PIECE);
    CHECK(!TAKE(gpu.cuda, cuMemRelease)(handle));
    TAKE(gpu.cuda, cuMemRelease)(handle);
}

static void body_mapped_after_release(void)
{
    CUmemGenericAllocationHandle handle;

    open_gpu();
    handle = create(CU_MEM_LOCATION_TYPE_DEVICE, PIECE);
    CHECK(!TAKE(gpu.cuda, cuMemRelease)(handle));
    map(reserve(PIECE), handle);
}

static void body_launch_into_unmapped(void)
{
    open_gpu();
    gpu.values = map_repeatedly(1);
    CHECK(!TAKE(gpu.cuda, cuMemUnmap)(gpu.values, PIECE));
    launch(gpu.increment);
}

static void body_without_access(void)
{
    CUdeviceptr p;

    open_gpu();
    p = reserve(PIECE);
    map(p, create(CU_MEM_LOCATION_TYPE_HOST_NUMA, PIECE));
    CHECK(!allow(p, PIECE, CU_MEM_LOCATION_TYPE_HOST_NUMA));
    *(volatile char *)p = 1;
    TAKE(gpu.cuda, cuMemsetD8)(p, 1, 1); /* the device has none */
}

static void body_without_any_access(void)
{
    open_gpu();
    gpu.values = reserve(PIECE);
    map(gpu.values, create(CU_MEM_LOCATION_TYPE_HOST_NUMA, PIECE));
    *(volatile char *)gpu.values = 1;
}

/* --- host memory --- */

static void check_type(const void *p, unsigned expected)
{
    unsigned type = 0;
    CUdeviceptr device = 0;

    CHECK(!TAKE(gpu.cuda, cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)p));
    CHECK(!TAKE(gpu.cuda, cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)p));
    CHECK(type == expected && device == (CUdeviceptr)p);
    CHECK(TAKE(gpu.cuda, cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)p) ==
          (expected == CU_MEMORYTYPE_HOST ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
}

static void body_pointers(void)
{
    static char memory[100];
    CUdeviceptr managed;
    void *pinned;
    unsigned is_managed = 0, type;

    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuMemHostAlloc)(&pinned, 100, CU_MEMHOSTALLOC_WRITECOMBINED));
    CHECK(!TAKE(gpu.cuda, cuMemHostRegister)(memory, sizeof(memory), 0));
    CHECK(!TAKE(gpu.cuda, cuMemAllocManaged)(&managed, 100, CU_MEM_ATTACH_GLOBAL));
    check_type(pinned, CU_MEMORYTYPE_HOST);
    check_type((char *)pinned + 99, CU_MEMORYTYPE_HOST);
    check_type(memory, CU_MEMORYTYPE_HOST);
    check_type((void *)map_host(), CU_MEMORYTYPE_HOST);
    check_type((void *)gpu.values, CU_MEMORYTYPE_DEVICE);
    check_type((void *)map_repeatedly(1), CU_MEMORYTYPE_DEVICE);
    CHECK(!TAKE(gpu.cuda, cuPointerGetAttribute)(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed) && is_managed);
    CHECK(!TAKE(gpu.cuda, cuPointerGetAttribute)(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, gpu.values));
    CHECK(!is_managed);
    CHECK(TAKE(gpu.cuda, cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&managed) ==
          CUDA_ERROR_INVALID_VALUE);
}

static void body_registered(void)
{
    static char memory[100];

    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuMemHostRegister)(memory, sizeof(memory), 0));
    CHECK(TAKE(gpu.cuda, cuMemHostRegister)(memory + 50, 100, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK(TAKE(gpu.cuda, cuMemFreeHost)(memory) == CUDA_ERROR_INVALID_VALUE);
    CHECK(TAKE(gpu.cuda, cuMemHostUnregister)(memory + 1) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK(!TAKE(gpu.cuda, cuMemHostUnregister)(memory));
    CHECK(TAKE(gpu.cuda, cuMemHostUnregister)(memory) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    memory[0] = 1; /* still the program's own */
    CHECK(!TAKE(gpu.cuda, cuMemHostRegister)(memory, sizeof(memory), 0));
}

/* What a restore rewinds and what it leaves alone. */
static void body_restored_host_memory(void)
{
    static char registered[100], read_only[100];
    kp_checkpoint_abi saved = {.structSize = KP_CHECKPOINT_ABI_SIZE};
    char *pinned, *mapped;
    CUdeviceptr managed;
    void *library;

    open_gpu();
    library = kp_test_open_fake("libcheckpoint.so");
    CHECK(!TAKE(gpu.cuda, cuMemAllocHost)((void **)&pinned, 100));
    CHECK(!TAKE(gpu.cuda, cuMemHostRegister)(registered, sizeof(registered), 0));
    CHECK(!TAKE(gpu.cuda, cuMemHostRegister)(read_only, sizeof(read_only), CU_MEMHOSTREGISTER_READ_ONLY));
    CHECK(!TAKE(gpu.cuda, cuMemAllocManaged)(&managed, 100, CU_MEM_ATTACH_GLOBAL));
    mapped = (char *)map_host();
    char *all[] = {pinned, registered, (char *)managed, read_only, mapped};
    CHECK(!pinned[0] && !mapped[0]);
    *(char *)managed = 0;
    saved.ctx = gpu.ctx;
    CHECK(!TAKE(library, cuptiCheckpointSave)(&saved));
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        all[i][0] = 1;
    CHECK(!TAKE(library, cuptiCheckpointRestore)(&saved));
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        CHECK(all[i][0] == (i >= 3));
}

/* --- the range profiler --- */

static const char *metrics[] = {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__time_duration.sum",
                                "lts__t_sectors.sum", "l1tex__t_sectors.sum",
                                "dram__throughput.avg.pct_of_peak_sustained_elapsed"};
enum { N_METRICS = sizeof(metrics) / sizeof(metrics[0]), MAX_RANGES = 3 };

static struct {
    void *cupti;
    CUpti_Profiler_Host_Object *host;
    CUpti_RangeProfiler_Object *object;
    uint8_t *config, *image;
    size_t config_size, image_size, passes, dropped, n_ranges;
    bool all;
} prof;

#define PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}
#define CALL(function, params)                                                                                         \
    do {                                                                                                               \
        CUptiResult result_ = TAKE(prof.cupti, function)(params);                                                      \
        if (result_)                                                                                                   \
            fprintf(stderr, "%s: %d\n", #function, (int)result_);                                                      \
        CHECK(!result_);                                                                                               \
    } while (0)

static void fetch_config(const char *chip)
{
    PARAMS(CUpti_Profiler_Host_Initialize_Params, init);
    PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add);
    PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, get);

    init.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    init.pChipName = chip;
    CALL(cuptiProfilerHostInitialize, &init);
    prof.host = add.pHostObject = size.pHostObject = get.pHostObject = init.pHostObject;
    add.ppMetricNames = metrics;
    add.numMetrics = N_METRICS;
    CALL(cuptiProfilerHostConfigAddMetrics, &add);
    CALL(cuptiProfilerHostGetConfigImageSize, &size);
    prof.config_size = get.configImageSize = size.configImageSize;
    prof.config = get.pConfigImage = malloc(size.configImageSize);
    CALL(cuptiProfilerHostGetConfigImage, &get);
}

static void make_config(const char *chip)
{
    PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, passes);

    fetch_config(chip);
    passes.configImageSize = prof.config_size;
    passes.pConfigImage = prof.config;
    CALL(cuptiProfilerHostGetNumOfPasses, &passes);
    prof.passes = passes.numOfPasses;
    CHECK(prof.passes > 1); /* or nothing would be replayed */
}

/* Flips the byte at a place of each kept answer; a negative place counts from the end. */
static size_t damage_answers(const char *folder, long at)
{
    DIR *dir = opendir(folder);
    size_t n = 0;

    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[PATH_MAX];
        FILE *f;

        if (*e->d_name == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        CHECK((f = fopen(path, "r+b")));
        CHECK(!fseek(f, at, at < 0 ? SEEK_END : SEEK_SET));
        int byte = fgetc(f);
        CHECK(byte != EOF && !fseek(f, at, at < 0 ? SEEK_END : SEEK_SET));
        CHECK(fputc(byte ^ 0xff, f) != EOF && !fclose(f));
        n++;
    }
    closedir(dir);
    return n;
}

static bool is_config(const uint8_t *config, size_t size)
{
    return prof.config_size == size && !memcmp(prof.config, config, size);
}

/* Kept answers are the library's, and are those of the same question alone. */
static void body_kept_answers(void)
{
    enum { QUESTION = 16 }; /* the first byte of one: see tests/fake/cupti/host.c */
    char folder[] = "/tmp/kprof-answers-XXXXXX";

    if (!getenv("KP_REAL_CUPTI"))
        _exit(SKIPPED);
    prof.cupti = kp_test_open_fake("libcupti.so.13");
    unsetenv("KP_HOST_ANSWERS");
    fetch_config("GH100");
    const uint8_t *live = prof.config;
    size_t size = prof.config_size;
    CHECK(mkdtemp(folder) && !setenv("KP_HOST_ANSWERS", folder, 1));
    for (int i = 0; i < 2; i++) { /* kept, recalled */
        fetch_config("GH100");
        CHECK(is_config(live, size));
    }
    CHECK(damage_answers(folder, -1) == 3); /* of Initialize, ConfigAddMetrics and the image */
    fetch_config("GH100");
    CHECK(prof.config_size == size && !is_config(live, size));
    fetch_config("AD102");
    CHECK(!is_config(live, size));
    CHECK(damage_answers(folder, QUESTION) > 3);
    fetch_config("GH100");
    CHECK(is_config(live, size));
    kp_test_remove_folder(folder);
}

static void set_config(CUpti_ProfilerRange mode)
{
    PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, image);
    PARAMS(CUpti_RangeProfiler_SetConfig_Params, set);

    image.pRangeProfilerObject = set.pRangeProfilerObject = prof.object;
    image.pCounterData = set.pCounterDataImage = prof.image;
    image.counterDataSize = set.counterDataImageSize = prof.image_size;
    CALL(cuptiRangeProfilerCounterDataImageInitialize, &image);
    set.configSize = prof.config_size;
    set.pConfig = prof.config;
    set.range = mode;
    set.replayMode = CUPTI_UserReplay;
    set.maxRangesPerPass = MAX_RANGES;
    set.numNestingLevels = set.minNestingLevel = set.targetNestingLevel = 1;
    CALL(cuptiRangeProfilerSetConfig, &set);
}

static void open_profiler(CUpti_ProfilerRange mode)
{
    PARAMS(CUpti_Profiler_Initialize_Params, init);
    PARAMS(CUpti_Device_GetChipName_Params, chip);
    PARAMS(CUpti_RangeProfiler_Enable_Params, enable);
    PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);

    if (!getenv("KP_REAL_CUPTI"))
        _exit(SKIPPED);
    open_gpu();
    prof.cupti = kp_test_open_fake("libcupti.so.13");
    CALL(cuptiProfilerInitialize, &init);
    CALL(cuptiDeviceGetChipName, &chip);
    make_config(chip.pChipName);
    enable.ctx = gpu.ctx;
    CALL(cuptiRangeProfilerEnable, &enable);
    prof.object = size.pRangeProfilerObject = enable.pRangeProfilerObject;
    size.pMetricNames = metrics;
    size.numMetrics = N_METRICS;
    size.maxNumOfRanges = size.maxNumRangeTreeNodes = MAX_RANGES;
    CALL(cuptiRangeProfilerGetCounterDataSize, &size);
    prof.image_size = size.counterDataSize;
    prof.image = malloc(prof.image_size);
    set_config(mode);
}

static void start(void)
{
    PARAMS(CUpti_RangeProfiler_Start_Params, p);

    p.pRangeProfilerObject = prof.object;
    CALL(cuptiRangeProfilerStart, &p);
}

static void stop(void)
{
    PARAMS(CUpti_RangeProfiler_Stop_Params, p);

    p.pRangeProfilerObject = prof.object;
    CALL(cuptiRangeProfilerStop, &p);
    prof.all = p.isAllPassSubmitted;
}

static void decode(void)
{
    PARAMS(CUpti_RangeProfiler_DecodeData_Params, p);
    PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, info);

    p.pRangeProfilerObject = prof.object;
    CALL(cuptiRangeProfilerDecodeData, &p);
    info.pCounterDataImage = prof.image;
    info.counterDataImageSize = prof.image_size;
    CALL(cuptiRangeProfilerGetCounterDataInfo, &info);
    prof.dropped = p.numOfRangeDropped;
    prof.n_ranges = info.numTotalRanges;
}

static CUptiResult evaluate(size_t range, double *values)
{
    PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, p);

    p.pHostObject = prof.host;
    p.pCounterDataImage = prof.image;
    p.counterDataImageSize = prof.image_size;
    p.rangeIndex = range;
    p.ppMetricNames = metrics;
    p.numMetrics = N_METRICS;
    p.pMetricValues = values;
    return TAKE(prof.cupti, cuptiProfilerHostEvaluateToGpuValues)(&p);
}

static void clear_values(void)
{
    CHECK(!TAKE(gpu.cuda, cuMemsetD8)(gpu.values, 0, N * sizeof(int)));
}

static void body_all_passes(void)
{
    static const char *const kernels[] = {"increment", "atomic_count", "increment"};
    double values[N_METRICS];

    open_profiler(CUPTI_AutoRange);
    for (size_t pass = 0; pass < prof.passes; pass++) {
        clear_values();
        start();
        launch(gpu.increment);
        launch(gpu.atomic_count);
        launch(gpu.increment);
        launch(gpu.increment); /* finds no room */
        stop();
        CHECK(prof.all == (pass + 1 == prof.passes));
    }
    decode();
    CHECK(prof.n_ranges == MAX_RANGES && prof.dropped == prof.passes);
    for (size_t range = 0; range < MAX_RANGES; range++) {
        CHECK(!evaluate(range, values));
        for (int m = 0; m < N_METRICS; m++)
            CHECK(values[m] == TAKE(prof.cupti, fake_cupti_value)(metrics[m], kernels[range], range));
    }
    CHECK(evaluate(MAX_RANGES, values) == CUPTI_ERROR_INVALID_PARAMETER);
}

static void body_user_range(void)
{
    PARAMS(CUpti_RangeProfiler_PushRange_Params, push);
    PARAMS(CUpti_RangeProfiler_PopRange_Params, pop);
    double values[N_METRICS];

    open_profiler(CUPTI_UserRange);
    push.pRangeProfilerObject = pop.pRangeProfilerObject = prof.object;
    push.pRangeName = "both";
    for (size_t pass = 0; pass < prof.passes; pass++) {
        clear_values();
        start();
        launch(gpu.increment); /* outside */
        CALL(cuptiRangeProfilerPushRange, &push);
        launch(gpu.atomic_count);
        launch(gpu.increment);
        CALL(cuptiRangeProfilerPopRange, &pop);
        stop();
    }
    decode();
    CHECK(prof.n_ranges == 1 && prof.dropped == 0);
    CHECK(!evaluate(0, values));
    CHECK(values[1] == TAKE(prof.cupti, fake_cupti_value)(metrics[1], "atomic_count", 0));
}

static void body_pass_missing(void)
{
    double values[N_METRICS];

    open_profiler(CUPTI_AutoRange);
    start();
    launch(gpu.increment);
    stop();
    decode();
    CHECK(prof.n_ranges == 1);
    CHECK(evaluate(0, values) == CUPTI_ERROR_UNKNOWN);
}

/* Replays `later` in all passes but the first, which runs `first`. */
static void replay_wrongly(CUfunction first, CUfunction later, bool restore)
{
    double values[N_METRICS];

    for (size_t pass = 0; pass < prof.passes; pass++) {
        if (restore)
            clear_values();
        start();
        launch(pass ? later : first);
        stop();
    }
    decode();
    evaluate(0, values);
}

static void body_not_restored(void)
{
    open_profiler(CUPTI_AutoRange);
    replay_wrongly(gpu.increment, gpu.increment, false);
}

static void body_other_kernel(void)
{
    open_profiler(CUPTI_AutoRange);
    replay_wrongly(gpu.atomic_count, gpu.increment, true);
}

static void body_started_twice(void)
{
    open_profiler(CUPTI_AutoRange);
    start();
    start();
}

static void body_enabled_twice(void)
{
    PARAMS(CUpti_RangeProfiler_Enable_Params, enable);

    open_profiler(CUPTI_AutoRange);
    enable.ctx = gpu.ctx;
    TAKE(prof.cupti, cuptiRangeProfilerEnable)(&enable);
}

static void body_profiler_context_gone(void)
{
    open_profiler(CUPTI_AutoRange);
    CHECK(!TAKE(gpu.cuda, cuDevicePrimaryCtxReset)(0));
    start();
}

static void body_too_many_passes(void)
{
    open_profiler(CUPTI_AutoRange);
    for (size_t pass = 0; pass <= prof.passes; pass++) {
        start();
        launch(gpu.increment);
        stop();
    }
}

/* With counters on and automatic ranges a launch returns when its kernel is done. */
static void body_launch_blocks(void)
{
    open_profiler(CUPTI_AutoRange);
    open_late();
    late_increment();
    CHECK(first_value() == 0);
    CHECK(!TAKE(gpu.cuda, cuCtxSynchronize)());
    start();
    late_increment();
    CHECK(first_value() == 2);
    stop();
}

static const struct kp_test_case cases[] = {
    {"restore gives back what was saved", body_restore, RIGHT},
    {"a stream held up by a kernel", body_put_off, RIGHT},
    {"the default stream", body_default_stream, RIGHT},
    {"sources of copies put off", body_sources_put_off, RIGHT},
    {"an event behind a kernel that waits", body_event_put_off, RIGHT},
    {"a kernel that takes long", body_late, RIGHT},
    {"a kernel that prints", body_prints, RIGHT},
    {"a launch with counters on", body_launch_blocks, RIGHT},
    {"restore after a free", body_restore_freed, FAKE_MISUSE_EXIT},
    {"a kernel without arguments", body_no_arguments, FAKE_MISUSE_EXIT},
    {"a pointer into freed memory", body_freed_pointer, FAKE_MISUSE_EXIT},
    {"a function of an unloaded module", body_unloaded_module, FAKE_MISUSE_EXIT},
    {"a launch after the context's end", body_context_gone, FAKE_MISUSE_EXIT},
    {"a write beyond an allocation", body_written_beyond, FAKE_MISUSE_EXIT},
    {"injected failures", body_injected, RIGHT},
    {"a kernel that breaks its context", body_sticky, RIGHT},
    {"a call before cuInit", body_before_init, RIGHT},
    {"memory mapped repeatedly", body_mapped_repeatedly, RIGHT},
    {"memory that is swept", body_swept, RIGHT},
    {"other memory at the same address", body_mapped_anew, RIGHT},
    {"mappings that are refused", body_mapping_refused, RIGHT},
    {"memory mapped over memory", body_mapped_over, FAKE_MISUSE_EXIT},
    {"addresses freed with memory behind them", body_addresses_in_use, FAKE_MISUSE_EXIT},
    {"a part of a mapping unmapped", body_unmapped_in_part, FAKE_MISUSE_EXIT},
    {"a mapping unmapped twice", body_unmapped_twice, FAKE_MISUSE_EXIT},
    {"memory released twice", body_released_twice, FAKE_MISUSE_EXIT},
    {"memory mapped after its release", body_mapped_after_release, FAKE_MISUSE_EXIT},
    {"a pointer into unmapped memory", body_launch_into_unmapped, FAKE_MISUSE_EXIT},
    {"memory that the device has no access to", body_without_access, FAKE_MISUSE_EXIT},
    {"memory that nobody has access to", body_without_any_access, KILLED + SIGSEGV},
    {"attributes of pointers", body_pointers, RIGHT},
    {"registered memory", body_registered, RIGHT},
    {"restore of host memory", body_restored_host_memory, RIGHT},
    {"kept answers of the host library", body_kept_answers, RIGHT},
    {"ranges that saw all passes", body_all_passes, RIGHT},
    {"a user range", body_user_range, RIGHT},
    {"a range that missed a pass", body_pass_missing, RIGHT},
    {"a pass over changed memory", body_not_restored, FAKE_MISUSE_EXIT},
    {"a pass of another kernel", body_other_kernel, FAKE_MISUSE_EXIT},
    {"Start twice", body_started_twice, FAKE_MISUSE_EXIT},
    {"Enable twice", body_enabled_twice, FAKE_MISUSE_EXIT},
    {"Start after the context's end", body_profiler_context_gone, FAKE_MISUSE_EXIT},
    {"more passes than there are", body_too_many_passes, FAKE_MISUSE_EXIT},
};

int main(void)
{
    struct CMUnitTest tests[sizeof(cases) / sizeof(cases[0])];

    kp_test_cases(tests, cases, sizeof(cases) / sizeof(cases[0]));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
