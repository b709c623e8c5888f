// In-place and atomic kernels whose results depend on every launch having run exactly once, in order, and a few launches
// of other kinds. Checks its own results; the same output with and without kprof is the test.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>
#include <vector>
#define CK(x)                                                                                                          \
    do {                                                                                                               \
        cudaError_t e = (x);                                                                                           \
        if (e != cudaSuccess) {                                                                                        \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e));                                           \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const int n = 1 << 18, block = 256;

__global__ void affine(unsigned *v, unsigned m, unsigned a)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    v[i] = v[i] * m + a;
}
__global__ void histogram(const unsigned *v, unsigned *bins)
{
    atomicAdd(&bins[v[blockIdx.x * blockDim.x + threadIdx.x] & 255], 1u);
}
__global__ void append(unsigned *cursor, unsigned *out)
{
    if (threadIdx.x == 0)
        out[atomicAdd(cursor, 1u)] = blockIdx.x;
}
__global__ void grid_sum(unsigned *v)
{
    cooperative_groups::this_grid().sync();
    v[blockIdx.x * blockDim.x + threadIdx.x] += gridDim.x;
}
__global__ void __cluster_dims__(4, 1, 1) clustered(unsigned *v)
{
    v[blockIdx.x * blockDim.x + threadIdx.x] ^= 0x55u;
}
__device__ unsigned device_counter;
__global__ void count_global() { atomicAdd(&device_counter, 1u); }

static unsigned long long checksum(const unsigned *d)
{
    std::vector<unsigned> h(n);
    CK(cudaMemcpy(h.data(), d, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned long long s = 14695981039346656037ull;
    for (unsigned x : h)
        s = (s ^ x) * 1099511628211ull;
    return s;
}

static void worker(int k, unsigned long long *out)
{
    unsigned *v;
    cudaStream_t stream;
    int devices = 1;
    CK(cudaGetDeviceCount(&devices));
    CK(cudaSetDevice(k % devices));
    CK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CK(cudaMalloc(&v, n * sizeof(unsigned)));
    CK(cudaMemsetAsync(v, k, n * sizeof(unsigned), stream));
    for (int i = 0; i < 5; i++)
        affine<<<n / block, block, 0, stream>>>(v, 3 + k, i);
    CK(cudaStreamSynchronize(stream));
    *out = checksum(v);
    CK(cudaFree(v));
    CK(cudaStreamDestroy(stream));
}

int main()
{
    unsigned *v, *bins, *cursor, *out, *managed, *pinned, *pinned_device;
    CK(cudaMalloc(&v, n * sizeof(unsigned)));
    CK(cudaMalloc(&bins, 256 * sizeof(unsigned)));
    CK(cudaMalloc(&cursor, sizeof(unsigned)));
    CK(cudaMalloc(&out, 4096 * sizeof(unsigned)));
    CK(cudaMallocManaged(&managed, n * sizeof(unsigned)));
    CK(cudaHostAlloc(&pinned, n * sizeof(unsigned), cudaHostAllocMapped));
    CK(cudaHostGetDevicePointer(&pinned_device, pinned, 0));
    CK(cudaMemset(v, 1, n * sizeof(unsigned)));
    CK(cudaMemset(bins, 0, 256 * sizeof(unsigned)));
    CK(cudaMemset(cursor, 0, sizeof(unsigned)));
    CK(cudaMemset(out, 0, 4096 * sizeof(unsigned)));
    for (int i = 0; i < n; i++)
        managed[i] = pinned[i] = i;
    for (int i = 0; i < 4; i++)
        affine<<<n / block, block>>>(v, 1664525u, 1013904223u + i);
    for (int i = 0; i < 3; i++)
        histogram<<<n / block, block>>>(v, bins);
    for (int i = 0; i < 3; i++)
        append<<<64, 32>>>(cursor, out);
    affine<<<n / block, block>>>(managed, 5, 1);
    affine<<<n / block, block>>>(pinned_device, 7, 3);
    clustered<<<n / block, block>>>(v);
    for (int i = 0; i < 3; i++)
        count_global<<<8, 32>>>();
    void *args[] = {&v};
    CK(cudaLaunchCooperativeKernel((void *)grid_sum, dim3(132), dim3(128), args, 0, nullptr));
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CK(cudaStreamCreate(&s));
    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 3; i++)
        affine<<<n / block, block, 0, s>>>(v, 11, i);
    CK(cudaStreamEndCapture(s, &graph));
    CK(cudaGraphInstantiate(&exec, graph, 0));
    CK(cudaGraphLaunch(exec, s));
    CK(cudaGraphLaunch(exec, s));
    CK(cudaDeviceSynchronize());
    unsigned total = 0, cursor_host = 0, counted = 0;
    std::vector<unsigned> b(256), o(4096);
    CK(cudaMemcpy(b.data(), bins, sizeof(unsigned) * 256, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(&cursor_host, cursor, sizeof(unsigned), cudaMemcpyDeviceToHost));
    CK(cudaMemcpyFromSymbol(&counted, device_counter, sizeof(counted)));
    for (unsigned x : b)
        total += x;
    unsigned long long m = 0, p = 0;
    for (int i = 0; i < n; i++) {
        m += managed[i];
        p += pinned[i];
    }
    printf("affine %016llx\nhistogram %u\nappended %u\ncounted %u\nmanaged %llu\npinned %llu\n", checksum(v), total,
           cursor_host, counted, m, p);
    unsigned long long sums[4];
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; k++)
        threads.emplace_back(worker, k, &sums[k]);
    for (auto &t : threads)
        t.join();
    for (int k = 0; k < 4; k++)
        printf("thread %d %016llx\n", k, sums[k]);
    bool right = total == 3u * n && cursor_host == 192 && counted == 3 * 8 * 32 && m == 5ull * n * (n - 1) / 2 + n &&
                 p == 7ull * n * (n - 1) / 2 + 3ull * n;
    puts(right ? "inplace OK" : "inplace WRONG");
    return right ? 0 : 1;
}
