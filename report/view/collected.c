#include <string.h>

#include "base/text.h"
#include "report/define/groups.h"
#include "report/view/lines.h"

/* Breakdowns need no check: they are collected with their throughput. */
bool kp_shown_section_has_any(const struct kp_section *s, const struct kp_result *r)
{
    for (size_t i = 0; i < s->n_rows; i++)
        if (kp_result_find(r, s->rows[i].metric) || kp_result_find_series(r, s->rows[i].metric))
            return true;
    return false;
}

static bool is_named(const struct kp_section *section, const struct kp_session *s)
{
    return (s->sections && kp_list_has(s->sections, section->id)) || (s->set && kp_section_in_set(section, s->set));
}

/* Tells how many rows of the kinds `first` to `last` apply to the launch, and how many of them it has. */
static void count_rows(const struct kp_section *section, enum kp_row_kind first, enum kp_row_kind last,
                       const struct kp_result *r, size_t *wanted, size_t *found)
{
    *wanted = *found = 0;
    for (size_t i = 0; i < section->n_rows; i++) {
        const struct kp_row *row = &section->rows[i];
        if (row->kind < first || row->kind > last || !strncmp(row->metric, KP_BREAKDOWN, strlen(KP_BREAKDOWN)) ||
            !kp_cc_matches(row->cc, r->launch.cc_major, r->launch.cc_minor))
            continue;
        ++*wanted;
        *found += kp_result_find(r, row->metric) || kp_result_find_series(r, row->metric);
    }
}

bool kp_shown_section_is_collected(const struct kp_section *section, const struct kp_session *s,
                                   const struct kp_result *r)
{
    size_t wanted, found;
    if (is_named(section, s))
        return kp_shown_section_has_any(section, r);
    count_rows(section, KP_ROW_HEADER, KP_ROW_HEADER, r, &wanted, &found);
    if (wanted)
        return 2 * found > wanted;
    count_rows(section, KP_ROW_ITEM, KP_ROW_TRAFFIC_CLOCK, r, &wanted, &found);
    return wanted && found == wanted;
}
