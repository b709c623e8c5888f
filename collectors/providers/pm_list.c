#include "collectors/providers/pm_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "report/define/groups.h"

/* The callbacks of the walk over the sections and the list. */
struct walk {
    int major, minor;
    /* Called for each metric; `listed`: by the user. Returns 0 to continue; anything else ends the walk. */
    int (*metric)(const char *name, size_t len, bool listed, void *arg);
    void *arg;
};

static int walk_rows(const struct walk *w, const struct kp_row *rows, size_t n)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++)
        if (kp_cc_matches(rows[i].cc, w->major, w->minor))
            rc = w->metric(rows[i].metric, strlen(rows[i].metric), false, w->arg);
    return rc;
}

static int walk_section(const struct walk *w, const struct kp_section *s)
{
    int rc = 0;
    if (!kp_cc_matches(s->cc, w->major, w->minor))
        return 0;
    for (size_t i = kp_section_body_end(s, 0), end; !rc && i < s->n_rows; i = end) {
        end = kp_section_body_end(s, i + 1);
        if (s->rows[i].body == KP_BODY_SERIES && kp_cc_matches(s->rows[i].cc, w->major, w->minor))
            rc = walk_rows(w, &s->rows[i + 1], end - i - 1);
    }
    return rc;
}

static int walk_all(const struct walk *w, const struct kp_section *const *sections, size_t n, const char *metrics)
{
    const char *item;
    size_t len, mark = strlen(KP_SAMPLED);
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = walk_section(w, sections[i]);
    while (!rc && kp_word_next(&metrics, &item, &len))
        if (len > mark && !strncmp(item, KP_SAMPLED, mark))
            rc = w->metric(item + mark, len - mark, true, w->arg);
    return rc;
}

/* ---- is there any ---- */

static int end_walk(const char *name, size_t len, bool listed, void *arg)
{
    (void)name, (void)len, (void)listed, (void)arg;
    return 1;
}

bool kp_providers_pm_wanted(int major, int minor, const struct kp_section *const *sections, size_t n_sections,
                            const char *metrics)
{
    const struct walk w = {major, minor, end_walk, NULL};
    return walk_all(&w, sections, n_sections, metrics);
}

/* ---- which ones ---- */

struct taker {
    struct kp_host *host;
    struct kp_pm_list *out;
};

static bool has_name(const struct kp_pm_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->names[i], name))
            return true;
    return false;
}

static int take(const char *name, size_t len, bool listed, void *arg)
{
    const struct taker *t = arg;
    struct kp_pm_list *l = t->out;
    struct kp_metric_props props;
    char *copy = strndup(name, len);
    if (!copy)
        return -ENOMEM;
    if (has_name(l, copy) || (!listed && kp_host_metric(t->host, copy, &props))) {
        free(copy);
        return 0;
    }
    if (!KP_ROOM(l->names, l->n)) {
        free(copy);
        return -ENOMEM;
    }
    l->names[l->n++] = copy;
    return 0;
}

int kp_providers_pm_list(struct kp_host *host, int major, int minor, const struct kp_section *const *sections,
                         size_t n_sections, const char *metrics, struct kp_pm_list *out)
{
    struct taker t = {host, out};
    const struct walk w = {major, minor, take, &t};
    *out = (struct kp_pm_list){.n = 0};
    int rc = walk_all(&w, sections, n_sections, metrics);
    if (rc)
        kp_providers_pm_list_free(out);
    return rc;
}

void kp_providers_pm_list_free(struct kp_pm_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->names[i]);
    free(l->names);
    *l = (struct kp_pm_list){.n = 0};
}
