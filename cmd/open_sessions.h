/* Opens stored sessions and their display, for `kprof report` and `kprof diff`. */
#ifndef KP_CMD_OPEN_SESSIONS_H
#define KP_CMD_OPEN_SESSIONS_H

#include <stdbool.h>

#include "report/view/display.h"

struct kp_options;
struct kp_store;

/* Reads the display's options from the environment. Returns 0, or an exit status after reporting why. Free *o with
 * kp_options_free, after the last use of *d. */
int kp_open_display(struct kp_options *o, struct kp_display *d);

/* Opens a session, whose name may lack its ending, and, if wanted, loads its folder of section files. Returns 0, or an
 * exit status after reporting why, with the nearest file name. */
int kp_open_session(const char *path, bool load_folder, struct kp_store **out);

/* Warns of each path of several that leads to the file of one before it; `so` says what follows. */
void kp_open_tell_twice(char *const *paths, size_t n, const char *so);

#endif
