/* LINK: -lcuda -lpthread */
/*
 * Launches, waits and copies on a small stack with a guard page below it. Arguments: whose stack it is, its size in
 * bytes, and how many launches.
 *   thread     that of a thread
 *   exit       the same, and the thread calls exit()
 *   coroutine  one of a coroutine
 *   signal     an alternate one, of a signal handler
 *   last       the same, and the handler calls exit()
 *   same, new, captured  that of a thread; prints how many bytes of it the deepest launch takes: all of one shape, each
 *              of a new one, all captured
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

/* ---- how deep a launch goes ---- */

enum { PAINT = 0xa5, WARM = 8 };

static char *lowest; /* of the stack */
static size_t deepest;

static void launch(unsigned blocks)
{
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, session.stream, params, NULL));
}

/* Paints the stack below this frame, and looks where the paint is gone afterwards. */
static __attribute__((noinline)) void measure(unsigned blocks, int counts)
{
    volatile char *p = lowest, *here = __builtin_frame_address(0), *end = here - 512; /* this frame */

    while (p < end)
        *p++ = (char)PAINT;
    launch(blocks);
    for (p = lowest; p < end && *p == (char)PAINT; p++)
        ;
    if (counts && (size_t)(here - p) > deepest)
        deepest = (size_t)(here - p);
}

static void *deep(void *how)
{
    const char *kind = how;
    CUgraph graph;

    MUST(cuCtxSetCurrent(session.ctx));
    if (kind[0] == 'c')
        MUST(cuStreamBeginCapture(session.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < WARM + launches; i++)
        measure(kind[0] == 'n' ? (unsigned)i + 1 : 1, i >= WARM);
    if (kind[0] == 'c') {
        MUST(cuStreamEndCapture(session.stream, &graph));
        MUST(cuGraphDestroy(graph));
    }
    printf("deepest %zu\n", deepest);
    return NULL;
}

/* ---- whose stack ---- */

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

static void run_thread(char *stack, size_t bytes, void *(*fn)(void *arg), void *arg)
{
    pthread_attr_t how;
    pthread_t thread;

    pthread_attr_init(&how);
    if (pthread_attr_setstack(&how, stack, bytes) || pthread_create(&thread, &how, fn, arg))
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
        run_thread(stack, bytes, in_thread, how[0] == 'e' ? &session : NULL);
    else if (!strcmp(how, "same") || !strcmp(how, "new") || !strcmp(how, "captured"))
        run_thread(lowest = stack, bytes, deep, (void *)(uintptr_t)how);
    else if (!strcmp(how, "coroutine"))
        run_coroutine(stack, bytes);
    else
        run_handler(stack, bytes, how[0] == 'l');
    if (!lowest)
        report_number("increments", sum_ints(&linked, values, N), (long long)N * launches);
    close_session(&linked, &session);
    return program_wrong;
}
