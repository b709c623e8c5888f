#include "base/plain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Whole doubles below this are exact in digits, which more readers parse as whole numbers. */
static const double digits_alone = 1e18;

void kp_plain_real(double value, char out[KP_PLAIN_MAX])
{
    enum { ENOUGH = 17 }; /* digits that distinguish any two doubles */
    if (!isfinite(value)) {
        snprintf(out, KP_PLAIN_MAX, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    if (fabs(value) < digits_alone && (double)(long long)value == value) {
        snprintf(out, KP_PLAIN_MAX, "%lld", (long long)value);
        return;
    }
    for (int digits = 15; digits <= ENOUGH; digits++) {
        snprintf(out, KP_PLAIN_MAX, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}
