/* Tells whose driver calls this thread is in: kp_guard and kp_in_driver, which paused work takes along. */
#ifndef KP_PRELOAD_OS_GUARD_H
#define KP_PRELOAD_OS_GUARD_H

#include "base/work.h"

#endif
