/* Waiting for the GPU with a limit, over a driver whose wait lasts as long as the test wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/os/guard.h"
#include "preload/os/worker.h"
#include "preload/program/ctx_wait.h"
#include "tests/support/end_support.h"

enum { LONG_MS = 20000, SHORT_MS = 20 };

static CUcontext const here = (CUcontext)(uintptr_t)0xc1, elsewhere = (CUcontext)(uintptr_t)0xc2;

/* ---- the driver ---- */

static struct {
    atomic_bool busy[2]; /* here, elsewhere */
    atomic_int waits, pushed, popped, unguarded, threads, joined;
    _Atomic(CUresult) result, push_result;
    bool no_threads;
    long late_ms; /* threads begin so late */
} gpu;

static __thread CUcontext current;

static CUresult CUDAAPI push_current(CUcontext ctx)
{
    CUresult rc = atomic_load(&gpu.push_result);
    if (rc != CUDA_SUCCESS)
        return rc;
    atomic_fetch_add(&gpu.unguarded, !kp_guard);
    atomic_fetch_add(&gpu.pushed, 1);
    current = ctx;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI pop_current(CUcontext *ctx)
{
    *ctx = current;
    current = NULL;
    atomic_fetch_add(&gpu.popped, 1);
    return CUDA_SUCCESS;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
}

static CUresult CUDAAPI synchronize(void)
{
    size_t which = current == elsewhere;
    atomic_fetch_add(&gpu.waits, 1);
    while (atomic_load(&gpu.busy[which]))
        nap();
    return atomic_load(&gpu.result);
}

static CUresult query(CUstream stream)
{
    assert_ptr_equal(stream, CU_STREAM_LEGACY);
    return atomic_load(&gpu.busy[0]) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static const struct kp_driver driver = {.cuCtxPushCurrent = push_current,
                                        .cuCtxPopCurrent = pop_current,
                                        .cuCtxSynchronize = synchronize,
                                        .cuStreamQuery = query};

/* ---- threads ---- */

static void nap_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

struct body {
    void *(*fn)(void *arg);
    void *arg;
    long late_ms;
};

static void *begin_late(void *arg)
{
    struct body b = *(struct body *)arg;
    free(arg);
    nap_ms(b.late_ms);
    return b.fn(b.arg);
}

bool kp_worker_thread_start(void *(*fn)(void *arg), void *arg, pthread_t *thread)
{
    if (gpu.no_threads)
        return false;
    struct body *b = malloc(sizeof(*b));
    assert_non_null(b);
    *b = (struct body){fn, arg, gpu.late_ms};
    assert_int_equal(pthread_create(thread, NULL, begin_late, b), 0);
    atomic_fetch_add(&gpu.threads, 1);
    return true;
}

void kp_worker_thread_join(pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
    atomic_fetch_add(&gpu.joined, 1);
}

static int set_up(void **state)
{
    (void)state;
    alarm(60); /* a wait without a limit ends the test */
    memset(&gpu, 0, sizeof(gpu));
    current = here; /* on this thread, as the caller promises */
    return 0;
}

static CUresult wait_here(long ms)
{
    return kp_patience_wait(&driver, here, ms);
}

static void let_end(size_t which)
{
    atomic_store(&gpu.busy[which], false);
}

/* ---- tests ---- */

static void test_done(void **state)
{
    (void)state;
    assert_int_equal(wait_here(LONG_MS), CUDA_SUCCESS);
    assert_int_equal(gpu.waits, 1);
    assert_int_equal(gpu.pushed, 1);
    assert_int_equal(gpu.popped, 1);
    assert_int_equal(gpu.unguarded, 0); /* no door sees the thread's calls */
    atomic_store(&gpu.result, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(wait_here(LONG_MS), CUDA_ERROR_ILLEGAL_ADDRESS);
    atomic_store(&gpu.push_result, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(wait_here(LONG_MS), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(gpu.waits, 2);
    assert_int_equal(gpu.popped, 2);
    assert_int_equal(gpu.joined, gpu.threads); /* none is left to end beside the program's exit handlers */
}

/* The wait that was given up goes on, and the next call takes part in it instead of starting another. */
static void test_not_done(void **state)
{
    (void)state;
    atomic_store(&gpu.busy[0], true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wait_here(SHORT_MS), CUDA_ERROR_NOT_READY);
    assert_int_equal(gpu.threads, 1);
    let_end(0);
    /* what was launched since is waited for as well */
    assert_int_equal(wait_here(LONG_MS), CUDA_SUCCESS);
    assert_int_equal(gpu.threads, 2);
    assert_int_equal(gpu.waits, 2);
    assert_int_equal(wait_here(LONG_MS), CUDA_SUCCESS);
    assert_int_equal(gpu.threads, 3);
}

/* What an earlier wait saw is not what is asked for now. */
static void test_fault_after_an_earlier_wait(void **state)
{
    (void)state;
    atomic_store(&gpu.busy[0], true);
    assert_int_equal(wait_here(SHORT_MS), CUDA_ERROR_NOT_READY);
    let_end(0);
    while (!atomic_load(&gpu.popped))
        nap();
    atomic_store(&gpu.result, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(wait_here(LONG_MS), CUDA_ERROR_LAUNCH_FAILED);
}

static void *let_end_later(void *unused)
{
    for (int i = 0; i < 100; i++)
        nap();
    let_end(0);
    return unused;
}

/* Within the limit the end is seen, also that of a wait begun earlier. */
static void test_done_in_time(void **state)
{
    pthread_t thread;
    (void)state;
    for (int earlier = 0; earlier < 2; earlier++) {
        atomic_store(&gpu.busy[0], true);
        if (earlier)
            assert_int_equal(wait_here(SHORT_MS), CUDA_ERROR_NOT_READY);
        assert_int_equal(pthread_create(&thread, NULL, let_end_later, NULL), 0);
        assert_int_equal(wait_here(LONG_MS), CUDA_SUCCESS);
        pthread_join(thread, NULL);
    }
}

/* A thread that a busy machine begins late takes no patience away; one that begins far too late does not ask any more.
 */
static void test_late_thread(void **state)
{
    enum { LATE_MS = 10 * SHORT_MS, TOO_LATE_MS = 2500 };
    (void)state;
    gpu.late_ms = LATE_MS;
    assert_int_equal(wait_here(SHORT_MS), CUDA_SUCCESS);
    assert_int_equal(gpu.waits, 1);
    gpu.late_ms = TOO_LATE_MS;
    assert_int_equal(wait_here(SHORT_MS), CUDA_ERROR_NOT_READY);
    nap_ms(TOO_LATE_MS);
    assert_int_equal(gpu.waits, 1);
    gpu.late_ms = LATE_MS;
    assert_int_equal(wait_here(SHORT_MS), CUDA_SUCCESS);
    assert_int_equal(gpu.waits, 2);
    assert_int_equal(gpu.joined, 3);
}

/* A wait that polls wakes thousands of times meanwhile. */
static void test_no_polling(void **state)
{
    (void)state;
    struct rusage before, after;
    atomic_store(&gpu.busy[0], true);
    getrusage(RUSAGE_THREAD, &before);
    assert_int_equal(wait_here(20 * SHORT_MS), CUDA_ERROR_NOT_READY);
    getrusage(RUSAGE_THREAD, &after);
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 1, 20);
    let_end(0);
    assert_int_equal(wait_here(LONG_MS), CUDA_SUCCESS);
}

static void test_contexts(void **state)
{
    (void)state;
    atomic_store(&gpu.busy[0], true);
    assert_int_equal(wait_here(SHORT_MS), CUDA_ERROR_NOT_READY);
    current = elsewhere;
    assert_int_equal(kp_patience_wait(&driver, elsewhere, LONG_MS), CUDA_SUCCESS);
    atomic_store(&gpu.busy[1], true);
    assert_int_equal(kp_patience_wait(&driver, elsewhere, SHORT_MS), CUDA_ERROR_NOT_READY);
    let_end(0);
    current = here;
    assert_int_equal(wait_here(LONG_MS), CUDA_SUCCESS);
    current = elsewhere;
    assert_int_equal(kp_patience_wait(&driver, elsewhere, SHORT_MS), CUDA_ERROR_NOT_READY);
    let_end(1);
    assert_int_equal(kp_patience_wait(&driver, elsewhere, LONG_MS), CUDA_SUCCESS);
}

/* Where no thread can be had, the legacy stream is polled, with the same limit, before the driver waits. */
static void test_no_threads(void **state)
{
    pthread_t thread;
    (void)state;
    gpu.no_threads = true;
    atomic_store(&gpu.busy[0], true);
    assert_int_equal(wait_here(SHORT_MS), CUDA_ERROR_NOT_READY);
    assert_int_equal(gpu.waits, 0);
    assert_int_equal(pthread_create(&thread, NULL, let_end_later, NULL), 0);
    assert_int_equal(wait_here(LONG_MS), CUDA_SUCCESS);
    pthread_join(thread, NULL);
    assert_int_equal(gpu.waits, 1);
    assert_int_equal(gpu.pushed, 0);
    atomic_store(&gpu.result, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(wait_here(LONG_MS), CUDA_ERROR_LAUNCH_FAILED);
}

/* In a child the threads of its parent do not exist: none of their waits is waited for in vain. */
static void test_forked(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* its runtime starts no threads after a fork */
#endif
    int status = -1;
    (void)state;
    atomic_store(&gpu.busy[0], true);
    assert_int_equal(wait_here(SHORT_MS), CUDA_ERROR_NOT_READY);
    pid_t pid = fork();
    if (!pid) {
        alarm(30);
        kp_patience_forked();
        let_end(0);
        kp_test_end(wait_here(LONG_MS) != CUDA_SUCCESS || gpu.threads != 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    let_end(0);
    assert_int_equal(wait_here(LONG_MS), CUDA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_done, set_up),
        cmocka_unit_test_setup(test_not_done, set_up),
        cmocka_unit_test_setup(test_fault_after_an_earlier_wait, set_up),
        cmocka_unit_test_setup(test_done_in_time, set_up),
        cmocka_unit_test_setup(test_late_thread, set_up),
        cmocka_unit_test_setup(test_no_polling, set_up),
        cmocka_unit_test_setup(test_contexts, set_up),
        cmocka_unit_test_setup(test_no_threads, set_up),
        cmocka_unit_test_setup(test_forked, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
