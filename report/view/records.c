#include "report/view/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An activity, by when it began on the thread. */
struct event {
    const struct kp_activity *at;
    int64_t ns;
};

static int by_event_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->ns != y->ns)
        return (x->ns > y->ns) - (x->ns < y->ns);
    return (x->at->kind == KP_ACTIVITY_KERNEL) - (y->at->kind == KP_ACTIVITY_KERNEL); /* a range includes its begin */
}

/* Adds those of the open ranges that are of the thread and have not ended, the outermost first. */
static int add_ranges(const struct kp_timeline *t, struct kp_nvtx *to, const struct event *kernel,
                      const struct kp_activity *const *open, size_t n)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        char *name = (char *)(uintptr_t)kp_timeline_name(t, open[i]), none[] = ""; /* which are copied */
        if (open[i]->thread == kernel->at->thread)
            rc = kp_nvtx_add(to, &(struct kp_nvtx_range){.kind = KP_NVTX_PUSH_POP,
                                                         .domain = none,
                                                         .name = name,
                                                         .category = none,
                                                         .payload = none,
                                                         .thread = open[i]->thread});
    }
    return rc;
}

/* Drops the ranges that ended before. Returns how many are left. */
static size_t close_ranges(const struct kp_activity **open, size_t n, int64_t ns)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (open[i]->end_ns >= ns)
            open[left++] = open[i];
    return left;
}

static int hand_on(const struct kp_timeline *t, const struct event *e, const struct kp_activity *const *open, size_t n,
                   uint64_t id, int (*fn)(struct kp_result *r, void *arg), void *arg)
{
    const struct kp_activity *a = e->at;
    struct kp_result r = {.launch = {.id = id,
                                     .ordinal = id,
                                     .demangled = kp_strdup(kp_timeline_name(t, a)),
                                     .mangled = kp_strdup(kp_timeline_name(t, a)),
                                     .context_id = a->context_id,
                                     .stream_id = a->stream_id,
                                     .device = a->device,
                                     .nvtx.thread = a->thread}};
    memcpy(r.launch.grid, a->grid, sizeof a->grid);
    memcpy(r.launch.block, a->block, sizeof a->block);
    int rc = r.launch.demangled && r.launch.mangled ? 0 : -ENOMEM;
    if (!rc)
        rc = kp_result_set_real(&r, "gpu__time_duration.sum", "ns", (double)(a->end_ns - a->start_ns));
    if (!rc)
        rc = add_ranges(t, &r.launch.nvtx, e, open, n);
    if (!rc)
        rc = fn(&r, arg);
    kp_result_free(&r);
    return rc;
}

int kp_records_each(const struct kp_timeline *t, int (*fn)(struct kp_result *r, void *arg), void *arg)
{
    struct event *events = calloc(t->n + 1, sizeof *events);
    const struct kp_activity **open = calloc(t->n + 1, sizeof *open);
    size_t n = 0, n_open = 0;
    uint64_t id = 0;
    int rc = events && open ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < t->n; i++)
        if (t->at[i].kind == KP_ACTIVITY_KERNEL || t->at[i].kind == KP_ACTIVITY_RANGE) {
            bool is_launch = t->at[i].kind == KP_ACTIVITY_KERNEL && t->at[i].launched_ns;
            events[n++] = (struct event){&t->at[i], is_launch ? t->at[i].launched_ns : t->at[i].start_ns};
        }
    if (n)
        qsort(events, n, sizeof *events, by_event_time);
    for (size_t i = 0; !rc && i < n; i++) {
        n_open = close_ranges(open, n_open, events[i].ns);
        if (events[i].at->kind == KP_ACTIVITY_RANGE)
            open[n_open++] = events[i].at;
        else
            rc = hand_on(t, &events[i], open, n_open, id++, fn, arg);
    }
    free(open);
    free(events);
    return rc;
}
