#include "report/view/narrow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/judge/rules.h"
#include "report/view/lines.h"
#include "report/view/shown.h"

struct inputs {
    struct kp_lines *lines;
    const struct kp_result *result;
};

static int add_input(const struct kp_rule_input *input, void *arg)
{
    const struct inputs *in = arg;
    const struct kp_metric *m = kp_result_find(in->result, input->metric);
    if (!m)
        return 0;
    return kp_lines_add(in->lines, &(struct kp_line){KP_ROW_EXTRA, "", m->name, m->name, m, NULL, NULL});
}

/* Adds all metrics of a section: its rows, and the inputs of its rules. */
static int add_section(const struct kp_section *s, const struct kp_view *v, struct kp_lines *lines)
{
    const struct kp_launch_info *l = &v->result->launch;
    int rc = kp_lines_of_rows(s, 0, s->n_rows, v, false, lines);
    return rc ? rc : kp_rule_inputs(s->id, l->cc_major, l->cc_minor, add_input, &(struct inputs){lines, v->result});
}

/* Adds the lines of the chosen sections and of the list. */
static int add_chosen(const struct kp_display *d, const struct kp_view *v, struct kp_lines *lines)
{
    struct kp_wanted chosen = {0};
    int rc = kp_find_wanted(kp_or_empty(d->set), kp_or_empty(d->sections), kp_or_empty(d->metrics), &chosen);
    for (size_t i = 0; !rc && i < chosen.n; i++)
        rc = add_section(chosen.sections[i], v, lines);
    if (!rc)
        rc = kp_lines_of_metrics(chosen.metrics, v, lines);
    free(chosen.sections);
    return rc;
}

/* Keeps the metrics of lines, each once. */
static void keep(struct kp_result *out, const struct kp_result *r, const struct kp_lines *lines)
{
    size_t at = 0;
    out->n_metrics = 0;
    for (size_t i = 0; i < r->n_metrics; i++) {
        while (at < lines->n && strcmp(lines->at[at].name, r->metrics[i].name) < 0)
            at++;
        if (at < lines->n && !strcmp(lines->at[at].name, r->metrics[i].name))
            out->metrics[out->n_metrics++] = r->metrics[i];
    }
}

int kp_narrow(const struct kp_display *d, const struct kp_session *s, const struct kp_result *r, struct kp_result *out)
{
    struct kp_lines lines = {0};
    const struct kp_view view = {.session = s, .result = r};
    *out = *r;
    out->metrics = calloc(r->n_metrics + 1, sizeof *out->metrics);
    if (!out->metrics)
        return -ENOMEM;
    out->cap_metrics = r->n_metrics + 1;
    int rc = d->choose ? add_chosen(d, &view, &lines) : 0;
    if (!rc && d->choose) {
        kp_lines_sort(&lines);
        keep(out, r, &lines);
    } else if (!rc && r->n_metrics) {
        memcpy(out->metrics, r->metrics, r->n_metrics * sizeof *out->metrics);
    }
    kp_lines_free(&lines);
    if (rc)
        free(out->metrics);
    return rc;
}
