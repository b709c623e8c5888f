/*
 * The PTX of modules and libraries that the program has loaded, from which a kernel can be compiled once more. Images
 * are looked at as they are loaded, as a program may free or overwrite them afterwards.
 *
 * Threads: any; kp_ptx_of inside the gate's exclusive section, in which nothing is loaded or unloaded.
 */
#ifndef KP_PRELOAD_PROGRAM_PTX_H
#define KP_PRELOAD_PROGRAM_PTX_H

#include <cuda.h>
#include <stdbool.h>

#include "collectors/code/fatbin.h"
#include "collectors/facts/device.h"
#include "collectors/facts/driver.h"

/* How a driver function loads: what its first argument receives, and what its second one is. */
struct kp_ptx_load {
    const char *symbol; /* of the function */
    bool library, file; /* a CUlibrary, not a CUmodule; the name of a file, not an image */
};

/* Starts to note images; before, kp_ptx_load_by returns NULL. */
void kp_ptx_watch(void);

/* Returns how the function of that name loads; NULL where it does not, or nobody wants to know. */
const struct kp_ptx_load *kp_ptx_load_by(const char *symbol);

/* Notes what such a function has loaded from `image` as `handle`. */
void kp_ptx_note(const struct kp_ptx_load *by, const void *handle, const void *image);

/* Notes that a module or library is unloaded. */
void kp_ptx_unloaded(const void *handle);

/* Returns the PTX of the module of `f`, whose facts are given. Valid inside the exclusive section. NULL with *why,
 * static text, where it has none, or is not known. */
const struct kp_ptx *kp_ptx_of(const struct kp_driver *d, CUfunction f, const struct kp_function *facts,
                               const char **why);

#endif
