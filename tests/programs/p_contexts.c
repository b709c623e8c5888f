/* LINK: -lcuda */
/* Contexts that come and go, each with a stream of its own and work in the default one. */
#include "linked.h"

enum { N = 64, ROUNDS = 6 };

static void launch(CUfunction f, CUstream stream, CUdeviceptr data)
{
    MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, stream, (void *[]){&data, &(int){N}}, NULL));
}

static void use_context(const struct session *s, int round)
{
    static const int zeros[N];
    CUfunction f = get_function(&linked, s, "increment"), g = get_function(&linked, s, "_Z9incrementPii");
    CUdeviceptr a = device_ints(&linked, zeros, N), b = device_ints(&linked, zeros, N);

    for (int i = 0; i <= round; i++) {
        launch(f, s->stream, a);
        launch(g, i % 2 ? s->stream : NULL, b);
        launch(f, s->stream, a);
    }
    MUST(cuCtxSynchronize());
    report_number("first", sum_ints(&linked, a, N), 2 * (round + 1) * N);
    report_number("second", sum_ints(&linked, b, N), (round + 1) * N);
}

int main(void)
{
    struct session s;

    open_session(&linked, &s, 0);
    for (int round = 0; round < ROUNDS; round++) {
        MUST(cuCtxCreate(&s.ctx, NULL, 0, s.device));
        MUST(cuModuleLoadData(&s.module, ALL_KERNELS));
        MUST(cuStreamCreate(&s.stream, CU_STREAM_NON_BLOCKING));
        use_context(&s, round);
        MUST(cuCtxDestroy(s.ctx));
    }
    return program_wrong;
}
