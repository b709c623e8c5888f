#include "preload/process/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/debug.h"
#include "base/lock.h"
#include "base/text.h"
#include "base/wait_limits.h"
#include "base/work.h"
#include "collectors/code/cubin.h"
#include "preload/process/ending.h"
#include "preload/gate/gate.h"
#include "preload/gate/fast_path.h"
#include "preload/os/exit_first.h"
#include "preload/os/guard.h"
#include "preload/os/kept_environment.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/os/progress.h"
#include "preload/os/stdout_mute.h"
#include "preload/os/symbols.h"
#include "preload/os/worker.h"
#include "preload/process/occurrence.h"
#include "preload/process/phase.h"
#include "preload/contexts/warm_up.h"
#include "preload/contexts/context.h"
#include "preload/program/filter.h"
#include "preload/program/hostmem.h"
#include "preload/program/device_memory.h"
#include "preload/program/kernel.h"
#include "preload/contexts/launch_ids.h"
#include "preload/program/loaded_modules.h"
#include "preload/rotation/rotation.h"
#include "preload/session/session.h"
#include "preload/who/nvtx.h"
#include "preload/who/stack.h"
#include "preload/who/timeline.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/modes.h"
#include "preload/mode/window.h"
#include "report/define/section_files.h"
#include "report/options/options.h"

static struct kp_process *const process = &kp_process_now;

extern char **environ;

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

static enum kp_reason read_ids(const struct kp_launch *l, uint64_t *context, uint64_t *stream)
{
    char *bad_input = NULL;
    enum kp_reason why = kp_place_ids(&process->setup, l, context, stream, &bad_input);
    if (bad_input)
        kp_phase_unprofiled(KP_FAILURE_METRIC, NULL, bad_input);
    return why;
}

static bool is_inside(struct kp_launch *l)
{
    return kp_nvtx_judge(l->stream, &l->nvtx) && kp_occurrence_wanted();
}

static const struct kp_filter_source filter_source = {read_mangled, read_device, read_clock, read_ids, is_inside};

/* ---- start ---- */

/* The options of the environment, or why they cannot be read. They are read for the first call of cuInit, and again if
 * it failed, or in a child. */
static struct {
    bool read;
    int rc;
    char *why;
} environment;

static void forget_environment(void)
{
    if (environment.read && !environment.rc)
        kp_options_free(&process->options);
    free(environment.why);
    environment.why = NULL;
    environment.read = false;
}

static void in_forked_child(void)
{
    kp_debug(KP_DEBUG_FORK, "a forked child: locks are free, windows and threads of the parent's are forgotten");
    kp_gate_reset();
    kp_nvtx_forked();
    kp_timeline_forked();
    if (atomic_load(&process->phase) != KP_PHASE_ASLEEP || kp_locks_broken(KP_LOCK_PROCESS)) {
        process->forked = getpid();
        kp_phase_go(KP_PHASE_FORKED);
    } else {
        forget_environment();
    }
    kp_work_forked();
    kp_window_forked();
    kp_worker_forked();
    kp_ahead_forked();
    kp_hostmem_forked();
    kp_owned_forked();
    kp_mute_forked();
    kp_session_forked();
    kp_progress_forked();
}

void kp_process_watch_forks(void)
{
    process->loaded = getpid();
    kp_locks_watch_forks(in_forked_child);
}

/* Combines the option's words, which have the order of the domains. */
static unsigned domains_of(const struct kp_choices *c)
{
    unsigned domains = 0;
    for (size_t i = 0; i < c->n; i++)
        domains |= 1U << c->at[i];
    return domains;
}

/* Returns true if the process is one that the options' replay mode can profile. */
static bool is_run_allowed(const struct kp_options *o)
{
    if (kp_options_by_ranges(o) && (*o->kernel_name || *o->kernel_id)) {
        kp_phase_unprofiled(KP_FAILURE_OPTION,
                            "the replay modes range and app-range take whole ranges, so leave out KPROF_KERNEL_NAME "
                            "and KPROF_KERNEL_ID, and choose ranges with KPROF_NVTX_INCLUDE, KPROF_LAUNCH_SKIP or "
                            "KPROF_LAUNCH_COUNT",
                            NULL);
        return false;
    }
    if (!kp_options_by_runs(o) || (o->replay_run && *o->replay_folder))
        return true;
    bool ranges = kp_options_by_ranges(o);
    const char *mode = ranges ? "app-range" : "application";
    char *text = NULL;
    text = kp_asprintf("KPROF_REPLAY_MODE=%s runs the program several times, which the kprof command does: kprof "
                       "--replay-mode %s PROGRAM; or use KPROF_REPLAY_MODE=%s",
                       mode, mode, ranges ? "range" : "kernel");
    kp_phase_unprofiled(KP_FAILURE_OPTION, "out of memory", text);
    return false;
}

static int read_environment(void)
{
    if (environment.read)
        return environment.rc;
    char **entries = kp_kept_entries();
    environment.rc = entries ? kp_options_from_env(&process->options, entries, &environment.why) : -ENOMEM;
    environment.read = true;
    free(entries);
    return environment.rc;
}

static bool read_options(void)
{
    char *err = NULL;
    if (read_environment()) {
        char *why = environment.why;
        environment.why = NULL;
        kp_phase_unprofiled(why ? KP_FAILURE_OPTION : KP_FAILURE_MEMORY, "out of memory", why);
        return false;
    }
    if (!is_run_allowed(&process->options))
        return false;
    if (!kp_options_by_runs(&process->options))
        process->options.replay_run = 0;
    if (process->options.replay_run)
        *process->options.export_file = '\0'; /* the command exports what all runs give together */
    kp_debug_show(domains_of(&process->options.debug));
    kp_outcome_strict(process->options.strict);
    kp_log_quiet(process->options.quiet);
    kp_log_as_ncu(process->options.face == KP_FACE_NCU);
    if (*kp_sections_note())
        kp_log_warning("%s", kp_sections_note());
    if (kp_sections_select(process->options.set, process->options.section, &process->sections, &process->n_sections,
                           &err) ||
        kp_filter_new(&process->options, &filter_source, &process->filter, &err) ||
        kp_nvtx_configure(&process->options) || kp_occurrence_configure(&process->options)) {
        kp_phase_unprofiled(err ? KP_FAILURE_OPTION : KP_FAILURE_MEMORY, "out of memory", err);
        return false;
    }
    if (kp_nvtx_other()) {
        kp_outcome_failed(KP_FAILURE_RANGES);
        kp_log_warning("NVTX ranges are not seen: %s names another library, %s; unset it", KP_NVTX_PATH_VARIABLE,
                       kp_nvtx_other());
    }
    kp_rotation_by_path(process->options.rotate_key == KP_ROTATE_BY_NVTX);
    kp_stack_configure(&process->options);
    process->options.profile_from_start |= process->options.disable_profiler_start_stop;
    atomic_store(&process->profiling, process->options.profile_from_start);
    return true;
}

/* Leaves all children alone if the filter excludes this process with them: they get a filter that nothing passes. */
static void leave_tree(void)
{
    static const char variable[] = "KPROF_TARGET_PROCESSES_FILTER";
    const char *list = getenv(variable);
    bool tree = false;
    if (!list || !strstr(list, "exclude-tree:"))
        return;
    char *exe = kp_session_executable();
    const char *slash = exe ? strrchr(exe, '/') : NULL;
    kp_filter_process(list, slash ? slash + 1 : program_invocation_short_name, program_invocation_short_name, &tree);
    if (tree)
        setenv(variable, "exclude:regex:.", 1);
    free(exe);
}

/* Remembers the first process that the library is loaded into: the variable passes to all its children. If the program
 * is a script, the first process never uses CUDA. Without the option, this only costs two looks at the environment. */
__attribute__((constructor)) static void note_application(void)
{
    char pid[16];
    if ((getenv("KPROF_TARGET_PROCESSES") || getenv("KPROF_CONFIG")) && kp_options_want_application(environ)) {
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        setenv("KPROF_APPLICATION", pid, 0);
    }
    leave_tree();
    kp_kept_note();
}

static void leave_alone(const char *name, enum kp_reason why)
{
    kp_log_progress("Process %d (%s) is left alone: %s", (int)process->pid, name, kp_reason_text(why));
    kp_outcome_left();
    kp_phase_go(KP_PHASE_UNPROFILED);
}

/* Returns why the options do not select this process, whose name is `name`; none = they do. */
static enum kp_reason why_no_target(const char *name)
{
    const struct kp_options *o = &process->options;
    if (o->target_processes == KP_TARGETS_APPLICATION && o->application != (uint64_t)process->pid)
        return KP_REASON_TARGET_APPLICATION;
    bool tree;
    if (!kp_filter_process(o->target_processes_filter, name, program_invocation_short_name, &tree))
        return KP_REASON_TARGET_FILTER;
    return KP_REASON_NONE;
}

/* Returns true if the options select this process; with `tells`, reports if they do not. */
static bool is_target(bool tells)
{
    char *exe = kp_session_executable();
    const char *slash = exe ? strrchr(exe, '/') : NULL, *name = slash ? slash + 1 : program_invocation_short_name;
    enum kp_reason why = why_no_target(name);
    if (why && tells)
        leave_alone(name, why);
    free(exe);
    return !why;
}

/* Returns true if a wanted row or metric describes the launch without being a counter. ncu's raw page has them all. */
static bool shows_configs(void)
{
    if (process->options.face == KP_FACE_NCU)
        return true;
    for (size_t s = 0; s < process->n_sections; s++)
        for (size_t i = 0; i < process->sections[s]->n_rows; i++)
            if (process->sections[s]->rows[i].source == KP_SRC_LAUNCH)
                return true;
    return strstr(process->options.metrics, "launch__") != NULL;
}

/* Returns true if MemorySanitizer runs: it considers data written by uninstrumented code uninitialised. */
static bool is_watched(void)
{
    static atomic_int watched = -1;
    if (atomic_load(&watched) < 0)
        atomic_store(&watched, kp_symbols_dl()->sym(RTLD_DEFAULT, "__msan_init") != NULL);
    return atomic_load(&watched);
}

static bool tell_watched(void)
{
    if (!is_watched())
        return false;
    kp_phase_unprofiled(KP_FAILURE_CUPTI,
                        "MemorySanitizer, with which the program is built, would report kprof's own memory and end it",
                        NULL);
    return true;
}

static const struct kp_gate_window gate_window = {kp_window_is_open, kp_window_takes_all, kp_window_watches,
                                                  kp_window_keeps, kp_process_close_window};

static void open_log(void)
{
    static bool open;
    if (!open)
        kp_log_open();
    open = true;
}

/* Pins the driver: a program may close it before it ends, but our table must stay valid. */
static atomic_bool pinned;

static void pin_driver(void)
{
    if (!atomic_load(&pinned) && kp_symbols_dl()->open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
        atomic_store(&pinned, true);
}

void kp_process_library_closes(void)
{
    if (kp_guard || atomic_load(&pinned))
        return;
    kp_work_begin();
    if (kp_symbols_driver("cuInit")) {
        KP_GUARDED;
        pin_driver();
    }
    kp_work_end();
}

/* Returns true if the memory of the process is limited: the driver needs it first. */
static bool is_short_of_room(void)
{
    static const __rlimit_resource_t limits[] = {RLIMIT_AS, RLIMIT_DATA};
    struct rlimit l;
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        if (!getrlimit(limits[i], &l) && l.rlim_cur != RLIM_INFINITY)
            return true;
    return false;
}

/* Returns true if the first launch of this process is wanted, as far as the options determine that. */
static bool wants_first(void)
{
    const struct kp_options *o = &process->options;
    return !read_environment() && !o->only_timeline && o->profile_from_start && is_target(false) &&
           !is_short_of_room() && (kp_options_by_ranges(o) || kp_filter_takes_first(o));
}

static void wake(void)
{
    const char *missing = kp_driver_fill(&process->driver, kp_symbols_driver);
    process->pid = getpid();
    /* A return from main bypasses our exit(): before glibc 2.41 that thread would run the next handler while another
     * one runs ours. */
    kp_exit_handlers(kp_ending_at_exit, kp_process_exits);
    kp_outcome_open();
    open_log();
    if (tell_watched() || !read_options() || !is_target(true))
        return;
    if (missing) {
        char *why = NULL;
        why = kp_asprintf("the CUDA driver has no %s: a newer driver is needed", missing);
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
        .mode = kp_mode_choose(&process->options,
                               kp_sections_one_pass(process->sections, process->n_sections, process->options.metrics)),
        .sections = process->sections,
        .n_sections = process->n_sections,
        .configs = shows_configs(),
    };
    kp_process_prepare_ranges();
    kp_context_prepare(&process->setup);
    kp_context_begin_timeline(&process->setup);
    kp_exit_first(); /* registered after cuInit, so it runs before the driver's own handlers */
    kp_gate_set_window(&gate_window);
    kp_phase_go(KP_PHASE_AWAKE);
}

/* Reads the options, unless another thread does. Returns true if the first launch is wanted, with the malloc'ed folder
 * of CUPTI. */
static bool prepare(char **cupti_dir)
{
    *cupti_dir = NULL;
    if (!kp_lock_take(process->lock, 0))
        return false;
    if (atomic_load(&process->phase) == KP_PHASE_ASLEEP && !environment.read) {
        process->pid = getpid();
        open_log();
        if (wants_first())
            *cupti_dir = kp_strdup(process->options.cupti_dir);
    }
    kp_lock_give(process->lock);
    return *cupti_dir;
}

/* Prints nothing: without a device, nothing follows. Growing the table of descriptors costs nothing while the process
 * has one thread, and 10 ms once it has several. The loader is called without our lock: a thread that calls cuInit from
 * a library's constructor has the loader's. */
void kp_process_cuda_starts(void)
{
    char *cupti_dir;
    if (atomic_load(&process->phase) != KP_PHASE_ASLEEP)
        return;
    kp_work_takes_long();
    KP_GUARDED;
    if (prepare(&cupti_dir) && !is_watched()) {
        pin_driver(); /* the loader is busy afterwards */
        kp_context_open_early(cupti_dir);
    }
    free(cupti_dir);
}

void kp_process_cuda_failed(void)
{
    kp_ahead_give_up();
    if (!kp_lock_take(process->lock, 0))
        return;
    if (atomic_load(&process->phase) == KP_PHASE_ASLEEP)
        forget_environment();
    kp_lock_give(process->lock);
}

/* Calls the loader before it has the lock, as above: a thread that has the loader's lock waits for one that starts
 * kprof only that long. */
void kp_process_cuda_started(void)
{
    if (atomic_load(&process->phase) != KP_PHASE_ASLEEP)
        return;
    kp_work_takes_long();
    KP_GUARDED;
    is_watched();
    pin_driver();
    if (kp_lock_take(process->lock, kp_limit_first(KP_WAIT_START))) {
        if (atomic_load(&process->phase) == KP_PHASE_ASLEEP)
            wake();
        kp_lock_give(process->lock);
    }
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
    kp_passing_outdate();
}
