/*
 * Has CUPTI record a kernel of ours before the program's first graph.
 *
 * CUPTI 13.0 gives records of kernels a shared-memory configuration of 0 for the rest of the process, where a graph is
 * instantiated after CUPTI is in use and before its first record (tests/gpu/RESULTS.md, "Records after graphs").
 *
 * Threads: inside the gate's exclusive section, under kp_guard.
 */
#ifndef KP_PRELOAD_WINDOW_FIRST_RECORD_H
#define KP_PRELOAD_WINDOW_FIRST_RECORD_H

#include <stdbool.h>

#include "preload/program/context.h"

/* Whether launches will be asked for what only a record has, and there is none yet. Any thread. */
bool kp_first_record_wanted(const struct kp_context_setup *setup);

/* Launches an empty kernel in the current context and records it. Waits for it 0.2 s at most; needs no room in the
 * program's streams. Does nothing while a window is open, whose counters would count it. Whatever fails, later records
 * lack the configuration, and the report says so. */
void kp_first_record_make(const struct kp_context_setup *setup);

#endif
