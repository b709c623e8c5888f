/* How the fakes of CUPTI and of the checkpoint library reach the fake driver: it must already be in the process, like
 * the real one for the real ones. */
#ifndef TESTS_FAKE_DRIVER_H
#define TESTS_FAKE_DRIVER_H

#include <dlfcn.h>

#include "fake_common.h"
#include "fake_hooks.h"

static const struct fake_cuda_api *fake_driver(void)
{
    static const struct fake_cuda_api *api;
    const struct fake_cuda_api *(*get)(void);
    void *handle;

    if (api)
        return api;
    handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    *(void **)&get = dlsym(handle, "fake_cuda_api");
    api = get ? get() : NULL;
    return api;
}

/* Use of a context that is gone corrupts a real process: never let it pass. */
static inline void fake_need_live(CUcontext ctx, const char *function)
{
    const struct fake_cuda_api *api = fake_driver();

    if (!api || !api->initialised())
        fake_misuse("%s: the driver is not initialised, or was shut down", function);
    if (api->context_state(ctx) != FAKE_LIVE)
        fake_misuse("%s: not a live context", function);
}

#endif
