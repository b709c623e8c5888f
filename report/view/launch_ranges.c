#include "report/view/launch_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "report/model/launch_names.h"

/* --- the timeline --- */

static int by_ordinal(const void *a, const void *b)
{
    const struct kp_activity *x = *(const struct kp_activity *const *)a, *y = *(const struct kp_activity *const *)b;
    return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static int by_thread(const void *a, const void *b, void *line)
{
    const struct kp_activity *all = ((const struct kp_timeline *)line)->at;
    const struct kp_nested_range *x = a, *y = b;
    if (all[x->at].thread != all[y->at].thread)
        return all[x->at].thread < all[y->at].thread ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at); /* the timeline is sorted by start */
}

/* Finds the range around each: the last one before that has not ended yet. */
static void nest(struct kp_launch_ranges *r)
{
    for (size_t i = 1; i < r->n_ranges; i++) {
        const struct kp_activity *own = &r->line.at[r->ranges[i].at];
        size_t around = i; /* the number of the one before, + 1 */
        while (around) {
            const struct kp_activity *a = &r->line.at[r->ranges[around - 1].at];
            if (a->thread == own->thread && a->end_ns > own->start_ns)
                break;
            around = a->thread == own->thread ? r->ranges[around - 1].around : 0;
        }
        r->ranges[i].around = around;
    }
}

static int load(struct kp_launch_ranges *r, const struct kp_lookup *lookup)
{
    int rc = kp_lookup_timeline(lookup, &r->line);
    r->is_loaded = rc != -ENOMEM;
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    r->kernels = calloc(r->line.n + 1, sizeof *r->kernels);
    r->ranges = calloc(r->line.n + 1, sizeof *r->ranges);
    if (!r->kernels || !r->ranges)
        return -ENOMEM;
    for (size_t i = 0; i < r->line.n; i++) {
        const struct kp_activity *a = &r->line.at[i];
        if (a->kind == KP_ACTIVITY_KERNEL && a->ordinal >= 0)
            r->kernels[r->n_kernels++] = a;
        if (a->kind == KP_ACTIVITY_RANGE && a->thread)
            r->ranges[r->n_ranges++].at = i;
    }
    if (r->n_kernels)
        qsort(r->kernels, r->n_kernels, sizeof *r->kernels, by_ordinal);
    if (r->n_ranges)
        qsort_r(r->ranges, r->n_ranges, sizeof *r->ranges, by_thread, &r->line);
    nest(r);
    return 0;
}

/* Returns the kernel of that launch, or NULL. */
static const struct kp_activity *kernel_of(const struct kp_launch_ranges *r, uint64_t ordinal)
{
    const struct kp_activity key = {.ordinal = (int64_t)ordinal}, *wanted = &key;
    const struct kp_activity **found = NULL;
    if (r->n_kernels)
        found = bsearch(&wanted, r->kernels, r->n_kernels, sizeof *r->kernels, by_ordinal);
    return found ? *found : NULL;
}

/* Returns the number of the last range of the thread that began by then, + 1; 0: none. */
static size_t last_begun(const struct kp_launch_ranges *r, uint64_t thread, int64_t ns)
{
    size_t low = 0, high = r->n_ranges;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct kp_activity *a = &r->line.at[r->ranges[middle].at];
        if (a->thread < thread || (a->thread == thread && a->start_ns <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low && r->line.at[r->ranges[low - 1].at].thread == thread ? low : 0;
}

/* --- names --- */

static int add(struct kp_range_names *names, const char *name)
{
    if (!KP_ROOM(names->at, names->n))
        return -ENOMEM;
    names->at[names->n++] = *name ? name : kp_range_nameless;
    return 0;
}

static void turn(struct kp_range_names *names)
{
    for (size_t i = 0; i < names->n / 2; i++) {
        const char *last = names->at[names->n - 1 - i];
        names->at[names->n - 1 - i] = names->at[i];
        names->at[i] = last;
    }
}

static int find_in_timeline(const struct kp_launch_ranges *r, uint64_t ordinal, struct kp_range_names *out)
{
    const struct kp_activity *kernel = kernel_of(r, ordinal);
    int rc = 0;
    if (!kernel || !kernel->thread || !kernel->launched_ns)
        return 0;
    size_t number = last_begun(r, kernel->thread, kernel->launched_ns);
    for (; !rc && number; number = r->ranges[number - 1].around) {
        const struct kp_activity *a = &r->line.at[r->ranges[number - 1].at];
        if (a->end_ns >= kernel->launched_ns)
            rc = add(out, kp_timeline_name(&r->line, a));
    }
    turn(out);
    return rc;
}

int kp_launch_ranges_find(struct kp_launch_ranges *r, const struct kp_lookup *lookup, const struct kp_launch_info *l,
                          struct kp_range_names *out)
{
    const struct kp_nvtx *n = &l->nvtx;
    int rc = 0;
    *out = (struct kp_range_names){0};
    for (size_t i = 0; !rc && i < n->n_ranges; i++)
        if (n->ranges[i].kind == KP_NVTX_PUSH_POP && n->ranges[i].thread == n->thread)
            rc = add(out, n->ranges[i].name);
    if (!rc && !n->n_ranges) {
        rc = r->is_loaded ? 0 : load(r, lookup);
        rc = rc ? rc : find_in_timeline(r, l->ordinal, out);
    }
    if (!rc)
        return 0;
    free(out->at);
    *out = (struct kp_range_names){0};
    return rc;
}

void kp_launch_ranges_free(struct kp_launch_ranges *r)
{
    kp_timeline_free(&r->line);
    free(r->kernels);
    free(r->ranges);
    *r = (struct kp_launch_ranges){0};
}
