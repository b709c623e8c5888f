#include "report/pages/details.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/judge/summary.h"
#include "report/judge/verdict.h"
#include "report/pages/page_body.h"
#include "report/view/brief.h"
#include "report/view/series.h"
#include "report/view/shown.h"
#include "report/write/text_writer.h"

enum { LINES_SHOWN = 5 /* of the hottest */ };

static const char memory_tables[] = "MemoryWorkloadAnalysis_Tables";

/* --- sections --- */

/* A section being written: its title comes with its first content. */
struct written {
    struct kp_writer *to;
    const struct kp_section *section;
    const struct kp_view *view;
    bool asked_for, begun;
    const char *body_title; /* of the last body */
};

static void begin(struct written *s)
{
    if (!s->begun)
        kp_write_heading(s->to, KP_LEVEL_SECTION, s->section->display);
    s->begun = true;
}

static int write_header(struct written *s)
{
    struct kp_lines lines = {0};
    enum kp_row_kind last = s->to->out.display->details == KP_DETAILS_ALL ? KP_ROW_EXTRA : KP_ROW_HEADER;
    size_t end = kp_rows_before_bodies(s->section, last);
    int rc = kp_lines_of_rows(s->section, 0, end, s->view, s->asked_for, &lines);
    if (!rc && lines.n) {
        if (s->section->passes != KP_PASSES_ONE) /* its rows keep their order: the most informative first */
            kp_lines_sort(&lines);
        begin(s);
        kp_write_metrics(s->to, &lines);
        kp_write_missing(s->to, &lines);
        kp_write_gap(s->to);
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

/* Writes a body of series: those that the launch has, and why others are missing, if known. */
static int write_timelines(struct written *s, size_t at, size_t end)
{
    struct kp_lines missing = {0};
    struct kp_series_row *rows = NULL;
    size_t n = 0;
    int rc = kp_view_series_of_rows(s->section, at + 1, end, s->view->result, &rows, &n);
    if (!rc)
        rc = kp_lines_of_rows(s->section, at + 1, end, s->view, s->asked_for, &missing);
    if (!rc && (n || missing.n)) {
        begin(s);
        kp_write_heading(s->to, KP_LEVEL_BODY, s->section->rows[at].label);
        if (n)
            kp_write_series(s->to, rows, n, kp_view_series_dropped(s->view->result));
        if (n && *s->section->rows[at].group)
            kp_write_note(s->to, KP_LEVEL_BODY, "Note", s->section->rows[at].group);
        missing.beside = n;
        kp_write_missing(s->to, &missing);
        kp_write_gap(s->to);
    }
    kp_lines_free(&missing);
    free(rows);
    return rc;
}

/* Writes titles once: bodies of one title follow each other, and differ in the heading above their values. */
static void write_body_titles(struct written *s, const struct kp_row *row)
{
    if (*row->label && (!s->body_title || strcmp(s->body_title, row->label)))
        kp_write_heading(s->to, KP_LEVEL_BODY, row->label);
    if (*row->group && strcmp(row->group, row->label))
        kp_write_heading(s->to, KP_LEVEL_BODY, row->group);
    s->body_title = row->label;
}

/* Returns true if ncu's tables of memory lack the metric: kprof derives it, or shows it as a total. */
static bool is_own(const char *metric)
{
    static const char *const begins[] = {
        "derived__", "dram__bytes.", "dram__sectors.",
        "l1tex__t_output_wavefronts_pipe_lsu_mem_dshared_op_atom.sum.pct_of_peak_sustained_elapsed"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(metric, begins[i], strlen(begins[i])))
            return true;
    return false;
}

/* Writes a grid as ncu does: each metric once, under its own name. */
static int write_flat(struct written *s, const char *title, struct kp_lines *lines)
{
    char *heading = kp_asprintf("Table Name : %s", title);
    struct kp_lines flat = {0};
    int rc = heading ? 0 : -ENOMEM;
    kp_lines_sort(lines);
    for (size_t i = 0; !rc && i < lines->n; i++) {
        struct kp_line line = lines->at[i];
        if ((i && !strcmp(line.name, lines->at[i - 1].name)) || is_own(line.name))
            continue;
        line.label = line.name;
        line.made_label = NULL;
        rc = kp_lines_add(&flat, &line);
    }
    if (!rc && flat.n) {
        begin(s);
        if (!s->body_title)
            kp_write_heading(s->to, KP_LEVEL_BODY, "Memory Tables");
        s->body_title = title;
        kp_write_heading(s->to, KP_LEVEL_BODY, heading);
        kp_write_metrics(s->to, &flat);
        kp_write_gap(s->to);
    }
    kp_lines_free(&flat);
    free(heading);
    return rc;
}

/* Writes the body that row `at` opens, whose rows end before `end`. */
static int write_body(struct written *s, size_t at, size_t end)
{
    const struct kp_row *row = &s->section->rows[at];
    struct kp_lines lines = {0};
    if (row->body == KP_BODY_SERIES)
        return write_timelines(s, at, end);
    int rc = kp_lines_of_rows(s->section, at + 1, end, s->view, s->asked_for, &lines);
    if (!rc && s->to->out.display->face == KP_FACE_NCU && row->body == KP_BODY_GRID &&
        !strcmp(s->section->id, memory_tables)) {
        rc = write_flat(s, row->label, &lines);
    } else if (!rc && lines.n) {
        begin(s);
        write_body_titles(s, row);
        if (has_any_value(&lines))
            kp_write_drawing(s->to, row->body, &lines);
        kp_write_missing(s->to, &lines);
        kp_write_gap(s->to);
    }
    kp_lines_free(&lines);
    return rc;
}

static int write_bodies(struct written *s)
{
    const struct kp_section *section = s->section;
    const struct kp_launch_info *l = &s->view->result->launch;
    int rc = 0;
    for (size_t at = kp_rows_before_bodies(section, KP_ROW_EXTRA), end; !rc && at < section->n_rows; at = end) {
        end = kp_section_body_end(section, at + 1);
        if (kp_cc_matches(section->rows[at].cc, l->cc_major, l->cc_minor))
            rc = write_body(s, at, end);
    }
    return rc;
}

/* Sections that have no content on a machine without their subject. */
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

/* Returns the text in place of the section; NULL when the section has content. */
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

/* Returns true if the section was asked for by its name. The session's names include those of its set's sections. */
static bool is_named(const struct kp_display *d, const struct kp_section *s, const struct kp_session *session)
{
    if (d->choose)
        return kp_list_has(d->sections, s->id);
    return !*(session->set ? session->set : "") && kp_list_has(session->sections, s->id);
}

static void write_absence(struct written *s, const char *absence)
{
    if (s->to->out.display->details == KP_DETAILS_HEADER && !is_named(s->to->out.display, s->section, s->view->session))
        return;
    begin(s);
    kp_write_note(s->to, KP_LEVEL_BODY, NULL, absence);
    kp_write_gap(s->to);
}

/* Explains why header tables are empty if the user named a section that only has drawings. */
static void tell_not_drawn(struct written *s)
{
    const struct kp_display *d = s->to->out.display;
    if (d->details != KP_DETAILS_HEADER || s->begun || !s->asked_for ||
        kp_rows_before_bodies(s->section, KP_ROW_HEADER) || !kp_shown_section_has_any(s->section, s->view->result) ||
        !is_named(d, s->section, s->view->session))
        return;
    begin(s);
    kp_write_note(s->to, KP_LEVEL_BODY, NULL, "only charts and tables: --print-details all");
    kp_write_gap(s->to);
}

static int write_samples(struct written *s)
{
    const struct kp_view *v = s->view;
    bool sampled = v->source && v->source->has_samples, told = false;
    int rc = 0;
    if (sampled)
        begin(s);
    if (s->begun)
        rc = kp_page_tell_dropped(s->to, v, &told);
    if (told && !sampled)
        kp_write_gap(s->to);
    if (!rc && sampled)
        kp_write_source_lines(s->to, v, LINES_SHOWN, false);
    return rc;
}

static int write_present(struct written *s)
{
    enum kp_details details = s->to->out.display->details;
    int rc = details != KP_DETAILS_BODY || !s->asked_for ? write_header(s) : 0;
    if (!rc && !strcmp(s->section->id, kp_source_section))
        rc = write_samples(s);
    if (!rc && details != KP_DETAILS_HEADER)
        rc = write_bodies(s);
    if (rc)
        return rc;
    tell_not_drawn(s);
    if (s->view->messages && kp_messages_count(s->view->messages, s->section->id)) {
        begin(s);
        kp_write_messages(s->to, s->view->messages, s->section->id);
    }
    return 0;
}

int kp_details_section(struct kp_writer *w, const struct kp_section *s, const struct kp_view *v, bool asked_for)
{
    const struct kp_launch_info *l = &v->result->launch;
    const char *absence = absence_of(s, v->result);
    struct written written = {.to = w, .section = s, .view = v, .asked_for = asked_for};
    if (!kp_cc_matches(s->cc, l->cc_major, l->cc_minor))
        return 0;
    if (w->out.display->choose &&
        !kp_shown_section_is_collected(s, v->session, v->result)) /* kp_listed_check reports these */
        return 0;
    if (!absence)
        return write_present(&written);
    write_absence(&written, absence);
    return 0;
}

/* --- the user's own metrics --- */

static int write_metrics(struct kp_writer *w, const char *list, const struct kp_view *v)
{
    struct kp_lines lines = {0};
    struct kp_series_row *rows = NULL;
    size_t n = 0;
    int rc = kp_lines_of_metrics(list, v, &lines);
    if (!rc)
        rc = kp_view_series_of_list(list, v->result, &rows, &n);
    if (!rc && (lines.n || n))
        kp_write_heading(w, KP_LEVEL_SECTION, kp_metrics_title);
    if (!rc && lines.n) {
        kp_lines_sort(&lines);
        kp_write_metrics(w, &lines);
        kp_write_missing(w, &lines);
    }
    if (!rc && n)
        kp_write_series(w, rows, n, kp_view_series_dropped(v->result));
    if (!rc && (lines.n || n))
        kp_write_gap(w);
    kp_lines_free(&lines);
    free(rows);
    return rc;
}

/* --- a launch --- */

/* Fields of the page as rows. */
enum { SECTION, METRIC, RULE = METRIC + 3, FIELDS = RULE + 5 };
static const char *const fields[FIELDS] = {
    "Section Name",     "Metric Name", "Metric Unit",      "Metric Value",
    "Rule Name",        "Rule Type",   "Rule Description", "Estimated Speedup Type",
    "Estimated Speedup"};

/* Writes rows: all metrics of a section are alike there, however they are drawn. */
static int write_section_rows(struct kp_writer *w, const struct kp_shown *s)
{
    int rc = 0;
    for (size_t at = 0; !rc && at <= s->n; at++) {
        struct kp_lines lines = {0};
        kp_write_field(w, SECTION, kp_shown_title(s, at));
        rc = kp_shown_lines(s, at, w->out.display->details, &lines);
        if (!rc)
            kp_write_metrics(w, &lines);
        if (!rc && at < s->n)
            kp_write_messages(w, &s->messages, s->sections[at]->id);
        kp_lines_free(&lines);
    }
    return rc;
}

static int write_sections(struct kp_writer *w, const struct kp_shown *s)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < s->n; i++)
        rc = kp_details_section(w, s->sections[i], &s->view, kp_shown_is_asked_for(s, i));
    rc = rc ? rc : write_metrics(w, s->metrics, &s->view);
    return rc || !s->view.result->n_variants ? rc : kp_details_variants(w, s->view.result);
}

static void write_verdict(struct kp_writer *w, const struct kp_shown *s)
{
    struct kp_verdict verdict;
    kp_verdict(s->view.result, s->view.session, s->gains, &verdict);
    kp_write_verdict(w, &verdict);
}

int kp_details_launch(struct kp_writer *w, const struct kp_result *r, struct kp_summary *summary)
{
    const struct kp_display *d = w->out.display;
    struct kp_shown shown;
    int rc = kp_shown_of(d, w->session, r, &shown);
    if (rc)
        return rc;
    w->launch = &r->launch;
    kp_write_listed(w, &shown, true);
    kp_write_launch(w, shown.quick);
    if (d->rules && d->face != KP_FACE_NCU)
        write_verdict(w, &shown);
    rc = w->kind->rows ? write_section_rows(w, &shown) : write_sections(w, &shown);
    if (!rc && d->rules && summary)
        rc = kp_summary_add(summary, w->session, r, shown.gains);
    kp_shown_free(&shown);
    return rc ? rc : w->out.rc;
}

/* Judges a launch for the summary without writing it; a writer (NULL = none) that lists launches gets it, too. */
static int judge(struct kp_writer *w, const struct kp_display *d, const struct kp_session *s, const struct kp_result *r,
                 struct kp_summary *summary, struct kp_summary *also)
{
    struct kp_shown shown;
    bool listed = w && w->kind->listed, judged = d->rules && summary;
    int rc = listed || judged ? kp_shown_of(d, s, r, &shown) : 0;
    if (rc || (!listed && !judged))
        return rc;
    if (listed) {
        w->launch = &r->launch;
        kp_write_listed(w, &shown, false);
        rc = w->out.rc;
    }
    if (!rc && judged)
        rc = kp_summary_add(summary, s, r, shown.gains);
    if (!rc && judged && also)
        rc = kp_summary_add(also, s, r, shown.gains);
    kp_shown_free(&shown);
    return rc;
}

int kp_details_judge(const struct kp_display *d, const struct kp_session *s, const struct kp_result *r,
                     struct kp_summary *summary, struct kp_summary *also)
{
    return judge(NULL, d, s, r, summary, also);
}

/* --- many launches in brief --- */

static int add_to_brief(struct kp_result *r, void *arg)
{
    return kp_brief_add(arg, r);
}

/* How many launches a screen has room for. */
struct measured {
    struct kp_text_writer text;
    struct kp_sink sink;
    size_t lines, most_lines, launches; /* launches: those that end within most_lines */
};

static int count_brief_lines(void *lines, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *(size_t *)lines += text[i] == '\n';
    return 0;
}

enum { ENOUGH = 1 /* ends the loop over launches */, SUMMARY_LINES = 30 /* at most, with the account */ };

static int measure_launch(struct kp_result *r, void *arg)
{
    struct measured *m = arg;
    int rc = kp_details_launch(&m->text.base, r, NULL);
    m->launches += m->lines <= m->most_lines;
    return rc ? rc : m->lines > m->most_lines ? ENOUGH : 0;
}

/* Finds how many launches, from the first on, the display has lines for. *all: it has for all. */
static int measure(const struct kp_page *p, size_t *fitting, bool *all)
{
    struct measured m = {.lines = SUMMARY_LINES, .most_lines = p->display->brief_lines};
    m.sink = (struct kp_sink){count_brief_lines, &m.lines};
    kp_write_text_writer_init(&m.text, &m.sink, p->display);
    kp_page_enter(p, &m.text.base);
    int rc = kp_page_each(p, measure_launch, &m), ended = kp_write_end(&m.text.base);
    *all = rc != ENOUGH;
    *fitting = m.launches ? m.launches : 1;
    return rc && rc != ENOUGH ? rc : ended;
}

/* Chooses the launches that stand for all, if there are too many of them. *out is NULL else; free it whatever is
 * returned. */
static int find_brief(const struct kp_page *p, const struct kp_writer *w, struct kp_brief **out)
{
    const struct kp_display *d = p->display;
    size_t most = d->brief_most;
    bool fits = true;
    *out = NULL;
    if (!d->brief_above || w->kind->rows)
        return 0;
    if (!(*out = kp_brief_new()))
        return -ENOMEM;
    int rc = kp_page_each_with(p, (const char *const[]){KP_BRIEF_METRIC, NULL}, add_to_brief, *out);
    size_t n = kp_brief_count(*out);
    if (!rc && d->brief_lines && n > 1)
        rc = measure(p, &most, &fits);
    bool many = !rc && (n > d->brief_above || !fits);
    if (many && kp_brief_choose(*out, fits ? d->brief_most : most))
        return 0;
    kp_brief_free(*out);
    *out = NULL;
    return rc ? rc : many ? -ENOMEM : 0;
}

/* Returns the line about launches that were left out; malloc'ed. `file`: as in kp_display. */
static char *brief_text(const char *file, size_t shown, size_t all)
{
    char few[KP_NUMBER_MAX], many[KP_NUMBER_MAX], *text;
    kp_format_count(shown, few);
    kp_format_count(all, many);
    int len =
        asprintf(&text, "%s of %s launches in full, medians of the longest kernels; all: %s%s", few, many,
                 file ? "kprof report --page details " : "--page details, and --export keeps them", file ? file : "");
    return len < 0 ? NULL : text;
}

/* Says in one line what was left out, and how to see it. A path that has no room on the line is called FILE. */
static int tell_brief(const struct kp_page *p, struct kp_writer *w, size_t shown, size_t all)
{
    char *text = brief_text(p->display->file, shown, all);
    if (text && p->display->file && strlen(text) + strlen("==KPROF== ") > kp_out_wide(&w->out)) {
        free(text);
        text = brief_text("FILE", shown, all);
    }
    if (!text)
        return -ENOMEM;
    kp_write_note(w, KP_LEVEL_RUN, NULL, text);
    free(text);
    return 0;
}

/* --- the page --- */

struct details {
    struct kp_writer *to;
    struct kp_summary *summary; /* NULL in rows, too */
    struct kp_stack_totals stacks;
    const struct kp_brief *brief; /* NULL: all launches are written */
    bool summarised;              /* the summary has all launches already */
    size_t written;
};

static int judge_launch(struct kp_result *r, void *arg)
{
    struct details *d = arg;
    return judge(NULL, d->to->out.display, d->to->session, r, d->summary, NULL);
}

static int write_launch(struct kp_result *r, void *arg)
{
    struct details *d = arg;
    int rc = d->to->kind->rows ? 0 : kp_write_stack_totals_add(&d->stacks, r);
    bool left_out = d->brief && !kp_brief_has(d->brief, r->launch.id);
    if (rc)
        return rc;
    if (left_out)
        return judge(d->to, d->to->out.display, d->to->session, r, d->summarised ? NULL : d->summary, NULL);
    d->written++;
    return kp_details_launch(d->to, r, d->summarised ? NULL : d->summary);
}

/* Writes the summary of a brief text: the answer comes first. */
static int write_answer(const struct kp_page *p, struct details *d, const struct kp_summary *own)
{
    int rc = kp_page_each(p, judge_launch, d);
    d->summarised = true;
    if (!rc && own) {
        kp_write_summary(d->to, own);
        kp_write_gap(d->to);
    }
    return rc;
}

static int write_details(const struct kp_page *p, struct kp_writer *w)
{
    bool sums_up = !p->summary && !w->kind->rows && p->display->face != KP_FACE_NCU;
    struct kp_summary *own = sums_up ? kp_summary_new() : NULL;
    struct details details = {.to = w, .summary = own ? own : p->summary};
    struct kp_brief *brief;
    kp_page_enter(p, w);
    int rc = find_brief(p, w, &brief);
    details.brief = brief;
    if (!rc && brief && p->display->brief_lines)
        rc = write_answer(p, &details, own);
    if (!rc)
        rc = kp_page_each(p, write_launch, &details);
    if (!rc)
        kp_write_stacks(w, &details.stacks);
    if (!rc && own && !details.summarised)
        kp_write_summary(w, own);
    if (!rc && brief)
        rc = tell_brief(p, w, details.written, kp_brief_count(brief));
    kp_brief_free(brief);
    kp_write_stack_totals_free(&details.stacks);
    kp_summary_free(own);
    return rc;
}

/* Returns true if rows have columns of rules: as ncu has it, not if metrics alone were asked for. */
static bool has_rules(const struct kp_page *p)
{
    const struct kp_display *d = p->display;
    const char *set = d->choose ? d->set : p->session->set, *sections = d->choose ? d->sections : p->session->sections;
    return d->face != KP_FACE_NCU || (d->rules && ((set && *set) || (sections && *sections)));
}

int kp_page_details(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    const struct kp_layout layout = {KP_START_LAUNCH,         fields,           has_rules(pages) ? FIELDS : RULE,
                                     .rows_of_metrics = true, .metric = METRIC, .rule = RULE};
    int rc = 0;
    kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++)
        rc = write_details(&pages[i], w);
    return rc;
}
