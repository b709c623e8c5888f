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
    free(config->layout);
    memset(config, 0, sizeof(*config));
}

bool kp_config_is_patched_metric(const char *name)
{
    static const char patched[] = "__sass_";
    const char *behind = strstr(name, "__");
    return behind && !strncmp(behind, patched, strlen(patched));
}

bool kp_config_patches(const struct kp_config *config)
{
    for (size_t i = 0; i < config->n_names; i++)
        if (kp_config_is_patched_metric(config->names[i]))
            return true;
    return config->patched;
}
