#include "preload/program/host_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/room.h"

enum { PAGE = 4096 };

struct kp_snapshot_part {
    char *base;
    size_t bytes;
    char *before, *after; /* after: NULL until kept */
};

bool kp_snapshot_add(struct kp_snapshot *s, void *base, size_t bytes)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->parts[i].base == base)
            return true;
    if (!KP_ROOM(s->parts, s->n))
        return false;
    char *copy = malloc(bytes);
    if (!copy)
        return false;
    memcpy(copy, base, bytes);
    s->parts[s->n++] = (struct kp_snapshot_part){.base = base, .bytes = bytes, .before = copy};
    return true;
}

size_t kp_snapshot_bytes(const struct kp_snapshot *s)
{
    size_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += s->parts[i].bytes;
    return sum;
}

bool kp_snapshot_same(const struct kp_snapshot *s, const void *base, bool *known)
{
    size_t i = 0;
    while (i < s->n && s->parts[i].base != base)
        i++;
    *known = i < s->n;
    return *known && !memcmp(s->parts[i].before, base, s->parts[i].bytes);
}

void kp_snapshot_keep(struct kp_snapshot *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct kp_snapshot_part *p = &s->parts[i];
        if (!p->after && !(p->after = malloc(p->bytes)))
            continue;
        memcpy(p->after, p->base, p->bytes);
    }
}

static void put_part(const struct kp_snapshot_part *p, const char *from)
{
    for (size_t at = 0; from && at < p->bytes; at += PAGE) {
        size_t n = p->bytes - at < PAGE ? p->bytes - at : PAGE;
        bool untouched = p->after && !memcmp(p->before + at, p->after + at, n);
        if (!untouched && memcmp(p->base + at, from + at, n))
            memcpy(p->base + at, from + at, n);
    }
}

void kp_snapshot_restore(const struct kp_snapshot *s)
{
    for (size_t i = 0; i < s->n; i++)
        put_part(&s->parts[i], s->parts[i].before);
}

void kp_snapshot_release(const struct kp_snapshot *s)
{
    for (size_t i = 0; i < s->n; i++)
        put_part(&s->parts[i], s->parts[i].after);
}

void kp_snapshot_settle(const struct kp_snapshot *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct kp_snapshot_part *p = &s->parts[i];
        for (size_t at = 0; p->after && at < p->bytes; at++)
            if (p->after[at] != p->before[at] && p->base[at] == p->before[at])
                p->base[at] = p->after[at];
    }
}

void kp_snapshot_free(struct kp_snapshot *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->parts[i].before);
        free(s->parts[i].after);
    }
    free(s->parts);
    *s = (struct kp_snapshot){.parts = NULL};
}
