/* The columns of CSV for what entries and values of a rotation are based on. Sessions without rotation lack them. */
#ifndef KP_REPORT_WRITE_CSV_ROTATION_H
#define KP_REPORT_WRITE_CSV_ROTATION_H

#include "base/csv.h"
#include "report/model/model.h"

/* Writes how many launches the entry stands for, how many were counted, and the groups of counters; empty fields for a
 * launch that stands for itself. */
void kp_write_csv_rotation_headings(struct kp_csv *c);
void kp_write_csv_rotation(struct kp_csv *c, const struct kp_launch_info *l);

/* Writes what the value of a row is based on, or why there is none; empty fields for a row without a metric (NULL), and
 * if the value is no mean. */
void kp_write_csv_mean_headings(struct kp_csv *c);
void kp_write_csv_mean(struct kp_csv *c, const struct kp_metric *m);

/* Does so for a metric that is a column and shares its name and unit with the columns after it: without the reason. */
void kp_write_csv_mean_headings_of(struct kp_csv *c, const char *name);
void kp_write_csv_mean_units(struct kp_csv *c, const char *unit);
void kp_write_csv_mean_of(struct kp_csv *c, const struct kp_metric *m);

#endif
