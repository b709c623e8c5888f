/*
 * Lists of one pass each, for a rotation: launches of a kernel count one list after the other. Metrics that fit no
 * single pass are composed of others that do.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/expr.h"
#include "base/text.h"
#include "collectors/plan/plan_internal.h"

enum { NAME_MAX_ROOM = 512, EXPRESSION_ROOM = 4 * NAME_MAX_ROOM };

/* ---- metrics that fit no single pass ---- */

/* Metrics derived from their sum, which fits one pass: B is the base name, U the unit of the hardware. Source: the
 * values of counter data recorded on an H200, see test_cupti_recorded.c. */
static const struct {
    const char *suffix, *expression;
} from_sums[] = {
    {".sum.per_cycle_elapsed", "B.sum / U__cycles_elapsed.avg"},
    {".sum.pct_of_peak_sustained_elapsed", "100 * B.sum / (U__cycles_elapsed.avg * B.sum.peak_sustained)"},
    {".sum.per_second", "1000000000 * B.sum / gpu__time_duration.sum"},
};

/* Others by name. */
static const struct {
    const char *name, *expression;
} by_name[] = {
    {"lts__t_sector_hit_rate.pct", "100 * lts__t_sectors_lookup_hit.sum / lts__t_sectors.sum"},
    {"lts__t_sector_op_read_hit_rate.pct", "100 * lts__t_sectors_op_read_lookup_hit.sum / lts__t_sectors_op_read.sum"},
    {"lts__t_sector_op_write_hit_rate.pct",
     "100 * lts__t_sectors_op_write_lookup_hit.sum / lts__t_sectors_op_write.sum"},
};

/* Writes the expression of from_sums for a metric. */
static void write_expression(const char *form, const char *name, size_t base, char out[EXPRESSION_ROOM])
{
    size_t n = 0, unit = kp_plan_unit_len(name);
    for (const char *c = form; *c && n + NAME_MAX_ROOM < EXPRESSION_ROOM; c++) {
        if (*c == 'B' || *c == 'U')
            n += (size_t)snprintf(out + n, EXPRESSION_ROOM - n, "%.*s", (int)(*c == 'B' ? base : unit), name);
        else
            out[n++] = *c;
    }
    out[n] = '\0';
}

/* Finds an expression in the tables. */
static bool look_up_expression(const char *name, char out[EXPRESSION_ROOM])
{
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof(by_name) / sizeof(*by_name); i++)
        if (!strcmp(name, by_name[i].name)) {
            snprintf(out, EXPRESSION_ROOM, "%s", by_name[i].expression);
            return true;
        }
    for (size_t i = 0; i < sizeof(from_sums) / sizeof(*from_sums); i++) {
        size_t suffix = strlen(from_sums[i].suffix);
        if (len > suffix && len < NAME_MAX_ROOM && strstr(name, "__") &&
            !strcmp(name + len - suffix, from_sums[i].suffix)) {
            write_expression(from_sums[i].expression, name, len - suffix, out);
            return true;
        }
    }
    return false;
}

/* Returns the passes of one metric alone; 0 if it cannot be counted; negative without memory. */
static int passes_alone(const struct kp_planner *x, const char *name)
{
    size_t passes;
    int rc = kp_plan_passes(x, &name, 1, &passes);
    if (rc)
        return rc < 0 ? rc : 0;
    return passes > INT16_MAX ? INT16_MAX : (int)passes;
}

/* Returns true if the chip has the metric, in one pass. */
static bool fits_alone(const struct kp_planner *x, const char *name)
{
    const struct kp_planned *m = kp_plan_find(x->plan, name);
    struct kp_metric_props props;
    bool fit;
    if (m && m->fits)
        return true;
    return !kp_tables_metric(x->host, name, &props) && !kp_plan_fits(x, &name, 1, &fit) && fit;
}

/* Plans the inputs of an expression; *all: each of them fits one pass. `known`: it is known that they do. */
static int want_inputs(struct kp_planner *x, const char *expression, bool known, bool *all)
{
    struct kp_expr *e = NULL;
    char *err = NULL;
    size_t n;
    int rc = kp_expr_compile(expression, &e, &err);
    free(err);
    if (rc)
        return rc == -EINVAL ? (*all = false, 0) : rc;
    const char *const *names = kp_expr_names(e, &n);
    *all = true;
    for (size_t i = 0; !known && i < n && *all; i++)
        *all = fits_alone(x, names[i]);
    for (size_t i = 0; !rc && *all && i < n; i++) {
        bool had;
        rc = kp_plan_want(x, names[i], KP_UNIT_OF_CHIP, false, &had);
        struct kp_planned *m = rc ? NULL : kp_plan_find(x->plan, names[i]);
        if (m)
            m->fits = true;
    }
    kp_expr_free(e);
    return rc;
}

/* Writes a throughput as the maximum of its constituents that fit one pass. *out is malloc'ed, NULL if there is
 * none. */
static int write_throughput(struct kp_planner *x, const char *name, char **out)
{
    const char **parts, *unit_end = strstr(name, "__"), *suffix = unit_end ? strchr(unit_end, '.') : NULL;
    size_t n, size = 0;
    char part[NAME_MAX_ROOM];
    bool any = false;
    *out = NULL;
    if (!suffix || kp_tables_constituents(x->host, name, &parts, &n))
        return 0;
    FILE *to = open_memstream(out, &size);
    for (size_t i = 0; to && i < n; i++) {
        snprintf(part, sizeof(part), "%s%s", parts[i], suffix);
        if (!fits_alone(x, part))
            continue;
        fprintf(to, "%s%s", any ? ", " : "max(", part);
        any = true;
    }
    free(parts);
    if (to && any)
        fputc(')', to);
    if (!to || kp_text_end(to, out))
        return -ENOMEM;
    if (!any) {
        free(*out);
        *out = NULL;
    }
    return 0;
}

/* Says why a metric that is not composed cannot be counted. */
static int say_why(const struct kp_planner *x, struct kp_planned *m)
{
    int passes = passes_alone(x, m->name);
    if (passes >= 0)
        m->why.reason = passes ? KP_REASON_SEVERAL_PASSES : KP_REASON_CUPTI_REFUSES;
    return passes < 0 ? passes : 0;
}

/* Sets how the metric of that name is composed, or that it cannot be. */
static int compose_metric(struct kp_planner *x, const char *name)
{
    char text[EXPRESSION_ROOM], *expression = NULL;
    struct kp_metric_props props = {.type = KP_METRIC_COUNTER, .unit = ""};
    bool all = false;
    int rc = 0;
    if (!kp_tables_metric(x->host, name, &props) && props.type == KP_METRIC_THROUGHPUT)
        rc = write_throughput(x, name, &expression);
    else if (look_up_expression(name, text) && !(expression = kp_strdup(text)))
        rc = -ENOMEM;
    if (!rc && expression)
        rc = want_inputs(x, expression, props.type == KP_METRIC_THROUGHPUT, &all);
    struct kp_planned *m = kp_plan_find(x->plan, name); /* it has moved */
    m->group = KP_CANNOT_COLLECT;
    if (!rc && all)
        m->composed = expression;
    else
        free(expression);
    return rc || m->composed ? rc : say_why(x, m);
}

/* Removes metrics that fit no single pass. Inputs are appended to the plan, and are examined in turn. */
static int take_out(struct kp_planner *x)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < x->plan->n_metrics; i++) {
        const char *name = x->plan->metrics[i].name;
        if (x->plan->metrics[i].group != KP_NOT_SCHEDULED || x->plan->metrics[i].fits)
            continue;
        bool fit = false;
        rc = kp_plan_fits(x, &name, 1, &fit);
        if (!rc && !fit)
            rc = compose_metric(x, name);
    }
    return rc;
}

/* ---- packing ---- */

/* Counters of one hardware unit, of which names[front..back) are left. Those that rarely combine come first. */
struct queue {
    const char **names;
    size_t front, back;
    size_t guess[2];   /* how many were added last time, at the front and at the back */
    bool asked, apart; /* the unit has been asked about; it does not combine with the canaries */
};

struct packing {
    struct kp_planner *x;
    struct queue *queues, *before; /* before: as they were when the current list was started */
    bool ask_units;                /* ask if units combine with the canaries */
    size_t n_queues, left;
    const char **names; /* of the current list; room for all */
    size_t kept;
};

/* Returns true if two metrics belong to one queue. */
static bool same_queue(const char *a, const char *b)
{
    return kp_plan_same_unit(a, b) && kp_config_is_patched_metric(a) == kp_config_is_patched_metric(b);
}

/* KP_VENDOR: a pass counts L1 and L2 lookups with one outcome only: misses combine with misses, hits with hits. Each
 * list should start with one kind. Returns the kind. */
enum { KINDS_OF_LOOKUPS = 3 };
static int kind_of_lookup(const char *name)
{
    return strstr(name, "_lookup_miss") ? 0
           : strstr(name, "_lookup_")   ? 1
           : strstr(name, "hit_rate")   ? 2
                                        : KINDS_OF_LOOKUPS;
}

static struct queue *queue_for(struct packing *p, const char *name, size_t room)
{
    for (size_t i = 0; i < p->n_queues; i++)
        if (same_queue(p->queues[i].names[0], name))
            return &p->queues[i];
    struct queue *q = &p->queues[p->n_queues];
    *q = (struct queue){.names = calloc(room, sizeof(*q->names)), .guess = {1, 4}};
    if (q->names)
        p->n_queues++;
    return q->names ? q : NULL;
}

static int fill_queues(struct packing *p)
{
    const struct kp_plan *plan = p->x->plan;
    for (int kind = 0; kind <= KINDS_OF_LOOKUPS; kind++)
        for (size_t i = 0; i < plan->n_metrics; i++) {
            const char *name = plan->metrics[i].name;
            if (plan->metrics[i].group != KP_NOT_SCHEDULED || kp_plan_is_canary(name) || kind_of_lookup(name) != kind)
                continue;
            struct queue *q = queue_for(p, name, plan->n_metrics);
            if (!q)
                return -ENOMEM;
            q->names[q->back++] = name;
            p->left++;
        }
    return 0;
}

/* Finds out if the list with `n` more names of the queue fits one pass. */
static int fits(struct packing *p, const struct queue *q, bool at_back, size_t n, bool *fit)
{
    for (size_t i = 0; i < n; i++)
        p->names[p->kept + i] = q->names[at_back ? q->back - 1 - i : q->front + i];
    return kp_plan_fits(p->x, p->names, p->kept + n, fit);
}

/* Adds as many names from one end of the queue as still fit. Starts with the previous number, which saves most tries; a
 * try costs 2 ms. */
static int take(struct packing *p, struct queue *q, bool at_back)
{
    bool fit_now;
    size_t left = q->back - q->front, fit = 0, too_many = left + 1;
    size_t n = q->guess[at_back] < left ? q->guess[at_back] : left;
    while (too_many - fit > 1) {
        int rc = fits(p, q, at_back, n, &fit_now);
        if (rc)
            return rc;
        if (fit_now)
            fit = n;
        else
            too_many = n;
        bool open_end = too_many == left + 1;
        n = open_end ? (2 * fit < left ? 2 * fit : left) : (fit + too_many) / 2;
    }
    for (size_t i = 0; i < fit; i++)
        p->names[p->kept + i] = q->names[at_back ? q->back - 1 - i : q->front + i];
    p->kept += fit;
    p->left -= fit;
    q->front += at_back ? 0 : fit;
    q->back -= at_back ? fit : 0;
    q->guess[at_back] = fit ? fit : 1;
    return 0;
}

/* Returns how many names of one counter there are from names[from] on; they fit if one of them does. */
static size_t run_of(const struct queue *q, size_t from)
{
    size_t len = strcspn(q->names[from], "."), n = 1;
    while (from + n < q->back && !strncmp(q->names[from + n], q->names[from], len) && q->names[from + n][len] == '.')
        n++;
    return n;
}

/* Removes names[at..at + n) from a queue, by moving them before its front. All names stay in the array. */
static void take_out_of(struct queue *q, size_t at, size_t n, const char **spare)
{
    memcpy(spare, q->names + at, n * sizeof(*spare));
    memmove(q->names + q->front + n, q->names + q->front, (at - q->front) * sizeof(*spare));
    memcpy(q->names + q->front, spare, n * sizeof(*spare));
    q->front += n;
}

/* Adds what still fits from the middle of a queue, counter by counter, and skips the rest. Gives up after several
 * misses. With slow answers, leaves this to later lists. */
static int take_between(struct packing *p, struct queue *q)
{
    enum { MOST_MISFITS = 200 };
    size_t misfits = 0;
    int rc = 0;
    for (size_t at = q->front, n; !rc && !p->x->slow && at < q->back && misfits < MOST_MISFITS; at += n) {
        bool fit = false;
        n = run_of(q, at);
        memcpy(p->names + p->kept, q->names + at, n * sizeof(*p->names));
        rc = kp_plan_fits(p->x, p->names, p->kept + n, &fit);
        misfits += !fit;
        if (rc || !fit)
            continue;
        take_out_of(q, at, n, p->names + p->kept);
        p->kept += n;
        p->left -= n;
    }
    return rc;
}

static int by_length(const void *a, const void *b)
{
    const struct queue *x = a, *y = b;
    size_t nx = x->back - x->front, ny = y->back - y->front;
    return (nx < ny) - (nx > ny);
}

/* Finds out if the library combines the queue with the canaries. That depends on its unit: known units are trusted
 * until a schedule disproves them, then one name of each is tried. */
static int goes_along(const struct packing *p, struct queue *q, bool *along)
{
    const char *names[KP_CANARIES + 1], *first = q->names[q->front];
    size_t n = kp_plan_canaries_of(p->x->plan, names), passes;
    int rc = 0;
    names[n++] = first;
    if (!p->ask_units) {
        q->apart = kp_plan_is_apart(first) || kp_config_is_patched_metric(first);
    } else if (!q->asked && !p->x->slow) {
        rc = kp_plan_passes(p->x, names, n, &passes);
        q->asked = true;
        q->apart = rc > 0;
    }
    *along = p->x->slow || !q->apart;
    return rc < 0 ? rc : 0;
}

/* Fills the current list; *any: it has more than the canaries. */
static int fill_lists(struct packing *p, bool with_canaries, bool *any)
{
    int rc = 0;
    size_t before = p->kept = with_canaries ? kp_plan_canaries_of(p->x->plan, p->names) : 0;
    qsort(p->queues, p->n_queues, sizeof(*p->queues), by_length);
    for (size_t i = 0; !rc && i < p->n_queues; i++) {
        struct queue *q = &p->queues[i];
        bool along = q->back > q->front;
        if (along && with_canaries)
            rc = goes_along(p, q, &along);
        for (int at_back = 0; !rc && along && at_back < 2; at_back++)
            if (q->back > q->front)
                rc = take(p, q, at_back);
        if (!rc && along)
            rc = take_between(p, q);
    }
    *any = p->kept > before;
    return rc;
}

/* Removes what the library refuses even alone from the queues. */
static int drop_refused(struct packing *p)
{
    for (size_t i = 0; i < p->n_queues; i++) {
        struct queue *q = &p->queues[i];
        size_t kept = q->front;
        for (size_t k = q->front; k < q->back; k++) {
            int passes = passes_alone(p->x, q->names[k]), rc = passes ? 0 : kp_plan_leave_refused(p->x, q->names[k]);
            if (passes < 0 || rc)
                return passes < 0 ? passes : rc;
            p->left -= !passes;
            if (passes)
                q->names[kept++] = q->names[k];
        }
        q->back = kept;
    }
    return 0;
}

/* Packs a list; *any: it has more than the canaries. If its schedule does not fit after all, packs it again: first with
 * the library's answers about units and single metrics, then by -EAGAIN: quick answers are wrong. */
static int pack_one(struct packing *p, bool with_canaries, bool *any)
{
    size_t left = p->left;
    bool good;
    memcpy(p->before, p->queues, p->n_queues * sizeof(*p->queues));
    int rc = fill_lists(p, with_canaries, any);
    if (rc || !*any)
        return rc;
    rc = kp_plan_commit_one_pass(p->x, p->names, p->kept, &good);
    if (rc || good)
        return rc;
    memcpy(p->queues, p->before, p->n_queues * sizeof(*p->queues));
    p->left = left;
    *any = !p->x->slow;
    if (p->x->slow)
        return 0;
    if (p->ask_units)
        return -EAGAIN;
    p->ask_units = true;
    return drop_refused(p);
}

/* Counters of patched code, and those of units apart, share no pass with the canaries. Quick answers do not apply to
 * them, because those do not show what the library refuses to combine. */
static int pack_all(struct packing *p)
{
    int rc = fill_queues(p);
    for (bool any = true; !rc && any && p->left;)
        rc = pack_one(p, true, &any);
    p->x->slow = true;
    for (int again = 0; !rc && again < 2 && p->left; again++) {
        rc = again ? drop_refused(p) : 0;
        for (bool any = true; !rc && any && p->left;)
            rc = pack_one(p, false, &any);
    }
    for (size_t i = 0; i < p->n_queues; i++)
        for (size_t k = p->queues[i].front; !rc && k < p->queues[i].back; k++)
            rc = kp_plan_leave_refused(p->x, p->queues[i].names[k]);
    return rc;
}

/* Makes a list of the canaries if only they are requested. */
static int pack_canaries(struct packing *p)
{
    bool good;
    p->kept = kp_plan_canaries_of(p->x->plan, p->names);
    return p->kept ? kp_plan_commit_one_pass(p->x, p->names, p->kept, &good) : 0;
}

static int want_canaries(struct kp_planner *x)
{
    bool had;
    int rc = 0;
    for (size_t i = 0; !rc && i < KP_CANARIES; i++)
        rc = kp_plan_want(x, kp_plan_canaries[i], KP_UNIT_OF_CHIP, false, &had);
    return rc;
}

static bool has_counters(const struct kp_plan *p)
{
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].group == KP_NOT_SCHEDULED)
            return true;
    return false;
}

static int pack(struct kp_planner *x)
{
    struct packing p = {.x = x};
    size_t n = x->plan->n_metrics;
    p.queues = calloc(n + 1, sizeof(*p.queues));
    p.before = calloc(n + 1, sizeof(*p.before));
    p.names = calloc(n + KP_CANARIES + 1, sizeof(*p.names));
    int rc = p.queues && p.before && p.names ? pack_all(&p) : -ENOMEM;
    if (!rc && !x->plan->n_groups)
        rc = pack_canaries(&p);
    for (size_t i = 0; i < p.n_queues; i++)
        free(p.queues[i].names);
    free(p.queues);
    free(p.before);
    free(p.names);
    return rc;
}

static int pack_rotation(struct kp_planner *x)
{
    int rc = want_canaries(x);
    if (!rc)
        rc = take_out(x);
    if (!rc)
        rc = pack(x);
    if (rc != -EAGAIN)
        return rc;
    x->slow = true;
    for (size_t i = 0; i < x->plan->n_metrics; i++)
        x->plan->metrics[i].fits = false;
    rc = take_out(x);
    return rc ? rc : pack(x);
}

int kp_plan_schedule_rotation(struct kp_planner *x, bool beside)
{
    if (!has_counters(x->plan))
        return 0;
    int rc = pack_rotation(x);
    if (rc || beside || !kp_tables_choose(x->cupti))
        return rc ? rc : kp_plan_share_images(x);
    return kp_plan_lay_out(x);
}
