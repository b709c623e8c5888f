/*
 * The vendor's library of counters: finds it, and explains its codes. Everything is collected through it; outside this
 * room it is a handle.
 *
 * Errors: int results are 0, a negative errno, or a positive code of the library (see kp_library_explain). Threads:
 * loading is done once, by the caller under its own lock; the handle is read-only afterwards.
 */
#ifndef KP_COLLECTORS_PROVIDERS_LIBRARY_H
#define KP_COLLECTORS_PROVIDERS_LIBRARY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dl.h"
#include "report/model/reasons.h"

struct kp_cupti;

/* Opens the library: `dir` and `near` are those of kp_cupti_load. Returns 0; -ENOENT, -EINVAL or -ENOTSUP with *err, a
 * malloc'ed line that names the remedy. The files stay loaded for the life of the process. */
int kp_library_load(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out,
                    char **err);
/* The same in parts: see kp_cupti_open. */
int kp_library_open(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out,
                    char **err);
enum kp_library_part { KP_LIBRARY_PLANS, KP_LIBRARY_COUNTS };
void kp_library_warm(const struct kp_cupti *c, enum kp_library_part part);
void kp_library_complete(struct kp_cupti *c);
struct kp_cupti *kp_library_copy(const struct kp_cupti *c, bool (*goes_on)(void));
/* Returns true if the folder has a file of the library; loads nothing. */
bool kp_library_lies_in(const char *dir);
/* Starts its profiler; once per process, before calls that ask a device or a context. */
int kp_library_start(const struct kp_cupti *c);
/* Frees the handle. */
void kp_library_free(struct kp_cupti *c);

/* Return the version, "13.0", or ""; and the opened file. Valid as long as `c`. */
const char *kp_library_version(const struct kp_cupti *c);
const char *kp_library_path(const struct kp_cupti *c);

/* Explains a code, or a negative errno, and the remedy, after the text of `reason`, which names the operation. The
 * caller frees the text, which is NULL without memory. */
struct kp_why kp_library_explain(const struct kp_cupti *c, enum kp_reason reason, int code);
/* The same for what starts counting or sampling: mentions another process if the code may mean that one counts. */
struct kp_why kp_library_explain_begin(const struct kp_cupti *c, enum kp_reason reason, int code);
/* Returns true if one of the codes explained so far was a missing permission. Any thread. */
bool kp_library_denied(void);

/* Takes the library out of the driver's calls, so that launches cost what they cost without it. `ask_device`: the
 * driver's cuCtxGetDevice. Nothing may be counted or recorded, no other thread may launch, and there must be a context.
 * Returns true if it is out: then call kp_library_come_back, which returns 0 or a code, with any context before using
 * it again. */
bool kp_library_leave(const struct kp_cupti *c, CUresult (*ask_device)(CUdevice *device));
int kp_library_come_back(const struct kp_cupti *c, CUcontext ctx);
/* Notes that somebody else has ended the library: call kp_library_come_back before using it again. */
void kp_library_was_left(void);
/* Returns a function of the library by its name, or NULL. */
void *kp_library_find(const struct kp_cupti *c, const char *function);
/* Returns true if `function` lies in the library. */
bool kp_library_owns(const struct kp_cupti *c, const void *function);

/* ---- devices and contexts ---- */

/* Returns the library's name of the chip of device `ordinal` ("GH100"); the library owns the string. */
int kp_library_chip(const struct kp_cupti *c, int ordinal, const char **chip);
/* Returns the counters that the device of `ctx` offers: *image is malloc'ed. */
int kp_library_availability(const struct kp_cupti *c, CUcontext ctx, uint8_t **image);
/* Return ids as NVIDIA's tools print them. `per_thread`: the launch came through a per-thread-default-stream entry
 * point. Asking for a stream assigns the next free id, so ask only for streams that are shown. */
int kp_library_context_id(const struct kp_cupti *c, CUcontext ctx, uint32_t *id);
int kp_library_stream_id(const struct kp_cupti *c, CUcontext ctx, CUstream stream, bool per_thread, uint32_t *id);

#endif
