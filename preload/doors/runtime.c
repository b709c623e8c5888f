#include "preload/doors/runtime.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/lock.h"
#include "base/work.h"
#include "preload/doors/launch_doors.h"
#include "preload/os/elf.h"

#define EXPORT __attribute__((visibility("default")))

/* cudaError_t of a runtime function that cannot be found: cudaErrorSharedObjectSymbolNotFound. */
enum { RUNTIME_MISSING = 302 };

/* dim3 as the runtime's C interface passes it. */
struct kp_dim3 {
    unsigned x, y, z;
};

enum {
#define KP_RUNTIME(function, host, parameters, arguments) RUNTIME_##function,
#include "preload/doors/runtime.def"
#undef KP_RUNTIME
    RUNTIMES
};

static _Atomic(void *) behind_pointer[RUNTIMES];

/* The callers of runtime functions. A process may contain several runtimes, each seen only by the libraries that
 * need it. An exported door leads to the runtime of the calling object. Objects are noted once and never changed;
 * few of them launch. */
enum { MOST_CALLERS = 64 };

/* Each launch looks at the first of these, so that they share cache lines. */
static struct kp_elf_range ranges[MOST_CALLERS];

static struct caller {
    _Atomic(void *) real[RUNTIMES];
} callers[MOST_CALLERS];

static atomic_int n_callers;

static struct caller *find_caller(uintptr_t address)
{
    int n = atomic_load(&n_callers);
    for (int i = 0; i < n; i++)
        if (address - ranges[i].start < ranges[i].end - ranges[i].start)
            return &callers[i];
    return NULL;
}

/* Returns NULL for code outside all objects, or if the table is full. */
static struct caller *add_caller(const void *address)
{
    struct kp_lock *lock = &kp_locks[KP_LOCK_RUNTIMES];
    struct kp_elf_range range;
    if (!kp_elf_range(address, &range))
        return NULL;
    kp_lock_take(lock, KP_FOREVER);
    struct caller *c = find_caller((uintptr_t)address);
    int n = atomic_load(&n_callers);
    if (!c && n < MOST_CALLERS) {
        c = &callers[n];
        ranges[n] = range;
        atomic_store(&n_callers, n + 1);
    }
    kp_lock_give(lock);
    return c;
}

static void *find_behind(int i, const char *symbol, const void *address)
{
    struct caller *c = add_caller(address);
    void *real = kp_elf_find_for(address, symbol);
    if (c)
        atomic_store(&c->real[i], real);
    return real;
}

static void *behind(int i, const char *symbol, const void *address)
{
    const struct caller *c = find_caller((uintptr_t)address);
    void *real = c ? atomic_load(&c->real[i]) : NULL;
    if (!real) {
        kp_work_begin();
        real = find_behind(i, symbol, address);
        kp_work_end();
    }
    return real;
}

#define CALL(parameters, real, arguments) ((int(*) parameters)(uintptr_t)(real)) arguments

#define KP_RUNTIME(function, host, parameters, arguments)                                                              \
    EXPORT int function parameters;                                                                                    \
    int function parameters                                                                                            \
    {                                                                                                                  \
        void *real = behind(RUNTIME_##function, #function, __builtin_return_address(0));                               \
        if (!real)                                                                                                     \
            return RUNTIME_MISSING;                                                                                    \
        const void *outer = kp_runtime_host_function;                                                                  \
        kp_runtime_host_function = host;                                                                               \
        int rc = CALL(parameters, real, arguments);                                                                    \
        kp_runtime_host_function = outer;                                                                              \
        return rc;                                                                                                     \
    }                                                                                                                  \
    static int pointer_##function parameters                                                                           \
    {                                                                                                                  \
        const void *outer = kp_runtime_host_function;                                                                  \
        kp_runtime_host_function = host;                                                                               \
        int rc = CALL(parameters, atomic_load(&behind_pointer[RUNTIME_##function]), arguments);                        \
        kp_runtime_host_function = outer;                                                                              \
        return rc;                                                                                                     \
    }
#include "preload/doors/runtime.def"
#undef KP_RUNTIME

static const struct {
    const char *symbol;
    void *function;
} doors[RUNTIMES] = {
#define KP_RUNTIME(function, host, parameters, arguments) {#function, (void *)(uintptr_t)pointer_##function},
#include "preload/doors/runtime.def"
#undef KP_RUNTIME
};

void *kp_runtime_wrap(const char *symbol, void *real)
{
    for (int i = 0; i < RUNTIMES; i++) {
        void *expected = NULL;
        if (strcmp(doors[i].symbol, symbol))
            continue;
        if (atomic_compare_exchange_strong(&behind_pointer[i], &expected, real) || expected == real)
            return doors[i].function;
    }
    return NULL;
}
