/*
 * The start and end of ranges: cu(da)ProfilerStart and Stop, and NVTX.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/lock.h"
#include "base/work.h"
#include "preload/gate/gate.h"
#include "preload/gate/fast_path.h"
#include "preload/os/guard.h"
#include "preload/os/log.h"
#include "preload/process/occurrence.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "preload/program/filter.h"
#include "preload/contexts/launch_ids.h"
#include "preload/contexts/ranges.h"
#include "preload/who/nvtx.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/range_window.h"
#include "preload/program/waits.h"

static struct kp_process *const process = &kp_process_now;

/* The id of ranges of cu(da)ProfilerStart; NVTX ranges have other ids. */
enum { OF_PROFILER = 1 };

/* Stands for the launches of a range that begins in the current context. */
static const struct kp_launch here = {.is_graph = true};

static bool may_begin(void)
{
    return kp_process_active() && !atomic_load(&process->ending) && !kp_ranges_id();
}

/* ---- waits if the program is not repeated ---- */

/* Returns true if counters go on or off at this edge, so that nothing may run meanwhile. `ends`: the range that ends;
 * 0: one starts. The first run of a program counts nothing. */
static bool counts_at(uint64_t ends)
{
    if (process->options.replay_run <= 1)
        return false;
    return ends ? kp_ranges_id() == ends && kp_ranges_counts()
                : may_begin() && kp_filter_wants_range(process->filter, &here) && kp_gate_captures() <= 0;
}

static long limit_of(uint64_t ends, long wasted_ms)
{
    enum kp_wait w = !ends ? KP_WAIT_BEFORE_RANGE : kp_gate_captures() > 0 ? KP_WAIT_RANGE_CAPTURE : KP_WAIT_RANGE_END;
    const long ms = kp_limit_first(w), all = kp_span_ms(KP_SPAN_BUDGET);
    long left = wasted_ms < all ? all - wasted_ms : kp_limit_next(w);
    return ms < left ? ms : left;
}

/* Enters the gate alone, and if counters go on or off, waits there for the work under way. Between waits, other
 * threads' calls go on, because that work may wait for them. *idle: it has ended in time. */
static struct kp_alone enter(uint64_t ends, long patience_ms, bool *idle)
{
    static long wasted_ms; /* inside the gate */
    long start = kp_now_ms();
    *idle = false;
    for (long slice = kp_span_ms(KP_SPAN_RANGE_SLICE);;
         slice *= kp_gate_captures() > 0 ? 1 : 2) { /* a capture is not waited for in the gate */
        struct kp_alone gate = kp_gate_alone(KP_FOREVER, patience_ms);
        if (!gate.in)
            return gate;
        long left = limit_of(ends, wasted_ms) - (kp_now_ms() - start);
        bool last = left <= slice;
        *idle = !counts_at(ends) || kp_range_is_idle(&process->setup, last ? left : slice);
        long waited = kp_now_ms() - start;
        wasted_ms += last && !*idle ? waited : 0;
        if (*idle || last)
            return gate;
        kp_gate_end_alone(&gate);
        kp_nap(waited);
    }
}

/* ---- the edges of a range ---- */

/* Returns true if the filters need the device of the range, and no context determines it yet. */
static bool lacks_device(void)
{
    return kp_filter_asks_device(&process->options) && kp_place_device(&process->driver, &here) < 0;
}

static void open_range(uint64_t id, const char *name, struct kp_nvtx *nvtx, bool inside)
{
    bool undecided = lacks_device();
    kp_ranges_begin(id, name, nvtx, undecided ? KP_REASON_NONE : kp_process_unwanted_range(&here, inside));
    kp_ranges_open()->inside = inside;
    kp_ranges_open()->undecided = undecided;
}

/* Opens the window of a range at its start, so that copies before its first launch are part of it. During a capture the
 * first launch does. */
static void begin_range(uint64_t id, const char *name, struct kp_nvtx *nvtx, bool inside)
{
    bool idle;
    char *bad_input = NULL;
    kp_process_begin();
    KP_ALONE gate = enter(0, kp_limit_first(KP_WAIT_GATE), &idle);
    if (!gate.in || !may_begin())
        return;
    open_range(id, name, nvtx, inside);
    kp_ranges_open()->beside = !idle;
    if (kp_gate_captures() <= 0 && !kp_ranges_open()->undecided)
        kp_range_open_window(&process->setup, NULL, &bad_input);
    if (bad_input)
        kp_phase_unprofiled(KP_FAILURE_METRIC, NULL, bad_input);
}

static void end(uint64_t id)
{
    bool idle;
    KP_ALONE gate = enter(id, kp_limit_first(KP_WAIT_GATE_LAST), &idle);
    if (!gate.in)
        kp_window_spoil();
    else if (kp_ranges_id() == id)
        kp_range_end();
}

/* Inside a driver call of this thread nothing may wait for the gate. */
static bool may_act(void)
{
    return kp_process_active() && !kp_guard && !kp_in_driver;
}

struct edge {
    uint64_t id;
    bool begins;
    const char *name;
};

static void look_at_edge(void *arg)
{
    const struct edge *e = arg;
    struct kp_nvtx nvtx = {.ranges = NULL};
    if (!may_act())
        return;
    kp_occurrence_edge(e->id, e->begins);
    if (!kp_mode_has_ranges(process->setup.mode))
        return;
    if (!e->begins) {
        if (kp_ranges_id() == e->id)
            end(e->id);
        return;
    }
    if (kp_ranges_id() || !atomic_load(&process->profiling) || !kp_occurrence_wanted())
        return;
    if (kp_nvtx_judge(NULL, &nvtx))
        begin_range(e->id, e->name, &nvtx, true);
    kp_nvtx_free(&nvtx);
}

static void at_nvtx(uint64_t id, bool begins, const char *name)
{
    struct edge e = {id, begins, name};
    kp_work_run(look_at_edge, &e, sizeof(e));
}

static bool are_of_nvtx(void)
{
    return *process->options.nvtx_include;
}

/* Reports once, not in each run, which filter applies only to launches. */
static void tell_unused(void)
{
    const struct kp_options *o = &process->options;
    if (o->filter_mode == KP_FILTER_PER_CONFIG && (o->launch_skip || o->launch_count) &&
        process->options.replay_run <= 1)
        kp_log_warning("filter-mode %s has no effect with replay-mode %s: ranges have no grid and block; launch-skip "
                       "and launch-count count all ranges",
                       kp_option_word(offsetof(struct kp_options, filter_mode), o->filter_mode),
                       kp_option_word(offsetof(struct kp_options, replay_mode), o->replay_mode));
}

void kp_process_prepare_ranges(void)
{
    if (*process->options.range_filter && are_of_nvtx())
        kp_nvtx_watch(at_nvtx);
    if (!kp_mode_has_ranges(process->setup.mode))
        return;
    tell_unused();
    kp_ranges_configure(&process->options);
    if (are_of_nvtx())
        kp_nvtx_watch(at_nvtx);
}

void kp_process_profile(bool on)
{
    struct kp_nvtx nvtx = {.ranges = NULL};
    if (!kp_process_active() || process->options.disable_profiler_start_stop)
        return;
    kp_occurrence_profile(on);
    if (!process->options.profile_from_start)
        atomic_store(&process->profiling, on);
    kp_passing_outdate();
    if (on && kp_filter_takes_first(&process->options))
        kp_process_make_ready();
    if (!kp_mode_has_ranges(process->setup.mode) || are_of_nvtx() || !may_act())
        return;
    if (on && !kp_occurrence_wanted())
        return;
    if (!on) {
        end(OF_PROFILER);
    } else if (!kp_ranges_id()) {
        bool inside = kp_nvtx_judge(NULL, &nvtx);
        begin_range(OF_PROFILER, "cudaProfilerStart", &nvtx, inside);
        kp_nvtx_free(&nvtx);
    }
}
