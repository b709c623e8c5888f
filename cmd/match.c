#include "cmd/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A launch in the order of what must be the same, then of the run. */
struct place {
    const struct kp_launch_info *launch;
    size_t at;
    enum kp_app_match by;
};

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_shape(const struct kp_launch_info *a, const struct kp_launch_info *b)
{
    int order = memcmp(a->grid, b->grid, sizeof a->grid);
    return order ? order : memcmp(a->block, b->block, sizeof a->block);
}

/* Compares what must be the same in both runs. */
static int compare(const struct kp_launch_info *a, const struct kp_launch_info *b, enum kp_app_match by)
{
    int order = (a->device > b->device) - (a->device < b->device);
    if (!order)
        order = (a->kind > b->kind) - (a->kind < b->kind);
    if (!order)
        order = strcmp(a->mangled, b->mangled);
    if (!order && by != KP_MATCH_NAME)
        order = by_shape(a, b);
    if (!order && by == KP_MATCH_ALL)
        order = order_of(a->context_id, b->context_id);
    return order || by != KP_MATCH_ALL ? order : order_of(a->stream_id, b->stream_id);
}

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = compare(x->launch, y->launch, x->by);
    return order ? order : order_of(x->at, y->at);
}

static struct place *sorted_launches(const struct kp_launch_info *const *launches, size_t n, enum kp_app_match by)
{
    struct place *places = calloc(n + 1, sizeof *places);
    for (size_t i = 0; places && i < n; i++)
        places[i] = (struct place){launches[i], i, by};
    if (places)
        qsort(places, n, sizeof *places, compare_places);
    return places;
}

/* Returns the end of the launches that are like the one at `from`. */
static size_t alike_to(const struct place *places, size_t from, size_t n)
{
    size_t to = from + 1;
    while (to < n && !compare(places[from].launch, places[to].launch, places[from].by))
        to++;
    return to;
}

static void match_strictly(const struct kp_launch_info *const *launches, size_t n,
                           const struct kp_launch_info *const *others, size_t m, enum kp_app_match by, size_t *partner,
                           struct kp_match *out)
{
    size_t same = 0;
    while (same < n && same < m && !compare(launches[same], others[same], by))
        same++;
    bool all = same == n && same == m;
    for (size_t i = 0; i < n; i++)
        partner[i] = all ? i : KP_NO_PARTNER;
    if (!all)
        *out = (struct kp_match){n, m, same};
}

/* Pairs the launches of one kind: a[0..n) and b[0..m). Returns how many pairs there are. */
static size_t pair(const struct place *a, size_t n, const struct place *b, size_t m, enum kp_app_mode mode,
                   size_t *partner)
{
    size_t pairs = n < m ? n : m;
    if (mode == KP_APP_BALANCED && n != m)
        pairs = 0;
    for (size_t i = 0; i < pairs; i++)
        partner[a[i].at] = b[i].at;
    return pairs;
}

static size_t match_by_number(const struct place *a, size_t n, const struct place *b, size_t m, enum kp_app_mode mode,
                              size_t *partner)
{
    size_t pairs = 0;
    for (size_t i = 0, j = 0, i_end, j_end; i < n && j < m;) {
        int order = compare(a[i].launch, b[j].launch, a[i].by);
        i_end = alike_to(a, i, n);
        j_end = alike_to(b, j, m);
        if (!order)
            pairs += pair(a + i, i_end - i, b + j, j_end - j, mode, partner);
        i = order <= 0 ? i_end : i;
        j = order >= 0 ? j_end : j;
    }
    return pairs;
}

int kp_match_launches(const struct kp_launch_info *const *launches, size_t n,
                      const struct kp_launch_info *const *others, size_t m, enum kp_app_match by, enum kp_app_mode mode,
                      size_t *partner, struct kp_match *out)
{
    *out = (struct kp_match){.first = KP_NO_PARTNER};
    if (mode == KP_APP_STRICT) {
        match_strictly(launches, n, others, m, by, partner, out);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        partner[i] = KP_NO_PARTNER;
    struct place *a = sorted_launches(launches, n, by), *b = sorted_launches(others, m, by);
    int rc = a && b ? 0 : -ENOMEM;
    if (!rc) {
        size_t pairs = match_by_number(a, n, b, m, mode, partner);
        out->alone = n - pairs;
        out->more = m - pairs;
    }
    free(a);
    free(b);
    return rc;
}
