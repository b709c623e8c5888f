/* Kernels that were seen to write host memory: each is told once, and those that find no place all together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "preload/session/session.h"
#include "preload/program/host_writes.h"

static size_t n_told, n_told_of_others;

void kp_session_warn(enum kp_failure kind, const char *text)
{
    assert_int_equal(kind, KP_FAILURE_IN_PART);
    n_told++;
    n_told_of_others += strstr(text, "more than 256 kernels") != NULL;
}

static const char *name_of(size_t k)
{
    static char name[32];
    snprintf(name, sizeof(name), "kernel%zu", k);
    return name;
}

static void test_more_than_there_is_room_for(void **state)
{
    enum { ROOM = 256, KERNELS = 300 };
    (void)state;
    assert_false(kp_hostwrites_known(name_of(0)));
    for (int again = 0; again < 3; again++)
        for (size_t k = 0; k < KERNELS; k++)
            kp_hostwrites_note(name_of(k), "a kernel", 9);
    kp_hostwrites_note(NULL, NULL, 9);
    assert_int_equal(n_told, ROOM + 1);
    assert_int_equal(n_told_of_others, 1);
    for (size_t k = 0; k < KERNELS; k++)
        assert_int_equal(kp_hostwrites_known(name_of(k)), k < ROOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_more_than_there_is_room_for)};
    return cmocka_run_group_tests_name("preload/host_writes", tests, NULL, NULL);
}
