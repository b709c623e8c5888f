/* The page details as CSV: a row for each metric of a section, and one for each message of a rule. Facts: the columns
 * of `ncu --csv`. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page_body.h"
#include "report/plain.h"

static const char *const launch_headings[] = {"ID",      "Process ID", "Process Name", "Host Name", "Kernel Name",
                                              "Context", "Stream",     "Block Size",   "Grid Size", "Device",
                                              "CC"};
static const char *const metric_headings[] = {"Section Name", "Metric Name", "Metric Unit", "Metric Value"};
static const char *const rule_headings[] = {"Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type",
                                            "Estimated Speedup"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

void kp_csv_launch_headings(struct kp_csv *c)
{
    kp_csv_fields(c, launch_headings, COUNT(launch_headings));
}

static void write_size(struct kp_csv *c, const struct kp_launch_info *l, const uint32_t size[3])
{
    if (l->kind == KP_WORKLOAD_KERNEL)
        kp_csv_formatted(c, "(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", size[0], size[1], size[2]);
    else
        kp_csv_field(c, "");
}

void kp_csv_launch(struct kp_csv *c, const struct kp_session *s, const struct kp_launch_info *l)
{
    kp_csv_formatted(c, "%" PRIu64, l->id);
    kp_csv_formatted(c, "%" PRIu64, s->pid);
    kp_csv_field(c, kp_process_name(s));
    kp_csv_field(c, s->host);
    kp_csv_field(c, kp_launch_name(l));
    kp_csv_formatted(c, "%" PRIu64, l->context_id);
    kp_csv_formatted(c, "%" PRIu64, l->stream_id);
    write_size(c, l, l->block);
    write_size(c, l, l->grid);
    kp_csv_formatted(c, "%d", l->device);
    kp_csv_formatted(c, "%d.%d", l->cc_major, l->cc_minor);
}

static void leave_empty(struct kp_csv *c, size_t n)
{
    while (n--)
        kp_csv_field(c, "");
}

struct rows {
    const struct kp_page *page;
    struct kp_csv *to;
    const struct kp_shown *shown;
};

/* Bodies show some metrics at several places; a row is enough. */
static bool is_repeated(const struct kp_lines *l, size_t i)
{
    const struct kp_line *line = &l->at[i], *before = &l->at[i ? i - 1 : 0];
    return i && !strcmp(line->name, before->name) && !strcmp(line->label, before->label) &&
           (line->kind != KP_ROW_ITEM || !strcmp(line->group, before->group));
}

static int write_metrics(const struct rows *rows, size_t section, const struct kp_lines *l)
{
    struct kp_out words = {.display = rows->page->display};
    char number[KP_NUMBER_MAX];
    for (size_t i = 0; i < l->n; i++) {
        char *title = is_repeated(l, i) ? NULL : kp_line_full_title(&words, &l->at[i]);
        if (!title)
            continue;
        const struct kp_metric *m = l->at[i].metric;
        kp_csv_launch(rows->to, rows->page->session, &rows->shown->view.result->launch);
        kp_csv_field(rows->to, kp_shown_title(rows->shown, section));
        kp_csv_field(rows->to, title);
        kp_csv_field(rows->to, m && m->kind != KP_VALUE_NA ? m->unit : "");
        kp_csv_field(rows->to, kp_plain_value(m, number));
        leave_empty(rows->to, COUNT(rule_headings));
        kp_csv_end_row(rows->to);
        free(title);
    }
    return words.rc;
}

static void write_message(const struct rows *rows, const struct kp_message *m)
{
    char number[KP_PLAIN_MAX];
    kp_csv_launch(rows->to, rows->page->session, &rows->shown->view.result->launch);
    kp_csv_field(rows->to, m->section->display);
    leave_empty(rows->to, COUNT(metric_headings) - 1);
    kp_csv_field(rows->to, m->rule->id);
    kp_csv_field(rows->to, kp_severity_name(m->severity));
    kp_csv_field(rows->to, m->text);
    if (isnan(m->speedup)) {
        leave_empty(rows->to, 2);
    } else {
        kp_plain_real(m->speedup, number);
        kp_csv_field(rows->to, m->global ? "global" : "local");
        kp_csv_field(rows->to, number);
    }
    kp_csv_end_row(rows->to);
}

static int write_section(const struct rows *rows, size_t at)
{
    const struct kp_shown *shown = rows->shown;
    struct kp_lines lines = {0};
    int rc = kp_shown_lines(shown, at, rows->page->display->details, &lines);
    if (!rc)
        rc = write_metrics(rows, at, &lines);
    for (size_t i = 0; !rc && at < shown->n && i < shown->messages.n; i++)
        if (!strcmp(shown->messages.list[i].rule->section, shown->sections[at]->id))
            write_message(rows, &shown->messages.list[i]);
    kp_lines_free(&lines);
    return rc;
}

static int write_launch(struct kp_result *r, void *arg)
{
    struct rows *rows = arg;
    struct kp_shown shown;
    int rc = kp_shown_of(rows->page->display, rows->page->session, r, &shown);
    if (rc)
        return rc;
    rows->shown = &shown;
    for (size_t at = 0; !rc && at <= shown.n; at++)
        rc = write_section(rows, at);
    kp_shown_free(&shown);
    return rc ? rc : ferror(rows->to->to) ? -EIO : 0;
}

int kp_details_csv(const struct kp_page *p, struct kp_csv *to)
{
    struct rows rows = {p, to, NULL};
    kp_csv_launch_headings(to);
    kp_csv_fields(to, metric_headings, COUNT(metric_headings));
    kp_csv_fields(to, rule_headings, COUNT(rule_headings));
    kp_csv_end_row(to);
    return kp_page_each(p, write_launch, &rows);
}
