/* The collector over the fake driver and the fake CUPTI: what it calls for a window, which range becomes whose result,
 * what counter data it keeps, and on which threads it evaluates. Whatever fails, memory is what one execution leaves
 * and the next window works. The fake CUPTI ends the process when passes saw different kernels or different memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectors/providers/tables.h"
#include "collectors/run/collector.h"
#include "cupti/internal.h"
#include "tests/fake/fake_image.h"
#include "tests/support/collect_support.h"
#include "tests/support/end_support.h"
#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"
#include "tests/support/window_support.h"

enum { MOST = KP_TEST_MOST_LAUNCHES, FAILS = CUPTI_ERROR_UNKNOWN };

static const char chip[] = "GH100";
static const struct kp_device device = {.sm_count = 132, .l2_size = 5 << 20};

static struct kp_test_window *const w = &kp_test_window;

/* ---- CUPTI, logged ---- */

static struct kp_cupti *fake, cupti;

/* Function, word, type of the parameters. An image that is made is told from one that is emptied, in which the last
 * collection stands. What ends a pass ends it also when it is to fail. */
#define LOGGED_FUNCTIONS(X)                                                                                            \
    X(cuptiRangeProfilerEnable, "enable", CUpti_RangeProfiler_Enable_Params)                                           \
    X(cuptiRangeProfilerDisable, "disable", CUpti_RangeProfiler_Disable_Params)                                        \
    X(cuptiRangeProfilerGetCounterDataSize, "size", CUpti_RangeProfiler_GetCounterDataSize_Params)                     \
    X(cuptiRangeProfilerCounterDataImageInitialize, p->pCounterData[0] ? "again" : "image",                            \
      CUpti_RangeProfiler_CounterDataImage_Initialize_Params)                                                          \
    X(cuptiRangeProfilerStart, "start", CUpti_RangeProfiler_Start_Params)                                              \
    X(cuptiRangeProfilerPushRange, "push", CUpti_RangeProfiler_PushRange_Params)                                       \
    X(cuptiRangeProfilerPopRange, "pop", CUpti_RangeProfiler_PopRange_Params)                                          \
    X(cuptiRangeProfilerDecodeData, "decode", CUpti_RangeProfiler_DecodeData_Params)                                   \
    X(cuptiRangeProfilerGetCounterDataInfo, "info", CUpti_RangeProfiler_GetCounterDataInfo_Params)                     \
    X(cuptiProfilerCounterDataImageInitialize, "session-image", CUpti_Profiler_CounterDataImage_Initialize_Params)     \
    X(cuptiProfilerBeginSession, "session", CUpti_Profiler_BeginSession_Params)                                        \
    X(cuptiProfilerSetConfig, "list", CUpti_Profiler_SetConfig_Params)                                                 \
    X(cuptiProfilerUnsetConfig, "unlist", CUpti_Profiler_UnsetConfig_Params)                                           \
    X(cuptiProfilerBeginPass, "pass", CUpti_Profiler_BeginPass_Params)                                                 \
    X(cuptiProfilerEnableProfiling, "on", CUpti_Profiler_EnableProfiling_Params)                                       \
    X(cuptiProfilerDisableProfiling, "off", CUpti_Profiler_DisableProfiling_Params)                                    \
    X(cuptiProfilerFlushCounterData, "flush", CUpti_Profiler_FlushCounterData_Params)                                  \
    X(cuptiProfilerEndSession, "end-session", CUpti_Profiler_EndSession_Params)

#define DEFINE(name, word, type)                                                                                       \
    static CUptiResult CUPTIAPI log_##name(type *p)                                                                    \
    {                                                                                                                  \
        CUptiResult rc = (CUptiResult)kp_test_met(word);                                                               \
        return rc ? rc : fake->name(p);                                                                                \
    }
LOGGED_FUNCTIONS(DEFINE)
#undef DEFINE

static size_t configured; /* the room that the profiler was last configured for */

static CUptiResult CUPTIAPI log_config(CUpti_RangeProfiler_SetConfig_Params *p)
{
    CUptiResult rc = (CUptiResult)kp_test_met("config");
    configured = p->maxRangesPerPass;
    return rc ? rc : fake->cuptiRangeProfilerSetConfig(p);
}

static CUptiResult CUPTIAPI log_stop(CUpti_RangeProfiler_Stop_Params *p)
{
    CUptiResult rc = (CUptiResult)kp_test_met("stop"), real = fake->cuptiRangeProfilerStop(p);
    return rc ? rc : real;
}

static CUptiResult CUPTIAPI log_end_pass(CUpti_Profiler_EndPass_Params *p)
{
    CUptiResult rc = (CUptiResult)kp_test_met("end-pass"), real = fake->cuptiProfilerEndPass(p);
    return rc ? rc : real;
}

static CUptiResult CUPTIAPI log_activity(CUpti_ActivityKind kind)
{
    CUptiResult rc = (CUptiResult)kp_test_met("activity");
    return rc ? rc : fake->cuptiActivityEnable(kind);
}

static CUptiResult CUPTIAPI log_inactivity(CUpti_ActivityKind kind)
{
    kp_test_met("inactivity");
    return fake->cuptiActivityDisable(kind);
}

static const char in_pass[] =
    "save restore rehearse enable disable image config start issue plain stop push pop decode "
    "drop activity inactivity settle";

/* ---- threads that evaluate ---- */

enum { PATIENCE_S = 20 };

/* An assertion must not fail on a thread that cmocka does not know, so what is wrong is counted. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t cpus;                       /* that the process may use; 0 = unknown */
    unsigned started, joined, refused; /* of the threads; the one to refuse, 0 = none */
    unsigned hosts;                    /* open now */
    unsigned together;                 /* that have to be evaluating at one time, */
    unsigned arrived, round;           /* those that are */
    bool in_turn;                      /* each is started when the one before it has arrived */
    unsigned late, shared;             /* that met nobody; uses of what another thread was using */
    const void *in_use[4 * 2];
    int codes[MOST]; /* what evaluating a range answers */
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static __thread unsigned own_round; /* in which this thread has arrived */

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    assert_int_equal(pid, 0);
    if (!threads.cpus || size < 4096 / 8) { /* a kernel built for so many */
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(size, set);
    for (size_t i = 0; i < threads.cpus; i++)
        CPU_SET_S(1000 + i, size, set);
    return 0;
}

/* Under the lock. */
static void wait_for_arrivals(unsigned n)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    while (threads.arrived < n)
        if (pthread_cond_timedwait(&threads.changed, &threads.lock, &end)) {
            threads.late++;
            return;
        }
}

static void arrive(void)
{
    if (own_round == threads.round)
        return;
    own_round = threads.round;
    threads.arrived++;
    pthread_cond_broadcast(&threads.changed);
    wait_for_arrivals(threads.together);
}

static void use(const void *what, bool now)
{
    size_t at = 0, n = sizeof(threads.in_use) / sizeof(*threads.in_use);
    for (size_t i = 0; i < n; i++)
        threads.shared += now && threads.in_use[i] == what;
    while (at < n && threads.in_use[at] != (now ? NULL : what))
        at++;
    if (at < n)
        threads.in_use[at] = now ? what : NULL;
    else
        threads.shared++;
}

static CUptiResult CUPTIAPI log_evaluate(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    pthread_mutex_lock(&threads.lock);
    CUptiResult rc = (CUptiResult)kp_test_met("evaluate");
    if (!rc && p->rangeIndex < MOST)
        rc = (CUptiResult)threads.codes[p->rangeIndex];
    use(p->pHostObject, true);
    use(p->pMetricValues, true);
    arrive();
    pthread_mutex_unlock(&threads.lock);
    if (!rc)
        rc = fake->cuptiProfilerHostEvaluateToGpuValues(p);
    pthread_mutex_lock(&threads.lock);
    use(p->pHostObject, false);
    use(p->pMetricValues, false);
    pthread_mutex_unlock(&threads.lock);
    return rc;
}

static CUptiResult CUPTIAPI log_host(CUpti_Profiler_Host_Initialize_Params *p)
{
    pthread_mutex_lock(&threads.lock);
    CUptiResult rc = (CUptiResult)kp_test_met("host");
    pthread_mutex_unlock(&threads.lock);
    if (!rc)
        rc = fake->cuptiProfilerHostInitialize(p);
    pthread_mutex_lock(&threads.lock);
    threads.hosts += !rc;
    pthread_mutex_unlock(&threads.lock);
    return rc;
}

static CUptiResult CUPTIAPI log_host_end(CUpti_Profiler_Host_Deinitialize_Params *p)
{
    threads.hosts--;
    return fake->cuptiProfilerHostDeinitialize(p);
}

static bool start_thread(void *(*fn)(void *arg), void *arg, pthread_t *thread)
{
    if (threads.refused == threads.started + 1)
        return false;
    assert_int_equal(pthread_create(thread, NULL, fn, arg), 0);
    threads.started++;
    pthread_mutex_lock(&threads.lock);
    if (threads.in_turn)
        wait_for_arrivals(threads.started);
    pthread_mutex_unlock(&threads.lock);
    return true;
}

static void join_thread(pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
    threads.joined++;
}

/* Of the evaluation that comes next: `together` threads have to be in it at one time; 0 = whatever. */
static void expect_threads(unsigned together)
{
    threads.started = threads.joined = threads.arrived = 0;
    threads.together = together;
    threads.round++;
}

static void check_threads(unsigned n)
{
    assert_int_equal(threads.started, n - 1);
    assert_int_equal(threads.joined, threads.started); /* none is left when the function has returned */
    assert_int_equal(threads.late, 0);
    assert_int_equal(threads.shared, 0);
}

static double (*value_of)(const char *metric, const char *kernel, size_t range);
static size_t *session_bytes;

/* ---- plans ---- */

static struct kp_plan *several, *two_groups, *one_pass, *rotation;
static struct kp_plan *by_session, *two_by_session; /* as the first two, for sessions */
static size_t patched;                              /* the list of `rotation` that patched code counts */
static size_t in_order[MOST];                       /* 0, 1, 2 ... */

static struct kp_plan *plan_of(const char *metrics, unsigned how)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    if (kp_plan_make(&cupti, chip, NULL, 9, 0, NULL, 0, metrics, how, &p, &err))
        fail_msg("%s", err ? err : "plan");
    return p;
}

/* Without layouts no session counts the lists, but the range profiler. */
static struct kp_plan *by_profiler(struct kp_plan *p)
{
    for (size_t g = 0; g < p->n_groups; g++) {
        free(p->groups[g].layout);
        p->groups[g].layout = NULL;
    }
    return p;
}

/* Lists that are counted in turn. The L2 counts one of the first two in a pass. */
static void plan_rotation(void)
{
    char *err = NULL;
    if (kp_plan_make(&cupti, chip, NULL, 9, 0, NULL, 0,
                     "lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum,"
                     "smsp__sass_thread_inst_executed_op_integer_pred_on.sum",
                     KP_PLAN_ROTATE, &rotation, &err))
        fail_msg("%s", err ? err : "plan");
    size_t n = 0;
    for (size_t g = 0; g < rotation->n_groups; g++)
        if (kp_config_patches(&rotation->groups[g])) {
            patched = g;
            n++;
        }
    assert_true(rotation->n_groups > 2 && n == 1);
}

static const char metrics_list[] = "gpu__time_duration.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed";

static int open_library(void **state)
{
    char *err = NULL;
    (void)state;
    for (size_t i = 0; i < MOST; i++)
        in_order[i] = i;
    if (!getenv("KP_REAL_CUPTI"))
        return 0;
    if (kp_cupti_load(kp_test_dl(), kp_test_build("fake"), NULL, &fake, &err))
        fail_msg("%s", err);
    cupti = *fake;
#define TAKE_OVER(name, word, type) cupti.name = log_##name;
    LOGGED_FUNCTIONS(TAKE_OVER)
#undef TAKE_OVER
    cupti.cuptiRangeProfilerSetConfig = log_config;
    cupti.cuptiProfilerHostEvaluateToGpuValues = log_evaluate;
    cupti.cuptiProfilerHostInitialize = log_host;
    cupti.cuptiProfilerHostDeinitialize = log_host_end;
    cupti.cuptiRangeProfilerStop = log_stop;
    cupti.cuptiProfilerEndPass = log_end_pass;
    kp_test_log_checkpoints(&cupti, fake);
    cupti.cuptiActivityEnable = log_activity;
    cupti.cuptiActivityDisable = log_inactivity;
    void *handle = dlopen(kp_test_build("fake/libcupti.so.13"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    *(void **)&value_of = dlsym(handle, "fake_cupti_value");
    session_bytes = dlsym(handle, "fake_cupti_session_bytes");
    assert_true(value_of && session_bytes);
    by_session = plan_of(metrics_list, 0);
    two_by_session = plan_of("gpu__time_duration.sum,pcie__read_bytes.sum", 0);
    several = by_profiler(plan_of(metrics_list, 0));
    two_groups = by_profiler(plan_of("gpu__time_duration.sum,pcie__read_bytes.sum", 0));
    one_pass = plan_of("gpu__time_duration.sum,dram__bytes.sum", KP_PLAN_ONE_PASS | KP_PLAN_BESIDE);
    plan_rotation();
    assert_true(several->n_groups == 1 && several->passes > 1);
    assert_int_equal(two_groups->n_groups, 2);
    assert_int_equal(one_pass->passes, 1);
    return 0;
}

static int close_library(void **state)
{
    (void)state;
    if (!fake)
        return 0;
    kp_plan_free(several);
    kp_plan_free(two_groups);
    kp_plan_free(by_session);
    kp_plan_free(two_by_session);
    kp_plan_free(one_pass);
    kp_plan_free(rotation);
    kp_cupti_free(fake);
    return 0;
}

/* ---- the program: a window of launches over memory that each of them changes for good ---- */

static struct {
    CUcontext ctx;
    struct kp_collector *c;
    struct kp_collector_setup setup;
    struct kp_window_outcome out;
    struct kp_counters *pending[8]; /* handed out, as to a worker */
    size_t n_pending;
} t;

static void settle(void)
{
    kp_test_met("settle");
    for (size_t i = 0; i < t.n_pending; i++)
        kp_counters_free(t.pending[i]);
    t.n_pending = 0;
}

/* Skips the test, and says why, where there is no host library for the fake to ask. */
static void need_library(void)
{
    if (!fake)
        kp_test_real_cupti();
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
    kp_test_window_open();
    threads.cpus = 64;
    threads.hosts = threads.refused = threads.late = threads.shared = 0;
    threads.in_turn = false;
    memset(threads.codes, 0, sizeof(threads.codes));
    expect_threads(0);
    t.setup = (struct kp_collector_setup){.driver = kp_test_driver(),
                                          .cupti = &cupti,
                                          .device = &device,
                                          .ctx = t.ctx,
                                          .chip = chip,
                                          .plan = several,
                                          .one_pass = one_pass,
                                          .window = MOST,
                                          .memory = UINT64_C(1) << 30,
                                          .settle = settle,
                                          .start = start_thread,
                                          .join = join_thread};
    return 0;
}

static void open_collector(void)
{
    need_library();
    assert_int_equal(kp_collector_open(&t.setup, &t.c), 0);
    kp_test_forget_calls();
}

static int tear_down(void **state)
{
    (void)state;
    if (!fake)
        return 0;
    settle();
    kp_collector_close(t.c, true);
    kp_test_context_end(t.ctx);
    *session_bytes = 0;
    assert_int_equal(threads.hosts, 0);
    return 0;
}

/* Saved, and executed once by the program. */
static void run_first(void)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    kp_test_window_clear();
    if (kp_collector_save(t.c, &why))
        fail_msg("%s", kp_why_text(&why));
    kp_test_window_run();
}

static void replay(void)
{
    run_first();
    kp_collector_replay(t.c, &w->job, &t.out);
    kp_collector_drop(t.c);
}

static void check_result(const struct kp_plan *plan, const struct kp_result *r, const char *kernel, size_t range)
{
    for (size_t g = 0; g < plan->n_groups; g++)
        for (size_t m = 0; m < plan->groups[g].n_names; m++) {
            const char *name = plan->groups[g].names[m];
            double value = 0;
            assert_true(kp_metric_number(kp_result_find(r, name), &value));
            if (value != value_of(name, kernel, range))
                fail_msg("%s of %s is not that of range %zu", name, kernel, range);
        }
}

/* The results come from `ranges`, in order; the counters are given back. */
static void check_results(const struct kp_plan *plan, const size_t *ranges)
{
    struct kp_result results[MOST], *list[MOST];
    size_t next = 0;
    if (!t.out.counters)
        fail_msg("no counters: %s", kp_why_text(&t.out.why) ? kp_why_text(&t.out.why) : "no reason given");
    assert_null(kp_why_text(&t.out.why));
    assert_int_equal(t.out.replay.failed, KP_STAGE_NONE);
    memset(results, 0, sizeof(results));
    for (size_t i = 0; i < w->n_wanted; i++)
        list[i] = &results[i];
    assert_false(kp_counters_evaluate(t.out.counters, list).reason);
    for (size_t i = 0; i < w->n; i++)
        if (w->wanted[i]) {
            check_result(plan, &results[next], kp_test_kernel_names[w->kernel[i]], ranges[next]);
            kp_result_free(&results[next++]);
        }
    assert_int_equal(next, w->n_wanted);
    kp_counters_free(t.out.counters);
    t.out.counters = NULL;
}

/* Without counters, for a reason that holds `text`; memory is as it has to be. */
static void check_nothing(enum kp_stage stage, const char *text)
{
    assert_null(t.out.counters);
    assert_int_equal(t.out.replay.failed, stage);
    if (!kp_why_text(&t.out.why) || !strstr(kp_why_text(&t.out.why), text))
        fail_msg("'%s' is not in the note: %s", text, kp_why_text(&t.out.why) ? kp_why_text(&t.out.why) : "(none)");
    kp_why_free(&t.out.why);
    if (!t.out.replay.damaged && !t.out.replay.dead)
        kp_test_window_check_memory();
}

static void replay_of(const char *letters)
{
    kp_test_window_of(letters);
    replay();
    assert_non_null(t.out.counters);
}

/* The letters of a window of `n` launches that are all wanted. */
static const char *many(size_t n)
{
    static char letters[MOST + 1];
    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++)
        letters[i] = "AIC"[i % KP_TEST_KERNELS];
    letters[n] = '\0';
    return letters;
}

/* Makes the launches of the window. The collector counts those that are wanted. */
static void launch_window(void)
{
    const struct kp_issue_hooks *hooks = kp_collector_count_hooks(t.c);
    for (size_t i = 0; i < w->n; i++) {
        if (w->wanted[i])
            assert_int_equal(hooks->before(hooks->arg, NULL), CUDA_SUCCESS);
        assert_int_equal(kp_test_window_launch(i), CUDA_SUCCESS);
        if (w->wanted[i])
            assert_int_equal(hooks->after(hooks->arg), CUDA_SUCCESS);
    }
}

/* A window counted in one pass, as it comes. */
static void count(const char *letters, enum kp_range_mode mode)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    kp_test_window_of(letters);
    if (kp_collector_count_begin(t.c, mode, w->n, 0, &why))
        fail_msg("%s", kp_why_text(&why));
    launch_window();
    kp_collector_count_end(t.c, &w->job, &t.out);
}

static const char *passes(const char *before, const char *pass, const char *after)
{
    static char text[4096];
    char *to = text + sprintf(text, "%s", before);
    for (size_t p = 0; p < several->passes; p++)
        to += sprintf(to, "%s", pass);
    sprintf(to, "%s", after);
    return text;
}

/* ---- windows ---- */

static void test_window_of_one(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("A");
    replay();
    kp_test_window_check_memory();
    assert_int_equal(t.out.replay.passes, several->passes);
    kp_test_calls(in_pass,
                  passes("save restore rehearse enable image config", " restore start issue stop", " decode drop"));
    check_results(several, in_order);
    kp_test_forget_calls();
    replay(); /* profiler and counter data are there */
    kp_test_window_check_memory();
    kp_test_calls(in_pass, passes("save restore rehearse config", " restore start issue stop", " decode drop"));
    check_results(several, in_order);
    kp_test_forget_calls();
    kp_collector_close(t.c, true);
    t.c = NULL;
    kp_test_calls(in_pass, "disable");
}

/* The switch between passes, which is what costs, is paid once for all. */
static void test_window_of_many(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("AICAICAAICA");
    replay();
    kp_test_window_check_memory();
    kp_test_calls(in_pass,
                  passes("save restore rehearse enable image config", " restore start issue stop", " decode drop"));
    check_results(several, in_order);
}

/* Each kernel is a range in auto range; those without a result are passed over. */
static void test_unwanted_between(void **state)
{
    static const size_t ranges[] = {1, 4, 5, 7};
    (void)state;
    open_collector();
    kp_test_window_of("aIcaACaIc");
    replay();
    kp_test_window_check_memory();
    check_results(several, ranges);
}

/* In user range only what is wanted is marked. */
static void test_user_range(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("aIcaACaIc");
    w->job.mode = KP_RANGE_USER;
    replay();
    kp_test_window_check_memory();
    assert_int_equal(kp_test_count("push"), 4 * several->passes);
    assert_int_equal(kp_test_count("pop"), 4 * several->passes);
    /* nothing else is inside of a range: before and behind each, and at the end of a pass; once before them */
    assert_int_equal(kp_test_count("sync"), 9 * several->passes + 1);
    check_results(several, in_order);
}

/* The profiler refuses another mode until it was disabled; the counter data stays of use. */
static void test_modes_in_turn(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("AI");
    for (int i = 0; i < 4; i++) {
        w->job.mode = i % 2 ? KP_RANGE_USER : KP_RANGE_AUTO;
        replay();
        kp_test_window_check_memory();
        check_results(several, in_order);
    }
    kp_test_calls("enable disable image", "enable image disable enable disable enable disable enable");
    replay(); /* no change, no switch */
    check_results(several, in_order);
    kp_test_calls("enable disable image", "");
}

/* One that has run with little room drops what goes beyond it, whatever it is configured for later. */
static void test_larger_windows_in_turn(void **state)
{
    (void)state;
    open_collector();
    for (int i = 0; i < 2; i++) {
        replay_of("A");
        check_results(several, in_order);
        replay_of("AICAI");
        kp_test_window_check_memory();
        check_results(several, in_order);
        replay_of("AI");
        check_results(several, in_order);
    }
    kp_test_calls("enable disable image", "enable image disable enable image*2");
    count("AICAICAI", KP_RANGE_AUTO);
    check_results(one_pass, in_order);
}

static void replay_groups(const struct kp_plan *plan, const char *calls)
{
    static const size_t ranges[] = {0, 2};
    t.setup.plan = plan;
    open_collector();
    kp_test_window_of("AiC");
    replay();
    kp_test_window_check_memory();
    kp_test_calls(in_pass, calls);
    check_results(plan, ranges);
}

/* Lists that are passes of one image share an enabled profiler. */
static void test_groups_in_turn(void **state)
{
    (void)state;
    replay_groups(two_groups, "save restore rehearse enable image config restore start issue stop decode "
                              "image config restore start issue stop decode drop");
}

/* An enabled profiler keeps its image, also where another one has as many passes. */
static void test_groups_apart(void **state)
{
    struct kp_plan apart = *two_groups;
    struct kp_config alone[2];
    (void)state;
    for (size_t g = 0; g < 2; g++) {
        const struct kp_config *of = &two_groups->groups[g];
        assert_int_equal(kp_tables_schedule(&cupti, chip, NULL, of->names, of->n_names, &alone[g]), 0);
        assert_int_equal(alone[g].passes, 1);
    }
    apart.groups = alone;
    replay_groups(&apart, "save restore rehearse enable image config restore start issue stop decode "
                          "disable enable image config restore start issue stop decode drop");
    settle();
    kp_collector_close(t.c, true);
    t.c = NULL;
    for (size_t g = 0; g < 2; g++)
        kp_config_free(&alone[g]);
}

/* A window of which nobody wants anything: nothing to count, and no harm. */
static void test_nothing_wanted(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("aic");
    replay();
    kp_test_window_check_memory();
    check_results(several, NULL);
}

static void test_executed(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("AiC");
    w->job.probe = true;
    replay();
    kp_test_calls("rehearse activity inactivity issue enable start",
                  passes("activity rehearse inactivity enable", " start issue", ""));
    assert_int_equal(w->job.n_executed, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(w->executed[i].name, kp_test_kernel_names[w->kernel[i]]);
    check_results(several, (const size_t[]){0, 2});
    kp_test_fail("activity", 0, FAILS); /* no reason to give the counters up */
    replay();
    check_results(several, (const size_t[]){0, 2});
    assert_int_equal(w->job.n_executed, 0);
}

static void test_other_kernels(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("II");
    w->foreign = true;
    run_first();
    kp_collector_replay(t.c, &w->job, &t.out);
    kp_collector_drop(t.c);
    w->foreign = false;
    assert_null(t.out.counters);
    assert_non_null(strstr(kp_why_text(&t.out.why), "4 kernels instead of 2"));
    kp_why_free(&t.out.why);
    replay();
    check_results(several, in_order);
}

/* ---- the flush ---- */

static void test_flush_by_copy(void **state)
{
    static const size_t ranges[] = {1, 3};
    (void)state;
    t.setup.flush = true;
    open_collector();
    kp_test_window_of("aIcA");
    run_first();
    kp_collector_replay(t.c, &w->job, &t.out);
    kp_test_window_check_memory();
    assert_int_equal(kp_test_count("copy"), 1 + 2 * several->passes); /* once to take memory, then before each wanted */
    assert_int_equal(kp_test_count("kernel"), 0);
    assert_int_equal(kp_test_count("alloc"), 1);
    assert_int_equal(kp_test_count("free"), 1); /* given back before the program goes on */
    kp_collector_drop(t.c);
    check_results(several, ranges);
    w->job.mode = KP_RANGE_USER;
    replay();
    kp_test_window_check_memory();
    check_results(several, in_order);
}

static CUstream streams[2];

static CUresult CUDAAPI note_stream(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)to, (void)from, (void)bytes;
    streams[0] = streams[1];
    streams[1] = stream;
    return CUDA_SUCCESS;
}

/* Nothing waits for the flush but what follows in its stream. */
static void test_flush_in_the_stream(void **state)
{
    (void)state;
    t.setup.flush = true;
    w->stream = CU_STREAM_PER_THREAD;
    kp_test_driver()->cuMemcpyDtoDAsync = note_stream;
    open_collector();
    replay_of("AI");
    assert_ptr_equal(streams[0], CU_STREAM_PER_THREAD);
    assert_ptr_equal(streams[1], CU_STREAM_PER_THREAD);
    check_results(several, in_order);
}

/* The sweep is a range of its own, before each that is wanted. */
static void test_flush_by_kernel(void **state)
{
    static const size_t ranges[] = {2, 5, 7};
    (void)state;
    t.setup.flush = true;
    kp_test_driver()->cuMemCreate = NULL;
    open_collector();
    kp_test_window_of("aIcAC");
    for (int i = 0; i < 2; i++) {
        replay();
        kp_test_window_check_memory();
        check_results(several, ranges);
    }
    w->job.mode = KP_RANGE_USER;
    replay();
    kp_test_window_check_memory();
    check_results(several, in_order);
}

/* Only the first flush tells that a kernel is needed. */
static void test_flush_found_to_be_a_kernel(void **state)
{
    static const size_t ranges[] = {2, 5, 7};
    (void)state;
    t.setup.flush = true;
    open_collector();
    kp_test_window_of("aIcAC");
    kp_test_fail("create", 0, CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 2; i++) {
        replay();
        kp_test_window_check_memory();
        check_results(several, ranges);
    }
}

/* ---- room and memory for counters ---- */

static size_t bytes_a_range(void)
{
    return 2 * sizeof(struct fake_image_range);
}

static size_t room_of(const struct kp_plan *plan, size_t window, uint64_t memory)
{
    t.setup.plan = plan;
    t.setup.window = window;
    t.setup.memory = memory;
    open_collector();
    size_t room = kp_collector_room(t.c);
    assert_int_equal(kp_collector_room(t.c), room);
    kp_collector_close(t.c, true);
    t.c = NULL;
    return room;
}

static void test_room(void **state)
{
    const size_t each = bytes_a_range();
    (void)state;
    assert_int_equal(room_of(several, 7, 1 << 30), 7);
    assert_int_equal(room_of(several, 1, 1 << 30), 1);
    assert_int_equal(room_of(several, 0, 1 << 30), 1);
    assert_int_equal(room_of(several, 500, 100 * each), 100);
    assert_int_equal(room_of(several, 500, 100 * each - 1), 99);
    assert_int_equal(room_of(several, 500, 0), 1);
    assert_int_equal(room_of(two_groups, 500, 100 * each), 50); /* both are held until they are evaluated */
}

/* A profiler that cannot be enabled now may well be later: the bound must hold then. */
static void test_room_once_the_profiler_is_there(void **state)
{
    (void)state;
    t.setup.window = 500;
    t.setup.memory = 100 * bytes_a_range();
    open_collector();
    kp_test_fail("enable", 1, FAILS);
    assert_in_range(kp_collector_room(t.c), 1, 500);
    assert_int_equal(kp_collector_room(t.c), 100);
    kp_collector_close(t.c, true);
    open_collector();
    kp_test_fail("enable", 1, FAILS);
    kp_test_window_of(many(70));
    replay();
    check_nothing(KP_STAGE_BEGIN, "CUPTI_ERROR_UNKNOWN");
    replay();
    check_results(several, in_order);
    assert_int_equal(configured, 100);
}

static void keep_pending(void)
{
    assert_non_null(t.out.counters);
    t.pending[t.n_pending++] = t.out.counters;
    t.out.counters = NULL;
}

/* In steps of four: a window uses the data of another of about its size. */
static void test_counter_data_is_kept(void **state)
{
    static const struct {
        const char *window;
        unsigned images;
    } rows[] = {{"A", 1},  {"A", 0}, {"AA", 1}, {"AAAA", 0}, {"A", 0}, {"AAAAA", 1}, {"AAAAAAAAAAAAAAAA", 0},
                {"AIC", 0}};
    (void)state;
    open_collector();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        kp_test_forget_calls();
        replay_of(rows[i].window);
        if (kp_test_count("image") != rows[i].images)
            fail_msg("row %zu: %u images", i, kp_test_count("image"));
        check_results(several, in_order);
    }
    assert_int_equal(kp_test_count("settle"), 0);
}

/* What is still being evaluated is left alone: the next window takes another, until the bound is met. */
static void test_counter_data_is_bounded(void **state)
{
    (void)state;
    need_library();
    size_t fixed = 2 * (sizeof(struct fake_image) + several->groups[0].n_names * sizeof(uint64_t));
    t.setup.memory = 2 * (16 * bytes_a_range() + fixed);
    t.setup.window = 16;
    open_collector();
    replay_of("AICAI");
    keep_pending();
    replay_of("CIAAA");
    keep_pending();
    assert_int_equal(kp_test_count("image"), 2);
    assert_int_equal(kp_test_count("settle"), 0);
    replay_of("IIIII"); /* waits for the others, and takes what they had */
    assert_int_equal(kp_test_count("settle"), 1);
    check_results(several, in_order);
    assert_int_equal(kp_test_count("image"), 2);
    kp_test_forget_calls();
    replay_of("A"); /* a third of another size: one that is idle makes way */
    check_results(several, in_order);
    assert_int_equal(kp_test_count("image"), 1);
    assert_int_equal(kp_test_count("settle"), 0);
}

static void replay_in(size_t launches, size_t room, unsigned images)
{
    kp_test_forget_calls();
    replay_of(many(launches));
    if (configured != room || kp_test_count("image") != images)
        fail_msg("%zu launches: room for %zu, %u new", launches, configured, kp_test_count("image"));
}

/* One that is idle serves with more room than the window needs, as emptying it costs less than making another: the
 * smallest of them, and none that is more than four times too large. */
static void test_counter_data_with_more_room(void **state)
{
    static const struct {
        size_t launches, room;
        unsigned images;
    } rows[] = {{16, 16, 1}, {4, 16, 0}, {3, 4, 1},   {4, 4, 0},   {17, 64, 1}, {16, 16, 0},
                {2, 4, 0},   {1, 4, 0},  {64, 64, 0}, {20, 64, 0}, {5, 16, 0}};
    (void)state;
    open_collector();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        replay_in(rows[i].launches, rows[i].room, rows[i].images);
        kp_test_window_check_memory();
        check_results(several, in_order);
    }
    kp_test_forget_calls();
    count(many(16), KP_RANGE_AUTO); /* other metrics */
    assert_int_equal(kp_test_count("image"), 1);
    check_results(one_pass, in_order);
}

/* In use is not idle; and the smallest is taken also where it is the newest. */
static void test_counter_data_with_more_room_in_use(void **state)
{
    (void)state;
    open_collector();
    replay_in(64, 64, 1);
    check_results(several, in_order);
    replay_in(16, 64, 0);
    keep_pending();
    replay_in(16, 16, 1);
    check_results(several, in_order);
    settle();
    replay_in(16, 16, 0);
    keep_pending();
    replay_in(16, 64, 0);
    check_results(several, in_order);
}

/* A window may have no range at all. */
static void test_counter_data_of_nothing(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("aic");
    w->job.mode = KP_RANGE_USER;
    for (int i = 0; i < 2; i++) {
        replay();
        check_results(several, NULL);
    }
    assert_int_equal(kp_test_count("image"), 1);
}

/* What the profiler runs with first is the room of the counter data, not that of the window. */
static void test_profiler_with_more_room(void **state)
{
    (void)state;
    open_collector();
    replay_of(many(16));
    check_results(several, in_order);
    w->job.mode = KP_RANGE_USER;
    replay_of("A");
    check_results(several, in_order);
    kp_test_calls("enable disable image", "enable image disable enable image");
    replay_of(many(4)); /* in counter data for 16 */
    check_results(several, in_order);
    assert_int_equal(configured, 16);
    kp_test_calls("enable disable image", "disable enable");
    replay_of(many(16));
    check_results(several, in_order);
    kp_test_calls("enable disable image", "");
}

/* The same where it is found only after the others were waited for. */
static void test_profiler_with_more_room_after_a_wait(void **state)
{
    (void)state;
    need_library();
    size_t fixed = 2 * (sizeof(struct fake_image) + several->groups[0].n_names * sizeof(uint64_t));
    t.setup.memory = 2 * (16 * bytes_a_range() + fixed);
    t.setup.window = 16;
    open_collector();
    for (int i = 0; i < 2; i++) {
        replay_of(many(16));
        keep_pending();
    }
    kp_test_forget_calls();
    w->job.mode = KP_RANGE_USER;
    replay_of(many(4));
    check_results(several, in_order);
    kp_test_calls("enable disable image settle", "disable enable settle disable enable");
    replay_of(many(16));
    check_results(several, in_order);
    kp_test_calls("enable disable image settle", "");
}

/* More than the bound is made only where one window cannot do with less. */
static void test_counter_data_larger_than_the_bound(void **state)
{
    (void)state;
    t.setup.memory = 1;
    open_collector();
    assert_int_equal(kp_collector_room(t.c), 1);
    for (int i = 0; i < 3; i++) {
        replay_of("A");
        kp_test_window_check_memory();
        keep_pending();
    }
    assert_int_equal(kp_test_count("settle"), 2);
}

/* Initialised when it is made, again for its second use, and from then on copied. */
static void test_counter_data_that_cannot_be_emptied(void **state)
{
    (void)state;
    open_collector();
    replay_of("AI");
    check_results(several, in_order);
    kp_test_fail("again", 1, FAILS);
    replay();
    check_nothing(KP_STAGE_BEGIN, "CUPTI_ERROR_UNKNOWN");
    kp_test_fail("again", 1, 0);
    for (int i = 0; i < 2; i++) {
        replay();
        kp_test_window_check_memory();
        check_results(several, in_order);
    }
    assert_int_equal(kp_test_count("again"), 2);
    assert_int_equal(kp_test_count("image"), 1);
}

/* With a sweep before each launch a window has twice as many ranges as launches: no more memory than that. */
static size_t largest_image;

static CUptiResult CUPTIAPI note_size(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    if (p->maxNumOfRanges > largest_image)
        largest_image = p->maxNumOfRanges;
    return fake->cuptiRangeProfilerGetCounterDataSize(p);
}

static void test_counter_data_of_sweeps(void **state)
{
    static struct kp_cupti noting; /* the end of a failed test still uses it */
    noting = cupti;
    (void)state;
    noting.cuptiRangeProfilerGetCounterDataSize = note_size;
    largest_image = 0;
    t.setup.cupti = &noting;
    t.setup.flush = true;
    t.setup.window = 9;
    kp_test_driver()->cuMemCreate = NULL;
    open_collector();
    replay_of("AAAAAAAAA");
    kp_counters_free(t.out.counters);
    assert_true(largest_image <= 18);
}

/* Steps of four up to 256, then of 64, and never more than a window may have. */
static void test_steps_of_room(void **state)
{
    static struct kp_cupti noting;
    static const struct {
        size_t launches, window, ranges;
    } rows[] = {{1, 1000, 1},     {2, 1000, 4},     {5, 1000, 16},    {17, 1000, 64},    {65, 1000, 256},
                {256, 1000, 256}, {257, 1000, 320}, {321, 1000, 384}, {990, 1000, 1000}, {3, 3, 3}};
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    noting = cupti;
    noting.cuptiRangeProfilerGetCounterDataSize = note_size;
    t.setup.cupti = &noting;
    kp_test_window_of("A");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        t.setup.window = rows[i].window;
        t.setup.memory = UINT64_C(1) << 34;
        open_collector();
        largest_image = 0;
        assert_int_equal(kp_collector_room(t.c), rows[i].window);
        assert_int_equal(kp_collector_count_begin(t.c, KP_RANGE_AUTO, rows[i].launches, 0, &why), 0);
        assert_int_equal(kp_test_window_launch(0), CUDA_SUCCESS);
        kp_collector_count_end(t.c, &w->job, &t.out);
        check_results(one_pass, in_order);
        assert_int_equal(largest_image, rows[i].ranges < 2 ? 2 : rows[i].ranges); /* two for the room */
        kp_collector_close(t.c, true);
        t.c = NULL;
    }
}

/* ---- evaluation ---- */

/* At least 16 launches each, one CPU left to the program, and no more than four. */
static void test_threads_that_evaluate(void **state)
{
    static const struct {
        size_t launches, cpus;
        unsigned threads;
    } rows[] = {{1, 64, 1},  {31, 64, 1}, {32, 64, 2}, {47, 64, 2}, {48, 64, 3}, {63, 64, 3}, {64, 64, 4},
                {80, 64, 4}, {80, 5, 4},  {80, 4, 3},  {80, 3, 2},  {80, 2, 1},  {80, 1, 1},  {80, 0, 1}};
    (void)state;
    open_collector();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        threads.cpus = rows[i].cpus;
        expect_threads(rows[i].threads);
        count(many(rows[i].launches), KP_RANGE_AUTO);
        check_results(one_pass, in_order);
        check_threads(rows[i].threads);
        kp_test_forget_calls();
    }
}

static void test_threads_for_each_group(void **state)
{
    (void)state;
    t.setup.plan = two_groups;
    open_collector();
    expect_threads(4);
    replay_of(many(70));
    check_results(two_groups, in_order);
    check_threads(1 + 2 * 3);
}

/* Opening one takes long: when they are needed, and once. */
static void test_hosts(void **state)
{
    (void)state;
    open_collector();
    count(many(31), KP_RANGE_AUTO);
    check_results(one_pass, in_order);
    assert_int_equal(threads.hosts, 1);
    for (int i = 0; i < 2; i++) {
        expect_threads(4);
        count(many(64), KP_RANGE_AUTO);
        check_results(one_pass, in_order);
        check_threads(4);
        assert_int_equal(threads.hosts, 4);
    }
    assert_int_equal(kp_test_count("host"), 3);
    kp_collector_close(t.c, false);
    t.c = NULL;
    assert_int_equal(threads.hosts, 0);
}

/* The caller's thread does what the others cannot. */
static void test_threads_that_fail(void **state)
{
    (void)state;
    open_collector();
    for (unsigned nth = 1; nth <= 3; nth++) {
        expect_threads(nth);
        threads.refused = nth;
        count(many(64), KP_RANGE_AUTO);
        check_results(one_pass, in_order);
        check_threads(nth);
        kp_test_forget_calls();
    }
    threads.refused = 0;
    kp_collector_close(t.c, true);
    t.setup.start = NULL;
    open_collector();
    expect_threads(1);
    count(many(64), KP_RANGE_AUTO);
    check_results(one_pass, in_order);
    check_threads(1);
}

static void test_hosts_that_fail(void **state)
{
    (void)state;
    open_collector();
    kp_test_fail("host", 0, FAILS);
    expect_threads(1);
    count(many(64), KP_RANGE_AUTO);
    check_results(one_pass, in_order);
    check_threads(4);
    assert_int_equal(threads.hosts, 1);
    kp_test_fail("host", 2, FAILS);
    expect_threads(3);
    count(many(64), KP_RANGE_AUTO);
    check_results(one_pass, in_order);
    check_threads(4);
    assert_int_equal(threads.hosts, 3);
    kp_test_fail("host", 2, 0);
    expect_threads(4);
    count(many(64), KP_RANGE_AUTO);
    check_results(one_pass, in_order);
    check_threads(4);
}

static size_t values_of(const struct kp_result *r)
{
    size_t n = 0;
    double value;
    for (size_t m = 0; m < one_pass->groups[0].n_names; m++)
        n += kp_metric_number(kp_result_find(r, one_pass->groups[0].names[m]), &value);
    return n;
}

/* What is wrong of 64 launches is explained by the first of them; those that are not have their values. */
static void check_evaluation_that_fails(unsigned n_threads)
{
    struct kp_result results[64] = {0}, *list[64];
    for (size_t i = 0; i < 64; i++)
        list[i] = &results[i];
    threads.in_turn = true;
    expect_threads(n_threads);
    count(many(64), KP_RANGE_AUTO);
    struct kp_why why = kp_counters_evaluate(t.out.counters, list);
    check_threads(n_threads);
    assert_non_null(kp_why_text(&why));
    assert_non_null(strstr(kp_why_text(&why), "CUPTI_ERROR_NOT_SUPPORTED"));
    kp_why_free(&why);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(values_of(list[i]), threads.codes[i] ? 0 : one_pass->groups[0].n_names);
        kp_result_free(list[i]);
    }
    kp_counters_free(t.out.counters);
    kp_test_forget_calls();
}

/* The first by the order of the launches, whichever thread had it. The threads take one launch each in turn, the caller
 * the fourth, before any takes a second. */
static void test_evaluation_that_fails(void **state)
{
    enum { FIRST = CUPTI_ERROR_NOT_SUPPORTED };
    static const int rows[][5] = {/* of the first four launches, and of the last */
                                  {FIRST, FAILS, FAILS, FAILS},
                                  {0, FIRST, 0, FAILS, FAILS},
                                  {0, 0, FIRST, FAILS},
                                  {0, 0, 0, FIRST, FAILS},
                                  {0, 0, 0, 0, FIRST}};
    (void)state;
    open_collector();
    for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); row++) {
        memcpy(threads.codes, rows[row], 4 * sizeof(*threads.codes));
        threads.codes[63] = rows[row][4];
        threads.cpus = 64;
        check_evaluation_that_fails(4);
        threads.cpus = 1;
        check_evaluation_that_fails(1);
    }
}

/* ---- failures ---- */

static const char *const failing[] = {"restore", "enable", "size",   "image", "config",
                                      "start",   "stop",   "decode", "info"};

/* Every call of CUPTI fails at every occurrence: no counters, a reason, memory as one execution leaves it unless the
 * outcome says otherwise, and the next window has everything. */
static void test_every_failure_of_cupti(void **state)
{
    unsigned tried = 0;
    (void)state;
    t.setup.plan = two_groups;
    open_collector();
    for (size_t at = 0; at < sizeof(failing) / sizeof(*failing); at++)
        for (unsigned nth = 1;; nth++) {
            kp_collector_close(t.c, true); /* each on one that has nothing yet */
            assert_int_equal(kp_collector_open(&t.setup, &t.c), 0);
            kp_test_forget_calls();
            kp_test_window_of("AiC");
            kp_test_fail(failing[at], nth, FAILS);
            replay();
            unsigned met = kp_test_count(failing[at]);
            kp_test_fail(failing[at], nth, 0);
            if (met < nth) {
                check_results(two_groups, (const size_t[]){0, 2});
                break;
            }
            tried++;
            assert_false(t.out.replay.damaged); /* a restore is made again */
            assert_false(t.out.replay.dead);
            if (t.out.replay.failed != KP_STAGE_NONE) /* a size not known for the room is no reason */
                check_nothing(t.out.replay.failed, "CUPTI_ERROR_UNKNOWN");
            else
                check_results(two_groups, (const size_t[]){0, 2});
            replay();
            kp_test_window_check_memory();
            check_results(two_groups, (const size_t[]){0, 2});
        }
    assert_in_range(tried, 15, 60);
}

/* What the groups before the one that failed had taken is free again. */
static void test_counter_data_after_a_failure(void **state)
{
    (void)state;
    t.setup.plan = two_groups;
    open_collector();
    replay_of("AI");
    check_results(two_groups, in_order);
    kp_test_fail("decode", 2, FAILS);
    replay();
    check_nothing(KP_STAGE_DECODE, "CUPTI_ERROR_UNKNOWN");
    replay();
    check_results(two_groups, in_order);
    assert_int_equal(kp_test_count("image"), 2);
}

/* The driver refuses what it took before, at any place in any pass: the window is run again as a whole. */
static void test_refused(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("AiC");
    for (unsigned nth = 1; nth <= 3 * several->passes; nth++) {
        run_first();
        kp_test_fail("launch", 3 + nth, CUDA_ERROR_INVALID_VALUE); /* after the rehearsal */
        kp_collector_replay(t.c, &w->job, &t.out);
        kp_test_fail("launch", 0, 0);
        kp_collector_drop(t.c);
        assert_false(t.out.replay.dead || t.out.replay.damaged);
        assert_int_equal(t.out.replay.code, KP_ISSUE_REFUSED);
        check_nothing(KP_STAGE_ISSUE, kp_reason_text(KP_REASON_LAUNCH_FAILED));
        replay();
        check_results(several, (const size_t[]){0, 2});
        kp_test_window_check_memory();
    }
}

/* What is said is what the driver said of the launch, not of the execution that set things right afterwards. */
static void test_words_of_a_refusal(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("AiC");
    run_first();
    kp_test_fail("launch", 5, CUDA_ERROR_INVALID_VALUE);
    kp_collector_replay(t.c, &w->job, &t.out);
    kp_test_fail("launch", 0, 0);
    kp_collector_drop(t.c);
    check_nothing(KP_STAGE_ISSUE, "CUDA_ERROR_INVALID_VALUE");
}

static void test_rehearsal(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("AiC");
    kp_test_fail("rehearse", 0, KP_ISSUE_TOO_LONG);
    replay();
    assert_int_equal(kp_test_count("start") + kp_test_count("plain"), 0);
    check_nothing(KP_STAGE_REHEARSE, "waits for the host");
    kp_test_fail("rehearse", 0, KP_ISSUE_REFUSED);
    replay();
    assert_int_equal(kp_test_count("start"), 0);
    assert_int_equal(kp_test_count("plain"), 1);
    assert_false(t.out.replay.dead);
    assert_null(strstr(kp_why_text(&t.out.why), "CUDA_SUCCESS"));
    check_nothing(KP_STAGE_REHEARSE, "run again");
}

static void test_rehearsal_that_faults(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("AiC");
    kp_test_fail("rehearse", 0, CUDA_ERROR_ILLEGAL_ADDRESS);
    replay();
    assert_true(t.out.replay.dead);
    assert_int_equal(kp_test_count("start") + kp_test_count("plain"), 0);
    check_nothing(KP_STAGE_REHEARSE, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

/* A fault during a pass shows when its end is waited for: nothing is tried after it. */
static void test_fault(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("AiC");
    run_first();
    kp_test_fail("sync", 2, CUDA_ERROR_ILLEGAL_ADDRESS); /* the first is before the passes */
    kp_test_forget_calls();
    kp_collector_replay(t.c, &w->job, &t.out);
    kp_test_fail("sync", 0, 0);
    assert_true(t.out.replay.dead);
    assert_false(t.out.replay.damaged);
    assert_int_equal(kp_test_count("restore"), 2);
    assert_int_equal(kp_test_count("plain"), 0);
    check_nothing(KP_STAGE_ISSUE, "the launch failed: CUDA_ERROR_ILLEGAL_ADDRESS");
    kp_test_forget_calls();
    kp_collector_leave(t.c); /* no driver call */
    kp_collector_drop(t.c);
    kp_test_calls(NULL, "");
}

/* A fault stays: the context answers everything with it. */
static bool broken;

static CUresult CUDAAPI sync_of_a_fault(void)
{
    return broken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static CUresult CUDAAPI copy_of_a_fault(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)to, (void)from, (void)bytes, (void)stream;
    kp_test_met("copy");
    broken |= kp_test_count("copy") == 3; /* the first is before the passes */
    return sync_of_a_fault();
}

/* The flush before a launch is where the fault of the launch before may show first. */
static void test_fault_seen_by_the_flush(void **state)
{
    (void)state;
    t.setup.flush = true;
    open_collector();
    kp_test_window_of("AC");
    run_first();
    broken = false;
    kp_test_driver()->cuCtxSynchronize = sync_of_a_fault;
    kp_test_driver()->cuMemcpyDtoDAsync = copy_of_a_fault;
    kp_collector_replay(t.c, &w->job, &t.out);
    assert_true(t.out.replay.dead);
    assert_null(strstr(kp_why_text(&t.out.why), "flush"));
    check_nothing(KP_STAGE_ISSUE, "the launch failed: CUDA_ERROR_ILLEGAL_ADDRESS");
    kp_collector_leave(t.c);
}

static void test_flush_that_fails(void **state)
{
    (void)state;
    t.setup.flush = true;
    open_collector();
    kp_test_window_of("AC");
    unsigned last = 1 + 2 * several->passes;
    /* The first and the last ones, and one of three between: under TSan each takes a second. */
    for (unsigned nth = 1; nth <= last; nth += nth < 3 || nth + 3 > last ? 1 : 3) {
        kp_test_fail("copy", nth, CUDA_ERROR_NOT_SUPPORTED);
        replay();
        kp_test_fail("copy", 0, 0);
        assert_false(t.out.replay.dead || t.out.replay.damaged);
        check_nothing(nth == 1 ? KP_STAGE_BEGIN : KP_STAGE_ISSUE, "cannot flush the caches");
        replay();
        kp_test_window_check_memory();
        check_results(several, in_order);
    }
    kp_test_fail("alloc", 0, CUDA_ERROR_OUT_OF_MEMORY); /* a device that is full */
    replay();
    check_nothing(KP_STAGE_BEGIN, "KPROF_CACHE_CONTROL=none");
}

static void test_marks_that_fail(void **state)
{
    static const char *const words[] = {"push", "pop"};
    (void)state;
    open_collector();
    kp_test_window_of("AC");
    w->job.mode = KP_RANGE_USER;
    for (size_t at = 0; at < 2; at++)
        for (unsigned nth = 1; nth <= 2 * several->passes; nth++) {
            kp_test_fail(words[at], nth, FAILS);
            replay();
            kp_test_fail(words[at], nth, 0);
            assert_false(t.out.replay.dead || t.out.replay.damaged);
            check_nothing(KP_STAGE_ISSUE, "cannot mark the range");
            replay();
            kp_test_window_check_memory();
            check_results(several, in_order);
        }
}

/* A range that is never closed: its pass is not stopped, the profiler is neither used nor enabled again, and why is
 * told of this window and of those after it. */
static void test_range_that_stays_open(void **state)
{
    (void)state;
    open_collector();
    kp_test_window_of("AC");
    w->job.mode = KP_RANGE_USER;
    kp_test_fail("pop", 0, FAILS);
    replay();
    assert_false(t.out.replay.dead || t.out.replay.damaged);
    check_nothing(KP_STAGE_ISSUE, "cannot mark the range");
    kp_test_fail("pop", 0, 0);
    assert_int_equal(kp_test_count("stop") + kp_test_count("disable"), 0);
    kp_test_forget_calls();
    for (int again = 0; again < 2; again++) {
        replay();
        kp_test_window_check_memory();
        check_nothing(KP_STAGE_STOP, "cannot stop the counters: CUPTI_ERROR_UNKNOWN");
    }
    assert_int_equal(kp_test_count("enable") + kp_test_count("start"), 0);
}

/* In one pass, too, where launches go on after a mark that failed: the program's are made all the same. */
static void count_with_failing_mark(const char *mark, unsigned nth)
{
    kp_test_fail(mark, nth, FAILS);
    count("AI", KP_RANGE_USER);
    kp_test_fail(mark, nth, 0);
    assert_null(t.out.counters);
    assert_non_null(strstr(kp_why_text(&t.out.why), "cannot mark the range"));
    kp_why_free(&t.out.why);
    count("AI", KP_RANGE_USER);
    check_results(one_pass, in_order);
}

static void test_counting_marks_that_fail(void **state)
{
    (void)state;
    open_collector();
    for (unsigned nth = 1; nth <= 2; nth++)
        count_with_failing_mark("pop", nth);
}

/* A profiler that could not be disabled is not enabled a second time. */
static void test_disable_fails(void **state)
{
    (void)state;
    open_collector();
    replay_of("A");
    check_results(several, in_order);
    w->job.mode = KP_RANGE_USER;
    kp_test_fail("disable", 1, FAILS);
    for (int window = 0; window < 2; window++) {
        kp_test_forget_calls();
        replay();
        kp_test_window_check_memory();
        check_nothing(KP_STAGE_STOP, "cannot stop the counters: CUPTI_ERROR_UNKNOWN");
        assert_int_equal(kp_test_count("disable"), !window);
        assert_int_equal(kp_test_count("enable") + kp_test_count("start"), 0);
    }
    kp_test_fail("disable", 1, 0);
}

/* A launch refused between the marks leaves no range open when the pass ends. In a child: the fake ends the process. */
static void test_refused_between_the_marks(void **state)
{
    int status = -1;
    (void)state;
    need_library();
    pid_t pid = fork();
    if (!pid) {
        set_up(NULL);
        open_collector();
        kp_test_window_of("AC");
        w->job.mode = KP_RANGE_USER;
        run_first();
        kp_test_fail("launch", 4, CUDA_ERROR_INVALID_VALUE);
        kp_collector_replay(t.c, &w->job, &t.out);
        kp_test_end(t.out.counters || t.out.replay.dead || t.out.replay.damaged);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_save(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    open_collector();
    kp_test_fail("save", 1, CUPTI_ERROR_OUT_OF_MEMORY);
    assert_int_equal(kp_collector_save(t.c, &why), -1);
    assert_non_null(strstr(kp_why_text(&why), "cannot save"));
    kp_why_free(&why);
    assert_int_equal(kp_collector_save(t.c, &why), 0);
    assert_int_equal(kp_collector_save(t.c, &why), 0); /* it is saved */
    assert_null(kp_why_text(&why));
    assert_int_equal(kp_test_count("save"), 2);
    kp_collector_drop(t.c);
    kp_collector_drop(t.c);
    assert_int_equal(kp_test_count("drop"), 1);
    kp_collector_close(t.c, true);
    static struct kp_cupti without;
    without = cupti;
    without.cuptiCheckpointRestore = NULL;
    t.setup.cupti = &without;
    assert_int_equal(kp_collector_open(&t.setup, &t.c), 0);
    assert_int_equal(kp_collector_save(t.c, &why), -1);
    assert_non_null(strstr(kp_why_text(&why), "libcheckpoint"));
    kp_why_free(&why);
    kp_collector_close(t.c, true);
    t.c = NULL;
}

static size_t left_of_device;

static CUresult CUDAAPI full_device(size_t *available, size_t *total)
{
    *available = left_of_device;
    *total = (size_t)1 << 50;
    return CUDA_SUCCESS;
}

static unsigned looks; /* at the host's memory */

FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*real)(const char *, const char *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    looks += !strcmp(path, "/proc/meminfo");
    return real(path, mode);
}

/* Where memory does not fit, each launch asks. The files that tell of the host's memory are read once a second. */
static void test_full_for_a_while(void **state)
{
    enum { LAUNCHES = 1000 };
    struct timespec begin, end;
    (void)state;
    kp_test_driver()->cuMemGetInfo = full_device;
    open_collector();
    looks = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < LAUNCHES; i++)
        assert_false(kp_collector_can_save(t.c));
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(looks >= 1 && looks <= 2 + (unsigned)(end.tv_sec - begin.tv_sec));
    unsigned before = looks;
    left_of_device = (size_t)1 << 40;
    assert_false(kp_collector_can_save(t.c)); /* some was freed, but too little */
    assert_int_equal(looks, before + 1);
    left_of_device = (size_t)1 << 50;
    assert_true(kp_collector_can_save(t.c)); /* at once */
    left_of_device = 0;
    assert_false(kp_collector_can_save(t.c));
    assert_int_equal(looks, before + 2);
}

/* The checkpoint library would fill the disk. */
static void test_save_of_too_much(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    kp_test_driver()->cuMemGetInfo = full_device;
    open_collector();
    assert_int_equal(kp_collector_save(t.c, &why), -1);
    assert_non_null(strstr(kp_why_text(&why), "1125899.9 GB"));
    kp_why_free(&why);
    assert_int_equal(kp_test_count("save"), 0);
}

/* ---- one pass, without replay ---- */

static void test_counting(void **state)
{
    static const size_t ranges[] = {1, 3};
    (void)state;
    t.setup.flush = true;
    open_collector();
    count("aIcA", KP_RANGE_AUTO);
    kp_test_calls(NULL, "enable size*7 image config start launch*4 stop decode info");
    assert_int_equal(t.out.replay.passes, 1);
    check_results(one_pass, ranges);
    kp_test_forget_calls();
    count("aIcA", KP_RANGE_AUTO);
    kp_test_calls(NULL, "size again config start launch*4 stop decode info"); /* no flush, no wait, no save */
    check_results(one_pass, ranges);
    kp_test_forget_calls();
    count("aIcA", KP_RANGE_AUTO);
    kp_test_calls(NULL, "config start launch*4 stop decode info");
    check_results(one_pass, ranges);
    count("aIcA", KP_RANGE_USER);
    kp_test_calls("enable disable push pop config launch sync",
                  "disable enable config launch sync push launch sync pop launch sync push launch sync pop");
    check_results(one_pass, in_order);
    replay(); /* and replays in between */
    check_results(several, w->job.mode == KP_RANGE_AUTO ? ranges : in_order);
}

/* Sweeps belong to replays. */
static void test_counting_beside_sweeps(void **state)
{
    (void)state;
    t.setup.flush = true;
    kp_test_driver()->cuMemCreate = NULL;
    open_collector();
    for (int i = 0; i < 2; i++) {
        replay_of("AI");
        check_results(several, (const size_t[]){1, 3});
        kp_test_forget_calls();
        count("AI", KP_RANGE_AUTO);
        check_results(one_pass, in_order);
        assert_int_equal(kp_test_count("kernel"), 0);
    }
}

static void test_counting_that_does_not_begin(void **state)
{
    static const char *const words[] = {"enable", "size", "image", "config", "start"};
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    open_collector();
    for (size_t at = 0; at < sizeof(words) / sizeof(*words); at++) {
        kp_collector_close(t.c, true);
        assert_int_equal(kp_collector_open(&t.setup, &t.c), 0);
        kp_test_fail(words[at], 0, FAILS);
        assert_int_equal(kp_collector_count_begin(t.c, KP_RANGE_AUTO, 2, 0, &why), -1);
        assert_non_null(strstr(kp_why_text(&why), "CUPTI_ERROR_UNKNOWN"));
        kp_why_free(&why);
        kp_test_fail(words[at], 0, 0);
        count("AI", KP_RANGE_AUTO);
        check_results(one_pass, in_order);
    }
    kp_test_forget_calls();
    kp_test_fail("start", 1, FAILS); /* the counter data of a vain attempt is free for the next */
    assert_int_equal(kp_collector_count_begin(t.c, KP_RANGE_AUTO, 2, 0, &why), -1);
    kp_why_free(&why);
    count("AI", KP_RANGE_AUTO);
    check_results(one_pass, in_order);
    assert_int_equal(kp_test_count("image"), 0);
    kp_collector_close(t.c, true);
    t.setup.one_pass = NULL;
    assert_int_equal(kp_collector_open(&t.setup, &t.c), 0);
    assert_int_equal(kp_collector_count_begin(t.c, KP_RANGE_AUTO, 2, 0, &why), -1);
    assert_non_null(kp_why_text(&why));
    kp_why_free(&why);
    kp_collector_one_pass(t.c, one_pass);
    count("AI", KP_RANGE_AUTO);
    check_results(one_pass, in_order);
}

static void test_counting_that_fails(void **state)
{
    static const struct {
        const char *word;
        enum kp_stage stage;
    } rows[] = {{"stop", KP_STAGE_STOP}, {"decode", KP_STAGE_DECODE}, {"info", KP_STAGE_DECODE}};
    (void)state;
    open_collector();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        kp_test_fail(rows[i].word, 0, FAILS);
        count("AI", KP_RANGE_AUTO);
        kp_test_fail(rows[i].word, 0, 0);
        assert_null(t.out.counters);
        assert_int_equal(t.out.replay.failed, rows[i].stage);
        assert_non_null(strstr(kp_why_text(&t.out.why), "CUPTI_ERROR_UNKNOWN"));
        kp_why_free(&t.out.why);
        count("AI", KP_RANGE_AUTO);
        check_results(one_pass, in_order);
    }
    assert_int_equal(kp_test_count("image"), 1);
    count_with_failing_mark("push", 1);
}

/* ---- replays in sessions ---- */

static const char in_session[] =
    "save restore rehearse enable disable session-image session end-session list unlist pass on "
    "issue off end-pass flush drop settle";

static void open_by_session(struct kp_plan *plan)
{
    t.setup.plan = plan;
    open_collector();
}

/* The range profiler is never there. */
static void test_window_in_a_session(void **state)
{
    (void)state;
    open_by_session(by_session);
    assert_int_equal(kp_collector_room(t.c), MOST);
    kp_test_window_of("AIC");
    replay();
    kp_test_window_check_memory();
    assert_int_equal(t.out.replay.passes, by_session->passes);
    kp_test_calls(in_session, passes("save restore rehearse session-image session list",
                                     " restore pass on issue off end-pass", " flush drop"));
    check_results(by_session, in_order);
    kp_test_forget_calls();
    replay(); /* the session is there */
    kp_test_window_check_memory();
    kp_test_calls(in_session, passes("save restore rehearse unlist session-image list",
                                     " restore pass on issue off end-pass", " flush drop"));
    check_results(by_session, in_order);
    kp_test_forget_calls();
    kp_collector_close(t.c, true);
    t.c = NULL;
    kp_test_calls(in_session, "unlist end-session");
}

static void test_unwanted_between_in_a_session(void **state)
{
    static const size_t ranges[] = {1, 4, 5, 7};
    (void)state;
    open_by_session(by_session);
    replay_of("aIcaACaIc");
    kp_test_window_check_memory();
    check_results(by_session, ranges);
}

/* One with more room is another session; one with less is not. */
static void test_rooms_of_sessions(void **state)
{
    (void)state;
    open_by_session(by_session);
    static const char *const windows[] = {"A", "AICAI", "AI", "AICAICAIC"};
    for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
        replay_of(windows[i]);
        check_results(by_session, in_order);
    }
    kp_test_calls("session end-session enable", "session end-session session");
}

/* Ranges are for the range profiler. */
static void test_ranges_between_sessions(void **state)
{
    (void)state;
    open_by_session(by_session);
    for (int i = 0; i < 4; i++) {
        kp_test_window_of("AI");
        w->job.mode = i % 2 ? KP_RANGE_USER : KP_RANGE_AUTO;
        replay();
        kp_test_window_check_memory();
        check_results(by_session, in_order);
    }
    kp_test_calls("session end-session enable disable",
                  "session end-session enable disable session end-session enable");
}

/* Lists that share an image are taken up together, and decoded together. */
static void test_lists_in_a_session(void **state)
{
    (void)state;
    open_by_session(two_by_session);
    for (int i = 0; i < 2; i++) {
        kp_test_forget_calls();
        replay_of("AiC");
        kp_test_window_check_memory();
        kp_test_calls("session list pass end-pass flush",
                      i ? "list pass end-pass pass end-pass flush" : "session list pass end-pass pass end-pass flush");
        check_results(two_by_session, (const size_t[]){0, 2});
    }
}

/* What a list has counted is kept where the next one cannot be, or has to begin anew. */
static void test_a_list_whose_successor_fails(void **state)
{
    (void)state;
    open_by_session(two_by_session);
    kp_test_window_of("AiC");
    kp_test_fail("pass", 2, FAILS);
    replay();
    kp_test_fail("pass", 2, 0);
    kp_test_window_check_memory();
    check_nothing(KP_STAGE_START, "CUPTI_ERROR_UNKNOWN");
    replay(); /* by the range profiler, as a pass could not start */
    check_results(two_by_session, (const size_t[]){0, 2});
    assert_int_equal(kp_test_count("session"), 1);
    assert_true(kp_test_count("enable") > 0);
}

/* Without a session, or a list in it, the range profiler has the window, and those behind it. */
static void test_no_session_for_a_replay(void **state)
{
    static const char *const fails[] = {"session", "session-image", "list"};
    (void)state;
    for (size_t i = 0; i < sizeof(fails) / sizeof(*fails); i++) {
        open_by_session(by_session);
        kp_test_fail(fails[i], 1, FAILS);
        for (int again = 0; again < 2; again++) {
            replay_of("AIC");
            kp_test_window_check_memory();
            check_results(by_session, in_order);
        }
        kp_test_fail(fails[i], 1, 0);
        assert_int_equal(kp_test_count(fails[i]), 1);
        assert_int_equal(kp_test_count("enable"), 1);
        kp_collector_close(t.c, true);
        t.c = NULL;
    }
}

/* Whatever fails in a pass is told, and the next window has its values. */
static void test_failures_of_sessions(void **state)
{
    static const struct {
        const char *word;
        unsigned nth;
        enum kp_stage stage;
    } rows[] = {{"pass", 1, KP_STAGE_START}, {"pass", 2, KP_STAGE_START},    {"on", 2, KP_STAGE_START},
                {"off", 2, KP_STAGE_STOP},   {"end-pass", 1, KP_STAGE_STOP}, {"flush", 1, KP_STAGE_DECODE},
                {"info", 1, KP_STAGE_DECODE}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        open_by_session(by_session);
        kp_test_window_of("AIC");
        kp_test_fail(rows[i].word, rows[i].nth, FAILS);
        replay();
        kp_test_fail(rows[i].word, rows[i].nth, 0);
        check_nothing(rows[i].stage, "CUPTI_ERROR_UNKNOWN");
        replay();
        kp_test_window_check_memory();
        check_results(by_session, in_order);
        kp_collector_close(t.c, true);
        t.c = NULL;
    }
}

static void replay_range(void)
{
    kp_test_window_of("AI");
    w->job.mode = KP_RANGE_USER;
    replay();
    w->job.mode = KP_RANGE_AUTO;
    kp_test_window_check_memory();
}

/* One that does not end costs a window, and is ended in the next. */
static void test_a_session_that_ends_late(void **state)
{
    (void)state;
    for (int counted = 0; counted < 2; counted++) {
        open_by_session(by_session);
        replay_of("AI");
        check_results(by_session, in_order);
        kp_test_fail("end-session", 1, FAILS);
        replay_range();
        kp_test_fail("end-session", 1, 0);
        check_nothing(KP_STAGE_STOP, "CUPTI_ERROR_UNKNOWN");
        assert_int_equal(kp_test_count("end-session"), 1);
        if (counted) {
            count("A", KP_RANGE_AUTO);
            check_results(one_pass, in_order);
        }
        replay_of("AI");
        kp_test_window_check_memory();
        check_results(by_session, in_order);
        replay_range();
        check_results(by_session, in_order);
        kp_collector_close(t.c, true);
        t.c = NULL;
    }
}

/* So is one that was to be replaced by a larger one. */
static void test_a_session_that_is_replaced_late(void **state)
{
    (void)state;
    open_by_session(by_session);
    replay_of("A");
    check_results(by_session, in_order);
    kp_test_fail("end-session", 1, FAILS);
    kp_test_window_of("AICAI");
    replay();
    kp_test_fail("end-session", 1, 0);
    check_nothing(KP_STAGE_STOP, "CUPTI_ERROR_UNKNOWN");
    for (int i = 0; i < 2; i++) {
        replay_of("AICAI");
        check_results(by_session, in_order);
    }
    assert_int_equal(kp_test_count("session"), 2);
    assert_int_equal(kp_test_count("enable"), 0);
}

/* There is one further try. */
static void test_a_session_that_never_ends(void **state)
{
    (void)state;
    open_by_session(by_session);
    replay_of("AI");
    check_results(by_session, in_order);
    kp_test_fail("end-session", 0, FAILS);
    for (int i = 0; i < 4; i++) {
        replay_range();
        check_nothing(KP_STAGE_STOP, "CUPTI_ERROR_UNKNOWN");
    }
    assert_int_equal(kp_test_count("end-session"), 2);
    assert_int_equal(kp_test_count("session"), 1);
    kp_test_fail("end-session", 0, 0);
}

/* Counter data that nobody has evaluated yet is not to fill the memory. */
static void test_counter_data_of_sessions(void **state)
{
    (void)state;
    t.setup.memory = 12 * sizeof(struct fake_image_range);
    open_by_session(by_session);
    assert_int_equal(kp_collector_room(t.c), 6);
    for (int i = 0; i < 4; i++) {
        replay_of("AICAIC");
        t.pending[t.n_pending++] = t.out.counters;
    }
    kp_test_calls("settle", "settle*3");
    settle();
}

static CUptiResult CUPTIAPI begin_with_half(CUpti_Profiler_BeginSession_Params *p)
{
    CUpti_Profiler_BeginSession_Params half = *p;
    half.maxRangesPerPass = (p->maxRangesPerPass + 1) / 2;
    kp_test_met("session");
    return fake->cuptiProfilerBeginSession(&half);
}

/* A CUPTI whose sessions have one buffer loses a window at most, and is not trusted with two any more. */
static void test_sessions_of_one_buffer(void **state)
{
    (void)state;
    cupti.cuptiProfilerBeginSession = begin_with_half;
    open_by_session(by_session);
    kp_test_window_of(many(MOST));
    replay();
    check_nothing(KP_STAGE_DECODE, "the counters saw");
    replay();
    kp_test_window_check_memory();
    check_results(by_session, in_order);
    assert_int_equal(kp_test_count("session"), 2);
    cupti.cuptiProfilerBeginSession = log_cuptiProfilerBeginSession;
}

/* Launches beside replays are counted in the session that these have, which begins once. */
static void test_counting_beside_sessions(void **state)
{
    (void)state;
    open_by_session(by_session);
    replay_of("AI");
    check_results(by_session, in_order);
    kp_test_forget_calls();
    for (int i = 0; i < 2; i++) {
        count("AI", KP_RANGE_AUTO);
        kp_test_calls("session end-session enable list pass on launch off end-pass flush",
                      "list pass on launch*2 off end-pass flush");
        check_results(one_pass, in_order);
        replay_of("AI");
        check_results(by_session, in_order);
        kp_test_forget_calls();
    }
    assert_int_equal(kp_test_count("session") + kp_test_count("enable"), 0);
}

/* So it is where they come first: that session has room for the lists of a replay, whose images are as large. */
static void test_counting_before_sessions(void **state)
{
    (void)state;
    open_by_session(by_session);
    for (int i = 0; i < 3; i++) {
        count("A", KP_RANGE_AUTO);
        check_results(one_pass, in_order);
        replay_of("A");
        check_results(by_session, in_order);
    }
    assert_int_equal(kp_test_count("session"), 1);
    assert_int_equal(kp_test_count("enable"), 0);
}

/* The range profiler that counts beside replays has these, too, for some windows: neither waits for the other to begin.
 * A graph is a range. */
static void test_ranges_beside_sessions(void **state)
{
    (void)state;
    open_by_session(by_session);
    replay_of("AI");
    check_results(by_session, in_order);
    for (int i = 0; i < 2; i++) {
        count("AI", KP_RANGE_USER);
        check_results(one_pass, in_order);
        count("AI", KP_RANGE_AUTO);
        check_results(one_pass, in_order);
        replay_of("AI");
        check_results(by_session, in_order);
    }
    assert_int_equal(kp_test_count("session"), 1);
    for (int i = 0; i < 10; i++) {
        replay_of("AI");
        check_results(by_session, in_order);
    }
    assert_int_equal(kp_test_count("session"), 2);
    assert_int_equal(kp_test_count("enable"), kp_test_count("disable"));
}

/* What fails where launches are counted beside replays is told, or the range profiler counts them. */
static void test_counting_beside_sessions_fails(void **state)
{
    static const struct {
        const char *word;
        enum kp_stage stage;
    } rows[] = {{"list", KP_STAGE_NONE}, {"pass", KP_STAGE_NONE},     {"on", KP_STAGE_NONE},
                {"off", KP_STAGE_STOP},  {"end-pass", KP_STAGE_STOP}, {"flush", KP_STAGE_DECODE}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        open_by_session(by_session);
        replay_of("AI");
        check_results(by_session, in_order);
        kp_test_forget_calls();
        kp_test_fail(rows[i].word, 1, FAILS);
        count("AI", KP_RANGE_AUTO);
        kp_test_fail(rows[i].word, 1, 0);
        if (rows[i].stage == KP_STAGE_NONE)
            check_results(one_pass, in_order);
        else
            assert_true(!t.out.counters && t.out.replay.failed == rows[i].stage && kp_why_text(&t.out.why) &&
                        strstr(kp_why_text(&t.out.why), "CUPTI_ERROR_UNKNOWN"));
        kp_why_free(&t.out.why);
        assert_int_equal(kp_test_count("enable"), rows[i].stage == KP_STAGE_NONE);
        count("AI", KP_RANGE_AUTO);
        check_results(one_pass, in_order);
        replay_of("AI");
        check_results(by_session, in_order);
        kp_collector_close(t.c, true);
        t.c = NULL;
    }
}

/* ---- sessions, which count chosen launches in one pass ---- */

static const char of_sessions[] = "session end-session list unlist pass end-pass enable disable config start stop";

static void open_chooser(void)
{
    static const struct kp_providers_setup providers = {.cc_major = 9, .chooses = true};
    t.setup.providers = &providers;
    t.setup.one_pass = rotation;
    open_collector();
}

static size_t begin_choice(size_t room, size_t list)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    if (kp_collector_count_begin(t.c, KP_RANGE_AUTO, room, list, &why))
        fail_msg("%s", kp_why_text(&why));
    return kp_collector_chooses(t.c);
}

/* Makes the launches. Where the count is of chosen ones, the others are no part of the window. */
static void make_choice(const char *letters, bool chooses)
{
    size_t n = 0;
    kp_test_window_of(letters);
    launch_window();
    for (size_t i = 0; chooses && i < w->n; i++)
        if (w->wanted[i])
            w->kernel[n++] = w->kernel[i];
    for (size_t i = 0; i < n; i++)
        w->wanted[i] = true;
    if (chooses)
        w->n = w->job.n_launches = n;
}

static void end_choice(bool stays)
{
    w->job.stays = stays;
    kp_collector_count_end(t.c, &w->job, &t.out);
}

/* The results have the values of that list, from these ranges, and no others. */
static void check_list(size_t list, const size_t *ranges)
{
    struct kp_result results[MOST], *of[MOST];
    size_t next = 0;
    if (!t.out.counters)
        fail_msg("no counters: %s", kp_why_text(&t.out.why) ? kp_why_text(&t.out.why) : "no reason given");
    assert_null(kp_why_text(&t.out.why));
    memset(results, 0, sizeof(results));
    for (size_t i = 0; i < w->n_wanted; i++)
        of[i] = &results[i];
    assert_false(kp_counters_evaluate(t.out.counters, of).reason);
    kp_counters_free(t.out.counters);
    t.out.counters = NULL;
    for (size_t i = 0; i < w->n; i++) {
        if (!w->wanted[i])
            continue;
        const struct kp_config *l = &rotation->groups[list];
        assert_int_equal(results[next].n_metrics, l->n_names);
        for (size_t m = 0; m < l->n_names; m++) {
            double value = -1;
            assert_true(kp_metric_number(kp_result_find(&results[next], l->names[m]), &value));
            assert_true(value == value_of(l->names[m], kp_test_kernel_names[w->kernel[i]], ranges[next]));
        }
        kp_result_free(&results[next++]);
    }
    assert_int_equal(next, w->n_wanted);
}

static void choose(const char *letters, size_t list)
{
    assert_int_equal(begin_choice(strlen(letters), list), MOST);
    make_choice(letters, true);
    end_choice(true);
    check_list(list, in_order);
}

/* Counts all launches, by the range profiler. */
static void choose_none(const char *letters, size_t list, const size_t *ranges)
{
    assert_int_equal(begin_choice(strlen(letters), list), 0);
    make_choice(letters, false);
    end_choice(true);
    check_list(list, ranges);
}

static void test_chosen(void **state)
{
    (void)state;
    open_chooser();
    assert_int_equal(kp_collector_room(t.c), MOST);
    choose("aIcAii", 0);
    kp_test_calls(NULL, "session-image session list pass launch on launch off launch on launch off "
                        "launch*2 end-pass flush info "
                        "evaluate*2");
    choose("iiA", 1);
    choose("C", 0);
    choose("aic", 2 - patched / 2);
    kp_test_calls(of_sessions, "unlist list pass end-pass unlist list pass end-pass unlist list pass end-pass");
    assert_int_equal(t.out.replay.passes, 1);
}

/* Evaluation may be late: the data stays, as other passes run and the session ends. */
static void test_chosen_and_evaluated_late(void **state)
{
    struct kp_counters *late;
    (void)state;
    open_chooser();
    begin_choice(4, 0);
    make_choice("aIcA", true);
    end_choice(true);
    late = t.out.counters;
    choose("CC", 1);
    begin_choice(2, 0);
    make_choice("CC", true);
    end_choice(false);
    kp_counters_free(t.out.counters);
    t.out.counters = late;
    kp_test_window_of("IA");
    check_list(0, in_order);
}

static void test_chosen_in_the_memory_given(void **state)
{
    (void)state;
    t.setup.memory = 5 * sizeof(struct fake_image_range) + sizeof(struct fake_image_range) / 2;
    open_chooser();
    assert_int_equal(kp_collector_room(t.c), 5);
    assert_int_equal(begin_choice(2, 0), 5);
    make_choice("AICAIC", true); /* one too many */
    end_choice(true);
    assert_null(t.out.counters);
    assert_non_null(strstr(kp_why_text(&t.out.why), "the counters saw 6 kernels instead of 6"));
    kp_why_free(&t.out.why);
    assert_int_equal(begin_choice(9, 1), 5);
    make_choice("AICAI", true);
    end_choice(true);
    check_list(1, in_order);
}

/* Without a session the range profiler counts, all launches; a session is not tried again. */
static void check_fallback(const char *fails, const char *calls)
{
    static const size_t ranges[] = {1, 3};
    open_chooser();
    kp_test_fail(fails, 1, FAILS);
    choose_none("aIcA", 0, ranges);
    kp_test_calls(of_sessions, calls);
    choose_none("aIcA", 0, ranges);
    kp_test_calls(of_sessions, "config start stop");
    choose_none("aIcA", 1, ranges); /* its image is another */
    kp_test_calls(of_sessions, "disable enable config start stop");
    kp_test_fail(fails, 1, 0);
}

static void test_no_session(void **state)
{
    (void)state;
    check_fallback("session", "session enable config start stop");
}

static void test_no_list_of_a_session(void **state)
{
    (void)state;
    check_fallback("list", "session list end-session enable config start stop");
}

static void test_no_pass_of_a_session(void **state)
{
    (void)state;
    check_fallback("pass", "session list pass unlist end-session enable config start stop");
}

/* A session that has counted may fail later, too. */
static void test_no_further_pass_of_a_session(void **state)
{
    (void)state;
    open_chooser();
    choose("aI", 0);
    kp_test_forget_calls();
    kp_test_fail("pass", 1, FAILS);
    choose_none("aI", 1, (const size_t[]){1});
    kp_test_calls(of_sessions, "unlist list pass unlist end-session enable config start stop");
    kp_test_fail("pass", 1, 0);
}

/* A kernel of a library's, between the switches, belongs to no launch. */
static void test_chosen_beside_a_foreign_kernel(void **state)
{
    (void)state;
    open_chooser();
    begin_choice(2, 0);
    const struct kp_issue_hooks *hooks = kp_collector_count_hooks(t.c);
    kp_test_window_of("A");
    assert_int_equal(hooks->before(hooks->arg, NULL), CUDA_SUCCESS);
    assert_int_equal(kp_test_window_launch(0), CUDA_SUCCESS);
    assert_int_equal(kp_test_window_launch(0), CUDA_SUCCESS);
    assert_int_equal(hooks->after(hooks->arg), CUDA_SUCCESS);
    end_choice(true);
    assert_null(t.out.counters);
    assert_non_null(strstr(kp_why_text(&t.out.why), "the counters saw 2 kernels instead of 1"));
    kp_why_free(&t.out.why);
    choose("A", 0);
}

/* The driver refuses a launch between the switches: what follows it is not counted. */
static void test_chosen_and_refused(void **state)
{
    (void)state;
    open_chooser();
    begin_choice(2, 0);
    const struct kp_issue_hooks *hooks = kp_collector_count_hooks(t.c);
    assert_int_equal(hooks->before(hooks->arg, NULL), CUDA_SUCCESS);
    kp_test_forget_calls();
    kp_collector_count_refused(t.c);
    kp_test_calls(NULL, "off");
    kp_collector_count_refused(t.c);
    kp_test_calls(NULL, "");
    make_choice("aicI", true);
    end_choice(true);
    check_list(0, in_order);
}

/* Of a window that counts all launches there is nothing to take back. */
static void test_counted_and_refused(void **state)
{
    (void)state;
    open_collector();
    struct kp_why why = {KP_REASON_NONE, NULL};
    assert_int_equal(kp_collector_count_begin(t.c, KP_RANGE_AUTO, 2, 0, &why), 0);
    assert_int_equal(kp_collector_chooses(t.c), 0);
    kp_test_forget_calls();
    kp_collector_count_refused(t.c);
    kp_test_calls(NULL, "");
    make_choice("aI", false);
    end_choice(true);
    check_results(one_pass, (const size_t[]){1});
}

/* Behind a list of patched code a session takes none but such ones. */
static void test_a_patched_list_between_others(void **state)
{
    size_t other = !patched;
    (void)state;
    open_chooser();
    choose("aI", other);
    choose("aI", patched);
    choose("aIA", patched);
    kp_test_calls(of_sessions, "session list pass end-pass unlist list pass end-pass unlist list pass end-pass");
    choose("cA", other);
    kp_test_calls(of_sessions, "unlist end-session session list pass end-pass");
}

/* Where nothing more comes the session ends: launches take longer beside it. */
static void test_the_last_choice(void **state)
{
    (void)state;
    open_chooser();
    begin_choice(1, 0);
    make_choice("aI", true);
    end_choice(false);
    kp_test_calls(of_sessions, "session list pass end-pass unlist end-session");
    check_list(0, in_order);
    choose("A", 1); /* something does */
    kp_test_calls(of_sessions, "session list pass end-pass");
}

/* Beside a session there is no range profiler. */
static void test_replays_between(void **state)
{
    (void)state;
    open_chooser();
    choose("aI", 0);
    replay_of("AI");
    check_results(several, in_order);
    assert_int_equal(kp_test_count("end-session"), 1);
    kp_test_forget_calls();
    choose("aI", 1);
    kp_test_calls("enable disable session", "disable session");
}

/* The session that ended for a replay, or a patched list, begins again; the last one behind a window that was the last.
 */
static void test_sessions_begin_again(void **state)
{
    (void)state;
    open_chooser();
    for (int i = 0; i < 3; i++) {
        choose("aI", 0);
        replay_of("AI");
        kp_counters_free(t.out.counters);
        choose("aI", patched);
        choose("aI", !patched);
    }
    assert_int_equal(kp_test_count("session"), 7);
    begin_choice(1, 0);
    make_choice("aI", true);
    end_choice(false);
    check_list(0, in_order);
    choose("aI", 0);
    assert_int_equal(kp_test_count("session"), 8);
}

/* A session that does not begin again is given up. */
static void test_no_further_session(void **state)
{
    (void)state;
    open_chooser();
    choose("aI", 0);
    replay_of("AI");
    kp_counters_free(t.out.counters);
    kp_test_forget_calls();
    kp_test_fail("session", 1, FAILS);
    for (size_t i = 0; i < 2; i++) {
        choose_none("aI", i, (const size_t[]){1});
        assert_int_equal(kp_test_count("session"), 1);
    }
    kp_test_fail("session", 1, 0);
    kp_test_calls("session", "session");
}

/* A range for several launches is no choice. */
static void test_no_choice_of_ranges(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    open_chooser();
    choose("aI", 0);
    kp_test_forget_calls();
    assert_int_equal(kp_collector_count_begin(t.c, KP_RANGE_USER, 1, 0, &why), 0);
    assert_int_equal(kp_collector_chooses(t.c), 0);
    w->job.mode = KP_RANGE_USER;
    make_choice("aI", false);
    end_choice(true);
    check_list(0, in_order);
    kp_test_calls("session end-session enable", "end-session enable");
}

static void test_choices_that_fail(void **state)
{
    static const struct {
        const char *fails, *note;
        enum kp_stage stage;
        unsigned nth;
    } rows[] = {{"on", "cannot mark the range", KP_STAGE_STOP, 1},
                {"off", "cannot mark the range", KP_STAGE_STOP, 1},
                {"end-pass", "cannot stop the counters: CUPTI_ERROR_UNKNOWN", KP_STAGE_STOP, 1},
                {"flush", "cannot stop the counters: CUPTI_ERROR_UNKNOWN", KP_STAGE_STOP, 1},
                {"info", "cannot stop the counters: CUPTI_ERROR_UNKNOWN", KP_STAGE_STOP, 1}};
    (void)state;
    open_chooser();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        kp_test_fail(rows[i].fails, rows[i].nth, FAILS);
        begin_choice(1, 0);
        make_choice("aI", true);
        end_choice(true);
        kp_test_fail(rows[i].fails, rows[i].nth, 0);
        assert_null(t.out.counters);
        assert_int_equal(t.out.replay.failed, rows[i].stage);
        if (!strstr(kp_why_text(&t.out.why), rows[i].note))
            fail_msg("%s: %s", rows[i].fails, kp_why_text(&t.out.why));
        kp_why_free(&t.out.why);
        choose("aIcA", 1);
    }
    assert_int_equal(kp_test_count("session"), 1);
}

/* A switch that stays on, at a second try as well, keeps the counters: nothing more is collected, and why is told. */
static void test_a_choice_without_end(void **state)
{
    KP_PARAMS(CUpti_Profiler_DisableProfiling_Params, off);
    KP_PARAMS(CUpti_Profiler_EndPass_Params, pass);
    KP_PARAMS(CUpti_Profiler_UnsetConfig_Params, list);
    KP_PARAMS(CUpti_Profiler_EndSession_Params, session);
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    open_chooser();
    kp_test_fail("off", 0, FAILS);
    begin_choice(1, 0);
    make_choice("aI", true);
    end_choice(true);
    assert_null(t.out.counters);
    kp_why_free(&t.out.why);
    kp_test_forget_calls();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kp_collector_count_begin(t.c, KP_RANGE_AUTO, 1, 1, &why), -1);
        assert_non_null(strstr(kp_why_text(&why), "CUPTI_ERROR_UNKNOWN"));
        kp_why_free(&why);
        kp_test_fail("off", 0, 0);
    }
    assert_int_equal(kp_test_count("off"), 1);
    kp_test_calls(of_sessions, "");
    assert_int_equal(fake->cuptiProfilerDisableProfiling(&off), 0);
    assert_int_equal(fake->cuptiProfilerEndPass(&pass), 0);
    assert_int_equal(fake->cuptiProfilerUnsetConfig(&list), 0);
    assert_int_equal(fake->cuptiProfilerEndSession(&session), 0);
}

/* ---- the end ---- */

static void test_context_gone_with_a_session(void **state)
{
    (void)state;
    open_chooser();
    choose("aI", 0);
    kp_collector_leave(t.c);
    kp_test_context_end(t.ctx);
    kp_test_forget_calls();
    kp_collector_close(t.c, false);
    t.c = NULL;
    kp_test_calls(NULL, "");
    t.ctx = kp_test_context();
}

static void test_context_gone(void **state)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    (void)state;
    t.setup.flush = true;
    open_collector();
    replay_of("AI");
    kp_counters_free(t.out.counters);
    assert_int_equal(kp_collector_save(t.c, &why), 0);
    kp_collector_leave(t.c);
    kp_test_context_end(t.ctx);
    kp_test_forget_calls();
    kp_collector_close(t.c, false);
    t.c = NULL;
    kp_test_calls(NULL, "");
    kp_collector_close(NULL, true);
    kp_counters_free(NULL);
    t.ctx = kp_test_context();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_between_the_marks), /* before CUDA has started here: it forks */
        TEST(test_window_of_one),
        TEST(test_window_of_many),
        TEST(test_unwanted_between),
        TEST(test_user_range),
        TEST(test_modes_in_turn),
        TEST(test_larger_windows_in_turn),
        TEST(test_groups_in_turn),
        TEST(test_groups_apart),
        TEST(test_nothing_wanted),
        TEST(test_executed),
        TEST(test_other_kernels),
        TEST(test_flush_by_copy),
        TEST(test_flush_in_the_stream),
        TEST(test_flush_by_kernel),
        TEST(test_flush_found_to_be_a_kernel),
        TEST(test_room),
        TEST(test_room_once_the_profiler_is_there),
        TEST(test_counter_data_is_kept),
        TEST(test_counter_data_is_bounded),
        TEST(test_counter_data_with_more_room),
        TEST(test_counter_data_with_more_room_in_use),
        TEST(test_counter_data_of_nothing),
        TEST(test_profiler_with_more_room),
        TEST(test_profiler_with_more_room_after_a_wait),
        TEST(test_counter_data_larger_than_the_bound),
        TEST(test_counter_data_that_cannot_be_emptied),
        TEST(test_counter_data_of_sweeps),
        TEST(test_steps_of_room),
        TEST(test_threads_that_evaluate),
        TEST(test_threads_for_each_group),
        TEST(test_hosts),
        TEST(test_threads_that_fail),
        TEST(test_hosts_that_fail),
        TEST(test_evaluation_that_fails),
        TEST(test_every_failure_of_cupti),
        TEST(test_counter_data_after_a_failure),
        TEST(test_refused),
        TEST(test_words_of_a_refusal),
        TEST(test_rehearsal),
        TEST(test_rehearsal_that_faults),
        TEST(test_fault),
        TEST(test_fault_seen_by_the_flush),
        TEST(test_flush_that_fails),
        TEST(test_marks_that_fail),
        TEST(test_range_that_stays_open),
        TEST(test_counting_marks_that_fail),
        TEST(test_disable_fails),
        TEST(test_save),
        TEST(test_save_of_too_much),
        TEST(test_full_for_a_while),
        TEST(test_counting),
        TEST(test_counting_beside_sweeps),
        TEST(test_counting_that_does_not_begin),
        TEST(test_counting_that_fails),
        TEST(test_window_in_a_session),
        TEST(test_unwanted_between_in_a_session),
        TEST(test_rooms_of_sessions),
        TEST(test_ranges_between_sessions),
        TEST(test_lists_in_a_session),
        TEST(test_a_list_whose_successor_fails),
        TEST(test_no_session_for_a_replay),
        TEST(test_failures_of_sessions),
        TEST(test_a_session_that_ends_late),
        TEST(test_a_session_that_is_replaced_late),
        TEST(test_a_session_that_never_ends),
        TEST(test_counter_data_of_sessions),
        TEST(test_counting_beside_sessions),
        TEST(test_counting_before_sessions),
        TEST(test_ranges_beside_sessions),
        TEST(test_counting_beside_sessions_fails),
        TEST(test_chosen),
        TEST(test_chosen_and_evaluated_late),
        TEST(test_chosen_in_the_memory_given),
        TEST(test_no_session),
        TEST(test_no_list_of_a_session),
        TEST(test_no_pass_of_a_session),
        TEST(test_no_further_pass_of_a_session),
        TEST(test_chosen_beside_a_foreign_kernel),
        TEST(test_chosen_and_refused),
        TEST(test_counted_and_refused),
        TEST(test_a_patched_list_between_others),
        TEST(test_the_last_choice),
        TEST(test_replays_between),
        TEST(test_sessions_begin_again),
        TEST(test_no_further_session),
        TEST(test_no_choice_of_ranges),
        TEST(test_choices_that_fail),
        TEST(test_a_choice_without_end),
        TEST(test_context_gone),
        TEST(test_context_gone_with_a_session),
        TEST(test_sessions_of_one_buffer), /* last: no session is trusted with two buffers any more */
    };
    return cmocka_run_group_tests(tests, open_library, close_library);
}
