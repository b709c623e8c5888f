/*
 * How numbers look: units and their ladders, decimals and thousands separators, the same in every locale, but see
 * kp_format_separated. Facts: the reports of Nsight Compute 2025.3.
 */
#ifndef KP_REPORT_DEFINE_UNITS_H
#define KP_REPORT_DEFINE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "report/model/model.h"

enum {
    KP_NUMBER_MAX = 448, /* the largest double has 309 digits, so 102 separators, a sign and two decimals */
    KP_UNIT_MAX = 64,    /* longer units are cut; the longest in use has 15 characters */
};

/* Chooses whether thousands are separated; they are at first. The face ncu has the separators of ncu, which follow the
 * locale. Call before numbers are formatted. */
void kp_format_separated(bool separated);

/* Returns the nearest whole number; a value without one stays. */
double kp_whole(double value);

/* Formats integral values without decimals, all others with two: `408,112`, `30.00`. A small value that rounds to
 * zero gives `0.00`, zero itself `0`. */
void kp_format_real(double value, char out[KP_NUMBER_MAX]);
void kp_format_count(uint64_t value, char out[KP_NUMBER_MAX]);

/* Finds the largest step of `unit`'s ladder in which |value| is at least 1; zero and units without a ladder stay.
 * Returns the divisor, and the unit of the quotient in `out`. */
double kp_unit_scale(const char *unit, double value, char out[KP_UNIT_MAX]);

/* Does the same; with `base`, returns 1 and `unit`. */
double kp_unit_divisor(const char *unit, double value, bool base, char out[KP_UNIT_MAX]);

/* Formats `value` of `unit` as one text, `3.21 s`, scaled unless `base` is set. */
void kp_format_quantity(double value, const char *unit, bool base, char out[KP_NUMBER_MAX + KP_UNIT_MAX]);

/* Writes the cell texts of a metric to `value` and `unit`; NULL and NA give `(!) n/a` and no unit. Returns the
 * value's text: `value`, or the metric's own text, valid as long as `m`. */
const char *kp_format_metric(const struct kp_metric *m, bool base, char value[KP_NUMBER_MAX], char unit[KP_UNIT_MAX]);
/* Writes how far the value of a rotation may be off: half of the 95 % interval, in the unit of kp_format_metric. False
 * if unknown (see kp_metric_interval), or if all launches gave the same. */
bool kp_format_interval(const struct kp_metric *m, bool base, char out[KP_NUMBER_MAX]);
/* Returns the text of the value without its unit, for a cell of a column whose unit is the metric's times `divisor`. */
const char *kp_format_scaled(const struct kp_metric *m, double divisor, char value[KP_NUMBER_MAX]);
/* Returns the cell text of a metric with instances, all in the unit that kp_format_metric gives. The form is `TOTAL
 * (v1; v2)`, or, with `keys`, `TOTAL (key: v1; key: v2)`. malloc'ed, NULL without memory. */
char *kp_format_instances(const struct kp_metric *m, bool base, bool keys);

#endif
