#include "preload/results/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "preload/who/stack.h"

/* Names the function that the program passed to the runtime, if the driver cannot name the kernel. */
static char *fallback_name(const struct kp_launch *l)
{
    if (l->host_function)
        return kp_asprintf("kernel of host function %p", l->host_function);
    return kp_strdup("unnamed kernel");
}

bool kp_describe_place(const struct kp_context *c, struct kp_launch_info *i)
{
    i->context_id = c->id;
    i->device = c->device_ordinal;
    i->cc_major = c->device.cc_major;
    i->cc_minor = c->device.cc_minor;
    i->chip = kp_strdup(c->chip);
    return i->chip;
}

struct kp_result *kp_describe_launch(const struct kp_context_setup *setup, const struct kp_context *c,
                                     struct kp_launch *l, const struct kp_graph *g, const struct kp_known_function *f)
{
    struct kp_result *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    struct kp_launch_info *i = &r->launch;
    const char *mangled = f ? f->facts.mangled : "";
    i->kind = f ? KP_WORKLOAD_KERNEL : KP_WORKLOAD_GRAPH;
    i->mangled = kp_strdup(mangled);
    if (!f)
        i->demangled = kp_graph_describe(g ? g->nodes : (const unsigned[KP_GRAPH_KINDS]){0});
    else
        i->demangled = *mangled ? kp_strdup(f->demangled) : fallback_name(l);
    memcpy(i->grid, l->shape.grid, sizeof(i->grid));
    memcpy(i->block, l->shape.block, sizeof(i->block));
    i->stream_id = kp_context_stream_id(setup, c, l->stream, l->ptsz);
    i->graph_number = l->graph_number;
    i->node = l->node;
    r->lossy = !kp_describe_place(c, i) || !i->mangled || !i->demangled;
    i->nvtx = l->nvtx;
    l->nvtx = (struct kp_nvtx){.ranges = NULL};
    i->stack = kp_stack_capture(l->caller);
    return r;
}
