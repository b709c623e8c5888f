#include "preload/doors/api.h"

const struct kp_api_row kp_api[] = {
#define KP_API(symbol, base, class) {#symbol, #base, KP_CLASS_##class, NULL},
#define KP_API_LOADS(symbol, base, class, receives, takes, count, options, values)                                     \
    {#symbol, #base, KP_CLASS_##class, &KP_PTX_LOAD(receives, takes, count, options, values)},
#include "preload/doors/cuda_api.def"
#undef KP_API
};

const size_t kp_api_rows = sizeof(kp_api) / sizeof(*kp_api);
