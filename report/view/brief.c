#include "report/view/brief.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "report/model/launch_names.h"

struct one {
    const char *kind; /* one of the kinds */
    double ns;
    double weight; /* launches that it stands for */
    uint64_t id;
};

struct kp_brief {
    char **kinds; /* kernel and shape, sorted; owned */
    size_t n_kinds;
    struct one *all;
    size_t n;
    uint64_t *chosen; /* ids, sorted */
    size_t n_chosen;
};

struct kp_brief *kp_brief_new(void)
{
    return calloc(1, sizeof(struct kp_brief));
}

void kp_brief_free(struct kp_brief *b)
{
    for (size_t i = 0; b && i < b->n_kinds; i++)
        free(b->kinds[i]);
    if (b) {
        free(b->kinds);
        free(b->all);
        free(b->chosen);
    }
    free(b);
}

static char *shape_text(const struct kp_launch_info *l)
{
    return kp_asprintf("%s %" PRIu32 ",%" PRIu32 ",%" PRIu32 " %" PRIu32 ",%" PRIu32 ",%" PRIu32, kp_launch_name(l),
                       l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
}

/* Returns the index of a kind, or its place to insert. */
static size_t place(const struct kp_brief *b, const char *kind)
{
    size_t low = 0, high = b->n_kinds;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(b->kinds[middle], kind) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the kind of that text, which it then owns. NULL without memory. */
static const char *take_kind(struct kp_brief *b, char *kind)
{
    size_t at = place(b, kind);
    if (at < b->n_kinds && !strcmp(b->kinds[at], kind)) {
        free(kind);
        return b->kinds[at];
    }
    if (!KP_ROOM(b->kinds, b->n_kinds)) {
        free(kind);
        return NULL;
    }
    memmove(&b->kinds[at + 1], &b->kinds[at], (b->n_kinds++ - at) * sizeof *b->kinds);
    return b->kinds[at] = kind;
}

int kp_brief_add(struct kp_brief *b, const struct kp_result *r)
{
    char *text = shape_text(&r->launch);
    const char *kind = text ? take_kind(b, text) : NULL;
    double ns = 0;
    if (!kind || !KP_ROOM(b->all, b->n))
        return -ENOMEM;
    if (!kp_result_mean_duration(r, &ns))
        ns = 0;
    b->all[b->n++] = (struct one){kind, ns, (double)kp_launch_weight(&r->launch), r->launch.id};
    return 0;
}

size_t kp_brief_count(const struct kp_brief *b)
{
    return b->n;
}

static int by_kind_and_time(const void *a, const void *b)
{
    const struct one *x = a, *y = b;
    int kinds = strcmp(x->kind, y->kind);
    return kinds ? kinds : x->ns != y->ns ? (x->ns > y->ns) - (x->ns < y->ns) : (x->id > y->id) - (x->id < y->id);
}

/* The launch that stands for a kernel and shape. */
struct chosen {
    uint64_t id;
    double ns; /* of all its launches */
};

static int longest_first(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : (x->id > y->id) - (x->id < y->id);
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Finds the median of each kind; returns their number. */
static size_t find_medians(const struct kp_brief *b, struct chosen *medians)
{
    size_t n = 0;
    for (size_t first = 0, end; first < b->n; first = end) {
        double ns = 0;
        for (end = first; end < b->n && b->all[end].kind == b->all[first].kind; end++)
            ns += b->all[end].ns * b->all[end].weight;
        medians[n++] = (struct chosen){b->all[first + (end - 1 - first) / 2].id, ns};
    }
    return n;
}

size_t kp_brief_choose(struct kp_brief *b, size_t most)
{
    struct chosen *medians = b->n ? calloc(b->n_kinds, sizeof *medians) : NULL;
    b->chosen = medians ? calloc(b->n_kinds, sizeof *b->chosen) : NULL;
    if (b->chosen) {
        qsort(b->all, b->n, sizeof *b->all, by_kind_and_time);
        size_t n = find_medians(b, medians);
        qsort(medians, n, sizeof *medians, longest_first);
        b->n_chosen = most && most < n ? most : n;
        for (size_t i = 0; i < b->n_chosen; i++)
            b->chosen[i] = medians[i].id;
        qsort(b->chosen, b->n_chosen, sizeof *b->chosen, by_id);
    }
    free(medians);
    return b->n_chosen;
}

bool kp_brief_has(const struct kp_brief *b, uint64_t id)
{
    return b->n_chosen && bsearch(&id, b->chosen, b->n_chosen, sizeof id, by_id);
}
