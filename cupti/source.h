/*
 * CUPTI's counts by instruction: PC sampling, SASS metrics, and the images of the modules that hold the instructions.
 *
 * Errors: int results are 0, -ENOMEM, or a positive CUPTI code; -ENOSYS where the library found lacks the functions.
 * Threads: calls for one context are serialised by the caller, and the context must be current; the cubins may be asked
 * for by any thread.
 */
#ifndef KP_CUPTI_SOURCE_H
#define KP_CUPTI_SOURCE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/model/sampling.h"
#include "cupti/loader.h"

/* Where a count belongs. */
struct kp_pc {
    uint32_t crc;         /* of the cubin */
    const char *function; /* mangled name; valid during the callback */
    uint32_t offset;      /* of the instruction in the function, byte */
};

/* ---- PC sampling ---- */

/* Enabled on a context: between start and stop the warps of each kernel are sampled, and each launch waits for its
 * kernel.
 *
 * KP_VENDOR: found by trial (CUPTI 13.0). Once the range profiler has been enabled on the context, a function is
 * recognised only if its first launch was made while PC sampling was enabled, started or not. The samples of all
 * others are in the totals alone, for ever. So are those of a function that SASS metrics saw first. While the range
 * profiler is configured, there are no samples at all. */
struct kp_pcsamp;

struct kp_pcsamp_totals {
    uint64_t samples; /* of all warps, issued or not, those of kernels without a module among them */
    uint64_t dropped;
};

/* `interval`: KP_PCSAMP_INTERVAL_AUTO, or 0 to KP_PCSAMP_INTERVAL_MAX for 2^(5 + interval) cycles. `buffer`: byte of
 * device memory for samples; 0 = the library's choice. */
int kp_pcsamp_open(const struct kp_cupti *c, CUcontext ctx, int interval, size_t buffer, struct kp_pcsamp **out);
void kp_pcsamp_close(struct kp_pcsamp *p);
/* The context is gone. */
void kp_pcsamp_abandon(struct kp_pcsamp *p);
int kp_pcsamp_start(struct kp_pcsamp *p);
int kp_pcsamp_stop(struct kp_pcsamp *p);
/* The interval and the buffer in use, as given to open. */
int kp_pcsamp_interval(const struct kp_pcsamp *p);
size_t kp_pcsamp_buffer(const struct kp_pcsamp *p);
/* Names of the stall reasons, as metrics; *n receives how many. Valid while `p` is. */
const char *const *kp_pcsamp_reasons(const struct kp_pcsamp *p, size_t *n);
/* What has been sampled since the last call: `fn` gets each instruction and reason (an index into the names). Kernels
 * must have ended. Totals are added up. */
int kp_pcsamp_take(struct kp_pcsamp *p, struct kp_pcsamp_totals *totals,
                   void (*fn)(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples), void *arg);

/* ---- SASS metrics ---- */

/* A list of SASS metrics of one device. CUPTI takes one list a device and process, so it is made once and never freed.
 */
struct kp_sass;

/* Names of the SASS metrics of `chip`; *names is malloc'ed, what it points to is CUPTI's. */
int kp_sass_names(const struct kp_cupti *c, const char *chip, const char ***names, size_t *n);
/* Configures device `ordinal` for the metrics of `names` that the chip has. The first call for a device decides, later
 * ones return the same; any thread. */
int kp_sass_configure(const struct kp_cupti *c, const char *chip, int ordinal, const char *const *names, size_t n,
                      struct kp_sass **out);
/* The metrics configured; *n receives how many. */
const char *const *kp_sass_metrics(const struct kp_sass *s, size_t *n);
/* Between begin and end all instructions of what is launched on `ctx` are counted, by patched code. Use it for each
 * launch by itself: CUPTI 13.0 does not count launches after counts were taken. */
int kp_sass_begin(struct kp_sass *s, CUcontext ctx);
/* Hands out the counts since begin, which must be those of kernels that have ended, and ends. `metric`: an index. */
int kp_sass_end(struct kp_sass *s, CUcontext ctx,
                void (*fn)(void *arg, const struct kp_pc *pc, size_t metric, uint64_t value), void *arg);

/* ---- images of modules ---- */

/* From now on the cubin of every module that is loaded is kept, up to `most` byte in all; and, whatever its size, each
 * for which `always` holds, which is called by any thread for each module (NULL: none; its image may be NULL, where
 * CUPTI has none). With `most` 0, the records of PC sampling do not name their modules. Once a process; the library
 * must have been loaded before the modules are. */
int kp_cubins_keep(const struct kp_cupti *c, size_t most, bool (*always)(const void *image, size_t size));
/* The i-th image that was kept; valid for ever. NULL when there are no more. */
const void *kp_cubins_at(size_t i, size_t *size);
/* The image with that CRC; valid for ever. NULL when it was not kept. */
const void *kp_cubins_find(uint32_t crc, size_t *size);

#endif
