/* The thread of our own: in order, out of the program's way, and gone when there is nothing to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "preload/os/guard.h"
#include "preload/os/symbols.h"
#include "preload/os/worker.h"
#include "tests/support/end_support.h"

/* ---- the C library's threads ---- */

static struct {
    bool absent, refuses;
    atomic_int started, joined;
    size_t stack;
} threads;

static int create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    if (threads.refuses)
        return EAGAIN;
    atomic_fetch_add(&threads.started, 1);
    pthread_attr_getstacksize(attr, &threads.stack);
    return pthread_create(thread, attr, fn, arg);
}

static int join(pthread_t thread, void **result)
{
    atomic_fetch_add(&threads.joined, 1);
    return pthread_join(thread, result);
}

/* As on a glibc whose libpthread is there, but seen only through its handle. */
static void *sym(void *handle, const char *name)
{
    if (handle != &threads)
        return NULL;
    if (!strcmp(name, "pthread_create"))
        return (void *)(uintptr_t)create;
    if (!strcmp(name, "pthread_join"))
        return (void *)(uintptr_t)join;
    if (!strcmp(name, "pthread_key_create"))
        return (void *)(uintptr_t)pthread_key_create;
    if (!strcmp(name, "pthread_setspecific"))
        return (void *)(uintptr_t)pthread_setspecific;
    assert_string_equal(name, "pthread_attr_setstacksize");
    return (void *)(uintptr_t)pthread_attr_setstacksize;
}

static void *open_library(const char *name, int flags)
{
    assert_string_equal(name, "libpthread.so.0");
    assert_true(flags & RTLD_NOLOAD);
    return threads.absent ? NULL : &threads;
}

const struct kp_dl *kp_symbols_dl(void)
{
    static const struct kp_dl dl = {.open = open_library, .sym = sym};
    return &dl;
}

/* ---- jobs ---- */

static atomic_int done, released;

static void count(void *arg)
{
    (void)arg;
    atomic_fetch_add(&done, 1);
}

static void wait_for_release(void *arg)
{
    while (!atomic_load(&released))
        kp_nap(0);
    count(arg);
}

static int begin(void **state)
{
    (void)state;
    atomic_store(&done, 0);
    atomic_store(&released, 0);
    atomic_store(&threads.started, 0);
    atomic_store(&threads.joined, 0);
    return 0;
}

/* Must be the first test: what was found once is kept. */
static void without_threads_nothing_is_taken(void **state)
{
    (void)state;
    threads.absent = true;
    assert_false(kp_worker_submit(count, NULL));
    threads.absent = false;
    threads.refuses = true;
    assert_false(kp_worker_submit(count, NULL));
    threads.refuses = false;
    assert_true(kp_worker_drain(0));
    assert_int_equal(atomic_load(&done), 0);
    assert_true(kp_worker_submit(count, NULL)); /* and what was not taken is not run later */
    assert_true(kp_worker_drain(KP_FOREVER));
    assert_int_equal(atomic_load(&done), 1);
}

enum { MANY = 1000 };

static struct {
    int order[MANY], n, guard;
    pthread_t thread;
    sigset_t blocked;
} seen;

static void note(void *arg)
{
    seen.order[seen.n++] = (int)(intptr_t)arg;
    seen.guard = kp_guard;
    seen.thread = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &seen.blocked);
}

static void jobs_run_in_order_on_a_thread_that_is_out_of_the_way(void **state)
{
    (void)state;
    sigset_t usual, after;
    sigemptyset(&usual);
    sigaddset(&usual, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &usual, NULL);
    assert_true(kp_worker_submit(wait_for_release, NULL)); /* so that the others queue up */
    for (intptr_t i = 0; i < MANY; i++)
        assert_true(kp_worker_submit(note, (void *)i));
    assert_int_equal(seen.n, 0);
    atomic_store(&released, 1);
    assert_true(kp_worker_drain(KP_FOREVER));
    assert_int_equal(seen.n, MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(seen.order[i], i);
    assert_int_equal(atomic_load(&threads.started), 1);
    assert_int_equal(threads.joined, threads.started); /* its end does not meet the program's exit handlers */
    assert_true(threads.stack >= 1 << 20 && threads.stack < 2 << 20);
    assert_false(pthread_equal(seen.thread, pthread_self()));
    assert_int_equal(seen.guard, 1);
    assert_int_equal(kp_guard, 0);
    for (int s = 1; s < 32; s++)
        if (s != SIGKILL && s != SIGSTOP)
            assert_int_equal(sigismember(&seen.blocked, s), 1);
    assert_int_equal(sigismember(&seen.blocked, SIGRTMIN), 1);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int s = 1; s < 32; s++)
        assert_int_equal(sigismember(&after, s), s == SIGUSR2);
}

/* A thread that waited for work would be there, and be used, for the second job too. */
static void no_thread_is_left_when_there_is_nothing_to_do(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        assert_true(kp_worker_submit(count, NULL));
        assert_true(kp_worker_drain(KP_FOREVER));
        assert_int_equal(atomic_load(&done), i + 1);
        assert_int_equal(atomic_load(&threads.started), i + 1);
    }
}

enum { SUBMITTERS = 4 };

static int last[SUBMITTERS]; /* plain: jobs never run at the same time */
static int total;

static void in_turn(void *arg)
{
    int from = (int)(intptr_t)arg / MANY, number = (int)(intptr_t)arg % MANY;
    if (last[from] == number)
        last[from]++;
    total++;
}

static void *submit_many(void *arg)
{
    for (int i = 0; i < MANY; i++)
        while (!kp_worker_submit(in_turn, (void *)((intptr_t)arg * MANY + i)))
            kp_nap(0);
    return NULL;
}

static void many_threads_may_submit(void **state)
{
    (void)state;
    pthread_t t[SUBMITTERS];
    for (intptr_t i = 0; i < SUBMITTERS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, submit_many, (void *)i), 0);
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(t[i], NULL);
    assert_true(kp_worker_drain(KP_FOREVER));
    assert_int_equal(total, SUBMITTERS * MANY);
    for (int i = 0; i < SUBMITTERS; i++)
        assert_int_equal(last[i], MANY);
}

static void draining_has_a_limit(void **state)
{
    (void)state;
    assert_true(kp_worker_drain(0));
    assert_true(kp_worker_submit(wait_for_release, NULL));
    assert_true(kp_worker_submit(count, NULL));
    long start = kp_now_ms();
    assert_false(kp_worker_drain(100));
    assert_in_range(kp_now_ms() - start, 100, 5000);
    assert_false(kp_worker_drain(0));
    assert_int_equal(atomic_load(&done), 0);
    atomic_store(&released, 1);
    assert_true(kp_worker_drain(KP_FOREVER));
    assert_int_equal(atomic_load(&done), 2);
}

enum { LONG_MS = 300, MOST_WAKES = 20 }; /* a wait that polls wakes thousands of times meanwhile */

static long wakes(void)
{
    struct rusage use;
    assert_int_equal(getrusage(RUSAGE_THREAD, &use), 0);
    return use.ru_nvcsw;
}

static void sleep_long(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LONG_MS * 1000000L}, NULL);
}

static void take_long(void *arg)
{
    sleep_long();
    count(arg);
}

static void *end_late(void *arg)
{
    sleep_long();
    return arg;
}

static void waits_do_not_poll(void **state)
{
    (void)state;
    pthread_t thread;
    long before = wakes();
    assert_true(kp_worker_submit(take_long, NULL));
    assert_true(kp_worker_drain(KP_FOREVER));
    assert_in_range(wakes() - before, 1, MOST_WAKES);
    assert_true(kp_worker_thread_start(end_late, NULL, &thread));
    before = wakes();
    kp_worker_thread_join(thread);
    assert_in_range(wakes() - before, 1, MOST_WAKES);
}

static void *return_at_once(void *unused)
{
    return unused;
}

static atomic_int may_return;

/* `own`: receives what the thread takes for its handle. */
static void *wait_to_return(void *own)
{
    *(pthread_t *)own = kp_worker_thread_own();
    while (!atomic_load(&may_return))
        kp_lock_wait_while(&may_return, 0, KP_FOREVER);
    return NULL;
}

/* The C library gives the second thread the pthread_t of the first. */
static void a_thread_that_was_joined_is_not_taken_for_a_later_one(void **state)
{
    (void)state;
    pthread_t first, second, own;
    assert_true(kp_worker_thread_start(return_at_once, NULL, &first));
    kp_worker_thread_join(first);
    atomic_store(&may_return, 0);
    assert_true(kp_worker_thread_start(wait_to_return, &own, &second));
    alarm(60);
    kp_worker_thread_join(first);
    alarm(0);
    atomic_store(&may_return, 1);
    kp_wake_all(&may_return);
    kp_worker_thread_join(second);
    assert_true(own == second);
}

static void a_nap_grows_with_what_was_waited(void **state)
{
    (void)state;
    long start = kp_now_ms(), naps = 0;
    for (long waited = 0; waited < LONG_MS; waited = kp_now_ms() - start, naps++)
        kp_nap(waited);
    assert_in_range(naps, 10, 400); /* of 50 us it would take thousands */
}

static void drain_here(void *arg)
{
    *(bool *)arg = kp_worker_drain(KP_FOREVER);
}

static void a_job_does_not_wait_for_itself(void **state)
{
    (void)state;
    bool drained = false;
    assert_true(kp_worker_submit(drain_here, &drained));
    assert_true(kp_worker_submit(count, NULL));
    assert_true(kp_worker_drain(10000));
    assert_true(drained);
    assert_int_equal(atomic_load(&done), 1);
}

/* ---- other processes ---- */

static void assert_ends_well(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int forked_checks(void)
{
    kp_worker_forked();
    atomic_store(&released, 1);
    if (!kp_worker_drain(KP_FOREVER))
        return 1;
    if (kp_worker_submit(count, NULL))
        return 2;
    return atomic_load(&done) ? 3 : 0;
}

static void a_forked_child_has_no_worker(void **state)
{
    (void)state;
    assert_true(kp_worker_submit(wait_for_release, NULL));
    assert_true(kp_worker_submit(count, NULL));
    pid_t child = fork();
    if (!child) {
        alarm(60);
        kp_test_end(forked_checks());
    }
    assert_ends_well(child);
    atomic_store(&released, 1);
    assert_true(kp_worker_drain(KP_FOREVER)); /* the parent's goes on */
    assert_int_equal(atomic_load(&done), 2);
}

/* On the worker's thread, as the last one. A leak checker that ran later would miss the main thread's stack. */
static void at_the_end(void)
{
    kp_test_end(kp_guard || atomic_load(&done) != 2 || !kp_worker_drain(0));
}

static void release_later(void *arg)
{
    for (int i = 0; i < 1000; i++) /* until the main thread has most probably gone */
        kp_nap(0);
    count(arg);
}

static void the_worker_does_not_keep_the_process_alive(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its runtime has a thread that does */
#endif
    pid_t child = fork();
    if (!child) {
        alarm(60);
        atexit(at_the_end);
        kp_worker_submit(count, NULL);
        kp_worker_drain(KP_FOREVER);
        kp_worker_submit(release_later, NULL);
        pthread_exit(NULL);
    }
    assert_ends_well(child);
}

/* ---- threads that end while the process does ---- */

static void nothing(void)
{
}

/* Its end releases what it has parked. */
static void *park_and_join(void *ns)
{
    pthread_t thread;
    if (!kp_worker_thread_start(return_at_once, NULL, &thread))
        _exit(2);
    for (uint64_t from = kp_clock_ns(); kp_clock_ns() - from < (uintptr_t)ns;)
        continue;
    kp_worker_thread_park(nothing);
    kp_worker_thread_join(thread);
    return NULL;
}

static void a_thread_that_ends_may_be_joined_when_others_are_parked(void **state)
{
    enum { TIMES = 2000, LONGEST_NS = 80000 };
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its runtime tells of threads that nobody joins, as parked ones */
#endif
    pid_t child = fork();
    if (!child) {
        alarm(60);
        for (uintptr_t i = 0; i < TIMES; i++) {
            pthread_t exits;
            if (pthread_create(&exits, NULL, park_and_join, (void *)(LONGEST_NS * i / TIMES)))
                _exit(3);
            pthread_join(exits, NULL);
        }
        kp_test_end(0);
    }
    assert_ends_well(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_threads_nothing_is_taken, begin),
        cmocka_unit_test_setup(jobs_run_in_order_on_a_thread_that_is_out_of_the_way, begin),
        cmocka_unit_test_setup(no_thread_is_left_when_there_is_nothing_to_do, begin),
        cmocka_unit_test_setup(many_threads_may_submit, begin),
        cmocka_unit_test_setup(draining_has_a_limit, begin),
        cmocka_unit_test_setup(waits_do_not_poll, begin),
        cmocka_unit_test_setup(a_thread_that_was_joined_is_not_taken_for_a_later_one, begin),
        cmocka_unit_test_setup(a_nap_grows_with_what_was_waited, begin),
        cmocka_unit_test_setup(a_job_does_not_wait_for_itself, begin),
        cmocka_unit_test_setup(a_forked_child_has_no_worker, begin),
        cmocka_unit_test_setup(the_worker_does_not_keep_the_process_alive, begin),
        cmocka_unit_test_setup(a_thread_that_ends_may_be_joined_when_others_are_parked, begin),
    };
    return cmocka_run_group_tests_name("preload/worker", tests, NULL, NULL);
}
