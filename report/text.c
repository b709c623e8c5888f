#include "report/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/options.h"

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
    static const char separators[] = ", \t";
    *word = *cursor + strspn(*cursor, separators);
    *len = strcspn(*word, separators);
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

bool kp_is_control(char c)
{
    return (unsigned char)c < ' ' || c == '\x7f';
}

void kp_blank_controls(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        text[i] = kp_is_control(text[i]) ? ' ' : text[i];
}

int kp_error(char **err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vasprintf(err, format, args);
    va_end(args);
    if (n >= 0)
        return -EINVAL;
    *err = NULL;
    return -ENOMEM;
}

int kp_error_choice(char **err, const char *head, const char *word, const char *const *list)
{
    const char *near = kp_nearest(word, list);
    if (near)
        return kp_error(err, "%s '%s'; did you mean '%s'?", head, word, near);
    char *valid = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&valid, &size);
    if (!f) {
        *err = NULL;
        return -ENOMEM;
    }
    for (size_t i = 0; list[i]; i++)
        fprintf(f, "%s%s", i ? ", " : "", list[i]);
    int rc = fclose(f) ? -ENOMEM : kp_error(err, "%s '%s'; valid: %s", head, word, valid);
    free(valid);
    return rc;
}
