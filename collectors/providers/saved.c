#include "collectors/providers/saved.h"

#include "cupti/target.h"

bool kp_saved_available(const struct kp_cupti *c)
{
    return kp_checkpoint_available(c);
}

int kp_saved_make(const struct kp_cupti *c, CUcontext ctx, struct kp_checkpoint **out)
{
    return kp_checkpoint_save(c, ctx, out);
}

int kp_saved_restore(struct kp_checkpoint *k)
{
    return kp_checkpoint_restore(k);
}

void kp_saved_free(struct kp_checkpoint *k)
{
    kp_checkpoint_free(k);
}

void kp_saved_leave(struct kp_checkpoint *k)
{
    kp_checkpoint_abandon(k);
}
