/*
 * Repeats a window as a whole: its operations are issued without waits between them, each in its stream, ordered by
 * events and by what the program waited for. The counters see them as one.
 */
#ifndef KP_PRELOAD_WINDOW_TOGETHER_H
#define KP_PRELOAD_WINDOW_TOGETHER_H

#include "preload/window/replaying.h"

extern const struct kp_repetition kp_together;

#endif
