/*
 * Counters of what kernels write to host memory. They join a plan for kprof itself: a kernel that gets the address of
 * such memory from device memory is replayed like any other, and the host sees its writes again in each pass.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "collectors/plan/plan_internal.h"

#define WRITES(unit, how) unit "__t_sectors_srcunit_tex_aperture_sysmem_op_" how ".sum"

const char *const kp_plan_watched[] = {WRITES("lts", "write"),
                                       WRITES("lts", "red"),
                                       WRITES("lts", "atom"),
                                       WRITES("syslts", "write"),
                                       WRITES("syslts", "red"),
                                       WRITES("syslts", "atom"),
                                       NULL};

enum { MOST_WATCHED = sizeof(kp_plan_watched) / sizeof(*kp_plan_watched) };

/* Lists the ones that the chip has and the plan lacks; returns how many. */
static size_t list_lacking(const struct kp_planner *x, const char **names, struct kp_metric_props *props)
{
    size_t n = 0;
    for (size_t i = 0; kp_plan_watched[i]; i++) {
        props[n] = (struct kp_metric_props){.unit = ""};
        if (!kp_plan_find(x->plan, kp_plan_watched[i]) && !kp_tables_metric(x->host, kp_plan_watched[i], &props[n]))
            names[n++] = kp_plan_watched[i];
    }
    return n;
}

/* Replaces the plan's first list by `config`, which has all its names and n more. */
static int take_config(struct kp_planner *x, struct kp_config *config, const char *const *names,
                       const struct kp_metric_props *props, size_t n)
{
    struct kp_plan *p = x->plan;
    for (size_t i = 0; i < n; i++) {
        struct kp_planned *m = kp_plan_add(p, names[i], props[i].unit, 0);
        if (!m)
            return -ENOMEM;
        m->watch = true;
    }
    kp_plan_forget_first(x);
    kp_config_free(&p->groups[0]);
    p->groups[0] = *config;
    memset(config, 0, sizeof(*config));
    return 0;
}

int kp_plan_watch(struct kp_planner *x)
{
    struct kp_plan *p = x->plan;
    struct kp_metric_props props[MOST_WATCHED];
    const char *more[MOST_WATCHED];
    size_t n = p->n_groups ? list_lacking(x, more, props) : 0, had = n ? p->groups[0].n_names : 0;
    struct kp_config config = {.image = NULL};
    const char **names = n ? calloc(had + n, sizeof(*names)) : NULL;
    if (!names)
        return n ? -ENOMEM : 0;
    memcpy(names, p->groups[0].names, had * sizeof(*names));
    memcpy(names + had, more, n * sizeof(*names));
    int rc = kp_plan_try(x, names, had + n, &config);
    if (!rc && config.passes == p->groups[0].passes)
        rc = take_config(x, &config, more, props, n);
    kp_config_free(&config);
    free(names);
    return rc > 0 ? 0 : rc;
}

bool kp_plan_watches(const struct kp_plan *p)
{
    size_t i = 0;
    while (kp_plan_watched[i] && !kp_plan_find(p, kp_plan_watched[i]))
        i++;
    return kp_plan_watched[i];
}

/* The value of a counter; 0: it was not counted, or not read. */
static double sectors_of(const struct kp_plan *p, const struct kp_result *r, const char *name)
{
    const struct kp_metric *m = kp_plan_find(p, name) ? kp_result_find(r, name) : NULL;
    return m && m->kind == KP_VALUE_REAL ? m->real : 0;
}

/* Logs which counters show that a kernel has written host memory. */
static void tell(const struct kp_plan *p, const struct kp_result *r)
{
    const char *name = r->launch.demangled ? r->launch.demangled : "a kernel";
    for (size_t i = 0; kp_plan_watched[i]; i++) {
        double n = sectors_of(p, r, kp_plan_watched[i]);
        if (n > 0)
            kp_debug(KP_DEBUG_WINDOW, "%s: %s is %.0f", name, kp_plan_watched[i], n);
    }
}

double kp_plan_host_writes(const struct kp_plan *p, struct kp_result *r)
{
    double sectors = 0;
    tell(p, r);
    for (size_t i = 0; kp_plan_watched[i]; i++) {
        const struct kp_planned *planned = kp_plan_find(p, kp_plan_watched[i]);
        sectors += sectors_of(p, r, kp_plan_watched[i]);
        if (planned && planned->watch)
            kp_result_remove(r, kp_plan_watched[i]);
    }
    return sectors;
}
