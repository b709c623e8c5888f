/*
 * Memory that is freed as a whole: for trees and tables whose parts live and die together.
 * Threads: no locking here; an arena belongs to its holder.
 */
#ifndef KP_BASE_ARENA_H
#define KP_BASE_ARENA_H

#include <stddef.h>

struct kp_arena_block;

/* Zero-initialised, it is empty. */
struct kp_arena {
    struct kp_arena_block *blocks;
};

/* Returns `size` zeroed bytes, aligned for any type; NULL without memory. Valid until kp_arena_free. */
void *kp_arena_alloc(struct kp_arena *a, size_t size);
/* Copies the first `len` characters of `text`, terminated; NULL without memory. */
char *kp_arena_text(struct kp_arena *a, const char *text, size_t len);
/* Moves all memory of `from` to `to`; `from` is empty then. */
void kp_arena_move(struct kp_arena *to, struct kp_arena *from);
void kp_arena_free(struct kp_arena *a);

#endif
