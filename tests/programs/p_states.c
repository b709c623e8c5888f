/* LINK: -lcuda -lpthread */
/* Each kind of state that launches of a window may share, changed between them. A repetition which finds it otherwise
 * gives another result, or breaks the context. Argument: the case. */
#include <pthread.h>
#include <stdatomic.h>

#include "linked.h"

enum { N = 64, ROUNDS = 6 };

static struct session session;
static CUstream second;
static CUdeviceptr values, history, cursor, index_at;

static const char image[] =
    "FAKEMOD increment late_increment append gather enqueue serve print_line heap_swap read_blocks "
    "ring_put surface_step texture_add add_constant const:five:4";

static CUfunction function(const char *name)
{
    return get_function(&linked, &session, name);
}

static void open_all(void)
{
    static const int zeros[1024];

    open_session(&linked, &session, 0);
    MUST(cuModuleUnload(session.module));
    MUST(cuModuleLoadData(&session.module, image));
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    values = device_ints(&linked, zeros, N);
    history = device_ints(&linked, zeros, 1024);
    cursor = device_ints(&linked, zeros, 1);
    index_at = device_ints(&linked, zeros, 1);
}

static void launch(const char *name, unsigned threads, CUstream stream, void **params)
{
    MUST(cuLaunchKernel(function(name), 1, 1, 1, threads, 1, 1, 0, stream, params, NULL));
}

static void increment(CUdeviceptr data, CUstream stream)
{
    launch("increment", N, stream, (void *[]){&data, &(int){N}});
}

/* An entry that depends on all before it. */
static void append(int tag)
{
    launch("append", 1, session.stream, (void *[]){&history, &cursor, &(int){1024}, &tag});
}

/* ---- what the device decides ---- */

/* Threads take their places in a queue in an order that no two executions share, and nobody reads it: the next kernel
 * serves them. The queue has room for what the program itself puts in. */
static void queue(void)
{
    static const int zeros[ROUNDS * N];
    CUdeviceptr places = device_ints(&linked, zeros, ROUNDS * N), taken = device_ints(&linked, zeros, 1);

    for (int i = 0; i < ROUNDS; i++) {
        launch("enqueue", N, session.stream, (void *[]){&places, &taken, &(int){ROUNDS * N}});
        launch("serve", N, session.stream, (void *[]){&places, &taken, &values, &(int){N}});
    }
    MUST(cuStreamSynchronize(session.stream));
    report_number("served", sum_ints(&linked, values, N), ROUNDS * N);
}

/* ---- what the host decides ---- */

static int *source;

static void CUDA_CB rewrite(void *unused)
{
    (void)unused;
    source[0] = (source[0] * 5 + 1) % N;
}

/* A host function of the stream rewrites what the next copy takes, and a kernel uses that as an index. */
static void host_rewrites(void)
{
    int expected[N] = {0}, got[N], at = 0, right = 1;

    MUST(cuMemHostAlloc((void **)&source, 4096, 0));
    source[0] = 0;
    for (int i = 0; i < ROUNDS; i++) {
        append(i);
        MUST(cuLaunchHostFunc(session.stream, rewrite, NULL));
        MUST(cuMemcpyHtoDAsync(index_at, source, sizeof(int), session.stream));
        launch("gather", 1, session.stream, (void *[]){&index_at, &values, &(int){N}});
        at = (at * 5 + 1) % N;
        expected[at]++;
    }
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuMemcpyDtoH(got, values, sizeof(got)));
    for (int i = 0; i < N; i++)
        right &= got[i] == expected[i];
    report("each index once", right);
}

static atomic_int spinning = 1;

static void *launch_beside(void *unused)
{
    (void)unused;
    MUST(cuCtxSetCurrent(session.ctx));
    for (int i = 0; i < 2 * ROUNDS; i++)
        append(i);
    while (atomic_load(&spinning)) /* the fake driver does what is due when it is asked */
        if (cuStreamQuery(session.stream) != CUDA_SUCCESS)
            usleep(100);
    return NULL;
}

/* One thread spins on what a copy is to bring, in the stream that each thread has for itself; another one launches. */
static void spins(void)
{
    volatile int *pinned;
    pthread_t thread;
    int right = 1;

    MUST(cuMemHostAlloc((void **)&pinned, 4096, 0));
    *pinned = 0;
    pthread_create(&thread, NULL, launch_beside, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        launch("late_increment", N, CU_STREAM_PER_THREAD, (void *[]){&values, &(int){N}, &(int){2}});
        MUST(cuMemcpyDtoHAsync((void *)pinned, values, sizeof(int), CU_STREAM_PER_THREAD));
        while (*pinned < i)
            usleep(100);
        right &= *pinned == i;
    }
    atomic_store(&spinning, 0);
    pthread_join(thread, NULL);
    report("each value once", right);
    report_number("values", sum_ints(&linked, values, N), ROUNDS * N);
}

/* As the kernel ring_put fills it. */
struct ring {
    volatile int put, taken;
    int entries[64];
};

static struct ring *ring;
static atomic_int emptying = 1, ring_sum;

static void *empty_ring(void *unused)
{
    (void)unused;
    while (ring->taken != ring->put || atomic_load(&emptying)) {
        if (ring->taken == ring->put) {
            usleep(100);
            continue;
        }
        atomic_fetch_add(&ring_sum, ring->entries[ring->taken % 64]);
        ring->taken++;
    }
    return NULL;
}

/* A ring in pinned memory, whose address a kernel finds in device memory, and which a host thread empties. What the
 * first launch has put there is left out: a profiler that repeats launches learns from it. */
static void ring_behind(int launches)
{
    enum { EACH = 4 };
    CUdeviceptr at;
    pthread_t thread;

    MUST(cuMemHostAlloc((void **)&ring, sizeof(*ring), 0));
    memset(ring, 0, sizeof(*ring));
    MUST(cuMemAlloc(&at, sizeof(ring)));
    MUST(cuMemcpyHtoD(at, &ring, sizeof(ring)));
    for (int i = 0; i < launches; i++)
        increment(values, session.stream);
    launch("ring_put", 1, session.stream, (void *[]){&at, &(int){EACH}, &(int){1}});
    MUST(cuStreamSynchronize(session.stream));
    close_a_window();
    ring->put = ring->taken = 0;
    pthread_create(&thread, NULL, empty_ring, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        append(i);
        launch("ring_put", 1, session.stream, (void *[]){&at, &(int){EACH}, &i});
        MUST(cuStreamSynchronize(session.stream));
    }
    increment(values, session.stream); /* is repeated as ever */
    MUST(cuCtxSynchronize());
    close_a_window(); /* while the ring is emptied */
    atomic_store(&emptying, 0);
    pthread_join(thread, NULL);
    report_number("taken", ring->taken, ROUNDS * EACH);
    report_number("sum of the ring", atomic_load(&ring_sum), EACH * ROUNDS * (ROUNDS + 1) / 2);
}

static void ring_of_host(void)
{
    ring_behind(0);
}

/* Its first window has so many launches that a thread of a profiler's evaluates them. */
static void ring_late(void)
{
    ring_behind(200);
}

/* ---- memory that comes and goes ---- */

/* Of each two allocations there is room for one. */
static void full_pools(void)
{
    size_t most, all;
    CUdeviceptr memory;

    MUST(cuMemGetInfo(&most, &all));
    for (int i = 0; i < ROUNDS; i++) {
        CUstream stream = i % 2 ? second : session.stream;

        MUST(cuMemAllocAsync(&memory, most / 5 * 3, stream));
        MUST(cuMemsetD32Async(memory, i, N, stream));
        increment(memory, stream);
        MUST(cuMemcpyDtoDAsync(values, memory, N * sizeof(int), stream));
        MUST(cuMemFreeAsync(memory, stream));
        MUST(cuStreamSynchronize(stream));
        append(i);
    }
    report_number("values", sum_ints(&linked, values, N), ROUNDS * N);
}

/* The program's own mistake, which the driver answers; and most of the memory once more. */
static void freed_twice(void)
{
    size_t most, all;
    CUdeviceptr memory;
    int refused = 0;

    MUST(cuMemGetInfo(&most, &all));
    for (int i = 0; i < 3; i++) {
        append(i);
        MUST(cuMemAlloc(&memory, most / 5 * 3));
        MUST(cuMemsetD32(memory, i, N));
        increment(memory, session.stream);
        MUST(cuMemcpyDtoD(values, memory, N * sizeof(int)));
        MUST(cuMemFree(memory));
        refused += cuMemFree(memory) == CUDA_ERROR_INVALID_VALUE;
    }
    report_number("refused", refused, 3);
    report_number("values", sum_ints(&linked, values, N), 3 * N);
}

static CUmemGenericAllocationHandle piece(size_t *size)
{
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle memory;

    MUST(cuMemGetAllocationGranularity(size, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cuMemCreate(&memory, *size, &what, 0));
    return memory;
}

static void map(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle memory)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    MUST(cuMemMap(at, size, 0, memory, 0));
    MUST(cuMemSetAccess(at, size, &access, 1));
}

/* Two pieces of memory by turns at one address, and one of them at a second address, too. */
static void remaps(void)
{
    CUmemGenericAllocationHandle memory[2];
    CUdeviceptr at, other;
    size_t size;

    for (int i = 0; i < 2; i++)
        memory[i] = piece(&size);
    MUST(cuMemAddressReserve(&at, size, 0, 0, 0));
    MUST(cuMemAddressReserve(&other, size, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        map(at, size, memory[i]);
        MUST(cuMemsetD32(at, 0, N));
        MUST(cuMemUnmap(at, size));
    }
    map(other, size, memory[0]);
    for (int i = 0; i < ROUNDS; i++) {
        append(i);
        map(at, size, memory[i % 2]);
        increment(at, session.stream);
        increment(other, session.stream);
        MUST(cuStreamSynchronize(session.stream));
        MUST(cuMemUnmap(at, size));
    }
    report_number("first", sum_ints(&linked, other, N), N * (ROUNDS + ROUNDS / 2));
    map(at, size, memory[1]);
    report_number("second", sum_ints(&linked, at, N), N * (ROUNDS / 2));
}

/* ---- what is no memory of its own ---- */

/* A constant that the program sets by copies and that a kernel counts up. */
static void constants(void)
{
    CUdeviceptr constant;
    size_t bytes;
    int expected = 0, one = 1;

    MUST(cuModuleGetGlobal(&constant, &bytes, session.module, "five"));
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemcpyHtoD(constant, &i, sizeof(i)));
        launch("add_constant", N, session.stream, (void *[]){&values, &(int){N}});
        launch("increment", 1, session.stream, (void *[]){&constant, &one});
        launch("add_constant", N, session.stream, (void *[]){&values, &(int){N}});
        expected += i + i + 1;
    }
    report_number("values", sum_ints(&linked, values, N), expected * N);
}

enum { ROWS = N / 16, ROW = 16 * sizeof(int) };

/* Returns a surface of an array. */
static CUsurfObject surface_of(CUarray array)
{
    const CUDA_RESOURCE_DESC what = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    CUsurfObject surface;

    MUST(cuSurfObjectCreate(&surface, &what));
    return surface;
}

static CUtexObject texture_of(const CUDA_RESOURCE_DESC *what)
{
    const CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
    CUtexObject texture;

    MUST(cuTexObjectCreate(&texture, what, &how, NULL));
    return texture;
}

static void step(CUsurfObject surface, int k)
{
    launch("surface_step", N, session.stream, (void *[]){&surface, &(int){N}, &k});
}

/* Adds a level to `values`. */
static void add_texture(CUtexObject texture, int level)
{
    launch("texture_add", N, session.stream, (void *[]){&texture, &values, &(int){N}, &level});
}

/* An array that kernels change in place, and that copies bring to linear memory and back. */
static void surface(void)
{
    const CUDA_ARRAY_DESCRIPTOR shape = {ROW / sizeof(int), ROWS, CU_AD_FORMAT_SIGNED_INT32, 1};
    CUDA_RESOURCE_DESC what = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUdeviceptr linear = device_ints(&linked, (int[N]){0}, N);
    int host[N] = {0}, element = 0, sum = 0;
    CUsurfObject by_surface;
    CUtexObject by_texture;

    MUST(cuArrayCreate(&what.res.array.hArray, &shape));
    by_surface = surface_of(what.res.array.hArray);
    by_texture = texture_of(&what);
    const CUDA_MEMCPY2D set = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = host,
                               .srcPitch = ROW,
                               .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                               .dstArray = what.res.array.hArray,
                               .WidthInBytes = ROW,
                               .Height = ROWS};
    const CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                               .srcArray = what.res.array.hArray,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = linear,
                               .dstPitch = ROW,
                               .WidthInBytes = ROW,
                               .Height = ROWS};
    const CUDA_MEMCPY2D back = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = linear,
                                .srcPitch = ROW,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = what.res.array.hArray,
                                .WidthInBytes = ROW,
                                .Height = ROWS};
    MUST(cuMemcpy2D(&set));
    for (int i = 0; i < ROUNDS; i++) {
        step(by_surface, i);
        MUST(cuMemcpy2DAsync(&out, session.stream));
        increment(linear, session.stream);
        MUST(cuMemcpy2DAsync(&back, session.stream));
        add_texture(by_texture, 0);
        element = 3 * element + i + 1;
        sum += element;
    }
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuTexObjectDestroy(by_texture));
    MUST(cuSurfObjectDestroy(by_surface));
    MUST(cuArrayDestroy(what.res.array.hArray));
    report_number("values", sum_ints(&linked, values, N), (long long)sum * N);
}

/* A level of a mipmap, changed in place and read by the host, and the whole of it as a texture. */
static void mipmap(void)
{
    enum { LEVELS = 3 };
    const CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 2 * ROW / sizeof(int),
                                           .Height = 2 * ROWS,
                                           .Format = CU_AD_FORMAT_SIGNED_INT32,
                                           .NumChannels = 1,
                                           .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_RESOURCE_DESC what = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    int host[N] = {0}, element = 0, sum = 0, right = 1;
    CUtexObject by_texture;
    CUsurfObject by_surface;
    CUarray level;

    MUST(cuMipmappedArrayCreate(&what.res.mipmap.hMipmappedArray, &shape, LEVELS));
    MUST(cuMipmappedArrayGetLevel(&level, what.res.mipmap.hMipmappedArray, 1));
    by_texture = texture_of(&what);
    by_surface = surface_of(level);
    const CUDA_MEMCPY3D set = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = host,
                               .srcPitch = ROW,
                               .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                               .dstArray = level,
                               .WidthInBytes = ROW,
                               .Height = ROWS,
                               .Depth = 1};
    const CUDA_MEMCPY2D read = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                .srcArray = level,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = host,
                                .dstPitch = ROW,
                                .WidthInBytes = ROW,
                                .Height = ROWS};
    MUST(cuMemcpy3D(&set));
    for (int i = 0; i < ROUNDS; i++) {
        step(by_surface, i);
        add_texture(by_texture, 1);
        element = 3 * element + i;
        sum += element;
        MUST(cuStreamSynchronize(session.stream));
        MUST(cuMemcpy2D(&read));
        right &= host[0] == element && host[N - 1] == element;
    }
    MUST(cuTexObjectDestroy(by_texture));
    MUST(cuSurfObjectDestroy(by_surface));
    MUST(cuMipmappedArrayDestroy(what.res.mipmap.hMipmappedArray));
    report("each value once", right);
    report_number("values", sum_ints(&linked, values, N), (long long)sum * N);
}

/* Lines that kernels print, and blocks of the device's heap that outlive their kernel, between values that are read. */
static void prints_and_reads(void)
{
    static const int zeros[4 * N];
    CUdeviceptr blocks = device_ints(&linked, zeros, 2 * N);
    int last = 0, right = 1, n = N;

    for (int i = 1; i <= ROUNDS; i++) {
        launch("print_line", 1, session.stream, (void *[]){&i});
        append(i);
        MUST(cuMemcpyDtoH(&last, cursor, sizeof(last)));
        right &= last == i;
        if (i > ROUNDS / 2)
            launch("heap_swap", N, session.stream, (void *[]){&blocks, &n, &last});
    }
    launch("read_blocks", N, session.stream, (void *[]){&blocks, &values, &n});
    report("each value once", right);
    report_number("blocks", sum_ints(&linked, values, N), N * ((4 * 3 + 5) * 3 + 6));
}

/* Reads so much that kprof has pinned memory, but the program has none; then a kernel prints. */
static void reads_then_prints(void)
{
    enum { MANY = 1 << 19 };
    static int numbers[MANY];
    CUdeviceptr many = device_ints(&linked, numbers, MANY);

    for (int i = 1; i <= ROUNDS; i++) {
        append(i);
        MUST(cuMemcpyDtoH(numbers, many, sizeof(numbers)));
    }
    MUST(cuCtxSynchronize());
    for (int i = 1; i <= ROUNDS; i++) {
        launch("print_line", 1, session.stream, (void *[]){&i});
        MUST(cuCtxSynchronize());
    }
    report("zeros", !numbers[0] && !numbers[MANY - 1]);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"queue", queue},
    {"host-rewrites", host_rewrites},
    {"spins", spins},
    {"full-pools", full_pools},
    {"freed-twice", freed_twice},
    {"remaps", remaps},
    {"constants", constants},
    {"prints-and-reads", prints_and_reads},
    {"reads-then-prints", reads_then_prints},
    {"surface", surface},
    {"mipmap", mipmap},
    {"ring", ring_of_host},
    {"ring-late", ring_late},
};

int main(int argc, char **argv)
{
    open_all();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (argc > 1 && !strcmp(cases[i].name, argv[1])) {
            cases[i].run();
            MUST(cuCtxSynchronize());
            printf("history: %lld\n", sum_ints(&linked, history, 1024));
            return program_wrong;
        }
    printf("no such case\n");
    return 3;
}
