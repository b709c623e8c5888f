#include "report/model/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum {
    MOST_NAMES = 1 << 24,
    FIRST_ROOM = 256,
    LOOK_AHEAD = 64, /* records or notes that may lack their counterpart in a row */
};

static const char *const words[KP_ACTIVITY_KINDS] = {
    [KP_ACTIVITY_KERNEL] = "kernel", [KP_ACTIVITY_COPY] = "copy",   [KP_ACTIVITY_SET] = "memset",
    [KP_ACTIVITY_RANGE] = "range",   [KP_ACTIVITY_KPROF] = "kprof",
};

const char *kp_timeline_activity_word(enum kp_activity_kind kind)
{
    return (unsigned)kind < KP_ACTIVITY_KINDS ? words[kind] : "";
}

const char *kp_timeline_name(const struct kp_timeline *t, const struct kp_activity *a)
{
    const char *name = a->name < t->n_names ? t->names[a->name] : NULL;
    return name ? name : "";
}

int kp_timeline_add(struct kp_timeline *t, const struct kp_activity *a)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : FIRST_ROOM;
        struct kp_activity *grown = realloc(t->at, cap * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        t->at = grown;
        t->cap = cap;
    }
    t->at[t->n++] = *a;
    return 0;
}

int kp_timeline_set_name(struct kp_timeline *t, uint32_t number, const char *name)
{
    if (number >= MOST_NAMES)
        return -EINVAL;
    if (number >= t->n_names) {
        size_t n = (size_t)number + 1;
        char **grown = realloc(t->names, n * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        memset(&grown[t->n_names], 0, (n - t->n_names) * sizeof *grown);
        t->names = grown;
        t->n_names = n;
    }
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    free(t->names[number]);
    t->names[number] = copy;
    return 0;
}

void kp_timeline_free(struct kp_timeline *t)
{
    for (size_t i = 0; i < t->n_names; i++)
        free(t->names[i]);
    free(t->names);
    free(t->at);
    *t = (struct kp_timeline){.n = 0};
}

/* ---- order ---- */

struct placed {
    int64_t start, end;
    size_t place;
};

static int by_start(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1; /* a range inside another comes after it */
    return x->place < y->place ? -1 : x->place > y->place;
}

int kp_timeline_sort(struct kp_timeline *t)
{
    struct placed *order = t->n ? malloc(t->n * sizeof *order) : NULL;
    struct kp_activity *sorted = t->n ? malloc(t->n * sizeof *sorted) : NULL;
    int rc = t->n && (!order || !sorted) ? -ENOMEM : 0;
    for (size_t i = 0; !rc && i < t->n; i++)
        order[i] = (struct placed){t->at[i].start_ns, t->at[i].end_ns, i};
    if (!rc && t->n) {
        qsort(order, t->n, sizeof *order, by_start);
        for (size_t i = 0; i < t->n; i++)
            sorted[i] = t->at[order[i].place];
        free(t->at);
        t->at = sorted;
        t->cap = t->n;
        sorted = NULL;
    }
    free(order);
    free(sorted);
    return rc;
}

/* ---- launches of records ---- */

uint32_t kp_timeline_shape(const uint32_t grid[3], const uint32_t block[3])
{
    uint32_t both[6];
    memcpy(both, grid, 3 * sizeof *both);
    memcpy(&both[3], block, 3 * sizeof *both);
    return (uint32_t)kp_hash(both, sizeof both, 0);
}

static int by_call(const void *a, const void *b)
{
    const struct kp_kernel_record *x = a, *y = b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The next record and note that are not part of a graph. */
struct cursor {
    struct kp_kernel_record *records;
    const struct kp_launch_note *notes;
    size_t n, n_notes;
};

static size_t next_record(const struct cursor *c, size_t i)
{
    while (i < c->n && c->records[i].is_graph)
        i++;
    return i;
}

static size_t next_note(const struct cursor *c, size_t j)
{
    while (j < c->n_notes && (c->notes[j].is_graph || c->notes[j].is_node || c->notes[j].refused))
        j++;
    return j;
}

/* Passes over the records, or the notes, that lack their counterpart: whichever are fewer. */
static void catch_up(const struct cursor *c, size_t *i, size_t *j)
{
    size_t record = *i, note = *j;
    for (int step = 0; step < LOOK_AHEAD; step++) {
        record = next_record(c, record + 1);
        note = next_note(c, note + 1);
        if (record < c->n && c->records[record].shape == c->notes[*j].shape) {
            *i = record;
            return;
        }
        if (note < c->n_notes && c->notes[note].shape == c->records[*i].shape) {
            *j = note;
            return;
        }
        if (record >= c->n && note >= c->n_notes)
            break;
    }
    *i = next_record(c, *i + 1);
    *j = next_note(c, *j + 1);
}

static void link_kernels(const struct cursor *c)
{
    size_t i = next_record(c, 0), j = next_note(c, 0);
    while (i < c->n && j < c->n_notes) {
        if (c->records[i].shape != c->notes[j].shape) {
            catch_up(c, &i, &j);
            continue;
        }
        c->records[i].own = &c->notes[j];
        c->records[i].ordinal = c->notes[j].ordinal;
        i = next_record(c, i + 1);
        j = next_note(c, j + 1);
    }
}

/* Gives a graph's record the first node of its shape that no record before it has. */
static void link_node(const struct cursor *c, struct kp_kernel_record *records, size_t at, size_t graph)
{
    size_t same = 0;
    if (graph + 1 >= c->n_notes || !c->notes[graph + 1].is_node)
        return;
    for (size_t i = 0; i < at; i++)
        same += records[i].shape == records[at].shape;
    for (size_t k = graph + 1; k < c->n_notes && c->notes[k].is_node; k++)
        if (c->notes[k].shape == records[at].shape && !same--) {
            records[at].ordinal = c->notes[k].ordinal;
            return;
        }
}

static void link_graphs(const struct cursor *c)
{
    size_t j = 0;
    for (size_t i = 0; i < c->n;) {
        size_t n = 1;
        if (!c->records[i].is_graph) {
            i++;
            continue;
        }
        while (i + n < c->n && c->records[i + n].is_graph && c->records[i + n].correlation == c->records[i].correlation)
            n++;
        while (j < c->n_notes && (!c->notes[j].is_graph || c->notes[j].refused))
            j++;
        for (size_t k = 0; j < c->n_notes && k < n; k++) {
            c->records[i + k].own = &c->notes[j];
            c->records[i + k].ordinal = c->notes[j].ordinal;
            link_node(c, &c->records[i], k, j);
        }
        i += n;
        j++;
    }
}

void kp_timeline_link(struct kp_kernel_record *records, size_t n, const struct kp_launch_note *notes, size_t n_notes)
{
    const struct cursor c = {records, notes, n, n_notes};
    if (n)
        qsort(records, n, sizeof *records, by_call);
    for (size_t i = 0; i < n; i++) {
        records[i].own = NULL;
        records[i].ordinal = -1;
    }
    link_kernels(&c);
    link_graphs(&c);
}
