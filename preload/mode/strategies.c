#include "preload/mode/strategy.h"

const struct kp_strategy *const kp_strategies[] = {
    &kp_strategy_range,  &kp_strategy_app_range, &kp_strategy_series, &kp_strategy_replay,
    &kp_strategy_rotate, &kp_strategy_count,     &kp_strategy_plain,  NULL,
};
