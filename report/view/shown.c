#include "report/view/shown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/define/groups.h"

const char kp_metrics_title[] = "Command line profiler metrics";

int kp_lines_of_metrics(const char *list, const struct kp_view *v, struct kp_lines *out)
{
    out->note = v->result->launch.note;
    return kp_lines_of_list(list, v, out);
}

/* --- the section of one pass in place of others --- */

static int select_quietly(const char *set, const char *sections, struct kp_wanted *w)
{
    char *err = NULL;
    int rc = kp_sections_select(set, sections, &w->sections, &w->n, &err);
    free(err);
    return rc;
}

static bool is_known(const char *set)
{
    struct kp_wanted w = {0};
    int rc = select_quietly(set, "", &w);
    free(w.sections);
    return !rc;
}

/* Selects without sections from a folder of section files that is no longer loaded. Only a session's list has such
 * sections, and only by identifier: this runs for each launch, so nothing is matched or searched here. */
static int select_known(const char *set, const char *sections, struct kp_wanted *w)
{
    char *known = calloc(1, strlen(sections) + 1), *end = known, *word;
    const char *item;
    size_t len;
    int rc = known ? 0 : -ENOMEM;
    while (!rc && kp_list_next(&sections, &item, &len)) {
        rc = (word = strndup(item, len)) ? 0 : -ENOMEM;
        if (!rc && kp_section_find(word))
            end = stpcpy(end > known ? stpcpy(end, ",") : end, word);
        free(word);
    }
    if (!rc)
        rc = select_quietly(is_known(set) ? set : "", known, w);
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
    for (size_t i = 0; i < w->n; i++) /* metrics that rules need are collected for them */
        if (kp_rule_inputs(w->sections[i]->id, l->cc_major, l->cc_minor, is_input, (void *)(uintptr_t)metric))
            return true;
    return false;
}

/* Knows it by a metric that nobody asked for. The duration may be there without it: the face of ncu always counts it.
 */
bool kp_has_quick_instead(const struct kp_view *v, const struct kp_wanted *asked)
{
    const struct kp_section *quick = kp_section_quick();
    const struct kp_launch_info *l = &v->result->launch;
    if (l->passes != 1 && l->groups_counted == l->groups)
        return false;
    for (size_t i = 0; i < quick->n_rows; i++) {
        const struct kp_row *row = &quick->rows[i];
        bool tells = row->source == KP_SRC_COUNTER && strcmp(row->metric, "gpu__time_duration.sum") != 0;
        if (tells && kp_result_find(v->result, row->metric) && !is_wanted(asked, row->metric, v))
            return true;
    }
    return false;
}

/* --- a launch --- */

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

/* Leaves out sections of other devices, and chosen ones that were not collected; kp_listed_check reports those. */
static void leave_out_absent(const struct kp_display *d, struct kp_shown *s)
{
    const struct kp_result *r = s->view.result;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct kp_section *one = s->sections[i];
        if (kp_cc_matches(one->cc, r->launch.cc_major, r->launch.cc_minor) &&
            (!d->choose || kp_shown_section_is_collected(one, s->view.session, r)))
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

/* Applies the rules of the session's sections and of the chosen ones. */
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
        rc = kp_find_wanted(kp_or_empty(s->set), kp_or_empty(s->sections), kp_or_empty(s->metrics), &asked);
    if (!rc && d->choose)
        rc = kp_find_wanted(kp_or_empty(d->set), kp_or_empty(d->sections), kp_or_empty(d->metrics), &chosen);
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

bool kp_shown_is_asked_for(const struct kp_shown *s, size_t at)
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
        if (details == KP_DETAILS_HEADER || !kp_shown_is_asked_for(s, at))
            end = header;
        else if (details == KP_DETAILS_BODY)
            from = header;
        rc = kp_lines_of_rows(section, from, end, &s->view, kp_shown_is_asked_for(s, at), out);
    }
    kp_lines_sort(out);
    return rc;
}
