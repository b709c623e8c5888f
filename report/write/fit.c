#include "report/write/fit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/width.h"
#include "report/write/out.h"

enum { HANG = 2 /* columns that a further line stands to the right of the first */ };

static const char mark[] = "==KPROF== ";

/* Returns the length of what stands at `text`: a colour, which has no width, or a character. */
static size_t step(const char *text, size_t len, size_t *columns)
{
    size_t n = 1;
    if (*text == '\033') {
        while (n < len && text[n - 1] != 'm')
            n++;
        *columns = 0;
        return n;
    }
    *columns = kp_width_of_char(text, len, &n);
    return n;
}

/* Returns how much of the text fits into `room` columns: up to its last blank, if there is one, else hard. */
static size_t fitting(const char *text, size_t len, size_t room)
{
    size_t at = 0, used = 0, blank = 0, columns, n;
    if (len <= room)
        return len; /* no character has more columns than bytes */
    while (at < len) {
        n = step(text + at, len - at, &columns);
        if (used + columns > room)
            return blank ? blank : at ? at : n;
        used += columns;
        blank = text[at] == ' ' && at ? at : blank;
        at += n;
    }
    return len;
}

static size_t without_blanks(const char *text, size_t len)
{
    while (len && text[len - 1] == ' ')
        len--;
    return len;
}

static int put(struct kp_fit *f, const char *text, size_t len)
{
    return len ? f->to->write(f->to->arg, text, len) : 0;
}

static int put_blanks(struct kp_fit *f, size_t n)
{
    static const char blanks[] = "                                                            ";
    return put(f, blanks, n < sizeof blanks - 1 ? n : sizeof blanks - 1);
}

/* Returns the length of the blanks that a line begins with, and of colours among them; *columns receives their width.
 */
static size_t leading(const char *text, size_t len, size_t *columns)
{
    size_t at = 0, wide;
    for (*columns = 0; at < len && (text[at] == ' ' || text[at] == '\033'); *columns += wide)
        at += step(text + at, len - at, &wide);
    return at;
}

/* Returns the columns that further lines of a broken one are indented by; its first is indented by `blanks`. */
static size_t hang_of(const struct kp_fit *f, size_t blanks)
{
    if (f->len > strlen(mark) && !memcmp(f->line, mark, strlen(mark)))
        return strlen(mark);
    return (blanks < f->width / 2 ? blanks : f->width / 2) + HANG;
}

/* Writes the line that was begun, without its end. */
static int put_fitted(struct kp_fit *f)
{
    const char *rest = f->line;
    size_t shown = without_blanks(rest, f->len), used, lead = leading(rest, shown, &used), hang = hang_of(f, used);
    bool broken = false;
    int rc = 0;
    if (used >= f->width)
        lead = used = 0;
    while (!rc && shown && fitting(rest + lead, shown - lead, f->width - used) < shown - lead) {
        size_t n = lead + fitting(rest + lead, shown - lead, f->width - used);
        rc = put(f, rest, without_blanks(rest, n));
        rc = rc ? rc : put(f, "\n", 1);
        while (n < shown && rest[n] == ' ')
            n++;
        rest += n, shown -= n;
        lead = 0, used = hang;
        broken = true;
        rc = rc ? rc : put_blanks(f, hang);
    }
    /* Blanks at the end stay (ncu has them, too), unless a terminal would wrap them. */
    bool trim = broken || fitting(f->line, f->len, f->width) < f->len;
    return rc ? rc : put(f, rest, trim ? shown : f->len);
}

static int append(struct kp_fit *f, const char *text, size_t len)
{
    if (f->len + len + 1 > f->capacity) {
        size_t capacity = 2 * (f->len + len + 1);
        char *grown = realloc(f->line, capacity);
        if (!grown)
            return -ENOMEM;
        f->line = grown;
        f->capacity = capacity;
    }
    memcpy(f->line + f->len, text, len);
    f->line[f->len += len] = '\0';
    return 0;
}

static int take(void *arg, const char *text, size_t len)
{
    struct kp_fit *f = arg;
    const char *end;
    int rc = 0;
    if (!f->width)
        return put(f, text, len);
    while (!rc && (end = memchr(text, '\n', len))) {
        size_t part = (size_t)(end - text);
        rc = append(f, text, part);
        rc = rc ? rc : put_fitted(f);
        rc = rc ? rc : put(f, "\n", 1);
        f->len = 0;
        text += part + 1, len -= part + 1;
    }
    return rc ? rc : append(f, text, len);
}

void kp_fit_init(struct kp_fit *f, const struct kp_sink *to, size_t width)
{
    *f = (struct kp_fit){.to = to, .width = width && width < KP_LINE_NARROWEST ? KP_LINE_NARROWEST : width};
    f->sink = (struct kp_sink){.write = take, .arg = f};
}

int kp_fit_end(struct kp_fit *f)
{
    int rc = f->len ? put_fitted(f) : 0;
    free(f->line);
    f->line = NULL;
    f->len = f->capacity = 0;
    return rc;
}
