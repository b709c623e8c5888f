/* The driver of a program that opens it when it runs; `find` is how it looks up a symbol. */
#ifndef TESTS_OPENED_H
#define TESTS_OPENED_H

#include "program.h"

static void *open_driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        printf("libcuda.so.1 cannot be opened\n");
        exit(2);
    }
    return handle;
}

static inline void fill_driver(struct driver *d, void *(*find)(void *handle, const char *name))
{
    void *handle = open_driver();

#define FIELD(base, version) *(void **)&d->base = find(handle, EXPORTED_NAME(base));
    DRIVER_FUNCTIONS(FIELD)
#undef FIELD
    *(void **)&d->launch_ptsz = find(handle, "cuLaunchKernel_ptsz");
    *(void **)&d->launch_ex_ptsz = find(handle, "cuLaunchKernelEx_ptsz");
    report("a name that is not there", find(handle, "cuNoSuchFunction") == NULL);
}

#endif
