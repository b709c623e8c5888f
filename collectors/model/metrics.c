#include "collectors/model/metrics.h"

#include <stdlib.h>
#include <string.h>

bool kp_config_same(const struct kp_config *a, const struct kp_config *b)
{
    return a->size == b->size && (!a->size || !memcmp(a->image, b->image, a->size));
}

void kp_config_free(struct kp_config *config)
{
    free(config->image);
    free(config->names);
    memset(config, 0, sizeof(*config));
}
