#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/plain.h"
#include "base/text.h"

enum { REPLACEMENT = 0xfffd }; /* Unicode's, for invalid bytes */

/* Escapes characters that steer a terminal; JSON readers see the same text. */
static void write_text(FILE *to, const char *text)
{
    bool shown;
    const char *end = text + strlen(text);
    fputc('"', to);
    for (const char *c = text; c < end;) {
        size_t len = kp_text_shown_len(c, (size_t)(end - c), &shown);
        if (*c == '"' || *c == '\\')
            fprintf(to, "\\%c", *c);
        else if (shown)
            fwrite(c, 1, len, to);
        else
            fprintf(to, "\\u%04x", kp_utf8_len(c, (size_t)(end - c)) ? kp_utf8_code(c, len) : REPLACEMENT);
        c += len;
    }
    fputc('"', to);
}

static void new_line(struct kp_json *j)
{
    fprintf(j->to, "\n%*s", j->depth, "");
}

/* Writes the text before a value. */
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

void kp_json_number(struct kp_json *j, const char *key, const char *spelled)
{
    begin(j, key);
    fputs(spelled, j->to);
}

void kp_json_bool(struct kp_json *j, const char *key, bool value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->to);
}
