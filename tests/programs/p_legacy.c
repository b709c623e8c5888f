/* LINK: -lcuda */
/* The launch calls of CUDA 2: block shape and arguments are set on the function first. */
#include "linked.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { N = 100 };

static void set_arguments(CUfunction f, CUdeviceptr values, int n)
{
    MUST(cuFuncSetBlockShape(f, 32, 1, 1));
    MUST(cuFuncSetSharedSize(f, 256));
    MUST(cuParamSetv(f, 0, &values, sizeof(values)));
    MUST(cuParamSeti(f, sizeof(values), n));
    MUST(cuParamSetSize(f, sizeof(values) + sizeof(n)));
}

int main(void)
{
    static const int zeros[N];
    struct session s;
    CUfunction f;
    CUdeviceptr values, other;
    CUDA_LAUNCH_PARAMS multi = {.gridDimX = 1,
                                .gridDimY = 1,
                                .gridDimZ = 1,
                                .blockDimX = 128,
                                .blockDimY = 1,
                                .blockDimZ = 1,
                                .kernelParams = (void *[]){&other, &(int){N}}};

    open_session(&linked, &s, 0);
    f = get_function(&linked, &s, "increment");
    values = device_ints(&linked, zeros, N);
    other = device_ints(&linked, zeros, N);
    set_arguments(f, values, N);
    MUST(cuLaunch(f));
    MUST(cuLaunchGrid(f, 2, 1));
    MUST(cuLaunchGridAsync(f, 2, 2, s.stream));
    /* arguments that change after the calls are those of later launches */
    set_arguments(f, other, 10);
    MUST(cuLaunchGrid(f, 1, 1));
    multi.function = f;
    multi.hStream = s.stream;
    MUST(cuLaunchCooperativeKernelMultiDevice(&multi, 1, 0));
    MUST(cuCtxSynchronize());
    report_number("increments", sum_ints(&linked, values, N), 32 + 64 + 100);
    report_number("of the other", sum_ints(&linked, other, N), 10 + N);
    close_session(&linked, &s);
    return program_wrong;
}
