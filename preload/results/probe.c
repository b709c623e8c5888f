#include "preload/results/probe.h"

#include <string.h>

#include "preload/graphs/graphs.h"

static uint32_t threads_of(const struct kp_launch *l)
{
    return l->shape.block[0] * l->shape.block[1] * l->shape.block[2];
}

/* Returns the next launch of a function from operation *k on, and moves *k past it; NULL: there is none. */
static struct kp_entry *next_launch(size_t *k, size_t n)
{
    while (*k < n) {
        struct kp_entry *e = kp_journal_entry((*k)++);
        if (e && e->function)
            return e;
    }
    return NULL;
}

static const struct kp_known_config *known_of(const struct kp_entry *e)
{
    return kp_context_config(e->function, threads_of(&e->launch), e->launch.shape.dynamic_shared);
}

bool kp_probe_wanted(const struct kp_context_setup *setup)
{
    const size_t n = kp_journal_facts().records;
    bool missing = false;
    struct kp_entry *e;
    for (size_t k = 0; setup->configs && (e = next_launch(&k, n));) {
        const struct kp_known_config *known = e->result ? known_of(e) : NULL;
        if (known)
            e->config = *known;
        missing |= e->result && !known;
    }
    return missing && kp_context_may_probe();
}

void kp_probe_mark_one(struct kp_entry *e)
{
    e->as_graph = kp_graph_any();
}

/* Returns true if a launch before operation `at` will give the facts of this one. */
static bool is_told_before(const struct kp_entry *e, size_t at)
{
    const struct kp_entry *o;
    for (size_t k = 0; (o = next_launch(&k, at));)
        if (o->as_graph && o->function == e->function && threads_of(&o->launch) == threads_of(&e->launch) &&
            o->launch.shape.dynamic_shared == e->launch.shape.dynamic_shared)
            return true;
    return false;
}

void kp_probe_mark(void)
{
    const struct kp_journal_facts j = kp_journal_facts();
    struct kp_entry *e;
    for (size_t k = 0; kp_graph_any() && (e = next_launch(&k, j.records));)
        e->as_graph = e->result && !e->config.shared_config && (j.settings || !is_told_before(e, k - 1));
}

bool kp_probe_tells(const struct kp_executed *r)
{
    return r->shared_config_size && (r->in_graph || !kp_graph_any());
}

/* Sets facts of launches that others have given. */
static void share(size_t n)
{
    struct kp_entry *e;
    for (size_t k = 0; (e = next_launch(&k, n));) {
        const struct kp_known_config *known = e->result && !e->config.shared_config ? known_of(e) : NULL;
        if (known)
            e->config = *known;
    }
}

/* Skips records of other kernels, which a kernel launched itself. */
void kp_probe_learn(const struct kp_executed *records, size_t n)
{
    const struct kp_journal_facts j = kp_journal_facts();
    size_t next = 0;
    struct kp_entry *e;
    for (size_t k = 0; (e = next_launch(&k, j.records));) {
        while (next < n && strncmp(records[next].name, e->function->facts.mangled, sizeof(records[next].name) - 1))
            next++;
        if (next == n)
            break;
        const struct kp_executed *r = &records[next++];
        if (!kp_probe_tells(r) || e->config.shared_config)
            continue;
        e->config = (struct kp_known_config){.threads = threads_of(&e->launch),
                                             .dynamic_shared = e->launch.shape.dynamic_shared,
                                             .shared_config = r->shared_config_size,
                                             .registers = r->registers};
        /* If settings change within the window, a later launch may differ. */
        if (!j.settings && !kp_context_config(e->function, e->config.threads, e->config.dynamic_shared))
            kp_context_learn(e->function, &e->config);
    }
    if (!j.settings)
        share(j.records);
}
