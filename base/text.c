#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

bool kp_list_next(const char **cursor, const char **item, size_t *len)
{
    const char *p = *cursor + strspn(*cursor, " \t,");
    size_t n = strcspn(p, ",");
    *item = p;
    *cursor = p + n;
    while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    *len = n;
    return n > 0;
}

bool kp_list_has(const char *list, const char *word)
{
    const char *item;
    size_t len;
    while (list && kp_list_next(&list, &item, &len))
        if (strlen(word) == len && !strncmp(item, word, len))
            return true;
    return false;
}

bool kp_word_next(const char **cursor, const char **word, size_t *len)
{
    *word = *cursor + strspn(*cursor, KP_BETWEEN_NAMES);
    *len = strcspn(*word, KP_BETWEEN_NAMES);
    *cursor = *word + *len;
    return *len > 0;
}

uint64_t kp_hash(const void *data, size_t size, uint64_t seed)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;
    for (const unsigned char *c = data; size--; c++)
        hash = (hash ^ *c) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

bool kp_text_is_control(char c)
{
    return (unsigned char)c < ' ' || c == '\x7f';
}

/* Facts: RFC 3629. */
size_t kp_utf8_len(const char *text, size_t len)
{
    static const struct {
        unsigned char first, last, low, high; /* first byte, range of the second one */
        size_t len;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (*s < forms[i].first || *s > forms[i].last)
            continue;
        size_t n = 1;
        if (forms[i].len > len)
            return 0;
        if (forms[i].len > 1 && s[1] >= forms[i].low && s[1] <= forms[i].high)
            for (n = 2; n < forms[i].len && (s[n] & 0xc0) == 0x80;)
                n++;
        return n == forms[i].len ? n : 0;
    }
    return 0;
}

uint32_t kp_utf8_code(const char *text, size_t len)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0xf, 0x7};
    uint32_t code = (unsigned char)*text & first[len];
    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3fU);
    return code;
}

static bool steers(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } steering[] = {{0x80, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    for (size_t i = 0; i < sizeof steering / sizeof *steering; i++)
        if (code >= steering[i].first && code <= steering[i].last)
            return true;
    return false;
}

size_t kp_text_shown_len(const char *text, size_t len, bool *shown)
{
    if (!((unsigned char)*text & 0x80)) {
        *shown = !kp_text_is_control(*text);
        return 1;
    }
    size_t n = kp_utf8_len(text, len);
    *shown = n && !steers(kp_utf8_code(text, n));
    return n ? n : 1;
}

size_t kp_plain_len(const char *text, size_t len)
{
    static const uint64_t each = UINT64_C(0x0101010101010101), high = 0x80 * each;
    size_t at = 0;
    uint64_t eight;
    for (; at + sizeof(eight) <= len; at += sizeof(eight)) {
        memcpy(&eight, text + at, sizeof(eight));
        /* The high bit of a byte is set by one above 0x7e, or below ' '. Only such a byte carries into its
         * neighbour. */
        if ((eight | (eight + each) | (eight - ' ' * each)) & high)
            break;
    }
    return at;
}

void kp_blank_controls(char *text, size_t len)
{
    bool shown;
    for (size_t i = kp_plain_len(text, len), n; i < len; i += n) {
        n = kp_text_shown_len(text + i, len - i, &shown);
        if (!shown)
            memset(text + i, ' ', n);
    }
}

int kp_text_end(FILE *f, char *const *text)
{
    return fclose(f) || !*text ? -ENOMEM : 0;
}

char *kp_asprintf(const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    return n < 0 ? NULL : text;
}

int kp_error(char **err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vasprintf(err, format, args);
    va_end(args);
    if (n >= 0) {
        kp_blank_controls(*err, (size_t)n);
        return -EINVAL;
    }
    *err = NULL;
    return -ENOMEM;
}

int kp_error_choice(char **err, const char *head, const char *word, const char *const *list)
{
    enum { MOST_SHOWN = 80 }; /* bytes: a word as long as a file would hide the choice */
    const char *near = kp_nearest(word, list);
    int shown = (int)strnlen(word, MOST_SHOWN);
    const char *more = word[shown] ? "..." : "";
    if (near)
        return kp_error(err, "%s '%.*s%s'; did you mean '%s'?", head, shown, word, more, near);
    char *valid = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&valid, &size);
    if (!f) {
        *err = NULL;
        return -ENOMEM;
    }
    for (size_t i = 0; list[i]; i++)
        fprintf(f, "%s%s", i ? ", " : "", list[i]);
    int rc = kp_text_end(f, &valid) ? -ENOMEM : kp_error(err, "%s '%.*s%s'; valid: %s", head, shown, word, more, valid);
    free(valid);
    return rc;
}
