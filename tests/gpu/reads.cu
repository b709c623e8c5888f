// What the host reads, and goes on from: repetitions of its launches must not depend on another value, and memory must stay
// as the program's own execution left it. Most kernels here give another result in each execution.
// Prints the same in every run.
//   reads [ROUNDS]     how often each case goes round (50)
// Build: nvcc -O2 -std=c++17 -arch=ARCH -o reads reads.cu
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>
#include <vector>

#define CK(x)                                                                                                          \
    do {                                                                                                               \
        cudaError_t e_ = (x);                                                                                          \
        if (e_ != cudaSuccess) {                                                                                       \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));                                          \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int rounds = 50;
static bool all_right = true;

static void verdict(const char *name, bool ok)
{
    printf("%-28s %s\n", name, ok ? "OK" : "WRONG");
    all_right &= ok;
}

// A number from the clock; with `one_in` other than 0, 1 in one of so many executions, else 0.
__global__ void roll(unsigned *to, unsigned most, unsigned one_in)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    unsigned value = (unsigned)(now / 32 * 2654435761u >> 7);
    *to = one_in ? value % one_in == 0 : value % most;
}

// Ends the context where the number on the device is not the one that the host has read.
__global__ void write_as_many(const unsigned *count, unsigned read, unsigned *data)
{
    if (*count != read)
        __trap();
    for (unsigned i = threadIdx.x; i < read; i += blockDim.x)
        data[i]++;
}

__global__ void chain(unsigned *v, unsigned add)
{
    *v = *v * 31 + add;
}

__global__ void step(unsigned *v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] = v[i] * 3 + 1;
}

// The order of the queue is another one in each execution.
__global__ void enqueue(unsigned *queue, unsigned *end)
{
    queue[atomicAdd(end, 1)] = blockIdx.x * blockDim.x + threadIdx.x;
}

__global__ void follow(const unsigned *queue, unsigned *place)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    place[queue[i]] = i;
}

// Design test 1: a count from the clock is read; the next launch writes exactly so many.
static void bound(unsigned steady)
{
    const unsigned most = 4096;
    unsigned *count, *data, read = 0;
    std::vector<unsigned> wanted(most, 0), is(most);
    CK(cudaMalloc(&count, 4));
    CK(cudaMalloc(&data, most * 4));
    CK(cudaMemset(data, 0, most * 4));
    for (int i = 0; i < rounds; i++) {
        // So that the site is trusted before it differs.
        roll<<<1, 1>>>(count, i < (int)steady ? 1 : most, 0);
        CK(cudaMemcpy(&read, count, 4, cudaMemcpyDeviceToHost));
        write_as_many<<<1, 128>>>(count, read, data);
        for (unsigned k = 0; k < read; k++)
            wanted[k]++;
    }
    CK(cudaMemcpy(is.data(), data, most * 4, cudaMemcpyDeviceToHost));
    verdict(steady ? "count, steady at first" : "count", is == wanted);
    CK(cudaFree(count));
    CK(cudaFree(data));
}

// Design test 2: the same value in most executions, another one in one of eight.
static void seldom()
{
    unsigned *value, *v, read = 0, wanted = 0, is = 1;
    CK(cudaMalloc(&value, 4));
    CK(cudaMalloc(&v, 4));
    CK(cudaMemset(v, 0, 4));
    for (int i = 0; i < rounds; i++) {
        roll<<<1, 1>>>(value, 0, 8);
        CK(cudaMemcpy(&read, value, 4, cudaMemcpyDeviceToHost));
        chain<<<1, 1>>>(v, read + i);
        wanted = wanted * 31 + read + i;
    }
    CK(cudaMemcpy(&is, v, 4, cudaMemcpyDeviceToHost));
    verdict("differs in one of eight", is == wanted);
}

// Design test 3: atomics order a queue that is never read; the next kernel follows it. A steady value is read between.
static void queue()
{
    const int n = 4096;
    unsigned *q, *end, *place, read = 0;
    std::vector<unsigned> order(n), places(n);
    bool ok = true;
    CK(cudaMalloc(&q, n * 4));
    CK(cudaMalloc(&end, 4));
    CK(cudaMalloc(&place, n * 4));
    for (int i = 0; i < rounds; i++) {
        CK(cudaMemset(end, 0, 4));
        enqueue<<<n / 64, 64>>>(q, end);
        CK(cudaMemcpy(&read, end, 4, cudaMemcpyDeviceToHost));
        follow<<<n / 64, 64>>>(q, place);
        ok &= read == (unsigned)n;
    }
    CK(cudaMemcpy(order.data(), q, n * 4, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(places.data(), place, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        ok &= order[i] < (unsigned)n && places[order[i]] == (unsigned)i;
    verdict("queue in any order", ok);
}

// Design test 5: an asynchronous copy to pinned memory, then one from there, without a wait in between.
static void back()
{
    const int n = 1 << 16;
    unsigned *a, *b, *pinned;
    std::vector<unsigned> is(n), wanted(n, 0);
    cudaStream_t s;
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaMalloc(&a, n * 4));
    CK(cudaMalloc(&b, n * 4));
    CK(cudaMallocHost(&pinned, n * 4));
    CK(cudaMemset(a, 0, n * 4));
    CK(cudaDeviceSynchronize());
    for (int i = 0; i < rounds; i++) {
        step<<<n / 256, 256, 0, s>>>(a, n);
        CK(cudaMemcpyAsync(pinned, a, n * 4, cudaMemcpyDeviceToHost, s));
        CK(cudaMemcpyAsync(b, pinned, n * 4, cudaMemcpyHostToDevice, s));
        step<<<n / 256, 256, 0, s>>>(b, n);
        CK(cudaStreamSynchronize(s));
        pinned[i] = 0xffffffffu;
        for (auto &w : wanted)
            w = w * 3 + 1;
    }
    for (auto &w : wanted)
        w = w * 3 + 1;
    CK(cudaMemcpy(is.data(), b, n * 4, cudaMemcpyDeviceToHost));
    verdict("there and back", is == wanted);
}

// Design test 7: memory of a pool that keeps nothing, of two streams.
static void pools()
{
    const int n = 1 << 18;
    unsigned *v, read = 0, wanted = 0;
    cudaStream_t s[2];
    cudaMemPool_t pool;
    unsigned long long threshold = 0;
    bool ok = true;
    CK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    for (auto &one : s)
        CK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    for (int i = 0; i < rounds; i++) {
        CK(cudaMallocAsync(&v, n * 4, s[i % 2]));
        CK(cudaMemsetAsync(v, 0, n * 4, s[i % 2]));
        for (int k = 0; k <= i % 3; k++)
            step<<<n / 256, 256, 0, s[i % 2]>>>(v, n);
        CK(cudaMemcpyAsync(&read, v + n - 1, 4, cudaMemcpyDeviceToHost, s[i % 2]));
        CK(cudaFreeAsync(v, s[i % 2]));
        CK(cudaStreamSynchronize(s[i % 2]));
        wanted = i % 3 == 0 ? 1 : i % 3 == 1 ? 4 : 13;
        ok &= read == wanted;
    }
    verdict("pools", ok);
}

// Design test 11: one thread spins on the destination of an asynchronous copy, another one launches.
static void spinning()
{
    unsigned *a, *b, is = 0;
    volatile unsigned *pinned;
    cudaStream_t s, other;
    bool ok = true;
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CK(cudaMalloc(&a, 4));
    CK(cudaMalloc(&b, 4));
    CK(cudaMemset(a, 0, 4));
    CK(cudaMemset(b, 0, 4));
    CK(cudaMallocHost((void **)&pinned, 4));
    CK(cudaDeviceSynchronize());
    unsigned launched = 0, wanted = 0, chained = 0;
    std::thread thread([&] {
        for (; launched < (unsigned)rounds; launched++)
            chain<<<1, 1, 0, other>>>(b, launched);
    });
    for (int i = 0; i < rounds; i++) {
        wanted = wanted * 31 + i + 1;
        *pinned = wanted + 1;
        chain<<<1, 1, 0, s>>>(a, i + 1);
        CK(cudaMemcpyAsync((void *)pinned, a, 4, cudaMemcpyDeviceToHost, s));
        for (long spins = 0; *pinned == wanted + 1 && spins < 4000000000L; spins++)
            ;
        ok &= *pinned == wanted;
    }
    thread.join();
    for (unsigned i = 0; i < launched; i++)
        chained = chained * 31 + i;
    CK(cudaDeviceSynchronize());
    CK(cudaMemcpy(&is, b, 4, cudaMemcpyDeviceToHost));
    verdict("a thread that spins", ok && is == chained);
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    CK(cudaSetDevice(0));
    bound(0);
    bound(3);
    seldom();
    queue();
    back();
    pools();
    spinning();
    printf("%s\n", all_right ? "all right" : "WRONG");
    return !all_right;
}
