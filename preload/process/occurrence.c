#include "preload/process/occurrence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pattern.h"
#include "preload/who/nvtx.h"
#include "report/options/range_filter.h"

static struct {
    bool asked;
    struct kp_range_filter filter;
    atomic_uint_fast64_t starts, nvtx; /* ranges so far */
    atomic_bool is_open;               /* the last start has not been stopped */
} counted;

/* The outermost NVTX range of the thread that is wanted. */
static __thread struct {
    uint64_t id, number; /* 0 = none */
} own;

/* The id of a range that began before CUDA was there; its end is not seen. */
static const uint64_t early = UINT64_MAX;

int kp_occurrence_configure(const struct kp_options *o)
{
    char *err = NULL;
    counted.asked = *o->range_filter;
    int rc = counted.asked ? kp_option_numbers_read(o->range_filter, &counted.filter, &err) : 0;
    free(err);
    return rc;
}

void kp_occurrence_profile(bool on)
{
    atomic_store(&counted.is_open, on);
    if (on)
        atomic_fetch_add(&counted.starts, 1);
    if (on && counted.filter.anew)
        atomic_store(&counted.nvtx, 0);
}

void kp_occurrence_edge(uint64_t id, bool begins)
{
    struct kp_nvtx nvtx = {.ranges = NULL};
    if (!counted.asked || (begins ? own.id && own.id != early : own.id != id))
        return;
    if (begins && kp_nvtx_judge(NULL, &nvtx) && (own.id != early || nvtx.n_ranges == 1)) {
        own.id = id;
        own.number = atomic_fetch_add(&counted.nvtx, 1) + 1;
    } else if (!begins) {
        own.id = 0;
    }
    kp_nvtx_free(&nvtx);
}

static bool has(const struct kp_pattern *numbers, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return !numbers || kp_pattern_match(numbers, text);
}

bool kp_occurrence_wanted(void)
{
    if (!counted.asked)
        return true;
    if (counted.filter.starts && !atomic_load(&counted.is_open))
        return false;
    uint64_t none = 0;
    if (counted.filter.nvtx && !own.id && atomic_compare_exchange_strong(&counted.nvtx, &none, 1)) {
        own.id = early;
        own.number = 1;
    }
    /* a range of another thread is the last one that began */
    return has(counted.filter.starts, atomic_load(&counted.starts)) &&
           has(counted.filter.nvtx, own.id ? own.number : atomic_load(&counted.nvtx));
}
