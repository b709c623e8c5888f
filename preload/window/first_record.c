#include "preload/window/first_record.h"

#include <stdatomic.h>

#include "collectors/providers/observe.h"
#include "preload/window/flags.h"
#include "preload/window/visit.h"
#include "preload/window/waits.h"

/* Runs on every GPU that CUPTI's range profiler knows. */
static const char kernel[] = ".version 6.0\n"
                             ".target sm_50\n"
                             ".address_size 64\n"
                             ".visible .entry " KP_OWN_KERNEL "() { ret; }\n";

static atomic_bool tried;

bool kp_first_record_wanted(const struct kp_context_setup *setup)
{
    return setup->configs && !atomic_load(&tried) && kp_context_may_probe() && !kp_probe_has_records();
}

/* Launches it on a stream of its own, which waits for no other. */
static void launch(const struct kp_driver *d, CUfunction f)
{
    struct kp_executed record;
    CUstream stream;
    size_t n;
    if (d->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return;
    if (!kp_probe_begin(kp_context_cupti())) {
        if (d->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) == CUDA_SUCCESS)
            kp_wait_stream(d, stream, KP_SHORT_MS);
        kp_probe_end(kp_context_cupti(), &record, 1, &n);
    }
    d->cuStreamDestroy(stream);
}

void kp_first_record_make(const struct kp_context_setup *setup)
{
    const struct kp_driver *d = setup->driver;
    CUcontext ctx = NULL;
    CUmodule module;
    CUfunction f;
    if (!d->cuStreamCreate || !d->cuStreamDestroy || kp_window_is_open() || d->cuCtxGetCurrent(&ctx) != CUDA_SUCCESS ||
        !ctx || atomic_exchange(&tried, true))
        return;
    struct kp_visit v = kp_visit_begin(d, ctx);
    kp_images_aside(true);
    CUresult rc = d->cuModuleLoadData(&module, kernel);
    kp_images_aside(false);
    if (rc == CUDA_SUCCESS) {
        if (d->cuModuleGetFunction(&f, module, KP_OWN_KERNEL) == CUDA_SUCCESS)
            launch(d, f);
        d->cuModuleUnload(module);
    }
    kp_visit_end(d, &v);
}
