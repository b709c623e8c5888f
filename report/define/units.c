#include "report/define/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MAX_STEPS = 6 };

/* Every step is 1000 times the one before, for bytes too. */
struct ladder {
    const char *base;
    const char *steps[MAX_STEPS];
};

static const struct ladder ladders[] = {
    {"byte", {"byte", "Kbyte", "Mbyte", "Gbyte", "Tbyte"}},
    {"byte/s", {"byte/s", "Kbyte/s", "Mbyte/s", "Gbyte/s", "Tbyte/s"}},
    {"byte/block", {"byte/block", "Kbyte/block"}},
    {"byte/cycle", {"byte/cycle", "Kbyte/cycle"}},
    {"ns", {"ns", "us", "ms", "s"}},
    {"hz", {"hz", "Khz", "Mhz", "Ghz"}},
    {"cycle/s", {"hz", "Khz", "Mhz", "Ghz"}},
    /* one step for all values because rooflines compare values of all sizes */
    {"FLOP/s", {"FLOP/s", "KFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s"}},
    {"op/s", {"op/s", "Kop/s", "Mop/s", "Gop/s", "Top/s", "Pop/s"}},
};

/* Other rates scale their time instead: sector/s, sector/ms ... */
static const struct ladder per_second = {"/s", {"/s", "/ms", "/us", "/ns"}};

static bool unseparated;

void kp_format_separated(bool separated)
{
    unseparated = !separated;
}

/* Writes the leading digits of `digits` with thousands separators, then `tail` as it is. */
static void group(const char *digits, size_t n, const char *tail, char out[KP_NUMBER_MAX])
{
    char *to = out;
    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0 && !unseparated)
            *to++ = ',';
        *to++ = digits[i];
    }
    snprintf(to, KP_NUMBER_MAX - (size_t)(to - out), "%s", tail);
}

void kp_format_count(uint64_t value, char out[KP_NUMBER_MAX])
{
    char plain[24];
    int n = snprintf(plain, sizeof plain, "%" PRIu64, value);
    group(plain, (size_t)n, "", out);
}

/* Every double from 2^53 on is integral; below, a conversion shows it. (libkprof.so does not link libm.) */
static bool is_integral(double value)
{
    return fabs(value) >= 0x1p53 || (double)(int64_t)value == value;
}

double kp_whole(double value)
{
    return fabs(value) < 0x1p52 ? (double)(int64_t)(value + copysign(0.5, value)) : value;
}

void kp_format_real(double value, char out[KP_NUMBER_MAX])
{
    if (!isfinite(value) || value == 0) {
        const char *text = value == 0 ? "0" : isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
        snprintf(out, KP_NUMBER_MAX, "%s", text);
        return;
    }
    char plain[KP_NUMBER_MAX], tail[4] = "";
    bool integral = is_integral(value);
    int n = snprintf(plain, sizeof plain, integral ? "%.0f" : "%.2f", fabs(value));
    /* The program may have set a locale, but the report always prints a point. */
    if (!integral)
        snprintf(tail, sizeof tail, ".%s", plain + n - 2);
    if (value < 0)
        *out++ = '-';
    group(plain, strspn(plain, "0123456789"), tail, out);
}

/* Returns the ladder of `unit`; *stem receives the length of the part before its step. */
static const struct ladder *find_ladder(const char *unit, size_t *stem)
{
    *stem = 0;
    for (size_t i = 0; i < sizeof ladders / sizeof *ladders; i++)
        if (!strcmp(unit, ladders[i].base))
            return &ladders[i];
    size_t n = strlen(unit), tail = strlen(per_second.base);
    if (n <= tail || strcmp(unit + n - tail, per_second.base))
        return NULL;
    *stem = n - tail;
    return &per_second;
}

double kp_unit_scale(const char *unit, double value, char out[KP_UNIT_MAX])
{
    size_t stem;
    const struct ladder *ladder = find_ladder(unit, &stem);
    if (!ladder) {
        snprintf(out, KP_UNIT_MAX, "%s", unit);
        return 1;
    }
    double divisor = 1;
    int step = 0;
    while (step + 1 < MAX_STEPS && ladder->steps[step + 1] && fabs(value) >= divisor * 1000) {
        divisor *= 1000;
        step++;
    }
    snprintf(out, KP_UNIT_MAX, "%.*s%s", (int)stem, unit, ladder->steps[step]);
    return divisor;
}

double kp_unit_divisor(const char *unit, double value, bool base, char out[KP_UNIT_MAX])
{
    if (!base)
        return kp_unit_scale(unit, value, out);
    snprintf(out, KP_UNIT_MAX, "%s", unit);
    return 1;
}

void kp_format_quantity(double value, const char *unit, bool base, char out[KP_NUMBER_MAX + KP_UNIT_MAX])
{
    char number[KP_NUMBER_MAX], scaled[KP_UNIT_MAX];
    double divisor = kp_unit_divisor(unit, value, base, scaled);
    kp_format_real(value / divisor, number);
    snprintf(out, KP_NUMBER_MAX + KP_UNIT_MAX, "%s%s%s", number, *scaled ? " " : "", scaled);
}

const char *kp_format_scaled(const struct kp_metric *m, double divisor, char value[KP_NUMBER_MAX])
{
    double number;
    if (!m || m->kind == KP_VALUE_NA)
        return "(!) n/a";
    if (!kp_metric_number(m, &number))
        return m->text;
    if (m->kind == KP_VALUE_COUNT && divisor == 1)
        kp_format_count(m->count, value); /* exact beyond 2^53 */
    else
        kp_format_real(number / divisor, value);
    return value;
}

/* Returns the divisor for the numbers of a metric, and their unit then; 1 for a metric without a value. */
static double metric_divisor(const struct kp_metric *m, bool base, char unit[KP_UNIT_MAX])
{
    double number = 0;
    unit[0] = '\0';
    if (!m || m->kind == KP_VALUE_NA)
        return 1;
    bool is_text = !kp_metric_number(m, &number);
    return kp_unit_divisor(m->unit, number, base || is_text, unit);
}

const char *kp_format_metric(const struct kp_metric *m, bool base, char value[KP_NUMBER_MAX], char unit[KP_UNIT_MAX])
{
    return kp_format_scaled(m, metric_divisor(m, base, unit), value);
}

bool kp_format_interval(const struct kp_metric *m, bool base, char out[KP_NUMBER_MAX])
{
    char unit[KP_UNIT_MAX];
    double half;
    if (!kp_metric_interval(m, &half) || !(half > 0))
        return false;
    kp_format_real(half / metric_divisor(m, base, unit), out);
    return true;
}

char *kp_format_instances(const struct kp_metric *m, bool base, bool keys)
{
    char number[KP_NUMBER_MAX], unit[KP_UNIT_MAX], *text = NULL;
    size_t size;
    double divisor = metric_divisor(m, base, unit);
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fprintf(f, "%s (", kp_format_scaled(m, divisor, number));
    for (size_t i = 0; i < m->n_instances; i++) {
        const struct kp_instance *instance = &m->instances[i];
        kp_format_real(instance->value / divisor, number);
        fprintf(f, "%s%s%s%s", i ? "; " : "", keys ? instance->key : "", keys ? ": " : "", number);
    }
    fputc(')', f);
    if (!kp_text_end(f, &text))
        return text;
    free(text);
    return NULL;
}
