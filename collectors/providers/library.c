#include "collectors/providers/library.h"

#include "cupti/loader.h"
#include "cupti/source.h"
#include "cupti/target.h"

int kp_library_load(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out, char **err)
{
    return kp_cupti_load(dl, dir, near, out, err);
}

int kp_library_open(const struct kp_dl *dl, const char *dir, const char *const *near, struct kp_cupti **out, char **err)
{
    return kp_cupti_open(dl, dir, near, out, err);
}

void kp_library_warm(const struct kp_cupti *c, enum kp_library_part part)
{
    kp_cupti_warm(c, part == KP_LIBRARY_COUNTS ? KP_CUPTI_TARGET : KP_CUPTI_HOST);
}

void kp_library_complete(struct kp_cupti *c)
{
    kp_cupti_complete(c);
}

struct kp_cupti *kp_library_copy(const struct kp_cupti *c, bool (*goes_on)(void))
{
    return kp_cupti_copy(c, goes_on);
}

bool kp_library_lies_in(const char *dir)
{
    return kp_cupti_lies_in(dir);
}

int kp_library_start(const struct kp_cupti *c)
{
    return kp_cupti_target_init(c);
}

bool kp_library_leave(const struct kp_cupti *c, CUresult (*ask_device)(CUdevice *device))
{
    return kp_detach_available(c) && !kp_detach(c, ask_device);
}

int kp_library_come_back(const struct kp_cupti *c, CUcontext ctx)
{
    uint32_t id;
    /* KP_VENDOR: the profiler alone does not bring CUPTI 13.0 back, but reports that it is not initialised. */
    int rc = kp_cupti_target_context_id(c, ctx, &id);
    if (!rc)
        rc = kp_cupti_target_init(c);
    if (!rc)
        kp_cubins_keep_on(c); /* without it, code loaded from here on is not shown */
    return rc;
}

void kp_library_was_left(void)
{
    kp_activity_detached();
}

void *kp_library_find(const struct kp_cupti *c, const char *function)
{
    return kp_cupti_find(c, function);
}

bool kp_library_owns(const struct kp_cupti *c, const void *function)
{
    return kp_cupti_owns(c, function);
}

void kp_library_free(struct kp_cupti *c)
{
    kp_cupti_free(c);
}

const char *kp_library_version(const struct kp_cupti *c)
{
    return kp_cupti_version(c);
}

const char *kp_library_path(const struct kp_cupti *c)
{
    return kp_cupti_path(c);
}

struct kp_why kp_library_explain(const struct kp_cupti *c, enum kp_reason reason, int code)
{
    return kp_why_of(reason, kp_cupti_explain(c, kp_reason_text(reason), code));
}

struct kp_why kp_library_explain_begin(const struct kp_cupti *c, enum kp_reason reason, int code)
{
    return kp_why_of(reason, kp_cupti_explain_begin(c, kp_reason_text(reason), code));
}

bool kp_library_denied(void)
{
    return kp_cupti_denied();
}

int kp_library_chip(const struct kp_cupti *c, int ordinal, const char **chip)
{
    return kp_cupti_target_chip(c, ordinal, chip);
}

int kp_library_availability(const struct kp_cupti *c, CUcontext ctx, uint8_t **image)
{
    size_t size;
    return kp_cupti_target_availability(c, ctx, image, &size);
}

int kp_library_context_id(const struct kp_cupti *c, CUcontext ctx, uint32_t *id)
{
    return kp_cupti_target_context_id(c, ctx, id);
}

int kp_library_stream_id(const struct kp_cupti *c, CUcontext ctx, CUstream stream, bool per_thread, uint32_t *id)
{
    return kp_cupti_target_stream_id(c, ctx, stream, per_thread, id);
}
