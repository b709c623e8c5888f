#include "preload/window/issue.h"

#include <stdlib.h>

#include "preload/os/progress.h"
#include "preload/window/waits.h"

const char kp_waits_for_more[] = "does not end by itself (waits for the host or another kernel), not replayed";

/* Counted launches wait for their kernels; copies and memsets do not, and must not run beside the next kernel. */
static CUresult settle(void)
{
    bool wait = kp_window.unsettled;
    kp_window.unsettled = false;
    return wait ? kp_window.setup->driver->cuCtxSynchronize() : CUDA_SUCCESS;
}

/* New memory as it was when it was allocated. Nothing may use it before the copy is done, in whatever stream; it waits
 * for what was issued before it, which has ended once already. */
static CUresult put_back(const struct kp_item *i)
{
    CUresult rc = kp_op_issue(&i->op);
    return rc == CUDA_SUCCESS ? kp_wait_for_stream(kp_window.setup->driver, CU_STREAM_LEGACY, KP_END_MS) : rc;
}

/* A launch between the hooks, where it has a result and there are any. */
CUresult kp_issue_launch(struct kp_item *i, const struct kp_issue_hooks *hooks)
{
    if (!hooks || !i->result)
        return i->launch.issue(&i->launch);
    CUresult rc = settle();
    if (rc == CUDA_SUCCESS)
        rc = hooks->before(hooks->arg, kp_record_stream(&i->launch));
    if (rc == CUDA_SUCCESS)
        rc = i->launch.issue(&i->launch);
    return rc == CUDA_SUCCESS ? hooks->after(hooks->arg) : rc;
}

static CUevent twin_of(uint64_t event)
{
    for (size_t i = 0; i < kp_window.n_twins; i++)
        if ((uint64_t)(uintptr_t)kp_window.twins[i].of == event)
            return kp_window.twins[i].event;
    return NULL;
}

/* The program's events keep what its own execution recorded. Without a twin the operation is left out: it makes orders
 * between streams only, which hold where each operation waits for the one before it. */
static CUresult issue_op(const struct kp_op *op)
{
    struct kp_op with_twin = *op;
    if (!op->real)
        return CUDA_SUCCESS;
    if (!op->event)
        return kp_op_issue(op);
    CUevent twin = twin_of(op->args[op->event - 1]);
    if (!twin)
        return CUDA_SUCCESS;
    with_twin.args[op->event - 1] = (uintptr_t)twin;
    return kp_op_issue(&with_twin);
}

/* An operation of a repetition. The host of the program may have ordered operations of several streams by waiting in
 * between: there, `serial`, each waits for the end of the one before it. Within one stream they are in order anyway. */
static CUresult issue_again(struct kp_item *i, const struct kp_issue_hooks *hooks, bool serial)
{
    serial = serial && kp_window.several;
    CUresult rc = serial ? settle() : CUDA_SUCCESS;
    if (rc != CUDA_SUCCESS)
        return rc;
    if (i->backup)
        return put_back(i);
    if (!i->is_launch) {
        kp_window.unsettled = true;
        return issue_op(&i->op);
    }
    rc = kp_issue_launch(i, hooks);
    kp_window.unsettled |= serial;
    return rc;
}

CUresult kp_issue_all(void *arg, const struct kp_issue_hooks *hooks)
{
    CUresult rc = CUDA_SUCCESS;
    (void)arg;
    kp_snapshot_restore(&kp_window.host);
    kp_window.unsettled = false; /* the context has been waited for */
    for (size_t i = 0; i < kp_window.n && rc == CUDA_SUCCESS; i++)
        rc = issue_again(&kp_window.items[i], hooks, !kp_window.stuck || i < kp_window.stuck);
    return rc;
}

/* In the window's context. Only for several streams: in one, records and waits change nothing. */
void kp_issue_make_twins(void)
{
    const struct kp_driver *d = kp_window.setup->driver;
    for (size_t k = 0; kp_window.several && d->cuEventCreate && d->cuEventDestroy && k < kp_window.n; k++) {
        const struct kp_op *op = &kp_window.items[k].op;
        uint64_t of = !kp_window.items[k].is_launch && op->real && op->event ? op->args[op->event - 1] : 0;
        struct kp_twin *grown;
        if (!of || twin_of(of) || !(grown = realloc(kp_window.twins, (kp_window.n_twins + 1) * sizeof(*grown))))
            continue;
        kp_window.twins = grown;
        grown[kp_window.n_twins] = (struct kp_twin){.of = (CUevent)(uintptr_t)of};
        kp_window.n_twins += d->cuEventCreate(&grown[kp_window.n_twins].event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
    }
}

/* ---- the rehearsal ---- */

/* Graphs of which a launch did not end by itself: the last ones. */
enum { MOST_STUCK = 64 };
static CUgraphExec stuck_graphs[MOST_STUCK];
static size_t n_stuck_graphs;

/* Why a launch is not to be waited for, or NULL. */
const char *kp_issue_known_to_wait(const struct kp_launch *l, const struct kp_known_function *f)
{
    for (size_t i = 0; l->is_graph && i < n_stuck_graphs && i < MOST_STUCK; i++)
        if (stuck_graphs[i] == l->graph)
            return kp_waits_for_more;
    return f ? f->waits : NULL;
}

/* A launch is known not to end by itself: nothing waits for its kernel again. */
static void note_stuck(size_t at)
{
    kp_window.stuck = kp_window.stuck ? kp_window.stuck : at + 1;
    if (kp_window.items[at].function)
        kp_window.items[at].function->waits = kp_waits_for_more;
    else
        stuck_graphs[n_stuck_graphs++ % MOST_STUCK] = kp_window.items[at].launch.graph;
}

/* Behind a launch that does not end: where the program has waited for something before it went on, what comes next may
 * need that. All that was issued is waited for, in limited time, unless that was of no use before: what the launch
 * waits for may come only later. Whether everything has ended. */
static bool wait_as_program(size_t at, long limit, unsigned *waits)
{
    enum { MOST_WAITS = 2 };
    if (!at || kp_window.items[at].epoch == kp_window.items[at - 1].epoch || *waits >= MOST_WAITS)
        return false;
    ++*waits;
    return kp_wait_for_context(kp_window.setup->driver, kp_window.context->ctx, limit, KP_SHORT_MS) == CUDA_SUCCESS;
}

/* Dry run: waits after each launch, as counter passes do. A launch that waits for another one, or for something that
 * the host does later, would wait for ever there; here it is found out. The rest is issued without such waits, so that
 * all comes to its end. */
int kp_issue_rehearse(void *arg)
{
    const struct kp_driver *d = kp_window.setup->driver;
    const long *limit = arg;
    bool late = false;
    unsigned waits = 0;
    kp_snapshot_restore(&kp_window.host);
    kp_window.unsettled = false;
    kp_progress_step("a first repetition of a window, without counters", false);
    for (size_t i = 0; i < kp_window.n; i++) {
        struct kp_item *item = &kp_window.items[i];
        late = late && !wait_as_program(i, *limit, &waits);
        CUresult rc = issue_again(item, NULL, !late);
        if (rc == CUDA_SUCCESS && item->is_launch && !late) {
            rc = kp_wait_rehearsed(d, kp_record_stream(&item->launch), *limit);
            if (rc == CUDA_ERROR_NOT_READY) {
                late = true;
                rc = CUDA_SUCCESS;
                note_stuck(i);
            }
        }
        if (late)
            kp_snapshot_release(&kp_window.host); /* what the host had set when the program's own launches ended */
        if (rc != CUDA_SUCCESS)
            return d->cuCtxSynchronize() == CUDA_SUCCESS ? KP_ISSUE_REFUSED : (int)rc;
    }
    CUresult rc = d->cuCtxSynchronize();
    return rc != CUDA_SUCCESS ? (int)rc : kp_window.stuck ? KP_ISSUE_TOO_LONG : 0;
}
