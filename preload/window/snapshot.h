/*
 * Host memory that the launches of a window can reach: as it was when the window opened, which each replay has to find
 * again, and as it was when the program's own launches had ended. The checkpoint leaves this memory alone.
 *
 * Only pages that differ are written, so that another thread which fills other parts meanwhile loses nothing.
 */
#ifndef KP_PRELOAD_WINDOW_SNAPSHOT_H
#define KP_PRELOAD_WINDOW_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

struct kp_snapshot {
    struct kp_snapshot_part *parts;
    size_t n;
};

/* Adds `bytes` at `base` as they are now, unless they are there already. False: memory is short. */
bool kp_snapshot_add(struct kp_snapshot *s, void *base, size_t bytes);
/* What has been added, byte. */
size_t kp_snapshot_bytes(const struct kp_snapshot *s);
/* Whether the part at `base` is there, and is now as it was when added; *known: whether it is there. */
bool kp_snapshot_same(const struct kp_snapshot *s, const void *base, bool *known);
/* Notes how the parts are now: the end of the program's own execution. */
void kp_snapshot_keep(struct kp_snapshot *s);
/* Puts the parts back to how they were when added. */
void kp_snapshot_restore(const struct kp_snapshot *s);
/* Puts them to how they were at kp_snapshot_keep: a kernel that waits for the host finds what it waits for. */
void kp_snapshot_release(const struct kp_snapshot *s);
/* After the last replay: what the host wrote while the program's own launches ran, and the replays took back without
 * writing it themselves, is put there again. */
void kp_snapshot_settle(const struct kp_snapshot *s);
void kp_snapshot_free(struct kp_snapshot *s);

#endif
