/*
 * PM sampling: counters of a whole device, read at fixed intervals while kernels run. Metrics sampled together must fit
 * into one pass, so a list is split into groups, which are sampled one at a time.
 *
 * Errors: int results are 0, -ENOMEM, or a positive CUPTI code (see kp_cupti_explain). Threads: the caller serialises
 * calls for one device.
 */
#ifndef KP_CUPTI_PM_H
#define KP_CUPTI_PM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti/host.h"
#include "cupti/loader.h"

/* Returns true if this CUPTI has the sampling functions. Without them, call nothing else here. */
bool kp_pm_available(const struct kp_cupti *c);

/* ---- host side: needs no GPU ---- */

/* Opens the metric tables of sampling on `chip`; kp_host_metric, kp_host_names and kp_pm_values accept the result, to
 * kp_host_close. `availability` is kp_pm_availability's, or NULL. */
int kp_pm_host(const struct kp_cupti *c, const char *chip, const uint8_t *availability, struct kp_host **out);

/* Why a metric is in no group. */
enum kp_pm_left {
    KP_PM_UNKNOWN,        /* the chip has no such metric */
    KP_PM_SEVERAL_PASSES, /* needs more than one pass alone */
    KP_PM_NO_ROOM,        /* needs another group, beyond the allowed number */
};

struct kp_pm_left_out {
    const char *name; /* the caller's string */
    enum kp_pm_left why;
};

struct kp_pm_groups {
    struct kp_config *at; /* of one pass each */
    size_t n;
    struct kp_pm_left_out *left_out;
    size_t n_left_out;
};

/* Splits `n` metrics into at most `most` groups (0 = no limit), the earlier metrics first. A list that fits into one
 * pass costs one library call (about 1.5 ms), any other list up to one per metric and group. 0 and *out to
 * kp_pm_groups_free. */
int kp_pm_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability, const char *const *names,
                   size_t n, size_t most, struct kp_pm_groups *out);
void kp_pm_groups_free(struct kp_pm_groups *g);

/* ---- target side ---- */

/* Returns the counter availability of the device for sampling: *image malloc'ed. May fail while anything profiles
 * the device. */
int kp_pm_availability(const struct kp_cupti *c, int ordinal, uint8_t **image, size_t *size);

/* The unit of the interval: nanoseconds, or cycles of the system clock on chips without a timer. */
enum kp_pm_trigger { KP_PM_NANOSECONDS, KP_PM_CYCLES };

/* Returns the unit. Source: cupti_pmsampling.h of CUDA 13.0: Turing and GA100 have no timer. */
enum kp_pm_trigger kp_pm_trigger(int cc_major, int cc_minor);

struct kp_pm_settings {
    enum kp_pm_trigger trigger;
    uint64_t interval;    /* in the trigger's unit */
    size_t buffer_size;   /* bytes of device memory for raw samples */
    uint32_t max_samples; /* most samples per kp_pm_decode, see kp_pm_make_room */
};

/* Sampling enabled on a device. */
struct kp_pm;

/* Enables sampling; one at a time per device. */
int kp_pm_open(const struct kp_cupti *c, int ordinal, struct kp_pm **out);
/* Disables sampling, and frees its memory in any case. Safe on NULL. Use kp_pm_abandon instead once the driver is gone.
 * A code means that sampling cannot be stopped: open no other one on the device. */
int kp_pm_close(struct kp_pm *p);
void kp_pm_abandon(struct kp_pm *p);

/* Sets the group to sample, which must outlive sampling. Do not call it while sampling runs. */
int kp_pm_configure(struct kp_pm *p, const struct kp_config *group, const struct kp_pm_settings *s);
/* Makes room for `max_samples` samples per kp_pm_decode, until the next call or configuration. Each sample costs 32 to
 * 64 KiB of host memory (seen with CUPTI 13.0), and time in every decode. After a failure, the room is unchanged. */
int kp_pm_make_room(struct kp_pm *p, uint32_t max_samples);
int kp_pm_start(struct kp_pm *p);
/* Stops sampling, if it runs. After a failure it still runs: close it then, and neither decode nor start it. */
int kp_pm_stop(struct kp_pm *p);

struct kp_pm_decoded {
    size_t n;      /* samples that can be read */
    bool more;     /* read these, then decode again */
    bool overflow; /* the buffer was full: later samples are lost */
};

/* Decodes the samples since the last call. */
int kp_pm_decode(struct kp_pm *p, struct kp_pm_decoded *out);

/* Returns when sample `i` of the last kp_pm_decode started and ended, in ns of the device's clock. */
int kp_pm_times(const struct kp_pm *p, size_t i, uint64_t *begin_ns, uint64_t *end_ns);
/* Evaluates `n` metrics of the group for that sample, in base units, into values[n]. This is most of the time per
 * sample. */
int kp_pm_values(const struct kp_pm *p, struct kp_host *h, size_t i, const char *const *names, size_t n,
                 double *values);

#endif
