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
    struct kp_ptx_source from;
    struct loaded *next;
};

static struct loaded *list;
static struct kp_lock *const lock = &kp_locks[KP_LOCK_PTX];
static atomic_bool watched;

/* The call of this thread that loads; `by` is NULL where none does. */
static __thread struct {
    const struct kp_ptx_load *by;
    const char *symbol;
    void *const *handle; /* receives the module or library */
    const void *image;
    struct kp_ptx_options options;
} call __attribute__((tls_model("initial-exec")));

void kp_ptx_watch(void)
{
    atomic_store(&watched, true);
}

/* ---- options ---- */

/* Whether the option changes the code that is made of PTX. Others are left out. The limit of registers is what a
 * variant has another one of. Those of logs and times are the program's memory. Names of symbols are, too: without
 * them, PTX that needs them does not link, and its kernel has no variant. The others belong to link-time optimisation,
 * or say which code of an image is taken. */
static bool is_repeated(CUjit_option option)
{
    static const CUjit_option repeated[KP_PTX_OPTIONS] = {
        CU_JIT_THREADS_PER_BLOCK,         CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_TARGET,
        CU_JIT_GENERATE_DEBUG_INFO,       CU_JIT_GENERATE_LINE_INFO, CU_JIT_CACHE_MODE,
        CU_JIT_POSITION_INDEPENDENT_CODE, CU_JIT_MIN_CTA_PER_SM,     CU_JIT_MAX_THREADS_PER_BLOCK,
        CU_JIT_OVERRIDE_DIRECTIVE_VALUES,
    };
    for (size_t i = 0; i < KP_PTX_OPTIONS; i++)
        if (option == repeated[i])
            return true;
    return false;
}

/* The last one of a kind counts. */
static void add_option(struct kp_ptx_options *o, CUjit_option option, uint32_t value)
{
    unsigned i = 0;
    while (i < o->n && o->option[i] != option)
        i++;
    o->option[i] = option;
    o->value[i] = value;
    o->n += i == o->n;
}

/* Reads the options before the call is made, as it may overwrite values. An option's value is the pointer itself. */
static void read_options(const struct kp_ptx_load *by, const uint64_t *args, struct kp_ptx_options *o)
{
    const CUjit_option *options = (const CUjit_option *)(uintptr_t)args[by->options];
    void *const *values = (void *const *)(uintptr_t)args[by->values];
    unsigned n = by->count ? (uint32_t)args[by->count] : 0;
    memset(o, 0, sizeof(*o));
    for (unsigned i = 0; options && values && i < n; i++)
        if (is_repeated(options[i]))
            add_option(o, options[i], (uint32_t)(uintptr_t)values[i]);
}

/* ---- loading and unloading ---- */

static void drop(const void *handle)
{
    for (struct loaded **link = &list; *link; link = &(*link)->next)
        if ((*link)->handle == handle) {
            struct loaded *gone = *link;
            *link = gone->next;
            kp_ptx_free(&gone->from.ptx);
            free(gone);
            return;
        }
}

static void note(const void *handle)
{
    struct loaded *l = calloc(1, sizeof(*l));
    if (!l)
        return;
    struct kp_ptx *ptx = &l->from.ptx;
    l->handle = handle;
    l->library = call.by->receives == KP_PTX_LIBRARY;
    l->from.options = call.options;
    l->unread = (call.by->takes == KP_PTX_FILE ? kp_ptx_copy_file(call.image, ptx) : kp_ptx_copy(call.image, ptx)) != 0;
    kp_debug(KP_DEBUG_WINDOW, "%s: %zu byte of PTX", call.symbol, ptx->size);
    kp_lock_take(lock, KP_FOREVER);
    drop(handle); /* one that ended with its context */
    l->next = list;
    list = l;
    kp_lock_give(lock);
}

void kp_ptx_loading(const struct kp_ptx_load *by, const char *symbol, const uint64_t *args)
{
    call.by = atomic_load(&watched) ? by : NULL;
    if (!call.by)
        return;
    call.symbol = symbol;
    call.handle = (void *const *)(uintptr_t)args[0];
    call.image = (const void *)(uintptr_t)args[1];
    read_options(by, args, &call.options);
}

void kp_ptx_loaded(void)
{
    if (call.by && call.handle)
        note(*call.handle);
    call.by = NULL;
}

void kp_ptx_unloaded(const void *handle)
{
    if (!atomic_load(&watched))
        return;
    kp_lock_take(lock, KP_FOREVER);
    drop(handle);
    kp_lock_give(lock);
}

/* ---- finding ---- */

static bool is_same(const struct kp_ptx_source *a, const struct kp_ptx_source *b)
{
    return a->ptx.form == b->ptx.form && a->ptx.size == b->ptx.size &&
           (!a->ptx.size || !memcmp(a->ptx.bytes, b->ptx.bytes, a->ptx.size)) &&
           !memcmp(&a->options, &b->options, sizeof(a->options));
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
        if (found && !is_same(&found->from, &l->from)) {
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

/* The module may be unloaded as soon as the lock is given back. */
static bool copy(const struct kp_ptx_source *from, struct kp_ptx_source *out, const char **why)
{
    *out = *from;
    out->ptx.bytes = malloc(from->ptx.size);
    if (out->ptx.bytes)
        memcpy(out->ptx.bytes, from->ptx.bytes, from->ptx.size);
    else
        *why = "no memory for the PTX of its module";
    return out->ptx.bytes != NULL;
}

bool kp_ptx_of(const struct kp_driver *d, CUfunction f, const struct kp_function *facts, struct kp_ptx_source *out,
               const char **why)
{
    kp_lock_take(lock, KP_FOREVER);
    const struct loaded *l = find(kp_launched_module(d, f));
    if (!l)
        l = library_with(d, facts->mangled, why);
    if (l && l->from.ptx.form == KP_PTX_NONE) {
        *why = l->unread ? "the PTX of its module could not be read"
                         : "its module has no PTX that the JIT could compile: build it with code for compute_XX, too "
                           "(nvcc -gencode arch=compute_90,code=compute_90)";
        l = NULL;
    }
    bool copied = l && copy(&l->from, out, why);
    kp_lock_give(lock);
    return copied;
}
