/* LINK: -lcuda */
/* Contexts that come and go, each with a stream of its own and work in the default one. With an argument, two contexts
 * of one thread, as of a process that drives two GPUs: a collective kernel in the first one waits for its partner in
 * the second. Arguments: `partner`, or `launch` for one of another kernel before the partner; `beside`: one thread
 * launches while another one makes contexts and destroys them; `turns`: two contexts of a device launch in turns;
 * `unended`: the second one launches while a kernel of the first one waits, and once more when that has ended; `across`
 * KERNEL: kernels of the second one wait for those of a third one; `green` KERNEL: the same of green contexts. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "linked.h"

enum { N = 64, ROUNDS = 6, BEFORE = 5 };

static void launch(CUfunction f, CUstream stream, CUdeviceptr data)
{
    MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, stream, (void *[]){&data, &(int){N}}, NULL));
}

static void use_context(const struct session *s, int round)
{
    static const int zeros[N];
    CUfunction f = get_function(&linked, s, "increment"), g = get_function(&linked, s, "_Z9incrementPii");
    CUdeviceptr a = device_ints(&linked, zeros, N), b = device_ints(&linked, zeros, N);

    for (int i = 0; i <= round; i++) {
        launch(f, s->stream, a);
        launch(g, i % 2 ? s->stream : NULL, b);
        launch(f, s->stream, a);
    }
    MUST(cuCtxSynchronize());
    report_number("first", sum_ints(&linked, a, N), 2 * (round + 1) * N);
    report_number("second", sum_ints(&linked, b, N), (round + 1) * N);
}

static void launch_partner(const struct session *s, const char *kernel, CUdeviceptr flag, void *last)
{
    MUST(cuLaunchKernel(get_function(&linked, s, kernel), 1, 1, 1, 1, 1, 1, 0, s->stream, (void *[]){&flag, last},
                        NULL));
}

static void open_second(const struct session *first, struct session *s)
{
    s->device = first->device;
    MUST(cuCtxCreate(&s->ctx, NULL, 0, s->device));
    MUST(cuModuleLoadData(&s->module, "FAKEMOD increment ncclDevKernel_set"));
    MUST(cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
}

/* Two contexts: a kernel in the first one waits for one in the second. */
struct partners {
    struct session of_collectives, second;
    CUdeviceptr a, b, flag, sum;
};

/* Leaves the first context current. */
static struct partners open_partners(const struct session *first)
{
    static const int zeros[N];
    struct partners p = {.of_collectives = *first,
                         .a = device_ints(&linked, zeros, N),
                         .flag = device_ints(&linked, zeros, 1),
                         .sum = device_ints(&linked, zeros, 1)};
    MUST(cuModuleLoadData(&p.of_collectives.module, "FAKEMOD ncclDevKernel_wait"));
    MUST(cuStreamCreate(&p.of_collectives.stream, CU_STREAM_NON_BLOCKING));
    open_second(first, &p.second);
    p.b = device_ints(&linked, zeros, N);
    MUST(cuCtxSetCurrent(first->ctx));
    return p;
}

static void wait_for_partner(const struct session *first, bool launches)
{
    struct partners p = open_partners(first);
    for (int i = 0; i < BEFORE; i++)
        launch(get_function(&linked, first, "increment"), first->stream, p.a);
    launch_partner(&p.of_collectives, "ncclDevKernel_wait", p.flag, &p.sum);
    MUST(cuCtxSetCurrent(p.second.ctx));
    if (launches)
        launch(get_function(&linked, &p.second, "increment"), p.second.stream, p.b);
    launch_partner(&p.second, "ncclDevKernel_set", p.flag, &(int){3});
    MUST(cuCtxSynchronize());
    report_number("in the second context", sum_ints(&linked, p.b, N), launches ? N : 0);
    MUST(cuCtxSetCurrent(first->ctx));
    MUST(cuCtxSynchronize());
    report_number("in the first one", sum_ints(&linked, p.a, N), BEFORE * N);
    report_number("waited for", sum_ints(&linked, p.sum, 1), 3);
}

static atomic_int destroyers;
static atomic_llong launches;

static void *destroy_contexts(void *device)
{
    enum { CONTEXTS = 20 };
    CUcontext ctx;

    for (int i = 0; i < CONTEXTS; i++) {
        while (atomic_load(&launches) < 2 * i)
            sched_yield();
        MUST(cuCtxCreate(&ctx, NULL, 0, *(CUdevice *)device));
        MUST(cuCtxDestroy(ctx));
    }
    atomic_fetch_sub(&destroyers, 1);
    return NULL;
}

static void launch_beside(struct session *s)
{
    enum { DESTROYERS = 16 };
    CUfunction f = get_function(&linked, s, "increment"), g = get_function(&linked, s, "_Z9incrementPii");
    CUdeviceptr a = device_ints(&linked, (const int[N]){0}, N);
    pthread_t threads[DESTROYERS];

    atomic_store(&destroyers, DESTROYERS);
    for (int i = 0; i < DESTROYERS; i++)
        if (pthread_create(&threads[i], NULL, destroy_contexts, &s->device))
            exit(2);
    while (atomic_load(&destroyers))
        launch(atomic_fetch_add(&launches, 1) % 2 ? f : g, s->stream, a);
    for (int i = 0; i < DESTROYERS; i++)
        pthread_join(threads[i], NULL);
    report("each launch once", sum_ints(&linked, a, N) == atomic_load(&launches) * N);
}

static void take_turns(const struct session *first)
{
    struct session of[2] = {*first, *first};
    CUdeviceptr data[2];

    open_second(first, &of[1]);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 2; i++) {
            MUST(cuCtxSetCurrent(of[i].ctx));
            if (!round)
                data[i] = device_ints(&linked, (const int[N]){0}, N);
            for (int k = 0; k <= round; k++)
                launch(get_function(&linked, &of[i], "increment"), of[i].stream, data[i]);
            report_number(i ? "second" : "first", sum_ints(&linked, data[i], N), (round + 1) * (round + 2) / 2 * N);
        }
}

static void launch_one_by_one(const struct session *s, CUdeviceptr data, int n)
{
    for (int i = 0; i < n; i++) {
        launch(get_function(&linked, s, "increment"), s->stream, data);
        MUST(cuStreamSynchronize(s->stream));
    }
}

static void leave_unended(const struct session *first)
{
    struct partners p = open_partners(first);
    launch_one_by_one(first, p.a, 1);
    launch_partner(&p.of_collectives, "ncclDevKernel_wait", p.flag, &p.sum);
    MUST(cuCtxSetCurrent(p.second.ctx));
    launch_one_by_one(&p.second, p.b, ROUNDS);
    launch_partner(&p.second, "ncclDevKernel_set", p.flag, &(int){3});
    MUST(cuCtxSetCurrent(first->ctx));
    MUST(cuCtxSynchronize());
    usleep(300000); /* others who wait for it see it end, too */
    MUST(cuCtxSetCurrent(p.second.ctx));
    launch_one_by_one(&p.second, p.b, 1);
    report_number("first", sum_ints(&linked, p.a, N), N);
    report_number("second", sum_ints(&linked, p.b, N), (ROUNDS + 1) * N);
    report_number("waited for", sum_ints(&linked, p.sum, 1), 3);
}

/* A context's own stream and kernels. */
struct part {
    CUcontext ctx;
    CUgreenCtx green; /* NULL: it is none */
    CUstream stream;
    CUfunction wait, set, increment;
};

static struct part make_part(CUdevice device, CUdevResourceDesc of, const char *wait)
{
    struct part p = {.green = NULL};
    CUmodule module;

    if (of) {
        MUST(cuGreenCtxCreate(&p.green, of, device, CU_GREEN_CTX_DEFAULT_STREAM));
        MUST(cuCtxFromGreenCtx(&p.ctx, p.green));
        MUST(cuGreenCtxStreamCreate(&p.stream, p.green, CU_STREAM_NON_BLOCKING, 0));
        MUST(cuCtxPushCurrent(p.ctx));
    } else {
        MUST(cuCtxCreate(&p.ctx, NULL, 0, device));
        MUST(cuStreamCreate(&p.stream, CU_STREAM_NON_BLOCKING));
    }
    MUST(cuModuleLoadData(&module, "FAKEMOD increment gate pause set_flag"));
    MUST(cuModuleGetFunction(&p.set, module, "set_flag"));
    MUST(cuModuleGetFunction(&p.increment, module, "increment"));
    MUST(cuModuleGetFunction(&p.wait, module, wait));
    MUST(cuCtxPopCurrent(NULL));
    return p;
}

static void split(CUdevice device, CUdevResourceDesc of[2])
{
    CUdevResource all, part, rest;
    unsigned int n = 1;

    MUST(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    MUST(cuDevSmResourceSplitByCount(&part, &n, &all, &rest, 0, all.sm.smCount / 2));
    MUST(cuDevResourceGenerateDesc(&of[0], &part, 1));
    MUST(cuDevResourceGenerateDesc(&of[1], &rest, 1));
}

static void set_flag(const struct part *p, CUdeviceptr flag, int value)
{
    MUST(cuLaunchKernel(p->set, 1, 1, 1, 1, 1, 1, 0, p->stream, (void *[]){&flag, &value}, NULL));
}

/* In each turn a kernel of one context waits for one of the other, with work behind it, and the first context has work
 * of its own. */
static void wait_across(const struct session *first, bool green, const char *kernel)
{
    enum { TURNS = 8, LIMIT_MS = 5000 };
    static const int zeros[N];
    CUdevResourceDesc of[2] = {NULL, NULL};
    CUdeviceptr a = device_ints(&linked, zeros, N), b = device_ints(&linked, zeros, N),
                flag = device_ints(&linked, zeros, 1), passed = device_ints(&linked, zeros, 2);
    CUfunction increment = get_function(&linked, first, "increment");
    struct part p[2];
    int host[2];

    if (green)
        split(first->device, of);
    for (int i = 0; i < 2; i++)
        p[i] = make_part(first->device, of[i], kernel);
    for (int turn = 0; turn < TURNS; turn++) {
        MUST(cuCtxSetCurrent(p[0].ctx));
        MUST(cuLaunchKernel(p[0].wait, 1, 1, 1, 1, 1, 1, 0, p[0].stream, (void *[]){&flag, &passed, &(int){LIMIT_MS}},
                            NULL));
        launch(p[0].increment, p[0].stream, a);
        MUST(cuCtxSetCurrent(p[1].ctx));
        set_flag(&p[1], flag, 1);
        MUST(cuCtxSetCurrent(p[0].ctx));
        MUST(cuStreamSynchronize(p[0].stream));
        set_flag(&p[0], flag, 0);
        MUST(cuStreamSynchronize(p[0].stream));
        MUST(cuCtxSetCurrent(first->ctx));
        launch(increment, first->stream, b);
        MUST(cuCtxSynchronize());
    }
    MUST(cuMemcpyDtoH(host, passed, sizeof(host)));
    report_number("behind the waits", sum_ints(&linked, a, N), TURNS * N);
    report_number("of the first context", sum_ints(&linked, b, N), TURNS * N);
    report_number("waits", host[0], TURNS);
    report_number("waits that ran into their limit", host[1], 0);
}

int main(int argc, char **argv)
{
    struct session s;

    open_session(&linked, &s, 0);
    if (argc > 1 && !strcmp(argv[1], "turns")) {
        take_turns(&s);
        return program_wrong;
    }
    if (argc > 1 && !strcmp(argv[1], "unended")) {
        leave_unended(&s);
        return program_wrong;
    }
    if (argc > 2) {
        wait_across(&s, !strcmp(argv[1], "green"), argv[2]);
        return program_wrong;
    }
    if (argc > 1 && !strcmp(argv[1], "beside")) {
        launch_beside(&s);
        return program_wrong;
    }
    if (argc > 1) {
        wait_for_partner(&s, !strcmp(argv[1], "launch"));
        return program_wrong;
    }
    for (int round = 0; round < ROUNDS; round++) {
        MUST(cuCtxCreate(&s.ctx, NULL, 0, s.device));
        MUST(cuModuleLoadData(&s.module, ALL_KERNELS));
        MUST(cuStreamCreate(&s.stream, CU_STREAM_NON_BLOCKING));
        use_context(&s, round);
        MUST(cuCtxDestroy(s.ctx));
    }
    return program_wrong;
}
