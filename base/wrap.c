#include "base/wrap.h"

#include <string.h>

#include "base/width.h"

/* Finds where to break `rest`, of which `most` bytes fit: at the last blank of these. A blank left over from the line
 * before does not count; without another one the line is cut hard. */
static size_t break_at(const char *rest, size_t most)
{
    for (size_t i = most - 1; i > 0; i--)
        if (rest[i] == ' ')
            return i;
    return most;
}

bool kp_wrap_next(struct kp_wrap *w, const char **line, size_t *len)
{
    if (!w->rest)
        return false;
    size_t left = strlen(w->rest), most = kp_width_fit(w->rest, left, w->width), bytes;
    if (!most && left) {
        kp_width_of_char(w->rest, left, &bytes); /* too wide for any line, but the text has to come to its end */
        most = bytes;
    }
    size_t cut = left > most ? break_at(w->rest, most) : left;
    bool hard = left > most && cut == most;
    /* Drops a leading blank of a text, too; no text has one. */
    size_t skip = !hard && *w->rest == ' ';
    *line = w->rest + skip;
    *len = cut - skip;
    w->rest = left > most ? w->rest + cut : NULL;
    return true;
}
