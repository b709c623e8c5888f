/* Made-up launches with values by instruction, and the code that they ran. */
#ifndef KP_TESTS_SUPPORT_SOURCE_SUPPORT_H
#define KP_TESTS_SUPPORT_SOURCE_SUPPORT_H

#include "report/model/lookup.h"
#include "report/model/model.h"

enum {
    KP_TEST_TRANSPOSE = 1, /* with lines, inlined code, and the text of one of two files */
    KP_TEST_SUM,           /* without lines, with a device function */
    KP_TEST_SUM_PART,      /* which is this */
    KP_TEST_NO_CODE,       /* an id that has no code */
};

/* Finds the code of these ids. */
struct kp_lookup kp_test_code_lookup(void);
/* The source text of the file of KP_TEST_TRANSPOSE. */
extern const char kp_test_transpose_text[];

/* Gives a launch the values of one of these kernels; `scale` multiplies them, and 0 leaves the samples out. */
void kp_test_add_transpose(struct kp_result *r, uint64_t scale);
void kp_test_add_sum(struct kp_result *r);
/* Values of a kernel without code: two instructions. */
void kp_test_add_without_code(struct kp_result *r);

/* One function's counts, to fill by hand; offsets from 0 on, 16 bytes apart. */
struct kp_code_counts kp_test_counts(uint64_t code, size_t n);
/* Adds a metric of all 0; returns its values. */
uint64_t *kp_test_metric(struct kp_code_counts *s, const char *name);

#endif
