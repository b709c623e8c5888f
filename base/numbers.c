#include "base/numbers.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digit.h"
#include "base/plain.h"

static const size_t sizes[] = {
    [KP_NUMBER_U32] = sizeof(uint32_t), [KP_NUMBER_U64] = sizeof(uint64_t), [KP_NUMBER_REAL] = sizeof(double)};

/* ---- writing ---- */

char *kp_number_digits(char *text, uint64_t number)
{
    char *at = &text[KP_KEY_SIZE - 1];
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    return at;
}

static char *write_count(uint64_t value, char *to)
{
    char text[KP_KEY_SIZE];
    if (value < 10) { /* most values are */
        *to = (char)('0' + value);
        return to + 1;
    }
    const char *digits = kp_number_digits(text, value);
    size_t len = (size_t)(&text[KP_KEY_SIZE - 1] - digits);
    memcpy(to, digits, len);
    return to + len;
}

#define WHOLE 9007199254740992.0 /* up to 2^53 every whole number is a double */

char *kp_number_write(double value, char to[KP_NUMBER_SIZE])
{
    if (value >= 0 && value <= WHOLE && value == (double)(uint64_t)value)
        return write_count((uint64_t)value, to);
    if (isnan(value))
        return stpcpy(to, "null");
    if (isinf(value))
        return stpcpy(to, value < 0 ? "-1e999" : "1e999");
    return to + snprintf(to, KP_NUMBER_SIZE, "%.17g", value);
}

char *kp_numbers_write(enum kp_number type, const void *values, size_t n)
{
    const uint32_t *u32 = values;
    const uint64_t *u64 = values;
    const double *real = values;
    char *text = n < SIZE_MAX / KP_NUMBER_SIZE - 1 ? malloc((n + 1) * KP_NUMBER_SIZE) : NULL, *to = text;
    if (!text)
        return NULL;
    locale_t before = kp_plain_begin();
    *to++ = '[';
    for (size_t i = 0; i < n; i++) {
        if (i)
            *to++ = ',';
        to = type == KP_NUMBER_U32   ? write_count(u32[i], to)
             : type == KP_NUMBER_U64 ? write_count(u64[i], to)
                                     : kp_number_write(real[i], to);
    }
    strcpy(to, "]");
    kp_plain_end(before);
    return text;
}

/* ---- reading ---- */

/* Reads a whole number that fits a double (nearly all do); NULL for any other. */
static char *read_whole(const char *at, double *value)
{
    enum { MOST_DIGITS = 15 };
    uint64_t whole = 0;
    const char *c = at;
    for (; kp_is_digit(*c) && c - at < MOST_DIGITS; c++)
        whole = whole * 10 + (uint64_t)(*c - '0');
    if (c == at || kp_is_digit(*c) || *c == '.' || *c == 'e' || *c == 'E' || *c == 'x' || *c == 'X')
        return NULL;
    *value = (double)whole;
    return (char *)c;
}

/* Reads a JSON number; strtod accepts more. */
char *kp_number_read(const char *at, double *value)
{
    static const char none[] = "null";
    const char *digit = at + (*at == '-');
    char *end = read_whole(at, value);
    if (end)
        return end;
    *value = NAN;
    if (!strncmp(at, none, strlen(none)))
        return (char *)at + strlen(none);
    if (kp_is_digit(*digit) && digit[1] != 'x' && digit[1] != 'X')
        *value = strtod(at, &end);
    return end;
}

static const char *read_count(const char *at, uint64_t most, uint64_t *value)
{
    const char *c = at;
    *value = 0;
    for (; kp_is_digit(*c); c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (*value > (most - digit) / 10)
            return NULL;
        *value = *value * 10 + digit;
    }
    return c > at ? c : NULL;
}

static const char *read_one(enum kp_number type, const char *at, void *values, size_t i)
{
    uint64_t count;
    if (type == KP_NUMBER_REAL)
        return kp_number_read(at, (double *)values + i);
    at = read_count(at, type == KP_NUMBER_U32 ? UINT32_MAX : UINT64_MAX, &count);
    if (type == KP_NUMBER_U32)
        ((uint32_t *)values)[i] = (uint32_t)count;
    else
        ((uint64_t *)values)[i] = count;
    return at;
}

static bool read_all(enum kp_number type, const char *at, void *values, size_t *n)
{
    *n = 0;
    if (*at != '[')
        return false;
    if (!strcmp(at, "[]"))
        return true;
    do {
        at = read_one(type, at + 1, values, (*n)++);
    } while (at && *at == ',');
    return at && !strcmp(at, "]");
}

int kp_numbers_read(enum kp_number type, const char *json, void **values, size_t *n)
{
    size_t most = 1;
    for (const char *c = json; (c = strchr(c, ',')); c++)
        most++;
    *values = calloc(most, sizes[type]);
    if (!*values)
        return -ENOMEM;
    locale_t before = kp_plain_begin();
    bool read = read_all(type, json, *values, n);
    kp_plain_end(before);
    if (read)
        return 0;
    free(*values);
    *values = NULL;
    return -EINVAL;
}
