/* PM sampling: how lists are split into groups of one pass, by the real host library. The target side is over the fake
 * CUPTI, of which single functions fail where a test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/internal.h"
#include "cupti/pm.h"
#include "cupti/target.h"
#include "tests/fake/fake_image.h"
#include "tests/support/collect_support.h"
#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"

#define PCT ".avg.pct_of_peak_sustained_elapsed"

static const CUptiResult FAILS = CUPTI_ERROR_UNKNOWN;

static const char *const some[] = {"sm__cycles_active" PCT, "lts__t_sectors" PCT, "dramc__read_throughput" PCT};
enum { SOME = sizeof(some) / sizeof(*some) };

/* ---- host side ---- */

static struct kp_pm_groups groups_of(const char *chip, const char *const *names, size_t n, size_t most)
{
    struct kp_pm_groups g;
    assert_int_equal(kp_pm_schedule(kp_test_real_cupti(), chip, NULL, names, n, most, &g), 0);
    for (size_t i = 0; i < g.n; i++)
        assert_true(g.at[i].passes == 1 && g.at[i].image && g.at[i].size);
    return g;
}

static void test_one_group(void **state)
{
    (void)state;
    struct kp_pm_groups g = groups_of("GH100", some, SOME, 1);
    assert_int_equal(g.n, 1);
    assert_int_equal(g.n_left_out, 0);
    assert_int_equal(g.at[0].n_names, SOME);
    for (size_t i = 0; i < SOME; i++)
        assert_ptr_equal(g.at[0].names[i], some[i]);
    kp_pm_groups_free(&g);
    g = groups_of("GH100", NULL, 0, 0);
    assert_int_equal(g.n + g.n_left_out, 0);
    kp_pm_groups_free(&g);
}

/* Two of the SM's that do not go together, around others that go with either. */
static const char *const crowd[] = {
    "sm__warps_active" PCT, "lts__t_sectors" PCT,         "sm__inst_executed_realtime" PCT,
    "no_such__metric.sum",  "dramc__read_throughput" PCT, "smsp__warps_issue_stalled_wait.avg",
};
enum { CROWD = sizeof(crowd) / sizeof(*crowd) };

static void assert_left_out(const struct kp_pm_groups *g, const char *name, enum kp_pm_left why)
{
    for (size_t i = 0; i < g->n_left_out; i++)
        if (!strcmp(g->left_out[i].name, name)) {
            assert_int_equal(g->left_out[i].why, why);
            return;
        }
    fail_msg("%s is in a group", name);
}

static void test_split(void **state)
{
    (void)state;
    struct kp_pm_groups g = groups_of("GH100", crowd, CROWD, 0);
    assert_int_equal(g.n, 2);
    assert_int_equal(g.at[0].n_names, 3);
    assert_ptr_equal(g.at[0].names[0], crowd[0]);
    assert_ptr_equal(g.at[0].names[1], crowd[1]);
    assert_ptr_equal(g.at[0].names[2], crowd[4]);
    assert_int_equal(g.at[1].n_names, 1);
    assert_ptr_equal(g.at[1].names[0], crowd[2]);
    assert_int_equal(g.n_left_out, 2);
    assert_left_out(&g, crowd[3], KP_PM_UNKNOWN);
    assert_left_out(&g, crowd[5], KP_PM_SEVERAL_PASSES);
    kp_pm_groups_free(&g);
}

static void test_no_more_groups_than_allowed(void **state)
{
    (void)state;
    struct kp_pm_groups g = groups_of("GH100", crowd, CROWD, 1);
    assert_int_equal(g.n, 1);
    assert_int_equal(g.at[0].n_names, 3); /* what comes later may still fit */
    assert_int_equal(g.n_left_out, 3);
    assert_left_out(&g, crowd[2], KP_PM_NO_ROOM);
    assert_left_out(&g, crowd[3], KP_PM_UNKNOWN);
    kp_pm_groups_free(&g);
}

static void test_unknown_chip(void **state)
{
    struct kp_pm_groups g;
    struct kp_host *h;
    (void)state;
    assert_int_not_equal(kp_pm_schedule(kp_test_real_cupti(), "ZZ999", NULL, some, SOME, 0, &g), 0);
    assert_null(g.at);
    assert_null(g.left_out);
    assert_int_not_equal(kp_pm_host(kp_test_real_cupti(), "ZZ999", NULL, &h), 0);
    assert_null(h);
}

static void test_triggers(void **state)
{
    (void)state;
    assert_int_equal(kp_pm_trigger(7, 5), KP_PM_CYCLES);
    assert_int_equal(kp_pm_trigger(8, 0), KP_PM_CYCLES);
    assert_int_equal(kp_pm_trigger(8, 6), KP_PM_NANOSECONDS);
    assert_int_equal(kp_pm_trigger(9, 0), KP_PM_NANOSECONDS);
}

/* A CUPTI that lacks one of the functions does not sample. */
static void test_available(void **state)
{
    struct kp_cupti c = *kp_test_real_cupti();
    (void)state;
    assert_true(kp_pm_available(&c));
#define LACKS(function)                                                                                                \
    do {                                                                                                               \
        __typeof__(c.function) there = c.function;                                                                     \
        c.function = NULL;                                                                                             \
        assert_false(kp_pm_available(&c));                                                                             \
        c.function = there;                                                                                            \
    } while (0)
    LACKS(cuptiPmSamplingGetCounterAvailability);
    LACKS(cuptiPmSamplingEnable);
    LACKS(cuptiPmSamplingDisable);
    LACKS(cuptiPmSamplingSetConfig);
    LACKS(cuptiPmSamplingStart);
    LACKS(cuptiPmSamplingStop);
    LACKS(cuptiPmSamplingDecodeData);
    LACKS(cuptiPmSamplingGetCounterDataSize);
    LACKS(cuptiPmSamplingCounterDataImageInitialize);
    LACKS(cuptiPmSamplingGetCounterDataInfo);
    LACKS(cuptiPmSamplingCounterDataGetSampleInfo);
#undef LACKS
    assert_true(kp_pm_available(&c));
}

/* ---- target side ---- */

static struct {
    struct kp_cupti *fake;
    struct kp_cupti cupti; /* the fake's, and where a test says a function that fails */
    CUcontext ctx;
    CUfunction kernels[2];
    struct kp_host *host;
    struct kp_pm_groups groups;
    struct kp_pm *pm;
    double (*value)(const char *metric, const char *kernel, size_t index);
    size_t (*samples)(const char *kernel);
} t;

static const char *const kernels[] = {"slow", "print_line"};

static int load_fake(void **state)
{
    char *err = NULL;
    (void)state;
    if (!getenv("KP_REAL_CUPTI"))
        return 0;
    if (kp_cupti_load(kp_test_dl(), kp_test_build("fake"), NULL, &t.fake, &err))
        fail_msg("%s", err);
    void *handle = dlopen(kp_test_build("fake/libcupti.so.13"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    *(void **)&t.value = dlsym(handle, "fake_cupti_pm_value");
    *(void **)&t.samples = dlsym(handle, "fake_cupti_pm_samples");
    assert_true(t.value && t.samples);
    return 0;
}

static int unload_fake(void **state)
{
    (void)state;
    kp_cupti_free(t.fake);
    return 0;
}

static int begin(void **state)
{
    CUmodule module;
    (void)state;
    if (!t.fake) /* skipped */
        return 0;
    t.cupti = *t.fake;
    t.ctx = kp_test_context();
    assert_int_equal(KP_TEST_FAKE(cuModuleLoadData)(&module, "FAKEMOD slow print_line"), CUDA_SUCCESS);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(KP_TEST_FAKE(cuModuleGetFunction)(&t.kernels[i], module, kernels[i]), CUDA_SUCCESS);
    assert_int_equal(kp_cupti_target_init(&t.cupti), 0);
    assert_int_equal(kp_pm_host(&t.cupti, "GH100", NULL, &t.host), 0);
    assert_int_equal(kp_pm_schedule(&t.cupti, "GH100", NULL, some, SOME, 0, &t.groups), 0);
    assert_int_equal(kp_pm_open(&t.cupti, 0, &t.pm), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (!t.fake)
        return 0;
    kp_pm_close(t.pm);
    kp_pm_groups_free(&t.groups);
    kp_host_close(t.host);
    kp_test_context_end(t.ctx);
    return 0;
}

static const struct kp_pm_settings settings = {KP_PM_NANOSECONDS, 1500, 1 << 20, 16};

static void launch(size_t kernel)
{
    int none = 0;
    void *params[] = {&none};
    assert_int_equal(KP_TEST_FAKE(cuLaunchKernel)(t.kernels[kernel], 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
                     CUDA_SUCCESS);
}

/* What a sample must be. */
struct expected {
    const char *kernel; /* "" idle */
    size_t index;
};

static size_t expect(struct expected *e, size_t n, const char *kernel, size_t samples)
{
    for (size_t i = 0; i < samples; i++)
        e[n + i] = (struct expected){kernel, i};
    return n + samples;
}

/* Decodes part by part; returns how many samples there were. */
static size_t check_samples(const struct expected *expected, size_t n, uint32_t most, size_t *parts)
{
    struct kp_pm_decoded d = {.more = true};
    uint64_t from, to, last = 0;
    double values[SOME];
    size_t at = 0;
    for (*parts = 0; d.more; ++*parts) {
        assert_int_equal(kp_pm_decode(t.pm, &d), 0);
        assert_true(d.n <= most);
        for (size_t i = 0; i < d.n; i++, at++, last = to) {
            assert_int_equal(kp_pm_times(t.pm, i, &from, &to), 0);
            assert_int_equal(kp_pm_values(t.pm, t.host, i, some, SOME, values), 0);
            assert_int_equal(to - from, settings.interval);
            assert_true(!at || from == last);
            for (size_t k = 0; at < n && k < SOME; k++)
                assert_true(values[k] == t.value(some[k], expected[at].kernel, expected[at].index));
        }
    }
    return at;
}

static void need_fake(void)
{
    if (!t.fake)
        kp_test_real_cupti(); /* skips, and says why */
}

static void test_samples(void **state)
{
    struct expected expected[256];
    size_t n, parts;
    (void)state;
    need_fake();
    assert_int_equal(kp_pm_configure(t.pm, &t.groups.at[0], &settings), 0);
    assert_int_equal(kp_pm_start(t.pm), 0);
    launch(0);
    launch(1);
    assert_int_equal(kp_pm_stop(t.pm), 0);
    assert_int_equal(kp_pm_stop(t.pm), 0); /* nothing more */
    launch(0);                             /* not sampled */
    n = expect(expected, 0, "", FAKE_PM_IDLE);
    for (size_t i = 0; i < 2; i++) {
        n = expect(expected, n, kernels[i], t.samples(kernels[i]));
        n = expect(expected, n, "", FAKE_PM_IDLE);
    }
    assert_int_equal(check_samples(expected, n, settings.max_samples, &parts), n);
    assert_int_equal(parts, (n + settings.max_samples - 1) / settings.max_samples);
    assert_true(parts > 1);
}

/* The next run begins empty, with the same configuration or another one. */
static void test_again(void **state)
{
    static const struct kp_pm_settings wide = {KP_PM_NANOSECONDS, 1500, 1 << 20, 512};
    struct expected expected[64];
    size_t n, parts;
    (void)state;
    need_fake();
    for (int i = 0; i < 3; i++) {
        const struct kp_pm_settings *s = i == 2 ? &wide : &settings;
        if (i != 1)
            assert_int_equal(kp_pm_configure(t.pm, &t.groups.at[0], s), 0);
        assert_int_equal(kp_pm_start(t.pm), 0);
        n = expect(expected, 0, "", FAKE_PM_IDLE);
        if (i == 2) { /* more than the others have room for */
            launch(1);
            n = expect(expected, n, kernels[1], t.samples(kernels[1]));
            n = expect(expected, n, "", FAKE_PM_IDLE);
            assert_true(n > settings.max_samples);
        }
        assert_int_equal(kp_pm_stop(t.pm), 0);
        assert_int_equal(check_samples(expected, n, s->max_samples, &parts), n);
        assert_int_equal(parts, 1);
    }
}

static void test_overflow(void **state)
{
    static const struct kp_pm_settings small = {KP_PM_NANOSECONDS, 1500, 5 * FAKE_PM_RECORD, 16};
    struct kp_pm_decoded d;
    (void)state;
    need_fake();
    assert_int_equal(kp_pm_configure(t.pm, &t.groups.at[0], &small), 0);
    assert_int_equal(kp_pm_start(t.pm), 0);
    assert_int_equal(kp_pm_decode(t.pm, &d), 0); /* while it runs, too */
    assert_true(d.n == FAKE_PM_IDLE && !d.overflow && !d.more);
    launch(0);
    assert_int_equal(kp_pm_stop(t.pm), 0);
    assert_int_equal(kp_pm_decode(t.pm, &d), 0);
    assert_true(d.n == 5 && d.overflow && !d.more);
}

static void test_availability(void **state)
{
    uint8_t *image;
    size_t size = 0;
    (void)state;
    need_fake();
    assert_int_equal(kp_pm_availability(&t.cupti, 0, &image, &size), 0);
    assert_true(image && size);
    free(image);
    assert_int_equal(kp_pm_availability(&t.cupti, 99, &image, &size), CUPTI_ERROR_INVALID_PARAMETER);
    assert_null(image);
}

/* One at a time; a context's end is not the sampler's; what runs is stopped by closing. */
static void test_open_and_close(void **state)
{
    struct kp_pm *second;
    (void)state;
    need_fake();
    assert_int_equal(kp_pm_open(&t.cupti, 0, &second), CUPTI_ERROR_INVALID_OPERATION);
    assert_null(second);
    assert_int_equal(kp_pm_configure(t.pm, &t.groups.at[0], &settings), 0);
    assert_int_equal(kp_pm_start(t.pm), 0);
    kp_pm_close(t.pm);
    kp_pm_close(NULL);
    kp_pm_abandon(NULL);
    assert_int_equal(kp_pm_open(&t.cupti, 0, &t.pm), 0);
}

/* ---- functions that fail ---- */

static CUptiResult CUPTIAPI no_config(CUpti_PmSampling_SetConfig_Params *p)
{
    (void)p;
    return FAILS;
}

static CUptiResult CUPTIAPI no_size(CUpti_PmSampling_GetCounterDataSize_Params *p)
{
    (void)p;
    return FAILS;
}

static CUptiResult CUPTIAPI no_start(CUpti_PmSampling_Start_Params *p)
{
    (void)p;
    return FAILS;
}

static CUptiResult CUPTIAPI no_initialize(CUpti_PmSampling_CounterDataImage_Initialize_Params *p)
{
    (void)p;
    return FAILS;
}

static CUptiResult CUPTIAPI no_decode(CUpti_PmSampling_DecodeData_Params *p)
{
    (void)p;
    return FAILS;
}

static CUptiResult CUPTIAPI full_decode(CUpti_PmSampling_DecodeData_Params *p)
{
    CUptiResult rc = t.fake->cuptiPmSamplingDecodeData(p);
    return rc ? rc : CUPTI_ERROR_OUT_OF_MEMORY;
}

static CUptiResult CUPTIAPI no_info(CUpti_PmSampling_GetCounterDataInfo_Params *p)
{
    (void)p;
    return FAILS;
}

static CUptiResult CUPTIAPI no_sample(CUpti_PmSampling_CounterData_GetSampleInfo_Params *p)
{
    (void)p;
    return FAILS;
}

static void test_failures(void **state)
{
    struct kp_pm_decoded d;
    uint64_t from, to;
    (void)state;
    need_fake();
    t.cupti.cuptiPmSamplingSetConfig = no_config;
    assert_int_equal(kp_pm_configure(t.pm, &t.groups.at[0], &settings), FAILS);
    t.cupti.cuptiPmSamplingSetConfig = t.fake->cuptiPmSamplingSetConfig;
    t.cupti.cuptiPmSamplingGetCounterDataSize = no_size;
    assert_int_equal(kp_pm_configure(t.pm, &t.groups.at[0], &settings), FAILS);
    t.cupti.cuptiPmSamplingGetCounterDataSize = t.fake->cuptiPmSamplingGetCounterDataSize;
    assert_int_equal(kp_pm_configure(t.pm, &t.groups.at[0], &settings), 0);
    t.cupti.cuptiPmSamplingStart = no_start;
    assert_int_equal(kp_pm_start(t.pm), FAILS);
    assert_int_equal(kp_pm_stop(t.pm), 0); /* it does not run */
    t.cupti.cuptiPmSamplingStart = t.fake->cuptiPmSamplingStart;
    assert_int_equal(kp_pm_start(t.pm), 0);
    assert_int_equal(kp_pm_stop(t.pm), 0);
    t.cupti.cuptiPmSamplingCounterDataImageInitialize = no_initialize;
    assert_int_equal(kp_pm_decode(t.pm, &d), FAILS);
    t.cupti.cuptiPmSamplingCounterDataImageInitialize = t.fake->cuptiPmSamplingCounterDataImageInitialize;
    t.cupti.cuptiPmSamplingDecodeData = no_decode;
    assert_int_equal(kp_pm_decode(t.pm, &d), FAILS);
    assert_int_equal(d.n, 0);
    t.cupti.cuptiPmSamplingDecodeData = full_decode; /* told as an error, but what fitted is there */
    assert_int_equal(kp_pm_decode(t.pm, &d), 0);
    assert_true(d.overflow && d.n == FAKE_PM_IDLE);
    t.cupti.cuptiPmSamplingGetCounterDataInfo = no_info;
    assert_int_equal(kp_pm_decode(t.pm, &d), FAILS);
    assert_int_equal(d.n, 0);
    t.cupti.cuptiPmSamplingCounterDataGetSampleInfo = no_sample;
    assert_int_equal(kp_pm_times(t.pm, 0, &from, &to), FAILS);
}

static unsigned unstopped; /* calls to come that stop nothing */

static CUptiResult CUPTIAPI stop_late(CUpti_PmSampling_Stop_Params *p)
{
    if (!unstopped)
        return t.fake->cuptiPmSamplingStop(p);
    unstopped--;
    return FAILS;
}

/* It runs on, and is told to stop again when it is closed. */
static void test_stop_fails(void **state)
{
    (void)state;
    need_fake();
    t.cupti.cuptiPmSamplingStop = stop_late;
    for (unsigned n = 1; n <= 2; n++) {
        assert_int_equal(kp_pm_configure(t.pm, &t.groups.at[0], &settings), 0);
        assert_int_equal(kp_pm_start(t.pm), 0);
        unstopped = n;
        assert_int_equal(kp_pm_stop(t.pm), FAILS);
        assert_int_equal(kp_pm_close(t.pm), 0);
        assert_int_equal(kp_pm_open(&t.cupti, 0, &t.pm), 0);
    }
}

/* A device whose chip has no timer takes cycles only, and no configuration of two passes is taken at all. */
static void test_refused_configurations(void **state)
{
    static const char *const twice = "smsp__warps_issue_stalled_wait.avg";
    struct kp_config two;
    (void)state;
    need_fake();
    assert_int_equal(kp_host_schedule_for(&t.cupti, CUPTI_PROFILER_TYPE_PM_SAMPLING, "GH100", NULL, &twice, 1, &two),
                     0);
    assert_int_equal(two.passes, 2);
    assert_int_equal(kp_pm_configure(t.pm, &two, &settings), CUPTI_ERROR_NOT_SUPPORTED);
    assert_int_equal(kp_pm_configure(t.pm, &t.groups.at[0], &settings), 0);
    kp_config_free(&two);
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_group),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_no_more_groups_than_allowed),
        cmocka_unit_test(test_unknown_chip),
        cmocka_unit_test(test_triggers),
        cmocka_unit_test(test_available),
        ON_FAKE(test_samples),
        ON_FAKE(test_again),
        ON_FAKE(test_overflow),
        ON_FAKE(test_availability),
        ON_FAKE(test_open_and_close),
        ON_FAKE(test_failures),
        ON_FAKE(test_stop_fails),
        ON_FAKE(test_refused_configurations),
    };
    return cmocka_run_group_tests(tests, load_fake, unload_fake);
}
