/* The fake driver in the test's own process, behind a table of functions that log their calls and fail where a test
 * says: for the tests of what calls the driver and CUPTI in turn. */
#ifndef KP_TESTS_SUPPORT_FAKE_SUPPORT_H
#define KP_TESTS_SUPPORT_FAKE_SUPPORT_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/driver.h"
#include "tests/fake/fake_hooks.h"

/* A function of the fake driver by its exported name; opened on the first call. Fails the test when it is not there. */
void *kp_test_fake(const char *symbol);
/* The same, typed as its declaration. */
#define KP_TEST_EXPORTED_(name) #name
#define KP_TEST_EXPORTED(name)  KP_TEST_EXPORTED_(name)
#define KP_TEST_FAKE(function)  ((__typeof__(&function))(uintptr_t)kp_test_fake(KP_TEST_EXPORTED(function)))
const struct fake_cuda_api *kp_test_fake_api(void);

/* A new context, made current; and its end. What failed or was logged before is forgotten. */
CUcontext kp_test_context(void);
void kp_test_context_end(CUcontext ctx);

/* The fake driver's functions, those of the list in fake_support.c logged by the words there. The test may change the
 * table; each kp_test_context fills it anew. */
struct kp_driver *kp_test_driver(void);

/* From now on the `nth` call (from 1; 0 = each) logged as `word` is answered with `code` and goes no further. Three
 * such rules hold at a time; code 0 takes the rule for `word` back. */
void kp_test_fail(const char *word, unsigned nth, int code);

/* Logs a call of the test's own; returns the code it is to end with, or 0. */
int kp_test_met(const char *word);

/* Fails the test unless what was logged since the last look, words separated by blanks and repetitions written as
 * word*3, is `expected`; words that are not in `of` (separated by blanks; NULL = all count) are passed over. */
void kp_test_calls(const char *of, const char *expected);
/* How often the word was logged since the last look. */
unsigned kp_test_count(const char *word);
void kp_test_forget_calls(void);

#endif
