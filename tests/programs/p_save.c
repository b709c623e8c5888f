/* LINK: -lcuda */
/* Memory that a save must know of, and memory that a program needs for itself. Argument: the case; without one, all
 * that need no device of a certain size. */
#include "linked.h"

enum { N = 64, ROUNDS = 4 };

static struct session session;
static CUdeviceptr values;

static const char image[] =
    "FAKEMOD increment add_constant atomic_count const:five:4 global:counter:4 global:large:200000";

static void launch(const char *kernel, int threads, void **params)
{
    MUST(cuLaunchKernel(get_function(&linked, &session, kernel), 1, 1, 1, threads, 1, 1, 0, session.stream, params,
                        NULL));
}

static void increment(CUdeviceptr data, int n)
{
    launch("increment", n, (void *[]){&data, &n});
}

static void open_all(void)
{
    static const int zeros[N];

    open_session(&linked, &session, 0);
    MUST(cuModuleUnload(session.module));
    MUST(cuModuleLoadData(&session.module, image));
    values = device_ints(&linked, zeros, N);
}

/* Returns what the device has left, MB. */
static long long left(void)
{
    size_t bytes, total;

    MUST(cuMemGetInfo(&bytes, &total));
    return (long long)(bytes >> 20);
}

static CUdeviceptr variable(const char *name)
{
    CUdeviceptr at;
    size_t bytes;

    MUST(cuModuleGetGlobal(&at, &bytes, session.module, name));
    return at;
}

/* Variables that kernels change, one of them in its last bytes, and a constant that a copy sets. */
static void variables(void)
{
    enum { LARGE = 200000 / sizeof(int) };
    CUdeviceptr counter = variable("counter"), large = variable("large"), five = variable("five");
    int expected = 0, one = 1, wrong = 0;
    static int host[LARGE];

    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemcpyHtoD(five, &i, sizeof(i)));
        launch("add_constant", N, (void *[]){&values, &(int){N}});
        launch("atomic_count", N, (void *[]){&counter});
        increment(large + (LARGE - N) * sizeof(int), N);
        increment(five, one);
        launch("add_constant", N, (void *[]){&values, &(int){N}});
        expected += i + i + 1;
    }
    MUST(cuStreamSynchronize(session.stream));
    report_number("values", sum_ints(&linked, values, N), expected * N);
    report_number("counter", sum_ints(&linked, counter, 1), ROUNDS * N);
    MUST(cuMemcpyDtoH(host, large, sizeof(host)));
    for (int i = 0; i < LARGE; i++)
        wrong += host[i] != (i < LARGE - N ? 0 : ROUNDS);
    report_number("large: wrong", wrong, 0);
}

/* Kinds of memory beside each other; a kernel changes the first and the last number of each. */
static void kinds(void)
{
    enum { BYTES = 3 << 20, MAPPED = 4 << 20, LAST = BYTES / sizeof(int) - 1 };
    const CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    const CUmemAccessDesc access = {.location = what.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr at[3];

    MUST(cuMemAlloc(&at[0], BYTES));
    MUST(cuMemAllocAsync(&at[1], BYTES, session.stream));
    MUST(cuMemCreate(&memory, MAPPED, &what, 0));
    MUST(cuMemAddressReserve(&at[2], MAPPED, 0, 0, 0));
    MUST(cuMemMap(at[2], MAPPED, 0, memory, 0));
    MUST(cuMemSetAccess(at[2], MAPPED, &access, 1));
    for (int i = 0; i < 3; i++)
        MUST(cuMemsetD8(at[i], 0, BYTES));
    MUST(cuCtxSynchronize());
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 3; i++) {
            increment(at[i], 1);
            increment(at[i] + LAST * sizeof(int), 1);
        }
    MUST(cuStreamSynchronize(session.stream));
    for (int i = 0; i < 3; i++) {
        report_number("first", sum_ints(&linked, at[i], 1), ROUNDS);
        report_number("last", sum_ints(&linked, at[i] + LAST * sizeof(int), 1), ROUNDS);
        report_number("all", sum_ints(&linked, at[i], LAST + 1), 2 * ROUNDS);
    }
    MUST(cuMemFree(at[0]));
    MUST(cuMemFreeAsync(at[1], session.stream));
    MUST(cuMemUnmap(at[2], MAPPED));
    MUST(cuMemAddressFree(at[2], MAPPED));
    MUST(cuMemRelease(memory));
}

/* An allocation that cannot be listed. */
static void managed(void)
{
    CUdeviceptr at;

    MUST(cuMemAllocManaged(&at, N * sizeof(int), CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemsetD8(at, 0, N * sizeof(int)));
    MUST(cuCtxSynchronize());
    increment(at, N);
    increment(values, N);
    MUST(cuStreamSynchronize(session.stream));
    report_number("managed", sum_ints(&linked, at, N), N);
    MUST(cuMemFree(at));
}

/* What the device has left is what the program left it. Then all of it, which a profiler has to give. */
static void whole_device(void)
{
    enum { STEP = 256 << 20, MOST = 64, KEPT_MB = 1 };
    CUdeviceptr at[MOST], more;
    int n = 0;

    printf("left before: %lld MB\n", left());
    increment(values, N);
    MUST(cuStreamSynchronize(session.stream));
    report_number("values", sum_ints(&linked, values, N), N);
    printf("left behind a launch: %lld MB\n", left());
    while (n < MOST && left() > (STEP >> 20) && cuMemAlloc(&at[n], STEP) == CUDA_SUCCESS)
        n++;
    printf("allocations: %d, left: %lld MB\n", n, left());
    MUST(cuMemAlloc(&more, (size_t)(left() - KEPT_MB) << 20));
    printf("left at last: %lld MB\n", left());
    for (int i = 0; i < ROUNDS; i++) {
        increment(more, N);
        increment(at[n - 1] + STEP - N * sizeof(int), N);
    }
    MUST(cuStreamSynchronize(session.stream));
    increment(values, N);
    report_number("values", sum_ints(&linked, values, N), 2 * N);
    printf("too much: error %d\n", (int)cuMemAlloc(&more, STEP));
    printf("left: %lld MB\n", left());
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"variables", variables}, {"kinds", kinds}, {"managed", managed}, {"whole-device", whole_device}};
    enum { CASES = sizeof(cases) / sizeof(*cases) };

    open_all();
    for (int i = 0; i < CASES; i++)
        if (argc > 1 ? !strcmp(argv[1], cases[i].name) : cases[i].run != whole_device)
            cases[i].run();
    return program_wrong;
}
