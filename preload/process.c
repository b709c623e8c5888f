#include "preload/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/debug.h"
#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "preload/gate/gate.h"
#include "preload/os/exit_first.h"
#include "preload/os/guard.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/os/progress.h"
#include "preload/os/stdout_mute.h"
#include "preload/os/symbols.h"
#include "preload/os/worker.h"
#include "preload/program/context.h"
#include "preload/program/ctx_wait.h"
#include "preload/program/filter.h"
#include "preload/program/hostmem.h"
#include "preload/program/kernel.h"
#include "preload/program/launch_ids.h"
#include "preload/program/loaded_modules.h"
#include "preload/session/session.h"
#include "preload/who/nvtx.h"
#include "preload/who/stack.h"
#include "preload/window/closers.h"
#include "preload/window/flags.h"
#include "preload/window/window.h"
#include "report/define/section_files.h"
#include "report/options/options.h"

enum { PATIENCE_MS = 2000, LAST_PATIENCE_MS = 10000 };

enum phase { ASLEEP, AWAKE, UNPROFILED, FORKED, FINISHED };

static struct {
    struct kp_lock *lock; /* for start and finish */
    _Atomic(enum phase) phase;
    struct kp_driver driver;
    struct kp_options options;
    const struct kp_section **sections;
    size_t n_sections;
    struct kp_filter *filter;
    struct kp_context_setup setup;
    atomic_bool images;    /* images of modules are watched, where needed */
    atomic_bool begun;     /* the session, with the first launch */
    atomic_bool profiling; /* between cuProfilerStart and Stop, when asked for */
    atomic_bool ending;    /* exit handlers run: the driver may be unloaded at any time */
    atomic_int exiter;     /* id of the thread that called exit(), or runs the exit handlers; 0 = none yet */
    atomic_int finisher;   /* id of the thread that writes the report; 0 = none yet */
    atomic_int finished;   /* the report is written; threads wait for it in the kernel */
    atomic_uint_fast64_t devices_seen; /* of devices that were not wanted: a bit each */
    pid_t pid;
    pid_t forked; /* in a forked child: its own id, until reported */
} process = {.lock = &kp_locks[KP_LOCK_PROCESS]};

extern char **environ;

static const char the_end[] = "the end"; /* closes a window */
static const char waits_outside_reason[] = "waits for the host, other processes or devices, not replayed";
static const char late[] = "made while the program ended";

bool kp_process_active(void)
{
    return atomic_load(&process.phase) == AWAKE;
}

const struct kp_driver *kp_process_driver(void)
{
    return kp_process_active() ? &process.driver : NULL;
}

static void go_to(enum phase p)
{
    atomic_store(&process.phase, p);
    kp_gate_arm(p == AWAKE);
}

/* Stops profiling. `kind`: KP_FAILURES where the failure has been noted. */
static void unprofiled(enum kp_failure kind, const char *why, char *owned)
{
    const char *text = owned ? owned : why;
    bool question = *text && text[strlen(text) - 1] == '?';
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        kp_log_error("%.*s", (int)(end - text), text);
    kp_log_error("%s%she program runs unprofiled", text, question ? " T" : "; t");
    free(owned);
    go_to(UNPROFILED);
    kp_session_discard_if_empty();
    if (kind != KP_FAILURES)
        kp_outcome_failed(kind);
    if (!kp_session_is_open())
        kp_log_outcome(0, 0);
}

/* ---- input of the filter ---- */

static char *read_mangled(CUfunction f)
{
    return kp_kernel_mangled(&process.driver, f);
}

static int read_device(const struct kp_launch *l)
{
    return kp_place_device(&process.driver, l);
}

static uint64_t read_clock(void)
{
    return (uint64_t)kp_now_ns();
}

static const char *read_ids(const struct kp_launch *l, uint64_t *context, uint64_t *stream)
{
    char *bad_input = NULL;
    const char *why = kp_place_ids(&process.setup, l, context, stream, &bad_input);
    if (bad_input)
        unprofiled(KP_FAILURE_METRIC, NULL, bad_input);
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
    if (atomic_load(&process.phase) != ASLEEP || kp_locks_broken(KP_LOCK_PROCESS)) {
        process.forked = getpid();
        go_to(FORKED);
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

/* Whether this is the profiled process, and not its child; the child of a vfork shares this memory. */
static bool is_own_process(void)
{
    enum phase p = atomic_load(&process.phase);
    return p != ASLEEP && p != FORKED && getpid() == process.pid;
}

static void exiter_ends(void)
{
    int me = kp_thread_id();
    if (atomic_compare_exchange_strong(&process.exiter, &me, 0))
        kp_wake_all(&process.exiter);
}

/* The longest wait for the thread that runs the exit handlers, besides the time of the report, ms. */
enum { EXITER_MS = 2000, EXITER_STEP_MS = 50 };

static bool is_reported(void)
{
    return !atomic_load(&process.finisher) || atomic_load(&process.finished);
}

/* Holds back all threads but the first that runs the exit handlers, as exit() does from glibc 2.41 on. Before, both
 * would run the remaining handlers, and tear down what the first one still uses. The wait is limited, as the first
 * thread's handlers may wait for this one. Then this thread goes on as without kprof. */
static void wait_for_exiter(int me)
{
    static __thread bool passed;
    int other = 0;
    long idle_since = kp_now_ms();
    while (!passed && !atomic_compare_exchange_strong(&process.exiter, &other, me) && other != me) {
        kp_wait_while(&process.exiter, other, EXITER_STEP_MS);
        if (!is_reported())
            idle_since = kp_now_ms();
        passed = kp_now_ms() - idle_since >= EXITER_MS;
        other = 0;
    }
}

void kp_process_exits(void)
{
    int before;
    if (!is_own_process())
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    wait_for_exiter(kp_thread_id());
    kp_thread_park(exiter_ends);
    pthread_setcancelstate(before, &before);
}

/* An exit() from within the last handlers or a destructor skips all later ones, ours included. */
void kp_process_exit_called(void)
{
    if (atomic_load(&process.ending) && atomic_load(&process.exiter) == kp_thread_id())
        kp_process_finish();
    kp_process_exits();
}

typedef bool (*context_match)(const struct kp_context *c, uint64_t arg);

/* Leaves the matching contexts. Waits at the gate as kp_gate_enter_exclusive does. */
static void leave_contexts(context_match match, uint64_t arg, const char *why, long owner_ms, long patience_ms)
{
    int before;
    if (!kp_process_active() || kp_guard)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    bool alone;
    do /* planning needs libraries that exit handlers tear down after this */
        alone = kp_gate_enter_exclusive(owner_ms, patience_ms);
    while (!alone && kp_context_is_planning());
    if (alone) {
        kp_guard++;
        kp_window_close(why);
        kp_worker_drain(KP_FOREVER);
        kp_patience_reap();
        kp_context_close(&process.setup, match, arg, true);
        kp_window_contexts_ended();
        kp_guard--;
        kp_gate_leave_exclusive();
    }
    pthread_setcancelstate(before, &before);
}

static void at_exit(void)
{
    if (!is_own_process())
        return;
    kp_locks_at_end();
    atomic_store(&process.exiter, kp_thread_id());
    kp_window_hurry();
    kp_thread_park(exiter_ends);
    atomic_store(&process.ending, true); /* set before the gate, for launches that wait there to see it */
    leave_contexts(NULL, 0, the_end, PATIENCE_MS, PATIENCE_MS);
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
    if (kp_options_from_env(&process.options, environ ? environ : no_environment, &err)) {
        unprofiled(err ? KP_FAILURE_OPTION : KP_FAILURE_MEMORY, "out of memory", err);
        return false;
    }
    kp_debug_show(domains_of(&process.options.debug));
    kp_outcome_strict(process.options.strict);
    kp_log_quiet(process.options.quiet);
    if (*kp_sections_note())
        kp_log_warning("%s", kp_sections_note());
    if (kp_sections_select(process.options.set, process.options.section, &process.sections, &process.n_sections,
                           &err) ||
        kp_filter_new(&process.options, &filter_source, &process.filter, &err) || kp_nvtx_configure(&process.options)) {
        unprofiled(err ? KP_FAILURE_OPTION : KP_FAILURE_MEMORY, "out of memory", err);
        return false;
    }
    if (kp_nvtx_other()) {
        kp_outcome_failed(KP_FAILURE_RANGES);
        kp_log_warning("NVTX ranges are not seen: %s names another library, %s; unset it", KP_NVTX_PATH_VARIABLE,
                       kp_nvtx_other());
    }
    kp_stack_configure(&process.options);
    atomic_store(&process.profiling, process.options.profile_from_start);
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
    kp_log_progress("Process %d (%s) is left alone: %s", (int)process.pid, name, why);
    kp_outcome_left();
    go_to(UNPROFILED);
    return false;
}

/* Whether the options select this process. */
static bool is_target(void)
{
    const struct kp_options *o = &process.options;
    bool target = true;
    char *exe = kp_session_executable();
    const char *slash = exe ? strrchr(exe, '/') : NULL, *name = slash ? slash + 1 : program_invocation_short_name;
    if (o->target_processes == KP_TARGETS_APPLICATION && o->application != (uint64_t)process.pid)
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
    for (size_t s = 0; s < process.n_sections; s++)
        for (size_t i = 0; i < process.sections[s]->n_rows; i++)
            if (process.sections[s]->rows[i].source == KP_SRC_LAUNCH)
                return true;
    return strstr(process.options.metrics, "launch__") != NULL;
}

/* Whether MemorySanitizer runs: it takes data written by uninstrumented code for uninitialised. */
static bool is_watched(void)
{
    if (!kp_symbols_dl()->sym(RTLD_DEFAULT, "__msan_init"))
        return false;
    unprofiled(KP_FAILURE_CUPTI,
               "MemorySanitizer, with which the program is built, would report kprof's own memory and end it", NULL);
    return true;
}

static const struct kp_gate_window gate_window = {kp_window_is_open, kp_window_watches, kp_process_close_window};

static void wake(void)
{
    const char *missing = kp_driver_fill(&process.driver, kp_symbols_driver);
    process.pid = getpid();
    /* A return from main bypasses our exit(): before glibc 2.41 that thread would take the next handler while
     * another one runs ours. */
    kp_exit_handlers(at_exit, kp_process_exits);
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
        unprofiled(KP_FAILURE_DRIVER, "the CUDA driver is too old", why);
        return;
    }
    if (kp_session_open(&process.options, &process.driver, process.sections, process.n_sections)) {
        unprofiled(KP_FAILURE_MEMORY, "out of memory", NULL);
        return;
    }
    process.setup = (struct kp_context_setup){
        .driver = &process.driver,
        .options = &process.options,
        .sections = process.sections,
        .n_sections = process.n_sections,
        .configs = shows_configs(),
        .one_pass = kp_sections_one_pass(process.sections, process.n_sections, process.options.metrics)};
    kp_context_prepare(&process.setup);
    kp_exit_first(); /* registered after cuInit, so it runs before the driver's own handlers */
    kp_gate_set_window(&gate_window);
    go_to(AWAKE);
}

void kp_process_cuda_started(void)
{
    kp_lock_take(process.lock, KP_FOREVER);
    if (atomic_load(&process.phase) == ASLEEP) {
        kp_guard++;
        wake();
        kp_guard--;
    }
    kp_lock_give(process.lock);
}

/* ---- choosing ---- */

void kp_process_skip(const char *reason, unsigned launches)
{
    kp_session_seen(launches);
    kp_session_skip(reason, launches);
}

void kp_process_profile(bool on)
{
    if (kp_process_active() && !process.options.profile_from_start)
        atomic_store(&process.profiling, on);
}

/* Enters the gate shared, with no window open that would miss a launch, or count it as its own. One that cannot be
 * closed has been given up: a call that does not end may wait for this very launch. */
static void enter_for_launch(void)
{
    static const char what[] = "launches that are let through";
    kp_gate_enter_shared(what);
    while (kp_window_holds_back()) {
        kp_gate_leave_shared();
        kp_process_close_window(what);
        kp_gate_enter_shared(what);
    }
}

/* Runs a launch outside of any window. */
static CUresult pass_through(const struct kp_launch *l)
{
    enter_for_launch();
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
    CUresult rc = process.driver.cuStreamIsCapturing(kp_launch_stream(l), &status);
    kp_guard--;
    return rc == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Runs a launch outside of any window and counts it, unless the driver refuses it. */
static CUresult skip(const struct kp_launch *l, const char *reason)
{
    CUresult rc = pass_through(l);
    if (rc == CUDA_SUCCESS) {
        if (kp_launched_note(&process.driver, l) && kp_kernel_once(&process.driver, l->f) & KP_ONCE_HEAP)
            kp_window_heap_blocks();
        kp_process_skip(reason, 1);
    }
    return rc;
}

/* Handles a launch that is wanted, or that comes while a window is open. */
static CUresult through_window(struct kp_launch *l, const struct kp_candidate *what, const char *unwanted)
{
    if (!kp_gate_enter_exclusive(KP_FOREVER, PATIENCE_MS))
        return skip(l, what->wanted ? KP_SKIP_BUSY : unwanted);
    if (kp_gate_captures() > 0) { /* a capture began meanwhile; here no further one can */
        kp_gate_leave_exclusive();
        return is_captured(l) ? pass_through(l) : skip(l, KP_SKIP_CAPTURE);
    }
    if (!kp_process_active()) { /* profiling ended while this thread waited */
        kp_gate_leave_exclusive();
        return l->issue(l);
    }
    if (atomic_load(&process.ending)) { /* likewise: libraries needed for planning may be torn down already */
        kp_gate_leave_exclusive();
        return skip(l, late);
    }
    char *bad_input = NULL;
    const char *skipped = NULL;
    kp_guard++;
    CUresult rc = kp_window_launch(&process.setup, l, what, &skipped, &bad_input);
    if (bad_input)
        unprofiled(KP_FAILURE_METRIC, NULL, bad_input);
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
    if (!bit || atomic_fetch_or(&process.devices_seen, bit) & bit)
        return;
    kp_guard++;
    if (kp_device_read(&process.driver, ordinal, &device) == CUDA_SUCCESS)
        kp_session_device(&device, "", "");
    kp_guard--;
}

/* Returns why a launch is not wanted, or NULL. */
static const char *unwanted_for(struct kp_launch *l, struct kp_candidate *what, struct kp_graph *graph)
{
    struct kp_filter_choice choice;
    if (!atomic_load(&process.profiling))
        return KP_SKIP_PROFILER;
    kp_filter_choose(process.filter, l, &choice);
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
    if (atomic_load(&process.ending))
        return skip(l, late);
    const char *unwanted = unwanted_for(l, &what, &graph);
    /* Do not count it either: counting waits for the kernel's end on this thread, for which the kernel's partner may
     * wait. */
    if (what.outside)
        return skip(l, waits_outside_reason);
    if (!unwanted)
        return graph.waits ? skip(l, graph.obstacle) : through_window(l, &what, NULL);
    what.wanted = false;
    if (!kp_window_is_open() || l->is_graph || kp_filter_outside(process.filter, l->f))
        return skip(l, unwanted);
    return through_window(l, &what, unwanted);
}

static void begin(void)
{
    char *err = NULL;
    kp_lock_take(process.lock, KP_FOREVER);
    kp_guard++;
    if (!atomic_load(&process.begun) && kp_process_active() && kp_session_begin(&err))
        unprofiled(KP_FAILURES, "out of memory", err);
    atomic_store(&process.begun, true);
    kp_guard--;
    kp_lock_give(process.lock);
}

/* Disables cancellation: a thread cancelled in a replay would leave the gate closed for ever. The same goes wherever
 * a window may close. */
CUresult kp_process_launch(struct kp_launch *l)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (!atomic_load(&process.begun))
        begin();
    CUresult rc = kp_process_active() ? choose(l) : l->issue(l);
    kp_launch_free(l);
    pthread_setcancelstate(before, &before);
    return rc;
}

/* ---- ending ---- */

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
    leave_contexts(matches[which], first, symbol, KP_FOREVER, LAST_PATIENCE_MS);
}

/* ---- windows ---- */

void kp_process_close_window(const char *why)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (kp_gate_enter_exclusive(KP_FOREVER, LAST_PATIENCE_MS)) {
        kp_guard++;
        kp_window_close(why);
        kp_guard--;
        kp_gate_leave_exclusive();
    } else {
        kp_window_spoil();
    }
    pthread_setcancelstate(before, &before);
}

static __thread uint64_t last_ticket __attribute__((tls_model("initial-exec")));

static __thread int cancel_before __attribute__((tls_model("initial-exec")));

static enum kp_joined join(const char *symbol, void *real, const uint64_t *args)
{
    if (!kp_gate_enter_exclusive(KP_FOREVER, LAST_PATIENCE_MS)) {
        kp_window_spoil();
        return KP_JOINED_NOT;
    }
    kp_guard++;
    enum kp_joined joined =
        kp_process_active() ? kp_window_join(&process.setup, symbol, real, args, &last_ticket) : KP_JOINED_NOT;
    kp_guard--;
    if (joined == KP_JOINED_NOT)
        kp_gate_leave_exclusive();
    else if (joined != KP_JOINED_READ_LATER)
        kp_gate_exclusive_to_shared();
    return joined;
}

/* Joins a call to the open window; if it cannot join, the window closes. */
enum kp_joined kp_process_join(const char *symbol, void *real, const uint64_t *args)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
    enum kp_joined joined = join(symbol, real, args);
    if (joined != KP_JOINED_READ_LATER)
        pthread_setcancelstate(cancel_before, &cancel_before);
    return joined;
}

void kp_process_join_failed(void)
{
    kp_window_refused(last_ticket);
}

void kp_process_read_later(const char *symbol, CUresult rc)
{
    if (rc == CUDA_SUCCESS) {
        kp_guard++;
        if (!kp_window_log(last_ticket))
            kp_window_read(last_ticket, symbol);
        kp_guard--;
    }
    kp_gate_leave_exclusive();
    pthread_setcancelstate(cancel_before, &cancel_before);
}

bool kp_process_log(void)
{
    kp_guard++;
    bool stays = kp_window_log(last_ticket);
    kp_guard--;
    kp_window_synchronised();
    return stays;
}

void kp_process_read(const char *symbol)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (kp_gate_enter_exclusive(KP_FOREVER, LAST_PATIENCE_MS)) {
        kp_guard++;
        kp_window_read(last_ticket, symbol);
        kp_guard--;
        kp_gate_leave_exclusive();
    } else {
        kp_window_spoil();
    }
    pthread_setcancelstate(before, &before);
}

/* The arguments of an allocation: where the address goes, byte, and what else there is. */
enum { ALLOCATION_ARGS = 4 };
static __thread uint64_t allocation[ALLOCATION_ARGS] __attribute__((tls_model("initial-exec")));

bool kp_process_allocates(const uint64_t *args)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
    if (!kp_gate_enter_exclusive(KP_FOREVER, LAST_PATIENCE_MS)) {
        kp_window_spoil();
        pthread_setcancelstate(cancel_before, &cancel_before);
        return false;
    }
    memcpy(allocation, args, sizeof(allocation));
    if (kp_process_active() && kp_window_watches())
        return true;
    kp_gate_leave_exclusive();
    pthread_setcancelstate(cancel_before, &cancel_before);
    return false;
}

CUresult kp_process_allocated(const char *symbol, void *real, CUresult rc, bool later)
{
    typedef CUresult (*function)(uint64_t, uint64_t, uint64_t, uint64_t);
    const uint64_t *a = allocation;
    kp_guard++;
    if (rc == CUDA_SUCCESS) {
        kp_window_allocated(&process.setup, symbol, *(const CUdeviceptr *)(uintptr_t)a[0], a[1], later);
    } else if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
        kp_window_close(symbol);
        rc = ((function)(uintptr_t)real)(a[0], a[1], a[2], a[3]); /* see kp_op_issue */
    }
    kp_guard--;
    kp_gate_leave_exclusive();
    pthread_setcancelstate(cancel_before, &cancel_before);
    return rc;
}

/* Enters the gate exclusively while a window watches. False: it is to be closed, or spoiled by now. */
static bool enter_beside_window(int *before)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, before);
    if (kp_gate_enter_exclusive(KP_FOREVER, LAST_PATIENCE_MS)) {
        if (kp_process_active() && kp_window_watches())
            return true;
        kp_gate_leave_exclusive();
    }
    pthread_setcancelstate(*before, before);
    return false;
}

bool kp_process_loads(CUkernel kernel)
{
    kp_guard++;
    bool loads = kp_context_first_of_library(&process.driver, kernel);
    kp_guard--;
    return loads;
}

bool kp_process_takes_load(void)
{
    int before;
    if (!kp_context_sees_loads(&process.driver) || !enter_beside_window(&before))
        return false;
    kp_guard++;
    kp_window_makes_room(&process.setup);
    kp_guard--;
    kp_gate_exclusive_to_shared();
    pthread_setcancelstate(before, &before);
    return true;
}

bool kp_process_sets(void *real, const uint64_t *before, const uint64_t *after)
{
    int cancel;
    if (!enter_beside_window(&cancel))
        return false;
    kp_guard++;
    bool held = kp_window_sets(&process.setup, real, before, after, &last_ticket);
    kp_guard--;
    if (held)
        kp_gate_exclusive_to_shared();
    else
        kp_gate_leave_exclusive();
    pthread_setcancelstate(cancel, &cancel);
    return held;
}

bool kp_process_goes_beside(void)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    kp_gate_exclusive_to_shared();
    pthread_setcancelstate(before, &before);
    return true;
}

bool kp_process_ends_stream(CUstream stream, CUresult *answer)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    kp_guard++;
    bool kept = kp_gate_captures() <= 0 && kp_window_ends_stream(&process.setup, stream, answer);
    kp_guard--;
    kp_gate_leave_exclusive();
    pthread_setcancelstate(before, &before);
    return kept;
}

bool kp_process_frees(CUdeviceptr memory, bool later, CUresult *answer)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    kp_guard++;
    bool kept = kp_window_frees(&process.setup, memory, later, answer);
    kp_guard--;
    kp_gate_leave_exclusive();
    pthread_setcancelstate(before, &before);
    if (kept && !later)
        kp_window_synchronised();
    return kept;
}

void kp_process_loads_images(void)
{
    int before;
    if (atomic_load(&process.images))
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (kp_gate_enter_exclusive(KP_FOREVER, PATIENCE_MS)) {
        kp_guard++;
        if (kp_process_active() && !atomic_exchange(&process.images, true) && !atomic_load(&process.ending))
            kp_context_prepare_images(&process.setup);
        kp_guard--;
        kp_gate_leave_exclusive();
    }
    pthread_setcancelstate(before, &before);
}

bool kp_process_replays(void)
{
    return kp_process_active() && !process.setup.one_pass;
}

void kp_process_forget(enum kp_stale what, uint64_t first)
{
    if (what == KP_STALE_MODULE)
        kp_context_unloaded((const void *)(uintptr_t)first);
    kp_filter_forget(process.filter);
    kp_place_forget();
    if (what != KP_STALE_SETTINGS)
        kp_launched_forget();
    kp_context_forget();
}

static void note_unwanted(void *arg, const char *name, uint64_t launches)
{
    (void)arg;
    kp_session_unwanted(name, launches);
}

/* Reports a fork at the end of the child, so that a child which executes a program stays silent. Does not allocate,
 * as the child may have any state of the parent's. */
static void tell_forked(void)
{
    char line[160];
    const struct kp_sink *log = kp_log_sink();
    if (process.forked != getpid() || process.options.quiet)
        return;
    int n =
        snprintf(line, sizeof(line), "==KPROF== Process %d, forked from %d after CUDA had started, was left alone\n",
                 (int)process.forked, (int)process.pid);
    process.forked = 0;
    log->write(log->arg, line, (size_t)n);
}

/* Returns the CPU time of thread `id`, in ns. KP_VENDOR: computes the kernel's number of a thread's clock as
 * pthread_getcpuclockid does, which libc lacks before glibc 2.34. */
static double cpu_time_of(int id)
{
    enum { PER_THREAD = 4, SCHEDULED = 2 };
    struct timespec t;
    if (clock_gettime((clockid_t)(~(unsigned)id << 3 | PER_THREAD | SCHEDULED), &t))
        return -1;
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Waits while another thread finishes: the process would end before the report is whole. Waits only as long as that
 * thread progresses. It may wait for locks of this thread, where a signal handler ends the program. */
static void wait_for_finisher(int id)
{
    double before = cpu_time_of(id);
    long start = kp_now_ms();
    while (!atomic_load(&process.finished) && before >= 0) {
        kp_wait_while(&process.finished, 0, EXITER_STEP_MS);
        double now = cpu_time_of(id);
        if (now != before || kp_log_is_writing())
            start = kp_now_ms();
        else if (kp_now_ms() - start >= LAST_PATIENCE_MS)
            return;
        before = now;
    }
}

/* Whether this thread is the one that finishes. */
static bool takes_the_end(void)
{
    int id = kp_thread_id(), other = 0;
    if (!kp_session_is_open() && !atomic_load(&process.finisher))
        return false;
    if (atomic_compare_exchange_strong(&process.finisher, &other, id))
        return true;
    if (other != id) /* not the thread that the handler interrupted */
        wait_for_finisher(other);
    return false;
}

/* A report of more launches may take seconds. */
enum { MANY_LAUNCHES = 1000 };

static void finish(void)
{
    kp_locks_at_end();
    kp_thread_park(exiter_ends);
    /* A handler that interrupted our own work on this thread cannot wait for that work. */
    long patience = kp_guard ? 0 : LAST_PATIENCE_MS;
    /* Gives a replay of another thread time to end, but writes the report in any case. */
    bool alone = kp_gate_enter_exclusive(patience, patience);
    /* A handler may have interrupted a driver call of this very thread; the driver would deadlock. */
    bool may_call = alone && !kp_guard && !kp_in_driver && !atomic_load(&process.ending);
    kp_guard++;
    if (may_call)
        kp_window_close(the_end);
    else if (alone)
        kp_window_give_up();
    go_to(FINISHED);
    if (patience) /* otherwise this thread may hold locks that reporting needs */
        kp_progress_begin("evaluating the counters of the last windows", false);
    kp_worker_drain(patience);
    kp_filter_unwanted(process.filter, note_unwanted, NULL);
    kp_closers_tell();
    kp_nvtx_each_seen(kp_session_range);
    if (patience)
        kp_progress_step("writing the report", kp_session_seen(0) > MANY_LAUNCHES);
    kp_session_close();
    if (patience)
        kp_progress_end();
    kp_guard--;
    if (alone)
        kp_gate_leave_exclusive();
    atomic_store(&process.finished, 1);
    kp_wake_all(&process.finished);
}

void kp_process_finish(void)
{
    if (atomic_load(&process.phase) == FORKED)
        tell_forked();
    /* The child of a vfork shares this memory and is not the program. */
    if (atomic_load(&process.phase) == FORKED || getpid() != process.pid)
        return;
    int before; /* _exit is no cancellation point */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (takes_the_end()) {
        atexit(kp_process_exits); /* other threads that exit now find this handler */
        finish();
    }
    pthread_setcancelstate(before, &before);
}
