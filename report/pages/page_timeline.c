/* The page timeline: for each device how long kernels ran and the largest gaps between them; then streams, and kernels
 * by their time. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A launch of the report that may be behind a gap; id -1: it is not in the session. */
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

/* Sets a name, cut to `room` bytes in text, without cutting a character. */
static int cell_name(struct context *c, size_t i, const char *name, size_t room)
{
    size_t len = strlen(name);
    c->row[i] = name;
    if (c->to->kind->plain || len <= room)
        return 0;
    for (len = room - 2; len && ((unsigned char)name[len] & 0xc0) == 0x80;)
        len--;
    free(c->names[i]);
    if (asprintf(&c->names[i], "%.*s..", (int)len, name) < 0) {
        c->names[i] = NULL;
        return -ENOMEM;
    }
    c->row[i] = c->names[i];
    return 0;
}

static const char *text_of(const struct context *c, const struct kp_activity *a)
{
    return a ? kp_timeline_name(&c->line, a) : "";
}

/* ---- tables ---- */

static void begin(struct context *c, const char *name, const struct kp_table *table)
{
    kp_write_field(c->to, TABLE, name);
    kp_write_table(c->to, table);
}

static void end(struct context *c)
{
    kp_write_table_end(c->to);
    kp_write_gap(c->to);
}

static void write_devices(struct context *c)
{
    static const struct kp_column columns[] = {
        {"Device", DEVICE, 0, false},           {"From First to Last", LENGTH, 0, false},
        {"Kernels Ran", BUSY, 0, false},        {"%", BUSY_SHARE, 0, false},
        {"No Kernel Ran", IDLE, 0, false},      {"% ", IDLE_SHARE, 0, false},
        {"Left Out for kprof", HELD, 0, false}, {"Kernels", KERNELS, 0, false}};
    static const struct kp_table table = {KP_TABLE_FRAMED, columns, sizeof columns / sizeof *columns, false};
    begin(c, "device", &table);
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

/* Notes which launch of the report is behind which gap. */
static int find_launch(struct kp_result *r, void *arg)
{
    struct context *c = arg;
    for (size_t i = 0; i < c->n_behind; i++)
        if (c->behind[i].ordinal == (int64_t)r->launch.ordinal)
            c->behind[i].id = (int64_t)r->launch.id;
    return 0;
}

/* Looks at the launches once, where one may be behind a gap. */
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

/* Sets the number of the launch in the report, where it has one. */
static void cell_launch(struct context *c, size_t i, const struct kp_activity *a)
{
    c->row[i] = "";
    for (size_t k = 0; k < c->n_behind; k++)
        if (c->behind[k].ordinal == a->ordinal && c->behind[k].id >= 0)
            cell_count(c, i, (uint64_t)c->behind[k].id);
}

static int write_gap(struct context *c, const struct kp_device_line *d, const struct kp_gap *gap)
{
    cell_time(c, 0, gap->ns);
    cell_share(c, 1, gap->ns, d->span_ns);
    cell_time(c, 2, gap->copying_ns);
    cell_time(c, 3, gap->start_ns - d->first_ns);
    int rc = cell_name(c, 4, text_of(c, gap->before), NAME_ROOM);
    rc = rc ? rc : cell_name(c, 5, text_of(c, gap->next), NAME_ROOM);
    rc = rc ? rc : cell_name(c, 6, text_of(c, gap->range), RANGE_ROOM);
    cell_launch(c, 7, gap->next);
    if (!rc)
        kp_write_row(c->to, c->row);
    return rc;
}

static int write_gaps(struct context *c)
{
    static const struct kp_column columns[] = {{"Length", LENGTH, 0, false},   {"%", IDLE_SHARE, 0, false},
                                               {"Copying", COPYING, 0, false}, {"At", START, 0, false},
                                               {"Before", BEFORE, 0, true},    {"Next", NEXT, 0, true},
                                               {"In Range", RANGE, 0, true},   {"Launch", LAUNCH, 0, false}};
    static const struct kp_table table = {KP_TABLE_FRAMED, columns, sizeof columns / sizeof *columns, false};
    char title[KP_NUMBER_MAX + 128], number[KP_NUMBER_MAX];
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
        begin(c, "gap", &table);
        kp_write_field(c->to, DEVICE, number);
        for (size_t k = 0; !rc && k < shown; k++)
            rc = write_gap(c, d, &d->gaps[k]);
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
    begin(c, "stream", &table);
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

static int write_kernel(struct context *c, const struct kp_kernel_line *k, int64_t all, int last)
{
    const struct kp_activity named = {.name = k->name};
    cell_share(c, 0, k->total_ns, all);
    cell_time(c, 1, k->total_ns);
    cell_count(c, 2, k->n);
    cell_time(c, 3, k->total_ns / (int64_t)k->n);
    cell_time(c, 4, k->least_ns);
    cell_time(c, 5, k->most_ns);
    int rc = cell_name(c, (size_t)last, text_of(c, &named), LONG_ROOM);
    if (!rc)
        kp_write_row(c->to, c->row);
    return rc;
}

static int write_kernels(struct context *c)
{
    static const struct kp_column columns[] = {
        {"%", BUSY_SHARE, 0, false}, {"Total", BUSY, 0, false}, {"Count", KERNELS, 0, false}, {"Avg", MEAN, 0, false},
        {"Min", LEAST, 0, false},    {"Max", MOST, 0, false},   {"Kernel", NAME, 0, true}};
    static const struct kp_table table = {KP_TABLE_FRAMED, columns, sizeof columns / sizeof *columns, false};
    size_t top = c->page->display->top, n = top && top < c->gaps.n_kernels ? top : c->gaps.n_kernels;
    int64_t all = 0;
    int rc = 0;
    if (!n)
        return 0;
    for (size_t i = 0; i < c->gaps.n_kernels; i++)
        all += c->gaps.kernels[i].total_ns;
    kp_write_heading(c->to, KP_LEVEL_BODY, "Kernels by time");
    begin(c, "kernel", &table);
    for (size_t i = 0; !rc && i < n; i++)
        rc = write_kernel(c, &c->gaps.kernels[i], all, 6);
    end(c);
    return rc;
}

/* ---- the page ---- */

static void tell_dropped(const struct kp_page *p, struct kp_writer *w)
{
    char text[160];
    uint64_t dropped = p->session->timeline_dropped;
    if (!dropped)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " activities found no room: what follows lacks them", dropped);
    kp_write_note(w, KP_LEVEL_BODY, "Note", text);
}

static int write_session(const struct kp_page *p, struct kp_writer *w)
{
    struct context c = {.page = p, .to = w};
    int rc = kp_lookup_timeline(&p->launches->lookup, &c.line);
    if (rc) {
        kp_write_note(w, KP_LEVEL_LAUNCH, NULL,
                      p->session->timeline
                          ? "The timeline has no activity of a device."
                          : "No timeline was recorded: run the program with timeline (KPROF_TIMELINE).");
        kp_write_gap(w);
        return rc == -ENOMEM ? rc : 0;
    }
    rc = kp_gaps_of(&c.line, &c.gaps);
    if (!rc) {
        kp_write_heading(w, KP_LEVEL_LAUNCH, "Timeline");
        tell_dropped(p, w);
        write_devices(&c);
        rc = write_gaps(&c);
    }
    if (!rc) {
        write_streams(&c);
        rc = write_kernels(&c);
    }
    for (size_t i = 0; i < MOST_CELLS; i++)
        free(c.names[i]);
    free(c.behind);
    kp_gaps_free(&c.gaps);
    kp_timeline_free(&c.line);
    return rc;
}

int kp_timeline_page(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    static const struct kp_layout layout = {.start = KP_START_EMPTY, .fields = fields, .n = FIELDS};
    int rc = 0;
    kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        kp_page_enter(&pages[i], w);
        rc = write_session(&pages[i], w);
    }
    return rc;
}
