// LINK: -rdc=true -lcudadevrt
// A graph that a kernel of another graph launches on the device, by a tail launch that repeats itself: a scheduler on
// the device. The program changes the number of repetitions between launches.
#include "contact.cuh"

enum { N = 1 << 12, TIMES = 4 };
__device__ cudaGraphExec_t work_graph;

__global__ void scheduler(unsigned *left)
{
    if (*left == 0)
        return;
    *left -= 1;
    cudaGraphLaunch(work_graph, cudaStreamGraphFireAndForget);
    cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
__global__ void bump(unsigned *v, unsigned *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    v[i] += 3;
    if (i == 0)
        atomicAdd(count, 1u);
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N), *left = device_zeros<unsigned>(1), *count = device_zeros<unsigned>(1);
    cudaStream_t s;
    cudaGraph_t work, main_graph;
    cudaGraphExec_t work_exec, main_exec;
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    bump<<<N / 256, 256, 0, s>>>(v, count);
    CK(cudaStreamEndCapture(s, &work));
    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    scheduler<<<1, 1, 0, s>>>(left);
    CK(cudaStreamEndCapture(s, &main_graph));
    NEEDS(cudaGraphInstantiate(&work_exec, work, cudaGraphInstantiateFlagDeviceLaunch), "device graphs");
    NEEDS(cudaGraphInstantiate(&main_exec, main_graph, cudaGraphInstantiateFlagDeviceLaunch), "device graphs");
    CK(cudaMemcpyToSymbol(work_graph, &work_exec, sizeof(work_exec)));
    CK(cudaGraphUpload(work_exec, s));
    CK(cudaGraphUpload(main_exec, s));
    CK(cudaStreamSynchronize(s));
    unsigned total = 0;
    for (unsigned t = 1; t <= TIMES; t++) {
        CK(cudaMemcpyAsync(left, &t, 4, cudaMemcpyHostToDevice, s));
        CK(cudaGraphLaunch(main_exec, s));
        CK(cudaStreamSynchronize(s));
        total += t;
    }
    unsigned got = from_device(v + N - 1), n = from_device(count);
    printf("value %u, launches %u\n", got, n);
    return verdict("devicegraph", got == 3 * total && n == total);
}
