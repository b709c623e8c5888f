/*
 * Replay: saves memory when the window opens. When it closes, issues its operations again, once for each pass.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/lock.h"
#include "preload/os/stdout_mute.h"
#include "preload/program/hostmem.h"
#include "preload/program/ctx_wait.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/window/claim.h"
#include "preload/window/flags.h"
#include "preload/window/host_calls.h"
#include "preload/window/issue.h"
#include "preload/window/job.h"
#include "preload/window/mapped.h"
#include "preload/window/new_memory.h"
#include "preload/window/probe.h"
#include "preload/window/reach.h"
#include "preload/window/reads.h"
#include "preload/window/repeat.h"
#include "preload/window/replaying.h"
#include "preload/window/strategy.h"
#include "preload/window/stuck.h"
#include "preload/window/waits.h"

static bool suits(const struct kp_question *q)
{
    return kp_admit_counters(q) && !q->setup->one_pass && !q->fit.obstacle;
}

static const char *admit(const struct kp_question *q)
{
    return q->fit.alone;
}

/* Counts once if memory cannot be saved, unless the launch may wait for the host or for partners on other devices. */
static void leave_to_counting(struct kp_window *w, const struct kp_question *q, char **why)
{
    if ((q->fit.host && !q->fit.ends) || kp_context_several(w->setup))
        return;
    kp_session_warn(KP_FAILURE_IN_PART, *why ? *why : "memory cannot be saved");
    w->obstacle = kp_memory_unsaved;
    w->context->unsaved = true;
    free(*why);
    *why = NULL;
}

/* Saves the context's memory. KP_VENDOR: the checkpoint fails for a green context with OUT_OF_MEMORY, after it has
 * waited for all work of the device (CUPTI 13.0, H200). It is not asked again there. Nor are launches counted one at a
 * time: contexts that share a device run side by side, and kernels of one may wait for those of another. */
static bool saves(struct kp_context *c, char **why)
{
    if (c->unsavable)
        return false;
    bool saved = !kp_collector_save(c->collector, why);
    c->unsavable = !saved && c->facts.sm_count < c->device.sm_count;
    return saved;
}

static bool open_window(struct kp_window *w, const struct kp_question *q, char **why, const char **refusal)
{
    bool kept = true;
    if (!saves(w->context, why)) {
        if (!w->context->unsavable)
            leave_to_counting(w, q, why);
        return false;
    }
    if (q->fit.host)
        kp_reach_host(w->setup->driver, q->launch, &w->host, KP_MOST_COPIED, &kept);
    if (!kept) {
        kp_collector_drop(w->context->collector);
        *refusal = "can reach more host memory than is kept for a replay";
        return false;
    }
    if (kp_hostmem_rewound() && !q->fit.alone) {
        w->keeps_host = kp_collector_has_room(w->context->collector, 0);
        w->alone = w->keeps_host ? NULL : kp_host_rewound;
    }
    return true;
}

static CUresult issue(struct kp_window *w, struct kp_item *i)
{
    return kp_issue_launch(w, i, NULL);
}

/* ---- closing ---- */

void kp_replay_ended(struct kp_window *w)
{
    if (!w->ran_ms)
        w->ran_ms = 1 + (long)((kp_now_ns() - w->opened_ns - w->ours_ns) / 1e6);
}

void kp_replay_passes(struct kp_window *w, const struct kp_repetition *how, long more_ms, struct kp_job *j,
                      struct kp_window_outcome *out)
{
    struct kp_mute mute;
    struct kp_repeat repeat = {w, more_ms + 2 * w->ran_ms};
    w->cut = w->stuck = 0;
    if (!j->wanted)
        return;
    j->job.issue = how->issue;
    j->job.rehearse = how->rehearse;
    j->job.arg = &repeat;
    kp_mute_begin(&mute);
    kp_claim_counters(w->setup->driver, w->context);
    kp_collector_replay(w->context->collector, &j->job, out);
    kp_mute_end(&mute);
}

static void run_passes(struct kp_window *w, const struct kp_repetition *how, struct kp_window_outcome *out)
{
    struct kp_job j = how->job(w);
    kp_replay_passes(w, how, KP_REHEARSAL_MS, &j, out);
    if (j.wanted)
        kp_probe_learn(w, j.job.executed, j.job.n_executed);
    else
        out->note = kp_strdup("out of memory");
    kp_job_free(&j);
}

static bool has_wanted(const struct kp_window *w)
{
    size_t k = 0;
    while (k < w->end && !w->items[k].result)
        k++;
    return k < w->end;
}

/* Counts the launches of the window; where a read comes out differently, once more those before it. */
static void count(struct kp_window *w, const struct kp_repetition *how, struct kp_window_outcome *out)
{
    for (int tries = 0; tries < how->tries && has_wanted(w); tries++) {
        run_passes(w, how, out);
        kp_reads_learn(w, out->replay.failed == KP_STAGE_NONE);
        if (!w->cut || out->replay.dead || out->replay.damaged)
            return;
        w->end = w->cut - 1;
        if (tries + 1 == how->tries || !has_wanted(w))
            return;
        kp_counters_free(out->counters);
        free(out->note);
        *out = (struct kp_window_outcome){.note = NULL};
    }
}

/* Keeps the memory of the program's own execution where the program has read from it, or has written it. False: it
 * cannot be kept. */
static bool keep_own(struct kp_window *w, struct kp_window_outcome *out)
{
    struct kp_collector *c = w->context->collector;
    if (!w->reads && !w->keeps_host)
        return true;
    if (kp_collector_keep(c, &out->note))
        return false;
    if (!kp_collector_lacks_new(c) || kp_new_memory_keep(w))
        return true;
    out->note = kp_strdup("the device has no room for a copy of memory that is new in the window: not replayed");
    return false;
}

/* Puts new memory back that the kept state lacks. */
static void put_back_new(const struct kp_window *w, struct kp_window_outcome *out)
{
    if (!out->replay.dead && kp_new_memory_put_back(w) != CUDA_SUCCESS)
        out->replay.damaged = true;
}

/* Counts the launches, and leaves the memory of the program's own execution. */
static void count_own(struct kp_window *w, const struct kp_repetition *how, struct kp_window_outcome *out)
{
    kp_reads_collect(w);
    if (!keep_own(w, out))
        return;
    if (!kp_mapped_still(w)) {
        out->note = kp_strdup("the driver has given up memory that a graph of the window allocated: not replayed");
        return;
    }
    if (!kp_repeat_make_twins(w)) {
        out->note = kp_strdup("the driver made no events that order the window's streams again: not replayed");
        return;
    }
    kp_snapshot_keep(&w->host);
    if (how->prepare)
        how->prepare(w);
    count(w, how, out);
    if (how->over)
        how->over(w);
    put_back_new(w, out);
    kp_repeat_set_all(w);
    kp_snapshot_settle(&w->host);
}

/* Repeats nothing: another thread's call may have changed memory within the window. */
static void close_spoiled(struct kp_window *w, struct kp_window_outcome *out)
{
    w->hangs = kp_patience_wait(w->setup->driver, w->context->ctx, KP_EXIT_MS) != CUDA_SUCCESS;
    if (w->hangs)
        kp_collector_leave(w->context->collector);
    else
        kp_collector_drop(w->context->collector);
    out->note = kp_strdup("a call of another thread did not end while the window was open: not replayed");
}

/* Of a host function that does not end, no launch is to blame. */
static void give_up_waiting(struct kp_window *w, long waited_ms, bool called, struct kp_window_outcome *out)
{
    if (!called)
        kp_stuck_note_unended(w);
    kp_collector_leave(w->context->collector);
    w->hangs = true;
    if (asprintf(&out->note,
                 "the window's launches did not end within %ld s (%s waits for something that comes later): not "
                 "replayed",
                 waited_ms / 1000, called ? "a host function" : "one of them") < 0)
        out->note = NULL;
}

/* Repeats nothing: the last launch waits for the host. */
static void close_unending(struct kp_window *w, struct kp_window_outcome *out)
{
    w->hangs = true;
    kp_collector_leave(w->context->collector);
    out->note = kp_strdup("a kernel that was made soon after waits for the host, and memory cannot be restored "
                          "meanwhile: not replayed");
}

static long end_wait(const struct kp_window *w)
{
    if (kp_flags_hurried())
        return KP_EXIT_MS;
    if (w->left && kp_context_beside(w->context, NULL))
        return KP_ELSEWHERE_MS;
    return kp_stuck_may_wait(w) ? KP_LONGER_MS : KP_END_MS;
}

/* Waits with a limit: the program itself may go on where a window closes, and a launch may wait for exactly that. */
void kp_replay_close(struct kp_window *w, const struct kp_repetition *how, struct kp_window_outcome *out)
{
    long end_ms = end_wait(w);
    if (kp_flags_spoiled() || w->unending) {
        (w->unending ? close_unending : close_spoiled)(w, out);
        return;
    }
    bool called;
    CUresult rc = kp_host_calls_wait(w, &end_ms, &called);
    if (rc == CUDA_ERROR_NOT_READY) {
        give_up_waiting(w, end_ms, called, out);
        return;
    }
    if (rc != CUDA_SUCCESS) {
        kp_job_failed(w, out);
        return;
    }
    kp_replay_ended(w);
    kp_timeline_pause(w->context->id);
    if (w->wanted)
        count_own(w, how, out);
    kp_collector_drop(w->context->collector);
    kp_timeline_resume();
}

const struct kp_repetition kp_one_by_one = {
    .job = kp_job_make, .issue = kp_repeat_issue, .rehearse = kp_repeat_rehearse, .tries = 3};

static void close_window(struct kp_window *w, struct kp_window_outcome *out)
{
    kp_replay_close(w, &kp_one_by_one, out);
}

static void abandon(struct kp_window *w)
{
    kp_collector_leave(w->context->collector);
}

const struct kp_strategy kp_strategy_replay = {
    .name = "replay",
    .rewinds = true,
    .suits = suits,
    .admit = admit,
    .open = open_window,
    .issue = issue,
    .close = close_window,
    .abandon = abandon,
};
