#include "report/view/roofs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct kp_rates *kp_roofs_find(const struct kp_roofs *r, const char *group)
{
    size_t mark = strlen(KP_POINT_MARK);
    bool is_point = !strncmp(group, KP_POINT_MARK, mark);
    const char *name = is_point ? group + mark : group;
    for (size_t i = 0; i < r->n; i++)
        if (r->all[i].is_point == is_point && !strcmp(r->all[i].name, name))
            return &r->all[i];
    return NULL;
}

static struct kp_rates *find_or_add(struct kp_roofs *r, const char *group)
{
    size_t mark = strlen(KP_POINT_MARK);
    bool is_point = !strncmp(group, KP_POINT_MARK, mark);
    struct kp_rates *found = kp_roofs_find(r, group);
    if (found)
        return found;
    r->all[r->n] =
        (struct kp_rates){.name = is_point ? group + mark : group, .is_point = is_point, .work = NAN, .traffic = NAN};
    r->points += is_point;
    return &r->all[r->n++];
}

static double number_of(const struct kp_line *l)
{
    double value;
    return kp_metric_number(l->metric, &value) ? value : NAN;
}

/* Sums the rows of one kind, then multiplies the sums by their clocks. NaN, from a missing value, stays. `begun`: for
 * work and traffic of each roof or point. */
static void add_up(struct kp_roofs *r, const struct kp_lines *l, bool *begun)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct kp_line *line = &l->at[i];
        if (line->kind != KP_ROW_WORK && line->kind != KP_ROW_TRAFFIC)
            continue;
        struct kp_rates *rates = find_or_add(r, line->group);
        double *sum = line->kind == KP_ROW_WORK ? &rates->work : &rates->traffic;
        bool *has = &begun[2 * (size_t)(rates - r->all) + (line->kind == KP_ROW_TRAFFIC)];
        *sum = *has ? *sum + number_of(line) : number_of(line);
        *has = true;
    }
    for (size_t i = 0; i < l->n; i++) {
        const struct kp_line *line = &l->at[i];
        struct kp_rates *rates = find_or_add(r, line->group);
        if (line->kind == KP_ROW_WORK_CLOCK)
            rates->work *= number_of(line);
        else if (line->kind == KP_ROW_TRAFFIC_CLOCK)
            rates->traffic *= number_of(line);
    }
}

/* Counts the equal characters at the ends of two names: "DRAM Roofline (fp16)" is the roof of "DRAM Achieved
 * (fp16)". */
static size_t likeness(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b), head = 0, tail = 0;
    while (a[head] && a[head] == b[head])
        head++;
    while (tail < la - head && tail < lb - head && a[la - 1 - tail] == b[lb - 1 - tail])
        tail++;
    return head + tail;
}

static void find_roofs(struct kp_roofs *r)
{
    for (size_t i = 0; i < r->n; i++)
        for (size_t j = 0; r->all[i].is_point && j < r->n; j++) {
            const struct kp_rates *roof = &r->all[j], **best = &r->all[i].roof;
            if (roof->is_point)
                continue;
            if (!*best || likeness(r->all[i].name, roof->name) > likeness(r->all[i].name, (*best)->name))
                *best = roof;
        }
}

/* Returns the unit of work: the paths of the tensor cores count operations of any type, all others floating-point
 * ones. */
static const char *operation_of(const struct kp_lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].kind == KP_ROW_WORK && strstr(l->at[i].name, "__ops_path_"))
            return "op";
    return "FLOP";
}

int kp_roofs_of(const struct kp_lines *l, struct kp_roofs *out)
{
    bool *begun = calloc(2 * l->n + 1, sizeof *begun);
    *out = (struct kp_roofs){.all = calloc(l->n + 1, sizeof *out->all), .operation = operation_of(l)};
    if (begun && out->all) {
        add_up(out, l, begun);
        find_roofs(out);
        free(begun);
        return 0;
    }
    free(begun);
    kp_roofs_free(out);
    return -ENOMEM;
}

void kp_roofs_free(struct kp_roofs *r)
{
    free(r->all);
    *r = (struct kp_roofs){0};
}

/* Formulas: as defined for rooflines in general. */

double kp_rates_intensity(const struct kp_rates *r)
{
    return r->work / r->traffic;
}

double kp_rates_limit(const struct kp_rates *point)
{
    const struct kp_rates *roof = point->roof;
    if (!roof)
        return NAN;
    double moved = kp_rates_intensity(point) * roof->traffic;
    return point->traffic == 0 || roof->work <= moved ? roof->work : moved;
}
