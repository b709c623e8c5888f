/*
 * CUPTI's counts by instruction: PC sampling, SASS metrics, and the images of the modules.
 *
 * Errors: int results are 0, -ENOMEM, or a positive CUPTI code; -ENOSYS if the library lacks the functions. Threads:
 * the caller serialises calls for one context, which must be current; any thread may ask for cubins.
 */
#ifndef KP_CUPTI_SOURCE_H
#define KP_CUPTI_SOURCE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/model/sampling.h"
#include "cupti/loader.h"

/* The place of a count. */
struct kp_pc {
    uint32_t crc;         /* of the cubin */
    const char *function; /* mangled name; valid during the callback */
    uint32_t offset;      /* of the instruction in the function, in bytes */
};

/* ---- PC sampling ---- */

/* PC sampling enabled on a context: between start and stop the warps of each kernel are sampled, and each launch waits
 * for its kernel.
 *
 * KP_VENDOR: found by trial (CUPTI 13.0). Once the range profiler has been enabled on the context, a function is
 * recognised only if its first launch was made while PC sampling was enabled, started or not. The samples of all other
 * functions are only in the totals, for ever. The same goes for a function that SASS metrics saw first. While the range
 * profiler is configured, there are no samples. */
struct kp_pcsamp;

struct kp_pcsamp_totals {
    uint64_t samples; /* of all warps, issued or not, including kernels without a module */
    uint64_t dropped;
};

/* Opens sampling. `interval`: KP_PCSAMP_INTERVAL_AUTO, or 0 to KP_PCSAMP_INTERVAL_MAX for 2^(5 + interval) cycles.
 * `buffer`: bytes of device memory for samples; 0 = the library's choice. */
int kp_pcsamp_open(const struct kp_cupti *c, CUcontext ctx, int interval, size_t buffer, struct kp_pcsamp **out);
/* Ends sampling. After an error CUPTI counts nothing more in this process: KP_CUPTI_LOST. */
int kp_pcsamp_close(struct kp_pcsamp *p);
/* Frees the host's memory after the context is gone. */
void kp_pcsamp_abandon(struct kp_pcsamp *p);
int kp_pcsamp_start(struct kp_pcsamp *p);
int kp_pcsamp_stop(struct kp_pcsamp *p);
/* Return the interval and the buffer in use, as given to open. */
int kp_pcsamp_interval(const struct kp_pcsamp *p);
size_t kp_pcsamp_buffer(const struct kp_pcsamp *p);
/* Returns the names of the stall reasons, as metrics; *n receives their number. Valid as long as `p`. */
const char *const *kp_pcsamp_reasons(const struct kp_pcsamp *p, size_t *n);
/* Takes the samples since the last call: `fn` receives each instruction and reason (an index into the names).
 * Kernels must have ended. Totals are added up. */
int kp_pcsamp_take(struct kp_pcsamp *p, struct kp_pcsamp_totals *totals,
                   void (*fn)(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples), void *arg);

/* ---- SASS metrics ---- */

/* A list of SASS metrics of one device. CUPTI accepts one list per device and process, so it is made once and never
 * freed. */
struct kp_sass;

/* The code after the list's context has ended, see kp_sass_release. */
enum { KP_SASS_OVER = -ESTALE };

/* Returns the SASS metrics of `chip`; *names is malloc'ed, its strings are CUPTI's. */
int kp_sass_names(const struct kp_cupti *c, const char *chip, const char ***names, size_t *n);
/* Configures device `ordinal` for the metrics of `names` that the chip has. The first call for a device decides, later
 * calls return the same list; any thread. `ctx` is the current context, a context of the device. */
int kp_sass_configure(const struct kp_cupti *c, CUcontext ctx, const char *chip, int ordinal, const char *const *names,
                      size_t n, struct kp_sass **out);
/* Takes the list back from CUPTI before `ctx` ends, if CUPTI's memory for it is in that context. NULL: does nothing.
 * From then on kp_sass_configure returns KP_SASS_OVER for the device. KP_VENDOR: CUPTI 13.0 keeps the memory until the
 * process exits; if its context is gone then, the process ends by SIGSEGV. It accepts no second list: "out of
 * memory". */
void kp_sass_release(struct kp_sass *s, CUcontext ctx);
/* Returns the configured metrics; *n receives their number. */
const char *const *kp_sass_metrics(const struct kp_sass *s, size_t *n);
/* Counts all instructions launched on `ctx` between begin and end, by patched code. Use it for each launch separately:
 * CUPTI 13.0 does not count launches after counts were read. */
int kp_sass_begin(struct kp_sass *s, CUcontext ctx);
/* Passes on the counts since begin, whose kernels must have ended, and ends counting. `metric`: an index. */
int kp_sass_end(struct kp_sass *s, CUcontext ctx,
                void (*fn)(void *arg, const struct kp_pc *pc, size_t metric, uint64_t value), void *arg);

/* ---- images of modules ---- */

/* Keeps the cubin of every module loaded from now on, up to `most` bytes in total; beyond that, only those for which
 * `always` returns true (NULL: none). It is called for each module, on any thread, with NULL for a module without
 * image. With `most` 0, the records of PC sampling do not name their modules. Call it once per process; load the
 * library before the modules. */
int kp_cubins_keep(const struct kp_cupti *c, size_t most, bool (*always)(const void *image, size_t size));
/* Resumes that after kp_detach, if it was started. */
int kp_cubins_keep_on(const struct kp_cupti *c);
/* Returns the i-th kept image; valid for ever. NULL when there are no more. */
const void *kp_cubins_at(size_t i, size_t *size);
/* Returns the image with that CRC; valid for ever. NULL if not kept. */
const void *kp_cubins_find(uint32_t crc, size_t *size);

#endif
