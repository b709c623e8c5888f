/* A cmocka program runs the tests that KP_TEST_CASES names, a pattern with * and ?: see run-tests in the Makefile. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void choose_tests(void)
{
    const char *cases = getenv("KP_TEST_CASES");
    if (cases && *cases)
        cmocka_set_test_filter(cases);
}
