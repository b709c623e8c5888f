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
    uint32_t grid[3], block[3]; /* of the first launch */
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

/* The face ncu groups by kernel, shape and device, whether by kernel or by GPU. */
static bool is_by_shape(const struct kp_display *d)
{
    return d->face == KP_FACE_NCU && d->grouping != KP_GROUPING_NVTX;
}

static bool is_same_group(const struct group *g, const char *name, const struct kp_launch_info *l,
                          const struct kp_display *d)
{
    if (d->grouping == KP_GROUPING_GPU && d->face != KP_FACE_NCU)
        return g->device == l->device;
    if (is_by_shape(d) && (g->device != l->device || memcmp(g->grid, l->grid, sizeof g->grid) != 0 ||
                           memcmp(g->block, l->block, sizeof g->block) != 0))
        return false;
    return g->name && name ? !strcmp(g->name, name) : g->name == name;
}

/* Returns where a new group goes: to the end, in the face ncu by name, and by device before that if by GPU. */
static size_t group_place(const struct groups *all, const char *name, int device)
{
    const struct kp_display *d = all->page->display;
    size_t at = all->n;
    for (; at && is_by_shape(d); at--) {
        const struct group *g = &all->at[at - 1];
        bool alike = d->grouping != KP_GROUPING_GPU || g->device == device;
        if (alike ? strcmp(g->name, name) <= 0 : g->device < device)
            break;
    }
    return at;
}

/* Returns NULL without memory. */
static struct group *find_group(struct groups *all, const char *name, const struct kp_launch_info *l)
{
    for (size_t i = 0; i < all->n; i++)
        if (is_same_group(&all->at[i], name, l, all->page->display))
            return &all->at[i];
    char *copy = name ? kp_strdup(name) : NULL;
    if (!KP_ROOM(all->at, all->n) || (name && !copy)) {
        free(copy);
        return NULL;
    }
    size_t at = group_place(all, name, l->device);
    struct group *g = &all->at[at];
    memmove(g + 1, g, (all->n++ - at) * sizeof *g);
    *g = (struct group){.name = copy, .device = l->device, .cc_major = l->cc_major, .cc_minor = l->cc_minor};
    memcpy(g->grid, l->grid, sizeof l->grid);
    memcpy(g->block, l->block, sizeof l->block);
    return g;
}

/* In the face ncu, sections are in the order of their titles. */
static struct part *find_part(struct group *g, const char *title, bool by_title)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->parts[i].title == title)
            return &g->parts[i];
    if (!KP_ROOM(g->parts, g->n))
        return NULL;
    size_t at = g->n;
    while (by_title && at && strcmp(g->parts[at - 1].title, title) > 0)
        at--;
    memmove(&g->parts[at + 1], &g->parts[at], (g->n++ - at) * sizeof *g->parts);
    g->parts[at] = (struct part){.title = title};
    return &g->parts[at];
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
    struct part *p = find_part(g, title, d->face == KP_FACE_NCU);
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
    struct part *p = find_part(g, NULL, false);
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
        return add_to(all, is_by_shape(all->page->display) ? kp_launch_name(&r->launch) : NULL, r);
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

/* Fields of the group precede those of the metric. */
enum { FIELDS_MAX = 7 + COLUMNS, ABSENT = FIELDS_MAX };

/* Positions of the fields that differ between groupings and faces. */
struct fields {
    const char *heading[FIELDS_MAX];
    size_t name, block, grid, device, cc, launches, section, metric, n;
    size_t column[COLUMNS]; /* those of metrics */
    size_t n_columns;
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

/* ncu has two decimals everywhere. */
static void fill_as_ncu(struct cells *c)
{
    for (int i = LOWEST; i < COLUMNS; i++)
        if (!strpbrk(c->number[i], ".en"))
            strcat(c->number[i], ".00");
}

static void write_part(struct kp_writer *w, const struct fields *f, const struct part *p, bool base)
{
    struct kp_column columns[COLUMNS];
    struct cells cells;
    const char *row[COLUMNS];
    if (!p->n)
        return;
    for (size_t i = 0; i < f->n_columns; i++)
        columns[i] = (struct kp_column){
            .heading = headings[f->column[i]], .field = f->metric + i, .to_the_left = f->column[i] == NAME};
    kp_write_field(w, f->section, p->title);
    if (p->title)
        kp_write_heading(w, KP_LEVEL_SECTION, p->title);
    kp_write_table(w, &(struct kp_table){.kind = KP_TABLE_FRAMED, .columns = columns, .n = f->n_columns});
    for (size_t i = 0; i < p->n; i++) {
        fill_spread(&cells, &p->stats[i], base, w->kind->plain);
        if (w->out.display->face == KP_FACE_NCU)
            fill_as_ncu(&cells);
        for (size_t k = 0; k < f->n_columns; k++)
            row[k] = cells.at[f->column[k]];
        kp_write_row(w, row);
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
    if (is_by_shape(p->display))
        return kp_asprintf("%s (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")x(%" PRIu32 ", %" PRIu32 ", %" PRIu32
                           "), Device %d, CC %d.%d, Invocations %" PRIu64,
                           g->name, g->grid[0], g->grid[1], g->grid[2], g->block[0], g->block[1], g->block[2],
                           g->device, g->cc_major, g->cc_minor, g->launches);
    if (g->name)
        return kp_asprintf("%s%s, Invocations %" PRIu64, by_range ? "NVTX range " : "", g->name, g->launches);
    if (by_range)
        return kp_asprintf("In no NVTX range, Invocations %" PRIu64, g->launches);
    return kp_asprintf("Device %d (%s), CC %d.%d, Invocations %" PRIu64, g->device, device_name(p->session, g->device),
                       g->cc_major, g->cc_minor, g->launches);
}

static void write_extent(struct kp_writer *w, size_t field, const uint32_t size[3])
{
    char text[64];
    snprintf(text, sizeof text, "(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", size[0], size[1], size[2]);
    kp_write_field(w, field, text);
}

/* Writes the fields of the group that the rows have. */
static void write_group_fields(struct kp_writer *w, const struct kp_page *p, const struct fields *f,
                               const struct group *g)
{
    char number[KP_NUMBER_MAX], *plain = g->name && f->grid != ABSENT ? kp_launch_plain_name(g->name) : NULL;
    if (f->name != ABSENT)
        kp_write_field(w, f->name, plain ? plain : g->name);
    free(plain);
    if (f->grid != ABSENT) {
        write_extent(w, f->block, g->block);
        write_extent(w, f->grid, g->grid);
    }
    snprintf(number, sizeof number, "%d", g->device);
    if (f->device != ABSENT && (p->display->grouping == KP_GROUPING_GPU || f->grid != ABSENT))
        kp_write_field(w, f->device, number);
    snprintf(number, sizeof number, "%d.%d", g->cc_major, g->cc_minor);
    if (f->cc != ABSENT)
        kp_write_field(w, f->cc, number);
}

static int write_group(struct kp_writer *w, const struct kp_page *p, const struct fields *f, const struct group *g)
{
    char number[KP_NUMBER_MAX], *title = group_title(p, g);
    if (!title)
        return -ENOMEM;
    kp_write_heading(w, KP_LEVEL_LAUNCH, title);
    free(title);
    write_group_fields(w, p, f, g);
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

static size_t add_field(struct fields *f, bool wanted, const char *heading)
{
    if (!wanted)
        return ABSENT;
    f->heading[f->n] = heading;
    return f->n++;
}

static void add_device_fields(struct fields *f, bool device, bool cc)
{
    f->device = add_field(f, device, "Device");
    f->cc = add_field(f, cc, "CC");
}

static struct fields fields_of(const struct kp_display *d)
{
    struct fields f = {.n = 0};
    bool as_ncu = d->face == KP_FACE_NCU, by_range = d->grouping == KP_GROUPING_NVTX, by_shape = is_by_shape(d);
    bool device_first = as_ncu && d->grouping == KP_GROUPING_GPU;
    if (device_first)
        add_device_fields(&f, true, true);
    f.name = add_field(&f, by_shape || by_range || !as_ncu, by_range ? KP_NVTX_RANGE : "Kernel Name");
    f.block = add_field(&f, by_shape, "Block Size");
    f.grid = add_field(&f, by_shape, "Grid Size");
    if (!device_first)
        add_device_fields(&f, !by_range, as_ncu && !by_range);
    f.launches = add_field(&f, true, "Invocations");
    f.section = add_field(&f, true, "Section Name");
    f.metric = f.n;
    for (size_t i = 0; i < COLUMNS; i++) {
        if (as_ncu && i == COUNT)
            continue;
        f.column[f.n_columns++] = i;
        add_field(&f, true, headings[i]);
    }
    return f;
}

int kp_page_grouped(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    const struct fields f = fields_of(pages->display);
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
