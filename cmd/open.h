/* Stored sessions, and how they are shown, as `kprof report` and `kprof diff` open them. */
#ifndef KP_CMD_OPEN_H
#define KP_CMD_OPEN_H

#include <stdbool.h>

#include "report/view/display.h"

struct kp_options;
struct kp_store;

/* Says what the environment sets of the display. Returns 0, or an exit status after having said why; free *o with
 * kp_options_free, once *d is not used any more. */
int kp_open_display(struct kp_options *o, struct kp_display *d);

/* Opens a session, and where wanted loads its folder of section files. Returns 0, or an exit status after having said
 * why, with the name of the file that is nearest. */
int kp_open_session(const char *path, bool load_folder, struct kp_store **out);

#endif
