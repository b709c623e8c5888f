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
    char *why = kp_trial_refusal(&t);
    if (why)
        fail_msg("%s: %s", text, why);
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

static void check_refusal(const char *text, const char *says)
{
    struct kp_trial t = trial(text);
    char *why = kp_trial_refusal(&t);
    if (!why || !strstr(why, says))
        fail_msg("%s: '%s' instead of '%s'", text, why ? why : "no reason", says);
    free(why);
}

static void test_refusals(void **state)
{
    (void)state;
    check_refusal("block=1024",
                  "its 1024 threads are more than the 512 that a block of the kernel may have: its registers or "
                  "__launch_bounds__ limit them");
    check_refusal("block=130",
                  "its threads are no multiple of the 4 of the block's other dimensions; write it as XxYxZ");
    check_refusal("block=1x1x128", "its block has 128 threads in z; the device allows 1 to 64");
    check_refusal("shared=227K",
                  "its 233472 byte of shared memory a block, 1024 of them static, are more than the 232448");
    check_refusal("shared=0", "it has less dynamic shared memory than the 512 byte of the program's own launch");
    own.shape.grid[1] = 65535;
    check_refusal("block=128x1", "its grid has 262140 blocks in y; the device allows 65535");
    own.shape.grid[1] = 3;
    own.shape.cluster[0] = 2;
    check_refusal("block=256", "its grid has 5 blocks in x, no multiple of the cluster's 2");
    own.shape.cluster[0] = 0;
    function.cluster[1] = 2;
    check_refusal("block=256", "its grid has 3 blocks in y, no multiple of the cluster's 2");
    function.cluster[1] = 0;
    own.fixed_shape = true;
    check_refusal("block=256", "it is launched by a function of CUDA that takes no size of a block");
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
