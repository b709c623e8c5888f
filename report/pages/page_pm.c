/* The page pm: all series sampled while kernels ran. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/pages/page_body.h"

struct sampled {
    struct kp_writer *to;
    uint64_t without; /* launches that were not sampled */
};

/* Returns the label that a section gives the series, else its name. */
static const char *label_of(const struct kp_series *series)
{
    size_t n;
    const struct kp_section *s = kp_sections(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < s[i].n_rows; j++)
            if (s[i].rows[j].source == KP_SRC_PM && !strcmp(s[i].rows[j].metric, series->name))
                return s[i].rows[j].label;
    return series->name;
}

static int write_launch(struct kp_result *r, void *arg)
{
    struct sampled *s = arg;
    s->without += !r->n_series;
    if (!r->n_series)
        return 0;
    struct kp_series_row *rows = calloc(r->n_series, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_series; i++)
        rows[i] = (struct kp_series_row){label_of(&r->series[i]), &r->series[i]};
    s->to->launch = &r->launch;
    kp_write_launch(s->to, false);
    kp_write_series(s->to, rows, r->n_series, kp_series_dropped(r));
    kp_write_gap(s->to);
    free(rows);
    return s->to->out.rc;
}

int kp_pm_page(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    static const char *const fields[] = {"Metric Name", "Metric Unit", "Sample", "Time (ns)", "Metric Value"};
    static const struct kp_layout layout = {
        .start = KP_START_ID, .fields = fields, .n = sizeof fields / sizeof *fields};
    int rc = 0;
    kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        struct sampled sampled = {.to = w};
        kp_page_enter(&pages[i], w);
        rc = kp_page_each(&pages[i], write_launch, &sampled);
        if (!rc && sampled.without)
            kp_page_tell_without(w, sampled.without, "launch was", "launches were",
                                 "not sampled: the section PmSampling was not collected there");
    }
    return rc;
}
