/* What the code of loaded modules tells of kernels: recorded images, one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/code/cubin.h"
#include "collectors/code/kernels.h"
#include "tests/support/report_support.h"

enum { MOST_IMAGES = 4 };

static struct {
    uint8_t bytes[65536];
    size_t size;
} images[MOST_IMAGES];
static size_t n_images, asked;
static struct kp_kernels *kernels;

static const void *cubin_at(size_t i, size_t *size)
{
    asked++;
    *size = i < n_images ? images[i].size : 0;
    return i < n_images ? images[i].bytes : NULL;
}

static void load(const char *path)
{
    FILE *f = fopen(kp_test_source(path), "re");
    assert_true(f && n_images < MOST_IMAGES);
    images[n_images].size = fread(images[n_images].bytes, 1, sizeof(images->bytes), f);
    fclose(f);
    n_images++;
}

#define CALLS  "tests/data/calls.sm90-cuda13.cubin"
#define HEAP   "tests/data/heap.sm90-cuda13.cubin"
#define INLINE "tests/data/inline.sm90-cuda13.cubin"
#define TEXTS  "tests/data/texts.sm90-cuda13.cubin"

static int set_up(void **state)
{
    (void)state;
    n_images = asked = 0;
    kernels = kp_kernels_new(cubin_at);
    return kernels ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    kp_kernels_free(kernels);
    return 0;
}

static void check(const char *name, struct kp_kernel_code expected)
{
    struct kp_kernel_code code;
    if (!kp_kernels_find(kernels, name, &code))
        fail_msg("%s is not found", name);
    if (code.barriers != expected.barriers || code.functions != expected.functions ||
        code.launches != expected.launches || code.spills != expected.spills)
        fail_msg("%s: %u barriers, %u functions, launches %d, spills %d", name, code.barriers, code.functions,
                 code.launches, code.spills);
}

static void test_kernels(void **state)
{
    struct kp_kernel_code code;
    (void)state;
    assert_false(kp_kernels_find(kernels, "child", &code));
    load(CALLS);
    check("child", (struct kp_kernel_code){.functions = 1});
    check("calling", (struct kp_kernel_code){.functions = 3}); /* one calls the other */
    check("launching", (struct kp_kernel_code){.functions = 1, .launches = true});
    check("waiting", (struct kp_kernel_code){.barriers = 3, .functions = 1}); /* 0, 1 and 2 */
    check("spilling", (struct kp_kernel_code){.functions = 1, .spills = true});
    check("indexing", (struct kp_kernel_code){.functions = 1});
    assert_false(kp_kernels_find(kernels, "callin", &code));
    assert_false(kp_kernels_find(kernels, "", &code));
}

/* Each image is looked at once, whatever is between them. */
static void test_loaded_later(void **state)
{
    struct kp_kernel_code code;
    (void)state;
    load(INLINE);
    assert_false(kp_kernels_find(kernels, "waiting", &code));
    memcpy(images[n_images++].bytes, "no image", images[1].size = 8);
    load(CALLS);
    check("waiting", (struct kp_kernel_code){.barriers = 3, .functions = 1});
    check("nested", (struct kp_kernel_code){.barriers = 1, .functions = 1});
    size_t before = asked;
    check("spilling", (struct kp_kernel_code){.functions = 1, .spills = true});
    assert_int_equal(asked, before + 1);
}

/* The number of barriers of `waiting` in its image: the first value of 3 behind the attribute's head. */
static void change_barriers(uint8_t *bytes, size_t size, uint8_t to)
{
    static const uint8_t head[] = {2, 0x4c, 3};
    uint8_t *at = memmem(bytes, size, head, sizeof(head));
    assert_non_null(at);
    at[2] = to;
}

/* The same code in two modules is one kernel; where they differ, nobody knows which was launched. */
static void test_two_modules(void **state)
{
    struct kp_kernel_code code;
    (void)state;
    load(CALLS);
    load(CALLS);
    check("waiting", (struct kp_kernel_code){.barriers = 3, .functions = 1});
    load(CALLS);
    change_barriers(images[2].bytes, images[2].size, 5);
    assert_false(kp_kernels_find(kernels, "waiting", &code));
    check("calling", (struct kp_kernel_code){.functions = 3});
}

/* What must not be run twice, also through calls and through pointers. */
static void test_once(void **state)
{
    static const struct {
        const char *name;
        unsigned once;
    } rows[] = {{"plain", 0},
                {"keeping", 0},
                {"taking", KP_ONCE_HEAP},
                {"giving", KP_ONCE_HEAP},
                {"by_pointer", KP_ONCE_HEAP},
                {"launching", KP_ONCE_LAUNCHES},
                {"printing", KP_ONCE_PRINTS},
                {"child", 0},
                {"calling", 0},
                {"nowhere", 0},
                {"", KP_ONCE_HEAP | KP_ONCE_LAUNCHES | KP_ONCE_PRINTS}};
    struct kp_kernel_code code;
    (void)state;
    assert_int_equal(kp_kernels_once(kernels, ""), 0);
    load(INLINE);
    assert_int_equal(kp_kernels_once(kernels, ""), 0);
    load(HEAP);
    load(CALLS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (kp_kernels_once(kernels, rows[i].name) != rows[i].once)
            fail_msg("%s: %u", rows[i].name, kp_kernels_once(kernels, rows[i].name));
    assert_true(kp_kernels_find(kernels, "by_pointer", &code));
    assert_int_equal(code.functions, 1); /* which others it calls is not known */
    assert_false(code.launches);
}

/* One of two modules with a kernel of that name tells enough. */
static void test_once_in_two_modules(void **state)
{
    (void)state;
    load(HEAP);
    load(HEAP);
    uint8_t *graph = memmem(images[0].bytes, images[0].size, "malloc", sizeof("malloc"));
    assert_non_null(graph);
    memcpy(graph, "mallot", 6);
    assert_int_equal(kp_kernels_once(kernels, "taking"), KP_ONCE_HEAP);
    assert_int_equal(kp_cubin_once(images[0].bytes, images[0].size), KP_ONCE_HEAP | KP_ONCE_PRINTS); /* free */
    assert_int_equal(kp_cubin_once(images[0].bytes, images[0].size / 2), 0);
    assert_int_equal(kp_cubin_once("no image", 8), 0);
}

static void test_variables(void **state)
{
    static const struct {
        const char *path;
        bool any;
    } rows[] = {{CALLS, false}, {HEAP, true}, {INLINE, false}, {TEXTS, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        load(rows[i].path);
        if (kp_cubin_variables(images[i].bytes, images[i].size) != rows[i].any)
            fail_msg("%s", rows[i].path);
        assert_true(kp_cubin_variables(images[i].bytes, 32));
    }
    assert_true(kp_cubin_variables(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kernels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_loaded_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_modules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_once_in_two_modules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_variables, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
