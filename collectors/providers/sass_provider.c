/* SASS metrics: counts at each instruction of the launches, from patched code. */
#include <errno.h>
#include <string.h>

#include "collectors/providers/provider.h"
#include "cupti/source.h"

static const struct {
    const char *metric, *shown;
} counted[] = {
#define KP_SASS(metric, shown, unit) {metric, shown},
#include "collectors/providers/sass_metrics.def"
};
enum { COUNTED = sizeof(counted) / sizeof(*counted) };

struct sass {
    struct kp_sass *list;
    size_t first_name; /* the index of its first metric in the gathered names */
    bool open;         /* a launch is being counted */
};

static struct sass *own_sass(const struct kp_providers *x)
{
    return kp_provider_own(x, &kp_provider_sass);
}

/* The destination of a launch's counts. */
struct taker {
    struct kp_codes *codes;
    size_t first_name;
    struct kp_counters_launch *launch;
};

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
    int rc = kp_sass_configure(x->setup.cupti, x->setup.ctx, x->setup.chip, x->setup.ordinal, names, COUNTED,
                               &own_sass(x)->list);
    if (rc)
        return rc;
    /* The names of one list are new, so they are consecutive. */
    const char *const *metrics = kp_sass_metrics(own_sass(x)->list, &n);
    for (size_t i = 0; i < n; i++) {
        long at = kp_counters_name(x->gathered, shown_name(metrics[i]));
        if (at < 0)
            return -ENOMEM;
        if (!i)
            own_sass(x)->first_name = (size_t)at;
    }
    return 0;
}

static int sass_before(struct kp_providers *x, struct kp_counters_launch *l)
{
    (void)l;
    int rc = kp_sass_begin(own_sass(x)->list, x->setup.ctx);
    own_sass(x)->open = !rc;
    return rc;
}

static void take_value(void *arg, const struct kp_pc *pc, size_t metric, uint64_t value)
{
    const struct taker *t = arg;
    kp_counters_add(t->launch, kp_codes_id(t->codes, pc->crc, pc->function), pc->offset, t->first_name + metric, value);
}

static int sass_after(struct kp_providers *x, struct kp_counters_launch *l)
{
    struct taker t = {x->setup.codes, own_sass(x)->first_name, l};
    int rc = kp_sass_end(own_sass(x)->list, x->setup.ctx, take_value, &t);
    own_sass(x)->open = false;
    return rc;
}

static void pass_value(void *arg, const struct kp_pc *pc, size_t metric, uint64_t value)
{
    (void)arg, (void)pc, (void)metric, (void)value;
}

/* Ends a pass; a refused launch has not been ended yet. */
static void sass_end(struct kp_providers *x)
{
    if (own_sass(x)->open)
        kp_sass_end(own_sass(x)->list, x->setup.ctx, pass_value, NULL);
    own_sass(x)->open = false;
}

static void sass_close(struct kp_providers *x, bool alive)
{
    if (alive)
        kp_sass_release(own_sass(x)->list, x->setup.ctx);
}

static struct kp_why sass_explain(const struct kp_providers *x, int code)
{
    (void)x;
    return kp_why_of(code == KP_SASS_OVER ? KP_REASON_SASS_OVER : KP_REASON_NONE, NULL);
}

const struct kp_provider kp_provider_sass = {
    .bit = KP_PROVIDER_SASS,
    .what = KP_REASON_SASS_NOT_COUNTED,
    .size = sizeof(struct sass),
    .by_launch = true,
    .begin = sass_begin,
    .before = sass_before,
    .after = sass_after,
    .end = sass_end,
    .close = sass_close,
    .explain = sass_explain,
};
