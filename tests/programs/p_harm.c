/* LINK: -lcuda -lpthread -lm -ldl */
/* Two launches by a program that does what the argument names: habits that are legal without a profiler. */
#include "linked.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

static struct session session;
static CUdeviceptr values;

static void launch_one(void)
{
    CUfunction f = get_function(&linked, &session, "increment");
    int n = 8;
    void *params[] = {&values, &n};

    MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, session.stream, params, NULL));
    MUST(cuStreamSynchronize(session.stream));
}

/* A file of the program's own as descriptor 2. */
static void reuse_stderr(const char *path)
{
    close(2);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd != 2 || write(fd, "mine\n", 5) != 5)
        puts("no file as descriptor 2");
}

/* As a daemon does: what it does not know is closed, and files of its own take the numbers. */
static void close_all(const char *path)
{
    enum { MOST = 1024 };
    int own[MOST], next = open("/dev/null", O_RDONLY);

    report_number("the next descriptor", next, 3);
    for (int fd = 3; fd < MOST; fd++)
        close(fd);
    for (int fd = 3; fd < MOST; fd++) {
        own[fd] = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (own[fd] >= 0 && own[fd] != fd)
            puts("another number");
    }
    if (write(own[3], "mine\n", 5) != 5)
        puts("no file of its own");
}

/* A reader of stderr that has gone. */
static void lose_reader(void)
{
    int ends[2];
    if (pipe(ends) || dup2(ends[1], 2) != 2)
        puts("no pipe");
    close(ends[0]);
    close(ends[1]);
}

static void vfork_and_fail(void)
{
    pid_t child = vfork();
    if (!child)
        _exit(127);
}

/* As a build with -ffpe-trap, or numerical code that looks for its own faults. */
static void trap(void)
{
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
}

static void *init_and_end(void *unused)
{
    (void)unused;
    pthread_cancel(pthread_self());
    MUST(cuInit(0));
    puts("initialised");
    pthread_testcancel();
    puts("not reached");
    return NULL;
}

/* The first cuInit is that of a thread which somebody has cancelled. */
static void cancel_init(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, init_and_end, NULL);
    pthread_join(thread, NULL);
}

/* Says what a successful call has left of errno and of the loader's error, which it should not touch, and sets them. */
static bool looks_at_loader;

static void look(const char *call)
{
    int error = errno;
    const char *text = looks_at_loader ? dlerror() : NULL;

    if (error != ENOTTY)
        printf("%s: errno %d\n", call, error);
    if (looks_at_loader && !text)
        printf("%s: the loader's error is gone\n", call);
    if (looks_at_loader && dlopen("/nowhere", RTLD_NOW))
        puts("a library that is nowhere");
    errno = ENOTTY;
}

#define LOOK(call)                                                                                                     \
    do {                                                                                                               \
        MUST(call);                                                                                                    \
        look(#call);                                                                                                   \
    } while (0)

static void look_at_errors(bool at_loader)
{
    CUdevice device;
    CUcontext ctx;
    CUstream stream;
    CUmodule module;
    CUfunction f;
    CUdeviceptr memory;
    int host[8] = {0}, n = 8;
    void *params[] = {&memory, &n}, *found;

    looks_at_loader = at_loader;
    if (at_loader && dlopen("/nowhere", RTLD_NOW))
        puts("a library that is nowhere");
    errno = ENOTTY;
    for (int i = 0; i < 2; i++) {
        LOOK(cuInit(0));
        LOOK(cuDeviceGet(&device, 0));
        LOOK(cuDevicePrimaryCtxRetain(&ctx, device));
        LOOK(cuCtxSetCurrent(ctx));
        LOOK(cuModuleLoadData(&module, "FAKEMOD increment"));
        LOOK(cuModuleGetFunction(&f, module, "increment"));
        LOOK(cuMemAlloc(&memory, sizeof(host)));
        LOOK(cuMemcpyHtoD(memory, host, sizeof(host)));
        LOOK(cuStreamCreate(&stream, 0));
        LOOK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
        LOOK(cuStreamSynchronize(stream));
        LOOK(cuMemcpyDtoH(host, memory, sizeof(host)));
        LOOK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
        LOOK(cuMemFree(memory));
        LOOK(cuGetProcAddress("cuMemAlloc", &found, CUDA_VERSION, 0, NULL));
        LOOK(cuStreamDestroy(stream));
        LOOK(cuModuleUnload(module));
        LOOK(cuCtxSynchronize());
        LOOK(cuDevicePrimaryCtxRelease(device));
    }
}

enum { MANY = 100 };

static bool waits_at_forks;

/* A runtime that is idle at each fork: its handlers stand before those of any library. */
static void wait_for_device(void)
{
    void *host;
    if (!waits_at_forks)
        return;
    launch_one();
    MUST(cuMemAllocHost(&host, 4096));
    MUST(cuMemFreeHost(host));
}

static void register_handlers(void)
{
    pthread_atfork(wait_for_device, wait_for_device, NULL);
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = register_handlers;

static void fork_child(void)
{
    int status = 0;
    waits_at_forks = true;
    fflush(stdout);
    pid_t child = fork();
    if (!child)
        _exit(3);
    waitpid(child, &status, 0);
    report_number("the child's exit code", WEXITSTATUS(status), 3);
    waits_at_forks = false;
}

static void launch_many(void)
{
    fcntl(2, F_SETFL, fcntl(2, F_GETFL) | O_NONBLOCK); /* as servers do, which may share it */
    for (int i = 0; i < MANY; i++)
        launch_one();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (!strcmp(what, "clearenv"))
        clearenv();
    if (!strcmp(what, "reuse_stderr"))
        reuse_stderr(argc > 2 ? argv[2] : "/dev/null");
    if (!strcmp(what, "traps"))
        trap();
    if (!strcmp(what, "cancel_init"))
        cancel_init();
    if (!strcmp(what, "all_errno"))
        look_at_errors(false);
    open_session(&linked, &session, 0);
    values = device_ints(&linked, (const int[8]){0}, 8);
    errno = 0;
    launch_one();
    if (!strcmp(what, "errno") && errno)
        puts("a launch has changed errno");
    if (!strcmp(what, "dlerror")) /* the first launch may have had CUPTI opened */
        look_at_errors(true);
    if (!strcmp(what, "traps_late"))
        trap();
    int more = 0;
    if (!strcmp(what, "fork")) {
        fork_child(); /* with a launch before it, and one behind it */
        more = 2;
    }
    if (!strcmp(what, "slow_reader")) {
        launch_many();
        more = MANY;
    }
    if (!strcmp(what, "close_all"))
        close_all(argc > 2 ? argv[2] : "/dev/null");
    if (!strcmp(what, "vfork"))
        vfork_and_fail();
    if (!strcmp(what, "lose_reader"))
        lose_reader();
    launch_one();
    report_number("increments", sum_ints(&linked, values, 8), (2 + more) * 8);
    return program_wrong;
}
