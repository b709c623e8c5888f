/*
 * Finds the calls of loaded objects that bypass this library's exported functions, and redirects them there. The
 * dynamic linker binds an object opened with RTLD_DEEPBIND to its own dependencies before anything preloaded.
 */
#ifndef KP_PRELOAD_OS_REBIND_H
#define KP_PRELOAD_OS_REBIND_H

#include <stddef.h>

/* Makes all loaded objects call this library's exported functions instead of those of the C library, the driver, the
 * runtime or CUPTI; other definitions, and NVIDIA's own libraries, stay as they are. Returns how many calls it changed.
 * Any thread; holds the loader's lock. */
size_t kp_rebind_all(void);

#endif
