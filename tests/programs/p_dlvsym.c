/* LINK: -ldl */
/* Lookups by dlvsym. libcuda has no symbol versions: for its names dlvsym finds nothing, under whatever version, and
 * the program falls back to dlsym; libc's versioned names are found. */
#include "opened.h"

static void *find(void *handle, const char *name)
{
    void *p = dlvsym(handle, name, "libcuda.so.1");

    return p ? p : dlsym(handle, name);
}

int main(void)
{
    struct driver d;
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    unsigned int (*slow)(unsigned int);

    *(void **)&slow = dlvsym(libc, "sleep", "GLIBC_2.2.5");
    report("a versioned name of libc", slow != NULL && slow(0) == 0);
    report("a version that is not there", dlvsym(libc, "sleep", "GLIBC_0.0") == NULL);
    fill_driver(&d, find);
    return run_scenario(&d);
}
