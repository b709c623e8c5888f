/* What the kernel knows of the process's memory. */
#ifndef KP_PRELOAD_OS_MAPPINGS_H
#define KP_PRELOAD_OS_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a byte of the `bytes` from `p` on lies in a shared mapping (MAP_SHARED, System V): another process may have
 * it too, or get it by a fork. True as well where the kernel does not tell. Reads /proc/self/maps up to there: about
 * half a microsecond a mapping. Any thread; errno is kept. */
bool kp_mappings_shared(const void *p, size_t bytes);

/* The absolute path of the file that is mapped at `p`. False where there is none, or it does not fit. Any thread. */
bool kp_mappings_file(const void *p, char *path, size_t size);

#endif
