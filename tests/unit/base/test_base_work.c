/* The scope of kprof's own work: signals wait in it, and handlers at safe points may do whatever they like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/work.h"

/* Without stacks of its own, as in a sanitiser's build, work that is left cannot be finished. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SWITCHES = 0 };
#else
enum { SWITCHES = 1 };
#endif

static volatile int handled, guard_seen, inner;
static void (*volatile action)(void);
static sigjmp_buf back;

/* A sanitiser runs handlers when the thread makes a call. */
static void let_sanitiser_in(void)
{
    usleep(1);
}

static void handler(int signal)
{
    (void)signal;
    handled++;
    guard_seen = kp_guard;
    if (action)
        action();
}

static int set_up(void **state)
{
    struct sigaction how = {.sa_handler = handler};
    (void)state;
    action = NULL;
    handled = 0;
    return sigaction(SIGALRM, &how, NULL);
}

/* What the work has done. */
static struct {
    int steps, handled_before, handled_at;
    bool abandoned, cut;
} seen;

struct numbers {
    int in, out;
};

static void work(void *arg)
{
    struct numbers *n = arg;
    memset(&seen, 0, sizeof(seen));
    kp_guard++;
    raise(SIGALRM);
    seen.handled_before = handled;
    seen.steps++;
    kp_safe_point();
    seen.handled_at = handled;
    seen.abandoned = kp_work_abandoned();
    seen.cut = kp_work_is_cut();
    seen.steps++;
    n->out = n->in + 1;
    kp_guard--;
}

static void handlers_run_at_safe_points(void **state)
{
    struct numbers n = {41, 0};
    (void)state;
    errno = 7;
    kp_work_run(work, &n, sizeof(n));
    assert_int_equal(errno, 7);
    assert_int_equal(seen.handled_before, 0);
    assert_int_equal(seen.handled_at, 1);
    assert_int_equal(n.out, 42);
    if (SWITCHES)
        assert_int_equal(guard_seen, 0); /* the program's */
    assert_int_equal(kp_guard, 0);
    assert_false(kp_safe_point());
}

static void nested(void *arg)
{
    kp_work_begin();
    work(arg);
    kp_work_end();
    seen.handled_at += 10 * (handled > 0);
}

/* A callback of CUPTI's, say, has locks of its own. */
static void nested_work_has_no_safe_points(void **state)
{
    struct numbers n = {1, 0};
    (void)state;
    kp_work_run(nested, &n, sizeof(n));
    let_sanitiser_in();
    assert_int_equal(seen.handled_at, 0);
    assert_int_equal(handled, 1); /* at the end */
    assert_int_equal(n.out, 2);
    kp_work_begin();
    raise(SIGALRM);
    kp_work_begin();
    kp_work_end();
    assert_int_equal(handled, 1);
    kp_work_end();
    let_sanitiser_in();
    assert_int_equal(handled, 2);
}

static void jump(void)
{
    siglongjmp(back, 1);
}

/* Below the frames that the handler left, which looks as if it still ran. */
static void come_in_deeper(int bytes)
{
    volatile char more[64];
    memset((char *)more, bytes, sizeof(more));
    if (bytes > 0) {
        come_in_deeper(bytes - 64);
    } else {
        kp_work_begin();
        kp_work_end();
    }
    more[0] = 1;
}

static void left_work_is_finished_by_the_next(void **state)
{
    static struct numbers n;
    (void)state;
    if (!SWITCHES)
        skip();
    n = (struct numbers){1, 0};
    action = jump;
    if (!sigsetjmp(back, 1)) {
        kp_work_run(work, &n, sizeof(n));
        fail();
    }
    action = NULL;
    assert_int_equal(seen.steps, 1);
    come_in_deeper(1000);
    assert_int_equal(seen.steps, 2);
    assert_true(seen.abandoned);
    assert_false(seen.cut);
    assert_int_equal(kp_guard, 0);
    assert_int_equal(n.out, 0); /* who called for it is gone */
}

/* Comes in below a frame of which the lowest bytes are never written. */
static __attribute__((noinline)) void come_in_below(size_t written, size_t untouched)
{
    char *frame = __builtin_alloca(written + untouched);
    memset(frame + untouched, 0, written);
    kp_work_begin();
    kp_work_end();
    __asm__ volatile("" : : "r"(frame) : "memory");
}

/* What the handler left may lie where the next frames write nothing; what was above it does not. */
static void left_work_is_found_below_any_frame(void **state)
{
    enum { STEP = 16, MOST = 640, UNTOUCHED = 64 };
    static struct numbers n;
    (void)state;
    if (!SWITCHES)
        skip();
    for (volatile size_t written = 0; written < MOST; written += STEP) {
        action = jump;
        if (!sigsetjmp(back, 1)) {
            kp_work_run(work, &n, sizeof(n));
            fail();
        }
        action = NULL;
        assert_int_equal(seen.steps, 1);
        come_in_below(written, UNTOUCHED);
        assert_int_equal(seen.steps, 2);
        assert_true(seen.abandoned);
    }
}

/* The room is the work's argument, and what it begins with is the answer. */
static void work_may_be_prepared_in_place(void **state)
{
    int answer = 0;
    (void)state;
    struct numbers *n = kp_work_room();
    if (!SWITCHES) {
        assert_null(n);
        skip();
    }
    *n = (struct numbers){41, 0};
    raise(SIGALRM);
    assert_int_equal(handled, 0); /* it has begun */
    kp_work_go(work, n, &answer, sizeof(answer));
    assert_int_equal(answer, 41);
    assert_int_equal(handled, 1); /* at the safe point: one signal waited, and the work raised the same */
    assert_int_equal(seen.steps, 2);
    kp_work_begin();
    assert_null(kp_work_room());
    kp_work_end();
}

static void work_in_handler(void)
{
    struct numbers n = {5, 0};
    action = NULL;
    kp_work_begin(); /* finishes what it has interrupted */
    inner = seen.steps + 100 * seen.abandoned;
    kp_work_end();
    kp_work_run(work, &n, sizeof(n));
    inner += 1000 * n.out;
}

static void a_handler_may_come_into_kprof(void **state)
{
    struct numbers n = {1, 0};
    (void)state;
    if (!SWITCHES)
        skip();
    action = work_in_handler;
    kp_work_run(work, &n, sizeof(n));
    assert_int_equal(inner, 6002);
    assert_int_equal(n.out, 2); /* and its own caller has the answer */
}

static void end_thread(void)
{
    pthread_exit(NULL);
}

static void *run_and_end(void *arg)
{
    kp_work_run(work, arg, sizeof(struct numbers));
    return NULL;
}

static void left_work_is_finished_at_the_end_of_its_thread(void **state)
{
    static struct numbers n;
    pthread_t thread;
    (void)state;
    if (!SWITCHES)
        skip();
    action = end_thread;
    assert_int_equal(pthread_create(&thread, NULL, run_and_end, &n), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen.steps, 2);
    assert_true(seen.abandoned);
}

static void leave_driver(void *unused)
{
    (void)unused;
    pthread_exit(NULL);
}

static void call_driver(void *unused)
{
    (void)unused;
    kp_work_call(leave_driver, NULL);
}

static void *run_driver(void *unused)
{
    kp_work_run(call_driver, unused, 0);
    return NULL;
}

/* A thread that ends within a call of the driver may keep the driver's locks. */
static void a_driver_that_is_left_is_known(void **state)
{
    pthread_t thread;
    (void)state;
    if (!SWITCHES)
        skip();
    assert_false(kp_work_driver_is_left()); /* a thread that ended at a safe point has not */
    assert_int_equal(pthread_create(&thread, NULL, run_driver, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(kp_work_driver_is_left());
}

static void fork_and_wait(void)
{
    int status;
    pid_t child = fork();
    action = NULL;
    if (!child) {
        kp_work_forked();
        return; /* into the caller of kp_work_run */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 3);
}

static void a_child_drops_paused_work(void **state)
{
    struct numbers n = {1, -1};
    pid_t parent = getpid();
    (void)state;
    if (!SWITCHES)
        skip();
    action = fork_and_wait;
    kp_work_run(work, &n, sizeof(n));
    if (getpid() != parent)
        _exit(n.out == -1 && seen.steps == 1 && !kp_guard ? 3 : 4);
    assert_int_equal(n.out, 2);
    assert_int_equal(seen.steps, 2);
}

static volatile int calls;

static void call(void *arg)
{
    *(volatile bool *)arg = !kp_safe_point();
    calls++;
    raise(SIGALRM);
}

static void make_call(void *arg)
{
    struct numbers *n = arg;
    bool outside = false;
    kp_guard++;
    n->out = kp_work_call(call, &outside) + 10 * outside + 100 * handled;
    kp_guard--;
}

/* The program's call of the driver is made as without kprof: a handler interrupts it at once. */
static void the_programs_call_is_made_outside(void **state)
{
    static struct numbers n;
    (void)state;
    calls = 0;
    n.out = 0;
    kp_work_run(make_call, &n, sizeof(n));
    assert_int_equal(n.out, 111);
    if (!SWITCHES)
        return;
    action = jump;
    if (!sigsetjmp(back, 1))
        kp_work_run(make_call, &n, sizeof(n));
    assert_int_equal(calls, 2);
    assert_int_equal(kp_guard, 1);
    kp_work_reclaim();
    assert_int_equal(kp_guard, 0);
    kp_work_begin();
    kp_work_end();
    assert_int_equal(kp_guard, 0);
}

static void wait_long(void *arg)
{
    atomic_int word = 0;
    struct numbers *n = arg;
    kp_work_takes_long();
    raise(SIGALRM);
    kp_lock_wait_while(&word, 0, KP_FOREVER);
    n->out = handled;
}

static void waits_are_safe_points(void **state)
{
    struct numbers n = {0, 0};
    (void)state;
    kp_work_run(wait_long, &n, sizeof(n));
    assert_int_equal(n.out, 1);
}

static void kill_itself(void *arg)
{
    (void)arg;
    kp_work_takes_long();
    raise(SIGTERM);
    _exit(4);
}

/* Ctrl-C ends a program that has no handler for it, however long the work takes. */
static void signals_without_a_handler_act_at_once(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (!child) {
        signal(SIGTERM, SIG_DFL);
        kp_work_run(kill_itself, NULL, 0);
        _exit(5);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(handlers_run_at_safe_points, set_up),
        cmocka_unit_test_setup(nested_work_has_no_safe_points, set_up),
        cmocka_unit_test_setup(left_work_is_finished_by_the_next, set_up),
        cmocka_unit_test_setup(left_work_is_found_below_any_frame, set_up),
        cmocka_unit_test_setup(work_may_be_prepared_in_place, set_up),
        cmocka_unit_test_setup(a_handler_may_come_into_kprof, set_up),
        cmocka_unit_test_setup(left_work_is_finished_at_the_end_of_its_thread, set_up),
        cmocka_unit_test_setup(a_driver_that_is_left_is_known, set_up),
        cmocka_unit_test_setup(a_child_drops_paused_work, set_up),
        cmocka_unit_test_setup(the_programs_call_is_made_outside, set_up),
        cmocka_unit_test_setup(waits_are_safe_points, set_up),
        cmocka_unit_test_setup(signals_without_a_handler_act_at_once, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
