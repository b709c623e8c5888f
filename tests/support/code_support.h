/* Made-up call stacks, code, counts and series, different for each id, with everything that may be missing. */
#ifndef KP_TESTS_SUPPORT_CODE_SUPPORT_H
#define KP_TESTS_SUPPORT_CODE_SUPPORT_H

#include "report/model/model.h"

/* Free with the model's functions. A stack has as many frames as id % 3 + 1; codes share two of their three files. */
struct kp_stack kp_test_stack(uint64_t id);
struct kp_code kp_test_code(uint64_t id);
/* Gives `r` counts of the codes `code` and `code` + 1 (two instructions of the latter), and two series. */
void kp_test_add_counts(struct kp_result *r, uint64_t code);

void kp_test_same_stack(const struct kp_stack *a, const struct kp_stack *b);
void kp_test_same_code(const struct kp_code *a, const struct kp_code *b); /* their files may be in another order */
void kp_test_same_counts(const struct kp_result *a, const struct kp_result *b);

#endif
