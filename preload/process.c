#include "preload/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/debug.h"
#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "preload/ending.h"
#include "preload/gate/gate.h"
#include "preload/os/exit_first.h"
#include "preload/os/guard.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/os/progress.h"
#include "preload/os/stdout_mute.h"
#include "preload/os/symbols.h"
#include "preload/os/worker.h"
#include "preload/phase.h"
#include "preload/program/context.h"
#include "preload/program/filter.h"
#include "preload/program/hostmem.h"
#include "preload/program/kernel.h"
#include "preload/program/launch_ids.h"
#include "preload/program/loaded_modules.h"
#include "preload/session/session.h"
#include "preload/who/nvtx.h"
#include "preload/who/stack.h"
#include "preload/window/flags.h"
#include "preload/window/window.h"
#include "report/define/section_files.h"
#include "report/options/options.h"

static struct kp_process *const process = &kp_process_now;

extern char **environ;

static const char waits_outside_reason[] = "waits for the host, other processes or devices, not replayed";
static const char late[] = "made while the program ended";

/* ---- input of the filter ---- */

static char *read_mangled(CUfunction f)
{
    return kp_kernel_mangled(&process->driver, f);
}

static int read_device(const struct kp_launch *l)
{
    return kp_place_device(&process->driver, l);
}

static uint64_t read_clock(void)
{
    return (uint64_t)kp_now_ns();
}

static const char *read_ids(const struct kp_launch *l, uint64_t *context, uint64_t *stream)
{
    char *bad_input = NULL;
    const char *why = kp_place_ids(&process->setup, l, context, stream, &bad_input);
    if (bad_input)
        kp_phase_unprofiled(KP_FAILURE_METRIC, NULL, bad_input);
    return why;
}

static bool is_inside(struct kp_launch *l)
{
    return kp_nvtx_judge(l->stream, &l->nvtx);
}

static const struct kp_filter_source filter_source = {read_mangled, read_device, read_clock, read_ids, is_inside};

/* ---- start ---- */

static void in_forked_child(void)
{
    kp_debug(KP_DEBUG_FORK, "a forked child: locks are free, windows and threads of the parent's are forgotten");
    kp_gate_reset();
    kp_nvtx_forked();
    if (atomic_load(&process->phase) != KP_PHASE_ASLEEP || kp_locks_broken(KP_LOCK_PROCESS)) {
        process->forked = getpid();
        kp_phase_go(KP_PHASE_FORKED);
    }
    kp_window_forked();
    kp_worker_forked();
    kp_hostmem_forked();
    kp_mute_forked();
    kp_session_forked();
    kp_progress_forked();
}

void kp_process_watch_forks(void)
{
    kp_locks_watch_forks(in_forked_child);
}

/* Sums the option's words, whose order is that of the domains. */
static unsigned domains_of(const struct kp_choices *c)
{
    unsigned domains = 0;
    for (size_t i = 0; i < c->n; i++)
        domains |= 1U << c->at[i];
    return domains;
}

static bool read_options(void)
{
    static char *no_environment[] = {NULL}; /* after clearenv() */
    char *err = NULL;
    if (kp_options_from_env(&process->options, environ ? environ : no_environment, &err)) {
        kp_phase_unprofiled(err ? KP_FAILURE_OPTION : KP_FAILURE_MEMORY, "out of memory", err);
        return false;
    }
    kp_debug_show(domains_of(&process->options.debug));
    kp_outcome_strict(process->options.strict);
    kp_log_quiet(process->options.quiet);
    if (*kp_sections_note())
        kp_log_warning("%s", kp_sections_note());
    if (kp_sections_select(process->options.set, process->options.section, &process->sections, &process->n_sections,
                           &err) ||
        kp_filter_new(&process->options, &filter_source, &process->filter, &err) ||
        kp_nvtx_configure(&process->options)) {
        kp_phase_unprofiled(err ? KP_FAILURE_OPTION : KP_FAILURE_MEMORY, "out of memory", err);
        return false;
    }
    if (kp_nvtx_other()) {
        kp_outcome_failed(KP_FAILURE_RANGES);
        kp_log_warning("NVTX ranges are not seen: %s names another library, %s; unset it", KP_NVTX_PATH_VARIABLE,
                       kp_nvtx_other());
    }
    kp_stack_configure(&process->options);
    atomic_store(&process->profiling, process->options.profile_from_start);
    return true;
}

/* Remembers the first process that the library is loaded into: the variable passes to all its children. Where the
 * program is a script, the first one never uses CUDA. Without the option, this costs a look at the environment. */
__attribute__((constructor)) static void note_application(void)
{
    char pid[16];
    if ((getenv("KPROF_TARGET_PROCESSES") || getenv("KPROF_CONFIG")) && kp_options_want_application(environ)) {
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        setenv("KPROF_APPLICATION", pid, 0);
    }
}

static bool leave_alone(const char *name, const char *why)
{
    kp_log_progress("Process %d (%s) is left alone: %s", (int)process->pid, name, why);
    kp_outcome_left();
    kp_phase_go(KP_PHASE_UNPROFILED);
    return false;
}

/* Whether the options select this process. */
static bool is_target(void)
{
    const struct kp_options *o = &process->options;
    bool target = true;
    char *exe = kp_session_executable();
    const char *slash = exe ? strrchr(exe, '/') : NULL, *name = slash ? slash + 1 : program_invocation_short_name;
    if (o->target_processes == KP_TARGETS_APPLICATION && o->application != (uint64_t)process->pid)
        target = leave_alone(name, "target-processes has the application only");
    else if (!kp_filter_process(o->target_processes_filter, name) &&
             !kp_filter_process(o->target_processes_filter, program_invocation_short_name))
        target = leave_alone(name, "not selected by target-processes-filter");
    free(exe);
    return target;
}

/* Whether a wanted row or metric describes the launch and is no counter. */
static bool shows_configs(void)
{
    for (size_t s = 0; s < process->n_sections; s++)
        for (size_t i = 0; i < process->sections[s]->n_rows; i++)
            if (process->sections[s]->rows[i].source == KP_SRC_LAUNCH)
                return true;
    return strstr(process->options.metrics, "launch__") != NULL;
}

/* Whether MemorySanitizer runs: it takes data written by uninstrumented code for uninitialised. */
static bool is_watched(void)
{
    if (!kp_symbols_dl()->sym(RTLD_DEFAULT, "__msan_init"))
        return false;
    kp_phase_unprofiled(KP_FAILURE_CUPTI,
                        "MemorySanitizer, with which the program is built, would report kprof's own memory and end it",
                        NULL);
    return true;
}

static const struct kp_gate_window gate_window = {kp_window_is_open, kp_window_watches, kp_process_close_window};

static void wake(void)
{
    const char *missing = kp_driver_fill(&process->driver, kp_symbols_driver);
    process->pid = getpid();
    /* A return from main bypasses our exit(): before glibc 2.41 that thread would take the next handler while
     * another one runs ours. */
    kp_exit_handlers(kp_ending_at_exit, kp_process_exits);
    kp_outcome_open();
    /* Pins the driver: a program may close it before it ends, but our table must stay valid. */
    kp_symbols_dl()->open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    kp_log_open();
    if (is_watched() || !read_options() || !is_target())
        return;
    if (missing) {
        char *why = NULL;
        if (asprintf(&why, "the CUDA driver has no %s: a newer driver is needed", missing) < 0)
            why = NULL;
        kp_phase_unprofiled(KP_FAILURE_DRIVER, "the CUDA driver is too old", why);
        return;
    }
    if (kp_session_open(&process->options, &process->driver, process->sections, process->n_sections)) {
        kp_phase_unprofiled(KP_FAILURE_MEMORY, "out of memory", NULL);
        return;
    }
    process->setup = (struct kp_context_setup){
        .driver = &process->driver,
        .options = &process->options,
        .sections = process->sections,
        .n_sections = process->n_sections,
        .configs = shows_configs(),
        .one_pass = kp_sections_one_pass(process->sections, process->n_sections, process->options.metrics)};
    kp_context_prepare(&process->setup);
    kp_exit_first(); /* registered after cuInit, so it runs before the driver's own handlers */
    kp_gate_set_window(&gate_window);
    kp_phase_go(KP_PHASE_AWAKE);
}

void kp_process_cuda_started(void)
{
    kp_lock_take(process->lock, KP_FOREVER);
    if (atomic_load(&process->phase) == KP_PHASE_ASLEEP) {
        kp_guard++;
        wake();
        kp_guard--;
    }
    kp_lock_give(process->lock);
}

/* ---- choosing ---- */

void kp_process_skip(const char *reason, unsigned launches)
{
    kp_session_seen(launches);
    kp_session_skip(reason, launches);
}

void kp_process_profile(bool on)
{
    if (kp_process_active() && !process->options.profile_from_start)
        atomic_store(&process->profiling, on);
}

/* Runs a launch outside of any window: an open one would miss the launch, or count it as its own. */
static CUresult pass_through(const struct kp_launch *l)
{
    kp_gate_enter_alone("launches that are let through");
    kp_guard++;
    CUresult rc = l->issue(l);
    kp_guard--;
    kp_gate_leave_shared();
    return rc;
}

/* Whether a stream capture records the launch, which then runs nothing. */
static bool is_captured(const struct kp_launch *l)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    kp_guard++;
    CUresult rc = process->driver.cuStreamIsCapturing(kp_launch_stream(l), &status);
    kp_guard--;
    return rc == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Runs a launch outside of any window and counts it, unless the driver refuses it. */
static CUresult skip(const struct kp_launch *l, const char *reason)
{
    CUresult rc = pass_through(l);
    if (rc == CUDA_SUCCESS) {
        if (kp_launched_note(&process->driver, l) && kp_kernel_once(&process->driver, l->f) & KP_ONCE_HEAP)
            kp_window_heap_blocks();
        kp_process_skip(reason, 1);
    }
    return rc;
}

/* Handles a launch that is wanted, or that comes while a window is open. */
static CUresult through_window(struct kp_launch *l, const struct kp_candidate *what, const char *unwanted)
{
    if (!kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_MS))
        return skip(l, what->wanted ? KP_SKIP_BUSY : unwanted);
    if (kp_gate_captures() > 0) { /* a capture began meanwhile; here no further one can */
        kp_gate_leave_exclusive();
        return is_captured(l) ? pass_through(l) : skip(l, KP_SKIP_CAPTURE);
    }
    if (!kp_process_active()) { /* profiling ended while this thread waited */
        kp_gate_leave_exclusive();
        return l->issue(l);
    }
    if (atomic_load(&process->ending)) { /* likewise: libraries needed for planning may be torn down already */
        kp_gate_leave_exclusive();
        return skip(l, late);
    }
    char *bad_input = NULL;
    const char *skipped = NULL;
    kp_guard++;
    CUresult rc = kp_window_launch(&process->setup, l, what, &skipped, &bad_input);
    if (bad_input)
        kp_phase_unprofiled(KP_FAILURE_METRIC, NULL, bad_input);
    kp_guard--;
    kp_gate_leave_exclusive();
    if (rc == CUDA_SUCCESS && (skipped || !what->wanted))
        kp_process_skip(what->wanted ? skipped : unwanted, 1);
    return rc;
}

/* Notes a device for the list printed where nothing was wanted. */
static void note_device(int ordinal)
{
    struct kp_device device;
    uint64_t bit = ordinal >= 0 && ordinal < 64 ? UINT64_C(1) << ordinal : 0;
    if (!bit || atomic_fetch_or(&process->devices_seen, bit) & bit)
        return;
    kp_guard++;
    if (kp_device_read(&process->driver, ordinal, &device) == CUDA_SUCCESS)
        kp_session_device(&device, "", "");
    kp_guard--;
}

/* Returns why a launch is not wanted, or NULL. */
static const char *unwanted_for(struct kp_launch *l, struct kp_candidate *what, struct kp_graph *graph)
{
    struct kp_filter_choice choice;
    if (!atomic_load(&process->profiling))
        return KP_SKIP_PROFILER;
    kp_filter_choose(process->filter, l, &choice);
    note_device(choice.other_device);
    if (choice.unwanted)
        return choice.unwanted;
    if (l->is_graph) {
        if (!kp_graph_find(l->graph, graph)) {
            graph->obstacle = "graph whose instantiation was not seen, not replayed";
            graph->waits = true; /* assumed, for want of knowledge */
        }
        what->graph = graph;
        what->obstacle = graph->obstacle;
    }
    what->outside = choice.outside;
    what->last = choice.last;
    return NULL;
}

static CUresult choose(struct kp_launch *l)
{
    struct kp_graph graph = {.obstacle = NULL};
    struct kp_candidate what = {.wanted = true};
    if (kp_gate_captures() > 0)
        return is_captured(l) ? l->issue(l) : skip(l, KP_SKIP_CAPTURE);
    if (atomic_load(&process->ending))
        return skip(l, late);
    const char *unwanted = unwanted_for(l, &what, &graph);
    /* Do not count it either: counting waits for the kernel's end on this thread, for which the kernel's partner may
     * wait. */
    if (what.outside)
        return skip(l, waits_outside_reason);
    if (!unwanted)
        return graph.waits ? skip(l, graph.obstacle) : through_window(l, &what, NULL);
    what.wanted = false;
    if (!kp_window_is_open() || l->is_graph || kp_filter_outside(process->filter, l->f))
        return skip(l, unwanted);
    return through_window(l, &what, unwanted);
}

static void begin(void)
{
    char *err = NULL;
    kp_lock_take(process->lock, KP_FOREVER);
    kp_guard++;
    if (!atomic_load(&process->begun) && kp_process_active() && kp_session_begin(&err))
        kp_phase_unprofiled(KP_FAILURES, "out of memory", err);
    atomic_store(&process->begun, true);
    kp_guard--;
    kp_lock_give(process->lock);
}

/* Disables cancellation: a thread cancelled in a replay would leave the gate closed for ever. The same goes wherever
 * a window may close. */
CUresult kp_process_launch(struct kp_launch *l)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (!atomic_load(&process->begun))
        begin();
    CUresult rc = kp_process_active() ? choose(l) : l->issue(l);
    kp_launch_free(l);
    pthread_setcancelstate(before, &before);
    return rc;
}

void kp_process_forget(enum kp_stale what, uint64_t first)
{
    if (what == KP_STALE_MODULE)
        kp_context_unloaded((const void *)(uintptr_t)first);
    kp_filter_forget(process->filter);
    kp_place_forget();
    if (what != KP_STALE_SETTINGS)
        kp_launched_forget();
    kp_context_forget();
}
