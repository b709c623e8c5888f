// Launches of two small in-place kernels in turn, for the cost of profiling one. The checksum on stdout depends on
// every launch having run exactly once and in order; times go to stderr, so that the output of runs can be compared.
//   bench_launches N [sync] [tiny] [GB]
//   sync: wait after each launch      tiny: one block a launch, so that the time is that of the call
//   GB:   own that much memory (1e9 byte each) in blocks of 2 GB, filled; the launches write into all of them
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
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
static const size_t bytes = n * sizeof(float), most_block = 2000000000;

__global__ void axpy(float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] += a * x[i];
}
__global__ void decay(float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * y[i] - x[i];
}

struct options {
    long launches;
    bool sync, tiny;
    double gigabytes;
};

// The vectors that the launches write in turn: one of their own, or the start of each block of the footprint.
static std::vector<float *> allocate(const options &o, std::vector<size_t> &sizes)
{
    std::vector<float *> blocks;
    size_t left = std::max((size_t)(o.gigabytes * 1e9), bytes);
    for (; left >= bytes; left -= sizes.back()) {
        float *p;
        sizes.push_back(std::min(left, most_block));
        CK(cudaMalloc(&p, sizes.back()));
        CK(cudaMemset(p, 0x30 + blocks.size() % 16, sizes.back()));
        blocks.push_back(p);
    }
    return blocks;
}

static void launch_all(const options &o, const float *x, const std::vector<float *> &ys)
{
    int grid = o.tiny ? 1 : n / block;
    for (long i = 0; i < o.launches; i++) {
        float *y = ys[(i / 2) % ys.size()];
        if (i % 2)
            decay<<<grid, block>>>(0.75f, x, y);
        else
            axpy<<<grid, block>>>(0.5f, x, y);
        if (o.sync)
            CK(cudaDeviceSynchronize());
    }
    CK(cudaGetLastError());
}

// Of what is written, and of samples of what is not and must have stayed as it was.
static unsigned long long checksum(const std::vector<float *> &ys, const std::vector<size_t> &sizes)
{
    static const size_t sample = 4096;
    std::vector<unsigned char> h(bytes);
    unsigned long long s = 14695981039346656037ull;
    for (size_t k = 0; k < ys.size(); k++)
        for (size_t at : {(size_t)0, sizes[k] / 2, sizes[k] - sample}) {
            size_t some = at ? sample : bytes;
            CK(cudaMemcpy(h.data(), (char *)ys[k] + at, some, cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < some; i++)
                s = (s ^ h[i]) * 1099511628211ull;
        }
    return s;
}

int main(int argc, char **argv)
{
    options o = {argc > 1 ? atol(argv[1]) : 400, false, false, 0};
    for (int i = 2; i < argc; i++) {
        o.sync |= !strcmp(argv[i], "sync");
        o.tiny |= !strcmp(argv[i], "tiny");
        o.gigabytes = std::max(o.gigabytes, atof(argv[i]));
    }
    float *x;
    std::vector<size_t> sizes;
    CK(cudaMalloc(&x, bytes));
    CK(cudaMemset(x, 0x3c, bytes));
    std::vector<float *> ys = allocate(o, sizes);
    cudaFuncAttributes loaded; // loads the kernels, which otherwise their first launch does
    CK(cudaFuncGetAttributes(&loaded, axpy));
    CK(cudaFuncGetAttributes(&loaded, decay));
    CK(cudaDeviceSynchronize());
    auto start = std::chrono::steady_clock::now();
    launch_all(o, x, ys);
    CK(cudaDeviceSynchronize());
    std::chrono::duration<double> launches = std::chrono::steady_clock::now() - start;
    unsigned long long sum = checksum(ys, sizes);
    std::chrono::duration<double> total = std::chrono::steady_clock::now() - start;
    printf("%ld launches, checksum %016llx\n", o.launches, sum);
    fprintf(stderr, "bench: launches %.6f s, with results %.6f s\n", launches.count(), total.count());
    return 0;
}
