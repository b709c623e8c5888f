/*
 * A look-alike of libcuda.so.1 that needs no GPU: the real names and the real ABI, and device memory that is host
 * memory. Kernels are host functions, which run to completion inside the launch call.
 *
 * Environment, beside that of fake_common.h
 *   FAKE_CC=9.0        compute capability of every device (see the table in cuda/device.c)
 *   FAKE_DEVICES=1     how many devices there are
 *   FAKE_MEMORY=bytes  device memory, if not the chip's
 *   FAKE_INIT_MS=ms    cuInit takes so long
 *   FAKE_INIT_FAILS=n  the first n calls of cuInit find no device
 *   FAKE_COPY_MS=ms    an asynchronous copy takes so long
 *   FAKE_HOST_THREADS=1 host functions run in threads of their own, and what is behind them is put off meanwhile
 *   FAKE_FREES_TWICE=1 memory that is freed twice is refused, as a driver does, and is no misuse
 *   FAKE_CUBIN=path    the cubin of every module, in place of one made for it (see cuda/cubin.c)
 *
 * Stricter than a driver: use of what was destroyed, kernels without their arguments and pointers into freed memory end
 * the process with status 99 and a line on stderr.
 *
 * One translation unit, so that one compiler call makes the library.
 */
#define _GNU_SOURCE
/* Makes cuda.h declare each version and each stream flavour under the name it is exported by. */
#define __CUDA_API_VERSION_INTERNAL

#pragma GCC visibility push(default)
#include "cuda/core.c"
#include "cuda/work.c"
#include "cuda/device.c"
#include "cuda/context.c"
#include "cuda/memory.c"
#include "cuda/virtual.c"
#include "cuda/array.c"
#include "cuda/graph_memory.c"
#include "cuda/kernels.c"
#include "cuda/cubin.c"
#include "cuda/module.c"
#include "cuda/link.c"
#include "cuda/launch.c"
#include "cuda/graph.c"
#include "cuda/stream.c"
#include "cuda/proc.c"
#pragma GCC visibility pop
