/*
 * Repeats a journal as a whole: its operations are issued without waits between them, each in its stream, ordered by
 * events and by what the program waited for. The counters see them as one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/work.h"
#include "collectors/replay/replay.h"
#include "preload/os/progress.h"
#include "preload/program/hostmem.h"
#include "preload/journal/issue.h"
#include "preload/journal/repeat.h"
#include "preload/journal/read_value.h"
#include "preload/program/waits.h"

/* Pinned memory of ours, by operation: its source or its destination is pinned in the program, too, so the call does
 * not wait for the copy. */
static void **pinned;

/* ---- pinned memory ---- */

/* Returns which argument holds the copied source, from 1; 0 = none. */
static unsigned source_of(const struct kp_op *op)
{
    unsigned a = KP_OP_ARGS;
    while (a && op->args[a - 1] != (uintptr_t)op->copy)
        a--;
    return a;
}

static bool is_read_later(const struct kp_item *i)
{
    return i->read.site && i->op.later;
}

static void pin(struct kp_journal *j, size_t k)
{
    const struct kp_op *op = &j->items[k].op;
    bool source = op->from_pinned && op->copy && source_of(op);
    size_t bytes = is_read_later(&j->items[k]) ? op->result_bytes : source ? op->copied : 0;
    if (!bytes || !kp_hostmem_make(j->setup->driver, &pinned[k], bytes, KP_HOSTMEM_INTERNAL))
        return;
    if (source)
        memcpy(pinned[k], op->copy, bytes);
}

static void prepare(void)
{
    struct kp_journal *j = &kp_journal_now;
    pinned = calloc(j->n + 1, sizeof(*pinned));
    for (size_t k = 0; pinned && k < j->end; k++)
        if (!j->items[k].is_launch)
            pin(j, k);
}

static CUresult not_ours(void *p)
{
    (void)p;
    return CUDA_ERROR_INVALID_VALUE;
}

static void over(void)
{
    struct kp_journal *j = &kp_journal_now;
    for (size_t k = 0; pinned && k < j->n; k++)
        if (pinned[k] && !j->context->dead && !j->hangs)
            kp_hostmem_free(not_ours, pinned[k]);
    free(pinned);
    pinned = NULL;
}

/* ---- one operation ---- */

/* Returns true if the program waited for the GPU, or learnt that some work had ended, before it made operation `k`. A
 * call that itself waits does so again. */
static bool is_waited_before(const struct kp_journal *j, size_t k)
{
    const struct kp_item *i = &j->items[k];
    return k > 1 && i->epoch - i[-1].epoch > (!i[-1].is_launch && i[-1].op.waits);
}

/* Issues an operation with pinned memory of ours in place of the program's. */
static CUresult issue_pinned(const struct kp_item *i, void *memory)
{
    struct kp_op op = i->op;
    if (is_read_later(i))
        return kp_value_read(&op, 0, op.result_bytes, memory);
    op.args[source_of(&op) - 1] = (uintptr_t)memory;
    return kp_op_issue(&op);
}

static CUresult issue_one(struct kp_journal *j, size_t k)
{
    struct kp_item *i = &j->items[k];
    if (i->backup)
        return CUDA_SUCCESS; /* restored at the start */
    return pinned && pinned[k] ? issue_pinned(i, pinned[k]) : kp_repeat_one(j, i);
}

/* Restores memory to its state at the start of the window, new memory included, before anything is counted. */
static CUresult begin(struct kp_journal *j)
{
    CUresult rc = CUDA_SUCCESS;
    kp_repeat_begin(j);
    for (size_t k = 0; k < j->end && rc == CUDA_SUCCESS; k++)
        if (j->items[k].backup)
            rc = kp_repeat_one(j, &j->items[k]);
    return rc == CUDA_SUCCESS ? kp_issue_end(j) : rc;
}

/* Compares what came later, once all is done. */
static CUresult compare(struct kp_journal *j)
{
    for (size_t k = 0; pinned && k < j->end; k++) {
        const struct kp_item *i = &j->items[k];
        if (!pinned[k] || !is_read_later(i) || !memcmp(pinned[k], i->read.seen, i->op.result_bytes))
            continue;
        j->cut = k + 1;
        return (CUresult)KP_ISSUE_CUT;
    }
    return CUDA_SUCCESS;
}

/* ---- repetitions ---- */

static CUresult issue_operations(struct kp_journal *j)
{
    CUresult rc = CUDA_SUCCESS;
    for (size_t k = 0; k < j->end && rc == CUDA_SUCCESS; k++) {
        if (is_waited_before(j, k))
            rc = kp_issue_end(j);
        if (rc == CUDA_SUCCESS)
            rc = issue_one(j, k);
        kp_safe_point();
    }
    return rc;
}

static CUresult issue_together(void *arg, const struct kp_issue_hooks *hooks)
{
    (void)arg;
    struct kp_journal *j = &kp_journal_now;
    CUresult rc = begin(j);
    if (rc == CUDA_SUCCESS && hooks)
        rc = hooks->before(hooks->arg, CU_STREAM_LEGACY);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = issue_operations(j);
    CUresult ended = rc == CUDA_ERROR_NOT_READY ? rc : kp_issue_end_streams(j);
    if (ended == CUDA_ERROR_NOT_READY)
        return ended;
    CUresult end = hooks ? hooks->after(hooks->arg) : CUDA_SUCCESS;
    if (end == CUDA_SUCCESS)
        end = kp_issue_end(j);
    rc = rc == CUDA_SUCCESS ? end : rc;
    return rc == CUDA_SUCCESS ? compare(j) : rc;
}

/* Returns true if issuing operation `k` waits for work, which may not end. */
static bool is_blocking(const struct kp_journal *j, size_t k)
{
    const struct kp_item *i = &j->items[k];
    return is_waited_before(j, k) || (!i->is_launch && i->op.waits);
}

/* Waits in limited time. After a timeout, host memory is put back to what it was when the program's own launches had
 * ended. */
static bool is_late(const struct kp_repeat *r)
{
    struct kp_journal *j = &kp_journal_now;
    bool late = kp_wait_context(j->setup->driver, j->context->ctx, r->limit_ms, r->least_ms) == CUDA_ERROR_NOT_READY;
    if (late)
        kp_snapshot_release(&j->host);
    return late;
}

/* A first repetition without counters. Work that waits for the host, or for something outside the window, does not end
 * in time; nothing is read after that. */
static int rehearse_together(void *arg)
{
    const struct kp_repeat *r = arg;
    struct kp_journal *j = &kp_journal_now;
    kp_progress_step("a first repetition of a range, without counters", false);
    CUresult rc = begin(j);
    bool late = false;
    for (size_t k = 0; k < j->end && rc == CUDA_SUCCESS; k++) {
        late = late || (is_blocking(j, k) && is_late(r));
        if (!late || !j->items[k].read.site)
            rc = issue_one(j, k);
    }
    late = late || is_late(r);
    CUresult end = kp_issue_end(j);
    if (end == CUDA_ERROR_NOT_READY)
        return KP_ISSUE_UNENDED;
    if (end != CUDA_SUCCESS)
        return (int)end;
    if (rc == CUDA_SUCCESS && !late)
        rc = compare(j);
    if (rc != CUDA_SUCCESS)
        return rc == (CUresult)KP_ISSUE_CUT ? KP_ISSUE_CUT : KP_ISSUE_REFUSED;
    return late ? KP_ISSUE_TOO_LONG : 0;
}

const struct kp_order kp_together = {.issue = issue_together,
                                     .rehearse = rehearse_together,
                                     .whole = true,
                                     .tries = 1,
                                     .prepare = prepare,
                                     .over = over};
