/*
 * Folders for temporary files, in $TMPDIR or /tmp, which nobody but the user may enter. Threads: one at a time.
 *
 * What the process has made is in a list, which kp_temporary_end removes from a handler of a signal as well. A kill
 * leaves them: kp_temporary_sweep of a later process removes those.
 */
#ifndef KP_BASE_TEMPORARY_H
#define KP_BASE_TEMPORARY_H

#include <time.h>

/* Returns the folder of temporary files. */
const char *kp_temporary_base(void);
/* Makes a folder whose name starts with `begin`. Returns its path, which the caller frees; NULL with errno. */
char *kp_temporary_folder(const char *begin);
/* Removes a folder from the list: it outlives the process. */
void kp_temporary_keep(const char *folder);
/* Removes a folder with all its contents, also from the list. Links are not followed. */
void kp_temporary_remove(const char *folder);
/* Removes the folders that this process has made and neither removed nor kept; not those of the process that it was
 * forked from. May be called in a handler of a signal. */
void kp_temporary_end(void);
/* Removes folders of the user that other processes have left: their name starts with `begin`, a file `marker` is in
 * them, no file in them was written for `age` seconds, and none has the number of a live process at the start of its
 * name, or after `begin`. */
void kp_temporary_sweep(const char *begin, const char *marker, time_t age);

#endif
