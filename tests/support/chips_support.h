/* What tests over every chip of CUPTI's list share. */
#ifndef KP_TESTS_SUPPORT_CHIPS_SUPPORT_H
#define KP_TESTS_SUPPORT_CHIPS_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>

struct kp_test_chip {
    const char *name;
    int major, minor;
    int opens;
    size_t passes; /* of test_collect_plan.c */
};

/* All rows of tests/support/chips.def; *n receives their number. */
const struct kp_test_chip *kp_test_chips(size_t *n);
/* CUPTI profiles from compute capability 7.5 on. */
bool kp_test_is_profiled(const struct kp_test_chip *chip);

/* Fails unless what `describe` (malloc'ed) returns for every profiled chip is what the golden file holds. Consecutive
 * chips that are alike share their lines. Compared only with CUPTI 13.0, which the golden files come from. */
void kp_test_every_chip(char *(*describe)(const struct kp_test_chip *chip), const char *golden);

#endif
