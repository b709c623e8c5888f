/* PC sampling: the stall reasons of a launch's warps, at each instruction. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/providers/provider.h"
#include "cupti/source.h"
#include "report/options/options.h"

struct pcsamp {
    struct kp_pcsamp *sampler;
    bool sampling;   /* sampling has started */
    size_t *reasons; /* their indices in the gathered names */
    int stuck;       /* CUPTI could not end it: nothing is sampled again */
};

static struct pcsamp *own(const struct kp_providers *x)
{
    return kp_provider_own(x, &kp_provider_pcsamp);
}

/* The destination of a launch's samples. */
struct taker {
    struct kp_codes *codes;
    const size_t *reasons;
    struct kp_counters_launch *launch;
};

static int name_reasons(struct kp_providers *x)
{
    struct pcsamp *p = own(x);
    size_t n;
    const char *const *names = kp_pcsamp_reasons(p->sampler, &n);
    free(p->reasons);
    p->reasons = calloc(n + 1, sizeof(*p->reasons));
    if (!p->reasons)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        long at = *names[i] ? kp_counters_name(x->gathered, names[i]) : 0;
        if (at < 0)
            return -ENOMEM;
        p->reasons[i] = (size_t)at;
    }
    return 0;
}

static int pcsamp_watch(struct kp_providers *x)
{
    const struct kp_providers_setup *s = &x->setup;
    struct pcsamp *p = own(x);
    if (p->stuck)
        return p->stuck;
    return p->sampler ? 0 : kp_pcsamp_open(s->cupti, s->ctx, s->pcsamp_interval, s->pcsamp_buffer, &p->sampler);
}

static int pcsamp_begin(struct kp_providers *x)
{
    struct pcsamp *p = own(x);
    int rc = pcsamp_watch(x);
    if (!rc)
        rc = name_reasons(x);
    if (!rc)
        rc = kp_pcsamp_start(p->sampler);
    if (rc)
        return rc;
    x->gathered->pcsamp_interval = kp_pcsamp_interval(p->sampler);
    x->gathered->pcsamp_buffer = kp_pcsamp_buffer(p->sampler);
    p->sampling = true;
    return 0;
}

static void pass_over(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples)
{
    (void)arg, (void)pc, (void)reason, (void)samples;
}

/* Drops the samples of launches without a result. */
static int pcsamp_before(struct kp_providers *x, struct kp_counters_launch *l)
{
    struct kp_pcsamp_totals others = {0};
    (void)l;
    return kp_pcsamp_take(own(x)->sampler, &others, pass_over, NULL);
}

static void take_sample(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples)
{
    const struct taker *t = arg;
    kp_counters_add(t->launch, kp_codes_id(t->codes, pc->crc, pc->function), pc->offset, t->reasons[reason], samples);
}

static int pcsamp_after(struct kp_providers *x, struct kp_counters_launch *l)
{
    struct pcsamp *p = own(x);
    struct taker t = {x->setup.codes, p->reasons, l};
    struct kp_pcsamp_totals totals = {0};
    int rc = kp_pcsamp_take(p->sampler, &totals, take_sample, &t);
    l->samples = totals.samples;
    l->dropped = totals.dropped;
    l->sampled = !rc;
    return rc;
}

static void pcsamp_end(struct kp_providers *x)
{
    struct pcsamp *p = own(x);
    if (p->sampling)
        kp_pcsamp_stop(p->sampler);
    p->sampling = false;
    int rc = kp_pcsamp_close(p->sampler);
    p->stuck = p->stuck ? p->stuck : rc;
    p->sampler = NULL;
}

static void pcsamp_close(struct kp_providers *x, bool alive)
{
    struct pcsamp *p = own(x);
    if (alive)
        kp_pcsamp_close(p->sampler);
    else
        kp_pcsamp_abandon(p->sampler);
    free(p->reasons);
}

static int pcsamp_store(const struct kp_counters *g, struct kp_counters_launch *l, struct kp_result *r)
{
    int rc = 0;
    if (!l->sampled)
        return 0;
#define KP_PCSAMP(name, unit, value)                                                                                   \
    if (!rc)                                                                                                           \
        rc = kp_result_set_count(r, name, unit, value);
#include "collectors/providers/pcsamp_metrics.def"
    return rc;
}

int kp_providers_pcsamp_interval(int option)
{
    int interval = option == KP_OPTION_AUTO ? KP_PCSAMP_INTERVAL_AUTO : option;
    return interval < KP_PCSAMP_INTERVAL_MAX ? interval : KP_PCSAMP_INTERVAL_MAX;
}

const struct kp_provider kp_provider_pcsamp = {
    .bit = KP_PROVIDER_PCSAMP,
    .what = "warp states are not sampled",
    .size = sizeof(struct pcsamp),
    .flushes = true,
    .adds_up = true,
    .watch = pcsamp_watch,
    .begin = pcsamp_begin,
    .before = pcsamp_before,
    .after = pcsamp_after,
    .end = pcsamp_end,
    .close = pcsamp_close,
    .store = pcsamp_store,
};
