#include "preload/results/probe.h"

#include <string.h>

#include "preload/graphs/graphs.h"

static uint32_t threads_of(const struct kp_launch *l)
{
    return l->shape.block[0] * l->shape.block[1] * l->shape.block[2];
}

bool kp_probe_wanted(struct kp_window *w)
{
    bool missing = false;
    for (size_t k = 0; w->setup->configs && k < w->n; k++) {
        struct kp_item *i = &w->items[k];
        if (!i->function || !i->result)
            continue;
        const struct kp_known_config *known =
            kp_context_config(i->function, threads_of(&i->launch), i->launch.shape.dynamic_shared);
        if (known)
            i->config = *known;
        else
            missing = true;
    }
    return missing && kp_context_may_probe();
}

void kp_probe_mark_one(struct kp_item *i)
{
    i->as_graph = kp_graph_any();
}

/* Whether an earlier launch of the window will tell the facts of this one. */
static bool is_told_before(const struct kp_window *w, size_t at)
{
    const struct kp_item *i = &w->items[at];
    for (size_t k = 0; !w->settings && k < at; k++) {
        const struct kp_item *o = &w->items[k];
        if (o->as_graph && o->function == i->function && threads_of(&o->launch) == threads_of(&i->launch) &&
            o->launch.shape.dynamic_shared == i->launch.shape.dynamic_shared)
            return true;
    }
    return false;
}

void kp_probe_mark(struct kp_window *w)
{
    for (size_t k = 0; kp_graph_any() && k < w->n; k++) {
        struct kp_item *i = &w->items[k];
        i->as_graph = i->function && i->result && !i->config.shared_config && !is_told_before(w, k);
    }
}

bool kp_probe_tells(const struct kp_executed *r)
{
    return r->shared_config_size && (r->in_graph || !kp_graph_any());
}

/* Sets facts of launches that were told by others. */
static void share(struct kp_window *w)
{
    for (size_t k = 0; !w->settings && k < w->n; k++) {
        struct kp_item *i = &w->items[k];
        const struct kp_known_config *known = NULL;
        if (i->function && i->result && !i->config.shared_config)
            known = kp_context_config(i->function, threads_of(&i->launch), i->launch.shape.dynamic_shared);
        if (known)
            i->config = *known;
    }
}

/* Skips records of other kernels, which a kernel launched itself. */
void kp_probe_learn(struct kp_window *w, const struct kp_executed *records, size_t n)
{
    size_t next = 0;
    for (size_t k = 0; k < w->n; k++) {
        struct kp_item *i = &w->items[k];
        if (!i->function)
            continue;
        while (next < n && strncmp(records[next].name, i->function->facts.mangled, sizeof(records[next].name) - 1))
            next++;
        if (next == n)
            break;
        const struct kp_executed *r = &records[next++];
        if (!kp_probe_tells(r) || i->config.shared_config)
            continue;
        i->config = (struct kp_known_config){.threads = threads_of(&i->launch),
                                             .dynamic_shared = i->launch.shape.dynamic_shared,
                                             .shared_config = r->shared_config_size,
                                             .registers = r->registers};
        /* Where settings change within the window, a later launch may differ. */
        if (!w->settings && !kp_context_config(i->function, i->config.threads, i->config.dynamic_shared))
            kp_context_learn(i->function, &i->config);
    }
    share(w);
}
