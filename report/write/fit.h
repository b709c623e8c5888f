/* Breaks lines that are wider than the terminal. What is laid out for the width passes as it is.
 * Errors: those of the next sink, and -ENOMEM. Threads: one at a time. */
#ifndef KP_REPORT_WRITE_FIT_H
#define KP_REPORT_WRITE_FIT_H

#include <stddef.h>

#include "base/sink.h"

struct kp_fit {
    struct kp_sink sink;      /* receives the text */
    const struct kp_sink *to; /* gets it in lines that fit; not owned */
    size_t width;
    char *line; /* begun; owned */
    size_t len, capacity;
};

/* Initialises `f`, which must stay in place; end it with kp_fit_end. `width` 0: lines pass whole, as in files. */
void kp_fit_init(struct kp_fit *f, const struct kp_sink *to, size_t width);
/* Hands on a line without an end, and frees the memory. */
int kp_fit_end(struct kp_fit *f);

#endif
