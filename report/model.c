#include "report/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/instances.h"

char *kp_strdup(const char *s)
{
    return strdup(s ? s : "");
}

/* Index of the first metric whose name is not before `name`. */
static size_t lower_bound(const struct kp_result *r, const char *name)
{
    size_t lo = 0, hi = r->n_metrics;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(r->metrics[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void metric_free(struct kp_metric *m)
{
    free(m->name);
    free(m->unit);
    free(m->text);
    free(m->instances);
}

static int reserve_one(struct kp_result *r)
{
    if (r->n_metrics < r->cap_metrics)
        return 0;
    size_t cap = r->cap_metrics ? 2 * r->cap_metrics : 64;
    struct kp_metric *grown = realloc(r->metrics, cap * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    r->metrics = grown;
    r->cap_metrics = cap;
    return 0;
}

/* Puts `value` (its strings are still the caller's, and are copied) in its place by name. */
static int put(struct kp_result *r, const struct kp_metric *value)
{
    struct kp_metric m = *value;
    m.name = kp_strdup(value->name);
    m.unit = kp_strdup(value->unit);
    m.text = value->text ? strdup(value->text) : NULL;
    /* Room is made before anything is replaced, so that a failure leaves `r` as it was. */
    if (!m.name || !m.unit || (value->text && !m.text) || reserve_one(r)) {
        metric_free(&m);
        return -ENOMEM;
    }
    size_t i = lower_bound(r, m.name);
    if (i < r->n_metrics && !strcmp(r->metrics[i].name, m.name)) {
        metric_free(&r->metrics[i]);
    } else {
        memmove(&r->metrics[i + 1], &r->metrics[i], (r->n_metrics - i) * sizeof m);
        r->n_metrics++;
    }
    r->metrics[i] = m;
    return 0;
}

int kp_result_set_real(struct kp_result *r, const char *name, const char *unit, double value)
{
    return put(r,
               &(struct kp_metric){.name = (char *)name, .unit = (char *)unit, .kind = KP_VALUE_REAL, .real = value});
}

int kp_result_set_count(struct kp_result *r, const char *name, const char *unit, uint64_t value)
{
    return put(r,
               &(struct kp_metric){.name = (char *)name, .unit = (char *)unit, .kind = KP_VALUE_COUNT, .count = value});
}

int kp_result_set_text(struct kp_result *r, const char *name, const char *unit, const char *value)
{
    return put(r, &(struct kp_metric){.name = (char *)name,
                                      .unit = (char *)unit,
                                      .kind = KP_VALUE_TEXT,
                                      .text = (char *)(value ? value : "")});
}

/* The instances and the text of their keys are one block, as curves of hundreds of points are made for each launch. */
static struct kp_instance *instances_new(const char *const *keys, const double *values, size_t n)
{
    size_t text = 0;
    for (size_t i = 0; i < n; i++)
        text += keys ? strlen(keys[i]) + 1 : KP_KEY_SIZE;
    struct kp_instance *list = malloc(n * sizeof *list + text);
    if (!list)
        return NULL;
    char *to = (char *)(list + n), number[KP_KEY_SIZE];
    for (size_t i = 0; i < n; i++) {
        const char *key = keys ? keys[i] : kp_instance_key(number, i);
        size_t size = strlen(key) + 1;
        list[i] = (struct kp_instance){memcpy(to, key, size), values[i]};
        to += size;
    }
    return list;
}

int kp_result_set_instances(struct kp_result *r, const char *name, const char *const *keys, const double *values,
                            size_t n)
{
    size_t at = lower_bound(r, name);
    if (at == r->n_metrics || strcmp(r->metrics[at].name, name))
        return -ENOENT;
    struct kp_instance *list = n ? instances_new(keys, values, n) : NULL;
    if (n && !list)
        return -ENOMEM;
    free(r->metrics[at].instances);
    r->metrics[at].instances = list;
    r->metrics[at].n_instances = n;
    return 0;
}

int kp_result_set_na(struct kp_result *r, const char *name, const char *why)
{
    return put(r, &(struct kp_metric){.name = (char *)name, .kind = KP_VALUE_NA, .text = (char *)(why ? why : "")});
}

const struct kp_metric *kp_result_find(const struct kp_result *r, const char *name)
{
    size_t i = lower_bound(r, name);
    return i < r->n_metrics && !strcmp(r->metrics[i].name, name) ? &r->metrics[i] : NULL;
}

bool kp_metric_number(const struct kp_metric *m, double *out)
{
    if (m && m->kind == KP_VALUE_REAL)
        *out = m->real;
    else if (m && m->kind == KP_VALUE_COUNT)
        *out = (double)m->count;
    else
        return false;
    return true;
}

void kp_result_free(struct kp_result *r)
{
    free(r->launch.mangled);
    free(r->launch.demangled);
    free(r->launch.chip);
    free(r->launch.note);
    free(r->launch.reason);
    for (size_t i = 0; i < r->n_metrics; i++)
        metric_free(&r->metrics[i]);
    free(r->metrics);
    *r = (struct kp_result){0};
}

void kp_session_free(struct kp_session *s)
{
    char *texts[] = {s->exe,      s->cmdline, s->host,           s->kprof_version, s->cupti_version, s->set,
                     s->sections, s->metrics, s->section_folder, s->cache_control, s->clock_control};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    for (size_t i = 0; i < s->n_skips; i++)
        free(s->skips[i].reason);
    free(s->skips);
    for (size_t i = 0; i < s->n_kernels; i++)
        free(s->kernels[i].name);
    free(s->kernels);
    for (size_t i = 0; i < s->n_devices; i++) {
        free(s->devices[i].name);
        free(s->devices[i].chip);
        free(s->devices[i].pci_bus_id);
        free(s->devices[i].breakdowns);
    }
    free(s->devices);
    *s = (struct kp_session){0};
}

int kp_session_add_skip(struct kp_session *s, const char *reason, uint64_t n)
{
    for (size_t i = 0; i < s->n_skips; i++) {
        if (!strcmp(s->skips[i].reason, reason)) {
            s->skips[i].count += n;
            return 0;
        }
    }
    char *copy = kp_strdup(reason);
    struct kp_skip *grown = copy ? realloc(s->skips, (s->n_skips + 1) * sizeof *grown) : NULL;
    if (!grown) {
        free(copy);
        return -ENOMEM;
    }
    s->skips = grown;
    s->skips[s->n_skips++] = (struct kp_skip){.reason = copy, .count = n};
    return 0;
}

int kp_session_add_kernel(struct kp_session *s, const char *name, uint64_t n)
{
    for (size_t i = 0; i < s->n_kernels; i++) {
        if (!strcmp(s->kernels[i].name, name)) {
            s->kernels[i].count += n;
            return 0;
        }
    }
    char *copy = kp_strdup(name);
    struct kp_kernel_count *grown = copy ? realloc(s->kernels, (s->n_kernels + 1) * sizeof *grown) : NULL;
    if (!grown) {
        free(copy);
        return -ENOMEM;
    }
    s->kernels = grown;
    s->kernels[s->n_kernels++] = (struct kp_kernel_count){.name = copy, .count = n};
    return 0;
}
