/* LINK: -lcuda -lpthread -ldl */
/* Launches by known ways, each of another kernel or grid: number N of them has a grid of N + 1 blocks. The functions
 * that launch stand each in a line of their own, which tests/e2e/stack.sh finds by what is written behind it. */
#include "linked.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

enum { N = 256, DEEP = 300, ROUNDS = 3 };

static struct session session;
static CUfunction function;
static CUdeviceptr values;
static int n = N, launched;

static CUresult launch(void *arg)
{
    void *params[] = {&values, &n};
    int shape = *(int *)arg;
    CUresult rc = cuLaunchKernel(function, 1 + shape, 1, 1, N, 1, 1, 0, session.stream, params, NULL); /* LAUNCH */
    launched += rc == CUDA_SUCCESS;
    return rc;
}

#define NO_TAIL_CALL() __asm__ volatile("" ::: "memory")

static __attribute__((noinline)) void helper(int shape)
{
    launch(&shape); /* HELPER */
    NO_TAIL_CALL();
}

static inline __attribute__((always_inline)) void inlined(int shape)
{
    helper(shape); /* INLINED */
    NO_TAIL_CALL();
}

static __attribute__((noinline)) void recurse(int depth, int shape)
{
    if (depth)
        recurse(depth - 1, shape); /* RECURSION */
    else
        helper(shape);
    NO_TAIL_CALL();
}

static void *thread(void *arg)
{
    MUST(cuCtxSetCurrent(session.ctx));
    helper(*(int *)arg); /* THREAD */
    NO_TAIL_CALL();
    return NULL;
}

/* A function without unwind tables. With a frame pointer the chain can be followed by that; without one, and with
 * nonsense in its place, it ends there. */
CUresult bare(CUresult (*callee)(void *arg), void *arg);
CUresult blind(CUresult (*callee)(void *arg), void *arg);
__asm__(".text\n"
        ".globl bare\n.type bare, @function\n"
        "bare:\n push %rbp\n mov %rsp, %rbp\n mov %rdi, %rax\n mov %rsi, %rdi\n call *%rax\n pop %rbp\n ret\n"
        ".size bare, .-bare\n"
        ".globl blind\n.type blind, @function\n"
        "blind:\n push %rbp\n mov $0x1230, %rbp\n mov %rdi, %rax\n mov %rsi, %rdi\n call *%rax\n pop %rbp\n ret\n"
        ".size blind, .-blind\n");

static ucontext_t outer, inner;

/* On a stack of its own, as coroutines are. */
static void coroutine(int shape)
{
    helper(shape); /* COROUTINE */
    NO_TAIL_CALL();
}

static void on_another_stack(int shape)
{
    static char stack[256 << 10];
    getcontext(&inner);
    inner.uc_stack.ss_sp = stack;
    inner.uc_stack.ss_size = sizeof(stack);
    inner.uc_link = &outer;
    makecontext(&inner, (void (*)(void))coroutine, 1, shape);
    swapcontext(&outer, &inner);
}

static void from_plugin(int shape)
{
    typedef CUresult plugin(CUresult(*callee)(void *arg), void *arg);
    char path[PATH_MAX], file[PATH_MAX + 32];
    plugin *call;
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    snprintf(file, sizeof(file), "%s/stack_plugin", dirname(path));
    void *library = dlopen(file, RTLD_NOW);
    if (!library) {
        report("plugin", 0);
        return;
    }
    *(void **)&call = dlsym(library, "plugin_launch");
    MUST(call(launch, &shape)); /* PLUGIN */
    dlclose(library);
}

int main(void)
{
    static const int zeros[N];
    static int in_thread = 4;
    pthread_t t;
    open_session(&linked, &session, 0);
    values = device_ints(&linked, zeros, N);
    function = get_function(&linked, &session, "increment");
    for (int i = 0; i < ROUNDS; i++)
        helper(0); /* ROUND */
    inlined(1);    /* MAIN */
    recurse(3, 2);
    recurse(DEEP, 3);
    pthread_create(&t, NULL, thread, &in_thread);
    pthread_join(t, NULL);
    MUST(bare(launch, &(int){5}));
    MUST(blind(launch, &(int){6}));
    on_another_stack(7);
    from_plugin(8);
    from_plugin(9);
    MUST(cuStreamSynchronize(session.stream));
    report("launches", launched);
    return 0;
}
