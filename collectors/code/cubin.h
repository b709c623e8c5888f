/*
 * What a cubin, the ELF image of a module's code, tells of its functions: instructions, places in the source,
 * resources.
 *
 * The image is not trusted: whatever is in it, no function reads beyond it or runs without end.
 * KP_VENDOR: NVIDIA does not document the format beyond what ELF and DWARF say. What is read here was found in the
 * output of nvcc 11.8, 12.8 and 13.0 for compute capabilities 7.5 to 12.1.
 * Threads: an open cubin is only read, so any number of threads may use it.
 */
#ifndef KP_COLLECTORS_CODE_CUBIN_H
#define KP_COLLECTORS_CODE_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/model/model.h"

struct kp_cubin;

/* A function with code of its own: a kernel, or a device function that was not inlined. */
struct kp_cubin_function {
    const char *name;   /* mangled; in the image */
    uint32_t symbol;    /* index in the ELF symbol table, CUPTI's function index */
    uint32_t sm;        /* compute capability of the code: 90 is 9.0 */
    uint64_t size;      /* of its code, byte */
    uint32_t registers; /* a thread; 0 = not told */
    uint32_t barriers;  /* a thread block */
};

/* Why code must not be run a second time, as a replay would: bits. */
enum kp_once {
    KP_ONCE_HEAP = 1,     /* takes or gives back memory of the device's heap, which no replay rewinds */
    KP_ONCE_LAUNCHES = 2, /* gives the device work of its own: kernels, copies, memsets, graphs */
};

/* What a function does, itself or through those that it calls. The module does not tell of calls through pointers. */
struct kp_cubin_reach {
    uint32_t functions; /* with code in the module, itself included */
    bool launches;      /* other kernels */
    bool spills;        /* registers, by the compiler's own notes (CUDA 12.8 and later) */
    unsigned once; /* of enum kp_once; a call through a pointer may reach each function that has its address taken */
};

/* Opens `size` bytes at `image`, which need no alignment and must stay as they are until the cubin is closed: nothing
 * is copied. Returns 0, -EINVAL for what is not a whole 64-bit cubin, or -ENOMEM. */
int kp_cubin_open(const void *image, size_t size, struct kp_cubin **out);
void kp_cubin_close(struct kp_cubin *c);

/* Fills *out for function `name` (mangled), offsets being those from the function's begin; id and crc are left 0, texts
 * "". Instructions are known from compute capability 7.0 on, locations where the module has a line table (-lineinfo).
 * The caller frees it with kp_code_free. Returns 0, -ENOENT without such a function, or -ENOMEM; with an error *out is
 * zeroed. */
int kp_cubin_code(const struct kp_cubin *c, const char *name, struct kp_code *out);

/* The function with ELF symbol index `symbol`. Returns 0 with *name in the image, or -ENOENT. */
int kp_cubin_function_at(const struct kp_cubin *c, uint32_t symbol, const char **name);

/* Fills *out with what the function with that symbol reaches; it may be recursive. Returns 0, -ENOENT, -ENOMEM, or
 * -E2BIG where calls are nested too deep to follow. */
int kp_cubin_reach(const struct kp_cubin *c, uint32_t symbol, struct kp_cubin_reach *out);

/* Whether any code of the image does something of enum kp_once. Cheap; an image that cannot be read has no such code.
 */
unsigned kp_cubin_once(const void *image, size_t size);

/* Whether loading the image brings variables or constants of the program's onto the device; texts of assertions and
 * tables of the mathematical functions, which nobody writes, do not count. Cheap; true for an image that cannot be
 * read, and for none (NULL). */
bool kp_cubin_variables(const void *image, size_t size);

/* Calls `fn` for each function by ascending symbol index, until it returns other than 0; what `fn` is given is good
 * during the call. Returns what `fn` returned last, 0 without functions. */
typedef int kp_cubin_function_fn(const struct kp_cubin_function *f, void *arg);
int kp_cubin_each_function(const struct kp_cubin *c, kp_cubin_function_fn *fn, void *arg);

#endif
