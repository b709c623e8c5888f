/*
 * Finds the calls of loaded objects that bypass this library's exported functions, and leads them there. The dynamic
 * linker binds an object that is opened with RTLD_DEEPBIND to what it needs itself before anything that is preloaded.
 */
#ifndef KP_PRELOAD_OS_REBIND_H
#define KP_PRELOAD_OS_REBIND_H

#include <stddef.h>

/* Has all loaded objects call this library's exported functions that call those of the C library, the driver, the
 * runtime or CUPTI instead; other definitions, and NVIDIA's own libraries, stay as they are. Returns how many such
 * calls it changed. Any thread; holds the loader's lock. */
size_t kp_rebind_all(void);

#endif
