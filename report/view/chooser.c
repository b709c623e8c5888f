#include "report/view/chooser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/pattern.h"
#include "report/model/kernel_id.h"
#include "report/model/launch_names.h"
#include "report/model/nvtx_expr.h"
#include "report/model/renames.h"

/* The invocations of a kernel that kernel-id has counted. */
struct counted {
    char *name;
    uint64_t n;
    struct counted *next;
};

/* Launches that launch-skip and launch-count count together. */
struct together {
    char *name; /* of the kernel or graph; NULL if devices are counted */
    uint32_t grid[3], block[3];
    double shared; /* in bytes; 0 if the session does not have it */
    int device;
    uint64_t n;
    struct together *next;
};

struct kp_chooser {
    const struct kp_options *options;
    struct kp_pattern *name; /* NULL = any */
    struct kp_kernel_id *id; /* NULL = any */
    struct kp_nvtx_filter *include, *exclude;
    struct counted *counted;
    struct together *together;
    uint64_t seen, matched, graphs;
};

static bool asks_for_something(const struct kp_options *o)
{
    return *o->kernel_name || *o->kernel_id || o->devices || *o->nvtx_include || *o->nvtx_exclude || o->launch_skip ||
           o->launch_count || o->launch_skip_before_match;
}

int kp_chooser_new(const struct kp_options *o, struct kp_chooser **out, char **err)
{
    *out = NULL;
    *err = NULL;
    if (!asks_for_something(o))
        return 0;
    struct kp_chooser *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->options = o;
    int rc = *o->kernel_name ? kp_pattern_new(o->kernel_name, &c->name, err) : 0;
    if (!rc && *o->kernel_id)
        rc = kp_kernelid_new(o->kernel_id, &c->id, err);
    if (!rc && *o->nvtx_include)
        rc = kp_nvtx_filter_new(o->nvtx_include, &c->include, err);
    if (!rc && *o->nvtx_exclude)
        rc = kp_nvtx_filter_new(o->nvtx_exclude, &c->exclude, err);
    if (rc)
        kp_chooser_free(c);
    else
        *out = c;
    return rc;
}

void kp_chooser_begin(struct kp_chooser *c)
{
    for (struct counted *n = c->counted, *next; n; n = next) {
        next = n->next;
        free(n->name);
        free(n);
    }
    for (struct together *t = c->together, *next; t; t = next) {
        next = t->next;
        free(t->name);
        free(t);
    }
    c->counted = NULL;
    c->together = NULL;
    c->seen = c->matched = c->graphs = 0;
}

void kp_chooser_free(struct kp_chooser *c)
{
    if (!c)
        return;
    kp_chooser_begin(c);
    kp_pattern_free(c->name);
    kp_kernelid_free(c->id);
    kp_nvtx_filter_free(c->include);
    kp_nvtx_filter_free(c->exclude);
    free(c);
}

/* ---- the stages ---- */

char *kp_chooser_name(enum kp_name_base base, const char *mangled)
{
    switch (base) {
    case KP_NAME_BASE_FUNCTION:
        return kp_demangle_base(mangled);
    case KP_NAME_BASE_DEMANGLED:
        return kp_demangle(mangled);
    case KP_NAME_BASE_MANGLED:
        break;
    }
    return strdup(mangled);
}

static bool is_on_device(const struct kp_chooser *c, const struct kp_launch_info *l)
{
    uint64_t devices = c->options->devices;
    return !devices || (l->device >= 0 && l->device < 64 && devices >> l->device & 1);
}

static bool has_name(const struct kp_chooser *c, const char *name, const struct kp_launch_info *l)
{
    const char *renamed = c->name ? kp_renames_find(kp_launch_name(l)) : NULL;
    return !c->name || kp_pattern_match(c->name, name) || (renamed && kp_pattern_match(c->name, renamed));
}

/* Counts an invocation. Returns its number, from 1; 0 without memory. */
static uint64_t count(struct kp_chooser *c, const char *name)
{
    struct counted *n = c->counted;
    while (n && strcmp(n->name, name))
        n = n->next;
    if (n)
        return ++n->n;
    n = calloc(1, sizeof(*n));
    char *copy = n ? strdup(name) : NULL;
    if (!copy) {
        free(n);
        return 0;
    }
    *n = (struct counted){copy, 1, c->counted};
    c->counted = n;
    return 1;
}

/* Returns 1, 0 or -ENOMEM. */
static int has_id(struct kp_chooser *c, const char *name, const struct kp_launch_info *l)
{
    if (!c->id)
        return 1;
    if (!kp_kernelid_name(c->id, name) || !kp_kernelid_place(c->id, l->context_id, l->stream_id))
        return 0;
    uint64_t nth = count(c, name);
    return nth ? kp_kernelid_invocation(c->id, nth) : -ENOMEM;
}

static bool is_inside(const struct kp_chooser *c, const struct kp_launch_info *l)
{
    return (!c->include || kp_nvtx_filter_match(c->include, l->nvtx.ranges, l->nvtx.n_ranges)) &&
           (!c->exclude || !kp_nvtx_filter_match(c->exclude, l->nvtx.ranges, l->nvtx.n_ranges));
}

static const char shared_metric[] = "launch__shared_mem_per_block_dynamic";

const char *kp_chooser_needs(const struct kp_chooser *c)
{
    bool numbers = c->options->launch_skip || c->options->launch_count;
    return numbers && c->options->filter_mode == KP_FILTER_PER_CONFIG ? shared_metric : NULL;
}

/* Fills in what launches have in common with this one that are counted with it. */
static void describe_launch(const struct kp_chooser *c, const struct kp_result *r, struct together *t)
{
    const struct kp_launch_info *l = &r->launch;
    *t = (struct together){.device = l->device};
    if (c->options->filter_mode == KP_FILTER_PER_GPU)
        return;
    const struct kp_metric *m = kp_result_find(r, shared_metric);
    *t = (struct together){.name = l->mangled && *l->mangled ? l->mangled : l->demangled};
    memcpy(t->grid, l->grid, sizeof t->grid);
    memcpy(t->block, l->block, sizeof t->block);
    if (!m || !kp_metric_number(m, &t->shared))
        t->shared = 0;
}

static bool is_one_of(const struct together *t, const struct together *of)
{
    return t->device == of->device && t->shared == of->shared && !memcmp(t->grid, of->grid, sizeof t->grid) &&
           !memcmp(t->block, of->block, sizeof t->block) && !t->name == !of->name &&
           (!t->name || !strcmp(t->name, of->name));
}

/* Counts a launch that all but the numbers let pass. Returns how many came before it; UINT64_MAX without memory. */
static uint64_t number_of_kernel(struct kp_chooser *c, const struct kp_result *r)
{
    struct together what;
    uint64_t index = c->matched++;
    if (c->options->filter_mode == KP_FILTER_GLOBAL)
        return index;
    describe_launch(c, r, &what);
    struct together *t = c->together;
    while (t && !is_one_of(&what, t))
        t = t->next;
    if (t)
        return t->n++;
    t = malloc(sizeof(*t));
    char *name = t && what.name ? strdup(what.name) : NULL;
    if (!t || (what.name && !name)) {
        free(t);
        return UINT64_MAX;
    }
    *t = what;
    t->name = name;
    t->n = 1;
    t->next = c->together;
    c->together = t;
    return 0;
}

int kp_chooser_takes(struct kp_chooser *c, const struct kp_result *r)
{
    const struct kp_options *o = c->options;
    const struct kp_launch_info *l = &r->launch;
    if (c->seen++ < o->launch_skip_before_match || !is_on_device(c, l))
        return 0;
    if (l->kind == KP_WORKLOAD_GRAPH && (c->name || c->id)) {
        c->graphs++;
        return 0;
    }
    char *name = kp_chooser_name(o->kernel_name_base, l->mangled ? l->mangled : "");
    if (!name)
        return -ENOMEM;
    int taken = has_name(c, name, l) ? has_id(c, name, l) : 0;
    free(name);
    if (taken <= 0 || !is_inside(c, l))
        return taken < 0 ? taken : 0;
    uint64_t index = number_of_kernel(c, r);
    if (index == UINT64_MAX)
        return -ENOMEM;
    return index >= o->launch_skip && (!o->launch_count || index - o->launch_skip < o->launch_count);
}

uint64_t kp_chooser_matched(const struct kp_chooser *c)
{
    return c->matched;
}

uint64_t kp_chooser_graphs(const struct kp_chooser *c)
{
    return c->graphs;
}

const char *kp_chooser_range(const struct kp_chooser *c)
{
    return c->options->nvtx_include;
}

size_t kp_chooser_filters(const struct kp_chooser *c, char out[KP_CHOOSER_FILTERS_MAX])
{
    const struct kp_options *o = c->options;
    const struct {
        const char *flag;
        bool given;
    } all[] = {
        {"kernel-name", *o->kernel_name},   {"kernel-id", *o->kernel_id},       {"devices", o->devices},
        {"nvtx-include", *o->nvtx_include}, {"nvtx-exclude", *o->nvtx_exclude},
    };
    size_t n = 0, written = 0, used = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        n += all[i].given;
    *out = '\0';
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (!all[i].given)
            continue;
        const char *between = !written ? "" : written + 1 == n ? " and " : ", ";
        used += (size_t)snprintf(out + used, KP_CHOOSER_FILTERS_MAX - used, "%s%s", between, all[i].flag);
        written++;
    }
    return n;
}
