/* Sessions that count chosen launches, over the fake driver and the fake CUPTI: which launches a pass has, of which
 * list, and what becomes of its data; whatever fails, neither memory nor a session is left. The fake ends the process
 * when CUPTI would. */
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
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cupti/chosen.h"
#include "cupti/internal.h"
#include "cupti/raw.h"
#include "cupti/target.h"
#include "tests/fake/fake_image.h"
#include "tests/support/collect_support.h"
#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"
#include "tests/support/window_support.h"

enum { FAILS = CUPTI_ERROR_UNKNOWN, ROOM = 6 };

static const char chip[] = "GH100";

static struct kp_test_window *const w = &kp_test_window;

/* ---- CUPTI, logged ---- */

static struct kp_cupti *fake, cupti;

/* Function, word, type of the parameters. What ends something ends it also when it is to fail. */
#define LOGGED_FUNCTIONS(X)                                                                                            \
    X(cuptiProfilerCounterDataImageCalculateSize, "size", CUpti_Profiler_CounterDataImage_CalculateSize_Params)        \
    X(cuptiProfilerCounterDataImageInitialize, "image", CUpti_Profiler_CounterDataImage_Initialize_Params)             \
    X(cuptiProfilerCounterDataImageCalculateScratchBufferSize, "scratch-size",                                         \
      CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params)                                               \
    X(cuptiProfilerCounterDataImageInitializeScratchBuffer, "scratch",                                                 \
      CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params)                                                  \
    X(cuptiProfilerBeginSession, "session", CUpti_Profiler_BeginSession_Params)                                        \
    X(cuptiProfilerSetConfig, "list", CUpti_Profiler_SetConfig_Params)                                                 \
    X(cuptiProfilerBeginPass, "pass", CUpti_Profiler_BeginPass_Params)                                                 \
    X(cuptiProfilerEnableProfiling, "on", CUpti_Profiler_EnableProfiling_Params)                                       \
    X(cuptiProfilerDisableProfiling, "off", CUpti_Profiler_DisableProfiling_Params)                                    \
    X(cuptiRangeProfilerGetCounterDataInfo, "info", CUpti_RangeProfiler_GetCounterDataInfo_Params)

#define ENDING_FUNCTIONS(X)                                                                                            \
    X(cuptiProfilerEndPass, "end-pass", CUpti_Profiler_EndPass_Params)                                                 \
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

#define DEFINE(name, word, type)                                                                                       \
    static CUptiResult CUPTIAPI log_##name(type *p)                                                                    \
    {                                                                                                                  \
        CUptiResult rc = (CUptiResult)kp_test_met(word), real = fake->name(p);                                         \
        return rc ? rc : real;                                                                                         \
    }
ENDING_FUNCTIONS(DEFINE)
#undef DEFINE

static bool keeps_list; /* where it is to fail */

static CUptiResult CUPTIAPI log_unset(CUpti_Profiler_UnsetConfig_Params *p)
{
    CUptiResult rc = (CUptiResult)kp_test_met("unlist"),
                real = rc && keeps_list ? 0 : fake->cuptiProfilerUnsetConfig(p);
    return rc ? rc : real;
}

/* The library of counters. */
#define COUNTER_FUNCTIONS(X)                                                                                           \
    X(NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest, "metric")                                            \
    X(NVPW_MetricsEvaluator_GetMetricRawDependencies, "needs")                                                         \
    X(NVPW_CUDA_CounterDataBuilder_Create, "builder")                                                                  \
    X(NVPW_CounterDataBuilder_AddRawCounters, "counters")                                                              \
    X(NVPW_CounterDataBuilder_GetCounterDataPrefix, "prefix")                                                          \
    X(NVPW_CounterDataBuilder_Destroy, "destroy")

#define DEFINE(name, word)                                                                                             \
    static NVPA_Status log_##name(name##_Params *p)                                                                    \
    {                                                                                                                  \
        NVPA_Status rc = (NVPA_Status)kp_test_met(word);                                                               \
        return rc ? rc : fake->name(p);                                                                                \
    }
COUNTER_FUNCTIONS(DEFINE)
#undef DEFINE

/* ---- memory ---- */

/* Memory of sessions, and data that was handed on: it is told apart by the advice on its pages. */
static struct {
    void *at[64];
    size_t n;
} images;

static void add_image(void *at)
{
    assert_true(images.n < sizeof(images.at) / sizeof(*images.at));
    images.at[images.n++] = at;
}

/* Kernels before Linux 5.7 do not move pages and leave their addresses in use. */
static bool cannot_move;

void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
    va_end(args);
    if (cannot_move) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    long at = syscall(SYS_mremap, old, old_size, size, flags, to);
    if (at != -1 && flags & MREMAP_DONTUNMAP)
        add_image((void *)at);
    return at == -1 ? MAP_FAILED : (void *)at;
}

int madvise(void *at, size_t size, int advice)
{
    if (advice == MADV_HUGEPAGE)
        add_image(at);
    return (int)syscall(SYS_madvise, at, size, advice);
}

int munmap(void *at, size_t size)
{
    for (size_t i = 0; i < images.n; i++)
        if (images.at[i] == at)
            images.at[i--] = images.at[--images.n];
    return (int)syscall(SYS_munmap, at, size);
}

static size_t views_before; /* that a test which failed has left */

static size_t views(void)
{
    return images.n - views_before;
}

/* CUPTI may still write to the memory of a session that did not end: its view is there for good. */
static void check_view_is_kept(void)
{
    assert_int_equal(views(), 1);
    views_before++;
}

/* ---- lists and sessions ---- */

static const char *const names[] = {"gpu__time_duration.sum", "dram__bytes.sum", "smsp__inst_executed.sum",
                                    "smsp__sass_thread_inst_executed_op_integer_pred_on.sum"};
enum { LISTS = 3, PATCHED = 3 }; /* the last one is counted by patched code */

static struct kp_config lists[LISTS + 1];
static const char *const throughput[] = {"sm__throughput.avg.pct_of_peak_sustained_elapsed"};
static struct kp_config several; /* of more than one pass */
static double (*value_of)(const char *metric, const char *kernel, size_t range);

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
#define TAKE_OVER(name, word) cupti.name = log_##name;
    COUNTER_FUNCTIONS(TAKE_OVER)
#undef TAKE_OVER
    cupti.cuptiProfilerUnsetConfig = log_unset;
    void *handle = dlopen(kp_test_build("fake/libcupti.so.13"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    *(void **)&value_of = dlsym(handle, "fake_cupti_value");
    assert_non_null(value_of);
    for (size_t i = 0; i <= LISTS; i++) {
        assert_int_equal(kp_host_schedule(fake, chip, NULL, &names[i], 1, &lists[i]), 0);
        assert_int_equal(lists[i].passes, 1);
    }
    assert_int_equal(kp_host_schedule(fake, chip, NULL, throughput, 1, &several), 0);
    assert_true(several.passes > 2);
    return 0;
}

static int close_library(void **state)
{
    (void)state;
    for (size_t i = 0; i <= LISTS; i++)
        kp_config_free(&lists[i]);
    kp_config_free(&several);
    kp_cupti_free(fake);
    return 0;
}

static struct {
    CUcontext ctx;
    struct kp_host *host;
    struct kp_chosen *s;
} t;

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
    views_before = 0;
    views_before = views();
    assert_int_equal(kp_host_open(fake, chip, NULL, &t.host), 0);
    for (size_t i = 0; i <= LISTS; i++)
        if (!lists[i].layout)
            assert_int_equal(kp_host_layout(t.host, &lists[i], 1, &lists[i].layout, &lists[i].layout_size), 0);
    if (!several.layout)
        assert_int_equal(kp_host_layout(t.host, &several, 1, &several.layout, &several.layout_size), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (!fake)
        return 0;
    cannot_move = false;
    assert_int_equal(kp_chosen_close(t.s), 0);
    kp_host_close(t.host);
    kp_test_context_end(t.ctx);
    assert_int_equal(views(), 0);
    return 0;
}

static void open_session(void)
{
    if (!fake)
        kp_test_real_cupti(); /* skips, and says why */
    assert_true(kp_chosen_available(&cupti));
    assert_int_equal(kp_chosen_open(&cupti, t.ctx, lists, LISTS + 1, ROOM, &t.s), 0);
    kp_test_forget_calls();
}

/* Launches a window, of which the capitals are counted. */
static void launch(const char *letters)
{
    kp_test_window_of(letters);
    for (size_t i = 0; i < w->n; i++) {
        assert_int_equal(kp_chosen_count(t.s, w->wanted[i]), 0);
        assert_int_equal(kp_test_window_launch(i), CUDA_SUCCESS);
    }
}

static struct kp_chosen_data *stop(size_t expected)
{
    struct kp_chosen_data *d = NULL;
    size_t n = 99, dropped = 99;
    assert_true(kp_chosen_runs(t.s));
    assert_int_equal(kp_chosen_stop(t.s, &d, &n, &dropped), 0);
    assert_false(kp_chosen_runs(t.s));
    assert_non_null(d);
    assert_int_equal(n, expected);
    assert_int_equal(dropped, 0);
    return d;
}

/* The data is that of the window's wanted launches, by this list alone. */
static void check(const struct kp_chosen_data *d, size_t list)
{
    const uint8_t *data;
    size_t size, range = 0;
    kp_chosen_read(d, &data, &size);
    assert_int_equal(((const struct fake_image *)data)->n_ranges, w->n_wanted);
    for (size_t i = 0; i < w->n; i++) {
        double values[LISTS + 1];
        if (!w->wanted[i])
            continue;
        assert_int_equal(kp_host_evaluate(t.host, data, size, range, (const char **)names, LISTS + 1, values), 0);
        for (size_t m = 0; m <= LISTS; m++) {
            double expected = value_of(names[m], kp_test_kernel_names[w->kernel[i]], range);
            assert_true(m == list ? values[m] == expected : values[m] != values[m]);
        }
        range++;
    }
    assert_true(kp_host_evaluate(t.host, data, size, range, (const char **)names, 1, &(double){0}) != 0);
}

/* Counts a window by a list, in a pass of its own. */
static void count(const char *letters, size_t list)
{
    assert_int_equal(kp_chosen_start(t.s, &lists[list]), 0);
    launch(letters);
    struct kp_chosen_data *d = stop(w->n_wanted);
    check(d, list);
    kp_chosen_free(d);
}

/* The context has no session: it takes another, and the range profiler. */
static void check_no_session(void)
{
    struct kp_range *r = NULL;
    assert_null(t.s);
    assert_int_equal(views(), 0);
    assert_int_equal(kp_range_open(fake, t.ctx, &r), 0);
    assert_int_equal(kp_range_close(r), 0);
    assert_int_equal(kp_chosen_open(&cupti, t.ctx, lists, LISTS + 1, ROOM, &t.s), 0);
    count("aI", 0);
    assert_int_equal(kp_chosen_close(t.s), 0);
    t.s = NULL;
}

static int close_session(void)
{
    int rc = kp_chosen_close(t.s);
    t.s = NULL;
    return rc;
}

/* ---- tests ---- */

static void test_only_the_chosen(void **state)
{
    (void)state;
    open_session();
    launch("aic"); /* no pass runs */
    assert_int_equal(kp_chosen_start(t.s, &lists[0]), 0);
    kp_test_calls(NULL, "launch*3 list pass"); /* the image that began the session is of this list */
    launch("iAcIaC");
    kp_test_calls("launch on off", "launch on launch off launch on launch off launch on launch");
    struct kp_chosen_data *d = stop(3);
    kp_test_calls(NULL, "off end-pass flush info");
    check(d, 0);
    kp_chosen_free(d);
    kp_chosen_free(NULL);
    launch("a");
    count("aic", 0); /* none */
}

static void test_the_switch_is_turned_once(void **state)
{
    (void)state;
    open_session();
    assert_int_equal(kp_chosen_start(t.s, &lists[0]), 0);
    assert_int_equal(kp_chosen_count(t.s, false), 0);
    assert_int_equal(kp_chosen_count(t.s, true), 0);
    assert_int_equal(kp_chosen_count(t.s, true), 0);
    kp_test_calls("on off", "on");
    kp_test_fail("off", 1, FAILS); /* it stays where it is */
    assert_int_equal(kp_chosen_count(t.s, false), FAILS);
    assert_int_equal(kp_chosen_count(t.s, false), 0);
    kp_test_fail("off", 1, 0);
    kp_test_fail("on", 1, FAILS);
    assert_int_equal(kp_chosen_count(t.s, true), FAILS);
    assert_int_equal(kp_chosen_count(t.s, true), 0);
    kp_test_fail("on", 1, 0);
    kp_chosen_free(stop(0));
    kp_test_calls("on off", "off*2 on*2 off");
}

static void test_lists_in_any_order(void **state)
{
    static const size_t order[] = {2, 0, 0, 1, 2, 1, 0};
    (void)state;
    open_session();
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
        count("aIcA", order[i]);
    kp_test_calls("session list unlist pass end-session",
                  "list pass unlist list pass unlist list pass unlist list pass unlist list pass unlist list pass "
                  "unlist list pass");
    assert_int_equal(close_session(), 0);
    kp_test_calls(NULL, "unlist end-session");
    check_no_session();
}

/* What was handed on is as it was while later passes run, and after the session; each pass begins with none of it. */
static void check_data_that_stays(void)
{
    enum { N = 3 };
    static const char *const letters[N] = {"AIC", "I", "cAA"};
    struct kp_chosen_data *d[N];
    uint8_t *copies[N];
    const uint8_t *data;
    size_t size;
    open_session();
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(kp_chosen_start(t.s, &lists[i]), 0);
        launch(letters[i]);
        d[i] = stop(w->n_wanted);
        check(d[i], i);
        kp_chosen_read(d[i], &data, &size);
        copies[i] = malloc(size);
        memcpy(copies[i], data, size);
    }
    assert_int_equal(close_session(), 0);
    for (size_t i = 0; i < N; i++) {
        kp_chosen_read(d[i], &data, &size);
        assert_memory_equal(data, copies[i], size);
        kp_test_window_of(letters[i]);
        check(d[i], i);
        kp_chosen_free(d[i]);
        free(copies[i]);
    }
    check_no_session();
}

static void test_data_stays(void **state)
{
    (void)state;
    check_data_that_stays();
}

static void test_data_stays_where_it_is_copied(void **state)
{
    (void)state;
    cannot_move = true;
    check_data_that_stays();
}

/* A pass that failed when its data was in the image leaves the next one none of it. */
static void test_a_failed_pass_leaves_nothing(void **state)
{
    static const char *const words[] = {"flush", "info"};
    (void)state;
    open_session();
    for (size_t i = 0; i < 2 * sizeof(words) / sizeof(*words); i++) {
        struct kp_chosen_data *d = (void *)&t;
        size_t n, dropped;
        cannot_move = i % 2;
        assert_int_equal(kp_chosen_start(t.s, &lists[0]), 0);
        launch("AIC");
        kp_test_fail(words[i / 2], 1, FAILS);
        assert_int_equal(kp_chosen_stop(t.s, &d, &n, &dropped), FAILS);
        assert_null(d);
        assert_false(kp_chosen_runs(t.s));
        kp_test_fail(words[i / 2], 1, 0);
        count("iC", 1);
    }
}

/* Behind a list of patched code the session would not end well with another. */
static void test_patched_code(void **state)
{
    (void)state;
    open_session();
    for (size_t i = 0; i <= LISTS; i++)
        assert_true(kp_chosen_takes(t.s, &lists[i]));
    count("aI", 0);
    assert_true(kp_chosen_takes(t.s, &lists[PATCHED]));
    count("aI", PATCHED);
    assert_true(kp_chosen_takes(t.s, &lists[PATCHED]));
    count("A", PATCHED);
    kp_test_forget_calls();
    for (size_t i = 0; i < LISTS; i++) {
        assert_false(kp_chosen_takes(t.s, &lists[i]));
        assert_int_equal(kp_chosen_start(t.s, &lists[i]), -EINVAL);
        assert_false(kp_chosen_runs(t.s));
    }
    kp_test_calls(NULL, "");
    count("A", PATCHED);
    assert_int_equal(close_session(), 0);
    check_no_session(); /* a new one takes all again */
}

static void test_open_fails(void **state)
{
    static const char *const words[] = {"size", "image", "scratch-size", "scratch", "session"};
    (void)state;
    open_session();
    assert_int_equal(close_session(), 0);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        t.s = (void *)&t;
        kp_test_fail(words[i], 1, FAILS);
        assert_int_equal(kp_chosen_open(&cupti, t.ctx, lists, LISTS + 1, ROOM, &t.s), FAILS);
        kp_test_fail(words[i], 1, 0);
        check_no_session();
    }
}

/* A pass that does not begin leaves the session as it was. */
static void test_start_fails(void **state)
{
    static const char *const words[] = {"unlist", "list", "pass"};
    (void)state;
    open_session();
    keeps_list = true;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        count("I", 0);
        kp_test_fail(words[i], 1, FAILS);
        assert_int_equal(kp_chosen_start(t.s, &lists[1]), FAILS);
        kp_test_fail(words[i], 1, 0);
        assert_false(kp_chosen_runs(t.s));
        count("aI", 1);
    }
    keeps_list = false;
    for (size_t i = 1; i < sizeof(words) / sizeof(*words); i++) {
        kp_test_fail(words[i], 1, FAILS);
        assert_int_equal(kp_chosen_start(t.s, &lists[1]), FAILS);
        kp_test_fail(words[i], 1, 0);
        assert_int_equal(close_session(), 0);
        check_no_session();
        open_session();
    }
}

/* A pass whose end fails is over, unless the switch could not be turned off: then it can be ended again. */
static void test_stop_fails(void **state)
{
    static const char *const words[] = {"off", "end-pass", "flush", "info"};
    (void)state;
    open_session();
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        struct kp_chosen_data *d = (void *)&t;
        size_t n, dropped;
        assert_int_equal(kp_chosen_start(t.s, &lists[i % LISTS]), 0);
        launch("aI");
        kp_test_fail(words[i], 1, FAILS);
        assert_int_equal(kp_chosen_stop(t.s, &d, &n, &dropped), FAILS);
        assert_null(d);
        kp_test_fail(words[i], 1, 0);
        assert_int_equal(kp_chosen_runs(t.s), !i);
        if (!i) {
            kp_chosen_free(d = stop(1));
            assert_int_equal(kp_chosen_stop(t.s, &d, &n, &dropped), 0); /* nothing runs */
            assert_true(!d && !n && !dropped);
        }
        count("Aic", i % LISTS);
    }
    assert_int_equal(close_session(), 0);
    check_no_session();
}

/* Whatever fails on the way, the session is over in the end, if CUPTI lets it. With a list it is not ended. */
static void test_close_while_a_pass_runs(void **state)
{
    static const struct {
        const char *fails, *calls;
        int rc;
    } rows[] = {{NULL, "off end-pass flush unlist end-session", 0},
                {"end-pass", "off end-pass unlist end-session", 0},
                {"flush", "off end-pass flush unlist end-session", 0},
                {"unlist", "off end-pass flush unlist", FAILS},
                {"end-session", "off end-pass flush unlist end-session", FAILS}};
    KP_PARAMS(CUpti_Profiler_EndSession_Params, session);
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        open_session();
        assert_int_equal(kp_chosen_start(t.s, &lists[0]), 0);
        launch("aI");
        kp_test_forget_calls();
        if (rows[i].fails)
            kp_test_fail(rows[i].fails, 1, FAILS);
        assert_int_equal(close_session(), rows[i].rc);
        if (rows[i].fails)
            kp_test_fail(rows[i].fails, 1, 0);
        kp_test_calls(NULL, rows[i].calls);
        if (rows[i].rc)
            check_view_is_kept();
        if (rows[i].rc && !strstr(rows[i].calls, "end-session"))
            assert_int_equal(fake->cuptiProfilerEndSession(&session), 0);
        check_no_session();
    }
    assert_int_equal(kp_chosen_close(NULL), 0);
}

/* ---- lists of several passes ---- */

static void open_several(void)
{
    if (!fake)
        kp_test_real_cupti();
    assert_int_equal(kp_chosen_open(&cupti, t.ctx, &several, 1, ROOM, &t.s), 0);
}

/* Runs the window in passes of the list, at most so many, and returns how many it were. */
static size_t run_passes(const char *letters, size_t most)
{
    bool last = false;
    size_t n = 0;
    for (; n < most && !last; n++) {
        assert_int_equal(kp_chosen_pass(t.s), 0);
        kp_test_window_clear();
        launch(letters);
        assert_int_equal(kp_chosen_count(t.s, true), 0);
        assert_int_equal(kp_chosen_end(t.s, &last), 0);
        assert_false(kp_chosen_runs(t.s));
    }
    assert_int_equal(last, n == several.passes);
    return n;
}

/* The data has the values of each of the window's wanted launches, from all passes. */
static void take_several(void)
{
    struct kp_chosen_data *d = NULL;
    const uint8_t *data;
    size_t n = 0, dropped = 99, size, range = 0;
    assert_int_equal(kp_chosen_take(t.s, &d, &n, &dropped), 0);
    assert_non_null(d);
    assert_int_equal(n, w->n_wanted);
    assert_int_equal(dropped, 0);
    kp_chosen_read(d, &data, &size);
    for (size_t i = 0; i < w->n; i++) {
        double value = 0;
        if (!w->wanted[i])
            continue;
        assert_int_equal(kp_host_evaluate(t.host, data, size, range, (const char **)throughput, 1, &value), 0);
        assert_true(value == value_of(throughput[0], kp_test_kernel_names[w->kernel[i]], range++));
    }
    kp_chosen_free(d);
}

/* The first image is that of the session's begin, the second is made and copied, the others are copies. */
static void test_several_passes(void **state)
{
    static const struct {
        size_t launches, images;
    } windows[] = {{ROOM, 0}, {ROOM, 1}, {ROOM, 0}, {3, 1}, {3, 1}, {3, 0}, {ROOM, 1}};
    (void)state;
    open_several();
    for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
        kp_test_forget_calls();
        assert_int_equal(kp_chosen_load(t.s, &several, windows[i].launches), 0);
        assert_int_equal(kp_test_count("image"), windows[i].images);
        assert_int_equal(run_passes("aIcA", SIZE_MAX), several.passes);
        take_several();
    }
    assert_int_equal(kp_chosen_load(t.s, &several, ROOM + 1), -EINVAL);
}

/* The memory of a session whose end has failed stays: CUPTI may still write to it. */
static void test_memory_after_an_end_that_failed(void **state)
{
    (void)state;
    open_session();
    kp_test_fail("end-session", 1, FAILS);
    assert_int_equal(kp_chosen_rest(t.s), FAILS);
    kp_test_fail("end-session", 1, 0);
    assert_int_equal(close_session(), 0);
    check_view_is_kept();
    check_no_session();
}

/* A list that is left between two passes, or that cannot be decoded, begins with its first pass all the same. */
static void test_passes_that_are_left(void **state)
{
    struct kp_chosen_data *d = NULL;
    size_t n = 0, dropped = 0;
    (void)state;
    open_several();
    for (int decoded = 0; decoded < 3; decoded++) {
        assert_int_equal(kp_chosen_load(t.s, &several, ROOM), 0);
        assert_int_equal(run_passes("AI", 2), 2);
        if (decoded == 1)
            kp_test_fail("flush", 1, FAILS);
        if (decoded)
            assert_int_equal(kp_chosen_take(t.s, &d, &n, &dropped), decoded == 1 ? FAILS : 0);
        kp_test_fail("flush", 1, 0);
        assert_int_equal(d != NULL, decoded == 2);
        kp_chosen_free(d);
        assert_int_equal(kp_chosen_load(t.s, &several, 3), 0);
        assert_int_equal(run_passes("IAC", SIZE_MAX), several.passes);
        take_several();
    }
}

/* A session that rests has its image alone, empty; it begins again with no list. */
static void test_rest(void **state)
{
    (void)state;
    for (int copied = 0; copied < 2; copied++) {
        cannot_move = copied;
        open_session();
        count("aIC", PATCHED);
        assert_int_equal(kp_chosen_start(t.s, &lists[PATCHED]), 0);
        launch("AIC");
        kp_test_forget_calls();
        assert_false(kp_chosen_rests(t.s));
        assert_int_equal(kp_chosen_rest(t.s), 0);
        kp_test_calls(NULL, "off end-pass flush unlist end-session");
        assert_true(kp_chosen_rests(t.s));
        assert_false(kp_chosen_runs(t.s));
        assert_int_equal(views(), 2); /* and a copy of the empty image of the list that it had twice */
        assert_int_equal(kp_chosen_rest(t.s), 0);
        kp_test_calls(NULL, "");
        kp_test_fail("session", 1, FAILS);
        assert_int_equal(kp_chosen_wake(t.s), FAILS);
        assert_true(kp_chosen_rests(t.s));
        kp_test_fail("session", 1, 0);
        assert_int_equal(kp_chosen_wake(t.s), 0);
        assert_false(kp_chosen_rests(t.s));
        kp_test_calls("session", "session*2");
        for (size_t i = 0; i <= LISTS; i++)
            assert_true(kp_chosen_takes(t.s, &lists[i]));
        count("iA", 0);
        assert_int_equal(kp_chosen_rest(t.s), 0);
        kp_test_forget_calls();
        assert_int_equal(close_session(), 0);
        kp_test_calls(NULL, "");
        check_no_session();
    }
}

static void test_rest_fails(void **state)
{
    (void)state;
    open_session();
    count("I", 0);
    kp_test_fail("end-session", 1, FAILS); /* it is over all the same */
    assert_int_equal(kp_chosen_rest(t.s), FAILS);
    kp_test_fail("end-session", 1, 0);
    assert_true(kp_chosen_rests(t.s));
    assert_int_equal(kp_chosen_wake(t.s), 0);
    assert_int_equal(kp_chosen_start(t.s, &lists[0]), 0);
    assert_int_equal(kp_chosen_count(t.s, true), 0);
    kp_test_fail("off", 1, FAILS); /* it goes on */
    assert_int_equal(kp_chosen_rest(t.s), FAILS);
    kp_test_fail("off", 1, 0);
    assert_true(kp_chosen_runs(t.s) && !kp_chosen_rests(t.s));
    assert_int_equal(kp_chosen_rest(t.s), 0);
    assert_int_equal(close_session(), 0);
    check_no_session();
}

/* A switch that stays on keeps the session: it is not ended while a pass runs, and its memory stays. */
static void test_close_cannot_end_the_pass(void **state)
{
    KP_PARAMS(CUpti_Profiler_DisableProfiling_Params, off);
    KP_PARAMS(CUpti_Profiler_EndPass_Params, pass);
    KP_PARAMS(CUpti_Profiler_UnsetConfig_Params, list);
    KP_PARAMS(CUpti_Profiler_EndSession_Params, session);
    (void)state;
    open_session();
    assert_int_equal(kp_chosen_start(t.s, &lists[0]), 0);
    assert_int_equal(kp_chosen_count(t.s, true), 0);
    kp_test_fail("off", 0, FAILS);
    kp_test_forget_calls();
    assert_int_equal(close_session(), FAILS);
    kp_test_fail("off", 0, 0);
    kp_test_calls(NULL, "off");
    check_view_is_kept();
    assert_int_equal(fake->cuptiProfilerDisableProfiling(&off), 0);
    assert_int_equal(fake->cuptiProfilerEndPass(&pass), 0);
    assert_int_equal(fake->cuptiProfilerUnsetConfig(&list), 0);
    assert_int_equal(fake->cuptiProfilerEndSession(&session), 0);
    check_no_session();
}

/* Launches without room are not counted, which shows in the number alone. */
static void test_room(void **state)
{
    struct kp_chosen_data *d = NULL;
    size_t n = 0, dropped = 0;
    (void)state;
    open_session();
    assert_int_equal(kp_chosen_start(t.s, &lists[0]), 0);
    launch("AICAICaiAI");
    assert_int_equal(kp_chosen_stop(t.s, &d, &n, &dropped), 0);
    assert_int_equal(n, ROOM);
    assert_int_equal(dropped, 0);
    kp_chosen_free(d);
    count("AICAIC", 1); /* the room is that of each pass */
}

static size_t asked; /* ranges of the last session */

static CUptiResult CUPTIAPI note_session(CUpti_Profiler_BeginSession_Params *p)
{
    asked = p->maxRangesPerPass;
    return fake->cuptiProfilerBeginSession(p);
}

/* A session has two buffers, where a pass fits both; a version that is not known, or that lacked ranges, has one. */
static void test_buffers(void **state)
{
    struct kp_cupti other = cupti;
    (void)state;
    other.cuptiProfilerBeginSession = cupti.cuptiProfilerBeginSession = note_session;
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            snprintf(other.version, sizeof(other.version), "13.9");
        if (i == 2)
            kp_chosen_lacks();
        if (!fake)
            kp_test_real_cupti();
        assert_int_equal(kp_chosen_open(i == 1 ? &other : &cupti, t.ctx, lists, LISTS + 1, ROOM - 1, &t.s), 0);
        assert_int_equal(asked, i ? ROOM - 1 : ROOM / 2);
        count("AICAI", 1);
        assert_int_equal(close_session(), 0);
    }
    cupti.cuptiProfilerBeginSession = log_cuptiProfilerBeginSession;
}

static void test_bytes(void **state)
{
    size_t one = 0, two = 0, many = 0;
    (void)state;
    open_session();
    assert_int_equal(kp_chosen_bytes(&cupti, lists, LISTS + 1, 1, &one), 0);
    assert_int_equal(kp_chosen_bytes(&cupti, lists, LISTS + 1, 2, &two), 0);
    assert_int_equal(kp_chosen_bytes(&cupti, lists, LISTS + 1, 100, &many), 0);
    assert_int_equal(two - one, sizeof(struct fake_image_range));
    assert_int_equal(many - one, 99 * sizeof(struct fake_image_range));
    kp_test_fail("size", 1, FAILS);
    assert_int_equal(kp_chosen_bytes(&cupti, lists, LISTS + 1, 1, &one), FAILS);
    kp_test_fail("size", 1, 0);
    kp_test_calls(NULL, "size*13"); /* of each list, until one fails */
}

/* Nothing is asked of a context that is gone, or that does not become idle. The memory of a session that rests is given
 * back alone. */
static void test_abandon(void **state)
{
    KP_PARAMS(CUpti_Profiler_EndSession_Params, session);
    (void)state;
    open_session();
    assert_int_equal(kp_chosen_rest(t.s), 0);
    kp_test_forget_calls();
    kp_chosen_abandon(t.s);
    t.s = NULL;
    kp_chosen_abandon(NULL);
    kp_test_calls(NULL, "");
    assert_int_equal(views(), 0);
    open_session();
    kp_test_forget_calls();
    kp_chosen_abandon(t.s);
    t.s = NULL;
    kp_test_calls(NULL, "");
    check_view_is_kept();
    assert_int_equal(fake->cuptiProfilerEndSession(&session), 0);
    check_no_session();
}

/* A CUPTI that is given up has nothing to end, and begins nothing. */
static void test_lost(void **state)
{
    KP_PARAMS(CUpti_Profiler_UnsetConfig_Params, list);
    KP_PARAMS(CUpti_Profiler_EndSession_Params, session);
    (void)state;
    open_session();
    kp_cupti_lose();
    assert_int_equal(kp_chosen_start(t.s, &lists[0]), KP_CUPTI_LOST);
    assert_int_equal(close_session(), 0);
    kp_test_calls(NULL, "");
    kp_cupti_forget_loss();
    assert_int_equal(fake->cuptiProfilerEndSession(&session), 0);
    open_session();
    assert_int_equal(kp_chosen_start(t.s, &lists[0]), 0);
    launch("aI");
    kp_test_forget_calls();
    kp_cupti_lose();
    assert_int_equal(close_session(), 0); /* what ends a pass is called all the same */
    kp_test_calls(NULL, "off end-pass");
    kp_cupti_forget_loss();
    assert_int_equal(fake->cuptiProfilerUnsetConfig(&list), 0);
    assert_int_equal(fake->cuptiProfilerEndSession(&session), 0);
    check_no_session();
}

/* ---- what is not there ---- */

static void test_functions_that_lack(void **state)
{
    struct kp_cupti c;
    (void)state;
    open_session();
#define WITHOUT(name, word, type)                                                                                      \
    c = cupti;                                                                                                         \
    c.name = NULL;                                                                                                     \
    assert_int_equal(kp_chosen_available(&c), !strncmp(#name, "cuptiRange", strlen("cuptiRange")));
    LOGGED_FUNCTIONS(WITHOUT)
    ENDING_FUNCTIONS(WITHOUT)
    WITHOUT(cuptiProfilerUnsetConfig, , )
#undef WITHOUT
#define WITHOUT(name)                                                                                                  \
    c = cupti;                                                                                                         \
    c.name = NULL;                                                                                                     \
    assert_false(kp_chosen_available(&c) || kp_raw_lays_out(&c));
    WITHOUT(NVPW_CUDA_CounterDataBuilder_Create)
    WITHOUT(NVPW_CounterDataBuilder_Destroy)
    WITHOUT(NVPW_CounterDataBuilder_AddRawCounters)
    WITHOUT(NVPW_CounterDataBuilder_GetCounterDataPrefix)
#undef WITHOUT
}

/* A library that does not tell what metrics are made of, or refuses: there is no layout, and nothing is left of it. */
static void test_layouts_that_lack(void **state)
{
    struct kp_cupti c;
    struct kp_host *h;
    uint8_t *prefix;
    size_t size;
    (void)state;
    open_session();
#define WITHOUT(name)                                                                                                  \
    c = cupti;                                                                                                         \
    c.name = NULL;                                                                                                     \
    prefix = (void *)&t;                                                                                               \
    assert_int_equal(kp_host_open(&c, chip, NULL, &h), 0);                                                             \
    for (int twice = 0; twice < 2; twice++)                                                                            \
        assert_int_equal(kp_host_layout(h, lists, LISTS, &prefix, &size), -ENOSYS);                                    \
    assert_null(prefix);                                                                                               \
    kp_host_close(h);
    WITHOUT(NVPW_InitializeHost)
    WITHOUT(NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize)
    WITHOUT(NVPW_CUDA_MetricsEvaluator_Initialize)
    WITHOUT(NVPW_MetricsEvaluator_Destroy)
    WITHOUT(NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest)
    WITHOUT(NVPW_MetricsEvaluator_GetMetricRawDependencies)
#undef WITHOUT
}

/* What fails leaves nothing. What a metric needs is asked once, and not again where it is not told. */
static void test_layout_fails(void **state)
{
    static const struct {
        const char *fails;
        unsigned nth;
        bool for_good;
    } rows[] = {{"metric", 2, true},    {"needs", 1, true},   {"needs", 2, true},  {"builder", 1, false},
                {"counters", 1, false}, {"prefix", 1, false}, {"prefix", 2, false}};
    uint8_t *prefix = NULL;
    size_t size = 0;
    (void)state;
    open_session();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_host *h = NULL;
        assert_int_equal(kp_host_open(&cupti, chip, NULL, &h), 0);
        kp_test_forget_calls();
        prefix = (void *)&t;
        kp_test_fail(rows[i].fails, rows[i].nth, 1);
        assert_int_equal(kp_host_layout(h, lists, LISTS, &prefix, &size), -EINVAL);
        kp_test_fail(rows[i].fails, rows[i].nth, 0);
        assert_null(prefix);
        assert_int_equal(kp_test_count("destroy"), i > 3);
        assert_int_equal(kp_host_layout(h, lists, LISTS, &prefix, &size), rows[i].for_good ? -EINVAL : 0);
        assert_int_equal(prefix == NULL, rows[i].for_good);
        assert_int_equal(kp_test_count("destroy"), (i > 3) + !rows[i].for_good);
        free(prefix);
        kp_host_close(h);
    }
}

/* The layout has each counter once, whatever lists it is of. */
static void test_a_layout_has_all_lists(void **state)
{
    const struct kp_config both[] = {lists[0], lists[1], lists[0]};
    uint8_t *prefix = NULL;
    size_t size = 0, counters = 0;
    (void)state;
    open_session();
    for (size_t n = 1; n <= 3; n++) {
        assert_int_equal(kp_host_layout(t.host, both, n, &prefix, &size), 0);
        assert_int_equal(size, sizeof(counters));
        memcpy(&counters, prefix, sizeof(counters));
        assert_int_equal(counters, n < 3 ? n : 2);
        free(prefix);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_only_the_chosen),
        TEST(test_the_switch_is_turned_once),
        TEST(test_lists_in_any_order),
        TEST(test_data_stays),
        TEST(test_data_stays_where_it_is_copied),
        TEST(test_a_failed_pass_leaves_nothing),
        TEST(test_patched_code),
        TEST(test_open_fails),
        TEST(test_start_fails),
        TEST(test_stop_fails),
        TEST(test_close_while_a_pass_runs),
        TEST(test_memory_after_an_end_that_failed),
        TEST(test_several_passes),
        TEST(test_passes_that_are_left),
        TEST(test_rest),
        TEST(test_rest_fails),
        TEST(test_close_cannot_end_the_pass),
        TEST(test_room),
        TEST(test_bytes),
        TEST(test_abandon),
        TEST(test_lost),
        TEST(test_functions_that_lack),
        TEST(test_layouts_that_lack),
        TEST(test_layout_fails),
        TEST(test_a_layout_has_all_lists),
        TEST(test_buffers), /* last: what was lacked once stays so */
    };
    return cmocka_run_group_tests(tests, open_library, close_library);
}
