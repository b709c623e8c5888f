/*
 * What only an activity record tells of a launch: how its shared memory was configured. Inside the gate's exclusive
 * section.
 */
#ifndef KP_PRELOAD_WINDOW_PROBE_H
#define KP_PRELOAD_WINDOW_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "collectors/model/launches.h"

/* Fills in what is known of the window's launches. Whether something is missing that a record may tell. */
bool kp_probe_wanted(void);

/* Takes over what the activity records say. They come in launch order; a record of another kernel (one that a kernel
 * launched itself) is passed over. */
void kp_probe_learn(const struct kp_executed *records, size_t n);

#endif
