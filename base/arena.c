#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Builds with a sanitiser set it to 1: each allocation then has its own block, so that the sanitiser knows its end. */
#ifndef KP_ARENA_BLOCK
#define KP_ARENA_BLOCK (16 << 10)
#endif

struct kp_arena_block {
    struct kp_arena_block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

static struct kp_arena_block *new_block(size_t size)
{
    if (size > SIZE_MAX - sizeof(struct kp_arena_block))
        return NULL;
    struct kp_arena_block *b = calloc(1, sizeof *b + size);
    if (b)
        b->size = size;
    return b;
}

void *kp_arena_alloc(struct kp_arena *a, size_t size)
{
    const size_t step = alignof(max_align_t);
    if (size > SIZE_MAX - step)
        return NULL;
    size_t whole = (size + step - 1) / step * step;
    struct kp_arena_block *b = a->blocks;
    if (!b || b->size - b->used < size) {
        b = new_block(size > KP_ARENA_BLOCK ? size : KP_ARENA_BLOCK);
        if (!b)
            return NULL;
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = b->bytes + b->used;
    b->used += whole < b->size - b->used ? whole : b->size - b->used;
    return p;
}

char *kp_arena_text(struct kp_arena *a, const char *text, size_t len)
{
    char *copy = kp_arena_alloc(a, len + 1);
    return copy ? memcpy(copy, text, len) : NULL;
}

void kp_arena_move(struct kp_arena *to, struct kp_arena *from)
{
    struct kp_arena_block **end = &from->blocks;
    while (*end)
        end = &(*end)->next;
    *end = to->blocks;
    to->blocks = from->blocks;
    from->blocks = NULL;
}

void kp_arena_free(struct kp_arena *a)
{
    for (struct kp_arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    a->blocks = NULL;
}
