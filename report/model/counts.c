#include "report/model/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- two launches in one function ---- */

/* Returns the offsets of both, ascending, each once; malloc'ed. */
static uint32_t *all_offsets(const struct kp_code_counts *a, const struct kp_code_counts *b, size_t *n)
{
    uint32_t *all = calloc(a->n_offsets + b->n_offsets + 1, sizeof *all);
    size_t i = 0, k = 0;
    *n = 0;
    while (all && (i < a->n_offsets || k < b->n_offsets)) {
        bool of_a = k == b->n_offsets || (i < a->n_offsets && a->offsets[i] <= b->offsets[k]);
        uint32_t offset = of_a ? a->offsets[i] : b->offsets[k];
        i += i < a->n_offsets && a->offsets[i] == offset;
        k += k < b->n_offsets && b->offsets[k] == offset;
        all[(*n)++] = offset;
    }
    return all;
}

/* Spreads the values of `c` over more offsets. */
static int spread(struct kp_code_counts *c, const uint32_t *offsets, size_t n)
{
    for (size_t m = 0; m < c->n_metrics; m++) {
        uint64_t *values = calloc(n + 1, sizeof *values);
        if (!values)
            return -ENOMEM;
        for (size_t i = 0, k = 0; k < c->n_offsets && i < n; i++)
            if (offsets[i] == c->offsets[k])
                values[i] = c->metrics[m].values[k++];
        free(c->metrics[m].values);
        c->metrics[m].values = values;
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kp_code_metric *)a)->name, ((const struct kp_code_metric *)b)->name);
}

static bool is_sampled(const char *metric)
{
    return !strncmp(metric, KP_SAMPLED_WARPS, strlen(KP_SAMPLED_WARPS));
}

/* Moves a metric, or adds its samples to those that `c` has. */
static void take_metric(struct kp_code_counts *c, struct kp_code_metric *from)
{
    uint64_t *known = (uint64_t *)kp_code_counts_find(c, from->name);
    for (size_t i = 0; known && is_sampled(from->name) && i < c->n_offsets; i++)
        known[i] += from->values[i];
    if (known)
        return;
    c->metrics[c->n_metrics++] = *from;
    *from = (struct kp_code_metric){0};
    qsort(c->metrics, c->n_metrics, sizeof *c->metrics, by_name);
}

static int take_function(struct kp_code_counts *c, struct kp_code_counts *from)
{
    size_t n;
    uint32_t *offsets = all_offsets(c, from, &n);
    struct kp_code_metric *grown = realloc(c->metrics, (c->n_metrics + from->n_metrics + 1) * sizeof *grown);
    if (grown)
        c->metrics = grown;
    int rc = offsets && grown ? spread(c, offsets, n) : -ENOMEM;
    if (!rc)
        rc = spread(from, offsets, n);
    if (rc) {
        free(offsets);
        return rc;
    }
    free(c->offsets);
    c->offsets = offsets;
    c->n_offsets = n;
    for (size_t m = 0; m < from->n_metrics; m++)
        take_metric(c, &from->metrics[m]);
    return 0;
}

int kp_counts_take(struct kp_result *r, struct kp_code_counts *from)
{
    size_t k = 0;
    while (k < r->n_counts && r->counts[k].code != from->code)
        k++;
    return k < r->n_counts ? take_function(&r->counts[k], from) : kp_result_add_counts(r, from);
}

/* ---- two launches ---- */

/* Numbers of one launch that say how much of it was gathered. */
static const char *const gathered[] = {"smsp__pcsamp_sample_count", "smsp__pcsamp_dropped_samples", KP_SAMPLED_LAUNCHES,
                                       "profiler__pmsampler_dropped_samples"};

static int add_gathered(struct kp_result *r, const struct kp_result *from)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof gathered / sizeof *gathered; i++) {
        const struct kp_metric *a = kp_result_find(r, gathered[i]), *b = kp_result_find(from, gathered[i]);
        if (a && b && a->kind == KP_VALUE_COUNT && b->kind == KP_VALUE_COUNT)
            rc = kp_result_set_count(r, gathered[i], b->unit, a->count + b->count);
    }
    return rc;
}

void kp_counts_forget(struct kp_result *r)
{
    for (size_t i = 0; i < sizeof gathered / sizeof *gathered; i++)
        kp_result_remove(r, gathered[i]);
}

/* Returns true if instructions of the launch were counted, not only sampled. */
static bool is_counted(const struct kp_result *r)
{
    for (size_t k = 0; k < r->n_counts; k++)
        for (size_t m = 0; m < r->counts[k].n_metrics; m++)
            if (!is_sampled(r->counts[k].metrics[m].name))
                return true;
    return false;
}

static void drop_counted(struct kp_code_counts *c)
{
    size_t left = 0;
    for (size_t m = 0; m < c->n_metrics; m++) {
        if (is_sampled(c->metrics[m].name)) {
            c->metrics[left++] = c->metrics[m];
            continue;
        }
        free(c->metrics[m].name);
        free(c->metrics[m].values);
    }
    c->n_metrics = left;
}

int kp_counts_add_launch(struct kp_result *r, struct kp_result *from)
{
    bool counted = is_counted(r);
    int rc = add_gathered(r, from);
    for (size_t k = 0; !rc && k < from->n_counts; k++) {
        if (counted)
            drop_counted(&from->counts[k]);
        if (from->counts[k].n_metrics)
            rc = kp_counts_take(r, &from->counts[k]);
    }
    for (size_t i = 0; !rc && i < from->n_series; i++)
        if (!kp_result_find_series(r, from->series[i].name))
            rc = kp_result_add_series(r, &from->series[i]);
    return rc;
}

/* ---- copies ---- */

static int copy_counts(const struct kp_code_counts *c, struct kp_result *out)
{
    struct kp_code_counts copy = {.code = c->code, .n_offsets = c->n_offsets};
    copy.offsets = malloc((c->n_offsets + 1) * sizeof *copy.offsets);
    copy.metrics = calloc(c->n_metrics + 1, sizeof *copy.metrics);
    int rc = copy.offsets && copy.metrics ? 0 : -ENOMEM;
    if (!rc)
        memcpy(copy.offsets, c->offsets, c->n_offsets * sizeof *copy.offsets);
    for (; !rc && copy.n_metrics < c->n_metrics; copy.n_metrics++) {
        const struct kp_code_metric *m = &c->metrics[copy.n_metrics];
        struct kp_code_metric *to = &copy.metrics[copy.n_metrics];
        to->name = strdup(m->name);
        to->values = malloc((c->n_offsets + 1) * sizeof *to->values);
        if (to->values)
            memcpy(to->values, m->values, c->n_offsets * sizeof *to->values);
        rc = to->name && to->values ? 0 : -ENOMEM;
    }
    if (!rc)
        rc = kp_result_add_counts(out, &copy);
    if (rc)
        kp_code_counts_free(&copy);
    return rc;
}

static int copy_series(const struct kp_series *s, struct kp_result *out)
{
    struct kp_series copy = *s;
    copy.name = strdup(s->name);
    copy.unit = strdup(s->unit);
    copy.values = malloc((s->n_values + 1) * sizeof *copy.values);
    int rc = copy.name && copy.unit && copy.values ? 0 : -ENOMEM;
    if (!rc) {
        memcpy(copy.values, s->values, s->n_values * sizeof *copy.values);
        rc = kp_result_add_series(out, &copy);
    }
    if (rc)
        kp_series_free(&copy);
    return rc;
}

int kp_counts_copy(const struct kp_result *r, struct kp_result *out)
{
    int rc = 0;
    for (size_t k = 0; !rc && k < r->n_counts; k++)
        rc = copy_counts(&r->counts[k], out);
    for (size_t i = 0; !rc && i < r->n_series; i++)
        rc = copy_series(&r->series[i], out);
    return rc;
}
