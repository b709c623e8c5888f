#include "preload/journal/concurrent_repeat.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/work.h"
#include "collectors/facts/settle.h"
#include "collectors/replay/replay.h"
#include "preload/os/progress.h"
#include "preload/program/hostmem.h"
#include "preload/journal/repeat.h"
#include "preload/journal/read_value.h"
#include "preload/program/waits.h"

/* Pinned memory of ours, by operation: what it copies from, or where its result goes, stands in pinned memory in the
 * program, too. So the call does not wait for the copy. */
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

static void pin(struct kp_window *w, size_t k)
{
    const struct kp_op *op = &w->items[k].op;
    bool source = op->from_pinned && op->copy && source_of(op);
    size_t bytes = is_read_later(&w->items[k]) ? op->result_bytes : source ? op->copied : 0;
    if (!bytes || !kp_hostmem_make(w->setup->driver, &pinned[k], bytes, KP_HOSTMEM_INTERNAL))
        return;
    if (source)
        memcpy(pinned[k], op->copy, bytes);
}

static void prepare(struct kp_window *w)
{
    pinned = calloc(w->n + 1, sizeof(*pinned));
    for (size_t k = 0; pinned && k < w->end; k++)
        if (!w->items[k].is_launch)
            pin(w, k);
}

static CUresult not_ours(void *p)
{
    (void)p;
    return CUDA_ERROR_INVALID_VALUE;
}

static void over(struct kp_window *w)
{
    for (size_t k = 0; pinned && k < w->n; k++)
        if (pinned[k] && !w->context->dead && !w->hangs)
            kp_hostmem_free(not_ours, pinned[k]);
    free(pinned);
    pinned = NULL;
}

/* ---- one operation ---- */

/* Whether the program waited for the GPU, or learnt of the end of some work, before it made operation `k`. A call
 * that itself waits does so again. */
static bool is_waited_before(const struct kp_window *w, size_t k)
{
    const struct kp_item *i = &w->items[k];
    return k > 1 && i->epoch - i[-1].epoch > (!i[-1].is_launch && i[-1].op.waits);
}

/* Issues an operation with pinned memory of ours in the place of the program's. */
static CUresult issue_pinned(const struct kp_item *i, void *memory)
{
    struct kp_op op = i->op;
    if (is_read_later(i))
        return kp_value_read(&op, 0, op.result_bytes, memory);
    op.args[source_of(&op) - 1] = (uintptr_t)memory;
    return kp_op_issue(&op);
}

static CUresult issue_one(struct kp_window *w, size_t k)
{
    struct kp_item *i = &w->items[k];
    if (i->backup)
        return CUDA_SUCCESS; /* restored at the begin */
    return pinned && pinned[k] ? issue_pinned(i, pinned[k]) : kp_repeat_one(w, i);
}

/* Brings memory to the begin of the window, new memory included, before anything is counted. */
static CUresult begin(struct kp_window *w)
{
    CUresult rc = CUDA_SUCCESS;
    kp_repeat_begin(w);
    for (size_t k = 0; k < w->end && rc == CUDA_SUCCESS; k++)
        if (w->items[k].backup)
            rc = kp_repeat_one(w, &w->items[k]);
    return rc == CUDA_SUCCESS ? kp_settle(w->setup->driver, CU_STREAM_LEGACY) : rc;
}

/* Compares what came later, once all is done. */
static CUresult compare(struct kp_window *w)
{
    for (size_t k = 0; pinned && k < w->end; k++) {
        const struct kp_item *i = &w->items[k];
        if (!pinned[k] || !is_read_later(i) || !memcmp(pinned[k], i->read.seen, i->op.result_bytes))
            continue;
        w->cut = k + 1;
        return (CUresult)KP_ISSUE_CUT;
    }
    return CUDA_SUCCESS;
}

/* ---- repetitions ---- */

static CUresult issue_all(struct kp_window *w)
{
    CUresult rc = CUDA_SUCCESS;
    for (size_t k = 0; k < w->end && rc == CUDA_SUCCESS; k++) {
        if (is_waited_before(w, k))
            rc = kp_settle(w->setup->driver, CU_STREAM_LEGACY);
        if (rc == CUDA_SUCCESS)
            rc = issue_one(w, k);
        kp_safe_point();
    }
    return rc;
}

static CUresult issue(void *arg, const struct kp_issue_hooks *hooks)
{
    struct kp_window *w = ((const struct kp_repeat *)arg)->w;
    CUresult rc = begin(w);
    if (rc == CUDA_SUCCESS && hooks)
        rc = hooks->before(hooks->arg, CU_STREAM_LEGACY);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = issue_all(w);
    CUresult end = hooks ? hooks->after(hooks->arg) : CUDA_SUCCESS;
    if (end == CUDA_SUCCESS)
        end = kp_settle(w->setup->driver, CU_STREAM_LEGACY);
    rc = rc == CUDA_SUCCESS ? end : rc;
    return rc == CUDA_SUCCESS ? compare(w) : rc;
}

/* Whether issuing operation `k` waits for work, which may not end. */
static bool is_blocking(const struct kp_window *w, size_t k)
{
    const struct kp_item *i = &w->items[k];
    return is_waited_before(w, k) || (!i->is_launch && i->op.waits);
}

/* Waits in limited time. After a timeout the host's values are those when the program's own launches had ended. */
static bool is_late(const struct kp_repeat *r)
{
    struct kp_window *w = r->w;
    bool late = kp_wait_context(w->setup->driver, w->context->ctx, r->limit_ms, KP_SHORT_MS) == CUDA_ERROR_NOT_READY;
    if (late)
        kp_snapshot_release(&w->host);
    return late;
}

/* A first repetition without counters. What waits for the host, or for what is no part of the window, does not end in
 * time; nothing is read any more then. */
static int rehearse(void *arg)
{
    const struct kp_repeat *r = arg;
    struct kp_window *w = r->w;
    kp_progress_step("a first repetition of a range, without counters", false);
    CUresult rc = begin(w);
    bool late = false;
    for (size_t k = 0; k < w->end && rc == CUDA_SUCCESS; k++) {
        late = late || (is_blocking(w, k) && is_late(r));
        if (!late || !w->items[k].read.site)
            rc = issue_one(w, k);
    }
    late = late || is_late(r);
    CUresult end = kp_settle(w->setup->driver, CU_STREAM_LEGACY);
    if (end != CUDA_SUCCESS)
        return (int)end;
    if (rc == CUDA_SUCCESS && !late)
        rc = compare(w);
    if (rc != CUDA_SUCCESS)
        return rc == (CUresult)KP_ISSUE_CUT ? KP_ISSUE_CUT : KP_ISSUE_REFUSED;
    return late ? KP_ISSUE_TOO_LONG : 0;
}

/* ---- the job ---- */

/* Describes the whole window as one launch. */
static struct kp_job job_of_whole(struct kp_window *w)
{
    struct kp_job j = {.wanted = malloc(sizeof(*j.wanted))};
    if (j.wanted)
        *j.wanted = true;
    j.job = (struct kp_window_job){.mode = w->mode, .wanted = j.wanted, .n_launches = 1};
    return j;
}

const struct kp_repetition kp_together = {
    .job = job_of_whole, .issue = issue, .rehearse = rehearse, .tries = 1, .prepare = prepare, .over = over};
