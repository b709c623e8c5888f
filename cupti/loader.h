/*
 * Finds and loads CUPTI. Nothing of CUPTI is linked: the libraries are opened when the first launch is profiled, so a
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

/* Opens libcupti and its companion libraries. Looks for a copy in the process, then in the loader's search path and in
 * `dir` if given. Then come the toolkit in CUDA_HOME or CUDA_PATH, the folders of `near` (NULL-terminated, for instance
 * those of the process's CUDA libraries), and the usual installation folders. Returns 0; -ENOENT without a copy,
 * -EINVAL if a function is missing, -ENOTSUP in a program that a sanitiser would then end. All set *err to a malloc'ed
 * line that names the remedy. The library stays loaded for the life of the process. */
int kp_cupti_load(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out, char **err);

/* The metric libraries: HOST lists metrics, schedules and evaluates, TARGET counts on a device. */
enum kp_cupti_part { KP_CUPTI_HOST, KP_CUPTI_TARGET };

/* The same in parts, because opening each metric library takes 0.1 s, the first time in a process. open finds the
 * library; warm, on any thread, opens a metric library and does not change `c`; complete opens HOST and binds its
 * functions. Call functions of host.h only after complete, and those of target.h only after TARGET is open. */
int kp_cupti_open(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out, char **err);
void kp_cupti_warm(const struct kp_cupti *c, enum kp_cupti_part part);
void kp_cupti_complete(struct kp_cupti *c);

/* Returns a copy of an opened table for another thread, which may complete and use it while others do the same with
 * `c`. As soon as goes_on returns false, kp_host_open, kp_host_schedule and kp_host_fits_pass return -ECANCELED for the
 * copy. To kp_cupti_free; NULL without memory. Call it while nothing changes `c`. */
struct kp_cupti *kp_cupti_copy(const struct kp_cupti *c, bool (*goes_on)(void));

/* Returns true if the folder has a file that kp_cupti_load would try with `dir`. Loads nothing. */
bool kp_cupti_lies_in(const char *dir);

/* Frees the table, not the libraries. */
void kp_cupti_free(struct kp_cupti *c);

/* Return "13.0" from the API version, or ""; and the opened file. Valid as long as `c`. */
const char *kp_cupti_version(const struct kp_cupti *c);
const char *kp_cupti_path(const struct kp_cupti *c);
/* Returns a function of the library that was opened, or NULL. */
void *kp_cupti_find(const struct kp_cupti *c, const char *function);
/* Returns true if `function` lies in the library that was opened. */
bool kp_cupti_owns(const struct kp_cupti *c, const void *function);

/* What everything that would count or sample returns after CUPTI had to be given up, see cupti/internal.h. */
enum { KP_CUPTI_LOST = -ENOTRECOVERABLE };

/* Explains a CUPTI code (or a negative errno) to a user, with the remedy. `what` names the operation. Returns
 * malloc'ed text, NULL without memory. */
char *kp_cupti_explain(const struct kp_cupti *c, const char *what, int code);
/* The same for what starts counting or sampling: mentions another process if the code may mean that one counts. */
char *kp_cupti_explain_begin(const struct kp_cupti *c, const char *what, int code);
/* Returns true if one of the codes explained so far was a missing permission. Any thread. */
bool kp_cupti_denied(void);

/* Codes that callers distinguish (values of CUptiResult). */
enum { KP_CUPTI_OK = 0, KP_CUPTI_OUT_OF_MEMORY = 8, KP_CUPTI_BUSY = 26, KP_CUPTI_NO_PERMISSION = 35 };

#endif
