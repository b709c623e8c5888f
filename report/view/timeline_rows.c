#include "report/view/timeline_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/room.h"

enum {
    DEEPEST = 64,
    MOST_ROWS = 2048, /* the last one gets the rest */
};

/* A row, with the ends of its activities that may still run, the innermost last. */
struct open_row {
    struct kp_timeline_row row;
    int64_t ends[DEEPEST];
    size_t n;
};

struct open_rows {
    struct open_row *at;
    size_t n;
};

static enum kp_activity_kind kind_of(const struct kp_activity *a)
{
    return a->kind == KP_ACTIVITY_RANGE || a->kind == KP_ACTIVITY_KPROF ? a->kind : KP_ACTIVITY_KERNEL;
}

static bool is_of(const struct kp_timeline_row *r, const struct kp_activity *a)
{
    if (r->kind != kind_of(a))
        return false;
    if (r->kind == KP_ACTIVITY_KPROF)
        return true;
    if (r->kind == KP_ACTIVITY_RANGE)
        return r->thread == a->thread;
    return r->device == a->device && r->context_id == a->context_id && r->stream_id == a->stream_id;
}

static bool takes(struct open_row *r, const struct kp_activity *a, bool nested)
{
    while (r->n && r->ends[r->n - 1] <= a->start_ns)
        r->n--;
    nested &= r->row.kind == KP_ACTIVITY_RANGE;
    return !r->n || (nested && r->n < DEEPEST && r->ends[r->n - 1] >= a->end_ns);
}

static int assign(struct open_rows *all, const struct kp_activity *a, bool nested, uint32_t *out)
{
    uint32_t lane = 0;
    size_t i = 0;
    for (; i < all->n; i++) {
        if (!is_of(&all->at[i].row, a))
            continue;
        if (takes(&all->at[i], a, nested))
            break;
        lane++;
    }
    if (i == all->n && all->n == MOST_ROWS) {
        *out = MOST_ROWS - 1;
        return 0;
    }
    if (i == all->n) {
        if (!KP_ROOM(all->at, all->n))
            return -ENOMEM;
        enum kp_activity_kind kind = kind_of(a);
        bool on_device = kind == KP_ACTIVITY_KERNEL;
        all->at[all->n++] = (struct open_row){.row = {.kind = kind,
                                                      .device = on_device ? a->device : KP_NO_DEVICE,
                                                      .context_id = on_device ? a->context_id : 0,
                                                      .stream_id = on_device ? a->stream_id : 0,
                                                      .thread = kind == KP_ACTIVITY_RANGE ? a->thread : 0,
                                                      .lane = lane}};
    }
    all->at[i].ends[all->at[i].n++] = a->end_ns;
    *out = (uint32_t)i;
    return 0;
}

int kp_timeline_rows_of(const struct kp_timeline *t, bool nested, struct kp_timeline_rows *out)
{
    struct open_rows all = {.n = 0};
    *out = (struct kp_timeline_rows){.of = calloc(t->n ? t->n : 1, sizeof *out->of)};
    int rc = out->of ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < t->n; i++)
        rc = assign(&all, &t->at[i], nested, &out->of[i]);
    out->at = rc ? NULL : calloc(all.n ? all.n : 1, sizeof *out->at);
    if (!rc && !out->at)
        rc = -ENOMEM;
    for (size_t i = 0; !rc && i < all.n; i++)
        out->at[i] = all.at[i].row;
    out->n = rc ? 0 : all.n;
    free(all.at);
    return rc;
}

void kp_timeline_rows_free(struct kp_timeline_rows *r)
{
    free(r->at);
    free(r->of);
    *r = (struct kp_timeline_rows){.n = 0};
}
