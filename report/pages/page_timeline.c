/* The page timeline: for each device how long kernels ran and the largest gaps between them; then streams, and kernels
 * by their time. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/width.h"
#include "report/model/short_names.h"
#include "report/pages/page_body.h"
#include "report/view/gaps.h"

/* The fields of rows: each table has some of them. */
enum {
    TABLE,
    DEVICE,
    CONTEXT,
    STREAM,
    NAME,
    START,
    LENGTH,
    BUSY,
    BUSY_SHARE,
    IDLE,
    IDLE_SHARE,
    HELD,
    KERNELS,
    COPIES,
    SETS,
    BYTES,
    LEAST,
    MEAN,
    MOST,
    COPYING,
    BEFORE,
    NEXT,
    RANGE,
    LAUNCH,
    FIELDS
};
static const char *const fields[FIELDS] = {
    "Table",       "Device",           "Context",         "Stream",         "Name",          "Start (ns)",
    "Length (ns)", "Kernel Time (ns)", "Kernel Time (%)", "No Kernel (ns)", "No Kernel (%)", "Held by kprof (ns)",
    "Kernels",     "Copies",           "Memsets",         "Copied (byte)",  "Min (ns)",      "Avg (ns)",
    "Max (ns)",    "Copying (ns)",     "Before",          "Next",           KP_NVTX_RANGE,   "Launch ID"};

enum { NAME_ROOM = 34, RANGE_ROOM = 20, LONG_ROOM = 70, MOST_CELLS = 12, CELL = KP_NUMBER_MAX + KP_UNIT_MAX };
/* Columns of a line that the tables of gaps and kernels need in addition to names and ranges. */
enum { GAP_CELLS = 50, KERNEL_CELLS = 59 };

/* A launch of the report that may follow a gap; id -1: it is not in the session. */
struct behind {
    int64_t ordinal, id;
};

struct context {
    const struct kp_page *page;
    struct kp_writer *to;
    struct kp_timeline line;
    struct kp_gaps gaps;
    char cells[MOST_CELLS][CELL];
    const char *row[MOST_CELLS];
    char *names[MOST_CELLS]; /* shortened; owned */
    char **kernels;          /* short names of gaps.kernels, which differ; NULL: in full; owned */
    struct behind *behind;
    size_t n_behind;
};

/* ---- cells ---- */

static const char *cell_count(struct context *c, size_t i, uint64_t value)
{
    if (c->to->kind->plain)
        snprintf(c->cells[i], CELL, "%" PRIu64, value);
    else
        kp_format_count(value, c->cells[i]);
    return c->row[i] = c->cells[i];
}

static const char *cell_time(struct context *c, size_t i, int64_t ns)
{
    if (c->to->kind->plain)
        snprintf(c->cells[i], CELL, "%" PRId64, ns);
    else
        kp_format_quantity((double)ns, "ns", false, c->cells[i]);
    return c->row[i] = c->cells[i];
}

static const char *cell_share(struct context *c, size_t i, int64_t part, int64_t whole)
{
    snprintf(c->cells[i], CELL, "%.2f", whole > 0 ? 100 * (double)part / (double)whole : 0);
    return c->row[i] = c->cells[i];
}

static void cell_bytes(struct context *c, size_t i, uint64_t bytes)
{
    if (c->to->kind->plain)
        snprintf(c->cells[i], CELL, "%" PRIu64, bytes);
    else
        kp_format_quantity((double)bytes, "byte", false, c->cells[i]);
    c->row[i] = c->cells[i];
}

/* Sets a name, cut to `room` columns in text. */
static int cell_name(struct context *c, size_t i, const char *name, size_t room)
{
    c->row[i] = name;
    if (c->to->kind->plain || kp_width(name) <= room)
        return 0;
    size_t len = kp_width_fit(name, strlen(name), room - 2);
    free(c->names[i]);
    if (asprintf(&c->names[i], "%.*s..", (int)len, name) < 0) {
        c->names[i] = NULL;
        return -ENOMEM;
    }
    c->row[i] = c->names[i];
    return 0;
}

/* Shortens the names of all kernels to `room` in text; formats of rows have them in full. */
static int shorten_kernels(struct context *c, size_t room)
{
    size_t n = c->gaps.n_kernels;
    struct kp_long_name *whole = c->to->kind->plain ? NULL : calloc(n + 1, sizeof *whole);
    kp_short_names_free(c->kernels, n);
    c->kernels = NULL;
    if (!whole)
        return c->to->kind->plain ? 0 : -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct kp_activity named = {.name = c->gaps.kernels[i].name};
        whole[i].name = kp_timeline_name(&c->line, &named);
    }
    room = room > KP_SHORT_ROOM_MIN ? room : KP_SHORT_ROOM_MIN;
    int rc = kp_short_names(whole, n, n, room, KP_SHORT_SIGNATURE, &c->kernels);
    free(whole);
    return rc;
}

static const char *text_of(const struct context *c, const struct kp_activity *a)
{
    return a ? kp_timeline_name(&c->line, a) : "";
}

/* Returns the name of a kernel, short if there are short ones. */
static const char *kernel_of(const struct context *c, const struct kp_activity *a)
{
    for (size_t i = 0; a && c->kernels && i < c->gaps.n_kernels; i++)
        if (c->gaps.kernels[i].name == a->name)
            return c->kernels[i];
    return text_of(c, a);
}

/* ---- tables ---- */

/* A column that gives way to names, and the columns of the line that this gains. */
struct dispensable {
    size_t at, gain;
};

/* The columns that are shown of a table. */
struct shown {
    struct kp_column columns[MOST_CELLS];
    size_t at[MOST_CELLS]; /* of each its place in the table */
    struct kp_table table;
};

/* Columns that may be left out: `n`, in this order; the first `empty` are always left out. */
struct dispensables {
    const struct dispensable *at;
    size_t n, empty;
};

/* Leaves columns out until `names` names have room for `wish` characters each; `taken` of the line is in use. Formats
 * of rows have all columns. Returns the room of a name. */
static size_t choose_timeline_columns(const struct context *c, const struct kp_table *all, size_t taken, size_t names,
                                      size_t wish, const struct dispensables *d, struct shown *s)
{
    size_t wide = kp_out_wide(&c->to->out);
    bool hidden[MOST_CELLS] = {false};
    for (size_t i = 0; !c->to->kind->plain && i < d->n && (i < d->empty || taken + names * wish > wide); i++) {
        hidden[d->at[i].at] = true;
        taken -= d->at[i].gain;
    }
    s->table = *all;
    s->table.columns = s->columns;
    s->table.n = 0;
    for (size_t i = 0; i < all->n; i++)
        if (!hidden[i]) {
            s->at[s->table.n] = i;
            s->columns[s->table.n++] = all->columns[i];
        }
    return wide > taken ? (wide - taken) / names : 0;
}

static void write_row(struct context *c, const struct shown *s)
{
    const char *row[MOST_CELLS];
    for (size_t i = 0; i < s->table.n; i++)
        row[i] = c->row[s->at[i]];
    kp_write_row(c->to, row);
}

static void begin_part(struct context *c, const char *name, const struct kp_table *table)
{
    kp_write_field(c->to, TABLE, name);
    kp_write_table(c->to, table);
}

static void end(struct context *c)
{
    kp_write_table_end(c->to);
    kp_write_gap(c->to);
}

static void write_device_table(struct context *c)
{
    static const struct kp_column columns[] = {
        {"Device", DEVICE, 0, false},           {"From First to Last", LENGTH, 0, false},
        {"Kernels Ran", BUSY, 0, false},        {"Ran %", BUSY_SHARE, 0, false},
        {"No Kernel Ran", IDLE, 0, false},      {"Idle %", IDLE_SHARE, 0, false},
        {"Left Out for kprof", HELD, 0, false}, {"Kernels", KERNELS, 0, false}};
    static const struct kp_table table = {KP_TABLE_FRAMED, columns, sizeof columns / sizeof *columns, false};
    begin_part(c, "device", &table);
    for (size_t i = 0; i < c->gaps.n_devices; i++) {
        const struct kp_device_line *d = &c->gaps.devices[i];
        cell_count(c, 0, (uint64_t)d->device);
        cell_time(c, 1, d->span_ns);
        cell_time(c, 2, d->busy_ns);
        cell_share(c, 3, d->busy_ns, d->span_ns);
        cell_time(c, 4, d->span_ns - d->busy_ns);
        cell_share(c, 5, d->span_ns - d->busy_ns, d->span_ns);
        cell_time(c, 6, d->held_ns);
        cell_count(c, 7, d->kernels);
        kp_write_row(c->to, c->row);
    }
    end(c);
}

/* Notes which launch of the report follows which gap. */
static int find_launch(struct kp_result *r, void *arg)
{
    struct context *c = arg;
    for (size_t i = 0; i < c->n_behind; i++)
        if (c->behind[i].ordinal == (int64_t)r->launch.ordinal)
            c->behind[i].id = (int64_t)r->launch.id;
    return 0;
}

/* Reads the launches once, if one may follow a gap. */
static int find_launches(struct context *c)
{
    c->behind = calloc(KP_GAPS_MOST * (c->gaps.n_devices + 1), sizeof *c->behind);
    if (!c->behind)
        return -ENOMEM;
    for (size_t i = 0; i < c->gaps.n_devices; i++) {
        const struct kp_device_line *d = &c->gaps.devices[i];
        for (size_t k = 0; k < KP_GAPS_MOST && k < d->n_gaps; k++)
            if (d->gaps[k].next->ordinal >= 0)
                c->behind[c->n_behind++] = (struct behind){d->gaps[k].next->ordinal, -1};
    }
    return c->n_behind ? kp_page_each(c->page, find_launch, c) : 0;
}

/* Returns the number of the launch in the report; -1: it has none. */
static int64_t launch_of(const struct context *c, const struct kp_activity *a)
{
    for (size_t k = 0; k < c->n_behind; k++)
        if (c->behind[k].ordinal == a->ordinal && c->behind[k].id >= 0)
            return c->behind[k].id;
    return -1;
}

static void cell_launch(struct context *c, size_t i, const struct kp_activity *a)
{
    int64_t id = launch_of(c, a);
    c->row[i] = "";
    if (id >= 0)
        cell_count(c, i, (uint64_t)id);
}

static int write_gap(struct context *c, const struct kp_device_line *d, const struct kp_gap *gap, const struct shown *s)
{
    cell_time(c, 0, gap->ns);
    cell_share(c, 1, gap->ns, d->span_ns);
    cell_time(c, 2, gap->copying_ns);
    cell_time(c, 3, gap->start_ns - d->first_ns);
    c->row[4] = kernel_of(c, gap->before);
    c->row[5] = kernel_of(c, gap->next);
    int rc = cell_name(c, 6, text_of(c, gap->range), RANGE_ROOM);
    cell_launch(c, 7, gap->next);
    if (!rc)
        write_row(c, s);
    return rc;
}

/* Chooses the columns of the gaps of a device, and shortens names to the room that they leave. */
static int fit_gaps(struct context *c, const struct kp_device_line *d, const struct kp_table *table, struct shown *s)
{
    static const struct dispensable others[] = {{2, 10}, {1, 7}, {3, 10}};
    enum { OTHERS = sizeof others / sizeof *others };
    struct dispensable first[2 + OTHERS];
    size_t range = strlen("In Range"), empty = 0, n = 0;
    bool has_launch = false, has_range = false;
    for (size_t k = 0; k < KP_GAPS_MOST && k < d->n_gaps; k++) {
        size_t width = kp_width(text_of(c, d->gaps[k].range));
        has_range |= width > 0;
        has_launch |= launch_of(c, d->gaps[k].next) >= 0;
        width = width < RANGE_ROOM ? width : RANGE_ROOM;
        range = width > range ? width : range;
    }
    if (!has_launch)
        first[empty++] = (struct dispensable){7, 7};
    if (!has_range)
        first[empty++] = (struct dispensable){6, range + 1};
    memcpy(&first[empty], others, sizeof others);
    n = empty + OTHERS;
    if (has_range)
        first[n++] = (struct dispensable){6, range + 1};
    const struct dispensables all = {first, n, empty};
    size_t room = choose_timeline_columns(c, table, GAP_CELLS + range, 2, 18, &all, s);
    return shorten_kernels(c, room < NAME_ROOM ? room : NAME_ROOM);
}

static int write_gaps(struct context *c)
{
    static const struct kp_column columns[] = {{"Length", LENGTH, 0, false},   {"%", IDLE_SHARE, 0, false},
                                               {"Copying", COPYING, 0, false}, {"At", START, 0, false},
                                               {"Before", BEFORE, 0, true},    {"Next", NEXT, 0, true},
                                               {"In Range", RANGE, 0, true},   {"Launch", LAUNCH, 0, false}};
    static const struct kp_table table = {KP_TABLE_FRAMED, columns, sizeof columns / sizeof *columns, false};
    char title[KP_NUMBER_MAX + 128], number[KP_NUMBER_MAX];
    struct shown fitted;
    int rc = find_launches(c);
    for (size_t i = 0; !rc && i < c->gaps.n_devices; i++) {
        const struct kp_device_line *d = &c->gaps.devices[i];
        size_t shown = d->n_gaps < KP_GAPS_MOST ? d->n_gaps : KP_GAPS_MOST;
        if (!shown)
            continue;
        kp_format_count(d->n_gaps, number);
        snprintf(title, sizeof title, "Device %d: the largest of %s gap%s between kernels", d->device, number,
                 d->n_gaps == 1 ? "" : "s");
        kp_write_heading(c->to, KP_LEVEL_BODY, title);
        snprintf(number, sizeof number, "%d", d->device);
        rc = fit_gaps(c, d, &table, &fitted);
        begin_part(c, "gap", &fitted.table);
        kp_write_field(c->to, DEVICE, number);
        for (size_t k = 0; !rc && k < shown; k++)
            rc = write_gap(c, d, &d->gaps[k], &fitted);
        kp_write_field(c->to, DEVICE, "");
        end(c);
    }
    return rc;
}

static void write_streams(struct context *c)
{
    static const struct kp_column columns[] = {
        {"Device", DEVICE, 0, false},   {"Context", CONTEXT, 0, false},  {"Stream", STREAM, 0, false},
        {"Kernels", KERNELS, 0, false}, {"Copies", COPIES, 0, false},    {"Memsets", SETS, 0, false},
        {"Copied", BYTES, 0, false},    {"Kernel Time", BUSY, 0, false}, {"Busy", LENGTH, 0, false}};
    static const struct kp_table table = {KP_TABLE_FRAMED, columns, sizeof columns / sizeof *columns, false};
    kp_write_heading(c->to, KP_LEVEL_BODY, "Streams");
    begin_part(c, "stream", &table);
    for (size_t i = 0; i < c->gaps.n_streams; i++) {
        const struct kp_stream_line *s = &c->gaps.streams[i];
        cell_count(c, 0, (uint64_t)s->device);
        cell_count(c, 1, s->context_id);
        cell_count(c, 2, s->stream_id);
        cell_count(c, 3, s->kernels);
        cell_count(c, 4, s->copies);
        cell_count(c, 5, s->sets);
        cell_bytes(c, 6, s->bytes);
        cell_time(c, 7, s->kernel_ns);
        cell_time(c, 8, s->busy_ns);
        kp_write_row(c->to, c->row);
    }
    end(c);
}

static void write_kernel(struct context *c, const struct kp_kernel_line *k, int64_t all, const struct shown *s)
{
    const struct kp_activity named = {.name = k->name};
    cell_share(c, 0, k->total_ns, all);
    cell_time(c, 1, k->total_ns);
    cell_count(c, 2, k->n);
    cell_time(c, 3, k->total_ns / (int64_t)k->n);
    cell_time(c, 4, k->least_ns);
    cell_time(c, 5, k->most_ns);
    c->row[6] = kernel_of(c, &named);
    write_row(c, s);
}

static int write_kernels(struct context *c)
{
    static const struct kp_column columns[] = {
        {"%", BUSY_SHARE, 0, false}, {"Total", BUSY, 0, false}, {"Count", KERNELS, 0, false}, {"Avg", MEAN, 0, false},
        {"Min", LEAST, 0, false},    {"Max", MOST, 0, false},   {"Kernel", NAME, 0, true}};
    static const struct kp_table table = {KP_TABLE_FRAMED, columns, sizeof columns / sizeof *columns, false};
    static const struct dispensable first[] = {{4, 10}, {5, 10}, {3, 10}};
    static const struct dispensables others = {first, sizeof first / sizeof *first, 0};
    size_t top = c->page->display->top, n = top && top < c->gaps.n_kernels ? top : c->gaps.n_kernels;
    int64_t all = 0;
    struct shown fitted;
    if (!n)
        return 0;
    size_t room = choose_timeline_columns(c, &table, KERNEL_CELLS, 1, 24, &others, &fitted);
    int rc = shorten_kernels(c, room < LONG_ROOM ? room : LONG_ROOM);
    if (rc)
        return rc;
    for (size_t i = 0; i < c->gaps.n_kernels; i++)
        all += c->gaps.kernels[i].total_ns;
    kp_write_heading(c->to, KP_LEVEL_BODY, "Kernels by time");
    begin_part(c, "kernel", &fitted.table);
    for (size_t i = 0; i < n; i++)
        write_kernel(c, &c->gaps.kernels[i], all, &fitted);
    end(c);
    return 0;
}

/* ---- the page ---- */

static void tell_dropped(const struct kp_page *p, struct kp_writer *w)
{
    char text[160];
    uint64_t dropped = p->session->timeline_dropped;
    if (!dropped)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " activities had no room: they are missing below", dropped);
    kp_write_note(w, KP_LEVEL_BODY, "Note", text);
}

static int write_timeline_session(const struct kp_page *p, struct kp_writer *w)
{
    struct context c = {.page = p, .to = w};
    int rc = kp_lookup_timeline(&p->launches->lookup, &c.line);
    if (rc) {
        kp_write_note(w, KP_LEVEL_LAUNCH, NULL,
                      p->session->timeline
                          ? "The timeline has no activity on a device."
                          : "No timeline was recorded: `kprof --timeline -o FILE PROGRAM` does, or KPROF_TIMELINE=on.");
        kp_write_gap(w);
        return rc == -ENOMEM ? rc : 0;
    }
    rc = kp_gaps_of(&c.line, &c.gaps);
    if (!rc) {
        kp_write_heading(w, KP_LEVEL_LAUNCH, "Timeline");
        tell_dropped(p, w);
        write_device_table(&c);
        rc = write_gaps(&c);
    }
    if (!rc) {
        write_streams(&c);
        rc = write_kernels(&c);
    }
    for (size_t i = 0; i < MOST_CELLS; i++)
        free(c.names[i]);
    kp_short_names_free(c.kernels, c.gaps.n_kernels);
    free(c.behind);
    kp_gaps_free(&c.gaps);
    kp_timeline_free(&c.line);
    return rc;
}

int kp_page_timeline(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    static const struct kp_layout layout = {.start = KP_START_EMPTY, .fields = fields, .n = FIELDS};
    int rc = 0;
    kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        kp_page_enter(&pages[i], w);
        rc = write_timeline_session(&pages[i], w);
    }
    return rc;
}
