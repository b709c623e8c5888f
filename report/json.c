#include "report/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/plain.h"

/* Length of the UTF-8 character at `s`; 0 when there is none. Facts: RFC 3629. */
static size_t character(const unsigned char *s)
{
    static const struct {
        unsigned char first, last, low, high; /* first byte, range of the second one */
        size_t len;
    } forms[] = {
        {0x20, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (*s < forms[i].first || *s > forms[i].last)
            continue;
        size_t n = 1;
        if (forms[i].len > 1 && s[1] >= forms[i].low && s[1] <= forms[i].high)
            for (n = 2; n < forms[i].len && (s[n] & 0xc0) == 0x80;)
                n++;
        return n == forms[i].len ? n : 0;
    }
    return 0;
}

static void write_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        size_t len = character(c);
        if (*c == '"' || *c == '\\')
            fprintf(to, "\\%c", *c);
        else if (*c < ' ')
            fprintf(to, "\\u%04x", *c);
        else if (len)
            fwrite(c, 1, len, to);
        else
            fputs("\\ufffd", to);
        c += len ? len : 1;
    }
    fputc('"', to);
}

static void new_line(struct kp_json *j)
{
    fprintf(j->to, "\n%*s", j->depth, "");
}

/* What comes before a value. */
static void begin(struct kp_json *j, const char *key)
{
    struct kp_json_level *level = &j->levels[j->depth];
    if (level->some)
        fputs(level->on_one ? ", " : ",", j->to);
    if (j->depth && !level->on_one)
        new_line(j);
    level->some = true;
    if (!key)
        return;
    write_text(j->to, key);
    fputs(": ", j->to);
}

static void open_level(struct kp_json *j, const char *key, bool on_one_line, char start, char end)
{
    begin(j, key);
    fputc(start, j->to);
    bool within = j->levels[j->depth].on_one;
    j->levels[++j->depth] = (struct kp_json_level){false, on_one_line || within, end};
}

void kp_json_object(struct kp_json *j, const char *key, bool on_one_line)
{
    open_level(j, key, on_one_line, '{', '}');
}

void kp_json_array(struct kp_json *j, const char *key, bool on_one_line)
{
    open_level(j, key, on_one_line, '[', ']');
}

void kp_json_end(struct kp_json *j)
{
    struct kp_json_level ended = j->levels[j->depth--];
    if (ended.some && !ended.on_one)
        new_line(j);
    fputc(ended.end, j->to);
    if (!j->depth)
        fputc('\n', j->to);
}

void kp_json_text(struct kp_json *j, const char *key, const char *value)
{
    begin(j, key);
    if (value)
        write_text(j->to, value);
    else
        fputs("null", j->to);
}

void kp_json_count(struct kp_json *j, const char *key, uint64_t value)
{
    begin(j, key);
    fprintf(j->to, "%" PRIu64, value);
}

void kp_json_int(struct kp_json *j, const char *key, int64_t value)
{
    begin(j, key);
    fprintf(j->to, "%" PRId64, value);
}

void kp_json_real(struct kp_json *j, const char *key, double value)
{
    char text[KP_PLAIN_MAX] = "null";
    if (isfinite(value))
        kp_plain_real(value, text);
    begin(j, key);
    fputs(text, j->to);
}

void kp_json_bool(struct kp_json *j, const char *key, bool value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->to);
}
