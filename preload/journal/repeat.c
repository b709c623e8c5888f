#include "preload/journal/repeat.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/work.h"
#include "collectors/replay/replay.h"
#include "preload/os/progress.h"
#include "preload/program/attributes.h"
#include "preload/journal/event_twins.h"
#include "preload/journal/issue.h"
#include "preload/journal/reads.h"
#include "preload/contexts/unending.h"
#include "preload/program/waits.h"

/* Restores new memory to its contents at allocation, before any stream can use it. The copy waits for earlier work,
 * which has all ended once already. The last of several copies waits for all of them. */
static CUresult put_back(struct kp_journal *j, const struct kp_item *i)
{
    CUresult rc = kp_op_issue(&i->op);
    if (rc != CUDA_SUCCESS || (i + 1 < j->items + j->end && i[1].backup))
        return rc;
    return kp_wait_stream(j->setup->driver, CU_STREAM_LEGACY, kp_limit_first(KP_WAIT_PUT_BACK));
}

/* ---- operations ---- */

/* Uses the event's twin, so that the program's events keep the state of its own execution. With a single stream there
 * is no twin, and nothing to order. */
static CUresult issue_op(const struct kp_journal *j, const struct kp_op *op)
{
    struct kp_op with_twin = *op;
    if (!op->real)
        return CUDA_SUCCESS;
    if (!op->event)
        return kp_op_issue(op);
    CUevent twin = kp_event_twin(j, op->args[op->event - 1]);
    if (!twin)
        return CUDA_SUCCESS;
    with_twin.args[op->event - 1] = (uintptr_t)twin;
    return kp_op_issue(&with_twin);
}

/* Issues an item again. `serial`: an operation waits for the end of the one before it, because the program's host may
 * have done so between streams. A single stream keeps the order anyway. */
static CUresult issue_again(struct kp_journal *j, struct kp_item *i, const struct kp_issue_hooks *hooks, bool serial)
{
    if (i->op.calls_host)
        return CUDA_SUCCESS;
    serial = serial && j->several;
    CUresult rc = serial ? kp_issue_settle(j) : CUDA_SUCCESS;
    if (rc != CUDA_SUCCESS)
        return rc;
    if (i->backup)
        return put_back(j, i);
    if (i->read.site)
        return kp_reads_again(j, i);
    if (i->sets)
        return kp_op_issue(&i->op);
    if (!i->is_launch) {
        j->unsettled = true;
        return issue_op(j, &i->op);
    }
    rc = kp_issue_again(j, &i->entry, hooks);
    j->unsettled |= serial;
    return rc;
}

/* ---- attributes ---- */

static void set(const struct kp_item *i, const uint64_t *args)
{
    struct kp_op op = i->op;
    memcpy(op.args, args, sizeof(op.args));
    if (i->sets)
        kp_op_issue(&op); /* the driver took both values before */
}

/* Sets attributes to what they were when the window opened: each to its first value last. */
static void unset_all(const struct kp_journal *j)
{
    for (size_t k = j->settings ? j->n : 0; k; k--)
        set(&j->items[k - 1], j->items[k - 1].before);
}

void kp_repeat_set_all(const struct kp_journal *j)
{
    for (size_t k = 0; j->settings && k < j->n; k++)
        set(&j->items[k], j->items[k].op.args);
}

/* ---- repetitions ---- */

void kp_repeat_begin(struct kp_journal *j)
{
    kp_snapshot_restore(&j->host);
    unset_all(j);
    j->unsettled = false; /* the context was waited for */
}

CUresult kp_repeat_one(struct kp_journal *j, struct kp_item *i)
{
    return issue_again(j, i, NULL, false);
}

static CUresult issue_all(void *arg, const struct kp_issue_hooks *hooks)
{
    (void)arg;
    struct kp_journal *j = &kp_journal_now;
    CUresult rc = CUDA_SUCCESS;
    kp_repeat_begin(j);
    for (size_t i = 0; i < j->end && rc == CUDA_SUCCESS; i++, kp_safe_point())
        rc = issue_again(j, &j->items[i], hooks, !j->stuck || i < j->stuck);
    return rc;
}

/* ---- the rehearsal ---- */

/* Waits, in limited time, if the program waited before it issued operation `at`, which may need that. Stops doing so
 * after a timeout: the launch that does not end may wait for something later. Returns true if all has ended. */
static bool wait_as_program(const struct kp_repeat *r, size_t at, unsigned *waits)
{
    enum { MOST_WAITS = 2 };
    struct kp_journal *j = &kp_journal_now;
    if (!at || j->items[at].epoch == j->items[at - 1].epoch || *waits >= MOST_WAITS)
        return false;
    ++*waits;
    return kp_wait_context(j->setup->driver, j->context->ctx, r->limit_ms, r->least_ms) == CUDA_SUCCESS;
}

/* A rehearsal under way. */
struct rehearsal {
    const struct kp_repeat *r;
    bool late;     /* a launch has not ended in time */
    bool unread;   /* and a value after it was not read again */
    bool left_out; /* so launches after that were left out */
    unsigned waits;
};

/* Waits for a launch. One that does not end in time may wait for something later. */
static CUresult end_launch(struct rehearsal *h, size_t at)
{
    struct kp_journal *j = &kp_journal_now;
    CUresult rc = kp_wait_rehearsed(j->setup->driver, kp_launch_stream(&j->items[at].entry.launch), h->r->limit_ms);
    if (rc != CUDA_ERROR_NOT_READY)
        return rc;
    h->late = true;
    j->stuck = j->stuck ? j->stuck : at + 1;
    kp_stuck_note(&j->items[at].entry.launch, j->items[at].entry.function);
    return CUDA_SUCCESS;
}

/* Returns true if a launch that did not end in time has ended since: before a read, shortly, and wherever the program
 * waited. */
static bool has_ended(struct rehearsal *h, size_t at)
{
    struct kp_journal *j = &kp_journal_now;
    if (j->items[at].read.site && !h->unread)
        return kp_wait_for(j->setup->driver, j->context->ctx, KP_WAIT_RESCUE) == CUDA_SUCCESS;
    return !h->unread && wait_as_program(h->r, at, &h->waits);
}

/* Returns true if the operation is left out: while a launch does not end, nothing can be read, and later launches might
 * depend on what would have been read. */
static bool is_left_out(struct rehearsal *h, const struct kp_item *item)
{
    h->unread |= h->late && item->read.site;
    h->left_out |= h->unread && item->is_launch;
    return h->unread && (item->is_launch || item->read.site);
}

static CUresult rehearse_one(struct rehearsal *h, size_t at)
{
    struct kp_journal *j = &kp_journal_now;
    struct kp_item *item = &j->items[at];
    h->late = h->late && !has_ended(h, at);
    if (is_left_out(h, item))
        return CUDA_SUCCESS;
    CUresult rc = issue_again(j, item, NULL, !h->late);
    if (rc == CUDA_SUCCESS && item->is_launch && !h->late)
        rc = end_launch(h, at);
    if (h->late)
        kp_snapshot_release(&j->host); /* the host's values when the program's own launches had ended */
    return rc;
}

/* Issues the launches that were left out, if a launch still does not end without them. */
static CUresult rescue(struct rehearsal *h)
{
    struct kp_journal *j = &kp_journal_now;
    bool after = false;
    if (!h->left_out || kp_wait_for(j->setup->driver, j->context->ctx, KP_WAIT_RESCUE) != CUDA_ERROR_NOT_READY)
        return CUDA_SUCCESS;
    CUstream stuck = kp_launch_stream(&j->items[j->stuck - 1].entry.launch);
    for (size_t i = j->stuck; i < j->end; i++) {
        after |= j->items[i].read.site != NULL;
        if (!after || !j->items[i].is_launch)
            continue;
        CUstream stream = kp_launch_stream(&j->items[i].entry.launch);
        CUresult rc = issue_again(j, &j->items[i], NULL, false);
        if (rc == CUDA_SUCCESS && stream != stuck) /* what follows on other streams may need it */
            rc = kp_wait_stream(j->setup->driver, stream, kp_limit_first(KP_WAIT_RESCUE));
        if (rc != CUDA_SUCCESS && rc != CUDA_ERROR_NOT_READY)
            return rc;
    }
    return CUDA_SUCCESS;
}

/* Dry run: waits after each launch, like counter passes. A launch that waits for a later one, or for the host, would
 * hang there; a timeout detects it here. The rest then runs without such waits, so that everything ends. */
static int rehearse(void *arg)
{
    struct rehearsal h = {.r = arg};
    struct kp_journal *j = &kp_journal_now;
    CUresult rc = CUDA_SUCCESS;
    kp_repeat_begin(j);
    kp_progress_step("a first repetition of a window, without counters", false);
    for (size_t i = 0; i < j->end && rc == CUDA_SUCCESS; i++, kp_safe_point())
        rc = rehearse_one(&h, i);
    if (rc == CUDA_SUCCESS)
        rc = rescue(&h);
    CUresult end = kp_issue_end(j);
    if (end == CUDA_ERROR_NOT_READY)
        return KP_ISSUE_UNENDED;
    if (end != CUDA_SUCCESS)
        return (int)end;
    if (rc != CUDA_SUCCESS)
        return rc == (CUresult)KP_ISSUE_CUT ? KP_ISSUE_CUT : KP_ISSUE_REFUSED;
    return j->stuck ? KP_ISSUE_TOO_LONG : 0;
}

const struct kp_order kp_one_by_one = {.issue = issue_all, .rehearse = rehearse, .tries = 3};
