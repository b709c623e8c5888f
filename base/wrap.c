#include "base/wrap.h"

#include <string.h>

#include "base/width.h"

/* Returns how many bytes of a text fit into a line. */
static size_t fitting(const char *text, size_t left, size_t width)
{
    size_t most = kp_width_fit(text, left, width), bytes;
    if (most || !left)
        return most;
    kp_width_of_char(text, left, &bytes); /* too wide for any line, but the text has to come to its end */
    return bytes;
}

/* Returns the last blank of the first `most` bytes, 0 for none. A blank left over from the line before is none. */
static size_t last_blank(const char *text, size_t most)
{
    for (size_t i = most - 1; i > 0; i--)
        if (text[i] == ' ')
            return i;
    return 0;
}

/* Returns where to cut a word if only `most` bytes fit: after a separator, unless that leaves half of the line
 * empty. */
static size_t cut_of_word(const char *word, size_t most)
{
    for (size_t i = most; i > most / 2; i--)
        if (strchr(",/_", word[i - 1]))
            return i;
    return most;
}

/* Returns where to break a text at a blank: 0 for nowhere, its length if all of it fits. *most: how many bytes fit. */
static size_t break_at_blank(const char *text, size_t left, size_t width, size_t *most)
{
    *most = fitting(text, left, width);
    return left > *most ? last_blank(text, *most) : left;
}

bool kp_wrap_next(struct kp_wrap *w, const char **line, size_t *len)
{
    if (!w->rest)
        return false;
    const char *text = w->rest;
    size_t left = strlen(text), most, cut = break_at_blank(text, left, w->width, &most), skip = *text == ' ';
    if (left > most && !cut && skip) { /* a word that is cut has the room of the blank before it, too */
        text++;
        left--;
        skip = 0;
        cut = break_at_blank(text, left, w->width, &most);
    }
    if (left > most && !cut)
        cut = cut_of_word(text, most);
    /* Drops a leading blank of a text, too; no text has one. */
    *line = text + skip;
    *len = cut - skip;
    w->rest = left > most ? text + cut : NULL;
    return true;
}
