#include "preload/journal/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "preload/who/stack.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/strategy.h"

struct kp_window kp_window_now;

static uint64_t tickets;

bool kp_record_is_here(const struct kp_window *w, const struct kp_driver *d)
{
    CUcontext current = NULL;
    d->cuCtxGetCurrent(&current);
    return current == w->context->ctx && w->strategy->rewinds && w->n < KP_MOST_ITEMS;
}

struct kp_item *kp_record_new(struct kp_window *w)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 64;
        struct kp_item *grown = realloc(w->items, cap * sizeof(*grown));
        if (!grown)
            return NULL;
        w->items = grown;
        w->cap = cap;
    }
    struct kp_item *i = &w->items[w->n++];
    memset(i, 0, sizeof(*i));
    return i;
}

static void free_item(struct kp_item *i)
{
    if (i->is_launch)
        kp_launch_free(&i->launch);
    else
        kp_op_free(&i->op);
    free(i->read.seen);
    if (i->result) {
        kp_result_free(i->result);
        free(i->result);
    }
}

/* ---- launches ---- */

/* Names the function that the program passed to the runtime, if the driver cannot name the kernel. */
static char *fallback_name(const struct kp_launch *l)
{
    char *text = NULL;
    if (l->host_function)
        return asprintf(&text, "kernel of host function %p", l->host_function) < 0 ? NULL : text;
    return kp_strdup("unnamed kernel");
}

bool kp_record_place(const struct kp_window *w, struct kp_launch_info *i)
{
    const struct kp_context *c = w->context;
    i->context_id = c->id;
    i->device = c->device_ordinal;
    i->cc_major = c->device.cc_major;
    i->cc_minor = c->device.cc_minor;
    i->chip = kp_strdup(c->chip);
    i->reason = kp_strdup("");
    return i->chip && i->reason;
}

static void fill_header(const struct kp_window *w, struct kp_item *item)
{
    struct kp_launch_info *i = &item->result->launch;
    const struct kp_launch *l = &item->launch;
    const char *mangled = item->function ? item->function->facts.mangled : "";
    i->kind = item->function ? KP_WORKLOAD_KERNEL : KP_WORKLOAD_GRAPH;
    i->mangled = kp_strdup(mangled);
    if (!item->function)
        i->demangled = kp_graph_describe(item->graph.nodes);
    else
        i->demangled = *mangled ? kp_strdup(item->function->demangled) : fallback_name(l);
    memcpy(i->grid, l->shape.grid, sizeof(i->grid));
    memcpy(i->block, l->shape.block, sizeof(i->block));
    i->stream_id = kp_context_stream_id(w->setup, w->context, l->stream, l->ptsz);
    i->graph_number = l->graph_number;
    i->node = l->node;
    item->result->lossy |= !kp_record_place(w, i) || !i->mangled || !i->demangled;
}

static void note_stream(struct kp_window *w, CUstream stream)
{
    stream = stream == CU_STREAM_LEGACY ? NULL : stream;
    w->several |= w->has_stream && w->stream != stream;
    w->stream = w->has_stream ? w->stream : stream;
    w->has_stream = true;
}

static bool take_over(struct kp_window *w, struct kp_launch *l, bool wanted, const struct kp_graph *graph,
                      struct kp_known_function *f)
{
    struct kp_result *result = wanted ? calloc(1, sizeof(*result)) : NULL;
    struct kp_item *i = wanted && !result ? NULL : kp_record_new(w);
    if (!i) {
        free(result);
        return false;
    }
    i->is_launch = true;
    i->function = f;
    i->launch = *l;
    i->result = result;
    i->launch.nvtx = (struct kp_nvtx){.ranges = NULL};
    l->copy = NULL;
    if (graph)
        i->graph = *graph;
    if (kp_launch_stream(l) == CU_STREAM_PER_THREAD) {
        w->has_per_thread = true;
        w->per_thread = pthread_self();
    }
    note_stream(w, kp_launch_stream(l));
    i->epoch = kp_flags_epoch();
    w->launches++;
    w->wanted += wanted;
    kp_flags_note_shared(f ? f->facts.handle : NULL, l->shape.dynamic_shared);
    if (result) {
        fill_header(w, i);
        result->launch.nvtx = l->nvtx;
        l->nvtx = (struct kp_nvtx){.ranges = NULL};
        result->launch.stack = kp_stack_capture(l->caller);
    }
    i->launch.caller = NULL;
    return true;
}

bool kp_record_launch(struct kp_window *w, struct kp_launch *l, bool wanted, const struct kp_graph *graph,
                      struct kp_known_function *f)
{
    return take_over(w, l, wanted, graph, f);
}

/* ---- other operations ---- */

uint64_t kp_record_op(struct kp_window *w, struct kp_item *i, const struct kp_op *op)
{
    i->op = *op;
    /* A host function may let other threads know that what was before it is done. */
    i->epoch = op->waits || op->calls_host ? kp_flags_next_epoch() : kp_flags_epoch();
    if (!op->calls_host)
        note_stream(w, op->stream);
    w->copied += op->copied;
    return i->ticket = ++tickets;
}

uint64_t kp_record_setting(struct kp_window *w, struct kp_item *i, void *real, const uint64_t *before,
                           const uint64_t *after)
{
    i->op.real = real;
    i->sets = true;
    memcpy(i->op.args, after, sizeof(i->op.args));
    memcpy(i->before, before, sizeof(i->before));
    i->epoch = kp_flags_epoch();
    w->settings++;
    kp_flags_note_setting();
    return i->ticket = ++tickets;
}

struct kp_item *kp_record_find(struct kp_window *w, uint64_t ticket)
{
    for (size_t k = w->n; k; k--)
        if (w->items[k - 1].ticket == ticket)
            return &w->items[k - 1];
    return NULL;
}

/* ---- dropping ---- */

void kp_record_drop_last(struct kp_window *w)
{
    struct kp_item *i = &w->items[--w->n];
    if (i->is_launch) {
        w->launches--;
        w->wanted -= i->result != NULL;
    } else {
        w->copied -= i->op.copied;
    }
    free_item(i);
}

static void drop_ticket(void *arg, uint64_t ticket)
{
    struct kp_window *w = arg;
    for (size_t k = 0; k < w->n; k++)
        if (w->items[k].ticket == ticket) {
            kp_op_free(&w->items[k].op);
            free(w->items[k].read.seen);
            memset(&w->items[k], 0, sizeof(w->items[k]));
        }
}

void kp_record_drop_refused(struct kp_window *w)
{
    kp_flags_each_refused(drop_ticket, w);
}

void kp_record_reset(struct kp_window *w)
{
    free(w->twins);
    free(w->logs);
    free(w->maps);
    for (size_t k = 0; k < w->n; k++)
        free_item(&w->items[k]);
    kp_snapshot_free(&w->host);
    struct kp_item *items = w->items;
    size_t cap = w->cap;
    memset(w, 0, sizeof(*w));
    w->items = items;
    w->cap = cap;
    kp_flags_closed();
}
