/* PM sampling: counters of the device at fixed intervals while a launch runs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/room.h"
#include "collectors/providers/pm_list.h"
#include "collectors/providers/provider.h"
#include "cupti/pm.h"

enum {
    AUTO_INTERVAL_NS = 1500, /* ncu's on Hopper */
    AUTO_INTERVAL_CYCLES = 20000,
    MOST_AUTO_SAMPLES = 3072, /* per launch: longer launches get a longer interval */
    IDLE_SAMPLES = 128,       /* between the start of sampling and the launch: 40 to 60 were seen, */
    LEAST_LEAD = 16,          /* of them before the start call returns: 24 to 32 were seen; */
    SPARE_SAMPLES = 32,       /* and some after the launch */
    SAMPLE_BYTES = 36 << 10,  /* of device memory: 31 MB for 850 samples on GH100 */
    LEAST_BUFFER = 30998528,  /* ncu's on Hopper */
    MOST_BUFFER = 512 << 20,
    LEAST_DECODED = 256, /* samples in the counter data at first; its room changes in steps, because each costs time */
    DECODED_STEP = 32,
    MOST_DECODED = 4096,
    SHARE = 8,          /* weight of a new value in a mean over launches: one part in this many */
    QUIET_SAMPLES = 32, /* without an active SM after a launch: it has ended */
    MOST_SAMPLES = 1 << 20,
};

/* Show when a launch ran; `throughout`: in each of its samples. */
static const struct {
    const char *metric;
    bool throughout;
} activity[] = {{"sm__cycles_active", true},
                {"ctas_launched", false},
                {"sm__inst_executed", false},
                {"sm__warps_active", true},
                {"smsp__warps_active", true}};
enum { ACTIVITIES = sizeof(activity) / sizeof(*activity) };

/* Samples of one launch and group: one row each. */
struct samples {
    double *values; /* of all metrics of the group, sample by sample */
    uint64_t *begin_ns, *end_ns;
    size_t n, cap;
};

struct pm {
    bool prepared;
    uint8_t *availability; /* NULL = unknown: all counters are assumed available */
    struct kp_host *host;
    struct kp_pm_list list;
    struct kp_pm_groups groups;
    struct kp_pm *sampler;
    int stuck; /* CUPTI's code after a sampler could not be stopped, which prevents all further ones */
    struct samples samples;
    uint64_t started_ns, ended_ns;     /* by the host's clock: the start has returned; the launch has ended */
    uint64_t start_ns, usual_start_ns; /* duration of the start call, and the average of earlier ones */
    size_t lead;                       /* samples before the start call returned, about the most so far; 0 = unknown */
};

static struct pm *own_pm(const struct kp_providers *x)
{
    return kp_provider_own(x, &kp_provider_pm);
}

/* ---- list of metrics ---- */

static int prepare(struct kp_providers *x, struct pm *p)
{
    const struct kp_providers_setup *s = &x->setup;
    if (!kp_pm_available(s->cupti))
        return -ENOSYS;
    /* Avoids metrics that the machine lacks: one of them (NVLink, CUPTI 13.0) prevents all sampling. */
    size_t size;
    kp_pm_availability(s->cupti, s->ordinal, &p->availability, &size);
    int rc = kp_pm_host(s->cupti, s->chip, p->availability, &p->host);
    if (!rc)
        rc = kp_providers_pm_list(p->host, s->cc_major, s->cc_minor, s->sections, s->n_sections, s->metrics, &p->list);
    if (!rc)
        rc = kp_pm_schedule(s->cupti, s->chip, p->availability, (const char *const *)p->list.names, p->list.n,
                            (size_t)s->pm_most_passes, &p->groups);
    return rc;
}

/* Reports in one line the metrics that are not sampled, and the remedy. */
static void tell_left_out(struct kp_providers *x, const struct pm *p)
{
    size_t several = 0, no_room = 0;
    const char *first = NULL;
    char *text;
    for (size_t i = 0; i < p->groups.n_left_out; i++) {
        const struct kp_pm_left_out *l = &p->groups.left_out[i];
        several += l->why == KP_PM_SEVERAL_PASSES;
        no_room += l->why == KP_PM_NO_ROOM;
        first = !first && l->why != KP_PM_UNKNOWN ? l->name : first;
    }
    if (!first)
        return;
    int n = no_room
                ? asprintf(&text,
                           "%zu of %zu metrics are not sampled over time, %s first: KPROF_PM_SAMPLING_MAX_PASSES=%zu "
                           "leaves them no pass on %s",
                           several + no_room, p->list.n, first, (size_t)x->setup.pm_most_passes, x->setup.chip)
                : asprintf(&text,
                           "%zu of %zu metrics are not sampled over time, %s first: they cannot be counted in one pass "
                           "on %s",
                           several, p->list.n, first, x->setup.chip);
    kp_provider_tell(x, &kp_provider_pm, n < 0 ? NULL : text);
}

static size_t pm_groups(struct kp_providers *x)
{
    struct pm *p = own_pm(x);
    if (!p->prepared) {
        int rc = prepare(x, p);
        if (rc)
            kp_provider_complain(x, &kp_provider_pm, false, rc);
        else
            tell_left_out(x, p);
        p->prepared = true;
    }
    return p->groups.n;
}

static int pm_cost(const struct kp_providers_query *q, size_t *metrics, size_t *passes)
{
    struct kp_host *host = NULL;
    struct kp_pm_list list = {.names = NULL};
    struct kp_pm_groups groups = {.at = NULL};
    if (!kp_pm_available(q->cupti) || kp_pm_host(q->cupti, q->chip, NULL, &host))
        return 0;
    int rc = kp_providers_pm_list(host, q->major, q->minor, q->sections, q->n_sections, "", &list);
    if (!rc)
        rc = kp_pm_schedule(q->cupti, q->chip, NULL, (const char *const *)list.names, list.n, 0, &groups);
    if (!rc) {
        *metrics += list.n - groups.n_left_out;
        *passes += groups.n;
        kp_pm_groups_free(&groups);
    }
    kp_providers_pm_list_free(&list);
    kp_host_close(host);
    return rc;
}

/* ---- settings ---- */

static uint64_t auto_interval(const struct kp_providers *x)
{
    uint64_t interval = AUTO_INTERVAL_NS;
    while (x->longest_ns / interval > MOST_AUTO_SAMPLES)
        interval *= 2;
    return interval;
}

/* Returns the number of samples in that time. A cycle lasts at least half a nanosecond. */
static uint64_t samples_in(uint64_t ns, enum kp_pm_trigger trigger, uint64_t interval)
{
    return ns / (trigger == KP_PM_NANOSECONDS ? interval : interval / 2 + 1);
}

static struct kp_pm_settings settings(const struct kp_providers *x)
{
    const struct kp_providers_setup *s = &x->setup;
    struct kp_pm_settings set = {.trigger = kp_pm_trigger(s->cc_major, s->cc_minor),
                                 .interval = s->pm_interval,
                                 .buffer_size = s->pm_buffer,
                                 .max_samples = LEAST_DECODED};
    if (!set.interval)
        set.interval = set.trigger == KP_PM_NANOSECONDS ? auto_interval(x) : AUTO_INTERVAL_CYCLES;
    uint64_t samples = samples_in(x->longest_ns, set.trigger, set.interval) + IDLE_SAMPLES;
    if (!set.buffer_size) {
        set.buffer_size = LEAST_BUFFER;
        while (set.buffer_size / SAMPLE_BYTES < samples && set.buffer_size < MOST_BUFFER)
            set.buffer_size *= 2;
    }
    return set;
}

static int pm_begin(struct kp_providers *x)
{
    struct pm *p = own_pm(x);
    struct kp_pm_settings set = settings(x);
    int rc = p->stuck ? p->stuck : kp_pm_open(x->setup.cupti, x->setup.ordinal, &p->sampler);
    if (!rc)
        rc = kp_pm_configure(p->sampler, &p->groups.at[x->part], &set);
    if (rc)
        return rc;
    x->gathered->pm_interval = set.interval;
    x->gathered->pm_cycles = set.trigger == KP_PM_CYCLES;
    x->gathered->pm_groups = p->groups.n;
    x->gathered->pm_buffer = set.buffer_size;
    return 0;
}

static int pm_before(struct kp_providers *x, struct kp_counters_launch *l)
{
    (void)l;
    struct pm *p = own_pm(x);
    uint64_t from = kp_clock_ns();
    int rc = kp_pm_start(p->sampler);
    p->started_ns = kp_clock_ns();
    p->start_ns = p->started_ns - from;
    return rc;
}

/* Returns how much longer than usual the start call took: the thread may have been paused in it. */
static uint64_t paused_ns(struct pm *p)
{
    uint64_t usual = p->usual_start_ns ? p->usual_start_ns : p->start_ns;
    p->usual_start_ns = (usual * (SHARE - 1) + p->start_ns) / SHARE + 1;
    return p->start_ns > 2 * usual ? p->start_ns - usual : 0;
}

/* Returns the number of samples in that time. */
static uint64_t taken_in(const struct kp_counters *g, uint64_t ns)
{
    return samples_in(ns, g->pm_cycles ? KP_PM_CYCLES : KP_PM_NANOSECONDS, g->pm_interval);
}

/* Makes room for the samples up to the launch's end; without memory, those that fit are read. Sampling continues for
 * 0.2 ms after it, twice as long as until then, and decoding costs 0.15 ms for each sample with room. Sampling begins
 * 40 us before the start call returns, however long that takes, except for pauses.
 *
 * KP_VENDOR: samples that do not fit into the counter data at once are lost (CUPTI 13.0). */
static void make_decoding_room(const struct kp_providers *x)
{
    struct pm *p = own_pm(x);
    uint64_t ran_ns = p->ended_ns - p->started_ns + paused_ns(p);
    uint64_t samples = (p->lead ? p->lead : IDLE_SAMPLES) + taken_in(x->gathered, ran_ns) + SPARE_SAMPLES;
    samples = (samples / DECODED_STEP + 1) * DECODED_STEP;
    if (!p->lead && samples < LEAST_DECODED)
        samples = LEAST_DECODED;
    kp_pm_make_room(p->sampler, samples < MOST_DECODED ? (uint32_t)samples : MOST_DECODED);
}

/* Learns from a launch visible in the samples how many come before the start call returns; `to` is the launch's end. A
 * larger number fades over time: other work may have looked like the launch. */
static void learn_lead(struct pm *p, const struct kp_counters *g, size_t to)
{
    uint64_t since = taken_in(g, p->ended_ns - p->started_ns);
    size_t lead = to > since + LEAST_LEAD ? to - since : LEAST_LEAD;
    p->lead = lead > p->lead ? lead : p->lead - (p->lead - lead) / SHARE;
}

/* ---- samples ---- */

static int make_sample_room(struct samples *s, size_t metrics)
{
    if (s->n < s->cap)
        return 0;
    size_t cap = s->cap ? 2 * s->cap : LEAST_DECODED;
    double *values = realloc(s->values, cap * metrics * sizeof(*values));
    if (values)
        s->values = values;
    uint64_t *begin = realloc(s->begin_ns, cap * sizeof(*begin));
    if (begin)
        s->begin_ns = begin;
    uint64_t *end = realloc(s->end_ns, cap * sizeof(*end));
    if (end)
        s->end_ns = end;
    if (!values || !begin || !end)
        return -ENOMEM;
    s->cap = cap;
    return 0;
}

static void free_samples(struct samples *s)
{
    free(s->values);
    free(s->begin_ns);
    free(s->end_ns);
    *s = (struct samples){.n = 0};
}

/* Returns true if a metric shows that a launch runs; `throughout`: in each of its samples. */
static bool tells_activity(const char *metric, bool throughout)
{
    for (size_t i = 0; i < ACTIVITIES; i++)
        if (strstr(metric, activity[i].metric) && (activity[i].throughout || !throughout))
            return true;
    return false;
}

static bool shows_activity(const struct kp_config *group)
{
    for (size_t m = 0; m < group->n_names; m++)
        if (tells_activity(group->names[m], false))
            return true;
    return false;
}

/* Appends the times of `n` decoded samples, without values. */
static int add_times(struct pm *p, size_t n, size_t metrics)
{
    struct samples *s = &p->samples;
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        rc = make_sample_room(s, metrics);
        if (!rc)
            rc = kp_pm_times(p->sampler, i, &s->begin_ns[s->n], &s->end_ns[s->n]);
        for (size_t m = 0; !rc && m < metrics; m++)
            s->values[s->n * metrics + m] = NAN;
        s->n += !rc;
    }
    return rc;
}

/* Returns true if a value of that metric shows that a launch runs. */
static bool is_active(double value)
{
    return value > 0 && isfinite(value);
}

/* Evaluates the metrics that show activity in sample `i`. Returns true if it is active throughout. */
static int add_one_activity(struct pm *p, const struct kp_config *group, size_t i, const char *const *names, size_t n,
                            double *values, bool *on)
{
    double *all = p->samples.values + i * group->n_names;
    int rc = kp_pm_values(p->sampler, p->host, i, names, n, values);
    *on = false;
    for (size_t m = 0, k = 0; !rc && m < group->n_names; m++) {
        if (!tells_activity(group->names[m], false))
            continue;
        all[m] = values[k++];
        *on |= is_active(all[m]) && tells_activity(group->names[m], true);
    }
    return rc;
}

/* Evaluates the metrics that show activity for the first samples decoded, until the launch has ended: at the earliest
 * after the time that the host measured for it, because the launch may pause, and others may have been active before
 * it. *any: a metric shows it. One call for all metrics of a sample costs little more than for one. */
static int add_activity(struct pm *p, const struct kp_config *group, bool *any)
{
    const struct samples *s = &p->samples;
    uint64_t ran_ns = p->ended_ns - p->started_ns, began = s->n > 1 ? s->begin_ns[1] : 0;
    const char **names = malloc((group->n_names + 1) * sizeof(*names));
    double *values = malloc((group->n_names + 1) * sizeof(*values));
    size_t n = 0, quiet = 0;
    bool on, begun = false;
    int rc = names && values ? 0 : -ENOMEM;
    for (size_t m = 0; !rc && m < group->n_names; m++)
        if (tells_activity(group->names[m], false))
            names[n++] = group->names[m];
    *any = n;
    for (size_t i = 0; !rc && n && i < s->n && quiet < QUIET_SAMPLES; i++) {
        rc = add_one_activity(p, group, i, names, n, values, &on);
        begun |= on && i; /* the first sample belongs to no launch, see below */
        quiet = begun && !on && s->begin_ns[i] > began + ran_ns ? quiet + 1 : 0;
    }
    free((void *)names);
    free(values);
    return rc;
}

/* Finds the samples [*from, *to) of the launch; all if no metric of the group shows its activity. The first sample
 * after a start began when the sampler was made, so it belongs to no launch. */
static void find_launch(const struct samples *s, const struct kp_config *group, size_t *from, size_t *to)
{
    bool seen = false, known = false;
    size_t first = s->n > 1;
    *from = first;
    *to = s->n;
    for (size_t m = 0; m < group->n_names; m++) {
        if (!tells_activity(group->names[m], false))
            continue;
        known = true;
        for (size_t i = first; i < s->n; i++) {
            if (!is_active(s->values[i * group->n_names + m]))
                continue;
            if (!seen || i < *from)
                *from = i;
            if (!seen || i + 1 > *to)
                *to = i + 1;
            seen = true;
        }
    }
    if (known && !seen)
        *to = *from;
}

/* Evaluates the samples [at, s->n), the last ones decoded. Of the first decoding, only the launch's: most are from
 * before its start or after its end. *ends: the launch has ended, and no further sample matters. */
static int add_values(struct pm *p, const struct kp_config *group, size_t at, bool *ends)
{
    const struct samples *s = &p->samples;
    size_t from = at, to = s->n;
    bool known = false;
    int rc = at ? 0 : add_activity(p, group, &known);
    if (known)
        find_launch(s, group, &from, &to);
    *ends = known && from < to && to < s->n;
    for (size_t i = from; !rc && i < to; i++)
        rc = kp_pm_values(p->sampler, p->host, i - at, group->names, group->n_names, s->values + i * group->n_names);
    return rc;
}

/* Reads the samples since the start, at least to the launch's end; *full: some may not have had room. */
static int read_samples(struct pm *p, const struct kp_config *group, bool *lost, bool *full)
{
    struct samples *s = &p->samples;
    struct kp_pm_decoded d = {.more = true};
    bool ends = false;
    int rc = 0;
    s->n = 0;
    while (!rc && d.more && !ends && s->n < MOST_SAMPLES) {
        size_t before = s->n;
        rc = kp_pm_decode(p->sampler, &d);
        *lost |= !rc && d.overflow;
        *full |= !rc && before && !d.n; /* reported full, but nothing followed */
        d.more &= d.n > 0;              /* a library that always claims to have more must not hang the program */
        if (!rc)
            rc = add_times(p, d.n, group->n_names);
        if (!rc)
            rc = add_values(p, group, before, &ends);
    }
    return rc;
}

static int keep_series(struct pm *p, const struct kp_config *group, size_t metric, size_t from, size_t to,
                       uint64_t interval, struct kp_counters_launch *l)
{
    const struct samples *s = &p->samples;
    struct kp_metric_props props;
    if (!KP_ROOM(l->series, l->n_series))
        return -ENOMEM;
    struct kp_series one = {.name = strdup(group->names[metric]), .n_values = to - from};
    one.unit = strdup(kp_host_metric(p->host, group->names[metric], &props) ? "" : props.unit);
    one.values = malloc((to - from + 1) * sizeof(*one.values));
    if (!one.name || !one.unit || !one.values) {
        kp_series_free(&one);
        return -ENOMEM;
    }
    for (size_t i = from; i < to; i++)
        one.values[i - from] = s->values[i * group->n_names + metric];
    /* The timer sometimes misses the interval slightly: the mean counts. */
    one.interval_ns =
        to > from ? (double)(s->end_ns[to - 1] - s->begin_ns[from]) / (double)(to - from) : (double)interval;
    one.start_ns = one.interval_ns;
    l->series[l->n_series++] = one;
    return 0;
}

static int pm_after(struct kp_providers *x, struct kp_counters_launch *l)
{
    struct pm *p = own_pm(x);
    const struct kp_config *group = &p->groups.at[x->part];
    size_t from, to;
    bool lost = false, full = false;
    p->ended_ns = kp_clock_ns();
    int rc = kp_pm_stop(p->sampler);
    if (rc)
        return rc;
    make_decoding_room(x);
    rc = read_samples(p, group, &lost, &full);
    if (rc)
        return rc;
    find_launch(&p->samples, group, &from, &to);
    bool cut = full && (to == p->samples.n || from == to); /* lost idle samples do not matter */
    if (cut)
        p->lead = p->lead < MOST_DECODED / 2 ? 2 * p->lead + IDLE_SAMPLES : MOST_DECODED;
    else if (shows_activity(group) && from < to)
        learn_lead(p, x->gathered, to);
    l->pm_dropped += lost || cut;
    for (size_t m = 0; !rc && m < group->n_names; m++)
        rc = keep_series(p, group, m, from, to, x->gathered->pm_interval, l);
    return rc;
}

static void pm_end(struct kp_providers *x)
{
    struct pm *p = own_pm(x);
    int rc = kp_pm_close(p->sampler);
    p->stuck = p->stuck ? p->stuck : rc;
    p->sampler = NULL;
    free_samples(&p->samples);
}

static void pm_close(struct kp_providers *x, bool alive)
{
    struct pm *p = own_pm(x);
    if (alive)
        kp_pm_close(p->sampler);
    else
        kp_pm_abandon(p->sampler);
    free_samples(&p->samples);
    kp_pm_groups_free(&p->groups);
    kp_providers_pm_list_free(&p->list);
    kp_host_close(p->host);
    free(p->availability);
}

static int pm_store(const struct kp_counters *g, struct kp_counters_launch *l, struct kp_result *r)
{
    if (!l->n_series)
        return 0;
    int rc = g->pm_cycles ? kp_result_set_count(r, "profiler__pmsampler_interval_cycles", "cycle", g->pm_interval)
                          : kp_result_set_count(r, "profiler__pmsampler_interval_time", "ns", g->pm_interval);
    if (!rc)
        rc = kp_result_set_count(r, "profiler__pmsampler_pass_groups", "", g->pm_groups);
    if (!rc)
        rc = kp_result_set_count(r, "profiler__pmsampler_buffer_size_bytes", "byte", g->pm_buffer);
    if (!rc)
        rc = kp_result_set_count(r, "profiler__pmsampler_dropped_samples", "", l->pm_dropped);
    for (size_t i = 0; !rc && i < l->n_series; i++)
        rc = kp_result_add_series(r, &l->series[i]);
    return rc;
}

const struct kp_provider kp_provider_pm = {
    .bit = KP_PROVIDER_PM,
    .what = KP_REASON_PM_NOT_SAMPLED,
    .size = sizeof(struct pm),
    .flushes = true,
    .by_launch = true,
    .by_time = true,
    .cost = pm_cost,
    .groups = pm_groups,
    .begin = pm_begin,
    .before = pm_before,
    .after = pm_after,
    .end = pm_end,
    .close = pm_close,
    .store = pm_store,
};
