/*
 * Memory that is given back as a whole: for trees and tables whose parts live and die together.
 *
 * Threads: no locking here; an arena belongs to whoever holds it.
 */
#ifndef KP_BASE_ARENA_H
#define KP_BASE_ARENA_H

#include <stddef.h>

struct kp_arena_block;

/* Zeroed is empty. */
struct kp_arena {
    struct kp_arena_block *blocks;
};

/* `size` zeroed bytes, aligned for any type; NULL without memory. Good until kp_arena_free. */
void *kp_arena_alloc(struct kp_arena *a, size_t size);
/* The first `len` characters of `text`, terminated; NULL without memory. */
char *kp_arena_text(struct kp_arena *a, const char *text, size_t len);
/* Moves all that `from` holds to `to`; `from` is empty then. */
void kp_arena_move(struct kp_arena *to, struct kp_arena *from);
void kp_arena_free(struct kp_arena *a);

#endif
