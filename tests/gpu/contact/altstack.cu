// A timer's handler on an alternate stack of 8 KiB, with a page below that cannot be read, ends the program among its
// launches: by exit, or by _exit as the argument says. The program ends with 0, as its handler asks for.
#include "contact.cuh"
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { N = 1 << 12 };
static bool at_once;

static void ends(int)
{
    static const char text[] = "altstack: ok\n";
    if (write(1, text, sizeof(text) - 1) < 0)
        _exit(8);
    if (at_once)
        _exit(0);
    exit(0);
}

int main(int argc, char **argv)
{
    unsigned *v = device_zeros<unsigned>(N);
    struct sigaction a = {};
    struct itimerval t = {};
    stack_t s = {};
    at_once = argc > 1 && !strcmp(argv[1], "_exit");
    setvbuf(stdout, NULL, _IONBF, 0);
    char *low = (char *)mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(low, 4096, PROT_NONE);
    s.ss_sp = low + 4096;
    s.ss_size = 8192;
    if (sigaltstack(&s, NULL))
        NEEDS(1, "alternate stack of 8 KiB");
    a.sa_handler = ends;
    a.sa_flags = SA_ONSTACK;
    sigaction(SIGALRM, &a, NULL);
    printf("launching\n");
    t.it_value.tv_usec = 60000;
    setitimer(ITIMER_REAL, &t, NULL);
    for (unsigned k = 0;; k++) {
        mix<<<16, 256>>>(v, N, k);
        usleep(300); // where the signal finds it mostly: what the driver's locks allow in a handler is not asked here
        if (k % 64 == 63)
            CK(cudaDeviceSynchronize());
    }
}
