/* The driver of a program that is linked to libcuda. */
#ifndef TESTS_LINKED_H
#define TESTS_LINKED_H

#include "program.h"

static const struct driver linked = {
#define FIELD(base, version) .base = base,
    DRIVER_FUNCTIONS(FIELD)
#undef FIELD
};

/* A graph's kernel node of blocks in one dimension. */
static inline CUDA_KERNEL_NODE_PARAMS kernel_node(CUfunction f, unsigned blocks, unsigned threads, unsigned shared,
                                                  void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = f,
                                     .gridDimX = blocks,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = threads,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .sharedMemBytes = shared,
                                     .kernelParams = params};
}

/* Registers memory, which kprof cannot repeat, so that it closes a window, and which waits for nothing. */
static inline void close_a_window(void)
{
    static _Alignas(4096) char pages[16][4096];
    static int used;

    MUST(cuMemHostRegister(pages[used], sizeof(pages[0]), CU_MEMHOSTREGISTER_READ_ONLY));
    used++;
}

#endif
