#include "preload/doors/doors.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "base/work.h"
#include "preload/doors/api.h"
#include "preload/doors/cupti_doors.h"
#include "preload/doors/graph_doors.h"
#include "preload/doors/hostmem_doors.h"
#include "preload/doors/launch_doors.h"
#include "preload/doors/runtime.h"
#include "preload/doors/trampolines.h"
#include "preload/os/elf.h"
#include "preload/os/guard.h"
#include "preload/os/symbols.h"

#define EXPORT __attribute__((visibility("default")))

static CUresult kp_cuGetProcAddress(PFN_cuGetProcAddress_v11030 real, bool ptsz, const char *symbol, void **function,
                                    int version, cuuint64_t flags)
{
    (void)ptsz;
    CUresult rc = real(symbol, function, version, flags);
    if (rc == CUDA_SUCCESS && function && symbol)
        *function = kp_door_wrap_base(symbol, version, flags, *function);
    return rc;
}

static CUresult kp_cuGetProcAddress_v2(PFN_cuGetProcAddress_v12000 real, bool ptsz, const char *symbol, void **function,
                                       int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    (void)ptsz;
    CUresult rc = real(symbol, function, version, flags, status);
    if (rc == CUDA_SUCCESS && function && symbol)
        *function = kp_door_wrap_base(symbol, version, flags, *function);
    return rc;
}

/* Only the protocol of KP_GATED notes what goes on unseen. */
#define KP_DOOR(symbol, ...) _Static_assert(!KP_UNSEEN_##symbol, #symbol " has to be a row KP_GATED");
#define KP_GATED(...)
#include "preload/doors/doors.def"
#undef KP_GATED
#undef KP_DOOR

/* Numbers of the doors. */
enum {
#define KP_DOOR(symbol, base, since, ptsz, logic, type, result, parameters, arguments) DOOR_##symbol,
#include "preload/doors/doors.def"
#undef KP_DOOR
    DOORS
};

/* The driver's function of each door: of the exported one, and of the one returned as a pointer. */
static _Atomic(void *) behind_export[DOORS], behind_pointer[DOORS];

static void *find_exported(int door, const char *symbol)
{
    kp_work_begin();
    void *real = kp_symbols_behind_door(symbol);
    kp_work_end();
    atomic_store(&behind_export[door], real);
    return real;
}

#define WITH(...)         , ##__VA_ARGS__
#define AS(type, pointer) ((type)(uintptr_t)(pointer))

/* A door's first call is a separate function, so that the frame of later calls is small. */
#define KP_DOOR(symbol, base, since, ptsz, logic, type, result, parameters, arguments)                                 \
    static __attribute__((noinline)) result first_##symbol parameters                                                  \
    {                                                                                                                  \
        type real = AS(type, find_exported(DOOR_##symbol, #symbol));                                                   \
        return real ? logic(real, ptsz WITH arguments) : CUDA_ERROR_NOT_INITIALIZED;                                   \
    }                                                                                                                  \
    EXPORT result symbol parameters;                                                                                   \
    result symbol parameters                                                                                           \
    {                                                                                                                  \
        type real = AS(type, atomic_load(&behind_export[DOOR_##symbol]));                                              \
        return real ? logic(real, ptsz WITH arguments) : first_##symbol arguments;                                     \
    }                                                                                                                  \
    static result pointer_##symbol parameters                                                                          \
    {                                                                                                                  \
        return logic(AS(type, atomic_load(&behind_pointer[DOOR_##symbol])), ptsz WITH arguments);                      \
    }
#include "preload/doors/doors.def"
#undef KP_DOOR

static const struct door {
    const char *symbol, *base;
    int since;
    bool ptsz;
    void *function; /* the pointer to return */
} doors[DOORS] = {
#define KP_DOOR(symbol, base, since, ptsz, logic, type, result, parameters, arguments)                                 \
    {#symbol, base, since, ptsz, (void *)(uintptr_t)pointer_##symbol},
#include "preload/doors/doors.def"
#undef KP_DOOR
};

/* Returns door `d` for `real`. A door fronts one function only: a second driver entry point for the same symbol
 * (never seen) is returned bare. */
static void *hand_out(int d, void *real)
{
    void *expected = NULL;
    if (atomic_compare_exchange_strong(&behind_pointer[d], &expected, real) || expected == real)
        return doors[d].function;
    return real;
}

static int door_of_symbol(const char *symbol)
{
    for (int d = 0; d < DOORS; d++)
        if (!strcmp(doors[d].symbol, symbol))
            return d;
    return -1;
}

/* Returns the door of an entry point from cuGetProcAddress: the one whose exported function it is. If the driver's
 * table has functions that are not exported, returns the newest door not newer than requested, of the same flavour. */
static int door_of_base(const char *base, int version, bool ptsz, const void *real)
{
    int best = -1;
    for (int d = 0; d < DOORS; d++) {
        if (strcmp(doors[d].base, base) && strcmp(doors[d].symbol, base))
            continue;
        if (kp_symbols_driver(doors[d].symbol) == real)
            return d;
        bool other_flavour = doors[d].ptsz && !ptsz;
        if (doors[d].since > version || other_flavour)
            continue;
        if (best < 0 || doors[d].ptsz > doors[best].ptsz ||
            (doors[d].ptsz == doors[best].ptsz && doors[d].since > doors[best].since))
            best = d;
    }
    return best;
}

static int compare_rows(const void *a, const void *b)
{
    return strcmp((*(const struct kp_api_row *const *)a)->symbol, (*(const struct kp_api_row *const *)b)->symbol);
}

/* Returns the rows of the interface table sorted by symbol. Threads that build it at the same time build the same
 * table. */
static const struct kp_api_row **rows_by_symbol(void)
{
    static _Atomic(const struct kp_api_row **) made;
    const struct kp_api_row **list = atomic_load(&made), **none = NULL;
    if (list || !(list = malloc(kp_api_rows * sizeof(*list))))
        return list;
    for (size_t i = 0; i < kp_api_rows; i++)
        list[i] = &kp_api[i];
    qsort(list, kp_api_rows, sizeof(*list), compare_rows);
    if (!atomic_compare_exchange_strong(&made, &none, list)) {
        free(list);
        list = none;
    }
    return list;
}

static const struct kp_api_row *row_of_symbol(const char *symbol)
{
    const struct kp_api_row key = {.symbol = symbol}, *wanted = &key;
    const struct kp_api_row **rows = rows_by_symbol();
    const struct kp_api_row **found = rows ? bsearch(&wanted, rows, kp_api_rows, sizeof(*rows), compare_rows) : NULL;
    return found ? *found : NULL;
}

/* Returns the row of a function from cuGetProcAddress. Of several rows under one base name, the bare symbol may be the
 * 32-bit interface from before version 3.2. The rest share one class. */
static const struct kp_api_row *row_of_base(const char *base, int version)
{
    enum { LAST_32_BIT = 3019 };
    const struct kp_api_row *found = NULL;
    for (size_t i = 0; i < kp_api_rows; i++)
        if (!strcmp(kp_api[i].base, base)) {
            found = &kp_api[i];
            if (version <= LAST_32_BIT)
                break;
        }
    return found ? found : row_of_symbol(base);
}

static void *trampoline_of(const struct kp_api_row *row, const char *called, unsigned words, void *real)
{
    return kp_trampoline_for(row->class, called, kp_owned_row(row->symbol), words, real);
}

static void *wrap_symbol(const char *symbol, void *real)
{
    if (!real || kp_guard || kp_elf_is_own(real))
        return real;
    void *door = kp_runtime_wrap(symbol, real);
    if (door || (door = kp_door_wrap_cupti(symbol, real)))
        return door;
    const struct kp_api_row *row = row_of_symbol(symbol);
    if (!row)
        return real; /* not a function of the driver */
    int d = door_of_symbol(symbol);
    return d >= 0 ? hand_out(d, real) : trampoline_of(row, row->symbol, kp_api_stack_words(row->symbol), real);
}

static void *wrap_base(const char *base, int version, uint64_t flags, void *real)
{
    if (!real || kp_guard || kp_elf_is_own(real))
        return real;
    const struct kp_api_row *row = row_of_base(base, version);
    int d = door_of_base(base, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, real);
    if (d >= 0)
        return hand_out(d, real);
    /* A function of a later driver may change anything, so it is gated. */
    return row ? trampoline_of(row, row->base, kp_api_base_words(row->base), real)
               : kp_trampoline_for(KP_CLASS_WORK, "", NULL, kp_api_base_words(NULL), real);
}

void *kp_door_wrap_symbol(const char *symbol, void *real)
{
    kp_work_begin();
    void *door = wrap_symbol(symbol, real);
    kp_work_end();
    return door;
}

void *kp_door_wrap_base(const char *base, int version, uint64_t flags, void *real)
{
    kp_work_begin();
    void *door = wrap_base(base, version, flags, real);
    kp_work_end();
    return door;
}
