/*
 * The PTX of modules and libraries that the program has loaded, and the options that the program compiles it with. From
 * these a kernel can be compiled once more. Images are looked at as they are loaded, as a program may free or overwrite
 * them afterwards.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_PTX_H
#define KP_PRELOAD_PROGRAM_PTX_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/code/fatbin.h"
#include "collectors/facts/device.h"
#include "collectors/facts/driver.h"

/* How a driver function loads, as its row of cuda_api.def says: what its first argument receives, what its second one
 * is, and the numbers of the arguments that count and list its options. `count` 0: it takes none. */
struct kp_ptx_load {
    enum kp_ptx_receives { KP_PTX_MODULE, KP_PTX_LIBRARY } receives;
    enum kp_ptx_takes { KP_PTX_IMAGE, KP_PTX_FILE } takes;
    unsigned count, options, values;
};

/* A row's columns as a constant. */
#define KP_PTX_LOAD(receives, takes, count, options, values)                                                           \
    (const struct kp_ptx_load)                                                                                         \
    {                                                                                                                  \
        KP_PTX_##receives, KP_PTX_##takes, count, options, values                                                      \
    }

enum { KP_PTX_OPTIONS = 10 };

/* The options of the program that change the code: by value, each once. */
struct kp_ptx_options {
    CUjit_option option[KP_PTX_OPTIONS];
    uint32_t value[KP_PTX_OPTIONS];
    unsigned n;
};

/* What a kernel can be compiled from, as the program had it compiled. */
struct kp_ptx_source {
    struct kp_ptx ptx;
    struct kp_ptx_options options;
};

/* Starts to note images. Nothing is noted before. */
void kp_ptx_watch(void);

/* Notes a call of a function that loads, by the name `symbol`, which must stay, before it is made; and that it has
 * succeeded, as long as the caller's image is valid. */
void kp_ptx_loading(const struct kp_ptx_load *by, const char *symbol, const uint64_t *args);
void kp_ptx_loaded(void);

/* Notes that a module or library is unloaded. */
void kp_ptx_unloaded(const void *handle);

/* Fills *out with a copy of the PTX of the module of `f`, whose facts are given, for kp_ptx_free. False with *why,
 * static text, where it has none, is not known, or memory lacks. */
bool kp_ptx_of(const struct kp_driver *d, CUfunction f, const struct kp_function *facts, struct kp_ptx_source *out,
               const char **why);

#endif
