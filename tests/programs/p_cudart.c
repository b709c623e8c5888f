/* LINK: -lcudart */
/* A program of the runtime API, linked to the shared runtime. */
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 100 };

void fake_cudart_register(const void *host, const char *kernel);
cudaError_t cudaLaunchKernel_ptsz(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                                  cudaStream_t stream);

/* A compiler would put a launch stub here; only its address matters. */
static void increment(void)
{
}

static void must(cudaError_t error, const char *what)
{
    if (error) {
        printf("%s: error %d\n", what, (int)error);
        exit(2);
    }
}
#define MUST(call) must(call, #call)

int main(void)
{
    int n = N, host[N], wrong = 0;
    dim3 one = {1, 1, 1}, block = {128, 1, 1};
    cudaLaunchConfig_t config = {.gridDim = one, .blockDim = block};
    cudaGraphExec_t exec;
    cudaStream_t stream;
    cudaGraph_t graph;
    int *values;
    void *args[] = {&values, &n};

    fake_cudart_register((const void *)increment, "_Z9incrementPii");
    MUST(cudaMalloc((void **)&values, sizeof(host)));
    MUST(cudaMemset(values, 0, sizeof(host)));
    MUST(cudaStreamCreate(&stream));
    MUST(cudaProfilerStart());
    MUST(cudaLaunchKernel((const void *)increment, one, block, args, 0, stream));
    MUST(cudaLaunchKernel_ptsz((const void *)increment, one, block, args, 0, NULL));
    MUST(cudaLaunchKernelExC(&config, (const void *)increment, args));
    MUST(cudaLaunchCooperativeKernel((const void *)increment, one, block, args, 0, NULL));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(cudaLaunchKernel((const void *)increment, one, block, args, 0, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaDeviceSynchronize());
    MUST(cudaProfilerStop());
    MUST(cudaMemcpy(host, values, sizeof(host), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        wrong |= host[i] != 5;
    printf("increments: %s\n", wrong ? "WRONG" : "right");
    MUST(cudaFree(values));
    return wrong;
}
