// A program for the timeline: kernels on two streams that overlap, copies both ways, a memset, gaps of known length in which
// the host sleeps, and NVTX ranges where the headers are at hand. The first line that it prints is the same in every run.
//   timeline [N] [REPEAT]    N: launches of the long row without a wait (20000); REPEAT: rounds of the streams (20)
// It measures itself: ns a launch of the long row on the host, from the first launch to the end of the last.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>
#include <vector>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define PUSH(name) nvtxRangePushA(name)
#define POP()      nvtxRangePop()
#else
#define PUSH(name)
#define POP()
#endif
#define CK(x)                                                                                                          \
    do {                                                                                                               \
        cudaError_t e = (x);                                                                                           \
        if (e != cudaSuccess) {                                                                                        \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e));                                  \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

__global__ void tiny(unsigned *v)
{
    v[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

__global__ void busy(unsigned *v, unsigned rounds)
{
    unsigned x = v[blockIdx.x * blockDim.x + threadIdx.x];
    for (unsigned i = 0; i < rounds; i++)
        x = x * 1664525u + 1013904223u;
    v[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 20000, repeat = argc > 2 ? atoi(argv[2]) : 20, size = 1 << 14;
    cudaStream_t streams[2];
    unsigned *device[2], *host;
    CK(cudaMallocHost(&host, size * sizeof *host));
    for (int i = 0; i < size; i++)
        host[i] = (unsigned)i;
    for (int s = 0; s < 2; s++) {
        CK(cudaStreamCreate(&streams[s]));
        CK(cudaMalloc(&device[s], size * sizeof **device));
        CK(cudaMemset(device[s], 0, size * sizeof **device));
    }
    tiny<<<size / 256, 256, 0, streams[0]>>>(device[0]); // loads the module
    CK(cudaDeviceSynchronize());

    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < n; i++)
        tiny<<<size / 256, 256, 0, streams[0]>>>(device[0]);
    CK(cudaDeviceSynchronize());
    double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();

    for (int r = 0; r < repeat; r++) {
        PUSH("round");
        for (int s = 0; s < 2; s++) {
            CK(cudaMemcpyAsync(device[s], host, size * sizeof *host, cudaMemcpyHostToDevice, streams[s]));
            busy<<<size / 256, 256, 0, streams[s]>>>(device[s], 20000 + 1000 * s);
        }
        CK(cudaDeviceSynchronize());
        POP();
        if (r % 5 == 4) {
            PUSH("after a pause");
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            busy<<<size / 256, 256, 0, streams[0]>>>(device[0], 100);
            CK(cudaDeviceSynchronize());
            POP();
        }
    }
    std::vector<unsigned> back(size);
    unsigned sum = 0;
    for (int s = 0; s < 2; s++) {
        CK(cudaMemcpy(back.data(), device[s], size * sizeof *host, cudaMemcpyDeviceToHost));
        for (unsigned v : back)
            sum = sum * 31 + v;
    }
    printf("sum %u\n", sum);
    fprintf(stderr, "%.0f ns a launch\n", ns / n);
    return 0;
}
