/*
 * Stands before a sanitiser's runtime in the sanitiser builds, for the sake of NVIDIA's libraries:
 * - libcupti opens its own libraries with RTLD_DEEPBIND, which the sanitisers refuse by ending the process;
 * - TSan takes the thread-local storage that libnvperf_target touches in its exit handlers for something else and dies.
 *   With KP_SHIM_QUICK_EXIT the process ends before those handlers; TSan must then halt on the first report.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void quick_end(int status, void *unused)
{
    (void)unused;
    fflush(NULL);
    _exit(status);
}

void *dlopen(const char *path, int flags)
{
    static void *(*real)(const char *, int);
    if (!real)
        real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    void *library = real ? real(path, flags & ~RTLD_DEEPBIND) : NULL;
    /* Registered after the library's own handlers, so run before them. */
    if (library && getenv("KP_SHIM_QUICK_EXIT"))
        on_exit(quick_end, NULL);
    return library;
}
