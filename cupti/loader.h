/*
 * Finds and loads CUPTI. Nothing of CUPTI is linked: the libraries are opened when the first launch is profiled. A
 * process that launches nothing never sees them.
 *
 * Threads: loading is done once by the caller under its own lock; the loaded table is read-only afterwards.
 */
#ifndef KP_CUPTI_LOADER_H
#define KP_CUPTI_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dl.h"

struct kp_cupti;

/* Opens libcupti (and the libraries it needs beside it): a copy already in the process, the loader's search path,
 * `dir` when given, the toolkit under CUDA_HOME or CUDA_PATH, the folders of `near` (NULL-terminated list of
 * directories, for instance those of the CUDA libraries in the process), and the usual installation folders. Returns
 * 0; -ENOENT with *err (malloc'ed line that says what to install or set) when there is none; -EINVAL with *err when
 * the library found lacks a function; -ENOTSUP with *err in a program that a sanitiser would end for it. The library
 * stays loaded for the life of the process. */
int kp_cupti_load(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out, char **err);

/* Whether the folder has a file that kp_cupti_load would try with `dir`. Loads nothing. */
bool kp_cupti_lies_in(const char *dir);

/* Frees the table, not the libraries. */
void kp_cupti_free(struct kp_cupti *c);

/* "13.0" from the API version, or "" ; the file that was opened. Valid while `c` is. */
const char *kp_cupti_version(const struct kp_cupti *c);
const char *kp_cupti_path(const struct kp_cupti *c);

/* What a CUPTI code (or a negative errno) means to a user, and what to do: one line, static or valid until the next
 * call on this thread. `what` names the operation. Returns malloc'ed text, NULL without memory. */
char *kp_cupti_explain(const struct kp_cupti *c, const char *what, int code);
/* Whether one of the codes explained so far was the want of permission. Any thread. */
bool kp_cupti_denied(void);

/* Codes that callers tell apart (values of CUptiResult). */
enum { KP_CUPTI_OK = 0, KP_CUPTI_OUT_OF_MEMORY = 8, KP_CUPTI_NO_PERMISSION = 35 };

#endif
