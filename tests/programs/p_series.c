/* LINK: -lcuda */
/* A kernel whose blocks leave a trace of how many they are, between others. It has settings of its function, which a
 * profile series changes and has to put back. With an argument the kernel of that name is launched last: wide_only
 * takes blocks of 64 threads or more. */
#include "linked.h"

enum { N = 512, CAPACITY = 4096 };

static void print_settings(CUfunction f)
{
    int most = 0, carveout = 0;

    MUST(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    MUST(cuFuncGetAttribute(&carveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, f));
    printf("dynamic shared memory: %d, carve-out: %d\n", most, carveout);
}

int main(int argc, char **argv)
{
    static const int zeros[CAPACITY];
    int n = N, capacity = CAPACITY, tag = 3, host[CAPACITY];
    CUdeviceptr values, log, cursor;
    struct session s;
    CUmodule module;
    CUfunction last;

    open_session(&linked, &s, 0);
    CUfunction increment = get_function(&linked, &s, "increment"), append = get_function(&linked, &s, "append");
    values = device_ints(&linked, zeros, N);
    log = device_ints(&linked, zeros, CAPACITY);
    cursor = device_ints(&linked, zeros, 1);
    void *increment_params[] = {&values, &n}, *append_params[] = {&log, &cursor, &capacity, &tag};

    MUST(cuLaunchKernel(increment, 4, 1, 1, 128, 1, 1, 0, s.stream, increment_params, NULL));
    CUlaunchAttribute carveout = {.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                  .value.sharedMemCarveout = 30};
    CUlaunchConfig config = {3, 2, 1, 16, 4, 1, 1024, s.stream, &carveout, 1};
    MUST(cuLaunchKernelEx(&config, append, append_params, NULL));
    MUST(cuLaunchKernel(increment, 4, 1, 1, 128, 1, 1, 0, s.stream, increment_params, NULL));
    MUST(cuStreamSynchronize(s.stream));
    MUST(cuMemcpyDtoH(host, log, sizeof(host)));
    report_number("increments", sum_ints(&linked, values, N), 2 * N);
    report_number("blocks", sum_ints(&linked, cursor, 1), 6);
    report_number("last entry", host[5], 88750368);
    print_settings(append);
    print_settings(increment);
    if (argc > 1) {
        char code[128];
        snprintf(code, sizeof(code), "FAKEMOD %s", argv[1]);
        MUST(cuModuleLoadData(&module, code));
        MUST(cuModuleGetFunction(&last, module, argv[1]));
        MUST(cuLaunchKernel(last, 4, 1, 1, 128, 1, 1, 0, s.stream, increment_params, NULL));
        MUST(cuStreamSynchronize(s.stream));
        report_number("the last kernel's", sum_ints(&linked, values, N), 3 * N);
    }
    close_session(&linked, &s);
    return program_wrong;
}
