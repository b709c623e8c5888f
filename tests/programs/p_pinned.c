/* LINK: -lcuda -lpthread */
/* Kernels that work in place on pinned memory, which the host changes in between. */
#include <pthread.h>

#include "linked.h"

enum { N = 32, ROUNDS = 6 };

static struct session session;

static void launch(CUdeviceptr values)
{
    CUfunction f = get_function(&linked, &session, "increment");
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, session.stream, params, NULL));
}

/* Large memory stands for itself, small memory shares a piece with others. */
static void in_place(size_t bytes, unsigned flags, int by_old_name)
{
    int *host, expected = 0, right = 1;

    if (by_old_name)
        MUST(cuMemAllocHost((void **)&host, bytes));
    else
        MUST(cuMemHostAlloc((void **)&host, bytes, flags));
    for (size_t i = 0; i < bytes / sizeof(*host); i++)
        right &= !host[i];
    report("fresh memory is zero", right);
    for (int k = 0; k < ROUNDS; k++) {
        launch((CUdeviceptr)(uintptr_t)host);
        expected++;
        if (k % 2)
            continue;
        MUST(cuStreamSynchronize(session.stream));
        for (int i = 0; i < N; i++)
            host[i] = host[i] * 10;
        expected *= 10;
    }
    MUST(cuStreamSynchronize(session.stream));
    report_number("in place", host[N - 1], expected);
    MUST(cuMemFreeHost(host));
}

/* Memory that no kernel touches: a thread fills it while launches go on, and what it holds is then copied to the
 * device. */
static volatile int *loaded;
static volatile int stop;

static void *load(void *arg)
{
    for (int i = 1; !stop; i++) {
        for (int k = 1; k < N; k++)
            loaded[k] = i;
        usleep(100);
        for (int k = 1; k < N; k++)
            if (loaded[k] != i)
                return arg;
    }
    return NULL;
}

static void untouched(void)
{
    CUdeviceptr values = device_ints(&linked, (int[N]){0}, N), copy = device_ints(&linked, (int[N]){0}, N);
    pthread_t thread;
    void *overwritten = NULL;
    int expected = 0;

    MUST(cuMemHostAlloc((void **)&loaded, 4096, 0));
    pthread_create(&thread, NULL, load, &session);
    for (int i = 0; i < 40; i++) {
        launch(values);
        loaded[0] = i;
        MUST(cuMemcpyHtoDAsync(copy, (const void *)loaded, sizeof(int), session.stream));
        MUST(cuStreamSynchronize(session.stream));
        loaded[0] = -1;
        launch(copy);
        if (i % 10 == 9)
            expected += sum_ints(&linked, copy, 1) == i + 1;
    }
    stop = 1;
    pthread_join(thread, &overwritten);
    report_number("copied from pinned memory", expected, 4);
    report("filled by a thread", !overwritten);
    report_number("untouched", loaded[0], -1);
    report_number("launches", sum_ints(&linked, values, N), 40 * N);
    MUST(cuMemFreeHost((void *)loaded));
}

/* What the driver tells of an address that is none of the program's memory. */
static void unknown(const char *where, char *at)
{
    CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)at, base, device = 0;
    unsigned type = 7, flags;
    size_t size = 7;

    printf("%s: %d %d %d %d\n", where, (int)cuMemGetAddressRange(&base, &size, p),
           (int)cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), (int)cuMemHostGetFlags(&flags, at),
           (int)cuMemHostGetDevicePointer(&device, at, 0));
    printf("%s, still: %u %zu\n", where, type, size);
    printf("%s, among attributes: %d", where, (int)cuPointerGetAttributes(2, what, (void *[]){&type, &size}, p));
    printf(" %u %zu\n", type, size);
}

/* What the driver tells of an address within the memory. */
static void described(size_t bytes, unsigned flags)
{
    CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
    CUdeviceptr base = 0, start = 0, start_too = 0;
    size_t size = 0, range = 0, range_too = 0;
    void *data[] = {&range_too, &start_too};
    unsigned told = ~0u;
    char *host, *beside;

    MUST(cuMemHostAlloc((void **)&beside, bytes, 0));
    MUST(cuMemHostAlloc((void **)&host, bytes, flags));
    CUdeviceptr inside = (CUdeviceptr)(uintptr_t)host + bytes / 2, at = (CUdeviceptr)(uintptr_t)host;
    MUST(cuMemGetAddressRange(&base, &size, inside));
    MUST(cuPointerGetAttribute(&range, what[0], inside));
    MUST(cuPointerGetAttribute(&start, what[1], inside));
    MUST(cuPointerGetAttributes(2, what, data, inside));
    MUST(cuMemHostGetFlags(&told, host));
    report_number("size", (long long)size, (long long)bytes);
    report_number("size, as an attribute", (long long)range, (long long)bytes);
    report_number("size, among attributes", (long long)range_too, (long long)bytes);
    report("begin", base == at && start == at && start_too == at);
    report_number("flags", told, (flags & CU_MEMHOSTALLOC_WRITECOMBINED) | CU_MEMHOSTALLOC_DEVICEMAP);
    if (bytes % 4096)
        unknown("behind the end", host + bytes);
    MUST(cuMemFreeHost(host));
    unknown("freed", host);
    unknown("freed, within", host + bytes / 2);
    MUST(cuMemFreeHost(beside));
}

int main(void)
{
    open_session(&linked, &session, 0);
    in_place(4096, 0, 0);
    in_place(5 << 20, CU_MEMHOSTALLOC_DEVICEMAP, 0);
    in_place(200, CU_MEMHOSTALLOC_PORTABLE, 0);
    in_place(64 << 10, 0, 1);
    untouched();
    described(3000, CU_MEMHOSTALLOC_PORTABLE);
    described((5 << 20) - 3000, 0);
    described(3 << 20, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED);
    return program_wrong;
}
