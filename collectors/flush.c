#include "collectors/flush.h"

#include <stdlib.h>

/* Each thread strides over the buffer in 16-byte reads. The store can never happen for what the buffer holds after a
 * memset to zero, but the compiler cannot know: the reads stay. PTX of compute capability 7.5 runs on every later chip.
 */
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

/* A kernel that is never launched. Bringing new code onto the device makes the driver invalidate the instruction
 * caches, which a sweep of data does not reach: with it, a tiny kernel reads its instructions from DRAM as it does
 * under ncu. */
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
    LARGEST_FACTOR = 4, /* sweeps of four L2 sizes gave ncu's DRAM bytes and hit rates on the H200 */
    BYTES_A_READ = 16,
    SMALLEST_BUFFER = 8 << 20,
};

struct kp_flush {
    const struct kp_driver *d;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr buffer;
    unsigned blocks;
    size_t l2, bytes;
};

CUresult kp_flush_open(const struct kp_driver *d, const struct kp_device *device, struct kp_flush **out)
{
    struct kp_flush *f = calloc(1, sizeof(*f));
    *out = NULL;
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    f->d = d;
    f->blocks = device->sm_count * BLOCKS_PER_SM;
    f->l2 = device->l2_size;
    CUresult rc = d->cuModuleLoadData(&f->module, sweep_ptx);
    if (rc == CUDA_SUCCESS)
        rc = d->cuModuleGetFunction(&f->kernel, f->module, sweep_name);
    if (rc != CUDA_SUCCESS) {
        kp_flush_close(f, true);
        return rc;
    }
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
    free(f);
}

static CUresult take_buffer(struct kp_flush *f)
{
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
    for (int factor = LARGEST_FACTOR; factor >= 1 && !f->buffer; factor /= 2) {
        f->bytes = f->l2 * (size_t)factor;
        if (f->bytes < SMALLEST_BUFFER)
            f->bytes = SMALLEST_BUFFER;
        rc = f->d->cuMemAlloc(&f->buffer, f->bytes);
        if (rc != CUDA_SUCCESS)
            f->buffer = 0;
    }
    if (rc == CUDA_SUCCESS)
        rc = f->d->cuMemsetD32(f->buffer, 0, f->bytes / sizeof(unsigned));
    return rc;
}

void kp_flush_give(struct kp_flush *f)
{
    if (f->buffer)
        f->d->cuMemFree(f->buffer);
    f->buffer = 0;
}

/* Modules are loaded lazily: only the look-up of a function brings code onto the device. */
static CUresult flush_code(const struct kp_driver *d)
{
    CUmodule module = NULL;
    CUfunction f;
    CUresult rc = d->cuModuleLoadData(&module, code_ptx);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = d->cuModuleGetFunction(&f, module, code_name);
    d->cuModuleUnload(module);
    return rc;
}

CUresult kp_flush_run(struct kp_flush *f)
{
    CUresult rc = f->buffer ? CUDA_SUCCESS : take_buffer(f);
    if (rc != CUDA_SUCCESS)
        return rc;
    unsigned long long count = f->bytes / BYTES_A_READ;
    void *params[] = {&f->buffer, &count};
    rc = f->d->cuLaunchKernel(f->kernel, f->blocks, 1, 1, THREADS, 1, 1, 0, CU_STREAM_LEGACY, params, NULL);
    if (rc == CUDA_SUCCESS)
        rc = f->d->cuCtxSynchronize();
    return rc == CUDA_SUCCESS ? flush_code(f->d) : rc;
}
