/*
 * The verdict on a launch: what bounds it, and the most promising rules.
 * Threads: pure functions.
 */
#ifndef KP_REPORT_JUDGE_VERDICT_H
#define KP_REPORT_JUDGE_VERDICT_H

#include "report/judge/rules.h"

enum kp_bound {
    KP_BOUND_UNKNOWN, /* the section SpeedOfLight was not collected */
    KP_BOUND_MEMORY,
    KP_BOUND_COMPUTE,
    KP_BOUND_LATENCY,
    KP_BOUND_LAUNCH, /* the grid does not fill the GPU */
};

enum {
    KP_VERDICT_GAINS = 3,
    KP_BOUND_NAME_MAX = 32,
    KP_GAIN_FROM = 1, /* percent of the duration: smaller gains are not named */
};

struct kp_verdict {
    enum kp_bound bound;
    char what[KP_BOUND_NAME_MAX];  /* "DRAM", "L2", "L1", "FMA pipe", "issue slots", "latency", "launch size" ... */
    double compute, memory, waves; /* percent of peak; waves of blocks; NaN when unknown */
    char stall[KP_BOUND_NAME_MAX]; /* the most frequent wait of warps, named as in the warp state chart; "" when unknown
                                    */
    double stall_share;            /* its share of their time, in percent */
    const struct kp_message *gains[KP_VERDICT_GAINS]; /* best first; NULL: no more. Valid as long as the messages */
};

/* Returns true if the estimate is a gain of the kernel: not that of one unit alone (local), not a ceiling, and not too
 * small to name. */
bool kp_verdict_is_gain(const struct kp_message *m);

/* Computes the verdict; `s` as for kp_rules_apply; `m` are the launch's messages. */
void kp_verdict(const struct kp_result *r, const struct kp_session *s, const struct kp_messages *m,
                struct kp_verdict *out);

#endif
