/*
 * The summary of a run: kernels by their time, with what bounds them and what would help most. Receives launch by
 * launch; uses a fixed amount of memory for each kernel name, whatever the number of launches.
 * Threads: one at a time for each summary.
 */
#ifndef KP_REPORT_JUDGE_SUMMARY_H
#define KP_REPORT_JUDGE_SUMMARY_H

#include "report/judge/rules.h"

struct kp_summary;
struct kp_summary *kp_summary_new(void); /* NULL without memory */
void kp_summary_free(struct kp_summary *s);

/* Adds one launch with its messages (kp_rules_apply). Keeps only pointers to their sections, which must outlive the
 * summary. 0 or -ENOMEM, with the summary unchanged. */
int kp_summary_add(struct kp_summary *s, const struct kp_session *session, const struct kp_result *r,
                   const struct kp_messages *m);

/* A kernel of the run; its pointers are valid as long as the summary. */
struct kp_summary_kernel {
    const char *name;
    size_t range;               /* length of the NVTX range in the name, see kp_launch_range_length */
    bool is_text;               /* a graph or a range, whose name is not a signature */
    uint64_t launches, timed;   /* timed: those whose duration is known */
    double ns;                  /* of these */
    const char *bound;          /* as kp_verdict.what, for most of its time; "" when unknown */
    const struct kp_rule *rule; /* the rule that would save most of its time; NULL when none saves enough to be named */
    const struct kp_section *section; /* of the rule */
    double saved_ns;                  /* by following the rule */
};

struct kp_summary_total {
    struct kp_summary_kernel *kernels; /* the longest first; owned */
    size_t n;
    uint64_t launches, timed;
    double ns;
};

/* Sums up the launches. Overwrites *out, which the caller frees. 0 or -ENOMEM. */
int kp_summary_total(const struct kp_summary *s, struct kp_summary_total *out);
void kp_summary_total_free(struct kp_summary_total *t);

#endif
