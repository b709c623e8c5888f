/* The clock for durations. */
#ifndef KP_BASE_CLOCK_H
#define KP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns ns since some start; never goes back. */
static inline uint64_t kp_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
