#include "report/pages/details.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/judge/summary.h"
#include "report/pages/page_body.h"
#include "report/write/run_summary.h"
#include "report/write/stack.h"
#include "report/view/series.h"
#include "report/view/shown.h"
#include "report/write/advice.h"
#include "report/write/drawings.h"
#include "report/write/launch.h"
#include "report/write/source_table.h"
#include "base/text.h"
#include "report/judge/verdict.h"

enum { LINES_SHOWN = 5 /* the hottest ones */ };

/* --- sections --- */

/* A section while it is printed: its title comes with the first thing that it has to show. */
struct printed {
    const struct kp_section *section;
    const struct kp_view *view;
    bool asked_for, begun;
    const char *body_title; /* of the last body */
};

static void begin(struct kp_out *o, struct printed *p)
{
    if (!p->begun)
        kp_out_print(o, "    Section: %s\n", p->section->display);
    p->begun = true;
}

static int render_header(struct kp_out *o, struct printed *p)
{
    const struct kp_section *s = p->section;
    struct kp_lines lines = {0};
    enum kp_row_kind last = o->display->details == KP_DETAILS_ALL ? KP_ROW_EXTRA : KP_ROW_HEADER;
    int rc = kp_lines_of_rows(s, 0, kp_rows_before_bodies(s, last), p->view, p->asked_for, &lines);
    if (!rc && lines.n) {
        if (s->passes != KP_PASSES_ONE) /* there, the rows that tell most come first */
            kp_lines_sort(&lines);
        begin(o, p);
        kp_table_print(o, &lines);
        kp_table_print_missing(o, &lines);
        kp_out_print(o, "\n");
    }
    kp_lines_free(&lines);
    return rc;
}

static bool has_any_value(const struct kp_lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (kp_line_has_value(&l->at[i]))
            return true;
    return false;
}

static void draw(struct kp_out *o, enum kp_body kind, const struct kp_lines *l)
{
    switch (kind) {
    case KP_BODY_BARS:
    case KP_BODY_BARS_AS:
        kp_bars_draw(o, l, kind == KP_BODY_BARS);
        break;
    case KP_BODY_GRID:
        kp_grid_draw(o, l);
        break;
    case KP_BODY_ROOFLINE:
        kp_roofline_draw(o, l);
        break;
    case KP_BODY_CURVE:
        kp_curve_draw(o, l);
        break;
    case KP_BODY_CHART:
        kp_chart_draw(o, l);
        break;
    case KP_BODY_SERIES: /* see render_timelines */
    case KP_BODY_TABLE:
    case KP_BODY_NONE:
        kp_table_print(o, l);
        break;
    }
}

/* A body of series: those that the launch has, and why it lacks the others, where that is known. */
static int render_timelines(struct kp_out *o, struct printed *p, size_t at, size_t end)
{
    const struct kp_section *s = p->section;
    struct kp_lines missing = {0};
    struct kp_series_row *rows = NULL;
    size_t n = 0;
    int rc = kp_series_of_rows(s, at + 1, end, p->view->result, &rows, &n);
    if (!rc)
        rc = kp_lines_of_rows(s, at + 1, end, p->view, p->asked_for, &missing);
    if (!rc && (n || missing.n)) {
        begin(o, p);
        kp_out_print(o, "    %s\n", s->rows[at].label);
        if (n)
            kp_series_draw(o, rows, n, kp_series_dropped(p->view->result));
        kp_table_print_missing(o, &missing);
        kp_out_print(o, "\n");
    }
    kp_lines_free(&missing);
    free(rows);
    return rc;
}

/* The body that row `at` opens, whose rows end before `end`. */
static int render_body(struct kp_out *o, struct printed *p, size_t at, size_t end)
{
    const struct kp_row *row = &p->section->rows[at];
    struct kp_lines lines = {0};
    if (row->body == KP_BODY_SERIES)
        return render_timelines(o, p, at, end);
    int rc = kp_lines_of_rows(p->section, at + 1, end, p->view, p->asked_for, &lines);
    if (!rc && lines.n) {
        begin(o, p);
        /* bodies of one title follow each other, told apart by what stands above their values */
        if (*row->label && (!p->body_title || strcmp(p->body_title, row->label)))
            kp_out_print(o, "    %s\n", row->label);
        if (*row->group && strcmp(row->group, row->label))
            kp_out_print(o, "    %s\n", row->group);
        p->body_title = row->label;
        if (has_any_value(&lines))
            draw(o, row->body, &lines);
        kp_table_print_missing(o, &lines);
        kp_out_print(o, "\n");
    }
    kp_lines_free(&lines);
    return rc;
}

static int render_bodies(struct kp_out *o, struct printed *p)
{
    const struct kp_section *s = p->section;
    int rc = 0;
    for (size_t at = kp_rows_before_bodies(s, KP_ROW_EXTRA), end; !rc && at < s->n_rows; at = end) {
        end = kp_section_body_end(s, at + 1);
        if (kp_cc_matches(s->rows[at].cc, p->view->result->launch.cc_major, p->view->result->launch.cc_minor))
            rc = render_body(o, p, at, end);
    }
    return rc;
}

/* Sections that say nothing of a machine without what they are about. */
static const struct absence {
    const char *section, *count, *text; /* the count is 0 there */
} absences[] = {
    {"Nvlink_Topology", "nvlink__count_physical", "No NVLink connects the devices that the process sees."},
    {"Nvlink_Tables", "nvlink__count_physical", "No NVLink connects the devices that the process sees."},
};

static bool has_all_zero(const struct kp_section *s, const struct kp_result *r)
{
    double value;
    size_t n = 0;
    for (size_t i = 0; i < s->n_rows; i++)
        if (kp_metric_number(kp_result_find(r, s->rows[i].metric), &value)) {
            n++;
            if (value != 0)
                return false;
        }
    return n;
}

/* What is said in place of the section; NULL when there is something in it. */
static const char *absence_of(const struct kp_section *s, const struct kp_result *r)
{
    double count;
    for (size_t i = 0; i < sizeof absences / sizeof *absences; i++) {
        if (strcmp(absences[i].section, s->id))
            continue;
        bool known = kp_metric_number(kp_result_find(r, absences[i].count), &count);
        return (known ? count == 0 : has_all_zero(s, r)) ? absences[i].text : NULL;
    }
    return NULL;
}

/* Whether the section was asked for by its name. A session has the names of its set's sections, too. */
static bool is_named(const struct kp_display *d, const struct kp_section *s, const struct kp_session *session)
{
    if (d->choose)
        return kp_list_has(d->sections, s->id);
    return !*(session->set ? session->set : "") && kp_list_has(session->sections, s->id);
}

/* A section of drawings alone, of which header tables are to be printed: whoever named it gets to know why there is
 * nothing. */
static void tell_not_drawn(struct kp_out *o, struct printed *p)
{
    if (o->display->details != KP_DETAILS_HEADER || p->begun || !p->asked_for ||
        kp_rows_before_bodies(p->section, KP_ROW_HEADER) || !kp_section_has_any(p->section, p->view->result) ||
        !is_named(o->display, p->section, p->view->session))
        return;
    begin(o, p);
    kp_out_print(o, "    only charts and tables: --print-details all\n\n");
}

static void render_samples(struct kp_out *o, struct printed *p)
{
    const struct kp_view *v = p->view;
    bool sampled = v->source && v->source->has_samples;
    if (sampled)
        begin(o, p);
    if (p->begun && kp_source_dropped_print(o, v) && !sampled)
        kp_out_text(o, "\n", 1);
    if (sampled)
        kp_source_lines_print(o, v, LINES_SHOWN, false);
}

int kp_render_section(struct kp_out *o, const struct kp_section *s, const struct kp_view *v, bool asked_for)
{
    const struct kp_launch_info *l = &v->result->launch;
    const char *absence = absence_of(s, v->result);
    if (!kp_cc_matches(s->cc, l->cc_major, l->cc_minor))
        return 0;
    if (o->display->choose && !kp_section_has_any(s, v->result)) /* see kp_listed_check */
        return 0;
    if (absence) {
        if (o->display->details != KP_DETAILS_HEADER || is_named(o->display, s, v->session)) {
            kp_out_print(o, "    Section: %s\n", s->display);
            kp_out_print(o, "    %s\n\n", absence);
        }
        return 0;
    }
    struct printed p = {.section = s, .view = v, .asked_for = asked_for};
    int rc = o->display->details != KP_DETAILS_BODY || !asked_for ? render_header(o, &p) : 0;
    if (!rc && !strcmp(s->id, kp_source_section))
        render_samples(o, &p);
    if (!rc && o->display->details != KP_DETAILS_HEADER)
        rc = render_bodies(o, &p);
    if (!rc)
        tell_not_drawn(o, &p);
    if (rc || !v->messages || !kp_messages_count(v->messages, s->id))
        return rc;
    begin(o, &p);
    if (!o->rc)
        o->rc = kp_render_messages(o->sink, v->messages, s->id);
    return 0;
}

/* --- the user's own metrics --- */

static int render_metrics(struct kp_out *o, const char *list, const struct kp_view *v)
{
    struct kp_lines lines = {0};
    struct kp_series_row *rows = NULL;
    size_t n = 0;
    int rc = kp_lines_of_metrics(list, v, &lines);
    if (!rc)
        rc = kp_series_of_list(list, v->result, &rows, &n);
    if (!rc && (lines.n || n))
        kp_out_print(o, "    Section: %s\n", kp_metrics_title);
    if (!rc && lines.n) {
        kp_lines_sort(&lines);
        kp_table_print(o, &lines);
        kp_table_print_missing(o, &lines);
    }
    if (!rc && n)
        kp_series_draw(o, rows, n, kp_series_dropped(v->result));
    if (!rc && (lines.n || n))
        kp_out_print(o, "\n");
    kp_lines_free(&lines);
    free(rows);
    return rc;
}

/* --- a launch --- */

static int render_tables(struct kp_out *o, const struct kp_shown *s)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < s->n; i++)
        rc = kp_render_section(o, s->sections[i], &s->view, kp_shown_is_asked_for(s, i));
    return rc ? rc : render_metrics(o, s->metrics, &s->view);
}

static void print_verdict(struct kp_out *o, const struct kp_shown *s)
{
    struct kp_verdict verdict;
    kp_verdict(s->view.result, s->view.session, s->gains, &verdict);
    if (!o->rc)
        o->rc = kp_render_verdict(o->sink, &verdict);
}

int kp_render_launch(const struct kp_sink *sink, const struct kp_display *d, const struct kp_session *s,
                     const struct kp_result *r, struct kp_summary *summary)
{
    struct kp_out o = {.sink = sink, .display = d};
    struct kp_shown shown;
    int rc = kp_shown_of(d, s, r, &shown);
    if (rc)
        return rc;
    kp_launch_head(&o, &r->launch, shown.quick);
    if (d->rules)
        print_verdict(&o, &shown);
    rc = render_tables(&o, &shown);
    if (!rc && d->rules && summary)
        rc = kp_summary_add(summary, s, r, shown.gains);
    kp_shown_free(&shown);
    return rc ? rc : o.rc;
}

/* --- the page --- */

struct details {
    struct kp_summary *summary;
    struct kp_stack_totals stacks;
    const struct kp_page *page;
};

static int one_launch(struct kp_result *r, void *arg)
{
    struct details *d = arg;
    int rc = kp_stack_totals_add(&d->stacks, r);
    return rc ? rc : kp_render_launch(d->page->out, d->page->display, d->page->session, r, d->summary);
}

int kp_details_text(const struct kp_page *p)
{
    struct details details = {.summary = p->summary ? p->summary : kp_summary_new(), .page = p};
    struct kp_out o = {.sink = p->out, .display = p->display};
    int rc = kp_page_each(p, one_launch, &details);
    if (!rc)
        kp_stack_totals_render(&o, &details.stacks);
    rc = rc ? rc : o.rc;
    kp_stack_totals_free(&details.stacks);
    if (p->summary)
        return rc;
    if (!rc && details.summary)
        rc = kp_run_summary_print(details.summary, p->out);
    kp_summary_free(details.summary);
    return rc;
}
