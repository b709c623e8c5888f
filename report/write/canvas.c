#include "report/write/canvas.h"

#include <stdlib.h>
#include <string.h>

int kp_canvas_new(struct kp_canvas *c, int width, int height)
{
    size_t size = (size_t)width * (size_t)height;
    *c = (struct kp_canvas){width, height, malloc(size)};
    if (!c->cells)
        return -ENOMEM;
    memset(c->cells, ' ', size);
    return 0;
}

static bool is_inside(const struct kp_canvas *c, int x, int y)
{
    return x >= 0 && x < c->width && y >= 0 && y < c->height;
}

void kp_canvas_put(struct kp_canvas *c, int x, int y, char what)
{
    if (is_inside(c, x, y))
        c->cells[y * c->width + x] = what;
}

void kp_canvas_text(struct kp_canvas *c, int x, int y, const char *text)
{
    for (; *text && x < c->width; x++)
        kp_canvas_put(c, x, y, *text++);
}

char kp_canvas_at(const struct kp_canvas *c, int x, int y)
{
    return is_inside(c, x, y) ? c->cells[y * c->width + x] : ' ';
}

void kp_canvas_print_line(struct kp_out *o, const struct kp_canvas *c, int y)
{
    const char *line = c->cells + (size_t)y * (size_t)c->width;
    int n = c->width;
    while (n && line[n - 1] == ' ')
        n--;
    kp_out_text(o, line, (size_t)n);
    kp_out_text(o, "\n", 1);
}
