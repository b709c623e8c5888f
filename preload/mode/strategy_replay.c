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
#include "preload/mode/counter_owner.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/job.h"
#include "preload/results/probe.h"
#include "preload/graphs/host_pointers.h"
#include "preload/mode/repeat_common.h"
#include "preload/mode/strategy.h"
#include "preload/contexts/unending.h"
#include "preload/program/waits.h"

static bool suits_replay(const struct kp_question *q)
{
    return kp_admit_counters(q);
}

static enum kp_reason admit_replay(const struct kp_question *q)
{
    return q->fit.alone_reason;
}

/* Counts once if memory cannot be saved, unless the launch may wait for the host or for partners on other devices. */
static void leave_to_counting(struct kp_window *w, const struct kp_question *q, struct kp_why *why)
{
    if ((q->fit.host && !q->fit.ends) || kp_context_several(w->setup))
        return;
    kp_session_warn(KP_FAILURE_IN_PART, kp_why_text(why));
    w->once_reason = KP_REASON_MEMORY_UNSAVED;
    w->context->unsaved = true;
    kp_why_free(why);
}

/* Saves the context's memory. KP_VENDOR: the checkpoint fails for a green context with OUT_OF_MEMORY, after it has
 * waited for all work of the device (CUPTI 13.0, H200). It is not called again there. Launches are not counted one at a
 * time either: contexts that share a device run concurrently, and kernels of one may wait for those of another. */
static bool saves(struct kp_context *c, struct kp_why *why)
{
    if (c->unsavable)
        return false;
    bool saved = !kp_collector_save(c->collector, why);
    c->unsavable = !saved && c->facts.sm_count < c->device.sm_count;
    return saved;
}

static bool open_replay(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    if (!saves(w->context, why)) {
        if (!w->context->unsavable)
            leave_to_counting(w, q, why);
        return false;
    }
    if (q->fit.host && !kp_journal_takes_host(q->launch)) {
        kp_collector_drop(w->context->collector);
        *reason = KP_REASON_HOST_TOO_MUCH;
        return false;
    }
    if (kp_hostmem_rewound() && !q->fit.alone_reason) {
        if (kp_collector_has_room(w->context->collector, 0))
            kp_journal_keeps_host();
        else
            w->alone_reason = KP_REASON_HOST_REWOUND;
    }
    return true;
}

static CUresult issue_replay(struct kp_window *w, struct kp_entry *e)
{
    (void)w;
    return kp_journal_issue(e, NULL);
}

/* ---- closing ---- */

void kp_replay_ended(struct kp_window *w)
{
    if (!w->ran_ms)
        w->ran_ms = 1 + (long)((kp_now_ns() - w->opened_ns - w->ours_ns) / 1e6);
}

void kp_replay_passes(struct kp_window *w, const struct kp_order *how, enum kp_wait more, struct kp_job *j,
                      struct kp_window_outcome *out)
{
    struct kp_mute mute;
    struct kp_repeat repeat = {kp_limit_first(more) + 2 * w->ran_ms, kp_limit_next(more)};
    kp_journal_begin_repeats();
    if (!j->wanted)
        return;
    j->job.issue = how->issue;
    j->job.rehearse = how->rehearse;
    j->job.settle = kp_journal_end_repeat;
    j->job.arg = &repeat;
    kp_mute_begin(&mute);
    kp_claim_counters(w->setup->driver, w->context);
    kp_collector_replay(w->context->collector, &j->job, out);
    if (out->replay.code == KP_ISSUE_UNENDED)
        kp_journal_hangs();
    kp_mute_end(&mute);
}

static void run_passes(struct kp_window *w, const struct kp_order *how, struct kp_window_outcome *out)
{
    struct kp_job j = how->whole ? kp_job_of_whole(w) : kp_job_make(w);
    kp_replay_passes(w, how, KP_WAIT_REHEARSAL, &j, out);
    if (j.wanted)
        kp_probe_learn(j.job.executed, j.job.n_executed);
    else
        out->why = kp_why_of(KP_REASON_OUT_OF_MEMORY, NULL);
    kp_job_free(&j);
}

static bool has_wanted(void)
{
    const size_t end = kp_journal_facts().repeated;
    for (size_t k = 0; k < end; k++) {
        const struct kp_entry *e = kp_journal_entry(k);
        if (e && e->result)
            return true;
    }
    return false;
}

/* Counts the launches of the window; if a read comes out differently, counts those before it once more. */
static void count(struct kp_window *w, const struct kp_order *how, struct kp_window_outcome *out)
{
    for (int tries = 0; tries < how->tries && has_wanted(); tries++) {
        run_passes(w, how, out);
        bool cut = kp_journal_was_cut(out->replay.failed == KP_STAGE_NONE);
        if (!cut || out->replay.dead || out->replay.damaged || tries + 1 == how->tries || !has_wanted())
            return;
        kp_counters_free(out->counters);
        kp_why_free(&out->why);
        *out = (struct kp_window_outcome){.why = {KP_REASON_NONE, NULL}};
    }
}

/* Keeps the memory of the program's own execution if the program has read or written it. *lacks: new memory is not
 * included. Returns false if it cannot be kept. */
static bool keep_own(const struct kp_window *w, bool *lacks, struct kp_window_outcome *out)
{
    const struct kp_journal_facts j = kp_journal_facts();
    struct kp_collector *c = w->context->collector;
    bool needed = j.reads || j.keeps_host;
    if (needed && kp_collector_keep(c, &out->why))
        return false;
    *lacks = needed && kp_collector_lacks_new(c);
    return true;
}

/* Counts the launches, and leaves the memory of the program's own execution. */
static void count_own(struct kp_window *w, const struct kp_order *how, struct kp_window_outcome *out)
{
    bool lacks;
    kp_journal_collect();
    if (!keep_own(w, &lacks, out))
        return;
    enum kp_reason why = kp_journal_prepare(lacks);
    if (why) {
        out->why = kp_why_of(why, NULL);
        return;
    }
    if (how->prepare)
        how->prepare();
    count(w, how, out);
    if (how->over)
        how->over();
    if (kp_journal_restore(out->replay.dead) != CUDA_SUCCESS)
        out->replay.damaged = true;
}

/* Repeats nothing: another thread's call may have changed memory within the window. */
static void close_spoiled(struct kp_window *w, struct kp_window_outcome *out)
{
    if (kp_patience_wait(w->setup->driver, w->context->ctx, kp_limit_first(KP_WAIT_LEAVE)) != CUDA_SUCCESS) {
        kp_journal_hangs();
        kp_collector_leave(w->context->collector);
    } else {
        kp_collector_drop(w->context->collector);
    }
    out->why = kp_why_of(KP_REASON_WINDOW_SPOILED, NULL);
}

/* If a host function does not end, no launch is to blame. */
static void give_up_waiting(struct kp_window *w, long waited_ms, bool called, struct kp_window_outcome *out)
{
    if (!called)
        kp_journal_note_unended();
    kp_collector_leave(w->context->collector);
    kp_journal_hangs();
    char *text;
    if (asprintf(&text,
                 "the window's launches did not end within %ld s (%s waits for something that comes later): not "
                 "replayed",
                 waited_ms / 1000, called ? "a host function" : "one of them") < 0)
        text = NULL;
    out->why = kp_why_of(called ? KP_REASON_HOST_FUNCTION_WAITS : KP_REASON_WINDOW_UNENDED, text);
}

/* Repeats nothing: the last launch waits for the host. */
static void close_unending(struct kp_window *w, struct kp_window_outcome *out)
{
    kp_journal_hangs();
    kp_collector_leave(w->context->collector);
    out->why = kp_why_of(KP_REASON_NEXT_WAITS, NULL);
}

static long end_wait(const struct kp_window *w)
{
    enum kp_wait for_what = w->left && kp_context_beside(w->context, NULL) ? KP_WAIT_WINDOW_LEFT
                            : kp_journal_may_wait()                        ? KP_WAIT_WINDOW_WAITS
                                                                           : KP_WAIT_WINDOW_END;
    return kp_flags_hurried() ? kp_limit_at_exit(for_what) : kp_limit_first(for_what);
}

/* Waits with a limit: closing a window may be what lets the program go on, and a launch may wait for exactly that. */
void kp_replay_close(struct kp_window *w, const struct kp_order *how, struct kp_window_outcome *out)
{
    long end_ms = end_wait(w);
    if (kp_flags_spoiled() || w->unending) {
        (w->unending ? close_unending : close_spoiled)(w, out);
        return;
    }
    bool called;
    CUresult rc = kp_journal_wait(&end_ms, &called);
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
    if (kp_journal_facts().wanted)
        count_own(w, how, out);
    if (out->replay.code == KP_ISSUE_UNENDED)
        kp_collector_leave(w->context->collector);
    else
        kp_collector_drop(w->context->collector);
    kp_timeline_resume();
}

static void close_replay(struct kp_window *w, struct kp_window_outcome *out)
{
    kp_replay_close(w, &kp_one_by_one, out);
}

static void abandon_replay(struct kp_window *w)
{
    kp_collector_leave(w->context->collector);
}

const struct kp_strategy kp_strategy_replay = {
    .name = "replay",
    .rewinds = true,
    .suits = suits_replay,
    .admit = admit_replay,
    .open = open_replay,
    .issue = issue_replay,
    .close = close_replay,
    .abandon = abandon_replay,
};
