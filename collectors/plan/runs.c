#include "collectors/plan/runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/plan/plan_internal.h"

static const char *const kinds[KP_RUNS_KINDS] = {
    [KP_RUNS_COUNTED] = "counted", [KP_RUNS_PART] = "part",       [KP_RUNS_SEVERAL] = "several",
    [KP_RUNS_LARGEST] = "largest", [KP_RUNS_DERIVED] = "derived", [KP_RUNS_CANNOT] = "cannot",
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
    if (m->passes)
        return KP_RUNS_SEVERAL;
    return m->part ? KP_RUNS_PART : KP_RUNS_COUNTED;
}

/* Writes the key and the clause. */
static void write_why(const struct kp_why *why, char *out, size_t size)
{
    *out = '\0';
    if (why->reason)
        snprintf(out, size, "%s %s", kp_reason_key(why->reason), kp_why_text(why));
}

struct kp_why kp_plan_runs_why(const struct kp_runs_line *line)
{
    const char *end = strchr(line->text, ' ');
    char key[64];
    snprintf(key, sizeof(key), "%.*s", end ? (int)(end - line->text) : 0, line->text);
    return kp_why_of(kp_reason_find(key), end ? (char *)end + 1 : NULL);
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
        char several[64], cannot[1024];
        snprintf(several, sizeof(several), "%zu%s", m->passes, m->part ? " part" : "");
        write_why(&m->why, cannot, sizeof(cannot));
        const char *more = kind == KP_RUNS_LARGEST   ? m->parts
                           : kind == KP_RUNS_SEVERAL ? several
                           : kind == KP_RUNS_CANNOT  ? cannot
                                                     : "";
        int list = kind == KP_RUNS_CANNOT || kind == KP_RUNS_LARGEST ? m->part : m->group;
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

static bool is_counted(enum kp_runs_kind kind)
{
    return kind == KP_RUNS_COUNTED || kind == KP_RUNS_PART || kind == KP_RUNS_SEVERAL;
}

bool kp_plan_runs_is_part(const struct kp_runs_line *line)
{
    bool marked = line->kind == KP_RUNS_CANNOT || line->kind == KP_RUNS_LARGEST;
    return line->kind == KP_RUNS_PART || (marked && line->list > 0) ||
           (line->kind == KP_RUNS_SEVERAL && strchr(line->text, ' '));
}

size_t kp_plan_runs_passes(const struct kp_runs_line *line)
{
    return line->kind == KP_RUNS_SEVERAL ? strtoul(line->text, NULL, 10) : 1;
}

static int take_line(const struct kp_runs_line *line, void *arg)
{
    static const int groups[] = {[KP_RUNS_LARGEST] = KP_NOT_A_COUNTER, [KP_RUNS_CANNOT] = KP_CANNOT_COLLECT};
    struct kp_plan *p = arg;
    bool counted = is_counted(line->kind), part = kp_plan_runs_is_part(line);
    size_t end = (size_t)line->list + kp_plan_runs_passes(line);
    struct kp_planned *m =
        part ? kp_plan_add(p, line->name, line->unit, KP_NOT_SCHEDULED) : kp_plan_find(p, line->name);
    if (part && !m)
        return -ENOMEM;
    if (counted && end > p->runs)
        p->runs = end;
    if (!m || m->group != KP_NOT_SCHEDULED || line->kind == KP_RUNS_DERIVED)
        return 0;
    m->part = part;
    m->passes = line->kind == KP_RUNS_SEVERAL ? kp_plan_runs_passes(line) : 0;
    m->group = counted ? line->list : groups[line->kind];
    if (line->kind == KP_RUNS_CANNOT)
        m->why = kp_why_copy(kp_plan_runs_why(line));
    return line->kind != KP_RUNS_LARGEST || (m->parts = kp_strdup(line->text)) ? 0 : -ENOMEM;
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
        bool own = m->group >= 0 && list >= m->group && list < m->group + (int)(m->passes ? m->passes : 1);
        m->derived = false;
        if (own) {
            names[n++] = m->name;
            p->several = m->passes;
            p->pass = (size_t)(list - m->group);
        }
        own &= !m->passes || p->pass + 1 == m->passes; /* only the last pass gives values */
        if (m->group >= 0 || m->group == KP_NOT_SCHEDULED)
            m->group = own ? 0 : KP_OTHER_RUN;
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
