#include "report/model/reasons.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kp_reason_row rows[KP_REASONS] = {
    {"NONE", "", KP_REASON_KIND_LIMIT, "", "", ""},
#define KP_REASON(id, key, kind, text, advice, why) {#id, key, KP_REASON_KIND_##kind, text, advice, why},
#include "report/model/reasons.def"
#undef KP_REASON
};

const struct kp_reason_row *kp_reason_row(enum kp_reason reason)
{
    return &rows[(unsigned)reason < KP_REASONS ? reason : KP_REASON_NONE];
}

const char *kp_reason_key(enum kp_reason reason)
{
    return kp_reason_row(reason)->key;
}

const char *kp_reason_text(enum kp_reason reason)
{
    return kp_reason_row(reason)->text;
}

enum kp_reason kp_reason_find(const char *key)
{
    for (unsigned i = 1; key && i < KP_REASONS; i++)
        if (!strcmp(rows[i].key, key))
            return (enum kp_reason)i;
    return KP_REASON_NONE;
}

const char *kp_why_text(const struct kp_why *why)
{
    if (why->text)
        return why->text;
    return why->reason ? kp_reason_text(why->reason) : NULL;
}

struct kp_why kp_why_of(enum kp_reason reason, char *text)
{
    return (struct kp_why){reason, text};
}

struct kp_why kp_why_make(enum kp_reason reason, const char *format, ...)
{
    va_list list;
    char *detail = NULL, *text = NULL;
    va_start(list, format);
    int n = vasprintf(&detail, format, list);
    va_end(list);
    if (n < 0 || asprintf(&text, "%s: %s", kp_reason_text(reason), detail) < 0)
        text = NULL;
    if (n >= 0)
        free(detail);
    return kp_why_of(reason, text);
}

struct kp_why kp_why_copy(struct kp_why why)
{
    return kp_why_of(why.reason, why.text ? strdup(why.text) : NULL);
}

void kp_why_free(struct kp_why *why)
{
    free(why->text);
    *why = (struct kp_why){KP_REASON_NONE, NULL};
}
