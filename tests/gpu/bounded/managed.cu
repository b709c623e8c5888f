// A product of matrices whose memory is managed, mapped or copied in eight ways: 1,400 launches in 7 sizes, and the
// host writes the operands before each and reads the result after it.
#include "bounded.cuh"

enum { ROUNDS = 25, TILE = 32, WAYS = 8, WIDEST = 512 };

__global__ void multiply(const unsigned *a, const unsigned *b, unsigned *c, int n)
{
    __shared__ unsigned ta[TILE][TILE], tb[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    unsigned sum = 0;
    for (int k = 0; k < n; k += TILE) {
        ta[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}

enum way { HINTS, PREFETCH_ALONE, ADVICE, PLAIN, MAPPED, PAGEABLE, PINNED, PINNED_ASYNC };
static const cudaMemLocation on_host = {cudaMemLocationTypeHost, 0}, on_device = {cudaMemLocationTypeDevice, 0};
static unsigned *host[3], *device[3], launches;
static cudaStream_t stream;

static void take(int way, size_t bytes)
{
    for (int i = 0; i < 3; i++) {
        if (way <= PLAIN)
            CK(cudaMallocManaged(&host[i], bytes));
        else if (way == PAGEABLE)
            host[i] = (unsigned *)malloc(bytes);
        else
            CK(cudaHostAlloc(&host[i], bytes, way == MAPPED ? cudaHostAllocMapped : cudaHostAllocDefault));
        if (way == MAPPED)
            CK(cudaHostGetDevicePointer(&device[i], host[i], 0));
        else if (way > MAPPED)
            CK(cudaMalloc(&device[i], bytes));
        else
            device[i] = host[i];
        if ((way == HINTS || way == ADVICE) && i < 2)
            CK(cudaMemAdvise(host[i], bytes, cudaMemAdviseSetReadMostly, on_device));
        if (way == ADVICE && i == 2)
            CK(cudaMemAdvise(host[i], bytes, cudaMemAdviseSetPreferredLocation, on_device));
    }
}

static void give_back(int way)
{
    for (int i = 0; i < 3; i++) {
        if (way > MAPPED)
            CK(cudaFree(device[i]));
        if (way <= PLAIN)
            CK(cudaFree(host[i]));
        else if (way == PAGEABLE)
            free(host[i]);
        else
            CK(cudaFreeHost(host[i]));
    }
}

static void copy(int way, unsigned *to, const unsigned *from, size_t bytes)
{
    if (way == PINNED_ASYNC)
        CK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    else
        CK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

static void multiply_once(int way, int n)
{
    size_t bytes = (size_t)n * n * sizeof(unsigned);
    bool prefetch = way == HINTS || way == PREFETCH_ALONE;
    for (int i = 0; i < 2; i++) {
        if (prefetch)
            CK(cudaMemPrefetchAsync(host[i], bytes, on_device, 0, stream));
        if (way > MAPPED)
            copy(way, device[i], host[i], bytes);
    }
    if (prefetch)
        CK(cudaMemPrefetchAsync(host[2], bytes, on_device, 0, stream));
    multiply<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE), 0, stream>>>(device[0], device[1], device[2], n);
    launches++;
    CK(cudaGetLastError());
    if (prefetch)
        CK(cudaMemPrefetchAsync(host[2], bytes, on_host, 0, stream));
    if (way == PINNED_ASYNC)
        copy(way, host[2], device[2], bytes);
    CK(cudaStreamSynchronize(stream));
    if (way > MAPPED && way != PINNED_ASYNC)
        copy(way, host[2], device[2], bytes);
}

int main()
{
    if (!attribute(cudaDevAttrConcurrentManagedAccess))
        NEEDS(1, "concurrent access to managed memory");
    static const int sizes[] = {32, 64, 96, 128, 192, 256, WIDEST};
    unsigned long long sum = 0;
    CK(cudaStreamCreate(&stream));
    for (int way = 0; way < WAYS; way++)
        for (int n : sizes) {
            size_t count = (size_t)n * n;
            take(way, count * sizeof(unsigned));
            for (int r = 0; r < ROUNDS; r++) {
                unsigned state = r + n;
                for (size_t i = 0; i < count; i++) {
                    host[0][i] = next_random(&state);
                    host[1][i] = next_random(&state);
                }
                multiply_once(way, n);
                sum = digest(host[2], (n < 128 ? count : 4096) * sizeof(unsigned), sum);
            }
            give_back(way);
        }
    return ended("managed", launches, sum);
}
