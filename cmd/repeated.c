#include "cmd/repeated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"
#include "cmd/console.h"

void kp_repeated_note(struct kp_repeated *r, const char *value)
{
    unsigned i = 0, n = r->n_values < KP_REPEATED_MAX ? r->n_values : KP_REPEATED_MAX;
    while (i < n && strcmp(r->values[i], value) != 0)
        i++;
    if (i < KP_REPEATED_MAX && i == n)
        r->values[i] = value;
    r->n_values += i == n;
    r->last = value;
    r->times++;
}

/* Writes a part of an expression: that of a name matches only this name. */
static void put_pattern(FILE *to, const char *value)
{
    if (!strncmp(value, KP_REGEX, strlen(KP_REGEX))) {
        fputs(value + strlen(KP_REGEX), to);
        return;
    }
    fputc('^', to);
    for (; *value; value++)
        fprintf(to, strchr("\\^$.[]()*+?{}|", *value) ? "\\%c" : "%c", *value);
    fputc('$', to);
}

/* Writes the flag with all values, if an option of that kind has such a value. */
static void put_all(FILE *to, const struct kp_repeated *r, const char *flag, enum kp_option_kind kind)
{
    bool is_pattern = kind == KP_OPT_PATTERN;
    if ((!is_pattern && kind != KP_OPT_CHOICES) || r->n_values > KP_REPEATED_MAX)
        return;
    fprintf(to, "; for all of them: --%s '%s", flag, is_pattern ? KP_REGEX : "");
    for (unsigned i = 0; i < r->n_values; i++) {
        if (i)
            fputc(is_pattern ? '|' : ',', to);
        if (is_pattern)
            put_pattern(to, r->values[i]);
        else
            fputs(r->values[i], to);
    }
    fputc('\'', to);
}

void kp_repeated_tell(const struct kp_repeated *r, const char *flag, const struct kp_option *row)
{
    char *line = NULL;
    size_t size;
    FILE *to = r->n_values > 1 ? open_memstream(&line, &size) : NULL;
    if (!to)
        return;
    fprintf(to, "--%s is given %u times; the last one counts: %s", flag, r->times, r->last);
    if (row)
        put_all(to, r, flag, row->kind);
    if (!fclose(to))
        kp_console_warn(line);
    free(line);
}
