// Graphs of different sizes, launched in a row: each must get counters of its own. First kernels of 1 to 8 blocks by
// themselves, then graphs of two kernels, one of k blocks and one of 3, for k from 1 to 8, two launches of each.
// Prints the same in every run.
// Build: nvcc -O2 -std=c++17 -arch=ARCH -o graphs graphs.cu
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CK(x)                                                                                                          \
    do {                                                                                                               \
        cudaError_t e_ = (x);                                                                                          \
        if (e_ != cudaSuccess) {                                                                                       \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));                                          \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const int most = 8, block = 128;

__global__ void step(unsigned *v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    v[i] = v[i] * 3 + 1;
}

int main()
{
    unsigned *v, host[most * block], sum = 0;
    cudaStream_t s;
    cudaGraphExec_t exec[most];
    CK(cudaMalloc(&v, sizeof(host)));
    CK(cudaMemset(v, 0, sizeof(host)));
    CK(cudaStreamCreate(&s));
    for (int k = 1; k <= most; k++) {
        cudaGraph_t graph;
        CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
        step<<<k, block, 0, s>>>(v);
        step<<<3, block, 0, s>>>(v);
        CK(cudaStreamEndCapture(s, &graph));
        CK(cudaGraphInstantiate(&exec[k - 1], graph, 0));
    }
    for (int k = 1; k <= most; k++)
        step<<<k, block, 0, s>>>(v);
    for (int round = 0; round < 2; round++)
        for (int k = 1; k <= most; k++)
            CK(cudaGraphLaunch(exec[k - 1], s));
    CK(cudaMemcpyAsync(host, v, sizeof(host), cudaMemcpyDeviceToHost, s));
    CK(cudaStreamSynchronize(s));
    for (unsigned x : host)
        sum = sum * 31 + x;
    printf("%u\n", sum);
    return 0;
}
