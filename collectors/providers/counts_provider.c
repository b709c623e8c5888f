/* Gathers counts by instruction, launch by launch, and stores them in results. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "collectors/providers/provider.h"
#include "report/define/source.h"

long kp_counters_name(struct kp_counters *g, const char *name)
{
    for (size_t i = 0; i < g->n_names; i++)
        if (!strcmp(g->names[i], name))
            return (long)i;
    if (!KP_ROOM(g->names, g->n_names))
        return -1;
    if (!(g->names[g->n_names] = strdup(name)))
        return -1;
    return (long)g->n_names++;
}

void kp_counters_add(struct kp_counters_launch *l, uint64_t code, uint32_t offset, size_t metric, uint64_t value)
{
    if (l->n_counts == l->cap_counts) {
        size_t cap = l->cap_counts ? 2 * l->cap_counts : 256;
        struct kp_counters_count *grown = realloc(l->counts, cap * sizeof(*grown));
        if (!grown) {
            l->short_of_memory = true;
            return;
        }
        l->counts = grown;
        l->cap_counts = cap;
    }
    if (code && code <= UINT32_MAX)
        l->counts[l->n_counts++] = (struct kp_counters_count){(uint32_t)code, offset, (uint32_t)metric, value};
    else
        l->short_of_memory = true;
}

void kp_counters_drop(struct kp_counters_launch *l)
{
    for (size_t s = 0; s < l->n_series; s++)
        kp_series_free(&l->series[s]);
    free(l->series);
    free(l->counts);
    *l = (struct kp_counters_launch){.counts = NULL};
}

/* ---- from counts to a result ---- */

/* The counts of one function in one launch, by metric and offset. */
struct span {
    const struct kp_counters_count *counts;
    size_t n;
};

static int by_place(const void *a, const void *b)
{
    const struct kp_counters_count *x = a, *y = b;
    if (x->code != y->code)
        return x->code < y->code ? -1 : 1;
    if (x->metric != y->metric)
        return x->metric < y->metric ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_offset(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static int by_name(const void *a, const void *b)
{
    const struct kp_code_metric *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int list_offsets(struct kp_code_counts *out, const struct span *s)
{
    out->offsets = malloc(s->n * sizeof(*out->offsets));
    if (!out->offsets)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        out->offsets[i] = s->counts[i].offset;
    qsort(out->offsets, s->n, sizeof(*out->offsets), by_offset);
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!i || out->offsets[i] != out->offsets[kept - 1])
            out->offsets[kept++] = out->offsets[i];
    out->n_offsets = kept;
    return 0;
}

/* Adds the counts of one metric, counts[0..n), sorted by offset. An offset may occur twice. */
static int add_metric(struct kp_code_counts *out, const char *name, const struct kp_counters_count *counts, size_t n)
{
    if (!KP_ROOM(out->metrics, out->n_metrics))
        return -ENOMEM;
    struct kp_code_metric m = {strdup(name), calloc(out->n_offsets, sizeof(*m.values))};
    if (!m.name || !m.values) {
        free(m.name);
        free(m.values);
        return -ENOMEM;
    }
    for (size_t i = 0, at = 0; i < n; i++) {
        while (out->offsets[at] != counts[i].offset)
            at++;
        m.values[at] += counts[i].value;
    }
    out->metrics[out->n_metrics++] = m;
    return 0;
}

/* Instructions executed by spills, by kind. */
static const struct {
    const char *name, *begin, *end;
} spilled[] = {
#define KP_SPILL(name, unit, begin, end) {name, begin, end},
#include "report/define/source_metrics.def"
};

static bool is_spill(const struct kp_instruction *i, const char *begin, const char *end)
{
    if (!i || !i->spill || !i->opcode || strncmp(i->opcode, begin, strlen(begin)))
        return false;
    size_t n = strlen(i->opcode), tail = strlen(end);
    return n >= tail && !strcmp(i->opcode + n - tail, end);
}

/* Adds counts of spills: the compiler marks instructions that spill, the counts show how often they ran. */
static int add_spills(const struct kp_counters *g, struct kp_code_counts *out)
{
    const struct kp_code *code = kp_codes_get(g->codes, out->code);
    const uint64_t *executed = kp_code_counts_find(out, KP_INST_EXECUTED);
    struct kp_counters_count *counts = code && executed ? malloc(out->n_offsets * sizeof(*counts)) : NULL;
    int rc = code && executed && !counts ? -ENOMEM : 0;
    for (size_t k = 0; counts && !rc && k < sizeof(spilled) / sizeof(*spilled); k++) {
        size_t n = 0;
        /* Adding a metric moves the metrics, not their values. */
        for (size_t i = 0; i < out->n_offsets; i++)
            if (executed[i] && is_spill(kp_code_at(code, out->offsets[i]), spilled[k].begin, spilled[k].end))
                counts[n++] = (struct kp_counters_count){.offset = out->offsets[i], .value = executed[i]};
        rc = n ? add_metric(out, spilled[k].name, counts, n) : 0;
    }
    free(counts);
    return rc;
}

static int make_counts(const struct kp_counters *g, const struct span *s, struct kp_code_counts *out)
{
    *out = (struct kp_code_counts){.code = s->counts->code};
    int rc = list_offsets(out, s);
    for (size_t from = 0, to; !rc && from < s->n; from = to) {
        for (to = from; to < s->n && s->counts[to].metric == s->counts[from].metric;)
            to++;
        rc = add_metric(out, g->names[s->counts[from].metric], s->counts + from, to - from);
    }
    if (!rc)
        rc = add_spills(g, out);
    if (rc)
        kp_code_counts_free(out);
    else
        qsort(out->metrics, out->n_metrics, sizeof(*out->metrics), by_name);
    return rc;
}

int kp_counters_store_counts(const struct kp_counters *g, struct kp_counters_launch *l, struct kp_result *r)
{
    int rc = 0;
    if (l->n_counts)
        qsort(l->counts, l->n_counts, sizeof(*l->counts), by_place);
    for (size_t from = 0, to; !rc && from < l->n_counts; from = to) {
        struct kp_code_counts counts;
        for (to = from; to < l->n_counts && l->counts[to].code == l->counts[from].code;)
            to++;
        const struct span s = {l->counts + from, to - from};
        rc = make_counts(g, &s, &counts);
        if (!rc && (rc = kp_result_add_counts(r, &counts)))
            kp_code_counts_free(&counts);
    }
    return rc;
}
