/* LINK: -lcuda */
/* Arguments given as one buffer, which is overwritten as soon as the call is back. */
#include "linked.h"

enum { N = 100 };

int main(void)
{
    struct session s;
    CUdeviceptr data, values;
    struct scale_args args;
    struct {
        CUdeviceptr values;
        int n;
    } small = {0};
    size_t size = sizeof(args), small_size = sizeof(small.values) + sizeof(small.n);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    void *reversed[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &small_size, CU_LAUNCH_PARAM_BUFFER_POINTER, &small,
                        CU_LAUNCH_PARAM_END};
    static const int zeros[N];

    open_session(&linked, &s, 0);
    data = scale_data(&linked, N);
    values = device_ints(&linked, zeros, N);
    args = make_scale_args(data, 5, N, -2);
    MUST(cuLaunchKernel(get_function(&linked, &s, "scale_struct"), 1, 1, 1, 128, 1, 1, 0, s.stream, NULL, extra));
    memset(&args, 0xff, sizeof(args));
    size = 0;
    small.values = values;
    small.n = N;
    MUST(cuLaunchKernel(get_function(&linked, &s, "increment"), 1, 1, 1, 128, 1, 1, 0, s.stream, NULL, reversed));
    memset(&small, 0xff, sizeof(small));
    MUST(cuStreamSynchronize(s.stream));
    check_scale(&linked, "scale_struct by extra", data, N, 5, -2);
    report_number("increment by extra", sum_ints(&linked, values, N), N);
    report("both ways at once is an error",
           cuLaunchKernel(get_function(&linked, &s, "increment"), 1, 1, 1, 128, 1, 1, 0, s.stream, reversed,
                          reversed) == CUDA_ERROR_INVALID_VALUE);
    /* The driver judges what is not whole, and sees it as it is. */
    size_t huge = SIZE_MAX / 2;
    void *none[] = {CU_LAUNCH_PARAM_END}, *no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &small, CU_LAUNCH_PARAM_END};
    void *too_large[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &small, CU_LAUNCH_PARAM_BUFFER_SIZE, &huge,
                         CU_LAUNCH_PARAM_END};
    void **malformed[] = {none, no_size, too_large};
    for (size_t i = 0; i < sizeof(malformed) / sizeof(*malformed); i++)
        report("not whole: an error", cuLaunchKernel(get_function(&linked, &s, "increment"), 1, 1, 1, 128, 1, 1, 0,
                                                     s.stream, NULL, malformed[i]) == CUDA_ERROR_INVALID_VALUE);
    close_session(&linked, &s);
    return program_wrong;
}
