/* The passes beside the counters, by the collector over the fake driver and the fake CUPTI: what each launch did is its
 * own result's, in whatever window it is; what fails costs its own kind, once told of, never the counters; and memory
 * is what one execution leaves. The fake CUPTI ends the process when something is left enabled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "collectors/providers/provider.h"
#include "collectors/run/collector.h"
#include "cupti/internal.h"
#include "cupti/source.h"
#include "tests/fake/fake_image.h"
#include "tests/support/collect_support.h"
#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"
#include "tests/support/window_support.h"

enum { MOST = 16, FAILS = CUPTI_ERROR_UNKNOWN };

#define STALLED  "smsp__pcsamp_warps_issue_stalled_"
#define EXECUTED "inst_executed"

static const char chip[] = "GH100";
static const struct kp_device device = {.sm_count = 132, .l2_size = 5 << 20};

static struct kp_test_window *const w = &kp_test_window;

/* ---- the clock ---- */

static atomic_bool clock_ticks;   /* a look at the clock takes a microsecond, and nothing else takes time */
static atomic_uint_least64_t now; /* ns, then */

/* The C library's, for all of this process. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    enum { US = 1000, S = 1000000000 };
    if ((id >= 0 && id != CLOCK_MONOTONIC) || !atomic_load(&clock_ticks))
        return (int)syscall(SYS_clock_gettime, id, t);
    uint64_t ns = atomic_fetch_add(&now, US);
    t->tv_sec = (time_t)(ns / S);
    t->tv_nsec = (long)(ns % S);
    return 0;
}

static uint64_t read_ns(clockid_t id)
{
    struct timespec t;
    assert_int_equal(syscall(SYS_clock_gettime, id, &t), 0);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A preloaded library's clock, which may run ten times as fast, ends no wait, nor has a thread stopped by it. */
static void test_clock_of_waits(void **state)
{
    (void)state;
    clock_ticks = true;
    uint64_t before = read_ns(CLOCK_MONOTONIC), ms = (uint64_t)kp_now_ms(), after = read_ns(CLOCK_MONOTONIC);
    uint64_t spent = read_ns(CLOCK_THREAD_CPUTIME_ID), own = (uint64_t)kp_thread_cpu_time(kp_thread_id());
    uint64_t spent_by_now = read_ns(CLOCK_THREAD_CPUTIME_ID);
    clock_ticks = false;
    assert_in_range(ms, before / 1000000, after / 1000000);
    assert_in_range(own, spent, spent_by_now);
}

/* ---- CUPTI, logged ---- */

static struct kp_cupti *fake, cupti;

/* Function, word, type of the parameters. A call that is to fail does nothing; but what is disabled is so all the same,
 * as the fake has it. */
#define LOGGED_FUNCTIONS(X)                                                                                            \
    X(cuptiRangeProfilerEnable, "enable", CUpti_RangeProfiler_Enable_Params)                                           \
    X(cuptiRangeProfilerDisable, "disable", CUpti_RangeProfiler_Disable_Params)                                        \
    X(cuptiRangeProfilerSetConfig, "config", CUpti_RangeProfiler_SetConfig_Params)                                     \
    X(cuptiRangeProfilerStart, "start", CUpti_RangeProfiler_Start_Params)                                              \
    X(cuptiRangeProfilerStop, "stop", CUpti_RangeProfiler_Stop_Params)                                                 \
    X(cuptiProfilerBeginSession, "session", CUpti_Profiler_BeginSession_Params)                                        \
    X(cuptiProfilerBeginPass, "pass", CUpti_Profiler_BeginPass_Params)                                                 \
    X(cuptiProfilerEndSession, "end-session", CUpti_Profiler_EndSession_Params)                                        \
    X(cuptiPCSamplingEnable, "pc-on", CUpti_PCSamplingEnableParams)                                                    \
    X(cuptiPCSamplingGetConfigurationAttribute, "pc-get", CUpti_PCSamplingConfigurationInfoParams)                     \
    X(cuptiPCSamplingGetNumStallReasons, "pc-number", CUpti_PCSamplingGetNumStallReasonsParams)                        \
    X(cuptiPCSamplingGetStallReasons, "pc-reasons", CUpti_PCSamplingGetStallReasonsParams)                             \
    X(cuptiPCSamplingStart, "pc-start", CUpti_PCSamplingStartParams)                                                   \
    X(cuptiPCSamplingGetData, "pc-data", CUpti_PCSamplingGetDataParams)                                                \
    X(cuptiSassMetricsGetNumOfMetrics, "sass-number", CUpti_SassMetrics_GetNumOfMetrics_Params)                        \
    X(cuptiSassMetricsGetMetrics, "sass-list", CUpti_SassMetrics_GetMetrics_Params)                                    \
    X(cuptiSassMetricsSetConfig, "sass-config", CUpti_SassMetricsSetConfig_Params)                                     \
    X(cuptiSassMetricsEnable, "sass-on", CUpti_SassMetricsEnable_Params)                                               \
    X(cuptiSassMetricsGetDataProperties, "sass-size", CUpti_SassMetricsGetDataProperties_Params)                       \
    X(cuptiSassMetricsFlushData, "sass-flush", CUpti_SassMetricsFlushData_Params)                                      \
    X(cuptiPmSamplingEnable, "pm-on", CUpti_PmSampling_Enable_Params)                                                  \
    X(cuptiPmSamplingSetConfig, "pm-config", CUpti_PmSampling_SetConfig_Params)                                        \
    X(cuptiPmSamplingStart, "pm-start", CUpti_PmSampling_Start_Params)                                                 \
    X(cuptiPmSamplingGetCounterDataSize, "pm-size", CUpti_PmSampling_GetCounterDataSize_Params)                        \
    X(cuptiPmSamplingCounterDataImageInitialize, "pm-image", CUpti_PmSampling_CounterDataImage_Initialize_Params)      \
    X(cuptiPmSamplingDecodeData, "pm-decode", CUpti_PmSampling_DecodeData_Params)                                      \
    X(cuptiPmSamplingGetCounterDataInfo, "pm-info", CUpti_PmSampling_GetCounterDataInfo_Params)                        \
    X(cuptiPmSamplingCounterDataGetSampleInfo, "pm-sample", CUpti_PmSampling_CounterData_GetSampleInfo_Params)

#define ENDING_FUNCTIONS(X)                                                                                            \
    X(cuptiPCSamplingStop, "pc-stop", CUpti_PCSamplingStopParams)                                                      \
    X(cuptiSassMetricsDisable, "sass-off", CUpti_SassMetricsDisable_Params)                                            \
    X(cuptiPmSamplingStop, "pm-stop", CUpti_PmSampling_Stop_Params)                                                    \
    X(cuptiPmSamplingDisable, "pm-off", CUpti_PmSampling_Disable_Params)

#define DEFINE(name, word, type)                                                                                       \
    static CUptiResult CUPTIAPI log_##name(type *p)                                                                    \
    {                                                                                                                  \
        CUptiResult rc = (CUptiResult)kp_test_met(word);                                                               \
        return rc ? rc : fake->name(p);                                                                                \
    }
LOGGED_FUNCTIONS(DEFINE)
#undef DEFINE

#define DEFINE(name, word, type)                                                                                       \
    static CUptiResult CUPTIAPI log_##name(type *p)                                                                    \
    {                                                                                                                  \
        CUptiResult rc = (CUptiResult)kp_test_met(word), real = fake->name(p);                                         \
        return rc ? rc : real;                                                                                         \
    }
ENDING_FUNCTIONS(DEFINE)
#undef DEFINE

static size_t pc_buffer; /* byte of the device's memory that PC sampling has; 0 = it is off */

/* Is told what becomes of it. */
static CUptiResult CUPTIAPI log_pc_set(CUpti_PCSamplingConfigurationInfoParams *p)
{
    CUptiResult rc = (CUptiResult)kp_test_met("pc-set");
    for (size_t i = 0; i < p->numAttributes; i++) {
        const CUpti_PCSamplingConfigurationInfo *info = &p->pPCSamplingConfigurationInfo[i];
        if (info->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE)
            pc_buffer = info->attributeData.hardwareBufferSizeData.hardwareBufferSize;
    }
    return rc ? rc : fake->cuptiPCSamplingSetConfigurationAttribute(p);
}

static CUptiResult CUPTIAPI log_pc_off(CUpti_PCSamplingDisableParams *p)
{
    CUptiResult rc = (CUptiResult)kp_test_met("pc-off"), real = fake->cuptiPCSamplingDisable(p);
    pc_buffer = 0;
    return rc ? rc : real;
}

static double (*value_of)(const char *metric, const char *kernel, size_t range);
static double (*sample_of)(const char *metric, const char *kernel, size_t index);
static size_t (*samples_of)(const char *kernel);
static int *lose_rest = &(int){0};
static size_t *more_idle = (size_t[2]){0};
static uint64_t *sample_bytes = &(uint64_t){0};
static uint32_t room_asked, room_first, room_given; /* samples, see note_room */
static unsigned late_ns;                            /* see start_late */
static bool room_fails;                             /* when more than before is asked for */

/* ---- what is collected ---- */

static const char counter[] = "gpu__time_duration.sum";
/* Of two groups: they do not go together. */
static const char *const series[] = {"sm__warps_active.avg.pct_of_peak_sustained_elapsed",
                                     "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed"};
enum { SERIES = sizeof(series) / sizeof(*series) };
static const char metrics_list[] = "pmsampling:sm__warps_active.avg.pct_of_peak_sustained_elapsed,"
                                   "pmsampling:sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed";

static const char lost_list[] = "smsp__pcsamp_dropped_samples,"
                                "pmsampling:sm__warps_active.avg.pct_of_peak_sustained_elapsed,"
                                "pmsampling:sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed";

static struct kp_plan *plan, *by_session; /* the latter for sessions */

/* A context that lives as long as the process has the list of SASS metrics: it would go with the first test's. */
static void keep_list(void)
{
    static const char *const names[] = {
#define KP_SASS(metric, shown, unit) metric,
#include "collectors/providers/sass_metrics.def"
    };
    struct kp_sass *list;
    assert_int_equal(
        kp_sass_configure(&cupti, kp_test_context(), chip, 0, names, sizeof(names) / sizeof(*names), &list), 0);
}

static int open_library(void **state)
{
    char *err = NULL;
    (void)state;
    if (!getenv("KP_REAL_CUPTI"))
        return 0;
    if (kp_cupti_load(kp_test_dl(), kp_test_build("fake"), NULL, &fake, &err))
        fail_msg("%s", err);
    cupti = *fake;
#define TAKE_OVER(name, word, type) cupti.name = log_##name;
    LOGGED_FUNCTIONS(TAKE_OVER)
    ENDING_FUNCTIONS(TAKE_OVER)
#undef TAKE_OVER
    cupti.cuptiPCSamplingSetConfigurationAttribute = log_pc_set;
    cupti.cuptiPCSamplingDisable = log_pc_off;
    kp_test_log_checkpoints(&cupti, fake);
    void *handle = dlopen(kp_test_build("fake/libcupti.so.13"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    *(void **)&value_of = dlsym(handle, "fake_cupti_value");
    *(void **)&sample_of = dlsym(handle, "fake_cupti_pm_value");
    *(void **)&samples_of = dlsym(handle, "fake_cupti_pm_samples");
    *(void **)&lose_rest = dlsym(handle, "fake_cupti_pm_lose_rest");
    *(void **)&more_idle = dlsym(handle, "fake_cupti_pm_more_idle");
    *(void **)&sample_bytes = dlsym(handle, "fake_cupti_pc_sample_bytes");
    assert_true(value_of && sample_of && samples_of && lose_rest && more_idle && sample_bytes);
    if (kp_plan_make(&cupti, chip, NULL, 9, 0, NULL, 0, counter, 0, &plan, &err) ||
        kp_plan_make(&cupti, chip, NULL, 9, 0, NULL, 0, counter, 0, &by_session, &err))
        fail_msg("%s", err ? err : "plan");
    for (size_t g = 0; g < plan->n_groups; g++) { /* without a layout the range profiler counts it */
        free(plan->groups[g].layout);
        plan->groups[g].layout = NULL;
    }
    return 0;
}

static int close_library(void **state)
{
    (void)state;
    if (!fake)
        return 0;
    kp_plan_free(plan);
    kp_plan_free(by_session);
    kp_cupti_free(fake);
    return 0;
}

/* ---- the program: a window of launches over memory that each of them changes for good ---- */

static struct {
    CUcontext ctx;
    struct kp_collector *c;
    struct kp_collector_setup setup;
    struct kp_providers_setup providers;
    struct kp_window_outcome out;
    struct kp_result results[MOST];
    uint64_t reference[MOST]; /* samples of the launches, taken by hand */
} t;

static void settle(void)
{
}

static int set_up(void **state)
{
    (void)state;
    if (!fake)
        return 0;
    KP_PARAMS(CUpti_Profiler_Initialize_Params, init);
    memset(&t, 0, sizeof(t));
    t.ctx = kp_test_context();
    assert_int_equal(fake->cuptiProfilerInitialize(&init), 0);
    assert_int_equal(kp_cubins_keep(fake, 64 << 20, NULL), 0);
    kp_test_window_open();
    t.providers =
        (struct kp_providers_setup){.cc_major = 9,
                                    .kinds = KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS | KP_PROVIDER_PM,
                                    .codes = kp_codes_new(kp_cubins_find, false),
                                    .pcsamp_interval = KP_PCSAMP_INTERVAL_AUTO,
                                    .pm_interval = 1500, /* the automatic one depends on how busy the machine is */
                                    .metrics = metrics_list};
    t.setup = (struct kp_collector_setup){.driver = kp_test_driver(),
                                          .cupti = &cupti,
                                          .device = &device,
                                          .ctx = t.ctx,
                                          .chip = chip,
                                          .plan = plan,
                                          .one_pass = plan,
                                          .window = MOST,
                                          .memory = UINT64_C(1) << 30,
                                          .settle = settle,
                                          .providers = &t.providers};
    return 0;
}

static void free_results(void)
{
    for (size_t i = 0; i < MOST; i++)
        kp_result_free(&t.results[i]);
    kp_counters_free(t.out.counters);
    t.out.counters = NULL;
    kp_why_free(&t.out.why);
}

static int tear_down(void **state)
{
    (void)state;
    if (!fake)
        return 0;
    free_results();
    kp_collector_close(t.c, true);
    kp_codes_free(t.providers.codes);
    kp_test_context_end(t.ctx);
    *lose_rest = 0;
    *sample_bytes = 16;
    more_idle[0] = more_idle[1] = 0;
    room_given = w->us = late_ns = 0;
    room_fails = false;
    clock_ticks = false;
    return 0;
}

static void need_fake(void)
{
    if (!fake)
        kp_test_real_cupti(); /* skips, and says why */
}

static void open_collector(void)
{
    need_fake();
    kp_collector_close(t.c, true);
    assert_int_equal(kp_collector_open(&t.setup, &t.c), 0);
    kp_test_forget_calls();
}

/* Saved, and executed once by the program. */
static void run_first(void)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    free_results();
    kp_test_window_clear();
    if (kp_collector_save(t.c, &why))
        fail_msg("%s", kp_why_text(&why));
    kp_test_window_run();
}

/* The results are there, in the order of the launches that are wanted. */
static void evaluate(void)
{
    struct kp_result *list[MOST];
    size_t next = 0;
    if (!t.out.counters)
        fail_msg("no counters: %s", kp_why_text(&t.out.why) ? kp_why_text(&t.out.why) : "no reason given");
    assert_null(kp_why_text(&t.out.why));
    for (size_t i = 0; i < w->n; i++)
        if (w->wanted[i]) {
            list[next] = &t.results[next];
            list[next++]->launch.mangled = kp_strdup(kp_test_kernel_names[w->kernel[i]]);
        }
    assert_false(kp_counters_evaluate(t.out.counters, list).reason);
    kp_counters_free(t.out.counters);
    t.out.counters = NULL;
}

static void replay(const char *letters)
{
    kp_test_window_of(letters);
    run_first();
    kp_collector_replay(t.c, &w->job, &t.out);
    kp_collector_drop(t.c);
    kp_test_window_check_memory();
    evaluate();
}

/* ---- what results must hold ---- */

static bool has_prefix(const char *name, const char *prefix)
{
    return !strncmp(name, prefix, strlen(prefix));
}

static bool is_not_issued(const char *name)
{
    static const char mark[] = "_not_issued";
    return strlen(name) > strlen(mark) && !strcmp(name + strlen(name) - strlen(mark), mark);
}

static uint64_t sum_of(const struct kp_code_counts *s, const struct kp_code_metric *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n_offsets; i++)
        sum += m->values[i];
    return sum;
}

static uint64_t sampled(const struct kp_result *r)
{
    uint64_t sum = 0;
    for (size_t c = 0; c < r->n_counts; c++)
        for (size_t m = 0; m < r->counts[c].n_metrics; m++) {
            const struct kp_code_metric *one = &r->counts[c].metrics[m];
            if (has_prefix(one->name, STALLED) && !is_not_issued(one->name))
                sum += sum_of(&r->counts[c], one);
        }
    return sum;
}

static double number(const struct kp_result *r, const char *metric)
{
    double v = -1;
    kp_metric_number(kp_result_find(r, metric), &v);
    return v;
}

/* Each instruction that was executed was so by all warps of launch `i`, one a block. */
static void check_counts(const struct kp_result *r, size_t i)
{
    assert_int_equal(r->n_counts, 1);
    const struct kp_code *code = kp_codes_get(t.providers.codes, r->counts[0].code);
    assert_string_equal(code->function, kp_test_kernel_names[w->kernel[i]]);
    assert_true(code->n_instructions > 0);
    const uint64_t *executed = kp_code_counts_find(&r->counts[0], EXECUTED),
                   *threads = kp_code_counts_find(&r->counts[0], "thread_" EXECUTED);
    assert_non_null(executed);
    assert_non_null(threads);
    size_t n = 0;
    for (size_t k = 0; k < r->counts[0].n_offsets; k++) {
        assert_true(!k || r->counts[0].offsets[k] > r->counts[0].offsets[k - 1]);
        assert_non_null(kp_code_at(code, r->counts[0].offsets[k]));
        assert_true(executed[k] == kp_test_window_blocks(i) && threads[k] == 32 * executed[k]);
        n++;
    }
    assert_true(n > 8);
}

/* The metrics of one function are by name, each once. */
static void check_order(const struct kp_result *r)
{
    for (size_t c = 0; c < r->n_counts; c++)
        for (size_t m = 1; m < r->counts[c].n_metrics; m++)
            assert_true(strcmp(r->counts[c].metrics[m - 1].name, r->counts[c].metrics[m].name) < 0);
}

static void check_samples(const struct kp_result *r, size_t i)
{
    assert_int_equal(number(r, "smsp__pcsamp_sample_count"), t.reference[i]);
    assert_int_equal(sampled(r), t.reference[i]);
    assert_int_equal(number(r, "smsp__pcsamp_interval"), 6);
    assert_int_equal(number(r, "smsp__pcsamp_interval_cycles"), 2048);
    assert_int_equal(number(r, "smsp__pcsamp_buffer_size_bytes"), 32 << 20);
    assert_int_equal(number(r, "smsp__pcsamp_dropped_samples"), 0);
}

static void check_series(const struct kp_result *r, size_t i)
{
    const char *kernel = kp_test_kernel_names[w->kernel[i]];
    assert_int_equal(r->n_series, SERIES);
    for (size_t s = 0; s < SERIES; s++) {
        const struct kp_series *one = kp_result_find_series(r, series[s]);
        assert_non_null(one);
        assert_string_equal(one->unit, "%");
        assert_int_equal(one->n_values, samples_of(kernel));
        assert_int_equal(one->interval_ns, 1500);
        assert_int_equal(one->start_ns, 1500);
        for (size_t k = 0; k < one->n_values; k++)
            assert_true(one->values[k] == sample_of(series[s], kernel, k));
    }
    assert_int_equal(number(r, "profiler__pmsampler_pass_groups"), 2);
    assert_int_equal(number(r, "profiler__pmsampler_interval_time"), 1500);
    assert_int_equal(number(r, "profiler__pmsampler_dropped_samples"), 0);
}

/* What the kinds of `missing` would have is not there, all else is. */
static void check_result(const struct kp_result *r, size_t i, size_t range, unsigned missing)
{
    assert_true(number(r, counter) == value_of(counter, kp_test_kernel_names[w->kernel[i]], range));
    check_order(r);
    if (!(missing & KP_PROVIDER_PCSAMP))
        check_samples(r, i);
    if (!(missing & KP_PROVIDER_SASS))
        check_counts(r, i);
    if (!(missing & KP_PROVIDER_PM))
        check_series(r, i);
}

static void check_results(unsigned missing)
{
    for (size_t i = 0, next = 0; i < w->n; i++)
        if (w->wanted[i])
            check_result(&t.results[next++], i, i, missing);
}

/* Nothing of those kinds is there at all. */
static void check_absent(unsigned kinds)
{
    for (size_t i = 0; i < w->n_wanted; i++) {
        const struct kp_result *r = &t.results[i];
        if (kinds & KP_PROVIDER_PCSAMP)
            assert_true(!sampled(r) && !kp_result_find(r, "smsp__pcsamp_sample_count"));
        if (kinds & KP_PROVIDER_PM)
            assert_true(!r->n_series && !kp_result_find(r, "profiler__pmsampler_pass_groups"));
        for (size_t c = 0; kinds & KP_PROVIDER_SASS && c < r->n_counts; c++)
            assert_null(kp_code_counts_find(&r->counts[c], EXECUTED));
    }
}

/* ---- what to compare with ---- */

static void pass_over(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples)
{
    (void)arg, (void)pc, (void)reason, (void)samples;
}

/* What the launches of the window give to PC sampling alone, which knows the functions then. */
static void take_reference(const char *letters)
{
    struct kp_pcsamp *p;
    if (!fake)
        kp_test_real_cupti();
    kp_test_window_of(letters);
    assert_int_equal(kp_pcsamp_open(fake, t.ctx, KP_PCSAMP_INTERVAL_AUTO, 0, &p), 0);
    assert_int_equal(kp_pcsamp_start(p), 0);
    for (size_t i = 0; i < w->n; i++) {
        struct kp_pcsamp_totals totals = {0};
        assert_int_equal(kp_test_window_launch(i), CUDA_SUCCESS);
        assert_int_equal(kp_pcsamp_take(p, &totals, pass_over, NULL), 0);
        assert_true(totals.samples > 0);
        t.reference[i] = totals.samples;
    }
    assert_int_equal(kp_pcsamp_stop(p), 0);
    kp_pcsamp_close(p);
}

static const struct {
    unsigned kind;
    enum kp_reason reason;
} words[] = {{KP_PROVIDER_PCSAMP, KP_REASON_NOT_SAMPLED},
             {KP_PROVIDER_SASS, KP_REASON_SASS_NOT_COUNTED},
             {KP_PROVIDER_PM, KP_REASON_PM_NOT_SAMPLED}};

/* What a result lacks of each kind that was lost, of sections and of the list. */
static const struct {
    unsigned kind;
    const char *metric;
} lost_words[] = {
    {KP_PROVIDER_PCSAMP, "smsp__pcsamp_sample_count"},          {KP_PROVIDER_PCSAMP, STALLED "wait_not_issued"},
    {KP_PROVIDER_PCSAMP, "smsp__pcsamp_dropped_samples"},       {KP_PROVIDER_SASS, "thread_inst_executed_true"},
    {KP_PROVIDER_SASS, "memory_l2_theoretical_sectors_global"}, {KP_PROVIDER_SASS, "derived__avg_thread_executed"}};

/* Beside the series, what of the kinds is shown. */
static void ask_for_all(void)
{
    static const struct kp_section *section;
    section = kp_section_find("SourceCounters");
    assert_non_null(section);
    t.providers.sections = &section;
    t.providers.n_sections = 1;
    t.providers.metrics = lost_list;
}

/* There is one complaint of each of the kinds, and no other. */
static void check_complaints(unsigned kinds)
{
    char *text;
    unsigned told = 0;
    while ((text = kp_collector_complaint(t.c))) {
        for (size_t k = 0; k < sizeof(words) / sizeof(*words); k++)
            if (has_prefix(text, kp_reason_text(words[k].reason))) {
                assert_int_equal(told & words[k].kind, 0);
                told |= words[k].kind;
            }
        free(text);
    }
    assert_int_equal(told, kinds);
}

/* ---- windows ---- */

/* As a process takes one configuration only: the first test of all. */
static void test_sass_configuration_fails(void **state)
{
    static const char *const functions[] = {"sass-number", "sass-list", "sass-config"};
    (void)state;
    take_reference("AiC");
    for (size_t f = 0; f < sizeof(functions) / sizeof(*functions); f++) {
        open_collector();
        kp_test_fail(functions[f], 0, FAILS);
        replay("AiC");
        check_results(KP_PROVIDER_SASS);
        check_absent(KP_PROVIDER_SASS);
        check_complaints(KP_PROVIDER_SASS);
        kp_test_fail(functions[f], 0, 0);
        kp_test_forget_calls();
        replay("AiC"); /* it is not tried again */
        assert_int_equal(kp_test_count("sass-number") + kp_test_count("sass-on"), 0);
        check_results(KP_PROVIDER_SASS);
        check_complaints(0);
    }
    keep_list();
}

static void test_windows(void **state)
{
    (void)state;
    take_reference("AICAICAAICA");
    open_collector();
    for (int round = 0; round < 2; round++) {
        replay("AICAICAAICA");
        check_results(0);
    }
    replay("A");
    check_results(0);
    check_complaints(0);
    assert_int_equal(kp_codes_count(t.providers.codes), KP_TEST_KERNELS);
}

static void test_unwanted_between(void **state)
{
    (void)state;
    take_reference("aIcaACaIc");
    open_collector();
    replay("aIcaACaIc");
    check_results(0);
    replay("aic");
    check_complaints(0);
}

/* Caches are made cold before each launch of PC and PM sampling, as in the passes of the counters; what instructions do
 * is the same with warm ones. */
static void test_flush(void **state)
{
    (void)state;
    take_reference("AiC");
    t.setup.flush = true;
    open_collector();
    for (int by_kernel = 0; by_kernel < 2; by_kernel++) {
        if (by_kernel) {
            kp_test_driver()->cuMemCreate = NULL;
            open_collector();
        }
        replay("AiC");
        /* each launch of four passes, after one flush that is no launch's */
        assert_int_equal(kp_test_count("copy") + kp_test_count("kernel"), 1 + 2 * (1 + 1 + SERIES));
        for (size_t i = 0, next = 0; i < w->n; i++)
            if (w->wanted[i]) {
                check_result(&t.results[next], i, by_kernel ? i + next + 1 : i, 0); /* a sweep is a range, too */
                next++;
            }
        check_complaints(0);
    }
}

static const char in_order[] =
    "save restore rehearse enable disable config start stop session pass end-session pc-on pc-start pc-stop pc-off "
    "sass-on sass-off pm-on pm-start pm-stop pm-off drop";

/* The program's launches and the rehearsal are watched; PC sampling is over before the range profiler is enabled. That
 * is not enabled any more when the others are, nor when the program goes on. */
static void test_order(void **state)
{
    (void)state;
    take_reference("AI");
    open_collector();
    kp_collector_room(t.c);
    kp_test_calls(in_order, "enable disable");
    replay("AI");
    assert_int_equal(plan->passes, 1);
    kp_test_calls(in_order, "save pc-on restore rehearse restore pc-start pc-stop pc-off "
                            "enable config restore start stop disable "
                            "restore sass-on sass-off sass-on sass-off "
                            "pm-on restore pm-start pm-stop pm-start pm-stop pm-off "
                            "pm-on restore pm-start pm-stop pm-start pm-stop pm-off drop");
    check_results(0);
}

/* A session is not there beside the others either. */
static void test_order_with_sessions(void **state)
{
    (void)state;
    t.setup.plan = by_session;
    take_reference("AI");
    open_collector();
    kp_collector_room(t.c);
    for (int i = 0; i < 2; i++) {
        replay("AI");
        kp_test_calls(in_order, "save pc-on restore rehearse restore pc-start pc-stop pc-off "
                                "session restore pass end-session "
                                "restore sass-on sass-off sass-on sass-off "
                                "pm-on restore pm-start pm-stop pm-start pm-stop pm-off "
                                "pm-on restore pm-start pm-stop pm-start pm-stop pm-off drop");
        check_results(0);
        kp_test_forget_calls();
    }
}

/* Functions that come up after the range profiler was enabled. */
static void test_new_functions(void **state)
{
    (void)state;
    open_collector();
    replay("A");
    kp_test_forget_calls();
    for (int round = 0; round < 3; round++) {
        w->job.probe = round == 2;
        kp_test_window_load();
        replay("IC");
        for (size_t i = 0; i < 2; i++) {
            assert_true(number(&t.results[i], "smsp__pcsamp_sample_count") > 0);
            assert_int_equal(sampled(&t.results[i]), number(&t.results[i], "smsp__pcsamp_sample_count"));
        }
        assert_int_equal(w->job.n_executed, round == 2 ? w->n : 0);
        kp_test_calls("pc-on pc-off rehearse",
                      w->job.probe ? "pc-on pc-off rehearse pc-on rehearse pc-off" : "pc-on rehearse pc-off");
    }
    /* launched the first time where nobody watched: its samples are told, but of no instruction */
    kp_test_window_load();
    kp_test_window_of("I");
    assert_int_equal(kp_test_window_launch(0), CUDA_SUCCESS);
    replay("I");
    assert_true(number(&t.results[0], "smsp__pcsamp_sample_count") > 0);
    assert_int_equal(sampled(&t.results[0]), 0);
    check_counts(&t.results[0], 0);
}

/* Reasons whose indexes are not those of the names gathered. */
enum { WAIT = 2, LONG_SCOREBOARD = 5 };

static CUptiResult CUPTIAPI two_reasons(CUpti_PCSamplingGetStallReasonsParams *p)
{
    static const char *const names[] = {"later", "earlier"};
    static const uint32_t indexes[] = {LONG_SCOREBOARD, WAIT};
    for (size_t i = 0; i < 2; i++) {
        p->stallReasonIndex[i] = indexes[i];
        snprintf(p->stallReasons[i], CUPTI_STALL_REASON_STRING_SIZE, "%s", names[i]);
    }
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI number_of_two(CUpti_PCSamplingGetNumStallReasonsParams *p)
{
    *p->numStallReasons = 2;
    return CUPTI_SUCCESS;
}

static uint64_t total(const struct kp_result *r, const char *metric)
{
    for (size_t m = 0; r->n_counts && m < r->counts[0].n_metrics; m++)
        if (!strcmp(r->counts[0].metrics[m].name, metric))
            return sum_of(&r->counts[0], &r->counts[0].metrics[m]);
    return 0;
}

static void test_names_of_reasons(void **state)
{
    struct kp_cupti two;
    (void)state;
    t.providers.kinds = KP_PROVIDER_PCSAMP;
    open_collector();
    replay("I");
    uint64_t wait = total(&t.results[0], STALLED "wait"), board = total(&t.results[0], STALLED "long_scoreboard");
    assert_true(wait && board && wait != board);
    two = cupti;
    two.cuptiPCSamplingGetNumStallReasons = number_of_two;
    two.cuptiPCSamplingGetStallReasons = two_reasons;
    t.setup.cupti = &two;
    open_collector();
    replay("I");
    assert_int_equal(t.results[0].counts[0].n_metrics, 2);
    assert_int_equal(total(&t.results[0], "earlier"), wait);
    assert_int_equal(total(&t.results[0], "later"), board);
    kp_collector_close(t.c, true);
    t.c = NULL;
}

/* The first sample after a start has what came before it, too. */
static bool first_is_busy;

static CUptiResult CUPTIAPI evaluate_sample(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    CUptiResult rc = fake->cuptiProfilerHostEvaluateToGpuValues(p);
    for (size_t i = 0; first_is_busy && !p->rangeIndex && i < p->numMetrics; i++)
        p->pMetricValues[i] = 5;
    return rc;
}

static void test_first_sample(void **state)
{
    struct kp_cupti noting = cupti;
    (void)state;
    noting.cuptiProfilerHostEvaluateToGpuValues = evaluate_sample;
    t.setup.cupti = &noting;
    t.providers.kinds = KP_PROVIDER_PM;
    open_collector();
    first_is_busy = true;
    replay("AI");
    first_is_busy = false;
    for (size_t i = 0; i < 2; i++)
        check_series(&t.results[i], i);
    kp_collector_close(t.c, true);
    t.c = NULL;
}

/* A long launch has a larger buffer, by what it took under the counters, whatever was done between. It has room for its
 * samples by what it took while it was sampled. */
static CUptiResult CUPTIAPI note_room(CUpti_PmSampling_GetCounterDataSize_Params *p)
{
    CUpti_PmSampling_GetCounterDataSize_Params given = *p;
    if (room_fails && p->maxSamples > room_asked)
        return CUPTI_ERROR_UNKNOWN;
    room_asked = p->maxSamples;
    room_first = room_first ? room_first : room_asked;
    if (room_given)
        given.maxSamples = room_given;
    CUptiResult rc = fake->cuptiPmSamplingGetCounterDataSize(&given);
    p->counterDataSize = given.counterDataSize;
    return rc;
}

static void note_rooms(void)
{
    static struct kp_cupti noting; /* the collector has it until the test is torn down */
    noting = cupti;
    noting.cuptiPmSamplingGetCounterDataSize = note_room;
    t.setup.cupti = &noting;
}

static void test_room(void **state)
{
    enum { LAUNCH_US = 2500, INTERVAL_NS = 1500, IDLE = 128, LEAST = 256, LEAST_BUFFER = 30998528, SAMPLE = 36 << 10 };
    (void)state;
    note_rooms();
    t.providers.pm_interval = INTERVAL_NS;
    for (unsigned long_one = 0; long_one < 2; long_one++) {
        open_collector();
        w->us = long_one * LAUNCH_US;
        room_asked = room_first = 0;
        replay("AI");
        w->us = 0;
        assert_true(room_first >= LEAST); /* samples without room are lost */
        double buffer = number(&t.results[0], "profiler__pmsampler_buffer_size_bytes");
        assert_true(buffer >= LEAST_BUFFER);
        if (long_one) {
            assert_in_range(room_asked, LAUNCH_US * 1000 / INTERVAL_NS + 48, 4096);
            assert_true(buffer >= (IDLE + LAUNCH_US * 1000 / INTERVAL_NS) * (double)SAMPLE);
        }
        kp_collector_close(t.c, true);
        t.c = NULL;
    }
}

/* Long launches are sampled less often, so that the samples of one stay few. */
static void test_auto_interval(void **state)
{
    enum { LAUNCH_US = 6000, MOST_SAMPLES = 3072 };
    (void)state;
    t.providers.kinds = KP_PROVIDER_PM;
    t.providers.pm_interval = 0;
    open_collector();
    w->us = LAUNCH_US;
    replay("AI");
    double interval = number(&t.results[0], "profiler__pmsampler_interval_time");
    assert_true(interval >= 3000 && LAUNCH_US * 1000 / interval <= MOST_SAMPLES);
    assert_true(interval / 1500 == (double)((uint64_t)interval / 1500)); /* the shortest, doubled */
    assert_int_equal(t.results[0].series[0].interval_ns, interval);
}

/* Without more room, what fits is read. */
static void test_no_room(void **state)
{
    (void)state;
    note_rooms();
    t.providers.kinds = KP_PROVIDER_PM;
    open_collector();
    room_asked = 256; /* as it is at first */
    room_fails = true;
    w->us = 1000;
    replay("AI");
    w->us = 0;
    for (size_t i = 0; i < 2; i++)
        check_series(&t.results[i], i);
    check_complaints(0);
    kp_collector_close(t.c, true);
    t.c = NULL;
}

/* A series that ends early for want of room does not pass for a whole one. */
static void test_rest_lost(void **state)
{
    enum { ROOM = 8 }; /* with the idle ones that come first, too few for any kernel */
    (void)state;
    note_rooms();
    t.providers.kinds = KP_PROVIDER_PM;
    room_given = ROOM;
    for (*lose_rest = 0; *lose_rest < 2; ++*lose_rest) {
        open_collector();
        replay("AI");
        for (size_t i = 0; i < 2; i++) {
            if (!*lose_rest) {
                check_series(&t.results[i], i);
                continue;
            }
            assert_true(t.results[i].n_series > 0 && t.results[i].series[0].n_values < ROOM);
            assert_true(number(&t.results[i], "profiler__pmsampler_dropped_samples") > 0);
        }
        kp_collector_close(t.c, true);
        t.c = NULL;
    }
}

/* Takes longer, and the sampling has begun before. */
static CUptiResult CUPTIAPI start_late(CUpti_PmSampling_Start_Params *p)
{
    CUptiResult rc = fake->cuptiPmSamplingStart(p);
    atomic_fetch_add(&now, late_ns);
    return rc;
}

/* Replays behind others: the log of calls does not take as many. */
static void replay_again(const char *kernels)
{
    kp_test_forget_calls();
    replay(kernels);
}

/* Returns how many launches have lost samples. */
static size_t dropped(void)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_wanted; i++)
        n += number(&t.results[i], "profiler__pmsampler_dropped_samples") > 0;
    return n;
}

/* There is room for the samples up to a launch's end alone, which the launches before have told. */
static void test_room_by_launches(void **state)
{
    enum { BEFORE = 24, BEHIND = 150, LATE_NS = 3000000, LATE = LATE_NS / 1500, RUNS = 8 };
    struct kp_cupti noting = cupti;
    (void)state;
    need_fake();
    clock_ticks = true;
    noting.cuptiPmSamplingGetCounterDataSize = note_room;
    noting.cuptiPmSamplingStart = start_late;
    noting.cuptiPmSamplingCounterDataGetSampleInfo = fake->cuptiPmSamplingCounterDataGetSampleInfo; /* is not logged */
    t.setup.cupti = &noting;
    t.providers.kinds = KP_PROVIDER_PM;
    more_idle[0] = BEFORE;
    more_idle[1] = BEHIND;
    *lose_rest = 1;
    open_collector();
    replay("AIAIAIAI");
    check_results(~(unsigned)KP_PROVIDER_PM);
    for (unsigned i = 0; i < RUNS; i++)
        replay_again("AI");
    assert_in_range(room_asked, BEFORE, BEFORE + BEHIND);
    more_idle[0] += LATE; /* in the time that the start takes longer */
    late_ns = LATE_NS;
    replay_again("AI");
    late_ns = 0;
    assert_int_equal(dropped(), 0);
    check_results(~(unsigned)KP_PROVIDER_PM);
    kp_collector_close(t.c, true);
    t.c = NULL;
}

/* What comes so late that no launch before told of it is lost, which is told, and not for long. */
static void test_room_too_small(void **state)
{
    enum { FAR = 3000 };
    struct kp_cupti quiet = cupti;
    (void)state;
    need_fake();
    clock_ticks = true;
    quiet.cuptiPmSamplingCounterDataGetSampleInfo = fake->cuptiPmSamplingCounterDataGetSampleInfo;
    t.setup.cupti = &quiet;
    t.providers.kinds = KP_PROVIDER_PM;
    *lose_rest = 1;
    open_collector();
    replay("AI");
    assert_int_equal(dropped(), 0);
    more_idle[0] = FAR;
    replay_again("AI");
    assert_true(dropped() > 0);
    for (unsigned i = 0; i < 20 && dropped(); i++)
        replay_again("AI");
    assert_int_equal(dropped(), 0);
    check_results(~(unsigned)KP_PROVIDER_PM);
    kp_collector_close(t.c, true);
    t.c = NULL;
}

static void check_none_asked(void)
{
    static const char *const functions[] = {"pc-start", "sass-on", "pm-on"};
    for (size_t f = 0; f < sizeof(functions) / sizeof(*functions); f++)
        assert_int_equal(kp_test_count(functions[f]), 0);
}

/* Graphs have counters only. */
static void test_user_range(void **state)
{
    (void)state;
    open_collector();
    w->job.mode = KP_RANGE_USER;
    replay("AiC");
    check_absent(KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS | KP_PROVIDER_PM);
    assert_true(number(&t.results[0], counter) == value_of(counter, "append", 0));
    assert_true(number(&t.results[1], counter) == value_of(counter, "atomic_count", 1));
    check_none_asked();
    kp_test_calls("pc-on pc-off restore rehearse config", "pc-on pc-off restore rehearse config restore");
    check_complaints(0);
}

/* So have launches that are counted as they come. */
static void test_counting(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    open_collector();
    kp_test_window_of("AI");
    assert_int_equal(kp_collector_count_begin(t.c, KP_RANGE_AUTO, w->n, 0, &why), 0);
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(kp_test_window_launch(i), CUDA_SUCCESS);
    kp_collector_count_end(t.c, &w->job, &t.out);
    evaluate();
    check_absent(KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS | KP_PROVIDER_PM);
    check_none_asked();
    assert_int_equal(kp_test_count("pc-on"), 0);
    assert_int_equal(kp_test_count("disable"), kp_test_count("enable"));
}

/* Runs the window without replay for a group besides the counters, of launches that take about so long; the driver
 * refuses launch `refused` at first. */
static void run_long(const char *letters, size_t group, size_t refused, uint64_t longest_ns)
{
    enum { ROOM = MOST };
    struct kp_why why = {KP_REASON_NONE, NULL};
    free_results();
    kp_test_window_of(letters);
    if (kp_collector_beside_begin(t.c, group, ROOM, longest_ns, &why))
        fail_msg("%s", kp_why_text(&why));
    const struct kp_issue_hooks *hooks = kp_collector_count_hooks(t.c);
    for (size_t i = 0; i < w->n; i++) {
        for (bool again = i == refused; w->wanted[i]; again = false) {
            assert_int_equal(hooks->before(hooks->arg, NULL), CUDA_SUCCESS);
            if (!again)
                break;
            kp_collector_count_refused(t.c);
        }
        assert_int_equal(kp_test_window_launch(i), CUDA_SUCCESS);
        if (w->wanted[i])
            assert_int_equal(hooks->after(hooks->arg), CUDA_SUCCESS);
    }
    kp_collector_count_end(t.c, &w->job, &t.out);
}

static void run_beside(const char *letters, size_t group, size_t refused)
{
    run_long(letters, group, refused, 0);
}

/* The automatic interval of samples over time is by how long launches are known to take. */
static void test_interval_without_replay(void **state)
{
    static const struct {
        uint64_t longest_ns, interval_ns;
    } rows[] = {{0, 1500}, {4000000, 1500}, {10000000, 6000}};
    (void)state;
    t.providers.pm_interval = 0;
    open_collector();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        run_long("A", 2, SIZE_MAX, rows[i].longest_ns);
        evaluate();
        assert_int_equal(number(&t.results[0], "profiler__pmsampler_interval_time"), rows[i].interval_ns);
    }
}

/* Groups of a rotation: launches as they come, each with what its provider gives, and nothing else. */
static void test_groups_without_replay(void **state)
{
    static const struct {
        unsigned kind;
        bool adds_up, first;
    } groups[] = {{KP_PROVIDER_PCSAMP, true, true},
                  {KP_PROVIDER_SASS, false, false},
                  {KP_PROVIDER_PM, false, false},
                  {KP_PROVIDER_PM, false, false}};
    enum { ALL = KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS | KP_PROVIDER_PM };
    (void)state;
    take_reference("AiCI");
    open_collector();
    assert_int_equal(kp_collector_beside(t.c), sizeof(groups) / sizeof(*groups));
    for (size_t refused = 0; refused < 5; refused++)
        for (size_t g = 0; g < sizeof(groups) / sizeof(*groups); g++) {
            struct kp_beside b = kp_collector_beside_at(t.c, g);
            assert_true(b.adds_up == groups[g].adds_up && b.first == groups[g].first);
            run_beside("AiCI", g, refused);
            for (size_t i = 0; i < w->n_wanted; i++)
                assert_false(kp_counters_lost(t.out.counters, i).reason);
            evaluate();
            check_absent(ALL & ~groups[g].kind);
            for (size_t i = 0, next = 0; i < w->n; i++) {
                const struct kp_result *r = &t.results[next];
                next += w->wanted[i];
                if (w->wanted[i] && groups[g].kind == KP_PROVIDER_PCSAMP)
                    check_samples(r, i);
                if (w->wanted[i] && groups[g].kind == KP_PROVIDER_SASS)
                    check_counts(r, i);
                if (w->wanted[i] && groups[g].kind == KP_PROVIDER_PM)
                    assert_int_equal(kp_result_find_series(r, series[g - 2])->n_values,
                                     samples_of(kp_test_kernel_names[w->kernel[i]]));
                assert_null(w->wanted[i] ? kp_result_find(r, counter) : NULL);
            }
        }
    assert_int_equal(kp_test_count("save") + kp_test_count("restore"), 0);
    check_complaints(0);
}

/* Returns the launch of the window with the most samples. */
static size_t most_sampled(void)
{
    size_t most = 0;
    for (size_t i = 1; i < w->n; i++)
        most = t.reference[i] > t.reference[most] ? i : most;
    return most;
}

/* A launch with more samples than the device's buffer holds is sampled again with more room, at last less often. The
 * others keep what they have. */
static void test_more_samples_than_room(void **state)
{
    enum { USUAL = 32 << 20, LARGE = 512 << 20 };
    static const struct {
        uint64_t room; /* that the launch with the most samples fills */
        size_t buffer;
        int interval, rarer;
    } rows[] = {{USUAL, LARGE, 6, 0}, {LARGE, LARGE, 8, 2}, {8 * (uint64_t)LARGE, LARGE, 10, 4}};
    (void)state;
    take_reference("AICA");
    const size_t most = most_sampled();
    for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
        ask_for_all();
        open_collector();
        *sample_bytes = rows[k].room / t.reference[most] + 1;
        replay("AICA");
        check_complaints(0);
        for (size_t i = 0; i < w->n; i++) {
            const struct kp_result *r = &t.results[i];
            assert_int_equal(sampled(r), number(r, "smsp__pcsamp_sample_count"));
            if (t.reference[i] * *sample_bytes < LARGE)
                assert_int_equal(sampled(r), t.reference[i]);
        }
        const struct kp_result *r = &t.results[most];
        assert_int_equal(number(r, "smsp__pcsamp_buffer_size_bytes"), rows[k].buffer);
        assert_int_equal(number(r, "smsp__pcsamp_interval"), rows[k].interval);
        assert_true(number(r, "smsp__pcsamp_sample_count") > 0);
        assert_true(number(r, "smsp__pcsamp_sample_count") <= (double)(t.reference[most] >> rows[k].rarer));
        replay("AICA"); /* begins as the first one did */
        if (t.reference[0] * *sample_bytes < USUAL)
            assert_int_equal(number(&t.results[0], "smsp__pcsamp_interval"), 6);
        assert_int_equal(number(&t.results[most], "smsp__pcsamp_buffer_size_bytes"), LARGE);
    }
}

/* The large buffer is there for passes that need it: not while launches of the program are watched, nor behind. */
static void test_large_buffer_for_passes(void **state)
{
    enum { USUAL = 32 << 20 };
    (void)state;
    take_reference("AICA");
    const size_t most = most_sampled();
    ask_for_all();
    open_collector();
    *sample_bytes = USUAL / t.reference[most] + 1;
    replay("AICA");
    assert_int_equal(number(&t.results[most], "smsp__pcsamp_buffer_size_bytes"), 512 << 20);
    assert_int_equal(pc_buffer, 0);
    run_first();
    assert_int_equal(pc_buffer, USUAL);
    kp_collector_drop(t.c);
    assert_int_equal(pc_buffer, 0);
    *sample_bytes = 16; /* shorter launches */
    replay("AICA");
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(number(&t.results[i], "smsp__pcsamp_buffer_size_bytes"), USUAL);
    assert_int_equal(pc_buffer, 0);
}

/* What the user has set stays: that launch alone has no samples, and a line says what to raise. */
static void test_samples_beyond_what_is_set(void **state)
{
    (void)state;
    take_reference("AICA");
    const size_t most = most_sampled();
    ask_for_all();
    t.providers.pcsamp_buffer = 1 << 20;
    t.providers.pcsamp_interval = 6;
    open_collector();
    *sample_bytes = (1 << 20) / t.reference[most] + 1;
    replay("AICA");
    char *text = kp_collector_complaint(t.c);
    assert_true(text && strstr(text, "warp states are not sampled of a launch: it had more samples") &&
                strstr(text, "raise warp-sampling-interval or warp-sampling-buffer-size"));
    free(text);
    assert_null(kp_collector_complaint(t.c));
    for (size_t i = 0; i < w->n; i++) {
        const struct kp_metric *m = kp_result_find(&t.results[i], "smsp__pcsamp_sample_count");
        assert_non_null(m);
        if (i == most)
            assert_true(m->kind == KP_VALUE_NA && strstr(m->text, "more samples than the device's buffer holds"));
        else
            assert_int_equal(sampled(&t.results[i]), t.reference[i]);
    }
}

/* Without the memory for a large buffer, samples get rarer. */
static void test_no_room_for_a_large_buffer(void **state)
{
    (void)state;
    take_reference("AICA");
    const size_t most = most_sampled();
    open_collector();
    *sample_bytes = (32 << 20) / t.reference[most] + 1;
    kp_test_fail("pc-on", 2, KP_CUPTI_OUT_OF_MEMORY);
    replay("AICA");
    kp_test_fail("pc-on", 0, 0);
    check_complaints(0);
    assert_int_equal(number(&t.results[most], "smsp__pcsamp_buffer_size_bytes"), 32 << 20);
    assert_int_equal(number(&t.results[most], "smsp__pcsamp_interval"), 8);
    for (size_t i = 0; i < w->n; i++)
        assert_true(sampled(&t.results[i]) > 0);
}

/* Without replay the launch is lost, and the next one has the room. */
static void test_more_samples_without_replay(void **state)
{
    (void)state;
    take_reference("AICA");
    const size_t most = most_sampled();
    ask_for_all();
    open_collector();
    *sample_bytes = (32 << 20) / t.reference[most] + 1;
    run_beside("AICA", 0, SIZE_MAX);
    struct kp_why lost = kp_counters_lost(t.out.counters, most);
    assert_int_equal(lost.reason, KP_REASON_FLOODED_ONCE);
    assert_non_null(strstr(kp_why_text(&lost), "which is larger from now on"));
    check_complaints(KP_PROVIDER_PCSAMP);
    run_beside("AICA", 0, SIZE_MAX);
    assert_false(kp_counters_lost(t.out.counters, w->n - 1).reason);
    assert_int_equal(pc_buffer, 0);
    evaluate();
    assert_true(sampled(&t.results[most]) > 0);
    check_complaints(0);
    *sample_bytes = 16;
    run_long("AICA", 0, SIZE_MAX, 1000000); /* too short to need it */
    evaluate();
    assert_int_equal(number(&t.results[most], "smsp__pcsamp_buffer_size_bytes"), 32 << 20);
    check_complaints(0);
}

/* What fails costs the launches from there on, with the reason; a provider that is gone keeps its number. */
static void test_groups_that_fail(void **state)
{
    static const struct {
        const char *call, *metric;
        size_t group;
    } rows[] = {{"pc-data", "smsp__pcsamp_sample_count", 0}, {"sass-flush", "thread_inst_executed_true", 1}};
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    ask_for_all();
    open_collector();
    for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
        kp_test_fail(rows[k].call, k ? 2 : 4, FAILS); /* of the second launch; warp states are read before it, too */
        run_beside("AIC", rows[k].group, SIZE_MAX);
        kp_test_fail(rows[k].call, 0, 0);
        assert_false(kp_counters_lost(t.out.counters, 0).reason);
        assert_true(kp_counters_lost(t.out.counters, 1).reason && kp_counters_lost(t.out.counters, 2).reason);
        evaluate();
        assert_true(k ? t.results[0].n_counts > 0 : number(&t.results[0], rows[k].metric) > 0);
        assert_int_equal(kp_result_find(&t.results[1], rows[k].metric)->kind, KP_VALUE_NA);
    }
    check_complaints(KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS);
    kp_test_fail("pc-on", 1, FAILS);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(kp_collector_beside_begin(t.c, 0, MOST, 0, &why), -1);
        assert_true(has_prefix(kp_why_text(&why), kp_reason_text(words[0].reason)));
        kp_why_free(&why);
    }
    kp_test_fail("pc-on", 0, 0);
    assert_int_equal(kp_collector_beside(t.c), 4);
    run_beside("A", 1, SIZE_MAX);
    assert_false(kp_counters_lost(t.out.counters, 0).reason);
    evaluate();
    check_counts(&t.results[0], 0);
    assert_int_equal(
        kp_collector_beside_missing(t.c, 0, kp_why_of(KP_REASON_NOT_SAMPLED, (char *)"gone"), &t.results[0]), 0);
    assert_string_equal(kp_result_find(&t.results[0], rows[0].metric)->text, "gone");
}

/* Each kind by itself. */
static void test_single_kinds(void **state)
{
    enum { ALL = KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS | KP_PROVIDER_PM };
    (void)state;
    take_reference("AiC");
    for (unsigned kinds = 0; kinds <= ALL; kinds++) {
        t.providers.kinds = kinds;
        open_collector();
        replay("AiC");
        check_results(ALL & ~kinds);
        check_absent(ALL & ~kinds);
        check_complaints(0);
    }
}

/* A plan without counters. */
static void test_without_counters(void **state)
{
    struct kp_plan *none = NULL;
    char *err = NULL;
    (void)state;
    take_reference("AiC");
    assert_int_equal(kp_plan_make(&cupti, chip, NULL, 9, 0, NULL, 0, "", 0, &none, &err), 0);
    assert_int_equal(none->n_groups, 0);
    t.setup.plan = none;
    open_collector();
    replay("AiC");
    for (size_t i = 0; i < w->n_wanted; i++) {
        check_samples(&t.results[i], 2 * i);
        check_counts(&t.results[i], 2 * i);
        check_series(&t.results[i], 2 * i);
    }
    assert_int_equal(kp_test_count("enable"), 0);
    kp_collector_close(t.c, true);
    t.c = NULL;
    kp_plan_free(none);
}

/* ---- failures ---- */

/* Functions that fail, and what is missed then: for good, where a pass could not be begun. What ends something may fail
 * without a loss. */
static const struct {
    const char *word;
    unsigned kind;
    bool for_good;
} failing[] = {
    {"pc-on", KP_PROVIDER_PCSAMP, true},
    {"pc-set", KP_PROVIDER_PCSAMP, true},
    {"pc-get", KP_PROVIDER_PCSAMP, true},
    {"pc-number", KP_PROVIDER_PCSAMP, true},
    {"pc-reasons", KP_PROVIDER_PCSAMP, true},
    {"pc-start", KP_PROVIDER_PCSAMP, true},
    {"pc-data", KP_PROVIDER_PCSAMP, false},
    {"pc-stop", 0, false},
    {"sass-on", KP_PROVIDER_SASS, false},
    {"sass-size", KP_PROVIDER_SASS, false},
    {"sass-flush", KP_PROVIDER_SASS, false},
    {"sass-off", KP_PROVIDER_SASS, false},
    {"pm-on", KP_PROVIDER_PM, true},
    {"pm-config", KP_PROVIDER_PM, true},
    {"pm-size", KP_PROVIDER_PM, true}, /* the first time; see test_no_room for the others */
    {"pm-start", KP_PROVIDER_PM, false},
    {"pm-stop", KP_PROVIDER_PM, false},
    {"pm-image", KP_PROVIDER_PM, false},
    {"pm-decode", KP_PROVIDER_PM, false},
    {"pm-info", KP_PROVIDER_PM, false},
    {"pm-sample", KP_PROVIDER_PM, false},
    {"pm-off", 0, false},
};

/* A launch has all of its samples, or is not told to have been sampled. */
static void check_whole_samples(void)
{
    for (size_t i = 0, next = 0; i < w->n; i++)
        if (w->wanted[i]) {
            const struct kp_result *r = &t.results[next++];
            if (kp_result_find(r, "smsp__pcsamp_sample_count"))
                check_samples(r, i);
        }
}

static uint32_t passes_without(unsigned kinds)
{
    return 1 + !(kinds & KP_PROVIDER_PCSAMP) + !(kinds & KP_PROVIDER_SASS) + (kinds & KP_PROVIDER_PM ? 0 : SERIES);
}

/* The call fails at one place after the other, each time on a collector that is new. Returns at how many. */
static unsigned fail_everywhere(size_t f)
{
    static const char window[] = "AiC";
    unsigned nth = 1, most = strcmp(failing[f].word, "pm-size") ? UINT_MAX : 1;
    for (; nth <= most; nth++) {
        open_collector();
        kp_test_fail(failing[f].word, nth, FAILS);
        replay(window);
        unsigned met = kp_test_count(failing[f].word);
        kp_test_fail(failing[f].word, nth, 0);
        if (met < nth) {
            check_results(0);
            check_complaints(0);
            return nth - 1;
        }
        check_results(failing[f].kind);
        check_whole_samples();
        if (failing[f].for_good && nth == 1)
            check_absent(failing[f].kind);
        check_complaints(failing[f].kind);
        for (int again = 0; again < 2; again++) {
            replay(window);
            check_results(failing[f].for_good ? failing[f].kind : 0);
            check_absent(failing[f].for_good ? failing[f].kind : 0);
            check_complaints(0);
            assert_int_equal(t.out.replay.passes, passes_without(failing[f].for_good ? failing[f].kind : 0));
        }
    }
    return nth - 1;
}

static void test_every_failure(void **state)
{
    (void)state;
    take_reference("AiC");
    for (size_t f = 0; f < sizeof(failing) / sizeof(*failing); f++)
        if (!fail_everywhere(f))
            fail_msg("%s is not called", failing[f].word);
}

/* When sampling cannot be ended, nothing of CUPTI but what puts memory back is called again, and the reason is told. */
static void test_sampling_that_does_not_end(void **state)
{
    (void)state;
    for (int nth = 1; nth <= 2; nth++) {
        open_collector();
        kp_test_window_of("AiC");
        run_first();
        kp_test_fail("pc-off", 1, FAILS);
        kp_collector_replay(t.c, &w->job, &t.out);
        kp_collector_drop(t.c);
        kp_test_window_check_memory();
        assert_null(t.out.counters);
        assert_non_null(strstr(kp_why_text(&t.out.why), "CUPTI could not end its sampling"));
        kp_test_fail("pc-off", 1, 0);
        kp_test_forget_calls();
        free_results();
        struct kp_why why = {KP_REASON_NONE, NULL};
        assert_int_equal(kp_collector_save(t.c, &why), 0);
        kp_collector_drop(t.c);
        kp_test_calls("pc-on pc-off enable config start sass-on pm-on", "");
        check_complaints(KP_PROVIDER_PCSAMP);
        kp_collector_close(t.c, true);
        t.c = NULL;
        kp_test_calls("pc-off disable", "");
        kp_cupti_forget_loss();
    }
}

static CUpti_PmSampling_Object *running; /* the sampler that was not stopped */
static unsigned unstopped;               /* calls to come that stop nothing */

static CUptiResult CUPTIAPI stop_late(CUpti_PmSampling_Stop_Params *p)
{
    running = p->pPmSamplingObject;
    kp_test_met("pm-stop");
    if (!unstopped)
        return fake->cuptiPmSamplingStop(p);
    unstopped--;
    return CUPTI_ERROR_UNKNOWN;
}

static void end_what_runs(void)
{
    KP_PARAMS(CUpti_PmSampling_Stop_Params, s);
    KP_PARAMS(CUpti_PmSampling_Disable_Params, d);
    s.pPmSamplingObject = d.pPmSamplingObject = running;
    assert_int_equal(fake->cuptiPmSamplingStop(&s), 0);
    assert_int_equal(fake->cuptiPmSamplingDisable(&d), 0);
}

/* A sampler that goes on after it was to stop is neither read nor disabled while it runs: it is stopped once more, or
 * left as it is, and then nothing is sampled over time any more. */
static void test_sampler_that_does_not_stop(void **state)
{
    (void)state;
    take_reference("AiC");
    cupti.cuptiPmSamplingStop = stop_late;
    for (int for_good = 0; for_good < 2; for_good++) {
        open_collector();
        unstopped = for_good ? UINT_MAX : 1;
        replay("AiC");
        check_results(KP_PROVIDER_PM);
        check_complaints(KP_PROVIDER_PM);
        for (int again = 0; again < 2; again++) {
            kp_test_forget_calls();
            replay("AiC");
            check_results(for_good ? KP_PROVIDER_PM : 0);
            check_complaints(0);
            assert_true((kp_test_count("pm-on") > 0) != for_good);
            assert_true((kp_test_count("pm-decode") > 0) != for_good);
        }
        assert_int_equal(t.out.replay.passes, passes_without(for_good ? KP_PROVIDER_PM : 0));
    }
    unstopped = 0;
    end_what_runs();
    cupti.cuptiPmSamplingStop = log_cuptiPmSamplingStop;
}

/* Beside a range profiler that could not be disabled nothing can be collected: each window says so. */
static void test_counters_that_are_not_given_up(void **state)
{
    (void)state;
    take_reference("AiC");
    open_collector();
    kp_test_window_of("AiC");
    kp_test_fail("disable", 1, FAILS);
    for (int window = 0; window < 2; window++) {
        run_first();
        kp_collector_replay(t.c, &w->job, &t.out);
        kp_collector_drop(t.c);
        kp_test_window_check_memory();
        assert_null(t.out.counters);
        assert_non_null(strstr(kp_why_text(&t.out.why), "cannot stop the counters: CUPTI_ERROR_UNKNOWN"));
    }
    kp_test_fail("disable", 1, 0);
    assert_int_equal(kp_test_count("enable"), 1);
    check_complaints(0);
}

/* One that always fails is told of once, and each kind by itself. */
static void test_all_fail(void **state)
{
    (void)state;
    take_reference("AiC");
    open_collector();
    kp_test_fail("pc-data", 0, FAILS);
    kp_test_fail("sass-flush", 0, FAILS);
    kp_test_fail("pm-start", 0, FAILS);
    for (int window = 0; window < 3; window++) {
        replay("AiC");
        check_results(KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS | KP_PROVIDER_PM);
        check_absent(KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS | KP_PROVIDER_PM);
        check_complaints(window ? 0 : KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS | KP_PROVIDER_PM);
    }
    kp_test_fail("pc-data", 0, 0);
    kp_test_fail("sass-flush", 0, 0);
    kp_test_fail("pm-start", 0, 0);
    replay("AiC");
    check_results(0);
}

/* Without memory now there may be some later. */
static void test_out_of_memory(void **state)
{
    static const struct {
        const char *word;
        unsigned kind;
    } rows[] = {{"pc-start", KP_PROVIDER_PCSAMP}, {"pm-on", KP_PROVIDER_PM}};
    (void)state;
    take_reference("AiC");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        open_collector();
        kp_test_fail(rows[i].word, 0, CUPTI_ERROR_OUT_OF_MEMORY);
        replay("AiC");
        check_results(rows[i].kind);
        check_complaints(rows[i].kind);
        kp_test_fail(rows[i].word, 0, 0);
        replay("AiC");
        check_results(0);
    }
}

/* A CUPTI that lacks a kind, and a chip that the host library does not know: told of though no pass is made for it. */
static void test_lacking(void **state)
{
    static struct kp_cupti without;
    (void)state;
    take_reference("AiC");
    without = cupti;
    without.cuptiPmSamplingDecodeData = NULL;
    t.setup.cupti = &without;
    t.providers.kinds = KP_PROVIDER_PM;
    open_collector();
    check_complaints(KP_PROVIDER_PM);
    replay("AiC");
    check_absent(KP_PROVIDER_PM);
    check_complaints(0);
    without.cuptiPCSamplingStop = NULL;
    t.providers.kinds |= KP_PROVIDER_PCSAMP;
    open_collector();
    replay("AiC");
    check_absent(KP_PROVIDER_PM | KP_PROVIDER_PCSAMP);
    check_complaints(KP_PROVIDER_PM | KP_PROVIDER_PCSAMP);
    assert_int_equal(kp_test_count("pc-on"), 0);
}

/* What `kinds` lost is there of launches before `first`, is missing of the others, which say why; all else is there. */
static void check_losses(unsigned kinds, size_t first, const char *why)
{
    for (size_t i = 0, next = 0; i < w->n; i++) {
        if (!w->wanted[i])
            continue;
        const struct kp_result *r = &t.results[next++];
        check_result(r, i, i, i < first ? 0 : kinds);
        for (size_t k = 0; k < sizeof(lost_words) / sizeof(*lost_words); k++) {
            const struct kp_metric *m = kp_result_find(r, lost_words[k].metric);
            bool lost = kinds & lost_words[k].kind && i >= first;
            if (lost && (!m || m->kind != KP_VALUE_NA || strcmp(m->text, why) != 0))
                fail_msg("launch %zu has %s: %s", i, lost_words[k].metric, m ? m->text : "nothing");
            if (!lost && m && m->kind == KP_VALUE_NA)
                fail_msg("launch %zu: %s is missing: %s", i, lost_words[k].metric, m->text);
        }
        for (size_t s = 0; s < SERIES; s++)
            assert_true(!kp_result_find_series(r, series[s]) ==
                        (kp_result_find(r, series[s]) && !strcmp(kp_result_find(r, series[s])->text, why)));
        assert_int_equal(r->n_series, SERIES - (kinds & KP_PROVIDER_PM && i >= first));
    }
}

/* The driver refuses what it took before, at any launch of any pass: one of the counters loses the window, each other
 * what it would have told of the launches from there on. The next window is whole. */
static void test_refused(void **state)
{
    static const unsigned kind_of[] = {KP_PROVIDER_PCSAMP, 0, KP_PROVIDER_SASS, KP_PROVIDER_PM, KP_PROVIDER_PM};
    enum { PASSES = sizeof(kind_of) / sizeof(*kind_of) };
    static const char why[] = "the driver refused a launch when it was run again: CUDA_ERROR_INVALID_VALUE";
    unsigned told = 0;
    (void)state;
    take_reference("AiC");
    ask_for_all();
    open_collector();
    for (unsigned nth = 0; nth < 3 * PASSES; nth++) {
        unsigned kind = kind_of[nth / 3];
        kp_test_window_of("AiC");
        run_first();
        kp_test_fail("launch", 3 + nth + 1, CUDA_ERROR_INVALID_VALUE); /* after the rehearsal */
        kp_collector_replay(t.c, &w->job, &t.out);
        kp_test_fail("launch", 0, 0);
        kp_collector_drop(t.c);
        assert_false(t.out.replay.dead || t.out.replay.damaged);
        kp_test_window_check_memory();
        if (kind) {
            assert_int_equal(t.out.replay.failed, KP_STAGE_NONE);
            assert_int_equal(t.out.replay.passes, PASSES);
            evaluate();
            check_losses(kind, nth % 3, why);
        } else {
            assert_null(t.out.counters);
            assert_true(kp_why_text(&t.out.why) &&
                        strstr(kp_why_text(&t.out.why), kp_reason_text(KP_REASON_LAUNCH_FAILED)));
        }
        check_complaints(kind & ~told);
        told |= kind;
        replay("AiC");
        check_results(0);
        check_losses(0, 0, "");
    }
}

/* A failure of CUPTI that comes after one of the driver is told of, too. */
static void test_fails_after_refusal(void **state)
{
    (void)state;
    take_reference("AiC");
    ask_for_all();
    open_collector();
    kp_test_window_of("AiC");
    run_first();
    kp_test_fail("launch", 3 + 2, CUDA_ERROR_INVALID_VALUE);
    kp_collector_replay(t.c, &w->job, &t.out);
    kp_test_fail("launch", 0, 0);
    kp_collector_drop(t.c);
    evaluate();
    check_complaints(KP_PROVIDER_PCSAMP);
    kp_test_fail("pc-data", 0, FAILS);
    replay("AiC");
    kp_test_fail("pc-data", 0, 0);
    check_losses(KP_PROVIDER_PCSAMP, 0, "warp states are not sampled: CUPTI_ERROR_UNKNOWN (999)");
    check_complaints(KP_PROVIDER_PCSAMP);
    /* and one for good is why they are missing of each window that follows; beside another process, too */
    kp_test_fail("pc-on", 0, FAILS);
    for (int window = 0; window < 2; window++) {
        replay("AiC");
        check_losses(KP_PROVIDER_PCSAMP, 0,
                     "warp states are not sampled: CUPTI_ERROR_UNKNOWN (999); another process may be counting on this "
                     "GPU (a profiled run, DCGM), and only one can at a time: end it, or run this program after it");
    }
    kp_test_fail("pc-on", 0, 0);
    check_complaints(0);
}

/* The flush before a launch is refused: in an extra pass it costs no more than the launch would. */
static void test_flush_refused(void **state)
{
    (void)state;
    take_reference("AiC");
    ask_for_all();
    t.setup.flush = true;
    open_collector();
    kp_test_window_of("AiC");
    run_first();
    kp_test_fail("copy", 1, CUDA_ERROR_INVALID_VALUE); /* before the first launch of the first pass */
    kp_collector_replay(t.c, &w->job, &t.out);
    kp_test_fail("copy", 0, 0);
    kp_collector_drop(t.c);
    kp_test_window_check_memory();
    evaluate();
    check_losses(KP_PROVIDER_PCSAMP, 0,
                 "cannot flush the caches (KPROF_CACHE_CONTROL=none avoids it): CUDA_ERROR_INVALID_VALUE");
    check_complaints(KP_PROVIDER_PCSAMP);
    replay("AiC");
    check_results(0);
    check_losses(0, 0, "");
    /* what another pass is lost for later is told of that one */
    kp_test_window_of("AiC");
    run_first();
    kp_test_fail("copy", 1, CUDA_ERROR_INVALID_VALUE);
    kp_test_fail("launch", 3 + 1, CUDA_ERROR_NOT_SUPPORTED); /* the pass before came to no launch */
    kp_collector_replay(t.c, &w->job, &t.out);
    kp_test_fail("copy", 0, 0);
    kp_test_fail("launch", 0, 0);
    kp_collector_drop(t.c);
    kp_test_window_check_memory();
    assert_null(t.out.counters);
    assert_string_equal(kp_why_text(&t.out.why), "the launch failed: CUDA_ERROR_NOT_SUPPORTED");
}

/* The context is broken where it is waited for: nothing is tried after it, and the context's end is survived. */
static void test_fault(void **state)
{
    (void)state;
    take_reference("AC");
    for (unsigned nth = 1;; nth++) {
        open_collector();
        kp_test_window_of("AC");
        run_first();
        kp_test_fail("sync", nth, CUDA_ERROR_ILLEGAL_ADDRESS);
        kp_collector_replay(t.c, &w->job, &t.out);
        unsigned met = kp_test_count("sync");
        kp_test_fail("sync", 0, 0);
        if (met < nth) {
            assert_true(nth > 15);
            break;
        }
        assert_true(!t.out.counters && kp_why_text(&t.out.why));
        kp_test_forget_calls();
        kp_collector_leave(t.c);
        kp_test_context_end(t.ctx);
        kp_collector_close(t.c, false);
        kp_test_calls(NULL, "");
        kp_codes_free(t.providers.codes);
        free_results();
        set_up(NULL);
        take_reference("AC");
    }
    kp_collector_drop(t.c);
}

static void test_context_gone(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    open_collector();
    replay("AI");
    assert_int_equal(kp_collector_save(t.c, &why), 0); /* with PC sampling on */
    kp_collector_leave(t.c);
    kp_test_context_end(t.ctx);
    kp_test_forget_calls();
    kp_collector_close(t.c, false);
    kp_test_calls(NULL, "");
    t.c = NULL;
    t.ctx = kp_test_context();
}

/* A window that is not replayed: what watched it lets go. */
static void test_dropped(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    open_collector();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kp_collector_save(t.c, &why), 0);
        kp_collector_drop(t.c);
    }
    kp_test_calls("pc-on pc-off", "pc-on pc-off pc-on pc-off");
    kp_test_fail("save", 1, CUPTI_ERROR_OUT_OF_MEMORY);
    assert_int_equal(kp_collector_save(t.c, &why), -1);
    kp_why_free(&why);
    kp_test_calls("pc-on pc-off", "");
}

/* ---- from what was gathered to a result ---- */

static void gather(struct kp_counters_launch *l, uint64_t code, uint32_t offset, long metric, uint64_t value)
{
    l->counts = realloc(l->counts, (l->n_counts + 1) * sizeof(*l->counts));
    assert_true(l->counts && metric >= 0);
    l->counts[l->n_counts++] = (struct kp_counters_count){(uint32_t)code, offset, (uint32_t)metric, value};
}

static void check_metric(const struct kp_code_counts *s, size_t m, const char *name, const uint64_t *values)
{
    assert_string_equal(s->metrics[m].name, name);
    assert_memory_equal(s->metrics[m].values, values, s->n_offsets * sizeof(*values));
}

static const void *no_cubin(uint32_t crc, size_t *size)
{
    (void)crc;
    *size = 0;
    return NULL;
}

/* Counts in any order, a place twice. */
static void test_gathered(void **state)
{
    struct kp_codes *codes = kp_codes_new(no_cubin, false);
    struct kp_counters *g = calloc(1, sizeof(*g));
    struct kp_result r = {.launch.mangled = kp_strdup("kernel")};
    (void)state;
    uint64_t callee = kp_codes_id(codes, 1, "callee"), other = kp_codes_id(codes, 2, "kernel_too"),
             own = kp_codes_id(codes, 1, "kernel");
    g->codes = codes;
    g->launches = calloc(2, sizeof(*g->launches));
    g->n_launches = 2;
    long b = kp_counters_name(g, "b"), a = kp_counters_name(g, "a");
    assert_int_equal(kp_counters_name(g, "b"), b);
    assert_int_equal(g->n_names, 2);
    struct kp_counters_launch *l = &g->launches[1];
    gather(l, own, 48, b, 5);
    gather(l, callee, 16, a, 1);
    gather(l, own, 16, a, 7);
    gather(l, own, 48, b, 2);
    gather(l, own, 0, b, 3);
    gather(l, other, 32, b, 9);
    assert_int_equal(kp_counters_store(g, 1, &r), 0);
    assert_int_equal(r.n_counts, 3);
    const struct kp_code_counts *s = r.counts;
    assert_true(s[0].code == callee && s[1].code == other && s[2].code == own);
    assert_int_equal(s[2].n_offsets, 3);
    assert_true(s[2].offsets[0] == 0 && s[2].offsets[1] == 16 && s[2].offsets[2] == 48);
    assert_int_equal(s[2].n_metrics, 2);
    check_metric(&s[2], 0, "a", (const uint64_t[]){0, 7, 0});
    check_metric(&s[2], 1, "b", (const uint64_t[]){3, 0, 7});
    assert_int_equal(s[0].n_metrics, 1);
    check_metric(&s[0], 0, "a", (const uint64_t[]){1});
    assert_int_equal(r.n_metrics, 0); /* neither sampled nor over time */
    kp_result_free(&r);
    /* one that has nothing, one that there is not, and one for which there was no memory */
    assert_int_equal(kp_counters_store(g, 0, &r), 0);
    assert_int_equal(kp_counters_store(g, 2, &r), 0);
    assert_int_equal(r.n_counts + r.n_metrics + r.n_series, 0);
    l->short_of_memory = true;
    assert_int_equal(kp_counters_store(g, 1, &r), -ENOMEM);
    assert_int_equal(r.n_counts, 0);
    kp_counters_free(g);
    kp_counters_free(NULL);
    kp_codes_free(codes);
}

/* The image of tests/data/calls.cu. */
static struct {
    uint8_t bytes[65536];
    size_t size;
} calls;

static const void *calls_cubin(uint32_t crc, size_t *size)
{
    (void)crc;
    *size = calls.size;
    return calls.bytes;
}

static const uint64_t *of_metric(const struct kp_code_counts *s, const char *suffix)
{
    char name[80];
    snprintf(name, sizeof(name), "sass__inst_executed_register_spilling%s", suffix);
    return kp_code_counts_find(s, name);
}

/* The first spills of `spilling` are stores of local memory at 0xa0 and 0x120; the first instruction is none. */
static void test_spills(void **state)
{
    FILE *f = fopen(kp_test_source("tests/data/calls.sm90-cuda13.cubin"), "re");
    struct kp_codes *codes = kp_codes_new(calls_cubin, false);
    struct kp_counters *g = calloc(1, sizeof(*g));
    struct kp_result r = {.launch.mangled = kp_strdup("spilling")};
    (void)state;
    assert_non_null(f);
    calls.size = fread(calls.bytes, 1, sizeof(calls.bytes), f);
    fclose(f);
    uint64_t own = kp_codes_id(codes, 1, "spilling"), other = kp_codes_id(codes, 1, "indexing");
    const struct kp_code *code = kp_codes_get(codes, own);
    size_t load = 0;
    while (load < code->n_instructions &&
           !(code->instructions[load].spill && !strcmp(code->instructions[load].opcode, "LDL")))
        load++;
    assert_true(load < code->n_instructions);
    g->codes = codes;
    g->launches = calloc(1, sizeof(*g->launches));
    g->n_launches = 1;
    long executed = kp_counters_name(g, "inst_executed"), threads = kp_counters_name(g, "thread_inst_executed");
    struct kp_counters_launch *l = &g->launches[0];
    const uint32_t at[] = {0, 0xa0, 0x120, code->instructions[load].offset};
    for (size_t i = 0; i < 4; i++) {
        gather(l, own, at[i], executed, 10 + i);
        gather(l, own, at[i], threads, 320);
    }
    for (uint32_t i = 0; i < 64; i++)
        gather(l, other, 16 * i, executed, 7);
    assert_int_equal(kp_counters_store(g, 0, &r), 0);
    assert_int_equal(r.n_counts, 2);
    const struct kp_code_counts *s = &r.counts[0];
    assert_true(s->code == own && s->n_offsets == 4);
    assert_memory_equal(of_metric(s, ""), ((const uint64_t[]){0, 11, 12, 13}), 4 * sizeof(uint64_t));
    assert_memory_equal(of_metric(s, "_mem_local"), ((const uint64_t[]){0, 11, 12, 13}), 4 * sizeof(uint64_t));
    assert_memory_equal(of_metric(s, "_op_write"), ((const uint64_t[]){0, 11, 12, 0}), 4 * sizeof(uint64_t));
    assert_memory_equal(of_metric(s, "_op_read"), ((const uint64_t[]){0, 0, 0, 13}), 4 * sizeof(uint64_t));
    assert_null(of_metric(s, "_mem_shared"));
    for (size_t i = 1; i < s->n_metrics; i++)
        assert_true(strcmp(s->metrics[i - 1].name, s->metrics[i].name) < 0);
    assert_null(of_metric(&r.counts[1], "")); /* local memory, but no spill */
    kp_result_free(&r);
    kp_counters_free(g);
    kp_codes_free(codes);
}

/* ---- what is wanted ---- */

static unsigned wanted(const char *section, const char *metrics, int major, int minor)
{
    const struct kp_section *s = section ? kp_section_find(section) : NULL;
    assert_true(!section || s);
    return kp_providers_wanted(&s, s ? 1 : 0, metrics, major, minor);
}

static void test_wanted(void **state)
{
    (void)state;
    assert_int_equal(wanted(NULL, "", 9, 0), 0);
    assert_int_equal(wanted("SpeedOfLight", "", 9, 0), 0);
    assert_int_equal(wanted("SourceCounters", "", 9, 0), KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS);
    assert_int_equal(wanted("SourceCounters", "", KP_ANY_CC, 0), KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS);
    assert_int_equal(wanted("PmSampling", "", 9, 0), KP_PROVIDER_PM);
    assert_int_equal(wanted("PmSampling", "", KP_ANY_CC, 0), 0);
    assert_int_equal(wanted(NULL, "sm__cycles_active.avg pmsampling:sm__cycles_active.avg", 9, 0), KP_PROVIDER_PM);
    assert_int_equal(wanted(NULL, "a,smsp__pcsamp_sample_count", 9, 0), KP_PROVIDER_PCSAMP);
    assert_int_equal(wanted(NULL, "inst_executed,a", 9, 0), KP_PROVIDER_SASS);
    assert_int_equal(wanted(NULL, "smsp__pcsamp_sample_coun,derived__avg_thread_executed", 9, 0), KP_PROVIDER_SASS);
    assert_int_equal(wanted(NULL, "inst_execute,inst_executed_more", 9, 0), 0);
    assert_int_equal(wanted(NULL, "smsp__pcsamp_interval", 9, 0), KP_PROVIDER_PCSAMP);
    for (int major = KP_ANY_CC; major <= 9; major += 10) { /* before the device is known, and after */
        assert_int_equal(wanted(NULL, "group:smsp__pcsamp_warp_stall_reasons", major, 0), KP_PROVIDER_PCSAMP);
        assert_int_equal(wanted(NULL, "a group:smsp__pcsamp_warp_stall_reasons_not_issued,b", major, 0),
                         KP_PROVIDER_PCSAMP);
        assert_int_equal(wanted(NULL, "group:memory__dram_table,group:smsp__pcsamp_warp_stall_reason", major, 0), 0);
        assert_int_equal(wanted(NULL, "regex:^smsp__pcsamp_", major, 0), KP_PROVIDER_PCSAMP);
        assert_int_equal(wanted(NULL, "regex:(^thread_inst|pcsamp_interval)", major, 0),
                         KP_PROVIDER_PCSAMP | KP_PROVIDER_SASS);
        assert_int_equal(wanted(NULL, "regex:^sm__,regex:(,regex:", major, 0), 0);
        assert_int_equal(wanted(NULL, "regex:_warpgroup_arrive$", major, 0), KP_PROVIDER_PCSAMP);
    }
    assert_int_equal(wanted(NULL, "regex:_warpgroup_arrive$", 8, 6), 0); /* which has none */
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(test_sass_configuration_fails),
        ON_FAKE(test_windows),
        ON_FAKE(test_unwanted_between),
        ON_FAKE(test_flush),
        ON_FAKE(test_order),
        ON_FAKE(test_order_with_sessions),
        ON_FAKE(test_new_functions),
        ON_FAKE(test_names_of_reasons),
        ON_FAKE(test_first_sample),
        ON_FAKE(test_room),
        ON_FAKE(test_auto_interval),
        ON_FAKE(test_no_room),
        ON_FAKE(test_rest_lost),
        ON_FAKE(test_room_by_launches),
        ON_FAKE(test_room_too_small),
        ON_FAKE(test_user_range),
        ON_FAKE(test_counting),
        ON_FAKE(test_groups_without_replay),
        ON_FAKE(test_interval_without_replay),
        ON_FAKE(test_more_samples_than_room),
        ON_FAKE(test_samples_beyond_what_is_set),
        ON_FAKE(test_large_buffer_for_passes),
        ON_FAKE(test_no_room_for_a_large_buffer),
        ON_FAKE(test_more_samples_without_replay),
        ON_FAKE(test_groups_that_fail),
        ON_FAKE(test_single_kinds),
        ON_FAKE(test_without_counters),
        ON_FAKE(test_every_failure),
        ON_FAKE(test_sampling_that_does_not_end),
        ON_FAKE(test_sampler_that_does_not_stop),
        ON_FAKE(test_counters_that_are_not_given_up),
        ON_FAKE(test_all_fail),
        ON_FAKE(test_out_of_memory),
        ON_FAKE(test_lacking),
        ON_FAKE(test_refused),
        ON_FAKE(test_fails_after_refusal),
        ON_FAKE(test_flush_refused),
        ON_FAKE(test_fault),
        ON_FAKE(test_context_gone),
        ON_FAKE(test_dropped),
        cmocka_unit_test(test_clock_of_waits),
        cmocka_unit_test(test_gathered),
        cmocka_unit_test(test_spills),
        cmocka_unit_test(test_wanted),
    };
    return cmocka_run_group_tests(tests, open_library, close_library);
}
