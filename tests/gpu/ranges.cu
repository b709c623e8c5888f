// Ranges for range replay. Argument: the program.
//   streams   between cudaProfilerStart and Stop: the same kernels in two streams side by side, then in one stream. Each
//             takes half of the SMs.
//   pipeline  an NVTX range a step: copies from and to pinned memory, kernels and events in three streams.
//   anything  between cudaProfilerStart and Stop what cannot be repeated: the device's heap, a function of the host, a graph
//             that is captured within, memory that is made and freed, a value that the host reads and acts on.
// Prints sums of what was computed; on stderr how long each range took on the program's own clock, ms.
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t rc = (call);                                                                                       \
        if (rc != cudaSuccess) {                                                                                       \
            printf("%s: %s\n", #call, cudaGetErrorString(rc));                                                         \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

__global__ void spin(float *data, int n, int rounds)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = data[i];
        for (int k = 0; k < rounds; k++)
            v = v * 0.999f + 0.5f;
        data[i] = v;
    }
}

__global__ void scale(float *to, const float *from, int n, float by)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = by * from[i] + 1;
}

// Each thread takes memory of the device's heap, and gives it back.
__global__ void heap(float *data, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float *block = i < n ? (float *)malloc(4 * sizeof *block) : nullptr;
    if (!block)
        return;
    block[3] = data[i] + 1;
    data[i] = block[3];
    free(block);
}

static double now_ms()
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void print_sum(const char *what, const float *values, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    printf("%s %.9g\n", what, sum);
}

static int half_of_sms()
{
    cudaDeviceProp p;
    MUST(cudaGetDeviceProperties(&p, 0));
    return p.multiProcessorCount / 2;
}

static void run_streams()
{
    enum { N = 1 << 18, EACH = 4 };
    static float host[N];
    float *data[2];
    cudaStream_t streams[2];
    const int blocks = half_of_sms();
    for (int s = 0; s < 2; s++) {
        MUST(cudaMalloc(&data[s], sizeof host));
        MUST(cudaMemset(data[s], 0, sizeof host));
        MUST(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
        spin<<<blocks, 1024, 0, streams[s]>>>(data[s], N, 1); // so that the module is loaded
    }
    MUST(cudaDeviceSynchronize());
    for (int several = 2; several; several--) {
        double start = now_ms();
        MUST(cudaProfilerStart());
        for (int k = 0; k < EACH; k++)
            for (int s = 0; s < 2; s++)
                spin<<<blocks, 1024, 0, streams[several == 2 ? s : 0]>>>(data[s], N, 20000);
        MUST(cudaDeviceSynchronize());
        MUST(cudaProfilerStop());
        fprintf(stderr, "%d streams: %.2f ms\n", several, now_ms() - start);
    }
    for (int s = 0; s < 2; s++) {
        MUST(cudaMemcpy(host, data[s], sizeof host, cudaMemcpyDeviceToHost));
        print_sum("streams", host, N);
    }
}

static void run_pipeline()
{
    enum { N = 3 << 20, PART = N / 3 };
    float *from, *to, *a, *b;
    cudaStream_t streams[3];
    cudaEvent_t done[3];
    MUST(cudaMallocHost(&from, N * sizeof *from));
    MUST(cudaMallocHost(&to, N * sizeof *to));
    MUST(cudaMalloc(&a, N * sizeof *a));
    MUST(cudaMalloc(&b, N * sizeof *b));
    memset(to, 0, N * sizeof *to);
    for (int i = 0; i < N; i++)
        from[i] = (float)(i % 1000);
    for (int s = 0; s < 3; s++) {
        MUST(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
        MUST(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
    }
    for (int step = 0; step < 3; step++) {
        double start = now_ms();
        nvtxRangePushA(step ? "step" : "warm-up");
        for (int s = 0; s < 3; s++) {
            const int at = s * PART;
            MUST(cudaMemcpyAsync(a + at, from + at, PART * sizeof *a, cudaMemcpyHostToDevice, streams[s]));
            scale<<<256, 256, 0, streams[s]>>>(b + at, a + at, PART, 0.5f + step);
            spin<<<256, 256, 0, streams[s]>>>(b + at, PART, 500);
            MUST(cudaEventRecord(done[s], streams[s]));
        }
        for (int s = 1; s < 3; s++)
            MUST(cudaStreamWaitEvent(streams[0], done[s], 0));
        scale<<<512, 256, 0, streams[0]>>>(a, b, N, 2);
        MUST(cudaMemcpyAsync(to, a, N * sizeof *a, cudaMemcpyDeviceToHost, streams[0]));
        MUST(cudaStreamSynchronize(streams[0]));
        nvtxRangePop();
        fprintf(stderr, "step %d: %.2f ms\n", step, now_ms() - start);
        print_sum("step", to, N);
    }
}

static void CUDART_CB count_call(void *calls)
{
    ++*(int *)calls;
}

static void run_anything()
{
    enum { N = 1 << 14 };
    static float host[N];
    float *data, *more;
    int calls = 0;
    cudaStream_t stream, other;
    MUST(cudaMalloc(&data, sizeof host));
    MUST(cudaMemset(data, 0, sizeof host));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    heap<<<N / 256, 256, 0, stream>>>(data, N);
    spin<<<64, 256, 0, stream>>>(data, N, 1);
    scale<<<64, 256, 0, stream>>>(data, data, N, 1); // so that all are loaded
    MUST(cudaDeviceSynchronize());
    for (int round = 0; round < 2; round++) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        MUST(cudaProfilerStart());
        heap<<<N / 256, 256, 0, stream>>>(data, N);
        MUST(cudaLaunchHostFunc(stream, count_call, &calls));
        MUST(cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal));
        for (int k = 0; k < 4; k++)
            spin<<<64, 256, 0, other>>>(data, N, 100 + k);
        MUST(cudaStreamEndCapture(other, &graph));
        MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaGraphLaunch(exec, other));
        MUST(cudaStreamSynchronize(other));
        MUST(cudaMalloc(&more, sizeof host));
        MUST(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        scale<<<64, 256, 0, stream>>>(more, data, N, host[0] > 1 ? 2 : 3);
        MUST(cudaMemcpyAsync(data, more, sizeof host, cudaMemcpyDeviceToDevice, stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaFree(more));
        MUST(cudaProfilerStop());
        MUST(cudaGraphExecDestroy(exec));
        MUST(cudaGraphDestroy(graph));
    }
    MUST(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    print_sum("anything", host, N);
    printf("calls %d\n", calls);
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "streams";
    if (!strcmp(which, "pipeline"))
        run_pipeline();
    else if (!strcmp(which, "anything"))
        run_anything();
    else
        run_streams();
    MUST(cudaDeviceSynchronize());
    return 0;
}
