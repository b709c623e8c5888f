#include "report/write/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "report/define/units.h"

/* Calls the function of the format, if the format has it and nothing failed before. */
#define KP_WRITE(function, ...)                                                                                        \
    do {                                                                                                               \
        if (!w->out.rc && w->kind->function)                                                                           \
            w->kind->function(__VA_ARGS__);                                                                            \
    } while (0)

void kp_write_begin(struct kp_writer *w, const struct kp_layout *layout)
{
    KP_WRITE(begin, w, layout);
}

void kp_write_field(struct kp_writer *w, size_t field, const char *text)
{
    KP_WRITE(field, w, field, text);
}

void kp_write_process(struct kp_writer *w)
{
    KP_WRITE(process, w);
}

void kp_write_heading(struct kp_writer *w, enum kp_level level, const char *text)
{
    KP_WRITE(heading, w, level, text);
}

void kp_write_facts(struct kp_writer *w, const struct kp_facts *facts)
{
    KP_WRITE(facts, w, facts);
}

void kp_write_table(struct kp_writer *w, const struct kp_table *table)
{
    KP_WRITE(table, w, table);
}

void kp_write_row(struct kp_writer *w, const char *const *cells)
{
    KP_WRITE(row, w, cells);
}

void kp_write_table_end(struct kp_writer *w)
{
    KP_WRITE(table_end, w);
}

void kp_write_listed(struct kp_writer *w, const struct kp_shown *s, bool full)
{
    KP_WRITE(listed, w, s, full);
}

void kp_write_launch(struct kp_writer *w, bool quick)
{
    KP_WRITE(launch, w, quick);
}

void kp_write_metrics(struct kp_writer *w, const struct kp_lines *lines)
{
    KP_WRITE(metrics, w, lines);
}

void kp_write_missing(struct kp_writer *w, const struct kp_lines *lines)
{
    KP_WRITE(missing, w, lines);
}

void kp_write_drawing(struct kp_writer *w, enum kp_body body, const struct kp_lines *lines)
{
    KP_WRITE(drawing, w, body, lines);
}

void kp_write_series(struct kp_writer *w, const struct kp_series_row *rows, size_t n, double dropped)
{
    KP_WRITE(series, w, rows, n, dropped);
}

void kp_write_verdict(struct kp_writer *w, const struct kp_verdict *verdict)
{
    KP_WRITE(verdict, w, verdict);
}

void kp_write_messages(struct kp_writer *w, const struct kp_messages *messages, const char *section)
{
    KP_WRITE(messages, w, messages, section);
}

void kp_write_source_lines(struct kp_writer *w, const struct kp_view *v, size_t limit, bool help)
{
    KP_WRITE(source_lines, w, v, limit, help);
}

void kp_write_source_code(struct kp_writer *w, const struct kp_view *v, const struct kp_source_function *f)
{
    KP_WRITE(source_code, w, v, f);
}

void kp_write_stacks(struct kp_writer *w, struct kp_stack_totals *stacks)
{
    KP_WRITE(stacks, w, stacks);
}

void kp_write_summary(struct kp_writer *w, const struct kp_summary *summary)
{
    KP_WRITE(summary, w, summary);
}

void kp_write_note(struct kp_writer *w, enum kp_level level, const char *mark, const char *text)
{
    KP_WRITE(note, w, level, mark, text);
}

void kp_write_rest(struct kp_writer *w, size_t rest)
{
    char number[KP_NUMBER_MAX], text[KP_NUMBER_MAX + 64];
    kp_format_count(rest, number);
    snprintf(text, sizeof text, "and %s more: --top 0 lists all", number);
    if (rest)
        kp_write_note(w, KP_LEVEL_PAGE, NULL, text);
}

void kp_write_gap(struct kp_writer *w)
{
    KP_WRITE(gap, w);
}

void kp_write_account(struct kp_writer *w, const struct kp_choice *choice)
{
    KP_WRITE(account, w, choice);
}

/* Frees everything the writer holds, even after a failure. */
int kp_write_end(struct kp_writer *w)
{
    if (w->kind->end)
        w->kind->end(w);
    return w->out.rc;
}

int kp_facts_add(struct kp_facts *f, const char *attribute, const char *value, bool is_list)
{
    if (!value || !*value)
        return 0;
    if (!KP_ROOM(f->at, f->n))
        return -ENOMEM;
    struct kp_fact *fact = &f->at[f->n];
    *fact = (struct kp_fact){strdup(attribute), strdup(value), is_list};
    if (fact->attribute && fact->value) {
        f->n++;
        return 0;
    }
    free(fact->attribute);
    free(fact->value);
    return -ENOMEM;
}

void kp_facts_free(struct kp_facts *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->at[i].attribute);
        free(f->at[i].value);
    }
    free(f->at);
    *f = (struct kp_facts){.title = NULL};
}
