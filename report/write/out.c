#include "report/write/out.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/wrap.h"

static void write_text(struct kp_out *o, const char *text, size_t len)
{
    if (!o->rc && len)
        o->rc = o->sink->write(o->sink->arg, text, len);
}

/* Writes a blank for each unprintable character (text.h), except for those of `kept`. */
static void write_shown(struct kp_out *o, const char *text, size_t len, const char *kept)
{
    size_t done = 0;
    bool shown;
    for (size_t i = kp_plain_len(text, len), n; i < len; i += n) {
        n = kp_text_shown_len(text + i, len - i, &shown);
        if (shown || (text[i] && strchr(kept, text[i])))
            continue;
        write_text(o, text + done, i - done);
        write_text(o, " ", 1);
        done = i + n;
    }
    write_text(o, text + done, len - done);
}

static const char *const paints[KP_PAINTS] = {
    [KP_PAINT_NONE] = "\033[0m",
    [KP_PAINT_LAUNCH] = "\033[1m",
    [KP_PAINT_SECTION] = "\033[36m",
    [KP_PAINT_LABEL] = "\033[1;32m",
};

const char *kp_paint(const struct kp_out *o, enum kp_paint paint)
{
    return o->display && o->display->colors ? paints[paint] : "";
}

void kp_out_paint(struct kp_out *o, enum kp_paint paint)
{
    const char *text = kp_paint(o, paint);
    write_text(o, text, strlen(text));
}

size_t kp_out_wide(const struct kp_out *o)
{
    size_t width = o->display && o->display->width ? o->display->width : KP_LINE_WIDTH;
    return width > KP_LINE_NARROWEST ? width : KP_LINE_NARROWEST;
}

size_t kp_out_prose(const struct kp_out *o, size_t indent)
{
    enum { LEAST = 16 };
    size_t width = kp_out_wide(o) < KP_LINE_WIDTH ? kp_out_wide(o) : KP_LINE_WIDTH;
    return width > indent + LEAST ? width - indent : LEAST;
}

size_t kp_out_width(const struct kp_out *o)
{
    size_t width = kp_out_prose(o, 0);
    return width > KP_LINE_WIDTH_LEAST ? width : KP_LINE_WIDTH_LEAST;
}

void kp_out_text(struct kp_out *o, const char *text, size_t len)
{
    write_shown(o, text, len, "\n\t");
}

void kp_out_one_line(struct kp_out *o, const char *text, size_t len)
{
    write_shown(o, text, len, "");
}

/* Keeps line ends only at the start and the end of the format; others came with an argument, and would forge a line. */
void kp_out_print(struct kp_out *o, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (!kp_out_has(o, n < 0 ? NULL : text))
        return;
    size_t len = strlen(format), first = strspn(format, "\n"), last = 0;
    while (last < len - first && format[len - 1 - last] == '\n')
        last++;
    kp_out_text(o, text, first);
    write_shown(o, text + first, (size_t)n - first - last, "");
    kp_out_text(o, text + (size_t)n - last, last);
    free(text);
}

void kp_out_wrapped(struct kp_out *o, const char *prefix, const char *text)
{
    size_t indent = strlen(prefix), len;
    struct kp_wrap w = {text, kp_out_prose(o, indent)};
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

char *kp_out_title(struct kp_out *o, const struct kp_line *l)
{
    char *title = kp_line_title(o->display, l);
    return kp_out_has(o, title) ? title : NULL;
}
