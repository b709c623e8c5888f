/* The driver functions that kprof calls: a table of the real entry points, filled by the preloader. Read-only once
 * filled. */
#ifndef KP_COLLECTORS_FACTS_DRIVER_H
#define KP_COLLECTORS_FACTS_DRIVER_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stddef.h>

struct kp_driver {
#define KP_DRIVER(name, type, symbol, needed) type name;
#include "collectors/facts/driver.def"
#undef KP_DRIVER
};

/* Fills `d` through `find(symbol)`. Some of its functions repeat the driver's call if that fails (driver.c). Returns
 * NULL, or the first needed symbol that is missing. */
const char *kp_driver_fill(struct kp_driver *d, void *(*find)(const char *symbol));

/* Returns "CUDA_ERROR_X", or "unknown CUDA error"; static text. */
const char *kp_driver_error(const struct kp_driver *d, CUresult rc);

#endif
