/* Stores the values that a window's passes have gathered in results. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/providers/library.h"
#include "collectors/providers/provider.h"

/* ---- lost values ---- */

struct missing {
    struct kp_result *r;
    struct kp_why why;
};

static int mark_missing(const char *metric, void *arg)
{
    const struct missing *m = arg;
    bool there = kp_result_find(m->r, metric) || kp_result_find_series(m->r, metric);
    return there ? 0 : kp_result_set_why(m->r, metric, m->why);
}

int kp_counters_mark(const struct kp_providers_setup *setup, const struct kp_provider *p, struct kp_why why,
                     struct kp_result *r)
{
    struct missing m = {r, why};
    return kp_providers_each_asked(setup, p->bit, mark_missing, &m);
}

static int store_losses(const struct kp_counters *g, size_t result, struct kp_result *r)
{
    const struct kp_counters_launch *l = &g->launches[result];
    int rc = l->lost ? kp_counters_mark(g->setup, l->lost, kp_why_of(l->why, NULL), r) : 0;
    for (size_t k = 0; !rc && g->rows && g->rows[k]; k++)
        if (g->lost[k].why.reason && result >= g->lost[k].first)
            rc = kp_counters_mark(g->setup, g->rows[k], g->lost[k].why, r);
    return rc;
}

struct kp_why kp_counters_lost(const struct kp_counters *g, size_t result)
{
    if (!g->only)
        return kp_why_of(KP_REASON_NONE, NULL);
    for (size_t k = 0; g->rows[k]; k++)
        if (g->rows[k] == g->only && g->lost[k].why.reason && result >= g->lost[k].first)
            return g->lost[k].why;
    return kp_why_of(result < g->n_launches ? KP_REASON_NONE : KP_REASON_OUT_OF_MEMORY, NULL);
}

int kp_counters_store(const struct kp_counters *g, size_t result, struct kp_result *r)
{
    if (result >= g->n_launches)
        return 0;
    struct kp_counters_launch *l = &g->launches[result];
    int rc = l->short_of_memory ? -ENOMEM : kp_counters_store_counts(g, l, r);
    for (size_t k = 0; !rc && g->rows && g->rows[k]; k++)
        if (g->rows[k]->store)
            rc = g->rows[k]->store(g, l, r);
    return rc ? rc : store_losses(g, result, r);
}

struct kp_why kp_counters_evaluate(struct kp_counters *g, struct kp_result *const *results)
{
    int rc = 0;
    for (size_t k = 0; g->rows[k]; k++) {
        int one = g->of[k] && g->rows[k]->evaluate ? g->rows[k]->evaluate(g->of[k], results) : 0;
        if (!rc)
            rc = one;
    }
    for (size_t i = 0; i < g->n_launches; i++) {
        int one = kp_counters_store(g, i, results[i]);
        if (!rc)
            rc = one;
    }
    return rc ? kp_library_explain(g->setup->cupti, KP_REASON_NOT_EVALUATED, rc) : kp_why_of(KP_REASON_NONE, NULL);
}

bool kp_counters_any(const struct kp_counters *g)
{
    return g->any;
}

void kp_counters_free(struct kp_counters *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n_launches; i++)
        kp_counters_drop(&g->launches[i]);
    free(g->launches);
    for (size_t i = 0; i < g->n_names; i++)
        free(g->names[i]);
    free(g->names);
    for (size_t k = 0; k < KP_PROVIDERS_MOST; k++) {
        kp_why_free(&g->lost[k].why);
        if (g->of[k])
            g->rows[k]->free(g->of[k]);
    }
    free(g);
}
