#include "preload/program/kernel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "preload/os/guard.h"
#include "preload/program/filter.h"

char *kp_kernel_mangled(const struct kp_driver *d, CUfunction f)
{
    const char *mangled = NULL;
    CUfunction own = f;
    KP_GUARDED;
    if (d->cuFuncGetName && d->cuFuncGetName(&mangled, f) != CUDA_SUCCESS && d->cuKernelGetFunction &&
        d->cuKernelGetFunction(&own, (CUkernel)f) == CUDA_SUCCESS)
        d->cuFuncGetName(&mangled, own);
    return mangled ? strdup(mangled) : NULL;
}

bool kp_kernel_waits_outside(const struct kp_driver *d, CUfunction f)
{
    char *mangled = kp_kernel_mangled(d, f);
    bool yes = mangled && kp_filter_waits_outside(mangled);
    free(mangled);
    return yes;
}

/* NULL if no images are kept. */
static struct kp_kernels *_Atomic kernels;

void kp_kernel_images(struct kp_kernels *of)
{
    atomic_store(&kernels, of);
}

struct kp_kernels *kp_kernel_images_known(void)
{
    return atomic_load(&kernels);
}

unsigned kp_kernel_code_once(const char *mangled)
{
    struct kp_kernels *of = atomic_load(&kernels);
    return of ? kp_kernels_once(of, mangled) : 0;
}

unsigned kp_kernel_once(const struct kp_driver *d, CUfunction f)
{
    if (!kp_kernel_code_once("")) /* the case in nearly all programs */
        return 0;
    char *mangled = kp_kernel_mangled(d, f);
    unsigned once = kp_kernel_code_once(mangled ? mangled : "");
    free(mangled);
    return once;
}
