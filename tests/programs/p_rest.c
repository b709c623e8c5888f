/* LINK: -lcuda */
/* A program that goes on for long after what is to be counted: few launches of a kernel, three times a pause and many
 * launches of it, and a few with another grid. Argument: how many. */
#include "linked.h"

enum { N = 512, FEW = 60, EACH = 64, PAUSE_US = 1100000, TIMES = 3 };

static struct session session;
static CUdeviceptr values;
static long launches;

static void increment(unsigned blocks, int times)
{
    CUfunction f = get_function(&linked, &session, "increment");
    int n = N;
    void *params[] = {&values, &n};

    for (int i = 0; i < times; i++, launches++) {
        MUST(cuLaunchKernel(f, blocks, 1, 1, 128, 1, 1, 0, session.stream, params, NULL));
        if (times == FEW || i % EACH == 0)
            MUST(cuStreamSynchronize(session.stream));
    }
}

int main(int argc, char **argv)
{
    static const int zeros[N];

    open_session(&linked, &session, 0);
    values = device_ints(&linked, zeros, N);
    increment(4, FEW);
    for (int i = 0; i < TIMES; i++) {
        usleep(PAUSE_US);
        increment(4, (argc > 1 ? atoi(argv[1]) : FEW) / TIMES);
    }
    increment(5, FEW);
    MUST(cuStreamSynchronize(session.stream));
    report_number("increments", sum_ints(&linked, values, N), (long long)N * launches);
    close_session(&linked, &session);
    return program_wrong;
}
