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

static const char *const launch_headings[] = {"Kernel Name", "Context", "Stream", "Block Size",
                                              "Grid Size",   "Device",  "CC"};
/* Facts: the columns of `ncu --csv --nvtx`, with the fields of each range, and what stands for one that is not set. */
static const char *const nvtx_headings[] = {"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
                                            "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"};
static const char default_domain[] = "<default domain>", not_set[] = "none";
static const char *const metric_headings[] = {"Section Name", "Metric Name", "Metric Unit", "Metric Value"};
static const char *const rule_headings[] = {"Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type",
                                            "Estimated Speedup"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

void kp_csv_process_headings(struct kp_csv *c)
{
    static const char *const process_headings[] = {"Process ID", "Process Name", "Host Name"};
    kp_csv_fields(c, process_headings, COUNT(process_headings));
}

void kp_csv_process(struct kp_csv *c, const struct kp_session *s)
{
    kp_csv_formatted(c, "%" PRIu64, s->pid);
    kp_csv_field(c, kp_process_name(s));
    kp_csv_field(c, s->host);
}

void kp_csv_rows(struct kp_csv *to, const struct kp_page *p, const struct kp_columns *table)
{
    for (size_t at = 0; at < table->n_cells; at += table->n) {
        if (p->shared)
            kp_csv_process(to, p->session);
        kp_csv_fields(to, (const char *const *)&table->cells[at], table->n);
        kp_csv_end_row(to);
    }
}

void kp_csv_launch_headings(struct kp_csv *c, const struct kp_page *p)
{
    kp_csv_field(c, "ID");
    kp_csv_process_headings(c);
    if (p->nvtx)
        kp_csv_fields(c, nvtx_headings, COUNT(nvtx_headings));
    kp_csv_fields(c, launch_headings, COUNT(launch_headings));
}

/* The smallest type of NVTX that surely holds the number: which one the program gave is not kept. */
static const char *payload_type(const char *payload)
{
    if (!*payload)
        return not_set;
    if (payload[strspn(payload, "-0123456789")])
        return "DOUBLE";
    return *payload == '-' ? "INT64" : "UNSIGNED_INT64";
}

/* Colours are not kept, and the message is the range's name. */
static void write_range(FILE *to, const struct kp_nvtx_range *r)
{
    fprintf(to, "%s:%s:%s:%s:%s:%s:%s:%s", *r->domain ? r->domain : default_domain, r->name, payload_type(r->payload),
            *r->payload ? r->payload : not_set, not_set, not_set, not_set, not_set);
}

/* Each thread's stack behind the number of the thread. */
static void write_stacks(FILE *to, const struct kp_nvtx *n)
{
    const struct kp_nvtx_range *before = NULL;
    for (size_t i = 0; i < n->n_ranges; i++) {
        const struct kp_nvtx_range *r = &n->ranges[i];
        if (r->kind != KP_NVTX_PUSH_POP)
            continue;
        if (!before || before->thread != r->thread)
            fprintf(to, "%" PRIu64 " ", r->thread);
        fputs(" \"", to);
        write_range(to, r);
        fputs("\" ", to);
        before = r;
    }
}

/* The number counts those around the launch, from the oldest on. */
static void write_started(FILE *to, const struct kp_nvtx *n)
{
    unsigned id = 0;
    for (size_t i = 0; i < n->n_ranges; i++) {
        if (n->ranges[i].kind != KP_NVTX_START_END)
            continue;
        fprintf(to, " \"%u:", id++);
        write_range(to, &n->ranges[i]);
        fputs("\" ", to);
    }
}

static int write_nvtx(struct kp_csv *c, const struct kp_nvtx *n)
{
    void (*const columns[COUNT(nvtx_headings)])(FILE * to, const struct kp_nvtx *n) = {write_stacks, write_started};
    for (size_t i = 0; i < COUNT(columns); i++) {
        char *text = NULL;
        size_t size;
        FILE *to = open_memstream(&text, &size);
        if (!to)
            return -ENOMEM;
        columns[i](to, n);
        bool failed = kp_text_end(to, &text);
        kp_csv_field(c, text);
        free(text);
        if (failed)
            return -ENOMEM;
    }
    return 0;
}

static void write_size(struct kp_csv *c, const struct kp_launch_info *l, const uint32_t size[3])
{
    if (l->kind == KP_WORKLOAD_KERNEL)
        kp_csv_formatted(c, "(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", size[0], size[1], size[2]);
    else
        kp_csv_field(c, "");
}

int kp_csv_launch(struct kp_csv *c, const struct kp_page *p, const struct kp_launch_info *l)
{
    kp_csv_formatted(c, "%" PRIu64, l->id);
    kp_csv_process(c, p->session);
    int rc = p->nvtx ? write_nvtx(c, &l->nvtx) : 0;
    kp_csv_field(c, kp_launch_name(l));
    kp_csv_formatted(c, "%" PRIu64, l->context_id);
    kp_csv_formatted(c, "%" PRIu64, l->stream_id);
    write_size(c, l, l->block);
    write_size(c, l, l->grid);
    kp_csv_formatted(c, "%d", l->device);
    kp_csv_formatted(c, "%d.%d", l->cc_major, l->cc_minor);
    return rc;
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
        int rc = kp_csv_launch(rows->to, rows->page, &rows->shown->view.result->launch);
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
    int rc = kp_csv_launch(rows->to, rows->page, &rows->shown->view.result->launch);
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
    kp_csv_launch_headings(to, pages);
    kp_csv_fields(to, metric_headings, COUNT(metric_headings));
    kp_csv_fields(to, rule_headings, COUNT(rule_headings));
    kp_csv_end_row(to);
    for (size_t i = 0; !rc && i < n; i++)
        rc = kp_page_each(&pages[i], write_launch, &(struct rows){&pages[i], to, NULL});
    return rc;
}
