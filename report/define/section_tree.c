#include "report/define/section_tree.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/expr.h"
#include "base/nearest.h"
#include "base/room.h"
#include "base/text.h"
#include "report/define/groups.h"

/* Compute capabilities as ten times major plus minor; the highest also stands for all above. */
enum { N_ARCHS = 256, WORD_BITS = 64 };

enum { MAX_NOTES = 100 };

struct archs {
    uint64_t bits[N_ARCHS / WORD_BITS];
};

/* A row and data needed only while it is built. */
struct built {
    struct kp_row row;
    struct archs archs;
    unsigned element; /* the metric of the file that it is an option of */
};

struct builder {
    struct kp_section_reader *r;
    struct built *rows;
    size_t n;
    size_t body; /* start of the body that rows are added to; 0 for the tables of the section */
    unsigned element;
    int rc;
    char **err;
};

/* ---- the fields that are known, by message; others are noted ---- */

static const char *const section_fields[] = {"Identifier", "DisplayName", "Extends", "Description", "Order",
                                             "Sets",       "Filter",      "Header",  "Metrics",     "MetricDefinitions",
                                             "Body",       NULL};
static const char *const header_fields[] = {"Rows", "Columns", "Order", "Label", "Description", "Metrics", NULL};
static const char *const metric_fields[] = {"Label",       "Name",   "Filter",     "Options",        "ShowInstances",
                                            "Description", "Groups", "CtrDomains", "UserMetricExpr", NULL};
static const char *const filter_fields[] = {"MinArch", "MaxArch",          "Items", "MinKmd", "MaxKmd",
                                            "VGpu",    "CollectionFilter", NULL};
static const char *const collection_fields[] = {"CollectionScopes", "Importance", NULL};
static const char *const definition_fields[] = {"Name", "Expression", "Filter", "Description", NULL};
static const char *const body_fields[] = {"DisplayName", "Description", "SetDefault", "Items", NULL};
static const char *const chart_fields[] = {
    "Label",     "Description",        "Rows",    "Columns",       "Order", "Metrics", "CategoryAxis",
    "ValueAxis", "ValueAxisAlignment", "SortKey", "SortDirection", "AxisX", "AxisY",   "HighlightX",
    NULL};
static const char *const suffix_table_fields[] = {"Label", "Description", "Suffixes", "BaseNames", NULL};
static const char *const roofline_fields[] = {"Label",          "Description", "AxisIntensity", "AxisWork", "Rooflines",
                                              "AchievedValues", NULL};

/* ---- errors and notes ---- */

__attribute__((format(printf, 3, 4))) static void fail(struct builder *b, const struct kp_field *at, const char *format,
                                                       ...)
{
    char *what = NULL;
    va_list args;
    if (b->rc)
        return;
    va_start(args, format);
    int n = vasprintf(&what, format, args);
    va_end(args);
    b->rc = n < 0 ? -ENOMEM : kp_error(b->err, "%s:%u:%u: %s", b->r->file, at->line, at->column, what);
    if (n >= 0)
        free(what);
}

static void *checked(struct builder *b, void *p)
{
    if (!p && !b->rc)
        b->rc = -ENOMEM;
    return p;
}

/* Notes once that `what` is not used; `near` is the nearest known name, or NULL. */
static int keep_note(struct kp_section_reader *r, const struct kp_field *at, const char *what, const char *near)
{
    char *text = NULL;
    for (const struct kp_section_note *n = r->notes; n; n = n->next)
        if (!strcmp(n->what, what))
            return 0;
    if (r->n_notes == MAX_NOTES)
        return 0;
    int rc = asprintf(&text, "'%s' at %s:%u:%u%s%s%s", what, kp_base_name(r->file), at->line, at->column,
                      near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    if (rc < 0)
        return -ENOMEM;
    struct kp_section_note *note = kp_arena_alloc(&r->arena, sizeof *note);
    if (note)
        *note = (struct kp_section_note){kp_arena_text(&r->arena, text, strlen(text)),
                                         kp_arena_text(&r->arena, what, strlen(what)), r->notes};
    free(text);
    if (!note || !note->text || !note->what)
        return -ENOMEM;
    r->notes = note;
    r->n_notes++;
    return 0;
}

static void note(struct builder *b, const struct kp_field *at, const char *what, const char *near)
{
    if (!b->rc)
        b->rc = keep_note(b->r, at, what, near);
}

static bool is_in(const char *word, const char *const *list)
{
    while (*list && strcmp(*list, word))
        list++;
    return *list;
}

static void note_unknown(struct builder *b, const struct kp_field *message, const char *const *known)
{
    for (const struct kp_field *f = message->first; f; f = f->next)
        if (!is_in(f->name, known))
            note(b, f, f->name, kp_nearest(f->name, known));
}

/* ---- looking into the tree ---- */

static const struct kp_field *next_of(const struct kp_field *f, const char *name)
{
    while (f && strcmp(f->name, name))
        f = f->next;
    return f;
}

static const struct kp_field *child(const struct kp_field *message, const char *name)
{
    return message ? next_of(message->first, name) : NULL;
}

/* Returns the next field of the same name. */
static const struct kp_field *another(const struct kp_field *f)
{
    return next_of(f->next, f->name);
}

/* Returns the text of a field, NULL without such a field or text. */
static const char *text_of(const struct kp_field *message, const char *name)
{
    const struct kp_field *f = child(message, name);
    return f && *f->text ? f->text : NULL;
}

/* Returns the text of a required field. */
static const char *required(struct builder *b, const struct kp_field *message, const char *what, const char *name)
{
    const char *const only[] = {name, NULL}, *text = text_of(message, name);
    if (text)
        return text;
    for (const struct kp_field *f = message->first; f; f = f->next)
        if (strcmp(f->name, name) && kp_nearest(f->name, only))
            fail(b, f, "unknown field '%s'; did you mean '%s'?", f->name, name);
    fail(b, message, "%s without %s", what, name);
    return "";
}

static void whole_number(struct builder *b, const struct kp_field *f, int *out)
{
    char *end;
    errno = 0;
    long v = strtol(f->text, &end, 10);
    if (f->kind != KP_FIELD_NUMBER || *end || errno || v < INT_MIN || v > INT_MAX)
        fail(b, f, "%s must be a whole number", f->name);
    else
        *out = (int)v;
}

/* Copies text into the arena, without characters that break a line of the report. */
static const char *keep(struct builder *b, const char *text)
{
    char *copy = checked(b, kp_arena_text(&b->r->arena, text, strlen(text)));
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return copy;
}

/* ---- filters ---- */

static bool has_arch(const struct archs *a, unsigned i)
{
    return a->bits[i / WORD_BITS] >> i % WORD_BITS & 1;
}

static struct archs range(int low, int high)
{
    struct archs a = {{0}};
    for (int i = low; i <= high && i < N_ARCHS; i++)
        a.bits[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
    return a;
}

static struct archs all_archs(void)
{
    return range(0, N_ARCHS - 1);
}

static void restrict_to(struct archs *a, const struct archs *b, bool inverse)
{
    for (size_t i = 0; i < sizeof a->bits / sizeof *a->bits; i++)
        a->bits[i] &= inverse ? ~b->bits[i] : b->bits[i];
}

static bool overlap(struct archs a, const struct archs *b)
{
    uint64_t any = 0;
    restrict_to(&a, b, false);
    for (size_t i = 0; i < sizeof a.bits / sizeof *a.bits; i++)
        any |= a.bits[i];
    return any != 0;
}

static bool is_empty(const struct archs *a)
{
    return !overlap(*a, a);
}

/* Writes a condition as in kp_row.cc; a condition that never holds names a capability that no chip has. */
static const char *condition(struct builder *b, const struct archs *a)
{
    char text[4 * N_ARCHS], *out = text;
    *out = '\0';
    for (unsigned low = 0, high; low < N_ARCHS; low = high + 1) {
        for (high = low; high < N_ARCHS && has_arch(a, high) == has_arch(a, low); high++)
            ;
        high--;
        if (!has_arch(a, low) || (!low && high == N_ARCHS - 1))
            continue;
        out += sprintf(out, "%s%u", out == text ? "" : ",", low);
        if (high == N_ARCHS - 1)
            out += sprintf(out, "-");
        else if (high > low)
            out += sprintf(out, "-%u", high);
    }
    return keep(b, is_empty(a) ? "0" : text);
}

/* CC_86, or 86. */
static int arch(struct builder *b, const struct kp_field *f)
{
    const char *digits = f->text + (strncmp(f->text, "CC_", 3) ? 0 : 3);
    size_t n = strspn(digits, "0123456789");
    if (!n || n > 4 || digits[n])
        fail(b, f, "'%s' is not an architecture; write one such as CC_90", f->text);
    return n && n <= 4 ? atoi(digits) : 0;
}

static struct archs bounds(struct builder *b, const struct kp_field *filter)
{
    const struct kp_field *min = child(filter, "MinArch"), *max = child(filter, "MaxArch");
    return range(min ? arch(b, min) : 0, max ? arch(b, max) : N_ARCHS - 1);
}

/* Returns true if a filter admits launches: the only one of the file's scopes that kprof collects. */
static bool wants_launches(struct builder *b, const struct kp_field *filter)
{
    const struct kp_field *collection = child(filter, "CollectionFilter"), *scopes;
    if (!collection)
        return true;
    note_unknown(b, collection, collection_fields);
    scopes = child(collection, "CollectionScopes");
    for (const struct kp_field *f = child(collection, "CollectionScopes"); f; f = another(f))
        if (!strcmp(f->text, "CollectionScope_Launch"))
            return true;
    return !scopes;
}

/* Returns the part of `outer` that the filters of `owner` leave. */
static struct archs filtered(struct builder *b, const struct kp_field *owner, struct archs outer)
{
    for (const struct kp_field *filter = child(owner, "Filter"); filter; filter = another(filter)) {
        note_unknown(b, filter, filter_fields);
        struct archs limits = bounds(b, filter), any = {{0}};
        for (const struct kp_field *item = child(filter, "Items"); item; item = another(item)) {
            struct archs one = bounds(b, item);
            for (size_t i = 0; i < sizeof any.bits / sizeof *any.bits; i++)
                any.bits[i] |= one.bits[i];
        }
        restrict_to(&outer, &limits, false);
        if (child(filter, "Items"))
            restrict_to(&outer, &any, false);
        if (!wants_launches(b, filter))
            outer = (struct archs){{0}};
    }
    return outer;
}

/* ---- rows ---- */

static struct built *new_row(struct builder *b)
{
    if (!checked(b, KP_ROOM(b->rows, b->n) ? b->rows : NULL))
        return NULL;
    struct built *row = &b->rows[b->n++];
    *row = (struct built){.row = {.unit = KP_UNIT_OF_CHIP, .source = KP_SRC_COUNTER}, .element = b->element};
    return row;
}

/* Returns true if another metric of the file has the row's place on some chip, and would be read as an option of the
 * row. */
static bool is_taken(const struct builder *b, const struct built *row, const char *label)
{
    for (size_t i = b->body; i < b->n; i++) {
        const struct built *other = &b->rows[i];
        if (other->element != row->element && other->row.kind == row->row.kind &&
            !strcmp(other->row.group, row->row.group) && !strcmp(other->row.label, label) &&
            overlap(other->archs, &row->archs))
            return true;
    }
    return false;
}

/* Returns the label, with a number after it if it is in use. */
static const char *free_label(struct builder *b, const struct built *row, const char *label)
{
    char text[1024];
    if (!is_taken(b, row, label))
        return keep(b, label);
    unsigned n = 2;
    do
        snprintf(text, sizeof text, "%s (%u)", label, n);
    while (++n < 100 && is_taken(b, row, text));
    return keep(b, text);
}

/* A row without its metric. */
struct place {
    enum kp_row_kind kind;
    const char *group;
    struct archs archs;
};

static void add_row(struct builder *b, const struct place *p, const struct archs *archs, const char *label,
                    const char *metric)
{
    if (b->rc || is_empty(archs))
        return;
    struct built row = {.archs = *archs, .element = b->element, .row = {.kind = p->kind, .group = p->group}};
    row.row.label = free_label(b, &row, label);
    row.row.metric = keep(b, metric);
    row.row.cc = condition(b, archs);
    row.row.unit = KP_UNIT_OF_CHIP;
    struct built *added = b->rc ? NULL : new_row(b);
    if (added)
        *added = row;
}

/* Returns true if a name stands for several metrics, which only the chip knows, or for samples over time. */
static bool is_no_metric(const char *name)
{
    static const char *const prefixes[] = {"regex:", KP_GROUP, KP_SAMPLED};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

static void check_name(struct builder *b, const struct kp_field *at, const char *name)
{
    for (const char *c = name; *c; c++)
        if (*c <= ' ' || *c > '~' || *c == ',') {
            fail(b, at, "'%s' is not a metric name", name);
            return;
        }
}

/* Returns NULL for fields that make no row. An empty name is an empty cell of the table. */
static const char *metric_name(struct builder *b, const struct kp_field *metric)
{
    const struct kp_field *f = child(metric, "Name");
    const char *name = f && !*f->text ? "" : required(b, metric, "metric", "Name");
    check_name(b, f ? f : metric, name);
    if (!is_no_metric(name))
        return *name ? name : NULL;
    note(b, f, name, NULL);
    return NULL;
}

static bool is_breakdown(const char *name)
{
    return !strncmp(name, "breakdown:", strlen("breakdown:"));
}

/* Adds a metric and its options. Options come first because the first row that applies is shown. */
static void add_metric(struct builder *b, const struct kp_field *metric, const struct place *p)
{
    const char *name = metric_name(b, metric), *label = text_of(metric, "Label");
    struct archs base = filtered(b, metric, p->archs);
    note_unknown(b, metric, metric_fields);
    b->element++;
    if (!name)
        return;
    for (const struct kp_field *option = child(metric, "Options"); option; option = another(option)) {
        const char *other = metric_name(b, option), *other_label = text_of(option, "Label");
        struct archs archs = filtered(b, option, p->archs);
        note_unknown(b, option, metric_fields);
        if (!other)
            continue;
        if (other_label && label && strcmp(other_label, label)) /* its own place: only the option has its chips */
            restrict_to(&base, &archs, true);
        add_row(b, p, &archs, other_label ? other_label : label ? label : name, other);
    }
    /* Constituents of a breakdown have names of their own. */
    add_row(b, p, &base, is_breakdown(name) ? "" : label ? label : name, name);
}

/* Adds the metrics of a message; they may be wrapped in another message of the same name. */
static void add_metrics(struct builder *b, const struct kp_field *message, const struct place *p)
{
    for (const struct kp_field *f = child(message, "Metrics"); f; f = another(f)) {
        if (child(f, "Metrics"))
            add_metrics(b, f, p);
        else if (f->first)
            add_metric(b, f, p);
    }
}

/* ---- bodies ---- */

struct chart {
    const char *field;
    void (*read)(struct builder *b, const struct chart *c, const struct kp_field *f, const struct archs *archs);
    enum kp_body body;
};

static bool open_body(struct builder *b, enum kp_body body, const char *title, const char *above,
                      const struct archs *archs)
{
    size_t at = b->n;
    const char *label = keep(b, title), *group = keep(b, above), *cc = condition(b, archs);
    struct built *row = b->rc ? NULL : new_row(b);
    if (!row)
        return false;
    row->row = (struct kp_row){
        .label = label, .metric = "", .unit = "", .cc = cc, .kind = KP_ROW_BODY, .body = body, .group = group};
    row->archs = *archs;
    b->body = at;
    return true;
}

/* Ends a body; a body without rows is removed. */
static void close_body(struct builder *b)
{
    if (!b->rc && b->n == b->body + 1)
        b->n--;
}

static const char *title_of(const struct kp_field *f)
{
    const char *title = text_of(f, "Label");
    return title ? title : f->name;
}

static bool has_breakdown(const struct builder *b)
{
    for (size_t i = b->body; i < b->n; i++)
        if (is_breakdown(b->rows[i].row.metric))
            return true;
    return false;
}

static void read_chart(struct builder *b, const struct chart *c, const struct kp_field *f, const struct archs *archs)
{
    const struct kp_field *axis = child(f, c->body == KP_BODY_CURVE ? "AxisY" : "ValueAxis");
    const char *above = text_of(axis, "Label"), *sorted = text_of(f, "SortKey");
    note_unknown(b, f, chart_fields);
    if (!open_body(b, c->body, title_of(f), above ? above : "", archs))
        return;
    add_metrics(b, f, &(struct place){KP_ROW_ITEM, "", *archs});
    if (b->rc)
        return;
    if (has_breakdown(b) || (c->body == KP_BODY_BARS_AS && sorted && !strcmp(sorted, "ByValue")))
        b->rows[b->body].row.body = KP_BODY_BARS;
    close_body(b);
}

static void read_suffix_table(struct builder *b, const struct chart *c, const struct kp_field *f,
                              const struct archs *archs)
{
    note_unknown(b, f, suffix_table_fields);
    if (!open_body(b, c->body, title_of(f), "", archs))
        return;
    for (const struct kp_field *base = child(child(f, "BaseNames"), "BaseName"); base; base = another(base)) {
        const char *stem = required(b, base, "base name", "Name"), *row = text_of(base, "Label");
        struct place p = {KP_ROW_ITEM, keep(b, row ? row : stem), filtered(b, base, *archs)};
        for (const struct kp_field *suffix = child(child(f, "Suffixes"), "Suffix"); suffix; suffix = another(suffix)) {
            const char *tail = required(b, suffix, "suffix", "Name"), *column = text_of(suffix, "Label");
            char name[1024];
            snprintf(name, sizeof name, "%s%s", stem, tail);
            check_name(b, base, name);
            b->element++;
            add_row(b, &p, &p.archs, column ? column : tail, name);
        }
    }
    close_body(b);
}

/* Reads a value of a roofline: a metric per second, or metrics per cycle and their clock. */
static void read_rate(struct builder *b, const struct kp_field *value, struct place p, enum kp_row_kind clock)
{
    const struct kp_field *product = child(value, "ValueCyclesPerSecondExpression");
    for (const struct kp_field *f = child(value, "Metric"); f; f = another(f))
        add_metric(b, f, &p);
    for (const struct kp_field *f = child(product, "ValuePerCycleMetrics"); f; f = another(f))
        add_metric(b, f, &p);
    p.kind = clock;
    for (const struct kp_field *f = child(product, "CyclesPerSecondMetric"); f; f = another(f))
        add_metric(b, f, &p);
}

static bool is_group(const struct builder *b, const char *name)
{
    for (size_t i = b->body + 1; i < b->n; i++)
        if (!strcmp(b->rows[i].row.group, name))
            return true;
    return false;
}

/* Makes a unique name: rows of one group are parts of one roof. */
static const char *roof_name(struct builder *b, const struct kp_field *roof, const char *mark)
{
    char text[1024];
    const char *label = text_of(child(roof, "Options"), "Label");
    if (!label)
        label = *mark ? "Achieved Value" : "Roofline";
    snprintf(text, sizeof text, "%s%s", mark, label);
    for (unsigned n = 2; n < 1000 && is_group(b, text); n++)
        snprintf(text, sizeof text, "%s%s (%u)", mark, label, n);
    return keep(b, text);
}

static void read_roofline(struct builder *b, const struct chart *c, const struct kp_field *f, const struct archs *archs)
{
    static const struct {
        const char *message, *work, *traffic, *mark;
    } parts[] = {{"Rooflines", "PeakWork", "PeakTraffic", ""},
                 {"AchievedValues", "AchievedWork", "AchievedTraffic", KP_POINT_MARK}};
    note_unknown(b, f, roofline_fields);
    if (!open_body(b, c->body, title_of(f), "", archs))
        return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const struct kp_field *roof = child(f, parts[i].message); roof; roof = another(roof)) {
            struct place p = {KP_ROW_WORK, roof_name(b, roof, parts[i].mark), filtered(b, roof, *archs)};
            read_rate(b, child(roof, parts[i].work), p, KP_ROW_WORK_CLOCK);
            p.kind = KP_ROW_TRAFFIC;
            read_rate(b, child(roof, parts[i].traffic), p, KP_ROW_TRAFFIC_CLOCK);
        }
    close_body(b);
}

static const struct kp_row *builtin_body(const char *title, size_t *n_rows)
{
    size_t n;
    const struct kp_section *sections = kp_sections_builtin(&n);
    for (const struct kp_section *s = sections; s < sections + n; s++)
        for (size_t i = 0; i < s->n_rows; i++) {
            if (s->rows[i].kind != KP_ROW_BODY || strcmp(s->rows[i].label, title))
                continue;
            size_t end = i + 1;
            while (end < s->n_rows && s->rows[end].kind != KP_ROW_BODY)
                end++;
            *n_rows = end - i;
            return &s->rows[i];
        }
    return NULL;
}

/* Reads a body that brings no metrics: its title names a body of the table. The body keeps the conditions of the
 * file; its rows keep those of the table. */
static void read_known(struct builder *b, const struct chart *c, const struct kp_field *f, const struct archs *archs)
{
    size_t n = 0;
    const struct kp_row *rows = builtin_body(title_of(f), &n);
    (void)c;
    if (!rows) {
        note(b, f, f->name, NULL);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct built *row = new_row(b);
        if (!row)
            return;
        row->row = rows[i];
        if (!i && !*rows[i].cc)
            row->row.cc = condition(b, archs);
    }
}

/* Notes samples over time, which kprof does not collect for section files. */
static void read_timeline(struct builder *b, const struct chart *c, const struct kp_field *f, const struct archs *archs)
{
    (void)c;
    (void)archs;
    note(b, f, f->name, NULL);
}

static void read_items(struct builder *b, const struct kp_field *owner, const struct archs *archs);

static void read_container(struct builder *b, const struct chart *c, const struct kp_field *f,
                           const struct archs *archs)
{
    (void)c;
    read_items(b, f, archs);
}

static const struct chart charts[] = {
    {"Table", read_chart, KP_BODY_TABLE},
    {"SourceMetricTable", read_chart, KP_BODY_TABLE},
    {"BarChart", read_chart, KP_BODY_BARS_AS},
    {"HistogramChart", read_chart, KP_BODY_BARS_AS},
    {"LineChart", read_chart, KP_BODY_CURVE},
    {"SuffixTable", read_suffix_table, KP_BODY_GRID},
    {"RooflineChart", read_roofline, KP_BODY_ROOFLINE},
    {"HorizontalContainer", read_container, KP_BODY_NONE},
    {"MemoryChart", read_known, KP_BODY_NONE},
    {"MemorySharedTable", read_known, KP_BODY_NONE},
    {"MemoryL1TEXCacheTable", read_known, KP_BODY_NONE},
    {"MemoryL2CacheTable", read_known, KP_BODY_NONE},
    {"MemoryL2CacheEvictPolicyTable", read_known, KP_BODY_NONE},
    {"MemoryDeviceMemoryTable", read_known, KP_BODY_NONE},
    {"NvlinkTopology", read_known, KP_BODY_NONE},
    {"NvlinkPropertyTable", read_known, KP_BODY_NONE},
    {"NvlinkThroughputTable", read_known, KP_BODY_NONE},
    {"NumaIdTable", read_known, KP_BODY_NONE},
    {"Timeline", read_timeline, KP_BODY_NONE},
};

/* Reads any other message with metrics as a table. */
static const struct chart other_chart = {"", read_chart, KP_BODY_TABLE};

static void read_item(struct builder *b, const struct kp_field *f, const struct archs *archs)
{
    const struct chart *c = child(f, "Metrics") ? &other_chart : NULL;
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++)
        if (!strcmp(charts[i].field, f->name))
            c = &charts[i];
    if (c)
        c->read(b, c, f, archs);
    else
        note(b, f, f->name, NULL);
}

static void read_items(struct builder *b, const struct kp_field *owner, const struct archs *archs)
{
    for (const struct kp_field *item = child(owner, "Items"); item; item = another(item)) {
        struct archs own = filtered(b, item, *archs);
        for (const struct kp_field *f = item->first; f && !b->rc; f = f->next)
            if (strcmp(f->name, "Filter"))
                read_item(b, f, &own);
    }
}

/* ---- the file ---- */

static const char *identifier(struct builder *b, const struct kp_field *message, const char *what)
{
    const char *id = required(b, message, what, "Identifier");
    for (const char *c = id; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == ',')
            fail(b, child(message, "Identifier"), "'%s' is not an identifier: it has a blank or a comma", id);
    return id;
}

/* Joins names of sets to `*list` by commas; they may be wrapped in another message of the same name. */
static void read_sets(struct builder *b, const struct kp_field *message, char **list)
{
    for (const struct kp_field *f = child(message, "Sets"); f; f = another(f)) {
        if (child(f, "Sets")) {
            read_sets(b, f, list);
            continue;
        }
        const char *id = identifier(b, f, "set");
        char *longer = NULL;
        if (b->rc)
            return;
        if (asprintf(&longer, "%s%s%s", *list ? *list : "", *list ? "," : "", id) < 0) {
            b->rc = -ENOMEM;
            return;
        }
        free(*list);
        *list = longer;
    }
}

static void read_definition(struct builder *b, const struct kp_field *f, struct kp_derived *out)
{
    const char *name = required(b, f, "definition", "Name"), *expression = required(b, f, "definition", "Expression");
    struct kp_expr *e = NULL;
    char *err = NULL;
    note_unknown(b, f, definition_fields);
    if (b->rc)
        return;
    int rc = kp_expr_compile(expression, &e, &err);
    kp_expr_free(e);
    if (rc == -EINVAL)
        fail(b, child(f, "Expression"), "%s", err);
    else
        b->rc = rc;
    free(err);
    const struct kp_derived *same = kp_derived_find(name); /* gives the unit; a file cannot */
    *out = (struct kp_derived){keep(b, name), same ? same->unit : "", keep(b, expression)};
}

static void read_definitions(struct builder *b, const struct kp_field *root, struct kp_section_file *out)
{
    size_t n = 0;
    for (const struct kp_field *list = child(root, "MetricDefinitions"); list; list = another(list))
        for (const struct kp_field *f = child(list, "MetricDefinitions"); f; f = another(f))
            n += f->kind == KP_FIELD_MESSAGE;
    out->definitions = checked(b, kp_arena_alloc(&b->r->arena, n * sizeof *out->definitions));
    for (const struct kp_field *list = child(root, "MetricDefinitions"); list; list = another(list))
        for (const struct kp_field *f = child(list, "MetricDefinitions"); f; f = another(f))
            if (f->kind == KP_FIELD_MESSAGE && !b->rc)
                read_definition(b, f, &out->definitions[out->n_definitions++]);
}

static void read_rows(struct builder *b, const struct kp_field *root)
{
    const struct archs all = all_archs();
    for (const struct kp_field *f = child(root, "Header"); f; f = another(f)) {
        note_unknown(b, f, header_fields);
        add_metrics(b, f, &(struct place){KP_ROW_HEADER, "", all});
    }
    add_metrics(b, root, &(struct place){KP_ROW_EXTRA, "", all});
    for (const struct kp_field *f = child(root, "Body"); f; f = another(f)) {
        note_unknown(b, f, body_fields);
        read_items(b, f, &all);
    }
}

static void read_section(struct builder *b, const struct kp_field *root, struct kp_section *s)
{
    const char *id = identifier(b, root, "section"), *display = text_of(root, "DisplayName");
    const struct kp_section *same = kp_section_find(id);
    const struct kp_field *order = child(root, "Order");
    char *sets = NULL;
    read_sets(b, root, &sets);
    struct archs archs = filtered(b, root, all_archs());
    *s = (struct kp_section){
        .id = keep(b, id),
        .display = keep(b, display ? display : id),
        .order = same ? same->order : INT_MAX, /* a section without an order is the last */
        .sets = keep(b, sets ? sets : ""),
        .cc = condition(b, &archs),
        .passes = same ? same->passes : KP_PASSES_ANY,
    };
    if (order)
        whole_number(b, order, &s->order);
    free(sets);
}

int kp_section_tree_read(struct kp_section_reader *r, const struct kp_field *root, struct kp_section_file *out,
                         char **err)
{
    struct builder b = {.r = r, .err = err};
    *err = NULL;
    *out = (struct kp_section_file){0};
    read_section(&b, root, &out->section);
    note_unknown(&b, root, section_fields);
    read_definitions(&b, root, out);
    if (!b.rc)
        read_rows(&b, root);
    if (!b.rc)
        out->rows = checked(&b, kp_arena_alloc(&r->arena, b.n * sizeof *out->rows));
    for (size_t i = 0; !b.rc && i < b.n; i++)
        out->rows[i] = b.rows[i].row;
    out->section.rows = out->rows;
    out->section.n_rows = b.n;
    free(b.rows);
    return b.rc;
}
