/* `kprof report --export`: the chosen launches of a session as a session of their own. One thread. */
#ifndef KP_CMD_KEEP_H
#define KP_CMD_KEEP_H

#include <stdbool.h>

struct kp_chooser;
struct kp_store;

/* Of the session that was read from the path `read`, writes the launches that `chooser` takes (NULL = all), with their
 * stacks and code, and the whole timeline, to the path that the pattern gives with the session's process and host;
 * `force` replaces an earlier session. Notes on stderr how many they are. Returns 0, or an exit status after reporting
 * why. */
int kp_keep(struct kp_store *from, const char *read, struct kp_chooser *chooser, const char *pattern, bool force);

#endif
