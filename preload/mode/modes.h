/*
 * The modes of this library, a row each. preload/contexts/mode.h explains the columns.
 */
#ifndef KP_PRELOAD_MODE_MODES_H
#define KP_PRELOAD_MODE_MODES_H

#include "preload/contexts/mode.h"

/* Ends with a row without a name. */
extern const struct kp_mode kp_modes[];

/* Returns the first row that the options ask for, or the last one; `quick` as in struct kp_mode. Any thread. */
const struct kp_mode *kp_mode_choose(const struct kp_options *o, bool quick);

#endif
