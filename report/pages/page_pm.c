/* The page pm: all series sampled while kernels ran. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/pages/page_body.h"

struct sampled {
    struct kp_writer *to;
    uint64_t without; /* launches that were not sampled */
    const char *note; /* on what was sampled; NULL = none */
};

/* Returns the row of a section that the series has, NULL if none does; *body is the row that opens its body. */
static const struct kp_row *row_of(const struct kp_series *series, const struct kp_row **body)
{
    size_t n;
    const struct kp_section *s = kp_sections(&n);
    *body = NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < s[i].n_rows; j++) {
            const struct kp_row *row = &s[i].rows[j];
            *body = row->kind == KP_ROW_BODY ? row : *body;
            if (row->source == KP_SRC_PM && row->kind == KP_ROW_ITEM && !strcmp(row->metric, series->name))
                return row;
        }
    return NULL;
}

/* Labels the series as a section does, else by its name. */
static struct kp_series_row labelled(struct sampled *s, const struct kp_series *series)
{
    const struct kp_row *body, *row = row_of(series, &body);
    if (row && body && *body->group)
        s->note = body->group;
    return (struct kp_series_row){row ? row->label : series->name, series};
}

static int write_pm_launch(struct kp_result *r, void *arg)
{
    struct sampled *s = arg;
    s->without += !r->n_series;
    if (!r->n_series)
        return 0;
    struct kp_series_row *rows = calloc(r->n_series, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_series; i++)
        rows[i] = labelled(s, &r->series[i]);
    s->to->launch = &r->launch;
    kp_write_launch(s->to, false);
    kp_write_series(s->to, rows, r->n_series, kp_view_series_dropped(r));
    kp_write_gap(s->to);
    free(rows);
    return s->to->out.rc;
}

static void write_note(struct kp_writer *w, const char *note)
{
    if (!note)
        return;
    kp_write_note(w, KP_LEVEL_LAUNCH, "Note", note);
    kp_write_gap(w);
}

int kp_page_pm(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    static const char *const fields[] = {"Metric Name", "Metric Unit", "Sample", "Time (ns)", "Metric Value"};
    static const struct kp_layout layout = {
        .start = KP_START_ID, .fields = fields, .n = sizeof fields / sizeof *fields};
    int rc = 0;
    kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        struct sampled sampled = {.to = w};
        kp_page_enter(&pages[i], w);
        rc = kp_page_each(&pages[i], write_pm_launch, &sampled);
        if (!rc)
            write_note(w, sampled.note);
        if (!rc && sampled.without)
            kp_page_tell_without(w, sampled.without, "launch was", "launches were",
                                 "not sampled: the section PmSampling was not collected there");
    }
    return rc;
}
