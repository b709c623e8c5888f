#include "preload/mode/job.h"

#include <stdlib.h>

#include "base/lock.h"
#include "preload/rotation/rotation.h"
#include "preload/results/probe.h"
#include "preload/mode/rotate.h"

/* Lists the launches that are issued again; *n receives their number. */
static bool *launches_wanted(const struct kp_journal_facts *j, size_t *n)
{
    bool *list = calloc(j->launches + 1, sizeof(*list));
    *n = 0;
    for (size_t k = 0; list && k < j->repeated; k++) {
        const struct kp_entry *e = kp_journal_entry(k);
        if (e)
            list[(*n)++] = e->result != NULL;
    }
    return list;
}

struct kp_job kp_job_make(const struct kp_window *w)
{
    const struct kp_journal_facts facts = kp_journal_facts();
    size_t n;
    struct kp_job j = {.wanted = launches_wanted(&facts, &n)};
    struct kp_executed *records = calloc(facts.launches + 1, sizeof(*records));
    bool probe = records && kp_probe_wanted(w->setup);
    if (probe)
        kp_probe_mark();
    j.job = (struct kp_window_job){.mode = w->mode,
                                   .wanted = j.wanted,
                                   .n_launches = n,
                                   .executed = records,
                                   .probe = probe,
                                   .stays = kp_mode_recurs(w->setup->mode) &&
                                            kp_rotation_goes_on(w->context->rotation, KP_ROTATE_FAR)};
    return j;
}

struct kp_job kp_job_of_whole(const struct kp_window *w)
{
    struct kp_job j = {.wanted = malloc(sizeof(*j.wanted))};
    if (j.wanted)
        *j.wanted = true;
    j.job = (struct kp_window_job){.mode = w->mode, .wanted = j.wanted, .n_launches = 1};
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
    out->why = kp_why_of(KP_REASON_KERNEL_FAILED, NULL);
}

void kp_job_unended(struct kp_window *w, enum kp_reason why)
{
    kp_journal_hangs();
    if (!w->context->no_counters.reason)
        w->context->no_counters = kp_why_of(why, NULL);
}
