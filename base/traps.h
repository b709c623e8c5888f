/*
 * The floating-point environment of a thread. A program may make divisions by zero trap (feenableexcept, gfortran's
 * -ffpe-trap), and threads inherit that: our own divisions by zero would end it with SIGFPE. libm's functions are not
 * available: the preloaded object links only libc. Any thread.
 */
#ifndef KP_BASE_TRAPS_H
#define KP_BASE_TRAPS_H

#include <stdint.h>

struct kp_traps {
#if defined(__x86_64__)
    uint32_t x87[7], mxcsr;
#elif defined(__aarch64__)
    uint64_t control, status;
#else
    char none; /* traps stay as the program has them */
#endif
};

/* Keeps the caller's environment in *t and sets the default one: no traps, round to nearest. */
static inline void kp_traps_hold(struct kp_traps *t)
{
#if defined(__x86_64__)
    const uint32_t plain = 0x1f80; /* all masked: the value after a reset (Intel SDM, MXCSR) */
    __asm__ volatile("fnstenv %0\n\tfninit\n\tstmxcsr %1\n\tldmxcsr %2"
                     : "=m"(t->x87), "=m"(t->mxcsr)
                     : "m"(plain)
                     : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr\n\tmsr fpcr, xzr" : "=r"(t->control), "=r"(t->status) : : "memory");
#else
    t->none = 0;
#endif
}

/* Gives the environment back, flags included: what was computed in between leaves no trace. */
static inline void kp_traps_let(const struct kp_traps *t)
{
#if defined(__x86_64__)
    __asm__ volatile("fldenv %0\n\tldmxcsr %1" : : "m"(t->x87), "m"(t->mxcsr) : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("msr fpsr, %1\n\tmsr fpcr, %0" : : "r"(t->control), "r"(t->status) : "memory");
#else
    (void)t;
#endif
}

#endif
