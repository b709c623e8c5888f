/* Breaks long text into lines like ncu. */
#ifndef KP_BASE_WRAP_H
#define KP_BASE_WRAP_H

#include <stdbool.h>
#include <stddef.h>

/* The rest of a text; at first all of it. */
struct kp_wrap {
    const char *rest;
    size_t width;
};

/* Returns the next line in *line, *len (points into the text); false when there is none. A blank at a line break is not
 * printed but counts towards the length of the next line (ncu does the same). A word longer than a line is cut after
 * `,`, `/` or `_` if possible. An empty text has one empty line. */
bool kp_wrap_next(struct kp_wrap *w, const char **line, size_t *len);

#endif
