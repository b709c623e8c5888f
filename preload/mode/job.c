#include "preload/mode/job.h"

#include <stdlib.h>

#include "base/lock.h"
#include "preload/rotation/rotation.h"
#include "preload/results/probe.h"
#include "preload/mode/rotate.h"

/* Lists the launches that are issued again; *n receives their number. */
static bool *launches_wanted(const struct kp_window *w, size_t *n)
{
    bool *list = calloc(w->launches + 1, sizeof(*list));
    *n = 0;
    for (size_t k = 0; list && k < w->end; k++)
        if (w->items[k].is_launch)
            list[(*n)++] = w->items[k].result != NULL;
    return list;
}

struct kp_job kp_job_make(struct kp_window *w)
{
    size_t n;
    struct kp_job j = {.wanted = launches_wanted(w, &n)};
    struct kp_executed *records = calloc(w->launches + 1, sizeof(*records));
    bool probe = records && kp_probe_wanted(w);
    if (probe)
        kp_probe_mark(w);
    j.job = (struct kp_window_job){.mode = w->mode,
                                   .wanted = j.wanted,
                                   .n_launches = n,
                                   .executed = records,
                                   .probe = probe,
                                   .stays = w->rotates && !w->setup->falls_back &&
                                            kp_rotation_goes_on(w->context->rotation, KP_ROTATE_FAR)};
    return j;
}

void kp_job_free(struct kp_job *j)
{
    free(j->wanted);
    free(j->job.executed);
}

void kp_job_failed(struct kp_window *w, struct kp_window_outcome *out)
{
    w->context->dead = true;
    kp_collector_leave(w->context->collector);
    out->note = kp_strdup("a kernel of the window failed");
}

void kp_job_unended(struct kp_window *w, const char *why)
{
    w->hangs = true;
    if (!w->context->no_counters)
        w->context->no_counters = kp_strdup(why);
}
