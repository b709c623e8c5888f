/*
 * Repeats a window as a whole: its operations are issued without waits between them, each in its stream, ordered by
 * events and by what the program waited for. The counters see them as one.
 */
#ifndef KP_PRELOAD_JOURNAL_CONCURRENT_REPEAT_H
#define KP_PRELOAD_JOURNAL_CONCURRENT_REPEAT_H

#include "preload/mode/repeat_common.h"

extern const struct kp_repetition kp_together;

#endif
