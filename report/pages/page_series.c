/* The page series: for each launch the ways of launching it that were tried, and which took the shortest time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/pages/details.h"
#include "report/pages/page_body.h"
#include "report/view/variants.h"

/* Fields of rows. */
enum { VARIANT, GRID, BLOCK, CHANGE, FIRST_METRIC };

static const struct value {
    const char *heading, *field, *metric, *unit;
    bool text; /* a line of text has room for it */
} values[] = {
    {"Duration", "Duration (ns)", "gpu__time_duration.sum", "ns", true},
    {"Compute", "Compute (SM) Throughput (%)", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", true},
    {"Memory", "Memory Throughput (%)", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", true},
    {"Occupancy", "Achieved Occupancy (%)", "sm__warps_active.avg.pct_of_peak_sustained_active", "%", true},
    {"Registers", "Registers Per Thread", "launch__registers_per_thread", "", true},
    {"Shared", "Shared Memory Per Block (byte)", "launch__shared_mem_per_block", "byte", false},
};

enum { VALUES = sizeof values / sizeof *values, WHY = FIRST_METRIC + VALUES, REASON, BEST, FIELDS };
enum { CELL = KP_NUMBER_MAX + KP_UNIT_MAX };

struct cells {
    char size[2][64], number[VALUES + 1][CELL];
    const char *row[FIELDS];
};

static void write_shape(char out[64], const uint32_t size[3])
{
    snprintf(out, 64, "(%u, %u, %u)", size[0], size[1], size[2]);
}

static void write_number(const struct kp_writer *w, double value, const char *unit, char out[CELL])
{
    if (w->kind->plain)
        kp_write_number_cell(value, true, out);
    else if (!strcmp(unit, "%"))
        snprintf(out, CELL, "%.2f", value);
    else
        kp_format_quantity(value, unit, false, out);
}

/* Writes the row of a way of launching; text lists those without a time after the table. */
static void write_variant_row(struct kp_writer *w, const struct kp_table *table, const struct kp_result *r, size_t i,
                              bool is_best)
{
    const struct kp_result *one = kp_variants_at(r, i);
    const char *shown[FIELDS];
    struct cells c;
    double value;
    write_shape(c.size[0], one->launch.grid);
    write_shape(c.size[1], one->launch.block);
    c.row[VARIANT] = kp_variants_name(r, i);
    c.row[GRID] = c.size[0];
    c.row[BLOCK] = c.size[1];
    c.row[CHANGE] = KP_NO_VALUE;
    if (i && kp_variants_change(r, i, &value)) {
        if (w->kind->plain)
            kp_write_number_cell(value, true, c.number[VALUES]);
        else
            snprintf(c.number[VALUES], CELL, "%+.1f%%", value);
        c.row[CHANGE] = c.number[VALUES];
    } else if (!i) {
        c.row[CHANGE] = "";
    }
    for (size_t m = 0; m < VALUES; m++) {
        bool known = kp_metric_number(kp_result_find(one, values[m].metric), &value);
        if (known)
            write_number(w, value, values[m].unit, c.number[m]);
        c.row[FIRST_METRIC + m] = known ? c.number[m] : KP_NO_VALUE;
    }
    c.row[WHY] = one->launch.note ? one->launch.note : "";
    c.row[REASON] = kp_reason_key(one->launch.reason);
    c.row[BEST] = is_best ? "yes" : "";
    for (size_t k = 0; k < table->n; k++)
        shown[k] = c.row[table->columns[k].field];
    kp_write_row(w, shown);
}

/* Tells in sentences what a reader of rows has in columns. */
static int write_series_notes(struct kp_writer *w, const struct kp_result *r, bool found, size_t best)
{
    char time[CELL], *text = NULL;
    double ns, change;
    for (size_t i = 1; i <= r->n_variants; i++) {
        const char *why = kp_variants_at(r, i)->launch.note;
        if (why)
            kp_write_note(w, KP_LEVEL_BODY, kp_variants_name(r, i), why);
    }
    if (found && kp_variants_time(r, best, &ns)) {
        kp_format_quantity(ns, "ns", false, time);
        text = best && kp_variants_change(r, best, &change)
                   ? kp_asprintf("%s, %s, %+.1f%% against the program's own", kp_variants_name(r, best), time, change)
                   : kp_asprintf("%s, %s", kp_variants_name(r, best), time);
        if (!text)
            return -ENOMEM;
        kp_write_note(w, KP_LEVEL_BODY, "Best", text);
        free(text);
    }
    kp_write_note(w, KP_LEVEL_BODY, "Note", kp_variants_unchecked);
    return 0;
}

int kp_details_variants(struct kp_writer *w, const struct kp_result *r)
{
    struct kp_column columns[FIELDS] = {{"Variant", VARIANT, 0, true},
                                        {"Grid", GRID, 0, true},
                                        {"Block", BLOCK, 0, true},
                                        {"Change", CHANGE, 0, false}};
    size_t best = 0, n = FIRST_METRIC;
    bool found = kp_variants_best(r, &best);
    for (size_t m = 0; m < VALUES; m++)
        if (w->kind->rows || values[m].text)
            columns[n++] = (struct kp_column){values[m].heading, FIRST_METRIC + m, 0, false};
    if (w->kind->rows) {
        columns[n++] = (struct kp_column){"Why", WHY, 0, true};
        columns[n++] = (struct kp_column){"Reason", REASON, 0, true};
        columns[n++] = (struct kp_column){"Best", BEST, 0, true};
    }
    const struct kp_table table = {KP_TABLE_FRAMED, columns, n, false};
    kp_write_heading(w, KP_LEVEL_SECTION, "Profile Series");
    kp_write_table(w, &table);
    for (size_t i = 0; i <= r->n_variants; i++)
        if (w->kind->rows || !i || !kp_variants_at(r, i)->launch.note)
            write_variant_row(w, &table, r, i, found && i == best);
    kp_write_table_end(w);
    int rc = w->kind->rows ? 0 : write_series_notes(w, r, found, best);
    kp_write_gap(w);
    return rc;
}

struct seen {
    struct kp_writer *to;
    uint64_t without; /* launches without variants */
};

static int write_series_of(struct kp_result *r, void *arg)
{
    struct seen *s = arg;
    s->without += !r->n_variants;
    if (!r->n_variants)
        return 0;
    s->to->launch = &r->launch;
    kp_write_launch(s->to, false);
    int rc = kp_details_variants(s->to, r);
    return rc ? rc : s->to->out.rc;
}

int kp_page_series(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    const char *fields[FIELDS] = {"Variant", "Variant Grid", "Variant Block", "Change (%)"};
    const struct kp_layout layout = {.start = KP_START_LAUNCH, .fields = fields, .n = FIELDS};
    int rc = 0;
    for (size_t m = 0; m < VALUES; m++)
        fields[FIRST_METRIC + m] = values[m].field;
    fields[WHY] = "Not Counted";
    fields[REASON] = "Not Counted Reason";
    fields[BEST] = "Best";
    kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        struct seen seen = {.to = w};
        kp_page_enter(&pages[i], w);
        rc = kp_page_each(&pages[i], write_series_of, &seen);
        if (!rc && seen.without)
            kp_page_tell_without(w, seen.without, "launch has", "launches have",
                                 "no variants: `kprof series --vary block=64,128,256 PROGRAM` tries them");
    }
    return rc;
}
