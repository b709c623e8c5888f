/*
 * Times launches of a rotation that nothing may wait for, such as NCCL kernels: activity records give their start and
 * end without disturbing them. Counters would make the program wait for them.
 *
 * Threads: inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_MODE_TIME_LAUNCH_H
#define KP_PRELOAD_MODE_TIME_LAUNCH_H

#include "preload/mode/admit.h"

/* Runs the launch, and has it timed if its key lacks that. *skip_reason: why it has no result, if there is a reason. */
CUresult kp_timing_launch(const struct kp_question *q, struct kp_launch *l, enum kp_reason *skip_reason);

#endif
