/* LINK: -lcuda */
/* Launches of a few kernels, each behind a call that changes how functions are launched, among loads and unloads of
 * modules, allocations and reads: the first steps of a training run. Arguments: number of rounds. */
#include "linked.h"

enum { N = 512 };

/* A kernel of another module, launched once and gone. */
static void visit(const struct session *s, CUdeviceptr values)
{
    CUmodule module;
    CUfunction f;
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuModuleLoadData(&module, "FAKEMOD _Z9incrementPii"));
    MUST(cuModuleGetFunction(&f, module, "_Z9incrementPii"));
    MUST(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_L1));
    MUST(cuLaunchKernel(f, 8, 1, 1, 64, 1, 1, 0, s->stream, params, NULL));
    MUST(cuStreamSynchronize(s->stream));
    MUST(cuModuleUnload(module));
}

static void one_round(const struct session *s, CUdeviceptr values, CUdeviceptr log, CUdeviceptr cursor, int round)
{
    CUfunction increment = get_function(&linked, s, "increment"), append = get_function(&linked, s, "append");
    int n = N, capacity = 4096, tag = round, seen = 0;
    void *increment_params[] = {&values, &n}, *append_params[] = {&log, &cursor, &capacity, &tag};
    CUdeviceptr scratch;

    for (int i = 0; i < 3; i++) {
        MUST(cuFuncSetAttribute(increment, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 10 * (i + 1)));
        MUST(cuLaunchKernel(increment, 4, 1, 1, 128 * (i + 1), 1, 1, 0, s->stream, increment_params, NULL));
    }
    MUST(cuFuncSetAttribute(append, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 20 + 10 * (round % 2)));
    MUST(cuLaunchKernel(append, 3, 1, 1, 1, 1, 1, 0, s->stream, append_params, NULL));
    MUST(cuMemAlloc(&scratch, 4096));
    MUST(cuMemcpyDtoH(&seen, cursor, sizeof(seen)));
    MUST(cuMemFree(scratch));
    if (seen != 3 * round)
        report_number("cursor", seen, 3 * round);
    visit(s, values);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    static const int zeros[4096];
    CUdeviceptr values, log, cursor;
    struct session s;

    open_session(&linked, &s, 0);
    values = device_ints(&linked, zeros, N);
    log = device_ints(&linked, zeros, 4096);
    cursor = device_ints(&linked, zeros, 1);
    for (int round = 1; round <= rounds; round++)
        one_round(&s, values, log, cursor, round);
    report_number("increments", sum_ints(&linked, values, N), (long long)N * 4 * rounds);
    close_session(&linked, &s);
    return program_wrong;
}
