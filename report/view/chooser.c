#include "report/view/chooser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/pattern.h"
#include "base/text.h"
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

struct kp_chooser {
    const struct kp_options *options;
    struct kp_pattern *name; /* NULL = any */
    struct kp_kernel_id *id; /* NULL = any */
    struct kp_nvtx_filter *include, *exclude;
    struct counted *counted;
    uint64_t matched, graphs;
};

static bool asks_for_something(const struct kp_options *o)
{
    return *o->kernel_name || *o->kernel_id || o->devices || *o->nvtx_include || *o->nvtx_exclude || o->launch_skip ||
           o->launch_count;
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
        rc = kp_kernel_id_new(o->kernel_id, &c->id, err);
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
    c->counted = NULL;
    c->matched = c->graphs = 0;
}

void kp_chooser_free(struct kp_chooser *c)
{
    if (!c)
        return;
    kp_chooser_begin(c);
    kp_pattern_free(c->name);
    kp_kernel_id_free(c->id);
    kp_nvtx_filter_free(c->include);
    kp_nvtx_filter_free(c->exclude);
    free(c);
}

/* ---- the stages ---- */

static char *name_of(enum kp_name_base base, const char *mangled)
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
    if (!kp_kernel_id_name(c->id, name) || !kp_kernel_id_place(c->id, l->context_id, l->stream_id))
        return 0;
    uint64_t nth = count(c, name);
    return nth ? kp_kernel_id_invocation(c->id, nth) : -ENOMEM;
}

static bool is_inside(const struct kp_chooser *c, const struct kp_launch_info *l)
{
    return (!c->include || kp_nvtx_filter_match(c->include, l->nvtx.ranges, l->nvtx.n_ranges)) &&
           (!c->exclude || !kp_nvtx_filter_match(c->exclude, l->nvtx.ranges, l->nvtx.n_ranges));
}

int kp_chooser_takes(struct kp_chooser *c, const struct kp_launch_info *l)
{
    const struct kp_options *o = c->options;
    if (!is_on_device(c, l))
        return 0;
    if (l->kind == KP_WORKLOAD_GRAPH && (c->name || c->id)) {
        c->graphs++;
        return 0;
    }
    char *name = name_of(o->kernel_name_base, l->mangled ? l->mangled : "");
    if (!name)
        return -ENOMEM;
    int taken = has_name(c, name, l) ? has_id(c, name, l) : 0;
    free(name);
    if (taken <= 0 || !is_inside(c, l))
        return taken < 0 ? taken : 0;
    uint64_t index = c->matched++;
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
