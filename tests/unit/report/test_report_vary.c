/* What is varied, as users write it, and the series that comes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/model/vary.h"
#include "report/view/variants.h"

static struct kp_vary read_vary(const char *text)
{
    static struct kp_vary v;
    char *err = NULL;
    int rc = kp_vary_read(text, &v, &err);
    if (rc)
        fail_msg("%s: %s", text, err ? err : "no message");
    return v;
}

static void combinations_are_variants(void **state)
{
    static const char *const names[] = {"block=64 shared=0 carveout=50", "block=64 shared=16k carveout=50",
                                        "block=16x8 shared=0 carveout=50", "block=16x8 shared=16k carveout=50"};
    (void)state;
    const struct kp_vary v = read_vary("block=64;carveout=50; shared=0, 16k,0;;block=16x8");
    assert_int_equal(v.n, 4);
    for (size_t i = 0; i < v.n; i++)
        assert_string_equal(kp_vary_at(&v, i).name, names[i]);
    struct kp_variation last = kp_vary_at(&v, 3);
    assert_int_equal(last.of[KP_VARY_BLOCK]->number, 128);
    assert_memory_equal(last.of[KP_VARY_BLOCK]->block, ((uint32_t[]){16, 8, 1}), sizeof last.of[0]->block);
    assert_int_equal(last.of[KP_VARY_SHARED]->number, 16384);
    assert_int_equal(last.of[KP_VARY_CARVEOUT]->number, 50);
    struct kp_variation first = kp_vary_at(&v, 0);
    assert_memory_equal(first.of[KP_VARY_BLOCK]->block, ((uint32_t[]){0, 0, 0}), sizeof first.of[0]->block);
    const struct kp_vary one = read_vary("shared=1M");
    assert_int_equal(one.n, 1);
    struct kp_variation only = kp_vary_at(&one, 0);
    assert_null(only.of[KP_VARY_BLOCK]);
    assert_int_equal(only.of[KP_VARY_SHARED]->number, 1 << 20);
}

static void says_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"block", "'block' is not NAME=VALUES, such as block=64,128,256"},
        {"block=", "block= has no values"},
        {"block=,", "block= has no values"},
        {"blok=64", "unknown kind of variant 'blok'; did you mean 'block'?"},
        {"block=0", "block=0: write threads, such as 128, or 16x8"},
        {"block=16x", "block=16x: write threads, such as 128, or 16x8"},
        {"block=1x2x3x4", "block=1x2x3x4: write threads, such as 128, or 16x8"},
        {"block=70000", "block=70000: write threads, such as 128, or 16x8"},
        {"block=-1", "block=-1: write threads, such as 128, or 16x8"},
        {"shared=16X", "shared=16X: write a size, such as 16K"},
        {"shared=5000M", "shared=5000M: write a size, such as 16K"},
        {"carveout=101", "carveout=101: write a percentage from 0 to 100"},
        {"carveout=99999999999999999999", "carveout=99999999999999999999: write a percentage from 0 to 100"},
        {"shared=0000000000000000000000001", "shared=0000000000000000000000001: write a size, such as 16K"},
        {"block=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33",
         "block has more than 32 values"},
        {"block=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17;shared=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
         "the values have more than 256 combinations"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct kp_vary v;
        char *err = NULL;
        assert_int_not_equal(kp_vary_read(cases[i].text, &v, &err), 0);
        assert_string_equal(err, cases[i].says);
        free(err);
    }
}

static struct kp_result series(double own, const double *ns, size_t n)
{
    struct kp_result r = {.launch = {.note = NULL}};
    if (!isnan(own))
        kp_result_set_real(&r, "gpu__time_duration.sum", "ns", own);
    for (size_t i = 0; i < n; i++) {
        struct kp_variant *v = kp_result_add_variant(&r, "a variant");
        assert_non_null(v);
        kp_result_set_real(v->of, "gpu__time_duration.sum", "ns", ns[i]);
    }
    return r;
}

static void the_shortest_is_best(void **state)
{
    static const double ns[] = {2000, 500, 500, 100};
    size_t best = 9;
    double change = 0;
    (void)state;
    struct kp_result r = series(1000, ns, 4);
    r.variants[3].of->launch.note = kp_strdup("not counted after all");
    assert_true(kp_variants_best(&r, &best));
    assert_int_equal(best, 2); /* the first of equal ones; what was not counted is none */
    assert_true(kp_variants_change(&r, 2, &change));
    assert_float_equal(change, -50, 1e-9);
    assert_false(kp_variants_change(&r, 4, &change));
    assert_string_equal(kp_variants_name(&r, 0), "the program's own");
    kp_result_free(&r);
    r = series(500, ns, 4);
    r.variants[3].of->launch.note = kp_strdup("not counted after all");
    assert_true(kp_variants_best(&r, &best));
    assert_int_equal(best, 0);
    kp_result_free(&r);
    r = series(NAN, NULL, 0);
    assert_false(kp_variants_best(&r, &best));
    kp_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combinations_are_variants),
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(the_shortest_is_best),
    };
    return cmocka_run_group_tests_name("report/vary", tests, NULL, NULL);
}
