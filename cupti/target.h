/*
 * The target side of CUPTI: chip and availability of a device, ids, the range profiler of a context, the checkpoint of
 * its memory, and facts from activity records.
 *
 * Errors: int results are 0, -ENOMEM, or a positive CUPTI code. Threads: the caller serialises calls for one context;
 * it must be current if a comment says so.
 */
#ifndef KP_CUPTI_TARGET_H
#define KP_CUPTI_TARGET_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/model/activities.h"
#include "collectors/model/launches.h"
#include "cupti/host.h"
#include "cupti/loader.h"

/* Initialises CUPTI's profiler; once per process, before the calls below. */
int kp_cupti_target_init(const struct kp_cupti *c);

/* Returns CUPTI's chip name of device `ordinal` ("GH100"); CUPTI owns the string. */
int kp_cupti_target_chip(const struct kp_cupti *c, int ordinal, const char **chip);

/* Returns the counter availability of the device of `ctx`: *image malloc'ed. */
int kp_cupti_target_availability(const struct kp_cupti *c, CUcontext ctx, uint8_t **image, size_t *size);

/* Return ids as NVIDIA's tools print them. `per_thread`: the launch came through a per-thread-default-stream entry
 * point. Asking for a stream assigns the next free id, so ask only for streams that are shown. */
int kp_cupti_target_context_id(const struct kp_cupti *c, CUcontext ctx, uint32_t *id);
int kp_cupti_target_stream_id(const struct kp_cupti *c, CUcontext ctx, CUstream stream, bool per_thread, uint32_t *id);

/* ---- range profiler ---- */

/* The profiler enabled on a context. */
struct kp_range;

/* Enables the profiler on `ctx`. One at a time per context. */
int kp_range_open(const struct kp_cupti *c, CUcontext ctx, struct kp_range **out);
/* Disables the profiler after ending a running pass, and frees its memory in any case. Safe on NULL. Use
 * kp_range_abandon instead once the context is gone. A code means that the profiler is still enabled: open no other
 * one on the context. */
int kp_range_close(struct kp_range *r);
void kp_range_abandon(struct kp_range *r);

/* Room for the results of the passes of `config`, for up to `ranges` ranges. */
struct kp_image;

/* Computes the host memory of an image for `ranges` ranges, in bytes, its empty twin included. */
int kp_image_bytes(const struct kp_range *r, const struct kp_config *config, size_t ranges, size_t *bytes);
/* Makes an image, in about 0.3 ms per range; emptying it again is a copy. `config` must outlive the image. */
int kp_image_make(const struct kp_range *r, const struct kp_config *config, size_t ranges, struct kp_image **out);
void kp_image_free(struct kp_image *i);
/* Returns the decoded image, owned by `i`, valid until the next kp_range_begin with it. */
void kp_image_data(const struct kp_image *i, const uint8_t **data, size_t *size);
size_t kp_image_ranges(const struct kp_image *i); /* its room */

/* Write a decoded image to a file, which must not exist; read it into an image made the same way, for kp_range_resume.
 * 0, -EINVAL if the list or the room differs, or another negative errno. */
int kp_image_write(const struct kp_image *i, const char *path);
int kp_image_read(struct kp_image *i, const char *path);

/* Configures the profiler for one pass of a list, the only one in this process: `i` has the passes before pass `pass`;
 * for pass 0 it is emptied. KP_VENDOR: this is CUPTI's application replay, in which a run names the pass and continues
 * the image of the previous run. It has not been tried on a GPU. */
int kp_range_resume(struct kp_range *r, enum kp_range_mode mode, struct kp_image *i, size_t pass);

/* Empties the image and configures the profiler for it: pass 0 comes next. A profiler cannot change its mode: close
 * it and open another one. */
int kp_range_begin(struct kp_range *r, enum kp_range_mode mode, struct kp_image *i);
int kp_range_start(struct kp_range *r); /* starts a pass */
/* User range: open a range, and close it. After a failed pop the range stays open until the next push or stop, which
 * close it first, and fail if they cannot. */
int kp_range_push(struct kp_range *r);
int kp_range_pop(struct kp_range *r);
/* Ends the pass, if one runs; *last: every pass has run. Closes an open range first. If that fails, the pass goes on
 * (kp_range_runs) and only kp_range_close helps. After any other failure the pass has ended. */
int kp_range_stop(struct kp_range *r, bool *last);
bool kp_range_runs(const struct kp_range *r);
/* Returns which pass of the configuration comes next, KP_TURN_UNKNOWN after a failure. KP_VENDOR (CUPTI 13.0): passes
 * come in turn, the first again after the last; only enabling the profiler again starts from the first. Another
 * configuration is not accepted before that either: kp_range_begin with one changes only the image. */
#define KP_TURN_UNKNOWN SIZE_MAX
size_t kp_range_turn(const struct kp_range *r);
/* Runs passes without launches until `pass` comes next, 10 to 50 ms each. -EINVAL: the configuration has no such
 * pass. */
int kp_range_skip(struct kp_range *r, size_t pass);
/* Decodes the data of the passes into the image. *n receives the number of ranges, *dropped the number without room. */
int kp_range_decode(struct kp_range *r, size_t *n, size_t *dropped);

/* ---- checkpoint ---- */

struct kp_checkpoint;

bool kp_checkpoint_available(const struct kp_cupti *c);
/* Save all memory of `ctx` that a kernel can write; restore it, as often as needed; free it. */
int kp_checkpoint_save(const struct kp_cupti *c, CUcontext ctx, struct kp_checkpoint **out);
int kp_checkpoint_restore(struct kp_checkpoint *k);
void kp_checkpoint_free(struct kp_checkpoint *k);
/* Frees the host's part only. The device's part goes with the context. */
void kp_checkpoint_abandon(struct kp_checkpoint *k);

/* ---- facts of a launch that only activity records have ---- */

/* Returns true if the functions for activity records exist. */
bool kp_activity_available(const struct kp_cupti *c);
/* Record the kernels launched between begin and end, at most `cap`; *n receives their number. Use them outside of
 * profiler passes, while no other user of CUPTI's activity API is in the process: it has one set of buffers. */
int kp_activity_begin(const struct kp_cupti *c);
int kp_activity_end(const struct kp_cupti *c, struct kp_executed *records, size_t cap, size_t *n);

/* For kp_detach: CUPTI has forgotten who receives records. */
void kp_activity_detached(void);

/* Hand the records of kernels launched between the two calls to `sink`, as soon as kp_watch_flush or CUPTI's own thread
 * finds that they have ended. Neither call waits for a kernel. During a watch both get the records. */
int kp_activity_on(const struct kp_cupti *c, kp_record_sink *sink);
int kp_activity_off(const struct kp_cupti *c);

/* ---- a watch: records of all kernels, copies and memsets ---- */

/* Returns true if the functions for a watch exist. */
bool kp_watch_available(const struct kp_cupti *c);
/* Returns the time in ns, on the clock of the records; 0 if there is none. Any thread. */
uint64_t kp_watch_now(const struct kp_cupti *c);
/* Hands all records from now on to `sink`, or those of kernels alone. CUPTI holds at most 64 MiB of them at a time. A
 * probe may run meanwhile. There is one watch in a process. */
int kp_watch_begin(const struct kp_cupti *c, kp_record_sink *sink, bool kernels);
/* Switch recording off and on again, around work of our own. Records of activities that have ended are handed on
 * first. */
int kp_watch_pause(const struct kp_cupti *c);
int kp_watch_resume(const struct kp_cupti *c);
/* Hands on the records of activities that have ended; `all`: gives the others up, for the end of a context. */
int kp_watch_flush(const struct kp_cupti *c, bool all);
/* Returns the number of records that CUPTI has dropped for want of room. Any thread. */
uint64_t kp_watch_dropped(void);

/* ---- leaving the driver alone ---- */

/* Returns true if this CUPTI can leave the driver's calls, and be used again afterwards. */
bool kp_detach_available(const struct kp_cupti *c);
/* Makes CUPTI leave the driver's calls, by a call of `ask_device`, the driver's cuCtxGetDevice: launches then cost what
 * they cost without it. Nothing may be enabled, started or waited for; call kp_cupti_target_init first to use it again.
 * A code if others use its callbacks; then nothing has changed. No other thread may launch meanwhile. */
int kp_detach(const struct kp_cupti *c, CUresult (*ask_device)(CUdevice *device));

#endif
