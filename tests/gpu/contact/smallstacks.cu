// Threads with small stacks of their own memory and a page below that cannot be read: each launches, waits and copies.
// Arguments: KiB of the stack, and "exit" if the last thread ends the program.
#include "contact.cuh"
#include <pthread.h>
#include <sys/mman.h>

enum { THREADS = 3, LAUNCHES = 60, N = 1 << 12 };
static unsigned *v[THREADS], values[THREADS];
static bool ends;

static void *work(void *which)
{
    long i = (long)which;
    unsigned want = 0;
    for (unsigned k = 0; k < LAUNCHES; k++) {
        mix<<<16, 256, 0, cudaStreamPerThread>>>(v[i], N, k);
        want = mixed(want, k);
        if (k % 20 == 19)
            cudaStreamSynchronize(cudaStreamPerThread);
    }
    cudaMemcpyAsync(&values[i], v[i] + 5, 4, cudaMemcpyDeviceToHost, cudaStreamPerThread);
    cudaStreamSynchronize(cudaStreamPerThread);
    if (ends && i == THREADS - 1)
        exit(values[i] == want ? 0 : 1);
    return NULL;
}

int main(int argc, char **argv)
{
    size_t size = (argc > 1 ? atoi(argv[1]) : 64) * (size_t)1024;
    unsigned want = 0;
    bool ok = true;
    ends = argc > 2 && !strcmp(argv[2], "exit");
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < THREADS; i++) {
        v[i] = device_zeros<unsigned>(N);
        mix<<<16, 256, 0, cudaStreamPerThread>>>(v[i], 0, 0);
    }
    CK(cudaDeviceSynchronize());
    for (unsigned k = 0; k < LAUNCHES; k++)
        want = mixed(want, k);
    printf("value to come: %u\n", want);
    for (long i = 0; i < THREADS; i++) {
        char *stack = (char *)mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_attr_t a;
        pthread_t t;
        mprotect(stack, 4096, PROT_NONE);
        pthread_attr_init(&a);
        if (pthread_attr_setstack(&a, stack + 4096, size) || pthread_create(&t, &a, work, (void *)i))
            NEEDS(1, "thread with so small a stack");
        pthread_join(t, NULL);
        ok = ok && values[i] == want;
    }
    return verdict("smallstacks", ok);
}
