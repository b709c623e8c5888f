/* LINK: -lcuda -lpthread */
/* Two launches by a program that does what the argument names: habits that are legal without a profiler. */
#include "linked.h"

#include <fcntl.h>
#include <signal.h>

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

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (!strcmp(what, "clearenv"))
        clearenv();
    if (!strcmp(what, "reuse_stderr"))
        reuse_stderr(argc > 2 ? argv[2] : "/dev/null");
    open_session(&linked, &session, 0);
    values = device_ints(&linked, (const int[8]){0}, 8);
    launch_one();
    if (!strcmp(what, "close_all"))
        close_all(argc > 2 ? argv[2] : "/dev/null");
    if (!strcmp(what, "vfork"))
        vfork_and_fail();
    if (!strcmp(what, "lose_reader"))
        lose_reader();
    launch_one();
    report_number("increments", sum_ints(&linked, values, 8), 2 * 8);
    return program_wrong;
}
