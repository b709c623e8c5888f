/* Shows whose driver calls this thread makes: kp_guard and kp_in_driver, which are saved with paused work. */
#ifndef KP_PRELOAD_OS_GUARD_H
#define KP_PRELOAD_OS_GUARD_H

#include "base/work.h"

static inline int kp_guard_raise(void)
{
    return kp_guard++;
}

static inline void kp_guard_lower(const int *unused)
{
    (void)unused;
    kp_guard--;
}

/* KP_GUARDED; declares that this thread's driver calls are kprof's own from here to the end of the block. */
#define KP_GUARDED __attribute__((cleanup(kp_guard_lower), unused)) const int kp_guarded = kp_guard_raise()

#endif
