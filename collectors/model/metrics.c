#include "collectors/model/metrics.h"

#include <stdlib.h>
#include <string.h>

void kp_config_free(struct kp_config *config)
{
    free(config->image);
    free(config->names);
    memset(config, 0, sizeof(*config));
}
