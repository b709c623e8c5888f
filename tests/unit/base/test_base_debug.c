/* Lines of KPROF_DEBUG: which are shown, and that nothing in one can look like another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/debug.h"

static char seen[4096];

static void keep(const char *line, size_t len)
{
    strncat(seen, line, len);
}

static int evaluated;

static const char *count(void)
{
    evaluated++;
    return "counted";
}

static void only_domains_that_are_shown_write(void **state)
{
    (void)state;
    seen[0] = '\0';
    evaluated = 0;
    kp_debug_to(keep);
    kp_debug_show(0);
    kp_debug(KP_DEBUG_GATE, "%s", count());
    assert_string_equal(seen, "");
    assert_int_equal(evaluated, 0);
    kp_debug_show(1U << KP_DEBUG_WINDOW | 1U << KP_DEBUG_LOCK);
    kp_debug(KP_DEBUG_GATE, "%s", count());
    kp_debug(KP_DEBUG_LOCK, "%s %d", count(), 7);
    assert_int_equal(evaluated, 1);
    assert_ptr_equal(strstr(seen, "==KPROF== debug lock ["), seen);
    assert_non_null(strstr(seen, "]: counted 7\n"));
    assert_null(strstr(seen, "gate"));
    kp_debug_show(0);
}

static void a_line_stays_one_line(void **state)
{
    char name[2048];
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    kp_debug_to(keep);
    kp_debug_show(1U << KP_DEBUG_PLAN);
    seen[0] = '\0';
    kp_debug(KP_DEBUG_PLAN, "kernel %s", "a\n==KPROF== forged\033[2J");
    assert_ptr_equal(strchr(seen, '\n'), seen + strlen(seen) - 1);
    assert_null(strchr(seen, '\033'));
    seen[0] = '\0';
    kp_debug(KP_DEBUG_PLAN, "%s", name);
    assert_int_equal(strlen(seen), 511);
    assert_int_equal(seen[510], '\n');
    kp_debug_show(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_domains_that_are_shown_write),
        cmocka_unit_test(a_line_stays_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
