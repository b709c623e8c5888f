/* Call stacks as text. */
#ifndef KP_REPORT_WRITE_STACK_BLOCK_H
#define KP_REPORT_WRITE_STACK_BLOCK_H

#include "report/write/out.h"

/* Prints the call stack of that id below a launch's header; nothing without a stack. */
void kp_render_stack(struct kp_out *o, uint64_t id);

/* Launches grouped by their call stack. Zero-initialised. */
struct kp_stack_totals {
    struct kp_stack_total {
        uint64_t stack, launches;
        double ns;
        char *text; /* of its frames, while stacks are merged */
    } * at;
    size_t n;
};
/* 0 or -ENOMEM. */
int kp_write_stack_totals_add(struct kp_stack_totals *t, const struct kp_result *r);
/* Prints their table, the longest total duration first; nothing without stacks. */
void kp_write_stack_totals_render(struct kp_out *o, struct kp_stack_totals *t);
void kp_write_stack_totals_free(struct kp_stack_totals *t);

#endif
