#include "preload/window/waits.h"

#include "base/lock.h"
#include "preload/os/progress.h"
#include "preload/program/ctx_wait.h"
#include "preload/window/signs.h"

/* Waits for what does not end cost the program time that it would not need without us: all of them together take no
 * more than this; then they are short, as what hangs is likely to hang again. ms. */
enum { WASTED_MS = 20000 };
static long wasted_ms;

const char kp_waits_for_host[] = "waits for the host, not replayed";

/* Waits for the launch's stream. CUDA_ERROR_NOT_READY: not done in time. */
CUresult kp_wait_for_stream(const struct kp_driver *d, CUstream stream, long ms)
{
    long start = kp_now_ms(), waited = 0;
    CUresult rc = d->cuStreamQuery(stream);
    for (int spins = 0; rc == CUDA_ERROR_NOT_READY && waited < ms; rc = d->cuStreamQuery(stream)) {
        if (spins++ > 100)
            kp_nap(waited);
        waited = kp_now_ms() - start;
    }
    return rc;
}

static long within_budget(long ms, long least)
{
    long left = WASTED_MS - wasted_ms;
    left = left < least ? least : left;
    return ms < left ? ms : left;
}

static CUresult note_wasted(CUresult rc, long since)
{
    if (rc == CUDA_ERROR_NOT_READY)
        wasted_ms += kp_now_ms() - since;
    return rc;
}

CUresult kp_wait_rehearsed(const struct kp_driver *d, CUstream stream, long ms)
{
    long start = kp_now_ms(), least = ms - KP_REHEARSAL_MS + KP_SHORT_MS;
    return note_wasted(kp_wait_for_stream(d, stream, within_budget(ms, least)), start);
}

/* Waits for a context, which is current. */
CUresult kp_wait_for_context(const struct kp_driver *d, CUcontext ctx, long ms, long least)
{
    long start = kp_now_ms();
    ms = within_budget(ms, least);
    kp_progress_step("waiting for launches to end", false);
    return note_wasted(kp_patience_wait(d, ctx, ms), start);
}

long kp_wait_end_ms(void)
{
    return kp_signs_in_a_hurry() ? KP_EXIT_MS : KP_END_MS;
}

bool kp_wait_watch(const struct kp_driver *d, struct kp_context *c, struct kp_known_function *f)
{
    bool ends = kp_wait_for_context(d, c->ctx, KP_ALONE_MS, KP_SHORT_MS) != CUDA_ERROR_NOT_READY;
    c->stalled = !ends; /* later launches need not wait as long to find that out */
    if (f) {
        f->ends = ends;
        f->waits = ends ? NULL : kp_waits_for_host;
    }
    return ends;
}
