/* Launch attributes: each that cuda.h lists has a row, the event of one is found and replaced, and one of a later CUDA
 * is a reason not to repeat the launch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "preload/program/attributes.h"

/* The one number that cuda.h leaves out. */
enum { LEFT_OUT = 15, LATER = CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING + 1 };

static void test_each_has_a_row(void **state)
{
    (void)state;
    for (int id = 0; id < LATER; id++) {
        const struct kp_attribute *row = kp_attribute_row((CUlaunchAttributeID)id);
        const CUlaunchAttribute list[] = {{.id = CU_LAUNCH_ATTRIBUTE_IGNORE}, {.id = (CUlaunchAttributeID)id}};
        bool never = id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE || id == LEFT_OUT;
        assert_int_equal(row != NULL, id != LEFT_OUT);
        assert_int_equal(kp_attributes_reason(list, 2) != KP_REASON_NONE, never);
    }
    for (unsigned id = LATER; id; id = id < 1u << 31 ? id * 2 : 0) {
        const CUlaunchAttribute list[] = {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY}, {.id = (CUlaunchAttributeID)id}};
        assert_int_equal(kp_attributes_reason(list, 2), KP_REASON_LATER_ATTRIBUTE);
        assert_null(kp_attributes_reason(list, 1));
    }
}

static CUevent other(void *arg, CUevent event)
{
    unsigned *asked = arg;
    ++*asked;
    return (uintptr_t)event == 1 ? (CUevent)(uintptr_t)11 : NULL;
}

static void test_events(void **state)
{
    CUlaunchAttribute list[5];
    unsigned asked = 0;
    (void)state;
    memset(list, 0, sizeof(list));
    list[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    list[0].value.programmaticEvent.event = (CUevent)(uintptr_t)2;
    list[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    list[1].value.priority = -3;
    list[2].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    list[2].value.programmaticEvent.event = (CUevent)(uintptr_t)1;
    list[2].value.programmaticEvent.triggerAtBlockStart = 7;
    list[3].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    list[3].value.launchCompletionEvent.event = (CUevent)(uintptr_t)1;
    list[4].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    assert_true(kp_attributes_record(list, 5));
    assert_false(kp_attributes_record(&list[1], 1));
    assert_int_equal(kp_attributes_replace_events(list, 5, other, &asked), 4);
    assert_int_equal(asked, 3);
    assert_int_equal(list[0].value.priority, -3);
    assert_int_equal((uintptr_t)list[1].value.programmaticEvent.event, 11);
    assert_int_equal(list[1].value.programmaticEvent.triggerAtBlockStart, 7);
    assert_int_equal(list[2].id, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
    assert_int_equal((uintptr_t)list[2].value.launchCompletionEvent.event, 11);
    assert_int_equal(list[3].id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_has_a_row), cmocka_unit_test(test_events)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
