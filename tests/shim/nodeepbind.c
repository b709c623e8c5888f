/*
 * Stands before a sanitiser's runtime in the sanitiser builds: NVIDIA's libcupti opens its own libraries with
 * RTLD_DEEPBIND, which the sanitisers refuse by ending the process.
 */
#include <dlfcn.h>
#include <stddef.h>

void *dlopen(const char *path, int flags)
{
    static void *(*real)(const char *, int);
    if (!real)
        real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return real ? real(path, flags & ~RTLD_DEEPBIND) : NULL;
}
