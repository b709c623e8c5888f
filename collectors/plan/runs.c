#include "collectors/plan/runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/plan/plan_internal.h"

static const char *const kinds[KP_RUNS_KINDS] = {
    [KP_RUNS_COUNTED] = "counted", [KP_RUNS_PART] = "part",     [KP_RUNS_LARGEST] = "largest",
    [KP_RUNS_DERIVED] = "derived", [KP_RUNS_CANNOT] = "cannot",
};

static enum kp_runs_kind kind_of(const struct kp_planned *m)
{
    if (m->parts)
        return KP_RUNS_LARGEST;
    if (m->derived)
        return KP_RUNS_DERIVED;
    if (m->group == KP_CANNOT_COLLECT)
        return KP_RUNS_CANNOT;
    if (m->group < 0)
        return KP_RUNS_KINDS; /* of the launch, or of another provider */
    return m->part ? KP_RUNS_PART : KP_RUNS_COUNTED;
}

char *kp_plan_runs_text(const struct kp_plan *p)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (size_t i = 0; i < p->n_metrics; i++) {
        const struct kp_planned *m = &p->metrics[i];
        enum kp_runs_kind kind = kind_of(m);
        if (kind == KP_RUNS_KINDS)
            continue;
        const char *more = kind == KP_RUNS_LARGEST ? m->parts : kind == KP_RUNS_CANNOT && m->why ? m->why : "";
        int list = kind == KP_RUNS_CANNOT ? m->part : m->group;
        fprintf(f, "%s\t%s\t%s\t%d\t%s\n", kinds[kind], m->name, m->unit, list, more);
    }
    return kp_text_end(f, &text) ? NULL : text;
}

static int read_line(char *text, struct kp_runs_line *line)
{
    char *fields[5];
    size_t n = 0;
    for (; n < 5 && text; n++)
        fields[n] = strsep(&text, n < 4 ? "\t" : "");
    if (n < 5)
        return -EINVAL;
    unsigned kind = 0;
    while (kind < KP_RUNS_KINDS && strcmp(kinds[kind], fields[0]) != 0)
        kind++;
    *line = (struct kp_runs_line){(enum kp_runs_kind)kind, fields[1], fields[2], fields[4], atoi(fields[3])};
    return kind == KP_RUNS_KINDS ? -EINVAL : 0;
}

int kp_plan_runs_each(char *text, int (*fn)(const struct kp_runs_line *line, void *arg), void *arg)
{
    int rc = 0;
    for (char *one; !rc && (one = strsep(&text, "\n"));) {
        struct kp_runs_line line;
        if (!*one)
            continue;
        rc = read_line(one, &line);
        if (!rc)
            rc = fn(&line, arg);
    }
    return rc;
}

/* Makes a part of a throughput known to the plan. */
static int add_part(struct kp_plan *p, const struct kp_runs_line *line)
{
    struct kp_planned *m = kp_plan_add(p, line->name, line->unit, line->list);
    if (m)
        m->part = true;
    return m ? 0 : -ENOMEM;
}

static int take_line(const struct kp_runs_line *line, void *arg)
{
    struct kp_plan *p = arg;
    struct kp_planned *m = kp_plan_find(p, line->name);
    if ((line->kind == KP_RUNS_COUNTED || line->kind == KP_RUNS_PART) && line->list >= (int)p->runs)
        p->runs = (size_t)line->list + 1;
    if (!m)
        return line->kind == KP_RUNS_PART ? add_part(p, line) : 0;
    if (m->group != KP_NOT_SCHEDULED || line->kind == KP_RUNS_DERIVED)
        return 0;
    static const int groups[] = {[KP_RUNS_LARGEST] = KP_NOT_A_COUNTER, [KP_RUNS_CANNOT] = KP_CANNOT_COLLECT};
    bool counted = line->kind == KP_RUNS_COUNTED || line->kind == KP_RUNS_PART;
    m->group = counted ? line->list : groups[line->kind];
    char **text = line->kind == KP_RUNS_LARGEST ? &m->parts : &m->why;
    return counted || (*text = kp_strdup(line->text)) ? 0 : -ENOMEM;
}

int kp_plan_runs_read(struct kp_plan *p, char *text)
{
    return kp_plan_runs_each(text, take_line, p);
}

int kp_plan_runs_keep(struct kp_plan *p, const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                      int list)
{
    const char **names = calloc(p->n_metrics + 1, sizeof(*names));
    size_t n = 0;
    int rc = 0;
    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_metrics; i++) {
        struct kp_planned *m = &p->metrics[i];
        m->derived = false;
        if (m->group >= 0 && m->group == list)
            names[n++] = m->name;
        if (m->group >= 0 || m->group == KP_NOT_SCHEDULED)
            m->group = m->group == list ? 0 : KP_OTHER_RUN;
    }
    if (n)
        rc = (p->groups = calloc(1, sizeof(*p->groups))) ? 0 : -ENOMEM;
    if (n && !rc)
        rc = kp_tables_schedule(c, chip, availability, names, n, p->groups);
    p->n_groups = n && !rc;
    p->passes = p->n_groups;
    free(names);
    return rc;
}
