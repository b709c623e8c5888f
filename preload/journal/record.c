#include "preload/journal/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "preload/gate/window_facts.h"

struct kp_journal kp_journal_now;

static uint64_t tickets;

bool kp_record_is_here(const struct kp_journal *j, const struct kp_driver *d)
{
    CUcontext current = NULL;
    d->cuCtxGetCurrent(&current);
    return current == j->context->ctx && j->rewinds && j->n < KP_MOST_ITEMS;
}

struct kp_item *kp_record_new(struct kp_journal *j)
{
    if (j->n == j->cap) {
        size_t cap = j->cap ? 2 * j->cap : 64;
        struct kp_item *grown = realloc(j->items, cap * sizeof(*grown));
        if (!grown)
            return NULL;
        j->items = grown;
        j->cap = cap;
    }
    struct kp_item *i = &j->items[j->n++];
    memset(i, 0, sizeof(*i));
    return i;
}

static void free_item(struct kp_item *i)
{
    if (i->is_launch)
        kp_launch_free(&i->entry.launch);
    else
        kp_op_free(&i->op);
    free(i->read.seen);
    if (i->entry.result)
        kp_result_free(i->entry.result);
    free(i->entry.result);
}

/* ---- launches ---- */

static void note_stream(struct kp_journal *j, CUstream stream)
{
    stream = stream == CU_STREAM_LEGACY ? NULL : stream;
    j->several |= j->has_stream && j->stream != stream;
    j->stream = j->has_stream ? j->stream : stream;
    j->has_stream = true;
}

struct kp_entry *kp_journal_launch(struct kp_launch *l, const struct kp_graph *graph, struct kp_known_function *f,
                                   struct kp_result *result)
{
    struct kp_journal *j = &kp_journal_now;
    struct kp_item *i = kp_record_new(j);
    if (!i)
        return NULL;
    i->is_launch = true;
    i->entry.function = f;
    i->entry.launch = *l;
    i->entry.result = result;
    i->entry.launch.nvtx = (struct kp_nvtx){.ranges = NULL};
    i->entry.launch.caller = NULL;
    l->copy = NULL;
    if (graph)
        i->entry.graph = *graph;
    if (kp_launch_stream(l) == CU_STREAM_PER_THREAD) {
        j->has_per_thread = true;
        j->per_thread = pthread_self();
    }
    note_stream(j, kp_launch_stream(l));
    i->epoch = kp_flags_epoch();
    j->launches++;
    j->wanted += result != NULL;
    kp_flags_note_shared(f ? f->facts.handle : NULL, l->shape.dynamic_shared);
    return &i->entry;
}

struct kp_entry *kp_journal_stand_in(struct kp_result *result)
{
    struct kp_item *i = kp_record_new(&kp_journal_now);
    if (!i)
        return NULL;
    i->entry.result = result;
    kp_journal_now.wanted++;
    return &i->entry;
}

void kp_journal_drop_result(struct kp_entry *e)
{
    kp_result_free(e->result);
    free(e->result);
    e->result = NULL;
    kp_journal_now.wanted--;
}

struct kp_entry *kp_journal_entry(size_t k)
{
    struct kp_item *i = &kp_journal_now.items[k];
    return i->is_launch || i->entry.result ? &i->entry : NULL;
}

/* ---- other operations ---- */

uint64_t kp_record_op(struct kp_journal *j, struct kp_item *i, const struct kp_op *op)
{
    i->op = *op;
    /* A host function may let other threads know that the work before it is done. */
    i->epoch = op->waits || op->calls_host ? kp_flags_next_epoch() : kp_flags_epoch();
    if (!op->calls_host)
        note_stream(j, op->stream);
    j->copied += op->copied;
    return i->ticket = ++tickets;
}

uint64_t kp_record_setting(struct kp_journal *j, struct kp_item *i, void *real, const uint64_t *before,
                           const uint64_t *after)
{
    i->op.real = real;
    i->sets = true;
    memcpy(i->op.args, after, sizeof(i->op.args));
    memcpy(i->before, before, sizeof(i->before));
    i->epoch = kp_flags_epoch();
    j->settings++;
    kp_flags_note_setting();
    return i->ticket = ++tickets;
}

struct kp_item *kp_record_find(struct kp_journal *j, uint64_t ticket)
{
    for (size_t k = j->n; k; k--)
        if (j->items[k - 1].ticket == ticket)
            return &j->items[k - 1];
    return NULL;
}

/* ---- dropping ---- */

void kp_journal_drop_last(void)
{
    struct kp_journal *j = &kp_journal_now;
    struct kp_item *i = &j->items[--j->n];
    if (i->is_launch) {
        j->launches--;
        j->wanted -= i->entry.result != NULL;
    } else {
        j->copied -= i->op.copied;
    }
    free_item(i);
}

static void drop_ticket(void *arg, uint64_t ticket)
{
    struct kp_journal *j = arg;
    for (size_t k = 0; k < j->n; k++)
        if (j->items[k].ticket == ticket) {
            kp_op_free(&j->items[k].op);
            free(j->items[k].read.seen);
            memset(&j->items[k], 0, sizeof(j->items[k]));
        }
}

void kp_journal_stop(void)
{
    kp_flags_each_refused(drop_ticket, &kp_journal_now);
    kp_journal_now.end = kp_journal_now.n;
}

void kp_record_drop_all(struct kp_journal *j)
{
    free(j->twins);
    free(j->logs);
    free(j->maps);
    for (size_t k = 0; k < j->n; k++)
        free_item(&j->items[k]);
    kp_snapshot_free(&j->host);
    struct kp_item *items = j->items;
    size_t cap = j->cap;
    memset(j, 0, sizeof(*j));
    j->items = items;
    j->cap = cap;
}
