/* PC sampling: the stall reasons of a launch's warps, at each instruction. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/providers/provider.h"
#include "cupti/source.h"
#include "report/options/options.h"

/* The device's buffer if its size is automatic, and a launch of the pass has more samples than the usual buffer holds:
 * room for 30 million, which a kernel reaches in a quarter of a second (H200). Making a larger one costs a second.
 * After that samples get rarer, by this power of 2, this often. */
enum { LARGE_BUFFER = 512 << 20, RARER = 2, MOST_RARER = 2, MOST_AGAIN = MOST_RARER + 1 };

/* A launch shorter than this never fills the usual buffer at the automatic interval, ns: 16 ms did (H200). */
enum { SHORT_NS = 4000000 };

struct pcsamp {
    struct kp_pcsamp *sampler;
    bool sampling;   /* sampling has started */
    size_t *reasons; /* their indices in the gathered names */
    int stuck;       /* CUPTI could not end it: nothing is sampled again */
    size_t buffer;   /* bytes, for the device's buffer in the current pass; 0 = as set up */
    bool flooded;    /* a launch of some pass had more samples than the usual buffer holds */
    bool no_large;   /* the device had no room for the large buffer */
    int rarer;       /* how often samples have got rarer since the first pass of the window */
    int interval;    /* the interval then; otherwise as set up */
    bool rare;       /* the next pass has rarer samples */
    bool grew;       /* the buffer has become large in this pass */
    bool full;       /* a launch of this window had more samples than the buffer holds, */
    bool again;      /* a launch of this pass had, and there is more room now: */
    bool repeats;    /* the pass is to be repeated */
};

static struct pcsamp *own_pcsamp(const struct kp_providers *x)
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
    struct pcsamp *p = own_pcsamp(x);
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

/* Enables sampling with the settings of the current pass. */
static int enable_sampling(struct kp_providers *x)
{
    const struct kp_providers_setup *s = &x->setup;
    struct pcsamp *p = own_pcsamp(x);
    return p->stuck ? p->stuck
                    : kp_pcsamp_open(s->cupti, s->ctx, p->rarer ? p->interval : s->pcsamp_interval,
                                     p->buffer ? p->buffer : s->pcsamp_buffer, &p->sampler);
}

/* Watches with the usual buffer, because the program launches meanwhile and needs the memory. */
static int pcsamp_watch(struct kp_providers *x)
{
    struct pcsamp *p = own_pcsamp(x);
    if (p->stuck || p->sampler)
        return p->stuck;
    p->buffer = 0;
    p->rarer = 0;
    return enable_sampling(x);
}

static int start(struct pcsamp *p)
{
    int rc = kp_pcsamp_start(p->sampler);
    p->sampling = !rc;
    return rc;
}

/* Stops, which may fail: the samples so far remain. */
static void stop(struct pcsamp *p)
{
    if (p->sampling)
        kp_pcsamp_stop(p->sampler);
    p->sampling = false;
}

static void pcsamp_end(struct kp_providers *x)
{
    struct pcsamp *p = own_pcsamp(x);
    stop(p);
    p->repeats = false;
    int rc = kp_pcsamp_close(p->sampler);
    p->stuck = p->stuck ? p->stuck : rc;
    p->sampler = NULL;
}

/* Returns true if a further pass may follow: there is none without replay. */
static bool may_repeat(const struct kp_providers *x)
{
    return !x->gathered->only;
}

/* Samples with another buffer or interval. KP_VENDOR (CUPTI 13.0): a buffer that was full is never emptied again. */
static int enable_anew(struct kp_providers *x)
{
    struct pcsamp *p = own_pcsamp(x);
    pcsamp_end(x);
    int rc = enable_sampling(x);
    if (rc && p->buffer) {
        p->buffer = 0;
        p->no_large = true;
        rc = enable_sampling(x);
    }
    return rc;
}

/* Returns true if the pass starts with the large buffer. A pass that may be repeated gets it only when a launch needs
 * it, to save the second that making it costs. */
static bool begins_large(const struct kp_providers *x)
{
    const struct pcsamp *p = own_pcsamp(x);
    bool is_short = x->setup.pcsamp_interval == KP_PCSAMP_INTERVAL_AUTO && x->longest_ns && x->longest_ns < SHORT_NS;
    return p->flooded && !p->no_large && !may_repeat(x) && !is_short;
}

static int pcsamp_begin(struct kp_providers *x)
{
    struct pcsamp *p = own_pcsamp(x);
    p->full = p->again = p->rare = false;
    bool large = begins_large(x);
    if (large) {
        p->buffer = LARGE_BUFFER;
        p->rarer = 0;
    }
    int rc = large ? enable_anew(x) : pcsamp_watch(x);
    return rc ? rc : name_reasons(x);
}

static void pass_over(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples)
{
    (void)arg, (void)pc, (void)reason, (void)samples;
}

/* Makes room for more samples: at once in the buffer, then by rarer samples in the next pass, in which launches that
 * have theirs keep them. False: there is no more. */
static bool make_room(const struct kp_providers *x)
{
    const struct kp_providers_setup *s = &x->setup;
    struct pcsamp *p = own_pcsamp(x);
    if (p->grew) /* the rest of this pass needs no more than that */
        return true;
    if (!s->pcsamp_buffer && !p->no_large && p->buffer != LARGE_BUFFER) {
        p->buffer = LARGE_BUFFER;
        return p->flooded = p->grew = true;
    }
    if (may_repeat(x) && s->pcsamp_interval == KP_PCSAMP_INTERVAL_AUTO && p->rarer < MOST_RARER)
        return p->rare = true;
    return false;
}

/* Resumes sampling in the current pass. */
static int go_on(struct kp_providers *x)
{
    int rc = enable_anew(x);
    own_pcsamp(x)->full &= !rc; /* otherwise that is why nothing is sampled */
    return rc ? rc : start(own_pcsamp(x));
}

static int pcsamp_start(struct kp_providers *x)
{
    struct pcsamp *p = own_pcsamp(x);
    p->repeats = p->grew = false;
    if (!p->rare)
        return start(p);
    p->interval = kp_pcsamp_interval(p->sampler) + RARER;
    p->rarer++;
    p->rare = false;
    return go_on(x);
}

/* Drops samples that no launch gets: those of launches without a result, and of a launch that has kept its own_pcsamp
 * from an earlier pass. */
static int drop_samples(struct kp_providers *x)
{
    struct kp_pcsamp_totals others = {0};
    int rc = kp_pcsamp_take(own_pcsamp(x)->sampler, &others, pass_over, NULL);
    return rc == KP_CUPTI_OUT_OF_MEMORY ? go_on(x) : rc;
}

static int pcsamp_before(struct kp_providers *x, struct kp_counters_launch *l)
{
    (void)l;
    return drop_samples(x);
}

static void take_sample(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples)
{
    const struct taker *t = arg;
    kp_counters_add(t->launch, kp_codes_id(t->codes, pc->crc, pc->function), pc->offset, t->reasons[reason], samples);
}

static int pcsamp_after(struct kp_providers *x, struct kp_counters_launch *l)
{
    struct pcsamp *p = own_pcsamp(x);
    struct taker t = {x->setup.codes, p->reasons, l};
    struct kp_pcsamp_totals totals = {0};
    if (l->sampled)
        return drop_samples(x);
    int rc = kp_pcsamp_take(p->sampler, &totals, take_sample, &t);
    l->samples = totals.samples;
    l->dropped = totals.dropped;
    l->interval = kp_pcsamp_interval(p->sampler);
    l->buffer = kp_pcsamp_buffer(p->sampler);
    l->sampled = !rc;
    if (rc != KP_CUPTI_OUT_OF_MEMORY)
        return rc;
    kp_counters_drop(l);
    bool more = make_room(x);
    p->full = true;
    p->again |= more;
    if (!may_repeat(x))
        return rc;
    if (!more) {
        l->lost = &kp_provider_pcsamp;
        l->why = KP_REASON_FLOODED;
        kp_provider_complain(x, &kp_provider_pcsamp, false, rc);
    }
    return go_on(x);
}

static int pcsamp_stop(struct kp_providers *x, bool *last)
{
    struct pcsamp *p = own_pcsamp(x);
    *last = !p->again;
    p->again = false;
    if (*last) {
        pcsamp_end(x);
        return 0;
    }
    stop(p);
    p->repeats = true;
    return 0;
}

/* Also ends it if the pass was not repeated because the window has failed. */
static void pcsamp_over(struct kp_providers *x)
{
    if (own_pcsamp(x)->repeats)
        pcsamp_end(x);
}

static struct kp_why pcsamp_explain(const struct kp_providers *x, int code)
{
    const struct pcsamp *p = own_pcsamp(x);
    if (code != KP_CUPTI_OUT_OF_MEMORY || !p->full)
        return kp_why_of(KP_REASON_NONE, NULL);
    enum kp_reason reason = p->again ? KP_REASON_FLOODED_ONCE : KP_REASON_FLOODED;
    const char *what = kp_reason_text(kp_provider_pcsamp.what);
    return kp_why_of(reason, kp_asprintf("%s of a launch: %s", what, kp_reason_text(reason)));
}

static void pcsamp_close(struct kp_providers *x, bool alive)
{
    struct pcsamp *p = own_pcsamp(x);
    if (alive)
        kp_pcsamp_close(p->sampler);
    else
        kp_pcsamp_abandon(p->sampler);
    free(p->reasons);
}

static int pcsamp_store(const struct kp_counters *g, struct kp_counters_launch *l, struct kp_result *r)
{
    int rc = 0;
    (void)g;
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
    .what = KP_REASON_NOT_SAMPLED,
    .size = sizeof(struct pcsamp),
    .flushes = true,
    .adds_up = true,
    .watch = pcsamp_watch,
    .retries = MOST_AGAIN,
    .begin = pcsamp_begin,
    .start = pcsamp_start,
    .before = pcsamp_before,
    .after = pcsamp_after,
    .stop = pcsamp_stop,
    .over = pcsamp_over,
    .end = pcsamp_end,
    .explain = pcsamp_explain,
    .close = pcsamp_close,
    .store = pcsamp_store,
};
