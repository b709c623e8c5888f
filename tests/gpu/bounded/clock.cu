// Blocks sort and scan, each kernel tells how many cycles it took, and the host reads that after each launch: 1,818
// launches of 18 kernels. The cycles go to stderr, as they differ from run to run.
#include "bounded.cuh"

enum { ROUNDS = 101 };

static unsigned launches;
static unsigned long long sum, cycles;

template <int THREADS, int ITEMS> __global__ void sort_block(const unsigned *in, unsigned *out, long long *took)
{
    enum { N = THREADS * ITEMS };
    __shared__ unsigned tile[N];
    for (int i = threadIdx.x; i < N; i += THREADS)
        tile[i] = in[blockIdx.x * N + i];
    __syncthreads();
    long long start = clock64();
    for (int size = 2; size <= N; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            for (int i = threadIdx.x; i < N; i += THREADS) {
                int other = i ^ stride;
                unsigned a = tile[i], b = tile[other];
                if (other > i && (a > b) == ((i & size) == 0)) {
                    tile[i] = b;
                    tile[other] = a;
                }
            }
            __syncthreads();
        }
    long long end = clock64();
    for (int i = threadIdx.x; i < N; i += THREADS)
        out[blockIdx.x * N + i] = tile[i];
    if (threadIdx.x == 0)
        took[blockIdx.x] = end - start;
}

template <int THREADS, int ITEMS> __global__ void scan_block(const unsigned *in, unsigned *out, long long *took)
{
    __shared__ unsigned sums[THREADS];
    unsigned own[ITEMS], total = 0;
    for (int i = 0; i < ITEMS; i++)
        total += own[i] = in[(blockIdx.x * THREADS + threadIdx.x) * ITEMS + i];
    long long start = clock64();
    sums[threadIdx.x] = total;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        unsigned before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    long long end = clock64();
    unsigned at = sums[threadIdx.x] - total;
    for (int i = 0; i < ITEMS; i++) {
        out[(blockIdx.x * THREADS + threadIdx.x) * ITEMS + i] = at;
        at += own[i];
    }
    if (threadIdx.x == 0)
        took[blockIdx.x] = end - start;
}

using Kernel = void (*)(const unsigned *, unsigned *, long long *);

static void rounds_of(Kernel kernel, int threads, int items)
{
    const int blocks = 264, n = blocks * threads * items;
    std::vector<unsigned> values(n);
    std::vector<long long> took(blocks);
    unsigned state = threads + items, *in = device_zeros<unsigned>(n), *out = device_zeros<unsigned>(n);
    long long *device_took = device_zeros<long long>(blocks);
    for (unsigned &v : values)
        v = next_random(&state);
    CK(cudaMemcpy(in, values.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
    for (int r = 0; r < ROUNDS; r++) {
        kernel<<<blocks, threads>>>(in, out, device_took);
        CK(cudaGetLastError());
        CK(cudaMemcpy(took.data(), device_took, blocks * sizeof(long long), cudaMemcpyDeviceToHost));
        for (long long t : took)
            cycles += t;
        launches++;
    }
    CK(cudaMemcpy(values.data(), out, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    sum = digest(values.data(), n * sizeof(unsigned), sum);
    CK(cudaFree(in));
    CK(cudaFree(out));
    CK(cudaFree(device_took));
}

template <int THREADS, int ITEMS> static void both()
{
    rounds_of(sort_block<THREADS, ITEMS>, THREADS, ITEMS);
    rounds_of(scan_block<THREADS, ITEMS>, THREADS, ITEMS);
}

template <int THREADS> static void all_items()
{
    both<THREADS, 1>();
    both<THREADS, 4>();
    both<THREADS, 8>();
}

int main()
{
    all_items<64>();
    all_items<128>();
    all_items<256>();
    fprintf(stderr, "%llu cycles a launch\n", cycles / launches);
    return ended("clock", launches, sum);
}
