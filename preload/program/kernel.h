/* What a kernel's name and code say of how it may be run. Threads: any; the calls to the driver are guarded here. */
#ifndef KP_PRELOAD_PROGRAM_KERNEL_H
#define KP_PRELOAD_PROGRAM_KERNEL_H

#include <cuda.h>
#include <stdbool.h>

#include "collectors/facts/driver.h"

/* The mangled name of a CUfunction, or of a CUkernel cast to one; malloc'ed. NULL when the driver does not tell. */
char *kp_kernel_mangled(const struct kp_driver *d, CUfunction f);

/* Whether it waits for other processes or devices, by its name. */
bool kp_kernel_waits_outside(const struct kp_driver *d, CUfunction f);

/* Why it must not be run twice, by its code: of enum kp_once. */
unsigned kp_kernel_once(const struct kp_driver *d, CUfunction f);

#endif
