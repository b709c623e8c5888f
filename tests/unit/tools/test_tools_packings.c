/* The search for fewer one-pass lists, over a library that counts weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "collectors/providers/tables.h"

static unsigned long asked;

enum { ROOM = 100 };

/* A name is its weight, behind a letter that must not be there twice. All of a list may weigh ROOM. */
static int fit_by_weight(struct kp_host *h, const char *const *names, size_t n, bool *fit)
{
    int weight = 0;
    bool had[256] = {false};
    (void)h;
    asked++;
    *fit = true;
    for (size_t i = 0; i < n; i++) {
        weight += atoi(names[i] + 1);
        *fit &= !had[(unsigned char)*names[i]];
        had[(unsigned char)*names[i]] = true;
    }
    *fit &= weight <= ROOM;
    return 0;
}

#define kp_tables_fit fit_by_weight
#include "tools/packings_search.c"

enum { MOST = 64 };
static const char *const in_each[] = {"z10"};
static const char *names[MOST];
static int list[MOST], before[MOST];

static struct kp_search of(const char *const *what, size_t n, const char *lists)
{
    for (size_t i = 0; i < n; i++) {
        names[i] = what[i];
        before[i] = list[i] = lists[i] - '0';
    }
    struct kp_search s = {NULL, in_each, 1, names, list, n, 0};
    for (size_t i = 0; i < n; i++)
        s.lists = list[i] >= s.lists ? list[i] + 1 : s.lists;
    asked = 0;
    return s;
}

/* Each name is in a list, each list fits, and none is longer than the one before. */
static void check_lists(const struct kp_search *s)
{
    size_t longest = SIZE_MAX, all = 0;
    for (int l = 0; l < s->lists; l++) {
        const char *in[MOST] = {*in_each};
        size_t n = 1;
        bool fit;
        for (size_t i = 0; i < s->n; i++)
            if (s->list[i] == l)
                in[n++] = s->names[i];
        fit_by_weight(NULL, in, n, &fit);
        assert_true(fit && n > 1 && n <= longest);
        longest = n;
        all += n - 1;
    }
    assert_int_equal(all, s->n);
}

static const char *const weights[] = {"a50", "b30", "c30", "d20", "e50", "f40", "g20", "h20", "i10"};

/* Three lists have room for 90 each, and all weigh 270. */
static void test_fewer(void **state)
{
    (void)state;
    struct kp_search s = of(weights, 9, "001122334");
    assert_int_equal(s.lists, 5);
    assert_true(kp_search_fewer(&s, 100000));
    assert_int_equal(s.lists, 4);
    check_lists(&s);
    assert_true(kp_search_fewer(&s, 100000));
    assert_int_equal(s.lists, 3);
    check_lists(&s);
}

/* Where there are none, the lists stay as they were, and the questions have a bound. */
static void test_no_fewer(void **state)
{
    static const char *const same[] = {"a1", "a2", "a3", "b4"};
    enum { MOST_QUESTIONS = 500, OF_A_STEP = 100 };
    (void)state;
    struct kp_search s = of(same, 4, "0122");
    assert_false(kp_search_fewer(&s, MOST_QUESTIONS));
    assert_int_equal(s.lists, 3);
    assert_memory_equal(list, before, 4 * sizeof(*list));
    assert_in_range(asked, MOST_QUESTIONS, MOST_QUESTIONS + OF_A_STEP);
    s = of(same, 1, "0");
    assert_false(kp_search_fewer(&s, MOST_QUESTIONS));
    assert_int_equal(asked, 0);
}

/* It finds the same each time: the table can be made again. */
static void test_again(void **state)
{
    int first[9];
    (void)state;
    struct kp_search s = of(weights, 9, "012345678");
    assert_true(kp_search_fewer(&s, 100000));
    memcpy(first, list, sizeof(first));
    s = of(weights, 9, "012345678");
    assert_true(kp_search_fewer(&s, 100000));
    assert_memory_equal(first, list, sizeof(first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fewer),
        cmocka_unit_test(test_no_fewer),
        cmocka_unit_test(test_again),
    };
    return cmocka_run_group_tests_name("tools/packings", tests, NULL, NULL);
}
