/* LINK: -lcuda */
/* Calls cuInit until it succeeds, as often as its argument says at most, and launches then. "fork": a child does so,
 * too, after the parent's first call has failed. "plugin" MS MS LIBRARY: a library's constructor launches, so many ms
 * behind cuInit and behind the first context. "together" US LIBRARY: another thread calls cuInit, and so many us later
 * a library's constructor does. "setenv" NAME VALUE: between the first call and the others. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linked.h"

static int calls(int most)
{
    CUresult rc = CUDA_ERROR_NOT_INITIALIZED;

    for (int i = 0; rc != CUDA_SUCCESS && i < most; i++) {
        rc = cuInit(0);
        printf("cuInit %d: %d\n", i, (int)rc);
    }
    return rc == CUDA_SUCCESS;
}

static void launch_some(void)
{
    struct session s;
    int n = 8;
    CUdeviceptr values;
    void *params[] = {&values, &n};

    open_session(&linked, &s, 0);
    values = device_ints(&linked, (const int[8]){0}, 8);
    for (int i = 0; i < 20; i++)
        MUST(cuLaunchKernel(get_function(&linked, &s, "increment"), 1, 1, 1, 32, 1, 1, 0, s.stream, params, NULL));
    report_number("increments", sum_ints(&linked, values, 8), 8 * 20);
}

static void load_plugin(char **argv)
{
    CUcontext ctx;

    usleep((useconds_t)atoi(argv[0]) * 1000);
    if (atoi(argv[1]) >= 0)
        MUST(cuDevicePrimaryCtxRetain(&ctx, 0));
    if (atoi(argv[1]) > 0)
        usleep((useconds_t)atoi(argv[1]) * 1000);
    printf("plugin: %d\n", dlopen(argv[2], RTLD_NOW) != NULL);
}

static void *initialise(void *unused)
{
    return cuInit(0) == CUDA_SUCCESS ? unused : NULL;
}

static void load_together(char **argv)
{
    pthread_t other;
    void *result = NULL;

    if (pthread_create(&other, NULL, initialise, argv))
        return;
    usleep((useconds_t)atoi(argv[0]));
    printf("plugin: %d\n", dlopen(argv[1], RTLD_NOW) != NULL);
    pthread_join(other, &result);
    printf("other: %d\n", result != NULL);
}

int main(int argc, char **argv)
{
    int most = argc > 1 ? atoi(argv[1]) : 1, status = 0;

    if (argc > 5 && !strcmp(argv[2], "plugin")) {
        if (calls(1))
            load_plugin(argv + 3);
        return program_wrong;
    }
    if (argc > 4 && !strcmp(argv[2], "setenv")) {
        calls(1);
        setenv(argv[3], argv[4], 1);
        if (calls(most))
            launch_some();
        return program_wrong;
    }
    if (argc > 4 && !strcmp(argv[2], "together")) {
        load_together(argv + 3);
        return program_wrong;
    }
    if (argc > 2) {
        calls(1);
        fflush(stdout);
        pid_t child = fork();
        if (child)
            waitpid(child, &status, 0);
        printf("child: %d\n", status);
    }
    if (calls(most))
        launch_some();
    return program_wrong;
}
