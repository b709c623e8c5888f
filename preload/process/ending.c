/*
 * How the process ends: its exit handlers, its contexts, and the report.
 */
#include "preload/process/ending.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/traps.h"
#include "base/work.h"
#include "preload/gate/gate.h"
#include "preload/gate/fast_path.h"
#include "preload/os/guard.h"
#include "preload/os/log.h"
#include "preload/os/progress.h"
#include "preload/os/worker.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "preload/contexts/warm_up.h"
#include "preload/contexts/context.h"
#include "preload/program/ctx_wait.h"
#include "preload/program/filter.h"
#include "preload/session/session.h"
#include "preload/who/nvtx.h"
#include "preload/who/timeline.h"
#include "preload/mode/bounded.h"
#include "preload/mode/close_reasons.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/timing_records.h"
#include "preload/program/waits.h"

static struct kp_process *const process = &kp_process_now;

/* Returns true if this is the profiled process, and not its child; the child of a vfork shares this memory. */
static bool is_own_process(void)
{
    enum kp_phase p = atomic_load(&process->phase);
    return p != KP_PHASE_ASLEEP && p != KP_PHASE_FORKED && getpid() == process->pid;
}

static void exiter_ends(void)
{
    int me = kp_thread_id();
    if (atomic_compare_exchange_strong(&process->exiter, &me, 0))
        kp_wake_all(&process->exiter);
}

static bool is_reported(void)
{
    return !atomic_load(&process->finisher) || atomic_load(&process->finished);
}

/* Holds back all threads except the first that runs the exit handlers, like exit() from glibc 2.41 on. In earlier
 * versions both would run the remaining handlers, and tear down what the first one still uses. The wait is limited,
 * because the first thread's handlers may wait for this one. Then this thread goes on as without kprof. */
static void wait_for_exiter(int me)
{
    static __thread bool passed;
    int other = 0;
    long idle_since = kp_now_ms();
    while (!passed && !atomic_compare_exchange_strong(&process->exiter, &other, me) && other != me) {
        kp_lock_wait_while(&process->exiter, other, kp_span_ms(KP_SPAN_EXIT_STEP));
        if (!is_reported())
            idle_since = kp_now_ms();
        passed = kp_now_ms() - idle_since >= kp_limit_first(KP_WAIT_EXITER);
        other = 0;
    }
}

static void wait_and_exit(void *unused)
{
    (void)unused;
    wait_for_exiter(kp_thread_id());
    kp_worker_thread_park(exiter_ends);
}

void kp_process_exits(void)
{
    if (!is_own_process())
        return;
    kp_work_ends_process();
    kp_work_run(wait_and_exit, NULL, 0);
}

/* Planning makes objects in CUPTI's libraries whose exit handlers would run before ours, and destroy what another
 * thread still plans with. */
static void wait_for_plan(void)
{
    long start = kp_now_ms(), waited = 0;
    while (!kp_guard && is_own_process() && kp_context_is_planning() &&
           (waited = kp_now_ms() - start) < kp_limit_first(KP_WAIT_PLAN))
        kp_nap(waited);
}

static void wait_for_starts(void *unused)
{
    (void)unused;
    kp_passing_ends_process();
    kp_ahead_wait(false);
    wait_for_plan();
}

/* An exit() from one of the last handlers or a destructor skips all later ones, including ours. */
void kp_process_exit_called(void)
{
    kp_work_ends_process();
    kp_work_run(wait_for_starts, NULL, 0);
    if (atomic_load(&process->ending) && atomic_load(&process->exiter) == kp_thread_id())
        kp_process_finish();
    kp_process_exits();
}

typedef bool (*context_match)(const struct kp_context *c, uint64_t arg);

/* Returns true if the work of a context ends soon. It may never end, because it waits for what the program would have
 * done; and during a capture it cannot be queried. */
static bool does_end(CUcontext ctx)
{
    return kp_gate_captures() <= 0 && kp_wait_for(&process->driver, ctx, KP_WAIT_LEAVE) != CUDA_ERROR_NOT_READY;
}

/* Closes the window because of a call of the program; NULL: the program ends. */
static void close_window(const char *symbol)
{
    if (symbol)
        kp_window_close_by(symbol);
    else
        kp_window_close(KP_REASON_THE_END);
}

/* Leaves the matching contexts, for a call of the program, or NULL. Waits at the gate like kp_gate_alone. Returns true
 * if it got in. */
static bool leave_contexts(context_match match, uint64_t arg, const char *symbol, long owner_ms, long patience_ms)
{
    if (!kp_process_active() || kp_guard)
        return true;
    KP_ALONE gate = kp_gate_alone(owner_ms, patience_ms);
    while (!gate.in && kp_context_is_planning()) /* planning needs libraries that exit handlers tear down after this */
        gate = kp_gate_alone(owner_ms, patience_ms);
    if (!gate.in)
        return false;
    const struct kp_context *c = kp_window_context();
    bool ends = c && (!match || match(c, arg));
    if (ends || kp_window_may_close())
        close_window(symbol);
    kp_ahead_wait(false); /* if nothing was launched, nobody waits for a plan */
    kp_worker_drain(KP_FOREVER);
    kp_patience_reap();
    kp_timeline_flush(true);
    kp_context_close(&process->setup, match, arg, does_end);
    kp_journal_contexts_ended();
    kp_timed_settle(); /* no more records come for what they ran */
    return true;
}

static void end_at_exit(void *unused)
{
    (void)unused;
    const long gate_ms = kp_limit_first(KP_WAIT_GATE);
    if (!is_own_process())
        return;
    kp_work_takes_long();
    kp_locks_at_end();
    atomic_store(&process->exiter, kp_thread_id());
    kp_window_hurry();
    kp_worker_thread_park(exiter_ends);
    atomic_store(&process->ending, true); /* set before the gate, for launches that wait there to see it */
    kp_passing_outdate();
    if (!kp_work_driver_is_left())
        leave_contexts(NULL, 0, NULL, gate_ms, gate_ms);
    kp_process_finish(); /* while other threads still have the driver and the program's globals */
}

void kp_ending_at_exit(void)
{
    kp_work_ends_process();
    kp_work_run(end_at_exit, NULL, 0);
}

static bool is_context(const struct kp_context *c, uint64_t arg)
{
    return (uint64_t)(uintptr_t)c->ctx == arg;
}

static bool is_on_device(const struct kp_context *c, uint64_t arg)
{
    return c->device_ordinal == (CUdevice)arg;
}

void kp_process_context_ends(enum kp_ends which, uint64_t first, const char *symbol)
{
    static const context_match matches[] = {
        [KP_ENDS_CONTEXT] = is_context, [KP_ENDS_DEVICE] = is_on_device, [KP_ENDS_ALL] = NULL};
    if (!leave_contexts(matches[which], first, symbol, KP_FOREVER, kp_limit_first(KP_WAIT_GATE_LAST)))
        kp_context_ends_unseen(matches[which], first); /* a call in flight may wait for this thread */
}

static void note_unwanted(void *arg, const char *name, uint64_t launches)
{
    (void)arg;
    kp_session_unwanted(name, launches);
}

/* Reports a fork at the end of the child, so that a child which executes a program stays silent. Does not allocate,
 * because the child may have any state of the parent. */
static void tell_forked(void)
{
    char line[160];
    const struct kp_sink *log = kp_log_sink();
    if (process->forked != getpid() || process->options.quiet || process->options.face == KP_FACE_NCU)
        return;
    int n =
        snprintf(line, sizeof(line), "==KPROF== Process %d, forked from %d after CUDA had started, was left alone\n",
                 (int)process->forked, (int)process->pid);
    process->forked = 0;
    log->write(log->arg, line, (size_t)n);
}

/* Reports launches that the report lacks because it was written before them. */
static void tell_late(void)
{
    char line[160];
    const struct kp_sink *log = kp_log_sink();
    unsigned n = atomic_exchange(&process->late, 0);
    if (!n || process->options.quiet || process->options.face == KP_FACE_NCU)
        return;
    int len = snprintf(line, sizeof(line), "==KPROF== %u %s made after the report, while the program ended\n", n,
                       n == 1 ? "launch was" : "launches were");
    log->write(log->arg, line, (size_t)len);
}

/* Waits while another thread finishes: otherwise the process would end before the report is complete. Waits only as
 * long as that thread makes progress: if a signal handler ends the program, it may wait for locks of this thread. */
static void wait_for_finisher(int id)
{
    double before = kp_thread_cpu_time(id);
    long start = kp_now_ms();
    while (!atomic_load(&process->finished) && before >= 0) {
        kp_lock_wait_while(&process->finished, 0, kp_span_ms(KP_SPAN_EXIT_STEP));
        double now = kp_thread_cpu_time(id);
        if (now != before || kp_log_is_writing())
            start = kp_now_ms();
        else if (kp_now_ms() - start >= kp_limit_first(KP_WAIT_FINISHER))
            return;
        before = now;
    }
}

/* Returns true if this thread is the one that finishes. */
static bool takes_the_end(void)
{
    int id = kp_thread_id(), other = 0;
    if (!kp_session_is_open() && !atomic_load(&process->finisher))
        return false;
    if (atomic_compare_exchange_strong(&process->finisher, &other, id))
        return true;
    if (other != id) /* not the thread that the handler interrupted */
        wait_for_finisher(other);
    return false;
}

/* A report of more launches may take seconds. */
enum { MANY_LAUNCHES = 1000 };

static void write_report(void)
{
    /* A handler that interrupted our own work on this thread cannot wait for that work. */
    long patience = kp_guard ? 0 : kp_limit_first(KP_WAIT_REPORT);
    /* A handler may have interrupted a driver call of this same thread; the driver would deadlock. */
    bool in_call = kp_guard || kp_in_driver;
    /* Gives another thread's replay time to end, but writes the report in any case. */
    KP_ALONE gate = kp_gate_alone(patience, patience);
    KP_GUARDED;
    if (gate.in && !in_call && !kp_work_driver_is_left() && !atomic_load(&process->ending)) {
        kp_window_hurry();
        kp_window_close(KP_REASON_THE_END);
        kp_timed_end();
        kp_timeline_flush(true);
    } else if (gate.in) {
        kp_window_give_up();
    }
    kp_phase_go(KP_PHASE_FINISHED);
    if (patience) /* otherwise this thread may hold locks that reporting needs */
        kp_progress_begin("evaluating the counters of the last windows", false);
    if (kp_worker_drain(patience) && gate.in && patience)
        kp_context_pass_on();
    kp_filter_unwanted(process->filter, note_unwanted, NULL);
    kp_log_behind_stdout();
    kp_close_reasons_tell();
    if (gate.in)
        kp_bounded_tell();
    kp_nvtx_end_timeline();
    kp_session_timeline_end();
    kp_nvtx_each_seen(kp_session_range);
    if (patience)
        kp_progress_step("writing the report", kp_session_seen(0) > MANY_LAUNCHES);
    kp_session_close();
    if (patience)
        kp_progress_end();
    if (atomic_load(&process->ending))
        atomic_store(&process->leaving, 1); /* set before the gate, for calls that wait there to see it */
}

static void finish(void)
{
    kp_passing_ends_process();
    kp_locks_at_end();
    kp_worker_thread_park(exiter_ends);
    write_report();
    atomic_store(&process->finished, 1);
    kp_wake_all(&process->finished);
}

static void finish_once(void *unused)
{
    struct kp_traps traps;
    (void)unused;
    kp_work_takes_long();
    kp_traps_hold(&traps);
    kp_process_tell_past();
    if (atomic_load(&process->phase) == KP_PHASE_FORKED)
        tell_forked();
    /* The child of a vfork shares this memory and is not the program. */
    else if (getpid() == process->pid) {
        if (takes_the_end()) {
            atexit(kp_process_exits); /* other threads that exit now find this handler */
            finish();
        } else {
            tell_late();
        }
    }
    kp_traps_let(&traps);
}

void kp_process_finish(void)
{
    if (atomic_load(&process->phase) == KP_PHASE_ASLEEP && !kp_session_is_open()) {
        kp_process_tell_past(); /* nothing was profiled */
        return;
    }
    kp_work_ends_process();
    kp_work_run(finish_once, NULL, 0);
}
