/* Judges from a kernel's name and code how it may run. Threads: any; calls to the driver are guarded here. */
#ifndef KP_PRELOAD_PROGRAM_KERNEL_H
#define KP_PRELOAD_PROGRAM_KERNEL_H

#include <cuda.h>
#include <stdbool.h>

#include "collectors/facts/driver.h"

/* Returns the mangled name of a CUfunction, or of a CUkernel cast to one; malloc'ed. NULL if the driver does not
 * say. */
char *kp_kernel_mangled(const struct kp_driver *d, CUfunction f);

/* Returns true if the kernel, by its name, waits for the host, other processes or devices. */
bool kp_kernel_waits_outside(const struct kp_driver *d, CUfunction f);

/* Returns why the kernel's code must not run twice: of enum kp_once. */
unsigned kp_kernel_once(const struct kp_driver *d, CUfunction f);

/* Sets the kernels of the images that are loaded from now on, for kp_kernel_code_once. They are never freed. */
struct kp_kernels;
void kp_kernel_images(struct kp_kernels *of);
/* Returns them; NULL if no images are kept. Any thread. */
struct kp_kernels *kp_kernel_images_known(void);
/* Returns why the code of kernel `mangled` ("" = unknown) must not run a second time: of enum kp_once. Any thread. */
unsigned kp_kernel_code_once(const char *mangled);

#endif
