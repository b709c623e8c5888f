/* Launches that pass: which do, how they are counted, by many threads, too, and how the gate knows of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "preload/gate/exclusive.h"
#include "preload/gate/gate.h"
#include "preload/gate/fast_path.h"
#include "preload/os/guard.h"

static const struct kp_pass_shape plain = {{4, 1, 1}, {128, 1, 1}, 0, {0, 0, 0}};
static uint64_t taken[KP_PASS_WHYS];
static atomic_uint_fast64_t also;

static CUfunction function(uintptr_t n)
{
    return (CUfunction)(n << 4);
}

static void take_up(enum kp_pass_why why, uint64_t launches)
{
    taken[why] += launches;
}

/* Returns what was counted since the last call. */
static uint64_t take(enum kp_pass_why why)
{
    memset(taken, 0, sizeof(taken));
    kp_passing_take(take_up);
    assert_int_equal(kp_passing_ahead(), 0);
    return taken[why];
}

static void learn(CUfunction f, const struct kp_pass_shape *s, enum kp_pass_why why)
{
    const struct kp_pass_known known = {why, why == KP_PASS_ROTATED, why == KP_PASS_ROTATED ? &also : NULL};
    kp_passing_learn(f, s, &known, kp_passing_epoch());
}

/* Makes a launch; whether it has passed. */
static bool launch(CUfunction f, const struct kp_pass_shape *s, CUresult rc)
{
    struct kp_pass *p = kp_passing_begin(f, s);
    if (p) {
        assert_int_equal(kp_guard, 1);
        assert_int_equal(kp_passing_end(p, rc), rc);
    }
    assert_int_equal(kp_guard, 0);
    return p;
}

static void what_is_known_passes(void **state)
{
    struct kp_pass_shape other = plain;
    (void)state;
    assert_false(launch(function(1), &plain, CUDA_SUCCESS));
    learn(function(1), &plain, KP_PASS_NAME);
    assert_true(launch(function(1), &plain, CUDA_SUCCESS));
    assert_true(launch(function(1), &plain, CUDA_ERROR_LAUNCH_FAILED)); /* which is no launch */
    assert_false(launch(function(2), &plain, CUDA_SUCCESS));
    uint32_t *words[] = {&other.grid[0],  &other.grid[1],  &other.grid[2], &other.block[0],
                         &other.block[1], &other.block[2], &other.shared};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        ++*words[i];
        assert_false(launch(function(1), &other, CUDA_SUCCESS));
        --*words[i];
    }
    for (int i = 0; i < 3; i++) {
        other.cluster[i]++;
        assert_false(launch(function(1), &other, CUDA_SUCCESS));
        other.cluster[i]--;
    }
    assert_int_equal(kp_passing_ahead(), 1);
    assert_int_equal(take(KP_PASS_NAME), 1);
    assert_int_equal(take(KP_PASS_NAME), 0);
}

static void not_while_it_may_be_wanted(void **state)
{
    atomic_int *const open_reasons[] = {&kp_gate_state.exclusive, &kp_gate_state.captures, &kp_gate_state.windows};
    (void)state;
    learn(function(1), &plain, KP_PASS_NAME);
    for (size_t i = 0; i < 3; i++) {
        atomic_store(open_reasons[i], 1);
        assert_false(launch(function(1), &plain, CUDA_SUCCESS));
        assert_int_equal(atomic_load(kp_passing_calls(0)), 0);
        atomic_store(open_reasons[i], 0);
        assert_true(launch(function(1), &plain, CUDA_SUCCESS));
    }
    kp_guard++;
    assert_null(kp_passing_begin(function(1), &plain));
    kp_guard--;
    const struct kp_pass_known known = {KP_PASS_NAME, 0, NULL};
    unsigned epoch = kp_passing_epoch();
    kp_passing_outdate();
    assert_false(launch(function(1), &plain, CUDA_SUCCESS));
    kp_passing_learn(function(1), &plain, &known, epoch); /* found out before */
    assert_false(launch(function(1), &plain, CUDA_SUCCESS));
    learn(function(1), &plain, KP_PASS_NAME);
    assert_true(launch(function(1), &plain, CUDA_SUCCESS));
    assert_int_equal(take(KP_PASS_NAME), 4);
}

static void keys_are_counted(void **state)
{
    uint64_t before = kp_passing_of_keys();
    (void)state;
    learn(function(1), &plain, KP_PASS_ROTATED);
    learn(function(2), &plain, KP_PASS_COUNT);
    for (int i = 0; i < 5; i++)
        assert_true(launch(function(1), &plain, CUDA_SUCCESS));
    assert_true(launch(function(2), &plain, CUDA_SUCCESS));
    assert_int_equal(kp_passing_of_keys() - before, 5);
    assert_int_equal(atomic_load(&also), 0);
    kp_passing_settle();
    kp_passing_settle();
    assert_int_equal(atomic_load(&also), 5);
    assert_int_equal(take(KP_PASS_ROTATED), 5);
    assert_int_equal(taken[KP_PASS_COUNT], 1);
    learn(function(1), &plain, KP_PASS_NAME); /* another reason from here on */
    assert_true(launch(function(1), &plain, CUDA_SUCCESS));
    assert_int_equal(take(KP_PASS_NAME), 1);
    assert_int_equal(atomic_load(&also), 5);
}

/* More functions than the table has room for take turns in it; none of their launches is lost. */
static void the_table_is_full(void **state)
{
    enum { FUNCTIONS = 5 * KP_PASS_SETS };
    size_t passed = 0;
    (void)state;
    for (uintptr_t round = 0; round < 3; round++)
        for (uintptr_t i = 1; i <= FUNCTIONS; i++) {
            learn(function(i), &plain, KP_PASS_NAME);
            assert_true(launch(function(i), &plain, CUDA_SUCCESS));
        }
    for (uintptr_t i = 1; i <= FUNCTIONS; i++)
        passed += launch(function(i), &plain, CUDA_SUCCESS);
    assert_in_range(passed, KP_PASS_SETS, KP_PASS_SETS * KP_PASS_WAYS);
    assert_int_equal(take(KP_PASS_NAME), 3 * FUNCTIONS + passed);
}

/* ---- threads ---- */

enum { THREADS = KP_PASSING_TABLES + 6, LAUNCHES = 1000 };

static pthread_barrier_t all_are_here;
static atomic_uint longer_way;

static void *launch_often(void *unused)
{
    (void)unused;
    learn(function(3), &plain, KP_PASS_NAME);
    pthread_barrier_wait(&all_are_here);
    for (int i = 0; i < LAUNCHES; i++)
        if (!launch(function(3), &plain, CUDA_SUCCESS))
            atomic_fetch_add(&longer_way, 1);
    pthread_barrier_wait(&all_are_here);
    return NULL;
}

/* Each thread counts in a table of its own, as long as there are some; the tables of those that have ended serve again.
 */
static void threads_have_tables(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    learn(function(3), &plain, KP_PASS_NAME); /* this thread has one */
    for (unsigned n = THREADS; n >= KP_PASSING_TABLES / 2; n /= 2) {
        atomic_store(&longer_way, 0);
        pthread_barrier_init(&all_are_here, NULL, n);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, launch_often, NULL), 0);
        for (unsigned i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&all_are_here);
        unsigned without = n > KP_PASSING_TABLES - 1 ? n - (KP_PASSING_TABLES - 1) : 0;
        assert_int_equal(atomic_load(&longer_way), without * LAUNCHES);
        assert_int_equal(take(KP_PASS_NAME), (uint64_t)(n - without) * LAUNCHES);
    }
    assert_int_equal(kp_passing_tables(), KP_PASSING_TABLES);
}

static atomic_bool is_in, may_end;

static void *stay_in_driver(void *cancelled)
{
    learn(function(4), &plain, KP_PASS_NAME);
    struct kp_pass *p = kp_passing_begin(function(4), &plain);
    atomic_store(&is_in, true);
    while (!atomic_load(&may_end))
        usleep(1000); /* a cancellation point */
    if (!cancelled)
        kp_passing_end(p, CUDA_SUCCESS);
    return NULL;
}

static pthread_t begin_staying(void *cancelled)
{
    pthread_t thread;
    atomic_store(&is_in, false);
    atomic_store(&may_end, false);
    assert_int_equal(pthread_create(&thread, NULL, stay_in_driver, cancelled), 0);
    while (!atomic_load(&is_in))
        usleep(1000);
    return thread;
}

/* Nobody is alone inside the gate while a launch passes, and one that is cancelled leaves it. */
static void the_gate_waits_for_them(void **state)
{
    (void)state;
    pthread_t thread = begin_staying(NULL);
    assert_false(kp_gate_enter_exclusive(KP_FOREVER, 20));
    atomic_store(&may_end, true);
    assert_true(kp_gate_enter_exclusive(KP_FOREVER, 5000));
    kp_gate_leave_exclusive();
    pthread_join(thread, NULL);
    assert_int_equal(take(KP_PASS_NAME), 1);
    thread = begin_staying(&thread);
    assert_false(kp_gate_enter_exclusive(KP_FOREVER, 20));
    pthread_cancel(thread);
    assert_true(kp_gate_enter_exclusive(KP_FOREVER, 5000));
    kp_gate_leave_exclusive();
    pthread_join(thread, NULL);
    assert_int_equal(take(KP_PASS_NAME), 0);
}

/* A handler that ends the process where it interrupted the begin or the end of such a launch: nobody waits for that.
 * The driver's function goes on for all that is known. */
static void the_end_of_the_process(void **state)
{
    (void)state;
    learn(function(7), &plain, KP_PASS_NAME);
    struct kp_pass *p = kp_passing_begin(function(7), &plain);
    assert_non_null(p);
    kp_passing_ends_process();
    assert_int_equal(atomic_load(kp_passing_calls(0)), 1);
    kp_guard--; /* as far as kp_passing_end has come */
    assert_false(kp_gate_enter_exclusive(0, 3600000));
    kp_passing_ends_process();
    assert_true(kp_gate_enter_exclusive(0, 0));
    kp_gate_leave_exclusive();
    kp_passing_ends_process();
    assert_int_equal(atomic_load(kp_passing_calls(0)), 0);
}

static int outdate(void **state)
{
    (void)state;
    kp_passing_outdate();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_known_passes, outdate),
        cmocka_unit_test_setup(not_while_it_may_be_wanted, outdate),
        cmocka_unit_test_setup(keys_are_counted, outdate),
        cmocka_unit_test_setup(the_table_is_full, outdate),
        cmocka_unit_test_setup(the_gate_waits_for_them, outdate),
        cmocka_unit_test_setup(threads_have_tables, outdate),
        cmocka_unit_test_setup(the_end_of_the_process, outdate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
