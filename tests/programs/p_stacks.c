/* LINK: -lcuda -lpthread */
/*
 * Launches, waits and copies on a small stack with a guard page below it. Arguments: whose stack it is, its size in
 * bytes, and how many launches. thread     that of a thread exit       the same, and the thread calls exit() coroutine
 * one of a coroutine signal     an alternate one, of a signal handler last       the same, and the handler calls exit()
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "linked.h"

enum { N = 8, PAGE = 4096 };

static struct session session;
static CUdeviceptr values;
static CUfunction function;
static int launches;
static ucontext_t home, fiber;

static void work(void)
{
    int n = N, host[N];
    void *params[] = {&values, &n};

    MUST(cuCtxSetCurrent(session.ctx));
    for (int i = 0; i < launches; i++) {
        MUST(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, session.stream, params, NULL));
        if (i % 8 == 0)
            MUST(cuStreamSynchronize(session.stream));
        if (i % 16 == 0)
            MUST(cuMemcpyDtoH(host, values, sizeof(host)));
    }
}

static void *in_thread(void *ends)
{
    work();
    if (ends)
        exit(0);
    return NULL;
}

static void in_handler(int number)
{
    (void)number;
    work();
}

static void in_last_handler(int number)
{
    (void)number;
    work();
    exit(0);
}

static void run_thread(char *stack, size_t bytes, int ends)
{
    pthread_attr_t how;
    pthread_t thread;

    pthread_attr_init(&how);
    if (pthread_attr_setstack(&how, stack, bytes) || pthread_create(&thread, &how, in_thread, ends ? &session : NULL))
        exit(9);
    pthread_join(thread, NULL);
}

static void run_handler(char *stack, size_t bytes, int ends)
{
    struct sigaction action = {.sa_handler = ends ? in_last_handler : in_handler, .sa_flags = SA_ONSTACK};
    stack_t alternate = {.ss_sp = stack, .ss_size = bytes};

    if (sigaltstack(&alternate, NULL))
        exit(9);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static void run_coroutine(char *stack, size_t bytes)
{
    getcontext(&fiber);
    fiber.uc_stack = (stack_t){.ss_sp = stack, .ss_size = bytes};
    fiber.uc_link = &home;
    makecontext(&fiber, work, 0);
    swapcontext(&home, &fiber);
}

int main(int argc, char **argv)
{
    const char *how = argc > 3 ? argv[1] : "";
    size_t bytes = argc > 3 ? (size_t)atol(argv[2]) : 0, all = (bytes + PAGE - 1) / PAGE * PAGE;
    char *memory = mmap(NULL, all + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *stack = memory + PAGE; /* what is left of its first page is not used */

    launches = argc > 3 ? atoi(argv[3]) : 0;
    mprotect(memory, PAGE, PROT_NONE);
    mprotect(stack + all, PAGE, PROT_NONE);
    open_session(&linked, &session, 0);
    function = get_function(&linked, &session, "increment");
    values = device_ints(&linked, (const int[N]){0}, N);
    if (!strcmp(how, "thread") || !strcmp(how, "exit"))
        run_thread(stack, bytes, how[0] == 'e');
    else if (!strcmp(how, "coroutine"))
        run_coroutine(stack, bytes);
    else
        run_handler(stack, bytes, how[0] == 'l');
    report_number("increments", sum_ints(&linked, values, N), (long long)N * launches);
    close_session(&linked, &session);
    return program_wrong;
}
