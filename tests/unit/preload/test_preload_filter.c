/* Which launches the filter takes, over kernels, devices, places and a clock that the test names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "preload/program/filter.h"
#include "report/model/kernel_id.h"
#include "report/model/model.h"

/* ---- the source ---- */

static struct {
    int names_read, devices_read, clock_read, places_asked;
    uint64_t now;
    enum kp_reason no_place;
} source;

/* A handle is its number, as the filter only compares it. */
static CUfunction handle(uintptr_t n)
{
    return (CUfunction)(n << 4);
}

enum { GEMM, GEMM_FLOAT, COPY, NCCL, NAMELESS };

static const char *symbols[] = {"_ZN4math4gemmIiEEvPT_", "_ZN4math4gemmIfEEvPT_", "copy", "_Z13ncclDevKernelIiEvT_",
                                NULL};

static char *mangled(CUfunction f)
{
    const char *symbol = symbols[((uintptr_t)f >> 4) - 1];
    source.names_read++;
    return symbol ? strdup(symbol) : NULL;
}

/* The stream tells where a launch goes: context, stream and device in decimal, as 1-7-0 in 170. */
static int device(const struct kp_launch *l)
{
    source.devices_read++;
    return (int)((uintptr_t)l->stream % 10);
}

static enum kp_reason place(const struct kp_launch *l, uint64_t *context, uint64_t *stream)
{
    source.places_asked++;
    *stream = (uintptr_t)l->stream / 10 % 10;
    *context = (uintptr_t)l->stream / 100;
    return source.no_place;
}

static uint64_t now(void)
{
    source.clock_read++;
    return source.now;
}

static bool inside_all = true;

/* As a launch is told of its ranges, too. */
static bool is_inside(struct kp_launch *l)
{
    (void)l;
    return inside_all;
}

static const struct kp_filter_source test_source = {mangled, device, now, place, is_inside};

/* ---- the filter under test ---- */

static struct kp_filter *filter;
static struct kp_options options;
static struct kp_filter_choice choice;

#define FILTER(...) new_filter((char *const[]){__VA_ARGS__, NULL})

static void new_filter(char *const *env)
{
    char *err = NULL;
    memset(&source, 0, sizeof(source));
    source.now = UINT64_C(1000000000000);
    int rc = kp_options_from_env(&options, env, &err);
    if (rc)
        fail_msg("%d: %s", rc, err ? err : "(no message)");
    assert_int_equal(kp_filter_new(&options, &test_source, &filter, &err), 0);
}

static void end_filter(void)
{
    kp_filter_free(filter);
    kp_options_free(&options);
}

static struct kp_launch launch_at(int kernel, int where)
{
    struct kp_launch l = {.f = handle((uintptr_t)kernel + 1), .stream = (CUstream)(uintptr_t)where};
    for (int i = 0; i < 3; i++)
        l.shape.grid[i] = l.shape.block[i] = 1;
    return l;
}

/* Why the launch is not wanted, if it is not. */
static enum kp_reason choose(const struct kp_launch *l)
{
    struct kp_launch own = *l; /* which is told its ranges */
    kp_filter_choose(filter, &own, &choice);
    return choice.unwanted;
}

static enum kp_reason at(int kernel, int where)
{
    struct kp_launch l = launch_at(kernel, where);
    return choose(&l);
}

enum { HERE = 170 };

static enum kp_reason one(int kernel)
{
    return at(kernel, HERE);
}

/* ---- names ---- */

static void all_are_wanted_by_default(void **state)
{
    (void)state;
    struct kp_launch graph = {.is_graph = true};
    FILTER("HOME=x");
    for (int k = GEMM; k <= NAMELESS; k++)
        assert_int_equal(one(k), KP_REASON_NONE);
    assert_int_equal(choose(&graph), KP_REASON_NONE);
    assert_false(choice.last);
    assert_int_equal(source.devices_read + source.clock_read + source.places_asked, 0);
    end_filter();
}

/* What is made outside of the wanted ranges is not counted by launch-skip and launch-count. */
static void ranges_come_before_numbers(void **state)
{
    (void)state;
    FILTER("KPROF_LAUNCH_SKIP=1", "KPROF_LAUNCH_COUNT=1");
    inside_all = false;
    assert_int_equal(one(GEMM), KP_REASON_NVTX);
    assert_int_equal(one(GEMM), KP_REASON_NVTX);
    inside_all = true;
    assert_int_equal(one(GEMM), KP_REASON_LAUNCH_SKIP);
    assert_int_equal(one(GEMM), KP_REASON_NONE);
    assert_int_equal(one(GEMM), KP_REASON_LAUNCH_COUNT);
    end_filter();
}

static void each_base_is_matched(void **state)
{
    (void)state;
    static const struct {
        const char *base, *name;
        bool gemm, gemm_float, copy;
    } rows[] = {
        {"function", "gemm", true, true, false},
        {"function", "math::gemm", false, false, false},
        {"function", "regex:^g|^c", true, true, true},
        {"demangled", "gemm", false, false, false},
        {"demangled", "void math::gemm<int>(T1 *)", true, false, false},
        {"demangled", "regex:gemm<float>", false, true, false},
        {"demangled", "copy", false, false, true},
        {"mangled", "_ZN4math4gemmIfEEvPT_", false, true, false},
        {"mangled", "gemm", false, false, false},
        {"mangled", "regex:gemm", true, true, false},
        {"mangled", "copy", false, false, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char base[64], name[64];
        snprintf(base, sizeof(base), "KPROF_KERNEL_NAME_BASE=%s", rows[i].base);
        snprintf(name, sizeof(name), "KPROF_KERNEL_NAME=%s", rows[i].name);
        FILTER(base, name);
        const bool wanted[] = {rows[i].gemm, rows[i].gemm_float, rows[i].copy};
        for (int k = GEMM; k <= COPY; k++)
            if (one(k) != (wanted[k] ? KP_REASON_NONE : KP_REASON_KERNEL_NAME))
                fail_msg("%s, %s, kernel %d: '%s'", rows[i].base, rows[i].name, k, kp_reason_text(choice.unwanted));
        end_filter();
    }
}

static void names_are_read_once(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_NAME=copy");
    for (int i = 0; i < 100; i++)
        for (int k = GEMM; k <= NAMELESS; k++)
            assert_int_equal(one(k), k == COPY ? KP_REASON_NONE : KP_REASON_KERNEL_NAME);
    assert_int_equal(source.names_read, NAMELESS + 1);
    const char *before = symbols[GEMM];
    symbols[GEMM] = "copy"; /* the handle has come again */
    assert_int_equal(one(GEMM), KP_REASON_KERNEL_NAME);
    kp_filter_forget(filter);
    assert_int_equal(one(GEMM), KP_REASON_NONE);
    symbols[GEMM] = before;
    end_filter();
}

/* Handles that share a slot take it from each other. */
static void handles_of_one_slot_are_told_apart(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_NAME=copy");
    struct kp_launch copy = launch_at(COPY, HERE), other = launch_at(COPY, HERE);
    other.f = (CUfunction)((uintptr_t)copy.f + 4); /* read as the same symbol, but another handle */
    assert_int_equal(choose(&copy), KP_REASON_NONE);
    int before = source.names_read;
    assert_int_equal(choose(&other), KP_REASON_NONE);
    assert_int_equal(choose(&copy), KP_REASON_NONE);
    assert_int_equal(source.names_read, before + 2);
    end_filter();
}

static void what_waits_outside_is_known_by_name(void **state)
{
    (void)state;
    static const char *const bases[] = {"KPROF_KERNEL_NAME_BASE=function", "KPROF_KERNEL_NAME_BASE=demangled",
                                        "KPROF_KERNEL_NAME_BASE=mangled"};
    for (int i = 0; i < 3; i++) {
        FILTER((char *)bases[i]);
        one(NCCL);
        assert_true(choice.outside);
        one(COPY);
        assert_false(choice.outside);
        assert_true(kp_filter_outside(filter, handle(NCCL + 1)));
        assert_false(kp_filter_outside(filter, handle(COPY + 1)));
        end_filter();
    }
    assert_true(kp_filter_waits_outside("_Z20ncclKernel_AllReducev"));
    assert_true(kp_filter_waits_outside("nvshmemi_barrier"));
    assert_false(kp_filter_waits_outside("my_ncclKernel"));
    assert_true(kp_filter_waits_outside("__nv_static_7_nccl_cu__Z20ncclKernel_AllReducev"));
    assert_true(
        kp_filter_waits_outside("_ZN15stream_executor3gpu12_GLOBAL__N_111DelayKernelEPVNS0_17GpuSemaphoreStateES1_"));
    assert_false(kp_filter_waits_outside("_Z11DelayKernelPi"));
}

static void graphs_have_no_name(void **state)
{
    (void)state;
    struct kp_launch graph = {.is_graph = true};
    FILTER("KPROF_KERNEL_NAME=copy");
    assert_int_equal(choose(&graph), KP_REASON_GRAPHS);
    end_filter();
    FILTER("KPROF_KERNEL_ID=:::1");
    assert_int_equal(choose(&graph), KP_REASON_GRAPHS);
    end_filter();
    FILTER("KPROF_LAUNCH_SKIP=1");
    assert_int_equal(choose(&graph), KP_REASON_LAUNCH_SKIP);
    assert_int_equal(choose(&graph), KP_REASON_NONE);
    end_filter();
}

/* ---- numbers ---- */

static void skip_and_count_are_of_matching_launches(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_NAME=copy", "KPROF_LAUNCH_SKIP=2", "KPROF_LAUNCH_COUNT=2");
    static const enum kp_reason expected[] = {KP_REASON_LAUNCH_SKIP, KP_REASON_LAUNCH_SKIP, KP_REASON_NONE,
                                              KP_REASON_NONE, KP_REASON_LAUNCH_COUNT};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(one(GEMM), KP_REASON_KERNEL_NAME);
        assert_int_equal(one(COPY), expected[i]);
        assert_int_equal(choice.last, i == 3);
    }
    end_filter();
}

static void skip_before_match_is_of_all_launches(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_NAME=copy", "KPROF_LAUNCH_SKIP_BEFORE_MATCH=3", "KPROF_LAUNCH_SKIP=1");
    assert_int_equal(one(COPY), KP_REASON_BEFORE_MATCH);
    assert_int_equal(one(GEMM), KP_REASON_BEFORE_MATCH);
    assert_int_equal(one(GEMM), KP_REASON_BEFORE_MATCH);
    assert_int_equal(source.names_read, 0);
    assert_int_equal(one(GEMM), KP_REASON_KERNEL_NAME);
    assert_int_equal(one(COPY), KP_REASON_LAUNCH_SKIP);
    assert_int_equal(one(COPY), KP_REASON_NONE);
    end_filter();
}

static void each_device_counts_for_itself(void **state)
{
    (void)state;
    FILTER("KPROF_FILTER_MODE=per-gpu", "KPROF_LAUNCH_SKIP=1", "KPROF_LAUNCH_COUNT=1");
    assert_int_equal(at(COPY, 170), KP_REASON_LAUNCH_SKIP);
    assert_int_equal(at(COPY, 171), KP_REASON_LAUNCH_SKIP);
    assert_int_equal(at(GEMM, 171), KP_REASON_NONE);
    assert_false(choice.last); /* others may come on another device */
    assert_int_equal(at(COPY, 170), KP_REASON_NONE);
    assert_int_equal(at(COPY, 280), KP_REASON_LAUNCH_COUNT);
    assert_int_equal(at(COPY, 281), KP_REASON_LAUNCH_COUNT);
    end_filter();
}

static void each_configuration_counts_for_itself(void **state)
{
    (void)state;
    FILTER("KPROF_FILTER_MODE=per-launch-config", "KPROF_LAUNCH_COUNT=1");
    struct kp_launch l[7];
    for (int i = 0; i < 7; i++)
        l[i] = launch_at(COPY, 170 + i); /* devices and streams make no difference */
    l[1].f = handle(GEMM + 1);
    l[2].shape.grid[1] = 2;
    l[3].shape.block[2] = 2;
    l[4].shape.dynamic_shared = 1024;
    l[5].is_graph = l[6].is_graph = true;
    l[6].graph = (CUgraphExec)(uintptr_t)16;
    for (int i = 0; i < 7; i++)
        assert_int_equal(choose(&l[i]), KP_REASON_NONE);
    for (int i = 0; i < 7; i++)
        assert_int_equal(choose(&l[i]), KP_REASON_LAUNCH_COUNT);
    assert_int_equal(source.devices_read, 0);
    end_filter();
}

/* ---- devices ---- */

static void devices_come_before_names(void **state)
{
    (void)state;
    FILTER("KPROF_DEVICES=3, 1", "KPROF_KERNEL_ID=::copy:2");
    assert_int_equal(at(COPY, 170), KP_REASON_DEVICES);
    assert_int_equal(choice.other_device, 0);
    assert_int_equal(source.names_read, 0);
    assert_int_equal(at(COPY, 171), KP_REASON_KERNEL_ID);
    assert_int_equal(choice.other_device, -1);
    assert_int_equal(at(COPY, 172), KP_REASON_DEVICES);
    assert_int_equal(at(COPY, 173), KP_REASON_NONE); /* the second one on these devices */
    end_filter();
}

/* ---- kernel-id ---- */

static void invocations_are_those_of_a_name(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_ID=::regex:.:2,4");
    static const enum kp_reason expected[] = {KP_REASON_KERNEL_ID, KP_REASON_NONE, KP_REASON_KERNEL_ID, KP_REASON_NONE,
                                              KP_REASON_KERNEL_ID};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(one(COPY), expected[i]);
        assert_int_equal(one(NCCL), expected[i]);
    }
    assert_int_equal(one(GEMM), KP_REASON_KERNEL_ID);
    assert_int_equal(one(GEMM_FLOAT), KP_REASON_NONE); /* the same function name */
    assert_int_equal(source.places_asked, 0);
    end_filter();
    FILTER("KPROF_KERNEL_ID=:::2", "KPROF_KERNEL_NAME_BASE=demangled");
    assert_int_equal(one(GEMM), KP_REASON_KERNEL_ID);
    assert_int_equal(one(GEMM_FLOAT), KP_REASON_KERNEL_ID); /* another signature */
    assert_int_equal(one(GEMM_FLOAT), KP_REASON_NONE);
    end_filter();
}

static void places_are_those_of_the_report(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_ID=1:7|8:copy:2", "KPROF_LAUNCH_SKIP=1", "KPROF_KERNEL_NAME=regex:copy|gemm");
    assert_int_equal(at(COPY, 170), KP_REASON_KERNEL_ID); /* the first one there */
    assert_int_equal(at(COPY, 270), KP_REASON_KERNEL_ID);
    assert_int_equal(at(COPY, 190), KP_REASON_KERNEL_ID);
    assert_int_equal(at(COPY, 180), KP_REASON_LAUNCH_SKIP); /* the second one */
    assert_int_equal(at(COPY, 180), KP_REASON_KERNEL_ID);
    assert_int_equal(at(GEMM, 180), KP_REASON_KERNEL_ID);
    assert_int_equal(source.places_asked, 6); /* ids are given in launch order, so also for other names, */
    assert_int_equal(at(NCCL, 180), KP_REASON_KERNEL_NAME);
    assert_int_equal(source.places_asked, 6); /* but not for those that a run without kernel-id would not report */
    source.no_place = KP_REASON_BUSY;
    assert_int_equal(at(COPY, 180), KP_REASON_BUSY);
    end_filter();
}

static void identifiers(void **state)
{
    (void)state;
    struct kp_kernel_id *id;
    char *err;
    assert_int_equal(kp_kernelid_new("1,12:.*3:regex:ns::f<[0-9:]+>:.*5|3", &id, &err), 0);
    assert_true(kp_kernelid_asks_place(id));
    assert_true(kp_kernelid_place(id, 12, 13));
    assert_true(kp_kernelid_place(id, 1, 3));
    assert_false(kp_kernelid_place(id, 2, 3));
    assert_false(kp_kernelid_place(id, 1, 31));
    assert_true(kp_kernelid_name(id, "ns::f<1:2>"));
    assert_false(kp_kernelid_name(id, "ns::f<>"));
    static const bool wanted[] = {false, false, false, true, false, true};
    for (uint64_t i = 0; i < 6; i++)
        assert_int_equal(kp_kernelid_invocation(id, i), wanted[i]);
    assert_true(kp_kernelid_invocation(id, 15));
    assert_false(kp_kernelid_invocation(id, 13)); /* whole numbers */
    assert_false(kp_kernelid_invocation(id, 51));
    kp_kernelid_free(id);
    assert_int_equal(kp_kernelid_new("::2", &id, &err), -EINVAL); /* a field is missing */
    assert_null(id);
    free(err);
    assert_int_equal(kp_kernelid_new(":::", &id, &err), 0);
    assert_false(kp_kernelid_asks_place(id));
    assert_true(kp_kernelid_place(id, 0, 99) && kp_kernelid_name(id, "x") && kp_kernelid_invocation(id, 1));
    kp_kernelid_free(id);
}

/* ---- time ---- */

static void a_range_of_time(void **state)
{
    (void)state;
    FILTER("KPROF_DELAY=5ms", "KPROF_DURATION=2s", "KPROF_LAUNCH_SKIP_BEFORE_MATCH=1");
    source.now += 4999999;
    assert_int_equal(one(COPY), KP_REASON_DELAY);
    source.now++;
    assert_int_equal(one(COPY), KP_REASON_BEFORE_MATCH); /* counts from here on */
    source.now += 1999999999;
    assert_int_equal(one(COPY), KP_REASON_NONE);
    source.now++;
    assert_int_equal(one(COPY), KP_REASON_DURATION);
    int before = source.clock_read;
    assert_int_equal(one(COPY), KP_REASON_DURATION);
    assert_int_equal(source.clock_read, before); /* it stays so */
    end_filter();
}

static void a_delay_alone(void **state)
{
    (void)state;
    FILTER("KPROF_DELAY=0.5");
    assert_int_equal(one(COPY), KP_REASON_DELAY);
    source.now += 500000000;
    assert_int_equal(one(COPY), KP_REASON_NONE);
    int before = source.clock_read;
    assert_int_equal(one(COPY), KP_REASON_NONE);
    assert_int_equal(source.clock_read, before);
    end_filter();
    FILTER("KPROF_DURATION=1m");
    assert_int_equal(one(COPY), KP_REASON_NONE);
    source.now += UINT64_C(60000000000);
    assert_int_equal(one(COPY), KP_REASON_DURATION);
    end_filter();
    FILTER("KPROF_DELAY=200000000m", "KPROF_DURATION=200000000m"); /* an end that the clock does not reach */
    source.now = UINT64_MAX - 1;
    assert_int_equal(one(COPY), KP_REASON_NONE);
    end_filter();
    FILTER("KPROF_DELAY=307445733.9m"); /* nor this beginning: the clock is not at 0 */
    assert_int_equal(one(COPY), KP_REASON_DELAY);
    end_filter();
}

/* ---- ranges that are workloads ---- */

/* Why a range that begins on a device is not counted, if it is not. */
static enum kp_reason range(int on, bool inside)
{
    struct kp_launch at = {.is_graph = true, .stream = (CUstream)(uintptr_t)(HERE + on)};
    bool wanted = kp_filter_wants_range(filter, &at), again = kp_filter_wants_range(filter, &at);
    kp_filter_choose_range(filter, &at, inside, &choice);
    assert_true(wanted == again && (wanted == !choice.unwanted || !inside));
    return choice.unwanted;
}

static void ranges_pass_the_filters_in_turn(void **state)
{
    (void)state;
    FILTER("KPROF_DELAY=5ms", "KPROF_DURATION=2s", "KPROF_LAUNCH_SKIP_BEFORE_MATCH=2", "KPROF_DEVICES=1",
           "KPROF_LAUNCH_SKIP=1", "KPROF_LAUNCH_COUNT=1");
    assert_int_equal(range(1, true), KP_REASON_DELAY);
    source.now += 5000000;
    assert_int_equal(range(1, true), KP_REASON_BEFORE_MATCH);
    assert_int_equal(range(0, true), KP_REASON_BEFORE_MATCH);
    assert_int_equal(range(0, true), KP_REASON_DEVICES);
    assert_int_equal(choice.other_device, 0);
    assert_int_equal(range(1, false), KP_REASON_NVTX);
    assert_int_equal(range(1, true), KP_REASON_LAUNCH_SKIP);
    assert_int_equal(range(1, true), KP_REASON_NONE);
    assert_int_equal(range(1, true), KP_REASON_LAUNCH_COUNT);
    source.now += 2000000000;
    assert_int_equal(range(1, true), KP_REASON_DURATION);
    end_filter();
}

/* A shape is of launches: ranges count together there. */
static void numbers_of_ranges(void **state)
{
    (void)state;
    FILTER("KPROF_LAUNCH_SKIP=1", "KPROF_LAUNCH_COUNT=1", "KPROF_FILTER_MODE=per-gpu");
    for (int i = 0; i < 3; i++)
        for (int on = 0; on < 2; on++)
            assert_int_equal(range(on, true), i == 0   ? KP_REASON_LAUNCH_SKIP
                                              : i == 1 ? KP_REASON_NONE
                                                       : KP_REASON_LAUNCH_COUNT);
    end_filter();
    FILTER("KPROF_LAUNCH_SKIP=1", "KPROF_LAUNCH_COUNT=1", "KPROF_FILTER_MODE=per-launch-config");
    assert_int_equal(range(0, true), KP_REASON_LAUNCH_SKIP);
    assert_int_equal(range(1, true), KP_REASON_NONE);
    assert_int_equal(range(0, true), KP_REASON_LAUNCH_COUNT);
    end_filter();
}

static void the_device_of_a_range_matters_to_some_filters(void **state)
{
    static const struct {
        const char *env[2];
        bool asks;
    } cases[] = {
        {{"HOME=x", "HOME=x"}, false},
        {{"KPROF_LAUNCH_SKIP=1", "HOME=x"}, false},
        {{"KPROF_FILTER_MODE=per-gpu", "HOME=x"}, false},
        {{"KPROF_DEVICES=0", "HOME=x"}, true},
        {{"KPROF_FILTER_MODE=per-gpu", "KPROF_LAUNCH_SKIP=1"}, true},
        {{"KPROF_FILTER_MODE=per-gpu", "KPROF_LAUNCH_COUNT=1"}, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        FILTER((char *)cases[i].env[0], (char *)cases[i].env[1]);
        assert_true(kp_filter_asks_device(&options) == cases[i].asks);
        assert_int_equal(range(0, true), i == 1 || i == 4 ? KP_REASON_LAUNCH_SKIP : KP_REASON_NONE);
        assert_true(cases[i].asks == (source.devices_read > 0));
        end_filter();
    }
}

/* ---- what was seen ---- */

static void list(void *arg, const char *name, uint64_t launches)
{
    char *text = arg;
    snprintf(text + strlen(text), 512 - strlen(text), "%s: %d\n", name, (int)launches);
}

static void assert_seen(const char *expected)
{
    char text[512] = "";
    kp_filter_unwanted(filter, list, text);
    assert_string_equal(text, expected);
}

/* What the driver refuses was no launch: later ones are chosen as without it, whatever stage had counted it. */
static void what_is_refused_does_not_count(void **state)
{
    (void)state;
    FILTER("KPROF_LAUNCH_SKIP_BEFORE_MATCH=1", "KPROF_KERNEL_NAME=gemm", "KPROF_KERNEL_ID=::gemm:2,3,4,5",
           "KPROF_LAUNCH_SKIP=1", "KPROF_LAUNCH_COUNT=2");
    static const struct {
        int kernel;
        enum kp_reason why;
    } rows[] = {{COPY, KP_REASON_BEFORE_MATCH}, {COPY, KP_REASON_KERNEL_NAME}, {GEMM, KP_REASON_KERNEL_ID},
                {GEMM, KP_REASON_LAUNCH_SKIP},  {GEMM, KP_REASON_NONE},        {GEMM, KP_REASON_NONE},
                {GEMM, KP_REASON_LAUNCH_COUNT}, {COPY, KP_REASON_KERNEL_NAME}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        for (int refused = 0; refused < 3; refused++) {
            assert_int_equal(one(rows[i].kernel), rows[i].why);
            kp_filter_refused(filter, &choice.counted);
            kp_filter_refused(filter, &choice.counted); /* nothing is left to take back */
        }
        assert_int_equal(one(rows[i].kernel), rows[i].why);
        assert_int_equal(choice.last, i == 5);
    }
    assert_seen("copy: 2\ngemm: 1\n");
    end_filter();
}

static void the_unwanted_are_listed_in_order(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_NAME=copy", "KPROF_LAUNCH_COUNT=1");
    assert_seen("");
    one(NCCL);
    one(COPY);
    one(COPY); /* taken by its name */
    one(GEMM);
    one(GEMM_FLOAT);
    kp_filter_forget(filter);
    one(NCCL);
    assert_seen("ncclDevKernel: 2\ngemm: 2\n");
    end_filter();
    FILTER("KPROF_KERNEL_ID=1:8:copy:", "KPROF_KERNEL_NAME_BASE=mangled");
    at(COPY, 170);
    at(COPY, 180);
    at(COPY, 280);
    at(COPY, 170);
    at(GEMM, 180);
    assert_seen("copy, Context 1, Stream 7: 2\ncopy, Context 2, Stream 8: 1\n"
                "_ZN4math4gemmIiEEvPT_, Context 1, Stream 8: 1\n");
    end_filter();
}

/* ---- what is passed on ---- */

/* Asks, as another thread does while the filter is busy: without its lock. */
static enum kp_pass_why passes(int kernel)
{
    atomic_uint_fast64_t *also;
    kp_lock_take(&kp_locks[KP_LOCK_FILTER], KP_FOREVER);
    enum kp_pass_why why = kp_filter_passes(filter, launch_at(kernel, HERE).f, &also);
    if (also)
        atomic_fetch_add(also, 1);
    kp_lock_give(&kp_locks[KP_LOCK_FILTER]);
    return why;
}

static bool takes_all(int kernel)
{
    return kp_filter_takes_all(filter, launch_at(kernel, HERE).f);
}

static void kernels_of_other_names_are_passed_on(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_NAME=copy");
    assert_int_equal(passes(GEMM), KP_PASS_NOT); /* not known yet */
    one(GEMM);
    one(COPY);
    one(NCCL);
    assert_int_equal(passes(GEMM), KP_PASS_NAME);
    assert_int_equal(passes(COPY), KP_PASS_NOT);
    assert_int_equal(passes(NCCL), KP_PASS_NAME);
    assert_int_equal(passes(GEMM_FLOAT), KP_PASS_NOT); /* of the same name, but not known by this handle */
    kp_filter_forget(filter);
    assert_int_equal(passes(GEMM), KP_PASS_NOT);
    assert_int_equal(one(GEMM), KP_REASON_KERNEL_NAME);
    assert_int_equal(passes(GEMM), KP_PASS_NAME);
    assert_int_equal(passes(NCCL), KP_PASS_NOT);
    assert_seen("gemm: 4\nncclDevKernel: 2\n");
    end_filter();
    FILTER("KPROF_KERNEL_ID=::copy:2", "KPROF_KERNEL_NAME=regex:copy|gemm");
    one(GEMM);
    one(COPY);
    one(NCCL);
    assert_int_equal(passes(GEMM), KP_PASS_ID);
    assert_int_equal(passes(COPY), KP_PASS_NOT); /* it is counted */
    assert_int_equal(passes(NCCL), KP_PASS_NAME);
    assert_int_equal(one(COPY), KP_REASON_NONE);
    end_filter();
    FILTER("KPROF_KERNEL_ID=1:8:copy:");
    at(GEMM, 170);
    assert_int_equal(passes(GEMM), KP_PASS_NOT); /* its places are listed */
    end_filter();
}

/* Stages before the name go on to count, and later ones count nothing any more once launch-count is used up. */
static void what_is_still_counted_is_not_passed_on(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_NAME=copy", "KPROF_LAUNCH_SKIP_BEFORE_MATCH=2", "KPROF_LAUNCH_SKIP=1", "KPROF_LAUNCH_COUNT=2");
    one(GEMM);
    assert_int_equal(passes(GEMM), KP_PASS_NOT);
    one(GEMM);
    one(GEMM);
    assert_int_equal(passes(GEMM), KP_PASS_NAME);
    assert_int_equal(one(COPY), KP_REASON_LAUNCH_SKIP);
    assert_int_equal(one(COPY), KP_REASON_NONE);
    assert_int_equal(passes(COPY), KP_PASS_NOT);
    assert_int_equal(one(COPY), KP_REASON_NONE);
    assert_int_equal(passes(COPY), KP_PASS_COUNT);
    assert_int_equal(one(COPY), KP_REASON_LAUNCH_COUNT);
    end_filter();
    FILTER("KPROF_LAUNCH_COUNT=1", "KPROF_FILTER_MODE=per-launch-config");
    one(COPY);
    one(COPY);
    assert_int_equal(passes(COPY), KP_PASS_NOT); /* with another shape it is wanted */
    end_filter();
    FILTER("KPROF_LAUNCH_COUNT=1", "KPROF_NVTX_INCLUDE=a/", "KPROF_NVTX=1");
    one(COPY);
    assert_int_equal(passes(COPY), KP_PASS_NOT); /* the ranges give another reason */
    end_filter();
    FILTER("KPROF_KERNEL_NAME=copy", "KPROF_DEVICES=0");
    one(GEMM);
    one(GEMM);
    assert_int_equal(passes(GEMM), KP_PASS_NOT);
    end_filter();
}

static void time_is_over_for_all(void **state)
{
    (void)state;
    FILTER("KPROF_KERNEL_NAME=copy", "KPROF_DELAY=1", "KPROF_DURATION=1");
    one(GEMM);
    source.now += 1500000000;
    one(GEMM);
    assert_int_equal(passes(GEMM), KP_PASS_NOT);
    source.now += 1000000000;
    one(GEMM);
    assert_int_equal(passes(GEMM), KP_PASS_DURATION);
    assert_int_equal(passes(COPY), KP_PASS_DURATION); /* never seen */
    assert_seen("gemm: 1\n");
    end_filter();
}

/* What takes long is made ready when a name is met that is wanted, and not for a program that has none. */
static void what_may_follow_is_told(void **state)
{
    static const struct {
        const char *option;
        bool at_once, copy, gemm; /* whether the first launch may be wanted, and later ones of these kernels */
    } cases[] = {
        {"KPROF_LAUNCH_SKIP_BEFORE_MATCH=9", false, true, true},
        {"KPROF_LAUNCH_SKIP=9", false, true, true},
        {"KPROF_DELAY=1", false, true, true},
        {"KPROF_KERNEL_NAME=copy", false, false, false},
        {"KPROF_KERNEL_ID=::copy:9", false, true, false},
        {"KPROF_DEVICES=0", true, false, false},
        {"KPROF_LAUNCH_COUNT=1", true, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        FILTER((char *)(uintptr_t)cases[i].option);
        assert_true(kp_filter_takes_first(&options) == cases[i].at_once);
        at(COPY, 280);
        assert_true(choice.may_follow == cases[i].copy);
        at(GEMM, 280);
        assert_true(choice.may_follow == cases[i].gemm);
        end_filter();
    }
    FILTER("KPROF_KERNEL_NAME=copy", "KPROF_LAUNCH_SKIP=1");
    one(GEMM);
    assert_false(choice.may_follow);
    one(COPY);
    assert_true(choice.may_follow);
    one(COPY);
    assert_false(choice.may_follow); /* it is wanted */
    end_filter();
    FILTER("HOME=x");
    assert_true(kp_filter_takes_first(&options));
    end_filter();
}

/* Launches of a function that is known, and that no stage counts, need not be chosen one by one. */
static void all_of_a_function_are_taken(void **state)
{
    static char *counting[] = {"KPROF_LAUNCH_SKIP=1",    "KPROF_LAUNCH_COUNT=5",  "KPROF_KERNEL_ID=::copy:2",
                               "KPROF_NVTX_INCLUDE=a/",  "KPROF_NVTX_EXCLUDE=a/", "KPROF_DEVICES=0,1",
                               "KPROF_KERNEL_NAME=gemm", "KPROF_DELAY=1"};
    (void)state;
    FILTER("HOME=x");
    assert_false(takes_all(COPY)); /* not known yet */
    one(COPY);
    one(NCCL);
    assert_true(takes_all(COPY));
    assert_false(takes_all(NCCL)); /* nothing may wait for it */
    kp_filter_forget(filter);
    assert_false(takes_all(COPY));
    end_filter();
    for (size_t i = 0; i < sizeof(counting) / sizeof(*counting); i++) {
        FILTER(counting[i], "KPROF_NVTX=1");
        one(COPY);
        one(COPY);
        assert_false(takes_all(COPY));
        end_filter();
    }
    FILTER("KPROF_DURATION=1");
    one(COPY);
    assert_false(takes_all(COPY)); /* the time will be over */
    end_filter();
}

/* A launch that the driver refuses leaves room for another one: what was found out no longer holds. */
static void what_is_refused_outdates(void **state)
{
    (void)state;
    FILTER("KPROF_LAUNCH_COUNT=1");
    one(COPY);
    unsigned epoch = kp_passing_epoch();
    assert_int_equal(passes(COPY), KP_PASS_COUNT);
    kp_filter_refused(filter, &choice.counted);
    assert_true(kp_passing_epoch() != epoch);
    assert_int_equal(passes(COPY), KP_PASS_NOT);
    end_filter();
}

/* ---- processes ---- */

/* Whether the list chooses python3.11; *tree: or leaves it out with its children. */
static bool chooses(const char *list, bool *tree)
{
    return kp_filter_process(list, "python3.11", "python", tree);
}

static void processes(void **state)
{
    static const struct {
        const char *list;
        bool chosen, tree;
    } cases[] = {
        {"", true, false},
        {" , ", true, false},
        {"sh, python3.11", true, false},
        {"sh,regex:^py", true, false},
        {"python", true, false}, /* the name by which it was started */
        {"pytho", false, false},
        {"sh,regex:^th", false, false},
        {"exclude:python3.11", false, false},
        {"exclude:sh", true, false},
        {"exclude:sh,bash", false, false}, /* some are chosen by name */
        {"exclude:regex:^py", false, false},
        {"python3.11,exclude:regex:^py", true, false}, /* the first that fits */
        {"exclude-tree:python3.11", false, true},
        {"exclude-tree:sh", true, false},
        {"exclude-tree:sh,exclude:python", false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool tree, chosen = chooses(cases[i].list, &tree);
        if (chosen != cases[i].chosen || tree != cases[i].tree)
            fail_msg("'%s': chosen %d, tree %d", cases[i].list, chosen, tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_wanted_by_default),
        cmocka_unit_test(ranges_come_before_numbers),
        cmocka_unit_test(each_base_is_matched),
        cmocka_unit_test(names_are_read_once),
        cmocka_unit_test(handles_of_one_slot_are_told_apart),
        cmocka_unit_test(what_waits_outside_is_known_by_name),
        cmocka_unit_test(graphs_have_no_name),
        cmocka_unit_test(skip_and_count_are_of_matching_launches),
        cmocka_unit_test(what_is_refused_does_not_count),
        cmocka_unit_test(skip_before_match_is_of_all_launches),
        cmocka_unit_test(each_device_counts_for_itself),
        cmocka_unit_test(each_configuration_counts_for_itself),
        cmocka_unit_test(devices_come_before_names),
        cmocka_unit_test(invocations_are_those_of_a_name),
        cmocka_unit_test(places_are_those_of_the_report),
        cmocka_unit_test(identifiers),
        cmocka_unit_test(a_range_of_time),
        cmocka_unit_test(ranges_pass_the_filters_in_turn),
        cmocka_unit_test(numbers_of_ranges),
        cmocka_unit_test(the_device_of_a_range_matters_to_some_filters),
        cmocka_unit_test(a_delay_alone),
        cmocka_unit_test(the_unwanted_are_listed_in_order),
        cmocka_unit_test(kernels_of_other_names_are_passed_on),
        cmocka_unit_test(what_is_still_counted_is_not_passed_on),
        cmocka_unit_test(time_is_over_for_all),
        cmocka_unit_test(what_may_follow_is_told),
        cmocka_unit_test(all_of_a_function_are_taken),
        cmocka_unit_test(what_is_refused_outdates),
        cmocka_unit_test(processes),
    };
    return cmocka_run_group_tests_name("preload/filter", tests, NULL, NULL);
}
