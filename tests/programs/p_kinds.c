/* LINK: -lcuda */
/* Launches of one kernel and shape that do more or less work, as their arguments say. Another argument changes with
 * each launch. Arguments: number of rounds. */
#include "linked.h"

enum { N = 512, ROOM = 1 << 16 };

static void one_round(const struct session *s, CUdeviceptr values, CUdeviceptr log, CUdeviceptr cursor, int round)
{
    static int tag;
    CUfunction increment = get_function(&linked, s, "increment"), append = get_function(&linked, s, "append");
    int n = N, less = N - 1, capacity = round % 3 ? ROOM : ROOM - 1;
    void *whole[] = {&values, &n}, *part[] = {&values, &less}, *append_params[] = {&log, &cursor, &capacity, &tag};

    MUST(cuLaunchKernel(increment, 4, 1, 1, 128, 1, 1, 0, s->stream, whole, NULL));
    MUST(cuLaunchKernel(increment, 4, 1, 1, 128, 1, 1, 0, s->stream, whole, NULL));
    MUST(cuLaunchKernel(increment, 4, 1, 1, 128, 1, 1, 0, s->stream, part, NULL));
    tag++;
    MUST(cuLaunchKernel(append, 3, 1, 1, 1, 1, 1, 0, s->stream, append_params, NULL));
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    static const int zeros[ROOM];
    CUdeviceptr values, log, cursor;
    struct session s;
    int end = 0;

    open_session(&linked, &s, 0);
    values = device_ints(&linked, zeros, N);
    log = device_ints(&linked, zeros, ROOM);
    cursor = device_ints(&linked, zeros, 1);
    for (int round = 1; round <= rounds; round++)
        one_round(&s, values, log, cursor, round);
    MUST(cuMemcpyDtoH(&end, cursor, sizeof(end)));
    report_number("increments", sum_ints(&linked, values, N), 3ll * N * rounds - rounds);
    report_number("entries", end, 3 * rounds);
    close_session(&linked, &s);
    return program_wrong;
}
