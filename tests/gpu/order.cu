// Orders that the host makes between streams, and times of events, which a profiler that issues launches again must keep.
// Prints the same in every run; all is also computed on the CPU.
//   order [GB]     GB: size of the copy whose end a kernel of another stream needs (2)
// Build: nvcc -O2 -std=c++17 -arch=ARCH -o order order.cu
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CK(x)                                                                                                          \
    do {                                                                                                               \
        cudaError_t e_ = (x);                                                                                          \
        if (e_ != cudaSuccess) {                                                                                       \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));                                          \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const int n = 1 << 16, block = 256, grid = n / block;
static bool all_right = true;

__global__ void gather(const unsigned *index, const unsigned *from, unsigned *to)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = to[i] * 3 + from[index[i]]; // an index of before the copy is far out of bounds
}
__global__ void step(unsigned *v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    v[i] = v[i] * 3 + 1;
}
__global__ void spend(unsigned long long ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

static void verdict(const char *name, bool ok)
{
    printf("%-28s %s\n", name, ok ? "OK" : "WRONG");
    all_right &= ok;
}

// A large copy on one stream, whose last bytes are the indices; the host waits; a kernel on another stream uses them.
static void copy_then_gather(size_t bytes)
{
    cudaStream_t a, b;
    char *big, *source;
    unsigned *from, *to;
    std::vector<unsigned> index(n), values(n), is(n), wanted(n, 0);
    for (int i = 0; i < n; i++) {
        index[i] = (unsigned)(i * 7919 % n);
        values[i] = i * 5 + 1;
    }
    CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CK(cudaMalloc(&big, bytes));
    CK(cudaMalloc(&source, bytes));
    CK(cudaMalloc(&from, n * sizeof(unsigned)));
    CK(cudaMalloc(&to, n * sizeof(unsigned)));
    CK(cudaMemset(big, 0xff, bytes));
    CK(cudaMemset(to, 0, n * sizeof(unsigned)));
    CK(cudaMemcpy(source + bytes - n * sizeof(unsigned), index.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
    CK(cudaMemcpy(from, values.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
    CK(cudaDeviceSynchronize());
    for (int k = 0; k < 4; k++) {
        step<<<grid, block, 0, b>>>(to);
        CK(cudaMemcpyAsync(big, source, bytes, cudaMemcpyDeviceToDevice, a));
        CK(cudaStreamSynchronize(a));
        gather<<<grid, block, 0, b>>>((unsigned *)(big + bytes) - n, from, to);
        CK(cudaStreamSynchronize(b));
        CK(cudaMemsetAsync(big, 0xff, bytes, a));
        for (int i = 0; i < n; i++)
            wanted[i] = (wanted[i] * 3 + 1) * 3 + values[index[i]];
    }
    CK(cudaMemcpy(is.data(), to, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    verdict("copy, wait, gather", is == wanted);
    CK(cudaFree(big));
    CK(cudaFree(source));
    CK(cudaFree(from));
    CK(cudaFree(to));
}

static void event_times()
{
    cudaEvent_t start, end;
    float first, second;
    unsigned *v;
    std::vector<unsigned> is(n);
    CK(cudaMalloc(&v, n * sizeof(unsigned)));
    CK(cudaMemset(v, 0, n * sizeof(unsigned)));
    CK(cudaEventCreate(&start));
    CK(cudaEventCreate(&end));
    step<<<grid, block>>>(v);
    CK(cudaEventRecord(start));
    spend<<<1, 1>>>(5000000);
    CK(cudaEventRecord(end));
    CK(cudaEventSynchronize(end));
    CK(cudaEventElapsedTime(&first, start, end));
    CK(cudaMemcpy(is.data(), v, n * sizeof(unsigned), cudaMemcpyDeviceToHost)); // closes a window
    CK(cudaEventElapsedTime(&second, start, end));
    verdict("time between two events", first == second && first >= 5 && first < 500);
    CK(cudaFree(v));
}

int main(int argc, char **argv)
{
    copy_then_gather((size_t)((argc > 1 ? atof(argv[1]) : 2) * 1e9) / 4096 * 4096);
    event_times();
    printf("%s\n", all_right ? "all right" : "WRONG");
    return all_right ? 0 : 1;
}
