#include "preload/contexts/context.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/debug.h"
#include "base/demangle.h"
#include "base/lock.h"
#include "base/room.h"
#include "base/text.h"
#include "base/traps.h"
#include "base/work.h"
#include "collectors/code/cubin.h"
#include "collectors/code/sass.h"
#include "collectors/facts/topology.h"
#include "collectors/providers/library.h"
#include "collectors/providers/observe.h"
#include "preload/gate/handle_set.h"
#include "preload/gate/fast_path.h"
#include "preload/os/elf.h"
#include "preload/os/exit_first.h"
#include "preload/os/guard.h"
#include "preload/os/outcome.h"
#include "preload/os/progress.h"
#include "preload/os/symbols.h"
#include "preload/os/worker.h"
#include "preload/contexts/warm_up.h"
#include "preload/program/hostmem.h"
#include "preload/program/kernel.h"
#include "preload/program/loaded_modules.h"
#include "preload/contexts/other_cupti.h"
#include "preload/program/device_memory.h"
#include "preload/rotation/rotation.h"
#include "preload/contexts/program_runs.h"
#include "preload/program/variables.h"
#include "preload/session/session.h"
#include "preload/who/durations.h"
#include "preload/who/timeline.h"
#include "report/define/derive_source.h"

static struct kp_context *contexts;
static atomic_uint generation;
static atomic_bool foreign_activity;

/* Unloaded modules and libraries, whose handles may be reused. If a program unloads more than these, every module
 * counts as new, which only costs windows. */
enum { MOST_GONE = 4096 };

static struct {
    const void *list[MOST_GONE];
    atomic_size_t n; /* in total; the list holds the latest */
} gone;
static struct kp_lock *const gone_lock = &kp_locks[KP_LOCK_UNLOADED];

/* CUPTI, opened early for a folder. Kept: a thread may still use it. */
struct early {
    struct kp_cupti *cupti;
    char *dir;
    struct early *before; /* from a cuInit that failed */
};

/* CUPTI, opened once a process. */
static struct {
    bool tried;
    bool complete, started; /* all its calls are known; it was started, or failed to start: then `cupti` is NULL */
    struct kp_cupti *cupti;
    struct early *_Atomic early; /* before CUDA is initialised; NULL = was not opened then */
    struct kp_why why_not;
    struct kp_codes *codes;
    bool keeps_code; /* results need the code of kernels itself */
} loaded;

/* Limit for images of modules: a fully used large library takes some hundred megabytes. */
static const size_t most_cubins = (size_t)1 << 30;

const struct kp_cupti *kp_context_cupti(void)
{
    return loaded.cupti;
}

/* When CUPTI may be detached, ns of kp_clock_ns; 0: it is not in use. */
static atomic_uint_fast64_t leaves_at;
static atomic_bool is_out; /* set inside the gate, or by a program's call that ends CUPTI */

/* Sets why the context has no counters; the first reason wins. */
static void without_counters(struct kp_context *c, struct kp_why why)
{
    if (c->no_counters.reason)
        kp_why_free(&why);
    else
        c->no_counters = why;
}

/* Attaches CUPTI again; if that fails, nothing more is counted. */
static void come_back(CUcontext ctx)
{
    int rc = kp_library_come_back(loaded.cupti, ctx);
    is_out = false;
    for (struct kp_context *c = contexts; rc && c; c = c->next)
        without_counters(c, kp_library_explain(loaded.cupti, KP_REASON_PROFILER_AGAIN, rc));
}

/* Uses CUPTI from now on: in `ctx` if it has to be attached again. */
static void use_cupti(CUcontext ctx)
{
    enum { FIRST_NS = 500000000, TIMES = 4 };
    static uint64_t wait_ns = FIRST_NS / TIMES;
    if (!atomic_load(&leaves_at))
        wait_ns *= TIMES; /* attaching it again takes up to 0.5 s */
    if (loaded.cupti && is_out && ctx)
        come_back(ctx);
    atomic_store(&leaves_at, kp_clock_ns() + wait_ns);
}

void kp_context_uses_cupti(void)
{
    const struct kp_context *c = contexts;
    while (c && c->dead)
        c = c->next;
    use_cupti(c ? c->ctx : NULL);
}

bool kp_context_is_in_the_way(void)
{
    enum { AGAIN_NS = 1000000000 };
    uint64_t at = atomic_load(&leaves_at), now = kp_clock_ns();
    /* One thread tries; a later one tries again if it could not. */
    return at && now >= at && atomic_compare_exchange_strong(&leaves_at, &at, now + AGAIN_NS);
}

bool kp_context_rotations_rest(void)
{
    for (const struct kp_context *c = contexts; c; c = c->next)
        if (c->rotation && kp_rotation_goes_on(c->rotation, KP_ROTATE_FAR))
            return false;
    return true;
}

/* Returns true if CUPTI can leave a context and be used in it again: it does nothing there but count. */
static bool may_leave(const struct kp_context *c)
{
    bool loses_code = c->rotation && loaded.keeps_code; /* the code of modules loaded meanwhile */
    return !c->dead && !c->extras && !loses_code;
}

/* Ends what CUPTI has enabled. */
static bool rest_all(const struct kp_driver *d, bool (*rests)(CUcontext ctx))
{
    bool all = true;
    for (struct kp_context *c = contexts; all && c; c = c->next) {
        CUcontext before;
        all = d->cuCtxPushCurrent(c->ctx) == CUDA_SUCCESS;
        if (!all)
            break;
        all = rests(c->ctx); /* ending may wait for the context's work */
        if (all)
            kp_collector_rest(c->collector);
        d->cuCtxPopCurrent(&before);
    }
    return all;
}

void kp_context_leave_alone(const struct kp_driver *d, bool (*rests)(CUcontext ctx))
{
    kp_context_settle_ends();
    bool may = loaded.cupti && loaded.started && !atomic_load(&foreign_activity) && !kp_timeline_is_on();
    if (kp_durations_are_on() && !kp_durations_are_full())
        return; /* another time */
    kp_durations_end();
    for (const struct kp_context *c = contexts; may && c; c = c->next)
        may = may_leave(c);
    if (may && (!kp_worker_drain(0) || !rest_all(d, rests)))
        return;                           /* another time */
    atomic_store(&leaves_at, UINT64_MAX); /* it is not tried again before CUPTI is used */
    is_out = may && kp_library_leave(loaded.cupti, d->cuCtxGetDevice);
    kp_debug(KP_DEBUG_PLAN, "CUPTI %s", is_out ? "is out of the way of launches" : "stays in the way of launches");
    if (is_out)
        atomic_store(&leaves_at, 0);
}

void kp_context_forget(void)
{
    atomic_fetch_add(&generation, 1);
}

static void stop_timeline(void)
{
    kp_durations_stop();
    if (!kp_timeline_is_on())
        return;
    kp_timeline_stop();
    kp_session_warn(KP_FAILURE_IN_PART, kp_reason_text(KP_REASON_TIMELINE_TAKEN));
}

void kp_context_foreign_activity(void)
{
    atomic_store(&foreign_activity, true);
    stop_timeline();
}

void *kp_context_instead(const char *function, const void *of)
{
    const struct kp_cupti *c = loaded.cupti;
    bool attached = c && (loaded.started || kp_kernel_images_known());
    return attached && !kp_library_owns(c, of) ? kp_library_find(c, function) : NULL;
}

bool kp_context_is_beside(const void *function)
{
    const struct kp_cupti *c = loaded.cupti;
    return c && !kp_library_owns(c, function);
}

/* Detaches CUPTI with one of the program's contexts current: it leaves when a driver call returns. */
static bool leave_in_context(const struct kp_driver *d)
{
    const struct kp_context *c = contexts;
    CUcontext before;
    while (c && c->dead)
        c = c->next;
    bool pushed = c && d->cuCtxPushCurrent(c->ctx) == CUDA_SUCCESS;
    bool left = kp_library_leave(loaded.cupti, d->cuCtxGetDevice);
    if (pushed)
        d->cuCtxPopCurrent(&before);
    return left;
}

void kp_context_give_way(const struct kp_driver *d, bool (*rests)(CUcontext ctx))
{
    bool may = !kp_other_has_state();
    kp_durations_flush(false);
    kp_durations_end();
    if (kp_timeline_is_on()) {
        kp_timeline_flush(true);
        kp_timeline_pause(0); /* the kinds of records that it switched on */
        stop_timeline();
    }
    kp_context_settle_ends();
    if (!loaded.cupti || !loaded.started || is_out)
        return;
    kp_worker_drain(KP_FOREVER);
    for (const struct kp_context *c = contexts; c; c = c->next)
        may &= may_leave(c);
    bool rested = rest_all(d, rests);
    bool left = rested && may && leave_in_context(d);
    kp_debug(KP_DEBUG_PLAN, "CUPTI is left to the program: counters rest %d, it may be ended %d, is ended %d", rested,
             may, left);
    if (!left)
        return;
    is_out = true;
    atomic_store(&leaves_at, 0);
}

void kp_context_finalized(void)
{
    kp_library_was_left();
    is_out = true;
    atomic_store(&leaves_at, 0);
}

static int open_cupti(const char *dir, struct kp_cupti **out, char **why)
{
    char runtime[1024] = "", cublas[1024] = "";
    const char *near[] = {NULL, NULL, NULL};
    size_t n = 0;
    if (kp_elf_directory("libcudart.so", runtime, sizeof(runtime)))
        near[n++] = runtime;
    if (kp_elf_directory("libcublas.so", cublas, sizeof(cublas)))
        near[n++] = cublas;
    return kp_library_open(kp_symbols_dl(), dir, near, out, why);
}

void kp_context_open_early(const char *cupti_dir)
{
    struct early *e = atomic_load(&loaded.early);
    char *why = NULL;
    if (e && !strcmp(e->dir, cupti_dir)) {
        kp_ahead_open(e->cupti);
        return;
    }
    e = calloc(1, sizeof(*e));
    if (e && (e->dir = kp_strdup(cupti_dir)) && !open_cupti(cupti_dir, &e->cupti, &why)) {
        kp_ahead_open(e->cupti);
        e->before = atomic_exchange(&loaded.early, e);
    } else if (e) { /* it is opened again, which reports why if it fails */
        free(e->dir);
        free(e);
    }
    free(why);
}

static void load_cupti(const char *dir)
{
    if (loaded.tried)
        return;
    loaded.tried = true;
    const struct early *e = atomic_load(&loaded.early);
    loaded.cupti = e && !strcmp(e->dir, dir) ? e->cupti : NULL;
    char *why = NULL;
    if (!loaded.cupti && open_cupti(dir, &loaded.cupti, &why)) {
        loaded.why_not = kp_why_of(KP_REASON_CUPTI_UNAVAILABLE, why);
        kp_outcome_failed(KP_FAILURE_CUPTI);
    } else {
        kp_exit_first();
    }
}

/* Number of threads that need CUPTI's libraries now, or wait for them. */
static atomic_int planning;

bool kp_context_is_planning(void)
{
    return atomic_load(&planning) > 0;
}

/* Makes CUPTI, if there is one, ready for all calls except the profiler's. */
static void complete_cupti(const struct kp_context_setup *setup)
{
    load_cupti(setup->options->cupti_dir);
    if (!loaded.cupti || loaded.complete)
        return;
    loaded.complete = true;
    kp_ahead_wait(true);
    kp_library_warm(loaded.cupti, KP_LIBRARY_COUNTS);
    kp_library_complete(loaded.cupti);
}

/* Makes it ready for all calls. */
static void start_cupti(const struct kp_context_setup *setup)
{
    complete_cupti(setup);
    if (!loaded.cupti || loaded.started)
        return;
    loaded.started = true;
    CUcontext ctx = NULL;
    bool ended = atomic_exchange(&is_out, false) && setup->driver->cuCtxGetCurrent(&ctx) == CUDA_SUCCESS && ctx;
    int rc = ended ? kp_library_come_back(loaded.cupti, ctx) : kp_library_start(loaded.cupti);
    if (rc) {
        loaded.why_not = kp_library_explain(loaded.cupti, KP_REASON_PROFILER_START, rc);
        loaded.cupti = NULL; /* not freed: images may be kept by it */
        kp_outcome_failed(KP_FAILURE_CUPTI);
    }
    kp_exit_first();
}

static void take_many(void *unused)
{
    (void)unused;
    kp_session_timeline();
}

/* Makes the worker store waiting records. If it cannot, the next call does. */
static void on_many(void)
{
    kp_worker_submit(take_many, NULL);
}

void kp_context_begin_timeline(const struct kp_context_setup *setup)
{
    if (!setup->options->timeline)
        return;
    if (atomic_load(&foreign_activity) || kp_other_holds()) {
        kp_session_warn(KP_FAILURE_IN_PART, kp_reason_text(KP_REASON_TIMELINE_TAKEN));
        return;
    }
    complete_cupti(setup);
    /* KP_VENDOR: if the profiler is CUPTI's first use, cuGreenCtxCreate returns CUDA_ERROR_NOT_SUPPORTED (CUPTI 13.0,
     * H200). Without a timeline, watching module images comes first. */
    int rc = loaded.cupti ? kp_timeline_begin(loaded.cupti, on_many) : 0;
    struct kp_why why = {KP_REASON_NONE, NULL};
    if (rc)
        why = kp_library_explain(loaded.cupti, KP_REASON_TIMELINE_UNRECORDED, rc);
    start_cupti(setup);
    if (loaded.cupti)
        kp_exit_first();
    if (why.reason || !loaded.cupti)
        kp_session_warn(KP_FAILURE_IN_PART, kp_why_text(why.reason ? &why : &loaded.why_not));
    kp_why_free(&why);
}

void kp_context_begin_durations(const struct kp_context_setup *setup)
{
    if (!kp_context_may_probe() || kp_other_holds() || setup->mode->aside)
        return;
    kp_context_uses_cupti();
    for (const struct kp_context *c = contexts; c; c = c->next)
        if (c->collector && !c->dead)
            kp_collector_unwatch(c->collector);
    int rc = kp_durations_begin(loaded.cupti, kp_timeline_is_on(), kp_passing_outdate);
    kp_debug(KP_DEBUG_PLAN, "kernels that pass are timed by records: %d", rc);
    kp_exit_first();
}

/* Returns true if launch metrics are wanted that only the code shows. */
static bool wants_code(const char *metrics)
{
    static const char *const told[] = {"launch__barrier_count", "launch__function_pcs", "launch__uses_cdp"};
    const char *item;
    size_t len;
    while (kp_word_next(&metrics, &item, &len))
        for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
            if (strlen(told[i]) == len && !strncmp(item, told[i], len))
                return true;
    return false;
}

bool kp_context_sees_loads(void)
{
    return kp_kernel_images_known();
}

/* Returns true if the image must be kept because its code must run only once. Called for each that is loaded; NULL if
 * CUPTI has none. */
static bool note_image(const void *image, size_t size)
{
    kp_variables_note(image, size);
    return image && kp_cubin_once(image, size) != 0;
}

static void keep_images(const struct kp_context_setup *setup, size_t most)
{
    load_cupti(setup->options->cupti_dir);
    if (!loaded.cupti || kp_images_keep(loaded.cupti, most, note_image))
        return;
    kp_exit_first();
    loaded.keeps_code = most;
    kp_kernel_images(kp_kernels_new(kp_images_at));
}

void kp_context_prepare(const struct kp_context_setup *setup)
{
    if ((kp_providers_wanted(setup->sections, setup->n_sections, setup->options->metrics, KP_ANY_CC, 0) &
         (KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS)) ||
        wants_code(setup->options->metrics))
        keep_images(setup, most_cubins);
}

void kp_context_prepare_images(const struct kp_context_setup *setup)
{
    if (!kp_kernel_images_known())
        keep_images(setup, 0);
}

struct kp_codes *kp_context_codes(void)
{
    return loaded.codes;
}

static void tell_plan(const struct kp_context *c, size_t n_sections, const char *metrics, const struct kp_plan *p,
                      const char *when)
{
    kp_debug(KP_DEBUG_PLAN, "%zu sections and metrics '%s' of %s: %zu metrics, %zu passes%s", n_sections, metrics,
             c->chip, p->n_metrics, p->passes, when);
}

static int plan_for(const struct kp_context *c, const struct kp_section *const *sections, size_t n_sections,
                    const char *metrics, unsigned how, struct kp_plan **out, char **err)
{
    atomic_fetch_add(&planning, 1);
    kp_progress_begin("planning what to collect", true);
    struct kp_traps traps;
    kp_traps_hold(&traps);
    int rc = kp_plan_make(loaded.cupti, c->chip, c->availability, c->device.cc_major, c->device.cc_minor, sections,
                          n_sections, metrics, how, out, err);
    kp_traps_let(&traps);
    kp_progress_end();
    atomic_fetch_sub(&planning, 1);
    if (rc)
        kp_debug(KP_DEBUG_PLAN, "%zu sections and metrics '%s' of %s: %s", n_sections, metrics, c->chip, strerror(-rc));
    else
        tell_plan(c, n_sections, metrics, *out, "");
    return rc;
}

/* Warns of each item that the chip lacks, unless the command has warned of it. */
static void tell_unknown(const char *unknown, const char *told)
{
    for (const char *end; *unknown; unknown = end + 1) {
        const char *text = strchr(unknown, '\t') + 1;
        end = strchr(text, '\n');
        char *item = strndup(unknown, (size_t)(text - 1 - unknown)), *line = strndup(text, (size_t)(end - text));
        if (item && line && (!*item || !kp_list_has(told, item)))
            kp_session_warn(KP_FAILURE_METRIC, line);
        kp_outcome_failed(KP_FAILURE_METRIC);
        free(item);
        free(line);
    }
}

/* Returns the KP_PLAN bits of how a context's counters are collected. `shared` is what the runs of an application
 * replay agreed on; NULL for none. */
static unsigned way_of(const struct kp_context_setup *setup, const char *shared)
{
    const struct kp_options *o = setup->options;
    const enum kp_mode_lists lists = setup->mode->lists;
    unsigned how = lists == KP_LISTS_FIRST ? KP_PLAN_ONE_PASS : o->apply_rules ? KP_PLAN_RULES : 0;
    if (lists == KP_LISTS_TURNS)
        how |= KP_PLAN_ROTATE;
    if (o->only_columns)
        how |= KP_PLAN_COLUMNS;
    if (o->face == KP_FACE_NCU && lists == KP_LISTS_ALL)
        how |= KP_PLAN_DURATION;
    /* Launches are repeated one by one. Scheduling once more costs a tenth of a short program's start, so it is done
     * only if there is memory to watch. */
    if (kp_mode_repeats(setup->mode) && !kp_mode_has_ranges(setup->mode) && !setup->mode->varies && kp_hostmem_any())
        how |= KP_PLAN_WATCH;
    if (lists == KP_LISTS_RUN)
        how |= shared ? KP_PLAN_UNSHARED : KP_PLAN_RUNS;
    return how;
}

/* Returns a plan that the worker has made, NULL if it has none of this kind. */
static struct kp_plan *planned_ahead(const struct kp_context_setup *setup, const struct kp_context *c, unsigned how)
{
    if (kp_mode_reruns(setup->mode) || c->availability)
        return NULL;
    struct kp_plan *p = kp_ahead_take(c->chip, c->device.cc_major, c->device.cc_minor, how & ~KP_PLAN_WATCH);
    if (!p || !(how & KP_PLAN_WATCH) || !kp_plan_watch_more(loaded.cupti, c->chip, NULL, p))
        return p;
    kp_plan_free(p);
    return NULL;
}

static int make_plan(const struct kp_context_setup *setup, struct kp_context *c, char **bad_input)
{
    const struct kp_options *o = setup->options;
    char *err = NULL;
    char *shared = kp_mode_reruns(setup->mode) ? kp_runs_read(setup, c->chip) : NULL;
    unsigned how = way_of(setup, shared);
    int rc = 0;
    c->plan = planned_ahead(setup, c, how);
    if (c->plan)
        tell_plan(c, setup->n_sections, o->metrics, c->plan, ", made ahead");
    else
        rc = plan_for(c, setup->sections, setup->n_sections, o->metrics, how, &c->plan, &err);
    if (!rc && kp_mode_reruns(setup->mode))
        rc = kp_runs_share(setup, c, loaded.cupti, shared, &err);
    free(shared);
    if (!rc)
        tell_unknown(c->plan->unknown, o->metrics_told);
    if (rc == -EINVAL && bad_input)
        *bad_input = err;
    else if (rc)
        without_counters(c, kp_why_of(KP_REASON_NOT_PLANNED, err));
    return rc;
}

/* Reads the compute capability of the first device, which most programs use; 0 if the driver does not say. */
static void first_device(const struct kp_driver *d, struct kp_ahead *wish)
{
    const CUdevice first = 0;
    if (d->cuDeviceGetAttribute(&wish->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, first) != CUDA_SUCCESS ||
        d->cuDeviceGetAttribute(&wish->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, first) != CUDA_SUCCESS)
        wish->major = wish->minor = 0;
}

void kp_context_make_ready(const struct kp_context_setup *setup)
{
    struct kp_ahead wish = {.sections = setup->sections,
                            .n_sections = setup->n_sections,
                            .metrics = setup->options->metrics,
                            .how = way_of(setup, NULL) & ~KP_PLAN_WATCH}; /* memory to watch may come later */
    if (setup->options->only_timeline)
        return;
    load_cupti(setup->options->cupti_dir);
    if (!loaded.cupti || loaded.started)
        return;
    if (!kp_mode_reruns(setup->mode))
        first_device(setup->driver, &wish);
    kp_ahead_begin(loaded.cupti, &wish);
}

static bool is_curve(const char *metric)
{
    return strstr(metric, "__occupancy_per_") || strstr(metric, "__pct_occupancy_per_");
}

static void note_shown(struct kp_context *c, FILE *list, const char *metric)
{
    c->curves |= is_curve(metric);
    if (kp_device_is_metric(metric))
        fprintf(list, "%s,", metric);
}

/* Returns the comma-separated metrics shown of the device and the machine; malloc'ed. */
static char *machine_names(const struct kp_context_setup *setup, struct kp_context *c)
{
    char *list = NULL;
    size_t size;
    FILE *f = open_memstream(&list, &size);
    if (!f)
        return NULL;
    c->curves = setup->options->face == KP_FACE_NCU; /* whose raw page always has them */
    for (size_t i = 0; c->plan && i < c->plan->n_metrics; i++)
        note_shown(c, f, c->plan->metrics[i].name);
    for (size_t s = 0; !c->plan && s < setup->n_sections; s++)
        for (size_t i = 0; i < setup->sections[s]->n_rows; i++)
            note_shown(c, f, setup->sections[s]->rows[i].metric);
    const char *items = c->plan ? "" : setup->options->metrics, *item;
    size_t len;
    while (items && kp_word_next(&items, &item, &len)) {
        char *name = strndup(item, len);
        if (name)
            note_shown(c, f, name);
        free(name);
    }
    fclose(f);
    return list;
}

static void read_machine(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_machine machine = {kp_symbols_dl(), KP_SYSFS, KP_NVML, KP_GPUS, c->chip};
    char *names = machine_names(setup, c);
    if (names && *names)
        kp_device_metrics(&c->machine, setup->driver, &c->device, &machine, names);
    free(names);
    char *attributes = kp_device_attributes(setup->driver, &c->device, &machine);
    c->device_lines = kp_asprintf("%s%s", c->plan ? c->plan->breakdowns : "", kp_or_empty(attributes));
    free(attributes);
}

/* Returns true if launches that take turns must do without the providers other than the counters: they do not work
 * together with the activity records that a timeline needs. */
static bool is_beside_timeline(size_t extras)
{
    if (!extras || !kp_timeline_is_on())
        return false;
    kp_session_warn(KP_FAILURE_IN_PART, kp_reason_text(KP_REASON_TIMELINE_TURNS));
    return true;
}

/* Returns a copy of the name: CUPTI may be detached when it is read. */
static const char *keep_chip(const char *name)
{
    enum { MOST = 16 };
    static char kept[MOST][32];
    size_t i = 0;
    while (name && i < MOST - 1 && kept[i][0] && strcmp(kept[i], name) != 0)
        i++;
    if (name && !kept[i][0])
        snprintf(kept[i], sizeof(kept[i]), "%s", name);
    return name && !strcmp(kept[i], name) ? kept[i] : name;
}

/* Plans for all counters that the chip can have. Asking the device which of them it offers takes 0.1 s, so that is done
 * only when the profiler refuses. */
static void plan_context(const struct kp_context_setup *setup, struct kp_context *c, char **bad_input)
{
    const char *chip = NULL;
    c->mode = setup->mode;
    int rc = kp_library_chip(loaded.cupti, c->device.device, &chip);
    c->chip = keep_chip(chip);
    if (setup->mode->lists != KP_LISTS_FIRST)
        c->extras = kp_providers_wanted(setup->sections, setup->n_sections, setup->options->metrics, c->device.cc_major,
                                        c->device.cc_minor);
    if (setup->mode->lists == KP_LISTS_TURNS && is_beside_timeline(c->extras))
        c->extras = 0;
    /* All runs must plan alike, and in the first one, which counts nothing, no profiler refuses the plan. */
    if (!rc && kp_mode_reruns(setup->mode) && kp_library_availability(loaded.cupti, c->ctx, &c->availability))
        c->availability = NULL;
    if (!rc) {
        make_plan(setup, c, bad_input);
        return;
    }
    c->chip = "";
    without_counters(c, kp_library_explain(loaded.cupti, KP_REASON_CHIP_UNKNOWN, rc));
}

static void settle(void)
{
    kp_worker_drain(KP_FOREVER);
}

/* The work of a collector's thread. */
struct guarded {
    void *(*fn)(void *arg);
    void *arg;
};

static void *run_guarded(void *arg)
{
    struct guarded g = *(struct guarded *)arg;
    free(arg);
    KP_GUARDED; /* CUPTI's driver calls are not the program's */
    return g.fn(g.arg);
}

static bool start_guarded(void *(*fn)(void *arg), void *arg, pthread_t *thread)
{
    struct guarded *g = malloc(sizeof(*g));
    if (!g)
        return false;
    *g = (struct guarded){.fn = fn, .arg = arg};
    bool started = kp_worker_thread_start(run_guarded, g, thread);
    if (!started)
        free(g);
    return started;
}

/* Reports how many runs of the program the context needs. Other contexts may need more, in which this one counts
 * nothing. For ranges, only the counters are collected. */
static void join_series(const struct kp_context_setup *setup, struct kp_context *c)
{
    size_t beside = kp_mode_has_ranges(setup->mode) ? 0 : kp_collector_beside(c->collector);
    kp_outcome_runs(1 + c->plan->runs + beside);
    if (c->beside > beside)
        c->beside = 0;
}

/* ---- what a save by change looks through ---- */

/* A module whose variables are looked up. */
struct variables {
    const struct kp_driver *d;
    CUmodule module;
};

static bool own_variable(void *arg, const char *name)
{
    const struct variables *v = arg;
    CUdeviceptr at;
    size_t bytes;
    if (v->d->cuModuleGetGlobal(&at, &bytes, v->module, name) != CUDA_SUCCESS)
        return false;
    kp_owned_variable(at, bytes);
    return true;
}

/* Returns the function that the program launched, which may be the handle of a kernel; its module. */
static CUfunction as_function(const struct kp_driver *d, CUfunction f, CUmodule *module)
{
    if (d->cuFuncGetModule(module, f) == CUDA_SUCCESS)
        return f;
    bool kernel = d->cuKernelGetFunction(&f, (CUkernel)f) == CUDA_SUCCESS;
    return kernel && d->cuFuncGetModule(module, f) == CUDA_SUCCESS ? f : NULL;
}

/* Notes the variables of the module of a function, which is loaded. */
static bool own_variables(struct kp_context *c, CUfunction f)
{
    const struct kp_driver *d = c->driver;
    struct variables v = {.d = d};
    const char *mangled = NULL;
    f = as_function(d, f, &v.module);
    if (!f)
        return false;
    if (d->cuFuncGetName(&mangled, f) != CUDA_SUCCESS)
        mangled = NULL;
    if (mangled && !kp_variables_come_with(mangled))
        return true;
    if (kp_seen_has(&c->listed, c->ctx, v.module))
        return true;
    return kp_variables_list(mangled, own_variable, &v) && kp_seen_add(&c->listed, c->ctx, v.module) != -ENOMEM;
}

static bool own_launched(void *arg, CUfunction f)
{
    return own_variables(arg, f);
}

/* Modules without a launched kernel are left out. At the first launch of one, the window copies its variables or
 * closes. */
static bool list_owned(void *arg, struct kp_part **parts, size_t *n, enum kp_reason *why)
{
    struct kp_context *c = arg;
    if (!kp_context_sees_loads() || c->unlisted || !kp_launched_each(c->ctx, own_launched, c)) {
        *why = KP_REASON_OWNED_VARIABLES;
        return false;
    }
    return kp_owned_list(c->driver, c->device_ordinal, parts, n, why);
}

void kp_context_give(const struct kp_driver *d, uint64_t bytes, bool (*rests)(CUcontext ctx))
{
    kp_context_settle_ends();
    for (struct kp_context *c = contexts; c; c = c->next) {
        CUcontext before;
        bool may_rest = rests && c->taken.counting;
        bool gives = kp_collector_held(c->collector) || may_rest;
        if (c->dead || !gives || d->cuCtxPushCurrent(c->ctx) != CUDA_SUCCESS)
            continue;
        if (may_rest && rests(c->ctx))
            kp_collector_rest(c->collector);
        kp_collector_give(c->collector, bytes);
        d->cuCtxPopCurrent(&before);
    }
}

/* Returns true if `other` has the counters of the device of `c`. */
static bool counts_instead(const struct kp_context *other, const struct kp_context *c)
{
    return other != c && !other->dead && other->taken.enabled && other->device_ordinal == c->device_ordinal;
}

/* Disables the profiler of a context. Returns why it keeps the counters, if there is a reason. */
static enum kp_reason take_counters(const struct kp_driver *d, struct kp_context *from,
                                    bool (*rests)(struct kp_context *other))
{
    CUcontext before;
    if (!rests)
        return KP_REASON_KEPT_CAPTURE;
    if (d->cuCtxPushCurrent(from->ctx) != CUDA_SUCCESS)
        return KP_REASON_KEPT_REFUSED;
    bool may = rests(from);
    if (may)
        kp_collector_rest(from->collector);
    d->cuCtxPopCurrent(&before);
    return !may ? KP_REASON_KEPT_BUSY : from->taken.enabled ? KP_REASON_KEPT_COUNTING : KP_REASON_NONE;
}

struct kp_context *kp_context_beside(const struct kp_context *c, const struct kp_context *before)
{
    kp_context_settle_ends();
    struct kp_context *other = before ? before->next : contexts;
    while (other && (other == c || other->dead || other->device_ordinal != c->device_ordinal))
        other = other->next;
    return other;
}

void kp_context_claim(const struct kp_driver *d, const struct kp_context *c, bool (*rests)(struct kp_context *other))
{
    kp_context_settle_ends();
    for (struct kp_context *other = contexts; other; other = other->next)
        if (counts_instead(other, c))
            other->keeps = take_counters(d, other, rests);
}

/* Returns the program's other context that has the counters of the device because they could not be taken from it. */
static const struct kp_context *holder_of(const struct kp_context *c)
{
    const struct kp_context *other = contexts;
    while (other && !counts_instead(other, c))
        other = other->next;
    return other;
}

static char *tell_holder(void *arg)
{
    const struct kp_context *other = holder_of(arg);
    char *text = NULL;
    if (other && other->keeps &&
        asprintf(&text, "context %u of this process has them, and keeps them: %s", other->id,
                 kp_reason_text(other->keeps)) < 0)
        text = NULL;
    return text;
}

/* What the collector is asked for in addition to the plan. */
static struct kp_providers_setup wishes_of(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_options *o = setup->options;
    return (struct kp_providers_setup){
        .ordinal = c->device.device,
        .cc_major = c->device.cc_major,
        .cc_minor = c->device.cc_minor,
        .kinds = loaded.codes ? c->extras : 0,
        .chooses = setup->mode->lists == KP_LISTS_TURNS,
        .holder = tell_holder,
        .holder_arg = c,
        .codes = loaded.codes,
        .pcsamp_interval = kp_providers_pcsamp_interval(o->warp_sampling_interval),
        .pcsamp_buffer = o->warp_sampling_buffer_size,
        .sections = setup->sections,
        .n_sections = setup->n_sections,
        .metrics = c->plan->listed,
        .pm_interval = o->pm_sampling_interval,
        .pm_buffer = o->pm_sampling_buffer_size,
        .pm_most_passes = o->pm_sampling_max_passes,
    };
}

static void open_collector(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_options *o = setup->options;
    if (c->extras && !loaded.codes) {
        loaded.codes = kp_codes_new(kp_images_find, o->import_source || kp_choices_has(&o->page, KP_PAGE_SOURCE) ||
                                                        kp_derive_source_reads_texts(c->plan->listed));
        kp_session_codes(loaded.codes);
    }
    const struct kp_providers_setup extras = wishes_of(setup, c);
    struct kp_collector_setup s = {
        .driver = setup->driver,
        .cupti = loaded.cupti,
        .device = &c->device,
        .ctx = c->ctx,
        .taken = &c->taken,
        .chip = c->chip,
        .availability = c->availability,
        .plan = c->plan,
        .one_pass = kp_mode_repeats(setup->mode) ? c->one_pass : c->plan,
        .unwatched = kp_timeline_is_on() || kp_durations_are_on() ||
                     setup->mode->varies, /* what was watched does not apply to a variant */
        .flush = o->cache_control == KP_CACHES_FLUSHED,
        .runs = kp_mode_reruns(setup->mode),
        .beside = c->beside,
        .window = o->window,
        .memory = o->window_memory,
        .save_time = o->save_time,
        .save = o->save,
        .owned = list_owned,
        .owned_arg = c,
        .settle = settle,
        .start = start_guarded,
        .join = kp_worker_thread_join,
        .progress = kp_progress_step,
        .providers = &extras,
    };
    int rc = kp_collector_open(&s, &c->collector);
    if (rc)
        without_counters(c, kp_library_explain(loaded.cupti, KP_REASON_NOT_PREPARED, rc));
    else if (kp_mode_reruns(setup->mode))
        join_series(setup, c);
}

/* Ends the context's rotation and collector, plans, and opens another. */
static void make_anew(const struct kp_context_setup *setup, struct kp_context *c)
{
    kp_rotation_end(c->rotation); /* asks the collector */
    c->rotation = NULL;
    kp_collector_close(c->collector, true);
    c->collector = NULL;
    kp_plan_free(c->plan);
    c->plan = NULL;
    kp_plan_free(c->one_pass);
    kp_plan_free(c->turns);
    c->one_pass = c->turns = NULL;
    c->no_one_pass = c->no_turns = false;
    if (!make_plan(setup, c, NULL))
        open_collector(setup, c);
}

void kp_context_plan_again(const struct kp_context_setup *setup, struct kp_context *c)
{
    if (c->availability || !c->plan || c->no_counters.reason || holder_of(c))
        return;
    kp_taken_begin(&c->taken, true);
    int rc = kp_library_availability(loaded.cupti, c->ctx, &c->availability);
    kp_taken_end(&c->taken);
    if (rc) {
        without_counters(c, kp_library_explain(loaded.cupti, KP_REASON_NO_AVAILABILITY, rc));
        return;
    }
    make_anew(setup, c);
}

void kp_context_change_mode(const struct kp_context_setup *setup, const struct kp_mode *mode)
{
    ((struct kp_context_setup *)setup)->mode = mode; /* the process's own, which nothing else writes */
    kp_passing_outdate();
}

void kp_context_follow_mode(const struct kp_context_setup *setup, struct kp_context *c)
{
    c->mode = setup->mode;
    struct kp_rotation_key *served = c->rotation ? kp_rotation_take_served(c->rotation) : NULL;
    bool may = c->collector && c->plan && !c->no_counters.reason;
    if (may)
        make_anew(setup, c);
    kp_rotation_give_served(may ? kp_context_rotation(setup, c) : NULL, served);
}

static bool adds_up(void *of, size_t i)
{
    return kp_collector_beside_at(of, i).adds_up;
}

static bool is_first(void *of, size_t i)
{
    return kp_collector_beside_at(of, i).first;
}

static int set_missing(void *of, size_t i, struct kp_why why, struct kp_result *r)
{
    return kp_collector_beside_missing(of, i, why, r);
}

static int derive_source(void *of, struct kp_result *r)
{
    struct kp_lookup code = kp_codes_lookup(loaded.codes);
    (void)of;
    kp_session_prepare_codes();
    return kp_derive_source(r, loaded.codes ? &code : NULL, kp_disassembly_category);
}

/* Returns what launches of a rotation collect in addition to the counters. */
static struct kp_rotation_extras extras_of(const struct kp_context *c)
{
    struct kp_rotation_extras extras = {.n = kp_collector_beside(c->collector),
                                        .adds_up = adds_up,
                                        .missing = set_missing,
                                        .derive = derive_source,
                                        .of = c->collector};
    if (is_beside_timeline(extras.n))
        extras.n = 0;
    return extras;
}

struct kp_rotation *kp_context_rotation(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_options *o = setup->options;
    if (c->rotation || !c->collector || c->no_counters.reason ||
        !(kp_plan_counts(c->plan) || kp_collector_beside(c->collector)))
        return c->rotation;
    struct kp_rotation_extras extras = extras_of(c);
    c->rotation = kp_mode_recurs(setup->mode) ? kp_rotation_new(c->plan, &extras, o->rotate_launches)
                                              : kp_rotation_new_beside(o->rotate_launches);
    if (c->rotation)
        kp_rotation_of_context(c->rotation, c->id);
    return c->rotation;
}

/* Plans the rotation alongside a replay. Returns true if it has lists. */
static bool plan_turns(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_options *o = setup->options;
    char *err = NULL;
    int rc = plan_for(c, setup->sections, setup->n_sections, o->metrics,
                      KP_PLAN_ROTATE | KP_PLAN_BESIDE | (o->apply_rules ? KP_PLAN_RULES : 0), &c->turns, &err);
    free(err);
    kp_worker_drain(KP_FOREVER); /* the worker may be collecting */
    struct kp_rotation_extras extras = extras_of(c);
    return !rc && c->turns->n_groups + extras.n && !kp_rotation_set_plan(c->rotation, c->turns, &extras);
}

bool kp_context_turns(const struct kp_context_setup *setup, struct kp_context *c)
{
    if (!c->rotation || c->no_turns)
        return false;
    if (!kp_rotation_has_plan(c->rotation))
        c->no_turns = !plan_turns(setup, c);
    if (!c->no_turns)
        kp_collector_one_pass(c->collector, c->turns);
    return !c->no_turns;
}

bool kp_context_samples(const struct kp_context *c)
{
    bool any = false;
    for (size_t i = c->collector ? kp_collector_beside(c->collector) : 0; i && !any; i--)
        any = is_first(c->collector, i - 1);
    return any && !kp_timeline_is_on();
}

void kp_context_each_rotation(void (*fn)(struct kp_rotation *r, void *arg), void *arg)
{
    for (const struct kp_context *c = contexts; c; c = c->next)
        if (c->rotation)
            fn(c->rotation, arg);
}

void kp_context_pass_on(void)
{
    for (struct kp_context *c = contexts; c; c = c->next)
        if (c->rotation)
            kp_rotation_pass_on(c->rotation);
}

bool kp_context_one_pass(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_section *quick = kp_section_quick();
    char *err = NULL;
    if (!kp_mode_repeats(setup->mode))
        return kp_plan_counts(c->plan) || c->beside;
    if (!c->one_pass && !c->no_one_pass) {
        c->no_one_pass = plan_for(c, &quick, 1, "", KP_PLAN_ONE_PASS | KP_PLAN_BESIDE, &c->one_pass, &err) != 0;
        free(err);
        kp_worker_drain(KP_FOREVER); /* the worker may be evaluating */
    }
    if (c->one_pass)
        kp_collector_one_pass(c->collector, c->one_pass);
    return c->one_pass && kp_plan_counts(c->one_pass);
}

bool kp_context_several(const struct kp_context_setup *setup)
{
    const struct kp_driver *d = setup->driver;
    int devices = 0, active;
    unsigned flags;
    if (contexts && contexts->next)
        return true;
    if (d->cuDeviceGetCount(&devices) != CUDA_SUCCESS)
        return true;
    for (CUdevice i = 0; i < devices; i++)
        if ((!contexts || contexts->device_ordinal != i) &&
            (d->cuDevicePrimaryCtxGetState(i, &flags, &active) != CUDA_SUCCESS || active))
            return true;
    return false;
}

static void free_functions(struct kp_known_function **list)
{
    while (*list) {
        struct kp_known_function *f = *list;
        *list = f->next;
        kp_function_free(&f->facts);
        free(f->demangled);
        free(f->base);
        free(f->configs);
        free(f);
    }
}

/* Forgets all functions. Those used by launches of the open window stay until none is open. */
static void forget_functions(struct kp_context *c)
{
    if (!atomic_load(&kp_gate_state.windows))
        free_functions(&c->forgotten);
    for (int b = 0; b < KP_FUNCTION_BUCKETS; b++)
        for (struct kp_known_function *f; (f = c->functions[b]);) {
            c->functions[b] = f->next;
            f->next = c->forgotten;
            c->forgotten = f;
        }
}

static void free_context(struct kp_context *c, bool alive)
{
    if (c->rotation && c->mode->bounded)
        kp_rotation_count_ended(c->rotation);
    kp_rotation_end(c->rotation); /* asks the collector */
    kp_collector_close(c->collector, alive);
    kp_taken_close(&c->taken);
    kp_plan_free(c->plan);
    kp_plan_free(c->one_pass);
    kp_plan_free(c->turns);
    kp_result_free(&c->machine);
    free(c->device_lines);
    free(c->modules);
    free(c->listed.list);
    forget_functions(c);
    free_functions(&c->forgotten);
    free(c->availability);
    kp_why_free(&c->no_counters);
    free(c);
}

static bool read_context(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_driver *d = setup->driver;
    CUdevice device = 0;
    unsigned long long id = 0;
    if (d->cuCtxGetDevice(&device) != CUDA_SUCCESS || kp_device_read(d, device, &c->device) != CUDA_SUCCESS ||
        kp_read_context_facts(d, c->ctx, &c->device, &c->facts) != CUDA_SUCCESS)
        return false;
    c->device_ordinal = device;
    if (loaded.cupti && !kp_library_context_id(loaded.cupti, c->ctx, &c->id))
        return true;
    if (d->cuCtxGetId(c->ctx, &id) == CUDA_SUCCESS)
        c->id = (uint32_t)id;
    return true;
}

/* Ends of contexts that have not been handled yet. */
enum { MOST_ENDS = 16 };

static struct {
    bool (*match[MOST_ENDS])(const struct kp_context *c, uint64_t arg);
    uint64_t args[MOST_ENDS];
    size_t n;
    atomic_bool any;
} unseen;

void kp_context_ends_unseen(bool (*match)(const struct kp_context *c, uint64_t arg), uint64_t arg)
{
    kp_lock_take(gone_lock, KP_FOREVER);
    size_t at = unseen.n < MOST_ENDS ? unseen.n++ : 0;
    unseen.match[at] = unseen.n < MOST_ENDS ? match : NULL; /* too many to distinguish: all */
    unseen.args[at] = arg;
    atomic_store(&unseen.any, true);
    kp_lock_give(gone_lock);
}

void kp_context_settle_ends(void)
{
    if (!atomic_load(&unseen.any))
        return;
    kp_lock_take(gone_lock, KP_FOREVER);
    for (struct kp_context *c = contexts; c; c = c->next)
        for (size_t i = 0; i < unseen.n; i++)
            if (!unseen.match[i] || unseen.match[i](c, unseen.args[i]))
                c->ended = c->dead = true;
    unseen.n = 0;
    atomic_store(&unseen.any, false);
    kp_lock_give(gone_lock);
}

static struct kp_context *find_context(CUcontext ctx)
{
    struct kp_context *c = contexts;
    kp_context_settle_ends();
    while (c && (c->ended || c->ctx != ctx))
        c = c->next;
    return c;
}

struct kp_context *kp_context_of(uint32_t id)
{
    struct kp_context *c = contexts;
    while (c && (c->ended || c->id != id))
        c = c->next;
    return c;
}

bool kp_context_is_known(CUcontext ctx)
{
    return find_context(ctx);
}

/* Reads the context and plans for it. Returns false if the driver does not answer. */
static bool prepare_context(const struct kp_context_setup *setup, struct kp_context *c, char **bad_input)
{
    start_cupti(setup);
    kp_safe_point();
    if (!read_context(setup, c))
        return false;
    kp_safe_point();
    if (!loaded.cupti) {
        without_counters(c, kp_why_copy(loaded.why_not));
        return true;
    }
    plan_context(setup, c, bad_input);
    kp_safe_point();
    kp_exit_first(); /* runs before older exit handlers, which tear down libraries needed for planning */
    return true;
}

/* Notes how much device memory preparing a context takes. */
static void begin_taking(const struct kp_driver *d, struct kp_context *c)
{
    CUdevice device;
    if (d->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return;
    kp_taken_open(&c->taken, d, device);
    kp_taken_begin(&c->taken, true);
}

struct kp_context *kp_context_get(const struct kp_context_setup *setup, CUcontext ctx, char **bad_input)
{
    *bad_input = NULL;
    struct kp_context *c = find_context(ctx);
    if (c)
        return c;
    c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    kp_work_takes_long();
    c->ctx = ctx;
    c->chip = "";
    c->driver = setup->driver;
    c->generation = atomic_load(&generation);
    c->gone_seen = atomic_load(&gone.n);
    if (is_out)
        use_cupti(ctx);
    begin_taking(setup->driver, c);
    atomic_fetch_add(&planning, 1);
    bool prepared = prepare_context(setup, c, bad_input);
    atomic_fetch_sub(&planning, 1);
    if (prepared && c->plan)
        open_collector(setup, c);
    kp_taken_end(&c->taken);
    if (!prepared) {
        free_context(c, true);
        return NULL;
    }
    kp_safe_point();
    if (loaded.cupti)
        kp_exit_first();
    read_machine(setup, c);
    c->next = contexts;
    contexts = c;
    return c;
}

static struct kp_known_function **bucket_of(struct kp_context *c, CUfunction f)
{
    uintptr_t h = (uintptr_t)f >> 4;
    return &c->functions[(h ^ (h >> 8)) % KP_FUNCTION_BUCKETS];
}

static void drop_module(struct kp_context *c, const void *module)
{
    for (size_t i = 0; i < c->n_modules; i++)
        if (c->modules[i] == module)
            c->modules[i--] = c->modules[--c->n_modules];
}

static void drop_gone_modules(struct kp_context *c)
{
    if (c->gone_seen == atomic_load(&gone.n))
        return;
    kp_lock_take(gone_lock, KP_FOREVER);
    size_t n = atomic_load(&gone.n);
    if (n - c->gone_seen > MOST_GONE)
        c->n_modules = 0;
    else
        for (size_t i = c->gone_seen; i < n; i++)
            drop_module(c, gone.list[i % MOST_GONE]);
    c->gone_seen = n;
    kp_seen_empty(&c->listed);
    kp_lock_give(gone_lock);
}

/* Forgets functions when handles may have been reused, or their settings have changed. */
static void refresh(const struct kp_context_setup *setup, struct kp_context *c)
{
    unsigned now = atomic_load(&generation);
    drop_gone_modules(c);
    if (c->generation == now)
        return;
    forget_functions(c);
    kp_read_context_facts(setup->driver, c->ctx, &c->device, &c->facts);
    c->generation = now;
}

static struct kp_known_function *find_function(struct kp_context *c, CUfunction f)
{
    for (struct kp_known_function *k = *bucket_of(c, f); k; k = k->next)
        if (k->key == f)
            return k;
    return NULL;
}

static bool has_module(const struct kp_context *c, const void *module)
{
    for (size_t i = 0; i < c->n_modules; i++)
        if (c->modules[i] == module)
            return true;
    return false;
}

bool kp_context_module_known(const struct kp_context_setup *setup, struct kp_context *c, CUfunction f)
{
    refresh(setup, c);
    if (find_function(c, f))
        return true;
    const void *module = kp_launched_module(setup->driver, f);
    return has_module(c, module) || (module && kp_launched_has(c->ctx, module));
}

/* Libraries in which a function was looked up, by context. */
static struct kp_seen libraries;
static struct kp_lock *const libraries_lock = &kp_locks[KP_LOCK_LIBRARIES];

bool kp_context_first_of_library(const struct kp_driver *d, CUkernel kernel)
{
    CUcontext ctx = NULL;
    CUlibrary library = NULL;
    if (!d->cuKernelGetLibrary || d->cuCtxGetCurrent(&ctx) != CUDA_SUCCESS ||
        d->cuKernelGetLibrary(&library, kernel) != CUDA_SUCCESS)
        return true;
    kp_lock_take(libraries_lock, KP_FOREVER);
    bool first = kp_seen_add(&libraries, ctx, library) != -EEXIST;
    kp_lock_give(libraries_lock);
    return first;
}

void kp_context_unloaded(const void *handle)
{
    kp_lock_take(gone_lock, KP_FOREVER);
    size_t n = atomic_load(&gone.n);
    gone.list[n % MOST_GONE] = handle;
    atomic_store(&gone.n, n + 1);
    kp_lock_give(gone_lock);
    kp_rotation_forget();
    kp_lock_take(libraries_lock, KP_FOREVER);
    kp_seen_drop(&libraries, handle);
    kp_lock_give(libraries_lock);
}

static void add_module(struct kp_context *c, const void *module)
{
    if (!module || has_module(c, module))
        return;
    if (!KP_ROOM(c->modules, c->n_modules))
        return; /* it counts as unknown the next time */
    c->modules[c->n_modules++] = module;
}

struct kp_known_function *kp_context_function(const struct kp_context_setup *setup, struct kp_context *c, CUfunction f)
{
    refresh(setup, c);
    struct kp_known_function **bucket = bucket_of(c, f);
    struct kp_known_function *k = find_function(c, f);
    if (k)
        return k;
    k = calloc(1, sizeof(*k));
    if (!k)
        return NULL;
    k->key = f;
    if (kp_function_read(setup->driver, &c->device, f, &k->facts) != CUDA_SUCCESS) {
        free(k);
        return NULL;
    }
    /* Loads the module now: loaded lazily, it would bring new variables into the middle of a window. */
    setup->driver->cuFuncLoad(k->facts.handle);
    add_module(c, kp_launched_module(setup->driver, f));
    c->unlisted |= !own_variables(c, k->facts.handle);
    struct kp_kernels *kernels = kp_kernel_images_known();
    k->facts.code_known = kernels && kp_kernels_find(kernels, k->facts.mangled, &k->facts.code);
    k->once = kp_kernel_code_once(k->facts.mangled);
    k->demangled = kp_demangle(k->facts.mangled);
    k->base = kp_demangle_base(k->facts.mangled);
    if (!k->demangled || !k->base) {
        kp_function_free(&k->facts);
        free(k->demangled);
        free(k->base);
        free(k);
        return NULL;
    }
    k->next = *bucket;
    *bucket = k;
    return k;
}

const struct kp_known_config *kp_context_config(const struct kp_known_function *f, uint32_t threads,
                                                uint64_t dynamic_shared)
{
    for (size_t i = 0; i < f->n_configs; i++)
        if (f->configs[i].threads == threads && f->configs[i].dynamic_shared == dynamic_shared)
            return &f->configs[i];
    return NULL;
}

void kp_context_learn(struct kp_known_function *f, const struct kp_known_config *config)
{
    if (!KP_ROOM(f->configs, f->n_configs))
        return; /* retried the next time */
    f->configs[f->n_configs++] = *config;
}

void kp_context_forget_configs(struct kp_context *c)
{
    for (size_t i = 0; i < KP_FUNCTION_BUCKETS; i++)
        for (struct kp_known_function *f = c->functions[i]; f; f = f->next)
            f->n_configs = 0;
}

uint64_t kp_context_stream_id(const struct kp_context_setup *setup, const struct kp_context *c, CUstream stream,
                              bool ptsz)
{
    uint32_t id = 0;
    unsigned long long driver_id = 0;
    bool per_thread = stream == CU_STREAM_PER_THREAD || (ptsz && !stream);
    CUstream asked = stream == CU_STREAM_PER_THREAD || stream == CU_STREAM_LEGACY ? NULL : stream;
    if (loaded.cupti && !kp_library_stream_id(loaded.cupti, c->ctx, asked, per_thread, &id))
        return id;
    if (setup->driver->cuStreamGetId(stream, &driver_id) == CUDA_SUCCESS)
        return driver_id;
    return 0;
}

void kp_context_close(const struct kp_context_setup *setup, bool (*match)(const struct kp_context *c, uint64_t arg),
                      uint64_t arg, bool (*ends)(CUcontext ctx))
{
    const struct kp_driver *d = setup->driver;
    kp_context_settle_ends();
    for (struct kp_context **link = &contexts; *link;) {
        struct kp_context *c = *link;
        CUcontext popped;
        if (match && !match(c, arg)) {
            link = &c->next;
            continue;
        }
        *link = c->next;
        bool current = !c->dead && d->cuCtxPushCurrent(c->ctx) == CUDA_SUCCESS;
        free_context(c, current && (!c->collector || ends(c->ctx)));
        if (current)
            d->cuCtxPopCurrent(&popped);
    }
}

bool kp_context_may_probe(void)
{
    return loaded.cupti && kp_providers_probe_available(loaded.cupti) && !atomic_load(&foreign_activity);
}
