/*
 * Maps that the program makes in an open window, of memory that was never mapped before
 * (preload/program/unmapped_ranges.h). They count once the program gives the device access: then they are new memory,
 * like an allocation. Unmapping closes the window, so the addresses of such a map had no memory when it opened.
 */
#include <stdlib.h>

#include "base/lock.h"
#include "preload/program/unmapped_ranges.h"
#include "preload/gate/window_facts.h"
#include "preload/journal/record.h"

static struct kp_journal *const j = &kp_journal_now;

/* Returns true if the window can follow what the current context does. Other contexts may reach shared memory in other
 * ways. */
static bool follows(const struct kp_context_setup *setup)
{
    return j->open && kp_record_is_here(j, setup->driver) && !kp_flags_met(KP_MET_SHARED);
}

bool kp_journal_takes_mapping(const struct kp_context_setup *setup, const uint64_t *args)
{
    uint64_t offset = args[2], memory = args[3], flags = args[4];
    return follows(setup) && !offset && !flags && kp_fresh_is(memory, j->context->device_ordinal);
}

bool kp_journal_mapped(CUdeviceptr at, size_t bytes)
{
    if (!j->open)
        return true;
    struct kp_fresh_map *grown = realloc(j->maps, (j->n_maps + 1) * sizeof(*grown));
    if (!grown)
        return false;
    j->maps = grown;
    grown[j->n_maps++] = (struct kp_fresh_map){at, bytes};
    return true;
}

static bool is_inside(const struct kp_fresh_map *m, CUdeviceptr at, size_t bytes)
{
    return m->at >= at && m->at - at < bytes && m->bytes <= bytes - (m->at - at);
}

/* Returns true if all of a range was mapped in the window, and nobody has access to any of it. Maps never overlap. */
static bool is_fresh(CUdeviceptr at, size_t bytes)
{
    size_t sum = 0;
    for (size_t k = 0; k < j->n_maps; k++)
        sum += is_inside(&j->maps[k], at, bytes) ? j->maps[k].bytes : 0;
    return bytes && sum == bytes;
}

bool kp_journal_takes_access(const struct kp_context_setup *setup, const uint64_t *args)
{
    const CUmemAccessDesc *a = (const CUmemAccessDesc *)(uintptr_t)args[2];
    return follows(setup) && a && args[3] == 1 && a->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           a->location.id == j->context->device_ordinal && a->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE &&
           is_fresh(args[0], args[1]);
}

void kp_journal_accessible(CUdeviceptr at, size_t bytes)
{
    size_t kept = 0;
    for (size_t k = 0; j->open && k < j->n_maps; k++)
        if (!is_inside(&j->maps[k], at, bytes))
            j->maps[kept++] = j->maps[k];
    j->n_maps = kept;
}
