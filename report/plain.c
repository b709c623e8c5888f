#include "report/plain.h"

locale_t kp_plain_begin(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    return plain ? uselocale(plain) : NULL;
}

void kp_plain_end(locale_t before)
{
    if (before)
        freelocale(uselocale(before));
}
