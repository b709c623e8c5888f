/* A canvas of characters. */
#ifndef KP_REPORT_WRITE_CANVAS_H
#define KP_REPORT_WRITE_CANVAS_H

#include "report/write/out.h"

struct kp_canvas {
    int width, height;
    char *cells; /* blanks at first */
};

/* 0 or -ENOMEM; free cells. */
int kp_canvas_new(struct kp_canvas *c, int width, int height);
/* Puts a character; outside of the canvas it is dropped. (0, 0) is the left upper corner. */
void kp_canvas_put(struct kp_canvas *c, int x, int y, char what);
void kp_canvas_text(struct kp_canvas *c, int x, int y, const char *text);
char kp_canvas_at(const struct kp_canvas *c, int x, int y); /* blank outside */
/* Prints line `y` without its trailing blanks, and a newline. */
void kp_canvas_print_line(struct kp_out *o, const struct kp_canvas *c, int y);

#endif
