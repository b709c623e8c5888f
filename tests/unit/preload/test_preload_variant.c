/* The shape of a variant, and why it may not be launched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "preload/mode/variant.h"

static const struct kp_device device = {.shared_per_block = 48 << 10, .shared_per_block_optin = 227 << 10};
static struct kp_function function;
static struct kp_launch own;
static struct kp_vary vary;

static int set_up(void **state)
{
    (void)state;
    function = (struct kp_function){.handle = (CUfunction)0x10, .max_threads = 512, .static_shared = 1024};
    own = (struct kp_launch){.f = (CUfunction)0x20,
                             .shape = {.grid = {10, 3, 1}, .block = {32, 4, 1}, .dynamic_shared = 512}};
    own.config.gridDimX = 10;
    return 0;
}

/* Makes the first variant of what is written. */
static struct kp_trial trial(const char *text)
{
    char *err = NULL;
    assert_int_equal(kp_vary_read(text, &vary, &err), 0);
    struct kp_variation of = kp_vary_at(&vary, 0);
    return kp_trial_make(&device, &function, &own, &of);
}

static void check_shape(const char *text, const uint32_t grid[3], const uint32_t block[3], uint64_t shared)
{
    struct kp_trial t = trial(text);
    struct kp_why why = kp_trial_reason(&t);
    if (why.reason)
        fail_msg("%s: %s", text, kp_why_text(&why));
    assert_memory_equal(t.shape.grid, grid, sizeof t.shape.grid);
    assert_memory_equal(t.shape.block, block, sizeof t.shape.block);
    assert_int_equal(t.shape.dynamic_shared, shared);
}

static void test_shapes(void **state)
{
    (void)state;
    check_shape("block=256", (const uint32_t[]){5, 3, 1}, (const uint32_t[]){64, 4, 1}, 512);
    check_shape("block=192", (const uint32_t[]){7, 3, 1}, (const uint32_t[]){48, 4, 1}, 512);
    check_shape("block=16x2", (const uint32_t[]){20, 6, 1}, (const uint32_t[]){16, 2, 1}, 512);
    check_shape("block=16x2x4", (const uint32_t[]){20, 6, 1}, (const uint32_t[]){16, 2, 4}, 512);
    check_shape("shared=64K", own.shape.grid, own.shape.block, 64 << 10);
    check_shape("block=64;shared=0", (const uint32_t[]){20, 3, 1}, (const uint32_t[]){16, 4, 1}, 0);
    check_shape("carveout=50", own.shape.grid, own.shape.block, 512);
}

/* The launch that the driver gets is the variant's, whichever function of the driver takes it. */
static void test_applied(void **state)
{
    (void)state;
    struct kp_trial t = trial("block=256;shared=1K");
    struct kp_launch l = own;
    kp_trial_apply(&t, &l);
    assert_ptr_equal(l.f, function.handle);
    assert_memory_equal(&l.shape, &t.shape, sizeof t.shape);
    assert_int_equal(l.config.gridDimX, 5);
    assert_int_equal(l.config.gridDimY, 3);
    assert_int_equal(l.config.gridDimZ, 1);
    assert_int_equal(l.config.blockDimX, 64);
    assert_int_equal(l.config.blockDimY, 4);
    assert_int_equal(l.config.blockDimZ, 1);
    assert_int_equal(l.config.sharedMemBytes, 1024);
}

static void check_refusal(const char *text, enum kp_reason reason, const char *detail)
{
    struct kp_trial t = trial(text);
    struct kp_why why = kp_trial_reason(&t);
    if (why.reason != reason || !strstr(kp_why_text(&why), detail))
        fail_msg("%s: '%s' instead of '%s: %s'", text, why.reason ? kp_why_text(&why) : "no reason",
                 kp_reason_text(reason), detail);
    kp_why_free(&why);
}

static void test_refusals(void **state)
{
    (void)state;
    check_refusal("block=1024", KP_REASON_VARIANT_THREADS, ": 1024, at most 512");
    check_refusal("block=130", KP_REASON_VARIANT_DIVISION, "");
    check_refusal("block=1x1x128", KP_REASON_VARIANT_SIZE, "128 threads in z, 1 to 64 are allowed");
    check_refusal("shared=227K", KP_REASON_VARIANT_SHARED_SIZE, "233472 bytes, 1024 of them static, at most 232448");
    check_refusal("shared=0", KP_REASON_VARIANT_SHARED_LESS, "less than 512 bytes");
    own.shape.grid[1] = 65535;
    check_refusal("block=128x1", KP_REASON_VARIANT_SIZE, "262140 blocks in y, at most 65535");
    own.shape.grid[1] = 3;
    own.shape.cluster[0] = 2;
    check_refusal("block=256", KP_REASON_VARIANT_CLUSTER, "5 blocks in x, clusters of 2");
    own.shape.cluster[0] = 0;
    function.cluster[1] = 2;
    check_refusal("block=256", KP_REASON_VARIANT_CLUSTER, "3 blocks in y, clusters of 2");
    function.cluster[1] = 0;
    own.fixed_shape = true;
    check_refusal("block=256", KP_REASON_VARIANT_FIXED, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_shapes, set_up),
        cmocka_unit_test_setup(test_applied, set_up),
        cmocka_unit_test_setup(test_refusals, set_up),
    };
    return cmocka_run_group_tests_name("preload/variant", tests, NULL, NULL);
}
