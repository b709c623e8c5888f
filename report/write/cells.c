#include "report/write/cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/text.h"

const char *kp_write_process_name(const struct kp_session *s)
{
    return kp_base_name(kp_or_empty(s->exe));
}

const char *kp_write_host(const struct kp_display *d, const struct kp_session *s)
{
    return d && d->face == KP_FACE_NCU ? "127.0.0.1" : kp_or_empty(s->host);
}

void kp_write_number_cell(double value, bool plain, char out[KP_NUMBER_MAX])
{
    if (plain)
        kp_plain_real(value, out);
    else
        kp_format_real(value, out);
}

void kp_count_cell(uint64_t value, bool plain, char out[KP_NUMBER_MAX])
{
    if (plain)
        snprintf(out, KP_NUMBER_MAX, "%" PRIu64, value);
    else
        kp_format_count(value, out);
}

void kp_write_decimals(char *number)
{
    if (!strpbrk(number, ".en"))
        strcat(number, ".00");
}

const char *kp_write_plain_value(const struct kp_metric *m, char number[KP_NUMBER_MAX])
{
    if (!m || m->kind == KP_VALUE_NA)
        return KP_NO_VALUE;
    if (m->kind == KP_VALUE_TEXT)
        return m->text;
    if (m->kind == KP_VALUE_COUNT)
        kp_count_cell(m->count, true, number);
    else
        kp_plain_real(m->real, number);
    return number;
}
