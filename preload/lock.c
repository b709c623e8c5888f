#include "preload/lock.h"

#include <stddef.h>
#include <time.h>

long kp_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

double kp_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void kp_nap(void)
{
    static const struct timespec nap = {.tv_nsec = 50 * 1000};
    nanosleep(&nap, NULL);
}

bool kp_lock_take(struct kp_lock *l, long patience_ms)
{
    if (!atomic_exchange(&l->held, true)) /* most are free, and reading the clock costs more than taking one */
        return true;
    long start = kp_now_ms();
    while (atomic_exchange(&l->held, true)) {
        if (patience_ms != KP_FOREVER && kp_now_ms() - start >= patience_ms)
            return false;
        kp_nap();
    }
    return true;
}

void kp_lock_give(struct kp_lock *l)
{
    atomic_store(&l->held, false);
}
