/* Checks everything that can be checked before the program starts, so that no run is lost to a bad option. */
#ifndef KP_CMD_CHECK_H
#define KP_CMD_CHECK_H

#include <stdbool.h>

#include "base/failures.h"

struct kp_options;

/* Makes relative paths absolute, in *o and in the environment. Checks the export, the log file and the metrics.
 * Warns of unknown metrics, and adds that to *failures. Returns 0, or an exit status after reporting why. */
int kp_check_run(struct kp_options *o, kp_failure_set *failures);

/* Returns the export's path if known beforehand; malloc'ed, NULL when unknown, or without an export. */
char *kp_check_export_path(const struct kp_options *o);

/* Returns the file that execvp would execute for `name`; malloc'ed, NULL when there is none. */
char *kp_check_find_program(const char *name);

/* Returns true if no shell can read the file as a script, as bash judges it. */
bool kp_check_is_binary(const char *path);

/* Returns the interpreter that the first line of a script names; malloc'ed, NULL when it names none. */
char *kp_check_interpreter(const char *path);

/* Returns why kprof's library would not run in this program: the end of a sentence. NULL without a known reason. Static
 * text. */
const char *kp_check_not_followed(const char *program);

/* Returns true if the program's loader is musl's, which ends a program with status 127 where a preloaded library needs
 * functions that only glibc has. */
bool kp_check_is_for_musl(const char *program);

#endif
