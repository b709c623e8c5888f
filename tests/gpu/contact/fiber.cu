// Coroutines that call the driver from the first frame of their stacks, each with a page above that cannot be read.
// They launch in turns, and one of them waits, copies and allocates.
#include "contact.cuh"
#include <sys/mman.h>
#include <ucontext.h>

enum { FIBERS = 4, ROUNDS = 12, STACK = 512 << 10, N = 1 << 12 };
static ucontext_t home, fiber[FIBERS];
static CUdeviceptr v[FIBERS], scratch;
static CUfunction function;
static CUresult result[FIBERS], called;
static int now, n = N, count[FIBERS];
static unsigned step, got;
static void *args[FIBERS][3];

static void body(void)
{
    for (;;) {
        result[now] = cuLaunchKernel(function, 16, 1, 1, 256, 1, 1, 0, NULL, args[now], NULL);
        count[now]++;
        if (now == 0)
            called = cuCtxSynchronize();
        else if (now == 1)
            called = cuMemcpyDtoH(&got, v[1], 4);
        else if (now == 2 && (called = cuMemAlloc(&scratch, 4096)) == CUDA_SUCCESS)
            called = cuMemFree(scratch);
        swapcontext(&fiber[now], &home);
    }
}

int main()
{
    cudaFunction_t f;
    unsigned want = 0;
    bool ok = true;
    CK(cudaFree(0));
    CK(cudaGetFuncBySymbol(&f, (const void *)mix));
    function = (CUfunction)f;
    for (int i = 0; i < FIBERS; i++) {
        char *stack = (char *)mmap(NULL, STACK + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(stack, 4096, PROT_NONE);
        mprotect(stack + 4096 + STACK, 4096, PROT_NONE);
        v[i] = (CUdeviceptr)device_zeros<unsigned>(N);
        args[i][0] = &v[i];
        args[i][1] = &n;
        args[i][2] = &step;
        getcontext(&fiber[i]);
        fiber[i].uc_stack.ss_sp = stack + 4096;
        fiber[i].uc_stack.ss_size = STACK;
        fiber[i].uc_link = &home;
        makecontext(&fiber[i], body, 0);
    }
    for (step = 0; step < ROUNDS; step++) {
        for (now = 0; now < FIBERS; now++) {
            called = CUDA_SUCCESS;
            swapcontext(&home, &fiber[now]);
            ok = ok && result[now] == CUDA_SUCCESS && called == CUDA_SUCCESS;
        }
        want = mixed(want, step);
        ok = ok && got == want;
    }
    CK(cudaDeviceSynchronize());
    for (int i = 0; i < FIBERS; i++) {
        unsigned value = from_device((unsigned *)v[i] + N - 1);
        printf("fiber %d: %d launches, value %u\n", i, count[i], value);
        ok = ok && value == want;
    }
    return verdict("fiber", ok);
}
