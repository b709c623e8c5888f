/*
 * The target side of CUPTI: chip and availability of a device, ids, the range profiler of a context, the checkpoint of
 * its memory, and the facts that only an activity record holds.
 *
 * Errors: int results are 0, -ENOMEM, or a positive CUPTI code. Threads: calls for one context are serialised by the
 * caller; the context must be current where a comment says so.
 */
#ifndef KP_CUPTI_TARGET_H
#define KP_CUPTI_TARGET_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/model/launches.h"
#include "cupti/host.h"
#include "cupti/loader.h"

/* Once a process, before the calls below. */
int kp_target_init(const struct kp_cupti *c);

/* CUPTI's chip name of device `ordinal` ("GH100"); CUPTI's string. */
int kp_target_chip(const struct kp_cupti *c, int ordinal, const char **chip);

/* Counter availability of the device behind `ctx`: *image malloc'ed. */
int kp_target_availability(const struct kp_cupti *c, CUcontext ctx, uint8_t **image, size_t *size);

/* Ids as NVIDIA's tools print them. `per_thread`: the launch came through a per-thread-default-stream entry point.
 * Asking for a stream gives it the next free id, so only streams that are shown should be asked for. */
int kp_target_context_id(const struct kp_cupti *c, CUcontext ctx, uint32_t *id);
int kp_target_stream_id(const struct kp_cupti *c, CUcontext ctx, CUstream stream, bool per_thread, uint32_t *id);

/* ---- range profiler ---- */

/* The profiler enabled on a context. */
struct kp_range;

/* Enables the profiler on `ctx`. One at a time per context. */
int kp_range_open(const struct kp_cupti *c, CUcontext ctx, struct kp_range **out);
/* Disables it, after the end of a pass that runs. Safe on NULL. Not to be called once the context is gone: use
 * kp_range_abandon then. Frees its memory in any case. With a code the profiler is still enabled: open no other one
 * on the context. */
int kp_range_close(struct kp_range *r);
void kp_range_abandon(struct kp_range *r);

/* Room for what the passes of `config` leave of up to `ranges` ranges. */
struct kp_image;

/* How many bytes an image for so many ranges takes of host memory, its empty twin included. */
int kp_image_bytes(const struct kp_range *r, const struct kp_config *config, size_t ranges, size_t *bytes);
/* Making one costs about 0.3 ms a range; emptying it again is a copy. `config` must outlive the image. */
int kp_image_make(const struct kp_range *r, const struct kp_config *config, size_t ranges, struct kp_image **out);
void kp_image_free(struct kp_image *i);
/* The decoded image, owned by `i`, valid until the next kp_range_begin with it. */
void kp_image_data(const struct kp_image *i, const uint8_t **data, size_t *size);
size_t kp_image_ranges(const struct kp_image *i); /* the room it has */

/* Empties the image and configures the profiler for it: pass 0 comes next. A profiler cannot change its mode: close
 * it and open another one. */
int kp_range_begin(struct kp_range *r, enum kp_range_mode mode, struct kp_image *i);
int kp_range_start(struct kp_range *r); /* starts a pass */
/* User range: opens a range, and closes it. One whose pop failed stays open until the next push or stop, which close it
 * first, and fail when they cannot. */
int kp_range_push(struct kp_range *r);
int kp_range_pop(struct kp_range *r);
/* Ends the pass, if one runs; *last: every pass has been run. Closes an open range first. Where that fails, the pass
 * goes on (kp_range_runs) and only kp_range_close helps. After any other failure the pass has ended. */
int kp_range_stop(struct kp_range *r, bool *last);
bool kp_range_runs(const struct kp_range *r);
/* Decodes the data of the passes into the image. *n receives the number of ranges, *dropped that of ranges without
 * room. */
int kp_range_decode(struct kp_range *r, size_t *n, size_t *dropped);

/* ---- checkpoint ---- */

struct kp_checkpoint;

bool kp_checkpoint_available(const struct kp_cupti *c);
/* Saves all memory of `ctx` that a kernel can write. Restores it as often as wanted; the last call frees. */
int kp_checkpoint_save(const struct kp_cupti *c, CUcontext ctx, struct kp_checkpoint **out);
int kp_checkpoint_restore(struct kp_checkpoint *k);
void kp_checkpoint_free(struct kp_checkpoint *k);
/* Releases the host's part only. What it holds of the device goes with the context. */
void kp_checkpoint_abandon(struct kp_checkpoint *k);

/* ---- facts of a launch that only an activity record holds ---- */

/* Whether launches can be asked for (the functions are there). */
bool kp_activity_available(const struct kp_cupti *c);
/* Between begin and end the kernels launched are noted, at most `cap`. To be used outside of profiler passes, while no
 * other user of CUPTI's activity API is in the process: there is one set of buffers a process. *n receives how many. */
int kp_activity_begin(const struct kp_cupti *c);
int kp_activity_end(const struct kp_cupti *c, struct kp_executed *records, size_t cap, size_t *n);

#endif
