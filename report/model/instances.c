#include "report/model/instances.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/plain.h"

/* ---- writing ---- */

struct buffer {
    char *text;
    size_t len, cap;
    bool failed;
};

static void append(struct buffer *b, const char *text, size_t len)
{
    if (b->failed)
        return;
    if (b->len + len >= b->cap) {
        size_t cap = 2 * b->cap + len + 256;
        char *grown = realloc(b->text, cap);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->text = grown;
        b->cap = cap;
    }
    memcpy(b->text + b->len, text, len);
    b->len += len;
    b->text[b->len] = '\0';
}

static void append_key(struct buffer *b, const char *key)
{
    char escaped[8];
    append(b, "\"", 1);
    for (size_t plain; *key; key += plain) {
        for (plain = 0; (unsigned char)key[plain] >= ' ' && key[plain] != '"' && key[plain] != '\\'; plain++)
            ;
        append(b, key, plain);
        if (!key[plain])
            break;
        append(b, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned char)key[plain++]));
    }
    append(b, "\"", 1);
}

static void append_value(struct buffer *b, double value)
{
    char text[KP_NUMBER_SIZE];
    append(b, text, (size_t)(kp_number_write(value, text) - text));
}

char *kp_instances_write(const struct kp_instance *instances, size_t n)
{
    struct buffer b = {0};
    locale_t before = kp_plain_begin();
    append(&b, "[", 1);
    for (size_t i = 0; i < n; i++) {
        append(&b, i ? ",[" : "[", i ? 2 : 1);
        append_key(&b, instances[i].key);
        append(&b, ",", 1);
        append_value(&b, instances[i].value);
        append(&b, "]", 1);
    }
    append(&b, "]", 1);
    kp_plain_end(before);
    if (!b.failed)
        return b.text;
    free(b.text);
    return NULL;
}

/* ---- reading ---- */

static bool take(char **at, const char *text)
{
    size_t len = strlen(text);
    if (strncmp(*at, text, len))
        return false;
    *at += len;
    return true;
}

/* Returns a one-byte character from four hexadecimal digits; -1 for anything else. */
static int escaped_byte(const char *at)
{
    char digits[5] = "", *end;
    strncat(digits, at, 4);
    long byte = digits[0] == '0' && digits[1] == '0' ? strtol(digits, &end, 16) : 0;
    return byte > 0 && byte < 128 && end == &digits[4] ? (int)byte : -1;
}

/* Reads a string, unescaping it in place. */
static bool take_key(char **at, const char **key)
{
    if (!take(at, "\""))
        return false;
    char *to = *at, *from = *at;
    *key = to;
    for (; *from && *from != '"'; from++) {
        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        int byte = from[1] == 'u' ? escaped_byte(from + 2) : -1;
        if (byte < 0)
            return false;
        *to++ = (char)byte;
        from += 5;
    }
    if (!*from)
        return false;
    *to = '\0';
    *at = from + 1;
    return true;
}

static bool take_pairs(char *at, const char **keys, double *values, size_t *n)
{
    *n = 0;
    if (!take(&at, "["))
        return false;
    while (!take(&at, "]")) {
        if (*n && !take(&at, ","))
            return false;
        if (!take(&at, "[") || !take_key(&at, &keys[*n]) || !take(&at, ",") ||
            !(at = kp_number_read(at, &values[*n])) || !take(&at, "]"))
            return false;
        ++*n;
    }
    return !*at;
}

int kp_instances_read(const char *json, struct kp_result *r, const char *name)
{
    size_t most = 1, n = 0;
    for (const char *c = json; (c = strchr(c, '[')); c++)
        most++;
    char *text = strdup(json);
    const char **keys = calloc(most, sizeof *keys);
    double *values = calloc(most, sizeof *values);
    int rc = -ENOMEM;
    if (!text || !keys || !values)
        goto out;
    locale_t before = kp_plain_begin();
    rc = take_pairs(text, keys, values, &n) ? 0 : -EINVAL;
    kp_plain_end(before);
    if (!rc)
        rc = kp_result_set_instances(r, name, keys, values, n);
out:
    free(values);
    free(keys);
    free(text);
    return rc;
}
