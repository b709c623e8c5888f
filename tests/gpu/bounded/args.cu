// Large arguments: 4 KB with the rest in constant memory, which is copied there before each launch, and 16 KB with all
// of it. 2,002 launches of two kernels.
#include "bounded.cuh"

enum { ALL = 4000, PASSED = 1000, EXCESS = ALL - PASSED, ROUNDS = 1001 };

struct some_words {
    int word[PASSED];
};
struct all_words {
    int word[ALL];
};

__constant__ int excess[EXCESS];

__global__ void with_constant(__grid_constant__ const some_words p, int *sum)
{
    int own = 0;
    for (int i = threadIdx.x; i < PASSED; i += blockDim.x)
        own += p.word[i];
    for (int i = threadIdx.x; i < EXCESS; i += blockDim.x)
        own += excess[i];
    atomicAdd(sum, own);
}

__global__ void with_all(__grid_constant__ const all_words p, int *sum)
{
    int own = 0;
    for (int i = threadIdx.x; i < ALL; i += blockDim.x)
        own += p.word[i];
    atomicAdd(sum, own);
}

int main()
{
    static all_words all;
    static some_words some;
    unsigned state = 11;
    for (int &w : all.word)
        w = (int)(next_random(&state) & 1023);
    int *sums = device_zeros<int>(2);
    cudaStream_t stream;
    CK(cudaStreamCreate(&stream));
    for (int r = 0; r < ROUNDS; r++) {
        all.word[r % ALL] += r;
        memcpy(&some, &all, sizeof some);
        CK(cudaMemcpyToSymbolAsync(excess, all.word + PASSED, sizeof excess, 0, cudaMemcpyHostToDevice, stream));
        with_constant<<<1, 128, 0, stream>>>(some, sums);
        CK(cudaGetLastError());
    }
    CK(cudaStreamSynchronize(stream));
    for (int r = 0; r < ROUNDS; r++) {
        all.word[r % ALL] += r;
        with_all<<<1, 128, 0, stream>>>(all, sums + 1);
        CK(cudaGetLastError());
    }
    CK(cudaStreamSynchronize(stream));
    return ended("args", 2 * ROUNDS, digest_of_device(sums, 2));
}
