/* Facts about the process's memory that only the operating system knows. */
#ifndef KP_PRELOAD_OS_MAPPINGS_H
#define KP_PRELOAD_OS_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if any of the `bytes` from `p` on lies in a shared mapping (MAP_SHARED, System V). Another process may
 * have such memory, or get it by a fork. Also true if the operating system does not say. Reads /proc/self/maps up to
 * there: about half a microsecond a mapping. Any thread; keeps errno. */
bool kp_mappings_shared(const void *p, size_t bytes);

/* Writes the absolute path of the file mapped at `p`. Returns false without a file, or if the path does not fit. Any
 * thread. */
bool kp_mappings_file(const void *p, char *path, size_t size);

/* Returns true if a file whose name begins with `name` is mapped anywhere but from `start` to `end`. Any thread. */
bool kp_mappings_beside(const char *name, uintptr_t start, uintptr_t end);

#endif
