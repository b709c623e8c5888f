/* The page details as CSV: a row for each metric of a section, and one for each message of a rule. Facts: the columns
 * of `ncu --csv`. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/pages/page_body.h"
#include "base/plain.h"
#include "base/text.h"
#include "report/model/launch_names.h"
#include "report/view/shown.h"

static const char *const metric_headings[] = {"Section Name", "Metric Name", "Metric Unit", "Metric Value"};
static const char *const rule_headings[] = {"Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type",
                                            "Estimated Speedup"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

void kp_csv_rows(struct kp_csv *to, const struct kp_page *p, const struct kp_columns *table)
{
    for (size_t at = 0; at < table->n_cells; at += table->n) {
        if (p->shared)
            kp_csv_process(to, p->session);
        kp_csv_fields(to, (const char *const *)&table->cells[at], table->n);
        kp_csv_end_row(to);
    }
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
    char number[KP_NUMBER_MAX];
    for (size_t i = 0; i < l->n; i++) {
        if (is_repeated(l, i))
            continue;
        char *title = kp_line_full_title(rows->page->display, &l->at[i]);
        if (!title)
            return -ENOMEM;
        const struct kp_metric *m = l->at[i].metric;
        int rc = kp_csv_launch(rows->to, rows->page->session, &rows->shown->view.result->launch, rows->page->nvtx);
        kp_csv_field(rows->to, kp_shown_title(rows->shown, section));
        kp_csv_field(rows->to, title);
        kp_csv_field(rows->to, m && m->kind != KP_VALUE_NA ? m->unit : "");
        kp_csv_field(rows->to, kp_plain_value(m, number));
        leave_empty(rows->to, COUNT(rule_headings));
        kp_csv_end_row(rows->to);
        free(title);
        if (rc)
            return rc;
    }
    return 0;
}

static int write_message(const struct rows *rows, const struct kp_message *m)
{
    char number[KP_PLAIN_MAX];
    int rc = kp_csv_launch(rows->to, rows->page->session, &rows->shown->view.result->launch, rows->page->nvtx);
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
    return rc;
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
            rc = write_message(rows, &shown->messages.list[i]);
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

int kp_details_csv(const struct kp_page *pages, size_t n, struct kp_csv *to)
{
    int rc = 0;
    kp_csv_launch_headings(to, pages->nvtx);
    kp_csv_fields(to, metric_headings, COUNT(metric_headings));
    kp_csv_fields(to, rule_headings, COUNT(rule_headings));
    kp_csv_end_row(to);
    for (size_t i = 0; !rc && i < n; i++)
        rc = kp_page_each(&pages[i], write_launch, &(struct rows){&pages[i], to, NULL});
    return rc;
}
