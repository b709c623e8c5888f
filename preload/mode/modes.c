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

/* After a bounded mode in which launches are too dear. */
static const struct kp_mode recurring = {
    .name = "auto, in turns",
    .option = KP_REPLAY_AUTO,
    .workload = KP_MODE_LAUNCHES,
    .again = KP_AGAIN_RECUR,
    .lists = KP_LISTS_TURNS,
    .bounded = true,
    .strategies = STRATEGIES(&kp_strategy_rotate, &kp_strategy_plain),
};

/* Launches that are replayed; and the rest of those modes, in which what must not be repeated is counted in turns, or
 * once. */
#define REPLAYED .workload = KP_MODE_LAUNCHES, .again = KP_AGAIN_REPLAY, .lists = KP_LISTS_ALL
#define KERNEL   REPLAYED, .strategies = STRATEGIES(&kp_strategy_replay, &kp_strategy_plain)
#define QUICK                                                                                                          \
    .workload = KP_MODE_LAUNCHES, .again = KP_AGAIN_NEVER, .lists = KP_LISTS_FIRST,                                    \
    .strategies = STRATEGIES(&kp_strategy_count, &kp_strategy_plain)
#define SERIES                                                                                                         \
    REPLAYED, .varies = true, .strategies = STRATEGIES(&kp_strategy_series, &kp_strategy_replay, &kp_strategy_plain)

/* The first row that an option allows is taken, so the order matters. */
const struct kp_mode kp_modes[] = {
    {.name = "auto, quick", .option = KP_REPLAY_AUTO, .asked = is_quick, .bounded = true, QUICK},
    {.name = "series", .option = KP_REPLAY_AUTO, .asked = is_varied, .otherwise = &once, SERIES},
    {.name = "auto",
     .option = KP_REPLAY_AUTO,
     .asked = has_turns_beside,
     .bounded = true,
     .otherwise = &in_turns,
     .next = &recurring,
     KERNEL},
    {.name = "auto, others once", .option = KP_REPLAY_AUTO, .bounded = true, .otherwise = &once, KERNEL},
    {.name = "quick", .option = KP_REPLAY_KERNEL, .asked = is_quick, QUICK},
    {.name = "series", .option = KP_REPLAY_KERNEL, .asked = is_varied, .otherwise = &once, SERIES},
    {.name = "kernel", .option = KP_REPLAY_KERNEL, .asked = has_turns_beside, .otherwise = &in_turns, KERNEL},
    {.name = "kernel, others once", .option = KP_REPLAY_KERNEL, .otherwise = &once, KERNEL},
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
