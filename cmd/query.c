/* Prints tables of what can be collected: metrics, sets, sections and chips. */
#include "cmd/query.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/pattern.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/wrap.h"
#include "cmd/catalog.h"
#include "cmd/console.h"
#include "report/define/groups.h"
#include "report/define/section_files.h"
#include "report/judge/rules.h"
#include "report/options/options.h"

/* ---- flags ---- */

static const struct kp_query_flag flags[] = {
    {"query-metrics", "",
     "lists the metrics of a chip, or those of --metrics: names, regex:EXPR, group:NAME and breakdown:NAME",
     offsetof(struct kp_query, command)},
    {"list-sets", "", "lists the sets with their sections and number of passes", offsetof(struct kp_query, command)},
    {"list-sections", "", "lists the sections; those of --set and --section are marked as enabled",
     offsetof(struct kp_query, command)},
    {"list-metrics", "", "lists the metrics of the sections of --set and --section, and those of --metrics",
     offsetof(struct kp_query, command)},
    {"list-rules", "", "lists the rules that give advice, with their sections and subjects; needs no CUPTI",
     offsetof(struct kp_query, command)},
    {"list-chips", "", "lists the chips that --chip accepts", offsetof(struct kp_query, command)},
    {"chip", " NAME", "chip to list for (default: that of the first GPU)", offsetof(struct kp_query, chip)},
    {"chips", " NAMES", "the same for several chips, separated by commas", offsetof(struct kp_query, chips)},
    {"query-metrics-mode", " {base,suffix,all}",
     "query-metrics, with base: base names; suffix: also their suffixes; all: every full name (default base)",
     offsetof(struct kp_query, mode)},
    {"query-metrics-collection", " {profiling,pmsampling}",
     "query-metrics, of metrics that are counted for launches, or that are sampled over time (default profiling)",
     offsetof(struct kp_query, collection)},
};

const struct kp_query_flag *kp_query_flags(size_t *n)
{
    *n = sizeof flags / sizeof *flags;
    return flags;
}

/* ---- tables ---- */

enum {
    PAGE_WIDTH = 120,
    COLUMNS = 8, /* the most columns of a table */
    NAME_WIDTH = 58,
    UNIT_WIDTH = 15,
    SET_WIDTH = 12,
    ID_WIDTH = 44,
    DISPLAY_WIDTH = 35,
    NUMBER_WIDTH = 7,
    CHIP_WIDTH = 12,
    RULE_WIDTH = 26,
    SECTION_WIDTH = 30,
    SUFFIX_INDENT = 4,
};

/* The columns of a line. What goes into a pipe or a file is for a program, too, and has no broken names. */
static size_t page_width = PAGE_WIDTH;

static void fit_page(void)
{
    enum { NARROWEST = 40 };
    size_t width = isatty(STDOUT_FILENO) || getenv("COLUMNS") ? kp_terminal_width(STDOUT_FILENO) : 0;
    page_width = !width || width > PAGE_WIDTH ? PAGE_WIDTH : width > NARROWEST ? width : NARROWEST;
}

/* A column; a width of 0 ends the list. Text that does not fit is wrapped, except for names: the row continues below
 * a name that is too long. */
struct column {
    const char *title;
    int width;
    enum { LEFT, RIGHT, NAME } align;
};

/* Prints a cell's next line. Returns whether it had one. */
static bool print_line(const struct column *c, struct kp_wrap *w, int *blanks)
{
    const char *line = "";
    size_t len = 0;
    bool more = kp_wrap_next(w, &line, &len);
    int pad = c->width > (int)len ? c->width - (int)len : 0;
    if (len) {
        printf("%*s%.*s", *blanks + (c->align == RIGHT ? pad : 0), "", (int)len, line);
        *blanks = c->align == RIGHT ? 0 : pad;
    } else {
        *blanks += c->width;
    }
    *blanks += 1;
    return more && w->rest;
}

/* Prints the lines of cells[from..to), each under its column. */
static void print_cells(const struct column *columns, const char *const *cells, size_t from, size_t to)
{
    struct kp_wrap wraps[COLUMNS];
    int indent = 0;
    bool more = true;
    for (size_t i = 0; i < to; i++) {
        wraps[i] = (struct kp_wrap){cells[i], (size_t)columns[i].width};
        indent += i < from ? columns[i].width + 1 : 0;
    }
    while (more) {
        int blanks = indent;
        more = false;
        for (size_t i = from; i < to; i++)
            more |= print_line(&columns[i], &wraps[i], &blanks);
        putchar('\n');
    }
}

/* Prints a name that is longer than its column `n`, and ends the line. If the line is too short, the name begins
 * further to the left; if that does not suffice, it is broken. */
static void print_whole(const struct column *columns, const char *name, size_t n)
{
    size_t blanks = 0, len;
    const char *line;
    for (size_t i = 0; i < n; i++)
        blanks += (size_t)columns[i].width + 1;
    if (blanks + strlen(name) > page_width)
        blanks = strlen(name) < page_width ? page_width - strlen(name) : 0;
    struct kp_wrap w = {name, page_width - blanks};
    while (kp_wrap_next(&w, &line, &len))
        printf("%*s%.*s\n", (int)blanks, "", (int)len, line);
}

/* Prints a line of its own, with gaps around it. */
static void print_wrapped(const char *text)
{
    struct kp_wrap w = {text, page_width};
    const char *line;
    size_t len;
    putchar('\n');
    while (kp_wrap_next(&w, &line, &len))
        printf("%.*s\n", (int)len, line);
    putchar('\n');
}

/* Copies the columns; on a narrow terminal the widest of them give way. */
static void fit_columns(const struct column *from, struct column to[COLUMNS + 1])
{
    enum { LEAST = 5 };
    size_t total = 0, n = 0;
    do
        to[n] = from[n];
    while (from[n++].title);
    for (size_t i = 0; to[i].title; i++)
        total += (size_t)to[i].width + 1;
    for (; total > page_width + 1; total--) {
        struct column *widest = to;
        for (size_t i = 1; to[i].title; i++)
            widest = to[i].width > widest->width ? &to[i] : widest;
        if (widest->width <= LEAST)
            return;
        widest->width--;
    }
}

static void print_fields(const struct column *all, const char *const *cells)
{
    struct column columns[COLUMNS + 1];
    size_t from = 0, n = 0;
    fit_columns(all, columns);
    for (; columns[n].title; n++)
        if (columns[n].align == NAME && strlen(cells[n]) > (size_t)columns[n].width) {
            if (from < n)
                print_cells(columns, cells, from, n);
            print_whole(columns, cells[n], n);
            from = n + 1;
        }
    if (from < n)
        print_cells(columns, cells, from, n);
}

static void print_headings(const struct column *all)
{
    struct column columns[COLUMNS + 1];
    const char *titles[COLUMNS] = {NULL};
    fit_columns(all, columns);
    for (size_t i = 0; columns[i].title; i++)
        titles[i] = columns[i].title;
    print_fields(all, titles);
    for (size_t i = 0; columns[i].title; i++) {
        putchar(i ? ' ' : '-');
        for (int k = i == 0; k < columns[i].width; k++)
            putchar('-');
    }
    putchar('\n');
}

/* ---- metrics ---- */

static const char *const kind_titles[KP_CATALOG_KINDS] = {
    [KP_CATALOG_COUNTER] = "Counters: need .avg, .max, .min or .sum, perhaps with a further suffix",
    [KP_CATALOG_RATIO] = "Ratios: need .ratio, .pct or .max_rate",
    [KP_CATALOG_THROUGHPUT] =
        "Throughputs: need .avg.pct_of_peak_sustained_elapsed or similar; breakdown:NAME stands for its parts",
    [KP_CATALOG_LAUNCH] = "Launch and device metrics: not counted",
    [KP_CATALOG_SOURCE] = "Metrics by instruction: sampled, or counted by patched code, in passes of their own",
    [KP_CATALOG_DERIVED] = "Derived metrics: computed from others",
    [KP_CATALOG_GROUP] = "Groups: group:NAME stands for what a chart or table of a section shows",
};

static const struct column metric_columns[] = {{"Name", NAME_WIDTH, NAME},
                                               {"Unit", UNIT_WIDTH, NAME},
                                               {"Description", PAGE_WIDTH - NAME_WIDTH - UNIT_WIDTH - 2, LEFT},
                                               {NULL, 0, LEFT}};

enum mode { MODE_BASE, MODE_SUFFIX, MODE_ALL };

static const char *const mode_names[] = {[MODE_BASE] = "base", [MODE_SUFFIX] = "suffix", [MODE_ALL] = "all", NULL};

/* An item of --metrics. */
struct wanted {
    struct kp_pattern *pattern; /* matches base names, or full names */
    char *text;
    bool found;
};

/* State of printing metrics. */
struct metric_printer {
    struct kp_catalog *catalog;
    struct wanted *wanted; /* without pattern at the end; none: all metrics */
    enum mode mode;
    int last_kind;  /* -1: nothing was printed yet */
    FILE *suffixes; /* of the current metric, */
    size_t base;    /* with the length of its base name */
};

static int take_one(const struct kp_catalog_metric *m, void *arg)
{
    (void)m, (void)arg;
    return 1;
}

/* Returns 1 if the item is, or as an expression matches, one of the metric's full names, else 0; or an error. */
static int has_full_name(const struct metric_printer *p, const struct kp_catalog_metric *m, const struct wanted *w)
{
    size_t base = strlen(m->name);
    bool may =
        !strncmp(w->text, KP_REGEX, strlen(KP_REGEX)) || (!strncmp(m->name, w->text, base) && w->text[base] == '.');
    return may ? kp_catalog_full_names(p->catalog, m, w->pattern, take_one, NULL) : 0;
}

/* Returns 1, 0, or an error. */
static int is_wanted(struct metric_printer *p, const struct kp_catalog_metric *m)
{
    int wanted = !p->wanted->pattern;
    for (struct wanted *w = p->wanted; w->pattern; w++) {
        int found = kp_pattern_match(w->pattern, m->name) ? 1 : has_full_name(p, m, w);
        if (found < 0)
            return found;
        w->found |= found > 0;
        wanted |= found;
    }
    return wanted;
}

/* Prints the heading of a kind, before its first metric. */
static void open_kind(struct metric_printer *p, enum kp_catalog_kind kind)
{
    if ((int)kind == p->last_kind)
        return;
    if (p->last_kind < 0)
        printf("Metrics of %s\n", kp_catalog_title(p->catalog));
    print_wrapped(kind_titles[kind]);
    if (p->mode != MODE_SUFFIX)
        print_headings(metric_columns);
    p->last_kind = (int)kind;
}

static int print_metric(const struct kp_catalog_metric *m, void *arg)
{
    open_kind(arg, m->kind);
    print_fields(metric_columns, (const char *const[]){m->name, m->unit, m->description});
    return 0;
}

static int add_suffix(const struct kp_catalog_metric *m, void *arg)
{
    struct metric_printer *p = arg;
    fprintf(p->suffixes, "%s%s", ftell(p->suffixes) > 0 ? " " : "", m->name + p->base);
    return 0;
}

/* Prints the metric, and below it all suffixes of its name. */
static int print_suffixes(struct metric_printer *p, const struct kp_catalog_metric *m)
{
    char *text = NULL;
    const char *line;
    size_t size, len;
    if (!(p->suffixes = open_memstream(&text, &size)))
        return -ENOMEM;
    p->base = strlen(m->name);
    int rc = kp_catalog_full_names(p->catalog, m, NULL, add_suffix, p);
    if (kp_text_end(p->suffixes, &text))
        rc = rc ? rc : -ENOMEM;
    struct kp_wrap w = {rc ? NULL : text, page_width - SUFFIX_INDENT};
    open_kind(p, m->kind);
    puts(m->name);
    while (size && kp_wrap_next(&w, &line, &len))
        printf("%*s%.*s\n", SUFFIX_INDENT, "", (int)len, line);
    free(text);
    return rc;
}

static int take_metric(const struct kp_catalog_metric *m, void *arg)
{
    struct metric_printer *p = arg;
    int wanted = is_wanted(p, m);
    if (wanted <= 0)
        return wanted;
    if (p->mode == MODE_ALL)
        return kp_catalog_full_names(p->catalog, m, NULL, print_metric, p);
    return p->mode == MODE_SUFFIX ? print_suffixes(p, m) : print_metric(m, p);
}

/* Returns true if the item stands for other metrics, which are listed separately. */
static bool stands_for_others(const char *item, size_t len)
{
    static const char *const marks[] = {KP_GROUP, KP_BREAKDOWN};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (len > strlen(marks[i]) && !strncmp(item, marks[i], strlen(marks[i])))
            return true;
    return false;
}

/* State of printing the metrics of such an item. */
struct listed_printer {
    struct metric_printer *page;
    const char *item;
    bool open; /* its heading was printed */
};

static void open_item(struct listed_printer *l)
{
    struct metric_printer *p = l->page;
    if (p->last_kind < 0)
        printf("Metrics of %s\n", kp_catalog_title(p->catalog));
    p->last_kind = KP_CATALOG_GROUP;
    print_wrapped(l->item);
    print_headings(metric_columns);
    l->open = true;
}

static int print_listed_metric(const struct kp_catalog_metric *m, void *arg)
{
    struct listed_printer *l = arg;
    if (!l->open)
        open_item(l);
    print_fields(metric_columns, (const char *const[]){m->name, m->unit, m->description});
    return 0;
}

/* Prints the metrics of the group: and breakdown: items of the list. */
static int print_listed(struct metric_printer *p, const char *list, char **err)
{
    const char *item;
    size_t len;
    int rc = 0;
    while (!rc && kp_word_next(&list, &item, &len)) {
        if (!stands_for_others(item, len))
            continue;
        char *text = strndup(item, len);
        struct listed_printer one = {p, text, false};
        rc = text ? kp_catalog_listed(p->catalog, text, print_listed_metric, &one, err) : -ENOMEM;
        free(text);
    }
    return rc;
}

/* Reads the names and expressions of --metrics. */
static int read_wanted(const char *list, struct metric_printer *p, char **err)
{
    const char *item;
    size_t len, n = 0, room = strlen(list) + 1;
    p->wanted = calloc(room, sizeof *p->wanted);
    int rc = p->wanted ? 0 : -ENOMEM;
    while (!rc && kp_word_next(&list, &item, &len)) {
        if (stands_for_others(item, len))
            continue;
        size_t mark = strlen(KP_SAMPLED);
        bool sampled = len > mark && !strncmp(item, KP_SAMPLED, mark);
        struct wanted *w = &p->wanted[n];
        w->text = strndup(item + (sampled ? mark : 0), len - (sampled ? mark : 0));
        rc = w->text ? kp_pattern_new(w->text, &w->pattern, err) : -ENOMEM;
        n += !rc;
    }
    return rc;
}

/* The name nearest to a word. */
struct nearest {
    const char *word;
    char *name;
};

static int take_nearer(const struct kp_catalog_metric *m, void *arg)
{
    struct nearest *n = arg;
    const char *const both[] = {m->name, n->name, NULL};
    if (kp_nearest(n->word, both) != m->name)
        return 0;
    free(n->name);
    n->name = strdup(m->name);
    return n->name ? 0 : -ENOMEM;
}

static int take_none(const struct kp_catalog_metric *m, void *arg)
{
    (void)m, (void)arg;
    return 0;
}

/* Reports a name whose suffix is wrong, with the nearest one. Returns 0 if the base name is wrong, too. */
static int check_suffix(const struct metric_printer *p, const char *name, char **err)
{
    bool whole = strchr(name, '.') && !strchr(name, ':');
    return whole ? kp_catalog_listed(p->catalog, name, take_none, NULL, err) : 0;
}

/* Reports items of --metrics that matched nothing. */
static int check_found(const struct metric_printer *p, const char *list, char **err)
{
    const char *item;
    size_t len, i = 0;
    while (kp_word_next(&list, &item, &len) && (stands_for_others(item, len) || p->wanted[i].found))
        i += !stands_for_others(item, len);
    if (!len)
        return 0;
    struct nearest near = {.word = p->wanted[i].text};
    int rc = check_suffix(p, near.word, err);
    if (rc)
        return rc;
    rc = kp_catalog_metrics(p->catalog, take_nearer, &near);
    if (!rc)
        rc = kp_error(err, "--metrics: no base name of %s matches '%s'%s%s%s", kp_catalog_title(p->catalog), near.word,
                      near.name ? "; did you mean '" : "", near.name ? near.name : "", near.name ? "'?" : "");
    free(near.name);
    return rc;
}

static int print_metrics(const struct kp_query *q, const struct kp_options *o, struct kp_catalog *c, char **err)
{
    struct metric_printer p = {.catalog = c, .last_kind = -1};
    while (q->mode && mode_names[p.mode] && strcmp(mode_names[p.mode], q->mode))
        p.mode++;
    if (!mode_names[p.mode])
        return kp_error_choice(err, "--query-metrics-mode: unknown value", q->mode, mode_names);
    int rc = read_wanted(o->metrics, &p, err);
    const char *list = o->metrics, *item;
    size_t len;
    if (!rc && (p.wanted->pattern || !kp_word_next(&list, &item, &len)))
        rc = kp_catalog_metrics(c, take_metric, &p);
    if (!rc)
        rc = check_found(&p, o->metrics, err);
    if (!rc)
        rc = print_listed(&p, o->metrics, err);
    for (struct wanted *w = p.wanted; w && w->text; w++) {
        kp_pattern_free(w->pattern);
        free(w->text);
    }
    free(p.wanted);
    return rc;
}

/* ---- sets and sections ---- */

/* The numbers in the row of a selection of sections. */
struct numbers {
    char metrics[24], passes[24];
};

static bool rotates(const struct kp_options *o)
{
    return o->replay_mode == KP_REPLAY_ROTATE;
}

static int count(struct kp_catalog *c, const struct kp_options *o, const struct kp_section *const *sections, size_t n,
                 struct numbers *out, char **err)
{
    size_t metrics, passes;
    int rc = kp_catalog_cost(c, sections, n, rotates(o), &metrics, &passes, err);
    snprintf(out->metrics, sizeof out->metrics, "%zu", metrics);
    snprintf(out->passes, sizeof out->passes, "%zu", passes);
    return rc;
}

static int print_set(const char *set, const struct kp_options *o, struct kp_catalog *c, char **err)
{
    const struct column columns[] = {{"Set", SET_WIDTH, NAME},
                                     {"Enabled", NUMBER_WIDTH, LEFT},
                                     {"Metrics", NUMBER_WIDTH, RIGHT},
                                     {rotates(o) ? "Groups" : "Passes", NUMBER_WIDTH, RIGHT},
                                     {"Sections", PAGE_WIDTH - SET_WIDTH - 3 * NUMBER_WIDTH - 4, LEFT},
                                     {NULL, 0, LEFT}};
    const struct kp_section **sections = NULL;
    struct numbers numbers;
    char *names = NULL;
    size_t n, size;
    if (set == *kp_set_names())
        print_headings(columns);
    FILE *f = open_memstream(&names, &size);
    int rc = f ? kp_sections_select(set, "", &sections, &n, err) : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        fprintf(f, "%s%s", i ? ", " : "", sections[i]->id);
    if (f && kp_text_end(f, &names))
        rc = rc ? rc : -ENOMEM;
    if (!rc)
        rc = count(c, o, sections, n, &numbers, err);
    if (!rc)
        print_fields(columns, (const char *const[]){set, set == kp_set_find(o->set) ? "yes" : "no", numbers.metrics,
                                                    numbers.passes, names});
    free(sections);
    free(names);
    return rc;
}

static int print_sets(const struct kp_query *q, const struct kp_options *o, struct kp_catalog *c, char **err)
{
    int rc = 0;
    (void)q;
    printf("Sets on %s\n\n", kp_catalog_title(c));
    for (const char *const *set = kp_set_names(); *set && !rc; set++)
        rc = print_set(*set, o, c, err);
    return rc;
}

static bool is_builtin(const struct kp_section *s)
{
    size_t n;
    const struct kp_section *builtin = kp_sections_builtin(&n);
    for (size_t i = 0; i < n; i++)
        if (builtin[i].rows == s->rows)
            return true;
    return false;
}

static int print_sections(const struct kp_query *q, const struct kp_options *o, struct kp_catalog *c, char **err)
{
    const struct column columns[] = {{"Identifier", ID_WIDTH, NAME},
                                     {"Display Name", DISPLAY_WIDTH, LEFT},
                                     {"Enabled", NUMBER_WIDTH, LEFT},
                                     {"Metrics", NUMBER_WIDTH, RIGHT},
                                     {rotates(o) ? "Groups" : "Passes", NUMBER_WIDTH, RIGHT},
                                     {"From", PAGE_WIDTH - ID_WIDTH - DISPLAY_WIDTH - 3 * NUMBER_WIDTH - 5, NAME},
                                     {NULL, 0, LEFT}};
    const struct kp_section **enabled = NULL;
    size_t n, n_enabled;
    const struct kp_section *s = kp_sections(&n);
    int rc = kp_sections_select(o->set, o->section, &enabled, &n_enabled, err);
    (void)q;
    if (!rc) {
        printf("Sections on %s\n\n", kp_catalog_title(c));
        print_headings(columns);
    }
    for (size_t i = 0, next = 0; !rc && i < n; i++) {
        struct numbers numbers;
        const struct kp_section *one = &s[i];
        bool on = next < n_enabled && enabled[next] == one; /* both are in the same order */
        next += on;
        rc = count(c, o, &one, 1, &numbers, err);
        if (!rc)
            print_fields(columns,
                         (const char *const[]){one->id, one->display, on ? "yes" : "no", numbers.metrics,
                                               numbers.passes, is_builtin(one) ? "built-in" : "section folder"});
    }
    free(enabled);
    return rc;
}

/* ---- metrics of sections ---- */

/* The names so far. */
struct names {
    const char **at;
    size_t n, room;
};

static int add_name(struct names *names, const char *name)
{
    if (names->n == names->room) {
        size_t room = 2 * names->room + 64;
        const char **more = realloc(names->at, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        names->at = more;
        names->room = room;
    }
    names->at[names->n++] = name;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int print_metric_names(const struct kp_query *q, const struct kp_options *o, struct kp_catalog *c, char **err)
{
    const struct kp_section **chosen = NULL;
    const char *list = o->metrics, *item;
    struct names names = {0};
    size_t n = 0, len;
    int rc = kp_sections_select(o->set, o->section, &chosen, &n, err);
    (void)q, (void)c;
    for (size_t i = 0; !rc && i < n; i++)
        for (size_t k = 0; !rc && k < chosen[i]->n_rows; k++)
            if (chosen[i]->rows[k].metric && *chosen[i]->rows[k].metric)
                rc = add_name(&names, chosen[i]->rows[k].metric);
    if (!rc && names.n)
        qsort(names.at, names.n, sizeof *names.at, by_text);
    for (size_t i = 0; !rc && i < names.n; i++)
        if (!i || strcmp(names.at[i - 1], names.at[i]) != 0)
            puts(names.at[i]);
    while (!rc && kp_word_next(&list, &item, &len))
        printf("%.*s\n", (int)len, item);
    free(names.at);
    free(chosen);
    return rc;
}

/* ---- rules ---- */

static int print_rules(const struct kp_query *q, const struct kp_options *o, struct kp_catalog *c, char **err)
{
    static const struct column columns[] = {{"Identifier", RULE_WIDTH, NAME},
                                            {"Section", SECTION_WIDTH, NAME},
                                            {"Looks At", PAGE_WIDTH - RULE_WIDTH - SECTION_WIDTH - 2, LEFT},
                                            {NULL, 0, LEFT}};
    size_t n;
    const struct kp_rule *rule = kp_rules(&n);
    (void)q;
    (void)o;
    (void)c;
    (void)err;
    puts("Rules\n");
    print_headings(columns);
    for (; n; n--, rule++)
        print_fields(columns, (const char *const[]){rule->id, rule->section, rule->about});
    return 0;
}

/* ---- chips ---- */

static int print_chip(const char *chip, const char *about, void *arg)
{
    print_fields(arg, (const char *const[]){chip, about});
    return 0;
}

static int print_chips(const struct kp_query *q, const struct kp_options *o, struct kp_catalog *c, char **err)
{
    static struct column columns[] = {
        {"Chip", CHIP_WIDTH, NAME}, {"", PAGE_WIDTH - CHIP_WIDTH - 1, LEFT}, {NULL, 0, LEFT}};
    (void)q;
    (void)o;
    (void)err;
    return kp_catalog_chips(c, print_chip, columns);
}

/* ---- all queries ---- */

static const struct {
    const char *command;
    int (*print)(const struct kp_query *q, const struct kp_options *o, struct kp_catalog *c, char **err);
    bool any_chip; /* does not depend on the chip */
    bool alone;    /* needs no catalog, and so no CUPTI */
} queries[] = {
    {"query-metrics", print_metrics, false, false},  {"list-sets", print_sets, false, false},
    {"list-sections", print_sections, false, false}, {"list-rules", print_rules, true, true},
    {"list-chips", print_chips, true, false},        {"list-metrics", print_metric_names, true, true},
};

static int query_chip(const struct kp_query *q, const struct kp_options *o, const char *chip, char **err)
{
    static const char *const collections[] = {"profiling", "pmsampling", NULL};
    struct kp_catalog *c = NULL;
    char *note = NULL;
    size_t i = 0;
    while (strcmp(queries[i].command, q->command))
        i++;
    bool sampled = q->collection && !strcmp(q->collection, collections[1]);
    if (q->collection && !sampled && strcmp(q->collection, collections[0]))
        return kp_error_choice(err, "--query-metrics-collection: unknown value", q->collection, collections);
    int rc = queries[i].alone ? 0 : kp_catalog_open(chip, o->cupti_dir, sampled, &c, &note, err);
    if (!rc && note && !queries[i].any_chip)
        kp_console_note(note);
    if (!rc)
        rc = queries[i].print(q, o, c, err);
    free(note);
    kp_catalog_close(c);
    return rc;
}

/* Prints the answers for the chips that are named, or for the first GPU. */
static int run_query(const struct kp_query *q, const struct kp_options *o, char **err)
{
    const char *list = q->chips ? q->chips : kp_or_empty(q->chip), *item;
    size_t len, n = 0;
    int rc = 0;
    while (!rc && kp_list_next(&list, &item, &len)) {
        char *chip = strndup(item, len);
        if (n++)
            putchar('\n');
        rc = chip ? query_chip(q, o, chip, err) : -ENOMEM;
        free(chip);
    }
    return n ? rc : query_chip(q, o, "", err);
}

int kp_main_query(const struct kp_query *q)
{
    struct kp_options o;
    char *err = NULL;
    int rc = kp_options_from_env(&o, environ, &err);
    if (!rc) {
        kp_console_warn(kp_sections_note());
        fit_page();
        rc = run_query(q, &o, &err);
        kp_options_free(&o);
    }
    int status =
        rc == -EINVAL ? kp_console_error(KP_EXIT_USAGE, "%s", err ? err : strerror(-rc)) : kp_console_end(rc, err);
    free(err);
    return status;
}
