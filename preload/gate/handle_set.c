#include "preload/gate/handle_set.h"

#include <errno.h>

#include "base/room.h"

bool kp_seen_has(const struct kp_seen *s, CUcontext ctx, const void *handle)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].ctx == ctx && s->list[i].handle == handle)
            return true;
    return false;
}

int kp_seen_add(struct kp_seen *s, CUcontext ctx, const void *handle)
{
    if (kp_seen_has(s, ctx, handle))
        return -EEXIST;
    if (!KP_ROOM(s->list, s->n))
        return -ENOMEM;
    s->list[s->n++] = (struct kp_seen_handle){.ctx = ctx, .handle = handle};
    return 0;
}

void kp_seen_drop(struct kp_seen *s, const void *handle)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].handle == handle)
            s->list[i--] = s->list[--s->n];
}

void kp_seen_empty(struct kp_seen *s)
{
    s->n = 0;
}
