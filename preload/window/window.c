#include "preload/window/window.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "collectors/facts/topology.h"
#include "collectors/replay/rewound.h"
#include "preload/os/exit_first.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/os/progress.h"
#include "preload/os/stdout_mute.h"
#include "preload/os/worker.h"
#include "preload/program/ctx_wait.h"
#include "preload/program/hostmem.h"
#include "preload/session/session.h"
#include "preload/window/batch.h"
#include "preload/window/closers.h"
#include "preload/window/flags.h"
#include "preload/window/issue.h"
#include "preload/window/probe.h"
#include "preload/window/reach.h"
#include "preload/window/record.h"
#include "preload/window/repeat.h"
#include "preload/window/stuck.h"
#include "preload/window/visit.h"
#include "preload/window/waits.h"

/* Launches that nobody wants are taken along when they come between wanted ones, since closing costs as much as a few
 * dozen of them; this many in a row, and the window closes. */
enum { MOST_UNWANTED = 16 };

/* Room of a window whose launches are counted as they come. Starting and stopping the counters once for so many adds a
 * tenth to what each takes; more only delays the evaluation. */
enum { COUNTED_ROOM = 256 };

static const char no_probe[] =
    "read from an activity record, which another user of CUPTI in this process holds, or which "
    "this CUPTI lacks";

static const char one_pass_probe[] =
    "read from an activity record of a run without counters, and this launch was counted as the program ran it";
static const char after_failure_probe[] = "a kernel had failed";
static const char no_context[] = "of a context that the driver gives no facts of";
static const char after_failure[] = "after a kernel had failed";

/* How long a window that is to open waits for the work that came before it; how long a copy of new memory may take,
 * which waits for what runs; and how long the end of a window is waited for where time was wasted before, ms. */
enum { OPEN_MS = 5000, STALLED_MS = 10, COPY_MS = 1000, SHORT_END_MS = 500 };

static struct kp_window *const w = &kp_window_now;

void kp_window_forked(void)
{
    kp_flags_closed();
    kp_patience_forked();
    memset(w, 0, sizeof(*w));
}

/* ---- results ---- */

/* The values of a launch that need no counter. Attributes of the launch win over those of the function. */
static void fill_launch(struct kp_item *i)
{
    struct kp_shape shape = i->launch.shape;
    const struct kp_function *f = &i->function->facts;
    struct kp_launch_extra extra = {.shared_config = i->config.shared_config,
                                    .registers = i->config.registers,
                                    .shared_config_why = !kp_context_cupti() ? w->context->no_counters
                                                         : w->context->dead  ? after_failure_probe
                                                         : w->way == COUNTED ? one_pass_probe
                                                                             : no_probe,
                                    .curves = w->context->curves};
    if (!shape.cluster[0] && f->cluster[0])
        memcpy(shape.cluster, f->cluster, sizeof(shape.cluster));
    if (!shape.cluster_policy)
        shape.cluster_policy = f->cluster_policy;
    kp_launch_metrics(i->result, w->setup->driver, &w->context->device, &w->context->facts, f, &shape, &extra);
    kp_device_metrics_copy(i->result, &w->context->machine);
}

/* Hands the results on: to the worker, which evaluates and stores them. */
static void hand_on(struct kp_window_outcome *out)
{
    struct kp_context *c = w->context;
    struct kp_batch *b = kp_batch_new(w->wanted);
    double each = w->wanted ? (kp_now_ns() - w->opened_ns) : 0;
    if (w->ours_ns < each)
        each = w->ours_ns;
    each = w->wanted ? each / (double)w->wanted : 0;
    sigset_t before = kp_signals_hold();
    for (size_t k = 0; k < w->n; k++) {
        struct kp_item *i = &w->items[k];
        if (!i->result)
            continue;
        if (i->function && !w->hands_off)
            fill_launch(i);
        i->result->launch.passes = (uint32_t)out->replay.passes;
        i->result->launch.profiler_ns = each;
        const char *name = i->function && *i->function->base ? i->function->base : i->result->launch.demangled;
        if (b) {
            kp_batch_add(b, i->result, name ? name : "");
            i->result = NULL;
        }
    }
    kp_signals_let(&before);
    if (!b)
        kp_session_warn(KP_FAILURE_MEMORY, "out of memory: results of a window are lost");
    const char *obstacle = w->setup->one_pass ? NULL : w->obstacle; /* where nothing is replayed it is no news */
    const char *why = c->no_counters ? c->no_counters : out->note ? out->note : obstacle;
    kp_batch_finish(b, w->setup, c, out->counters, why);
    out->counters = NULL;
}

/* ---- closing ---- */

static void judge(const struct kp_window_outcome *out)
{
    struct kp_context *c = w->context;
    if (out->replay.dead)
        c->dead = true;
    if (out->replay.damaged) {
        kp_outcome_failed(KP_FAILURE_DAMAGE);
        kp_log_error(
            "device memory could not be restored for a replay (%s): the program's results from here on are not "
            "to be trusted; no more launches are replayed",
            out->note ? out->note : "no reason given");
        if (!c->no_counters)
            c->no_counters = kp_strdup("a restore of the device memory failed earlier");
    }
    if (c->no_counters)
        kp_session_warn_once(c->no_counters);
    else if (out->note)
        kp_session_warn_once(out->note);
}

/* The profiler refused the plan: perhaps the device lacks some of the counters, or offers none to this user. */
static void plan_again(const struct kp_context_setup *setup, struct kp_context *c)
{
    kp_worker_drain(KP_FOREVER);
    kp_context_plan_again(setup, c);
    if (c->no_counters)
        kp_session_warn_once(c->no_counters);
}

static bool *launches_wanted(void)
{
    bool *list = calloc(w->launches + 1, sizeof(*list));
    size_t n = 0;
    for (size_t k = 0; list && k < w->n; k++)
        if (w->items[k].is_launch)
            list[n++] = w->items[k].result != NULL;
    return list;
}

static void run_passes(struct kp_window_outcome *out)
{
    /* The program's launches have ended: what one of them takes alone is no more than all took. */
    struct kp_repeat repeat = {w, KP_REHEARSAL_MS + 2 * (long)((kp_now_ns() - w->opened_ns) / 1e6)};
    kp_repeat_make_twins(w);
    struct kp_executed *records = calloc(w->launches + 1, sizeof(*records));
    bool *wanted = launches_wanted();
    struct kp_window_job job = {.issue = kp_repeat_issue,
                                .rehearse = kp_repeat_rehearse,
                                .arg = &repeat,
                                .mode = w->mode,
                                .wanted = wanted,
                                .n_launches = w->launches,
                                .executed = records,
                                .probe = records && kp_probe_wanted(w)};
    if (!wanted) {
        out->note = kp_strdup("out of memory");
        w->launches = 0; /* a pass under way ends without results */
    }
    if (w->way == COUNTED) {
        job.n_launches = w->launches;
        kp_collector_count_end(w->context->collector, &job, out);
    } else if (wanted) {
        struct kp_mute mute;
        kp_mute_begin(&mute);
        kp_collector_replay(w->context->collector, &job, out);
        kp_mute_end(&mute);
        kp_probe_learn(w, records, job.n_executed);
    }
    free(wanted);
    free(records);
}

static long end_ms(void)
{
    return kp_flags_hurried() ? KP_EXIT_MS : KP_END_MS;
}

static void give_up_waiting(struct kp_window_outcome *out)
{
    kp_collector_leave(w->context->collector);
    w->hangs = true;
    if (w->way == COUNTED && !w->context->no_counters)
        w->context->no_counters = kp_strdup("work of the context did not end while its launches were counted");
    if (asprintf(&out->note,
                 "the window's launches did not end within %ld s (one of them waits for something that comes later): "
                 "not replayed",
                 end_ms() / 1000) < 0)
        out->note = NULL;
}

static void close_current(struct kp_window_outcome *out)
{
    struct kp_collector *c = w->context->collector;
    if (w->way == REPLAYED && kp_flags_spoiled()) {
        w->hangs = kp_patience_wait(w->setup->driver, w->context->ctx, KP_EXIT_MS) != CUDA_SUCCESS;
        if (w->hangs)
            kp_collector_leave(c);
        else
            kp_collector_drop(c);
        out->note = kp_strdup("a call of another thread did not end while the window was open: not replayed");
        return;
    }
    /* A window may close where the program itself would go on: then a launch that waits for the program would never
     * end, so patience has a limit. What is counted has ended already. */
    CUresult rc = w->way == COUNTED ? w->setup->driver->cuCtxSynchronize()
                                    : kp_wait_context(w->setup->driver, w->context->ctx, end_ms(), SHORT_END_MS);
    if (rc == CUDA_ERROR_NOT_READY) {
        kp_stuck_note_unended(w);
        give_up_waiting(out);
        return;
    }
    if (rc != CUDA_SUCCESS) { /* a fault of the program's own, which its next call tells it */
        w->context->dead = true;
        kp_collector_leave(c);
        out->note = kp_strdup("a kernel of the window failed");
    } else if (w->way == COUNTED || w->wanted) {
        kp_snapshot_keep(&w->host);
        run_passes(out);
        kp_snapshot_settle(&w->host);
    }
    if (w->way == REPLAYED && !w->context->dead)
        kp_collector_drop(c);
}

/* In the window's context. */
static void free_backups(void)
{
    for (size_t k = 0; k < w->n; k++)
        if (w->items[k].backup)
            w->setup->driver->cuMemFree(w->items[k].backup);
}

/* KP_VENDOR: CUPTI registers exit handlers of its own when parts of it are first used. Ours, which may close a last
 * window, has to run before them. */
static void exit_before_cupti(void)
{
    enum { FIRST_WINDOWS = 3 };
    static int closed;
    if (closed++ < FIRST_WINDOWS)
        kp_exit_first();
}

/* What the collector lacks beside the counters: for good, or in this window. */
static void tell_complaints(void)
{
    char *text;
    while (w->context->collector && (text = kp_collector_complaint(w->context->collector))) {
        kp_session_warn(KP_FAILURE_IN_PART, text);
        free(text);
    }
}

void kp_window_close(const struct kp_context_setup *setup, const char *why)
{
    struct kp_window_outcome out;
    if (!w->open)
        return;
    if (w->way == REPLAYED && w->wanted)
        kp_closers_note(why, w->launches);
    memset(&out, 0, sizeof(out));
    double start = kp_now_ns();
    struct kp_visit v = kp_visit_begin(setup->driver, w->context->ctx);
    kp_progress_begin("waiting for the launches of a window to end", w->way != PLAIN);
    kp_record_drop_refused(w);
    if (w->way != PLAIN)
        close_current(&out);
    judge(&out);
    w->ours_ns += kp_now_ns() - start;
    hand_on(&out);
    tell_complaints();
    if (out.replay.failed == KP_STAGE_BEGIN || out.replay.failed == KP_STAGE_START)
        plan_again(setup, w->context);
    if (!w->context->dead && !w->hangs) {
        free_backups();
        kp_repeat_free_twins(w);
    }
    kp_visit_end(setup->driver, &v);
    kp_counters_free(out.counters);
    free(out.note);
    if (w->way != PLAIN)
        exit_before_cupti();
    kp_progress_end();
    if (w->way == REPLAYED && w->wanted)
        kp_closers_tell_early(w->ours_ns);
    kp_record_reset(w);
}

void kp_window_give_up(void)
{
    struct kp_window_outcome out;
    if (!w->open)
        return;
    memset(&out, 0, sizeof(out));
    out.note = kp_strdup("the program ended while the window was open, where the driver could not be called");
    w->context->dead = true; /* nothing of it is to be touched any more */
    w->hands_off = true;
    hand_on(&out);
    free(out.note);
    kp_record_reset(w);
}

/* What is decided of a launch once its context and function are known. */
struct fit {
    enum kp_range_mode mode;
    const char *alone; /* why it takes a window of its own, or NULL */
    bool host;         /* it can reach host memory */
    bool ends;         /* and is known to end by itself */
    bool once;         /* the obstacle is that it must not be run again: it waits for nobody */
    const char *obstacle;
};

/* ---- opening ---- */

static bool open_replayed(char **why)
{
    if (kp_collector_save(w->context->collector, why))
        return false;
    w->way = REPLAYED;
    return true;
}

static bool open_counted(size_t room, char **why)
{
    if (!kp_context_one_pass(w->setup, w->context) ||
        kp_collector_count_begin(w->context->collector, w->mode, room, why))
        return false;
    w->way = COUNTED;
    return true;
}

static bool has_counters(const struct kp_context_setup *setup, const struct kp_context *c)
{
    return c->collector && !c->no_counters && (setup->one_pass || kp_plan_counts(c->plan) || c->extras);
}

/* The most launches a window of this context may hold. */
static size_t room_for(const struct kp_context *c)
{
    size_t room = c->collector ? kp_collector_room(c->collector) : 1;
    return w->setup->one_pass && room > COUNTED_ROOM ? COUNTED_ROOM : room;
}

/* Opens a window for launches of this kind. A window of no counters at all is one too: of one launch. */
static void open_window(const struct kp_context_setup *setup, struct kp_context *c, const struct fit *fit)
{
    const char *obstacle = fit->obstacle;
    enum kp_range_mode mode = fit->mode;
    bool once = (!fit->host || fit->ends) && !kp_context_several(setup);
    char *why = NULL;
    kp_progress_begin("", false);
    w->open = true;
    w->setup = setup;
    w->context = c;
    w->mode = mode;
    w->obstacle = obstacle;
    w->way = PLAIN;
    w->opened_ns = kp_now_ns();
    if (has_counters(setup, c)) {
        bool count = setup->one_pass || obstacle;
        bool opened = count ? open_counted(obstacle ? 1 : room_for(c), &why) : open_replayed(&why);
        if (!opened && !count && once) {
            /* What cannot be saved can still be counted once. */
            kp_session_warn(KP_FAILURE_IN_PART, why ? why : "memory cannot be saved");
            w->obstacle = "its memory could not be saved, not replayed";
            free(why);
            why = NULL;
            opened = open_counted(1, &why);
        }
        if (!opened && why)
            kp_session_warn_once(why);
    }
    free(why);
    kp_progress_end();
    w->ours_ns = kp_now_ns() - w->opened_ns;
    kp_flags_opened(w->way == REPLAYED);
}

/* ---- launches ---- */

static bool is_host(uint64_t address)
{
    void *base;
    size_t bytes;
    return kp_hostmem_find(address, &base, &bytes);
}

/* Why a second execution of the kernel would find what a restore does not bring back, or NULL. */
static const char *why_once(const struct kp_known_function *f)
{
    unsigned once = f ? f->once : 0;
    const char *why = NULL;
    if (once & KP_ONCE_HEAP)
        return "takes or frees memory of the device's heap, which cannot be rewound, not replayed";
    if (once & KP_ONCE_LAUNCHES)
        return "gives the device work of its own (dynamic parallelism), not replayed";
    if (kp_flags_met(KP_MET_HEAP_BLOCKS))
        why = kp_not_rewound(KP_MEMORY_HEAP_BLOCKS);
    if (!why && kp_flags_met(KP_MET_VIRTUAL))
        why = kp_not_rewound(KP_MEMORY_HOST_VIRTUAL);
    return why;
}

static struct fit judge_launch(const struct kp_context_setup *setup, const struct kp_context *c,
                               const struct kp_launch *l, const struct kp_candidate *what,
                               const struct kp_known_function *f)
{
    struct fit fit = {.mode = l->is_graph ? KP_RANGE_USER : KP_RANGE_AUTO, .obstacle = what->obstacle};
    bool heap = f && c->device.pageable_access && kp_reach_heap(setup->driver, l);
    fit.host = f && (heap || kp_flags_met(KP_MET_MANAGED) || kp_reach_host(setup->driver, l, NULL, 0, NULL));
    fit.ends = f && f->ends;
    /* Where nothing is replayed, only what waits for other devices of this process is in the way; and KP_VENDOR: of
     * several graphs that allocate memory CUPTI counts the first range alone, seen on an H200. */
    if (setup->one_pass && !kp_context_several(setup) && !(what->graph && what->graph->allocates))
        fit.obstacle = NULL;
    if (!fit.obstacle && heap && !setup->one_pass)
        fit.obstacle = "can reach memory of the host that cannot be rewound, not replayed";
    /* What others write while a window is replayed would be rewound: a partner's message, and with it all that wait for
     * it. */
    if (!fit.obstacle && kp_flags_met(KP_MET_SHARED) && !setup->one_pass)
        fit.obstacle = "memory is shared with other processes or devices, not replayed";
    if (!fit.obstacle && kp_hostmem_shared() && !setup->one_pass)
        fit.obstacle = "host memory that other processes can map is registered, not replayed";
    if (!fit.obstacle && !setup->one_pass)
        fit.once = (fit.obstacle = why_once(f)) != NULL;
    /* Arguments of unknown size cannot be copied, so the launch must be over when the call returns. */
    bool uncopied = f && ((l->params && !f->facts.params_known) || (l->extra && !l->extra_copied));
    bool reads = what->graph && what->graph->reads_host;
    fit.alone = fit.obstacle                   ? fit.obstacle
                : fit.host                     ? "a kernel that can reach host memory"
                : uncopied                     ? "arguments of unknown size"
                : reads                        ? "a graph that reads host memory"
                : kp_flags_met(KP_MET_MANAGED) ? "managed memory"
                : kp_hostmem_rewound()         ? "pinned memory that a replay would rewind"
                                               : NULL;
    return fit;
}

/* Why the window that is open does not take it, or NULL. */
static const char *misfit(const struct kp_context *c, const struct kp_launch *l, const struct fit *fit, bool wanted)
{
    if (!w->open)
        return "none is open";
    if (w->context != c)
        return "a launch in another context";
    if (fit->obstacle || w->obstacle)
        return fit->obstacle ? fit->obstacle : w->obstacle;
    if (w->way == PLAIN || (fit->mode != w->mode && (wanted || fit->mode == KP_RANGE_USER || w->way == COUNTED)))
        return "a launch of another kind";
    if (kp_launch_stream(l) == CU_STREAM_PER_THREAD && w->has_per_thread &&
        !pthread_equal(w->per_thread, pthread_self()))
        return "default streams of several threads"; /* issued into one stream again, they may wait for each other */
    if (w->launches >= room_for(c))
        return kp_closed_full;
    if (!wanted && w->unwanted_in_a_row >= MOST_UNWANTED)
        return "many launches that were not asked for";
    if (w->way != COUNTED)
        return fit->alone;
    return fit->host && !fit->ends ? "a kernel that can reach host memory" : NULL;
}

/* A launch that can reach host memory may wait for the host. It has to end by itself, or the program goes on with it.
 */
static bool ends_alone(struct kp_item *i)
{
    return kp_stuck_watch(w->setup->driver, w->context, i->function);
}

/* A launch without counters: what only an activity record tells can be read from this one execution. */
static CUresult issue_plain(struct kp_item *i)
{
    const struct kp_cupti *cupti = kp_context_cupti();
    struct kp_executed record;
    size_t n = 0;
    bool probing = i->result && kp_probe_wanted(w) && !kp_activity_begin(cupti);
    CUresult rc = kp_issue_launch(w, i, NULL);
    if (!probing)
        return rc;
    CUresult end = rc == CUDA_SUCCESS ? kp_wait_context(w->setup->driver, w->context->ctx, KP_ALONE_MS, KP_SHORT_MS)
                                      : CUDA_SUCCESS;
    if (end != CUDA_SUCCESS && end != CUDA_ERROR_NOT_READY)
        w->context->dead = true;
    kp_activity_end(cupti, &record, 1, &n);
    kp_probe_learn(w, &record, n);
    return rc;
}

static CUresult issue_first(struct kp_item *i)
{
    double start = kp_now_ns();
    if (w->way == REPLAYED)
        return kp_issue_launch(w, i, NULL);
    CUresult rc =
        w->way == PLAIN ? issue_plain(i) : kp_issue_launch(w, i, kp_collector_count_hooks(w->context->collector));
    w->ours_ns += kp_now_ns() - start;
    return rc;
}

/* What the window keeps of the device's memory may be what the launch lacks. */
static CUresult without_window(struct kp_item *i)
{
    struct kp_launch l = i->launch;
    i->launch.copy = NULL;
    kp_record_drop_last(w);
    kp_window_close(w->setup, "want of device memory");
    CUresult rc = l.issue(&l);
    kp_launch_free(&l);
    return rc;
}

/* The launch itself, with its record already the last of the window. */
static CUresult run_recorded(const struct kp_candidate *what, const struct fit *fit, const char **skipped)
{
    struct kp_item *i = &w->items[w->n - 1];
    CUresult rc = issue_first(i);
    w->unwanted_in_a_row = what->wanted ? 0 : w->unwanted_in_a_row + 1;
    if (rc == CUDA_ERROR_OUT_OF_MEMORY && w->way == REPLAYED) {
        *skipped = "made again when the window had given its memory back";
        return without_window(i);
    }
    if (rc != CUDA_SUCCESS) {
        kp_record_drop_last(w);
    } else if (fit->host && w->way == REPLAYED && !ends_alone(i)) {
        kp_collector_leave(w->context->collector);
        kp_record_reset(w);
        *skipped = kp_waits_for_host;
        return rc;
    } else if (i->result) {
        i->result->launch.ordinal = kp_session_seen(1);
    }
    const char *alone = w->way == REPLAYED ? fit->alone : NULL;
    if (alone || what->last || w->way == PLAIN || w->obstacle || !w->launches)
        kp_window_close(w->setup, alone ? alone : "the last launch that was asked for");
    else if (w->launches >= room_for(w->context))
        kp_window_close(w->setup, kp_closed_full);
    return rc;
}

static CUresult pass(struct kp_launch *l, const char *why, const char **skipped)
{
    *skipped = why;
    return l->issue(l);
}

/* A launch that is counted at once blocks until its kernel is done. One that can reach host memory may wait for what
 * the host does after the launch: that it does not has to be seen first. */
static bool may_hang(const struct kp_context_setup *setup, const struct fit *fit)
{
    return fit->host && (setup->one_pass || fit->obstacle) && !fit->ends;
}

/* Why no window can be opened for a launch, or NULL. */
static const char *hindrance(const struct kp_context_setup *setup, const struct fit *fit)
{
    if (may_hang(setup, fit))
        return "the first of a kernel that can reach host memory, watched for waiting for it, not counted";
    if (fit->obstacle && !fit->once && kp_context_several(setup))
        return fit->obstacle; /* counted at once it would wait for its partners on devices not yet launched on */
    return NULL;
}

/* Opens a window for the launch. False: it is to run outside of any; *why tells. */
static bool open_for(const struct kp_context_setup *setup, struct kp_context *c, const struct kp_launch *l,
                     const struct fit *fit, const char **why)
{
    *why = hindrance(setup, fit);
    if (*why)
        return false;
    /* Once is enough: while that other work goes on, the launches that follow find out at once. */
    long patience = c->stalled ? STALLED_MS : OPEN_MS;
    CUresult rc = has_counters(setup, c) ? kp_wait_context(setup->driver, c->ctx, patience, STALLED_MS) : CUDA_SUCCESS;
    c->stalled = rc == CUDA_ERROR_NOT_READY;
    if (rc != CUDA_SUCCESS) {
        c->dead = rc != CUDA_ERROR_NOT_READY;
        *why = c->dead ? after_failure : "made while other work of the context did not end";
        return false;
    }
    open_window(setup, c, fit);
    if (fit->obstacle && w->way != COUNTED) {
        kp_record_reset(w);
        *why = fit->obstacle;
        return false;
    }
    bool kept = true;
    if (fit->host && w->way == REPLAYED)
        kp_reach_host(setup->driver, l, &w->host, KP_MOST_COPIED, &kept);
    if (!kept) {
        kp_collector_drop(c->collector);
        kp_record_reset(w);
        *why = "can reach more host memory than is kept for a replay";
    }
    return kept;
}

static CUresult launch_in(const struct kp_context_setup *setup, struct kp_context *c, struct kp_launch *l,
                          const struct kp_candidate *what, const char **skipped)
{
    struct kp_known_function *f = NULL;
    const char *why = NULL;
    /* The first function of a module brings the module's variables along, which the saved memory must hold. */
    if (!l->is_graph && !kp_context_module_known(setup, c, l->f))
        kp_window_close(setup, "the first launch of a module's kernels");
    if (!l->is_graph && (!(f = kp_context_function(setup, c, l->f)) || kp_launch_copy(l, &f->facts))) {
        kp_window_close(setup, "a kernel that the driver gives no facts of");
        return pass(l, "of a kernel that the driver gives no facts of", skipped);
    }
    if (f && f->once & KP_ONCE_HEAP)
        kp_window_heap_blocks();
    struct fit fit = judge_launch(setup, c, l, what, f);
    const char *waits = kp_stuck_known(l, f);
    const char *closer = waits ? waits : misfit(c, l, &fit, what->wanted);
    c->stalled |= waits != NULL; /* what follows need not wait long to find that out */
    if (closer)
        kp_window_close(setup, closer);
    if (!w->open && !what->wanted)
        return l->issue(l);
    if (!w->open && (waits || !open_for(setup, c, l, &fit, &why))) {
        why = waits ? waits : why;
        CUresult rc = pass(l, why, skipped);
        if (rc == CUDA_SUCCESS && may_hang(setup, &fit) && !waits)
            kp_stuck_watch(setup->driver, c, f);
        return rc;
    }
    if (!kp_record_launch(w, l, what->wanted, what->graph, f)) {
        kp_window_close(setup, "want of memory");
        return pass(l, "lost for want of memory", skipped);
    }
    return run_recorded(what, &fit, skipped);
}

CUresult kp_window_launch(const struct kp_context_setup *setup, struct kp_launch *l, const struct kp_candidate *what,
                          const char **skipped, char **bad_input)
{
    const struct kp_driver *d = setup->driver;
    bool current;
    CUcontext ctx = kp_launch_context(d, l, &current);
    *skipped = NULL;
    *bad_input = NULL;
    if (!ctx)
        return pass(l, no_context, skipped);
    struct kp_visit v = kp_visit_begin(d, ctx);
    struct kp_context *c = kp_context_get(setup, ctx, bad_input);
    CUresult rc;
    if (!c || *bad_input || c->dead) {
        kp_window_close(setup, "a launch in another context");
        rc = pass(l, c && c->dead ? after_failure : no_context, skipped);
    } else {
        kp_session_device(&c->device, c->chip, c->plan ? c->plan->breakdowns : "");
        kp_session_collection(c->plan ? c->plan->listed : NULL,
                              kp_context_cupti() ? kp_cupti_version(kp_context_cupti()) : NULL);
        rc = launch_in(setup, c, l, what, skipped);
    }
    kp_launch_free(l);
    kp_visit_end(d, &v);
    return rc;
}

/* ---- other operations ---- */

bool kp_window_join(const struct kp_context_setup *setup, const char *symbol, void *real, const uint64_t *args,
                    uint64_t *ticket)
{
    CUcontext current = NULL;
    struct kp_op op;
    if (!w->open)
        return false;
    setup->driver->cuCtxGetCurrent(&current);
    bool joins =
        current == w->context->ctx && w->way == REPLAYED && w->n < KP_MOST_ITEMS &&
        kp_join_record(setup->driver, symbol, real, args, is_host, KP_MOST_COPIED - w->copied, &op) == KP_JOIN_YES;
    struct kp_item *i = joins ? kp_record_new(w) : NULL;
    if (!i) {
        if (joins)
            kp_op_free(&op);
        kp_window_close(setup, symbol);
        return false;
    }
    *ticket = kp_record_op(w, i, &op);
    return true;
}

/* Keeps what new memory contains, as an operation of the window. Device to device, so that it costs next to nothing.
 * False: it is not known to be kept; what was taken for it goes with the window. */
static bool back_up(const struct kp_driver *d, struct kp_item *i, CUdeviceptr memory, size_t bytes)
{
    if (d->cuMemAlloc(&i->backup, bytes) != CUDA_SUCCESS) {
        i->backup = 0;
        return false;
    }
    i->op = (struct kp_op){.real = (void *)(uintptr_t)d->cuMemcpyDtoDAsync,
                           .args = {memory, i->backup, bytes, (uint64_t)(uintptr_t)CU_STREAM_LEGACY}};
    return d->cuMemcpyDtoDAsync(i->backup, memory, bytes, CU_STREAM_LEGACY) == CUDA_SUCCESS &&
           kp_wait_context(w->setup->driver, w->context->ctx, COPY_MS, KP_SHORT_MS) == CUDA_SUCCESS;
}

void kp_window_allocated(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr memory, size_t bytes)
{
    CUcontext current = NULL;
    if (!w->open || w->way != REPLAYED)
        return;
    setup->driver->cuCtxGetCurrent(&current);
    struct kp_item *i = current == w->context->ctx && w->n < KP_MOST_ITEMS ? kp_record_new(w) : NULL;
    if (i)
        i->epoch = kp_flags_epoch();
    /* When it waits for long-running launches the copy is still made, in order, before anything can change the memory:
     * all that is lost is the window. */
    if (!i || !back_up(setup->driver, i, memory, bytes))
        kp_window_close(setup, symbol);
}
