/* LINK: -lcuda */
/* Steps of a few launches that stay the same, and one of a kernel whose grid grows from step to step, as where a
 * program decodes one token after the other. Arguments: number of steps, and how often these shapes come again at the
 * end. */
#include "linked.h"

enum { N = 512, SAME = 12, GROWING = 1 };

static void launch(const struct session *s, CUfunction f, unsigned grid, void **params)
{
    MUST(cuLaunchKernel(f, grid, 1, 1, 128, 1, 1, 0, s->stream, params, NULL));
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 10, again = argc > 2 ? atoi(argv[2]) : 0, n = N;
    static const int zeros[N];
    struct session s;

    open_session(&linked, &s, 0);
    CUfunction increment = get_function(&linked, &s, "increment");
    CUdeviceptr values = device_ints(&linked, zeros, N);
    void *params[] = {&values, &n};
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < SAME; i++)
            launch(&s, increment, 4, params);
        for (int i = 0; i < GROWING; i++)
            launch(&s, increment, 5 + (unsigned)step, params);
    }
    for (int i = 0; i < again * steps; i++)
        launch(&s, increment, 5 + (unsigned)(i % steps), params);
    report_number("increments", sum_ints(&linked, values, N), (long long)N * (SAME + GROWING + again) * steps);
    close_session(&linked, &s);
    return program_wrong;
}
