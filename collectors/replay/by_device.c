#include "collectors/replay/by_device.h"

#include <stdbool.h>
#include <stddef.h>

enum { DEVICES = sizeof((struct kp_by_device){0}.sums) / sizeof(atomic_uint_fast64_t) };

static bool is_counted(CUdevice device)
{
    return device >= 0 && device < DEVICES;
}

uint64_t kp_by_device_sum(const struct kp_by_device *b, CUdevice device)
{
    uint64_t sum = 0;
    if (device >= 0)
        return is_counted(device) ? atomic_load(&b->sums[device]) : 0;
    for (size_t i = 0; i < DEVICES; i++)
        sum += atomic_load(&b->sums[i]);
    return sum;
}

void kp_by_device_note(struct kp_by_device *b, CUdevice device, uint64_t *part, uint64_t now)
{
    if (is_counted(device))
        atomic_fetch_add(&b->sums[device], now - *part);
    *part = now;
}
