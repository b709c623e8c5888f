#include "cmd/diff_csv.h"

#include <inttypes.h>
#include <string.h>

#include "report/model/launch_names.h"
#include "report/write/cells.h"

enum { A, B, SIDES };

static const char *const headings[] = {
    "Baseline",          "Compared",          "Kernel Name",  "Grid Size", "Baseline ID", "Compared ID",
    "Baseline Launches", "Compared Launches", "Section Name", "Table",     "Metric Name", "Metric Unit",
    "Baseline Value",    "Compared Value",    "Change %",     "Rule Name", "Rule Type",   "Rule Change"};

enum { OF_METRICS = 6 /* with the table */, OF_RULES = 3 };

void kp_diff_csv_headings(struct kp_csv *c)
{
    kp_csv_fields(c, headings, sizeof headings / sizeof *headings);
    kp_csv_end_row(c);
}

static void start_row(struct kp_csv *c, const struct kp_diff_csv_pair *p, const char *section)
{
    const uint32_t *grid = p->launch->grid;
    kp_csv_fields(c, p->file, SIDES);
    kp_csv_field(c, kp_launch_name(p->launch));
    if (p->by_kernel)
        kp_csv_field(c, "");
    else
        kp_csv_formatted(c, "(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", grid[0], grid[1], grid[2]);
    for (int side = A; side < SIDES; side++)
        if (p->by_kernel || !p->launches[side])
            kp_csv_field(c, "");
        else
            kp_csv_formatted(c, "%" PRIu64, p->id[side]);
    for (int side = A; side < SIDES; side++)
        kp_csv_formatted(c, "%" PRIu64, p->launches[side]);
    kp_csv_field(c, section);
}

void kp_diff_csv_metric(struct kp_csv *c, const struct kp_diff_csv_pair *p, const char *section, const char *table,
                        const char *name, const struct kp_metric *const value[SIDES], const char *change)
{
    char number[KP_NUMBER_MAX];
    const struct kp_metric *known = value[A] && value[A]->kind != KP_VALUE_NA ? value[A] : value[B];
    start_row(c, p, section);
    kp_csv_field(c, table);
    kp_csv_field(c, name);
    kp_csv_field(c, known && known->kind != KP_VALUE_NA ? known->unit : "");
    for (int side = A; side < SIDES; side++)
        kp_csv_field(c, value[side] ? kp_plain_value(value[side], number) : "");
    kp_csv_field(c, change);
    kp_csv_empty(c, OF_RULES);
    kp_csv_end_row(c);
}

void kp_diff_csv_rule(struct kp_csv *c, const struct kp_diff_csv_pair *p, const char *section, const char *rule,
                      const char *type, const char *what)
{
    start_row(c, p, section);
    kp_csv_empty(c, OF_METRICS);
    kp_csv_field(c, rule);
    kp_csv_field(c, type);
    kp_csv_field(c, what);
    kp_csv_end_row(c);
}
