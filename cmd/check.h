/* What can be known before the program starts, so that no run is lost to it. */
#ifndef KP_CMD_CHECK_H
#define KP_CMD_CHECK_H

#include "base/failures.h"

struct kp_options;

/* Paths that do not begin at the root are made to, in *o and in the environment, and all is checked that can be: the
 * export, the log file, the metrics. Warns of metrics that there are not, and puts that into *failures. Returns 0, or
 * an exit status after having said why. */
int kp_check_run(struct kp_options *o, kp_failure_set *failures);

/* The export where its name is known beforehand; malloc'ed, NULL when it is not, or there is none. */
char *kp_check_export_path(const struct kp_options *o);

/* What execvp would execute for `name`; malloc'ed, NULL when there is nothing. */
char *kp_check_find_program(const char *name);

/* Why the loader would not preload a library into this program, as the end of a sentence; NULL when nothing is known
 * against it. Static text. */
const char *kp_check_not_followed(const char *program);

#endif
