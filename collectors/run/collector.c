#include "collectors/run/collector.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collectors/replay/footprint.h"

enum { ISSUE_OK, ISSUE_FAULTED };

/* The code of the decode stage that is neither CUPTI's nor an errno. */
enum { WRONG_RANGES = INT_MIN };

/* Room for counters, made in steps of four, so that a small window does not pay for emptying a large image; large ones
 * in smaller steps, as each range costs memory and time. */
enum { ROOM_STEP = 4, LARGE_ROOM = 256, LARGE_STEP = 64 };

/* Evaluation is shared among at most so many threads, with at least so many launches each: a thread has to be worth its
 * start and, the first time, the opening of its host. */
enum { MOST_THREADS = 4, LEAST_SHARE = 16 };

/* Room in a set of CPUs; the kernel refuses one that is smaller than its own. */
enum { MOST_CPUS = 8192 };

struct lease {
    struct kp_image *image;
    const struct kp_config *config;
    size_t bytes;
    atomic_bool busy; /* handed out; given back by any thread */
    struct lease *next;
};

struct kp_collector {
    struct kp_collector_setup setup;
    struct kp_host *hosts[MOST_THREADS]; /* for evaluation: the caller's, and those opened when first needed */
    struct kp_flush *flush;
    struct kp_range *range; /* the profiler enabled on the context */
    int stuck;              /* CUPTI's code: one could not be disabled, and there can be no other */
    enum kp_range_mode mode;
    bool used;                           /* the profiler has run, in `mode`, */
    size_t used_ranges;                  /* with room for so many */
    const struct kp_config *used_config; /* for this list */
    struct kp_checkpoint *saved;
    struct lease *leases;
    size_t room;     /* 0 = not known yet */
    size_t *passes;  /* of each group of the plan, then of each extra pass */
    size_t n_passes; /* room in it */
    struct kp_providers *providers;
    struct flight *counting; /* between count_begin and count_end */
};

/* One window in flight: what the operations work on. */
struct flight {
    struct kp_collector *c;
    const struct kp_plan *plan;
    struct kp_window_job *job;
    struct kp_window_outcome *out;
    struct kp_issue_hooks hooks;
    enum kp_range_mode mode;
    struct lease *lease; /* of the group under way */
    bool marked;         /* the range of a launch is open */
    size_t seen_ranges, expected_ranges;
    CUresult refused;      /* what the driver said when it refused a re-issue */
    CUresult flush, fault; /* ditto of the flush, of the context, which is broken then */
    int hook;              /* CUPTI's code of a push or pop that failed */
    size_t early;          /* extra passes that come before the groups of the plan */
    unsigned rehearsed;
    size_t pass, all_passes;    /* begun so far, and of the window */
    bool extra, extra_cold;     /* the pass under way is an extra one; it wants cold caches */
    bool providers;             /* there has been one */
    unsigned timed;             /* passes that are to be timed yet: what is done once takes the first one longer */
    uint64_t launched, longest; /* ns: when the launch under way was issued; what the longest one took */
};

/* The decoded counters of one group. */
struct part {
    size_t group;
    struct lease *lease;
};

struct kp_counters {
    struct kp_collector *c;
    const struct kp_plan *plan;
    struct part *parts;
    size_t n_parts;
    size_t *ranges; /* of each result */
    size_t n_results;
    struct kp_gathered *gathered; /* of the extra passes */
};

/* ---- images ---- */

static size_t room_step(size_t n, size_t most)
{
    size_t room = 1;
    if (n > most) /* with sweeps, two ranges a launch */
        most *= 2;
    while (room < n)
        room *= ROOM_STEP;
    if (room > LARGE_ROOM)
        room = (n + LARGE_STEP - 1) / LARGE_STEP * LARGE_STEP;
    return room > most && n <= most ? most : room;
}

static size_t lease_bytes(const struct kp_collector *c)
{
    size_t sum = 0;
    for (const struct lease *l = c->leases; l; l = l->next)
        sum += l->bytes;
    return sum;
}

/* Frees images that nobody uses until `wanted` more byte keep within the bound. */
static void make_way(struct kp_collector *c, size_t wanted)
{
    for (struct lease **link = &c->leases; *link && lease_bytes(c) + wanted > c->setup.memory;) {
        struct lease *l = *link;
        if (atomic_load(&l->busy)) {
            link = &l->next;
            continue;
        }
        *link = l->next;
        kp_image_free(l->image);
        free(l);
    }
}

/* The smallest image with room for `ranges`, but none that wastes more than the steps of room may: emptying one copies
 * it whole. */
static struct lease *idle_lease(const struct kp_collector *c, const struct kp_config *config, size_t ranges)
{
    struct lease *best = NULL;
    for (struct lease *l = c->leases; l; l = l->next) {
        size_t room = kp_image_ranges(l->image);
        if (l->config == config && room >= ranges && room <= ROOM_STEP * ranges && !atomic_load(&l->busy) &&
            (!best || room < kp_image_ranges(best->image)))
            best = l;
    }
    return best;
}

static int new_lease(struct kp_collector *c, const struct kp_config *config, size_t room, size_t bytes,
                     struct lease **out)
{
    struct lease *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    int rc = kp_image_make(c->range, config, room, &l->image);
    if (rc) {
        free(l);
        return rc;
    }
    l->config = config;
    l->bytes = bytes;
    l->next = c->leases;
    c->leases = l;
    *out = l;
    return 0;
}

/* A new image with `room`, or one with room for `ranges` that became idle while room was made for it. */
static int make_lease(struct kp_collector *c, const struct kp_config *config, size_t ranges, size_t room,
                      struct lease **out)
{
    size_t bytes = 0;
    int rc = kp_image_bytes(c->range, config, room, &bytes);
    if (rc)
        return rc;
    make_way(c, bytes);
    if (lease_bytes(c) + bytes > c->setup.memory && c->leases) {
        c->setup.settle(); /* the images still being evaluated */
        if ((*out = idle_lease(c, config, ranges)))
            return 0;
        make_way(c, bytes);
    }
    return new_lease(c, config, room, bytes, out);
}

/* ---- the profiler ---- */

static int enable(struct kp_collector *c)
{
    if (c->stuck)
        return c->stuck;
    return c->range ? 0 : kp_range_open(c->setup.cupti, c->setup.ctx, &c->range);
}

/* Lets go of the hardware. Where that fails, nothing is collected of the context any more: a second profiler must not
 * be enabled beside the first, and what has its own passes finds the counters taken. */
static int disable(struct kp_collector *c)
{
    int rc = kp_range_close(c->range);
    c->stuck = c->stuck ? c->stuck : rc;
    c->range = NULL;
    c->used = false;
    return c->stuck;
}

/* KP_VENDOR: PC sampling never recognises a function that is launched the first time while the profiler is enabled
 * (CUPTI 13.0), so it is not left enabled where the program goes on. */
static void leave_disabled(struct kp_collector *c)
{
    if (c->providers)
        disable(c);
}

/* KP_VENDOR: one that has run in one mode refuses the other until it was disabled, one that has run with room for some
 * ranges drops what goes beyond, whatever it is configured for later, and one that has run the passes of one list
 * expects as many of the next (CUPTI 13.0). `room` is that of the image, which it is configured for, and may be more
 * than the window needs. */
static int enable_for(struct kp_collector *c, enum kp_range_mode mode, const struct kp_config *config, size_t room)
{
    if (c->used && (c->mode != mode || c->used_config != config || c->used_ranges < room))
        disable(c);
    int rc = enable(c);
    c->mode = mode;
    c->used_config = config;
    if (!c->used)
        c->used_ranges = room;
    c->used = !rc;
    return rc;
}

/* An image with room for `ranges`, and the profiler enabled for it. */
static int take_lease(struct kp_collector *c, enum kp_range_mode mode, const struct kp_config *config, size_t ranges,
                      struct lease **out)
{
    struct lease *l = NULL;
    int rc = enable(c); /* or the room is not known */
    if (rc)
        return rc;
    if (!ranges)
        ranges = 1; /* no image has less */
    size_t room = room_step(ranges, kp_collector_room(c));
    l = idle_lease(c, config, ranges);
    rc = enable_for(c, mode, config, l ? kp_image_ranges(l->image) : room);
    if (!rc && !l) {
        rc = make_lease(c, config, ranges, room, &l);
        if (!rc) /* again, as it may have more room */
            rc = enable_for(c, mode, config, kp_image_ranges(l->image));
    }
    if (rc)
        return rc;
    atomic_store(&l->busy, true);
    *out = l;
    return 0;
}

size_t kp_collector_room(struct kp_collector *c)
{
    size_t one = 0, two = 0, each = 0;
    if (c->room)
        return c->room;
    const struct kp_plan *plans[] = {c->setup.plan, c->setup.one_pass};
    if (enable(c)) /* it may be there later: nothing to keep */
        return c->setup.window ? c->setup.window : 1;
    c->room = c->setup.window ? c->setup.window : 1;
    for (int p = 0; p < 2; p++)
        for (size_t g = 0; plans[p] && g < plans[p]->n_groups; g++) {
            if (kp_image_bytes(c->range, &plans[p]->groups[g], 1, &one) ||
                kp_image_bytes(c->range, &plans[p]->groups[g], 2, &two) || two <= one)
                continue;
            /* Groups of one plan are held together until they are evaluated. */
            each = (p ? 0 : each) + two - one;
            if (each && c->setup.memory / each < c->room)
                c->room = c->setup.memory / each;
        }
    if (!c->room)
        c->room = 1;
    leave_disabled(c);
    return c->room;
}

static const char *const stage_words[] = {
    [KP_STAGE_NONE] = "",
    [KP_STAGE_RESTORE] = "cannot restore the device memory",
    [KP_STAGE_FLUSH] = "cannot flush the caches (KPROF_CACHE_CONTROL=none does without)",
    [KP_STAGE_REHEARSE] = "the launch failed when it was run again",
    [KP_STAGE_BEGIN] = "cannot enable the counters",
    [KP_STAGE_START] = "cannot start the counters",
    [KP_STAGE_ISSUE] = "the launch failed",
    [KP_STAGE_STOP] = "cannot stop the counters",
    [KP_STAGE_DECODE] = "cannot read the counters",
    [KP_STAGE_PASSES] = "the counters did not finish in the passes announced",
};

static char *explain_driver(const struct flight *f, const char *what, CUresult rc)
{
    char *note = NULL;
    return asprintf(&note, "%s: %s", what, kp_driver_error(f->c->setup.driver, rc)) < 0 ? NULL : note;
}

/* ---- operations of the replay loop ---- */

/* The first mark that fails is the one that is explained. */
static int mark(struct flight *f, bool begin)
{
    int rc = begin ? kp_range_push(f->c->range) : kp_range_pop(f->c->range);
    f->marked = begin && !rc;
    if (rc && !f->hook)
        f->hook = rc;
    return rc;
}

static CUresult before_launch(void *arg, CUstream stream)
{
    struct flight *f = arg;
    if (f->c->flush && (!f->extra || f->extra_cold))
        f->flush = kp_flush_run(f->c->flush, stream);
    CUresult rc = f->flush;
    if (f->extra)
        return rc == CUDA_SUCCESS ? (f->fault = kp_providers_before(f->c->providers)) : rc;
    if (rc != CUDA_SUCCESS || (f->mode == KP_RANGE_AUTO && !f->timed))
        return rc;
    rc = f->c->setup.driver->cuCtxSynchronize();
    f->launched = kp_clock_ns();
    if (f->mode == KP_RANGE_AUTO)
        return rc;
    return rc == CUDA_SUCCESS && mark(f, true) ? CUDA_ERROR_UNKNOWN : rc;
}

static CUresult after_launch(void *arg)
{
    struct flight *f = arg;
    if (f->extra)
        return f->fault = kp_providers_after(f->c->providers);
    if (f->mode == KP_RANGE_AUTO && !f->timed)
        return CUDA_SUCCESS;
    CUresult rc = f->c->setup.driver->cuCtxSynchronize();
    if (f->timed && kp_clock_ns() - f->launched > f->longest)
        f->longest = kp_clock_ns() - f->launched;
    if (f->mode == KP_RANGE_AUTO)
        return rc;
    return mark(f, false) && rc == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : rc;
}

/* A kernel's instructions come late in its first launch after PC sampling was enabled: up to a tenth more samples than
 * Nsight Compute has, most of them in no_instructions (H200, Triton's kernels of 5 us). The probe comes between what
 * watched the program and the pass, so that the launches are rehearsed once more. */
static unsigned rehearsals(const struct flight *f)
{
    return f->job->probe && f->early ? 2 : 1;
}

/* Which pass of how many is under way, its restore included. */
static void tell_pass(struct flight *f)
{
    char text[96];
    if (!f->c->setup.progress || f->rehearsed < rehearsals(f))
        return;
    snprintf(text, sizeof(text), "pass %zu of %zu of a window of %zu launches", ++f->pass, f->all_passes,
             f->job->n_launches);
    f->c->setup.progress(text, false);
}

static int op_restore(void *arg)
{
    tell_pass(arg);
    return kp_checkpoint_restore(((struct flight *)arg)->c->saved);
}

/* The first is the probe's, where there is one: it is by another part of CUPTI than what watches. The second, if any,
 * is watched again, see rehearsals(). */
static int op_rehearse(void *arg)
{
    struct flight *f = arg;
    struct kp_window_job *job = f->job;
    const struct kp_cupti *cupti = f->c->setup.cupti;
    bool first = !f->rehearsed++, probe = job->probe && first;
    if (probe)
        kp_providers_unwatch(f->c->providers);
    else if (!first)
        kp_providers_watch(f->c->providers);
    /* A probe that does not start is no reason to give the counters up: its facts are shown as missing. */
    bool probing = probe && !kp_activity_begin(cupti);
    int rc = job->rehearse(job->arg);
    if (probing)
        kp_activity_end(cupti, job->executed, job->n_launches, &job->n_executed);
    if (rc && rc != KP_ISSUE_REFUSED && rc != KP_ISSUE_TOO_LONG)
        f->fault = (CUresult)rc;
    return rc;
}

static size_t ranges_expected(const struct flight *f)
{
    size_t n = 0;
    bool swept = f->c->flush && kp_flush_is_kernel(f->c->flush);
    for (size_t i = 0; i < f->job->n_launches; i++)
        if (f->mode == KP_RANGE_AUTO)
            n += 1 + (swept && f->job->wanted[i]);
        else
            n += f->job->wanted[i];
    return n;
}

static void map_ranges(struct flight *f);

/* Once begun, an extra pass does not fail: what it lacks is told by its complaint.
 * KP_VENDOR: while the range profiler is configured, PC sampling yields nothing and PM sampling is refused
 * (CUPTI 13.0).
 */
static int begin_extra(struct flight *f, size_t pass)
{
    int rc = f->extra ? 0 : disable(f->c);
    if (rc)
        return rc;
    if (!f->providers)
        map_ranges(f);
    f->extra = f->providers = true;
    kp_providers_longest(f->c->providers, f->longest);
    f->extra_cold = kp_providers_flushes(f->c->providers, pass);
    kp_providers_begin(f->c->providers, pass);
    return 0;
}

/* The group of the plan that a group of the replay is; false for an extra pass. */
static bool plan_group(const struct flight *f, size_t *group)
{
    if (*group < f->early)
        return false;
    *group -= f->early;
    return *group < f->plan->n_groups;
}

static int op_begin(void *arg, size_t group)
{
    struct flight *f = arg;
    struct kp_collector *c = f->c;
    size_t pass = group < f->early ? group : group - f->plan->n_groups;
    if (!plan_group(f, &group))
        return begin_extra(f, pass);
    f->extra = false;
    /* The flush takes its memory now, outside of the passes; now it also knows whether it needs a kernel. */
    if (c->flush)
        f->flush = kp_flush_run(c->flush, CU_STREAM_LEGACY);
    if (f->flush == CUDA_SUCCESS)
        f->flush = c->setup.driver->cuCtxSynchronize();
    if (f->flush != CUDA_SUCCESS)
        return -EIO; /* explained by f->flush */
    f->expected_ranges = ranges_expected(f);
    map_ranges(f);
    int rc = take_lease(c, f->mode, &f->plan->groups[group], f->expected_ranges, &f->lease);
    return rc ? rc : kp_range_begin(c->range, f->mode, f->lease->image);
}

static int op_start(void *arg)
{
    struct flight *f = arg;
    if (f->extra)
        return 0;
    if (f->timed)
        f->longest = 0;
    return kp_range_start(f->c->range);
}

static int op_stop(void *arg, bool *last)
{
    struct flight *f = arg;
    if (f->extra) {
        kp_providers_end(f->c->providers);
        *last = true;
        return 0;
    }
    f->timed -= f->timed > 0;
    int rc = kp_range_stop(f->c->range, last);
    if (kp_range_runs(f->c->range) && disable(f->c))
        f->lease = NULL;      /* it stays busy: CUPTI may write to its image */
    return rc ? rc : f->hook; /* the ranges are not those of the launches */
}

/* What came of an issue that returned `rc`: a fault breaks the context, a refusal does not. */
static int judge_issue(struct flight *f, CUresult rc)
{
    CUresult end = f->c->setup.driver->cuCtxSynchronize();
    if (f->fault == CUDA_SUCCESS)
        f->fault = end;
    if (f->fault != CUDA_SUCCESS)
        return ISSUE_FAULTED;
    if (f->refused == CUDA_SUCCESS)
        f->refused = rc;
    return rc == CUDA_SUCCESS ? ISSUE_OK : KP_ISSUE_REFUSED;
}

static const char refused_again[] = "the driver refused a launch when it was run again";

/* Of an extra pass a refusal costs what that pass would have told, not the counters of the others. */
static int give_up_pass(struct flight *f)
{
    char *why = f->flush != CUDA_SUCCESS ? explain_driver(f, stage_words[KP_STAGE_FLUSH], f->flush)
                                         : explain_driver(f, refused_again, f->refused);
    kp_providers_refused(f->c->providers, why ? why : refused_again);
    free(why);
    f->flush = f->refused = CUDA_SUCCESS;
    return KP_ISSUE_GIVEN_UP;
}

static int op_issue(void *arg)
{
    struct flight *f = arg;
    int code = judge_issue(f, f->job->issue(f->job->arg, &f->hooks));
    return f->extra && code == KP_ISSUE_REFUSED ? give_up_pass(f) : code;
}

static int op_plain(void *arg)
{
    struct flight *f = arg;
    return judge_issue(f, f->job->issue(f->job->arg, NULL));
}

static int decode(struct flight *f)
{
    size_t ranges = 0, dropped = 0;
    int rc = kp_range_decode(f->c->range, &ranges, &dropped);
    if (rc)
        return rc;
    f->seen_ranges = ranges + dropped;
    return f->seen_ranges != f->expected_ranges || dropped ? WRONG_RANGES : 0;
}

static int keep_part(struct flight *f, size_t group)
{
    struct kp_counters *k = f->out->counters;
    if (!k)
        return -ENOMEM;
    struct part *grown = realloc(k->parts, (k->n_parts + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    k->parts = grown;
    grown[k->n_parts++] = (struct part){.group = group, .lease = f->lease};
    f->lease = NULL;
    return 0;
}

static int op_decode(void *arg, size_t group)
{
    struct flight *f = arg;
    if (f->extra)
        return 0;
    plan_group(f, &group);
    int rc = decode(f);
    return rc ? rc : keep_part(f, group);
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
};

/* ---- counters ---- */

static struct kp_counters *new_counters(const struct flight *f)
{
    struct kp_counters *k = calloc(1, sizeof(*k));
    if (!k || !(k->ranges = calloc(f->job->n_launches + 1, sizeof(*k->ranges)))) {
        free(k);
        return NULL;
    }
    k->c = f->c;
    k->plan = f->plan;
    return k;
}

/* The range of each launch that has a result. */
static void map_ranges(struct flight *f)
{
    struct kp_counters *k = f->out->counters;
    const struct kp_window_job *job = f->job;
    bool swept = f->c->flush && kp_flush_is_kernel(f->c->flush);
    size_t range = 0;
    k->n_results = 0;
    for (size_t i = 0; i < job->n_launches; i++) {
        range += swept && f->mode == KP_RANGE_AUTO && job->wanted[i];
        if (job->wanted[i])
            k->ranges[k->n_results++] = range;
        range += f->mode == KP_RANGE_AUTO || job->wanted[i];
    }
}

void kp_counters_free(struct kp_counters *k)
{
    if (!k)
        return;
    for (size_t p = 0; p < k->n_parts; p++)
        atomic_store(&k->parts[p].lease->busy, false);
    kp_gathered_free(k->gathered);
    free(k->parts);
    free(k->ranges);
    free(k);
}

/* ---- evaluation ---- */

/* One part, for the threads that evaluate it. */
struct evaluation {
    const struct kp_counters *k;
    const struct part *part;
    struct kp_result *const *results;
    atomic_size_t next; /* launch that no thread has taken */
};

/* One of the threads. */
struct turn {
    struct evaluation *of;
    struct kp_host **host;
    pthread_t thread;
    int rc; /* of its first launch that failed, */
    size_t at;
};

static int evaluate_launch(const struct evaluation *e, struct kp_host *host, size_t i, double *values)
{
    const struct kp_counters *k = e->k;
    const struct kp_config *config = &k->plan->groups[e->part->group];
    const uint8_t *image;
    size_t size;
    kp_image_data(e->part->lease->image, &image, &size);
    int rc = kp_host_evaluate(host, image, size, k->ranges[i], config->names, config->n_names, values);
    return rc ? rc : kp_plan_store(k->plan, e->part->group, values, e->results[i]);
}

/* Takes launches until there are none. Without a host or memory it takes none, and leaves them to the others. */
static void *take_launches(void *arg)
{
    struct turn *turn = arg;
    struct evaluation *e = turn->of;
    const struct kp_collector_setup *setup = &e->k->c->setup;
    if (!*turn->host && kp_host_open(setup->cupti, setup->chip, setup->availability, turn->host))
        return NULL;
    double *values = calloc(e->k->plan->groups[e->part->group].n_names + 1, sizeof(*values));
    if (!values)
        return NULL;
    for (size_t i; (i = atomic_fetch_add(&e->next, 1)) < e->k->n_results;) {
        int rc = evaluate_launch(e, *turn->host, i, values);
        if (rc && !turn->rc) {
            turn->rc = rc;
            turn->at = i;
        }
    }
    free(values);
    return NULL;
}

/* How many threads are worth it for so many launches. One CPU is left to the program. */
static size_t threads_for(const struct kp_collector *c, size_t launches)
{
    cpu_set_t set[MOST_CPUS / CPU_SETSIZE];
    size_t n = launches / LEAST_SHARE;
    if (n < 2 || !c->setup.start || sched_getaffinity(0, sizeof(set), set))
        return 1;
    size_t cpus = (size_t)CPU_COUNT_S(sizeof(set), set);
    if (n >= cpus)
        n = cpus > 1 ? cpus - 1 : 1;
    return n < MOST_THREADS ? n : MOST_THREADS;
}

/* Returns what went wrong with the first launch that failed. */
static int evaluate_part(const struct kp_counters *k, const struct part *part, struct kp_result *const *results)
{
    struct kp_collector *c = k->c;
    struct evaluation e = {.k = k, .part = part, .results = results};
    struct turn turns[MOST_THREADS];
    size_t n = 0, most = threads_for(c, k->n_results);
    for (size_t i = 0; i < most; i++)
        turns[i] = (struct turn){.of = &e, .host = &c->hosts[i], .at = SIZE_MAX};
    while (n + 1 < most && c->setup.start(take_launches, &turns[n + 1], &turns[n + 1].thread))
        n++;
    const struct turn *first = &turns[0];
    take_launches(&turns[0]);
    for (; n; n--) { /* what libraries keep for a thread is taken down after its function has returned */
        c->setup.join(turns[n].thread);
        if (turns[n].at < first->at)
            first = &turns[n];
    }
    if (!first->rc && atomic_load(&e.next) < k->n_results) /* nobody had the memory */
        return -ENOMEM;
    return first->rc;
}

char *kp_counters_evaluate(struct kp_counters *k, struct kp_result *const *results)
{
    int rc = 0;
    for (size_t p = 0; p < k->n_parts; p++) {
        int one = evaluate_part(k, &k->parts[p], results);
        if (!rc)
            rc = one;
    }
    for (size_t i = 0; k->gathered && i < k->n_results; i++) {
        int one = kp_gathered_store(k->gathered, i, results[i]);
        if (!rc)
            rc = one;
    }
    return rc ? kp_cupti_explain(k->c->setup.cupti, "cannot evaluate the counters", rc) : NULL;
}

/* ---- opening and closing ---- */

int kp_collector_open(const struct kp_collector_setup *setup, struct kp_collector **out)
{
    struct kp_collector *c = calloc(1, sizeof(*c));
    *out = NULL;
    if (!c)
        return -ENOMEM;
    c->setup = *setup;
    int rc = kp_host_open(setup->cupti, setup->chip, setup->availability, &c->hosts[0]);
    if (!rc && setup->providers && setup->providers->kinds)
        rc = kp_providers_open(setup->providers, &c->providers);
    kp_providers_passes(
        c->providers); /* plans what is to be planned: the first window may close while the program ends */
    if (rc)
        kp_collector_close(c, true);
    else
        *out = c;
    return rc;
}

void kp_collector_one_pass(struct kp_collector *c, const struct kp_plan *one_pass)
{
    c->setup.one_pass = one_pass;
}

void kp_collector_close(struct kp_collector *c, bool context_alive)
{
    if (!c)
        return;
    if (context_alive) {
        kp_collector_drop(c);
        kp_range_close(c->range);
    } else {
        kp_range_abandon(c->range);
    }
    kp_providers_close(c->providers, context_alive);
    kp_flush_close(c->flush, context_alive);
    for (size_t i = 0; i < MOST_THREADS; i++)
        kp_host_close(c->hosts[i]);
    while (c->leases) {
        struct lease *l = c->leases;
        c->leases = l->next;
        kp_image_free(l->image);
        free(l);
    }
    free(c->counting);
    free(c);
}

/* ---- saved state ---- */

/* Where much memory is in use, a save takes seconds: up to half a second a gigabyte, where it goes to the host. */
static void tell_save(const struct kp_collector *c)
{
    size_t left = 0, total = 0;
    char text[96];
    if (!c->setup.progress || c->setup.driver->cuMemGetInfo(&left, &total) != CUDA_SUCCESS)
        return;
    snprintf(text, sizeof(text), "saving %.1f GB of device memory", (double)(total - left) / 1e9);
    c->setup.progress(text, true);
}

int kp_collector_save(struct kp_collector *c, char **why)
{
    *why = NULL;
    if (c->saved)
        return 0;
    if (!kp_checkpoint_available(c->setup.cupti)) {
        *why = kp_strdup("libcheckpoint.so is missing beside libcupti: memory could not be restored between passes");
        return -1;
    }
    if (!kp_footprint_fits(c->setup.driver, why))
        return -1;
    tell_save(c);
    CUmemGenericAllocationHandle kept_free;
    bool reserved = kp_footprint_reserve(c->setup.driver, c->setup.device->device, &kept_free);
    int rc = kp_checkpoint_save(c->setup.cupti, c->setup.ctx, &c->saved);
    if (reserved)
        c->setup.driver->cuMemRelease(kept_free);
    if (rc)
        *why = kp_cupti_explain(c->setup.cupti, "cannot save the device memory that a replay must restore", rc);
    else
        kp_providers_watch(c->providers);
    return rc ? -1 : 0;
}

void kp_collector_drop(struct kp_collector *c)
{
    kp_providers_unwatch(c->providers);
    kp_checkpoint_free(c->saved);
    c->saved = NULL;
    if (c->flush)
        kp_flush_give(c->flush);
}

void kp_collector_leave(struct kp_collector *c)
{
    kp_checkpoint_abandon(c->saved);
    c->saved = NULL;
}

/* ---- running ---- */

static char *explain_ranges(const struct flight *f)
{
    char *note = NULL;
    return asprintf(&note, "the counters saw %zu kernels instead of %zu (another tool, or kernels of a library)",
                    f->seen_ranges, f->expected_ranges) < 0
               ? NULL
               : note;
}

static char *explain(const struct flight *f)
{
    const struct kp_replay_outcome *r = &f->out->replay;
    if (r->failed == KP_STAGE_NONE)
        return NULL;
    if (r->code == KP_ISSUE_TOO_LONG)
        return kp_strdup("a launch did not end when it was run again by itself: it waits for the host or for another "
                         "kernel; not replayed");
    if (f->flush != CUDA_SUCCESS && !r->dead)
        return explain_driver(f, stage_words[KP_STAGE_FLUSH], f->flush);
    if (f->hook)
        return kp_cupti_explain(f->c->setup.cupti, "cannot mark the range of a launch", f->hook);
    if (r->failed == KP_STAGE_REHEARSE && !r->dead)
        return kp_strdup(refused_again);
    if (r->failed == KP_STAGE_ISSUE || r->failed == KP_STAGE_REHEARSE)
        return explain_driver(f, stage_words[r->failed], r->dead ? f->fault : f->refused);
    if (r->failed == KP_STAGE_PASSES)
        return kp_strdup(stage_words[r->failed]);
    if (r->code == WRONG_RANGES)
        return explain_ranges(f);
    return kp_cupti_explain(f->c->setup.cupti, stage_words[r->failed], r->code);
}

/* What is handed out: all counters, or none and the reason. */
static void conclude(struct flight *f)
{
    struct kp_window_outcome *out = f->out;
    if (f->lease)
        atomic_store(&f->lease->busy, false);
    if (f->c->stuck && out->replay.failed == KP_STAGE_BEGIN)
        out->replay.failed = KP_STAGE_STOP; /* which no other plan mends, unlike counters that cannot be enabled */
    if (out->replay.failed == KP_STAGE_NONE && out->counters && (out->counters->n_parts || out->counters->gathered))
        return;
    kp_counters_free(out->counters);
    out->counters = NULL;
    char *note = explain(f);
    if (note) {
        free(out->note);
        out->note = note;
    }
}

/* How many passes each group of the replay has: the early extra ones, the groups of the plan, the other extra ones.
 * Graphs are launched as one, and what they do is not told apart: they have counters only. malloc'ed, NULL without
 * memory. */
static size_t *passes_of(struct flight *f, size_t *n)
{
    const struct kp_plan *plan = f->plan;
    size_t extra = f->mode == KP_RANGE_AUTO ? kp_providers_passes(f->c->providers) : 0;
    size_t *passes = malloc((plan->n_groups + extra + 1) * sizeof(*passes));
    f->early = extra ? kp_providers_early(f->c->providers) : 0;
    *n = plan->n_groups + extra;
    for (size_t i = 0; passes && i < *n; i++) {
        size_t group = i;
        passes[i] = plan_group(f, &group) ? plan->groups[group].passes : 1;
    }
    return passes;
}

static void open_extras(struct flight *f)
{
    size_t results = 0;
    for (size_t i = 0; i < f->job->n_launches; i++)
        results += f->job->wanted[i];
    if (!f->c->providers || f->mode != KP_RANGE_AUTO)
        return;
    kp_providers_window(f->c->providers, results);
    f->timed = kp_providers_want_longest(f->c->providers) ? 2 : 0;
}

static void take_extras(struct flight *f)
{
    struct kp_window_outcome *out = f->out;
    if (!f->c->providers || f->mode != KP_RANGE_AUTO)
        return;
    struct kp_gathered *g = kp_providers_take(f->c->providers);
    if (out->counters)
        out->counters->gathered = g;
    else
        kp_gathered_free(g);
}

char *kp_collector_complaint(struct kp_collector *c)
{
    return kp_providers_complaint(c->providers);
}

void kp_collector_replay(struct kp_collector *c, struct kp_window_job *job, struct kp_window_outcome *out)
{
    struct flight f = {.c = c, .plan = c->setup.plan, .job = job, .out = out, .mode = job->mode};
    struct kp_replay_request request = {0};
    size_t *passes = passes_of(&f, &request.groups);
    request.passes = passes;
    request.rehearsals = rehearsals(&f);
    for (size_t g = 0; passes && g < request.groups; g++)
        f.all_passes += passes[g];
    if (!f.early) /* no pass takes over what watched the program */
        kp_providers_unwatch(c->providers);
    memset(out, 0, sizeof(*out));
    job->n_executed = 0;
    f.hooks = (struct kp_issue_hooks){.before = before_launch, .after = after_launch, .arg = &f};
    if (c->setup.flush && !c->flush && kp_flush_open(c->setup.driver, c->setup.device, &c->flush) != CUDA_SUCCESS)
        out->note = kp_strdup("the cache flush could not be prepared: caches were warm");
    if (!(out->counters = new_counters(&f)) || !passes)
        request.groups = 0;
    open_extras(&f);
    kp_replay_run(&operations, &f, &request, &out->replay);
    take_extras(&f);
    if (c->flush)
        kp_flush_give(c->flush);
    conclude(&f);
    free(passes);
    leave_disabled(c);
}

/* ---- one pass, no replay ---- */

static CUresult count_before(void *arg, CUstream stream)
{
    struct flight *f = arg;
    (void)stream;
    if (f->mode == KP_RANGE_AUTO)
        return CUDA_SUCCESS;
    CUresult rc = f->c->setup.driver->cuCtxSynchronize();
    if (rc == CUDA_SUCCESS)
        mark(f, true);
    return rc; /* a push that failed is no reason not to launch */
}

/* The launch was made: what goes wrong now is not its error, and a fault of its kernel is told by the next call. */
static CUresult count_after(void *arg)
{
    struct flight *f = arg;
    if (f->mode == KP_RANGE_USER && f->marked)
        after_launch(arg);
    return CUDA_SUCCESS;
}

int kp_collector_count_begin(struct kp_collector *c, enum kp_range_mode mode, size_t room, char **why)
{
    struct flight *f = calloc(1, sizeof(*f));
    int rc = -ENOMEM;
    *why = NULL;
    if (f) {
        *f = (struct flight){.c = c, .plan = c->setup.one_pass, .mode = mode};
        f->hooks = (struct kp_issue_hooks){.before = count_before, .after = count_after, .arg = f};
        rc = f->plan && f->plan->n_groups ? take_lease(c, mode, &f->plan->groups[0], room, &f->lease) : -ENOENT;
    }
    if (!rc)
        rc = kp_range_begin(c->range, mode, f->lease->image);
    if (!rc)
        rc = kp_range_start(c->range);
    if (rc) {
        *why = kp_cupti_explain(c->setup.cupti, stage_words[KP_STAGE_START], rc);
        if (f && f->lease)
            atomic_store(&f->lease->busy, false);
        free(f);
        return -1;
    }
    c->counting = f;
    return 0;
}

const struct kp_issue_hooks *kp_collector_count_hooks(struct kp_collector *c)
{
    return &c->counting->hooks;
}

static void end_pass(struct flight *f)
{
    struct kp_replay_outcome *r = &f->out->replay;
    bool last = false;
    r->passes = 1;
    r->code = op_stop(f, &last);
    r->failed = r->code ? KP_STAGE_STOP : last ? KP_STAGE_NONE : KP_STAGE_PASSES;
    if (r->failed == KP_STAGE_NONE && (r->code = op_decode(f, 0)))
        r->failed = KP_STAGE_DECODE;
}

void kp_collector_count_end(struct kp_collector *c, const struct kp_window_job *job, struct kp_window_outcome *out)
{
    struct kp_window_job copy = *job;
    struct flight *f = c->counting;
    memset(out, 0, sizeof(*out));
    c->counting = NULL;
    f->job = &copy;
    f->out = out;
    f->expected_ranges = 0;
    for (size_t i = 0; i < job->n_launches; i++)
        f->expected_ranges += f->mode == KP_RANGE_AUTO || job->wanted[i];
    struct kp_flush *flush = c->flush;
    c->flush = NULL; /* takes no part */
    out->counters = new_counters(f);
    if (out->counters)
        map_ranges(f);
    end_pass(f);
    c->flush = flush;
    conclude(f);
    free(f);
    leave_disabled(c);
}
