/* LINK: -lcuda */
/* Registered host memory in which a child of the program writes all the time, made as the argument says: anonymous,
 * memfd (both shared with the child), read-only (the same, which the device only reads) or private. Two launches before
 * it is registered, eight while it is, two after. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "linked.h"

enum { N = 32, BYTES = 8192, COUNTER = 1024, STOP = 1536, ROUNDS = 4 };

static struct session session;
static CUdeviceptr values;

static void launch(CUdeviceptr data)
{
    int n = N;
    void *params[] = {&data, &n};

    MUST(cuLaunchKernel(get_function(&linked, &session, "increment"), 1, 1, 1, N, 1, 1, 0, session.stream, params,
                        NULL));
    MUST(cuStreamSynchronize(session.stream));
}

/* Whether what the child writes is what it reads next. */
static int count(volatile int *shared, pid_t parent)
{
    int lost = 0;

    for (int i = 1; !shared[STOP] && getppid() == parent; i++) {
        shared[COUNTER] = i;
        usleep(100);
        lost |= shared[COUNTER] != i;
    }
    return lost;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "anonymous";
    int read_only = !strcmp(how, "read-only"), private = !strcmp(how, "private"), anonymous = strcmp(how, "memfd");
    int file = anonymous ? -1 : memfd_create("shared", MFD_CLOEXEC), status = 0;
    int *shared;
    pid_t parent = getpid(), child;

    if (!anonymous && ftruncate(file, BYTES))
        return 1;
    shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                  (private ? MAP_PRIVATE : MAP_SHARED) | (anonymous ? MAP_ANONYMOUS : 0), file, 0);
    if (shared == MAP_FAILED)
        return 1;
    child = fork();
    if (!child)
        _exit(private ? 0 : count(shared, parent));
    open_session(&linked, &session, 0);
    values = device_ints(&linked, (int[N]){0}, N);
    launch(values);
    launch(values);
    /* The second page alone is registered, and both are one mapping. */
    MUST(cuMemHostRegister((char *)shared + 4096, 4096, read_only ? CU_MEMHOSTREGISTER_READ_ONLY : 0));
    for (int i = 0; i < ROUNDS; i++) {
        launch(values);
        launch(read_only ? values : (CUdeviceptr)(uintptr_t)(shared + 1600));
    }
    report_number("registered", shared[1600 + N - 1], read_only ? 0 : ROUNDS);
    MUST(cuMemHostUnregister((char *)shared + 4096));
    launch(values);
    launch(values);
    shared[STOP] = 1;
    waitpid(child, &status, 0);
    report_number("lost by the child", WEXITSTATUS(status), 0);
    report_number("launches", sum_ints(&linked, values, N), (4 + ROUNDS + (read_only ? ROUNDS : 0)) * N);
    return program_wrong;
}
