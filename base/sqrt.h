/* The square root as the processor's instruction, however little is optimised: libkprof.so has no libm to call. */
#ifndef KP_BASE_SQRT_H
#define KP_BASE_SQRT_H

#include <emmintrin.h>

static inline double kp_sqrt(double value)
{
    return _mm_cvtsd_f64(_mm_sqrt_pd(_mm_set1_pd(value)));
}

#endif
