/* Prints print-summary: metrics over many launches, in place of each launch, for the pages details and raw. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "report/model/launch_names.h"
#include "report/pages/page_body.h"
#include "report/view/narrow.h"
#include "report/view/shown.h"

/* One metric over launches; text metrics are left out. */
struct spread {
    char *name, *title, *unit;
    uint64_t n;
    double low, high, sum;
};

/* The metrics of one section, or all of them. */
struct part {
    const char *title;    /* of the section; NULL: of all */
    struct spread *stats; /* by name */
    size_t n;
};

struct group {
    char *name; /* of the kernel or of the NVTX range; NULL: all of the device, or launches outside of ranges */
    int device, cc_major, cc_minor;
    uint64_t launches;
    struct part *parts;
    size_t n;
};

struct groups {
    const struct kp_page *page;
    struct group *at; /* by first launch */
    size_t n;
};

static bool is_same_group(const struct group *g, const char *name, const struct kp_launch_info *l, bool by_device)
{
    if (by_device)
        return g->device == l->device;
    return g->name && name ? !strcmp(g->name, name) : g->name == name;
}

/* Returns NULL without memory. */
static struct group *find_group(struct groups *all, const char *name, const struct kp_launch_info *l)
{
    bool by_device = all->page->display->grouping == KP_GROUPING_GPU;
    for (size_t i = 0; i < all->n; i++)
        if (is_same_group(&all->at[i], name, l, by_device))
            return &all->at[i];
    char *copy = name ? kp_strdup(name) : NULL;
    if (!KP_ROOM(all->at, all->n) || (name && !copy)) {
        free(copy);
        return NULL;
    }
    all->at[all->n] =
        (struct group){.name = copy, .device = l->device, .cc_major = l->cc_major, .cc_minor = l->cc_minor};
    return &all->at[all->n++];
}

static struct part *find_part(struct group *g, const char *title)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->parts[i].title == title)
            return &g->parts[i];
    if (!KP_ROOM(g->parts, g->n))
        return NULL;
    g->parts[g->n] = (struct part){.title = title};
    return &g->parts[g->n++];
}

static int insert_spread(struct part *p, size_t at, const char *title, const struct kp_metric *m)
{
    if (!KP_ROOM(p->stats, p->n))
        return -ENOMEM;
    struct spread s = {kp_strdup(m->name), kp_strdup(title), kp_strdup(m->unit), 0, INFINITY, -INFINITY, 0};
    if (!s.name || !s.title || !s.unit) {
        free(s.name);
        free(s.title);
        free(s.unit);
        return -ENOMEM;
    }
    memmove(&p->stats[at + 1], &p->stats[at], (p->n - at) * sizeof *p->stats);
    p->stats[at] = s;
    p->n++;
    return 0;
}

/* Adds a number; other values do not count. `at` moves on: the launch and the part both sort metrics by name. */
static int add_value(struct part *p, size_t *at, const char *title, const struct kp_metric *m)
{
    double value;
    if (!kp_metric_number(m, &value) || isnan(value))
        return 0;
    while (*at < p->n && strcmp(p->stats[*at].name, m->name) < 0)
        ++*at;
    if (*at == p->n || strcmp(p->stats[*at].name, m->name)) {
        int rc = insert_spread(p, *at, title, m);
        if (rc)
            return rc;
    }
    struct spread *s = &p->stats[*at];
    s->n++;
    s->sum += value;
    s->low = value < s->low ? value : s->low;
    s->high = value > s->high ? value : s->high;
    return 0;
}

static int add_lines(struct group *g, const struct kp_display *d, const char *title, const struct kp_lines *l)
{
    struct part *p = find_part(g, title);
    size_t at = 0;
    int rc = p ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < l->n; i++) {
        if (i && !strcmp(l->at[i].name, l->at[i - 1].name))
            continue; /* shown in several places, but measured once */
        char *shown = kp_line_full_title(d, &l->at[i]);
        rc = shown ? add_value(p, &at, shown, l->at[i].metric) : -ENOMEM;
        free(shown);
    }
    return rc;
}

static int add_sections(struct group *g, const struct kp_page *page, const struct kp_result *r)
{
    struct kp_display quiet = *page->display;
    struct kp_shown shown;
    quiet.rules = 0;
    int rc = kp_shown_of(&quiet, page->session, r, &shown);
    if (rc)
        return rc;
    for (size_t i = 0; !rc && i <= shown.n; i++) {
        struct kp_lines lines = {0};
        rc = kp_shown_lines(&shown, i, quiet.details, &lines);
        if (!rc)
            rc = add_lines(g, &quiet, kp_shown_title(&shown, i), &lines);
        kp_lines_free(&lines);
    }
    kp_shown_free(&shown);
    return rc;
}

static int add_metrics(struct group *g, const struct kp_page *page, const struct kp_result *r)
{
    struct part *p = find_part(g, NULL);
    struct kp_result chosen;
    size_t at = 0;
    int rc = p ? kp_narrow(page->display, page->session, r, &chosen) : -ENOMEM;
    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < chosen.n_metrics; i++)
        rc = add_value(p, &at, chosen.metrics[i].name, &chosen.metrics[i]);
    free(chosen.metrics);
    return rc;
}

static bool is_raw(const struct kp_page *p)
{
    return p->display->n_pages && p->display->pages[0] == KP_PAGE_RAW;
}

static int add_to(struct groups *all, const char *name, const struct kp_result *r)
{
    struct group *g = find_group(all, name, &r->launch);
    if (!g)
        return -ENOMEM;
    g->launches++;
    return is_raw(all->page) ? add_metrics(g, all->page, r) : add_sections(g, all->page, r);
}

static int add_to_range_groups(struct groups *all, const struct kp_result *r)
{
    const struct kp_nvtx *n = &r->launch.nvtx;
    int rc = n->n_ranges ? 0 : add_to(all, NULL, r);
    for (size_t i = 0; !rc && i < n->n_ranges; i++) {
        if (!kp_range_is_new(n, i))
            continue;
        char *title = kp_range_title(&n->ranges[i]);
        rc = title ? add_to(all, title, r) : -ENOMEM;
        free(title);
    }
    return rc;
}

static int add_launch(struct kp_result *r, void *arg)
{
    struct groups *all = arg;
    switch (all->page->display->grouping) {
    case KP_GROUPING_NVTX:
        return add_to_range_groups(all, r);
    case KP_GROUPING_KERNEL:
        return add_to(all, kp_launch_name(&r->launch), r);
    default:
        return add_to(all, NULL, r);
    }
}

static void free_all_groups(struct groups *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct group *g = &all->at[i];
        for (size_t j = 0; j < g->n; j++) {
            for (size_t k = 0; k < g->parts[j].n; k++) {
                free(g->parts[j].stats[k].name);
                free(g->parts[j].stats[k].title);
                free(g->parts[j].stats[k].unit);
            }
            free(g->parts[j].stats);
        }
        free(g->parts);
        free(g->name);
    }
    free(all->at);
}

/* --- rows --- */

enum { NAME, UNIT, COUNT, LOWEST, HIGHEST, AVERAGE, COLUMNS };
static const char *const headings[COLUMNS] = {"Metric Name", "Metric Unit", "Count", "Minimum", "Maximum", "Average"};

/* Fields of the group precede those of the metric; groups of a kernel or a device have one more. */
enum { GROUP_NAME, GROUP_DEVICE, FIELDS_MAX = 4 + COLUMNS };

/* Positions of the fields that differ between groupings. */
struct fields {
    const char *heading[FIELDS_MAX];
    size_t launches, section, metric, n;
};

struct cells {
    char unit[KP_UNIT_MAX], number[COLUMNS][KP_NUMBER_MAX];
    const char *at[COLUMNS];
};

/* Uses the unit of the average for all three values: extremes may differ in magnitude. */
static void fill_spread(struct cells *c, const struct spread *s, bool base, bool plain)
{
    double average = s->sum / (double)s->n, divisor = kp_unit_divisor(s->unit, average, base, c->unit);
    kp_count_cell(s->n, plain, c->number[COUNT]);
    kp_write_number_cell(s->low / divisor, plain, c->number[LOWEST]);
    kp_write_number_cell(s->high / divisor, plain, c->number[HIGHEST]);
    kp_write_number_cell(average / divisor, plain, c->number[AVERAGE]);
    for (int i = COUNT; i < COLUMNS; i++)
        c->at[i] = c->number[i];
    c->at[NAME] = s->title;
    c->at[UNIT] = c->unit;
}

static void write_part(struct kp_writer *w, const struct fields *f, const struct part *p, bool base)
{
    struct kp_column columns[COLUMNS];
    struct cells cells;
    if (!p->n)
        return;
    for (size_t i = 0; i < COLUMNS; i++)
        columns[i] = (struct kp_column){.heading = headings[i], .field = f->metric + i, .to_the_left = i == NAME};
    kp_write_field(w, f->section, p->title);
    if (p->title)
        kp_write_heading(w, KP_LEVEL_SECTION, p->title);
    kp_write_table(w, &(struct kp_table){.kind = KP_TABLE_FRAMED, .columns = columns, .n = COLUMNS});
    for (size_t i = 0; i < p->n; i++) {
        fill_spread(&cells, &p->stats[i], base, w->kind->plain);
        kp_write_row(w, cells.at);
    }
    kp_write_table_end(w);
    kp_write_gap(w);
}

static const char *device_name(const struct kp_session *s, int ordinal)
{
    for (size_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].ordinal == ordinal)
            return s->devices[i].name;
    return "?";
}

/* Returns the group's title, malloc'ed; NULL without memory. */
static char *group_title(const struct kp_page *p, const struct group *g)
{
    bool by_range = p->display->grouping == KP_GROUPING_NVTX;
    if (g->name)
        return kp_asprintf("%s%s, Invocations %" PRIu64, by_range ? "NVTX range " : "", g->name, g->launches);
    if (by_range)
        return kp_asprintf("In no NVTX range, Invocations %" PRIu64, g->launches);
    return kp_asprintf("Device %d (%s), CC %d.%d, Invocations %" PRIu64, g->device, device_name(p->session, g->device),
                       g->cc_major, g->cc_minor, g->launches);
}

static int write_group(struct kp_writer *w, const struct kp_page *p, const struct fields *f, const struct group *g)
{
    char number[KP_NUMBER_MAX], *title = group_title(p, g);
    if (!title)
        return -ENOMEM;
    kp_write_heading(w, KP_LEVEL_LAUNCH, title);
    free(title);
    kp_write_field(w, GROUP_NAME, g->name);
    if (p->display->grouping == KP_GROUPING_GPU) {
        snprintf(number, sizeof number, "%d", g->device);
        kp_write_field(w, GROUP_DEVICE, number);
    }
    kp_count_cell(g->launches, true, number);
    kp_write_field(w, f->launches, number);
    for (size_t i = 0; i < g->n; i++)
        write_part(w, f, &g->parts[i], p->display->base_units || w->kind->plain || is_raw(p));
    return w->out.rc;
}

/* Explains missing ranges to the reader of a session made without NVTX. */
static void tell_without_ranges(struct kp_writer *w, const struct groups *all)
{
    if (all->page->display->grouping == KP_GROUPING_NVTX && all->n == 1 && !all->at->name)
        kp_write_note(w, KP_LEVEL_LAUNCH, NULL,
                      "No launch of this session has an NVTX range: it was recorded without KPROF_NVTX=on, or the "
                      "program opened none");
}

static struct fields fields_of(enum kp_grouping grouping)
{
    struct fields f = {.n = 0};
    if (grouping == KP_GROUPING_NVTX) {
        f.heading[f.n++] = KP_NVTX_RANGE;
    } else {
        f.heading[f.n++] = "Kernel Name";
        f.heading[f.n++] = "Device";
    }
    f.launches = f.n;
    f.heading[f.n++] = "Invocations";
    f.section = f.n;
    f.heading[f.n++] = "Section Name";
    f.metric = f.n;
    for (size_t i = 0; i < COLUMNS; i++)
        f.heading[f.n++] = headings[i];
    return f;
}

int kp_page_grouped(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    const struct fields f = fields_of(pages->display->grouping);
    int rc = 0;
    kp_write_begin(w, &(struct kp_layout){KP_START_PROCESS, f.heading, f.n, .metric = f.metric});
    for (size_t i = 0; !rc && i < n; i++) {
        struct groups all = {.page = &pages[i]};
        kp_page_enter(&pages[i], w);
        rc = kp_page_each(&pages[i], add_launch, &all);
        if (!rc)
            tell_without_ranges(w, &all);
        for (size_t j = 0; !rc && j < all.n; j++)
            rc = write_group(w, &pages[i], &f, &all.at[j]);
        free_all_groups(&all);
    }
    return rc;
}
