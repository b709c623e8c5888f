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

bool kp_providers_probe_available(const struct kp_cupti *c)
{
    return kp_activity_available(c);
}

int kp_providers_probe_begin(const struct kp_cupti *c)
{
    return kp_activity_begin(c);
}

int kp_providers_probe_end(const struct kp_cupti *c, struct kp_executed *records, size_t cap, size_t *n)
{
    return kp_activity_end(c, records, cap, n);
}

int kp_providers_record_on(const struct kp_cupti *c, kp_record_sink *sink)
{
    return kp_activity_on(c, sink);
}

int kp_providers_record_off(const struct kp_cupti *c)
{
    return kp_activity_off(c);
}

/* ---- what runs on devices ---- */

bool kp_observe_available(const struct kp_cupti *c)
{
    return kp_watch_available(c);
}

uint64_t kp_observe_now(const struct kp_cupti *c)
{
    return kp_watch_now(c);
}

int kp_observe_begin(const struct kp_cupti *c, kp_record_sink *sink, bool kernels)
{
    return kp_watch_begin(c, sink, kernels);
}

int kp_observe_pause(const struct kp_cupti *c)
{
    return kp_watch_pause(c);
}

int kp_observe_resume(const struct kp_cupti *c)
{
    return kp_watch_resume(c);
}

int kp_observe_flush(const struct kp_cupti *c, bool all)
{
    return kp_watch_flush(c, all);
}

uint64_t kp_observe_dropped(void)
{
    return kp_watch_dropped();
}
