/* The fake driver in the test's own process, through a table of functions that log their calls and fail on request: for
 * tests of code that calls the driver and CUPTI. */
#ifndef KP_TESTS_SUPPORT_FAKE_SUPPORT_H
#define KP_TESTS_SUPPORT_FAKE_SUPPORT_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/driver.h"
#include "tests/fake/fake_hooks.h"

/* Returns a function of the fake driver by its exported name; opened on the first call. Fails the test if it is not
 * there. */
void *kp_test_fake(const char *symbol);
/* The same, typed as its declaration. */
#define KP_TEST_EXPORTED_(name) #name
#define KP_TEST_EXPORTED(name)  KP_TEST_EXPORTED_(name)
#define KP_TEST_FAKE(function)  ((__typeof__(&function))(uintptr_t)kp_test_fake(KP_TEST_EXPORTED(function)))
const struct fake_cuda_api *kp_test_fake_api(void);

/* Makes a new context current; ends it. Forgets earlier failures and log entries. */
CUcontext kp_test_context(void);
void kp_test_context_end(CUcontext ctx);

/* The fake driver's functions; those listed in fake_support.c are logged by the words there. The test may change the
 * table; each kp_test_context fills it again. */
struct kp_driver *kp_test_driver(void);

/* From now on the `nth` call (from 1; 0 = each) logged as `word` returns `code` and does nothing else. Up to three such
 * rules hold at a time; code 0 removes the rule for `word`. */
void kp_test_fail(const char *word, unsigned nth, int code);

/* Logs a call of the test's own; returns the code that it should return, or 0. */
int kp_test_met(const char *word);

/* Fails the test unless the log since the last check (words separated by blanks, repetitions written as word*3) is
 * `expected`. Ignores words that are not in `of` (separated by blanks; NULL = all count). */
void kp_test_calls(const char *of, const char *expected);
/* How often the word was logged since the last check. */
unsigned kp_test_count(const char *word);
void kp_test_forget_calls(void);

#endif
