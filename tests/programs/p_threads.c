/* LINK: -lcuda -lpthread */
/* Several threads, each with a stream of its own, spread over the devices: 4, two of which share each context, or as
 * many as the argument says. With a second argument each launch is followed by one that the driver refuses. */
#include "linked.h"

#include <pthread.h>
#include <stdbool.h>

enum { THREADS = 4, MOST_THREADS = 64, TIMES = 6, N = 256 };

struct worker {
    int index, devices;
    bool refused;
    long long sum, count, taken;
};

/* Holds all until each is there, so that first calls of one function meet. */
static pthread_barrier_t start;

static void *work(void *data)
{
    struct worker *w = data;
    static const int zeros[N];
    struct session s;
    CUfunction increment, count;
    CUdeviceptr values, counter;
    int n = N;
    void *increment_params[] = {&values, &n}, *count_params[] = {&counter};

    pthread_barrier_wait(&start);
    open_session(&linked, &s, w->index % w->devices);
    increment = get_function(&linked, &s, "increment");
    count = get_function(&linked, &s, "atomic_count");
    values = device_ints(&linked, zeros, N);
    counter = device_ints(&linked, zeros, 1);
    for (int i = 0; i < TIMES; i++) {
        MUST(cuLaunchKernel(increment, 1, 1, 1, N, 1, 1, 0, s.stream, increment_params, NULL));
        MUST(cuLaunchKernel(count, 1 + w->index, 1, 1, 32, 1, 1, 0, s.stream, count_params, NULL));
        if (w->refused)
            w->taken += cuLaunchKernel(count, 0, 1, 1, 32, 1, 1, 0, s.stream, count_params, NULL) == CUDA_SUCCESS;
    }
    MUST(cuStreamSynchronize(s.stream));
    w->sum = sum_ints(&linked, values, N);
    w->count = sum_ints(&linked, counter, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker workers[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    int devices, n = argc > 1 ? atoi(argv[1]) : THREADS;

    n = n < MOST_THREADS ? n : MOST_THREADS;
    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&devices));
    printf("devices: %d\n", devices);
    pthread_barrier_init(&start, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        workers[i] = (struct worker){.index = i, .devices = devices, .refused = argc > 2};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        report_number("increments", workers[i].sum, TIMES * N);
        report_number("counted", workers[i].count, TIMES * 32 * (1 + i));
        if (argc > 2)
            report_number("taken without a block", workers[i].taken, 0);
    }
    return program_wrong;
}
