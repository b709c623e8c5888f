// Asks the driver between launches, as programs do: for free memory, pools, and what pinned memory is. The answers are
// printed, and the same with and without kprof is the test. Argument: the case.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>
#define CK(x)                                                                                                          \
    do {                                                                                                               \
        cudaError_t e = (x);                                                                                           \
        if (e != cudaSuccess) {                                                                                        \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e));                                           \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const int n = 1 << 16, block = 256;
static const size_t MiB = 1 << 20;
static unsigned *values;

__global__ void add(unsigned *v, unsigned a)
{
    v[blockIdx.x * blockDim.x + threadIdx.x] += a;
}
__global__ void says(unsigned *v)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        printf("the kernel reads %u\n", v[0]);
}
__global__ void reads(const unsigned *pinned, unsigned *v)
{
    v[threadIdx.x] += pinned[threadIdx.x];
}
__global__ void hidden(unsigned *const *table)
{
    table[0][threadIdx.x] += 1;
}
__global__ void waits(volatile unsigned *flag, unsigned *v)
{
    while (!*flag)
        ;
    *flag = 0;
    v[0] += 1;
}
__global__ void sets(volatile unsigned *flag)
{
    *flag = 1;
}

static void launch(int times)
{
    for (int i = 0; i < times; i++)
        add<<<n / block, block>>>(values, i);
    CK(cudaGetLastError());
}

static unsigned sum(void)
{
    unsigned *host = (unsigned *)malloc(n * sizeof(*host)), total = 0;
    CK(cudaMemcpy(host, values, n * sizeof(*host), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        total += host[i];
    free(host);
    return total;
}

// Differences from the first answer: what other programs take is in none of them.
static void tell_free(const char *where)
{
    static size_t first;
    size_t left, all;
    CK(cudaMemGetInfo(&left, &all));
    first = first ? first : left;
    printf("%s: %+lld byte free of %zu\n", where, (long long)left - (long long)first, all);
}

// Takes nearly all that is free by the answer, twice: the second time behind launches.
static void take_rest(void)
{
    size_t left, all;
    void *rest;
    for (int i = 0; i < 2; i++) {
        CK(cudaMemGetInfo(&left, &all));
        int rc = cudaMalloc(&rest, left - 32 * MiB);
        printf("nearly all that is free: %d\n", rc);
        cudaGetLastError();
        if (!rc)
            CK(cudaFree(rest));
        launch(10);
    }
}

static void free_memory(void)
{
    void *whole, *piece, *more;
    tell_free("at first");
    CK(cudaMalloc(&whole, 64 * MiB));
    tell_free("after 64 MiB");
    launch(10);
    tell_free("in a window");
    CK(cudaMalloc(&more, 32 * MiB));
    launch(10);
    tell_free("after 32 MiB in it");
    CK(cudaFree(whole));
    launch(10);
    tell_free("64 MiB freed in it");
    CK(cudaMalloc(&piece, 1000));
    launch(10);
    CK(cudaFree(piece));
    tell_free("a piece freed");
    launch(10);
    CK(cudaFree(more));
    tell_free("all freed");
    take_rest();
    launch(10);
    tell_free("at the end");
}

static void tell_pool(cudaMemPool_t pool, const char *where)
{
    cuuint64_t used, reserved;
    CK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    printf("%s: %llu used, %llu reserved\n", where, (unsigned long long)used, (unsigned long long)reserved);
}

static void pools(void)
{
    cudaMemPool_t pool;
    cuuint64_t keep = UINT64_MAX;
    void *a, *b, *c;
    CK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    CK(cudaMallocAsync(&a, 8 * MiB, 0));
    launch(10);
    tell_pool(pool, "8 MiB");
    CK(cudaMallocAsync(&b, 3 * MiB, 0));
    launch(10);
    tell_pool(pool, "11 MiB");
    CK(cudaFreeAsync(a, 0));
    launch(10);
    CK(cudaStreamSynchronize(0));
    tell_pool(pool, "3 MiB");
    CK(cudaFreeAsync(b, 0));
    CK(cudaStreamSynchronize(0));
    tell_pool(pool, "none");
    CK(cudaMallocAsync(&a, 8 * MiB, 0));
    launch(10);
    CK(cudaFreeAsync(a, 0));
    launch(10);
    CK(cudaStreamSynchronize(0));
    tell_pool(pool, "none again");
    CK(cudaMallocAsync(&c, 2 * MiB, 0));
    launch(10);
    CK(cudaFree(c));
    launch(10);
    CK(cudaStreamSynchronize(0));
    tell_pool(pool, "freed as other memory");
}

static void tell_address(const char *what, void *p, const void *base)
{
    CUdeviceptr begin = 0, address = (CUdeviceptr)p;
    size_t bytes = 0;
    unsigned type = 0, flags = 0, managed = 0;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *answers[] = {&type, &managed};
    cudaPointerAttributes attributes;
    int range = cuMemGetAddressRange(&begin, &bytes, address);
    int one = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    int several = cuPointerGetAttributes(2, asked, answers, address);
    int host = cuMemHostGetFlags(&flags, p);
    int runtime = cudaPointerGetAttributes(&attributes, p);
    cudaGetLastError();
    printf("%s: range %d %+lld %zu; type %d %u; several %d %u %u; flags %d %u; runtime %d %d\n", what, range,
           range ? 0 : (long long)begin - (long long)base, bytes, one, type, several, type, managed, host, flags,
           runtime, runtime ? -1 : attributes.type);
}

static void addresses(void)
{
    char *small, *large, *mapped, *combined, *device;
    CK(cudaMallocHost(&small, 1000));
    CK(cudaMallocHost(&large, 5 * MiB));
    CK(cudaHostAlloc(&mapped, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
    CK(cudaHostAlloc(&combined, 4096, cudaHostAllocWriteCombined));
    CK(cudaMalloc(&device, 4 * MiB));
    launch(10);
    tell_address("small", small, small);
    tell_address("small, inside", small + 999, small);
    tell_address("large", large + 4 * MiB, large);
    tell_address("large, behind", large + 5 * MiB, large);
    tell_address("mapped", mapped, mapped);
    tell_address("write-combined", combined, combined);
    tell_address("device", device + 100, device);
    CK(cudaFree(device));
    tell_address("device, freed", device + 100, device);
    launch(10);
    CK(cudaFreeHost(large));
    tell_address("large, freed", large, large);
    CK(cudaFreeHost(small));
    CK(cudaFreeHost(mapped));
    CK(cudaFreeHost(combined));
    tell_address("small, freed", small, small);
}

static void capture(void)
{
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    char *pinned;
    CK(cudaStreamCreate(&stream));
    CK(cudaMallocHost(&pinned, 4096));
    launch(5);
    CK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<n / block, block, 0, stream>>>(values, 1);
    printf("a free while it captures: %d\n", (int)cudaFreeHost(pinned));
    printf("its end: %d\n", (int)cudaStreamEndCapture(stream, &graph));
    cudaGetLastError();
    printf("a free behind it: %d\n", (int)cudaFreeHost(pinned));
    cudaGetLastError();
}

// No kernel of these writes host memory that no argument points into, though some print.
static void harmless(void)
{
    unsigned *pinned;
    CK(cudaMallocHost(&pinned, n * sizeof(*pinned)));
    memset(pinned, 0, n * sizeof(*pinned));
    for (int i = 0; i < 4; i++) {
        launch(20);
        reads<<<1, block>>>(pinned, values);
        says<<<2, 32>>>(values);
        CK(cudaDeviceSynchronize());
    }
}

// One that does.
static void writes(void)
{
    unsigned *pinned, **table;
    CK(cudaMallocHost(&pinned, block * sizeof(*pinned)));
    memset(pinned, 0, block * sizeof(*pinned));
    CK(cudaMalloc(&table, sizeof(*table)));
    CK(cudaMemcpy(table, &pinned, sizeof(pinned), cudaMemcpyHostToDevice));
    for (int i = 0; i < 4; i++) {
        hidden<<<1, block>>>(table);
        launch(20);
        CK(cudaDeviceSynchronize());
    }
    printf("each written at least four times: %s\n", pinned[0] >= 4 && pinned[block - 1] >= 4 ? "yes" : "no");
}

// A kernel that a later launch ends.
static void waiting(void)
{
    cudaStream_t other;
    unsigned *flag;
    CK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CK(cudaMalloc(&flag, sizeof(*flag)));
    CK(cudaMemset(flag, 0, sizeof(*flag)));
    sets<<<1, 1>>>(flag); // both are loaded now: loading one would wait for the other, which waits for it
    waits<<<1, 1>>>(flag, values);
    CK(cudaDeviceSynchronize());
    for (int i = 0; i < 3; i++) {
        launch(5);
        waits<<<1, 1>>>(flag, values);
        sets<<<1, 1, 0, other>>>(flag);
        CK(cudaDeviceSynchronize());
    }
}

// Programs make a context, prepare, and launch.
static void start(void)
{
    CK(cudaFree(0));
    usleep(600000);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"free", free_memory},  {"pools", pools},   {"addresses", addresses}, {"capture", capture},
             {"harmless", harmless}, {"writes", writes}, {"waiting", waiting},     {"start", start}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++)
        if (!strcmp(argv[1], cases[i].name)) {
            if (cases[i].run == start)
                start();
            CK(cudaMalloc(&values, n * sizeof(*values)));
            CK(cudaMemset(values, 0, n * sizeof(*values)));
            if (cases[i].run != start)
                cases[i].run();
            launch(10);
            printf("sum %u\n", sum());
            return 0;
        }
    puts("asks: no such case");
    return 2;
}
