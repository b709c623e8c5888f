// Threads that launch at the same time, each on a stream and memory of its own, and one sum over all of it.
//   threads THREADS LAUNCHES     prints the sum on stdout, and how long launches and results took on stderr
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t rc_ = (call);                                                                                      \
        if (rc_ != cudaSuccess)                                                                                        \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(rc_)), exit(1);                                      \
    } while (0)

enum { N = 256 };

__global__ void increment(int *values)
{
    values[threadIdx.x]++;
}

static std::atomic<long long> total;

static void work(int launches, std::atomic<int> *waiting)
{
    int *values, host[N];
    cudaStream_t stream;
    long long sum = 0;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMalloc(&values, sizeof(host)));
    MUST(cudaMemset(values, 0, sizeof(host)));
    MUST(cudaDeviceSynchronize());
    for (--*waiting; *waiting > 0;)
        std::this_thread::yield();
    for (int i = 0; i < launches; i++)
        increment<<<1, N, 0, stream>>>(values);
    MUST(cudaGetLastError());
    MUST(cudaMemcpyAsync(host, values, sizeof(host), cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    for (int v : host)
        sum += v;
    total += sum;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 64, launches = argc > 2 ? atoi(argv[2]) : 20;
    std::atomic<int> waiting(n);
    std::vector<std::thread> threads;
    MUST(cudaFree(nullptr));
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < n; i++)
        threads.emplace_back(work, launches, &waiting);
    for (auto &t : threads)
        t.join();
    double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    printf("%lld\n", total.load());
    fprintf(stderr, "bench: launches %.6f s, with results %.6f s\n", s, s);
    return total != (long long)n * launches * N;
}
