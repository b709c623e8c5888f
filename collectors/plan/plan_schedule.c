/* Scheduling the counters of a plan. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "collectors/plan/plan_internal.h"
#include "collectors/providers/library.h"

/* Units whose counters CUPTI 13.0 schedules only separately from the SM, the caches and DRAM, on every chip. */
static const char *const apart[] = {"pcie__", "nvlrx__", "nvltx__", "ctc__", "mcc__"};

bool kp_plan_is_apart(const char *name)
{
    for (size_t i = 0; i < sizeof(apart) / sizeof(*apart); i++)
        if (!strncmp(name, apart[i], strlen(apart[i])))
            return true;
    return false;
}

int kp_plan_try(const struct kp_planner *x, const char *const *names, size_t n, struct kp_config *config)
{
    return kp_tables_schedule(x->cupti, x->chip, x->availability, names, n, config);
}

int kp_plan_passes(const struct kp_planner *x, const char *const *names, size_t n, size_t *passes)
{
    struct kp_config config;
    int rc = kp_plan_try(x, names, n, &config);
    *passes = rc ? 0 : config.passes;
    if (!rc)
        kp_config_free(&config);
    return rc;
}

int kp_plan_fits(const struct kp_planner *x, const char *const *names, size_t n, bool *fit)
{
    size_t passes;
    int rc = x->slow ? -ENOSYS : kp_tables_fit(x->host, names, n, fit);
    if (!rc || rc == -ENOMEM)
        return rc;
    rc = kp_plan_passes(x, names, n, &passes);
    *fit = !rc && passes == 1;
    return rc == -ENOMEM ? rc : 0;
}

/* ---- one list of all ---- */

size_t kp_plan_unit_len(const char *name)
{
    const char *end = strstr(name, "__");
    return end ? (size_t)(end - name) : strlen(name);
}

/* Compares by hardware unit, then by plan order. */
static int by_unit(const void *a, const void *b)
{
    const struct kp_planned *x = *(const struct kp_planned *const *)a, *y = *(const struct kp_planned *const *)b;
    size_t nx = kp_plan_unit_len(x->name), ny = kp_plan_unit_len(y->name);
    int differs = strncmp(x->name, y->name, nx < ny ? nx : ny);
    if (!differs)
        differs = (nx > ny) - (nx < ny);
    return differs ? differs : (x > y) - (x < y);
}

/* Compares by length, then by plan order. */
static int longest_first(const void *a, const void *b)
{
    const struct kp_planned *x = *(const struct kp_planned *const *)a, *y = *(const struct kp_planned *const *)b;
    size_t nx = strlen(x->name), ny = strlen(y->name);
    return nx != ny ? (nx < ny) - (nx > ny) : (x > y) - (x < y);
}

static int by_unit_reversed(const void *a, const void *b)
{
    return by_unit(b, a);
}

static int by_name_reversed(const void *a, const void *b)
{
    const struct kp_planned *x = *(const struct kp_planned *const *)a, *y = *(const struct kp_planned *const *)b;
    return strcmp(y->name, x->name);
}

enum { LONG = 512 };

/* KP_VENDOR: the library packs metrics into passes in the given order, which affects the number of passes and the time,
 * which grows faster than linearly. Measured with CUPTI 13.0 over the sets on all chips, and over lists of random
 * metrics on GH100: no other order of these lists needs fewer passes than the one for sections, and the two for the
 * user's own metrics need fewer than any other two. */
static const struct order {
    int (*compare)(const void *a, const void *b);
    bool own;           /* for lists with metrics that the user names; otherwise for sections alone */
    size_t least, most; /* names in a list */
} orders[] = {{longest_first, false, 0, LONG},
              {by_unit, false, LONG + 1, SIZE_MAX},
              {by_unit_reversed, true, 0, LONG},
              {by_name_reversed, true, 0, LONG},
              {by_unit, true, LONG + 1, SIZE_MAX}};

static bool suits(const struct order *o, const struct kp_planner *x, size_t n)
{
    return o->own == x->own && n >= o->least && n <= o->most;
}

/* A list scheduled in one order. */
struct trial {
    struct kp_config config;
    struct kp_host *host; /* has the list: others can be added to it */
};

static void drop_trial(struct trial *t)
{
    kp_config_free(&t->config);
    kp_tables_close(t->host);
    *t = (struct trial){.host = NULL};
}

/* Returns true if the trial costs less. KP_VENDOR: of two images with equally many passes the smaller one configures
 * fewer units of the device, and its passes start sooner. Measured (CUPTI 13.0, GH100, random orders): size and the
 * time of all starts correlate by 0.7 to 0.9. */
static bool costs_less(const struct trial *t, const struct trial *than)
{
    return !than->config.image || t->config.passes < than->config.passes ||
           (t->config.passes == than->config.passes && t->config.size < than->config.size);
}

/* Schedules names[0..n) in one list: 0 and *best, a CUPTI code if they do not combine, or -ENOMEM. */
static int schedule_together(const struct kp_planner *x, const char *const *names, size_t n, struct trial *best)
{
    const struct kp_planned **sorted = calloc(n + 1, sizeof(*sorted));
    const char **list = calloc(n + 1, sizeof(*list));
    int rc = sorted && list ? 0 : -ENOMEM;
    *best = (struct trial){.host = NULL};
    for (size_t i = 0; !rc && i < n; i++)
        sorted[i] = kp_plan_find(x->plan, names[i]);
    for (size_t k = 0; !rc && k < sizeof(orders) / sizeof(*orders); k++) {
        struct trial trial = {.host = NULL};
        if (!suits(&orders[k], x, n))
            continue;
        qsort(sorted, n, sizeof(*sorted), orders[k].compare);
        for (size_t i = 0; i < n; i++)
            list[i] = sorted[i]->name;
        rc = kp_tables_schedule_kept(x->cupti, x->chip, x->availability, list, n, &trial.config, &trial.host);
        if (!rc && costs_less(&trial, best)) {
            drop_trial(best);
            *best = trial;
        } else if (!rc) {
            drop_trial(&trial);
        }
    }
    if (rc)
        drop_trial(best);
    free(list);
    free(sorted);
    return rc;
}

/* ---- what fits ---- */

/* A list being packed. */
struct pack {
    const struct kp_planner *x;
    bool one_pass;
    const char **names; /* names[0..kept) are in the list; has room for all */
    size_t kept;
    struct kp_config config; /* of names[0..kept), if kept > 0 */
    const char **refused;    /* one name of each unit that cannot be combined with them; has room for all */
    size_t n_refused;
};

/* Puts names[0..n) into the list, all or none. Returns 0, -E2BIG for more than one pass, a CUPTI code, or -ENOMEM. */
static int extend(struct pack *o, const char *const *names, size_t n)
{
    struct kp_config config;
    memcpy(o->names + o->kept, names, n * sizeof(*names));
    int rc = kp_plan_try(o->x, o->names, o->kept + n, &config);
    if (rc)
        return rc;
    if (o->one_pass && config.passes > 1) {
        kp_config_free(&config);
        return -E2BIG;
    }
    kp_config_free(&o->config);
    o->config = config;
    o->kept += n;
    return 0;
}

bool kp_plan_same_unit(const char *a, const char *b)
{
    size_t n = kp_plan_unit_len(a);
    return kp_plan_unit_len(b) == n && !strncmp(a, b, n);
}

static bool has_unit(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (kp_plan_same_unit(names[i], name))
            return true;
    return false;
}

/* Leaves a whole unit to another list as soon as one of its names must go there. Units mostly decide what combines, and
 * trying thousands of names one by one would need minutes. */
static void leave_for_another_list(struct pack *o, const char *name)
{
    if (!has_unit(o->names, o->kept, name))
        o->refused[o->n_refused++] = name;
}

/* Leaves names that do not combine with this list to another one; drops names that the library refuses even alone. */
static int leave_out(struct pack *o, const char *name, int why)
{
    bool beside = o->kept;
    if (!o->one_pass && beside) {
        struct kp_config config;
        int alone = kp_plan_try(o->x, &name, 1, &config);
        if (!alone) {
            kp_config_free(&config);
            leave_for_another_list(o, name);
        }
        if (alone <= 0)
            return alone;
        why = alone;
        beside = false;
    }
    struct kp_planned *m = kp_plan_find(o->x->plan, name);
    m->group = KP_CANNOT_COLLECT;
    if (why == -E2BIG)
        m->why.reason = KP_REASON_NO_FIT;
    else
        m->why =
            kp_library_explain(o->x->cupti, beside ? KP_REASON_CUPTI_REFUSES_BESIDE : KP_REASON_CUPTI_REFUSES, why);
    return 0;
}

/* Writes the names[0..n) that have no group and whose unit is not left to another list; returns how many. */
static size_t candidates(const struct pack *o, const char *const *names, size_t n, const char **out)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (kp_plan_find(o->x->plan, names[i])->group == KP_NOT_SCHEDULED &&
            !has_unit(o->refused, o->n_refused, names[i]))
            out[m++] = names[i];
    return m;
}

/* Puts those of names[0..n) that fit into the list, earlier ones first. Scheduling dominates the time, so all are tried
 * at once, and halved only if they do not fit. `why` is the result of extend() for all of them, if known, else 0.
 * Changes the array. */
static int extend_by_what_fits(struct pack *o, const char **names, size_t n, int why)
{
    size_t all = n;
    n = candidates(o, names, n, names);
    if (n < all)
        why = 0;
    if (!why && (!n || !(why = extend(o, names, n))))
        return 0;
    if (why == -ENOMEM)
        return why;
    if (n == 1)
        return leave_out(o, *names, why);
    size_t half = n / 2, before = o->kept;
    int rc = extend_by_what_fits(o, names, half, 0);
    if (rc)
        return rc;
    /* The first half fits, so the second one was too much. */
    return extend_by_what_fits(o, names + half, n - half, o->kept == before + half ? why : 0);
}

/* Finds, with one name of each, units that do not combine, and leaves the list empty. A short list is scheduled in
 * milliseconds, one with thousands of names in a second. */
static int leave_units(struct pack *o, const char *const *names, size_t n, const char **scratch)
{
    size_t units = 0;
    for (size_t i = 0; i < n; i++)
        if (!has_unit(scratch, units, names[i]))
            scratch[units++] = names[i];
    int rc = extend_by_what_fits(o, scratch, units, 0);
    o->kept = 0;
    return rc;
}

int kp_plan_leave_refused(struct kp_planner *x, const char *name)
{
    struct kp_planned *m = kp_plan_find(x->plan, name);
    m->group = KP_CANNOT_COLLECT;
    m->why.reason = KP_REASON_CUPTI_REFUSES;
    return 0;
}

int kp_plan_commit(struct kp_plan *p, struct kp_config *config)
{
    if (!KP_ROOM(p->groups, p->n_groups))
        return -ENOMEM;
    for (size_t i = 0; i < config->n_names; i++)
        kp_plan_find(p, config->names[i])->group = (int)p->n_groups;
    p->groups[p->n_groups++] = *config;
    p->passes += config->passes;
    memset(config, 0, sizeof(*config));
    return 0;
}

int kp_plan_commit_one_pass(struct kp_planner *x, const char *const *names, size_t n, bool *good)
{
    struct kp_config config;
    int rc = kp_plan_try(x, names, n, &config);
    *good = !rc && config.passes == 1;
    if (rc)
        return rc < 0 ? rc : 0;
    if (*good)
        rc = kp_plan_commit(x->plan, &config);
    if (rc || !*good)
        kp_config_free(&config);
    return rc;
}

/* Schedules names[0..n) in as few groups as the library allows, or in one of one pass. */
static int schedule_what_fits(struct kp_planner *x, const char *const *names, size_t n, bool one_pass)
{
    struct pack o = {.x = x, .one_pass = one_pass};
    const char **rest = calloc(n + 1, sizeof(*rest)), **scratch = calloc(n + 1, sizeof(*scratch));
    int rc = -ENOMEM;
    o.names = calloc(n + 1, sizeof(*o.names));
    o.refused = calloc(n + 1, sizeof(*o.refused));
    if (!rest || !scratch || !o.names || !o.refused)
        goto out;
    memcpy(rest, names, n * sizeof(*names));
    for (rc = 0; n && !rc; n = candidates(&o, rest, n, rest)) {
        o.kept = 0;
        if (!one_pass)
            rc = leave_units(&o, rest, n, scratch);
        memcpy(scratch, rest, n * sizeof(*rest));
        if (!rc)
            rc = extend_by_what_fits(&o, scratch, n, 0);
        if (!rc && o.kept)
            rc = kp_plan_commit(x->plan, &o.config);
        o.n_refused = 0;
    }
out:
    kp_config_free(&o.config);
    free(o.refused);
    free(o.names);
    free(scratch);
    free(rest);
    return rc;
}

static int schedule(struct kp_planner *x, const char *const *names, size_t n)
{
    struct trial trial = {.host = NULL};
    int rc = n ? schedule_together(x, names, n, &trial) : 0;
    if (rc > 0)
        return schedule_what_fits(x, names, n, false);
    bool is_first = !x->plan->n_groups;
    if (!rc && n)
        rc = kp_plan_commit(x->plan, &trial.config);
    if (!rc && is_first) {
        x->first = trial.host;
        trial.host = NULL;
    }
    drop_trial(&trial);
    return rc;
}

/* Returns the counters to schedule, in plan order: those of separate units, or the rest. */
static size_t choose(const struct kp_plan *p, bool wanted_apart, const char **names)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].group == KP_NOT_SCHEDULED && kp_plan_is_apart(p->metrics[i].name) == wanted_apart)
            names[n++] = p->metrics[i].name;
    return n;
}

int kp_plan_schedule(struct kp_planner *x)
{
    const char **names = calloc(x->plan->n_metrics + 1, sizeof(*names));
    if (!names)
        return -ENOMEM;
    int rc = schedule(x, names, choose(x->plan, false, names));
    if (!rc)
        rc = schedule(x, names, choose(x->plan, true, names));
    free(names);
    return rc;
}

int kp_plan_schedule_one_pass(struct kp_planner *x)
{
    const struct kp_plan *p = x->plan;
    const char **names = calloc(p->n_metrics + 1, sizeof(*names));
    size_t n = 0;
    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].group == KP_NOT_SCHEDULED)
            names[n++] = p->metrics[i].name;
    int rc = schedule_what_fits(x, names, n, true);
    free(names);
    return rc;
}

void kp_plan_forget_first(struct kp_planner *x)
{
    kp_tables_close(x->first);
    x->first = NULL;
}

int kp_plan_share_images(struct kp_planner *x)
{
    struct kp_plan *p = x->plan;
    size_t from = 0, to = p->n_groups;
    while (from < p->n_groups) {
        size_t tried = to - from, good = tried;
        struct kp_host *first = from ? NULL : x->first;
        int rc = 0;
        if (tried >= 2) {
            x->first = first ? NULL : x->first; /* it is used up */
            rc = kp_tables_schedule_turns(x->cupti, x->chip, x->availability, p->groups + from, tried, first, &good);
        }
        if (rc == -ENOMEM || rc == -ECANCELED)
            return rc;
        bool again = !rc && good < tried; /* the lists that combine, or the first alone */
        from = again ? from : to;
        to = again ? from + (good ? good : 1) : p->n_groups;
    }
    return 0;
}

int kp_plan_lay_out(struct kp_planner *x)
{
    struct kp_plan *p = x->plan;
    int rc = 0;
    if (!kp_tables_choose(x->cupti))
        return 0;
    for (size_t g = 0, to; rc != -ENOMEM && g < p->n_groups; g = to) {
        for (to = g + 1; to < p->n_groups && p->groups[to].turn;)
            to++;
        if (!p->groups[g].layout)
            rc = kp_tables_layout(x->host, &p->groups[g], to - g, &p->groups[g].layout, &p->groups[g].layout_size);
    }
    return rc == -ENOMEM ? rc : 0; /* without a layout for an image, no session counts its lists */
}
