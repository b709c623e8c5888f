/* A comparison on one screen: which kernels became slower and which faster, by their time on the GPU. Threads: one at a
 * time for each sink. */
#ifndef KP_CMD_DIFF_BRIEF_H
#define KP_CMD_DIFF_BRIEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/write/out.h"

/* What both sides have of a kernel; without launches it is missing. */
struct kp_diff_kernel {
    const char *name;
    bool is_text; /* the name is not a signature */
    uint64_t launches[2];
    uint64_t timed[2]; /* launches that have a duration; a kernel with any that lack it is not compared */
    double ns[2];      /* among them */
    /* Half of the 95 % interval of the change of both times, by how the launches of pairs differ; NaN: not known. */
    double half;
};

struct kp_diff_brief {
    struct kp_diff_kernel *kernels; /* is sorted */
    size_t n;
    char letter[2];
    double threshold; /* what changes by this many percent has not changed */
};

/* Prints both lists, in the order and number of o->display. Errors stay in o->rc. */
void kp_diff_brief_print(struct kp_out *o, const struct kp_diff_brief *b);

#endif
