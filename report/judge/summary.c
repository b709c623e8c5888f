#include "report/judge/summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "report/judge/verdict.h"
#include "report/model/launch_names.h"

enum {
    BOUNDS_MAX = 8, /* most kinds of bound kept of one kernel: more than its launches have */
    RULES_MAX = 64, /* the most bits of a kp_rule_choice */
};

struct bound {
    char what[KP_BOUND_NAME_MAX];
    double weight; /* time, or launches if no launch has a time */
};

struct kernel {
    char *name;
    size_t range;             /* length of the NVTX range in the name, see kp_launch_range_length */
    bool is_text;             /* a graph or a range */
    uint64_t launches, timed; /* timed: those whose duration is known */
    double ns;
    struct bound bounds[BOUNDS_MAX];
    double saved[RULES_MAX]; /* by rules of the table, firm and for the whole kernel: ns of all launches */
};

/* An entry of a sorted list. */
struct entry {
    struct kernel *kernel;
};

struct kp_summary {
    struct entry *kernels; /* by name */
    size_t n;
    const struct kp_section *sections[RULES_MAX]; /* of rules with messages */
    uint64_t launches, timed;
    double ns;
};

struct kp_summary *kp_summary_new(void)
{
    return calloc(1, sizeof(struct kp_summary));
}

void kp_summary_free(struct kp_summary *s)
{
    for (size_t i = 0; s && i < s->n; i++) {
        free(s->kernels[i].kernel->name);
        free(s->kernels[i].kernel);
    }
    free(s ? s->kernels : NULL);
    free(s);
}

/* Returns the index of `name`, or its place to insert. */
static size_t place(const struct kp_summary *s, const char *name)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(s->kernels[middle].kernel->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct kernel *insert(struct kp_summary *s, size_t at, const char *name)
{
    struct kernel *k = calloc(1, sizeof *k);
    if (!k || !(k->name = kp_strdup(name)) || !KP_ROOM(s->kernels, s->n)) {
        free(k ? k->name : NULL);
        free(k);
        return NULL;
    }
    memmove(&s->kernels[at + 1], &s->kernels[at], (s->n - at) * sizeof *s->kernels);
    s->kernels[at].kernel = k;
    s->n++;
    return k;
}

static struct kernel *find_or_add(struct kp_summary *s, const struct kp_launch_info *l)
{
    const char *name = kp_launch_name(l);
    size_t at = place(s, name);
    if (at < s->n && !strcmp(s->kernels[at].kernel->name, name))
        return s->kernels[at].kernel;
    struct kernel *k = insert(s, at, name);
    if (k) {
        k->range = kp_launch_range_length(l);
        k->is_text = l->kind != KP_WORKLOAD_KERNEL;
    }
    return k;
}

static void add_bound(struct kernel *k, const char *what, double weight)
{
    for (size_t i = 0; *what && i < BOUNDS_MAX; i++) {
        struct bound *b = &k->bounds[i];
        if (*b->what && strcmp(b->what, what) != 0)
            continue;
        snprintf(b->what, sizeof b->what, "%s", what);
        b->weight += weight;
        return;
    }
}

/* Adds savings. The best of several messages of a rule counts: they are about the same time. */
static void add_savings(struct kp_summary *s, struct kernel *k, const struct kp_messages *m, double ns)
{
    double best[RULES_MAX] = {0};
    size_t n;
    const struct kp_rule *rules = kp_rules(&n);
    for (size_t i = 0; i < m->n; i++) {
        size_t rule = (size_t)(m->list[i].rule - rules);
        s->sections[rule] = m->list[i].section;
        if (m->list[i].global && !rules[rule].ceiling && m->list[i].speedup > best[rule])
            best[rule] = m->list[i].speedup;
    }
    for (size_t i = 0; i < n; i++)
        k->saved[i] += best[i] / 100 * ns;
}

int kp_summary_add(struct kp_summary *s, const struct kp_session *session, const struct kp_result *r,
                   const struct kp_messages *m)
{
    struct kernel *k = find_or_add(s, &r->launch);
    struct kp_verdict v;
    double ns = 0;
    if (!k)
        return -ENOMEM;
    bool is_timed = kp_result_mean_duration(r, &ns);
    uint64_t launches = kp_launch_weight(&r->launch), timed = is_timed ? launches : 0;
    ns *= (double)launches; /* of rotation: the mean of some of them stands for all */
    kp_verdict(r, session, m, &v);
    add_bound(k, v.what, ns > 0 ? ns : 1);
    add_savings(s, k, m, ns);
    k->launches += launches;
    k->timed += timed;
    k->ns += ns;
    s->launches += launches;
    s->timed += timed;
    s->ns += ns;
    return 0;
}

static const char *main_bound(const struct kernel *k)
{
    const struct bound *best = k->bounds;
    for (size_t i = 1; i < BOUNDS_MAX; i++)
        if (k->bounds[i].weight > best->weight)
            best = &k->bounds[i];
    return best->what;
}

/* Returns the rule that would save most of the kernel's time, NULL when none saves enough to be named. */
static const struct kp_rule *best_rule(const struct kernel *k, double *saved)
{
    size_t n;
    const struct kp_rule *rules = kp_rules(&n), *best = NULL;
    *saved = 0;
    for (size_t i = 0; i < n; i++)
        if (k->saved[i] > *saved && 100 * k->saved[i] >= KP_GAIN_FROM * k->ns) {
            *saved = k->saved[i];
            best = &rules[i];
        }
    return best;
}

static int by_time(const void *a, const void *b)
{
    const struct kp_summary_kernel *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->name, y->name);
}

int kp_summary_total(const struct kp_summary *s, struct kp_summary_total *out)
{
    size_t n;
    const struct kp_rule *rules = kp_rules(&n);
    *out = (struct kp_summary_total){.n = s->n, .launches = s->launches, .timed = s->timed, .ns = s->ns};
    if (!s->n)
        return 0;
    out->kernels = calloc(s->n, sizeof *out->kernels);
    if (!out->kernels)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++) {
        const struct kernel *k = s->kernels[i].kernel;
        struct kp_summary_kernel *to = &out->kernels[i];
        *to = (struct kp_summary_kernel){.name = k->name,
                                         .range = k->range,
                                         .is_text = k->is_text,
                                         .launches = k->launches,
                                         .timed = k->timed,
                                         .ns = k->ns,
                                         .bound = main_bound(k)};
        to->rule = best_rule(k, &to->saved_ns);
        to->section = to->rule ? s->sections[to->rule - rules] : NULL;
    }
    qsort(out->kernels, s->n, sizeof *out->kernels, by_time);
    return 0;
}

void kp_summary_total_free(struct kp_summary_total *t)
{
    free(t->kernels);
    t->kernels = NULL;
    t->n = 0;
}
