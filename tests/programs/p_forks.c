/* LINK: -lcuda -ldl -lpthread */
/* Threads keep a door of the profiler busy while another one forks, again and again. The child goes through doors once,
 * and ends. Arguments: the door, when (early: before CUDA is initialised, or late), who forks and how, how many times.
 * Prints how many children did not come to their end. */
#include "linked.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
#define nvtxRangePushA(text) 0
#define nvtxRangePop()       0
#endif

#undef cuGetProcAddress

extern char **environ;

enum { BUSY = 2, CHILD_SECONDS = 10, MOST_HUNG = 3 };

struct dim {
    unsigned int x, y, z;
};

typedef int (*launch_function)(const void *, struct dim, struct dim, void **, size_t, void *);

static char *self;
static void *stub;
static launch_function launch;
static int (*call_launch)(launch_function);
static CUresult (*launch_grid)(CUfunction, int, int);
static CUresult (*get_address)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static void runtime(void)
{
    struct dim one = {1, 1, 1};

    launch(&one, one, one, NULL, 0, NULL);
    call_launch(launch);
}

static void lookup(void)
{
    dlsym(stub, "cuMemFree_v2");
    dlsym(stub, "cuMemcpyHtoD_v2");
}

static void address(void)
{
    CUdriverProcAddressQueryResult status;
    void *function = NULL;

    get_address("cuLaunchKernel", &function, 12000, 0, &status);
    get_address("cuGraphLaunch", &function, 12000, 0, &status);
}

static void grid(void)
{
    launch_grid(NULL, 1, 1);
}

static void ranges(void)
{
    nvtxRangePushA("outer");
    nvtxRangePushA("inner");
    nvtxRangePop();
    nvtxRangePop();
}

static const struct {
    const char *name;
    void (*go)(void);
} doors[] = {{"runtime", runtime}, {"lookup", lookup}, {"address", address}, {"grid", grid}, {"nvtx", ranges}};

enum { DOORS = sizeof(doors) / sizeof(*doors) };

static void all_doors(void)
{
    for (int i = 0; i < DOORS; i++)
        doors[i].go();
}

static void *keep_busy(void *door)
{
    void (*go)(void) = *(void (**)(void))door;

    for (;;)
        go();
    return NULL;
}

static pid_t start_fork(void)
{
    pid_t pid = fork();

    if (!pid) {
        alarm(CHILD_SECONDS);
        all_doors();
        exit(0);
    }
    return pid;
}

/* Its memory is the parent's: it may do little. */
static pid_t start_vfork(void)
{
    pid_t pid = vfork();

    if (!pid) {
        lookup();
        _exit(0);
    }
    return pid;
}

static pid_t start_spawn(void)
{
    char *const args[] = {self, "child", NULL};
    pid_t pid;

    return posix_spawn(&pid, self, NULL, NULL, args, environ) ? -1 : pid;
}

static const struct {
    const char *name;
    pid_t (*start)(void);
} ways[] = {{"fork", start_fork}, {"vfork", start_vfork}, {"spawn", start_spawn}};

static int times;

static void *start_children(void *way)
{
    pid_t (*start)(void) = *(pid_t(**)(void))way;
    int hung = 0, wrong = 0, n = 0;

    for (; n < times && hung < MOST_HUNG; n++) {
        int status = -1;
        pid_t pid = start();

        waitpid(pid, &status, 0);
        hung += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        wrong += status && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    }
    printf("%d of %d children hung, %d ended otherwise\n", hung, n, wrong);
    return NULL;
}

static int open_stub(void)
{
    char path[4096];
    const char *slash = strrchr(self, '/');

    snprintf(path, sizeof(path), "%.*s/stub_cuda", slash ? (int)(slash - self) : 1, slash ? self : ".");
    stub = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    launch = (launch_function)dlsym(RTLD_DEFAULT, "cudaLaunchKernel"); /* the profiler's, where it is there */
    if (stub) {
        call_launch = (int (*)(launch_function))dlsym(stub, "call_launch");
        launch_grid = (CUresult(*)(CUfunction, int, int))dlsym(stub, "cuLaunchGrid");
        get_address = (CUresult(*)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *))dlsym(
            stub, "cuGetProcAddress_v2");
    }
    return stub && launch && call_launch && launch_grid && get_address;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int door = 0, way = 0;

    self = argv[0];
    if (argc > 1 && !strcmp(argv[1], "child"))
        return 0;
    if (argc < 6 || !open_stub())
        return 2;
    while (door < DOORS && strcmp(doors[door].name, argv[1]))
        door++;
    while (way < 3 && strcmp(ways[way].name, argv[4]))
        way++;
    times = atoi(argv[5]);
    if (door == DOORS || way == 3)
        return 2;
    if (!strcmp(argv[2], "late"))
        MUST(cuInit(0));
    all_doors();
    for (int i = 0; i < BUSY; i++)
        if (pthread_create(&thread, NULL, keep_busy, (void *)&doors[door].go))
            return 2;
    if (!strcmp(argv[3], "main"))
        start_children((void *)&ways[way].start);
    else if (pthread_create(&thread, NULL, start_children, (void *)&ways[way].start) || pthread_join(thread, NULL))
        return 2;
    fflush(stdout);
    _exit(0);
}
