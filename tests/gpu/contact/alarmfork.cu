// A watchdog: a timer's handler forks, and the child starts another program; the handler of SIGCHLD takes its end. The
// program launches meanwhile, and the children do not use CUDA.
#include "contact.cuh"
#include <cerrno>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1 << 12, CHILDREN = 12 };
static volatile sig_atomic_t started, ended, failed;

static void alarm_came(int)
{
    int e = errno;
    if (started < CHILDREN && started == ended) {
        pid_t p = fork();
        if (p == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        }
        if (p > 0)
            started = started + 1;
    }
    errno = e;
}

static void child_ended(int)
{
    int e = errno, status;
    while (waitpid(-1, &status, WNOHANG) > 0) {
        ended = ended + 1;
        if (status)
            failed = failed + 1;
    }
    errno = e;
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N), want = 0;
    struct sigaction a = {};
    struct itimerval t = {};
    a.sa_flags = SA_RESTART;
    sigaddset(&a.sa_mask, SIGALRM);
    sigaddset(&a.sa_mask, SIGCHLD);
    a.sa_handler = child_ended;
    sigaction(SIGCHLD, &a, NULL);
    a.sa_handler = alarm_came;
    sigaction(SIGALRM, &a, NULL);
    t.it_value.tv_usec = t.it_interval.tv_usec = 8000;
    setitimer(ITIMER_REAL, &t, NULL);
    for (unsigned k = 0; ended < CHILDREN; k++) {
        mix<<<16, 256>>>(v, N, k);
        want = mixed(want, k);
        usleep(200); // see altstack.cu
        if (k % 32 == 31)
            CK(cudaDeviceSynchronize());
    }
    t.it_value.tv_usec = t.it_interval.tv_usec = 0;
    setitimer(ITIMER_REAL, &t, NULL);
    unsigned got = from_device(v + N - 1);
    printf("children %d, failed %d\n", (int)ended, (int)failed);
    return verdict("alarmfork", got == want && !failed);
}
