#include "cmd/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/plain.h"
#include "base/room.h"
#include "base/sqrt.h"
#include "base/stream.h"
#include "base/text.h"
#include "cmd/diff_brief.h"
#include "report/define/derive.h"
#include "report/define/units.h"
#include "report/judge/rules.h"
#include "report/model/launch_names.h"
#include "report/model/renames.h"
#include "report/options/options.h"
#include "report/view/lines.h"
#include "report/view/shown.h"
#include "report/write/account.h"
#include "report/write/cells.h"
#include "report/write/csv_writer.h"
#include "report/write/launch_head.h"
#include "report/write/text_writer.h"

enum {
    A,
    B,
    SIDES,
    ALONE_SHOWN = 20, /* most unpaired kernels that are listed */
    CHANGE_MAX = 32,
};

/* A rule that spoke for a launch, or for most launches of a kernel. */
struct finding {
    const struct kp_rule *rule;
    const struct kp_section *section;
    enum kp_severity severity;
    double speedup; /* NaN = none */
    bool global;
    uint64_t launches; /* launches for which it spoke */
};

/* One side of a comparison: a launch, or the averages of a kernel. */
struct unit {
    struct kp_result result; /* with the metrics shown or counted, without their instances */
    struct finding *findings;
    size_t n_findings;
    uint64_t launches;
    uint64_t timed; /* launches that have a duration */
    double ns;      /* among them */
    bool quick;
    struct unit *partner;
};

struct side {
    char letter; /* for the reader */
    struct kp_session session;
    struct kp_wanted wanted, asked;
    struct unit *units;
    size_t n;
    bool *collected;     /* by wanted section: some launch has a metric of it */
    bool counted, timed; /* some launch has counters, some launch has a duration */
};

struct diff {
    const struct kp_display *display;
    const struct kp_diff_options *options;
    struct side side[SIDES];
    const char *file[SIDES];
    bool brief; /* kernels instead of pairs */
    struct kp_writer *writer;
};

/* The fields of a row, of a format of rows. */
enum field {
    FILE_A,
    FILE_B,
    KERNEL,
    GRID,
    ID_A,
    ID_B,
    LAUNCHES_A,
    LAUNCHES_B,
    SECTION,
    TABLE,
    NAME,
    UNIT,
    VALUE_A,
    VALUE_B,
    CHANGE,
    RULE,
    RULE_TYPE,
    RULE_CHANGE,
    FIELDS
};

static const char *const fields[FIELDS] = {
    "Baseline",          "Compared",          "Kernel Name",  "Grid Size", "Baseline ID", "Compared ID",
    "Baseline Launches", "Compared Launches", "Section Name", "Table",     "Metric Name", "Metric Unit",
    "Baseline Value",    "Compared Value",    "Change %",     "Rule Name", "Rule Type",   "Rule Change"};
static const bool are_numbers[FIELDS] = {[ID_A] = true,    [ID_B] = true,    [LAUNCHES_A] = true, [LAUNCHES_B] = true,
                                         [VALUE_A] = true, [VALUE_B] = true, [CHANGE] = true};
static const struct kp_layout layout = {.start = KP_START_EMPTY, .fields = fields, .n = FIELDS, .numbers = are_numbers};

static bool is_rows(const struct diff *d)
{
    return d->writer->kind->rows;
}

/* ---- lines of a launch ---- */

static struct kp_view view_of(const struct side *s, const struct kp_result *r)
{
    return (struct kp_view){.session = &s->session, .result = r};
}

/* Returns true if the rows can be compared: single values of curves and rooflines are meaningless. */
static bool has_comparable_rows(const struct kp_row *body)
{
    return body->body != KP_BODY_CURVE && body->body != KP_BODY_ROOFLINE;
}

/* Calls `fn` for each stretch of rows that print-details selects: the tables before the bodies, and each body. */
static int each_stretch(const struct kp_section *s, enum kp_details details, const struct kp_launch_info *l,
                        int (*fn)(const struct kp_section *s, size_t first, size_t end, void *arg), void *arg)
{
    size_t at = kp_rows_before_bodies(s, KP_ROW_EXTRA), end;
    int rc = 0;
    if (details != KP_DETAILS_BODY)
        rc = fn(s, 0, kp_rows_before_bodies(s, details == KP_DETAILS_ALL ? KP_ROW_EXTRA : KP_ROW_HEADER), arg);
    for (; !rc && details != KP_DETAILS_HEADER && at < s->n_rows; at = end) {
        for (end = at + 1; end < s->n_rows && s->rows[end].kind != KP_ROW_BODY;)
            end++;
        if (has_comparable_rows(&s->rows[at]) && kp_cc_matches(s->rows[at].cc, l->cc_major, l->cc_minor))
            rc = fn(s, at + 1, end, arg);
    }
    return rc;
}

/* ---- reading: keeps only the compared parts of each launch ---- */

struct keeping {
    const struct side *side;
    const struct kp_result *result;
    bool *keep; /* by the index of the result's metrics */
};

static void keep_metric(struct keeping *k, const struct kp_metric *m)
{
    if (m)
        k->keep[m - k->result->metrics] = true;
}

/* Keeps what lines show, which were made with `rc`, and frees them. */
static int keep_lines(struct keeping *k, struct kp_lines *l, int rc)
{
    for (size_t i = 0; i < l->n; i++)
        keep_metric(k, l->at[i].metric);
    kp_lines_free(l);
    return rc;
}

static int keep_stretch(const struct kp_section *s, size_t first, size_t end, void *arg)
{
    struct keeping *k = arg;
    struct kp_lines lines = {0};
    struct kp_view v = view_of(k->side, k->result);
    return keep_lines(k, &lines, kp_lines_of_rows(s, first, end, &v, false, &lines));
}

static int keep_listed(struct keeping *k, const char *list)
{
    struct kp_lines lines = {0};
    struct kp_view v = view_of(k->side, k->result);
    return keep_lines(k, &lines, kp_lines_of_metrics(list, &v, &lines));
}

static int mark_kept(const struct diff *d, struct keeping *k, bool quick)
{
    const struct kp_wanted *w = &k->side->wanted;
    const struct kp_launch_info *l = &k->result->launch;
    enum kp_details details = d->display->details;
    int rc = quick ? each_stretch(kp_section_quick(), details, l, keep_stretch, k) : 0;
    for (size_t i = 0; !rc && i < w->n; i++)
        rc = each_stretch(w->sections[i], details, l, keep_stretch, k);
    keep_metric(k, kp_result_find(k->result, KP_DIFF_DURATION));
    for (size_t i = 0; i < d->options->n_limits; i++)
        keep_metric(k, kp_result_find(k->result, d->options->limits[i].metric));
    return rc ? rc : keep_listed(k, w->metrics);
}

/* Frees metrics that are not marked, and their room: a session has thousands of launches. */
static int drop_others(struct kp_result *r, const bool *keep)
{
    struct kp_result dropped = {.metrics = calloc(r->n_metrics + 1, sizeof *r->metrics)};
    size_t kept = 0;
    if (!dropped.metrics)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_metrics; i++)
        if (keep[i])
            r->metrics[kept++] = r->metrics[i];
        else
            dropped.metrics[dropped.n_metrics++] = r->metrics[i];
    r->n_metrics = kept;
    kp_result_free(&dropped);
    struct kp_metric *fitting = realloc(r->metrics, (kept + 1) * sizeof *fitting);
    if (fitting) {
        r->metrics = fitting;
        r->cap_metrics = kept + 1;
    }
    return 0;
}

static bool is_worth_more(double a, double b)
{
    return !isnan(a) && (isnan(b) || a > b);
}

/* Returns the finding of the unit with the rule and severity of `f`, or NULL. */
static struct finding *find_finding(const struct unit *u, const struct finding *f)
{
    for (size_t i = 0; i < u->n_findings; i++)
        if (u->findings[i].rule == f->rule && u->findings[i].severity == f->severity)
            return &u->findings[i];
    return NULL;
}

/* Does the same, and adds `f` if there was none. */
static struct finding *find_or_add(struct unit *u, const struct finding *f)
{
    struct finding *same = find_finding(u, f);
    if (!same)
        u->findings[u->n_findings++] = *f;
    return same;
}

/* Adds a finding; among messages of one rule and severity, the best estimate wins. */
static void add_finding(struct unit *u, const struct finding *f)
{
    struct finding *same = find_or_add(u, f);
    if (same && is_worth_more(f->speedup, same->speedup))
        *same = *f;
}

static int judge(const struct diff *d, const struct side *s, struct unit *u)
{
    struct kp_messages m = {0};
    int rc = d->display->rules
                 ? kp_rules_apply(&u->result, &s->session, s->wanted.sections, s->wanted.n, d->display->rules, &m)
                 : 0;
    u->findings = calloc(m.n + 1, sizeof *u->findings);
    if (!u->findings)
        rc = -ENOMEM;
    for (size_t i = 0; !rc && i < m.n; i++)
        add_finding(u, &(struct finding){m.list[i].rule, m.list[i].section, m.list[i].severity, m.list[i].speedup,
                                         m.list[i].global, 1});
    kp_messages_free(&m);
    return rc;
}

struct reading {
    const struct diff *diff;
    struct side *side;
};

/* Renames the kernel to the user's name for it, which also pairs launches. 0 or -ENOMEM. */
static int rename_kernel(struct kp_launch_info *l)
{
    const char *renamed = kp_renames_find(kp_launch_name(l));
    char *copy = renamed ? kp_strdup(renamed) : NULL;
    if (!copy)
        return renamed ? -ENOMEM : 0;
    free(l->demangled);
    l->demangled = copy;
    return 0;
}

static int take_unit(struct kp_result *r, void *arg)
{
    struct reading *reading = arg;
    struct side *s = reading->side;
    if (kp_derive_users(r) || rename_kernel(&r->launch) || !KP_ROOM(s->units, s->n))
        return -ENOMEM;
    struct unit *u = &s->units[s->n++];
    *u = (struct unit){.result = *r, .launches = kp_launch_weight(&r->launch)};
    *r = (struct kp_result){.launch.id = r->launch.id}; /* the caller continues after that id */
    struct kp_view v = view_of(s, &u->result);
    struct keeping k = {s, &u->result, calloc(u->result.n_metrics + 1, sizeof *k.keep)};
    u->quick = kp_has_quick_instead(&v, &s->asked);
    if (kp_result_mean_duration(&u->result, &u->ns)) {
        s->timed = true;
        u->timed = u->launches;
        u->ns *= (double)u->launches;
    }
    s->counted |= s->timed || u->result.launch.passes > 0;
    for (size_t i = 0; i < s->wanted.n; i++)
        s->collected[i] =
            s->collected[i] || kp_shown_section_is_collected(s->wanted.sections[i], &s->session, &u->result);
    int rc = k.keep ? judge(reading->diff, s, u) : -ENOMEM;
    if (!rc)
        rc = mark_kept(reading->diff, &k, u->quick);
    if (!rc)
        rc = drop_others(&u->result, k.keep);
    free(k.keep);
    return rc;
}

static int read_side(struct diff *d, struct side *s, struct kp_store *store, char **err)
{
    const struct kp_display *shown = d->display;
    int rc = kp_store_get_session(store, &s->session, err);
    if (rc)
        return rc;
    const struct kp_session *own = &s->session;
    rc = kp_find_wanted(kp_or_empty(own->set), kp_or_empty(own->sections), kp_or_empty(own->metrics), &s->asked);
    if (!rc && shown->choose)
        rc = kp_find_wanted(kp_or_empty(shown->set), kp_or_empty(shown->sections), kp_or_empty(shown->metrics),
                            &s->wanted);
    else if (!rc)
        rc = kp_find_wanted(kp_or_empty(own->set), kp_or_empty(own->sections), kp_or_empty(own->metrics), &s->wanted);
    s->collected = rc ? NULL : calloc(s->wanted.n + 1, sizeof *s->collected);
    if (!rc && !s->collected)
        rc = -ENOMEM;
    return rc ? rc : kp_store_each_result(store, take_unit, &(struct reading){d, s}, err);
}

static void free_unit(struct unit *u)
{
    kp_result_free(&u->result);
    free(u->findings);
}

static void free_side(struct side *s)
{
    for (size_t i = 0; i < s->n; i++)
        free_unit(&s->units[i]);
    free(s->units);
    free(s->wanted.sections);
    free(s->collected);
    free(s->asked.sections);
    kp_session_free(&s->session);
}

/* ---- kernels: averages over launches ---- */

static bool has_number(const struct unit *u, const char *metric, double *number)
{
    return kp_metric_number(kp_result_find(&u->result, metric), number);
}

/* Averages the metric `m` over the launches of units[0..n): its numbers, or else the text that all share. Of a pair of
 * launches both have the number, or none counts: the averages of both sides are of the same launches then. */
static int average(struct kp_result *out, const struct kp_metric *m, const struct unit *units, size_t n)
{
    double sum = 0, launches = 0, number, other;
    const char *unit = NULL;
    size_t texts = 0;
    for (size_t i = 0; i < n; i++) {
        const struct kp_metric *own = kp_result_find(&units[i].result, m->name);
        texts += own && own->kind == KP_VALUE_TEXT && m->kind == KP_VALUE_TEXT && !strcmp(own->text, m->text);
        if (!kp_metric_number(own, &number) || (units[i].partner && !has_number(units[i].partner, m->name, &other)))
            continue;
        sum += number * (double)units[i].launches;
        launches += (double)units[i].launches;
        unit = unit ? unit : own->unit;
    }
    if (launches > 0)
        return kp_result_set_real(out, m->name, unit, sum / launches);
    if (m->kind == KP_VALUE_NA)
        return kp_result_set_why(out, m->name, kp_metric_why(m));
    return texts == n ? kp_result_set_text(out, m->name, m->unit, m->text) : 0;
}

static int average_all(struct kp_result *out, const struct unit *units, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; !rc && j < units[i].result.n_metrics; j++)
            if (!kp_result_find(out, units[i].result.metrics[j].name))
                rc = average(out, &units[i].result.metrics[j], units, n);
    return rc;
}

/* Adds up sums, which are divided later. */
static void add_up(struct unit *u, const struct finding *f)
{
    struct finding *sum = find_or_add(u, f);
    if (!sum)
        return;
    sum->speedup += f->speedup;
    sum->global &= f->global;
    sum->launches++;
}

static int merge_findings(struct unit *out, const struct unit *units, size_t n)
{
    size_t all = 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        all += units[i].n_findings;
    out->findings = calloc(all + 1, sizeof *out->findings);
    if (!out->findings)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < units[i].n_findings; j++)
            add_up(out, &units[i].findings[j]);
    for (size_t i = 0; i < out->n_findings; i++) {
        struct finding f = out->findings[i];
        f.speedup /= (double)f.launches;
        if (2 * f.launches >= n)
            out->findings[kept++] = f;
    }
    out->n_findings = kept;
    return 0;
}

/* Merges `n` units of a kernel into one, with the launch of the first. */
static int merge_units(struct unit *out, struct unit *units, size_t n)
{
    *out = (struct unit){.quick = true};
    int rc = average_all(&out->result, units, n);
    if (!rc)
        rc = merge_findings(out, units, n);
    for (size_t i = 0; i < n; i++) {
        out->launches += units[i].launches;
        out->timed += units[i].timed;
        out->ns += units[i].ns;
        out->quick &= units[i].quick;
    }
    out->result.launch = units[0].result.launch;
    units[0].result.launch = (struct kp_launch_info){0};
    memset(out->result.launch.grid, 0, sizeof out->result.launch.grid); /* the grid may differ between them */
    return rc;
}

/* Compares by name, grid (none for kernels) and kind. */
static int compare_keys(const struct unit *x, const struct unit *y)
{
    const struct kp_launch_info *a = &x->result.launch, *b = &y->result.launch;
    int order = strcmp(kp_launch_name(a), kp_launch_name(b));
    order = order ? order : memcmp(a->grid, b->grid, sizeof a->grid);
    return order ? order : strcmp(kp_launch_kind(a), kp_launch_kind(b));
}

static int compare_ids(const struct unit *x, const struct unit *y)
{
    uint64_t i = x->result.launch.id, j = y->result.launch.id;
    return i < j ? -1 : i > j;
}

static int by_name(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    int order = strcmp(kp_launch_name(&x->result.launch), kp_launch_name(&y->result.launch));
    return order ? order : compare_ids(x, y);
}

static int by_time(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : compare_ids(x, y);
}

/* ---- pairs ---- */

static int by_key(const void *a, const void *b)
{
    const struct unit *x = *(struct unit *const *)a, *y = *(struct unit *const *)b;
    int order = compare_keys(x, y);
    return order ? order : compare_ids(x, y);
}

static struct unit **sorted(struct side *s)
{
    struct unit **list = malloc((s->n + 1) * sizeof *list);
    for (size_t i = 0; list && i < s->n; i++)
        list[i] = &s->units[i];
    if (list && s->n)
        qsort(list, s->n, sizeof *list, by_key);
    return list;
}

/* Pairs units. Within a key both lists are in order, so the first goes with the first. */
static int pair_up(struct diff *d, size_t *pairs)
{
    struct unit **a = sorted(&d->side[A]), **b = sorted(&d->side[B]);
    int rc = a && b ? 0 : -ENOMEM;
    *pairs = 0;
    for (size_t i = 0, j = 0; !rc && i < d->side[A].n && j < d->side[B].n;) {
        int order = compare_keys(a[i], b[j]);
        if (!order) {
            a[i]->partner = b[j];
            b[j]->partner = a[i];
            ++*pairs;
        }
        i += order <= 0;
        j += order >= 0;
    }
    free(a);
    free(b);
    return rc;
}

/* ---- kernels: averages of both sides ---- */

/* Returns the end of the launches of the kernel at `at`, their first; they are sorted by name. */
static size_t end_of_kernel(const struct side *s, size_t at)
{
    const char *name = kp_launch_name(&s->units[at].result.launch);
    size_t end = at + 1;
    while (end < s->n && !strcmp(kp_launch_name(&s->units[end].result.launch), name))
        end++;
    return end;
}

/* Unpairs all launches of a kernel if some have no partner: their averages are of different launches anyway. */
static void unpair_some(struct side *s)
{
    for (size_t at = 0, end; at < s->n; at = end) {
        bool all = true;
        end = end_of_kernel(s, at);
        for (size_t i = at; i < end; i++)
            all &= s->units[i].partner != NULL;
        for (size_t i = at; !all && i < end; i++) {
            if (s->units[i].partner)
                s->units[i].partner->partner = NULL;
            s->units[i].partner = NULL;
        }
    }
}

/* Merges the launches of a side into kernels[0..*n). */
static int merge_side(struct side *s, struct unit *kernels, size_t *n)
{
    int rc = 0;
    *n = 0;
    for (size_t at = 0, end; at < s->n; at = end) {
        end = end_of_kernel(s, at);
        int failed = merge_units(&kernels[(*n)++], &s->units[at], end - at);
        rc = rc ? rc : failed;
    }
    return rc;
}

/* Puts kernels in the place of the launches of both sides, which are paired before: averages look at partners. */
static int merge_kernels(struct diff *d)
{
    struct unit *kernels[SIDES];
    size_t pairs, n[SIDES] = {0};
    for (int i = 0; i < SIDES; i++) {
        kernels[i] = calloc(d->side[i].n + 1, sizeof *kernels[i]);
        if (d->side[i].n)
            qsort(d->side[i].units, d->side[i].n, sizeof *d->side[i].units, by_name);
    }
    int rc = kernels[A] && kernels[B] ? pair_up(d, &pairs) : -ENOMEM;
    for (int i = 0; !rc && i < SIDES; i++)
        unpair_some(&d->side[i]);
    for (int i = 0; !rc && i < SIDES; i++)
        rc = merge_side(&d->side[i], kernels[i], &n[i]);
    for (int i = 0; i < SIDES; i++) {
        struct side *s = &d->side[i];
        for (size_t j = 0; j < s->n; j++)
            free_unit(&s->units[j]);
        free(s->units);
        s->units = kernels[i];
        s->n = n[i];
        if (s->n)
            qsort(s->units, s->n, sizeof *s->units, by_time);
    }
    return rc;
}

/* ---- the change of a value ---- */

static bool is_same_text(const char *a, const char *b)
{
    return !strcmp(kp_or_empty(a), kp_or_empty(b));
}

/* Computes the change in percent of A's value; false without one. A value that grows from zero changes by infinity. */
static bool change_of(const struct kp_metric *a, const struct kp_metric *b, double *percent)
{
    double x, y;
    if (!kp_metric_number(a, &x) || !kp_metric_number(b, &y) || strcmp(a->unit, b->unit) != 0)
        return false;
    *percent = x == y ? 0 : x != 0 ? (y - x) / fabs(x) * 100 : copysign(INFINITY, y);
    return true;
}

/* Returns true if two means of rotations differ by no more than the spread of their launches explains (95 %). */
static bool is_within_interval(const struct kp_metric *a, const struct kp_metric *b)
{
    double half[SIDES];
    return kp_metric_interval(a, &half[A]) && kp_metric_interval(b, &half[B]) &&
           fabs(a->real - b->real) <= kp_sqrt((half[A] * half[A] + half[B] * half[B]) / SIDES);
}

static bool has_changed(const struct kp_metric *a, const struct kp_metric *b, double threshold)
{
    double percent;
    if (change_of(a, b, &percent))
        return !(fabs(percent) <= threshold) && !is_within_interval(a, b);
    return a->kind != b->kind || strcmp(a->unit, b->unit) != 0 ||
           (a->kind == KP_VALUE_TEXT && !is_same_text(a->text, b->text));
}

static void format_change(const struct kp_metric *a, const struct kp_metric *b, char out[CHANGE_MAX])
{
    double percent;
    if (!change_of(a, b, &percent))
        snprintf(out, CHANGE_MAX, "%s", has_changed(a, b, 0) ? "differs" : "same");
    else if (percent == 0)
        snprintf(out, CHANGE_MAX, "0");
    else
        snprintf(out, CHANGE_MAX, "%+.2f", percent);
}

/* ---- rows of a pair ---- */

struct row {
    char *title;
    const struct kp_metric *value[SIDES];
};

struct rows {
    struct row *at;
    size_t n;
};

static void free_rows(struct rows *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->at[i].title);
    free(r->at);
    *r = (struct rows){0};
}

/* A pair while its rows are collected. */
struct pair {
    const struct diff *diff;
    const struct unit *unit[SIDES];
    struct rows rows;
    size_t folded;       /* rows that are not printed */
    bool changed;        /* it has a row or a rule that the report shows */
    const char *section; /* the last section with a printed title */
};

static int add_row(struct rows *r, char *title, const struct kp_metric *a, const struct kp_metric *b)
{
    if (!KP_ROOM(r->at, r->n)) {
        free(title);
        return -ENOMEM;
    }
    r->at[r->n++] = (struct row){title, {a, b}};
    return 0;
}

/* Names a row outside of its table, without a heading that explains its values. */
static char *row_title(struct kp_out *o, const struct kp_line *l)
{
    char *label = kp_out_title(o, l), *title = NULL;
    if (!label || !*l->group || o->display->naming == KP_NAMING_NAME)
        return label;
    if (!kp_out_has(o, asprintf(&title, "%s: %s", l->group, label) < 0 ? NULL : label))
        title = NULL;
    free(label);
    return title;
}

static int compare_line_keys(const struct kp_line *a, const struct kp_line *b)
{
    int order = strcmp(a->label, b->label);
    order = order ? order : strcmp(a->group, b->group);
    return order ? order : (int)a->kind - (int)b->kind;
}

static int by_line_key(const void *a, const void *b)
{
    const struct kp_line *x = *(const struct kp_line *const *)a, *y = *(const struct kp_line *const *)b;
    int order = compare_line_keys(x, y);
    return order ? order : x < y ? -1 : x > y;
}

/* Returns the lines in the order of their keys, and those of a key as they come; NULL without memory. */
static const struct kp_line **line_index(const struct kp_lines *l)
{
    const struct kp_line **index = malloc((l->n + 1) * sizeof *index);
    for (size_t i = 0; index && i < l->n; i++)
        index[i] = &l->at[i];
    if (index && l->n)
        qsort(index, l->n, sizeof *index, by_line_key);
    return index;
}

/* Returns the first line of that key, or NULL. */
static const struct kp_line *same_line(const struct kp_line *const *index, size_t n, const struct kp_line *as)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_line_keys(index[middle], as) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && !compare_line_keys(index[low], as) ? index[low] : NULL;
}

static int compare_lines(struct pair *p, const struct kp_lines lines[SIDES])
{
    const struct kp_diff_options *options = p->diff->options;
    const struct kp_line **index = line_index(&lines[B]);
    int rc = index ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < lines[A].n; i++) {
        const struct kp_line *a = &lines[A].at[i], *b = same_line(index, lines[B].n, a);
        if (!a->metric || !b || !b->metric)
            continue;
        if (!options->all && !has_changed(a->metric, b->metric, options->threshold)) {
            p->folded++;
            continue;
        }
        char *title = row_title(&p->diff->writer->out, a);
        rc = title ? add_row(&p->rows, title, a->metric, b->metric) : -ENOMEM;
    }
    free(index);
    return rc;
}

/* ---- writing rows ---- */

/* Names the pair of the rows that follow; a unit is NULL if only the other side has it. */
static void enter_pair(const struct diff *d, const struct unit *const unit[SIDES])
{
    struct kp_writer *w = d->writer;
    const struct kp_launch_info *l = &unit[unit[A] ? A : B]->result.launch;
    bool by_kernel = d->options->by == KP_DIFF_BY_KERNEL;
    char text[64];
    if (!is_rows(d))
        return;
    snprintf(text, sizeof text, "(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", l->grid[0], l->grid[1], l->grid[2]);
    kp_write_field(w, KERNEL, kp_launch_name(l));
    kp_write_field(w, GRID, by_kernel ? "" : text);
    for (int side = A; side < SIDES; side++) {
        kp_write_field(w, FILE_A + side, d->file[side]);
        snprintf(text, sizeof text, "%" PRIu64, unit[side] ? unit[side]->result.launch.id : 0);
        kp_write_field(w, ID_A + side, by_kernel || !unit[side] ? "" : text);
        snprintf(text, sizeof text, "%" PRIu64, unit[side] ? unit[side]->launches : 0);
        kp_write_field(w, LAUNCHES_A + side, text);
    }
}

/* Returns the value by which the unit of both is chosen: the smaller one keeps its digits. Zero has none to lose. */
static double smaller_of(const double number[SIDES])
{
    double a = fabs(number[A]), b = fabs(number[B]);
    return a > 0 && !(b > 0 && b < a) ? a : b;
}

struct cells {
    const char *text[CHANGE - NAME + 1];
    char unit[KP_UNIT_MAX], number[SIDES][KP_NUMBER_MAX], change[CHANGE_MAX];
};

/* Fills the cells for a reader: both values in one unit. */
static void fill_cells(const struct row *r, bool base_units, struct cells *c)
{
    double number[SIDES] = {0};
    bool numbers = true;
    for (int i = 0; i < SIDES; i++)
        numbers &= kp_metric_number(r->value[i], &number[i]);
    const struct kp_metric *unit_of = r->value[A]->kind != KP_VALUE_NA ? r->value[A] : r->value[B];
    bool same_unit = numbers && !strcmp(r->value[A]->unit, r->value[B]->unit);
    double divisor = kp_unit_divisor(unit_of->unit, smaller_of(number), base_units || (numbers && !same_unit), c->unit);
    if (numbers && !same_unit)
        snprintf(c->unit, sizeof c->unit, "%s, %s", r->value[A]->unit, r->value[B]->unit);
    for (int i = 0; i < SIDES; i++)
        c->text[VALUE_A - NAME + i] = kp_format_scaled(r->value[i], divisor, c->number[i]);
    format_change(r->value[A], r->value[B], c->change);
    c->text[UNIT - NAME] = c->unit;
}

/* Fills them for a program: a value may be NULL, and a change that is not a number is empty. */
static void fill_plain_cells(const struct row *r, struct cells *c)
{
    const struct kp_metric *known = r->value[A] && r->value[A]->kind != KP_VALUE_NA ? r->value[A] : r->value[B];
    double percent;
    c->text[UNIT - NAME] = known && known->kind != KP_VALUE_NA ? known->unit : "";
    for (int i = 0; i < SIDES; i++)
        c->text[VALUE_A - NAME + i] = r->value[i] ? kp_write_plain_value(r->value[i], c->number[i]) : "";
    if (change_of(r->value[A], r->value[B], &percent))
        kp_plain_real(percent, c->change);
}

static void write_rows(const struct diff *d, const struct row *rows, size_t n)
{
    const char letter[SIDES][2] = {{d->side[A].letter}, {d->side[B].letter}};
    const struct kp_column columns[] = {{"Metric Name", NAME, 0, true},
                                        {"Metric Unit", UNIT, 0, false},
                                        {letter[A], VALUE_A, 0, false},
                                        {letter[B], VALUE_B, 0, false},
                                        {"Change %", CHANGE, 0, false}};
    const struct kp_table table = {KP_TABLE_FRAMED, columns, sizeof columns / sizeof *columns, false};
    kp_write_table(d->writer, &table);
    for (size_t i = 0; i < n; i++) {
        struct cells c = {.text = {rows[i].title}};
        if (d->writer->kind->plain)
            fill_plain_cells(&rows[i], &c);
        else
            fill_cells(&rows[i], d->display->base_units, &c);
        c.text[CHANGE - NAME] = c.change;
        kp_write_row(d->writer, c.text);
    }
    kp_write_table_end(d->writer);
    kp_write_gap(d->writer);
}

/* Writes a row for each launch, or kernel, that the other side lacks. */
static int write_alone(const struct diff *d, int side)
{
    const struct side *s = &d->side[side];
    char *title = kp_line_title(d->display, &(struct kp_line){.label = "Duration", .name = KP_DIFF_DURATION});
    kp_write_field(d->writer, SECTION, "");
    kp_write_field(d->writer, TABLE, "");
    for (size_t i = 0; title && i < s->n; i++) {
        const struct unit *unit[SIDES] = {NULL};
        struct row row = {title, {NULL}};
        if (s->units[i].partner)
            continue;
        unit[side] = &s->units[i];
        row.value[side] = kp_result_find(&s->units[i].result, KP_DIFF_DURATION);
        enter_pair(d, unit);
        write_rows(d, &row, 1);
    }
    free(title);
    return title ? 0 : -ENOMEM;
}

/* ---- a pair ---- */

/* Prints what the unit stands for, a launch or a kernel. */
static void print_subject(struct kp_out *o, const struct diff *d, const struct unit *u)
{
    if (d->options->by == KP_DIFF_BY_LAUNCH)
        kp_write_launch_line(o, &u->result.launch);
    else
        kp_write_launch_name(o, &u->result.launch);
}

static void print_head(struct kp_out *o, const struct diff *d, const struct unit *a)
{
    char number[SIDES][KP_NUMBER_MAX];
    const struct unit *unit[SIDES] = {a, a->partner};
    const char first = d->side[A].letter, second = d->side[B].letter;
    kp_out_paint(o, KP_PAINT_LAUNCH);
    for (int i = 0; i < SIDES; i++)
        kp_format_count(unit[i]->launches, number[i]);
    kp_out_text(o, "  ", 2);
    print_subject(o, d, a);
    if (d->options->by == KP_DIFF_BY_LAUNCH)
        kp_out_print(o, ", launch %" PRIu64 " of %c, %" PRIu64 " of %c", a->result.launch.id, first,
                     a->partner->result.launch.id, second);
    else
        kp_out_print(o, ", averages of %s %s of %c, %s of %c", number[A], a->launches == 1 ? "launch" : "launches",
                     first, number[B], second);
    kp_out_paint(o, KP_PAINT_NONE);
    kp_out_text(o, "\n", 1);
    if (d->options->by == KP_DIFF_BY_LAUNCH && *kp_launch_kind(&a->result.launch))
        kp_out_wrapped(o, "    Note: ", kp_launch_kind(&a->result.launch));
}

/* Returns true if the note of a unit says that it stands for only some launches of its kernel and shape. */
static bool has_kinds(const struct diff *d)
{
    for (int side = A; side < SIDES; side++)
        for (size_t i = 0; i < d->side[side].n; i++)
            if (*kp_launch_kind(&d->side[side].units[i].result.launch))
                return true;
    return false;
}

/* Notes that the pair has a change. A text report has the pair's head before the first one. Returns false for a brief
 * report, which lists no changes. */
static bool begin_change(struct pair *p)
{
    if (!p->changed && !p->diff->brief) {
        enter_pair(p->diff, p->unit);
        if (!is_rows(p->diff))
            print_head(&p->diff->writer->out, p->diff, p->unit[A]);
    }
    p->changed = true;
    return !p->diff->brief;
}

/* Writes the collected rows of one table or body, below titles not written yet. */
static void write_stretch(struct pair *p, const char *section, const struct kp_row *body)
{
    struct kp_writer *w = p->diff->writer;
    if (p->rows.n && begin_change(p)) {
        if (!p->section || strcmp(p->section, section))
            kp_write_heading(w, KP_LEVEL_SECTION, section);
        if (body && *body->label)
            kp_write_heading(w, KP_LEVEL_BODY, body->label);
        if (body && *body->group && strcmp(body->group, body->label) != 0)
            kp_write_heading(w, KP_LEVEL_BODY, body->group);
        p->section = section;
        kp_write_field(w, SECTION, section);
        kp_write_field(w, TABLE, !body ? "" : *body->label ? body->label : body->group);
        write_rows(p->diff, p->rows.at, p->rows.n);
    }
    free_rows(&p->rows);
}

/* Compares lines, which were found with `rc`, writes what differs, and frees them. */
static int compare_found(struct pair *p, struct kp_lines lines[SIDES], int rc, const char *section,
                         const struct kp_row *body)
{
    if (!rc)
        rc = compare_lines(p, lines);
    if (!rc)
        write_stretch(p, section, body);
    for (int i = 0; i < SIDES; i++)
        kp_lines_free(&lines[i]);
    return rc;
}

static int compare_stretch(const struct kp_section *s, size_t first, size_t end, void *arg)
{
    struct pair *p = arg;
    struct kp_lines lines[SIDES] = {{0}};
    int rc = 0;
    for (int i = 0; !rc && i < SIDES; i++) {
        struct kp_view v = view_of(&p->diff->side[i], &p->unit[i]->result);
        rc = kp_lines_of_rows(s, first, end, &v, false, &lines[i]);
    }
    if (first == 0 && s->passes != KP_PASSES_ONE) /* keeps the order of a report */
        kp_lines_sort(&lines[A]);
    return compare_found(p, lines, rc, s->display, first ? &s->rows[first - 1] : NULL);
}

static int compare_listed(struct pair *p)
{
    struct kp_lines lines[SIDES] = {{0}};
    int rc = 0;
    for (int i = 0; !rc && i < SIDES; i++) {
        struct kp_view v = view_of(&p->diff->side[i], &p->unit[i]->result);
        rc = kp_lines_of_metrics(p->diff->side[i].wanted.metrics, &v, &lines[i]);
    }
    kp_lines_sort(&lines[A]);
    return compare_found(p, lines, rc, kp_metrics_title, NULL);
}

static bool has_section(const struct side *s, const char *id)
{
    for (size_t i = 0; i < s->wanted.n; i++)
        if (!strcmp(s->wanted.sections[i]->id, id))
            return true;
    return false;
}

static int compare_sections(struct pair *p)
{
    const struct side *a = &p->diff->side[A], *b = &p->diff->side[B];
    const struct kp_section *quick = kp_section_quick();
    const struct kp_launch_info *l = &p->unit[A]->result.launch;
    enum kp_details details = p->diff->display->details;
    int rc = 0;
    if (p->unit[A]->quick && p->unit[B]->quick)
        rc = each_stretch(quick, KP_DETAILS_HEADER, l, compare_stretch, p);
    for (size_t i = 0; !rc && i < a->wanted.n; i++) {
        const struct kp_section *s = a->wanted.sections[i];
        if (has_section(b, s->id))
            rc = each_stretch(s, details, l, compare_stretch, p);
    }
    return rc ? rc : compare_listed(p);
}

static void write_finding(struct kp_writer *w, const struct finding *f, const char *what)
{
    char gain[CHANGE_MAX] = "";
    if (!isnan(f->speedup))
        snprintf(gain, sizeof gain, "%s%.4g", f->global ? "" : "local ", f->speedup);
    kp_write_row(w, (const char *const[]){what, kp_severity_name(f->severity), f->rule->id, f->section->display, gain});
}

/* Writes rules that only one side has, of sections that both have. */
static void write_findings(struct pair *p)
{
    static const char *const what[SIDES] = {"went", "appeared"};
    static const struct kp_column columns[] = {{"Rules", RULE_CHANGE, 0, true},
                                               {"Type", RULE_TYPE, 0, true},
                                               {"Rule", RULE, 0, true},
                                               {"Section", SECTION, 0, true},
                                               {"Est. Speedup %", KP_NO_FIELD, 0, false}};
    static const struct kp_table table = {KP_TABLE_FRAMED, columns, sizeof columns / sizeof *columns, false};
    struct kp_writer *w = p->diff->writer;
    size_t n = 0;
    kp_write_field(w, TABLE, "");
    for (int side = B; side >= A; side--)
        for (size_t i = 0; i < p->unit[side]->n_findings; i++) {
            const struct finding *f = &p->unit[side]->findings[i];
            if (find_finding(p->unit[!side], f) || !has_section(&p->diff->side[!side], f->section->id) ||
                !begin_change(p))
                continue;
            if (!n++)
                kp_write_table(w, &table);
            write_finding(w, f, what[side]);
        }
    if (n) {
        kp_write_table_end(w);
        kp_write_gap(w);
    }
}

/* Writes a pair; one without changes is folded like a row. */
static int write_pair(const struct diff *d, const struct unit *a, bool *changed, size_t *folded)
{
    struct pair p = {.diff = d, .unit = {a, a->partner}};
    int rc = compare_sections(&p);
    if (!rc)
        write_findings(&p);
    *changed = p.changed;
    *folded += p.folded;
    return rc;
}

static const char *noun(const struct diff *d, size_t n)
{
    if (d->options->by == KP_DIFF_BY_LAUNCH)
        return n == 1 ? "launch" : "launches";
    return n == 1 ? "kernel" : "kernels";
}

static int print_pairs(struct kp_out *o, const struct diff *d, size_t pairs)
{
    const struct side *a = &d->side[A];
    size_t shown = 0, folded = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < a->n; i++) {
        bool changed = false;
        if (a->units[i].partner)
            rc = write_pair(d, &a->units[i], &changed, &folded);
        shown += changed;
    }
    if (is_rows(d))
        return rc;
    kp_out_print(o, "==KPROF== %zu %s compared", pairs, noun(d, pairs));
    if (pairs && d->brief)
        kp_out_print(o, ", %zu of them changed%s", shown, shown ? "; --brief-above 0 shows what changed of each" : "");
    else if (pairs && !d->options->all)
        kp_out_print(o, ", %zu of them changed; %zu %s did not change by more than %g%% and %s not shown", shown,
                     folded, folded == 1 ? "row" : "rows", d->options->threshold, folded == 1 ? "is" : "are");
    kp_out_print(o, "\n");
    if (!pairs && a->n && d->side[B].n && d->options->by == KP_DIFF_BY_LAUNCH)
        kp_out_print(o, "==KPROF== No launch of %c has the same name%s as one of %c; --by kernel pairs by name alone\n",
                     a->letter, has_kinds(d) ? ", grid and note" : " and grid", d->side[B].letter);
    return rc;
}

/* ---- below the pairs ---- */

/* Counts consecutive unpaired units in `list` under one key. */
static size_t run_of_alone(struct unit *const *list, size_t n)
{
    size_t run = 0;
    while (run < n && !list[run]->partner && !compare_keys(list[0], list[run]))
        run++;
    return run;
}

/* Names the launches of a kernel and shape in this unit, if others are in units of their own. */
static void print_which(struct kp_out *o, const struct diff *d, const struct unit *u)
{
    char *which = d->options->by == KP_DIFF_BY_LAUNCH ? kp_launch_which(&u->result.launch) : strdup("");
    if (kp_out_has(o, which) && *which) {
        kp_out_text(o, " ", 1);
        kp_out_one_line(o, which, strlen(which));
    }
    free(which);
}

static void print_alone(struct kp_out *o, const struct diff *d, struct side *s)
{
    struct unit **list = sorted(s);
    size_t kernels = 0;
    if (!kp_out_has(o, list))
        return;
    for (size_t i = 0, run; i < s->n; i += run ? run : 1) {
        uint64_t launches = 0;
        run = run_of_alone(list + i, s->n - i);
        for (size_t j = 0; j < run; j++)
            launches += list[i + j]->launches;
        if (!run || kernels++ >= ALONE_SHOWN)
            continue;
        kp_out_print(o, "==KPROF== Only in %c: ", s->letter);
        print_subject(o, d, list[i]);
        print_which(o, d, list[i]);
        kp_out_print(o, ", %" PRIu64 " %s\n", launches, launches == 1 ? "launch" : "launches");
    }
    if (kernels > ALONE_SHOWN)
        kp_out_print(o, "==KPROF== and %zu more only in %c\n", kernels - ALONE_SHOWN, s->letter);
    free(list);
}

static bool is_timed(const struct unit *u)
{
    return u->timed == u->launches;
}

/* Returns true if a side's time gets the unit: that of `paired` compares the same launches on both sides. */
static bool is_in_total(const struct unit *u, bool paired)
{
    return !paired || (u->partner && is_timed(u) && is_timed(u->partner));
}

static void print_total(struct kp_out *o, const struct diff *d, const char *of, bool paired)
{
    double ns[SIDES] = {0};
    uint64_t untimed[SIDES] = {0};
    char text[SIDES][KP_NUMBER_MAX + KP_UNIT_MAX];
    for (int side = A; side < SIDES; side++) {
        const struct side *s = &d->side[side];
        for (size_t i = 0; i < s->n; i++)
            if (is_in_total(&s->units[i], paired)) {
                ns[side] += s->units[i].ns;
                untimed[side] += s->units[i].launches - s->units[i].timed;
            }
        if (s->timed || !s->n)
            kp_format_quantity(ns[side], "ns", o->display->base_units, text[side]);
        else
            snprintf(text[side], sizeof text[side], "not known");
    }
    kp_out_print(o, "==KPROF== Duration of %s: %s in %c, %s in %c", of, text[A], d->side[A].letter, text[B],
                 d->side[B].letter);
    if (ns[A] > 0 && d->side[B].timed && !untimed[A] && !untimed[B])
        kp_out_print(o, " (%+.2f%%)", (ns[B] - ns[A]) / ns[A] * 100);
    for (int side = A; side < SIDES; side++)
        if (d->side[side].timed && untimed[side])
            kp_out_print(o, "; %" PRIu64 " %s of %c %s no duration", untimed[side],
                         untimed[side] == 1 ? "launch" : "launches", d->side[side].letter,
                         untimed[side] == 1 ? "has" : "have");
    kp_out_print(o, "\n");
}

static bool has_timed_pair(const struct side *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->units[i].timed && is_in_total(&s->units[i], true))
            return true;
    return false;
}

/* Returns true if this side has nothing that the other lacks. */
static bool is_all_in_total(const struct side *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!is_in_total(&s->units[i], true))
            return false;
    return true;
}

static void print_totals(struct kp_out *o, struct diff *d, size_t pairs)
{
    bool all_paired = is_all_in_total(&d->side[A]) && is_all_in_total(&d->side[B]);
    for (int i = 0; i < SIDES && !d->brief; i++)
        print_alone(o, d, &d->side[i]);
    if (pairs && !all_paired && has_timed_pair(&d->side[A]))
        print_total(o, d, "what both have", true);
    print_total(o, d, "all launches", false);
}

/* ---- in brief ---- */

/* How the times of a kernel's pairs change; the terms add up to the uncertainty of the sum. Launches of one grid have
 * one size, so their changes are only compared with each other. */
struct spread {
    uint64_t pairs;
    double sum, squares; /* of the changes of a grid's pairs of one launch each, in ns */
    uint64_t degrees;    /* of freedom, of all grids */
    double variance;     /* of the sum of all changes */
    double of_means;     /* squares of the half intervals of pairs of means */
    bool is_unknown;     /* a launch has no partner, or no duration, or too few have its grid */
};

static void add_pair(struct spread *s, const struct unit *a)
{
    const struct unit *b = a->partner;
    double half[SIDES], change;
    if (!b || !is_timed(a) || !is_timed(b) || a->launches != b->launches) {
        s->is_unknown = true;
    } else if (kp_metric_interval(kp_result_find(&a->result, KP_DIFF_DURATION), &half[A]) &&
               kp_metric_interval(kp_result_find(&b->result, KP_DIFF_DURATION), &half[B])) {
        double n = (double)a->launches;
        s->of_means += n * n * (half[A] * half[A] + half[B] * half[B]) / SIDES;
    } else if (a->launches > 1) {
        s->is_unknown = true;
    } else {
        change = b->ns - a->ns;
        s->pairs++;
        s->sum += change;
        s->squares += change * change;
    }
}

/* Ends the pairs of a grid. */
static void end_grid(struct spread *s)
{
    enum { LEAST = 3 };
    double n = (double)s->pairs, around = s->pairs ? s->squares - s->sum * s->sum / n : 0;
    s->is_unknown |= s->pairs && s->pairs < LEAST;
    if (s->pairs >= LEAST) {
        s->degrees += s->pairs - 1;
        s->variance += around > 0 ? around / (n - 1) * n : 0; /* rounding can make it negative */
    }
    s->pairs = 0;
    s->sum = s->squares = 0;
}

/* Returns half of the 95 % interval of the sum of all changes; NaN if unknown. */
static double half_of(const struct spread *s)
{
    double t = s->degrees ? kp_students_t(s->degrees) : 0;
    return s->is_unknown ? NAN : kp_sqrt(t * t * s->variance + s->of_means);
}

static int by_kernel(const void *a, const void *b)
{
    const struct unit *x = *(const struct unit *const *)a, *y = *(const struct unit *const *)b;
    const struct kp_launch_info *l = &x->result.launch, *m = &y->result.launch;
    int order = strcmp(kp_launch_name(l), kp_launch_name(m));
    return order ? order : memcmp(l->grid, m->grid, sizeof l->grid);
}

/* Adds a unit of a side to its kernel. */
static void add_unit(struct kp_diff_kernel *k, struct spread *spread, const struct unit *u, int side)
{
    k->launches[side] += u->launches;
    k->timed[side] += u->timed;
    k->ns[side] += u->ns;
    if (side == A)
        add_pair(spread, u);
    else
        spread->is_unknown |= !u->partner;
}

/* Puts the units of both sides together by their kernels. *out has room for each unit; *n is the number of kernels. 0
 * or -ENOMEM. */
static int sum_kernels(const struct diff *d, struct kp_diff_kernel *out, size_t *n)
{
    const struct side *a = &d->side[A], *b = &d->side[B];
    const struct unit **units = calloc(a->n + b->n + 1, sizeof *units);
    struct spread spread = {.pairs = 0};
    size_t all = 0;
    *n = 0;
    if (!units)
        return -ENOMEM;
    for (int side = A; side < SIDES; side++)
        for (size_t i = 0; i < d->side[side].n; i++)
            units[all++] = &d->side[side].units[i];
    if (all)
        qsort(units, all, sizeof *units, by_kernel);
    for (size_t i = 0; i < all; i++) {
        const struct kp_launch_info *l = &units[i]->result.launch;
        if (!*n || strcmp(out[*n - 1].name, kp_launch_name(l)) != 0) {
            out[(*n)++] = (struct kp_diff_kernel){.name = kp_launch_name(l), .is_text = l->kind != KP_WORKLOAD_KERNEL};
            spread = (struct spread){.pairs = 0};
        }
        add_unit(&out[*n - 1], &spread, units[i], units[i] >= a->units && units[i] < a->units + a->n ? A : B);
        if (i + 1 == all || by_kernel(&units[i], &units[i + 1]))
            end_grid(&spread);
        out[*n - 1].half = half_of(&spread);
    }
    free(units);
    return 0;
}

static void print_brief(struct kp_out *o, const struct diff *d)
{
    struct kp_diff_brief brief = {.letter = {d->side[A].letter, d->side[B].letter},
                                  .threshold = d->options->threshold,
                                  .kernels = calloc(d->side[A].n + d->side[B].n + 1, sizeof *brief.kernels)};
    if (!kp_out_has(o, brief.kernels))
        return;
    o->rc = sum_kernels(d, brief.kernels, &brief.n);
    if (!o->rc)
        kp_diff_brief_print(o, &brief);
    free(brief.kernels);
}

/* Returns true if kernels are listed instead of pairs: there are many, and their times are known. */
static bool is_brief(const struct diff *d, size_t pairs)
{
    uint64_t most = d->display->brief_above;
    return most && pairs > most && !d->options->all && !is_rows(d) && d->side[A].timed && d->side[B].timed;
}

/* ---- limits ---- */

static const struct kp_metric *metric_of(const struct unit *u, const char *name)
{
    return kp_result_find(&u->result, name);
}

static void print_exceeded(struct kp_out *o, const struct diff *d, const struct kp_diff_limit *limit,
                           const struct unit *a, double percent)
{
    char value[SIDES][KP_NUMBER_MAX], scaled[KP_UNIT_MAX];
    const struct kp_metric *m[SIDES] = {metric_of(a, limit->metric), metric_of(a->partner, limit->metric)};
    double number[SIDES] = {0};
    for (int i = 0; i < SIDES; i++)
        kp_metric_number(m[i], &number[i]);
    double divisor = kp_unit_divisor(m[A]->unit, smaller_of(number), o->display->base_units, scaled);
    const char *blank = *scaled ? " " : "";
    for (int i = 0; i < SIDES; i++)
        kp_format_real(number[i] / divisor, value[i]);
    kp_out_print(o, "==KPROF== Over the limit of %+g%%: %s %s%s%s -> %s%s%s (%+.2f%%): ", limit->percent, limit->metric,
                 value[A], blank, scaled, value[B], blank, scaled, percent);
    print_subject(o, d, a);
    if (d->options->by == KP_DIFF_BY_LAUNCH)
        kp_out_print(o, ", launch %" PRIu64 " of %c", a->result.launch.id, d->side[A].letter);
    kp_out_print(o, "\n");
}

/* Warns that `without` of the pairs have no numbers to compare. */
static void warn_unchecked(FILE *to, const struct diff *d, const struct kp_diff_limit *limit, size_t pairs,
                           size_t without)
{
    static const char as_over[] = ", which counts as over the limit";
    const char first = d->side[A].letter, second = d->side[B].letter;
    if (pairs)
        fprintf(to,
                "--fail-above: %zu of %zu pairs of %s could not be compared because %c or %c has no number for %s%s\n",
                without, pairs, noun(d, 2), first, second, limit->metric, without < pairs ? "" : as_over);
    else
        fprintf(to, "--fail-above: %c and %c have no %s in common to compare %s of%s\n", first, second, noun(d, 2),
                limit->metric, as_over);
}

static void check_limit(struct kp_out *o, const struct diff *d, const struct kp_diff_limit *limit,
                        struct kp_diff_outcome *outcome, FILE *warnings)
{
    const struct side *a = &d->side[A];
    size_t without = 0, over = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct unit *unit = &a->units[i];
        double percent;
        if (!unit->partner)
            continue;
        const struct kp_metric *was = metric_of(unit, limit->metric), *is = metric_of(unit->partner, limit->metric);
        if (!change_of(was, is, &percent)) {
            without++;
        } else if (!(percent <= limit->percent) &&
                   !is_within_interval(was, is)) { /* a change from or to NaN exceeds every limit */
            if (!d->brief || over++ < ALONE_SHOWN)
                print_exceeded(o, d, limit, unit, percent);
            outcome->exceeded++;
        }
    }
    if (over > ALONE_SHOWN)
        kp_out_print(o, "==KPROF== and %zu more over this limit: --brief-above 0 lists all\n", over - ALONE_SHOWN);
    outcome->unchecked += without == outcome->pairs;
    if (without || !outcome->pairs)
        warn_unchecked(warnings, d, limit, outcome->pairs, without);
}

static int check_limits(struct kp_out *o, const struct diff *d, struct kp_diff_outcome *outcome)
{
    size_t size;
    FILE *warnings = open_memstream(&outcome->warnings, &size);
    if (!warnings)
        return -ENOMEM;
    for (size_t i = 0; i < d->options->n_limits; i++)
        check_limit(o, d, &d->options->limits[i], outcome, warnings);
    int rc = kp_text_end(warnings, &outcome->warnings) ? -ENOMEM : 0;
    if (rc || !size) {
        free(outcome->warnings);
        outcome->warnings = NULL;
    }
    return rc;
}

/* ---- unknown metrics ---- */

/* All metric names of a session. */
struct names {
    char **list; /* NULL at the end */
    size_t n;
};

static int add_names(struct kp_result *r, void *arg)
{
    struct names *names = arg;
    if (names->n) /* launches of a session have the same names, unless they were not replayed */
        return 0;
    names->list = calloc(r->n_metrics + 1, sizeof *names->list);
    if (!names->list)
        return -ENOMEM;
    for (; names->n < r->n_metrics; names->n++)
        if (!(names->list[names->n] = kp_strdup(r->metrics[names->n].name)))
            return -ENOMEM;
    return 0;
}

/* Reports that the metric is missing, in the words of `what`. */
static int no_such_metric(const struct kp_diff_input *input, const char *what, const char *metric, char **err)
{
    struct names names = {0};
    int rc = kp_store_each_result(input->store, add_names, &names, err);
    const char *near = !rc && names.n ? kp_nearest(metric, (const char *const *)names.list) : NULL;
    if (!rc && near && strcmp(near, metric) != 0)
        rc = kp_error(err, "%s '%s'; did you mean '%s'?", what, metric, near);
    else if (!rc)
        rc = kp_error(err, "%s '%s'; `kprof report --page raw` shows what they have", what, metric);
    for (size_t i = 0; i < names.n; i++)
        free(names.list[i]);
    free(names.list);
    return rc;
}

static bool any_has(const struct side *s, const char *metric)
{
    for (size_t i = 0; i < s->n; i++)
        if (metric_of(&s->units[i], metric))
            return true;
    return false;
}

/* Checks the names of the list; items that stand for several metrics may well stand for none. */
static int check_listed(const struct diff *d, const struct kp_diff_input *input, char **err)
{
    const char *cursor = d->display->choose ? kp_or_empty(d->display->metrics) : "", *item;
    size_t len;
    int rc = 0;
    while (!rc && kp_list_next(&cursor, &item, &len)) {
        char *name = strndup(item, len);
        if (!name)
            return -ENOMEM;
        if (!strchr(name, ':') && !any_has(&d->side[A], name) && !any_has(&d->side[B], name))
            rc = no_such_metric(input, "--metrics: no launch has", name, err);
        free(name);
    }
    return rc;
}

static int check_metrics(const struct diff *d, const struct kp_diff_input *input, char **err)
{
    int rc = check_listed(d, input, err);
    for (size_t i = 0; !rc && i < d->options->n_limits; i++) {
        const char *metric = d->options->limits[i].metric;
        /* the duration is a valid name even if no launch has one */
        if (strcmp(metric, KP_DIFF_DURATION) && !any_has(&d->side[A], metric) && !any_has(&d->side[B], metric))
            rc = no_such_metric(input, "--fail-above: no launch has", metric, err);
    }
    return rc;
}

/* ---- chosen items that a session lacks ---- */

static bool is_listed_in_both(const struct diff *d)
{
    const char *cursor = d->display->metrics, *item;
    size_t len;
    bool found = false;
    while (!found && kp_list_next(&cursor, &item, &len)) {
        char *name = strndup(item, len);
        /* Like check_listed(), skips items that stand for several metrics. */
        found = !name || strchr(name, ':') || (any_has(&d->side[A], name) && any_has(&d->side[B], name));
        free(name);
    }
    return found;
}

static void tell_uncollected(FILE *to, const struct kp_section *s, const char *const lacking[], size_t n)
{
    fprintf(to, "%s was not collected in %s%s%s\n", s->id, lacking[0], n > 1 ? " and " : "", n > 1 ? lacking[1] : "");
}

/* Writes a line for each chosen section that a session lacks. Returns whether a section is in both. */
static bool tell_sections(FILE *to, const struct diff *d)
{
    bool any = false;
    const struct kp_wanted *wanted = &d->side[A].wanted; /* the same for both sides because it was chosen */
    for (size_t i = 0; i < wanted->n; i++) {
        const char *lacking[SIDES];
        size_t n = 0;
        for (int side = A; side < SIDES; side++)
            if (!d->side[side].collected[i])
                lacking[n++] = d->file[side];
        if (n)
            tell_uncollected(to, wanted->sections[i], lacking, n);
        any |= !n;
    }
    return any;
}

/* Finds what was chosen but is not in both sessions; a set is not checked because it has more than any session. */
static int check_chosen(const struct diff *d, struct kp_diff_outcome *outcome)
{
    const struct kp_display *shown = d->display;
    size_t size;
    if (!shown->choose || *kp_or_empty(shown->set) || !d->side[A].n || !d->side[B].n)
        return 0;
    FILE *to = open_memstream(&outcome->missing, &size);
    if (!to)
        return -ENOMEM;
    bool listed = *kp_or_empty(shown->metrics), asked = d->side[A].wanted.n || listed;
    outcome->nothing_chosen = !tell_sections(to, d) && asked && !(listed && is_listed_in_both(d));
    return kp_text_end(to, &outcome->missing) ? -ENOMEM : 0;
}

/* ---- all of it ---- */

static void print_sides(struct kp_out *o, const struct diff *d, const struct kp_diff_input input[SIDES])
{
    for (int i = 0; i < SIDES; i++) {
        const struct kp_session *s = &d->side[i].session;
        kp_out_print(o, "%c: %s, [%" PRIu64 "] %s@%s%s\n", d->side[i].letter, input[i].name, s->pid,
                     kp_write_process_name(s), kp_or_empty(s->host),
                     s->complete ? ""
                                 : ", incomplete: the program had not finished, or not everything could be stored");
    }
}

static void note_empty(const struct diff *d, struct kp_diff_outcome *outcome)
{
    for (int i = 0; i < SIDES; i++)
        outcome->empty[i] = d->side[i].n                                  ? KP_DIFF_NOT_EMPTY
                            : kp_account_of_timeline(&d->side[i].session) ? KP_DIFF_TIMELINE_ALONE
                                                                          : KP_DIFF_NO_LAUNCH;
}

static int compare_all(struct kp_out *o, struct diff *d, const struct kp_diff_input input[SIDES],
                       struct kp_diff_outcome *outcome, char **err)
{
    int rc = pair_up(d, &outcome->pairs);
    if (!rc)
        rc = check_metrics(d, input, err);
    if (!rc)
        rc = check_chosen(d, outcome);
    if (rc || (outcome->nothing_chosen && !d->options->n_limits)) /* of limits there is something to check */
        return rc;
    d->brief = outcome->brief = is_brief(d, outcome->pairs);
    if (!is_rows(d))
        print_sides(o, d, input);
    if (d->brief)
        print_brief(o, d);
    rc = print_pairs(o, d, outcome->pairs);
    for (int i = 0; !rc && i < SIDES && is_rows(d); i++)
        rc = write_alone(d, i);
    if (rc)
        return rc;
    if (!is_rows(d))
        print_totals(o, d, outcome->pairs);
    for (int i = 0; i < SIDES; i++)
        outcome->without_counters[i] = d->side[i].n && !d->side[i].counted;
    note_empty(d, outcome);
    return check_limits(o, d, outcome);
}

static int compare_as_text(const struct kp_sink *out, struct diff *d, const struct kp_diff_input input[SIDES],
                           struct kp_diff_outcome *outcome, char **err)
{
    struct kp_text_writer t;
    kp_write_text_writer_init(&t, out, d->display);
    d->writer = &t.base;
    kp_write_begin(d->writer, &layout);
    int rc = compare_all(&t.base.out, d, input, outcome, err), last = kp_write_end(d->writer);
    return rc ? rc : last;
}

/* Returns where rows become JSON: one list, of all comparisons. */
static struct kp_json *begin_json(const struct kp_diff_options *o, FILE *to)
{
    o->json->to = to;
    if (o->first)
        kp_json_array(o->json, NULL, false);
    return o->json;
}

/* Compares, and writes the values as rows. The other lines of a text report go to outcome->over. */
static int compare_as_rows(const struct kp_sink *out, struct diff *d, const struct kp_diff_input input[SIDES],
                           struct kp_diff_outcome *outcome, char **err)
{
    struct kp_stream stream;
    struct kp_csv_writer c;
    size_t size;
    int rc = kp_stream_open(&stream, out);
    FILE *over = rc ? NULL : open_memstream(&outcome->over, &size);
    if (over) {
        const struct kp_sink sink = kp_stream_sink(over);
        struct kp_out limits = {.sink = &sink, .display = d->display};
        kp_write_csv_writer_init(&c, stream.to, d->display);
        c.goes_on = !d->options->first;
        c.json = d->display->format == KP_FORMAT_JSON ? begin_json(d->options, stream.to) : NULL;
        d->writer = &c.base;
        kp_write_begin(d->writer, &layout);
        rc = compare_all(&limits, d, input, outcome, err);
        int last = kp_write_end(d->writer);
        rc = rc ? rc : limits.rc ? limits.rc : last;
        rc = kp_text_end(over, &outcome->over) && !rc ? -ENOMEM : rc;
        if (c.json && !rc && d->options->last)
            kp_json_end(c.json);
    } else if (!rc) {
        rc = -ENOMEM;
    }
    int closed = kp_stream_close(&stream);
    return rc ? rc : closed;
}

int kp_diff(const struct kp_sink *out, const struct kp_display *display, const struct kp_diff_options *options,
            const struct kp_diff_input input[SIDES], struct kp_diff_outcome *outcome, char **err)
{
    struct diff d = {
        .display = display, .options = options, .side = {{.letter = input[A].letter}, {.letter = input[B].letter}}};
    locale_t before = kp_plain_begin();
    int rc = 0;
    *outcome = (struct kp_diff_outcome){0};
    *err = NULL;
    for (int i = 0; !rc && i < SIDES; i++)
        rc = read_side(&d, &d.side[i], input[i].store, err);
    if (!rc && options->by == KP_DIFF_BY_KERNEL)
        rc = merge_kernels(&d);
    for (int i = 0; i < SIDES; i++)
        d.file[i] = input[i].name;
    if (!rc)
        rc = (display->format == KP_FORMAT_TEXT ? compare_as_text : compare_as_rows)(out, &d, input, outcome, err);
    for (int i = 0; i < SIDES; i++)
        free_side(&d.side[i]);
    kp_plain_end(before);
    return rc;
}
