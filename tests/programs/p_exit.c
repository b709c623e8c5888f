/* LINK: -lcuda -lpthread */
/* Two launches, then the end that the argument names. */
#include "linked.h"

#include <stdbool.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct session session;
static CUdeviceptr values;
static const char *self;

static void launch_one(void)
{
    CUfunction f = get_function(&linked, &session, "increment");
    int n = 8;
    void *params[] = {&values, &n};

    MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, session.stream, params, NULL));
    MUST(cuStreamSynchronize(session.stream));
}

static int end_return(void)
{
    return 5;
}

static int end_exit(void)
{
    exit(3);
}

static int end__exit(void)
{
    _exit(4);
}

static int end_quick_exit(void)
{
    quick_exit(5);
}

static int end_abort(void)
{
    abort();
}

static int end_sigterm(void)
{
    return kill(getpid(), SIGTERM);
}

static int end_sigint(void)
{
    return kill(getpid(), SIGINT);
}

static int end_sigkill(void)
{
    return kill(getpid(), SIGKILL);
}

static int end_segv(void)
{
    return raise(SIGSEGV);
}

static void *exit_now(void *data)
{
    (void)data;
    exit(6);
}

static int end_thread_exit(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, exit_now, NULL);
    return pthread_join(thread, NULL);
}

/* All of CUDA is gone before the program ends. */
static int end_reset(void)
{
    MUST(cuDevicePrimaryCtxReset(session.device));
    return 0;
}

static int end_release(void)
{
    close_session(&linked, &session);
    return 0;
}

/* Makes a context that is current to this thread, and one launch in it. */
static CUcontext launch_in_another(void)
{
    CUcontext ctx;
    struct session other = session;

    MUST(cuCtxCreate(&ctx, NULL, 0, session.device));
    MUST(cuModuleLoadData(&other.module, ALL_KERNELS));
    MUST(cuStreamCreate(&other.stream, 0));
    session = other;
    values = device_ints(&linked, (const int[8]){0}, 8);
    launch_one();
    return ctx;
}

static int end_destroy(void)
{
    CUcontext ctx = launch_in_another();

    report_number("in the second context", sum_ints(&linked, values, 8), 8);
    MUST(cuCtxDestroy(ctx));
    return 0;
}

static void wait_for_child(pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    report_number("child's exit code", WIFEXITED(status) ? WEXITSTATUS(status) : -1, 7);
    launch_one();
    report_number("after the child", sum_ints(&linked, values, 8), 3 * 8);
}

/* A child that ends as workers do, without CUDA, while the parent goes on. */
static int end_fork(void)
{
    pid_t pid = fork();

    if (!pid)
        exit(7);
    wait_for_child(pid);
    return 0;
}

/* The child runs the same program anew. */
static int end_fork_exec(void)
{
    pid_t pid = fork();

    if (!pid) {
        execl(self, self, "child", (char *)NULL);
        _exit(127);
    }
    wait_for_child(pid);
    return 0;
}

static int end_child(void)
{
    return 7;
}

static void *launch_on(void *arg)
{
    CUfunction f;
    int n = 8;
    void *params[] = {&values, &n};

    (void)arg;
    cuCtxSetCurrent(session.ctx);
    f = get_function(&linked, &session, "increment");
    while (!cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, session.stream, params, NULL) &&
           !cuStreamSynchronize(session.stream))
        usleep(500);
    return NULL;
}

/* As programs whose calls are checked: none fails while the process is there. */
static void *launch_and_check(void *arg)
{
    int n = 8;
    void *params[] = {&values, &n};
    CUfunction f;
    CUdeviceptr block;

    (void)arg;
    cuCtxSetCurrent(session.ctx);
    f = get_function(&linked, &session, "increment");
    for (;;) {
        if (cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, session.stream, params, NULL) ||
            cuStreamSynchronize(session.stream) || cuMemAlloc(&block, 64) || cuMemFree(block))
            abort();
        usleep(5000); /* hardly ever in a call as the process ends */
    }
}

/* The main thread returns while another does something. */
static int return_beside(void *(*other)(void *), useconds_t after)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, other, NULL) || pthread_detach(thread))
        return 2;
    usleep(after);
    return 7;
}

/* Another thread goes on to launch. */
static int end_beside(void)
{
    return return_beside(launch_on, 20000);
}

static int end_checked(void)
{
    return return_beside(launch_and_check, 20000);
}

/* The main thread ends alone, with a window open. */
static int end_pthread_exit(void)
{
    launch_one();
    pthread_exit(NULL);
}

static void *launch_last(void *arg)
{
    (void)arg;
    usleep(20000); /* the main thread has ended */
    cuCtxSetCurrent(session.ctx);
    launch_one();
    return NULL;
}

/* Another thread is the last one. */
static int end_last_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, launch_last, NULL))
        return 2;
    pthread_exit(NULL);
}

static void *exit_late(void *arg)
{
    (void)arg;
    usleep(300000); /* the main thread is ending */
    _exit(7);
}

/* A thread ends the process while another is ending it. */
static int end_twice(void)
{
    return return_beside(exit_late, 0);
}

static void *launch_first(void *arg)
{
    (void)arg;
    launch_in_another();
    return NULL;
}

/* Another thread makes the first launch in a context of its own. */
static int end_planning(void)
{
    return return_beside(launch_first, 100000);
}

static void *launch_very_first(void *arg)
{
    (void)arg;
    MUST(cuCtxSetCurrent(session.ctx));
    launch_one();
    return NULL;
}

/* Another thread makes the first launch of all, while a profiler may still prepare for it. */
static int end_first(void)
{
    return return_beside(launch_very_first, 100000);
}

static void *exit_from_thread(void *arg)
{
    (void)arg;
    _exit(4);
}

/* A thread that ends the process is cancelled meanwhile. */
static int end_cancelled(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, exit_from_thread, NULL))
        return 2;
    usleep(2000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    return 11;
}

static sem_t exiting;

static void say_exiting(void)
{
    sem_post(&exiting);
}

/* A point where a thread can be cancelled, long after it called exit(). */
static void end_slowly(void)
{
    usleep(100000);
    puts("the last exit handler");
}

static void *exit_slowly(void *arg)
{
    (void)arg;
    atexit(say_exiting); /* the first to run */
    exit(4);
}

/* A thread is cancelled between two exit handlers. */
static int end_cancelled_exit(void)
{
    pthread_t thread;

    sem_init(&exiting, 0, 0);
    if (pthread_create(&thread, NULL, exit_slowly, NULL))
        return 2;
    sem_wait(&exiting);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    return 11;
}

static pthread_barrier_t together;

static void *exit_together(void *end)
{
    void (*with)(int) = *(void (**)(int))end;

    pthread_barrier_wait(&together);
    with(7);
    return NULL;
}

/* Threads end the process at the same moment, each by the function it is given; with `returns`, main as well. */
static int end_together(void (**with)(int), unsigned n, int returns)
{
    pthread_t thread;

    pthread_barrier_init(&together, NULL, n + (unsigned)returns);
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&thread, NULL, exit_together, &with[i]))
            return 2;
    if (returns)
        pthread_barrier_wait(&together);
    while (!returns)
        pause();
    return 7;
}

/* Several threads find an error and call exit. */
static int end_exits(void)
{
    static void (*with[])(int) = {exit, exit, exit, exit, exit};

    return end_together(with, 5, 0);
}

/* A thread exits while main returns. */
static int end_exit_return(void)
{
    static void (*with[])(int) = {exit, exit};

    return end_together(with, 2, 1);
}

static void take_a_while(void)
{
    usleep(2000);
}

static void *exit_soon(void *arg)
{
    (void)arg;
    usleep(10000);
    exit(7);
}

/* More handlers than the C library keeps in one block, which both run when main returns while a thread exits. */
static int end_crowd(void)
{
    for (int i = 0; i < 80; i++)
        atexit(take_a_while);
    return return_beside(exit_soon, 20000);
}

/* All ways to end at once. */
static int end_all_ways(void)
{
    static void (*with[])(int) = {exit, quick_exit, _exit, exit, _Exit};

    return end_together(with, 5, 0);
}

static void exit_again(void)
{
    exit(9);
}

/* An exit handler exits: the last status counts. */
static int end_nested(void)
{
    if (atexit(exit_again))
        return 2;
    exit(8);
}

static void leave(void)
{
    pthread_exit(NULL);
}

static void *exit_with_handlers(void *arg)
{
    (void)arg;
    exit(6);
}

/* The exit handler of a library that waits for its worker, which ends the process. */
static void join_exiting(void)
{
    pthread_t thread;

    if (!pthread_create(&thread, NULL, exit_with_handlers, NULL))
        pthread_join(thread, NULL);
}

/* A destructor runs behind all exit handlers, and its exit leaves out the destructors that follow. */
static bool destructor_exits;

__attribute__((destructor)) static void exit_from_destructor(void)
{
    if (destructor_exits)
        exit(9);
}

static int end_destructor(void)
{
    destructor_exits = true;
    return 8;
}

/* The thread that runs the exit handlers ends in one of them, after ours. */
static int end_handler(void)
{
    launch_one();
    return 0;
}

static void exit_at_once(int signal)
{
    (void)signal;
    exit(7);
}

static void end_at_once(int signal)
{
    (void)signal;
    _exit(7);
}

/* As crash handlers do, on the least stack that there was for them, with nothing mapped below. */
static int end_on_small_stack(void (*handler)(int))
{
    enum { SIZE = 8192, GUARD = 65536 };
    char *below = mmap(NULL, GUARD + SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

    if (below == MAP_FAILED || mprotect(below + GUARD, SIZE, PROT_READ | PROT_WRITE) ||
        sigaltstack(&(stack_t){.ss_sp = below + GUARD, .ss_size = SIZE}, NULL) || sigaction(SIGUSR1, &action, NULL))
        return 1;
    raise(SIGUSR1);
    return 1;
}

static int end_small_exit(void)
{
    return end_on_small_stack(exit_at_once);
}

static int end_small__exit(void)
{
    return end_on_small_stack(end_at_once);
}

/* A handler exits after ALARM_US, whatever it interrupted: most of the loop is a profiler's. */
static int end_alarm(void)
{
    const char *us = getenv("ALARM_US");
    struct itimerval t = {.it_value = {.tv_usec = us ? atoi(us) : 15000}};
    CUfunction f = get_function(&linked, &session, "increment");
    int n = 8;
    void *params[] = {&values, &n};

    signal(SIGALRM, exit_at_once);
    setitimer(ITIMER_REAL, &t, NULL);
    for (;;)
        MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, session.stream, params, NULL));
}

static const struct {
    const char *name;
    int (*end)(void);
} ends[] = {
    {"return", end_return},
    {"exit", end_exit},
    {"_exit", end__exit},
    {"quick_exit", end_quick_exit},
    {"abort", end_abort},
    {"sigterm", end_sigterm},
    {"sigint", end_sigint},
    {"sigkill", end_sigkill},
    {"segv", end_segv},
    {"reset", end_reset},
    {"release", end_release},
    {"destroy", end_destroy},
    {"thread_exit", end_thread_exit},
    {"fork", end_fork},
    {"fork_exec", end_fork_exec},
    {"child", end_child},
    {"beside", end_beside},
    {"checked", end_checked},
    {"pthread_exit", end_pthread_exit},
    {"last_thread", end_last_thread},
    {"twice", end_twice},
    {"planning", end_planning},
    {"cancelled", end_cancelled},
    {"cancelled_exit", end_cancelled_exit},
    {"handler", end_handler},
    {"exits", end_exits},
    {"exit_return", end_exit_return},
    {"crowd", end_crowd},
    {"all_ways", end_all_ways},
    {"nested", end_nested},
    {"joined", end_return},
    {"behind", end_return},
    {"destructor", end_destructor},
    {"alarm", end_alarm},
    {"small_exit", end_small_exit},
    {"small__exit", end_small__exit},
};

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";

    self = argv[0];
    if (!strcmp(how, "handler"))
        atexit(leave);
    if (!strcmp(how, "joined"))
        atexit(join_exiting);
    if (!strcmp(how, "cancelled_exit"))
        atexit(end_slowly);
    setvbuf(stdout, NULL, _IONBF, 0); /* what was printed is out, however the program ends */
    open_session(&linked, &session, 0);
    values = device_ints(&linked, (const int[8]){0}, 8);
    if (!strcmp(how, "behind"))
        atexit(launch_one); /* behind the driver's handler, and before those of libraries that a first launch opens */
    if (!strcmp(how, "first"))
        return end_first();
    launch_one();
    launch_one();
    report_number("increments", sum_ints(&linked, values, 8), 2 * 8);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (!strcmp(ends[i].name, how))
            return ends[i].end() | program_wrong;
    printf("no such end: %s\n", how);
    return 2;
}
