#include "preload/contexts/ranges.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"

static struct kp_range_open open_one;
static atomic_uint_fast64_t id;
static _Atomic(enum kp_reason) why_not;
static _Atomic(CUcontext) counted_in;
static atomic_uint_fast64_t launches, graphs;
static bool counters_on;
static enum kp_reason outside = KP_REASON_NO_RANGE;

void kp_ranges_configure(const struct kp_options *o)
{
    outside = o->only_timeline ? KP_REASON_TIMELINE : *o->nvtx_include ? KP_REASON_NVTX : KP_REASON_NO_RANGE;
}

uint64_t kp_ranges_id(void)
{
    return atomic_load(&id);
}

enum kp_reason kp_ranges_why(void)
{
    return kp_ranges_id() ? atomic_load(&why_not) : outside;
}

static void forget(void)
{
    free(open_one.name);
    kp_nvtx_free(&open_one.nvtx);
    open_one = (struct kp_range_open){.name = NULL};
}

void kp_ranges_begin(uint64_t new_id, const char *name, struct kp_nvtx *nvtx, enum kp_reason why)
{
    forget();
    open_one.name = kp_strdup(name);
    open_one.nvtx = *nvtx;
    *nvtx = (struct kp_nvtx){.ranges = NULL};
    atomic_store(&why_not, why);
    atomic_store(&launches, 0);
    atomic_store(&graphs, 0);
    atomic_store(&id, new_id);
}

struct kp_range_open *kp_ranges_open(void)
{
    return &open_one;
}

void kp_ranges_cut(enum kp_reason why)
{
    atomic_store(&why_not, why);
}

void kp_ranges_end(void)
{
    atomic_store(&id, 0);
    forget();
}

void kp_ranges_count_in(CUcontext ctx, bool counts)
{
    counters_on = counts;
    atomic_store(&counted_in, ctx);
}

bool kp_ranges_counts(void)
{
    return counters_on;
}

CUcontext kp_ranges_context(void)
{
    return atomic_load(&counted_in);
}

void kp_ranges_launched(bool is_graph)
{
    atomic_fetch_add(&launches, 1);
    if (is_graph)
        atomic_fetch_add(&graphs, 1);
}

struct kp_ranges_tally kp_ranges_tally(void)
{
    return (struct kp_ranges_tally){atomic_load(&launches), atomic_load(&graphs)};
}
