// LINK: -Xcompiler -pthread
// A random number of threads, each with a random number of streams, share 30,000 launches of twelve kernels and shapes.
// The numbers are other ones in each run (or those of the seed that the argument gives), the result is the same.
#include "bounded.cuh"
#include <atomic>
#include <thread>

enum { LAUNCHES = 30000, KERNELS = 3, SHAPES = 4, SLOTS = 4096 };

// Adds numbers that depend on the launch alone: the order does not matter.
template <int KERNEL> __global__ void contribute(unsigned *slots, unsigned launch)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = launch * 2654435761u + i;
    for (int k = 0; k <= 16 * KERNEL; k++)
        v = v * 1664525u + 1013904223u;
    atomicAdd(slots + (v >> 4) % SLOTS, v);
}

using Kernel = void (*)(unsigned *, unsigned);
static const Kernel kernels[KERNELS] = {contribute<0>, contribute<1>, contribute<2>};
static std::atomic<unsigned> next_launch;

static void work(unsigned *slots, unsigned state)
{
    std::vector<cudaStream_t> streams(1 + next_random(&state) % 6);
    for (cudaStream_t &s : streams)
        CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    fprintf(stderr, "a thread with %zu streams\n", streams.size());
    for (unsigned k; (k = next_launch++) < LAUNCHES;) {
        cudaStream_t s = streams[next_random(&state) % streams.size()];
        unsigned shape = k / KERNELS % SHAPES;
        kernels[k % KERNELS]<<<4 << shape, 64 + 64 * (shape % 2), 0, s>>>(slots, k);
        CK(cudaGetLastError());
        if (next_random(&state) % 64 == 0)
            CK(cudaStreamSynchronize(s));
    }
    for (cudaStream_t s : streams) {
        CK(cudaStreamSynchronize(s));
        CK(cudaStreamDestroy(s));
    }
}

int main(int argc, char **argv)
{
    unsigned state = argc > 1 ? atoi(argv[1]) : (unsigned)time(NULL), *slots = device_zeros<unsigned>(SLOTS);
    fprintf(stderr, "seed %u\n", state);
    std::vector<std::thread> threads(2 + next_random(&state) % 7);
    for (std::thread &t : threads)
        t = std::thread(work, slots, next_random(&state));
    for (std::thread &t : threads)
        t.join();
    CK(cudaDeviceSynchronize());
    return ended("crowd", LAUNCHES, digest_of_device(slots, SLOTS));
}
