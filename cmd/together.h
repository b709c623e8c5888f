/*
 * Puts the sessions of a program's ranks, each recorded by rotation, together into one: the same kernel and shape has
 * one entry, whose values are the means over the launches of all ranks.
 *
 * Threads: one; no function prints.
 */
#ifndef KP_CMD_TOGETHER_H
#define KP_CMD_TOGETHER_H

#include <stdbool.h>
#include <stddef.h>

struct kp_store;

/* An opened session, and its file. */
struct kp_rank_file {
    const char *path;
    struct kp_store *store;
};

/* Writes what `n` > 0 sessions give together to the new file `to`. Returns -EINVAL for sessions that cannot be put
 * together, or another negative errno. *err: a malloc'ed line or NULL. */
int kp_put_together(const struct kp_rank_file *files, size_t n, const char *to, char **err);

/* Returns true if the sessions are those of different ranks, by their environments, and a rotation recorded them with
 * the same options. */
bool kp_are_rotated_ranks(const struct kp_rank_file *files, size_t n);

#endif
