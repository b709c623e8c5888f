/* Assigns metrics to providers: those of sections and of the user's list. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"
#include "base/room.h"
#include "base/text.h"
#include "collectors/providers/pm_list.h"
#include "collectors/providers/provider.h"
#include "report/define/groups.h"

/* The row sources that providers collect. PM sampling is found by series, see pm_list.h. */
static unsigned kind_of(enum kp_source source)
{
    return source == KP_SRC_PCSAMP ? KP_PROVIDER_PCSAMP : source == KP_SRC_SASS ? KP_PROVIDER_SASS : 0;
}

static bool has(const char *cc, int major, int minor)
{
    return major == KP_ANY_CC || kp_cc_matches(cc, major, minor);
}

/* A metric that a list may name. */
struct source_metric {
    const char *name, *unit;
    unsigned kind;
};

/* Calls `fn` for each metric, sometimes repeatedly, until it returns false. */
static void each_metric(int major, int minor, bool (*fn)(const struct source_metric *m, void *arg), void *arg)
{
    static const struct source_metric own[] = {
#define KP_SASS(metric, shown, unit) {shown, unit, KP_PROVIDER_SASS},
#include "collectors/providers/sass_metrics.def"
#define KP_PCSAMP(name, unit, value) {name, unit, KP_PROVIDER_PCSAMP},
#include "collectors/providers/pcsamp_metrics.def"
#define KP_MIX_OF(name, unit, how, counted) {name, unit, KP_PROVIDER_SASS},
#define KP_SPILL(name, unit, begin, end)    {name, unit, KP_PROVIDER_SASS},
#include "report/define/source_metrics.def"
    };
    size_t n;
    const struct kp_section *sections = kp_sections_builtin(&n);
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (!fn(&own[i], arg))
            return;
    for (size_t s = 0; s < n; s++)
        for (size_t r = 0; r < sections[s].n_rows; r++) {
            const struct kp_row *row = &sections[s].rows[r];
            struct source_metric m = {row->metric, kp_row_unit(row), kind_of(row->source)};
            if (m.kind && has(row->cc, major, minor) && !fn(&m, arg))
                return;
        }
}

/* Metrics already passed to `fn`, so that each is passed once. */
struct seen {
    const char **names;
    size_t n;
    int (*fn)(const char *name, const char *unit, void *arg);
    void *arg;
    int rc;
};

static bool see(const struct source_metric *m, void *arg)
{
    struct seen *s = arg;
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->names[i], m->name))
            return true;
    s->rc = KP_ROOM(s->names, s->n) ? 0 : -ENOMEM;
    if (s->rc)
        return false;
    s->names[s->n++] = m->name;
    s->rc = s->fn(m->name, m->unit, s->arg);
    return !s->rc;
}

int kp_providers_metrics(int major, int minor, int (*fn)(const char *name, const char *unit, void *arg), void *arg)
{
    struct seen s = {.fn = fn, .arg = arg};
    each_metric(major, minor, see, &s);
    free(s.names);
    return s.rc;
}

/* ---- needs of an item of the user's list ---- */

struct item {
    const char *text;
    size_t len;
    const struct kp_pattern *pattern; /* NULL = the exact name */
    int major, minor;
    unsigned kinds;
};

static bool look_at_metric(const struct source_metric *m, void *arg)
{
    struct item *i = arg;
    if (i->pattern ? kp_pattern_match(i->pattern, m->name)
                   : !strncmp(m->name, i->text, i->len) && m->name[i->len] == '\0')
        i->kinds |= m->kind;
    return i->pattern || !i->kinds;
}

static int look_at_group(const struct kp_group *g, void *arg)
{
    struct item *i = arg;
    if (!strncmp(g->name, i->text, i->len) && g->name[i->len] == '\0')
        for (size_t r = g->first; r < g->end; r++)
            if (has(g->section->rows[r].cc, i->major, i->minor))
                i->kinds |= kind_of(g->section->rows[r].source);
    return 0;
}

static bool takes_off(struct item *i, const char *mark)
{
    size_t n = strlen(mark);
    if (i->len <= n || strncmp(i->text, mark, n) != 0)
        return false;
    i->text += n;
    i->len -= n;
    return true;
}

/* Ignores invalid expressions; the planner reports them. */
static unsigned kinds_of_item(const char *text, size_t len, int major, int minor)
{
    struct item i = {.text = text, .len = len, .major = major, .minor = minor};
    if (takes_off(&i, KP_GROUP)) {
        kp_groups_each(major, minor, look_at_group, &i);
        return i.kinds;
    }
    struct kp_pattern *pattern = NULL;
    char *why = NULL, *copy = takes_off(&(struct item){.text = text, .len = len}, "regex:") ? strndup(text, len) : NULL;
    if (copy && !kp_pattern_new(copy, &pattern, &why))
        i.pattern = pattern;
    each_metric(i.pattern ? major : KP_ANY_CC, minor, look_at_metric, &i);
    kp_pattern_free(pattern);
    free(why);
    free(copy);
    return i.kinds;
}

bool kp_providers_is_metric(const char *name)
{
    struct item i = {.text = name, .len = strlen(name)};
    each_metric(KP_ANY_CC, 0, look_at_metric, &i);
    return i.kinds != 0;
}

unsigned kp_providers_wanted(const struct kp_section *const *sections, size_t n, const char *metrics, int major,
                             int minor)
{
    unsigned wanted =
        major != KP_ANY_CC && kp_providers_pm_wanted(major, minor, sections, n, metrics) ? KP_PROVIDER_PM : 0;
    for (size_t s = 0; s < n; s++)
        for (size_t r = 0; has(sections[s]->cc, major, minor) && r < sections[s]->n_rows; r++)
            if (has(sections[s]->rows[r].cc, major, minor))
                wanted |= kind_of(sections[s]->rows[r].source);
    const char *item;
    size_t len;
    while (kp_word_next(&metrics, &item, &len))
        wanted |= kinds_of_item(item, len, major, minor);
    return wanted;
}

static bool is_of_series(const struct kp_row *row)
{
    return row->source == KP_SRC_PM && row->kind == KP_ROW_ITEM;
}

static unsigned kind_told_by(const struct kp_row *row)
{
    return row->kind == KP_ROW_BODY || is_of_series(row) ? 0
           : row->source == KP_SRC_PM                    ? KP_PROVIDER_PM
                                                         : kind_of(row->source);
}

/* Passes on one item of the list, which consists of full names. */
static int asked_by_name(const char *item, size_t len, unsigned bit, int (*fn)(const char *metric, void *arg),
                         void *arg)
{
    struct item i = {.text = item, .len = len};
    if (takes_off(&i, KP_SAMPLED))
        i.kinds = KP_PROVIDER_PM;
    else
        each_metric(KP_ANY_CC, 0, look_at_metric, &i);
    char *name = i.kinds & bit ? strndup(i.text, i.len) : NULL;
    int rc = name ? fn(name, arg) : i.kinds & bit ? -ENOMEM : 0;
    free(name);
    return rc;
}

int kp_providers_each_asked(const struct kp_providers_setup *setup, unsigned bit,
                            int (*fn)(const char *metric, void *arg), void *arg)
{
    const char *list = setup->metrics ? setup->metrics : "", *item;
    size_t len;
    int rc = 0;
    for (size_t s = 0; !rc && s < setup->n_sections; s++)
        for (size_t r = 0; !rc && r < setup->sections[s]->n_rows; r++) {
            const struct kp_row *row = &setup->sections[s]->rows[r];
            if (kind_told_by(row) & bit && has(setup->sections[s]->cc, setup->cc_major, setup->cc_minor) &&
                has(row->cc, setup->cc_major, setup->cc_minor))
                rc = fn(row->metric, arg);
        }
    while (!rc && kp_word_next(&list, &item, &len))
        rc = asked_by_name(item, len, bit, fn, arg);
    return rc;
}

int kp_providers_cost(const struct kp_providers_query *q, size_t *metrics, size_t *passes)
{
    unsigned wanted = kp_providers_wanted(q->sections, q->n_sections, "", q->major, q->minor);
    int rc = 0;
    for (size_t k = 0; !rc && kp_provider_table[k]; k++) {
        const struct kp_provider *p = kp_provider_table[k];
        if (!(wanted & p->bit))
            continue;
        if (p->cost)
            rc = p->cost(q, metrics, passes);
        else
            ++*passes;
    }
    return rc;
}
