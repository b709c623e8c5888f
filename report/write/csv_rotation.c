#include "report/write/csv_rotation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/plain.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* --- of an entry --- */

static uint64_t alike(const struct kp_launch_info *l)
{
    return l->alike;
}

static uint64_t counted(const struct kp_launch_info *l)
{
    return l->counted;
}

static uint64_t groups(const struct kp_launch_info *l)
{
    return l->groups;
}

static uint64_t groups_counted(const struct kp_launch_info *l)
{
    return l->groups_counted;
}

static const struct {
    const char *heading;
    uint64_t (*of)(const struct kp_launch_info *l);
} entry_columns[] = {
    {"Launches", alike},
    {"Launches Counted", counted},
    {"Groups", groups},
    {"Groups Counted", groups_counted},
};

void kp_write_csv_rotation_headings(struct kp_csv *c)
{
    for (size_t i = 0; i < COUNT(entry_columns); i++)
        kp_csv_field(c, entry_columns[i].heading);
}

void kp_write_csv_rotation(struct kp_csv *c, const struct kp_launch_info *l)
{
    for (size_t i = 0; i < COUNT(entry_columns); i++) {
        if (l && l->groups)
            kp_csv_formatted(c, "%" PRIu64, entry_columns[i].of(l));
        else
            kp_csv_field(c, "");
    }
}

/* --- of a value --- */

static void write_real(struct kp_csv *c, bool known, double value)
{
    char number[KP_PLAIN_MAX] = "";
    if (known)
        kp_plain_real(value, number);
    kp_csv_field(c, number);
}

static void launches(struct kp_csv *c, const struct kp_metric *m)
{
    if (m && m->counted)
        kp_csv_formatted(c, "%" PRIu32, m->counted);
    else
        kp_csv_field(c, "");
}

static void deviation(struct kp_csv *c, const struct kp_metric *m)
{
    write_real(c, m && m->counted > 1, m ? m->deviation : 0);
}

static void interval(struct kp_csv *c, const struct kp_metric *m)
{
    double half = 0;
    bool known = m && kp_metric_interval(m, &half);
    write_real(c, known, half);
}

static void reason(struct kp_csv *c, const struct kp_metric *m)
{
    kp_csv_field(c, m && m->kind == KP_VALUE_NA ? kp_reason_key(m->reason) : "");
}

static void why(struct kp_csv *c, const struct kp_metric *m)
{
    kp_csv_field(c, m && m->kind == KP_VALUE_NA ? m->text : "");
}

static const struct {
    const char *heading;
    void (*write)(struct kp_csv *c, const struct kp_metric *m);
    bool beside, has_unit; /* beside: also if a metric is a column */
} mean_columns[] = {
    {"Value Launches", launches, true, false},      {"Value Deviation", deviation, true, true},
    {"Value Interval", interval, true, true},       {"Value Missing", why, false, false},
    {"Value Missing Reason", reason, false, false},
};

void kp_write_csv_mean_headings(struct kp_csv *c)
{
    for (size_t i = 0; i < COUNT(mean_columns); i++)
        kp_csv_field(c, mean_columns[i].heading);
}

void kp_write_csv_mean(struct kp_csv *c, const struct kp_metric *m)
{
    for (size_t i = 0; i < COUNT(mean_columns); i++)
        mean_columns[i].write(c, m);
}

void kp_write_csv_mean_headings_of(struct kp_csv *c, const char *name)
{
    for (size_t i = 0; i < COUNT(mean_columns); i++) {
        char *text = NULL;
        if (!mean_columns[i].beside)
            continue;
        bool whole = asprintf(&text, "%s %s", name, mean_columns[i].heading) >= 0;
        kp_csv_field(c, whole ? text : mean_columns[i].heading);
        free(whole ? text : NULL);
    }
}

void kp_write_csv_mean_units(struct kp_csv *c, const char *unit)
{
    for (size_t i = 0; i < COUNT(mean_columns); i++)
        if (mean_columns[i].beside)
            kp_csv_field(c, mean_columns[i].has_unit ? unit : "");
}

void kp_write_csv_mean_of(struct kp_csv *c, const struct kp_metric *m)
{
    for (size_t i = 0; i < COUNT(mean_columns); i++)
        if (mean_columns[i].beside)
            mean_columns[i].write(c, m);
}
