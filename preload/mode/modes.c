#include "preload/mode/modes.h"

#include "preload/mode/strategy.h"

#define STRATEGIES(...)                                                                                                \
    (const struct kp_strategy *const[])                                                                                \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }

static bool is_varied(const struct kp_options *o, bool quick)
{
    return *o->vary && !quick;
}

static bool is_quick(const struct kp_options *o, bool quick)
{
    (void)o;
    return quick;
}

/* Columns for single launches need each launch by itself. */
static bool has_turns_beside(const struct kp_options *o, bool quick)
{
    (void)quick;
    return o->fallback == KP_FALLBACK_ROTATE && !o->only_columns;
}

/* For launches that must not be repeated. */
static const struct kp_mode in_turns = {
    .name = "in turns",
    .workload = KP_MODE_LAUNCHES,
    .again = KP_AGAIN_RECUR,
    .lists = KP_LISTS_TURNS,
    .strategies = STRATEGIES(&kp_strategy_turns, &kp_strategy_count, &kp_strategy_plain),
};
static const struct kp_mode once = {
    .name = "once",
    .workload = KP_MODE_LAUNCHES,
    .again = KP_AGAIN_NEVER,
    .lists = KP_LISTS_FIRST,
    .strategies = STRATEGIES(&kp_strategy_count, &kp_strategy_plain),
};

const struct kp_mode kp_modes[] = {
    {
        .name = "quick",
        .option = KP_REPLAY_KERNEL,
        .asked = is_quick,
        .workload = KP_MODE_LAUNCHES,
        .again = KP_AGAIN_NEVER,
        .lists = KP_LISTS_FIRST,
        .strategies = STRATEGIES(&kp_strategy_count, &kp_strategy_plain),
    },
    {
        .name = "series",
        .option = KP_REPLAY_KERNEL,
        .asked = is_varied,
        .workload = KP_MODE_LAUNCHES,
        .again = KP_AGAIN_REPLAY,
        .lists = KP_LISTS_ALL,
        .varies = true,
        .strategies = STRATEGIES(&kp_strategy_series, &kp_strategy_replay, &kp_strategy_plain),
        .otherwise = &once,
    },
    {
        .name = "kernel",
        .option = KP_REPLAY_KERNEL,
        .asked = has_turns_beside,
        .workload = KP_MODE_LAUNCHES,
        .again = KP_AGAIN_REPLAY,
        .lists = KP_LISTS_ALL,
        .strategies = STRATEGIES(&kp_strategy_replay, &kp_strategy_plain),
        .otherwise = &in_turns,
    },
    {
        .name = "kernel, others once",
        .option = KP_REPLAY_KERNEL,
        .workload = KP_MODE_LAUNCHES,
        .again = KP_AGAIN_REPLAY,
        .lists = KP_LISTS_ALL,
        .strategies = STRATEGIES(&kp_strategy_replay, &kp_strategy_plain),
        .otherwise = &once,
    },
    {
        .name = "rotate",
        .option = KP_REPLAY_ROTATE,
        .workload = KP_MODE_LAUNCHES,
        .again = KP_AGAIN_RECUR,
        .lists = KP_LISTS_TURNS,
        .strategies = STRATEGIES(&kp_strategy_rotate, &kp_strategy_plain),
    },
    {
        .name = "application",
        .option = KP_REPLAY_APPLICATION,
        .workload = KP_MODE_LAUNCHES,
        .again = KP_AGAIN_RERUN,
        .lists = KP_LISTS_RUN,
        .strategies = STRATEGIES(&kp_strategy_count, &kp_strategy_plain),
    },
    {
        .name = "range",
        .option = KP_REPLAY_RANGE,
        .workload = KP_MODE_RANGES,
        .again = KP_AGAIN_REPLAY,
        .lists = KP_LISTS_ALL,
        .strategies = STRATEGIES(&kp_strategy_range),
    },
    {
        .name = "app-range",
        .option = KP_REPLAY_APP_RANGE,
        .workload = KP_MODE_RANGES,
        .again = KP_AGAIN_RERUN,
        .lists = KP_LISTS_RUN,
        .aside = true,
        .strategies = STRATEGIES(&kp_strategy_app_range),
    },
    {.name = NULL},
};
