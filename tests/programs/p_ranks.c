/* LINK: -lcuda */
/* Counts the devices, then starts two ranks of the program that the arguments name, one after the other, each with RANK
 * and WORLD_SIZE set; goes to another folder in between. With "launches" as the first argument it makes a launch
 * before, and one after. */
#include <sys/wait.h>

#include "linked.h"

static int run(char **argv, int rank)
{
    char text[8];
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (!child) {
        snprintf(text, sizeof(text), "%d", rank);
        setenv("RANK", text, 1);
        setenv("WORLD_SIZE", "2", 1);
        execv(argv[0], argv);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static void launch_one(void)
{
    struct session session;
    CUdeviceptr values;
    int n = 1;
    void *params[] = {&values, &n};

    open_session(&linked, &session, 0);
    values = device_ints(&linked, (int[1]){0}, 1);
    MUST(cuLaunchKernel(get_function(&linked, &session, "increment"), 1, 1, 1, 1, 1, 1, 0, session.stream, params,
                        NULL));
    report_number("launched", sum_ints(&linked, values, 1), 1);
}

int main(int argc, char **argv)
{
    int n = 0;

    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&n));
    if (chdir("/"))
        return 1;
    if (argc == 1)
        launch_one();
    for (int rank = 0; rank < 2 && argc > 1; rank++)
        report_number("rank", run(argv + 1, rank), 0);
    return program_wrong;
}
