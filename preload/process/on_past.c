/*
 * Uses of CUDA that bypassed the doors, reported by a line at the end.
 */
#include "preload/process/process.h"

#include <stdatomic.h>
#include <unistd.h>

#include "preload/os/elf.h"
#include "preload/os/log.h"
#include "preload/os/mappings.h"
#include "preload/os/outcome.h"
#include "preload/os/symbols.h"
#include "preload/process/phase.h"

static struct kp_process *const process = &kp_process_now;

static const char driver[] = "libcuda.so";

static const char apart[] =
    "a library that was opened with dlmopen has a CUDA driver of its own: its launches, if any, "
    "were not seen. Open it with dlopen to profile them";
static const char unseen[] = "the program used CUDA, but none of its calls reached kprof, so no launch was seen: a "
                             "library of the program finds the driver's functions without the dynamic linker";

static atomic_bool namespaces;

void kp_process_namespace(void)
{
    atomic_store(&namespaces, true);
}

static bool is_driver_apart(void)
{
    struct kp_elf_range own = {0, 0};
    const void *known = kp_symbols_driver("cuInit");
    if (known)
        kp_elf_range(known, &own);
    return kp_mappings_beside(driver, own.start, own.end);
}

/* Returns true if the driver has been initialised, though no call of cuInit reached its door. The driver can be asked
 * as long as it is loaded. */
static bool is_driver_used(void)
{
    typedef CUresult (*function)(CUcontext * out);
    CUcontext current;
    function get = (function)(uintptr_t)kp_symbols_driver("cuCtxGetCurrent");
    CUresult rc = get ? get(&current) : CUDA_ERROR_NOT_INITIALIZED;
    return rc == CUDA_SUCCESS || rc == CUDA_ERROR_DEINITIALIZED;
}

void kp_process_tell_past(void)
{
    static atomic_bool told;
    bool asleep = atomic_load(&process->phase) == KP_PHASE_ASLEEP;
    if (getpid() != process->loaded || atomic_load(&told))
        return;
    const char *what = atomic_load(&namespaces) && is_driver_apart() ? apart
                       : asleep && is_driver_used()                  ? unseen
                                                                     : NULL;
    if (!what || atomic_exchange(&told, true))
        return;
    if (asleep) {
        kp_outcome_open();
        kp_log_open();
    }
    kp_log_warning("%s", what);
    kp_outcome_failed(KP_FAILURE_NOT_COUNTED);
    if (asleep)
        kp_outcome_ended(0, 0);
}
