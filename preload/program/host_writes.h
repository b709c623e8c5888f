/*
 * Kernels whose counters have shown that they write host memory which no argument points into: they find its address
 * in device memory. They were repeated, and the host could see that; from then on they run once.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_HOST_WRITES_H
#define KP_PRELOAD_PROGRAM_HOST_WRITES_H

#include <stdbool.h>
#include <stdint.h>

/* Notes a kernel by its mangled name, and the passes that a launch of it was repeated in; reports it, once for each
 * kernel, with `name`. */
void kp_hostwrites_note(const char *mangled, const char *name, uint32_t passes);

/* Returns true if the kernel was noted. */
bool kp_hostwrites_known(const char *mangled);

#endif
