// A timer's handler jumps out of a loop of launches, and back to its start, as interpreters do. A call of CUDA is never
// left: in one, the handler makes a note, and the jump comes after it.
#include "contact.cuh"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

enum { N = 1 << 12, JUMPS = 40 };
static sigjmp_buf start;
static volatile sig_atomic_t inside, noted, jumps;

static void tick(int)
{
    noted = 1;
    if (inside || jumps >= JUMPS)
        return;
    noted = 0;
    jumps = jumps + 1;
    siglongjmp(start, 1);
}

static void enter(void)
{
    inside = 1;
}

static void leave(void)
{
    inside = 0;
    if (noted && jumps < JUMPS) {
        noted = 0;
        jumps = jumps + 1;
        siglongjmp(start, 2);
    }
}

int main()
{
    static unsigned *v, work;
    static volatile unsigned want, launches;
    struct sigaction a = {};
    struct itimerval t = {};
    v = device_zeros<unsigned>(N);
    mix<<<16, 256>>>(v, N, 0);
    CK(cudaDeviceSynchronize());
    a.sa_handler = tick;
    sigaction(SIGALRM, &a, NULL);
    t.it_value.tv_usec = t.it_interval.tv_usec = 2000;
    if (!sigsetjmp(start, 1))
        setitimer(ITIMER_REAL, &t, NULL);
    while (jumps < JUMPS) {
        for (volatile unsigned i = 0; i < 20000; i = i + 1)
            work += i;
        // Counted before it is left, so that a jump finds it done.
        enter();
        unsigned k = launches;
        launches = k + 1;
        mix<<<16, 256>>>(v, N, k);
        want = mixed(want, k);
        leave();
        if (launches % 16 == 0) {
            enter();
            CK(cudaDeviceSynchronize());
            leave();
        }
    }
    t.it_value.tv_usec = t.it_interval.tv_usec = 0;
    setitimer(ITIMER_REAL, &t, NULL);
    unsigned got = from_device(v + N - 1);
    printf("jumps %d\n", (int)jumps);
    return verdict("jumpout", got == want);
}
