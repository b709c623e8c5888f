/* LINK: -lcuda -lpthread */
/* A thread that is to be cancelled forks. Its child ends by _exit, which is no cancellation point. */
#include "linked.h"

#include <pthread.h>
#include <sys/wait.h>

enum { CODE = 7 };

static void *work(void *data)
{
    int status = 0, before;

    (void)data;
    pthread_cancel(pthread_self());
    pid_t child = fork();
    if (!child)
        _exit(CODE);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    waitpid(child, &status, 0);
    report_number("the child's code", WIFEXITED(status) ? WEXITSTATUS(status) : -1, CODE);
    return NULL;
}

int main(void)
{
    pthread_t thread;

    MUST(cuInit(0));
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return program_wrong;
}
