/* PC sampling and SASS metrics: what is counted at each instruction of the launches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/providers/provider.h"

static const struct {
    const char *metric, *shown;
} counted[] = {
#define KP_SASS(metric, shown, unit) {metric, shown},
#include "collectors/providers/sass_metrics.def"
};
enum { COUNTED = sizeof(counted) / sizeof(*counted) };

static size_t one_pass(struct kp_providers *x)
{
    (void)x;
    return 1;
}

static void add_count(struct kp_gathered_launch *l, struct kp_codes *codes, const struct kp_pc *pc, size_t metric,
                      uint64_t value)
{
    if (l->n_counts == l->cap_counts) {
        size_t cap = l->cap_counts ? 2 * l->cap_counts : 256;
        struct kp_gathered_count *grown = realloc(l->counts, cap * sizeof(*grown));
        if (!grown) {
            l->short_of_memory = true;
            return;
        }
        l->counts = grown;
        l->cap_counts = cap;
    }
    uint64_t code = kp_codes_id(codes, pc->crc, pc->function);
    if (code && code <= UINT32_MAX)
        l->counts[l->n_counts++] = (struct kp_gathered_count){(uint32_t)code, pc->offset, (uint32_t)metric, value};
    else
        l->short_of_memory = true;
}

/* Where the counts of a launch go. */
struct taker {
    struct kp_providers *x;
    struct kp_gathered_launch *launch;
};

/* ---- PC sampling ---- */

static int name_reasons(struct kp_providers *x)
{
    size_t n;
    const char *const *names = kp_pcsamp_reasons(x->pcsamp, &n);
    free(x->reasons);
    x->reasons = calloc(n + 1, sizeof(*x->reasons));
    if (!x->reasons)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        long at = *names[i] ? kp_providers_name(x->gathered, names[i]) : 0;
        if (at < 0)
            return -ENOMEM;
        x->reasons[i] = (size_t)at;
    }
    return 0;
}

static int pcsamp_watch(struct kp_providers *x)
{
    return x->pcsamp ? 0
                     : kp_pcsamp_open(x->setup.cupti, x->setup.ctx, x->setup.pcsamp_interval, x->setup.pcsamp_buffer,
                                      &x->pcsamp);
}

static int pcsamp_begin(struct kp_providers *x)
{
    int rc = pcsamp_watch(x);
    if (!rc)
        rc = name_reasons(x);
    if (!rc)
        rc = kp_pcsamp_start(x->pcsamp);
    if (rc)
        return rc;
    x->gathered->pcsamp_interval = kp_pcsamp_interval(x->pcsamp);
    x->gathered->pcsamp_buffer = kp_pcsamp_buffer(x->pcsamp);
    x->sampling = true;
    return 0;
}

static void pass_over(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples)
{
    (void)arg, (void)pc, (void)reason, (void)samples;
}

/* Launches that have no result were sampled, too. */
static int pcsamp_before(struct kp_providers *x, struct kp_gathered_launch *l)
{
    struct kp_pcsamp_totals others = {0};
    (void)l;
    return kp_pcsamp_take(x->pcsamp, &others, pass_over, NULL);
}

static void take_sample(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples)
{
    const struct taker *t = arg;
    add_count(t->launch, t->x->setup.codes, pc, t->x->reasons[reason], samples);
}

static int pcsamp_after(struct kp_providers *x, struct kp_gathered_launch *l)
{
    struct taker t = {x, l};
    int rc = kp_pcsamp_take(x->pcsamp, &l->samples, take_sample, &t);
    l->sampled = !rc;
    return rc;
}

static void pcsamp_end(struct kp_providers *x)
{
    if (x->sampling)
        kp_pcsamp_stop(x->pcsamp);
    x->sampling = false;
    kp_pcsamp_close(x->pcsamp);
    x->pcsamp = NULL;
}

static void pcsamp_close(struct kp_providers *x, bool alive)
{
    if (alive)
        kp_pcsamp_close(x->pcsamp);
    else
        kp_pcsamp_abandon(x->pcsamp);
    x->pcsamp = NULL;
    free(x->reasons);
    x->reasons = NULL;
}

const struct kp_provider kp_provider_pcsamp = {
    .bit = KP_PROVIDER_PCSAMP,
    .what = "warp states are not sampled",
    .flushes = true,
    .passes = one_pass,
    .watch = pcsamp_watch,
    .begin = pcsamp_begin,
    .before = pcsamp_before,
    .after = pcsamp_after,
    .end = pcsamp_end,
    .close = pcsamp_close,
};

/* ---- SASS metrics ---- */

static const char *shown_name(const char *metric)
{
    size_t i = 0;
    while (i + 1 < COUNTED && strcmp(counted[i].metric, metric) != 0)
        i++;
    return counted[i].shown;
}

static int sass_begin(struct kp_providers *x)
{
    const char *names[COUNTED];
    size_t n;
    for (size_t i = 0; i < COUNTED; i++)
        names[i] = counted[i].metric;
    int rc = kp_sass_configure(x->setup.cupti, x->setup.chip, x->setup.ordinal, names, COUNTED, &x->sass);
    if (rc)
        return rc;
    /* The names of one list are new to those gathered, so they follow each other. */
    const char *const *metrics = kp_sass_metrics(x->sass, &n);
    for (size_t i = 0; i < n; i++) {
        long at = kp_providers_name(x->gathered, shown_name(metrics[i]));
        if (at < 0)
            return -ENOMEM;
        if (!i)
            x->sass_names = (size_t)at;
    }
    return 0;
}

static int sass_before(struct kp_providers *x, struct kp_gathered_launch *l)
{
    (void)l;
    int rc = kp_sass_begin(x->sass, x->setup.ctx);
    x->sass_open = !rc;
    return rc;
}

static void take_value(void *arg, const struct kp_pc *pc, size_t metric, uint64_t value)
{
    const struct taker *t = arg;
    add_count(t->launch, t->x->setup.codes, pc, t->x->sass_names + metric, value);
}

static int sass_after(struct kp_providers *x, struct kp_gathered_launch *l)
{
    struct taker t = {x, l};
    int rc = kp_sass_end(x->sass, x->setup.ctx, take_value, &t);
    x->sass_open = false;
    return rc;
}

/* A launch that was refused has not ended. */
static void sass_end(struct kp_providers *x)
{
    if (x->sass_open)
        kp_sass_end(x->sass, x->setup.ctx, pass_over, NULL);
    x->sass_open = false;
}

static void sass_close(struct kp_providers *x, bool alive)
{
    (void)x;
    (void)alive;
}

const struct kp_provider kp_provider_sass = {
    .bit = KP_PROVIDER_SASS,
    .what = "instructions are not counted",
    .passes = one_pass,
    .begin = sass_begin,
    .before = sass_before,
    .after = sass_after,
    .end = sass_end,
    .close = sass_close,
};
