/* LINK: -lcuda -lpthread */
/*
 * p_leave ACTION [LAUNCHES]: a program whose handler of SIGALRM leaves in some way, wherever it comes: exit, _exit,
 * quick_exit (7), longjmp (the launches go on behind the one that was left), pthread_exit (0, as the only thread),
 * fork, fork_exit, fork_exec, launch (a call of CUDA in the handler). Who raises it is another's business. Ends with 5.
 */
#include "linked.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

static const char *action;
static sigjmp_buf back;
static volatile sig_atomic_t may_jump, ticks, launched;
static CUfunction increment;
static CUdeviceptr values;
static CUstream stream;
static int n = 8;

static bool is(const char *name)
{
    return !strcmp(action, name);
}

static void in_child(void)
{
    int status;
    pid_t child = fork();
    if (!child && is("fork"))
        _exit(3);
    if (!child && is("fork_exit"))
        exit(3);
    if (!child)
        execl("/bin/false", "false", (char *)NULL);
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != (is("fork_exec") ? 1 : 3))
        _exit(9);
}

static void handler(int signal)
{
    void *params[] = {&values, &n};
    (void)signal;
    ticks++;
    if (is("exit"))
        exit(7);
    if (is("_exit"))
        _exit(7);
    if (is("quick_exit"))
        quick_exit(7);
    if (is("pthread_exit"))
        pthread_exit(NULL);
    if (is("longjmp") && may_jump)
        siglongjmp(back, 1);
    if (!strncmp(action, "fork", 4))
        in_child();
    if (is("launch") && increment) {
        MUST(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
        launched++;
    }
}

static void launches(int many)
{
    static volatile int i; /* goes on behind a jump */
    void *params[] = {&values, &n};
    sigsetjmp(back, 1);
    may_jump = 1;
    while (i < many) {
        int now = i++;
        MUST(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
        if (now % 8 == 7)
            MUST(cuStreamSynchronize(stream));
    }
    may_jump = 0;
}

int main(int argc, char **argv)
{
    struct session session;
    action = argc > 1 ? argv[1] : "";
    int many = argc > 2 ? atoi(argv[2]) : 24, sum[8];
    struct sigaction how = {.sa_handler = handler};
    sigaction(SIGALRM, &how, NULL);
    open_session(&linked, &session, 0);
    stream = session.stream;
    values = device_ints(&linked, (const int[8]){0}, 8);
    increment = get_function(&linked, &session, "increment");
    launches(many);
    int before = launched;
    MUST(cuMemcpyDtoH(sum, values, sizeof(sum)));
    /* The launch that was left may be made or not; that of a handler is made, before the copy or behind it. */
    int most = many + launched, least = many + before - (is("longjmp") ? ticks : 0);
    printf("end: %s\n", sum[0] >= least && sum[0] <= most ? "right" : "WRONG");
    fflush(stdout);
    increment = NULL; /* behind main the driver may be gone */
    return 5;
}
