#include "cmd/catalog.h"

#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "collectors/plan/chips.h"
#include "collectors/plan/plan.h"
#include "collectors/providers/library.h"
#include "collectors/providers/providers.h"
#include "collectors/providers/tables.h"
#include "report/define/derive.h"
#include "report/define/groups.h"
#include "report/define/metric_words.h"
#include "report/options/options.h"

#ifdef KP_TOOLS_GLIBC_COMPAT_H
/* Repeats names of tools/glibc_compat.h, which cannot be included: other sources define them. */
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#endif

enum { FULL_NAME_MAX = 512 };

/* Used without a GPU: the chip of the H100 and H200. */
static const char stand_in[] = "GH100";

struct kp_catalog {
    struct kp_cupti *cupti;
    struct kp_host *host;
    char *chip, *title;
    int major, minor;
    bool sampled;
};

/* Returns true if the range profiler supports the chip; older chips have metrics of the older profiler. */
static bool is_profiled(int major, int minor)
{
    return major > 7 || (major == 7 && minor >= 5);
}

/* ---- opening ---- */

static bool directory_of(const void *address, char *dir, size_t size)
{
    Dl_info info;
    char *end;
    if (!dladdr(address, &info) || !info.dli_fname || snprintf(dir, size, "%s", info.dli_fname) >= (int)size ||
        !(end = strrchr(dir, '/')))
        return false;
    *end = '\0';
    return true;
}

const struct kp_dl kp_catalog_dl = {.open = dlopen, .sym = dlsym, .directory_of = directory_of};

/* Reads the chip of the first GPU into c->chip, which stays NULL without a GPU. The command needs the driver for
 * nothing else, and so does not link it. */
static int ask_device(struct kp_catalog *c)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    __typeof__(cuInit) *init = NULL;
    __typeof__(cuDeviceGetAttribute) *attribute = NULL;
    const char *chip;
    if (driver) {
        *(void **)&init = dlsym(driver, "cuInit");
        *(void **)&attribute = dlsym(driver, "cuDeviceGetAttribute");
    }
    if (!init || !attribute || init(0) || attribute(&c->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) ||
        attribute(&c->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0) || kp_library_start(c->cupti) ||
        kp_library_chip(c->cupti, 0, &chip))
        return 0;
    c->chip = kp_strdup(chip);
    return c->chip ? 0 : -ENOMEM;
}

static int unknown_chip(const struct kp_catalog *c, const char *chip, char **err)
{
    const char *const *names;
    size_t n;
    const char **list = kp_tables_chips(c->cupti, &names, &n) ? NULL : calloc(n + 1, sizeof(*list));
    if (!list)
        return -ENOMEM;
    memcpy(list, names, n * sizeof(*list));
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], chip))
            rc = kp_error(err, "--chip: CUPTI %s lists %s, but has no metrics for it", kp_library_version(c->cupti),
                          chip);
    if (!rc)
        rc = kp_error_choice(err, "--chip: unknown chip", chip, list);
    free(list);
    return rc;
}

/* Accepts both cases: ncu writes chips in small letters, CUPTI in capitals. */
static const char *as_cupti_writes(const struct kp_catalog *c, const char *chip)
{
    const char *const *names;
    size_t n;
    if (kp_tables_chips(c->cupti, &names, &n))
        return chip;
    for (size_t i = 0; i < n; i++)
        if (!strcasecmp(names[i], chip))
            return names[i];
    return chip;
}

/* Chooses the chip. A chip newer than the table has the metrics of the newest one in it, like rows with open-ended
 * conditions. */
static int choose_chip(struct kp_catalog *c, const char *chip, char **note)
{
    int rc = *chip ? 0 : ask_device(c);
    if (rc || c->chip)
        return rc;
    c->chip = kp_strdup(*chip ? as_cupti_writes(c, chip) : stand_in);
    if (!c->chip)
        return -ENOMEM;
    if (!kp_chip_cc(c->chip, &c->major, &c->minor))
        kp_chip_cc(kp_chips[kp_n_chips - 1].name, &c->major, &c->minor);
    if (!*chip && asprintf(note, "no GPU was found: the list is for %s; --chip chooses another chip", stand_in) < 0) {
        *note = NULL;
        return -ENOMEM;
    }
    return 0;
}

void kp_catalog_close(struct kp_catalog *c)
{
    if (!c)
        return;
    kp_tables_close(c->host);
    kp_library_free(c->cupti);
    free(c->chip);
    free(c->title);
    free(c);
}

int kp_catalog_open(const char *chip, const char *cupti_dir, bool sampled, struct kp_catalog **out, char **note,
                    char **err)
{
    struct kp_catalog *c = calloc(1, sizeof(*c));
    *out = NULL;
    *note = *err = NULL;
    if (!c)
        return -ENOMEM;
    c->sampled = sampled;
    int rc = kp_library_load(&kp_catalog_dl, cupti_dir, NULL, &c->cupti, err);
    if (!rc)
        rc = choose_chip(c, chip, note);
    if (!rc && kp_tables_open(c->cupti, sampled ? KP_TABLES_SAMPLED : KP_TABLES_COUNTED, c->chip, NULL, &c->host))
        rc = unknown_chip(c, c->chip, err);
    if (!rc &&
        asprintf(&c->title, "%s (CC %d.%d), CUPTI %s", c->chip, c->major, c->minor, kp_library_version(c->cupti)) < 0) {
        c->title = NULL;
        rc = -ENOMEM;
    }
    if (rc)
        kp_catalog_close(c);
    else
        *out = c;
    return rc;
}

const char *kp_catalog_title(const struct kp_catalog *c)
{
    return c->title;
}

/* ---- lists ---- */

int kp_catalog_chips(struct kp_catalog *c, int (*fn)(const char *chip, const char *about, void *arg), void *arg)
{
    const char *const *names;
    char about[80];
    size_t n;
    if (kp_tables_chips(c->cupti, &names, &n))
        return -EIO;
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        struct kp_host *h = NULL;
        int major, minor;
        bool opens = !kp_tables_open(c->cupti, KP_TABLES_COUNTED, names[i], NULL, &h);
        kp_tables_close(h);
        if (kp_chip_cc(names[i], &major, &minor))
            snprintf(about, sizeof(about), "CC %d.%d%s%s", major, minor, opens ? "" : ", listed without metrics",
                     is_profiled(major, minor) ? "" : ", not profiled: 7.5 or newer is needed");
        else
            snprintf(about, sizeof(about), "newer than this kprof");
        rc = fn(names[i], about, arg);
    }
    return rc;
}

static int each_counted(struct kp_catalog *c, int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg)
{
    static const enum kp_catalog_kind kinds[KP_METRIC_TYPES] = {[KP_METRIC_COUNTER] = KP_CATALOG_COUNTER,
                                                                [KP_METRIC_RATIO] = KP_CATALOG_RATIO,
                                                                [KP_METRIC_THROUGHPUT] = KP_CATALOG_THROUGHPUT};
    int rc = 0;
    for (int type = 0; !rc && type < KP_METRIC_TYPES; type++) {
        const char *const *names;
        size_t n;
        if (kp_tables_names(c->host, (enum kp_metric_type)type, &names, &n))
            return -EIO;
        for (size_t i = 0; !rc && i < n; i++) {
            struct kp_metric_props props;
            if (kp_tables_metric(c->host, names[i], &props))
                continue;
            rc = fn(&(struct kp_catalog_metric){kinds[type], names[i], props.unit, props.description}, arg);
        }
    }
    return rc;
}

/* Says what a metric is, in words of ours; else as the sections label it, or by its name. */
static void describe(const char *name, const char **unit, char *text, size_t size)
{
    size_t n;
    const struct kp_section *s = kp_sections(&n);
    *unit = "";
    for (; n; n--, s++)
        for (size_t i = 0; i < s->n_rows; i++)
            if (!strcmp(s->rows[i].metric, name)) {
                *unit = strcmp(s->rows[i].unit, KP_UNIT_OF_CHIP) ? kp_row_unit(&s->rows[i]) : "";
                if (!kp_section_metric_words(name, text, size))
                    snprintf(text, size, "%s", s->rows[i].label);
                return;
            }
    if (kp_section_metric_words(name, text, size))
        return;
    const char *words = strstr(name, "__");
    snprintf(text, size, "%s", words ? words + 2 : name);
    for (char *p = text; *p; p++)
        *p = *p == '_' ? ' ' : *p;
}

static int each_of_launch(int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg)
{
    int rc = 0;
    for (const char *const *const *list = kp_plan_uncounted; *list; list++)
        for (const char *const *name = *list; *name && !rc; name++) {
            char text[FULL_NAME_MAX];
            const char *unit;
            describe(*name, &unit, text, sizeof(text));
            rc = fn(&(struct kp_catalog_metric){KP_CATALOG_LAUNCH, *name, unit, text}, arg);
        }
    return rc;
}

struct callback {
    int (*fn)(const struct kp_catalog_metric *m, void *arg);
    void *arg;
};

static int take_source(const char *name, const char *unit, void *arg)
{
    const struct callback *call = arg;
    const char *of_row;
    char text[FULL_NAME_MAX];
    describe(name, &of_row, text, sizeof(text));
    return call->fn(&(struct kp_catalog_metric){KP_CATALOG_SOURCE, name, unit, text}, call->arg);
}

static int each_derived(int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg)
{
    size_t n;
    const struct kp_derived **all = kp_derived_all(&n);
    int rc = all ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        if (!kp_providers_is_metric(all[i]->name)) /* derived only if it was not counted */
            rc = fn(&(struct kp_catalog_metric){KP_CATALOG_DERIVED, all[i]->name, all[i]->unit, all[i]->expression},
                    arg);
    free(all);
    return rc;
}

static int take_group(const struct kp_group *group, void *arg)
{
    const struct callback *call = arg;
    return call->fn(&(struct kp_catalog_metric){KP_CATALOG_GROUP, group->name, "", group->title}, call->arg);
}

int kp_catalog_metrics(struct kp_catalog *c, int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg)
{
    struct callback call = {fn, arg};
    int rc = each_counted(c, fn, arg);
    if (rc || c->sampled)
        return rc;
    rc = each_of_launch(fn, arg);
    if (!rc)
        rc = kp_providers_metrics(c->major, c->minor, take_source, &call);
    if (!rc)
        rc = each_derived(fn, arg);
    return rc ? rc : kp_groups_each_name(c->major, c->minor, take_group, &call);
}

int kp_catalog_full_names(struct kp_catalog *c, const struct kp_catalog_metric *m, const struct kp_pattern *pattern,
                          int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg)
{
    static const int types[KP_CATALOG_KINDS] = {[KP_CATALOG_COUNTER] = KP_METRIC_COUNTER,
                                                [KP_CATALOG_RATIO] = KP_METRIC_RATIO,
                                                [KP_CATALOG_THROUGHPUT] = KP_METRIC_THROUGHPUT,
                                                [KP_CATALOG_LAUNCH] = -1,
                                                [KP_CATALOG_SOURCE] = -1,
                                                [KP_CATALOG_DERIVED] = -1,
                                                [KP_CATALOG_GROUP] = -1};
    const char *const *suffixes;
    size_t n;
    if (types[m->kind] < 0)
        return pattern && !kp_pattern_match(pattern, m->name) ? 0 : fn(m, arg);
    if (kp_tables_suffixes(c->host, (enum kp_metric_type)types[m->kind], m->name, &suffixes, &n))
        return -EIO;
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        struct kp_metric_props props;
        char full[FULL_NAME_MAX];
        snprintf(full, sizeof(full), "%s%s", m->name, suffixes[i]);
        if ((!pattern || kp_pattern_match(pattern, full)) && !kp_tables_metric(c->host, full, &props))
            rc = fn(&(struct kp_catalog_metric){m->kind, full, props.unit, m->description}, arg);
    }
    return rc;
}

/* Checks that some chip known to CUPTI has the item. Returns 0 or another error than -EINVAL; if none has it, *why
 * (malloc'ed) is the reason from the last chip that gave one: this CUPTI may lack the metrics or the samples of some
 * chips.
 * */
static int ask_all(struct kp_cupti *cupti, const char *item, unsigned how, char **why)
{
    int rc = -EINVAL;
    for (size_t i = kp_n_chips; rc == -EINVAL && i--;) {
        struct kp_plan *p = NULL;
        char *told = NULL;
        rc = kp_plan_make(cupti, kp_chips[i].name, NULL, kp_chips[i].major, kp_chips[i].minor, NULL, 0, item,
                          how | KP_PLAN_ANY_CHIP, &p, &told);
        kp_plan_free(p);
        bool tells = !rc || (rc == -EINVAL && told);
        free(tells ? *why : told);
        *why = tells ? told : *why;
        rc = rc && rc != -ENOMEM ? -EINVAL : rc;
    }
    return rc == -EINVAL ? 0 : rc;
}

int kp_catalog_check_metrics(const char *cupti_dir, const char *list, bool columns,
                             int (*fn)(const char *item, const char *why, void *arg), void *arg)
{
    struct kp_cupti *cupti = NULL;
    char *err = NULL;
    const char *item;
    size_t len;
    int rc = kp_library_load(&kp_catalog_dl, cupti_dir, NULL, &cupti, &err);
    free(err);
    while (!rc && kp_word_next(&list, &item, &len)) {
        char *text = strndup(item, len), *why = NULL;
        rc = text ? ask_all(cupti, text, columns ? KP_PLAN_COLUMNS : 0, &why) : -ENOMEM;
        if (!rc && why)
            rc = fn(text, why, arg);
        free(text);
        free(why);
    }
    kp_library_free(cupti);
    return rc;
}

/* Resolves the item by a plan, like profiling. */
int kp_catalog_listed(struct kp_catalog *c, const char *item, int (*fn)(const struct kp_catalog_metric *m, void *arg),
                      void *arg, char **err)
{
    struct kp_plan *p = NULL;
    int rc = kp_plan_make(c->cupti, c->chip, NULL, c->major, c->minor, NULL, 0, item, KP_PLAN_QUERY, &p, err);
    for (size_t i = 0; !rc && i < p->n_metrics; i++) {
        struct kp_metric_props props;
        const struct kp_derived *d = kp_derived_find(p->metrics[i].name);
        const char *about = d ? d->expression : "", *unit;
        char text[FULL_NAME_MAX];
        if (!p->metrics[i].listed)
            continue;
        if (!d && kp_providers_is_metric(p->metrics[i].name)) {
            describe(p->metrics[i].name, &unit, text, sizeof(text));
            about = text;
        } else if (!d && !kp_tables_metric(c->host, p->metrics[i].name, &props)) {
            about = props.description;
        }
        rc = fn(&(struct kp_catalog_metric){d ? KP_CATALOG_DERIVED : KP_CATALOG_COUNTER, p->metrics[i].name,
                                            p->metrics[i].unit, about},
                arg);
    }
    if (p)
        kp_plan_free(p);
    return rc;
}

int kp_catalog_cost(struct kp_catalog *c, const struct kp_section *const *sections, size_t n, bool rotates,
                    size_t *metrics, size_t *passes, char **err)
{
    struct kp_plan *p = NULL;
    bool one_pass = kp_sections_one_pass(sections, n, "");
    unsigned how = one_pass ? KP_PLAN_ONE_PASS : rotates ? KP_PLAN_RULES | KP_PLAN_ROTATE : KP_PLAN_RULES;
    int rc = kp_plan_make(c->cupti, c->chip, NULL, c->major, c->minor, sections, n, "", how, &p, err);
    *metrics = *passes = 0;
    if (rc)
        return rc;
    for (size_t i = 0; i < p->n_metrics; i++)
        *metrics += p->metrics[i].group != KP_CANNOT_COLLECT || p->metrics[i].composed;
    *passes = p->passes;
    kp_plan_free(p);
    if (one_pass)
        return 0;
    const struct kp_providers_query query = {c->cupti, c->chip, c->major, c->minor, sections, n};
    return kp_providers_cost(&query, metrics, passes);
}
