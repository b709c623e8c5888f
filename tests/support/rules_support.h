/* Shared by the tests of the rules: recorded launches with everything that rules look at, and made-up ones. */
#ifndef KP_TESTS_SUPPORT_RULES_SUPPORT_H
#define KP_TESTS_SUPPORT_RULES_SUPPORT_H

#include "report/judge/rules.h"
#include "tests/support/report_support.h"

/* The launches of tests/data/rules/h200.tsv, and a session with their device. Free with kp_test_recording_free. */
struct kp_recording kp_test_rules_recording(void);

/* Splits a line of a data file at its tabs; returns the number of fields. */
size_t kp_test_fields(char *line, char *fields[], size_t max);
/* Adds a line "metric name, unit, kind, value" or "instance, metric name, key, value" of a data file to `r`. */
void kp_test_add_metric(struct kp_result *r, char *const fields[]);

/* Sections of the comma list, or all that have rules, in the order of the report; *n receives their number. Static
 * storage, overwritten by the next call. */
const struct kp_section *const *kp_test_rule_sections(const char *list, size_t *n);

#endif
