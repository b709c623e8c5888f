#include "report/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/plain.h"
#include "report/units.h"
#include "report/verdict.h"
#include "report/wrap.h"

enum {
    BOUNDS_MAX = 8,   /* kinds of bound that are kept of one kernel: more than launches of one kernel differ in */
    RULES_MAX = 64,   /* the most that a kp_rule_choice can hold */
    KERNELS_MAX = 20, /* lines of the table */
    LINE_WIDTH = 120,
};

struct bound {
    char what[KP_BOUND_NAME_MAX];
    double weight; /* time, or launches where no launch has a time */
};

struct kernel {
    char *name;
    uint64_t launches;
    double ns;
    struct bound bounds[BOUNDS_MAX];
    double saved[RULES_MAX]; /* by rules of the table, firm and of the whole kernel: ns of all launches */
};

/* A place in a list that is sorted. */
struct entry {
    struct kernel *kernel;
};

struct kp_summary {
    struct entry *kernels; /* by name */
    size_t n, capacity;
    const struct kp_section *sections[RULES_MAX]; /* of the rules that spoke */
    uint64_t launches;
    double ns;
};

struct kp_summary *kp_summary_new(void)
{
    return calloc(1, sizeof(struct kp_summary));
}

void kp_summary_free(struct kp_summary *s)
{
    for (size_t i = 0; s && i < s->n; i++) {
        free(s->kernels[i].kernel->name);
        free(s->kernels[i].kernel);
    }
    free(s ? s->kernels : NULL);
    free(s);
}

/* Where `name` stands, or would have to. */
static size_t place(const struct kp_summary *s, const char *name)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(s->kernels[middle].kernel->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int grow(struct kp_summary *s)
{
    if (s->n < s->capacity)
        return 0;
    size_t grown = s->capacity ? 2 * s->capacity : 32;
    struct entry *kernels = realloc(s->kernels, grown * sizeof *kernels);
    if (!kernels)
        return -ENOMEM;
    s->kernels = kernels;
    s->capacity = grown;
    return 0;
}

static struct kernel *insert(struct kp_summary *s, size_t at, const char *name)
{
    struct kernel *k = calloc(1, sizeof *k);
    if (!k || !(k->name = kp_strdup(name)) || grow(s)) {
        free(k ? k->name : NULL);
        free(k);
        return NULL;
    }
    memmove(&s->kernels[at + 1], &s->kernels[at], (s->n - at) * sizeof *s->kernels);
    s->kernels[at].kernel = k;
    s->n++;
    return k;
}

static struct kernel *find_or_add(struct kp_summary *s, const struct kp_launch_info *l)
{
    const char *name = l->demangled && *l->demangled ? l->demangled : l->mangled ? l->mangled : "?";
    size_t at = place(s, name);
    if (at < s->n && !strcmp(s->kernels[at].kernel->name, name))
        return s->kernels[at].kernel;
    return insert(s, at, name);
}

static void add_bound(struct kernel *k, const char *what, double weight)
{
    for (size_t i = 0; *what && i < BOUNDS_MAX; i++) {
        struct bound *b = &k->bounds[i];
        if (*b->what && strcmp(b->what, what) != 0)
            continue;
        snprintf(b->what, sizeof b->what, "%s", what);
        b->weight += weight;
        return;
    }
}

/* Of several messages of a rule the best counts: they are about the same time. */
static void add_savings(struct kp_summary *s, struct kernel *k, const struct kp_messages *m, double ns)
{
    double best[RULES_MAX] = {0};
    size_t n;
    const struct kp_rule *rules = kp_rules(&n);
    for (size_t i = 0; i < m->n; i++) {
        size_t rule = (size_t)(m->list[i].rule - rules);
        s->sections[rule] = m->list[i].section;
        if (m->list[i].global && !rules[rule].ceiling && m->list[i].speedup > best[rule])
            best[rule] = m->list[i].speedup;
    }
    for (size_t i = 0; i < n; i++)
        k->saved[i] += best[i] / 100 * ns;
}

int kp_summary_add(struct kp_summary *s, const struct kp_session *session, const struct kp_result *r,
                   const struct kp_messages *m)
{
    struct kernel *k = find_or_add(s, &r->launch);
    struct kp_verdict v;
    double ns = 0;
    if (!k)
        return -ENOMEM;
    kp_metric_number(kp_result_find(r, "gpu__time_duration.sum"), &ns);
    if (!isfinite(ns) || ns < 0) /* of a session file that was edited: it must not spoil the sums */
        ns = 0;
    kp_verdict(r, session, m, &v);
    add_bound(k, v.what, ns > 0 ? ns : 1);
    add_savings(s, k, m, ns);
    k->launches++;
    k->ns += ns;
    s->launches++;
    s->ns += ns;
    return 0;
}

static const char *main_bound(const struct kernel *k)
{
    const struct bound *best = k->bounds;
    for (size_t i = 1; i < BOUNDS_MAX; i++)
        if (k->bounds[i].weight > best->weight)
            best = &k->bounds[i];
    return best->what;
}

/* The rule that would save most of the kernel's time, NULL when none would. */
static const struct kp_rule *best_rule(const struct kernel *k, double *saved)
{
    size_t n;
    const struct kp_rule *rules = kp_rules(&n), *best = NULL;
    *saved = 0;
    for (size_t i = 0; i < n; i++)
        if (k->saved[i] > *saved) {
            *saved = k->saved[i];
            best = &rules[i];
        }
    return best;
}

enum { TIME, TOTAL, LAUNCHES, BOUND, GAIN, RULE, KERNEL, COLUMNS };
enum { CELL_MAX = KP_NUMBER_MAX + KP_UNIT_MAX };
static const char *const heading[COLUMNS] = {"Time %", "Total Time", "Launches", "Bound by",
                                             "Gain %", "By Rule",    "Kernel"};
static const bool to_the_left[COLUMNS] = {[BOUND] = true, [RULE] = true, [KERNEL] = true};

/* A line of the table; the kernel's name, which may be of any length, comes last and is not in `cell`. */
struct line {
    const struct kernel *kernel;
    char cell[KERNEL][CELL_MAX];
};

static void fill_line(const struct kp_summary *s, const struct kernel *k, struct line *l)
{
    double saved;
    const struct kp_rule *rule = best_rule(k, &saved);
    const char *bound = main_bound(k);
    l->kernel = k;
    snprintf(l->cell[TIME], CELL_MAX, "%.1f", s->ns > 0 ? 100 * k->ns / s->ns : 0);
    kp_format_quantity(k->ns, "ns", false, l->cell[TOTAL]);
    kp_format_count(k->launches, l->cell[LAUNCHES]);
    snprintf(l->cell[BOUND], CELL_MAX, "%s", *bound ? bound : "not known");
    snprintf(l->cell[GAIN], CELL_MAX, "%.1f", s->ns > 0 ? 100 * saved / s->ns : 0);
    snprintf(l->cell[RULE], CELL_MAX, "%s", rule ? rule->id : "");
}

static int by_time(const void *a, const void *b)
{
    const struct kernel *x = ((const struct entry *)a)->kernel, *y = ((const struct entry *)b)->kernel;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->name, y->name);
}

static void print_line(FILE *f, const int width[COLUMNS], const char *const cell[COLUMNS])
{
    fprintf(f, "  ");
    for (int i = 0; i < KERNEL; i++)
        fprintf(f, to_the_left[i] ? "%-*s " : "%*s ", width[i], cell[i]);
    fprintf(f, "%s\n", cell[KERNEL]);
}

static void print_dashes(FILE *f, const int width[COLUMNS])
{
    static const char dashes[] = "------------------------------------------------------------";
    const char *cell[COLUMNS];
    char rule[COLUMNS][sizeof dashes];
    for (int i = 0; i < COLUMNS; i++) {
        snprintf(rule[i], sizeof rule[i], "%.*s", width[i], dashes);
        cell[i] = rule[i];
    }
    print_line(f, width, cell);
}

static void print_table(FILE *f, const struct line *lines, size_t n)
{
    int width[COLUMNS];
    const char *cell[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        width[i] = (int)strlen(heading[i]);
        for (size_t j = 0; i < KERNEL && j < n; j++)
            if ((int)strlen(lines[j].cell[i]) > width[i])
                width[i] = (int)strlen(lines[j].cell[i]);
    }
    print_dashes(f, width);
    print_line(f, width, heading);
    print_dashes(f, width);
    for (size_t j = 0; j < n; j++) {
        for (int i = 0; i < KERNEL; i++)
            cell[i] = lines[j].cell[i];
        cell[KERNEL] = lines[j].kernel->name;
        print_line(f, width, cell);
    }
    print_dashes(f, width);
}

/* The kernel whose best rule saves most of the run; the longest one where no rule saves anything. */
static const struct kernel *fix_first(const struct entry *by_ns, size_t n)
{
    const struct kernel *first = by_ns[0].kernel;
    double most = 0, saved;
    for (size_t i = 0; i < n; i++)
        if (best_rule(by_ns[i].kernel, &saved) && saved > most) {
            most = saved;
            first = by_ns[i].kernel;
        }
    return first;
}

static void print_wrapped(FILE *f, const char *text)
{
    struct kp_wrap wrap = {text, LINE_WIDTH};
    const char *line;
    size_t len;
    while (kp_wrap_next(&wrap, &line, &len))
        fprintf(f, "%.*s\n", (int)len, line);
}

static int print_first(FILE *f, const struct kp_summary *s, const struct kernel *k)
{
    double saved;
    const struct kp_rule *rule = best_rule(k, &saved);
    size_t n;
    const char *bound = main_bound(k);
    char *text;
    int len =
        rule ? asprintf(&text,
                        "==KPROF== Fix first: %s, bound by %s: rule %s (%s) would save up to %.1f%% of the run's GPU "
                        "time (%.1f%% of this kernel's)",
                        k->name, *bound ? bound : "what is not known", rule->id,
                        s->sections[rule - kp_rules(&n)]->display, 100 * saved / s->ns, 100 * saved / k->ns)
             : asprintf(&text, "==KPROF== Look first at: %s, bound by %s: no rule names a gain for a whole kernel",
                        k->name, *bound ? bound : "what is not known");
    if (len < 0)
        return -ENOMEM;
    print_wrapped(f, text);
    free(text);
    return 0;
}

static void print_totals(FILE *f, const struct kp_summary *s, size_t shown)
{
    char total[CELL_MAX];
    kp_format_quantity(s->ns, "ns", false, total);
    fprintf(f, "==KPROF== %" PRIu64 " %s of %zu %s, %s of GPU time; gains are of the run", s->launches,
            s->launches == 1 ? "launch" : "launches", s->n, s->n == 1 ? "kernel" : "kernels", total);
    fprintf(f, shown < s->n ? "; the %zu longest:\n" : "\n", shown);
}

static int print_all(FILE *f, const struct kp_summary *s, struct entry *by_ns, struct line *lines)
{
    size_t shown = s->n < KERNELS_MAX ? s->n : KERNELS_MAX;
    memcpy(by_ns, s->kernels, s->n * sizeof *by_ns);
    qsort(by_ns, s->n, sizeof *by_ns, by_time);
    int rc = print_first(f, s, fix_first(by_ns, s->n));
    if (rc)
        return rc;
    for (size_t i = 0; i < shown; i++)
        fill_line(s, by_ns[i].kernel, &lines[i]);
    print_totals(f, s, shown);
    print_table(f, lines, shown);
    return 0;
}

int kp_summary_render(const struct kp_summary *s, const struct kp_sink *out)
{
    char *text = NULL;
    size_t size = 0;
    if (!s->n)
        return 0;
    struct entry *by_ns = malloc(s->n * sizeof *by_ns);
    struct line *lines = malloc(KERNELS_MAX * sizeof *lines);
    FILE *f = by_ns && lines ? open_memstream(&text, &size) : NULL;
    int rc = f ? 0 : -ENOMEM;
    if (f) {
        locale_t before = kp_plain_begin();
        rc = print_all(f, s, by_ns, lines);
        kp_plain_end(before);
        rc = fclose(f) ? -ENOMEM : rc;
    }
    if (!rc)
        rc = out->write(out->arg, text, size);
    free(text);
    free(lines);
    free(by_ns);
    return rc;
}
