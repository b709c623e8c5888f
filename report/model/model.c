#include "report/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/room.h"
#include "base/sqrt.h"
#include "base/text.h"
#include "report/model/instances.h"

char *kp_strdup(const char *s)
{
    return strdup(s ? s : "");
}

/* Returns the index of the first metric whose name is not before `name`. Names from a file come in their order: most
 * belong at the end. */
static size_t lower_bound(const struct kp_result *r, const char *name)
{
    size_t lo = 0, hi = r->n_metrics;
    if (hi && strcmp(r->metrics[hi - 1].name, name) < 0)
        return hi;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(r->metrics[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Returns true if `r` has the metric; *at receives its index, or that to insert it at. */
static bool has(const struct kp_result *r, const char *name, size_t *at)
{
    *at = lower_bound(r, name);
    return *at < r->n_metrics && !strcmp(r->metrics[*at].name, name);
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

/* Inserts a copy of `value` by name, without instances; its strings stay the caller's. */
static int put(struct kp_result *r, const struct kp_metric *value)
{
    struct kp_metric m = *value;
    m.name = kp_strdup(value->name);
    m.unit = kp_strdup(value->unit);
    m.text = value->text ? strdup(value->text) : NULL;
    m.instances = NULL;
    m.n_instances = 0;
    /* Allocate before replacing anything, so that a failure leaves `r` as it was. */
    if (!m.name || !m.unit || (value->text && !m.text) || reserve_one(r)) {
        metric_free(&m);
        r->lossy = true;
        return -ENOMEM;
    }
    size_t i;
    if (has(r, m.name, &i)) {
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

static struct kp_metric *find(struct kp_result *r, const char *name)
{
    size_t at;
    return has(r, name, &at) ? &r->metrics[at] : NULL;
}

int kp_result_set_spread(struct kp_result *r, const char *name, uint32_t counted, double deviation)
{
    struct kp_metric *m = find(r, name);
    if (!m)
        return -ENOENT;
    m->counted = counted;
    m->deviation = deviation;
    return 0;
}

/* Source of the update: Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample
 * variances, Stanford 1979, (1.5). With one value it is Welford's. */
int kp_result_add_mean(struct kp_result *r, const char *name, const char *unit, const struct kp_mean *of)
{
    struct kp_metric *m = find(r, name);
    if (!m || m->kind != KP_VALUE_REAL || !m->counted) {
        int rc = kp_result_set_real(r, name, unit, of->mean);
        return rc ? rc : kp_result_set_spread(r, name, of->counted, of->deviation);
    }
    double before = m->counted, added = of->counted, all = before + added, apart = of->mean - m->real;
    double squares = m->deviation * m->deviation * (before - 1) + of->deviation * of->deviation * (added - 1) +
                     apart * apart * before * added / all;
    m->counted += of->counted;
    m->real += apart * added / all;
    m->deviation = squares > 0 ? kp_sqrt(squares / (all - 1)) : 0;
    return 0;
}

bool kp_is_device_attribute(const char *line)
{
    static const char *const of[] = {"device__attribute_", "launch__", "numa__", "nvlink__"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (!strncmp(line, of[i], strlen(of[i])))
            return true;
    return false;
}

int kp_session_read_attributes(const struct kp_device_info *d, struct kp_result *r)
{
    int rc = 0;
    for (const char *line = kp_or_empty(d->breakdowns), *end; !rc && *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        size_t len = strcspn(line, "\t\n");
        char *name = kp_is_device_attribute(line) && line[len] == '\t' ? strndup(line, (size_t)(end - line)) : NULL;
        if (!name)
            continue;
        char *value = name + len + 1;
        name[len] = '\0';
        if (*value && strspn(value, "0123456789") == strlen(value))
            rc = kp_result_set_count(r, name, "", strtoull(value, NULL, 10));
        else
            rc = *value ? kp_result_set_text(r, name, "", value) : kp_result_set_na(r, name, KP_REASON_UNTOLD);
        free(name);
    }
    return rc;
}

int kp_result_add_value(struct kp_result *r, const char *name, const char *unit, double value)
{
    return kp_result_add_mean(r, name, unit, &(struct kp_mean){.counted = 1, .mean = value});
}

/* The 0.975 quantile of Student's t for 1 to 30 degrees of freedom; beyond, that of the normal distribution is near
 * enough. Source: any table of the distribution. */
double kp_students_t(uint64_t degrees)
{
    static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                       2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                       2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    enum { TABLED = sizeof(quantiles) / sizeof(*quantiles) };
    return degrees <= TABLED ? quantiles[degrees - 1] : 1.96 + 2.4 / (double)degrees;
}

bool kp_metric_interval(const struct kp_metric *m, double *half)
{
    enum { LEAST = 3 };
    if (!m || m->kind != KP_VALUE_REAL || m->counted < LEAST)
        return false;
    *half = kp_students_t(m->counted - 1) * m->deviation * kp_sqrt(2.0 / m->counted);
    return true;
}

/* Allocates the instances and the text of their keys in one block: each launch has curves of hundreds of points. */
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
        const char *key = keys ? keys[i] : kp_number_digits(number, i);
        size_t size = strlen(key) + 1;
        list[i] = (struct kp_instance){memcpy(to, key, size), values[i]};
        to += size;
    }
    return list;
}

int kp_result_set_instances(struct kp_result *r, const char *name, const char *const *keys, const double *values,
                            size_t n)
{
    size_t at;
    if (!has(r, name, &at))
        return -ENOENT;
    struct kp_instance *list = n ? instances_new(keys, values, n) : NULL;
    if (n && !list) {
        r->lossy = true;
        return -ENOMEM;
    }
    free(r->metrics[at].instances);
    r->metrics[at].instances = list;
    r->metrics[at].n_instances = n;
    return 0;
}

int kp_result_set_why(struct kp_result *r, const char *name, struct kp_why why)
{
    const char *text = kp_why_text(&why);
    return put(
        r, &(struct kp_metric){
               .name = (char *)name, .kind = KP_VALUE_NA, .reason = why.reason, .text = (char *)(text ? text : "")});
}

int kp_result_set_na(struct kp_result *r, const char *name, enum kp_reason reason)
{
    return kp_result_set_why(r, name, kp_why_of(reason, NULL));
}

struct kp_why kp_metric_why(const struct kp_metric *m)
{
    return kp_why_of(m->reason, m->text);
}

void kp_launch_set_note(struct kp_launch_info *l, struct kp_why why)
{
    const char *text = kp_why_text(&why);
    char *note = text ? kp_strdup(text) : NULL;
    free(l->note);
    l->note = note;
    l->reason = why.reason;
}

int kp_result_take(struct kp_result *r, struct kp_result *from)
{
    size_t left = 0;
    int rc = 0;
    for (size_t k = 0; k < from->n_metrics; k++) {
        struct kp_metric *m = &from->metrics[k];
        size_t at;
        bool known = has(r, m->name, &at);
        bool better = known && r->metrics[at].kind == KP_VALUE_NA && m->kind != KP_VALUE_NA;
        if (rc || (known && !better) || (!known && (rc = reserve_one(r)))) {
            from->metrics[left++] = *m;
            continue;
        }
        if (known) {
            metric_free(&r->metrics[at]);
        } else {
            memmove(&r->metrics[at + 1], &r->metrics[at], (r->n_metrics - at) * sizeof *m);
            r->n_metrics++;
        }
        r->metrics[at] = *m;
    }
    from->n_metrics = left;
    return rc;
}

void kp_result_drop_means(struct kp_result *r)
{
    size_t left = 0;
    for (size_t i = 0; i < r->n_metrics; i++) {
        if (r->metrics[i].counted)
            metric_free(&r->metrics[i]);
        else
            r->metrics[left++] = r->metrics[i];
    }
    r->n_metrics = left;
}

void kp_result_remove(struct kp_result *r, const char *name)
{
    size_t at;
    if (!has(r, name, &at))
        return;
    metric_free(&r->metrics[at]);
    memmove(&r->metrics[at], &r->metrics[at + 1], (--r->n_metrics - at) * sizeof *r->metrics);
}

const struct kp_metric *kp_result_find(const struct kp_result *r, const char *name)
{
    size_t at;
    return has(r, name, &at) ? &r->metrics[at] : NULL;
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

bool kp_result_duration(const struct kp_result *r, double *ns)
{
    double number;
    if (!kp_metric_number(kp_result_find(r, "gpu__time_duration.sum"), &number) || !isfinite(number) || number < 0)
        return false;
    *ns = number;
    return true;
}

uint64_t kp_launch_weight(const struct kp_launch_info *l)
{
    return l->alike ? l->alike : 1;
}

bool kp_result_mean_duration(const struct kp_result *r, double *ns)
{
    const struct kp_launch_info *l = &r->launch;
    bool known = kp_result_duration(r, ns);
    double all = (double)kp_launch_weight(l), own = l->groups ? (double)l->counted : 1;
    if (!l->recorded || !isfinite(l->recorded_ns) || l->recorded_ns < 0)
        return known;
    double mean = l->recorded_ns / (double)l->recorded;
    own = !known ? 0 : own < all ? own : all;
    *ns = ((known ? *ns : 0) * own + mean * (all - own)) / all;
    return true;
}

static void variant_free(struct kp_variant *v)
{
    free(v->name);
    if (v->of)
        kp_result_free(v->of); /* variants have none of their own */
    free(v->of);
}

void kp_result_free(struct kp_result *r)
{
    free(r->launch.mangled);
    free(r->launch.demangled);
    free(r->launch.chip);
    free(r->launch.note);
    kp_nvtx_free(&r->launch.nvtx);
    for (size_t i = 0; i < r->n_metrics; i++)
        metric_free(&r->metrics[i]);
    free(r->metrics);
    for (size_t i = 0; i < r->n_counts; i++)
        kp_code_counts_free(&r->counts[i]);
    free(r->counts);
    for (size_t i = 0; i < r->n_series; i++)
        kp_series_free(&r->series[i]);
    free(r->series);
    for (size_t i = 0; i < r->n_variants; i++)
        variant_free(&r->variants[i]);
    free(r->variants);
    *r = (struct kp_result){0};
}

static char *copy_text(const char *text, int *rc)
{
    char *copy = text && !*rc ? strdup(text) : NULL;
    if (text && !copy)
        *rc = -ENOMEM;
    return copy;
}

static int copy_nvtx(const struct kp_nvtx *n, struct kp_nvtx *out)
{
    int rc = 0;
    *out = (struct kp_nvtx){.thread = n->thread};
    out->thread_name = copy_text(n->thread_name, &rc);
    out->stream_name = copy_text(n->stream_name, &rc);
    for (size_t i = 0; !rc && i < n->n_ranges; i++)
        rc = kp_nvtx_add(out, &n->ranges[i]);
    return rc;
}

static int copy_metric(const struct kp_metric *m, struct kp_result *out)
{
    int rc = put(out, m);
    if (rc || !m->n_instances)
        return rc;
    const char **keys = malloc(m->n_instances * sizeof *keys);
    double *values = malloc(m->n_instances * sizeof *values);
    for (size_t i = 0; keys && values && i < m->n_instances; i++) {
        keys[i] = m->instances[i].key;
        values[i] = m->instances[i].value;
    }
    rc = keys && values ? kp_result_set_instances(out, m->name, keys, values, m->n_instances) : -ENOMEM;
    free(keys);
    free(values);
    return rc;
}

int kp_result_set_all(struct kp_result *r, const struct kp_result *from)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < from->n_metrics; i++)
        rc = copy_metric(&from->metrics[i], r);
    return rc;
}

int kp_result_copy(const struct kp_result *r, struct kp_result *out)
{
    const struct kp_launch_info *l = &r->launch;
    int rc = 0;
    *out = (struct kp_result){.launch = *l, .lossy = r->lossy};
    struct kp_launch_info *to = &out->launch;
    to->mangled = copy_text(l->mangled, &rc);
    to->demangled = copy_text(l->demangled, &rc);
    to->chip = copy_text(l->chip, &rc);
    to->note = copy_text(l->note, &rc);
    to->nvtx = (struct kp_nvtx){.ranges = NULL};
    rc = rc ? rc : copy_nvtx(&l->nvtx, &to->nvtx);
    rc = rc ? rc : kp_result_set_all(out, r);
    if (rc)
        kp_result_free(out);
    return rc;
}

void kp_session_free(struct kp_session *s)
{
    char *texts[] = {s->exe,           s->cmdline,     s->host,    s->kprof_version,  s->cupti_version,
                     s->set,           s->sections,    s->metrics, s->section_folder, s->cache_control,
                     s->clock_control, s->environment, s->replay};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    for (size_t i = 0; i < s->n_skips; i++)
        kp_why_free(&s->skips[i].why);
    free(s->skips);
    for (size_t i = 0; i < s->n_kernels; i++)
        free(s->kernels[i].name);
    free(s->kernels);
    for (size_t i = 0; i < s->n_ranges; i++)
        free(s->ranges[i].name);
    free(s->ranges);
    for (size_t i = 0; i < s->n_lacking; i++)
        free(s->lacking[i].name);
    free(s->lacking);
    free(s->kernel_index.slots);
    free(s->range_index.slots);
    free(s->lacking_index.slots);
    for (size_t i = 0; i < s->n_devices; i++) {
        free(s->devices[i].name);
        free(s->devices[i].chip);
        free(s->devices[i].pci_bus_id);
        free(s->devices[i].breakdowns);
    }
    free(s->devices);
    *s = (struct kp_session){0};
}

static bool is_same(struct kp_why a, struct kp_why b)
{
    const char *x = kp_why_text(&a), *y = kp_why_text(&b);
    return a.reason == b.reason && (x == y || (x && y && !strcmp(x, y)));
}

int kp_session_add_skip(struct kp_session *s, struct kp_why why, uint64_t n)
{
    for (size_t i = 0; i < s->n_skips; i++) {
        if (is_same(s->skips[i].why, why)) {
            s->skips[i].count += n;
            return 0;
        }
    }
    char *copy = why.text ? kp_strdup(why.text) : NULL;
    if ((why.text && !copy) || !KP_ROOM(s->skips, s->n_skips)) {
        free(copy);
        return -ENOMEM;
    }
    s->skips[s->n_skips++] = (struct kp_skip){.why = kp_why_of(why.reason, copy), .count = n};
    return 0;
}

/* One of the lists of names and their counts. */
struct seen {
    struct kp_kernel_count **list;
    size_t *n;
    struct kp_count_index *index;
};

/* Returns the slot that has the name, or the free one for it. */
static size_t *slot_of(const struct seen *s, const char *name)
{
    const struct kp_count_index *index = s->index;
    size_t at = kp_hash(name, strlen(name), 0) & (index->room - 1);
    while (index->slots[at] && strcmp((*s->list)[index->slots[at] - 1].name, name) != 0)
        at = (at + 1) & (index->room - 1);
    return &index->slots[at];
}

/* Makes room for one more entry in list and index; the index then knows the whole list. 0 or -ENOMEM. */
static int make_room(const struct seen *s)
{
    enum { FIRST_ROOM = 64 };
    struct kp_count_index *index = s->index;
    size_t n = *s->n, room = index->room ? index->room : FIRST_ROOM;
    if (index->n == n && 2 * (n + 1) <= index->room)
        return 0;
    while (room < 2 * (n + 1))
        room *= 2;
    struct kp_kernel_count *grown = realloc(*s->list, room / 2 * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    *s->list = grown;
    size_t *slots = calloc(room, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(index->slots);
    *index = (struct kp_count_index){slots, room, n};
    for (size_t i = 0; i < n; i++)
        *slot_of(s, grown[i].name) = i + 1;
    return 0;
}

/* Adds to the count of `name` in one of the lists. */
static int add_seen(const struct seen *s, const char *name, uint64_t n)
{
    if (make_room(s))
        return -ENOMEM;
    size_t *slot = slot_of(s, name);
    if (*slot) {
        (*s->list)[*slot - 1].count += n;
        return 0;
    }
    char *copy = kp_strdup(name);
    if (!copy)
        return -ENOMEM;
    (*s->list)[(*s->n)++] = (struct kp_kernel_count){.name = copy, .count = n};
    *slot = s->index->n = *s->n;
    return 0;
}

int kp_session_add_kernel(struct kp_session *s, const char *name, uint64_t n)
{
    return add_seen(&(struct seen){&s->kernels, &s->n_kernels, &s->kernel_index}, name, n);
}

int kp_session_add_range(struct kp_session *s, const char *expression, uint64_t n)
{
    return add_seen(&(struct seen){&s->ranges, &s->n_ranges, &s->range_index}, expression, n);
}

int kp_session_add_lacking(struct kp_session *s, const char *name, uint64_t n)
{
    return add_seen(&(struct seen){&s->lacking, &s->n_lacking, &s->lacking_index}, name, n);
}

/* Writes a name as an expression that nothing else matches, for a shell's single quotes. */
static void put_name(FILE *to, const char *name)
{
    for (; *name; name++)
        if (*name == '\'')
            fputs(".", to);
        else
            fprintf(to, strchr(".[]()*+?{}|^$\\", *name) ? "\\%c" : "%c", *name);
}

char *kp_session_further(const struct kp_session *s)
{
    enum { MOST = 20 };
    char *text = NULL;
    size_t size, n = s->n_lacking < MOST ? s->n_lacking : MOST;
    FILE *to = n ? open_memstream(&text, &size) : NULL;
    if (!to)
        return NULL;
    fputs("-k 'regex:^(", to);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? "|" : "", to);
        put_name(to, s->lacking[i].name);
    }
    fputs(")$'", to);
    if (fclose(to)) {
        free(text);
        return NULL;
    }
    return text;
}

/* Copies the texts of a range into one block, which begins with `domain`: launches have many ranges. */
static int copy_texts(struct kp_nvtx_range *r)
{
    char **texts[] = {&r->domain, &r->name, &r->category, &r->payload};
    enum { TEXTS = sizeof texts / sizeof *texts };
    size_t sizes[TEXTS], all = 0;
    for (size_t i = 0; i < TEXTS; i++)
        all += sizes[i] = strlen(*texts[i]) + 1;
    char *to = malloc(all);
    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i < TEXTS; i++) {
        *texts[i] = memcpy(to, *texts[i], sizes[i]);
        to += sizes[i];
    }
    return 0;
}

int kp_nvtx_add(struct kp_nvtx *n, const struct kp_nvtx_range *r)
{
    struct kp_nvtx_range copy = *r;
    if (!KP_ROOM(n->ranges, n->n_ranges) || copy_texts(&copy))
        return -ENOMEM;
    n->ranges[n->n_ranges++] = copy;
    return 0;
}

void kp_nvtx_free(struct kp_nvtx *n)
{
    for (size_t i = 0; i < n->n_ranges; i++)
        free(n->ranges[i].domain); /* frees the texts after it, too */
    free(n->ranges);
    free(n->thread_name);
    free(n->stream_name);
    *n = (struct kp_nvtx){.ranges = NULL};
}

void kp_frames_free(struct kp_stack *s)
{
    for (size_t i = 0; i < s->n_frames; i++) {
        free(s->frames[i].function);
        free(s->frames[i].file);
        free(s->frames[i].module);
    }
    free(s->frames);
    *s = (struct kp_stack){0};
}

void kp_code_free(struct kp_code *c)
{
    for (size_t i = 0; i < c->n_instructions; i++) {
        free(c->instructions[i].opcode);
        free(c->instructions[i].text);
    }
    for (size_t i = 0; i < c->n_locations; i++)
        free(c->locations[i].function);
    for (size_t i = 0; i < c->n_files; i++) {
        free(c->files[i].path);
        free(c->files[i].text);
    }
    for (size_t i = 0; i < c->n_ptx; i++)
        free(c->ptx[i].text);
    free(c->instructions);
    free(c->locations);
    free(c->files);
    free(c->ptx);
    free(c->function);
    *c = (struct kp_code){0};
}

void kp_code_counts_free(struct kp_code_counts *s)
{
    for (size_t i = 0; i < s->n_metrics; i++) {
        free(s->metrics[i].name);
        free(s->metrics[i].values);
    }
    free(s->metrics);
    free(s->offsets);
    *s = (struct kp_code_counts){0};
}

void kp_series_free(struct kp_series *s)
{
    free(s->name);
    free(s->unit);
    free(s->values);
    *s = (struct kp_series){0};
}

int kp_result_add_counts(struct kp_result *r, struct kp_code_counts *counts)
{
    if (!KP_ROOM(r->counts, r->n_counts))
        return -ENOMEM;
    r->counts[r->n_counts++] = *counts;
    *counts = (struct kp_code_counts){0};
    return 0;
}

int kp_result_add_series(struct kp_result *r, struct kp_series *series)
{
    if (!KP_ROOM(r->series, r->n_series))
        return -ENOMEM;
    r->series[r->n_series++] = *series;
    *series = (struct kp_series){0};
    return 0;
}

struct kp_variant *kp_result_add_variant(struct kp_result *r, const char *name)
{
    if (!KP_ROOM(r->variants, r->n_variants))
        return NULL;
    struct kp_variant v = {kp_strdup(name), calloc(1, sizeof *v.of)};
    if (!v.name || !v.of) {
        variant_free(&v);
        return NULL;
    }
    r->variants[r->n_variants] = v;
    return &r->variants[r->n_variants++];
}

const struct kp_series *kp_result_find_series(const struct kp_result *r, const char *name)
{
    for (size_t i = 0; i < r->n_series; i++)
        if (!strcmp(r->series[i].name, name))
            return &r->series[i];
    return NULL;
}

const uint64_t *kp_code_counts_find(const struct kp_code_counts *s, const char *name)
{
    for (size_t i = 0; i < s->n_metrics; i++)
        if (!strcmp(s->metrics[i].name, name))
            return s->metrics[i].values;
    return NULL;
}

const struct kp_instruction *kp_code_at(const struct kp_code *c, uint32_t offset)
{
    size_t low = 0, high = c->n_instructions;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->instructions[middle].offset == offset)
            return &c->instructions[middle];
        if (c->instructions[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int kp_code_add_ptx(struct kp_code *c, uint32_t line, const char *text, size_t len)
{
    char *copy = KP_ROOM(c->ptx, c->n_ptx) ? strndup(text, len) : NULL;
    if (!copy)
        return -ENOMEM;
    c->ptx[c->n_ptx++] = (struct kp_ptx_line){line, copy};
    return 0;
}

const char *kp_code_ptx(const struct kp_code *c, uint32_t line)
{
    size_t low = 0, high = c->n_ptx;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->ptx[middle].line == line)
            return c->ptx[middle].text;
        if (c->ptx[middle].line < line)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
