#include "report/view/gaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"

enum { MOST_STREAMS = 8192 /* further ones are not listed */ };

/* Times that do not touch, in order. */
struct times {
    struct span {
        int64_t start, end;
    } * at;
    size_t n;
};

/* Adds a time that starts no sooner than those before; merges it with the last one if they touch. */
static int add_time(struct times *t, int64_t start, int64_t end)
{
    if (t->n && start <= t->at[t->n - 1].end) {
        t->at[t->n - 1].end = end > t->at[t->n - 1].end ? end : t->at[t->n - 1].end;
        return 0;
    }
    if (!KP_ROOM(t->at, t->n))
        return -ENOMEM;
    t->at[t->n++] = (struct span){start, end};
    return 0;
}

/* Returns how much of a time the others cover. */
static int64_t covered(const struct times *t, int64_t start, int64_t end)
{
    size_t low = 0, high = t->n;
    int64_t sum = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->at[middle].end <= start)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < t->n && t->at[low].start < end; low++) {
        int64_t from = t->at[low].start > start ? t->at[low].start : start;
        int64_t to = t->at[low].end < end ? t->at[low].end : end;
        sum += to - from;
    }
    return sum;
}

static bool runs_on_device(const struct kp_activity *a)
{
    return a->kind == KP_ACTIVITY_KERNEL || a->kind == KP_ACTIVITY_COPY || a->kind == KP_ACTIVITY_SET;
}

/* ---- ranges ---- */

const struct kp_activity *kp_gaps_range_at(const struct kp_timeline *t, uint64_t thread, int64_t ns)
{
    const struct kp_activity *found = NULL;
    for (size_t i = 0; thread && ns && i < t->n && t->at[i].start_ns <= ns; i++)
        if (t->at[i].kind == KP_ACTIVITY_RANGE && t->at[i].thread == thread && t->at[i].end_ns >= ns)
            found = &t->at[i]; /* the last to begin is the innermost */
    return found;
}

/* ---- devices ---- */

static int find_device(struct kp_gaps *g, int device, struct kp_device_line **out)
{
    size_t i = 0;
    while (i < g->n_devices && g->devices[i].device < device)
        i++;
    if (i == g->n_devices || g->devices[i].device != device) {
        if (!KP_ROOM(g->devices, g->n_devices))
            return -ENOMEM;
        memmove(&g->devices[i + 1], &g->devices[i], (g->n_devices++ - i) * sizeof *g->devices);
        g->devices[i] = (struct kp_device_line){.device = device, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    }
    *out = &g->devices[i];
    return 0;
}

/* Keeps a gap if it is one of the longest; of equal ones the first. */
static void keep_gap(struct kp_device_line *d, const struct kp_gap *gap)
{
    size_t n = d->n_gaps < KP_GAPS_MOST ? d->n_gaps : KP_GAPS_MOST, i = n;
    d->n_gaps++;
    while (i && d->gaps[i - 1].ns < gap->ns)
        i--;
    if (i == KP_GAPS_MOST)
        return;
    size_t moved = (n < KP_GAPS_MOST ? n : KP_GAPS_MOST - 1) - i;
    memmove(&d->gaps[i + 1], &d->gaps[i], moved * sizeof *d->gaps);
    d->gaps[i] = *gap;
}

/* What the walk over a device's activities knows. */
struct walk {
    const struct kp_timeline *t;
    const struct times *held;
    struct times copying;
    struct kp_device_line *line;
    const struct kp_activity *last; /* kernel that ends last so far */
};

static void see_kernel(struct walk *w, const struct kp_activity *a)
{
    struct kp_device_line *d = w->line;
    d->kernels++;
    if (!w->last) {
        d->busy_ns += a->end_ns - a->start_ns;
        w->last = a;
        return;
    }
    if (a->start_ns > w->last->end_ns) {
        struct kp_gap gap = {.start_ns = w->last->end_ns, .end_ns = a->start_ns, .before = w->last, .next = a};
        gap.ns = gap.end_ns - gap.start_ns - covered(w->held, gap.start_ns, gap.end_ns);
        if (gap.ns > 0)
            keep_gap(d, &gap);
    }
    int64_t from = a->start_ns > w->last->end_ns ? a->start_ns : w->last->end_ns;
    d->busy_ns += a->end_ns > from ? a->end_ns - from : 0;
    if (a->end_ns >= w->last->end_ns)
        w->last = a;
}

/* Computes how long kprof held the program up while no kernel ran, from the first activity to the last. */
static int64_t held_without_kernels(const struct walk *w, const struct times *kernels)
{
    const struct kp_device_line *d = w->line;
    int64_t sum = 0, from = d->first_ns;
    for (size_t i = 0; i <= kernels->n; i++) {
        int64_t to = i < kernels->n ? kernels->at[i].start : d->last_ns;
        if (to > from)
            sum += covered(w->held, from, to);
        from = i < kernels->n ? kernels->at[i].end : from;
    }
    return sum;
}

static int walk_device(const struct kp_timeline *t, const struct times *held, struct kp_device_line *line)
{
    struct walk w = {.t = t, .held = held, .line = line};
    struct times kernels = {.n = 0};
    int rc = 0;
    for (size_t i = 0; !rc && i < t->n; i++) {
        const struct kp_activity *a = &t->at[i];
        if (!runs_on_device(a) || a->device != line->device)
            continue;
        line->first_ns = a->start_ns < line->first_ns ? a->start_ns : line->first_ns;
        line->last_ns = a->end_ns > line->last_ns ? a->end_ns : line->last_ns;
        rc = add_time(a->kind == KP_ACTIVITY_KERNEL ? &kernels : &w.copying, a->start_ns, a->end_ns);
        if (a->kind == KP_ACTIVITY_KERNEL)
            see_kernel(&w, a);
    }
    line->held_ns = held_without_kernels(&w, &kernels);
    line->span_ns = line->last_ns - line->first_ns - line->held_ns;
    for (size_t i = 0; i < KP_GAPS_MOST && i < line->n_gaps; i++) {
        struct kp_gap *gap = &line->gaps[i];
        gap->copying_ns = covered(&w.copying, gap->start_ns, gap->end_ns);
        gap->copying_ns = gap->copying_ns < gap->ns ? gap->copying_ns : gap->ns;
        gap->range = kp_gaps_range_at(t, gap->next->thread, gap->next->launched_ns);
    }
    free(kernels.at);
    free(w.copying.at);
    return rc;
}

/* ---- streams ---- */

static int compare_streams(const struct kp_stream_line *s, const struct kp_activity *a)
{
    if (s->device != a->device)
        return s->device < a->device ? -1 : 1;
    if (s->context_id != a->context_id)
        return s->context_id < a->context_id ? -1 : 1;
    return s->stream_id < a->stream_id ? -1 : s->stream_id > a->stream_id;
}

static int find_stream(struct kp_gaps *g, const struct kp_activity *a, struct kp_stream_line **out)
{
    size_t low = 0, high = g->n_streams;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_streams(&g->streams[middle], a) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *out = NULL;
    if (low == g->n_streams || compare_streams(&g->streams[low], a)) {
        if (g->n_streams == MOST_STREAMS)
            return 0;
        if (!KP_ROOM(g->streams, g->n_streams))
            return -ENOMEM;
        memmove(&g->streams[low + 1], &g->streams[low], (g->n_streams++ - low) * sizeof *g->streams);
        g->streams[low] = (struct kp_stream_line){
            .device = a->device, .context_id = a->context_id, .stream_id = a->stream_id, .end_ns = INT64_MIN};
    }
    *out = &g->streams[low];
    return 0;
}

static int see_stream(struct kp_gaps *g, const struct kp_activity *a)
{
    struct kp_stream_line *s;
    int rc = find_stream(g, a, &s);
    if (!s)
        return rc;
    s->kernels += a->kind == KP_ACTIVITY_KERNEL;
    s->copies += a->kind == KP_ACTIVITY_COPY;
    s->sets += a->kind == KP_ACTIVITY_SET;
    s->bytes += a->kind == KP_ACTIVITY_COPY ? a->bytes : 0;
    s->kernel_ns += a->kind == KP_ACTIVITY_KERNEL ? a->end_ns - a->start_ns : 0;
    int64_t from = a->start_ns > s->end_ns ? a->start_ns : s->end_ns;
    s->busy_ns += a->end_ns > from ? a->end_ns - from : 0;
    s->end_ns = a->end_ns > s->end_ns ? a->end_ns : s->end_ns;
    return 0;
}

/* ---- kernels ---- */

static int by_total(const void *a, const void *b)
{
    const struct kp_kernel_line *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static int sum_kernels(const struct kp_timeline *t, struct kp_gaps *g)
{
    size_t n_names = t->n_names + 1; /* the last one stands for names that the file lacks */
    struct kp_kernel_line *sums = calloc(n_names, sizeof *sums);
    if (!sums)
        return -ENOMEM;
    for (size_t i = 0; i < t->n; i++) {
        const struct kp_activity *a = &t->at[i];
        int64_t ns = a->end_ns - a->start_ns;
        struct kp_kernel_line *k = &sums[a->name < t->n_names ? a->name : t->n_names];
        if (a->kind != KP_ACTIVITY_KERNEL)
            continue;
        k->name = a->name;
        k->least_ns = k->n && k->least_ns < ns ? k->least_ns : ns;
        k->most_ns = k->n && k->most_ns > ns ? k->most_ns : ns;
        k->total_ns += ns;
        k->n++;
    }
    for (size_t i = 0; i < n_names; i++)
        if (sums[i].n)
            sums[g->n_kernels++] = sums[i];
    qsort(sums, g->n_kernels, sizeof *sums, by_total);
    g->kernels = sums;
    return 0;
}

/* ---- all of it ---- */

int kp_gaps_of(const struct kp_timeline *t, struct kp_gaps *out)
{
    struct times held = {.n = 0};
    struct kp_device_line *line;
    *out = (struct kp_gaps){.n_devices = 0};
    int rc = sum_kernels(t, out);
    for (size_t i = 0; !rc && i < t->n; i++) {
        const struct kp_activity *a = &t->at[i];
        if (a->kind == KP_ACTIVITY_KPROF)
            rc = add_time(&held, a->start_ns, a->end_ns);
        if (!runs_on_device(a))
            continue;
        rc = find_device(out, a->device, &line);
        rc = rc ? rc : see_stream(out, a);
    }
    for (size_t i = 0; !rc && i < out->n_devices; i++)
        rc = walk_device(t, &held, &out->devices[i]);
    free(held.at);
    return rc;
}

void kp_gaps_free(struct kp_gaps *g)
{
    free(g->devices);
    free(g->streams);
    free(g->kernels);
    *g = (struct kp_gaps){.n_devices = 0};
}
