#include "report/write/csv_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/text.h"
#include "report/define/derive_source.h"
#include "report/model/launch_names.h"
#include "report/write/cells.h"
#include "report/write/csv_launch.h"
#include "report/write/csv_rotation.h"

static struct kp_csv_writer *csv_of(struct kp_writer *w)
{
    return (struct kp_csv_writer *)w;
}

/* --- the page and its rows --- */

/* Returns true if rows have columns of a rotation: those of launches do. */
static bool tells_rotation(const struct kp_csv_writer *c)
{
    return c->base.rotated && (c->layout->start == KP_START_LAUNCH || c->layout->start == KP_START_ID);
}

static bool is_mean(const struct kp_csv_writer *c, size_t field)
{
    return tells_rotation(c) && c->layout->means && c->layout->means[field];
}

static void write_rotation_headings(struct kp_csv_writer *c)
{
    if (!tells_rotation(c))
        return;
    if (c->layout->rows_of_metrics)
        kp_write_csv_mean_headings(&c->csv);
    for (size_t i = 0; i < c->layout->n; i++)
        if (is_mean(c, i))
            kp_write_csv_mean_headings_of(&c->csv, c->layout->fields[i]);
    kp_write_csv_rotation_headings(&c->csv);
}

static void write_units(struct kp_csv_writer *c, size_t before)
{
    const struct kp_layout *l = c->layout;
    kp_csv_empty(&c->csv, before);
    kp_csv_fields(&c->csv, l->units, l->n);
    for (size_t i = 0; i < l->n; i++)
        if (is_mean(c, i))
            kp_write_csv_mean_units(&c->csv, l->units[i]);
    if (tells_rotation(c))
        kp_write_csv_rotation(&c->csv, NULL);
    kp_csv_end_row(&c->csv);
}

static void write_headings(struct kp_csv_writer *c)
{
    const struct kp_layout *l = c->layout;
    if (l->start == KP_START_LAUNCH)
        kp_write_csv_launch_headings(&c->csv, c->base.nvtx);
    else if (l->start == KP_START_PROCESS || c->base.shared)
        kp_write_csv_process_headings(&c->csv);
    if (l->start == KP_START_ID)
        kp_csv_field(&c->csv, "ID");
    size_t before = c->csv.fields;
    kp_csv_fields(&c->csv, l->fields, l->n);
    write_rotation_headings(c);
    kp_csv_end_row(&c->csv);
    if (l->units)
        write_units(c, before);
}

static void write_csv_place(struct kp_csv_writer *c)
{
    const struct kp_writer *w = &c->base;
    const char *name = kp_launch_name(w->launch);
    char *plain = w->out.display->face == KP_FACE_NCU ? kp_launch_plain_name(name) : NULL;
    kp_write_failed(&c->base,
                    kp_write_csv_launch(&c->csv, w->out.display, w->session, w->launch, plain ? plain : name, w->nvtx));
    free(plain);
}

/* Writes the first columns of a row. */
static void start_row(struct kp_csv_writer *c)
{
    const struct kp_writer *w = &c->base;
    enum kp_row_start start = c->layout->start;
    if (start == KP_START_LAUNCH)
        write_csv_place(c);
    else if (start == KP_START_PROCESS || w->shared)
        kp_write_csv_process(&c->csv, w->out.display, w->session);
    if (start == KP_START_ID)
        kp_csv_formatted(&c->csv, "%" PRIu64, w->launch->id);
}

static void end_row(struct kp_csv_writer *c)
{
    if (tells_rotation(c))
        kp_write_csv_rotation(&c->csv, c->base.launch);
    kp_csv_end_row(&c->csv);
    if (ferror(c->csv.to))
        kp_write_failed(&c->base, -EIO);
}

/* Writes a row of JSON. An empty field is null, and what is spelled as a number is one where the layout says so. */
static void put_object(struct kp_csv_writer *c)
{
    kp_json_object(c->json, NULL, true);
    for (size_t i = 0; i < c->n; i++) {
        const char *text = c->row[i] ? c->row[i] : c->said[i], *key = c->layout->fields[i];
        char *end = NULL;
        if (c->layout->numbers && c->layout->numbers[i] && text && *text && isfinite(strtod(text, &end)) && !*end)
            kp_json_number(c->json, key, text);
        else
            kp_json_text(c->json, key, text && *text ? text : NULL);
    }
    kp_json_end(c->json);
}

/* Writes the fields of `row` and empties it for the next one. */
static void put_row(struct kp_csv_writer *c)
{
    if (c->json) {
        put_object(c);
    } else {
        start_row(c);
        for (size_t i = 0; i < c->n; i++)
            kp_csv_field(&c->csv, c->row[i] ? c->row[i] : c->said[i]);
    }
    memset(c->row, 0, c->n * sizeof *c->row);
    if (tells_rotation(c) && c->layout->rows_of_metrics)
        kp_write_csv_mean(&c->csv, c->metric);
    c->metric = NULL;
    if (!c->json)
        end_row(c);
}

static void drop_fields(struct kp_csv_writer *c)
{
    for (size_t i = 0; c->said && i < c->n; i++)
        free(c->said[i]);
    free(c->said);
    free(c->row);
    c->said = NULL;
    c->row = NULL;
    c->n = 0;
}

static void begin(struct kp_writer *w, const struct kp_layout *layout)
{
    struct kp_csv_writer *c = csv_of(w);
    drop_fields(c);
    c->layout = layout;
    c->n = layout->n;
    c->said = calloc(c->n + 1, sizeof *c->said);
    c->row = calloc(c->n + 1, sizeof *c->row);
    if (kp_out_has(&w->out, c->said) && kp_out_has(&w->out, c->row) && !c->goes_on && !c->json)
        write_headings(c);
}

static void write_field(struct kp_writer *w, size_t field, const char *text)
{
    char **said = &csv_of(w)->said[field], *copy = text ? strdup(text) : NULL;
    if (text && !kp_out_has(&w->out, copy))
        return;
    free(*said);
    *said = copy;
}

static void end_rows(struct kp_writer *w)
{
    drop_fields(csv_of(w));
}

/* --- tables and facts --- */

static void begin_rows(struct kp_writer *w, const struct kp_table *table)
{
    csv_of(w)->table = table;
}

static void write_cells(struct kp_writer *w, const char *const *cells)
{
    struct kp_csv_writer *c = csv_of(w);
    for (size_t i = 0; i < c->table->n; i++)
        if (c->table->columns[i].field != KP_NO_FIELD)
            c->row[c->table->columns[i].field] = cells[i];
    put_row(c);
}

static void put_facts(struct kp_writer *w, const struct kp_facts *facts)
{
    enum { TITLE, ATTRIBUTE, VALUE };
    struct kp_csv_writer *c = csv_of(w);
    for (size_t i = 0; i < facts->n; i++) {
        c->row[TITLE] = facts->title;
        c->row[ATTRIBUTE] = facts->at[i].attribute;
        c->row[VALUE] = facts->at[i].value;
        put_row(c);
    }
}

/* --- metrics --- */

/* Notes that a metric's cell has its value alone. */
static void note_instances(struct kp_csv_writer *c, const struct kp_metric *m)
{
    const struct kp_display *d = c->base.out.display;
    if (m && m->n_instances && d && d->lost_instances)
        *d->lost_instances = true;
}

static const char *plain_value(const struct kp_csv_writer *c, const struct kp_metric *m, char number[KP_NUMBER_MAX])
{
    const struct kp_display *d = c->base.out.display;
    const char *value = kp_write_plain_value(m, number);
    if (d && d->decimals && value == number)
        kp_write_decimals(number);
    return value;
}

static void write_value(struct kp_csv_writer *c, size_t field, const struct kp_line *line)
{
    char number[KP_NUMBER_MAX];
    (void)field;
    note_instances(c, line ? line->metric : NULL);
    kp_csv_field(&c->csv, line ? plain_value(c, line->metric, number) : "");
}

static void write_mean(struct kp_csv_writer *c, size_t field, const struct kp_line *line)
{
    if (is_mean(c, field))
        kp_write_csv_mean_of(&c->csv, line ? line->metric : NULL);
}

/* Calls `write` for each field, with the line that has its metric or NULL. Both are sorted by the names of metrics. */
static void each_field(struct kp_csv_writer *c, const struct kp_lines *lines,
                       void (*write)(struct kp_csv_writer *c, size_t field, const struct kp_line *line))
{
    for (size_t at = 0, i = 0; at < c->n; at++) {
        bool has = i < lines->n && !strcmp(c->layout->fields[at], lines->at[i].name);
        write(c, at, has ? &lines->at[i] : NULL);
        i += has;
    }
}

/* Writes the launch as one row. */
static void write_columns(struct kp_csv_writer *c, const struct kp_lines *lines)
{
    start_row(c);
    each_field(c, lines, write_value);
    each_field(c, lines, write_mean);
    end_row(c);
}

/* Returns true if a metric came before: bodies show some metrics in several places, but one row is enough. */
static bool is_repeated(const struct kp_lines *l, size_t i)
{
    const struct kp_line *line = &l->at[i], *before = &l->at[i ? i - 1 : 0];
    return i && !strcmp(line->name, before->name) && !strcmp(line->label, before->label) &&
           (line->kind != KP_ROW_ITEM || !strcmp(line->group, before->group));
}

static void write_line(struct kp_csv_writer *c, const struct kp_line *line)
{
    char number[KP_NUMBER_MAX], *title = kp_line_full_title(c->base.out.display, line);
    const struct kp_metric *m = line->metric;
    const char **row = &c->row[c->layout->metric];
    if (!kp_out_has(&c->base.out, title))
        return;
    row[0] = title;
    row[1] = m && m->kind != KP_VALUE_NA ? m->unit : "";
    row[2] = plain_value(c, m, number);
    c->metric = m;
    note_instances(c, m);
    put_row(c);
    free(title);
}

static void put_metrics(struct kp_writer *w, const struct kp_lines *lines)
{
    struct kp_csv_writer *c = csv_of(w);
    if (c->layout->by_metric) {
        write_columns(c, lines);
        return;
    }
    for (size_t i = 0; !w->out.rc && i < lines->n; i++)
        if (!is_repeated(lines, i))
            write_line(c, &lines->at[i]);
}

static void write_message(struct kp_csv_writer *c, const struct kp_message *m)
{
    char number[KP_PLAIN_MAX];
    const char **row = &c->row[c->layout->rule];
    row[0] = m->rule->id;
    row[1] = kp_severity_name(m->severity);
    row[2] = m->text;
    if (!isnan(m->speedup)) {
        kp_plain_real(m->speedup, number);
        row[3] = m->global ? "global" : "local";
        row[4] = number;
    }
    put_row(c);
}

static void put_messages(struct kp_writer *w, const struct kp_messages *messages, const char *section)
{
    for (size_t i = 0; !w->out.rc && i < messages->n; i++)
        if (!strcmp(messages->list[i].rule->section, section))
            write_message(csv_of(w), &messages->list[i]);
}

/* --- samples --- */

static void write_sample(struct kp_csv_writer *c, const struct kp_series *s, size_t i)
{
    char number[32], time[KP_PLAIN_MAX], value[KP_PLAIN_MAX];
    const char **row = &c->row[c->layout->metric];
    snprintf(number, sizeof number, "%zu", i);
    kp_plain_real(s->start_ns + (double)i * s->interval_ns, time);
    kp_plain_real(s->values[i], value);
    row[0] = s->name;
    row[1] = s->unit;
    row[2] = number;
    row[3] = time;
    row[4] = isnan(s->values[i]) ? KP_NO_VALUE : value;
    put_row(c);
}

static void put_series(struct kp_writer *w, const struct kp_series_row *rows, size_t n, double dropped)
{
    (void)dropped;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; !w->out.rc && j < rows[i].series->n_values; j++)
            write_sample(csv_of(w), rows[i].series, j);
}

/* --- instructions --- */

/* Writes "file:line" of each call that leads to inlined code, the innermost first, separated by blanks. */
static void write_sites(struct kp_csv_writer *c, const struct kp_code *code, const struct kp_location *l)
{
    char *text = NULL;
    size_t size;
    unsigned steps = 0;
    FILE *f = open_memstream(&text, &size);
    if (!kp_out_has(&c->base.out, f))
        return;
    const char *gap = "";
    while ((l = kp_location_parent(code, l, &steps))) {
        fprintf(f, "%s%s:%" PRIu32, gap, kp_location_path(code, l), l->line);
        gap = " ";
    }
    if (kp_text_end(f, &text))
        kp_write_failed(&c->base, -ENOMEM);
    kp_csv_field(&c->csv, text);
    free(text);
}

static void write_place(struct kp_csv_writer *c, const struct kp_code *code, const struct kp_source_instruction *i)
{
    kp_csv_field(&c->csv, code ? code->function : "");
    kp_csv_formatted(&c->csv, "%" PRIu32, i->offset);
    if (i->location) {
        kp_csv_field(&c->csv, kp_location_path(code, i->location));
        kp_csv_formatted(&c->csv, "%" PRIu32, i->location->line);
        write_sites(c, code, i->location);
    } else {
        kp_csv_empty(&c->csv, 3);
    }
    kp_csv_field(&c->csv, i->code ? i->code->opcode : "");
    kp_csv_field(&c->csv, i->code ? i->code->text : "");
    if (i->code && i->code->ptx) {
        kp_csv_formatted(&c->csv, "%" PRIu32, i->code->ptx);
        kp_csv_field(&c->csv, kp_code_ptx(code, i->code->ptx));
    } else {
        kp_csv_empty(&c->csv, 2);
    }
}

/* Writes what the instruction does with memory; nothing for one that does not access it. */
static void write_access(struct kp_csv_writer *c, const struct kp_instruction *i)
{
    kp_csv_field(&c->csv, i ? kp_memory_space(i->opcode) : "");
    kp_csv_field(&c->csv, i ? kp_memory_access(i->opcode) : "");
    if (i && i->access_bits)
        kp_csv_formatted(&c->csv, "%u", i->access_bits);
    else
        kp_csv_empty(&c->csv, 1);
}

static void put_source_code(struct kp_writer *w, const struct kp_view *v, const struct kp_source_function *f)
{
    struct kp_csv_writer *c = csv_of(w);
    const uint64_t **values = calloc(c->n + 1, sizeof *values);
    if (!kp_out_has(&w->out, values))
        return;
    for (size_t k = c->layout->metric; k < c->n; k++)
        values[k] = kp_code_counts_find(f->counts, c->layout->fields[k]);
    for (size_t i = f->first; !w->out.rc && i < f->end; i++) {
        const struct kp_source_instruction *at = &v->source->instructions[i];
        start_row(c);
        write_place(c, f->code, at);
        write_access(c, at->code);
        for (size_t k = c->layout->metric; k < c->n; k++)
            kp_csv_formatted(&c->csv, "%" PRIu64, values[k] && at->at != SIZE_MAX ? values[k][at->at] : 0);
        end_row(c);
    }
    free(values);
}

static const struct kp_writer_kind kind = {
    .rows = true,
    .plain = true,
    .begin = begin,
    .field = write_field,
    .facts = put_facts,
    .table = begin_rows,
    .row = write_cells,
    .metrics = put_metrics,
    .series = put_series,
    .messages = put_messages,
    .source_code = put_source_code,
    .end = end_rows,
};

void kp_write_csv_writer_init(struct kp_csv_writer *c, FILE *to, const struct kp_display *d)
{
    *c = (struct kp_csv_writer){.base = {.kind = &kind, .out = {.display = d}}, .csv = {.to = to}};
}
