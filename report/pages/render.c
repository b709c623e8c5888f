#include "report/pages/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/options/options.h"
#include "report/pages/page.h"
#include "report/pages/render_body.h"
#include "report/write/source_table.h"
#include "report/pages/summary.h"
#include "base/text.h"
#include "report/judge/verdict.h"

enum {
    SEEN_SHOWN = 10, /* kernels, devices, or ranges, that no filter took */
    LINES_SHOWN = 5, /* the hottest ones */
};

const char kp_metrics_title[] = "Command line profiler metrics";

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

struct kp_display kp_display_of(const struct kp_options *o)
{
    struct kp_display d = {0};
    char *err = NULL;
    d.details = !strcmp(o->print_details, "all")    ? KP_DETAILS_ALL
                : !strcmp(o->print_details, "body") ? KP_DETAILS_BODY
                                                    : KP_DETAILS_HEADER;
    d.naming = !strcmp(o->print_metric_name, "label-name") ? KP_NAMING_BOTH
               : !strcmp(o->print_metric_name, "name")     ? KP_NAMING_NAME
                                                           : KP_NAMING_LABEL;
    d.base_units = !strcmp(o->print_units, "base");
    d.instances = !strcmp(o->print_metric_instances, "details")  ? KP_INSTANCES_DETAILS
                  : !strcmp(o->print_metric_instances, "values") ? KP_INSTANCES_VALUES
                                                                 : KP_INSTANCES_NONE;
    if (!o->apply_rules || kp_rules_select(o->rule, &d.rules, &err))
        d.rules = 0;
    d.csv_defuse = o->csv_defuse;
    d.format = o->csv ? KP_FORMAT_CSV : o->json ? KP_FORMAT_JSON : KP_FORMAT_TEXT;
    d.grouping = !strcmp(o->print_summary, "per-gpu")      ? KP_GROUPING_GPU
                 : !strcmp(o->print_summary, "per-kernel") ? KP_GROUPING_KERNEL
                 : !strcmp(o->print_summary, "per-nvtx")   ? KP_GROUPING_NVTX
                                                           : KP_GROUPING_NONE;
    d.n_pages = kp_page_ids(o->page, d.pages);
    d.trace_columns = o->trace_columns;
    d.range_names = !strcmp(o->print_nvtx_rename, "kernel");
    d.source_lines = kp_list_has(o->print_source, "cuda");
    d.source_sass = kp_list_has(o->print_source, "sass");
    d.source_folders = o->source_folders;
    free(err);
    return d;
}

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

size_t kp_rows_before_bodies(const struct kp_section *s, enum kp_row_kind last)
{
    size_t n = 0;
    while (n < s->n_rows && s->rows[n].kind <= last)
        n++;
    return n;
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
    return !*or_empty(session->set) && kp_list_has(session->sections, s->id);
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

int kp_lines_of_metrics(const char *list, const struct kp_view *v, struct kp_lines *out)
{
    out->note = v->result->launch.note;
    return kp_lines_of_list(list, v, out);
}

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

/* --- the section of one pass in place of others --- */

static int select_quietly(const char *set, const char *sections, struct kp_wanted *w)
{
    char *err = NULL;
    int rc = kp_sections_select(set, sections, &w->sections, &w->n, &err);
    free(err);
    return rc;
}

static bool is_known(const char *set, const char *section)
{
    struct kp_wanted w = {0};
    int rc = select_quietly(set, section, &w);
    free(w.sections);
    return !rc;
}

/* Without what came from a folder of section files that is not at hand any more. */
static int select_known(const char *set, const char *sections, struct kp_wanted *w)
{
    char *known = calloc(1, strlen(sections) + 1), *end = known, *word;
    const char *item;
    size_t len;
    int rc = known ? 0 : -ENOMEM;
    while (!rc && kp_list_next(&sections, &item, &len)) {
        rc = (word = strndup(item, len)) ? 0 : -ENOMEM;
        if (!rc && is_known("", word))
            end = stpcpy(end > known ? stpcpy(end, ",") : end, word);
        free(word);
    }
    if (!rc)
        rc = select_quietly(is_known(set, "") ? set : "", known, w);
    free(known);
    return rc;
}

int kp_find_wanted(const char *set, const char *sections, const char *metrics, struct kp_wanted *w)
{
    w->metrics = metrics;
    int rc = select_quietly(set, sections, w);
    return rc == -EINVAL ? select_known(set, sections, w) : rc;
}

static bool list_has(const char *list, size_t size, const char *metric)
{
    const char *end = list + size, *item;
    size_t len;
    while (list < end && kp_list_next(&list, &item, &len) && item < end)
        if (strlen(metric) == len && !strncmp(item, metric, len))
            return true;
    return false;
}

static bool row_wants(const struct kp_row *row, const char *metric, const struct kp_view *v)
{
    size_t len;
    if (strncmp(row->metric, KP_BREAKDOWN, strlen(KP_BREAKDOWN)))
        return !strcmp(row->metric, metric);
    const char *list = kp_breakdown_of(row->metric + strlen(KP_BREAKDOWN), v, &len);
    return list && list_has(list, len, metric);
}

static int is_input(const struct kp_rule_input *input, void *metric)
{
    return !strcmp(input->metric, metric);
}

static bool is_wanted(const struct kp_wanted *w, const char *metric, const struct kp_view *v)
{
    if (list_has(w->metrics, strlen(w->metrics), metric))
        return true;
    for (size_t i = 0; i < w->n; i++)
        for (size_t j = 0; j < w->sections[i]->n_rows; j++)
            if (row_wants(&w->sections[i]->rows[j], metric, v))
                return true;
    const struct kp_launch_info *l = &v->result->launch;
    for (size_t i = 0; i < w->n; i++) /* what rules look at is collected for them */
        if (kp_rule_inputs(w->sections[i]->id, l->cc_major, l->cc_minor, is_input, (void *)(uintptr_t)metric))
            return true;
    return false;
}

/* Told by a metric that nobody asked for. */
bool kp_has_quick_instead(const struct kp_view *v, const struct kp_wanted *asked)
{
    const struct kp_section *quick = kp_section_quick();
    if (v->result->launch.passes != 1)
        return false;
    for (size_t i = 0; i < quick->n_rows; i++) {
        const struct kp_row *row = &quick->rows[i];
        const struct kp_metric *m = row->source == KP_SRC_COUNTER ? kp_result_find(v->result, row->metric) : NULL;
        if (m && !is_wanted(asked, row->metric, v))
            return true;
    }
    return false;
}

/* --- a launch --- */

static void print_note(struct kp_out *o, const char *note, bool quick)
{
    static const char counted[] = "; counted in one pass, with the caches as they were";
    char *text;
    if (!kp_out_has(o, asprintf(&text, "%s%s", note, quick ? counted : "") < 0 ? NULL : text))
        return;
    kp_out_wrapped(o, "    Note: ", text);
    free(text);
}

const char *kp_launch_name(const struct kp_launch_info *l)
{
    return l->demangled && *l->demangled ? l->demangled : l->mangled ? l->mangled : "?";
}

void kp_launch_print_name(struct kp_out *o, const struct kp_launch_info *l)
{
    const char *name = kp_launch_name(l);
    kp_out_text(o, "  ", 2);
    kp_out_one_line(o, name, strlen(name));
}

void kp_launch_print(struct kp_out *o, const struct kp_launch_info *l)
{
    kp_launch_print_name(o, l);
    if (l->kind == KP_WORKLOAD_KERNEL)
        kp_out_print(o, " (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")x(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", l->grid[0],
                     l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
}

static void print_launch_line(struct kp_out *o, const struct kp_launch_info *l)
{
    kp_launch_print(o, l);
    kp_out_print(o, ", Context %" PRIu64 ", Stream %" PRIu64 ", Device %d, CC %d.%d\n", l->context_id, l->stream_id,
                 l->device, l->cc_major, l->cc_minor);
}

int kp_render_process(const struct kp_sink *sink, const struct kp_session *s)
{
    struct kp_out o = {.sink = sink};
    const char *exe = or_empty(s->exe), *slash = strrchr(exe, '/');
    kp_out_print(&o, "[%" PRIu64 "] %s@%s\n", s->pid, slash ? slash + 1 : exe, or_empty(s->host));
    return o.rc;
}

/* --- what is shown of it --- */

static int put_first(struct kp_shown *s, const struct kp_section *first)
{
    const struct kp_section **grown = realloc(s->sections, (s->n + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    memmove(grown + 1, grown, s->n * sizeof *grown);
    grown[0] = first;
    s->sections = grown;
    s->n++;
    return 0;
}

/* Sections of other devices, and those that were chosen but not collected: see kp_listed_check. */
static void leave_out_absent(const struct kp_display *d, struct kp_shown *s)
{
    const struct kp_result *r = s->view.result;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct kp_section *one = s->sections[i];
        if (kp_cc_matches(one->cc, r->launch.cc_major, r->launch.cc_minor) &&
            (!d->choose || kp_section_has_any(one, r)))
            s->sections[n++] = one;
    }
    s->n = n;
}

static bool has_section(const struct kp_wanted *w, const struct kp_section *s)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->sections[i] == s)
            return true;
    return false;
}

static int apply_rules(const struct kp_display *d, const struct kp_section *const *sections, size_t n,
                       struct kp_shown *out, struct kp_messages *to)
{
    const struct kp_source_map *source = out->source.n_functions ? &out->source : NULL;
    return kp_rules_apply_at(out->view.result, out->view.session, source, sections, n, d->rules, to);
}

/* The rules of the sections that the session was made for and of those that were chosen. */
static int apply_beyond(const struct kp_display *d, const struct kp_wanted *asked, const struct kp_wanted *chosen,
                        struct kp_shown *out)
{
    const struct kp_section **both = calloc(asked->n + chosen->n + 1, sizeof *both);
    size_t n = 0;
    if (!both)
        return -ENOMEM;
    for (size_t i = 0; i < asked->n; i++)
        both[n++] = asked->sections[i];
    for (size_t i = 0; i < chosen->n; i++)
        if (!has_section(asked, chosen->sections[i]))
            both[n++] = chosen->sections[i];
    int rc = apply_rules(d, both, n, out, &out->beyond);
    out->gains = &out->beyond;
    free(both);
    return rc;
}

int kp_shown_of(const struct kp_display *d, const struct kp_session *s, const struct kp_result *r, struct kp_shown *out)
{
    struct kp_wanted asked = {0}, chosen = {0};
    *out = (struct kp_shown){.view = {s, r, &out->messages, &out->source}, .gains = &out->messages};
    int rc = kp_source_load(r, d->codes, &out->source);
    if (!rc)
        rc = kp_find_wanted(or_empty(s->set), or_empty(s->sections), or_empty(s->metrics), &asked);
    if (!rc && d->choose)
        rc = kp_find_wanted(or_empty(d->set), or_empty(d->sections), or_empty(d->metrics), &chosen);
    struct kp_wanted *w = d->choose ? &chosen : &asked;
    if (!rc && d->rules)
        rc = apply_rules(d, w->sections, w->n, out, &out->messages);
    if (!rc && d->rules && d->choose)
        rc = apply_beyond(d, &asked, &chosen, out);
    if (rc)
        goto out;
    out->quick = kp_has_quick_instead(&out->view, &asked);
    out->sections = w->sections;
    out->n = w->n;
    out->metrics = w->metrics;
    w->sections = NULL;
    leave_out_absent(d, out);
    if (out->quick)
        rc = put_first(out, kp_section_quick());
out:
    free(asked.sections);
    free(chosen.sections);
    if (rc)
        kp_shown_free(out);
    return rc;
}

void kp_shown_free(struct kp_shown *s)
{
    kp_messages_free(&s->messages);
    kp_messages_free(&s->beyond);
    kp_source_free(&s->source);
    free(s->sections);
    s->sections = NULL;
    s->n = 0;
}

/* Whether the section at `at` is one that was asked for. */
static bool is_asked_for(const struct kp_shown *s, size_t at)
{
    return at || !s->quick;
}

const char *kp_shown_title(const struct kp_shown *s, size_t at)
{
    return at < s->n ? s->sections[at]->display : kp_metrics_title;
}

int kp_shown_lines(const struct kp_shown *s, size_t at, enum kp_details details, struct kp_lines *out)
{
    int rc = 0;
    if (at == s->n) {
        rc = kp_lines_of_metrics(s->metrics, &s->view, out);
    } else {
        const struct kp_section *section = s->sections[at];
        size_t header = kp_rows_before_bodies(section, KP_ROW_HEADER), from = 0, end = section->n_rows;
        if (details == KP_DETAILS_HEADER || !is_asked_for(s, at))
            end = header;
        else if (details == KP_DETAILS_BODY)
            from = header;
        rc = kp_lines_of_rows(section, from, end, &s->view, is_asked_for(s, at), out);
    }
    kp_lines_sort(out);
    return rc;
}

void kp_launch_head(struct kp_out *o, const struct kp_launch_info *l, bool quick)
{
    print_launch_line(o, l);
    kp_render_nvtx(o, &l->nvtx);
    kp_render_stack(o, l->stack);
    if (l->note)
        print_note(o, l->note, quick);
}

static int render_tables(struct kp_out *o, const struct kp_shown *s)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < s->n; i++)
        rc = kp_render_section(o, s->sections[i], &s->view, is_asked_for(s, i));
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

/* --- the account --- */

static void print_counted(struct kp_out *o, uint64_t n, const char *one, const char *many)
{
    char number[KP_NUMBER_MAX];
    kp_format_count(n, number);
    kp_out_print(o, "%s %s", number, n == 1 ? one : many);
}

static uint64_t print_skips(struct kp_out *o, const struct kp_session *s)
{
    uint64_t total = 0;
    char number[KP_NUMBER_MAX];
    for (size_t i = 0; i < s->n_skips; i++)
        total += s->skips[i].count;
    print_counted(o, total, "skipped", "skipped");
    /* The number comes last, so that a reason may be any clause, of one launch or many. */
    for (size_t i = 0; i < s->n_skips; i++) {
        kp_format_count(s->skips[i].count, number);
        kp_out_print(o, "%s%s: %s", i ? "; " : " (", s->skips[i].reason, number);
    }
    kp_out_print(o, s->n_skips ? ")" : "");
    return total;
}

static void print_more(struct kp_out *o, size_t n)
{
    if (n > SEEN_SHOWN)
        kp_out_print(o, "==KPROF==   and %zu more\n", n - SEEN_SHOWN);
}

static void print_seen(struct kp_out *o, const char *what, const char *name, uint64_t count)
{
    char number[KP_NUMBER_MAX];
    kp_format_count(count, number);
    kp_out_print(o, "==KPROF==   %s: ", what);
    kp_out_one_line(o, name, strlen(name));
    kp_out_print(o, " (%s)\n", number);
}

void kp_render_kernels(struct kp_out *o, const struct kp_session *s)
{
    for (size_t i = 0; i < s->n_kernels && i < SEEN_SHOWN; i++)
        print_seen(o, "seen", s->kernels[i].name, s->kernels[i].count);
    print_more(o, s->n_kernels);
}

static void print_ranges(struct kp_out *o, const struct kp_session *s)
{
    for (size_t i = 0; i < s->n_ranges && i < SEEN_SHOWN; i++)
        print_seen(o, "range seen", s->ranges[i].name, s->ranges[i].count);
    print_more(o, s->n_ranges);
    if (!s->n_ranges)
        kp_out_print(o, "==KPROF==   no NVTX range was opened\n");
}

static void print_devices(struct kp_out *o, const struct kp_session *s)
{
    for (size_t i = 0; i < s->n_devices && i < SEEN_SHOWN; i++)
        kp_out_print(o, "==KPROF==   seen: Device %d (%s, CC %d.%d)\n", s->devices[i].ordinal,
                     or_empty(s->devices[i].name), s->devices[i].cc_major, s->devices[i].cc_minor);
    print_more(o, s->n_devices);
}

/* What to do where nothing was profiled, by the reason that stopped the launches, and what they were. Of several
 * filters it is the last one that launches came to which let none pass: the last one of them is first. */
static const struct advice {
    const char *reason, *text;
    void (*seen)(struct kp_out *o, const struct kp_session *s);
} advices[] = {
    {KP_SKIP_NO_COUNTERS, "the warnings, notes and tables above say what kept the counters from being read", NULL},
    {KP_SKIP_LAUNCH_COUNT, "the launches to profile were used up; raise KPROF_LAUNCH_COUNT (launch-count)", NULL},
    {KP_SKIP_NVTX,
     "no launch was made inside the NVTX ranges that were asked for; change KPROF_NVTX_INCLUDE or KPROF_NVTX_EXCLUDE "
     "(nvtx-include, nvtx-exclude); for launches of other threads than the one that opened a range, set "
     "KPROF_NVTX_PUSH_POP_SCOPE=process (nvtx-push-pop-scope)",
     print_ranges},
    {KP_SKIP_LAUNCH_SKIP,
     "all matching launches came before the first one to profile; lower KPROF_LAUNCH_SKIP (launch-skip)", NULL},
    {KP_SKIP_KERNEL_ID,
     "no launch has the context, stream, name and invocation that were asked for; change KPROF_KERNEL_ID (kernel-id)",
     kp_render_kernels},
    {KP_SKIP_KERNEL_NAME, "no kernel has the name that was asked for; change KPROF_KERNEL_NAME (kernel-name)",
     kp_render_kernels},
    {KP_SKIP_DEVICES, "no launch was on the devices that were asked for; change KPROF_DEVICES (devices)",
     print_devices},
    {KP_SKIP_BEFORE_MATCH,
     "all launches came before the first one to match; lower KPROF_LAUNCH_SKIP_BEFORE_MATCH (launch-skip-before-match)",
     NULL},
    {KP_SKIP_DURATION,
     "no launch was made in the time to profile; change KPROF_DELAY and KPROF_DURATION (delay, duration)", NULL},
    {KP_SKIP_DELAY, "all launches were made before the time to profile began; lower KPROF_DELAY (delay)", NULL},
    {KP_SKIP_PROFILER,
     "no launch was made between cudaProfilerStart and cudaProfilerStop; KPROF_PROFILE_FROM_START (profile-from-start) "
     "waits for them",
     NULL},
};

static bool was_skipped_for(const struct kp_session *s, const char *reason)
{
    for (size_t i = 0; i < s->n_skips; i++)
        if (!strcmp(s->skips[i].reason, reason))
            return true;
    return false;
}

static const struct advice *find_advice(const struct kp_session *s)
{
    static const struct advice unknown = {"", "the line above says what every launch was skipped for", NULL};
    static const struct advice too_early = {"", "the program ended before the first launch was measured to its end",
                                            NULL};
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (was_skipped_for(s, advices[i].reason))
            return &advices[i];
    return s->n_skips ? &unknown : &too_early;
}

static void print_why_nothing(struct kp_out *o, const struct kp_session *s)
{
    static const char head[] = "==KPROF== Nothing was profiled:";
    if (!s->launches_seen && !s->complete) {
        kp_out_print(
            o,
            "%s no launch had been stored. Those of the window that was open when the program was killed are lost; "
            "KPROF_WINDOW (window) bounds how many.\n",
            head);
        return;
    }
    if (!s->launches_seen) {
        kp_out_print(
            o,
            "%s the program launched no kernel that kprof could see. Does it use the GPU? Programs that start others "
            "must hand on LD_PRELOAD; set-user-ID and fully static programs cannot be followed.\n",
            head);
        return;
    }
    const struct advice *advice = find_advice(s);
    kp_out_print(o, "%s %s.\n", head, advice->text);
    if (advice->seen)
        advice->seen(o, s);
}

static void print_choice(struct kp_out *o, const struct kp_choice *choice)
{
    char shown[KP_NUMBER_MAX], stored[KP_NUMBER_MAX];
    kp_format_count(choice->shown, shown);
    kp_format_count(choice->stored, stored);
    kp_out_print(o,
                 "==KPROF== Shown above: %s of the %s stored launches, those that kernel-name, launch-skip and "
                 "launch-count choose\n",
                 shown, stored);
}

int kp_render_account(const struct kp_sink *sink, const struct kp_session *s, const struct kp_choice *choice)
{
    struct kp_out o = {.sink = sink};
    char spent[KP_NUMBER_MAX + KP_UNIT_MAX];
    kp_format_quantity(s->profiling_ns, "ns", false, spent);
    kp_out_print(&o, choice ? "==KPROF== The whole session: " : "==KPROF== ");
    print_counted(&o, s->launches_seen, "launch seen, ", "launches seen, ");
    print_counted(&o, s->launches_profiled, "profiled, ", "profiled, ");
    uint64_t done = s->launches_profiled + print_skips(&o, s);
    if (s->launches_seen > done) {
        kp_out_print(&o, ", ");
        print_counted(&o, s->launches_seen - done, "not finished", "not finished");
    }
    kp_out_print(&o, "; ");
    print_counted(&o, s->passes, "pass", "passes");
    kp_out_print(&o, "; %s spent profiling\n", spent);
    if (!s->launches_profiled)
        print_why_nothing(&o, s);
    if (choice)
        print_choice(&o, choice);
    return o.rc;
}
