// A graph whose first kernel waits for a flag that the program sets after the launch. The graph is launched again while
// its last launch waits; its second gate is opened by a function of the host, which another stream runs.
#include "contact.cuh"

enum { ROUNDS = 4, N = 1 << 13 };
static volatile unsigned *flags;

__global__ void gate(volatile unsigned *flag, const unsigned *value, unsigned *late)
{
    if (!wait_for(flag, *value))
        atomicAdd(late, 1u);
}
__global__ void next(unsigned *value)
{
    *value += 1;
}

static void CUDART_CB open_second(void *value)
{
    flags[16] = *(unsigned *)value;
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N), *late = device_zeros<unsigned>(1), *value = device_zeros<unsigned>(1), *d;
    unsigned want = 0, numbers[ROUNDS + 1] = {};
    cudaStream_t s, other;
    cudaGraph_t g;
    cudaGraphExec_t x;
    CK(cudaHostAlloc((void **)&flags, 128, cudaHostAllocMapped));
    CK(cudaHostGetDevicePointer((void **)&d, (void *)flags, 0));
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    flags[0] = flags[16] = 1;
    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    next<<<1, 1, 0, s>>>(value);
    gate<<<1, 1, 0, s>>>(d, value, late);
    mix<<<16, 256, 0, s>>>(v, N, 3);
    gate<<<1, 1, 0, s>>>(d + 16, value, late);
    mix<<<16, 256, 0, s>>>(v, N, 4);
    CK(cudaStreamEndCapture(s, &g));
    CK(cudaGraphInstantiate(&x, g, 0));
    CK(cudaGraphLaunch(x, s)); // its gates are open
    mix<<<16, 256, 0, s>>>(v, N, 9);
    CK(cudaStreamSynchronize(s));
    want = mixed(mixed(mixed(want, 3), 4), 9);
    for (unsigned r = 0; r < ROUNDS; r += 2) {
        for (unsigned i = 0; i < 2; i++) {
            CK(cudaGraphLaunch(x, s));
            mix<<<16, 256, 0, s>>>(v, N, r + i);
            want = mixed(mixed(mixed(want, 3), 4), r + i);
        }
        for (unsigned i = 0; i < 2; i++) {
            numbers[r + i] = r + i + 2;
            flags[0] = r + i + 2;
            CK(cudaLaunchHostFunc(other, open_second, &numbers[r + i]));
            CK(cudaStreamSynchronize(other));
            // The first gate of the second launch takes its value after this.
            if (i == 0)
                while (cudaMemcpyAsync(&numbers[ROUNDS], value, 4, cudaMemcpyDeviceToHost, other) == cudaSuccess &&
                       cudaStreamSynchronize(other) == cudaSuccess && numbers[ROUNDS] < r + 3)
                    ;
        }
        CK(cudaStreamSynchronize(s));
    }
    unsigned got = from_device(v + N - 1), l = from_device(late);
    printf("value %u, late %u\n", got, l);
    return verdict("graphgate", got == want && !l);
}
