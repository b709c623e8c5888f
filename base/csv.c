#include "base/csv.h"

#include <stdarg.h>
#include <string.h>

void kp_csv_field(struct kp_csv *c, const char *text)
{
    size_t plain;
    text = text ? text : "";
    fputs(c->fields++ ? ",\"" : "\"", c->to);
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
    fputc('\n', c->to);
    c->fields = 0;
}
