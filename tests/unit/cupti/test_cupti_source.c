/* PC sampling, SASS metrics and the images of modules over the fake CUPTI: what is handed out is what the library gave.
 * Whatever fails is told and leaves nothing enabled: the fake ends the process where something is enabled twice. */
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
#include "cupti/source.h"
#include "cupti/target.h"
#include "tests/support/collect_support.h"
#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"

enum { FAILS = CUPTI_ERROR_UNKNOWN, N = 64, WARP = 32, REASONS = 40, INSTRUCTION = 16, MOST_IMAGE = 4096 };

static const char chip[] = "GH100";
static const char sampled_marks[] = "smsp__pcsamp_warps_issue_stalled_", not_issued[] = "_not_issued";

static struct {
    struct kp_cupti *fake;
    struct kp_cupti cupti; /* the fake's functions, and where a test says others */
    const char *real;      /* the folder of the library that the fake asks, for the tests that need it */
    CUcontext ctx;
    CUmodule module;
    CUdeviceptr values;
    struct kp_pcsamp *pcsamp;
} t;

static int load_fake(void **state)
{
    char *err = NULL;
    (void)state;
    setenv("FAKE_DEVICES", "2", 1);
    if (kp_cupti_load(kp_test_dl(), kp_test_build("fake"), NULL, &t.fake, &err))
        fail_msg("%s", err);
    t.real = getenv("KP_REAL_CUPTI") ? strdup(getenv("KP_REAL_CUPTI")) : NULL;
    unsetenv("KP_REAL_CUPTI"); /* the fake's own list of SASS metrics */
    return 0;
}

static int unload_fake(void **state)
{
    (void)state;
    kp_cupti_free(t.fake);
    free((char *)t.real);
    return 0;
}

static void load(const char *kernels)
{
    assert_int_equal(KP_TEST_FAKE(cuModuleLoadData)(&t.module, kernels), CUDA_SUCCESS);
}

static int begin(void **state)
{
    (void)state;
    t.cupti = *t.fake;
    t.ctx = kp_test_context();
    load("FAKEMOD increment atomic_count");
    assert_int_equal(KP_TEST_FAKE(cuMemAlloc)(&t.values, N * sizeof(int)), CUDA_SUCCESS);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unsetenv("FAKE_FAIL");
    unsetenv("KP_REAL_CUPTI");
    kp_pcsamp_close(t.pcsamp);
    t.pcsamp = NULL;
    kp_test_context_end(t.ctx);
    return 0;
}

/* From now on each call of the function fails; NULL: none. */
static void let_fail(const char *function)
{
    char text[128];
    snprintf(text, sizeof(text), "%s:%d", function ? function : "", FAILS);
    setenv("FAKE_FAIL", function ? text : "", 1);
}

static void launch(const char *name, unsigned blocks)
{
    int n = N;
    void *params[] = {&t.values, &n};
    CUfunction f;
    assert_int_equal(KP_TEST_FAKE(cuModuleGetFunction)(&f, t.module, name), CUDA_SUCCESS);
    assert_int_equal(KP_TEST_FAKE(cuLaunchKernel)(f, blocks, 1, 1, N, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
}

/* ---- images of modules ---- */

static struct {
    CUpti_ComputeCrcCallbackFunc ours;
    unsigned calls;
    const void *image; /* of the last module */
    size_t size;
    uint64_t crc;
} modules;

static void CUPTIAPI on_module(const void *image, size_t size, uint64_t *crc)
{
    modules.ours(image, size, crc);
    modules.calls++;
    modules.image = image;
    modules.size = size;
    modules.crc = *crc;
}

static CUptiResult CUPTIAPI note_callback(CUpti_ComputeCrcCallbackFunc fn)
{
    modules.ours = fn;
    return t.fake->cuptiRegisterComputeCrcCallback(on_module);
}

static void check_kept(bool kept)
{
    size_t size = 1;
    const void *image = kp_cubins_find((uint32_t)modules.crc, &size);
    assert_int_equal(size, kept ? modules.size : 0);
    if (!kept) {
        assert_null(image);
        return;
    }
    assert_ptr_not_equal(image, modules.image); /* which is the driver's */
    assert_memory_equal(image, modules.image, size);
}

static unsigned asked_for;

static bool is_asked_for(const void *image, size_t size)
{
    asked_for++;
    return memmem(image, size, "malloc", sizeof("malloc")) != NULL;
}

static void test_cubins(void **state)
{
    size_t size;
    (void)state;
    t.cupti.cuptiGetCubinCrc = NULL;
    assert_int_equal(kp_cubins_keep(&t.cupti, 1 << 20, NULL), -ENOSYS);
    t.cupti.cuptiGetCubinCrc = t.fake->cuptiGetCubinCrc;
    t.cupti.cuptiRegisterComputeCrcCallback = NULL;
    assert_int_equal(kp_cubins_keep(&t.cupti, 1 << 20, NULL), -ENOSYS);
    let_fail("cuptiRegisterComputeCrcCallback");
    assert_int_equal(kp_cubins_keep(t.fake, 1 << 20, NULL), FAILS);
    let_fail(NULL);
    static struct kp_cupti noting; /* is called as long as the process lives */
    noting = *t.fake;
    noting.cuptiRegisterComputeCrcCallback = note_callback;
    assert_int_equal(kp_cubins_keep(&noting, 1 << 20, NULL), 0);
    assert_int_equal(modules.calls, 0);
    load("FAKEMOD increment");
    assert_int_equal(modules.calls, 1);
    check_kept(true);
    assert_null(kp_cubins_find((uint32_t)modules.crc + 1, &size));
    assert_int_equal(size, 0);
    size_t kept = modules.size;
    const void *first = kp_cubins_find((uint32_t)modules.crc, &size);
    assert_ptr_equal(kp_cubins_at(0, &size), first);
    assert_int_equal(size, kept);
    assert_null(kp_cubins_at(1, &size));
    assert_int_equal(size, 0);
    load("FAKEMOD increment"); /* the same code: once is enough */
    assert_int_equal(modules.calls, 2);
    assert_ptr_equal(kp_cubins_find((uint32_t)modules.crc, &size), first);
    assert_null(kp_cubins_at(1, &size));
    load("FAKEMOD slow increment");
    check_kept(true);
    assert_ptr_equal(kp_cubins_at(1, &size), kp_cubins_find((uint32_t)modules.crc, &size));
    assert_ptr_equal(kp_cubins_at(0, &size), first);
    kept += modules.size;
    let_fail("cuptiGetCubinCrc");
    load("FAKEMOD append");
    let_fail(NULL);
    check_kept(false);
    load("FAKEMOD append");
    check_kept(true);
    kept += modules.size;
    /* the bound holds to the byte; `late_increment` was not loaded before */
    assert_int_equal(kp_cubins_keep(&noting, kept, NULL), 0);
    load("FAKEMOD late_increment");
    check_kept(false);
    assert_int_equal(kp_cubins_keep(&noting, kept + modules.size - 1, NULL), 0);
    load("FAKEMOD late_increment");
    check_kept(false);
    assert_int_equal(kp_cubins_keep(&noting, kept + modules.size, NULL), 0);
    load("FAKEMOD late_increment");
    check_kept(true);
    kept += modules.size;
    /* beyond the bound, and without one at all, what is asked for is kept */
    assert_int_equal(kp_cubins_keep(&noting, 0, is_asked_for), 0);
    load("FAKEMOD set_flag");
    check_kept(false);
    load("FAKEMOD heap_swap");
    check_kept(true);
    assert_int_equal(asked_for, 2);
    kept += modules.size;
    assert_int_equal(kp_cubins_keep(&noting, kept + (1 << 20), NULL), 0); /* for the other tests */
}

/* ---- PC sampling ---- */

/* By offset and reason: what was handed out of one function, and what the library gave. */
struct counts {
    char function[64];
    uint32_t crc;
    uint64_t at[MOST_IMAGE / INSTRUCTION][REASONS];
    uint64_t sum; /* of warps, issued or not */
};

static struct counts given, taken;

static bool is_not_issued(size_t reason)
{
    size_t n;
    const char *name = kp_pcsamp_reasons(t.pcsamp, &n)[reason];
    return strlen(name) > strlen(not_issued) && !strcmp(name + strlen(name) - strlen(not_issued), not_issued);
}

static void add(struct counts *c, uint64_t crc, const char *function, uint64_t offset, size_t reason, uint64_t samples)
{
    assert_true(offset % INSTRUCTION == 0 && offset < MOST_IMAGE && reason < REASONS && samples);
    snprintf(c->function, sizeof(c->function), "%s", function);
    c->crc = (uint32_t)crc;
    c->at[offset / INSTRUCTION][reason] += samples;
    c->sum += is_not_issued(reason) ? 0 : samples;
}

static void count_sample(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples)
{
    add(arg, pc->crc, pc->function, pc->offset, reason, samples);
}

static unsigned rounds;

static CUptiResult CUPTIAPI note_data(CUpti_PCSamplingGetDataParams *p)
{
    CUptiResult rc = t.fake->cuptiPCSamplingGetData(p);
    const CUpti_PCSamplingData *d = p->pcSamplingData;
    rounds++;
    for (size_t i = 0; !rc && i < d->totalNumPcs; i++)
        for (size_t s = 0; s < d->pPcData[i].stallReasonCount; s++)
            add(&given, d->pPcData[i].cubinCrc, d->pPcData[i].functionName, d->pPcData[i].pcOffset,
                d->pPcData[i].stallReason[s].pcSamplingStallReasonIndex, d->pPcData[i].stallReason[s].samples);
    return rc;
}

static void open_sampling(int interval, size_t buffer)
{
    assert_int_equal(kp_pcsamp_open(&t.cupti, t.ctx, interval, buffer, &t.pcsamp), 0);
}

static struct kp_pcsamp_totals take(void)
{
    struct kp_pcsamp_totals totals = {0};
    memset(&given, 0, sizeof(given));
    memset(&taken, 0, sizeof(taken));
    rounds = 0;
    assert_int_equal(kp_pcsamp_take(t.pcsamp, &totals, count_sample, &taken), 0);
    return totals;
}

/* Of one launch, between a start and a stop. */
static struct kp_pcsamp_totals sample(const char *name, unsigned blocks)
{
    assert_int_equal(kp_pcsamp_start(t.pcsamp), 0);
    launch(name, blocks);
    assert_int_equal(kp_pcsamp_stop(t.pcsamp), 0);
    return take();
}

/* The list of the library is in another order than the indexes in its records. */
static void test_reasons(void **state)
{
    char block[REASONS][CUPTI_STALL_REASON_STRING_SIZE], *names[REASONS];
    uint32_t indexes[REASONS];
    CUpti_PCSamplingGetStallReasonsParams get = {.size = CUpti_PCSamplingGetStallReasonsParamsSize,
                                                 .ctx = t.ctx,
                                                 .numStallReasons = REASONS,
                                                 .stallReasonIndex = indexes,
                                                 .stallReasons = names};
    size_t n, in_order = 0;
    (void)state;
    for (size_t i = 0; i < REASONS; i++)
        names[i] = block[i];
    assert_int_equal(t.fake->cuptiPCSamplingGetStallReasons(&get), 0);
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    const char *const *reasons = kp_pcsamp_reasons(t.pcsamp, &n);
    assert_int_equal(n, REASONS);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(reasons[indexes[i]], names[i]);
        in_order += indexes[i] == i;
    }
    assert_true(in_order < n);
}

/* Of some indexes nothing is told; two may have the same, of which the first counts. */
static CUptiResult CUPTIAPI three_reasons(CUpti_PCSamplingGetStallReasonsParams *p)
{
    static const uint32_t indexes[] = {7, 2, 7};
    for (size_t i = 0; i < 3; i++) {
        p->stallReasonIndex[i] = indexes[i];
        snprintf(p->stallReasons[i], CUPTI_STALL_REASON_STRING_SIZE, "reason_%zu", i);
    }
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI number_of_three(CUpti_PCSamplingGetNumStallReasonsParams *p)
{
    *p->numStallReasons = 3;
    return CUPTI_SUCCESS;
}

static void test_reasons_with_holes(void **state)
{
    size_t n;
    (void)state;
    t.cupti.cuptiPCSamplingGetNumStallReasons = number_of_three;
    t.cupti.cuptiPCSamplingGetStallReasons = three_reasons;
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    const char *const *reasons = kp_pcsamp_reasons(t.pcsamp, &n);
    assert_int_equal(n, 8);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(reasons[i], i == 7 ? "reason_0" : i == 2 ? "reason_1" : "");
}

/* What is handed out is what the library gave: each instruction and reason. */
static void test_samples(void **state)
{
    size_t n, size, places = 0;
    (void)state;
    t.cupti.cuptiPCSamplingGetData = note_data;
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    const char *const *reasons = kp_pcsamp_reasons(t.pcsamp, &n);
    struct kp_pcsamp_totals totals = sample("increment", 3), again;
    assert_memory_equal(&taken, &given, sizeof(taken));
    assert_string_equal(taken.function, "increment");
    assert_int_equal(taken.crc, (uint32_t)modules.crc);
    assert_non_null(kp_cubins_find(taken.crc, &size));
    assert_int_equal(totals.samples, taken.sum);
    assert_int_equal(totals.dropped, 0);
    for (size_t i = 0; i < MOST_IMAGE / INSTRUCTION; i++)
        for (size_t r = 0; r < n; r++)
            if (taken.at[i][r]) {
                places++;
                assert_memory_equal(reasons[r], sampled_marks, strlen(sampled_marks));
            }
    assert_true(places > 10);
    struct counts first = taken;
    again = sample("increment", 3);
    assert_memory_equal(&again, &totals, sizeof(again));
    assert_memory_equal(&taken, &first, sizeof(taken));
    sample("increment", 4);
    assert_memory_not_equal(&taken, &first, sizeof(taken));
    assert_int_equal(take().samples, 0);
    assert_int_equal(rounds, 1);
}

static void test_between_start_and_stop(void **state)
{
    (void)state;
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    launch("increment", 1);
    assert_int_equal(take().samples, 0);
    uint64_t of_one = sample("increment", 1).samples;
    assert_true(of_one > 0);
    launch("increment", 1);
    assert_int_equal(take().samples, 0);
    assert_int_equal(kp_pcsamp_start(t.pcsamp), 0);
    for (int i = 0; i < 3; i++)
        launch("increment", 1);
    struct kp_pcsamp_totals totals = {.samples = 5, .dropped = 1}; /* added up */
    assert_int_equal(kp_pcsamp_take(t.pcsamp, &totals, count_sample, &taken), 0);
    assert_int_equal(totals.samples, 5 + 3 * of_one);
    assert_int_equal(totals.dropped, 1);
    assert_int_equal(kp_pcsamp_stop(t.pcsamp), 0);
}

/* More records than are taken at once. */
static void test_rounds(void **state)
{
    enum { LAUNCHES = 1000 };
    (void)state;
    t.cupti.cuptiPCSamplingGetData = note_data;
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    uint64_t of_one = sample("increment", 1).samples;
    struct counts one = taken;
    assert_int_equal(kp_pcsamp_start(t.pcsamp), 0);
    for (int i = 0; i < LAUNCHES; i++)
        launch("increment", 1);
    assert_int_equal(take().samples, LAUNCHES * of_one);
    assert_true(rounds > 1 && rounds < 20);
    assert_memory_equal(&taken, &given, sizeof(taken));
    for (size_t i = 0; i < MOST_IMAGE / INSTRUCTION; i++)
        for (size_t r = 0; r < REASONS; r++)
            assert_int_equal(taken.at[i][r], LAUNCHES * one.at[i][r]);
    assert_int_equal(kp_pcsamp_stop(t.pcsamp), 0);
}

/* A library that says it has more, and more records than there was room for. */
static size_t claimed;

static CUptiResult CUPTIAPI endless_data(CUpti_PCSamplingGetDataParams *p)
{
    CUpti_PCSamplingData *d = p->pcSamplingData;
    rounds++;
    d->totalNumPcs = claimed;
    d->remainingNumPcs = 1;
    return CUPTI_SUCCESS;
}

static void test_endless_data(void **state)
{
    (void)state;
    t.cupti.cuptiPCSamplingGetData = endless_data;
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    claimed = 0;
    assert_int_equal(take().samples, 0);
    assert_int_equal(rounds, 1);
    claimed = 5000;
    assert_int_equal(take().samples, 0); /* ends */
    assert_in_range(rounds, 2, 1 << 20);
}

static void test_interval(void **state)
{
    (void)state;
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    assert_int_equal(kp_pcsamp_interval(t.pcsamp), 11 - KP_PCSAMP_INTERVAL_BASE); /* the library's choice */
    uint64_t usual = sample("increment", 1).samples;
    kp_pcsamp_close(t.pcsamp);
    open_sampling(0, 0);
    assert_int_equal(kp_pcsamp_interval(t.pcsamp), 0);
    assert_int_equal(sample("increment", 1).samples, 64 * usual);
    kp_pcsamp_close(t.pcsamp);
    open_sampling(KP_PCSAMP_INTERVAL_MAX, 0);
    assert_int_equal(kp_pcsamp_interval(t.pcsamp), KP_PCSAMP_INTERVAL_MAX);
    assert_int_equal(sample("increment", 1).samples, 0);
    kp_pcsamp_close(t.pcsamp);
    t.pcsamp = (struct kp_pcsamp *)1;
    assert_int_not_equal(kp_pcsamp_open(&t.cupti, t.ctx, KP_PCSAMP_INTERVAL_MAX + 1, 0, &t.pcsamp), 0);
    assert_null(t.pcsamp);
}

/* Samples beyond the device's buffer are lost, and told of. */
static void test_buffer(void **state)
{
    (void)state;
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    assert_int_equal(kp_pcsamp_buffer(t.pcsamp), 32 << 20);
    uint64_t all = sample("increment", 1).samples;
    kp_pcsamp_close(t.pcsamp);
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 16 * all / 2); /* the fake has 16 byte a sample */
    assert_int_equal(kp_pcsamp_buffer(t.pcsamp), 16 * all / 2);
    struct kp_pcsamp_totals totals = {0};
    assert_int_equal(kp_pcsamp_start(t.pcsamp), 0);
    launch("increment", 1);
    assert_int_equal(kp_pcsamp_take(t.pcsamp, &totals, count_sample, &taken), CUPTI_ERROR_OUT_OF_MEMORY);
    assert_true(!totals.samples && !totals.dropped);
}

enum { DROPPED = 5 };

static CUptiResult CUPTIAPI drop_some(CUpti_PCSamplingGetDataParams *p)
{
    CUptiResult rc = t.fake->cuptiPCSamplingGetData(p);
    CUpti_PCSamplingData *d = p->pcSamplingData;
    d->droppedSamples += DROPPED;
    d->totalSamples += DROPPED;
    return rc;
}

static void test_dropped(void **state)
{
    (void)state;
    t.cupti.cuptiPCSamplingGetData = drop_some;
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    struct kp_pcsamp_totals totals = sample("increment", 1);
    assert_int_equal(totals.dropped, DROPPED);
    assert_int_equal(taken.sum + totals.dropped, totals.samples);
}

static void need_real(void)
{
    if (!t.real)
        kp_test_real_cupti(); /* skips, and says why */
    setenv("KP_REAL_CUPTI", t.real, 1);
}

/* Samples of what is not recognised are in the totals. */
static void test_unrecognised(void **state)
{
    struct kp_range *range;
    (void)state;
    assert_int_equal(kp_cupti_target_init(&t.cupti), 0);
    assert_int_equal(kp_range_open(&t.cupti, t.ctx, &range), 0);
    kp_range_close(range);
    launch("increment", 1);
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    assert_true(sample("increment", 1).samples > 0);
    assert_int_equal(taken.sum, 0);
    assert_true(sample("atomic_count", 1).samples > 0);
    assert_true(taken.sum > 0);
    kp_pcsamp_close(t.pcsamp);
    /* open, though not started, is enough */
    load("FAKEMOD increment");
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    launch("increment", 1);
    kp_pcsamp_close(t.pcsamp);
    launch("increment", 1);
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    assert_true(sample("increment", 1).samples > 0);
    assert_true(taken.sum > 0);
}

/* While the range profiler is configured nothing else gets counters. */
static void test_beside_ranges(void **state)
{
    static const char *const metric = "gpu__time_duration.sum";
    struct kp_config config;
    struct kp_range *range;
    struct kp_image *image;
    struct kp_pm *pm;
    (void)state;
    need_real();
    assert_int_equal(kp_cupti_target_init(&t.cupti), 0);
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    assert_true(sample("increment", 1).samples > 0);
    assert_int_equal(
        kp_host_schedule_for(&t.cupti, CUPTI_PROFILER_TYPE_RANGE_PROFILER, chip, NULL, &metric, 1, &config), 0);
    assert_int_equal(kp_range_open(&t.cupti, t.ctx, &range), 0);
    assert_true(sample("increment", 1).samples > 0);
    assert_int_equal(kp_image_make(range, &config, 1, &image), 0);
    assert_int_equal(kp_range_begin(range, KP_RANGE_AUTO, image), 0);
    assert_int_equal(sample("increment", 1).samples, 0);
    assert_int_equal(kp_pm_open(&t.cupti, 0, &pm), CUPTI_ERROR_HARDWARE_BUSY);
    kp_range_close(range);
    assert_true(sample("increment", 1).samples > 0);
    assert_int_equal(kp_pm_open(&t.cupti, 0, &pm), 0);
    kp_pm_close(pm);
    kp_image_free(image);
    kp_config_free(&config);
}

/* What fails in opening is disabled again: else the fake would end the process at the next. */
static void test_open_fails(void **state)
{
    static const char *const functions[] = {
        "cuptiPCSamplingEnable", "cuptiPCSamplingGetNumStallReasons", "cuptiPCSamplingGetStallReasons",
        "cuptiPCSamplingSetConfigurationAttribute", "cuptiPCSamplingGetConfigurationAttribute"};
    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        let_fail(functions[i]);
        t.pcsamp = (struct kp_pcsamp *)1;
        assert_int_equal(kp_pcsamp_open(&t.cupti, t.ctx, 0, 0, &t.pcsamp), FAILS);
        assert_null(t.pcsamp);
        let_fail(NULL);
        open_sampling(0, 0);
        assert_true(sample("increment", 1).samples > 0);
        kp_pcsamp_close(t.pcsamp);
        t.pcsamp = NULL;
    }
}

static CUpti_PCSamplingData *remaining; /* the records that remain when sampling is disabled */

static CUptiResult CUPTIAPI note_records(CUpti_PCSamplingConfigurationInfoParams *p)
{
    for (size_t i = 0; i < p->numAttributes; i++)
        if (p->pPCSamplingConfigurationInfo[i].attributeType ==
            CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER)
            remaining = p->pPCSamplingConfigurationInfo[i].attributeData.samplingDataBufferData.samplingDataBuffer;
    return t.fake->cuptiPCSamplingSetConfigurationAttribute(p);
}

/* Nothing of CUPTI that the failure may have taken down is called again: the fake would end the process. */
static void check_given_up(void)
{
    struct kp_range *range;
    struct kp_pm *pm;
    struct kp_sass *s;
    struct kp_executed records[1];
    const char *name;
    uint8_t *image;
    uint32_t id;
    size_t n = 1;
    assert_int_equal(kp_cupti_target_init(&t.cupti), KP_CUPTI_LOST);
    assert_int_equal(kp_cupti_target_chip(&t.cupti, 0, &name), KP_CUPTI_LOST);
    assert_int_equal(kp_pcsamp_open(&t.cupti, t.ctx, 0, 0, &t.pcsamp), KP_CUPTI_LOST);
    assert_int_equal(kp_range_open(&t.cupti, t.ctx, &range), KP_CUPTI_LOST);
    assert_int_equal(kp_cupti_target_availability(&t.cupti, t.ctx, &image, &n), KP_CUPTI_LOST);
    assert_int_equal(kp_cupti_target_context_id(&t.cupti, t.ctx, &id), KP_CUPTI_LOST);
    assert_int_equal(kp_cupti_target_stream_id(&t.cupti, t.ctx, NULL, false, &id), KP_CUPTI_LOST);
    assert_int_equal(kp_pm_open(&t.cupti, 0, &pm), KP_CUPTI_LOST);
    assert_int_equal(kp_pm_availability(&t.cupti, 0, &image, &n), KP_CUPTI_LOST);
    assert_int_equal(kp_sass_configure(&t.cupti, t.ctx, "GH100", 0, NULL, 0, &s), KP_CUPTI_LOST);
    assert_int_equal(kp_activity_begin(&t.cupti), KP_CUPTI_LOST);
    assert_int_equal(kp_activity_end(&t.cupti, records, 1, &n), KP_CUPTI_LOST);
    assert_int_equal(n, 0);
    assert_int_equal(kp_watch_begin(&t.cupti, NULL, false), KP_CUPTI_LOST);
    assert_int_equal(kp_watch_pause(&t.cupti), KP_CUPTI_LOST);
    assert_int_equal(kp_watch_resume(&t.cupti), KP_CUPTI_LOST);
    assert_int_equal(kp_watch_flush(&t.cupti, true), KP_CUPTI_LOST);
    assert_int_equal(kp_watch_now(&t.cupti), 0);
}

/* A library that does not end the sampling goes on with the records that it was given: freed memory has other bytes
 * there, and ASan ends the test. */
static void check_records(void)
{
    assert_int_equal(remaining->size, sizeof(*remaining));
    remaining->totalNumPcs++;
    remaining->pPcData[remaining->collectNumPcs - 1].size++;
}

/* What was open when it failed ends without CUPTI, too. */
static void test_end_fails(void **state)
{
    struct kp_range *range;
    (void)state;
    t.cupti.cuptiPCSamplingSetConfigurationAttribute = note_records;
    assert_int_equal(kp_range_open(&t.cupti, t.ctx, &range), 0);
    open_sampling(0, 0);
    let_fail("cuptiPCSamplingDisable");
    assert_int_equal(kp_pcsamp_close(t.pcsamp), FAILS);
    let_fail(NULL);
    check_records();
    check_given_up();
    assert_int_equal(kp_range_start(range), KP_CUPTI_LOST);
    assert_int_equal(kp_range_close(range), 0);
    char *text = kp_cupti_explain(&t.cupti, "counters", KP_CUPTI_LOST);
    assert_non_null(strstr(text, "counters: CUPTI could not end its sampling"));
    free(text);
}

/* ---- each function of a CUPTI that is given up ---- */

static unsigned met;

static CUptiResult meet(void)
{
    met++;
    return CUPTI_SUCCESS;
}

/* All rows of the table. KP_CALL takes any table with these names, so one function stands for all. */
static struct {
#define KP_CUPTI(library, function, needed, lost) CUptiResult (*function)(void);
#include "cupti/cupti_api.def"
#undef KP_CUPTI
} every = {
#define KP_CUPTI(library, function, needed, lost) meet,
#include "cupti/cupti_api.def"
#undef KP_CUPTI
};

/* Whether the function may be called when CUPTI is lost: it counts on no device, and has no part in recording. */
static bool outlives(const char *function)
{
    static const char *const begins[] = {"cuptiProfilerHost", "NVPW_", "cuptiCheckpoint"};
    static const char *const names[] = {
        "cuptiGetVersion",
        "cuptiGetResultString",
        "cuptiRangeProfilerStop",
        "cuptiProfilerDisableProfiling",
        "cuptiProfilerEndPass",
        "cuptiRangeProfilerPopRange",
        "cuptiRangeProfilerGetCounterDataInfo",
        "cuptiPmSamplingStop",
        "cuptiPmSamplingDisable",
        "cuptiPmSamplingGetCounterDataInfo",
        "cuptiPmSamplingCounterDataGetSampleInfo",
        "cuptiActivityGetNextRecord",
        "cuptiPCSamplingStop",
        "cuptiSassMetricsDisable",
        "cuptiSassMetricsUnsetConfig",
    };
    for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
        if (!strncmp(function, begins[i], strlen(begins[i])))
            return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(function, names[i]))
            return true;
    return false;
}

/* Checks one row: called before; refused or called after, as the test's own list says. */
static void check_row(const char *function, int before, unsigned calls_before, int after, unsigned calls)
{
    bool called = outlives(function);
    if (before || calls_before != 1 || after != (called ? 0 : KP_CUPTI_LOST) || calls != (called ? 2U : 1U))
        fail_msg("%s: %d after %u calls, then %d after %u", function, before, calls_before, after, calls);
}

static void test_lost_rows(void **state)
{
    (void)state;
    int rows = 0;
    kp_cupti_forget_loss();
#define KP_CUPTI(library, function, needed, lost)                                                                      \
    {                                                                                                                  \
        met = 0;                                                                                                       \
        int before = KP_CALL(&every, function);                                                                        \
        unsigned calls = met;                                                                                          \
        kp_cupti_lose();                                                                                               \
        int after = KP_CALL(&every, function);                                                                         \
        kp_cupti_forget_loss();                                                                                        \
        check_row(#function, before, calls, after, met);                                                               \
        rows++;                                                                                                        \
    }
#include "cupti/cupti_api.def"
#undef KP_CUPTI
    assert_int_equal(rows, KP_CUPTI_FUNCTIONS);
}

/* Of the attributes each has a result of its own. */
static CUptiResult CUPTIAPI one_bad_attribute(CUpti_PCSamplingConfigurationInfoParams *p)
{
    CUptiResult rc = t.fake->cuptiPCSamplingSetConfigurationAttribute(p);
    p->pPCSamplingConfigurationInfo[p->numAttributes - 1].attributeStatus = (CUptiResult)FAILS;
    return rc;
}

static void test_attribute_fails(void **state)
{
    (void)state;
    t.cupti.cuptiPCSamplingSetConfigurationAttribute = one_bad_attribute;
    assert_int_equal(kp_pcsamp_open(&t.cupti, t.ctx, 3, 0, &t.pcsamp), FAILS);
    assert_null(t.pcsamp);
    t.cupti.cuptiPCSamplingSetConfigurationAttribute = t.fake->cuptiPCSamplingSetConfigurationAttribute;
    open_sampling(3, 0);
}

static void test_sampling_fails(void **state)
{
    struct kp_pcsamp_totals totals = {0};
    (void)state;
    open_sampling(KP_PCSAMP_INTERVAL_AUTO, 0);
    let_fail("cuptiPCSamplingStart");
    assert_int_equal(kp_pcsamp_start(t.pcsamp), FAILS);
    let_fail(NULL);
    uint64_t of_one = sample("increment", 1).samples;
    assert_int_equal(kp_pcsamp_start(t.pcsamp), 0);
    launch("increment", 1);
    let_fail("cuptiPCSamplingStop");
    assert_int_equal(kp_pcsamp_stop(t.pcsamp), FAILS);
    let_fail("cuptiPCSamplingGetData");
    assert_int_equal(kp_pcsamp_take(t.pcsamp, &totals, count_sample, &taken), FAILS);
    assert_int_equal(totals.samples, 0);
    let_fail(NULL);
    assert_int_equal(kp_pcsamp_stop(t.pcsamp), 0);
    assert_int_equal(take().samples, of_one); /* not lost by that */
}

/* A CUPTI that lacks a function samples nothing, and is not asked for anything. */
static void test_sampling_missing(void **state)
{
    (void)state;
    let_fail("cuptiPCSamplingEnable");
#define LACKS(function)                                                                                                \
    do {                                                                                                               \
        t.cupti.function = NULL;                                                                                       \
        t.pcsamp = (struct kp_pcsamp *)1;                                                                              \
        assert_int_equal(kp_pcsamp_open(&t.cupti, t.ctx, 0, 0, &t.pcsamp), -ENOSYS);                                   \
        assert_null(t.pcsamp);                                                                                         \
        t.cupti.function = t.fake->function;                                                                           \
    } while (0)
    LACKS(cuptiPCSamplingEnable);
    LACKS(cuptiPCSamplingDisable);
    LACKS(cuptiPCSamplingSetConfigurationAttribute);
    LACKS(cuptiPCSamplingGetConfigurationAttribute);
    LACKS(cuptiPCSamplingGetNumStallReasons);
    LACKS(cuptiPCSamplingGetStallReasons);
    LACKS(cuptiPCSamplingStart);
    LACKS(cuptiPCSamplingStop);
    LACKS(cuptiPCSamplingGetData);
#undef LACKS
    assert_int_equal(kp_pcsamp_open(&t.cupti, t.ctx, 0, 0, &t.pcsamp), FAILS);
}

/* The fake ends the process when it is asked to disable anything of a context that is gone. */
static void test_sampling_abandoned(void **state)
{
    (void)state;
    open_sampling(0, 0);
    sample("increment", 1);
    kp_test_context_end(t.ctx);
    kp_pcsamp_abandon(t.pcsamp);
    t.pcsamp = NULL;
    kp_pcsamp_abandon(NULL);
    kp_pcsamp_close(NULL);
    t.ctx = kp_test_context();
}

/* ---- SASS metrics ---- */

#define SASS "smsp__sass_"

/* In an order that is not the library's, one that no chip has among them. */
static const char *const metrics[] = {SASS "thread_inst_executed", SASS "no_such", SASS "inst_executed_op_global_ld",
                                      SASS "inst_executed", SASS "inst_executed_op_tma"};
enum { METRICS = sizeof(metrics) / sizeof(*metrics) };

static struct kp_sass *list; /* of device 0; made once a process */

static void test_sass_names(void **state)
{
    const char **names;
    size_t n, found = 0;
    (void)state;
    assert_int_equal(kp_sass_names(&t.cupti, chip, &names, &n), 0);
    assert_int_equal(n, 60);
    for (size_t i = 0; i < n; i++)
        found += !strcmp(names[i], metrics[0]) || !strcmp(names[i], metrics[3]);
    assert_int_equal(found, 2);
    free(names);
    let_fail("cuptiSassMetricsGetNumOfMetrics");
    assert_int_equal(kp_sass_names(&t.cupti, chip, &names, &n), FAILS);
    let_fail("cuptiSassMetricsGetMetrics");
    assert_int_equal(kp_sass_names(&t.cupti, chip, &names, &n), FAILS);
}

static void check_no_list(const char *const *names, size_t n, int rc)
{
    struct kp_sass *s = (struct kp_sass *)1;
    assert_int_equal(kp_sass_configure(&t.cupti, t.ctx, chip, 0, names, n, &s), rc);
    assert_null(s);
}

/* Before the first that goes well, which decides. */
static void test_sass_configure_fails(void **state)
{
    static const char *const functions[] = {"cuptiSassMetricsGetNumOfMetrics", "cuptiSassMetricsGetMetrics",
                                            "cuptiSassMetricsSetConfig"};
    const char **names;
    size_t n;
    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        let_fail(functions[i]);
        check_no_list(metrics, METRICS, FAILS);
    }
    let_fail(NULL);
    check_no_list(metrics + 1, 1, -ENOSYS);
    check_no_list(metrics, 0, -ENOSYS);
    let_fail("cuptiSassMetricsGetNumOfMetrics"); /* is not asked */
#define LACKS(function)                                                                                                \
    do {                                                                                                               \
        t.cupti.function = NULL;                                                                                       \
        check_no_list(metrics, METRICS, -ENOSYS);                                                                      \
        assert_int_equal(kp_sass_names(&t.cupti, chip, &names, &n), -ENOSYS);                                          \
        t.cupti.function = t.fake->function;                                                                           \
    } while (0)
    LACKS(cuptiSassMetricsGetNumOfMetrics);
    LACKS(cuptiSassMetricsGetMetrics);
    LACKS(cuptiSassMetricsSetConfig);
    LACKS(cuptiSassMetricsEnable);
    LACKS(cuptiSassMetricsDisable);
    LACKS(cuptiSassMetricsGetDataProperties);
    LACKS(cuptiSassMetricsFlushData);
#undef LACKS
    check_no_list(metrics, METRICS, FAILS);
}

/* The list goes with the table of functions, so all tests after this one use the same. */
static struct kp_cupti sass_cupti;
static CUcontext list_owner;

static void test_sass_configure(void **state)
{
    struct kp_sass *again, *other;
    size_t n;
    (void)state;
    sass_cupti = *t.fake;
    assert_int_equal(kp_sass_configure(&sass_cupti, t.ctx, chip, 0, metrics, METRICS, &list), 0);
    list_owner = t.ctx;
    const char *const *names = kp_sass_metrics(list, &n);
    assert_int_equal(n, METRICS - 1);
    for (size_t i = 0; i < METRICS; i++) {
        size_t found = 0;
        for (size_t k = 0; k < n; k++)
            found += !strcmp(names[k], metrics[i]);
        assert_int_equal(found, strcmp(metrics[i], SASS "no_such") != 0);
    }
    assert_int_equal(kp_sass_configure(&sass_cupti, t.ctx, chip, 0, metrics, 1, &again), 0);
    assert_ptr_equal(again, list);
    assert_int_equal(kp_sass_configure(&sass_cupti, t.ctx, chip, 1, metrics, 1, &other), 0);
    assert_ptr_not_equal(other, list);
    kp_sass_metrics(other, &n);
    assert_int_equal(n, 1);
    assert_int_equal(kp_sass_configure(&sass_cupti, t.ctx, chip, 1, metrics, METRICS, &again), 0);
    assert_ptr_equal(again, other);
    kp_sass_release(other, t.ctx); /* which ends with this test */
}

/* What was counted: of each metric at how many instructions, and the same value at each. */
static struct {
    unsigned places[METRICS];
    uint64_t values[METRICS];
    char function[64];
    uint32_t crc;
    uint32_t last;
} sass;

static size_t metric_of(const char *name)
{
    size_t i = 0;
    while (strcmp(metrics[i], name) != 0)
        i++;
    return i;
}

static void count_value(void *arg, const struct kp_pc *pc, size_t metric, uint64_t value)
{
    size_t n;
    assert_ptr_equal(arg, &sass);
    const char *const *names = kp_sass_metrics(list, &n);
    assert_true(metric < n && value);
    size_t m = metric_of(names[metric]);
    sass.places[m]++;
    sass.values[m] = value;
    snprintf(sass.function, sizeof(sass.function), "%s", pc->function);
    sass.crc = pc->crc;
    assert_int_equal(pc->offset % INSTRUCTION, 0);
    sass.last = pc->offset > sass.last ? pc->offset : sass.last;
}

static int end_counting(void)
{
    memset(&sass, 0, sizeof(sass));
    return kp_sass_end(list, t.ctx, count_value, &sass);
}

static void begin_counting(void)
{
    assert_non_null(list);
    assert_int_equal(kp_sass_begin(list, t.ctx), 0);
}

/* Each instruction up to the end of the code, by all warps and threads; a load is one of them. */
static void check_counts(const char *function, unsigned blocks)
{
    size_t all = metric_of(SASS "inst_executed"), threads = metric_of(SASS "thread_inst_executed"),
           loads = metric_of(SASS "inst_executed_op_global_ld");
    assert_string_equal(sass.function, function);
    assert_int_equal(sass.crc, (uint32_t)modules.crc);
    assert_int_equal(sass.places[all], sass.last / INSTRUCTION + 1);
    assert_int_equal(sass.values[all], blocks * N / WARP);
    assert_int_equal(sass.places[threads], sass.places[all]);
    assert_int_equal(sass.values[threads], blocks * N);
    assert_int_equal(sass.places[loads], 1);
    assert_int_equal(sass.values[loads], blocks * N / WARP);
    assert_int_equal(sass.places[metric_of(SASS "inst_executed_op_tma")], 0);
}

static void test_sass_counts(void **state)
{
    (void)state;
    launch("increment", 1);
    begin_counting();
    assert_int_equal(end_counting(), 0); /* nothing was launched */
    assert_int_equal(sass.places[metric_of(SASS "inst_executed")], 0);
    begin_counting();
    launch("increment", 3);
    assert_int_equal(end_counting(), 0);
    check_counts("increment", 3);
    launch("increment", 1);
    begin_counting();
    launch("atomic_count", 2);
    launch("atomic_count", 2);
    assert_int_equal(end_counting(), 0);
    check_counts("atomic_count", 4);
}

static void test_sass_fails(void **state)
{
    static const char *const functions[] = {"cuptiSassMetricsGetDataProperties", "cuptiSassMetricsFlushData",
                                            "cuptiSassMetricsDisable"};
    (void)state;
    let_fail("cuptiSassMetricsEnable");
    assert_int_equal(kp_sass_begin(list, t.ctx), FAILS);
    let_fail(NULL);
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        begin_counting();
        launch("increment", 1);
        let_fail(functions[i]);
        assert_int_equal(end_counting(), FAILS);
        let_fail(NULL);
        begin_counting(); /* it was disabled, or the fake would end the process */
        launch("increment", 1);
        assert_int_equal(end_counting(), 0);
        check_counts("increment", 1);
    }
}

/* Values of several metrics in one record, of one nobody asked for, and of a function without a name. */
static CUptiResult CUPTIAPI properties_of_several(CUpti_SassMetricsGetDataProperties_Params *p)
{
    p->numOfPatchedInstructionRecords = 2;
    p->numOfInstances = 3;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI flush_several(CUpti_SassMetricsFlushData_Params *p)
{
    CUpti_SassMetrics_GetMetrics_Params get = {.structSize = CUpti_SassMetrics_GetMetrics_Params_STRUCT_SIZE};
    CUpti_SassMetrics_MetricDetails details[60];
    get.pChipName = chip;
    get.numOfMetrics = 60;
    get.pMetricsList = details;
    assert_int_equal(t.fake->cuptiSassMetricsGetMetrics(&get), 0);
    assert_int_equal(p->numOfPatchedInstructionRecords, 2);
    assert_int_equal(p->numOfInstances, 3);
    for (size_t i = 0; i < 2; i++) {
        CUpti_SassMetrics_InstanceValue *v = p->pMetricsData[i].pInstanceValues;
        for (size_t k = 0, at = 0; k < 60; k++)
            if (!strcmp(details[k].pMetricName, metrics[0]) || !strcmp(details[k].pMetricName, metrics[3])) {
                v[at] = (CUpti_SassMetrics_InstanceValue){details[k].metricId, 70 + at};
                at++;
            }
        v[2] = (CUpti_SassMetrics_InstanceValue){1, 99};
        p->pMetricsData[i].functionName = i ? NULL : "several";
        p->pMetricsData[i].pcOffset = 32;
    }
    return CUPTI_SUCCESS;
}

static void test_sass_instances(void **state)
{
    (void)state;
    begin_counting();
    sass_cupti.cuptiSassMetricsGetDataProperties = properties_of_several;
    sass_cupti.cuptiSassMetricsFlushData = flush_several;
    int rc = end_counting();
    sass_cupti = *t.fake;
    assert_int_equal(rc, 0);
    assert_string_equal(sass.function, "several");
    assert_int_equal(sass.last, 32);
    assert_int_equal(sass.places[0] + sass.places[3], 2);
    assert_int_equal(sass.values[0] + sass.values[3], 70 + 71);
}

/* The list goes back with the context that CUPTI has its memory in, and with no other; there is no second one. */
static void test_sass_release(void **state)
{
    CUcontext other = kp_test_context();
    struct kp_sass *again;
    (void)state;
    kp_sass_release(NULL, other);
    kp_sass_release(list, other);
    assert_int_equal(kp_sass_configure(&sass_cupti, other, chip, 0, metrics, METRICS, &again), 0);
    assert_ptr_equal(again, list);
    kp_sass_release(list, list_owner);
    assert_int_equal(kp_sass_configure(&sass_cupti, other, chip, 0, metrics, METRICS, &again), KP_SASS_OVER);
    assert_null(again);
    kp_test_context_end(other);
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, begin, end)

/* In this order: what a process has once stays. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(test_cubins),
        ON_FAKE(test_reasons),
        ON_FAKE(test_reasons_with_holes),
        ON_FAKE(test_samples),
        ON_FAKE(test_between_start_and_stop),
        ON_FAKE(test_rounds),
        ON_FAKE(test_endless_data),
        ON_FAKE(test_interval),
        ON_FAKE(test_buffer),
        ON_FAKE(test_dropped),
        ON_FAKE(test_unrecognised),
        ON_FAKE(test_beside_ranges),
        ON_FAKE(test_open_fails),
        ON_FAKE(test_attribute_fails),
        ON_FAKE(test_sampling_fails),
        ON_FAKE(test_sampling_missing),
        ON_FAKE(test_sampling_abandoned),
        ON_FAKE(test_sass_names),
        ON_FAKE(test_sass_configure_fails),
        ON_FAKE(test_sass_configure),
        ON_FAKE(test_sass_counts),
        ON_FAKE(test_sass_fails),
        ON_FAKE(test_sass_instances),
        ON_FAKE(test_sass_release),
        cmocka_unit_test(test_lost_rows),
        ON_FAKE(test_end_fails),
    };
    return cmocka_run_group_tests(tests, load_fake, unload_fake);
}
