#include "collectors/run/collector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/debug.h"
#include "base/lock.h"
#include "collectors/facts/settle.h"
#include "collectors/providers/library.h"
#include "collectors/providers/observe.h"
#include "collectors/providers/saved.h"
#include "collectors/replay/footprint.h"

enum { ISSUE_OK, ISSUE_FAULTED };

struct kp_collector {
    struct kp_collector_setup setup;
    struct kp_flush *flush;
    struct kp_checkpoint *saved, *kept; /* memory before the window, and after the program's own execution */
    size_t copied;                      /* bytes of device memory that `saved` used */
    struct kp_shadow *shadow;           /* instead of both; made when first needed */
    bool by_change, kept_change;        /* it has the memory before the window, and after the program's execution */
    struct {
        bool known;
        size_t left; /* of the device's memory */
        long at_ms;
    } full; /* when memory last did not fit */
    struct kp_providers *providers;
    struct flight *counting; /* between count_begin and count_end */
};

/* One window in flight: the argument of the operations. */
struct flight {
    struct kp_collector *c;
    struct kp_window_job *job;
    struct kp_window_outcome *out;
    struct kp_issue_hooks hooks;
    enum kp_range_mode mode;
    CUresult refused;      /* the driver's code for a refused re-issue */
    CUresult flush, fault; /* likewise of the flush, and of the context, which is then broken */
    CUresult restore;      /* likewise of a restore by change */
    bool watched;          /* a pass continues what watched the program */
    unsigned rehearsed;
    size_t pass, all_passes;              /* begun so far, and of the whole window */
    bool main, cold;                      /* the current pass carries the window; it needs cold caches */
    unsigned timed;                       /* passes still to be timed: the first lasts longer */
    uint64_t launched, longest;           /* ns: when the current launch was issued; duration of the longest one */
    uint64_t asked, counts;               /* clock, ns: when counting in one pass was requested, and when it started */
    bool beside;                          /* that pass is not for the counters */
    struct kp_pages pages[KP_MOST_PAGES]; /* that the launch can reach */
    size_t n_pages;
};

static const enum kp_reason stage_reasons[] = {
    [KP_STAGE_NONE] = KP_REASON_NONE,           [KP_STAGE_RESTORE] = KP_REASON_NOT_RESTORED,
    [KP_STAGE_FLUSH] = KP_REASON_NOT_FLUSHED,   [KP_STAGE_REHEARSE] = KP_REASON_REHEARSAL_FAILED,
    [KP_STAGE_BEGIN] = KP_REASON_NOT_ENABLED,   [KP_STAGE_START] = KP_REASON_NOT_STARTED,
    [KP_STAGE_ISSUE] = KP_REASON_LAUNCH_FAILED, [KP_STAGE_STOP] = KP_REASON_NOT_STOPPED,
    [KP_STAGE_DECODE] = KP_REASON_NOT_READ,     [KP_STAGE_PASSES] = KP_REASON_PASSES_LEFT,
};

static struct kp_why explain_driver(const struct flight *f, enum kp_reason reason, CUresult rc)
{
    return kp_why_make(reason, "%s", kp_driver_error(f->c->setup.driver, rc));
}

/* ---- operations of the replay loop ---- */

/* Notes the driver's code for a context that must be idle. In an additional pass, any error counts as a fault at
 * once. */
static CUresult noted(struct flight *f, CUresult rc)
{
    if (!f->main)
        f->fault = rc;
    return rc;
}

static bool is_timed(const struct flight *f)
{
    return f->main && f->timed;
}

static enum kp_providers_wait wait_of(const struct flight *f)
{
    return is_timed(f) ? KP_WAIT_ALWAYS : KP_WAIT_IF_NEEDED;
}

/* Returns how caches become cold before a launch, or before a range, which can afford more. */
static enum kp_flush_how how_to_flush(const struct flight *f)
{
    return f->mode == KP_RANGE_USER ? KP_FLUSH_EMPTY : KP_FLUSH_FILL;
}

static void reaches(void *arg, const struct kp_pages *pages, size_t n)
{
    struct flight *f = arg;
    f->n_pages = n < KP_MOST_PAGES ? n : KP_MOST_PAGES;
    memcpy(f->pages, pages, f->n_pages * sizeof(*pages));
}

/* Makes caches cold for a launch. The flush also displaces translations, so the launch's are brought back. Those that
 * cannot be read only cost it time. */
static CUresult make_cold(struct flight *f, CUstream stream)
{
    size_t n = f->n_pages;
    f->n_pages = 0;
    CUresult rc = kp_flush_run(f->c->flush, stream, how_to_flush(f));
    if (rc == CUDA_SUCCESS)
        kp_flush_touch(f->c->flush, stream, f->pages, n);
    return rc;
}

static CUresult before_launch(void *arg, CUstream stream)
{
    struct flight *f = arg;
    bool failed = false;
    if (f->c->flush && f->cold)
        f->flush = make_cold(f, stream);
    if (f->flush != CUDA_SUCCESS)
        return f->flush;
    CUresult rc = noted(f, kp_providers_before(f->c->providers, stream, wait_of(f), &failed));
    if (is_timed(f))
        f->launched = kp_clock_ns();
    return rc == CUDA_SUCCESS && failed ? CUDA_ERROR_UNKNOWN : rc;
}

static CUresult after_launch(void *arg)
{
    struct flight *f = arg;
    bool failed = false;
    CUresult rc = noted(f, kp_providers_after(f->c->providers, wait_of(f), &failed));
    if (is_timed(f) && kp_clock_ns() - f->launched > f->longest)
        f->longest = kp_clock_ns() - f->launched;
    return rc == CUDA_SUCCESS && failed ? CUDA_ERROR_UNKNOWN : rc;
}

/* Returns how often to rehearse. In its first launch after PC sampling was enabled, a kernel waits longer for
 * instructions. It then has up to a tenth more samples than in Nsight Compute, most of them in no_instructions (H200,
 * Triton's kernels of 5 us). A probe comes between the watching of the program and the pass, so that the launches are
 * rehearsed once more. */
static unsigned rehearsals(const struct flight *f)
{
    return f->job->probe && f->watched ? 2 : 1;
}

/* Reports the current pass and the total, its restore included. */
static void tell_pass(struct flight *f)
{
    char text[96];
    if (f->rehearsed < rehearsals(f)) {
        kp_debug(KP_DEBUG_REPLAY, "rehearsal of a window of %zu launches", f->job->n_launches);
        return;
    }
    if (++f->pass > f->all_passes) /* one is repeated */
        f->all_passes = f->pass;
    snprintf(text, sizeof(text), "pass %zu of %zu of a window of %zu launches", f->pass, f->all_passes,
             f->job->n_launches);
    kp_debug(KP_DEBUG_REPLAY, "%s", text);
    if (f->c->setup.progress)
        f->c->setup.progress(text, false);
}

/* Reports what a save or a restore by change, which started at `start` (ns), has done. */
static void tell_change(const struct kp_collector *c, const char *what, uint64_t start)
{
    struct kp_shadow_work work = kp_shadow_last(c->shadow);
    kp_debug(KP_DEBUG_REPLAY, "%s: %zu of %zu blocks of memory differ, %.1f MB copied, %.1f ms", what, work.changed,
             work.blocks, (double)work.copied / 1e6, (double)(kp_clock_ns() - start) / 1e6);
}

/* Restores by change, to one of the two states. */
static int restore_change(struct flight *f, CUresult (*restore)(struct kp_shadow *))
{
    uint64_t start = kp_clock_ns();
    CUresult rc = restore(f->c->shadow);
    tell_change(f->c, "restore", start);
    if (f->restore == CUDA_SUCCESS)
        f->restore = rc;
    return rc == CUDA_SUCCESS ? 0 : -EIO; /* explained by f->restore */
}

/* Restores memory to one of the two states. Failures are retried, because nothing else gives the program its memory
 * back. */
static int restore(struct flight *f, CUresult (*by_change)(struct kp_shadow *), struct kp_checkpoint *saved)
{
    enum { TRIES = 2 };
    int rc = -EIO;
    for (int i = 0; i < TRIES && rc; i++) {
        f->restore = CUDA_SUCCESS;
        rc = f->c->by_change ? restore_change(f, by_change) : kp_saved_restore(saved);
    }
    return rc;
}

static int op_restore(void *arg)
{
    struct flight *f = arg;
    tell_pass(f);
    return restore(f, kp_shadow_restore, f->c->saved);
}

/* Rehearses. The first time is for the probe, if any, which uses another part of CUPTI than watching. The second, if
 * any, is watched again, see rehearsals(). The first is, too, if the program's own execution could not be watched. */
static int op_rehearse(void *arg)
{
    struct flight *f = arg;
    struct kp_window_job *job = f->job;
    const struct kp_cupti *cupti = f->c->setup.cupti;
    bool first = !f->rehearsed++, probe = job->probe && first;
    if (probe)
        kp_providers_unwatch(f->c->providers);
    else if (!first || f->c->setup.unwatched)
        kp_providers_watch(f->c->providers);
    /* A failed probe is no reason to give up the counters: its facts are shown as missing. */
    bool probing = probe && !kp_providers_probe_begin(cupti);
    int rc = job->rehearse(job->arg);
    if (probing)
        kp_providers_probe_end(cupti, job->executed, job->n_launches, &job->n_executed);
    if (rc && rc != KP_ISSUE_REFUSED && rc != KP_ISSUE_TOO_LONG && rc != KP_ISSUE_CUT && rc != KP_ISSUE_UNENDED)
        f->fault = (CUresult)rc;
    return rc;
}

/* Makes the flush allocate its memory now, outside the passes, and find out if it needs a kernel. */
static int prepare_flush(struct flight *f)
{
    if (f->c->flush)
        f->flush = kp_flush_run(f->c->flush, CU_STREAM_LEGACY, how_to_flush(f));
    if (f->flush == CUDA_SUCCESS)
        f->flush = f->c->setup.driver->cuCtxSynchronize();
    return f->flush == CUDA_SUCCESS ? 0 : -EIO; /* explained by f->flush */
}

static int op_begin(void *arg, size_t group)
{
    struct flight *f = arg;
    struct kp_collector *c = f->c;
    f->main = kp_providers_carries(c->providers, group);
    f->cold = kp_providers_flushes(c->providers, group);
    int rc = f->main ? prepare_flush(f) : 0;
    kp_providers_longest(c->providers, f->longest);
    return rc ? rc : kp_providers_begin(c->providers, group, c->flush && kp_flush_is_kernel(c->flush));
}

static int op_start(void *arg)
{
    struct flight *f = arg;
    if (is_timed(f))
        f->longest = 0;
    return kp_providers_start(f->c->providers);
}

static int op_stop(void *arg, bool *last)
{
    struct flight *f = arg;
    if (is_timed(f))
        f->timed--;
    return kp_providers_stop(f->c->providers, last);
}

/* Judges an issue that returned `rc`: a fault breaks the context, a refusal does not. */
static int judge_issue(struct flight *f, CUresult rc)
{
    CUresult end = rc;
    if (rc != CUDA_ERROR_NOT_READY)
        end = f->job->settle ? f->job->settle(f->job->arg) : kp_settle(f->c->setup.driver, CU_STREAM_LEGACY);
    if (f->fault == CUDA_SUCCESS)
        f->fault = end;
    if (f->fault == CUDA_ERROR_NOT_READY)
        return KP_ISSUE_UNENDED;
    if (f->fault != CUDA_SUCCESS)
        return ISSUE_FAULTED;
    if (rc == (CUresult)KP_ISSUE_CUT)
        return KP_ISSUE_CUT;
    if (f->refused == CUDA_SUCCESS)
        f->refused = rc;
    return rc == CUDA_SUCCESS ? ISSUE_OK : KP_ISSUE_REFUSED;
}

/* Gives up an additional pass: a refusal only costs the values of that pass. */
static int give_up_pass(struct flight *f)
{
    struct kp_why why = f->flush != CUDA_SUCCESS ? explain_driver(f, stage_reasons[KP_STAGE_FLUSH], f->flush)
                                                 : explain_driver(f, KP_REASON_REFUSED_AGAIN, f->refused);
    kp_providers_refused(f->c->providers, why);
    kp_why_free(&why);
    f->flush = f->refused = CUDA_SUCCESS;
    return KP_ISSUE_GIVEN_UP;
}

static int op_issue(void *arg)
{
    struct flight *f = arg;
    int code = judge_issue(f, f->job->issue(f->job->arg, &f->hooks));
    return !f->main && code == KP_ISSUE_REFUSED ? give_up_pass(f) : code;
}

/* The execution that leaves the program's memory: if it is refused half-way, it is undone and retried. */
static int op_plain(void *arg)
{
    struct flight *f = arg;
    int code = judge_issue(f, f->job->issue(f->job->arg, NULL));
    if (code != KP_ISSUE_REFUSED || restore(f, kp_shadow_restore, f->c->saved))
        return code;
    return judge_issue(f, f->job->issue(f->job->arg, NULL));
}

static int op_put_back(void *arg)
{
    struct flight *f = arg;
    return restore(f, kp_shadow_put_back, f->c->kept);
}

static int op_decode(void *arg, size_t group)
{
    (void)group;
    return kp_providers_decode(((struct flight *)arg)->c->providers);
}

static const struct kp_replay_ops operations = {
    .restore = op_restore,
    .rehearse = op_rehearse,
    .begin = op_begin,
    .start = op_start,
    .issue = op_issue,
    .stop = op_stop,
    .decode = op_decode,
    .plain = op_plain,
    .put_back = op_put_back,
};

/* ---- opening and closing ---- */

static int store_values(const void *plan, size_t group, const double *values, struct kp_result *r)
{
    return kp_plan_store(plan, group, values, r);
}

static struct kp_lists lists_of(const struct kp_plan *p)
{
    return p ? (struct kp_lists){p->groups, p->n_groups, store_values, p} : (struct kp_lists){.n = 0};
}

int kp_collector_open(const struct kp_collector_setup *setup, struct kp_collector **out)
{
    struct kp_collector *c = calloc(1, sizeof(*c));
    *out = NULL;
    if (!c)
        return -ENOMEM;
    c->setup = *setup;
    struct kp_providers_setup s = setup->providers ? *setup->providers : (struct kp_providers_setup){0};
    s.driver = setup->driver;
    s.cupti = setup->cupti;
    s.ctx = setup->ctx;
    s.chip = setup->chip;
    s.availability = setup->availability;
    s.taken = setup->taken;
    s.replayed = lists_of(setup->plan);
    s.one_pass = lists_of(setup->one_pass);
    s.window = setup->window;
    s.memory = setup->memory;
    s.settle = setup->settle;
    s.start = setup->start;
    s.join = setup->join;
    int rc = kp_providers_open(&s, &c->providers);
    if (rc) {
        free(c);
        return rc;
    }
    /* Makes plans now: the first window may close while the program ends. */
    kp_taken_begin(setup->taken, true);
    kp_providers_groups(c->providers, KP_RANGE_AUTO);
    kp_taken_end(setup->taken);
    *out = c;
    return 0;
}

void kp_collector_one_pass(struct kp_collector *c, const struct kp_plan *one_pass)
{
    struct kp_lists lists = lists_of(one_pass);
    kp_providers_one_pass(c->providers, &lists);
}

void kp_collector_carry(struct kp_collector *c, const struct kp_carry *carry)
{
    kp_providers_carry(c->providers, carry);
}

size_t kp_collector_beside(struct kp_collector *c)
{
    return kp_providers_beside(c->providers);
}

struct kp_beside kp_collector_beside_at(struct kp_collector *c, size_t group)
{
    return kp_providers_beside_at(c->providers, group);
}

int kp_collector_beside_missing(struct kp_collector *c, size_t group, struct kp_why why, struct kp_result *r)
{
    return kp_providers_beside_missing(c->providers, group, why, r);
}

/* Asked before each launch. */
size_t kp_collector_room(struct kp_collector *c)
{
    kp_taken_begin(c->setup.taken, false);
    size_t room = kp_providers_room(c->providers);
    kp_taken_end(c->setup.taken);
    return room;
}

void kp_collector_close(struct kp_collector *c, bool context_alive)
{
    if (!c)
        return;
    if (c->counting) /* given up: its work may never end, and CUPTI would wait for it */
        context_alive = false;
    if (context_alive)
        kp_collector_drop(c);
    kp_providers_close(c->providers, context_alive);
    kp_flush_close(c->flush, context_alive);
    kp_shadow_close(c->shadow, context_alive);
    free(c->counting);
    free(c);
}

/* ---- saved state ---- */

/* Reports a save, which can last seconds: up to half a second per gigabyte that goes to the host. */
static void tell_save(const struct kp_collector *c)
{
    size_t left = 0, total = 0;
    char text[96];
    if (!c->setup.progress || c->setup.driver->cuMemGetInfo(&left, &total) != CUDA_SUCCESS)
        return;
    snprintf(text, sizeof(text), "saving %.1f GB of device memory", (double)(total - left) / 1e9);
    c->setup.progress(text, true);
}

static size_t free_memory(const struct kp_collector *c, size_t *total)
{
    size_t left = 0;
    *total = 0;
    return c->setup.driver->cuMemGetInfo(&left, total) == CUDA_SUCCESS ? left : 0;
}

/* Asked before each launch while memory does not fit. That changes only if device memory is freed, which the driver
 * knows, or host memory, which needs reading files: these are read only once in a while. */
bool kp_collector_can_save(struct kp_collector *c)
{
    enum { AGE_MS = 1000 };
    struct kp_why why;
    size_t total, left = free_memory(c, &total);
    long now = kp_now_ms();
    if (c->full.known && left <= c->full.left && now - c->full.at_ms < AGE_MS)
        return false;
    bool can = kp_footprint_fits(c->setup.driver, c->setup.save_time, &why);
    kp_why_free(&why);
    c->full.known = !can;
    c->full.left = left;
    c->full.at_ms = now;
    return can;
}

/* ---- saving by change ---- */

/* Device memory that stays free alongside a shadow, in addition to that of every window: for what the program allocates
 * without a call (modules, local memory), in bytes. */
static const uint64_t shadow_spare = UINT64_C(1) << 30;

/* The most device memory in use beyond what the program is known to have, in bytes: more means memory that kprof does
 * not know. A context with the libraries of PyTorch and CUPTI's buffers used 1.9 GB (H100). */
static const uint64_t most_unknown = UINT64_C(3) << 30;

/* Measured with copies of blocks that went to the host, H100: 0.05 s per gigabyte to pin it, 0.02 s to copy it. */
static const double seconds_a_host_byte = 0.08e-9;

static struct kp_slot_room shadow_room(const struct kp_collector *c)
{
    size_t total;
    free_memory(c, &total);
    uint64_t host = kp_footprint_host_share();
    double in_time = (double)c->setup.save_time / 1e9 / seconds_a_host_byte;
    if (c->setup.save_time && in_time < (double)host)
        host = (uint64_t)in_time;
    return (struct kp_slot_room){.device_left = kp_footprint_margin(total) + shadow_spare, .host = host};
}

/* Returns true if a save by change pays: a second copy of all memory would not fit, or so much is in use that copying
 * it costs more than examining it. Restores of 43 GB lasted 60 to 80 ms by the checkpoint, 17 by change (H100). */
static bool wants_change(const struct kp_collector *c)
{
    enum { STATES = 3 };
    static const uint64_t much = UINT64_C(24) << 30;
    size_t total, left = free_memory(c, &total), used = total - left;
    if (c->setup.save != KP_SAVE_AUTO || !total)
        return c->setup.save == KP_SAVE_CHANGES;
    return c->shadow || used > total / STATES || used > much;
}

/* Lists the memory to save. False: it cannot be saved by change, and *why (no reason: not needed) says why. */
static bool list_owned(const struct kp_collector *c, struct kp_part **parts, size_t *n, enum kp_reason *why)
{
    uint64_t known = 0, held = kp_shadow_held(c->shadow);
    size_t total, left = free_memory(c, &total);
    *why = KP_REASON_NONE;
    if (!wants_change(c) || !c->setup.owned || !kp_shadow_available(c->setup.driver) ||
        !c->setup.owned(c->setup.owned_arg, parts, n, why))
        return false;
    for (size_t i = 0; i < *n; i++)
        known += (*parts)[i].bytes;
    kp_debug(KP_DEBUG_REPLAY, "%.3f GB in use, %.3f known in %zu parts, %.3f of ours", (double)(total - left) / 1e9,
             (double)known / 1e9, *n, (double)held / 1e9);
    if (total - left <= known + held + most_unknown)
        return true;
    *why = KP_REASON_OWNED_UNSEEN;
    free(*parts);
    return false;
}

/* Saves by change. Returns true on success; otherwise the shadow is gone, and the checkpoint is used. */
static bool save_change(struct kp_collector *c)
{
    struct kp_part *parts = NULL;
    enum kp_reason why = KP_REASON_NONE;
    size_t n = 0;
    uint64_t start = kp_clock_ns();
    CUresult rc = CUDA_ERROR_NOT_SUPPORTED;
    if (list_owned(c, &parts, &n, &why)) {
        struct kp_slot_room room = shadow_room(c);
        struct kp_threads threads = {c->setup.start, c->setup.join};
        rc = c->shadow ? CUDA_SUCCESS : kp_shadow_open(c->setup.driver, c->setup.device, &threads, &c->shadow);
        if (rc == CUDA_SUCCESS)
            rc = kp_shadow_save(c->shadow, parts, n, &room);
        free(parts);
        if (rc != CUDA_SUCCESS)
            kp_debug(KP_DEBUG_REPLAY, "a save by change failed: %s", kp_driver_error(c->setup.driver, rc));
    }
    c->by_change = rc == CUDA_SUCCESS;
    if (c->by_change) {
        tell_change(c, "save", start);
        return true;
    }
    if (why)
        kp_debug(KP_DEBUG_REPLAY, "memory cannot be saved by change: %s", kp_reason_text(why));
    kp_shadow_close(c->shadow, true);
    c->shadow = NULL;
    return false;
}

uint64_t kp_collector_held(const struct kp_collector *c)
{
    return c ? kp_shadow_held(c->shadow) : 0;
}

void kp_collector_give(struct kp_collector *c, uint64_t bytes)
{
    if (!c || !c->shadow || c->by_change)
        return;
    struct kp_slot_room room = shadow_room(c);
    kp_shadow_give(c->shadow, bytes, room.host);
}

void kp_collector_rest(struct kp_collector *c)
{
    if (!c || c->counting)
        return;
    kp_taken_begin(c->setup.taken, false);
    kp_providers_give(c->providers);
    kp_taken_end(c->setup.taken);
}

/* ---- saving all ---- */

static int save_all(struct kp_collector *c, struct kp_why *why)
{
    size_t total;
    if (!kp_saved_available(c->setup.cupti)) {
        *why = kp_why_of(KP_REASON_NO_CHECKPOINT, NULL);
        return -1;
    }
    if (!kp_footprint_fits(c->setup.driver, c->setup.save_time, why))
        return -1;
    size_t before = free_memory(c, &total);
    CUmemGenericAllocationHandle kept_free;
    bool reserved = kp_footprint_reserve(c->setup.driver, c->setup.device->device, &kept_free);
    int rc = kp_saved_make(c->setup.cupti, c->setup.ctx, &c->saved);
    if (reserved)
        c->setup.driver->cuMemRelease(kept_free);
    size_t after = free_memory(c, &total);
    c->copied = before > after ? before - after : 0;
    kp_taken_copied(c->setup.taken, rc ? 0 : c->copied);
    if (rc)
        *why = kp_library_explain(c->setup.cupti, KP_REASON_NOT_SAVED, rc);
    return rc ? -1 : 0;
}

int kp_collector_save(struct kp_collector *c, struct kp_why *why)
{
    *why = kp_why_of(KP_REASON_NONE, NULL);
    if (c->saved || c->by_change)
        return 0;
    tell_save(c);
    kp_taken_begin(c->setup.taken, true);
    bool saved = save_change(c) || !save_all(c, why);
    if (saved && !c->setup.unwatched)
        kp_providers_watch(c->providers);
    kp_taken_end(c->setup.taken);
    return saved ? 0 : -1;
}

void kp_collector_unwatch(struct kp_collector *c)
{
    c->setup.unwatched = true;
    kp_providers_unwatch(c->providers);
}

uint64_t kp_collector_copied(const struct kp_collector *c)
{
    return c->saved ? c->copied : 0;
}

/* Returns true if a second copy fits alongside the first, and leaves `spare` bytes. What a save by change keeps in
 * addition cannot be predicted: it is what the launches of the window write. */
static bool fits_again(const struct kp_collector *c, size_t spare)
{
    size_t total, left = free_memory(c, &total), used = total - left;
    size_t owned = used > c->copied ? used - c->copied : 0;
    if (c->by_change)
        return left >= spare;
    return left >= owned && left - owned >= spare;
}

bool kp_collector_has_room(const struct kp_collector *c, size_t more)
{
    /* For the profiler, and for what the program allocates until the window closes. */
    return fits_again(c, more + ((size_t)1 << 30));
}

static int keep_change(struct kp_collector *c, struct kp_why *why)
{
    uint64_t start = kp_clock_ns();
    struct kp_slot_room room = shadow_room(c);
    CUresult rc = c->kept_change ? CUDA_SUCCESS : kp_shadow_keep(c->shadow, &room);
    c->kept_change = rc == CUDA_SUCCESS;
    if (rc == CUDA_ERROR_OUT_OF_MEMORY)
        *why = kp_why_of(KP_REASON_NO_SECOND_COPY, NULL);
    else if (rc != CUDA_SUCCESS)
        *why = kp_why_make(KP_REASON_NOT_SAVED, "%s", kp_driver_error(c->setup.driver, rc));
    tell_change(c, "save of what the program's own execution left", start);
    return rc == CUDA_SUCCESS ? 0 : -1;
}

int kp_collector_keep(struct kp_collector *c, struct kp_why *why)
{
    *why = kp_why_of(KP_REASON_NONE, NULL);
    if (c->by_change)
        return keep_change(c, why);
    if (c->kept)
        return 0;
    if (!fits_again(c, 0)) { /* in host memory it would cost seconds, up to half a second per gigabyte */
        *why = kp_why_of(KP_REASON_NO_SECOND_COPY, NULL);
        return -1;
    }
    int rc = kp_saved_make(c->setup.cupti, c->setup.ctx, &c->kept);
    if (rc)
        *why = kp_library_explain(c->setup.cupti, KP_REASON_NOT_SAVED, rc);
    return rc ? -1 : 0;
}

bool kp_collector_lacks_new(const struct kp_collector *c)
{
    return c->kept_change;
}

void kp_collector_drop(struct kp_collector *c)
{
    kp_taken_begin(c->setup.taken, !c->kept); /* nobody knows how much memory the second copy uses */
    kp_providers_unwatch(c->providers);
    kp_saved_free(c->kept);
    kp_saved_free(c->saved);
    c->saved = c->kept = NULL;
    kp_taken_copied(c->setup.taken, 0);
    if (c->kept_change)
        kp_shadow_forget_kept(c->shadow);
    c->by_change = c->kept_change = false;
    if (c->flush)
        kp_flush_give(c->flush);
    kp_taken_end(c->setup.taken);
    kp_taken_window_over(c->setup.taken);
}

void kp_collector_leave(struct kp_collector *c)
{
    kp_saved_leave(c->kept);
    kp_saved_leave(c->saved);
    c->saved = c->kept = NULL;
    c->by_change = c->kept_change = false;
}

/* ---- running ---- */

static struct kp_why explain(const struct flight *f)
{
    const struct kp_replay_outcome *r = &f->out->replay;
    if (r->failed == KP_STAGE_NONE)
        return kp_why_of(KP_REASON_NONE, NULL);
    if (r->code == KP_ISSUE_TOO_LONG)
        return kp_why_of(KP_REASON_REHEARSAL_UNENDED, NULL);
    if (r->code == KP_ISSUE_UNENDED)
        return kp_why_of(KP_REASON_PASS_UNENDED, NULL);
    if (r->code == KP_ISSUE_LEFT)
        return kp_why_of(KP_REASON_LEFT_BY_HANDLER, NULL);
    if (r->code == KP_ISSUE_CUT)
        return kp_why_of(KP_REASON_READ_DIFFERED, NULL);
    if (f->flush != CUDA_SUCCESS && !r->dead)
        return explain_driver(f, stage_reasons[KP_STAGE_FLUSH], f->flush);
    if (f->restore != CUDA_SUCCESS)
        return explain_driver(f, stage_reasons[KP_STAGE_RESTORE], f->restore);
    struct kp_why told = kp_providers_explain(f->c->providers, r->code);
    if (told.reason)
        return told;
    if (r->failed == KP_STAGE_REHEARSE && !r->dead)
        return kp_why_of(KP_REASON_REFUSED_AGAIN, NULL);
    if (r->failed == KP_STAGE_ISSUE || r->failed == KP_STAGE_REHEARSE)
        return explain_driver(f, stage_reasons[r->failed], r->dead ? f->fault : f->refused);
    if (r->failed == KP_STAGE_PASSES)
        return kp_why_of(stage_reasons[r->failed], NULL);
    bool begins = r->failed == KP_STAGE_BEGIN || r->failed == KP_STAGE_START;
    return begins ? kp_providers_explain_begin(f->c->providers, stage_reasons[r->failed], r->code)
                  : kp_library_explain(f->c->setup.cupti, stage_reasons[r->failed], r->code);
}

/* Reports where the time of a window's repetitions went. */
static void tell_times(const struct flight *f)
{
    const uint64_t *ns = f->out->replay.ns;
    kp_debug(KP_DEBUG_REPLAY,
             "%zu launches, %zu passes, ms: restores %.1f, rehearsals %.1f, begin %.1f, starts %.1f, issues %.1f, "
             "stops %.1f, decode %.1f",
             f->job->n_launches, f->out->replay.passes, (double)ns[KP_STAGE_RESTORE] / 1e6,
             (double)ns[KP_STAGE_REHEARSE] / 1e6, (double)ns[KP_STAGE_BEGIN] / 1e6, (double)ns[KP_STAGE_START] / 1e6,
             (double)ns[KP_STAGE_ISSUE] / 1e6, (double)ns[KP_STAGE_STOP] / 1e6, (double)ns[KP_STAGE_DECODE] / 1e6);
}

/* Makes the outcome: all counters, or none and the reason. */
static void conclude(struct flight *f)
{
    struct kp_window_outcome *out = f->out;
    if (kp_providers_stuck(f->c->providers) && out->replay.failed == KP_STAGE_BEGIN)
        out->replay.failed = KP_STAGE_STOP; /* no other plan helps, unlike for counters that cannot be enabled */
    if (out->replay.failed == KP_STAGE_NONE && out->counters && kp_counters_any(out->counters))
        return;
    kp_counters_free(out->counters);
    out->counters = NULL;
    struct kp_why why = explain(f);
    if (why.reason) {
        kp_why_free(&out->why);
        out->why = why;
    }
}

/* Returns the most passes of each group of the replay: malloc'ed, NULL without memory. */
static size_t *passes_of(struct flight *f, size_t *n)
{
    struct kp_providers *p = f->c->providers;
    *n = kp_providers_groups(p, f->mode);
    size_t *passes = malloc((*n + 1) * sizeof(*passes));
    for (size_t i = 0; passes && i < *n; i++) {
        f->all_passes += passes[i] = kp_providers_repeats(p, i);
        passes[i] += kp_providers_retries(p, i);
    }
    f->watched = kp_providers_watched(p);
    return passes;
}

char *kp_collector_complaint(struct kp_collector *c)
{
    return kp_providers_complaint(c->providers);
}

static int open_window(struct flight *f, bool counted)
{
    bool swept = counted && f->cold && kp_flush_is_kernel(f->c->flush);
    const struct kp_providers_window w = {.mode = f->mode,
                                          .counted = counted,
                                          .swept = swept,
                                          .wanted = f->job->wanted,
                                          .n_launches = f->job->n_launches,
                                          .chooses = counted ? kp_providers_chooses(f->c->providers) : 0,
                                          .last = counted && !f->job->stays};
    return kp_providers_window(f->c->providers, &w);
}

static void replay(struct kp_collector *c, struct kp_window_job *job, struct kp_window_outcome *out)
{
    struct flight f = {.c = c, .job = job, .out = out, .mode = job->mode};
    struct kp_replay_request request = {0};
    size_t *passes = passes_of(&f, &request.groups);
    request.passes = passes;
    request.rehearsals = rehearsals(&f);
    request.own = c->kept || c->kept_change;
    if (!f.watched)
        kp_providers_unwatch(c->providers);
    memset(out, 0, sizeof(*out));
    job->n_executed = 0;
    f.hooks = (struct kp_issue_hooks){
        .reaches = c->setup.flush ? reaches : NULL, .before = before_launch, .after = after_launch, .arg = &f};
    if (c->setup.flush && !c->flush && kp_flush_open(c->setup.driver, c->setup.device, &c->flush) != CUDA_SUCCESS)
        out->why = kp_why_of(KP_REASON_CACHES_UNPREPARED, NULL);
    if (open_window(&f, false) || !passes)
        request.groups = 0;
    f.timed = kp_providers_want_longest(c->providers) ? 2 : 0;
    kp_passes_run(&operations, &f, &request, &out->replay);
    tell_times(&f);
    out->counters = kp_providers_take(c->providers);
    bool ended = out->replay.code != KP_ISSUE_UNENDED; /* else freeing memory and disabling counters might wait */
    if (c->flush && ended)
        kp_flush_give(c->flush);
    conclude(&f);
    free(passes);
    if (ended)
        kp_providers_release(c->providers);
}

void kp_collector_replay(struct kp_collector *c, struct kp_window_job *job, struct kp_window_outcome *out)
{
    kp_taken_begin(c->setup.taken, true);
    replay(c, job, out);
    kp_taken_end(c->setup.taken);
}

/* ---- one pass, no replay ---- */

/* Flushes the caches if a run of the program stands for a pass. A failure must not prevent the launch. If launches are
 * chosen, the caller has checked that the context is idle. */
static CUresult count_before(void *arg, CUstream stream)
{
    struct flight *f = arg;
    bool failed;
    if (f->cold && f->flush == CUDA_SUCCESS)
        f->flush = make_cold(f, stream);
    CUresult rc = kp_providers_before(f->c->providers, stream,
                                      kp_providers_chooses(f->c->providers) ? KP_WAIT_NOT : KP_WAIT_IF_NEEDED, &failed);
    return rc == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : rc; /* which is none of the program's launch */
}

/* Handles a launch that was made: errors from here on are not the launch's, and the next call reports a fault of its
 * kernel. */
static CUresult count_after(void *arg)
{
    const struct flight *f = arg;
    bool failed;
    kp_providers_after(f->c->providers, KP_WAIT_IF_NEEDED, &failed);
    return CUDA_SUCCESS;
}

/* Prepares the flush of a run that stands for a pass. Without it caches are warm, and the outcome says so. */
static void prepare_cold(struct flight *f)
{
    struct kp_collector *c = f->c;
    if (!c->setup.runs || !c->setup.flush ||
        !kp_providers_run_flushes(c->providers, c->setup.beside, c->setup.beside - 1))
        return;
    if (!c->flush)
        f->flush = kp_flush_open(c->setup.driver, c->setup.device, &c->flush);
    f->cold = c->flush && f->flush == CUDA_SUCCESS && !prepare_flush(f);
}

static struct flight *new_count(struct kp_collector *c, enum kp_range_mode mode)
{
    struct flight *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    *f = (struct flight){.c = c, .mode = mode, .main = true, .asked = kp_clock_ns()};
    prepare_cold(f);
    return f;
}

/* Continues after a count has started, or failed to with code `rc`: then *why has the reason, unless it is known. */
static int begun(struct kp_collector *c, struct flight *f, int rc, struct kp_why *why)
{
    if (rc) {
        if (!why->reason)
            *why = kp_providers_explain_begin(c->providers, stage_reasons[KP_STAGE_START], rc);
        kp_counters_free(kp_providers_take(c->providers));
        free(f);
        return -1;
    }
    f->hooks = (struct kp_issue_hooks){
        .reaches = f->cold ? reaches : NULL, .before = count_before, .after = count_after, .arg = f};
    f->counts = kp_clock_ns();
    c->counting = f;
    return 0;
}

int kp_collector_count_begin(struct kp_collector *c, enum kp_range_mode mode, size_t room, size_t list,
                             struct kp_why *why)
{
    kp_taken_begin(c->setup.taken, true);
    struct flight *f = new_count(c, mode);
    bool swept = f && f->cold && kp_flush_is_kernel(c->flush);
    int rc = -ENOMEM;
    *why = kp_why_of(KP_REASON_NONE, NULL);
    if (f)
        f->beside = c->setup.beside;
    if (f)
        rc = f->beside ? kp_providers_run(c->providers, c->setup.beside - 1, 1, 0, swept)
                       : kp_providers_count(c->providers, mode, room, swept, list);
    kp_taken_end(c->setup.taken);
    return begun(c, f, rc, why);
}

int kp_collector_beside_begin(struct kp_collector *c, size_t group, size_t room, uint64_t longest_ns,
                              struct kp_why *why)
{
    kp_taken_begin(c->setup.taken, true);
    struct flight *f = new_count(c, KP_RANGE_AUTO);
    kp_providers_release(c->providers); /* the previous list may have left the counters enabled */
    int rc = f ? kp_providers_run(c->providers, group, room, longest_ns, false) : -ENOMEM;
    kp_taken_end(c->setup.taken);
    *why = kp_why_of(KP_REASON_NONE, NULL);
    if (rc)
        *why = kp_why_copy(kp_providers_why(c->providers, group));
    if (f)
        f->beside = true;
    return begun(c, f, rc, why);
}

size_t kp_collector_chooses(const struct kp_collector *c)
{
    return kp_providers_chooses(c->providers);
}

bool kp_collector_count_failed(const struct kp_collector *c)
{
    return kp_providers_count_failed(c->providers);
}

void kp_collector_count_refused(struct kp_collector *c)
{
    kp_providers_count_refused(c->providers);
}

const struct kp_issue_hooks *kp_collector_count_hooks(struct kp_collector *c)
{
    return &c->counting->hooks;
}

static void end_pass(struct flight *f)
{
    struct kp_replay_outcome *r = &f->out->replay;
    bool last = false;
    uint64_t stops = kp_clock_ns();
    r->passes = 1;
    r->code = op_stop(f, &last);
    uint64_t stopped = kp_clock_ns();
    r->failed = r->code ? KP_STAGE_STOP : last ? KP_STAGE_NONE : KP_STAGE_PASSES;
    if (r->failed == KP_STAGE_NONE && (r->code = op_decode(f, 0)))
        r->failed = KP_STAGE_DECODE;
    kp_debug(KP_DEBUG_REPLAY, "%zu launches counted in one pass, ms: start %.1f, launches %.1f, stop %.1f, decode %.1f",
             f->job->n_launches, (double)(f->counts - f->asked) / 1e6, (double)(stops - f->counts) / 1e6,
             (double)(stopped - stops) / 1e6, (double)(kp_clock_ns() - stopped) / 1e6);
}

void kp_collector_count_end(struct kp_collector *c, const struct kp_window_job *job, struct kp_window_outcome *out)
{
    struct kp_window_job copy = *job;
    struct flight *f = c->counting;
    kp_taken_begin(c->setup.taken, true);
    memset(out, 0, sizeof(*out));
    c->counting = NULL;
    f->job = &copy;
    f->out = out;
    if (!f->beside)
        open_window(f, true); /* without memory, the decoded counters are dropped */
    end_pass(f);
    out->counters = kp_providers_take(c->providers);
    if (f->flush != CUDA_SUCCESS)
        out->why = kp_why_of(KP_REASON_CACHES_WARM, NULL);
    if (c->flush)
        kp_flush_give(c->flush);
    conclude(f);
    if (!job->stays && kp_providers_chooses(c->providers))
        kp_providers_give(c->providers); /* launches of the program take longer while there is a session */
    else if (f->beside || !job->stays)
        kp_providers_release(c->providers);
    free(f);
    kp_taken_end(c->setup.taken);
    kp_taken_window_over(c->setup.taken);
}
