#include "collectors/providers/observe.h"

#include "cupti/source.h"
#include "cupti/target.h"

int kp_images_keep(const struct kp_cupti *c, size_t most, bool (*always)(const void *image, size_t size))
{
    return kp_cubins_keep(c, most, always);
}

const void *kp_images_at(size_t i, size_t *size)
{
    return kp_cubins_at(i, size);
}

const void *kp_images_find(uint32_t crc, size_t *size)
{
    return kp_cubins_find(crc, size);
}

bool kp_probe_available(const struct kp_cupti *c)
{
    return kp_activity_available(c);
}

int kp_probe_begin(const struct kp_cupti *c)
{
    return kp_activity_begin(c);
}

int kp_probe_end(const struct kp_cupti *c, struct kp_executed *records, size_t cap, size_t *n)
{
    return kp_activity_end(c, records, cap, n);
}
