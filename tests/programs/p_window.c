/* LINK: -lcuda -lpthread */
/* What happens between launches that share a window. Arguments: the case, and a number where the case takes one. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "linked.h"

enum { N = 64 };

static struct session session;
static CUstream second;
static CUdeviceptr values, history, cursor, scratch;
static int appended, count;

static const char image[] =
    "FAKEMOD increment append axpy_inplace wait_flag set_flag late_increment print_line fail "
    "varies gather "
    "texture_add surface_step ncclDevKernel_increment _ZN5tests9incrementIiLi4EEEvPT_i global:g_window:64";

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
    history = device_ints(&linked, zeros, 4096);
    cursor = device_ints(&linked, zeros, 1);
    scratch = device_ints(&linked, zeros, N);
}

static CUresult increment_as(const char *kernel, CUdeviceptr data, CUstream stream)
{
    int n = N;
    void *params[] = {&data, &n};

    return cuLaunchKernel(function(kernel), 1, 1, 1, N, 1, 1, 0, stream, params, NULL);
}

static void increment(CUdeviceptr data, CUstream stream)
{
    MUST(increment_as("increment", data, stream));
}

/* Two entries: each depends on all before it. */
static void append(int tag)
{
    int capacity = 4096;
    void *params[] = {&history, &cursor, &capacity, &tag};

    MUST(cuLaunchKernel(function("append"), 2, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
    appended += 2;
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

static void finish_streams(void)
{
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuStreamSynchronize(second));
}

/* Everything that a launch left out or repeated would change. */
static void show(const char *when)
{
    int *host = malloc(4096 * sizeof(int));

    finish_streams();
    printf("%s\n", when);
    printf("  values: %lld\n", sum_ints(&linked, values, N));
    printf("  scratch: %lld\n", sum_ints(&linked, scratch, N));
    MUST(cuMemcpyDtoH(host, history, 4096 * sizeof(int)));
    printf("  last entry: %d\n", appended ? host[appended - 1] : 0);
    report_number("  entries", sum_ints(&linked, cursor, 1), appended);
    free(host);
}

/* ---- what leaves a window open ---- */

static void many(void)
{
    for (int i = 0; i < count; i++)
        append(i);
}

static void many_synchronised(void)
{
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < count; i++) {
        append(i);
        if (i % 3 == 0)
            MUST(cuStreamSynchronize(session.stream));
        else if (i % 3 == 1)
            MUST(cuCtxSynchronize());
        else
            while (cuStreamQuery(session.stream) == CUDA_ERROR_NOT_READY)
                ;
        MUST(cuEventQuery(event));
    }
}

static void memsets(void)
{
    for (int i = 0; i < 5; i++) {
        increment(scratch, session.stream);
        MUST(cuMemsetD32Async(scratch, i, N / 2, session.stream));
        increment(scratch, session.stream);
        MUST(cuMemsetD8Async(scratch, 1, 4, session.stream));
        MUST(cuMemsetD32(scratch + 8, 7, 1));
    }
}

static void copies_in(void)
{
    int pageable[N], *pinned, *large = malloc(1 << 20);

    MUST(cuMemHostAlloc((void **)&pinned, sizeof(pageable), 0));
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < N; k++)
            pageable[k] = pinned[k] = 10 * i + k;
        MUST(cuMemcpyHtoDAsync(scratch, pageable, sizeof(pageable), session.stream));
        memset(pageable, -1, sizeof(pageable));
        increment(scratch, session.stream);
        MUST(cuMemcpyHtoD(scratch, pageable, 4));
        MUST(cuMemcpyHtoDAsync(scratch + 8, pinned, 100, session.stream));
        MUST(cuStreamSynchronize(session.stream));
        memset(pinned, -1, sizeof(pageable));
        increment(scratch, session.stream);
        append(i);
    }
    show("copied in");
    MUST(cuMemFreeHost(pinned));
    free(large);
}

static void copies_within(void)
{
    for (int i = 0; i < 5; i++) {
        increment(values, session.stream);
        MUST(cuMemcpyDtoDAsync(scratch, values, 4 * N / 2, session.stream));
        increment(scratch, session.stream);
        MUST(cuMemcpyDtoD(values, scratch + 4, 4));
        MUST(cuMemcpyAsync(values + 16, scratch + 4, 4, session.stream));
    }
}

/* Copies and memsets to host memory, which shows their results without a driver call. */
static void copies_out(void)
{
    int *pinned, pageable[4] = {0}, right = 1;
    CUdeviceptr p;

    MUST(cuMemHostAlloc((void **)&pinned, 4096, 0));
    p = (CUdeviceptr)(uintptr_t)pinned;
    for (int i = 1; i < 5; i++) {
        increment(values, session.stream);
        MUST(cuMemcpyDtoDAsync(p, values, 16, session.stream));
        increment(values, session.stream);
        MUST(cuMemcpyAsync(p + 16, values, 16, session.stream));
        MUST(cuMemsetD32Async(p + 32, i, 4, session.stream));
        MUST(cuStreamSynchronize(session.stream));
        MUST(cuMemcpy((CUdeviceptr)(uintptr_t)pageable, values, 16));
        right &= pinned[0] == 2 * i - 1 && pinned[4] == 2 * i && pinned[8] == i && pageable[3] == 2 * i;
        memset(pinned, 0, 64);
        append(i);
        append(i);
        right &= !pinned[0] && !pinned[4] && !pinned[8];
    }
    show("copied out");
    report("copied out", right);
    MUST(cuMemFreeHost(pinned));
}

/* Memory that is allocated between launches. What its first half contains before they write it is nobody's, but has to
 * be the same each time that they are made. */
static void allocates(void)
{
    CUdeviceptr fresh[4];

    for (int i = 0; i < 4; i++) {
        CUdeviceptr half;

        append(i);
        MUST(cuMemAlloc(&fresh[i], 2 * N * sizeof(int)));
        half = fresh[i] + N * sizeof(int);
        increment(fresh[i], session.stream);
        MUST(cuMemsetD32Async(half, i, N, session.stream));
        increment(half, session.stream);
    }
    for (int i = 0; i < 4; i++)
        report_number("in new memory", sum_ints(&linked, fresh[i] + N * sizeof(int), N), N * (i + 1));
}

/* Memory that is allocated while another stream has work for a while. */
static void allocates_beside(void)
{
    CUdeviceptr fresh;
    int n = N, ms = 1500;
    void *params[] = {&scratch, &n, &ms};

    append(0);
    MUST(cuLaunchKernel(function("late_increment"), 1, 1, 1, N, 1, 1, 0, second, params, NULL));
    MUST(cuMemAlloc(&fresh, N * sizeof(int)));
    increment(fresh, session.stream);
    finish_streams();
}

/* Memory that nobody has written, of many sizes, after a window with new memory and a new module. */
static void fresh(void)
{
    enum { SIZES = 12, SMALLEST = 512 };
    static unsigned char bytes[SMALLEST << SIZES];
    CUdeviceptr new, variable, made[SIZES];
    size_t size;
    CUmodule module;
    CUfunction f;
    int written = 0, n = N;
    void *params[] = {&values, &n};

    MUST(cuModuleLoadData(&module, "FAKEMOD increment global:g_more:4096"));
    MUST(cuModuleGetFunction(&f, module, "increment"));
    MUST(cuModuleGetGlobal(&variable, &size, module, "g_more"));
    MUST(cuMemsetD8Async(variable, 0x5a, size, session.stream));
    append(0);
    MUST(cuMemAlloc(&new, N * sizeof(int)));
    MUST(cuMemsetD8Async(new, 0x5a, N * sizeof(int), session.stream));
    increment(new, session.stream);
    MUST(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
    finish_streams();
    for (int i = 0; i < SIZES; i++) {
        MUST(cuMemAlloc(&made[i], SMALLEST << i));
        MUST(cuMemcpyDtoH(bytes, made[i], SMALLEST << i));
        for (int k = 0; k < SMALLEST << i; k++)
            written += bytes[k] != 0;
    }
    report_number("in memory that nobody has written", written, 0);
}

/* ---- virtual memory ---- */

enum { GRANULE = 2 << 20 };

static CUmemGenericAllocationHandle create(CUresult *rc, size_t bytes)
{
    const CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle memory = 0;

    *rc = cuMemCreate(&memory, bytes, &what, 0);
    return memory;
}

static CUmemGenericAllocationHandle granule(void)
{
    CUresult rc;
    CUmemGenericAllocationHandle memory = create(&rc, GRANULE);

    MUST(rc);
    return memory;
}

static CUdeviceptr reserve(size_t bytes)
{
    CUdeviceptr at;

    MUST(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    return at;
}

static CUresult give_access(CUdeviceptr at, size_t bytes, CUmemAccess_flags flags)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};

    return cuMemSetAccess(at, bytes, &access, 1);
}

static CUdeviceptr map_at(CUdeviceptr at, CUmemGenericAllocationHandle memory)
{
    MUST(cuMemMap(at, GRANULE, 0, memory, 0));
    MUST(give_access(at, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    return at;
}

/* A segment that grows as PyTorch's do: addresses for all of it, and memory behind them as it is needed. What the new
 * memory contains is to be the same each time that the launches are made; that of the driver is 0 here. */
static void maps(void)
{
    enum { PIECES = 6 };
    CUmemGenericAllocationHandle memory[PIECES];
    CUdeviceptr at = reserve(PIECES * GRANULE), other;

    append(0);
    MUST(cuMemAddressReserve(&other, GRANULE, 0, 0, 0));
    for (int i = 0; i < PIECES; i++) {
        CUdeviceptr here = at + i * GRANULE;

        memory[i] = granule();
        MUST(cuMemMap(here, GRANULE, 0, memory[i], 0));
        append(i);
        if (i == 2) /* with the next one */
            continue;
        MUST(give_access(i == 3 ? here - GRANULE : here, i == 3 ? 2 * GRANULE : GRANULE,
                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        if (i % 2)
            MUST(cuMemRelease(memory[i])); /* lives on while it is mapped */
        increment(here, session.stream);
        MUST(cuMemcpyDtoDAsync(values, here, N * sizeof(int), session.stream));
        increment(values, second);
        append(i);
    }
    MUST(cuMemAddressFree(other, GRANULE));
    increment(at + 2 * GRANULE, session.stream);
    finish_streams();
    for (int i = 0; i < PIECES; i++)
        report_number("in mapped memory", sum_ints(&linked, at + i * GRANULE, N), N);
    MUST(cuMemUnmap(at, PIECES * GRANULE));
    for (int i = 0; i < PIECES; i += 2)
        MUST(cuMemRelease(memory[i]));
    MUST(cuMemAddressFree(at, PIECES * GRANULE));
}

/* Maps that a window cannot see through. */
static void map_by(const char *what)
{
    CUdeviceptr at = reserve(4 * GRANULE), there = at + GRANULE;
    CUmemGenericAllocationHandle memory = granule(), unused = granule();

    if (!strcmp(what, "again")) { /* the memory has contents of another place */
        map_at(at, memory);
        MUST(cuMemsetD8(at, 3, GRANULE));
        MUST(cuCtxSynchronize());
        MUST(cuMemUnmap(at, GRANULE));
    } else if (!strcmp(what, "twice")) {
        map_at(at, memory);
        MUST(cuMemsetD8(at, 3, GRANULE));
    } else if (!strcmp(what, "before")) { /* no access yet */
        MUST(cuMemMap(at, GRANULE, 0, memory, 0));
    }
    increment(values, session.stream);
    append(1);
    if (!strcmp(what, "again") || !strcmp(what, "twice")) {
        map_at(there, memory);
    } else if (!strcmp(what, "before")) {
        MUST(give_access(at, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        there = at;
    } else if (!strcmp(what, "refused")) { /* the second map has no addresses, the first access no such device */
        const CUmemAccessDesc nowhere = {{CU_MEM_LOCATION_TYPE_DEVICE, 7}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

        report("no addresses", cuMemMap(values, GRANULE, 0, memory, 0) == CUDA_ERROR_INVALID_VALUE);
        append(2);
        MUST(cuMemMap(there, GRANULE, 0, memory, 0));
        append(3);
        report("no device", cuMemSetAccess(there, GRANULE, &nowhere, 1) == CUDA_ERROR_INVALID_DEVICE);
        append(4);
        MUST(give_access(there, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    } else if (!strcmp(what, "rights")) { /* taken and given again */
        map_at(there, memory);
        append(2);
        MUST(give_access(there, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_NONE));
        append(3);
        MUST(give_access(there, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    } else if (!strcmp(what, "unmapped")) { /* other memory at the same address */
        map_at(there, memory);
        increment(there, session.stream);
        MUST(cuStreamSynchronize(session.stream));
        MUST(cuMemUnmap(there, GRANULE));
        append(2);
        map_at(there, unused);
        unused = memory;
    } else if (!strcmp(what, "captured")) { /* a capture that an allocation would break */
        CUgraph graph;

        MUST(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_GLOBAL));
        increment(values, second);
        increment(scratch, session.stream);
        map_at(there, memory);
        increment(there, session.stream);
        MUST(cuStreamEndCapture(second, &graph));
        MUST(cuMemsetD32Async(there, 0, N, session.stream));
    } else if (!strcmp(what, "unused")) { /* its memory goes, and is there for others */
        MUST(cuMemRelease(granule()));
        map_at(there, memory);
    } else {
        printf("no such map: %s\n", what);
        exit(3);
    }
    increment(there, session.stream);
    increment(values, second);
    append(5);
    finish_streams();
    report_number("in mapped memory", sum_ints(&linked, there, N) % 1000,
                  (!strcmp(what, "again") || !strcmp(what, "twice") ? (0x03030303 + 1) * (long)N : N) % 1000);
    MUST(cuMemRelease(unused));
}

/* What is no allocation, or is not to be freed now: the driver's own answers, with a window open. */
static void frees_refused(const char *what)
{
    CUdeviceptr at = 0, base;
    CUmemGenericAllocationHandle memory = 0;
    CUgraph graph = NULL;
    CUresult later = CUDA_SUCCESS;
    size_t bytes;
    void *host;

    if (!strcmp(what, "mapped")) {
        memory = granule();
        at = map_at(reserve(GRANULE), memory);
    } else if (!strcmp(what, "pinned")) {
        MUST(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
        at = (CUdeviceptr)(uintptr_t)host;
    } else { /* while a stream is captured */
        MUST(cuMemAlloc(&at, 4096));
        MUST(cuMemsetD8(at, 0, 4096));
    }
    increment(values, session.stream);
    append(1);
    if (!strcmp(what, "captured-later")) { /* of memory that no graph has */
        MUST(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
        increment(scratch, session.stream);
        later = cuMemFreeAsync(at, second);
        printf("freed later: %d, capture %d\n", (int)later, (int)cuStreamEndCapture(second, &graph));
    } else if (!strcmp(what, "captured")) {
        MUST(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_GLOBAL));
        increment(scratch, session.stream);
        printf("freed: %d", (int)cuMemFree(at));
        printf(", capture %d\n", (int)cuStreamEndCapture(second, &graph));
    } else {
        printf("freed: %d\n", (int)cuMemFree(at));
        printf("freed later: %d\n", (int)cuMemFreeAsync(at, session.stream));
        printf("there: %d\n", (int)cuMemGetAddressRange(&base, &bytes, at));
    }
    append(2);
    finish_streams();
}

/* As many pieces as there is memory for: what the window keeps is given back before there is too little. */
static void maps_most(void)
{
    enum { PIECE = 16 << 20, MOST = 64 };
    CUdeviceptr at = reserve((size_t)MOST * PIECE);
    CUresult rc = CUDA_SUCCESS;
    int pieces = 0;

    while (pieces < MOST) {
        CUmemGenericAllocationHandle memory = create(&rc, PIECE);
        CUdeviceptr here = at + (size_t)pieces * PIECE;

        if (rc)
            break;
        MUST(cuMemMap(here, PIECE, 0, memory, 0));
        MUST(give_access(here, PIECE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        increment(here, session.stream);
        append(pieces++);
    }
    finish_streams();
    printf("pieces: %d, error %d\n", pieces, (int)rc);
    for (int i = 0; i < pieces; i++)
        report_number("in a piece", sum_ints(&linked, at + (size_t)i * PIECE, N), N);
}

/* Each thread grows a segment of its own. */
static void *grow(void *to)
{
    enum { PIECES = 4 };
    CUdeviceptr at = reserve(PIECES * GRANULE);

    MUST(cuCtxSetCurrent(session.ctx));
    for (int i = 0; i < PIECES; i++) {
        map_at(at + i * GRANULE, granule());
        for (int k = 0; k <= i; k++)
            increment(at + k * GRANULE, second);
    }
    *(CUdeviceptr *)to = at;
    return NULL;
}

static void maps_threads(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    CUdeviceptr at[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, grow, &at[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    finish_streams();
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < 4; k++)
            report_number("of a thread", sum_ints(&linked, at[i] + k * GRANULE, N), (4 - k) * N);
}

/* Memory of pools: allocated and freed in the order of streams, between launches that use it. */
static void pools(void)
{
    CUdeviceptr memory;

    for (int i = 0; i < 6; i++) {
        CUstream stream = i % 2 ? second : session.stream;

        append(i);
        MUST(cuMemAllocAsync(&memory, N * sizeof(int), stream));
        MUST(cuMemsetD32Async(memory, i, N, stream));
        increment(memory, stream);
        MUST(cuMemcpyDtoDAsync(values, memory, N * sizeof(int), stream));
        increment(values, stream);
        MUST(cuMemFreeAsync(memory, stream));
    }
    finish_streams();
    report_number("in values", sum_ints(&linked, values, N), 7 * N);
    report("a wrong address is refused", cuMemFreeAsync(values + 4, second) != CUDA_SUCCESS);
}

/* Code of a library comes onto the device when its function is first asked for. */
static void libraries(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction f;

    MUST(cuLibraryLoadData(&library, "FAKEMOD increment append global:g_library:64", NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "increment"));
    append(0);
    MUST(cuKernelGetFunction(&f, kernel));
    for (int i = 1; i < 4; i++) {
        append(i);
        MUST(cuKernelGetFunction(&f, kernel));
    }
}

/* The first launches of three modules, which bring variables along, then two more of each. */
static void modules(void)
{
    CUmodule more[3];
    CUfunction f[3];
    void *params[2];
    int n = N;

    for (int i = 0; i < 3; i++) {
        MUST(cuModuleLoadData(&more[i], "FAKEMOD increment global:g_more:64 global:g_most:128"));
        MUST(cuModuleGetFunction(&f[i], more[i], "increment"));
    }
    params[0] = &values;
    params[1] = &n;
    for (int i = 0; i < 9; i++)
        MUST(cuLaunchKernel(f[i % 3], 1, 1, 1, 64, 1, 1, 0, session.stream, params, NULL));
}

/* First launches of modules and functions inside a window, of which none brings variables along. */
static void plain_modules(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUmodule more;
    CUfunction f;
    void *params[] = {&values};

    append(0);
    for (int i = 0; i < 3; i++) {
        MUST(cuModuleLoadData(&more, ".version 8.0\n.entry of_module ( .param .u64 p ) {}"));
        MUST(cuModuleGetFunction(&f, more, "of_module"));
        MUST(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, session.stream, params, NULL));
        MUST(cuLibraryLoadData(&library, ".version 8.0\n.entry of_library ( .param .u64 p ) {}", NULL, NULL, 0, NULL,
                               NULL, 0));
        MUST(cuLibraryGetKernel(&kernel, library, "of_library"));
        MUST(cuKernelGetFunction(&f, kernel));
        MUST(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, session.stream, params, NULL));
        append(i);
    }
}

/* A variable that comes along inside a window, is set and counted up. */
static void new_variable(void)
{
    CUmodule more;
    CUfunction f;
    CUdeviceptr variable;
    size_t bytes;
    int n = 4, host[4];
    void *params[] = {&variable, &n};

    append(0);
    MUST(cuModuleLoadData(&more, "FAKEMOD increment global:g_new:16"));
    MUST(cuModuleGetFunction(&f, more, "increment"));
    MUST(cuModuleGetGlobal(&variable, &bytes, more, "g_new"));
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            MUST(cuMemsetD32Async(variable, 40, 2, session.stream));
        MUST(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, session.stream, params, NULL));
    }
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuMemcpyDtoH(host, variable, sizeof(host)));
    report_number("set", host[0], 42);
    report_number("counted up", host[3], 4);
}

/* A variable that comes along inside a window, and is reached by a kernel of another module. */
static void variable_elsewhere(void)
{
    CUmodule more;
    CUdeviceptr variable;
    size_t bytes;
    int n = 4, host[4];
    void *params[] = {&variable, &n};

    append(0);
    increment(values, session.stream);
    MUST(cuModuleLoadData(&more, "FAKEMOD increment global:g_new:16"));
    append(1);
    MUST(cuModuleGetGlobal(&variable, &bytes, more, "g_new"));
    for (int i = 0; i < 4; i++)
        MUST(cuLaunchKernel(function("increment"), 1, 1, 1, 64, 1, 1, 0, session.stream, params, NULL));
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuMemcpyDtoH(host, variable, sizeof(host)));
    report_number("counted up", host[3], 4);
}

/* Attributes of functions: a limit that rises, and what is set already. */
static void attributes(void)
{
    CUfunction f = function("_ZN5tests9incrementIiLi4EEEvPT_i");
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
    MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
    for (int i = 0; i < 4; i++) {
        MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 50000 + i * 1000, session.stream, params, NULL));
        MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
        MUST(cuFuncSetAttribute(function("append"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 10000 + i));
        append(i);
        MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 51000 + i * 1000));
    }
}

/* A limit that falls below what a launch before took, and carve-outs: set again in order, as they were when it ran. */
static void attributes_change(void)
{
    CUfunction f = function("_ZN5tests9incrementIiLi4EEEvPT_i");
    int n = N, limit = 0, carveout = 0;
    void *params[] = {&values, &n};

    for (int i = 0; i < 4; i++) {
        MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 10 * i + 10));
        MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000 - i * 1000));
        MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 60000 - i * 1000, session.stream, params, NULL));
        append(i);
    }
    report_number("too much shared memory", cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 58000, session.stream, params, NULL),
                  CUDA_ERROR_INVALID_VALUE);
    append(4);
    MUST(cuFuncGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    MUST(cuFuncGetAttribute(&carveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, f));
    printf("limit: %d, carve-out: %d\n", limit, carveout);
}

/* Memory that is freed between launches that use it. */
static void frees(void)
{
    static const int ones[N] = {1, 1, 1, 1};
    CUdeviceptr memory[4];
    size_t before, after, all;

    for (int i = 0; i < 4; i++)
        MUST(cuMemAlloc(&memory[i], 1 << 20));
    MUST(cuMemGetInfo(&before, &all));
    for (int i = 0; i < 4; i++) {
        MUST(cuMemcpyHtoD(memory[i], ones, sizeof(ones)));
        increment(memory[i], second);
        MUST(cuMemcpyDtoDAsync(values, memory[i], 8, second));
        increment(values, second);
        MUST(cuMemFree(memory[i]));
        append(i);
    }
    report_number("not the begin of an allocation", cuMemFree(values + 4), CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemGetInfo(&after, &all));
    report_number("given back, KiB", (int)((after - before) >> 10), 4 << 10);
}

static int free_mib(void)
{
    size_t left, all;

    MUST(cuMemGetInfo(&left, &all));
    return (int)(left >> 20);
}

/* Asks how much memory is free between launches, allocations and frees of whole blocks. */
static void asks_free(void)
{
    CUdeviceptr memory[3];
    int before = free_mib(), taken = 0;

    for (int i = 0; i < 3; i++) {
        increment(values, session.stream);
        report_number("free behind a launch, MiB", before - free_mib(), taken);
        MUST(cuMemAlloc(&memory[i], (size_t)(i + 1) << 21));
        taken += (i + 1) << 1;
        report_number("behind an allocation", before - free_mib(), taken);
        increment(memory[i], session.stream);
    }
    for (int i = 0; i < 3; i++) {
        MUST(cuMemFree(memory[i]));
        taken -= (i + 1) << 1;
        report_number("behind a free", before - free_mib(), taken);
        report_number("once more", cuMemFree(memory[i]), CUDA_ERROR_INVALID_VALUE);
        report_number("and behind that", before - free_mib(), taken);
        increment(values, session.stream);
    }
    append(taken);
}

/* Asks when windows have been closed, and takes all that is free by that. */
static void asks_between(void)
{
    CUdeviceptr all;
    int before = free_mib();

    for (int i = 0; i < 4; i++) {
        increment(values, session.stream);
        append(i);
        report_number("free in a window, MiB", before - free_mib(), 0);
        report_number("in values", sum_ints(&linked, values, 1) > 0, 1);
        report_number("behind it", before - free_mib(), 0);
        MUST(cuMemAlloc(&all, (size_t)before << 20));
        increment(values, session.stream);
        MUST(cuMemFree(all));
    }
    append(4);
    MUST(cuMemAlloc(&all, (size_t)before << 20)); /* with a window open */
    MUST(cuMemFree(all));
}

/* The same of memory that is mapped: it is taken when it is made. */
static void asks_maps(void)
{
    int before = free_mib();
    CUdeviceptr at = reserve(3 * GRANULE);

    for (int i = 0; i < 3; i++) {
        CUmemGenericAllocationHandle memory;

        increment(values, session.stream);
        memory = granule();
        report_number("behind new memory, MiB", before - free_mib(), 2 * (i + 1));
        map_at(at + i * GRANULE, memory);
        report_number("behind a map", before - free_mib(), 2 * (i + 1));
        increment(at + i * GRANULE, session.stream);
        MUST(cuMemRelease(memory));
        report_number("and behind its release", before - free_mib(), 2 * (i + 1));
    }
    append(0);
}

/* The same where a part of a block is allocated, or freed: only the driver knows. */
static void asks_free_parts(void)
{
    CUdeviceptr memory, part;
    int before = free_mib();

    MUST(cuMemAlloc(&memory, 3 << 20));
    increment(values, session.stream);
    MUST(cuMemFree(memory));
    report_number("behind a free, MiB", before - free_mib(), 0);
    increment(values, session.stream);
    MUST(cuMemAlloc(&part, 1 << 20));
    report_number("behind an allocation", before - free_mib(), 1);
    increment(part, session.stream);
    report_number("behind a launch", before - free_mib(), 1);
    MUST(cuMemFree(part));
    report_number("behind a free", before - free_mib(), 0);
    append(1);
}

/* Frees memory of the second device, while the context is one of the first, and asks both. */
static void asks_free_elsewhere(void)
{
    CUdeviceptr memory;
    CUcontext other;
    int before = free_mib(), there;

    MUST(cuDevicePrimaryCtxRetain(&other, 1));
    MUST(cuCtxSetCurrent(other));
    there = free_mib();
    MUST(cuMemAlloc(&memory, 4 << 20));
    MUST(cuCtxSetCurrent(session.ctx));
    increment(values, session.stream);
    MUST(cuMemFree(memory));
    report_number("behind a free of another device's, MiB", before - free_mib(), 0);
    MUST(cuCtxSetCurrent(other));
    report_number("there", there - free_mib(), 0);
    MUST(cuCtxSetCurrent(session.ctx));
    append(1);
}

/* Asks for memory that was freed a moment ago. */
static void asks_freed(void)
{
    enum { BYTES = 8192 };
    static const CUpointer_attribute what = CU_POINTER_ATTRIBUTE_RANGE_SIZE;
    CUdeviceptr memory, base;
    size_t size;

    for (int later = 0; later < 2; later++) {
        MUST((later ? cuMemAllocAsync(&memory, BYTES, session.stream) : cuMemAlloc(&memory, BYTES)));
        increment(memory, session.stream);
        MUST(cuPointerGetAttribute(&size, what, memory + BYTES - 1));
        report_number("size", (int)size, BYTES);
        MUST((later ? cuMemFreeAsync(memory, session.stream) : cuMemFree(memory)));
        for (int i = 0; i < 2; i++) {
            CUdeviceptr at = memory + (CUdeviceptr)i * (BYTES - 1);
            report_number("an attribute", cuPointerGetAttribute(&size, what, at), CUDA_ERROR_INVALID_VALUE);
            report_number("the range", cuMemGetAddressRange(&base, &size, at), CUDA_ERROR_NOT_FOUND);
        }
        MUST(cuPointerGetAttribute(&size, what, values));
    }
    append(3);
}

static int pool_has(CUmemPool_attribute what)
{
    CUmemoryPool pool;
    cuuint64_t bytes;

    MUST(cuDeviceGetDefaultMemPool(&pool, session.device));
    MUST(cuMemPoolGetAttribute(pool, what, &bytes));
    return (int)bytes;
}

/* Asks the pool, which has memory that is freed in its order. */
static void asks_pool(void)
{
    CUdeviceptr memory;

    MUST(cuMemAllocAsync(&memory, 4096, session.stream));
    increment(memory, session.stream);
    report_number("the pool has, byte", pool_has(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4096);
    increment(memory, session.stream);
    MUST(cuMemFreeAsync(memory, session.stream));
    report_number("its threshold", pool_has(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
    increment(values, session.stream);
    report_number("the pool has then", pool_has(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    increment(values, session.stream);
    report_number("and then", pool_has(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    MUST(cuMemAllocAsync(&memory, 4096, session.stream));
    increment(memory, session.stream);
    MUST(cuMemFree(memory));
    /* The driver counts it still: so it does with a window, which frees it as the program has. */
    report_number("what cuMemFree has freed", pool_has(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4096);
    append(2);
}

/* Asks the pool once the program has waited; and from then on how much it had at most. */
static void asks_pool_reserve(void)
{
    CUdeviceptr memory[2];

    MUST(cuMemAllocAsync(&memory[0], 4096, session.stream));
    increment(memory[0], session.stream);
    MUST(cuMemFreeAsync(memory[0], session.stream));
    MUST(cuStreamSynchronize(session.stream));
    report_number("the pool reserves", pool_has(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    for (int i = 0; i < 3; i++) {
        MUST(cuMemAllocAsync(&memory[0], 4096, session.stream));
        MUST(cuMemAllocAsync(&memory[1], 4096, session.stream));
        increment(memory[0], session.stream);
        increment(memory[1], session.stream);
        MUST(cuMemFreeAsync(memory[0], session.stream));
        MUST(cuMemAllocAsync(&memory[0], 4096, session.stream));
        increment(memory[0], session.stream);
        MUST(cuMemFreeAsync(memory[0], session.stream));
        MUST(cuMemFreeAsync(memory[1], session.stream));
    }
    report_number("it used at most", pool_has(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 2 * 4096);
    append(2);
}

/* As much memory as there is, again and again: what a window keeps is given back before an allocation fails. */
static void frees_most(void)
{
    CUdeviceptr memory;
    size_t left, all;

    MUST(cuMemGetInfo(&left, &all));
    for (int i = 0; i < 4; i++) {
        MUST(cuMemAlloc(&memory, left / 5 * 2));
        increment(memory, session.stream);
        MUST(cuMemFree(memory));
        append(i);
    }
}

static void axpy(const float *x, CUdeviceptr y)
{
    float a = 2;
    int n = N;
    void *params[] = {&x, &y, &a, &n};

    MUST(cuLaunchKernel(function("axpy_inplace"), 1, 1, 1, N, 1, 1, 0, session.stream, params, NULL));
    MUST(cuStreamSynchronize(session.stream));
}

/* A kernel that reads pinned memory and does not write it. From launch `changes` on the host writes it in between, from
 * launch `written` on the kernel does. */
static void reads_pinned(int changes, int written)
{
    static const int zeros[N];
    CUdeviceptr y = device_ints(&linked, zeros, N);
    float *x, sum = 0;
    float host[N];

    MUST(cuMemHostAlloc((void **)&x, N * sizeof(*x), 0));
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    for (int i = 0; i < 10; i++) {
        append(i);
        axpy(x, i < written ? y : (CUdeviceptr)(uintptr_t)x);
        if (i + 1 >= changes)
            x[1] += 1;
    }
    MUST(cuMemcpyDtoH(host, y, sizeof(host)));
    for (int i = 0; i < N; i++)
        sum += host[i] + x[i];
    printf("sum: %g\n", (double)sum);
}

static void pinned_read(void)
{
    reads_pinned(99, 99);
}

static void pinned_changed(void)
{
    reads_pinned(3, 99);
}

static void pinned_written(void)
{
    reads_pinned(99, 3);
}

/* A window that has been open for long closes where the program waits. */
static void old(void)
{
    append(0);
    MUST(cuStreamSynchronize(session.stream));
    append(1);
    usleep(2300000);
    append(2);
    MUST(cuStreamSynchronize(session.stream));
    append(3);
}

static void reset(void)
{
    append(0);
    append(1);
    MUST(cuDevicePrimaryCtxReset(session.device));
    MUST(cuDevicePrimaryCtxRetain(&session.ctx, session.device));
    MUST(cuCtxSetCurrent(session.ctx));
    appended = 0;
    open_all();
    append(2);
}

static void events(void)
{
    CUevent one, other;

    MUST(cuEventCreate(&one, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 5; i++) {
        increment(values, session.stream);
        MUST(cuEventRecord(one, session.stream));
        MUST(cuStreamWaitEvent(second, one, 0));
        increment(values, second);
        MUST(cuEventRecord(other, second));
        MUST(cuStreamWaitEvent(session.stream, other, 0));
        append(i);
    }
}

/* ---- what ends by its handle, and memory of the host ---- */

static void run(const char *kernel, void **params)
{
    MUST(cuLaunchKernel(function(kernel), 1, 1, 1, N, 1, 1, 0, session.stream, params, NULL));
}

/* A texture is made and destroyed for each launch, as of linear memory that the launch before has changed. The driver
 * knows nothing of it then. */
static void textures(void)
{
    const CUDA_RESOURCE_DESC what = {
        .resType = CU_RESOURCE_TYPE_LINEAR,
        .res.linear = {
            .devPtr = scratch, .format = CU_AD_FORMAT_SIGNED_INT32, .numChannels = 1, .sizeInBytes = N * sizeof(int)}};
    const CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
    CUDA_RESOURCE_DESC told;
    int n = N, level = 0, right = 1, sum = 0;

    for (int i = 0; i < count; i++) {
        CUtexObject texture;

        increment(scratch, session.stream);
        MUST(cuTexObjectCreate(&texture, &what, &how, NULL));
        right &= cuTexObjectGetResourceDesc(&told, texture) == CUDA_SUCCESS && told.res.linear.devPtr == scratch;
        run("texture_add", (void *[]){&texture, &values, &n, &level});
        MUST(cuTexObjectDestroy(texture));
        right &= cuTexObjectGetResourceDesc(&told, texture) == CUDA_ERROR_INVALID_VALUE;
        append(i);
        sum += i + 1;
    }
    report("what queries answer", right);
    report_number("what they have read", sum_ints(&linked, values, N), (long long)sum * N);
}

/* The same of surfaces of an array, which is written through them. */
static void surfaces(void)
{
    const CUDA_ARRAY_DESCRIPTOR shape = {N, 1, CU_AD_FORMAT_SIGNED_INT32, 1};
    CUDA_RESOURCE_DESC what = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = scratch,
                          .srcPitch = N * sizeof(int),
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .WidthInBytes = N * sizeof(int),
                          .Height = 1};
    int n = N, element = 0;

    MUST(cuArrayCreate(&what.res.array.hArray, &shape));
    copy.dstArray = what.res.array.hArray;
    MUST(cuMemcpy2D(&copy));
    for (int i = 0; i < count; i++) {
        CUsurfObject surface;

        MUST(cuSurfObjectCreate(&surface, &what));
        run("surface_step", (void *[]){&surface, &n, &i});
        MUST(cuSurfObjectDestroy(surface));
        report("gone", cuSurfObjectGetResourceDesc(&what, surface) == CUDA_ERROR_INVALID_VALUE);
        what.res.array.hArray = copy.dstArray;
        element = 3 * element + i;
    }
    copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = copy.dstArray,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = scratch,
                           .dstPitch = N * sizeof(int),
                           .WidthInBytes = N * sizeof(int),
                           .Height = 1};
    MUST(cuMemcpy2D(&copy));
    report_number("what was written", sum_ints(&linked, scratch, N), (long long)element * N);
    MUST(cuArrayDestroy(copy.srcArray));
}

/* Memory of rows that is new. */
static void pitched(void)
{
    CUdeviceptr fresh;
    size_t pitch;

    for (int i = 0; i < 4; i++) {
        append(i);
        MUST(cuMemAllocPitch(&fresh, &pitch, N * sizeof(int), 3, 4));
        MUST(cuMemsetD32Async(fresh + 2 * pitch, i, N, session.stream));
        increment(fresh + 2 * pitch, session.stream);
        increment(fresh + 2 * pitch, session.stream);
        MUST(cuMemcpyDtoDAsync(values, fresh + 2 * pitch, N * sizeof(int), session.stream));
        increment(values, session.stream);
    }
    report_number("the last row", sum_ints(&linked, fresh + 2 * pitch, N), N * 5);
}

/* Pinned memory that is made for each round, copied from and freed. A kernel reads the last. */
static void pinned_fresh(void)
{
    int *host, *first = NULL;
    unsigned flags;
    long long sum = 0;

    for (int i = 0; i < count; i++) {
        MUST(cuMemHostAlloc((void **)&host, N * sizeof(int), 0));
        first = first ? first : host;
        for (int k = 0; k < N; k++)
            host[k] = i + k;
        append(i);
        MUST(cuMemcpyHtoDAsync(scratch, host, N * sizeof(int), session.stream));
        increment(scratch, session.stream);
        MUST(cuMemFreeHost(host));
        report("gone", cuMemHostGetFlags(&flags, host) == CUDA_ERROR_INVALID_VALUE);
    }
    for (int k = 0; k < N; k++)
        sum += count - 1 + k + 1;
    report_number("what was copied", sum_ints(&linked, scratch, N), sum);
}

/* Pinned memory that a launch of the window has read goes before the window is repeated. */
static void pinned_freed(void)
{
    CUdeviceptr at;
    int *host, n = N;
    float a = 1;

    MUST(cuMemAllocHost((void **)&host, N * sizeof(int)));
    memset(host, 0, N * sizeof(int));
    MUST(cuMemHostGetDevicePointer(&at, host, 0));
    append(0);
    run("axpy_inplace", (void *[]){&at, &values, &a, &n});
    append(1);
    MUST(cuMemFreeHost(host));
    append(2);
}

/* More of it than a window keeps. */
static void pinned_large(void)
{
    enum { BYTES = 100 << 20 };
    char *host;

    for (int i = 0; i < 5; i++) {
        MUST(cuMemHostAlloc((void **)&host, BYTES, 0));
        append(i);
        MUST(cuMemFreeHost(host));
    }
}

/* Modules that are loaded, launched of and unloaded, as where candidates are timed. */
static void unloads(void)
{
    const char *again = "FAKEMOD increment global:g_mine:4194304",
               *of_library = ".version 8.0\n.entry of_library ( .param .u64 p ) {}";
    CUmodule module;
    CUlibrary library;
    CUkernel kernel;
    CUfunction f;
    size_t before, after, all;
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuMemGetInfo(&before, &all));
    for (int i = 0; i < count; i++) {
        append(i);
        MUST(cuModuleLoadData(&module, again));
        MUST(cuModuleGetFunction(&f, module, "increment"));
        MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, session.stream, params, NULL));
        MUST(cuModuleUnload(module));
        MUST(cuLibraryLoadData(&library, of_library, NULL, NULL, 0, NULL, NULL, 0));
        MUST(cuLibraryGetKernel(&kernel, library, "of_library"));
        MUST(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, N, 1, 1, 0, session.stream, params, NULL));
        MUST(cuLibraryUnload(library));
    }
    finish_streams();
    MUST(cuMemGetInfo(&after, &all)); /* closes the window */
    report_number("memory gone", (long long)(before - after), 0);
    report_number("counted", sum_ints(&linked, values, N), (long long)count * N);
}

/* What a pool does with what it is given back. */
static void pool_settings(void)
{
    CUmemoryPool pool;
    cuuint64_t most = UINT64_MAX, told = 0;
    CUdeviceptr p;

    MUST(cuDeviceGetDefaultMemPool(&pool, session.device));
    append(0);
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most));
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &told));
    report("the threshold", told == most);
    append(1);
    MUST(cuMemAllocAsync(&p, 4096, session.stream));
    MUST(cuMemsetD32Async(p, 1, N, session.stream));
    increment(p, session.stream);
    MUST(cuMemFreeAsync(p, session.stream));
    append(2);
}

/* A graph that is built, launched and destroyed in each round. */
static void graphs_made(void)
{
    int n = N;
    CUDA_KERNEL_NODE_PARAMS p = kernel_node(function("increment"), 1, N, 0, (void *[]){&values, &n});
    CUDA_MEMSET_NODE_PARAMS zero = {.dst = scratch, .elementSize = 4, .width = N, .height = 1};
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode set, node;

    for (int i = 0; i < count; i++) {
        append(i);
        MUST(cuGraphCreate(&graph, 0));
        zero.value = i;
        MUST(cuGraphAddMemsetNode(&set, graph, NULL, 0, &zero, session.ctx));
        MUST(cuGraphAddKernelNode(&node, graph, &set, 1, &p));
        MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
        MUST(cuGraphDestroy(graph));
        MUST(cuGraphLaunch(exec, session.stream));
        MUST(cuGraphExecDestroy(exec));
        increment(scratch, session.stream);
    }
    report_number("counted", sum_ints(&linked, values, N), (long long)count * N);
}

/* The preferred cache of kernels before their first launch. */
static void caches(void)
{
    append(0);
    MUST(cuFuncSetCacheConfig(function("increment"), CU_FUNC_CACHE_PREFER_SHARED));
    increment(values, session.stream);
    MUST(cuFuncSetCacheConfig(function("axpy_inplace"), CU_FUNC_CACHE_PREFER_L1));
    append(1);
}

/* Of one that the window has launched. */
static void caches_again(void)
{
    caches();
    MUST(cuFuncSetCacheConfig(function("increment"), CU_FUNC_CACHE_PREFER_L1));
    increment(values, session.stream);
}

/* Code is linked between launches. */
static void links(void)
{
    CUlinkState state;
    void *cubin;
    size_t size;

    append(0);
    MUST(cuLinkCreate(0, NULL, NULL, &state));
    append(1);
    printf("linked: %d\n", (int)cuLinkComplete(state, &cubin, &size));
    append(2);
    MUST(cuLinkDestroy(state));
    append(3);
}

/* ---- what closes it ---- */

static int host_calls;

static void CUDA_CB host_function(void *data)
{
    host_calls += *(int *)data;
}

static void close_by(const char *what)
{
    static CUmodule module;
    static int one = 1;
    CUdeviceptr p;
    CUstream stream;
    CUevent event;
    CUgraph graph;
    int host;

    if (!strcmp(what, "dtoh"))
        MUST(cuMemcpyDtoH(&host, values, 4));
    else if (!strcmp(what, "dtoh-async"))
        MUST(cuMemcpyDtoHAsync(&host, values, 4, session.stream));
    else if (!strcmp(what, "alloc"))
        MUST(cuMemAlloc(&p, 4096));
    else if (!strcmp(what, "alloc-async"))
        MUST(cuMemAllocAsync(&p, 4096, session.stream));
    else if (!strcmp(what, "free")) {
        p = scratch;
        scratch = values;
        MUST(cuMemFree(p));
    } else if (!strcmp(what, "module")) {
        MUST(cuModuleLoadData(&module, "FAKEMOD increment global:g_other:16"));
    } else if (!strcmp(what, "stream")) {
        MUST(cuStreamDestroy(second));
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        second = stream;
    } else if (!strcmp(what, "event")) {
        MUST(cuEventCreate(&event, 0));
        MUST(cuEventDestroy(event));
    } else if (!strcmp(what, "capture")) {
        MUST(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
        increment(values, second);
        MUST(cuStreamEndCapture(second, &graph));
    } else if (!strcmp(what, "batch")) {
        CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
        MUST(cuMemcpyBatchAsync((CUdeviceptr[]){scratch, scratch + 16}, (CUdeviceptr[]){values, values + 32},
                                (size_t[]){16, 16}, 2, &attributes, (size_t[]){0}, 1, second));
    } else if (!strcmp(what, "host-function")) {
        MUST(cuLaunchHostFunc(session.stream, host_function, &one));
    } else {
        printf("no such way to close: %s\n", what);
        exit(3);
    }
}

static void closed_by(const char *what)
{
    increment(values, session.stream);
    append(1);
    increment(scratch, second);
    close_by(what);
    increment(values, session.stream);
    append(2);
    increment(scratch, second);
    show(what);
    printf("host functions: %d\n", host_calls);
}

/* ---- reads ---- */

/* Results read in all ways, each of which depends on all launches before. */
static void reads(void)
{
    int *pinned, host = 0, right = 1;

    MUST(cuMemHostAlloc((void **)&pinned, 4096, 0));
    for (int i = 0; i < count; i++) {
        increment(values, session.stream);
        MUST(cuMemcpyDtoH(&host, values, sizeof(host)));
        right &= host == i + 1;
        append(host);
        MUST(cuMemcpyDtoHAsync(pinned, cursor, sizeof(host), session.stream));
        MUST(cuStreamSynchronize(session.stream));
        right &= *pinned == 2 * (i + 1);
        increment(scratch, session.stream);
        MUST(cuMemcpy((CUdeviceptr)(uintptr_t)&host, scratch, sizeof(host)));
        right &= host == i + 1;
        MUST(cuMemcpyAsync((CUdeviceptr)(uintptr_t)&host, scratch + 4, sizeof(host), session.stream));
        right &= host == i + 1;
    }
    report("as it should be", right);
    MUST(cuMemFreeHost(pinned));
}

static void vary(CUdeviceptr to, int every, int at)
{
    void *params[] = {&to, &every, &at};

    MUST(cuLaunchKernel(function("varies"), 1, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
}

/* The device goes on from what the host has read of one execution: that one's results have to stay. */
static void reads_differ(int every)
{
    int host[4096], entries = 0, right = 1;
    unsigned expected = 0;

    for (int i = 0; i < count; i++) {
        vary(scratch, every, 5);
        MUST(cuMemcpyDtoH(host, scratch, sizeof(int)));
        append(host[0] + i);
        for (int k = 0; k < 2; k++, entries++)
            expected = (entries ? expected * 31 : 0) + (unsigned)(host[0] + i);
    }
    MUST(cuMemcpyDtoH(host + 1, scratch, sizeof(int)));
    right &= host[1] == host[0];
    MUST(cuMemcpyDtoH(host, history, sizeof(host)));
    report("the device and the host agree", right && host[entries - 1] == (int)expected);
    MUST(cuMemsetD32(scratch, 0, 1));
    MUST(cuMemsetD32(history, 0, 4096));
}

static void reads_differ_once(void)
{
    reads_differ(8);
}

static void reads_differ_always(void)
{
    reads_differ(0);
}

/* Reads how many there are, and writes so many: another number is out of bounds. At first it is the same each time,
 * from the third time on no two executions give the same. */
static void reads_bound(void)
{
    int host = 0;
    CUdeviceptr many;
    void *params[] = {&scratch, &many, &host};

    MUST(cuMemAlloc(&many, 4096 * sizeof(int)));
    MUST(cuMemsetD32(many, 0, 4096));
    for (int i = 0; i < count; i++) {
        vary(scratch, i < 2, 0);
        MUST(cuMemcpyDtoH(&host, scratch, sizeof(host)));
        host++;
        MUST(cuLaunchKernel(function("gather"), 1, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
        append(1);
    }
    MUST(cuStreamSynchronize(session.stream));
    report_number("written", sum_ints(&linked, many, 4096), count);
    MUST(cuMemsetD32(scratch, 0, 1));
}

/* New memory is written before and after a read: by the second window, which has trust in it, it comes out otherwise.
 * Then the repetition ends there, and what came after has to be in the memory all the same. */
static void reads_new(int mapped)
{
    enum { MOST = 32 };
    CUdeviceptr fresh[MOST], at = mapped ? reserve((size_t)MOST * GRANULE) : 0;
    int host = 0;

    for (int i = 0; i < count && i < MOST; i++) {
        if (mapped)
            fresh[i] = map_at(at + (size_t)i * GRANULE, granule());
        else
            MUST(cuMemAlloc(&fresh[i], N * sizeof(int)));
        MUST(cuMemsetD32Async(fresh[i], 0, N, session.stream));
        increment(fresh[i], session.stream);
        vary(scratch, i < 2, 0);
        MUST(cuMemcpyDtoH(&host, scratch, sizeof(host)));
        increment(fresh[i], session.stream);
        append(1);
    }
    MUST(cuStreamSynchronize(session.stream));
    for (int i = 0; i < count && i < MOST; i++)
        report_number("written", sum_ints(&linked, fresh[i], N), 2 * N);
    MUST(cuMemsetD32(scratch, 0, 1));
}

static void reads_new_memory(void)
{
    reads_new(0);
}

static void reads_mapped(void)
{
    reads_new(1);
}

/* A result on its way into pinned memory is copied back from there, and the memory is used for something else. */
static void reads_back(void)
{
    int *pinned;

    MUST(cuMemHostAlloc((void **)&pinned, 4096, 0));
    for (int i = 0; i < count; i++) {
        increment(values, session.stream);
        MUST(cuMemcpyDtoHAsync(pinned, values, N * sizeof(int), session.stream));
        MUST(cuMemcpyHtoDAsync(scratch, pinned, N * sizeof(int), session.stream));
        increment(scratch, session.stream);
        MUST(cuStreamSynchronize(session.stream));
        pinned[0] = -1;
        append(i);
    }
    MUST(cuMemFreeHost(pinned));
}

/* A kernel waits for a flag that the host sets once it has read what another kernel has done. */
static void reads_progress(void)
{
    CUdeviceptr flag = scratch;
    int host = 0, right = 1;

    for (int i = 0; i < 3; i++) {
        append(i);
        wait_for_flag(flag, values, second);
        increment(values + 16, session.stream);
        MUST(cuMemcpyDtoHAsync(&host, values + 16, 4, session.stream));
        right &= host == i + 1;
        set_flag(flag, host, session.stream);
        MUST(cuStreamSynchronize(second));
        MUST(cuMemsetD32(flag, 0, 1));
    }
    report("as it should be", right);
}

/* Memory is filled behind a read, so that there is no room for a second copy when the window closes. */
static void reads_then_fills(void)
{
    CUdeviceptr memory;
    size_t left, all;
    int host = 0, right = 1;

    MUST(cuMemGetInfo(&left, &all));
    for (int i = 0; i < 3; i++) {
        increment(values, session.stream);
        MUST(cuMemcpyDtoH(&host, values, sizeof(host)));
        right &= host == i + 1;
    }
    MUST(cuMemAlloc(&memory, left / 5 * 2)); /* as much again is copied aside */
    increment(memory, session.stream);
    append(host);
    report("as it should be", right);
}

/* Two operations of other streams between a result and its use. */
static void reads_streams(void)
{
    int *pinned, right = 1;
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemHostAlloc((void **)&pinned, 4096, 0));
    for (int i = 0; i < count; i++) {
        increment(values, second);
        MUST(cuMemcpyDtoHAsync(pinned, values + 4, 8, second));
        increment(scratch, session.stream);
        MUST(cuEventRecord(event, second));
        increment(values, second);
        MUST(cuEventSynchronize(event));
        right &= pinned[0] == 2 * i + 1 && pinned[1] == 2 * i + 1;
        append(pinned[0]);
    }
    report("as it should be", right);
    MUST(cuMemFreeHost(pinned));
}

/* Registered memory that receives copies, in time and later, and that the host writes between launches. */
static void registered_reads(void)
{
    enum { INTS = 1024, OWN = INTS - 1 };
    int *host = aligned_alloc(4096, INTS * sizeof(int)), right = 1;

    memset(host, 0xff, INTS * sizeof(int));
    MUST(cuMemHostRegister(host, INTS * sizeof(int), CU_MEMHOSTREGISTER_DEVICEMAP));
    for (int i = 0; i < count; i++) {
        increment(values, session.stream);
        MUST(cuMemcpyDtoH(host, values, N * sizeof(int)));
        right &= host[0] == i + 1 && host[N - 1] == i + 1;
        host[OWN] = 7 * i;
    }
    memset(host, 0xff, INTS * sizeof(int));
    for (int i = 0; i < count; i++) {
        increment(values, session.stream);
        increment(scratch, second);
        MUST(cuMemcpyDtoHAsync(host, values, 16, session.stream));
        MUST(cuMemcpyDtoHAsync(host + 4, scratch, 16, second));
        host[OWN] = i;
    }
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuStreamSynchronize(second));
    right &= host[0] == 2 * count && host[4] == count && host[8] == -1 && host[OWN] == count - 1;
    append(host[0]);
    show("registered");
    append(0);
    host[OWN] = 7; /* nothing is read until the window closes */
    append(1);
    MUST(cuMemHostUnregister(host));
    report("as it should be", right && host[OWN] == 7 && host[0] == 2 * count);
    free(host);
}

/* Rows of results, in time and later, between others that are the program's own. */
static void reads_rows(void)
{
    enum { PITCH = 48, WIDTH = 12, ROWS = 3 };
    int *to[2], host[PITCH / 4 * (ROWS + 1)], right = 1;
    CUDA_MEMCPY2D m = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = values,
                       .srcXInBytes = 8,
                       .srcY = 1,
                       .srcPitch = 32,
                       .dstMemoryType = CU_MEMORYTYPE_HOST,
                       .dstXInBytes = 4,
                       .dstY = 1,
                       .dstPitch = PITCH,
                       .WidthInBytes = WIDTH,
                       .Height = ROWS};

    to[0] = host;
    MUST(cuMemHostAlloc((void **)&to[1], sizeof(host), 0));
    for (int i = 0; i < count; i++) {
        int *now = to[i % 2], same = 0;

        memset(now, -1, sizeof(host));
        increment(values, session.stream);
        m.dstHost = now;
        MUST(cuMemcpy2DAsync(&m, session.stream));
        MUST(cuStreamSynchronize(session.stream));
        for (int k = 0; k < PITCH / 4 * (ROWS + 1); k++)
            same += now[k] == (k / 12 && k % 12 >= 1 && k % 12 < 4 ? i + 1 : -1);
        right &= same == PITCH / 4 * (ROWS + 1);
        append(now[13]);
    }
    report("as it should be", right);
    MUST(cuMemFreeHost(to[1]));
}

/* Large results in registered memory: more in a window than is always logged. */
static void registered_large(void)
{
    const size_t bytes = 24 << 20;
    char *host = aligned_alloc(4096, bytes);
    CUdeviceptr large;
    int right = 1;

    MUST(cuMemHostRegister(host, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
    MUST(cuMemAlloc(&large, bytes));
    MUST(cuMemsetD8(large, 0, bytes));
    for (int i = 0; i < count; i++) {
        increment(large + bytes - N * sizeof(int), session.stream);
        if (i % 2)
            MUST(cuMemcpyDtoH(host, large, bytes));
        else
            MUST(cuMemcpyDtoHAsync(host, large, bytes, session.stream));
        MUST(cuStreamSynchronize(session.stream));
        right &= !host[0] && host[bytes - 4] == i + 1;
    }
    report("as it should be", right);
    MUST(cuMemFree(large));
    MUST(cuMemHostUnregister(host));
    free(host);
}

/* ---- refusals ---- */

static void refusals(void)
{
    int n = N, wrong[4] = {0};
    void *params[] = {&values, &n};
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 4; i++) {
        append(i);
        wrong[0] += cuMemsetD32Async(16, 5, 4, session.stream) != CUDA_SUCCESS;
        wrong[1] += cuMemcpyDtoDAsync(values, 4096, 16, session.stream) != CUDA_SUCCESS;
        wrong[2] +=
            cuLaunchKernel(function("increment"), 1, 1, 1, 4096, 1, 1, 0, session.stream, params, NULL) != CUDA_SUCCESS;
        wrong[3] += cuEventRecord((CUevent)&n, session.stream) != CUDA_SUCCESS;
        increment(values, session.stream);
    }
    for (int i = 0; i < 4; i++)
        report_number("refused", wrong[i], 4);
}

/* The first launch of a window, and all of one, are refused. */
static void refused_first(void)
{
    int n = N;
    void *params[] = {&values, &n};

    report_number("too large",
                  cuLaunchKernel(function("increment"), 1, 1, 1, 4096, 1, 1, 0, session.stream, params, NULL),
                  CUDA_ERROR_INVALID_VALUE);
    append(1);
    append(2);
}

/* A kernel that fails breaks the context: every later call says so. */
static void fault(void)
{
    CUfunction f = function("increment");
    int n = N, host;
    void *params[] = {&values, &n};

    append(0);
    MUST(cuLaunchKernel(function("fail"), 1, 1, 1, 1, 1, 1, 0, second, NULL, NULL));
    printf("synchronise: %d\n", cuStreamSynchronize(second));
    printf("launch: %d\n", cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, session.stream, params, NULL));
    printf("copy: %d\n", cuMemcpyDtoH(&host, values, 4));
    exit(4);
}

/* ---- which launches ---- */

/* `count` of another name between any two. */
static void mixed(void)
{
    for (int i = 0; i < 5; i++) {
        append(i);
        for (int k = 0; k < count; k++)
            increment(values, session.stream);
    }
}

static CUgraphExec make_graph(void)
{
    CUgraph graph;
    CUgraphExec exec;

    MUST(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
    increment(values, second);
    increment(scratch, second);
    MUST(cuStreamEndCapture(second, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

static void graphs(void)
{
    CUgraphExec exec = make_graph();

    for (int i = 0; i < 4; i++) {
        append(i);
        MUST(cuGraphLaunch(exec, session.stream));
        if (i % 2)
            MUST(cuGraphLaunch(exec, session.stream));
    }
}

/* Each graph is launched into what is no stream, and then into one. */
static void refused_graphs(void)
{
    CUgraphExec exec = make_graph();
    int refused = 0;

    for (int i = 0; i < 3; i++) {
        refused += cuGraphLaunch(exec, (CUstream)&refused) != CUDA_SUCCESS;
        MUST(cuGraphLaunch(exec, session.stream));
    }
    report_number("refused", refused, 3);
}

static void wait_outside(int times)
{
    for (int i = 0; i < times; i++) {
        append(i);
        MUST(increment_as("ncclDevKernel_increment", values, session.stream));
    }
}

static void waits_outside(void)
{
    wait_outside(4);
}

static void waits_outside_often(void)
{
    wait_outside(count);
}

static void shared_limit(void)
{
    CUfunction f = function("_ZN5tests9incrementIiLi4EEEvPT_i");
    const CUfunction_attribute most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuFuncSetAttribute(f, most, 60000));
    for (int i = 0; i < 3; i++) {
        MUST(cuFuncSetAttribute(f, most, 60000)); /* leaves the window open */
        MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 60000, session.stream, params, NULL));
    }
    MUST(cuFuncSetAttribute(f, most, 1024)); /* now no longer possible */
    report_number("too much shared memory", cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 60000, session.stream, params, NULL),
                  CUDA_ERROR_INVALID_VALUE);
    append(1);
}

static void prints(void)
{
    for (int i = 0; i < count; i++) {
        void *params[] = {&i};

        MUST(cuLaunchKernel(function("print_line"), 1, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
        append(i);
        if (i % 4 == 3) {
            MUST(cuStreamSynchronize(session.stream));
            printf("the program prints %d\n", i);
        }
    }
}

/* ---- threads ---- */

static pthread_barrier_t barrier;

static void *launch_and_copy(void *arg)
{
    long number = (long)(intptr_t)arg;
    CUdeviceptr data;
    CUstream stream;
    int host[N] = {0};

    MUST(cuCtxSetCurrent(session.ctx));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    data = device_ints(&linked, host, N);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 40; i++) {
        increment(data, stream);
        if (i % 5 == number)
            MUST(cuMemsetD32Async(data, i, 1, stream));
        if (i % 7 == 0)
            MUST(cuStreamSynchronize(stream));
        if (i % 16 == 0) {
            MUST(cuMemcpyDtoHAsync(host, data + 4, 8, stream));
            MUST(cuStreamSynchronize(stream));
            if (host[0] != i + 1)
                report_number("seen in between", host[0], i + 1);
        }
        if (i % 11 == 0) {
            MUST(cuMemcpyHtoDAsync(data + 16, &i, sizeof(i), stream));
            MUST(cuStreamSynchronize(stream));
        }
    }
    MUST(cuStreamSynchronize(stream));
    return (void *)(intptr_t)sum_ints(&linked, data, N);
}

static void threads(void)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    void *sum;

    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long t = 0; t < THREADS; t++)
        pthread_create(&thread[t], NULL, launch_and_copy, (void *)(intptr_t)t);
    for (long t = 0; t < THREADS; t++) {
        pthread_join(thread[t], &sum);
        printf("thread %ld: %ld\n", t, (long)(intptr_t)sum);
    }
}

static void *wait_for_second(void *arg)
{
    CUevent event = arg;

    MUST(cuCtxSetCurrent(session.ctx));
    for (int i = 0; i < 5; i++) {
        MUST(cuStreamSynchronize(second));
        MUST(cuEventSynchronize(event));
    }
    return NULL;
}

/* One thread waits for a long kernel while another goes on launching. */
static void waiting_thread(void)
{
    int n = N, ms = 300;
    void *params[] = {&scratch, &n, &ms};
    pthread_t thread;
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    append(0);
    MUST(cuLaunchKernel(function("late_increment"), 1, 1, 1, N, 1, 1, 0, second, params, NULL));
    MUST(cuEventRecord(event, second));
    pthread_create(&thread, NULL, wait_for_second, event);
    for (int i = 0; i < 30; i++)
        append(i);
    pthread_join(thread, NULL);
}

/* ---- waiting kernels ---- */

/* A kernel waits for what the program writes only after the launch. */
static void waits_for_host(void)
{
    int *flag;

    MUST(cuMemHostAlloc((void **)&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    for (int i = 0; i < 2; i++) {
        *(volatile int *)flag = 0;
        append(2 * i);
        wait_for_flag((CUdeviceptr)(uintptr_t)flag, values, second);
        append(2 * i + 1);
        *(volatile int *)flag = 5;
        MUST(cuStreamSynchronize(second));
    }
    show("host");
    MUST(cuMemFreeHost(flag));
}

/* An allocation that fails while a kernel waits for the host, which goes on behind it. */
static void waits_and_fails(void)
{
    CUdeviceptr much;
    int *flag;

    MUST(cuMemHostAlloc((void **)&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    *(volatile int *)flag = 0;
    append(0);
    show("counted");
    wait_for_flag((CUdeviceptr)(uintptr_t)flag, values, second);
    for (int i = 0; i < 3; i++)
        report_number("too much", cuMemAlloc(&much, (size_t)1 << 46), CUDA_ERROR_OUT_OF_MEMORY);
    *(volatile int *)flag = 5;
    MUST(cuStreamSynchronize(second));
    append(1);
    MUST(cuMemFreeHost(flag));
}

/* The same with memory that the device reaches in other ways. */
static void waits_for_registered(void)
{
    int *flag = aligned_alloc(4096, 4096);

    *flag = 0;
    MUST(cuMemHostRegister(flag, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    append(0);
    wait_for_flag((CUdeviceptr)(uintptr_t)flag, values, second);
    *(volatile int *)flag = 5;
    MUST(cuStreamSynchronize(second));
    append(1);
}

static void waits_for_managed(void)
{
    CUdeviceptr p;
    int *flag;

    MUST(cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
    flag = (int *)(uintptr_t)p;
    for (int i = 0; i < 2; i++) {
        *(volatile int *)flag = 0;
        append(0);
        wait_for_flag(p, values, second);
        *(volatile int *)flag = 5;
        MUST(cuStreamSynchronize(second));
    }
    append(1);
}

/* What else the program launches while one kernel waits is not held up each time. */
static void waits_long(void)
{
    int *flag;

    MUST(cuMemHostAlloc((void **)&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = 0;
    wait_for_flag((CUdeviceptr)(uintptr_t)flag, values, second);
    for (int i = 0; i < 10; i++)
        append(i);
    *(volatile int *)flag = 5;
    MUST(cuStreamSynchronize(second));
    append(1);
}

/* A kernel waits for one that is launched later, on another stream. */
static void waits_for_launch(void)
{
    CUdeviceptr flag = device_ints(&linked, &(int){0}, 1);

    for (int i = 0; i < 2; i++) {
        append(2 * i);
        wait_for_flag(flag, values, second);
        append(2 * i + 1);
        set_flag(flag, 3, session.stream);
        MUST(cuStreamSynchronize(second));
        set_flag(flag, 0, session.stream);
        finish_streams();
    }
}

/* ---- memory that others see ---- */

static void managed(void)
{
    CUdeviceptr p;
    int *host, right = 1;

    MUST(cuMemAllocManaged(&p, N * sizeof(int), CU_MEM_ATTACH_GLOBAL));
    host = (int *)(uintptr_t)p;
    memset(host, 0, N * sizeof(int));
    for (int i = 0; i < 4; i++) {
        increment(p, session.stream);
        append(i);
        MUST(cuStreamSynchronize(session.stream));
        right &= host[3] == 11 * i + 1 && host[N - 1] == i + 1;
        host[3] += 10;
    }
    report("managed", right);
}

static void registered(void)
{
    int *host = aligned_alloc(4096, 4096), right = 1;

    memset(host, 0, 4096);
    MUST(cuMemHostRegister(host, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    for (int i = 0; i < 4; i++) {
        append(i);
        host[3] += 10;
        append(i);
        right &= host[3] == 10 * (i + 1);
    }
    show("registered");
    report("registered", right);
    MUST(cuMemHostUnregister(host));
    free(host);
    append(9);
    append(10);
}

/* Every other launch is followed by a call that closes the window, of those that have doors of their own. */
static void closed_at_doors(void)
{
    int *host = aligned_alloc(4096, 4096);
    void *pinned;
    CUgraph graph;
    CUgraphExec exec;

    append(0);
    MUST(cuMemHostAlloc(&pinned, 64, 0)); /* closes nothing, as graphs that come and go */
    append(1);
    MUST(cuMemFreeHost(pinned));
    append(2);
    for (int i = 0; i < 2; i++) {
        append(3);
        MUST(cuMemHostRegister(host, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
        append(3);
        MUST(cuMemHostUnregister(host));
    }
    free(host);
    MUST(cuGraphCreate(&graph, 0));
    append(4);
    MUST(cuGraphInstantiate(&exec, graph, 0));
    append(5);
    MUST(cuGraphExecDestroy(exec));
    append(6);
}

static void exported(void)
{
    CUipcMemHandle handle;

    append(0);
    append(1);
    MUST(cuIpcGetMemHandle(&handle, values));
    for (int i = 0; i < 3; i++) {
        append(i);
        append(i);
        MUST(cuStreamSynchronize(session.stream));
    }
}

/* ---- ends ---- */

static void forks(void)
{
    int status;
    pid_t child;

    append(0);
    append(1);
    fflush(stdout);
    child = fork();
    if (!child)
        exit(7);
    append(2);
    waitpid(child, &status, 0);
    report_number("child", WEXITSTATUS(status), 7);
    append(3);
}

static void on_term(int number)
{
    (void)number;
    _exit(9);
}

static pthread_t main_thread;
static const char *end_of_thread;

static void *send_term(void *arg)
{
    (void)arg;
    usleep(200000);
    if (!strcmp(end_of_thread, "exit"))
        exit(9);
    pthread_kill(main_thread, SIGTERM);
    return NULL;
}

/* The process ends while this thread is inside of a driver call that never returns: by a signal's handler in this very
 * thread, or by exit() in another one. */
static void ended_in(const char *where, const char *how)
{
    CUdeviceptr flag = device_ints(&linked, &(int){0}, 1);
    pthread_t thread;

    main_thread = pthread_self();
    signal(SIGTERM, on_term);
    append(0);
    append(1);
    wait_for_flag(flag, values, session.stream);
    printf("launched\n");
    fflush(stdout);
    end_of_thread = how;
    pthread_create(&thread, NULL, send_term, NULL);
    if (!strcmp(where, "synchronise"))
        MUST(cuStreamSynchronize(session.stream));
    else
        MUST(cuMemFree(scratch));
    printf("not reached\n");
}

/* Memory was allocated, and then a kernel launched that never ends: the program does not wait for it. */
static void left_waiting(void)
{
    CUdeviceptr flag = device_ints(&linked, &(int){0}, 1), fresh;

    append(0);
    MUST(cuMemAlloc(&fresh, 64));
    append(1);
    wait_for_flag(flag, values, second);
    printf("left waiting\n");
    exit(6);
}

static void end_by(const char *what)
{
    append(0);
    append(1);
    increment(values, second);
    printf("%s\n", what);
    fflush(stdout);
    if (!strcmp(what, "_exit"))
        _exit(5);
    if (!strcmp(what, "exit"))
        exit(6);
    if (!strcmp(what, "quick_exit"))
        quick_exit(8);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"many", many},
    {"synchronised", many_synchronised},
    {"memsets", memsets},
    {"copies-in", copies_in},
    {"copies-within", copies_within},
    {"events", events},
    {"refusals", refusals},
    {"refused-first", refused_first},
    {"mixed", mixed},
    {"graphs", graphs},
    {"refused-graphs", refused_graphs},
    {"waits-outside", waits_outside},
    {"waits-outside-often", waits_outside_often},
    {"shared-limit", shared_limit},
    {"prints", prints},
    {"threads", threads},
    {"waiting-thread", waiting_thread},
    {"waits-and-fails", waits_and_fails},
    {"waits-for-host", waits_for_host},
    {"waits-for-launch", waits_for_launch},
    {"managed", managed},
    {"registered", registered},
    {"registered-reads", registered_reads},
    {"registered-large", registered_large},
    {"closed-at-doors", closed_at_doors},
    {"exported", exported},
    {"forks", forks},
    {"copies-out", copies_out},
    {"allocates", allocates},
    {"allocates-beside", allocates_beside},
    {"fresh", fresh},
    {"maps", maps},
    {"maps-most", maps_most},
    {"maps-threads", maps_threads},
    {"left-waiting", left_waiting},
    {"libraries", libraries},
    {"modules", modules},
    {"pinned-read", pinned_read},
    {"pinned-changed", pinned_changed},
    {"pinned-written", pinned_written},
    {"plain-modules", plain_modules},
    {"new-variable", new_variable},
    {"attributes", attributes},
    {"frees", frees},
    {"frees-most", frees_most},
    {"asks-between", asks_between},
    {"asks-free", asks_free},
    {"asks-maps", asks_maps},
    {"asks-free-parts", asks_free_parts},
    {"asks-free-elsewhere", asks_free_elsewhere},
    {"asks-freed", asks_freed},
    {"asks-pool", asks_pool},
    {"asks-pool-reserve", asks_pool_reserve},
    {"fault", fault},
    {"old", old},
    {"pools", pools},
    {"variable-elsewhere", variable_elsewhere},
    {"attributes-change", attributes_change},
    {"reads", reads},
    {"reads-differ-once", reads_differ_once},
    {"reads-differ-always", reads_differ_always},
    {"reads-bound", reads_bound},
    {"reads-new", reads_new_memory},
    {"reads-mapped", reads_mapped},
    {"reads-back", reads_back},
    {"reads-rows", reads_rows},
    {"reads-then-fills", reads_then_fills},
    {"reads-progress", reads_progress},
    {"reads-streams", reads_streams},
    {"reset", reset},
    {"waits-for-registered", waits_for_registered},
    {"waits-for-managed", waits_for_managed},
    {"waits-long", waits_long},
    {"textures", textures},
    {"surfaces", surfaces},
    {"pitched", pitched},
    {"pinned-fresh", pinned_fresh},
    {"pinned-freed", pinned_freed},
    {"pinned-large", pinned_large},
    {"unloads", unloads},
    {"pool-settings", pool_settings},
    {"links", links},
    {"graphs-made", graphs_made},
    {"caches", caches},
    {"caches-again", caches_again},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "many";

    count = argc > 2 ? atoi(argv[2]) : 10;
    open_all();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (!strcmp(cases[i].name, name)) {
            cases[i].run();
            show("at the end");
            return program_wrong;
        }
    if (!strcmp(name, "closed-by") && argc > 2) {
        closed_by(argv[2]);
        return program_wrong;
    }
    if (!strcmp(name, "frees-refused") && argc > 2) {
        frees_refused(argv[2]);
        show("at the end");
        return program_wrong;
    }
    if (!strcmp(name, "map-by") && argc > 2) {
        map_by(argv[2]);
        show("at the end");
        return program_wrong;
    }
    if (!strcmp(name, "ended-in") && argc > 3) {
        ended_in(argv[2], argv[3]);
        return program_wrong;
    }
    if (!strcmp(name, "end-by") && argc > 2) {
        end_by(argv[2]);
        return 4;
    }
    printf("no such case: %s\n", name);
    return 3;
}
