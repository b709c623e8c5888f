#include "report/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sections.h"
#include "report/text.h"
#include "report/units.h"
#include "report/wrap.h"

enum {
    LINE_WIDTH = 120,
    VALUE_WIDTH_MAX = 30, /* longer values are wrapped */
    KERNELS_SHOWN = 10,   /* of those that no filter took */
};

static const char metrics_title[] = "Command line profiler metrics";
static const char not_collected[] = "not collected";

/* A sink that remembers its first error, so that callers need not look at each write. */
struct out {
    const struct kp_sink *sink;
    int rc;
};

static void put(struct out *o, const char *text, size_t len)
{
    if (!o->rc && len)
        o->rc = o->sink->write(o->sink->arg, text, len);
}

static void print(struct out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print(struct out *o, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) {
        o->rc = o->rc ? o->rc : -ENOMEM;
        return;
    }
    put(o, text, (size_t)n);
    free(text);
}

/* `prefix` and `text`, further lines indented to stand below the text. */
static void print_wrapped(struct out *o, const char *prefix, const char *text)
{
    size_t indent = strlen(prefix), len;
    struct kp_wrap w = {text, LINE_WIDTH - indent};
    const char *line;
    for (; kp_wrap_next(&w, &line, &len); prefix = "")
        print(o, "%-*s%.*s\n", (int)indent, prefix, (int)len, line);
}

/* One line of a table; `metric` is NULL when the launch has no such metric. */
struct line {
    const char *label, *name;
    const struct kp_metric *metric;
    const char *value; /* `number`, or text of the metric */
    char number[KP_NUMBER_MAX], unit[KP_UNIT_MAX];
};

struct table {
    struct line *lines;
    size_t n;
    const char *note; /* of the launch: stands above the table, so what it tells is not repeated there; NULL = none */
};

/* Adds a line; the array has room for it. */
static void add_line(struct table *t, const struct kp_result *r, const char *label, const char *name)
{
    struct line *l = &t->lines[t->n++];
    l->label = label;
    l->name = name;
    l->metric = kp_result_find(r, name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->name, ((const struct line *)b)->name);
}

static void sort_by_name(struct table *t)
{
    qsort(t->lines, t->n, sizeof *t->lines, by_name);
}

static size_t widest(size_t width, const char *text)
{
    size_t n = strlen(text);
    return n > width ? n : width;
}

struct widths {
    size_t label, unit, value;
};

static void print_rule(struct out *o, const struct widths *w)
{
    char dashes[LINE_WIDTH];
    memset(dashes, '-', sizeof dashes);
    print(o, "    ");
    for (size_t left = w->label, n; left; left -= n) {
        n = left < sizeof dashes ? left : sizeof dashes; /* metric names as labels may be longer than a line */
        put(o, dashes, n);
    }
    print(o, " %.*s %.*s\n", (int)w->unit, dashes, (int)w->value, dashes);
}

static void print_line(struct out *o, const struct widths *w, const char *label, const char *unit, const char *value)
{
    struct kp_wrap wrap = {value, VALUE_WIDTH_MAX};
    const char *part;
    size_t len;
    for (; kp_wrap_next(&wrap, &part, &len); label = unit = "")
        print(o, "    %-*s %*s %*.*s\n", (int)w->label, label, (int)w->unit, unit, (int)w->value, (int)len, part);
}

static const char *why_missing(const struct line *l)
{
    if (l->metric && l->metric->kind != KP_VALUE_NA)
        return NULL;
    return l->metric && *l->metric->text ? l->metric->text : not_collected;
}

static bool missing_for(const struct line *l, const char *why)
{
    const char *reason = why_missing(l);
    return reason && !strcmp(reason, why);
}

/* Why and, unless the whole table lacks its values for that one reason, which lines. malloc'ed. */
static char *describe_missing(const struct table *t, const char *why)
{
    char *text = NULL;
    size_t size, n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += missing_for(&t->lines[i], why);
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (size_t i = 0; i < t->n; i++)
        if (missing_for(&t->lines[i], why) && (n < t->n || n == 1))
            fprintf(f, "%s%s", t->lines[i].name, --n ? ", " : ": ");
    fputs(why, f);
    if (!fclose(f))
        return text;
    free(text);
    return NULL;
}

/* Whether `why` was already given for a line before the one at `i`. */
static bool said_before(const struct table *t, size_t i, const char *why)
{
    while (i--)
        if (missing_for(&t->lines[i], why))
            return true;
    return false;
}

static bool note_tells(const struct table *t, const char *why)
{
    return t->note && !strcmp(t->note, why);
}

static void print_missing(struct out *o, const struct table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const char *why = why_missing(&t->lines[i]);
        if (!why || note_tells(t, why) || said_before(t, i, why))
            continue;
        char *text = describe_missing(t, why);
        if (text)
            print_wrapped(o, "    n/a: ", text);
        else
            o->rc = o->rc ? o->rc : -ENOMEM;
        free(text);
    }
}

static void print_table(struct out *o, const char *title, struct table *t)
{
    static const char *const heading[] = {"Metric Name", "Metric Unit", "Metric Value"};
    struct widths w = {strlen(heading[0]), strlen(heading[1]), strlen(heading[2])};
    if (!t->n)
        return;
    for (size_t i = 0; i < t->n; i++) {
        struct line *l = &t->lines[i];
        l->value = kp_format_metric(l->metric, l->number, l->unit);
        w.label = widest(w.label, l->label);
        w.unit = widest(w.unit, l->unit);
        w.value = widest(w.value, l->value);
    }
    if (w.value > VALUE_WIDTH_MAX)
        w.value = VALUE_WIDTH_MAX;
    print(o, "    Section: %s\n", title);
    print_rule(o, &w);
    print_line(o, &w, heading[0], heading[1], heading[2]);
    print_rule(o, &w);
    for (size_t i = 0; i < t->n; i++)
        print_line(o, &w, t->lines[i].label, t->lines[i].unit, t->lines[i].value);
    print_rule(o, &w);
    print_missing(o, t);
    print(o, "\n");
}

/* Launch and occupancy values are of one kernel: of a whole graph, what was not set does not exist. */
static bool row_applies(const struct kp_row *row, const struct kp_result *r)
{
    const struct kp_launch_info *l = &r->launch;
    if (!kp_cc_matches(row->cc, l->cc_major, l->cc_minor))
        return false;
    return l->kind == KP_WORKLOAD_KERNEL || row->source == KP_SRC_COUNTER || kp_result_find(r, row->metric);
}

static int table_new(struct table *t, size_t capacity, const struct kp_result *r)
{
    t->n = 0;
    t->note = r->launch.note;
    t->lines = malloc((capacity ? capacity : 1) * sizeof *t->lines);
    return t->lines ? 0 : -ENOMEM;
}

/* Rows that lack their values for what the note tells are left out, and with them whole sections; and, where nobody
 * asked for the section, all rows that were not collected. */
static bool has_row(const struct table *t, const struct kp_row *row, const struct kp_result *r, bool asked_for)
{
    const struct kp_metric *m = kp_result_find(r, row->metric);
    if (!row_applies(row, r))
        return false;
    if (!m)
        return asked_for;
    return m->kind != KP_VALUE_NA || !note_tells(t, m->text);
}

static int render_section(struct out *o, const struct kp_section *s, const struct kp_result *r, bool asked_for)
{
    struct table t;
    int rc = table_new(&t, s->n_rows, r);
    if (rc)
        return rc;
    for (size_t i = 0; i < s->n_rows; i++)
        if (has_row(&t, &s->rows[i], r, asked_for))
            add_line(&t, r, s->rows[i].label, s->rows[i].metric);
    if (s->passes != KP_PASSES_ONE) /* there, the rows that tell most come first */
        sort_by_name(&t);
    print_table(o, s->display, &t);
    free(t.lines);
    return 0;
}

static bool has_line(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->lines[i].name, name))
            return true;
    return false;
}

/* The metrics that were asked for by name, under their names. */
static int render_metrics(struct out *o, const char *list, const struct kp_result *r)
{
    struct table t = {0};
    char *names = kp_strdup(list), *save = NULL;
    size_t commas = 0;
    for (const char *c = list; *c; c++)
        commas += *c == ',';
    int rc = names ? table_new(&t, commas + 1, r) : -ENOMEM;
    if (!rc) {
        for (char *name = strtok_r(names, ", \t", &save); name; name = strtok_r(NULL, ", \t", &save))
            if (!has_line(&t, name))
                add_line(&t, r, name, name);
        sort_by_name(&t);
        print_table(o, metrics_title, &t);
    }
    free(t.lines);
    free(names);
    return rc;
}

/* What is printed of each launch. */
struct wanted {
    const struct kp_section **sections;
    size_t n;
    const char *metrics;
};

static bool is_wanted(const struct wanted *w, const char *metric)
{
    const char *cursor = w->metrics, *item;
    size_t len;
    while (kp_list_next(&cursor, &item, &len))
        if (strlen(metric) == len && !strncmp(item, metric, len))
            return true;
    for (size_t i = 0; i < w->n; i++)
        for (size_t j = 0; j < w->sections[i]->n_rows; j++)
            if (!strcmp(w->sections[i]->rows[j].metric, metric))
                return true;
    return false;
}

/* A launch that must not be replayed has the counters of the section of one pass instead of those asked for. It is told
 * by a metric that nobody asked for. */
static bool has_quick_instead(const struct kp_result *r, const struct wanted *w)
{
    const struct kp_section *quick = kp_section_quick();
    if (r->launch.passes != 1)
        return false;
    for (size_t i = 0; i < quick->n_rows; i++) {
        const struct kp_row *row = &quick->rows[i];
        const struct kp_metric *m = row->source == KP_SRC_COUNTER ? kp_result_find(r, row->metric) : NULL;
        if (m && !is_wanted(w, row->metric))
            return true;
    }
    return false;
}

static void print_note(struct out *o, const char *note, bool quick)
{
    static const char counted[] = "; counted in one pass, with the caches as they were";
    char *text;
    if (asprintf(&text, "%s%s", note, quick ? counted : "") < 0) {
        o->rc = o->rc ? o->rc : -ENOMEM;
        return;
    }
    print_wrapped(o, "    Note: ", text);
    free(text);
}

static void print_launch_line(struct out *o, const struct kp_launch_info *l)
{
    const char *name = l->demangled && *l->demangled ? l->demangled : l->mangled ? l->mangled : "?";
    print(o, "  %s", name);
    if (l->kind == KP_WORKLOAD_KERNEL)
        print(o, " (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")x(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", l->grid[0],
              l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
    print(o, ", Context %" PRIu64 ", Stream %" PRIu64 ", Device %d, CC %d.%d\n", l->context_id, l->stream_id, l->device,
          l->cc_major, l->cc_minor);
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

int kp_render_process(const struct kp_sink *sink, const struct kp_session *s)
{
    struct out o = {sink, 0};
    const char *exe = or_empty(s->exe), *slash = strrchr(exe, '/');
    print(&o, "[%" PRIu64 "] %s@%s\n", s->pid, slash ? slash + 1 : exe, or_empty(s->host));
    return o.rc;
}

static int render_tables(struct out *o, const struct kp_result *r, const struct wanted *w, bool quick)
{
    int rc = quick ? render_section(o, kp_section_quick(), r, false) : 0;
    for (size_t i = 0; !rc && i < w->n; i++)
        rc = render_section(o, w->sections[i], r, true);
    return rc ? rc : render_metrics(o, w->metrics, r);
}

int kp_render_launch(const struct kp_sink *sink, const struct kp_session *s, const struct kp_result *r)
{
    struct out o = {sink, 0};
    struct wanted w = {.metrics = or_empty(s->metrics)};
    char *err = NULL;
    int rc = kp_sections_select(or_empty(s->set), or_empty(s->sections), &w.sections, &w.n, &err);
    free(err); /* the options were checked when the session began */
    if (rc)
        return rc;
    bool quick = has_quick_instead(r, &w);
    print_launch_line(&o, &r->launch);
    if (r->launch.note)
        print_note(&o, r->launch.note, quick);
    rc = render_tables(&o, r, &w, quick);
    free(w.sections);
    return rc ? rc : o.rc;
}

static void print_counted(struct out *o, uint64_t n, const char *one, const char *many)
{
    char number[KP_NUMBER_MAX];
    kp_format_count(n, number);
    print(o, "%s %s", number, n == 1 ? one : many);
}

static uint64_t print_skips(struct out *o, const struct kp_session *s)
{
    uint64_t total = 0;
    char number[KP_NUMBER_MAX];
    for (size_t i = 0; i < s->n_skips; i++)
        total += s->skips[i].count;
    print_counted(o, total, "skipped", "skipped");
    /* The number comes last, so that a reason may be any clause, of one launch or many. */
    for (size_t i = 0; i < s->n_skips; i++) {
        kp_format_count(s->skips[i].count, number);
        print(o, "%s%s: %s", i ? "; " : " (", s->skips[i].reason, number);
    }
    print(o, s->n_skips ? ")" : "");
    return total;
}

/* What to do where nothing was profiled, by the reason that stopped the launches. */
static const struct advice {
    const char *reason, *text;
} advices[] = {
    {KP_SKIP_NO_COUNTERS, "the warnings, notes and tables above say what kept the counters from being read"},
    {KP_SKIP_KERNEL_NAME, "no kernel has the name that was asked for; change KPROF_KERNEL_NAME (kernel-name)"},
    {KP_SKIP_LAUNCH_SKIP,
     "all matching launches came before the first one to profile; lower KPROF_LAUNCH_SKIP (launch-skip)"},
    {KP_SKIP_LAUNCH_COUNT, "the launches to profile were used up; raise KPROF_LAUNCH_COUNT (launch-count)"},
};

static bool was_skipped_for(const struct kp_session *s, const char *reason)
{
    for (size_t i = 0; i < s->n_skips; i++)
        if (!strcmp(s->skips[i].reason, reason))
            return true;
    return false;
}

/* The first that applies: what it says has to be mended before the others can matter. */
static const char *find_advice(const struct kp_session *s)
{
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (was_skipped_for(s, advices[i].reason))
            return advices[i].text;
    return s->n_skips ? "the line above says what every launch was skipped for"
                      : "the program ended before the first launch was measured to its end";
}

static void print_kernels(struct out *o, const struct kp_session *s)
{
    char number[KP_NUMBER_MAX];
    for (size_t i = 0; i < s->n_kernels && i < KERNELS_SHOWN; i++) {
        kp_format_count(s->kernels[i].count, number);
        print(o, "==KPROF==   seen: %s (%s)\n", s->kernels[i].name, number);
    }
    if (s->n_kernels > KERNELS_SHOWN)
        print(o, "==KPROF==   and %zu more\n", s->n_kernels - KERNELS_SHOWN);
}

static void print_why_nothing(struct out *o, const struct kp_session *s)
{
    static const char head[] = "==KPROF== Nothing was profiled:";
    if (!s->launches_seen && !s->complete) {
        print(o,
              "%s no launch had been stored. Those of the window that was open when the program was killed are lost; "
              "KPROF_WINDOW (window) bounds how many.\n",
              head);
        return;
    }
    if (!s->launches_seen) {
        print(o,
              "%s the program launched no kernel that kprof could see. Does it use the GPU? Programs that start others "
              "must hand on LD_PRELOAD; set-user-ID and fully static programs cannot be followed.\n",
              head);
        return;
    }
    print(o, "%s %s.\n", head, find_advice(s));
    print_kernels(o, s);
}

int kp_render_account(const struct kp_sink *sink, const struct kp_session *s)
{
    struct out o = {sink, 0};
    char spent[KP_NUMBER_MAX + KP_UNIT_MAX];
    kp_format_quantity(s->profiling_ns, "ns", spent);
    print(&o, "==KPROF== ");
    print_counted(&o, s->launches_seen, "launch seen, ", "launches seen, ");
    print_counted(&o, s->launches_profiled, "profiled, ", "profiled, ");
    uint64_t done = s->launches_profiled + print_skips(&o, s);
    if (s->launches_seen > done) {
        print(&o, ", ");
        print_counted(&o, s->launches_seen - done, "not finished", "not finished");
    }
    print(&o, "; ");
    print_counted(&o, s->passes, "pass", "passes");
    print(&o, "; %s spent profiling\n", spent);
    if (!s->launches_profiled)
        print_why_nothing(&o, s);
    return o.rc;
}
