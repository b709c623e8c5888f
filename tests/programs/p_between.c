/* LINK: -lcuda -lpthread */
/* What comes between launches that share a window, made to be hard to repeat. Argument: the case. */
#include <pthread.h>
#include <unistd.h>

#include "linked.h"

enum { N = 64 };

static struct session session;
static CUstream second;
static CUdeviceptr values, scratch, history, cursor;

static const char image[] =
    "FAKEMOD increment append wait_flag set_flag late_increment varies gather axpy_inplace fail "
    "_ZN5tests9incrementIiLi4EEEvPT_i";

static CUfunction function(const char *name)
{
    return get_function(&linked, &session, name);
}

static void open_all(void)
{
    static const int zeros[4096];

    open_session(&linked, &session, 0);
    MUST(cuModuleUnload(session.module));
    MUST(cuModuleLoadData(&session.module, image));
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    values = device_ints(&linked, zeros, N);
    scratch = device_ints(&linked, zeros, N);
    history = device_ints(&linked, zeros, 4096);
    cursor = device_ints(&linked, zeros, 1);
}

static void launch_increment(CUfunction f, CUdeviceptr data, int n, CUstream stream)
{
    void *params[] = {&data, &n};

    MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
}

static void increment(CUdeviceptr data, CUstream stream)
{
    launch_increment(function("increment"), data, N, stream);
}

/* As increment, but the kernel takes so long. */
static void increment_late(CUdeviceptr data, int ms, CUstream stream)
{
    int n = N;
    void *params[] = {&data, &n, &ms};

    MUST(cuLaunchKernel(function("late_increment"), 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
}

static void wait_for_flag(CUdeviceptr flag, CUdeviceptr data, CUstream stream)
{
    void *params[] = {&flag, &data};

    MUST(cuLaunchKernel(function("wait_flag"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void set_flag(CUdeviceptr flag, int value, CUstream stream)
{
    void *params[] = {&flag, &value};

    MUST(cuLaunchKernel(function("set_flag"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void append(int tag)
{
    int capacity = 4096;
    void *params[] = {&history, &cursor, &capacity, &tag};

    MUST(cuLaunchKernel(function("append"), 2, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
}

/* A limit that is lowered and raised again, between launches that need the higher one. */
static void limit_up_and_down(void)
{
    CUfunction f = function("_ZN5tests9incrementIiLi4EEEvPT_i");
    const CUfunction_attribute most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int n = N, limit = 0;
    void *params[] = {&values, &n};

    for (int i = 0; i < 3; i++) {
        MUST(cuFuncSetAttribute(f, most, 60000));
        MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 60000, session.stream, params, NULL));
        MUST(cuFuncSetAttribute(f, most, 50000));
        MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 50000, session.stream, params, NULL));
    }
    MUST(cuFuncSetAttribute(f, most, 60000));
    append(1);
    MUST(cuStreamSynchronize(session.stream));
    report_number("values", sum_ints(&linked, values, N), 6 * N);
    MUST(cuFuncGetAttribute(&limit, most, f));
    report_number("limit", limit, 60000);
    report_number("launch", cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 60000, session.stream, params, NULL), CUDA_SUCCESS);
}

/* Two modules of one image: a kernel of the one counts up a variable of the other. */
static void twin_modules(void)
{
    CUmodule more[2];
    CUfunction f;
    CUdeviceptr variable;
    size_t bytes;
    int host[4];

    append(0);
    for (int i = 0; i < 2; i++)
        MUST(cuModuleLoadData(&more[i], "FAKEMOD increment global:g_twin:16"));
    MUST(cuModuleGetFunction(&f, more[0], "increment"));
    MUST(cuModuleGetGlobal(&variable, &bytes, more[1], "g_twin"));
    launch_increment(f, values, N, session.stream);
    for (int i = 0; i < 4; i++)
        launch_increment(f, variable, 4, session.stream);
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuMemcpyDtoH(host, variable, sizeof(host)));
    report_number("counted up", host[3], 4);
}

static void *set_flag_later(void *arg)
{
    MUST(cuCtxSetCurrent(session.ctx));
    usleep(200000);
    set_flag(values, 3, second);
    return arg;
}

/* A thread reads what a kernel gives that waits for what another thread launches meanwhile. */
static void read_waits(void)
{
    pthread_t thread;
    int host = 0;

    append(0);
    MUST(cuMemcpyDtoH(&host, cursor, sizeof(host)));
    append(1);
    MUST(cuMemcpyDtoH(&host, cursor, sizeof(host)));
    append(1);
    MUST(cuStreamSynchronize(session.stream));
    pthread_create(&thread, NULL, set_flag_later, NULL);
    wait_for_flag(values, scratch, NULL);
    MUST(cuMemcpyDtoH(&host, scratch, sizeof(host)));
    report_number("read", host, 3);
    pthread_join(thread, NULL);
    append(2);
}

/* The same with a call that takes no result, but returns after its end. */
static void memset_waits(void)
{
    pthread_t thread;

    append(0);
    pthread_create(&thread, NULL, set_flag_later, NULL);
    wait_for_flag(values, scratch, NULL);
    MUST(cuMemsetD32(scratch + 4, 7, 1));
    pthread_join(thread, NULL);
    append(2);
    append(3);
    MUST(cuStreamSynchronize(session.stream));
    append(4);
    report_number("scratch", sum_ints(&linked, scratch, N), 10);
}

/* What comes back from pinned memory depends on a result that has yet to arrive there. */
static void back_and_forth(void)
{
    int *pinned, *result, right = 1;

    MUST(cuMemHostAlloc((void **)&pinned, 4096, 0));
    MUST(cuMemHostAlloc((void **)&result, 4096, 0));
    for (int i = 0; i < 10; i++) {
        increment_late(values, 5, session.stream);
        MUST(cuMemcpyDtoHAsync(pinned, values, N * sizeof(int), session.stream));
        MUST(cuMemcpyHtoDAsync(scratch, pinned, N * sizeof(int), session.stream));
        append(i);
        MUST(cuMemcpyDtoHAsync(result, scratch, N * sizeof(int), session.stream));
        MUST(cuStreamSynchronize(session.stream));
        right &= *result == i + 1;
        pinned[0] = -1;
    }
    report("came back", right);
}

/* Memory that a window kept, which was left beside a kernel that waits for the host; another context comes and goes. */
static void context_between(void)
{
    CUdeviceptr memory;
    CUcontext other;
    size_t before, after, all;
    int *flag;
    enum { MOST_TRIES = 200 };

    MUST(cuMemHostAlloc((void **)&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = 0;
    MUST(cuMemGetInfo(&before, &all));
    append(0);
    MUST(cuMemAlloc(&memory, 1 << 20));
    append(1);
    MUST(cuMemFree(memory));
    wait_for_flag((CUdeviceptr)(uintptr_t)flag, scratch, second);
    MUST(cuCtxCreate(&other, NULL, 0, session.device));
    MUST(cuCtxDestroy(other));
    MUST(cuCtxSetCurrent(session.ctx));
    *(volatile int *)flag = 5;
    MUST(cuStreamSynchronize(second));
    append(2);
    append(3);
    /* After a stall a window opens only if the context is idle within 10 ms, which a loaded machine may miss. */
    MUST(cuMemGetInfo(&after, &all));
    for (int tries = 0; tries < MOST_TRIES && after != before; tries++) {
        usleep(20000);
        increment(scratch, session.stream);
        MUST(cuMemGetInfo(&after, &all));
    }
    report_number("not given back, KiB", (long long)(before - after) >> 10, 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"limit-up-and-down", limit_up_and_down}, {"twin-modules", twin_modules},       {"read-waits", read_waits},
    {"memset-waits", memset_waits},           {"context-between", context_between}, {"back-and-forth", back_and_forth},
};

int main(int argc, char **argv)
{
    open_all();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (argc > 1 && !strcmp(cases[i].name, argv[1])) {
            cases[i].run();
            MUST(cuCtxSynchronize());
            printf("history: %lld\n", sum_ints(&linked, history, 4096));
            return program_wrong;
        }
    printf("no such case\n");
    return 3;
}
