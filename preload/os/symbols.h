/*
 * Finds the real functions: the C library's lookup functions that our own doors hide, and the driver's entry points.
 *
 * Threads: any. kp_symbols_init may run several times at once; it always finds the same.
 */
#ifndef KP_PRELOAD_OS_SYMBOLS_H
#define KP_PRELOAD_OS_SYMBOLS_H

#include "base/dl.h"

extern void *(*kp_real_dlsym)(void *handle, const char *name);
extern void *(*kp_real_dlvsym)(void *handle, const char *name, const char *version);
extern void *(*kp_real_dlopen)(const char *file, int flags);
extern void *(*kp_real_dlmopen)(long space, const char *file, int flags);
extern int (*kp_real_dlclose)(void *library);

/* Finds the functions above. Never fails on a C library that has them. */
void kp_symbols_init(void);

/* Returns the function that an exported door hides: the next definition after this library in the global order (another
 * interposer, or the driver), otherwise the driver's own, wherever it was loaded. NULL if there is none. */
void *kp_symbols_behind_door(const char *symbol);

/* Returns the driver's own function, past every interposer. */
void *kp_symbols_driver(const char *symbol);

/* Returns loader functions for cupti/. Valid after kp_symbols_init; `open` is NULL if the C library hides dlopen. */
const struct kp_dl *kp_symbols_dl(void);

#endif
