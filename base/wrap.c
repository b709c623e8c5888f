#include "base/wrap.h"

#include <string.h>

/* Finds where to break `rest`, which is longer than `width`: the last blank of the first `width` characters. A blank
 * left over from the line before does not count; without another one the line is cut hard. */
static size_t break_at(const char *rest, size_t width)
{
    for (size_t i = width - 1; i > 0; i--)
        if (rest[i] == ' ')
            return i;
    return width;
}

bool kp_wrap_next(struct kp_wrap *w, const char **line, size_t *len)
{
    if (!w->rest)
        return false;
    size_t left = strlen(w->rest);
    size_t cut = left > w->width ? break_at(w->rest, w->width) : left;
    bool hard = left > w->width && cut == w->width;
    /* Drops a leading blank of a text, too; no text has one. */
    size_t skip = !hard && *w->rest == ' ';
    *line = w->rest + skip;
    *len = cut - skip;
    w->rest = left > w->width ? w->rest + cut : NULL;
    return true;
}
