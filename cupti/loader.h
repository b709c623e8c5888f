/*
 * Finds and loads CUPTI. Nothing of CUPTI is linked: the libraries are opened when the first launch is profiled. A
 * process that launches nothing never loads them.
 *
 * Threads: loading is done once by the caller under its own lock; the completed table is read-only afterwards.
 */
#ifndef KP_CUPTI_LOADER_H
#define KP_CUPTI_LOADER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/dl.h"

struct kp_cupti;

/* Opens libcupti and the libraries beside it. Looks for a copy in the process, then in the loader's search path and
 * in `dir` if given. Then come the toolkit under CUDA_HOME or CUDA_PATH, and the folders of `near` (NULL-terminated,
 * for instance those of the process's CUDA libraries). Last are the usual installation folders. Returns 0; -ENOENT
 * without a copy, -EINVAL when a function is missing, -ENOTSUP in a program that a sanitiser would then end. All set
 * *err to a malloc'ed line, which names the remedy. The library stays loaded for the life of the process. */
int kp_cupti_load(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out, char **err);

/* The libraries of metrics: HOST lists them, schedules and evaluates, TARGET counts on a device. */
enum kp_cupti_part { KP_CUPTI_HOST, KP_CUPTI_TARGET };

/* Do the same in parts, as opening each library of metrics takes 0.1 s, the first time in a process: open finds the
 * library; warm, on any thread, opens one of those of metrics, and changes nothing of `c`; complete opens HOST and
 * makes its functions known. Before it no function of host.h may be called; before TARGET is open, none of target.h. */
int kp_cupti_open(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out, char **err);
void kp_cupti_warm(const struct kp_cupti *c, enum kp_cupti_part part);
void kp_cupti_complete(struct kp_cupti *c);

/* Returns a copy of an opened table, for a thread of its own: it may complete and use it while others do so with `c`.
 * As soon as goes_on says no, kp_host_open, kp_host_schedule and kp_host_fits_pass return -ECANCELED for the copy. To
 * kp_cupti_free; NULL without memory. Call it where `c` does not change. */
struct kp_cupti *kp_cupti_copy(const struct kp_cupti *c, bool (*goes_on)(void));

/* Whether the folder has a file that kp_cupti_load would try with `dir`. Loads nothing. */
bool kp_cupti_lies_in(const char *dir);

/* Frees the table, not the libraries. */
void kp_cupti_free(struct kp_cupti *c);

/* Return "13.0" from the API version, or ""; and the file that was opened. Valid as long as `c`. */
const char *kp_cupti_version(const struct kp_cupti *c);
const char *kp_cupti_path(const struct kp_cupti *c);
/* Returns a function of the library that was opened, or NULL. */
void *kp_cupti_find(const struct kp_cupti *c, const char *function);
/* Returns true if `function` lies in the library that was opened. */
bool kp_cupti_owns(const struct kp_cupti *c, const void *function);

/* The code of all that would count or sample after CUPTI had to be given up, see cupti/internal.h. */
enum { KP_CUPTI_LOST = -ENOTRECOVERABLE };

/* Explains a CUPTI code (or a negative errno) to a user, with the remedy. `what` names the operation. Returns
 * malloc'ed text, NULL without memory. */
char *kp_cupti_explain(const struct kp_cupti *c, const char *what, int code);
/* Likewise for what begins to count or to sample: where the code may mean that another process does, says so. */
char *kp_cupti_explain_begin(const struct kp_cupti *c, const char *what, int code);
/* Whether one of the codes explained so far was a missing permission. Any thread. */
bool kp_cupti_denied(void);

/* Codes that callers distinguish (values of CUptiResult). */
enum { KP_CUPTI_OK = 0, KP_CUPTI_OUT_OF_MEMORY = 8, KP_CUPTI_BUSY = 26, KP_CUPTI_NO_PERMISSION = 35 };

#endif
