#include "report/write/text_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/width.h"
#include "report/write/advice.h"
#include "report/write/drawings.h"
#include "report/write/launch_head.h"
#include "report/write/run_summary.h"
#include "report/write/source_table.h"

enum {
    NAME_WIDTH = 50, /* of a kernel in a table of launches */
    LIST_WIDTH = 100 /* the room that attributes leave to a list */
};

static const char *const indents[] = {[KP_LEVEL_PAGE] = " ",
                                      [KP_LEVEL_LAUNCH] = "  ",
                                      [KP_LEVEL_SECTION] = "    ",
                                      [KP_LEVEL_BODY] = "    ",
                                      [KP_LEVEL_RUN] = "==KPROF== "};

static struct kp_text_writer *text_of(struct kp_writer *w)
{
    return (struct kp_text_writer *)w;
}

static void write_process(struct kp_writer *w)
{
    kp_write_failed(w, kp_render_process(w->out.sink, w->out.display, w->session));
}

static void write_account(struct kp_writer *w, const struct kp_choice *choice)
{
    const struct kp_display *d = w->out.display;
    if (d && d->face == KP_FACE_NCU) {
        kp_out_print(&w->out, KP_NONE_PROFILED);
        return;
    }
    kp_write_failed(w, kp_render_account(w->out.sink, w->session, choice));
    if (kp_account_of_timeline(w->session) && d && !kp_display_shows(d, KP_PAGE_TIMELINE))
        kp_out_print(&w->out,
                     "==KPROF== Nothing was counted because only the timeline was requested: --page timeline shows it. "
                     "`kprof --timeline --set quick` counts each launch, too.\n");
    if (!w->session->complete)
        kp_out_print(&w->out, "==KPROF== The report above is incomplete: the program had not finished (it was killed, "
                              "or is still running), or the file could not be fully written.\n");
}

static void write_gap(struct kp_writer *w)
{
    kp_out_text(&w->out, "\n", 1);
}

static void write_title(struct kp_writer *w, enum kp_level level, const char *text)
{
    kp_out_print(&w->out, "%s", indents[level]);
    kp_out_paint(&w->out, level == KP_LEVEL_SECTION ? KP_PAINT_SECTION : KP_PAINT_LABEL);
    kp_out_print(&w->out, "%s%s", level == KP_LEVEL_SECTION ? "Section: " : "", text);
    kp_out_paint(&w->out, KP_PAINT_NONE);
    write_gap(w);
}

static void write_note(struct kp_writer *w, enum kp_level level, const char *mark, const char *text)
{
    char *prefix;
    if (!mark) {
        kp_out_print(&w->out, "%s%s\n", indents[level], text);
        return;
    }
    if (!kp_out_has(&w->out, asprintf(&prefix, "%s%s: ", indents[level], mark) < 0 ? NULL : prefix))
        return;
    kp_out_wrapped(&w->out, prefix, text);
    free(prefix);
}

/* --- tables --- */

static const struct kp_columns_look looks[] = {
    [KP_TABLE_FRAMED] = {KP_INDENT, 1, true},
    [KP_TABLE_OPEN] = {1, 2, false},
};

/* Writes a cell after the first one. One to the left is the last of its line. */
static void write_streamed_cell(struct kp_writer *w, const struct kp_column *column, const char *text)
{
    if (!column->to_the_left)
        kp_out_print(&w->out, " %*s", column->width, text);
    else if (*text)
        kp_out_print(&w->out, "  %s", text);
}

/* Returns true if the terminal is too narrow for the columns; each row is a list of headings and cells then. */
static bool is_too_wide(const struct kp_writer *w, const struct kp_table *table)
{
    size_t used = (size_t)table->columns->width + 1;
    for (size_t i = 1; i < table->n; i++)
        if (!table->columns[i].to_the_left)
            used += (size_t)table->columns[i].width + 1;
    return used > kp_out_wide(&w->out);
}

static void write_streamed_list(struct kp_writer *w, const struct kp_table *table, const char *const *cells)
{
    size_t width = 0;
    for (size_t i = 1; i < table->n; i++)
        width = kp_width(table->columns[i].heading) > width ? kp_width(table->columns[i].heading) : width;
    kp_out_print(&w->out, "%s\n", cells[0]);
    for (size_t i = 1; i < table->n; i++)
        if (*cells[i])
            kp_out_print(&w->out, "  %-*s  %s\n", (int)width, table->columns[i].heading, cells[i]);
}

/* Begins a table; metrics as columns have numbers as headings, explained in a line each before. */
static void begin_streamed(struct kp_writer *w, const struct kp_table *table)
{
    char mark[32];
    if (is_too_wide(w, table))
        return;
    for (size_t i = 1; table->long_headings && i < table->n && !table->columns[i].to_the_left; i++)
        kp_out_print(&w->out, "[%zu] %s\n", i, table->columns[i].heading);
    kp_out_print(&w->out, "%-*s ", table->columns->width, table->columns->heading);
    for (size_t i = 1; i < table->n; i++) {
        const struct kp_column *column = &table->columns[i];
        snprintf(mark, sizeof mark, "[%zu]", i);
        write_streamed_cell(w, column, table->long_headings && !column->to_the_left ? mark : column->heading);
    }
    write_gap(w);
}

static void write_streamed(struct kp_writer *w, const struct kp_table *table, const char *const *cells)
{
    if (is_too_wide(w, table)) {
        write_streamed_list(w, table, cells);
        return;
    }
    kp_out_print(&w->out, "%-*s|", kp_width_printf(cells[0], (size_t)table->columns->width), cells[0]);
    for (size_t i = 1; i < table->n; i++)
        write_streamed_cell(w, &table->columns[i], cells[i]);
    write_gap(w);
}

static void begin_table(struct kp_writer *w, const struct kp_table *table)
{
    struct kp_text_writer *t = text_of(w);
    t->table = table;
    if (table->kind == KP_TABLE_STREAMED) {
        begin_streamed(w, table);
        return;
    }
    t->headings = calloc(table->n, sizeof *t->headings);
    t->to_the_left = calloc(table->n, sizeof *t->to_the_left);
    if (!kp_out_has(&w->out, t->headings) || !kp_out_has(&w->out, t->to_the_left))
        return;
    for (size_t i = 0; i < table->n; i++) {
        t->headings[i] = table->columns[i].heading;
        t->to_the_left[i] = table->columns[i].to_the_left;
    }
    t->cells = (struct kp_columns){.headings = t->headings, .to_the_left = t->to_the_left, .n = table->n};
}

static void write_row(struct kp_writer *w, const char *const *cells)
{
    struct kp_text_writer *t = text_of(w);
    if (t->table->kind == KP_TABLE_STREAMED)
        write_streamed(w, t->table, cells);
    else
        kp_write_failed(w, kp_columns_add(&t->cells, cells));
}

static void drop_table(struct kp_text_writer *t)
{
    kp_columns_free(&t->cells);
    free(t->headings);
    free(t->to_the_left);
    t->headings = NULL;
    t->to_the_left = NULL;
}

static void end_table(struct kp_writer *w)
{
    struct kp_text_writer *t = text_of(w);
    if (t->table->kind != KP_TABLE_STREAMED)
        kp_columns_print(&w->out, &t->cells, &looks[t->table->kind]);
    drop_table(t);
}

/* --- facts --- */

/* Returns the length of a list that fits on one line: all, or up to its last comma or blank. Never breaks an item. */
static size_t list_line(const char *list, size_t width)
{
    static const char separators[] = ", \t";
    size_t end = 0;
    if (strlen(list) <= width)
        return strlen(list);
    for (size_t at = 0; list[at] && (!end || at < width); at++)
        if (strchr(separators, list[at]))
            end = at + 1;
    return end ? end : strlen(list);
}

static void write_list(struct kp_writer *w, const char *attribute, const char *list, size_t width)
{
    static const char blanks[] = " \t";
    while (!w->out.rc && *list) {
        size_t len = list_line(list, width), end = len;
        while (end && strchr(blanks, list[end - 1]))
            end--;
        char *line = strndup(list, end);
        if (kp_out_has(&w->out, line) && *line)
            write_row(w, (const char *const[]){attribute, line});
        free(line);
        list += len + strspn(list + len, blanks);
        attribute = "";
    }
}

/* Returns the room for a list next to the attributes; a narrow terminal has less. */
static size_t list_room(const struct kp_writer *w, const struct kp_facts *f)
{
    enum { AROUND = 6, LEAST = 20 }; /* the indent and the gaps */
    size_t longest = 0, wide = kp_out_wide(&w->out);
    for (size_t i = 0; i < f->n; i++)
        longest = kp_width(f->at[i].attribute) > longest ? kp_width(f->at[i].attribute) : longest;
    size_t room = wide > longest + AROUND + LEAST ? wide - longest - AROUND : LEAST;
    return room < LIST_WIDTH ? room : LIST_WIDTH;
}

static void write_facts(struct kp_writer *w, const struct kp_facts *f)
{
    static const struct kp_column columns[] = {{"Attribute", 0, 0, true}, {"Value", 0, 0, true}};
    static const struct kp_table table = {KP_TABLE_FRAMED, columns, 2, false};
    write_title(w, KP_LEVEL_BODY, f->title);
    begin_table(w, &table);
    for (size_t i = 0; !w->out.rc && i < f->n; i++)
        if (f->at[i].is_list)
            write_list(w, f->at[i].attribute, f->at[i].value, list_room(w, f));
        else
            write_row(w, (const char *const[]){f->at[i].attribute, f->at[i].value});
    end_table(w);
    write_gap(w);
}

/* --- launches --- */

static void write_launch(struct kp_writer *w, bool quick)
{
    kp_write_launch_head(&w->out, w->launch, quick);
}

static void write_metrics(struct kp_writer *w, const struct kp_lines *lines)
{
    if (lines->n)
        kp_table_print(&w->out, lines);
}

static void write_missing(struct kp_writer *w, const struct kp_lines *lines)
{
    kp_table_print_missing(&w->out, lines);
}

/* Prints the memory chart's rows, without those of links that nothing passed. */
static void write_chart(struct kp_writer *w, const struct kp_lines *lines)
{
    struct kp_lines some = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < lines->n; i++) {
        struct kp_line line = lines->at[i];
        double value;
        line.made_label = NULL;
        if (!kp_metric_number(line.metric, &value) || value != 0)
            rc = kp_lines_add(&some, &line);
    }
    kp_write_failed(w, rc);
    if (some.n)
        kp_table_print(&w->out, &some);
    if (some.n < lines->n)
        kp_out_print(&w->out, "    No traffic: %zu other rows\n", lines->n - some.n);
    kp_lines_free(&some);
}

static void write_drawing(struct kp_writer *w, enum kp_body body, const struct kp_lines *lines)
{
    if (body == KP_BODY_BARS || body == KP_BODY_BARS_AS)
        kp_bars_draw(&w->out, lines, body == KP_BODY_BARS);
    else if (body == KP_BODY_GRID)
        kp_grid_draw(&w->out, lines);
    else if (body == KP_BODY_ROOFLINE)
        kp_roofline_print(&w->out, lines);
    else if (body == KP_BODY_CHART)
        write_chart(w, lines);
    else
        kp_table_print(&w->out, lines);
}

static void write_series(struct kp_writer *w, const struct kp_series_row *rows, size_t n, double dropped)
{
    kp_write_series_drawing(&w->out, rows, n, dropped);
}

static void write_verdict(struct kp_writer *w, const struct kp_verdict *verdict)
{
    kp_write_failed(w, kp_render_verdict(&w->out, verdict));
}

static void write_messages(struct kp_writer *w, const struct kp_messages *messages, const char *section)
{
    kp_write_failed(w, kp_render_messages(&w->out, messages, section));
}

static void write_source_lines(struct kp_writer *w, const struct kp_view *v, size_t limit, bool help)
{
    kp_write_source_lines_text(&w->out, v, limit, help);
}

static void write_source_code(struct kp_writer *w, const struct kp_view *v, const struct kp_source_function *f)
{
    kp_write_source_listing(&w->out, v, f);
}

static void write_stacks(struct kp_writer *w, struct kp_stack_totals *stacks)
{
    kp_write_stack_totals_render(&w->out, stacks);
}

static void write_summary(struct kp_writer *w, const struct kp_summary *summary)
{
    kp_write_failed(w, kp_write_run_summary(summary, &w->out));
}

static void end(struct kp_writer *w)
{
    drop_table(text_of(w));
}

static const struct kp_writer_kind kind = {
    .name_room = NAME_WIDTH,
    .process = write_process,
    .heading = write_title,
    .facts = write_facts,
    .table = begin_table,
    .row = write_row,
    .table_end = end_table,
    .launch = write_launch,
    .metrics = write_metrics,
    .missing = write_missing,
    .drawing = write_drawing,
    .series = write_series,
    .verdict = write_verdict,
    .messages = write_messages,
    .source_lines = write_source_lines,
    .source_code = write_source_code,
    .stacks = write_stacks,
    .summary = write_summary,
    .note = write_note,
    .gap = write_gap,
    .account = write_account,
    .end = end,
};

void kp_write_text_writer_init(struct kp_text_writer *t, const struct kp_sink *sink, const struct kp_display *d)
{
    *t = (struct kp_text_writer){.base = {.kind = &kind, .out = {.sink = sink, .display = d}}};
}
