/*
 * Which launches of two runs of a program are the same: the n-th of one run among those of the same name, or name and
 * shape, is the n-th of the other.
 *
 * Threads: shares no data.
 */
#ifndef KP_CMD_MATCH_H
#define KP_CMD_MATCH_H

#include <stddef.h>

#include "report/model/model.h"
#include "report/options/options.h"

#define KP_NO_PARTNER ((size_t)-1)

struct kp_match {
    size_t alone; /* launches of the first run that have no partner in the other */
    size_t more;  /* and those of the other */
    size_t first; /* with KP_APP_STRICT: the first launch that is not the same in both; else KP_NO_PARTNER */
};

/* Fills partner[0..n): for each launch of the first run the index of its partner in the other, or KP_NO_PARTNER. All
 * modes compare the device and the kernel's symbol; `by` says what else. With KP_APP_STRICT, all launches have
 * partners, in the same order, or none has one. With KP_APP_BALANCED, launches have one if both runs have the same
 * number of them; with KP_APP_RELAXED, as many as both runs have. 0 or -ENOMEM. */
int kp_match_launches(const struct kp_launch_info *const *launches, size_t n,
                      const struct kp_launch_info *const *others, size_t m, enum kp_app_match by, enum kp_app_mode mode,
                      size_t *partner, struct kp_match *out);

#endif
