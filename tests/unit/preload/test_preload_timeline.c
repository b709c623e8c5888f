/* What the timeline records: what is the program's and what is ours, launches, ranges from before its begin, bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/providers/observe.h"
#include "base/lock.h"
#include "preload/who/nvtx.h"
#include "preload/who/timeline.h"

/* ---- CUPTI's side, in the place of the real one ---- */

static struct {
    kp_record_sink *sink;
    uint64_t now, dropped;
    unsigned paused, resumed, flushed, forced;
    int rc;
    bool missing, kernels;
} t;

bool kp_observe_available(const struct kp_cupti *c)
{
    (void)c;
    return !t.missing;
}

uint64_t kp_observe_now(const struct kp_cupti *c)
{
    (void)c;
    return t.now;
}

int kp_observe_begin(const struct kp_cupti *c, kp_record_sink *sink, bool kernels)
{
    (void)c;
    t.kernels = kernels;
    t.sink = sink;
    return t.rc;
}

int kp_observe_pause(const struct kp_cupti *c)
{
    (void)c;
    t.paused++;
    return 0;
}

int kp_observe_resume(const struct kp_cupti *c)
{
    (void)c;
    t.resumed++;
    return t.rc;
}

int kp_observe_flush(const struct kp_cupti *c, bool all)
{
    (void)c;
    t.flushed++;
    t.forced += all;
    return 0;
}

uint64_t kp_observe_dropped(void)
{
    return t.dropped;
}

/* ---- */

static unsigned asked;

static void ask(void)
{
    asked++;
}

enum { START = 1000000, CONTEXT = 1 };

static int begin(void **state)
{
    (void)state;
    struct kp_activity *at;
    uint32_t names;
    kp_timeline_take(&at, &names); /* of the test before */
    free(at);
    memset(&t, 0, sizeof t);
    asked = 0;
    t.now = START;
    return kp_timeline_begin(NULL, ask);
}

static void put_in(uint32_t context, enum kp_activity_kind kind, const char *name, int64_t start, int64_t end,
                   uint64_t bytes)
{
    const struct kp_device_record r = {
        {.kind = kind, .context_id = context, .start_ns = start, .end_ns = end, .bytes = bytes, .ordinal = -1},
        name,
        0};
    t.sink(&r);
}

static void put(enum kp_activity_kind kind, const char *name, int64_t start, int64_t end, uint64_t bytes)
{
    put_in(CONTEXT, kind, name, start, end, bytes);
}

/* Takes what waits, and checks the starts, which end with 0. */
static void assert_starts(const int64_t *starts)
{
    struct kp_activity *at;
    uint32_t names;
    size_t n = kp_timeline_take(&at, &names), i = 0;
    for (; starts[i]; i++) {
        assert_true(i < n);
        assert_int_equal(at[i].start_ns, starts[i]);
    }
    assert_int_equal(i, n);
    free(at);
}

#define ASSERT_STARTS(...) assert_starts((const int64_t[]){__VA_ARGS__, 0})

static void what_kprof_does_is_left_out(void **state)
{
    (void)state;
    put(KP_ACTIVITY_KERNEL, "a", 10, 20, 0);
    put(KP_ACTIVITY_KERNEL, "not ended", 0, 0, 0);
    t.now = 100;
    kp_timeline_pause(CONTEXT);
    assert_int_equal(t.paused, 1);
    put(KP_ACTIVITY_KERNEL, "late, of before", 90, 95, 0);
    put(KP_ACTIVITY_KERNEL, "a repetition", 110, 120, 0);
    put_in(2, KP_ACTIVITY_KERNEL, "of another context", 111, 120, 0);
    t.now = 200;
    kp_timeline_resume();
    assert_int_equal(t.resumed, 1);
    put(KP_ACTIVITY_COPY, "memcpy DtoD", 150, 160, 5); /* told when all is over */
    put(KP_ACTIVITY_KERNEL, "a", 210, 220, 0);
    t.now = 300;
    kp_timeline_ours_begin(CONTEXT);
    t.now = 310;
    kp_timeline_ours_end();
    put(KP_ACTIVITY_COPY, "memcpy DtoH", 305, 306, 5);
    put(KP_ACTIVITY_COPY, "memcpy DtoH", 311, 316, 5);
    ASSERT_STARTS(10, 90, 111, 210, 311);
}

static void copies_of_ours(void **state)
{
    (void)state;
    t.now = 100;
    kp_timeline_ours_copy(CONTEXT, 64);
    put(KP_ACTIVITY_COPY, "memcpy DtoD", 90, 95, 64);   /* before it */
    put(KP_ACTIVITY_COPY, "memcpy DtoD", 101, 105, 32); /* another size */
    put(KP_ACTIVITY_COPY, "memcpy HtoD", 102, 105, 64);
    put_in(2, KP_ACTIVITY_COPY, "memcpy DtoD", 103, 105, 64);
    put(KP_ACTIVITY_COPY, "memcpy DtoD", 104, 106, 64); /* ours */
    put(KP_ACTIVITY_COPY, "memcpy DtoD", 107, 108, 64);
    ASSERT_STARTS(90, 101, 102, 103, 107);
}

static void times_at_which_kprof_held_the_program_up(void **state)
{
    (void)state;
    struct kp_activity *at;
    uint32_t names;
    t.now = 1000000;
    int64_t entered = kp_timeline_enter();
    t.now += 30000;
    kp_timeline_launching((const uint32_t[]){1, 1, 1}, (const uint32_t[]){1, 1, 1});
    t.now += 900000; /* the driver's */
    kp_timeline_launched(false);
    t.now += 10000; /* too short */
    kp_timeline_leave(entered);
    kp_timeline_held(900000);
    assert_int_equal(kp_timeline_take(&at, &names), 2);
    assert_int_equal(at[0].kind, KP_ACTIVITY_KPROF);
    assert_int_equal(at[0].start_ns, 1000000);
    assert_int_equal(at[0].end_ns, 1030000);
    assert_int_equal(at[1].start_ns, 900000);
    free(at);
}

static void names_and_ranges(void **state)
{
    struct kp_activity *at;
    uint32_t names;
    bool mangled;
    char text[6000];
    (void)state;
    put(KP_ACTIVITY_KERNEL, "_Z1av", 10, 20, 0);
    put(KP_ACTIVITY_COPY, "_Z1av", 11, 20, 0);
    put(KP_ACTIVITY_KERNEL, "_Z1av", 12, 20, 0);
    kp_timeline_range("", "step", 7, 13, 14);
    kp_timeline_range("io", "step", 7, 14, 15);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    kp_timeline_range(text, text, 7, 15, 16);
    assert_int_equal(kp_timeline_take(&at, &names), 6);
    assert_int_equal(at[0].name, at[2].name);
    assert_int_not_equal(at[0].name, at[1].name); /* one is a symbol, one a text */
    assert_string_equal(kp_timeline_text(at[0].name, &mangled), "_Z1av");
    assert_true(mangled);
    assert_string_equal(kp_timeline_text(at[1].name, &mangled), "_Z1av");
    assert_false(mangled);
    assert_string_equal(kp_timeline_text(at[3].name, &mangled), "step");
    assert_int_equal(at[3].thread, 7);
    assert_int_equal(at[3].device, KP_NO_DEVICE);
    assert_string_equal(kp_timeline_text(at[4].name, &mangled), "io@step");
    assert_int_equal(strlen(kp_timeline_text(at[5].name, &mangled)), 4095);
    assert_string_equal(kp_timeline_text(names + 5, &mangled), "");
    free(at);
}

static void notes_of_launches(void **state)
{
    const uint32_t one[] = {1, 1, 1}, two[] = {2, 1, 1};
    size_t before = 0, n;
    struct kp_launch_note *notes = kp_timeline_notes(&before);
    (void)state;
    free(notes);
    t.now = 500;
    kp_timeline_launching(one, two);
    kp_timeline_launched(false);
    kp_timeline_profiled(9);
    kp_timeline_launching(two, two);
    kp_timeline_launched(true);
    t.now = 600;
    kp_timeline_launching(NULL, NULL);
    kp_timeline_launched(false);
    kp_timeline_node(two, one, 10);
    notes = kp_timeline_notes(&n);
    assert_int_equal(n - before, 4);
    const struct kp_launch_note *at = notes + before;
    assert_int_equal(at[0].ordinal, 9);
    assert_int_equal(at[0].launched_ns, 500);
    assert_int_equal(at[0].shape, kp_timeline_shape(one, two));
    assert_true(at[0].thread > 0);
    assert_true(at[1].refused && at[1].ordinal == -1);
    assert_true(at[2].is_graph && at[2].launched_ns == 600);
    assert_true(at[3].is_node && at[3].ordinal == 10 && at[3].shape == kp_timeline_shape(two, one));
    free(notes);
}

/* Once many wait, they are asked for, once; beyond the bound they are counted. */
static void bounded(void **state)
{
    struct kp_activity *at;
    uint32_t names;
    uint64_t taken = 0;
    (void)state;
    for (int i = 0; i < 70000; i++)
        put(KP_ACTIVITY_KERNEL, "a", 10 + i, 20 + i, 0);
    assert_int_equal(asked, 1);
    assert_int_equal(kp_timeline_take(&at, &names), 70000);
    free(at);
    for (int k = 0; k < 40; k++) {
        for (int i = 0; i < 60000; i++)
            put(KP_ACTIVITY_KERNEL, "a", 10 + i, 20 + i, 0);
        taken += kp_timeline_take(&at, &names);
        free(at);
    }
    assert_true(taken < KP_TIMELINE_MOST);
    t.dropped = 5;
    assert_true(kp_timeline_dropped() > 5);
    assert_int_equal(asked, 1);
}

/* A handler may end the program on the thread that holds the lock: nothing waits, and nothing is recorded. */
static void a_thread_that_holds_it(void **state)
{
    const uint32_t one[] = {1, 1, 1};
    struct kp_activity *at;
    uint32_t names;
    bool mangled;
    size_t before, n = 1;
    (void)state;
    free(kp_timeline_notes(&before));
    put(KP_ACTIVITY_KERNEL, "kernel", 10, 20, 0);
    assert_true(kp_lock_take(&kp_locks[KP_LOCK_TIMELINE], KP_FOREVER));
    put(KP_ACTIVITY_KERNEL, "kernel", 11, 20, 0);
    kp_timeline_range("", "range", 7, 12, 20);
    kp_timeline_launching(one, one);
    kp_timeline_profiled(3);
    kp_timeline_launched(false);
    kp_timeline_node(one, one, 4);
    kp_timeline_ours_begin(CONTEXT);
    kp_timeline_ours_end();
    kp_timeline_ours_copy(CONTEXT, 5);
    kp_timeline_held(1);
    kp_timeline_leave(kp_timeline_enter());
    assert_int_equal(kp_timeline_take(&at, &names), 0);
    assert_null(at);
    assert_string_equal(kp_timeline_text(0, &mangled), "");
    assert_int_equal(kp_timeline_dropped(), 1); /* it may be about to add one */
    assert_null(kp_timeline_notes(&n));
    assert_int_equal(n, 0);
    kp_lock_give(&kp_locks[KP_LOCK_TIMELINE]);
    ASSERT_STARTS(10);
    free(kp_timeline_notes(&n));
    assert_int_equal(n, before);
    assert_int_equal(kp_timeline_dropped(), 0);
}

/* At the end of the program, ranges that are open end, unless a thread holds them. */
static void ranges_that_are_open(void **state)
{
    const struct kp_nvtx_event pushed = {.text = "pushed"}, started = {.text = "started"};
    (void)state;
    t.now = 100;
    kp_nvtx_push(NULL, &pushed);
    t.now = 200;
    uint64_t id = kp_nvtx_start(NULL, &started);
    t.now = 300;
    kp_nvtx_end_timeline();
    ASSERT_STARTS(100, 200);
    assert_true(kp_lock_take(&kp_locks[KP_LOCK_NVTX_STACKS], KP_FOREVER));
    kp_nvtx_end_timeline();
    kp_lock_give(&kp_locks[KP_LOCK_NVTX_STACKS]);
    ASSERT_STARTS(200);
    assert_true(kp_lock_take(&kp_locks[KP_LOCK_NVTX_STARTED], KP_FOREVER));
    kp_nvtx_end_timeline();
    kp_lock_give(&kp_locks[KP_LOCK_NVTX_STARTED]);
    ASSERT_STARTS(100);
    kp_nvtx_end(id);
    kp_nvtx_pop(NULL);
    ASSERT_STARTS(200, 100);
}

static void without(void **state)
{
    (void)state;
    kp_timeline_stop();
    assert_false(kp_timeline_is_on());
    assert_true(kp_timeline_now() < 0);
    kp_timeline_pause(CONTEXT);
    kp_timeline_resume();
    kp_timeline_flush(true);
    kp_timeline_range("", "x", 1, 2, 3);
    put(KP_ACTIVITY_KERNEL, "a", 10, 20, 0);
    assert_int_equal(t.paused + t.resumed + t.flushed, 0);
    struct kp_activity *at;
    uint32_t names;
    assert_int_equal(kp_timeline_take(&at, &names), 0);
    assert_int_equal(kp_timeline_enter(), 0);
    kp_timeline_leave(0);
    t.missing = true;
    assert_int_equal(kp_timeline_begin(NULL, ask), -ENOTSUP);
    t.missing = false;
    t.rc = 7;
    assert_int_equal(kp_timeline_begin(NULL, ask), 7);
    assert_false(kp_timeline_is_on());
}

/* A range that was opened before CUDA was there begins at that time, on the clock that there is by now. */
static void ranges_from_before(void **state)
{
    (void)state;
    int64_t early = kp_timeline_now(), later;
    struct kp_activity *at;
    uint32_t names;
    assert_true(early < 0);
    assert_int_equal(begin(state), 0);
    later = kp_timeline_now();
    assert_int_equal(later, START);
    kp_timeline_range("", "early", 1, early, later);
    assert_int_equal(kp_timeline_take(&at, &names), 1);
    assert_true(at[0].start_ns <= START && at[0].start_ns > START - 1000000000);
    assert_int_equal(at[0].end_ns, START);
    free(at);
    kp_timeline_flush(true);
    assert_int_equal(t.flushed, 2);
    assert_int_equal(t.forced, 1);
    t.rc = 3;
    kp_timeline_pause(CONTEXT);
    assert_false(kp_timeline_refused());
    kp_timeline_resume(); /* fails */
    assert_false(kp_timeline_is_on());
    assert_true(kp_timeline_refused());
    assert_true(kp_timeline_has_begun()); /* what was recorded may be stored */
    kp_timeline_forked();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_from_before),
        cmocka_unit_test_setup(what_kprof_does_is_left_out, begin),
        cmocka_unit_test_setup(copies_of_ours, begin),
        cmocka_unit_test_setup(times_at_which_kprof_held_the_program_up, begin),
        cmocka_unit_test_setup(names_and_ranges, begin),
        cmocka_unit_test_setup(notes_of_launches, begin),
        cmocka_unit_test_setup(a_thread_that_holds_it, begin),
        cmocka_unit_test_setup(ranges_that_are_open, begin),
        cmocka_unit_test_setup(without, begin),
        cmocka_unit_test_setup(bounded, begin),
    };
    return cmocka_run_group_tests_name("preload/timeline", tests, NULL, NULL);
}
