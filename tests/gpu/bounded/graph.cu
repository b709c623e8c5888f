// A graph of ten kernels, a memset and a copy, captured from two streams, is launched 5,000 times.
#include "bounded.cuh"

enum { LAUNCHES = 5000, N = 1 << 15, KERNELS = 10 };

__global__ void add(unsigned *to, const unsigned *from, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] += from[i];
}

int main()
{
    unsigned *a = device_zeros<unsigned>(N), *b = device_zeros<unsigned>(N), *c = device_zeros<unsigned>(N);
    cudaStream_t first, second;
    cudaEvent_t fork, join;
    CK(cudaStreamCreate(&first));
    CK(cudaStreamCreate(&second));
    CK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    CK(cudaMemsetAsync(c, 1, N * sizeof *c, first));
    CK(cudaEventRecord(fork, first));
    CK(cudaStreamWaitEvent(second, fork, 0));
    for (unsigned k = 0; k < 4; k++) {
        mix<<<32 + 16 * k, 256, 0, first>>>(a, N, k);
        mix<<<8 + 4 * k, 128, 0, second>>>(b, N, k + 7);
    }
    CK(cudaEventRecord(join, second));
    CK(cudaStreamWaitEvent(first, join, 0));
    add<<<64, 256, 0, first>>>(c, b, N);
    CK(cudaMemcpyAsync(b, c, N / 2 * sizeof *b, cudaMemcpyDeviceToDevice, first));
    add<<<32, 512, 0, first>>>(a, c, N);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CK(cudaStreamEndCapture(first, &graph));
    CK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < LAUNCHES; i++) {
        CK(cudaGraphLaunch(executable, first));
        if (i % 100 == 99)
            CK(cudaStreamSynchronize(first));
    }
    CK(cudaStreamSynchronize(first));
    unsigned long long sum = digest_of_device(a, N) ^ 3 * digest_of_device(b, N);
    return ended("graph", LAUNCHES * KERNELS, sum);
}
