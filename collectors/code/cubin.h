/*
 * Reads a cubin, the ELF image of a module's code: functions with their instructions, source places and resources.
 * The image is not trusted: whatever it contains, no function reads beyond it or runs without end.
 *
 * KP_VENDOR: NVIDIA does not document the format beyond ELF and DWARF. It was found in the output of nvcc 11.8, 12.8
 * and 13.0 for compute capabilities 7.5 to 12.1.
 *
 * Threads: an open cubin is read-only, so any number of threads may use it.
 */
#ifndef KP_COLLECTORS_CODE_CUBIN_H
#define KP_COLLECTORS_CODE_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/model/model.h"

struct kp_cubin;

/* A function with separate code: a kernel, or a device function that was not inlined. */
struct kp_cubin_function {
    const char *name;   /* mangled; in the image */
    uint32_t symbol;    /* index in the ELF symbol table, CUPTI's function index */
    uint32_t sm;        /* compute capability of the code: 90 is 9.0 */
    uint64_t size;      /* of its code, in bytes */
    uint32_t registers; /* per thread; 0 = unknown */
    uint32_t barriers;  /* per thread block */
};

/* Bits: effects that running the code a second time, like a replay, would repeat. The first two forbid it. */
enum kp_once {
    KP_ONCE_HEAP = 1,     /* allocates or frees memory of the device's heap, which no replay rewinds */
    KP_ONCE_LAUNCHES = 2, /* launches work from the device: kernels, copies, memsets, graphs */
    KP_ONCE_PRINTS = 4,   /* prints, into a buffer of the driver's in host memory */
    KP_ONCE_POSTS = 8,    /* writes memory in a way that the host or another device may act on while the code runs */
    KP_WAITS_FOR_OTHERS = 16, /* reads memory in a way that sees such writes of others, so it may wait for them */
    KP_ONCE_ALONE = KP_ONCE_HEAP | KP_ONCE_LAUNCHES,
};

/* The effects of a function, its own and those of functions that it calls. The module does not list calls through
 * pointers. */
struct kp_cubin_reach {
    uint32_t functions; /* functions with code in the module, itself included */
    bool launches;      /* other kernels */
    bool spills;        /* registers, by the compiler's annotations (CUDA 12.8 and later) */
    bool by_pointer;    /* it calls a function through a pointer, which may be one of another module */
    unsigned once;      /* of enum kp_once; a call through a pointer may reach any function whose address is taken */
};

/* Opens `size` bytes at `image`, which need no alignment and must stay unchanged until the cubin is closed: nothing
 * is copied. Returns 0, -EINVAL unless it is a complete 64-bit cubin, or -ENOMEM. */
int kp_cubin_open(const void *image, size_t size, struct kp_cubin **out);
void kp_cubin_close(struct kp_cubin *c);

/* Fills *out for function `name` (mangled), with offsets from the function's start; id and crc stay 0, texts "".
 * Instructions are known from compute capability 7.0 on, locations if the module has a line table (-lineinfo). The
 * caller frees it with kp_code_free. Returns 0, -ENOENT without such a function, or -ENOMEM; on error *out is
 * zeroed. */
int kp_cubin_code(const struct kp_cubin *c, const char *name, struct kp_code *out);

/* Adds the PTX to `code`, which kp_cubin_code has filled from the same image: the line of each instruction, and the
 * lines of the PTX functions that contain them. Only modules with line tables (-lineinfo) have PTX; a function with
 * more than 1 MiB of it gets none. Returns 0, or -ENOMEM with less than all of it. */
int kp_cubin_ptx(const struct kp_cubin *c, struct kp_code *code);

/* Finds the function with ELF symbol index `symbol`. Returns 0 with *name in the image, or -ENOENT. */
int kp_cubin_function_at(const struct kp_cubin *c, uint32_t symbol, const char **name);

/* Fills *out with the effects of the function with that symbol; it may be recursive. Returns 0, -ENOENT, -ENOMEM, or
 * -E2BIG if calls are nested too deeply. */
int kp_cubin_reach(const struct kp_cubin *c, uint32_t symbol, struct kp_cubin_reach *out);

/* Returns enum kp_once for all code of the image. Cheap; an unreadable image has none. */
unsigned kp_cubin_once(const void *image, size_t size);

/* Returns true if loading the image puts variables or constants of the program onto the device; texts of assertions and
 * tables of the mathematical functions, which nobody writes, do not count. Cheap; true for an unreadable image, and for
 * none (NULL). */
bool kp_cubin_variables(const void *image, size_t size);

/* Calls `fn` with the name of each such variable, until it returns other than 0; the name is valid during the call. */
int kp_cubin_each_variable(const struct kp_cubin *c, int (*fn)(const char *name, void *arg), void *arg);

/* Calls `fn` for each function by ascending symbol index, until `fn` returns other than 0; its argument is valid
 * during the call. Returns the last result of `fn`, 0 without functions. */
typedef int kp_cubin_function_fn(const struct kp_cubin_function *f, void *arg);
int kp_cubin_each_function(const struct kp_cubin *c, kp_cubin_function_fn *fn, void *arg);

#endif
