#include "collectors/replay/flush.h"

#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "collectors/replay/by_device.h"
#include "collectors/replay/evict.h"
#include "collectors/replay/vmem.h"

/* For devices or drivers that cannot map memory twice. Each thread strides over the buffer in 16-byte reads. After a
 * memset to zero the store never happens, but the compiler cannot know that, so it keeps the reads. PTX of compute
 * capability 7.5 runs on every later chip. */
static const char sweep_ptx[] = ".version 6.4\n"
                                ".target sm_75\n"
                                ".address_size 64\n"
                                ".visible .entry kprof_cache_flush(.param .u64 buffer, .param .u64 count)\n"
                                "{\n"
                                ".reg .pred %p<3>;\n"
                                ".reg .b32 %r<12>;\n"
                                ".reg .b64 %d<8>;\n"
                                "ld.param.u64 %d1, [buffer];\n"
                                "ld.param.u64 %d2, [count];\n"
                                "cvta.to.global.u64 %d1, %d1;\n"
                                "mov.u32 %r1, %ctaid.x;\n"
                                "mov.u32 %r2, %ntid.x;\n"
                                "mov.u32 %r3, %tid.x;\n"
                                "mad.wide.u32 %d3, %r1, %r2, 0;\n"
                                "cvt.u64.u32 %d4, %r3;\n"
                                "add.u64 %d3, %d3, %d4;\n"
                                "mov.u32 %r4, %nctaid.x;\n"
                                "mul.wide.u32 %d5, %r4, %r2;\n"
                                "mov.u32 %r5, 0;\n"
                                "LOOP:\n"
                                "setp.ge.u64 %p1, %d3, %d2;\n"
                                "@%p1 bra DONE;\n"
                                "shl.b64 %d6, %d3, 4;\n"
                                "add.u64 %d6, %d1, %d6;\n"
                                "ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%d6];\n"
                                "or.b32 %r5, %r5, %r6;\n"
                                "or.b32 %r5, %r5, %r7;\n"
                                "or.b32 %r5, %r5, %r8;\n"
                                "or.b32 %r5, %r5, %r9;\n"
                                "add.u64 %d3, %d3, %d5;\n"
                                "bra LOOP;\n"
                                "DONE:\n"
                                "setp.ne.u32 %p2, %r5, 0;\n"
                                "@%p2 st.global.u32 [%d1], %r5;\n"
                                "ret;\n"
                                "}\n";

static const char sweep_name[] = "kprof_cache_flush";

/* A kernel that is never launched. New code on the device makes the driver invalidate the instruction caches, which a
 * sweep of data does not reach. A tiny kernel then reads its instructions from DRAM, as under ncu. */
static const char code_ptx[] = ".version 6.4\n"
                               ".target sm_75\n"
                               ".address_size 64\n"
                               ".visible .entry kprof_code_flush()\n"
                               "{\n"
                               "ret;\n"
                               "}\n";

static const char code_name[] = "kprof_code_flush";

enum {
    THREADS = 512,
    BLOCKS_PER_SM = 4,
    L2_SIZES = 2, /* copies of one, two and four L2 sizes gave the same DRAM bytes and hit rates on the H200 */
    BYTES_A_READ = 16,
    SMALLEST_BUFFER = 8 << 20,
};

struct kp_flush {
    const struct kp_driver *d;
    CUdevice device;
    CUmodule module; /* of the sweep kernel, if needed */
    CUfunction kernel;
    unsigned blocks;
    size_t l2;
    void *code; /* the kernel that is never launched, as machine code */
    /* Zero all the time, also when they are freed. */
    CUdeviceptr buffer, sink;
    size_t bytes;  /* of each copy */
    size_t piece;  /* of the memory that backs the sink */
    uint64_t held; /* of both, while they exist */
    bool no_sink;
    char pci_bus_id[32];
    bool asked;             /* the kernel driver, for `evict` */
    struct kp_evict *evict; /* NULL: the L2 is filled with other lines instead */
};

static struct kp_by_device held; /* what all flushes use */

uint64_t kp_flush_held_on(CUdevice device)
{
    return kp_by_device_sum(&held, device);
}

static void note_held(struct kp_flush *f, uint64_t bytes)
{
    kp_by_device_note(&held, f->device, &f->held, bytes);
}

/* Compiles the code that is loaded before each launch, once: loading it then costs 30 us. */
static void compile_code(struct kp_flush *f)
{
    const struct kp_driver *d = f->d;
    CUlinkState link;
    void *binary = NULL;
    size_t size = 0;
    if (!d->cuLinkCreate || !d->cuLinkAddData || !d->cuLinkComplete || !d->cuLinkDestroy ||
        d->cuLinkCreate(0, NULL, NULL, &link) != CUDA_SUCCESS)
        return;
    if (d->cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)code_ptx, sizeof(code_ptx), code_name, 0, NULL,
                         NULL) == CUDA_SUCCESS &&
        d->cuLinkComplete(link, &binary, &size) == CUDA_SUCCESS && (f->code = malloc(size)))
        memcpy(f->code, binary, size);
    d->cuLinkDestroy(link);
}

CUresult kp_flush_open(const struct kp_driver *d, const struct kp_device *device, struct kp_flush **out)
{
    struct kp_flush *f = calloc(1, sizeof(*f));
    *out = NULL;
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    f->d = d;
    f->device = device->device;
    f->blocks = device->sm_count * BLOCKS_PER_SM;
    f->l2 = device->l2_size;
    f->no_sink = !kp_vmem_available(d);
    compile_code(f);
    memcpy(f->pci_bus_id, device->pci_bus_id, sizeof(f->pci_bus_id));
    *out = f;
    return CUDA_SUCCESS;
}

void kp_flush_close(struct kp_flush *f, bool context_alive)
{
    if (!f)
        return;
    if (context_alive) {
        kp_flush_give(f);
        if (f->module)
            f->d->cuModuleUnload(f->module);
    }
    note_held(f, 0);
    kp_evict_close(f->evict);
    free(f->code);
    free(f);
}

/* ---- the sink: one piece of memory, mapped repeatedly ---- */

static void free_sink(struct kp_flush *f, size_t mapped)
{
    kp_vmem_unmap(f->d, f->sink, f->bytes, mapped);
    f->sink = 0;
}

static CUresult map_sink(struct kp_flush *f, CUmemGenericAllocationHandle memory, const CUmemLocation *where)
{
    const struct kp_driver *d = f->d;
    CUmemAccessDesc access = {.location = *where, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t mapped = 0;
    CUresult rc = d->cuMemAddressReserve(&f->sink, f->bytes, 0, 0, 0);
    if (rc != CUDA_SUCCESS) {
        f->sink = 0;
        return rc;
    }
    while (mapped < f->bytes && rc == CUDA_SUCCESS) {
        rc = d->cuMemMap(f->sink + mapped, f->piece, 0, memory, 0);
        mapped += rc == CUDA_SUCCESS ? f->piece : 0;
    }
    if (rc == CUDA_SUCCESS)
        rc = d->cuMemSetAccess(f->sink, f->bytes, &access, 1);
    if (rc != CUDA_SUCCESS)
        free_sink(f, mapped);
    return rc;
}

static CUresult take_sink(struct kp_flush *f, const CUmemAllocationProp *what)
{
    CUmemGenericAllocationHandle memory;
    CUresult rc = f->d->cuMemCreate(&memory, f->piece, what, 0);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = map_sink(f, memory, &what->location);
    f->d->cuMemRelease(memory); /* it lives as long as its mapping */
    return rc;
}

/* ---- memory ---- */

static CUresult take_buffer(struct kp_flush *f)
{
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
    size_t unit = f->piece ? f->piece : 1;
    for (int factor = L2_SIZES; factor >= 1 && !f->buffer; factor /= 2) {
        f->bytes = f->l2 * (size_t)factor;
        if (f->bytes < SMALLEST_BUFFER)
            f->bytes = SMALLEST_BUFFER;
        f->bytes = (f->bytes + unit - 1) / unit * unit;
        rc = f->d->cuMemAlloc(&f->buffer, f->bytes);
        if (rc != CUDA_SUCCESS)
            f->buffer = 0;
    }
    if (rc == CUDA_SUCCESS)
        rc = f->d->cuMemsetD32(f->buffer, 0, f->bytes / sizeof(unsigned));
    if (rc != CUDA_SUCCESS)
        kp_flush_give(f);
    return rc;
}

static CUresult take(struct kp_flush *f)
{
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = f->device}};
    if (!f->no_sink && !f->piece &&
        f->d->cuMemGetAllocationGranularity(&f->piece, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS)
        f->no_sink = true;
    CUresult rc = take_buffer(f);
    if (rc == CUDA_SUCCESS && !f->no_sink && take_sink(f, &what) != CUDA_SUCCESS)
        f->no_sink = true;
    if (rc == CUDA_SUCCESS)
        note_held(f, f->bytes + (f->no_sink ? 0 : f->piece));
    return rc == CUDA_SUCCESS ? f->d->cuCtxSynchronize() : rc; /* another stream has set the buffer */
}

void kp_flush_give(struct kp_flush *f)
{
    if (f->sink)
        free_sink(f, f->bytes);
    if (f->buffer)
        f->d->cuMemFree(f->buffer);
    f->buffer = 0;
    note_held(f, 0);
}

/* ---- flushing ---- */

static CUresult load_code(const struct kp_flush *f)
{
    const struct kp_driver *d = f->d;
    CUmodule module;
    CUfunction function;
    CUresult rc = d->cuModuleLoadData(&module, f->code ? f->code : code_ptx);
    if (rc != CUDA_SUCCESS)
        return rc;
    /* Modules load lazily: only getting the function brings the code onto the device. */
    rc = d->cuModuleGetFunction(&function, module, code_name);
    d->cuModuleUnload(module);
    return rc;
}

static CUresult sweep(struct kp_flush *f, CUstream stream)
{
    unsigned long long count = f->bytes / BYTES_A_READ;
    void *params[] = {&f->buffer, &count};
    CUresult rc = CUDA_SUCCESS;
    if (!f->module)
        rc = f->d->cuModuleLoadData(&f->module, sweep_ptx);
    if (rc == CUDA_SUCCESS && !f->kernel)
        rc = f->d->cuModuleGetFunction(&f->kernel, f->module, sweep_name);
    if (rc == CUDA_SUCCESS)
        rc = f->d->cuLaunchKernel(f->kernel, f->blocks, 1, 1, THREADS, 1, 1, 0, stream, params, NULL);
    return rc;
}

static void ask(struct kp_flush *f)
{
    f->asked = true;
    int rc = kp_evict_open(f->pci_bus_id, &f->evict);
    kp_debug(KP_DEBUG_REPLAY, "the L2 of %s is %s%s", f->pci_bus_id,
             rc ? "filled by a copy: " : "emptied by the driver", rc ? strerror(-rc) : "");
}

/* Empties the L2 once the GPU is idle. Returns true if it did; otherwise `*rc` is the reason. After the kernel driver
 * has refused once, it is not asked again. */
static bool empty(struct kp_flush *f, CUresult *rc)
{
    if (!f->asked)
        ask(f);
    if (!f->evict)
        return false;
    *rc = f->d->cuCtxSynchronize();
    if (*rc != CUDA_SUCCESS || !kp_evict_run(f->evict))
        return true;
    kp_evict_close(f->evict);
    f->evict = NULL;
    return false;
}

static CUresult fill(struct kp_flush *f, CUstream stream)
{
    CUresult rc = f->buffer ? CUDA_SUCCESS : take(f);
    if (rc != CUDA_SUCCESS)
        return rc;
    return f->no_sink ? sweep(f, stream) : f->d->cuMemcpyDtoDAsync(f->sink, f->buffer, f->bytes, stream);
}

CUresult kp_flush_run(struct kp_flush *f, CUstream stream, enum kp_flush_how how)
{
    CUresult rc = CUDA_SUCCESS;
    if (how != KP_FLUSH_EMPTY || !empty(f, &rc))
        rc = fill(f, stream);
    return rc == CUDA_SUCCESS ? load_code(f) : rc;
}

/* The copy engine seems to share translations with the multiprocessors. Of 16 PyTorch kernels, 14 lasted as long as
 * under Nsight Compute, within 3 %; without this 11 and 13 did (H100). */
CUresult kp_flush_touch(struct kp_flush *f, CUstream stream, const struct kp_pages *pages, size_t n)
{
    const size_t word = 4, room = f->piece / word;
    CUresult rc = CUDA_SUCCESS;
    for (size_t i = 0; f->buffer && !f->no_sink && f->d->cuMemcpy2DAsync && i < n && rc == CUDA_SUCCESS; i++) {
        const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                    .srcDevice = pages[i].at,
                                    .srcPitch = KP_PAGE_BYTES,
                                    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                    .dstDevice = f->sink,
                                    .dstPitch = word,
                                    .WidthInBytes = word,
                                    .Height = pages[i].n < room ? pages[i].n : room};
        rc = f->d->cuMemcpy2DAsync(&copy, stream);
    }
    return rc;
}

bool kp_flush_is_kernel(const struct kp_flush *f)
{
    return f->no_sink;
}
