#include "report/html/html.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/define/derive.h"
#include "report/define/metric_words.h"
#include "report/html/assets.h"
#include "report/html/parts.h"

enum { FULL_MOST = 150 /* launches in full if there are many: keeps the file below 10 MB */ };

static struct kp_html *html_of(struct kp_writer *w)
{
    return (struct kp_html *)w;
}

/* Hands an error of the data on to the writer. */
static void keep(struct kp_html *h)
{
    h->base.out.rc = h->base.out.rc ? h->base.out.rc : h->data.rc;
}

/* --- metrics of a launch in full: each once, however often it is shown --- */

static void write_number(FILE *to, const struct kp_metric *m)
{
    enum { EXACT = 53 }; /* bits that a number of a script has */
    if (m->kind == KP_VALUE_COUNT && m->count >> EXACT)
        fprintf(to, "{\"exact\":\"%" PRIu64 "\"}", m->count);
    else if (m->kind == KP_VALUE_COUNT)
        fprintf(to, "%" PRIu64, m->count);
    else
        kp_data_real(to, m->real);
}

static size_t keys_of(struct kp_data *d, const struct kp_metric *m)
{
    struct kp_draft draft;
    if (!kp_draft_begin(d, &draft))
        return 0;
    for (size_t i = 0; i < m->n_instances; i++)
        fprintf(draft.to, "%c%zu", i ? ',' : '[', kp_data_string(d, m->instances[i].key));
    fputc(']', draft.to);
    return kp_draft_add(d, &draft, KP_DATA_KEYS);
}

/* Writes a number; a text as {"text"}; the reason for having none as [reason]. Instances follow the value. */
static void write_value(struct kp_data *d, FILE *to, const struct kp_metric *m)
{
    if (m->n_instances)
        fputs("{\"value\":", to);
    if (m->kind == KP_VALUE_NA)
        fprintf(to, "[%zu]", kp_data_string(d, m->text));
    else if (m->kind == KP_VALUE_TEXT)
        fprintf(to, "{\"text\":%zu}", kp_data_string(d, m->text));
    else
        write_number(to, m);
    if (!m->n_instances)
        return;
    fprintf(to, ",\"keys\":%zu,\"instances\":", keys_of(d, m));
    for (size_t i = 0; i < m->n_instances; i++) {
        fputc(i ? ',' : '[', to);
        kp_data_real(to, m->instances[i].value);
    }
    fputs("]}", to);
}

/* Returns true if the launch shows the metric for the first time. */
static bool is_new(struct kp_html *h, size_t metric)
{
    struct kp_full *f = &h->full;
    if (metric >= f->n_shown) {
        size_t n = 2 * metric + 64;
        size_t *grown = realloc(f->shown, n * sizeof *grown);
        if (!grown) {
            h->data.rc = h->data.rc ? h->data.rc : -ENOMEM;
            return false;
        }
        memset(&grown[f->n_shown], 0, (n - f->n_shown) * sizeof *grown);
        f->shown = grown;
        f->n_shown = n;
    }
    bool found = f->shown[metric] != h->n_full + 1;
    f->shown[metric] = h->n_full + 1;
    return found;
}

/* Returns the number of a metric: name, unit, formula and description, if known. */
static size_t metric_of(struct kp_data *d, const char *name, const char *unit)
{
    const struct kp_derived *derived = kp_derived_find(name);
    char text[4 * sizeof "18446744073709551615,"], words[256] = "";
    kp_section_metric_words(name, words, sizeof words);
    snprintf(text, sizeof text, "[%zu,%zu,%zu,%zu]", kp_data_string(d, name), kp_data_string(d, unit),
             kp_data_string(d, derived ? derived->expression : ""), kp_data_string(d, words));
    return kp_data_add(d, KP_DATA_METRICS, text);
}

/* Writes a cell: label, metric, group, 1 for a row that belongs to the charts, and the unit in a drawing. */
static void write_cell(struct kp_html *h, const struct kp_line *l)
{
    struct kp_full *f = &h->full;
    struct kp_data *d = &h->data;
    size_t metric = metric_of(d, l->name, l->metric ? l->metric->unit : "");
    const char *unit = l->metric ? kp_line_unit(l) : l->unit;
    fprintf(f->blocks.to, "[%zu,%zu,%zu,%d,%zu]", kp_data_string(d, l->label), metric, kp_data_string(d, l->group),
            l->kind == KP_ROW_EXTRA, kp_data_string(d, unit));
    if (!l->metric || !is_new(h, metric))
        return;
    fprintf(f->set.to, "%s%zu", f->n_values ? "," : "", metric);
    fputs(f->n_values++ ? "," : "", f->values.to);
    write_value(d, f->values.to, l->metric);
}

static void write_cells(struct kp_html *h, const struct kp_lines *lines)
{
    for (size_t i = 0; i < lines->n; i++) {
        fputs(i ? "," : "", h->full.blocks.to);
        write_cell(h, &lines->at[i]);
    }
}

/* --- sections: a list of blocks, which launches share --- */

static void end_section(struct kp_html *h)
{
    struct kp_full *f = &h->full;
    struct kp_draft section;
    char *blocks = kp_draft_take(&h->data, &f->blocks);
    if (blocks && f->n_blocks && kp_draft_begin(&h->data, &section)) {
        fprintf(section.to, "[%zu,[%s]]", f->title, blocks);
        fprintf(f->sections.to, "%s%zu", ftell(f->sections.to) > 0 ? "," : "",
                kp_draft_add(&h->data, &section, KP_DATA_SECTIONS));
    }
    f->n_blocks = 0;
    free(blocks);
}

static void begin_section(struct kp_html *h, const char *title)
{
    end_section(h);
    h->full.title = kp_data_string(&h->data, title);
    kp_draft_begin(&h->data, &h->full.blocks);
}

/* Begins a block of the present section; returns its destination, or NULL outside of sections. */
static FILE *begin_block(struct kp_html *h, const char *kind)
{
    struct kp_full *f = &h->full;
    if (!f->open || !f->blocks.to || h->data.rc)
        return NULL;
    fprintf(f->blocks.to, "%s[\"%s\"", f->n_blocks++ ? "," : "", kind);
    return f->blocks.to;
}

/* Begins an element of a list that belongs to the launch: blocks hold no values. */
static FILE *next_of(struct kp_draft *list)
{
    fputs(ftell(list->to) > 0 ? ",\n" : "", list->to);
    return list->to;
}

/* --- a launch in full --- */

static struct kp_draft *const *drafts_of(struct kp_full *f, struct kp_draft *out[8])
{
    struct kp_draft *all[] = {&f->set,   &f->values, &f->sections, &f->advice,
                              &f->roofs, &f->series, &f->verdict,  &f->source};
    memcpy(out, all, sizeof all);
    return out;
}

static void drop_launch(struct kp_html *h)
{
    struct kp_draft *drafts[8];
    drafts_of(&h->full, drafts);
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
        free(kp_draft_take(&h->data, drafts[i]));
    free(kp_draft_take(&h->data, &h->full.blocks));
    h->full.open = false;
}

static void begin_launch(struct kp_html *h, const struct kp_shown *s)
{
    struct kp_draft *drafts[8];
    struct kp_full *f = &h->full;
    drafts_of(f, drafts);
    f->launch = kp_html_launch(h, s, (long)h->n_full);
    f->n_values = 0;
    f->open = true;
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
        f->open &= kp_draft_begin(&h->data, drafts[i]);
    if (f->open && s->view.source)
        kp_html_source(&h->data, f->source.to, s->view.source);
}

static void add_array(struct kp_html *h, FILE *to, const char *name, struct kp_draft *list)
{
    char *text = kp_draft_take(&h->data, list);
    fprintf(to, ",\"%s\":[%s]", name, text ? text : "");
    free(text);
}

static void end_launch(struct kp_html *h)
{
    struct kp_full *f = &h->full;
    struct kp_draft set, full;
    if (!f->open)
        return;
    end_section(h);
    char *metrics = kp_draft_take(&h->data, &f->set);
    if (metrics && kp_draft_begin(&h->data, &set)) {
        fprintf(set.to, "[%s]", metrics);
        size_t of = kp_draft_add(&h->data, &set, KP_DATA_SETS);
        if (kp_draft_begin(&h->data, &full)) {
            fprintf(full.to, "{\"launch\":%zu,\"set\":%zu", f->launch, of);
            add_array(h, full.to, "values", &f->values);
            add_array(h, full.to, "sections", &f->sections);
            add_array(h, full.to, "verdict", &f->verdict);
            add_array(h, full.to, "advice", &f->advice);
            add_array(h, full.to, "roofs", &f->roofs);
            add_array(h, full.to, "series", &f->series);
            add_array(h, full.to, "source", &f->source);
            fputc('}', full.to);
            kp_draft_add(&h->data, &full, KP_DATA_FULL);
            h->n_full++;
        }
    }
    free(metrics);
    drop_launch(h);
}

/* --- blocks --- */

static void listed(struct kp_writer *w, const struct kp_shown *s, bool full)
{
    struct kp_html *h = html_of(w);
    end_launch(h);
    if (full)
        begin_launch(h, s);
    else
        kp_html_launch(h, s, -1);
    keep(h);
}

static void write_heading(struct kp_writer *w, enum kp_level level, const char *text)
{
    struct kp_html *h = html_of(w);
    FILE *to;
    if (h->full.open && level == KP_LEVEL_SECTION)
        begin_section(h, text);
    else if (level == KP_LEVEL_BODY && (to = begin_block(h, "title")))
        fprintf(to, ",%zu]", kp_data_string(&h->data, text));
    keep(h);
}

static void write_metrics(struct kp_writer *w, const struct kp_lines *lines)
{
    struct kp_html *h = html_of(w);
    FILE *to = begin_block(h, "metrics");
    if (!to)
        return;
    fputs(",[", to);
    write_cells(h, lines);
    fputs("]]", to);
    keep(h);
}

static void write_drawing(struct kp_writer *w, enum kp_body body, const struct kp_lines *lines)
{
    static const char *const names[] = {
        [KP_BODY_NONE] = "table",   [KP_BODY_BARS] = "bars",    [KP_BODY_BARS_AS] = "rows",
        [KP_BODY_TABLE] = "table",  [KP_BODY_GRID] = "grid",    [KP_BODY_CURVE] = "curve",
        [KP_BODY_CHART] = "memory", [KP_BODY_SERIES] = "table", [KP_BODY_ROOFLINE] = "roofline",
    };
    struct kp_html *h = html_of(w);
    FILE *to = begin_block(h, names[body]);
    if (!to)
        return;
    fputs(",[", to);
    write_cells(h, lines);
    fputs("]]", to);
    if (body == KP_BODY_ROOFLINE)
        kp_html_roofs(&h->data, next_of(&h->full.roofs), lines);
    keep(h);
}

/* Writes a sample with four digits: drawings and their hover need no more. */
static void write_sample(FILE *to, double value)
{
    if (isfinite(value))
        fprintf(to, "%.4g", value);
    else
        fputs("null", to);
}

static void write_series(struct kp_writer *w, const struct kp_series_row *rows, size_t n, double dropped)
{
    struct kp_html *h = html_of(w);
    FILE *to = begin_block(h, "series"), *list;
    if (!to)
        return;
    fprintf(to, ",%zu]", n);
    list = next_of(&h->full.series);
    fputs("[", list);
    kp_data_real(list, dropped);
    for (size_t i = 0; i < n; i++) {
        const struct kp_series *s = rows[i].series;
        fprintf(list, ",[%zu,%zu,", kp_data_string(&h->data, rows[i].label), metric_of(&h->data, s->name, s->unit));
        kp_data_real(list, s->start_ns);
        fputc(',', list);
        kp_data_real(list, s->interval_ns);
        fputs(",[", list);
        for (size_t j = 0; j < s->n_values; j++) {
            fputs(j ? "," : "", list);
            write_sample(list, s->values[j]);
        }
        fputs("]]", list);
    }
    fputs("]", list);
    keep(h);
}

static void take_verdict(struct kp_writer *w, const struct kp_verdict *v)
{
    struct kp_html *h = html_of(w);
    FILE *to = h->full.open ? h->full.verdict.to : NULL;
    if (!to)
        return;
    fprintf(to, "%d,%zu,", v->bound, kp_data_string(&h->data, v->what));
    kp_data_real(to, v->compute);
    fputc(',', to);
    kp_data_real(to, v->memory);
    fputc(',', to);
    kp_data_real(to, v->waves);
    fprintf(to, ",%zu,", kp_data_string(&h->data, v->stall));
    kp_data_real(to, v->stall_share);
    fputs(",[", to);
    for (size_t i = 0; i < KP_VERDICT_GAINS && v->gains[i]; i++) {
        fprintf(to, "%s[%zu,", i ? "," : "", kp_html_rule(&h->data, v->gains[i]->rule, v->gains[i]->section));
        kp_data_real(to, v->gains[i]->speedup);
        fputc(']', to);
    }
    fputc(']', to);
    keep(h);
}

static void write_messages(struct kp_writer *w, const struct kp_messages *messages, const char *section)
{
    struct kp_html *h = html_of(w);
    FILE *to = begin_block(h, "advice"), *list;
    const char *gap = "";
    if (!to)
        return;
    fputc(']', to);
    list = next_of(&h->full.advice);
    fputc('[', list);
    for (size_t i = 0; i < messages->n; i++) {
        const struct kp_message *m = &messages->list[i];
        if (strcmp(m->rule->section, section) != 0)
            continue;
        fprintf(list, "%s[\"%s\",%zu,%zu,", gap, kp_severity_name(m->severity),
                kp_html_rule(&h->data, m->rule, m->section), kp_data_string(&h->data, m->text));
        kp_data_real(list, m->speedup);
        fprintf(list, ",%d]", m->global);
        gap = ",";
    }
    fputc(']', list);
    keep(h);
}

static void write_note(struct kp_writer *w, enum kp_level level, const char *mark, const char *text)
{
    struct kp_html *h = html_of(w);
    FILE *to = begin_block(h, "note");
    (void)level;
    (void)mark;
    if (to)
        fprintf(to, ",%zu]", kp_data_string(&h->data, text));
    keep(h);
}

static void write_facts(struct kp_writer *w, const struct kp_facts *facts)
{
    struct kp_html *h = html_of(w);
    end_launch(h);
    if (!h->facts.to && !kp_draft_begin(&h->data, &h->facts)) {
        keep(h);
        return;
    }
    FILE *to = next_of(&h->facts);
    fprintf(to, "[%zu,[", kp_data_string(&h->data, facts->title));
    for (size_t i = 0; i < facts->n; i++)
        fprintf(to, "%s[%zu,%zu]", i ? "," : "", kp_data_string(&h->data, facts->at[i].attribute),
                kp_data_string(&h->data, facts->at[i].value));
    fputs("]]", to);
    keep(h);
}

static void write_account(struct kp_writer *w, const struct kp_choice *choice)
{
    struct kp_html *h = html_of(w);
    end_launch(h);
    kp_html_session(h, choice);
    keep(h);
}

static const struct kp_writer_kind kind = {
    .listed = listed,
    .heading = write_heading,
    .facts = write_facts,
    .metrics = write_metrics,
    .drawing = write_drawing,
    .series = write_series,
    .verdict = take_verdict,
    .messages = write_messages,
    .note = write_note,
    .account = write_account,
};

/* --- the file --- */

struct kp_html *kp_html_new(void)
{
    struct kp_html *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->base.kind = &kind;
    kp_data_string(&h->data, ""); /* number 0 of all tables that elements name without a sign for none */
    if (!h->data.rc)
        return h;
    kp_html_free(h);
    return NULL;
}

void kp_html_free(struct kp_html *h)
{
    if (!h)
        return;
    drop_launch(h);
    free(kp_draft_take(&h->data, &h->facts));
    kp_launch_ranges_free(&h->ranges);
    free(h->full.shown);
    kp_data_free(&h->data);
    free(h);
}

struct kp_writer *kp_html_writer(struct kp_html *h)
{
    return &h->base;
}

void kp_html_display(struct kp_display *d, uint64_t brief_above)
{
    d->details = KP_DETAILS_ALL;
    d->naming = KP_NAMING_LABEL;
    d->instances = KP_INSTANCES_NONE;
    d->grouping = KP_GROUPING_NONE;
    d->format = KP_FORMAT_TEXT;
    d->pages[0] = KP_PAGE_DETAILS;
    d->pages[1] = KP_PAGE_SESSION;
    d->n_pages = 2;
    d->brief_above = brief_above;
    d->brief_lines = 0;
    d->brief_most = FULL_MOST;
    d->width = 0;
    d->colors = false;
}

int kp_html_print(const struct kp_html *h, bool compare, FILE *to)
{
    fprintf(to,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-%s'; "
            "style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>kprof</title>\n<style>",
            kp_html_script_hash, kp_html_style_hash);
    fputs(kp_html_style, to);
    fprintf(to,
            "</style>\n</head>\n<body>\n<div id=\"page\" data-mode=\"%s\"></div>\n"
            "<noscript>This report needs its own script, which this browser does not run.</noscript>\n"
            "<script type=\"application/json\" id=\"data\">",
            compare ? "compare" : "report");
    int rc = kp_data_print(&h->data, to);
    fputs("</script>\n<script>", to);
    fputs(kp_html_script, to);
    fputs("</script>\n</body>\n</html>\n", to);
    return rc ? rc : ferror(to) ? -EIO : 0;
}
