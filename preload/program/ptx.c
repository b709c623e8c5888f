#include "preload/program/ptx.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "preload/program/loaded_modules.h"

struct loaded {
    const void *handle;
    bool library, unread;
    struct kp_ptx ptx;
    struct loaded *next;
};

static struct loaded *list;
static struct kp_lock *const lock = &kp_locks[KP_LOCK_PTX];
static atomic_bool watched;

void kp_ptx_watch(void)
{
    atomic_store(&watched, true);
}

const struct kp_ptx_load *kp_ptx_load_by(const char *symbol)
{
    static const struct kp_ptx_load loads[] = {
        {"cuModuleLoad", false, true},        {"cuModuleLoadData", false, false},
        {"cuModuleLoadDataEx", false, false}, {"cuModuleLoadFatBinary", false, false},
        {"cuLibraryLoadData", true, false},   {"cuLibraryLoadFromFile", true, true},
    };
    for (size_t i = 0; atomic_load(&watched) && i < sizeof(loads) / sizeof(*loads); i++)
        if (!strcmp(symbol, loads[i].symbol))
            return &loads[i];
    return NULL;
}

static void drop(const void *handle)
{
    for (struct loaded **link = &list; *link; link = &(*link)->next)
        if ((*link)->handle == handle) {
            struct loaded *gone = *link;
            *link = gone->next;
            kp_ptx_free(&gone->ptx);
            free(gone);
            return;
        }
}

void kp_ptx_note(const struct kp_ptx_load *by, const void *handle, const void *image)
{
    struct loaded *l = calloc(1, sizeof(*l));
    if (!l)
        return;
    l->handle = handle;
    l->library = by->library;
    l->unread = (by->file ? kp_ptx_copy_file(image, &l->ptx) : kp_ptx_copy(image, &l->ptx)) != 0;
    kp_debug(KP_DEBUG_WINDOW, "%s: %zu byte of PTX", by->symbol, l->ptx.size);
    kp_lock_take(lock, KP_FOREVER);
    drop(handle); /* one that ended with its context */
    l->next = list;
    list = l;
    kp_lock_give(lock);
}

void kp_ptx_unloaded(const void *handle)
{
    if (!atomic_load(&watched))
        return;
    kp_lock_take(lock, KP_FOREVER);
    drop(handle);
    kp_lock_give(lock);
}

static bool is_same(const struct kp_ptx *a, const struct kp_ptx *b)
{
    return a->form == b->form && a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static bool has_kernel(const struct kp_driver *d, const struct loaded *l, const char *mangled)
{
    CUkernel kernel;
    return d->cuLibraryGetKernel &&
           d->cuLibraryGetKernel(&kernel, (CUlibrary)(uintptr_t)l->handle, mangled) == CUDA_SUCCESS;
}

/* A function of a library tells its module, which the program has not loaded by itself. Which library it is of the
 * driver does not tell, and to ask for their modules would load them: so it is the one that has a kernel of the name.
 */
static const struct loaded *library_with(const struct kp_driver *d, const char *mangled, const char **why)
{
    const struct loaded *found = NULL;
    *why = "kprof has not seen what its module was loaded from";
    for (const struct loaded *l = list; l; l = l->next) {
        if (!l->library || !has_kernel(d, l, mangled))
            continue;
        if (found && !is_same(&found->ptx, &l->ptx)) {
            *why = "several libraries of the program have a kernel of its name, and the driver does not tell which is "
                   "launched";
            return NULL;
        }
        found = l;
    }
    return found;
}

static const struct loaded *find(const void *handle)
{
    const struct loaded *l = list;
    while (l && l->handle != handle)
        l = l->next;
    return l;
}

const struct kp_ptx *kp_ptx_of(const struct kp_driver *d, CUfunction f, const struct kp_function *facts,
                               const char **why)
{
    kp_lock_take(lock, KP_FOREVER);
    const struct loaded *l = find(kp_launched_module(d, f));
    if (!l)
        l = library_with(d, facts->mangled, why);
    if (l && l->ptx.form == KP_PTX_NONE) {
        *why = l->unread ? "the PTX of its module could not be read"
                         : "its module has no PTX that the JIT could compile: build it with code for compute_XX, too "
                           "(nvcc -gencode arch=compute_90,code=compute_90)";
        l = NULL;
    }
    kp_lock_give(lock);
    return l ? &l->ptx : NULL;
}
