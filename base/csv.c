#include "base/csv.h"

#include <stdarg.h>
#include <string.h>

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Whether a text is a number as kprof writes it: a sign, digits, a point and an exponent, or a word for NaN and
 * infinity. */
static bool is_number(const char *text)
{
    const char *at = text + (*text == '-' || *text == '+');
    if (!strcmp(at, "inf") || !strcmp(at, "nan"))
        return true;
    const char *whole = at;
    at += digits(at);
    if (*at == '.')
        at += 1 + digits(at + 1);
    if (at == whole)
        return false;
    if (*at == 'e')
        at += 1 + (at[1] == '-' || at[1] == '+') + digits(at + 1 + (at[1] == '-' || at[1] == '+'));
    return !*at;
}

static bool is_formula(const char *text)
{
    return *text && strchr("=+-@\t\r", *text) && !is_number(text);
}

void kp_csv_field(struct kp_csv *c, const char *text)
{
    size_t plain;
    text = text ? text : "";
    fputs(c->fields++ ? ",\"" : "\"", c->to);
    if (c->defuse && is_formula(text))
        fputc('\'', c->to);
    for (; *text; text += plain) {
        plain = strcspn(text, "\"");
        fwrite(text, 1, plain, c->to);
        if (text[plain]) {
            fputs("\"\"", c->to);
            plain++;
        }
    }
    fputc('"', c->to);
}

void kp_csv_fields(struct kp_csv *c, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kp_csv_field(c, texts[i]);
}

void kp_csv_empty(struct kp_csv *c, size_t n)
{
    while (n--)
        kp_csv_field(c, "");
}

void kp_csv_formatted(struct kp_csv *c, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    kp_csv_field(c, text);
}

void kp_csv_end_row(struct kp_csv *c)
{
    fputs("\r\n", c->to);
    c->fields = 0;
}
