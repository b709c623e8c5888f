/* Host memory kept over a window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/program/host_snapshot.h"

enum { PAGE = 4096, PAGES = 5, TAIL = 100, BYTES = PAGES * PAGE + TAIL };

static struct {
    unsigned char *memory; /* whole pages, so that one of them can be protected */
    struct kp_snapshot s;
} t;

static int set_up(void **state)
{
    (void)state;
    t.memory = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (t.memory == MAP_FAILED)
        return -1;
    for (size_t i = 0; i < BYTES; i++)
        t.memory[i] = (unsigned char)(i * 7 + i / PAGE);
    t.s = (struct kp_snapshot){.parts = NULL};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kp_snapshot_free(&t.s);
    assert_null(t.s.parts);
    assert_int_equal(t.s.n, 0);
    kp_snapshot_free(&t.s);
    return munmap(t.memory, (PAGES + 1) * PAGE);
}

static void check(size_t from, size_t to, int delta)
{
    for (size_t i = from; i < to; i++)
        if (t.memory[i] != (unsigned char)(i * 7 + i / PAGE + (unsigned)delta))
            fail_msg("byte %zu of %d", i, BYTES);
}

static void change(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        t.memory[i]++;
}

static void test_restore(void **state)
{
    (void)state;
    kp_snapshot_add(&t.s, t.memory, BYTES);
    assert_int_equal(t.s.n, 1);
    for (int replay = 0; replay < 3; replay++) {
        change(0, BYTES);
        kp_snapshot_restore(&t.s);
        check(0, BYTES, 0);
    }
    t.memory[BYTES - 1]++; /* the last, in a page that is not full */
    t.memory[0]++;
    t.memory[PAGE - 1]++;
    t.memory[PAGE]++;
    kp_snapshot_restore(&t.s);
    check(0, BYTES, 0);
}

static void test_release(void **state)
{
    (void)state;
    kp_snapshot_add(&t.s, t.memory, BYTES);
    kp_snapshot_release(&t.s); /* nothing was kept: nothing is put */
    check(0, BYTES, 0);
    change(PAGE, 2 * PAGE);
    kp_snapshot_release(&t.s);
    check(PAGE, 2 * PAGE, 1);
    kp_snapshot_keep(&t.s);
    kp_snapshot_restore(&t.s);
    check(0, BYTES, 0);
    kp_snapshot_release(&t.s);
    check(0, PAGE, 0);
    check(PAGE, 2 * PAGE, 1);
    check(2 * PAGE, BYTES, 0);
    change(PAGE, 2 * PAGE);
    kp_snapshot_keep(&t.s); /* once more: the later one counts */
    kp_snapshot_restore(&t.s);
    kp_snapshot_release(&t.s);
    check(PAGE, 2 * PAGE, 2);
}

/* What lies behind the part is none of its own. */
static void test_bounds(void **state)
{
    (void)state;
    memset(t.memory + BYTES, 0xee, PAGE - TAIL);
    kp_snapshot_add(&t.s, t.memory + 3, BYTES - 3);
    change(0, BYTES);
    memset(t.memory + BYTES, 0xdd, PAGE - TAIL);
    kp_snapshot_restore(&t.s);
    check(0, 3, 1);
    check(3, BYTES, 0);
    for (size_t i = BYTES; i < (PAGES + 1) * PAGE; i++)
        assert_int_equal(t.memory[i], 0xdd);
}

/* A page that is as it was is not written: another thread may be filling it. Here a write would be a fault. */
static void test_only_what_differs_is_written(void **state)
{
    (void)state;
    kp_snapshot_add(&t.s, t.memory, BYTES);
    change(2 * PAGE, 2 * PAGE + 1);
    kp_snapshot_keep(&t.s);
    for (size_t page = 0; page <= PAGES; page++)
        if (page != 2)
            assert_int_equal(mprotect(t.memory + page * PAGE, PAGE, PROT_READ), 0);
    kp_snapshot_restore(&t.s);
    check(0, BYTES, 0);
    kp_snapshot_release(&t.s);
    check(2 * PAGE, 2 * PAGE + 1, 1);
    assert_int_equal(mprotect(t.memory, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE), 0);
}

/* The same part again, by another argument or launch: it stays as it was first seen. */
static void test_added_twice(void **state)
{
    (void)state;
    kp_snapshot_add(&t.s, t.memory, PAGE);
    kp_snapshot_add(&t.s, t.memory + PAGE, PAGE);
    change(0, BYTES);
    kp_snapshot_add(&t.s, t.memory, PAGE);
    kp_snapshot_add(&t.s, t.memory + 2 * PAGE, PAGE);
    assert_int_equal(t.s.n, 3);
    change(0, BYTES);
    kp_snapshot_restore(&t.s);
    check(0, 2 * PAGE, 0);
    check(2 * PAGE, 3 * PAGE, 1);
    check(3 * PAGE, BYTES, 2);
}

static void test_many_parts(void **state)
{
    enum { PARTS = 100, EACH = 200 };
    (void)state;
    for (size_t i = 0; i < PARTS; i++)
        kp_snapshot_add(&t.s, t.memory + i * EACH, EACH);
    assert_int_equal(t.s.n, PARTS);
    change(0, PARTS * EACH);
    kp_snapshot_restore(&t.s);
    check(0, PARTS * EACH, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_restore, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_release, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bounds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_what_differs_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_added_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_parts, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
