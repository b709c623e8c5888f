/*
 * Maps that the program makes in an open window, of memory that was never mapped before
 * (preload/program/unmapped_ranges.h). Nothing is there until the program gives the device access: then it is new
 * memory, as that of an allocation. Unmapping closes the window, so that the addresses of such a map had no memory when
 * it opened.
 */
#include <stdlib.h>

#include "base/lock.h"
#include "preload/program/unmapped_ranges.h"
#include "preload/gate/window_facts.h"
#include "preload/journal/record.h"
#include "preload/mode/window.h"

static struct kp_window *const w = &kp_window_now;

/* Whether the window can follow what the current context does. Others may reach shared memory in other ways. */
static bool follows(const struct kp_context_setup *setup)
{
    return w->open && kp_record_is_here(w, setup->driver) && !kp_flags_met(KP_MET_SHARED);
}

bool kp_window_takes_mapping(const struct kp_context_setup *setup, const uint64_t *args)
{
    uint64_t offset = args[2], memory = args[3], flags = args[4];
    return follows(setup) && !offset && !flags && kp_fresh_is(memory, w->context->device_ordinal);
}

void kp_window_mapped(const char *symbol, CUdeviceptr at, size_t bytes)
{
    if (!w->open)
        return;
    struct kp_fresh_map *grown = realloc(w->maps, (w->n_maps + 1) * sizeof(*grown));
    if (grown) {
        w->maps = grown;
        grown[w->n_maps++] = (struct kp_fresh_map){at, bytes};
    }
    if (!grown)
        kp_window_close(symbol);
}

static bool is_inside(const struct kp_fresh_map *m, CUdeviceptr at, size_t bytes)
{
    return m->at >= at && m->at - at < bytes && m->bytes <= bytes - (m->at - at);
}

/* Whether all of a range was mapped in the window, and nobody has access to any of it. Maps never overlap. */
static bool is_fresh(CUdeviceptr at, size_t bytes)
{
    size_t sum = 0;
    for (size_t k = 0; k < w->n_maps; k++)
        sum += is_inside(&w->maps[k], at, bytes) ? w->maps[k].bytes : 0;
    return bytes && sum == bytes;
}

bool kp_window_takes_access(const struct kp_context_setup *setup, const uint64_t *args)
{
    const CUmemAccessDesc *a = (const CUmemAccessDesc *)(uintptr_t)args[2];
    return follows(setup) && a && args[3] == 1 && a->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           a->location.id == w->context->device_ordinal && a->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE &&
           is_fresh(args[0], args[1]);
}

void kp_window_not_granted(CUdeviceptr at, size_t bytes)
{
    size_t kept = 0;
    for (size_t k = 0; w->open && k < w->n_maps; k++)
        if (!is_inside(&w->maps[k], at, bytes))
            w->maps[kept++] = w->maps[k];
    w->n_maps = kept;
}

void kp_window_granted(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr at, size_t bytes)
{
    kp_window_not_granted(at, bytes);
    kp_window_allocated(setup, symbol, at, bytes, false);
}
