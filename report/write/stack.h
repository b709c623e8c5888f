/* Call stacks as text. */
#ifndef KP_REPORT_WRITE_STACK_H
#define KP_REPORT_WRITE_STACK_H

#include "report/write/out.h"

/* The call stack of that id, below a launch's header; nothing where there is none. */
void kp_render_stack(struct kp_out *o, uint64_t id);

/* Launches put together by their call stack. Starts as all 0. */
struct kp_stack_totals {
    struct kp_stack_total {
        uint64_t stack, launches;
        double ns;
        char *text; /* of its frames, while they are put together */
    } * at;
    size_t n;
};
/* 0 or -ENOMEM. */
int kp_stack_totals_add(struct kp_stack_totals *t, const struct kp_result *r);
/* The table of them, the longest total duration first; nothing where there is none. */
void kp_stack_totals_render(struct kp_out *o, struct kp_stack_totals *t);
void kp_stack_totals_free(struct kp_stack_totals *t);

#endif
