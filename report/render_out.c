#include "report/render_body.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "report/wrap.h"

static bool is_unprintable(char c)
{
    return kp_is_control(c) && c != '\n' && c != '\t';
}

static void write_text(struct kp_out *o, const char *text, size_t len)
{
    if (!o->rc && len)
        o->rc = o->sink->write(o->sink->arg, text, len);
}

/* Names come from programs and from files of others: none may steer the terminal. */
static void write_without(struct kp_out *o, const char *text, size_t len, bool (*is_blanked)(char c))
{
    size_t done = 0;
    for (size_t i = 0; i < len; i++)
        if (is_blanked(text[i])) {
            write_text(o, text + done, i - done);
            write_text(o, " ", 1);
            done = i + 1;
        }
    write_text(o, text + done, len - done);
}

void kp_out_text(struct kp_out *o, const char *text, size_t len)
{
    write_without(o, text, len, is_unprintable);
}

void kp_out_one_line(struct kp_out *o, const char *text, size_t len)
{
    write_without(o, text, len, kp_is_control);
}

void kp_out_print(struct kp_out *o, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (!kp_out_has(o, n < 0 ? NULL : text))
        return;
    kp_out_text(o, text, (size_t)n);
    free(text);
}

void kp_out_wrapped(struct kp_out *o, const char *prefix, const char *text)
{
    size_t indent = strlen(prefix), len;
    struct kp_wrap w = {text, KP_LINE_WIDTH - indent};
    const char *line;
    for (; kp_wrap_next(&w, &line, &len); prefix = "") {
        while (len && line[len - 1] == ' ')
            len--;
        kp_out_print(o, "%-*s%.*s\n", (int)indent, prefix, (int)len, line);
    }
}

void kp_out_repeat(struct kp_out *o, char c, size_t n)
{
    char chunk[KP_LINE_WIDTH];
    memset(chunk, c, sizeof chunk);
    for (size_t part; n; n -= part) {
        part = n < sizeof chunk ? n : sizeof chunk;
        kp_out_text(o, chunk, part);
    }
}

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
