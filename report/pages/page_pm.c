/* The page pm: all that was sampled while kernels ran, as timelines, or in CSV each sample by itself. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/pages/page_body.h"
#include "base/plain.h"
#include "report/write/drawings.h"
#include "report/write/launch.h"

struct text {
    const struct kp_page *page;
    uint64_t without; /* launches that were not sampled */
};

/* The label that a section has for it, else its name. */
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

static int print_launch(struct kp_result *r, void *arg)
{
    struct text *text = arg;
    struct kp_out o = {.sink = text->page->out, .display = text->page->display};
    text->without += !r->n_series;
    if (!r->n_series)
        return 0;
    struct kp_series_row *rows = calloc(r->n_series, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_series; i++)
        rows[i] = (struct kp_series_row){label_of(&r->series[i]), &r->series[i]};
    kp_launch_head(&o, &r->launch, false);
    kp_series_draw(&o, rows, r->n_series, kp_series_dropped(r));
    kp_out_print(&o, "\n");
    free(rows);
    return o.rc;
}

int kp_pm_text(const struct kp_page *p)
{
    struct text text = {p, 0};
    struct kp_out o = {.sink = p->out, .display = p->display};
    char number[KP_NUMBER_MAX];
    int rc = kp_page_each(p, print_launch, &text);
    if (!rc && text.without) {
        kp_format_count(text.without, number);
        kp_out_print(&o, "  %s %s not sampled: the section PmSampling was not collected there\n\n", number,
                     text.without == 1 ? "launch was" : "launches were");
    }
    return rc ? rc : o.rc;
}

/* --- CSV --- */

static void write_sample(struct kp_csv *to, const struct kp_page *p, const struct kp_launch_info *l,
                         const struct kp_series *s, size_t i)
{
    char time[KP_PLAIN_MAX], value[KP_PLAIN_MAX];
    kp_plain_real(s->start_ns + (double)i * s->interval_ns, time);
    if (isnan(s->values[i]))
        snprintf(value, sizeof value, "%s", KP_NO_VALUE);
    else
        kp_plain_real(s->values[i], value);
    if (p->shared)
        kp_csv_process(to, p->session);
    kp_csv_formatted(to, "%" PRIu64, l->id);
    kp_csv_field(to, s->name);
    kp_csv_field(to, s->unit);
    kp_csv_formatted(to, "%zu", i);
    kp_csv_field(to, time);
    kp_csv_field(to, value);
    kp_csv_end_row(to);
}

struct rows {
    const struct kp_page *page;
    struct kp_csv *to;
};

static int write_launch(struct kp_result *r, void *arg)
{
    const struct rows *rows = arg;
    for (size_t i = 0; i < r->n_series; i++)
        for (size_t j = 0; j < r->series[i].n_values; j++)
            write_sample(rows->to, rows->page, &r->launch, &r->series[i], j);
    return ferror(rows->to->to) ? -EIO : 0;
}

int kp_pm_csv(const struct kp_page *pages, size_t n, struct kp_csv *to)
{
    static const char *const headings[] = {"ID", "Metric Name", "Metric Unit", "Sample", "Time (ns)", "Metric Value"};
    int rc = 0;
    if (pages->shared)
        kp_csv_process_headings(to);
    kp_csv_fields(to, headings, sizeof headings / sizeof *headings);
    kp_csv_end_row(to);
    for (size_t i = 0; !rc && i < n; i++)
        rc = kp_page_each(&pages[i], write_launch, &(struct rows){&pages[i], to});
    return rc;
}
