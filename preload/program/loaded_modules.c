#include "preload/program/loaded_modules.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "preload/gate/handle_set.h"
#include "preload/os/guard.h"

/* Functions noted so far. A full set replaces one of its functions, which is noted again at its next launch. */
enum { SETS = 2048, WAYS = 4 };
static _Atomic(CUfunction) noted[SETS][WAYS];

static struct kp_lock *const lock = &kp_locks[KP_LOCK_LAUNCHED];
static struct kp_seen modules, functions; /* one function of each module */
static bool lost;                         /* one is missing because memory was short */

const void *kp_launched_module(const struct kp_driver *d, CUfunction f)
{
    CUmodule module = NULL;
    CUlibrary library = NULL;
    if (d->cuFuncGetModule && d->cuFuncGetModule(&module, f) == CUDA_SUCCESS)
        return module;
    if (d->cuKernelGetLibrary && d->cuKernelGetLibrary(&library, (CUkernel)f) == CUDA_SUCCESS)
        return library;
    return NULL;
}

static _Atomic(CUfunction) *set_of(CUfunction f)
{
    uint64_t h = (uint64_t)(uintptr_t)f * 0x9e3779b97f4a7c15u;
    return noted[h >> 32 & (SETS - 1)];
}

/* Puts the function into the first free place of its set, or the last. */
static void remember(CUfunction f)
{
    _Atomic(CUfunction) *set = set_of(f);
    int way = 0;
    while (way < WAYS - 1 && atomic_load_explicit(&set[way], memory_order_relaxed))
        way++;
    atomic_store_explicit(&set[way], f, memory_order_relaxed);
}

bool kp_launched_is_noted(CUfunction f)
{
    const _Atomic(CUfunction) *set = set_of(f);
    for (int way = 0; way < WAYS; way++)
        if (atomic_load_explicit(&set[way], memory_order_relaxed) == f)
            return true;
    return false;
}

bool kp_launched_note(const struct kp_driver *d, const struct kp_launch *l)
{
    bool current;
    if (l->is_graph || kp_launched_is_noted(l->f))
        return false;
    KP_GUARDED;
    const void *module = kp_launched_module(d, l->f);
    CUcontext ctx = module ? kp_launch_context(d, l, &current) : NULL;
    kp_lock_take(lock, KP_FOREVER);
    int added = module && ctx ? kp_seen_add(&modules, ctx, module) : module ? -ENOMEM : -EEXIST;
    if (!added)
        lost |= kp_seen_add(&functions, ctx, l->f) == -ENOMEM;
    if (added != -ENOMEM)
        remember(l->f);
    kp_lock_give(lock);
    return true;
}

bool kp_launched_has(CUcontext ctx, const void *module)
{
    kp_lock_take(lock, KP_FOREVER);
    bool yes = kp_seen_has(&modules, ctx, module);
    kp_lock_give(lock);
    return yes;
}

/* Calls without the lock: `fn` asks the driver. */
bool kp_launched_each(CUcontext ctx, bool (*fn)(void *arg, CUfunction f), void *arg)
{
    kp_lock_take(lock, KP_FOREVER);
    bool goes_on = !lost;
    kp_lock_give(lock);
    for (size_t i = 0; goes_on; i++) {
        kp_lock_take(lock, KP_FOREVER);
        bool there = i < functions.n;
        struct kp_seen_handle h = there ? functions.list[i] : (struct kp_seen_handle){.ctx = NULL};
        kp_lock_give(lock);
        if (!there)
            break;
        goes_on = h.ctx != ctx || fn(arg, (CUfunction)(uintptr_t)h.handle);
    }
    return goes_on;
}

void kp_launched_forget(void)
{
    kp_lock_take(lock, KP_FOREVER);
    kp_seen_empty(&modules);
    kp_seen_empty(&functions);
    for (int set = 0; set < SETS; set++)
        for (int way = 0; way < WAYS; way++)
            atomic_store_explicit(&noted[set][way], NULL, memory_order_relaxed);
    kp_lock_give(lock);
}
