/* LINK: -lcuda */
/* Many launches of few kernels on few streams, among copies, memsets, events, host functions and allocations: what a
 * training step looks like. Arguments: number of rounds. */
#include "linked.h"

enum { N = 512 };

static int host_calls;

static void CUDA_CB host_function(void *data)
{
    host_calls += *(int *)data;
}

static void one_round(const struct session *s, CUstream second, CUdeviceptr values, CUdeviceptr log, CUdeviceptr cursor,
                      int round)
{
    CUfunction increment = get_function(&linked, s, "increment"), append = get_function(&linked, s, "append");
    int n = N, capacity = 4096, tag = round, one = 1;
    void *increment_params[] = {&values, &n}, *append_params[] = {&log, &cursor, &capacity, &tag};
    CUdeviceptr scratch;
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuLaunchKernel(increment, 4, 1, 1, 128, 1, 1, 0, s->stream, increment_params, NULL));
    MUST(cuLaunchKernel(append, 3, 1, 1, 1, 1, 1, 0, s->stream, append_params, NULL));
    MUST(cuEventRecord(event, s->stream));
    MUST(cuStreamWaitEvent(second, event, 0));
    MUST(cuLaunchKernel(increment, 4, 1, 1, 128, 1, 1, 0, second, increment_params, NULL));
    MUST(cuLaunchHostFunc(second, host_function, &one));
    MUST(cuMemAlloc(&scratch, 4096));
    MUST(cuMemsetD32Async(scratch, round, 1024, second));
    MUST(cuMemcpyDtoDAsync(values, scratch, sizeof(int), second));
    MUST(cuStreamSynchronize(second));
    MUST(cuMemFree(scratch));
    MUST(cuEventDestroy(event));
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10, *host = malloc(4096 * sizeof(int));
    static const int zeros[4096];
    CUdeviceptr values, log, cursor;
    unsigned int entry = 0;
    struct session s;
    CUstream second;

    open_session(&linked, &s, 0);
    MUST(cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, -1));
    values = device_ints(&linked, zeros, N);
    log = device_ints(&linked, zeros, 4096);
    cursor = device_ints(&linked, zeros, 1);
    for (int round = 1; round <= rounds; round++)
        one_round(&s, second, values, log, cursor, round);
    MUST(cuMemcpyDtoH(host, log, 4096 * sizeof(int)));
    for (int i = 0; i < 3 * rounds && i < 4096; i++)
        entry = entry * 31u + i / 3 + 1;
    report_number("increments", sum_ints(&linked, values, N), (long long)(N - 1) * 2 * rounds + rounds);
    report_number("last entry", host[3 * rounds - 1], (int)entry);
    report_number("host functions", host_calls, rounds);
    free(host);
    close_session(&linked, &s);
    return program_wrong;
}
