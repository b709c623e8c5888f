#include "preload/gate/handle_set.h"

#include <errno.h>
#include <stdlib.h>

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
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        struct kp_seen_handle *grown = realloc(s->list, cap * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        s->list = grown;
        s->cap = cap;
    }
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
