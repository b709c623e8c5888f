/*
 * One way of launching a kernel that a profile series tries: its shape, and why it may not be launched.
 */
#ifndef KP_PRELOAD_MODE_VARIANT_H
#define KP_PRELOAD_MODE_VARIANT_H

#include "collectors/facts/device.h"
#include "preload/program/launch.h"
#include "report/model/vary.h"

struct kp_trial {
    const struct kp_device *device;
    const struct kp_function *f;
    const struct kp_launch *own; /* the program's launch */
    struct kp_variation of;
    struct kp_shape shape; /* of the variant; if its threads fill no whole block, the block is the program's */
    bool divides;          /* the block's threads fill the other dimensions of the program's block */
};

/* Makes the variant. If the size of the block changes, so does the grid: the number of threads in each dimension stays,
 * rounded up to whole blocks. */
struct kp_trial kp_trial_make(const struct kp_device *device, const struct kp_function *f, const struct kp_launch *own,
                              const struct kp_variation *of);

/* Returns why the variant may not be launched, for kp_why_free; no reason when nothing is known against it. */
struct kp_why kp_trial_reason(const struct kp_trial *t);

/* Makes `l`, a copy of the program's launch that shares its storage, the variant's. */
void kp_trial_apply(const struct kp_trial *t, struct kp_launch *l);

#endif
