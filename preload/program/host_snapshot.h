/*
 * Host memory that the launches of a window can reach, at two times: when the window opened, the state in which each
 * replay must start, and when the program's own launches had ended. The checkpoint leaves this memory alone. Only
 * differing pages are written, so a thread that fills other parts meanwhile loses nothing.
 */
#ifndef KP_PRELOAD_PROGRAM_HOST_SNAPSHOT_H
#define KP_PRELOAD_PROGRAM_HOST_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

struct kp_snapshot {
    struct kp_snapshot_part *parts;
    size_t n;
};

/* Adds `bytes` at `base` with their present contents, unless already added. Returns false if memory is short. */
bool kp_snapshot_add(struct kp_snapshot *s, void *base, size_t bytes);
/* Returns how much was added, bytes. */
size_t kp_snapshot_bytes(const struct kp_snapshot *s);
/* Returns true if the part at `base` is known and unchanged since it was added; *known: it is known. */
bool kp_snapshot_same(const struct kp_snapshot *s, const void *base, bool *known);
/* Saves the present contents of the parts: the end of the program's own execution. */
void kp_snapshot_keep(struct kp_snapshot *s);
/* Restores the contents at kp_snapshot_add. */
void kp_snapshot_restore(const struct kp_snapshot *s);
/* Restores the contents at kp_snapshot_keep: a kernel that waits for the host finds the value that it waits for. */
void kp_snapshot_release(const struct kp_snapshot *s);
/* Call it after the last replay. Restores what the host wrote while the program's own launches ran, if the replays
 * undid it without writing there themselves. */
void kp_snapshot_settle(const struct kp_snapshot *s);
void kp_snapshot_free(struct kp_snapshot *s);

#endif
