#include "collectors/providers/providers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/providers/provider.h"
#include "collectors/providers/pm_list.h"
#include "report/define/groups.h"
#include "base/pattern.h"
#include "base/text.h"

/* Samples come first, and before the range profiler: see kp_pcsamp_open. */
static const struct kp_provider *const kinds[KP_PROVIDERS_MOST] = {&kp_provider_pcsamp, &kp_provider_sass,
                                                                   &kp_provider_pm};

/* The sources of rows that are collected here. PM sampling is asked for by series, see pm_list.h. */
static unsigned kind_of(enum kp_source source)
{
    return source == KP_SRC_PCSAMP ? KP_PROVIDER_PCSAMP : source == KP_SRC_SASS ? KP_PROVIDER_SASS : 0;
}

static bool has(const char *cc, int major, int minor)
{
    return major == KP_ANY_CC || kp_cc_matches(cc, major, minor);
}

/* A metric that may be named in a list. */
struct source_metric {
    const char *name, *unit;
    unsigned kind;
};

/* Calls `fn` for each, some of them more than once, until it returns false. */
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

/* The metrics that `fn` was called for, so that it is once for each. */
struct seen {
    const char **names;
    size_t n, cap;
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
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 128;
        const char **grown = realloc(s->names, cap * sizeof(*grown));
        s->rc = grown ? 0 : -ENOMEM;
        if (!grown)
            return false;
        s->names = grown;
        s->cap = cap;
    }
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

/* ---- what an item of the user's list needs ---- */

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

/* An expression that is none is told of by whoever plans for it. */
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
    unsigned wanted = major != KP_ANY_CC && kp_pm_wanted(major, minor, sections, n, metrics) ? KP_PROVIDER_PM : 0;
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

/* One of the list, which has full names alone. */
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

int kp_providers_each_asked(const struct kp_providers_setup *setup, size_t k, int (*fn)(const char *metric, void *arg),
                            void *arg)
{
    const char *list = setup->metrics ? setup->metrics : "", *item;
    size_t len;
    int rc = 0;
    for (size_t s = 0; !rc && s < setup->n_sections; s++)
        for (size_t r = 0; !rc && r < setup->sections[s]->n_rows; r++) {
            const struct kp_row *row = &setup->sections[s]->rows[r];
            if (kind_told_by(row) & kinds[k]->bit && has(setup->sections[s]->cc, setup->cc_major, setup->cc_minor) &&
                has(row->cc, setup->cc_major, setup->cc_minor))
                rc = fn(row->metric, arg);
        }
    while (!rc && kp_word_next(&list, &item, &len))
        rc = asked_by_name(item, len, kinds[k]->bit, fn, arg);
    return rc;
}

int kp_providers_open(const struct kp_providers_setup *setup, struct kp_providers **out)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return -ENOMEM;
    (*out)->setup = *setup;
    return 0;
}

void kp_providers_close(struct kp_providers *x, bool alive)
{
    if (!x)
        return;
    for (size_t k = 0; k < KP_PROVIDERS_MOST; k++) {
        kinds[k]->close(x, alive);
        free(x->complaints[k]);
        free(x->why[k]);
    }
    kp_gathered_free(x->gathered);
    free(x);
}

/* ---- passes ---- */

static size_t passes_of(struct kp_providers *x, size_t k)
{
    return x->setup.kinds & kinds[k]->bit && !x->gone[k] ? kinds[k]->passes(x) : 0;
}

size_t kp_providers_passes(struct kp_providers *x)
{
    size_t n = 0;
    for (size_t k = 0; x && k < KP_PROVIDERS_MOST; k++)
        n += x->passes[k] = passes_of(x, k);
    return n;
}

size_t kp_providers_early(const struct kp_providers *x)
{
    return x ? x->passes[0] : 0;
}

/* The kind of a pass, and which of the kind's passes it is. NULL where the kind has failed since the passes were
 * counted: the window is then issued for nothing, as those of the other kinds keep their places. */
static const struct kp_provider *kind_at(const struct kp_providers *x, size_t pass, size_t *part)
{
    size_t k = 0;
    while (k < KP_PROVIDERS_MOST && pass >= x->passes[k])
        pass -= x->passes[k++];
    *part = pass;
    return k < KP_PROVIDERS_MOST && !x->gone[k] ? kinds[k] : NULL;
}

static size_t number_of(const struct kp_provider *kind)
{
    size_t k = 0;
    while (kinds[k] != kind)
        k++;
    return k;
}

void kp_providers_tell(struct kp_providers *x, const struct kp_provider *kind, char *text)
{
    size_t k = number_of(kind);
    free(x->complaints[k]);
    x->complaints[k] = text;
}

enum { TOLD_FAILURE = 1, TOLD_REFUSAL = 2 };

/* Takes `text` over. */
static void complain(struct kp_providers *x, size_t k, unsigned what, char *text)
{
    if (x->told[k] & what)
        free(text);
    else
        kp_providers_tell(x, kinds[k], text);
    x->told[k] |= what;
}

void kp_providers_complain(struct kp_providers *x, const struct kp_provider *kind, int rc)
{
    size_t k = number_of(kind);
    free(x->why[k]);
    x->why[k] = kp_cupti_explain(x->setup.cupti, kind->what, rc);
    complain(x, k, TOLD_FAILURE, x->why[k] ? strdup(x->why[k]) : NULL);
}

/* What kind `k` would tell of the window's launches from `first` on. */
static void lose(struct kp_providers *x, size_t k, size_t first, const char *why)
{
    struct kp_gathered_loss *loss = x->gathered ? &x->gathered->lost[k] : NULL;
    if (!loss || (loss->why && loss->first <= first))
        return;
    free(loss->why);
    *loss = (struct kp_gathered_loss){kp_strdup(why), first};
}

/* The kind of the pass under way is not collected of this window any more. What it has taken hold of is let go. */
static void fail(struct kp_providers *x, int rc)
{
    kp_providers_complain(x, x->kind, rc);
    lose(x, number_of(x->kind), x->next, x->why[number_of(x->kind)]);
    x->kind->end(x);
    x->kind = NULL;
}

void kp_providers_refused(struct kp_providers *x, const char *why)
{
    char *text = NULL;
    if (!x->kind)
        return;
    size_t k = number_of(x->kind);
    if (asprintf(&text, "%s in a window: %s", x->kind->what, why) < 0)
        text = NULL;
    lose(x, k, x->next, why);
    complain(x, k, TOLD_REFUSAL, text);
    x->kind->end(x);
    x->kind = NULL;
}

/* One that fails here is given up for good: its passes would have nothing to tell. */
void kp_providers_watch(struct kp_providers *x)
{
    for (size_t k = 0; x && k < KP_PROVIDERS_MOST; k++) {
        int rc = kinds[k]->watch && passes_of(x, k) ? kinds[k]->watch(x) : 0;
        if (!rc)
            continue;
        kp_providers_complain(x, kinds[k], rc);
        kinds[k]->end(x);
        x->gone[k] = true;
    }
}

void kp_providers_unwatch(struct kp_providers *x)
{
    for (size_t k = 0; x && k < KP_PROVIDERS_MOST; k++)
        if (kinds[k]->watch)
            kinds[k]->end(x);
}

void kp_providers_longest(struct kp_providers *x, uint64_t ns)
{
    x->longest_ns = ns;
}

bool kp_providers_want_longest(struct kp_providers *x)
{
    for (size_t k = 0; k < KP_PROVIDERS_MOST; k++)
        if (kinds[k]->by_time && passes_of(x, k))
            return true;
    return false;
}

void kp_providers_window(struct kp_providers *x, size_t results)
{
    struct kp_gathered *g = calloc(1, sizeof(*g));
    kp_gathered_free(x->gathered);
    x->gathered = g;
    x->longest_ns = 0;
    if (!g)
        return;
    g->codes = x->setup.codes;
    g->setup = &x->setup;
    for (size_t k = 0; k < KP_PROVIDERS_MOST; k++)
        if (!x->passes[k] && x->why[k]) /* it failed for good */
            lose(x, k, 0, x->why[k]);
    g->launches = calloc(results + 1, sizeof(*g->launches));
    if (g->launches)
        g->n_launches = results;
}

bool kp_providers_flushes(const struct kp_providers *x, size_t pass)
{
    size_t part;
    const struct kp_provider *kind = kind_at(x, pass, &part);
    return kind && kind->flushes;
}

void kp_providers_begin(struct kp_providers *x, size_t pass)
{
    x->next = 0;
    x->kind = x->gathered ? kind_at(x, pass, &x->part) : NULL;
    int rc = x->kind ? x->kind->begin(x) : 0;
    if (rc) {
        size_t k = number_of(x->kind);
        fail(x, rc);
        x->gone[k] = rc != -ENOMEM && rc != KP_CUPTI_OUT_OF_MEMORY;
    }
}

static struct kp_gathered_launch *launch(struct kp_providers *x)
{
    return x->kind && x->next < x->gathered->n_launches ? &x->gathered->launches[x->next] : NULL;
}

CUresult kp_providers_before(struct kp_providers *x)
{
    struct kp_gathered_launch *l = launch(x);
    if (!l)
        return CUDA_SUCCESS;
    CUresult driver = x->setup.driver->cuCtxSynchronize();
    int rc = driver == CUDA_SUCCESS ? x->kind->before(x, l) : 0;
    if (rc)
        fail(x, rc);
    return driver;
}

CUresult kp_providers_after(struct kp_providers *x)
{
    struct kp_gathered_launch *l = launch(x);
    CUresult driver = l ? x->setup.driver->cuCtxSynchronize() : CUDA_SUCCESS;
    int rc = l ? x->kind->after(x, l) : 0;
    if (rc)
        fail(x, rc);
    x->next++;
    return driver;
}

void kp_providers_end(struct kp_providers *x)
{
    if (x->kind)
        x->kind->end(x);
    x->kind = NULL;
}

struct kp_gathered *kp_providers_take(struct kp_providers *x)
{
    struct kp_gathered *g = x->gathered;
    x->gathered = NULL;
    return g;
}

char *kp_providers_complaint(struct kp_providers *x)
{
    for (size_t k = 0; x && k < KP_PROVIDERS_MOST; k++) {
        char *text = x->complaints[k];
        x->complaints[k] = NULL;
        if (text)
            return text;
    }
    return NULL;
}

/* ---- what is gathered ---- */

long kp_providers_name(struct kp_gathered *g, const char *name)
{
    for (size_t i = 0; i < g->n_names; i++)
        if (!strcmp(g->names[i], name))
            return (long)i;
    char **grown = realloc(g->names, (g->n_names + 1) * sizeof(*grown));
    if (!grown)
        return -1;
    g->names = grown;
    if (!(grown[g->n_names] = strdup(name)))
        return -1;
    return (long)g->n_names++;
}

void kp_gathered_free(struct kp_gathered *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n_launches; i++) {
        for (size_t s = 0; s < g->launches[i].n_series; s++)
            kp_series_free(&g->launches[i].series[s]);
        free(g->launches[i].series);
        free(g->launches[i].counts);
    }
    free(g->launches);
    for (size_t i = 0; i < g->n_names; i++)
        free(g->names[i]);
    free(g->names);
    for (size_t k = 0; k < KP_PROVIDERS_MOST; k++)
        free(g->lost[k].why);
    free(g);
}
