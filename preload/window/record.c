#include "preload/window/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "preload/who/stack.h"
#include "preload/window/signs.h"

struct kp_window kp_window;

/* ---- items ---- */

struct kp_item *kp_record_new(void)
{
    if (kp_window.n == kp_window.cap) {
        size_t cap = kp_window.cap ? 2 * kp_window.cap : 64;
        struct kp_item *grown = realloc(kp_window.items, cap * sizeof(*grown));
        if (!grown)
            return NULL;
        kp_window.items = grown;
        kp_window.cap = cap;
    }
    struct kp_item *i = &kp_window.items[kp_window.n++];
    memset(i, 0, sizeof(*i));
    return i;
}

static void free_item(struct kp_item *i)
{
    if (i->is_launch)
        kp_launch_free(&i->launch);
    else
        kp_op_free(&i->op);
    if (i->result) {
        kp_result_free(i->result);
        free(i->result);
    }
}

void kp_record_drop_last(void)
{
    struct kp_item *i = &kp_window.items[--kp_window.n];
    if (i->is_launch) {
        kp_window.launches--;
        kp_window.wanted -= i->result != NULL;
    } else {
        kp_window.copied -= i->op.copied;
    }
    free_item(i);
}

CUstream kp_record_stream(const struct kp_launch *l)
{
    return l->ptsz && !l->stream ? CU_STREAM_PER_THREAD : l->stream;
}

bool kp_record_per_thread(const struct kp_launch *l)
{
    return kp_record_stream(l) == CU_STREAM_PER_THREAD;
}

/* Every operation that joins is told of here. */
void kp_record_note_stream(CUstream stream)
{
    stream = stream == CU_STREAM_LEGACY ? NULL : stream;
    kp_window.several |= kp_window.has_stream && kp_window.stream != stream;
    kp_window.stream = kp_window.has_stream ? kp_window.stream : stream;
    kp_window.has_stream = true;
}

/* ---- launches ---- */

static char *describe_graph(const struct kp_graph *g)
{
    char *text = NULL;
    return asprintf(&text, "CUDA graph of %u kernel%s, %u cop%s, %u memset%s, %u other node%s", g->kernels,
                    g->kernels == 1 ? "" : "s", g->copies, g->copies == 1 ? "y" : "ies", g->sets,
                    g->sets == 1 ? "" : "s", g->others, g->others == 1 ? "" : "s") < 0
               ? NULL
               : text;
}

/* A driver that cannot name functions leaves what the program called the runtime with. */
static char *fallback_name(const struct kp_launch *l)
{
    char *text = NULL;
    if (l->host_function)
        return asprintf(&text, "kernel of host function %p", l->host_function) < 0 ? NULL : text;
    return kp_strdup("unnamed kernel");
}

static void fill_header(struct kp_item *item)
{
    struct kp_launch_info *i = &item->result->launch;
    const struct kp_launch *l = &item->launch;
    const struct kp_context *c = kp_window.context;
    const char *mangled = item->function ? item->function->facts.mangled : "";
    i->kind = item->function ? KP_WORKLOAD_KERNEL : KP_WORKLOAD_GRAPH;
    i->mangled = kp_strdup(mangled);
    if (!item->function)
        i->demangled = describe_graph(&item->graph);
    else
        i->demangled = *mangled ? kp_strdup(item->function->demangled) : fallback_name(l);
    memcpy(i->grid, l->shape.grid, sizeof(i->grid));
    memcpy(i->block, l->shape.block, sizeof(i->block));
    i->context_id = c->id;
    i->stream_id = kp_context_stream_id(kp_window.setup, c, l->stream, l->ptsz);
    i->device = c->device_ordinal;
    i->cc_major = c->device.cc_major;
    i->cc_minor = c->device.cc_minor;
    i->chip = kp_strdup(c->chip);
    i->reason = kp_strdup("");
    item->result->lossy |= !i->mangled || !i->demangled || !i->chip || !i->reason;
}

/* Takes the launch over, with the copy of its arguments. */
static bool take_over(struct kp_launch *l, const struct kp_candidate *what, struct kp_known_function *f)
{
    struct kp_result *result = what->wanted ? calloc(1, sizeof(*result)) : NULL;
    struct kp_item *i = what->wanted && !result ? NULL : kp_record_new();
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
    if (what->graph)
        i->graph = *what->graph;
    if (kp_record_per_thread(l)) {
        kp_window.has_per_thread = true;
        kp_window.per_thread = pthread_self();
    }
    kp_record_note_stream(kp_record_stream(l));
    i->epoch = kp_signs_epoch(false);
    kp_window.launches++;
    kp_window.wanted += what->wanted;
    kp_signs_note_shared(l->shape.dynamic_shared);
    if (result) {
        fill_header(i);
        result->launch.nvtx = l->nvtx;
        l->nvtx = (struct kp_nvtx){.ranges = NULL};
        result->launch.stack = kp_stack_capture(l->caller);
    }
    i->launch.caller = NULL;
    return true;
}

bool kp_record_launch(struct kp_launch *l, const struct kp_candidate *what, struct kp_known_function *f)
{
    sigset_t before = kp_signals_hold();
    bool recorded = take_over(l, what, f);
    kp_signals_let(&before);
    return recorded;
}

/* ---- the end ---- */

/* The program's calls have all returned: what the driver refused is known. */
void kp_record_drop_refused(void)
{
    uint64_t ticket;
    while ((ticket = kp_signs_refused()))
        for (size_t k = 0; k < kp_window.n; k++)
            if (kp_window.items[k].ticket == ticket) {
                kp_op_free(&kp_window.items[k].op);
                memset(&kp_window.items[k], 0, sizeof(kp_window.items[k]));
            }
}

void kp_record_reset(void)
{
    sigset_t before = kp_signals_hold();
    free(kp_window.twins);
    for (size_t k = 0; k < kp_window.n; k++)
        free_item(&kp_window.items[k]);
    kp_snapshot_free(&kp_window.host);
    kp_signals_let(&before);
    struct kp_item *items = kp_window.items;
    size_t cap = kp_window.cap;
    memset(&kp_window, 0, sizeof(kp_window));
    kp_window.items = items;
    kp_window.cap = cap;
    kp_signs_closed();
}
