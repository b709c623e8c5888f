#include "report/define/groups.h"

#include <ctype.h>
#include <string.h>

#include "report/define/source.h"

enum { NAME_MAX_LEN = 512 };

/* The groups that Nsight Compute knows, by the title of the table that shows them. */
static const struct {
    const char *name, *title;
} known_groups[] = {
    {"memory__chart", "Memory Chart"},
    {"memory__shared_table", "Shared Memory"},
    {"memory__first_level_cache_table", "L1/TEX Cache"},
    {"memory__l2_cache_table", "L2 Cache"},
    {"memory__l2_cache_evict_policy_table", "L2 Cache Eviction Policies"},
    {"memory__dram_table", "Device Memory"},
    {"smsp__pcsamp_warp_stall_reasons", "Warp Stall Sampling (All Samples)"},
    {"smsp__pcsamp_warp_stall_reasons_not_issued", "Warp Stall Sampling (Not-issued Samples)"},
};

/* Groups that no section has a body for. */
#define KP_BODY(title)                                                                                                 \
    {                                                                                                                  \
        .kind = KP_ROW_BODY, .body = KP_BODY_TABLE, .label = title, .metric = "", .unit = "", .cc = "", .group = ""    \
    }
#define KP_STALL(label, metric, unit, cc)                                                                              \
    {                                                                                                                  \
        label, metric, unit, cc, KP_SRC_PCSAMP, KP_ROW_ITEM, KP_BODY_NONE, ""                                          \
    }
static const struct kp_row rows_of_no_section[] = {
    KP_BODY("Warp Stall Sampling (All Samples)"),
#define KP_STALL_REASON(reason, state, label, unit, cc) KP_STALL(label, KP_STALL_PREFIX #reason, unit, cc),
#include "report/define/stalls.def"
    KP_BODY("Warp Stall Sampling (Not-issued Samples)"),
#define KP_STALL_REASON(reason, state, label, unit, cc)                                                                \
    KP_STALL(label, KP_STALL_PREFIX #reason "_not_issued", unit, cc),
#include "report/define/stalls.def"
};
static const struct kp_section no_section = {.id = "",
                                             .display = "",
                                             .sets = "",
                                             .cc = "",
                                             .rows = rows_of_no_section,
                                             .n_rows = sizeof rows_of_no_section / sizeof *rows_of_no_section};

/* Turns "L2 Cache" into "l2_cache". */
static void group_name(const char *title, char *out, size_t size)
{
    size_t len = 0;
    for (; *title && len + 1 < size; title++) {
        if (isalnum((unsigned char)*title))
            out[len++] = (char)tolower((unsigned char)*title);
        else if (len && out[len - 1] != '_')
            out[len++] = '_';
    }
    while (len && out[len - 1] == '_')
        len--;
    out[len] = '\0';
}

static bool has(const char *cc, int major, int minor)
{
    return major < 0 || kp_cc_matches(cc, major, minor);
}

/* Returns true if a chip may have something in the body. */
static bool is_shown(const struct kp_group *g, int major, int minor)
{
    for (size_t i = g->first; i < g->end; i++)
        if (has(g->section->rows[i].cc, major, minor))
            return true;
    return false;
}

/* Calls `fn` for each name of the body. */
static int each_name(struct kp_group g, int (*fn)(const struct kp_group *group, void *arg), void *arg)
{
    char own[NAME_MAX_LEN];
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof known_groups / sizeof *known_groups; i++)
        if (!strcmp(known_groups[i].title, g.title)) {
            g.name = known_groups[i].name;
            rc = fn(&g, arg);
        }
    group_name(g.title, own, sizeof own);
    g.name = own;
    return rc || !*own ? rc : fn(&g, arg);
}

static int each_body(const struct kp_section *s, int major, int minor,
                     int (*fn)(const struct kp_group *group, void *arg), void *arg)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < s->n_rows && has(s->cc, major, minor); i++) {
        if (s->rows[i].kind != KP_ROW_BODY || s->rows[i].body == KP_BODY_SERIES || !has(s->rows[i].cc, major, minor))
            continue;
        struct kp_group g = {NULL, s->rows[i].label, s, i + 1, kp_section_body_end(s, i + 1)};
        if (is_shown(&g, major, minor))
            rc = each_name(g, fn, arg);
    }
    return rc;
}

int kp_groups_each(int major, int minor, int (*fn)(const struct kp_group *group, void *arg), void *arg)
{
    size_t n;
    const struct kp_section *s = kp_sections(&n);
    int rc = 0;
    for (; n && !rc; n--, s++)
        rc = each_body(s, major, minor, fn, arg);
    return rc ? rc : each_body(&no_section, major, minor, fn, arg);
}

/* Counts names, up to the wanted one. */
struct place {
    const char *wanted;
    size_t n;
};

static int find_place(const struct kp_group *group, void *arg)
{
    struct place *p = arg;
    p->n++;
    return !strcmp(group->name, p->wanted);
}

struct once {
    int (*fn)(const struct kp_group *group, void *arg);
    void *arg;
    int major, minor;
    size_t n;
};

static int take_first(const struct kp_group *group, void *arg)
{
    struct once *o = arg;
    struct place first = {group->name, 0};
    kp_groups_each(o->major, o->minor, find_place, &first);
    return ++o->n == first.n ? o->fn(group, o->arg) : 0;
}

int kp_groups_each_name(int major, int minor, int (*fn)(const struct kp_group *group, void *arg), void *arg)
{
    struct once once = {fn, arg, major, minor, 0};
    return kp_groups_each(major, minor, take_first, &once);
}
