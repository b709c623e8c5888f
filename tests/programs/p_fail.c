/* LINK: -lcuda */
/* Launches that the driver refuses, and one that breaks the context: the program sees the same errors, at the same
 * calls, as without a profiler. */
#include "linked.h"

static CUfunction f;
static CUdeviceptr values;
static int n = 8;

static CUresult launch(unsigned int grid, unsigned int block, unsigned int shared, CUstream stream)
{
    void *params[] = {&values, &n};

    return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, stream, params, NULL);
}

int main(void)
{
    struct session s;
    int results[8];

    printf("before cuInit: %d\n", (int)launch(1, 1, 0, NULL));
    open_session(&linked, &s, 0);
    f = get_function(&linked, &s, "increment");
    values = device_ints(&linked, (const int[8]){0}, 8);
    results[0] = launch(0, 32, 0, s.stream);
    results[1] = launch(1, 2048, 0, s.stream);
    results[2] = launch(1, 32, 1 << 20, s.stream);
    results[3] = launch(1, 32, 0, (CUstream)&s);
    results[4] = cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    results[5] = cuLaunchKernelEx(NULL, f, NULL, NULL);
    results[6] = launch(1, 32, 0, s.stream);
    results[7] = cuCtxSynchronize();
    for (int i = 0; i < 8; i++)
        printf("call %d: %d\n", i, results[i]);
    report_number("increments", sum_ints(&linked, values, 8), 8);
    f = get_function(&linked, &s, "fail");
    printf("the launch that fails: %d\n", (int)cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s.stream, NULL, NULL));
    printf("what follows: %d\n", (int)cuStreamSynchronize(s.stream));
    printf("and the next launch: %d\n", (int)launch(1, 32, 0, s.stream));
    return program_wrong;
}
