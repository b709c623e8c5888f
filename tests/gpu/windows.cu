// What a program may do between launches, so that a profiler that issues launches again later is caught when it gets it
// wrong: in-place kernels whose results depend on every launch having run exactly once, in order, on the data of its
// time. Each check prints a line with values that are the same in every run; all is also computed on the CPU, so the
// program knows whether it is right.
//   windows [N]     N: launches of the longest row (1000)
//   windows maps    memory that is mapped between launches alone: no window is to be closed by that
// Built as it is and with --default-stream per-thread it prints the same.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cooperative_groups.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>
#define CK(x)                                                                                                          \
    do {                                                                                                               \
        cudaError_t e = (x);                                                                                           \
        if (e != cudaSuccess) {                                                                                        \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e));                                           \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const int n = 1 << 14, block = 256, grid = n / block, part = n / 4;
static const size_t bytes = n * sizeof(unsigned);
// How long a kernel or a thread waits for what comes at once in a healthy run, so that nothing here ever hangs.
static const unsigned long long patience_ns = 6000000000ull;
static const std::chrono::nanoseconds patience(patience_ns);

// ---- kernels ----

struct table {
    unsigned m[200], a;
};

__device__ unsigned device_counter, device_scale;
__constant__ unsigned constant_offset;

__device__ int at()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}
__global__ void affine(unsigned *v, unsigned m, unsigned a)
{
    v[at()] = v[at()] * m + a;
}
__global__ void mix(unsigned *v, const unsigned *w)
{
    v[at()] = v[at()] * 3 + w[at()];
}
__global__ void affine_by_table(unsigned *v, table t)
{
    v[at()] = v[at()] * t.m[at() % 200] + t.a;
}
__global__ void fill_through(unsigned *const *v, unsigned m, unsigned a)
{
    (*v)[at()] = at() * m + a;
}
__global__ void affine_by_globals(unsigned *v)
{
    v[at()] = v[at()] * device_scale + constant_offset;
}
__global__ void count_global()
{
    atomicAdd(&device_counter, 1u);
}
template <unsigned salt> __global__ void salted(unsigned *v)
{
    v[at()] = (v[at()] ^ salt) * 5;
}
__global__ void through_shared(unsigned *v, unsigned last)
{
    extern __shared__ unsigned buffer[];
    buffer[last - threadIdx.x] = v[at()];
    v[at()] = buffer[last - threadIdx.x] * 9 + last;
}
__global__ void grid_mix(unsigned *v)
{
    cooperative_groups::grid_group all = cooperative_groups::this_grid();
    int size = gridDim.x * blockDim.x;
    v[at()] = v[at()] * 3 + 1;
    all.sync();
    unsigned other = v[(at() + blockDim.x) % size];
    all.sync();
    v[at()] += other;
}
__global__ void say(unsigned k)
{
    printf("kernel line %u\n", k);
}
__global__ void publish(unsigned *value, volatile unsigned *done, unsigned k)
{
    *value = *value * 3 + k;
    __threadfence_system();
    *done = k;
}
__device__ unsigned long long nanoseconds()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
__global__ void wait_flag(volatile unsigned *flag, unsigned wanted, unsigned *v)
{
    unsigned long long start = nanoseconds();
    while (*flag < wanted)
        if (nanoseconds() - start > patience_ns) {
            v[0] ^= 0xdeadu; // not what the CPU computes: the check fails
            return;
        }
}
__global__ void set_flag(unsigned *flag, unsigned value)
{
    __threadfence();
    *(volatile unsigned *)flag = value;
}

// ---- a vector, and what the CPU says must be in it ----

struct vec {
    unsigned *d, *host;      // host: for memory that the CPU reaches too, else null
    std::vector<unsigned> h; // what must be there once all that was issued has run
};

static cudaStream_t streams[3]; // non-blocking, blocking, the thread's own: blocking
static bool all_right = true;

static void verdict(const char *name, bool ok, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%-20s ", name);
    vprintf(format, args);
    printf(" %s\n", ok ? "OK" : "WRONG");
    va_end(args);
    all_right &= ok;
}

static unsigned content(unsigned seed, unsigned i)
{
    return seed * 747796405u + i * 2654435761u;
}

static void set_content(unsigned *p, unsigned seed)
{
    for (int i = 0; i < n; i++)
        p[i] = content(seed, i);
}

static vec make_vec(unsigned seed)
{
    vec v = {nullptr, nullptr, std::vector<unsigned>(n)};
    set_content(v.h.data(), seed);
    CK(cudaMalloc(&v.d, bytes));
    CK(cudaMemcpy(v.d, v.h.data(), bytes, cudaMemcpyHostToDevice));
    CK(cudaDeviceSynchronize());
    return v;
}

static vec make_pinned(unsigned seed)
{
    vec v = {nullptr, nullptr, std::vector<unsigned>(n)};
    set_content(v.h.data(), seed);
    CK(cudaHostAlloc(&v.host, bytes, cudaHostAllocMapped));
    CK(cudaHostGetDevicePointer(&v.d, v.host, 0));
    memcpy(v.host, v.h.data(), bytes);
    return v;
}

static void affine_on(vec &v, unsigned m, unsigned a, cudaStream_t s)
{
    affine<<<grid, block, 0, s>>>(v.d, m, a);
    for (unsigned &x : v.h)
        x = x * m + a;
}
static void mix_model(vec &v, const vec &w)
{
    for (int i = 0; i < n; i++)
        v.h[i] = v.h[i] * 3 + w.h[i];
}
static void mix_on(vec &v, const vec &w, cudaStream_t s)
{
    mix<<<grid, block, 0, s>>>(v.d, w.d);
    mix_model(v, w);
}
static void fill_model(vec &v, int byte, int first, int count)
{
    for (int i = first; i < first + count; i++)
        v.h[i] = (byte & 0xff) * 0x01010101u;
}
static void fill_on(vec &v, int byte, int first, int count, cudaStream_t s)
{
    CK(cudaMemsetAsync(v.d + first, byte, count * sizeof(unsigned), s));
    fill_model(v, byte, first, count);
}

// "Not ready" stays behind as the last error.
static bool is_busy(cudaError_t answer)
{
    if (answer == cudaErrorNotReady)
        cudaGetLastError();
    else
        CK(answer);
    return answer == cudaErrorNotReady;
}

static int differences(const vec &v)
{
    std::vector<unsigned> got(n);
    int different = 0;
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
    if (v.host)
        memcpy(got.data(), v.host, bytes);
    else
        CK(cudaMemcpy(got.data(), v.d, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        different += got[i] != v.h[i];
    return different;
}
static void drop(vec &v)
{
    CK(v.host ? cudaFreeHost(v.host) : cudaFree(v.d));
}

static unsigned long long checksum(const vec &v)
{
    unsigned long long s = 14695981039346656037ull;
    for (unsigned x : v.h)
        s = (s ^ x) * 1099511628211ull;
    return s;
}

// Ends a check; `ok`: what else it found.
static void compare(const char *name, vec &v, bool ok = true)
{
    int different = differences(v);
    if (different)
        verdict(name, false, "%d of %d differ", different, n);
    else
        verdict(name, ok, "%016llx", checksum(v));
    drop(v);
}

// ---- launches, memsets and copies ----

static void check_in_place()
{
    vec v = make_vec(1), w = make_vec(2);
    for (int i = 0; i < 12; i++) {
        affine_on(v, 3 + 2 * i, i, streams[0]);
        if (i % 3 == 0)
            fill_on(v, i + 1, part, part, streams[0]);
        if (i % 4 == 1) {
            CK(cudaMemcpyAsync(w.d, v.d, bytes / 2, cudaMemcpyDeviceToDevice, streams[0]));
            memcpy(w.h.data(), v.h.data(), bytes / 2);
        }
        mix_on(v, w, streams[0]);
    }
    compare("in place", v);
    drop(w);
}

static void check_arguments()
{
    vec v = make_vec(3);
    for (unsigned k = 0; k < 6; k++) {
        table t;
        void *args[] = {&v.d, &t};
        for (int i = 0; i < 200; i++)
            t.m[i] = 2 * (i + k) + 1;
        t.a = k;
        for (int i = 0; i < n; i++)
            v.h[i] = v.h[i] * t.m[i % 200] + t.a;
        CK(cudaLaunchKernel((const void *)affine_by_table, dim3(grid), dim3(block), args, 0, streams[0]));
        memset((void *)args, 0, sizeof(args));
        memset(&t, 0xff, sizeof(t));
    }
    compare("arguments", v);
}

// The source is overwritten and unmapped as soon as the call has returned.
static void check_pageable()
{
    vec v = make_vec(4), w = make_vec(5);
    int device_reads_it = 0; // then the copy may really be asynchronous
    CK(cudaDeviceGetAttribute(&device_reads_it, cudaDevAttrPageableMemoryAccess, 0));
    for (int k = 0; k < 10; k++) {
        size_t count = k % 2 ? n : 256;
        void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        set_content((unsigned *)pages, k);
        memcpy(w.h.data(), pages, count * sizeof(unsigned));
        affine_on(v, 5, k, streams[0]);
        CK(cudaMemcpyAsync(w.d, pages, count * sizeof(unsigned), cudaMemcpyHostToDevice, streams[0]));
        if (device_reads_it)
            CK(cudaStreamSynchronize(streams[0]));
        memset(pages, 0xee, bytes);
        munmap(pages, bytes);
        mix_on(v, w, streams[0]);
    }
    compare("pageable source", v);
    drop(w);
}

static void check_2d()
{
    vec v = make_vec(6);
    const int width = 128, rows = n / width;
    for (int k = 0; k < 4; k++) {
        std::vector<unsigned> source(64 * rows);
        for (int i = 0; i < 64 * rows; i++)
            source[i] = content(k, i);
        affine_on(v, 7, k, streams[0]);
        CK(cudaMemcpy2DAsync(v.d + 16, width * sizeof(unsigned), source.data(), 64 * sizeof(unsigned),
                             64 * sizeof(unsigned), rows, cudaMemcpyHostToDevice, streams[0]));
        CK(cudaMemset2DAsync(v.d + 96, width * sizeof(unsigned), k, 32 * sizeof(unsigned), rows / 2, streams[0]));
        CK(cudaStreamSynchronize(streams[0]));
        for (int i = 0; i < n; i++) {
            int x = i % width, y = i / width;
            if (x >= 16 && x < 80)
                v.h[i] = source[y * 64 + x - 16];
            else if (x >= 96 && y < rows / 2)
                v.h[i] = k * 0x01010101u;
        }
        source.assign(source.size(), 0xeeeeeeeeu);
    }
    affine_on(v, 9, 1, streams[0]);
    compare("2D", v);
}

static void check_synchronous_copies()
{
    vec v = make_vec(7), w = make_vec(8);
    unsigned read = 0, model = 0;
    for (int k = 0; k < 6; k++) {
        size_t count = k % 2 ? n : 16;
        std::vector<unsigned> source(n);
        set_content(source.data(), 100 + k);
        mix_on(v, w, 0);
        CK(cudaMemcpy(w.d, source.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));
        memcpy(w.h.data(), source.data(), count * sizeof(unsigned));
        mix_on(v, w, 0);
        if (k == 3)
            CK(cudaMemcpy(&read, v.d + 99, sizeof(read), cudaMemcpyDeviceToHost));
        if (k == 3)
            model = v.h[99];
    }
    compare("synchronous copies", v, read == model);
    drop(w);
}

// ---- host memory that goes on changing ----

// A thread that never stops to add numbers to memory that the device can reach too, and knows what must be there.
struct writer {
    std::atomic<bool> stop{false};
    std::thread thread;
    volatile unsigned long *memory;
    std::vector<unsigned long> shadow;
    writer(void *p, size_t size) : memory((unsigned long *)p), shadow(size / sizeof(unsigned long))
    {
        memset(p, 0, size);
        thread = std::thread([this] { run(); });
    }
    void run()
    {
        for (unsigned long k = 1; !stop; k++) {
            for (size_t i = k % 7; i < shadow.size(); i += 7) {
                memory[i] = memory[i] + k;
                shadow[i] += k;
            }
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }
    int end()
    {
        int lost = 0;
        stop = true;
        thread.join();
        for (size_t i = 0; i < shadow.size(); i++)
            lost += memory[i] != shadow[i];
        return lost;
    }
};

static void check_registered()
{
    static const size_t size = 1 << 16;
    vec v = make_vec(9);
    int *memory = (int *)aligned_alloc(4096, size);
    CK(cudaHostRegister(memory, size, cudaHostRegisterMapped));
    int lost = 0;
    for (int k = 0; k < 20; k++) {
        memory[k] = k + 1;
        affine_on(v, 3, k, streams[0]);
        if (k % 5 == 4)
            CK(cudaStreamSynchronize(streams[0]));
    }
    int different = differences(v);
    for (int k = 0; k < 20; k++)
        lost += memory[k] != k + 1;
    CK(cudaHostUnregister(memory));
    verdict("registered memory", !lost && !different, "%d numbers lost, %d differ", lost, different);
    free(memory);
    drop(v);
}

// Overwritten once an event says that the copy has read it; freed with later launches on their way.
static void check_pinned_event()
{
    vec v = make_vec(10), w = make_vec(11);
    unsigned *pinned;
    cudaEvent_t read;
    CK(cudaMallocHost(&pinned, bytes));
    CK(cudaEventCreateWithFlags(&read, cudaEventDisableTiming));
    for (int k = 0; k < 10; k++) {
        set_content(pinned, k);
        set_content(w.h.data(), k);
        CK(cudaMemcpyAsync(w.d, pinned, bytes, cudaMemcpyHostToDevice, streams[0]));
        CK(cudaEventRecord(read, streams[0]));
        mix_on(v, w, streams[0]);
        CK(cudaEventSynchronize(read));
        memset(pinned, 0xee, bytes);
    }
    CK(cudaEventDestroy(read));
    CK(cudaFreeHost(pinned));
    affine_on(v, 13, 1, streams[0]);
    compare("pinned source", v);
    drop(w);
}

// Another thread fills a ring of pinned buffers, as a data loader does.
static void check_loader()
{
    static const int ring = 4, batches = 24;
    vec v = make_vec(12), w = make_vec(13);
    unsigned *pinned[ring];
    cudaEvent_t read[ring];
    std::mutex lock;
    std::condition_variable changed;
    int filled = 0, released = 0;
    for (int i = 0; i < ring; i++) {
        CK(cudaMallocHost(&pinned[i], bytes));
        CK(cudaEventCreateWithFlags(&read[i], cudaEventDisableTiming));
    }
    std::thread loader([&] {
        for (int k = 0; k < batches; k++) {
            std::unique_lock<std::mutex> hold(lock);
            changed.wait(hold, [&] { return k - released < ring; });
            hold.unlock();
            set_content(pinned[k % ring], 1000 + k);
            hold.lock();
            filled = k + 1;
            changed.notify_all();
        }
    });
    for (int k = 0; k < batches; k++) {
        std::unique_lock<std::mutex> hold(lock);
        changed.wait(hold, [&] { return filled > k; });
        hold.unlock();
        set_content(w.h.data(), 1000 + k);
        CK(cudaMemcpyAsync(w.d, pinned[k % ring], bytes, cudaMemcpyHostToDevice, streams[0]));
        CK(cudaEventRecord(read[k % ring], streams[0]));
        mix_on(v, w, streams[0]);
        if (k < 2)
            continue;
        while (is_busy(cudaEventQuery(read[(k - 2) % ring])))
            std::this_thread::yield();
        hold.lock();
        released = k - 1;
        changed.notify_all();
    }
    loader.join();
    compare("loader thread", v);
    for (int i = 0; i < ring; i++) {
        CK(cudaFreeHost(pinned[i]));
        CK(cudaEventDestroy(read[i]));
    }
    drop(w);
}

// Pinned memory that the stream itself writes before it reads it: by a copy, then by a kernel.
static void check_bounce()
{
    vec v = make_vec(14), w = make_vec(15), u = make_vec(16), z = make_pinned(17);
    for (int k = 0; k < 4; k++) {
        affine_on(v, 3, k, streams[0]);
        CK(cudaMemcpyAsync(z.host, v.d, bytes, cudaMemcpyDeviceToHost, streams[0]));
        z.h = v.h;
        CK(cudaMemcpyAsync(w.d, z.host, bytes, cudaMemcpyHostToDevice, streams[0]));
        w.h = z.h;
        mix_on(u, w, streams[0]);
        affine_on(z, 7, k, streams[0]);
        CK(cudaMemcpyAsync(w.d, z.host, bytes, cudaMemcpyHostToDevice, streams[0]));
        w.h = z.h;
        mix_on(u, w, streams[0]);
    }
    compare("bounce buffer", u);
    drop(v), drop(w), drop(z);
}

// ---- zero copy ----

static void check_zero_copy()
{
    vec z = make_pinned(18);
    for (int k = 0; k < 8; k++) {
        affine_on(z, 3, k, streams[0]);
        if (k == 4)
            fill_on(z, 0x21, part, part, streams[0]);
        if (k % 2 == 0)
            continue;
        CK(cudaStreamSynchronize(streams[0]));
        for (int i = 0; i < n; i += 3) {
            z.host[i] = z.host[i] * 7 + 1;
            z.h[i] = z.h[i] * 7 + 1;
        }
    }
    compare("zero copy", z);
}

// The host overwrites what a kernel has read, with no call but the wait for the kernel.
static void check_zero_copy_input()
{
    vec v = make_vec(19), z = make_pinned(20);
    for (int k = 0; k < 8; k++) {
        mix_on(v, z, streams[0]);
        CK(cudaStreamSynchronize(streams[0]));
        set_content(z.host, 50 + k);
        set_content(z.h.data(), 50 + k);
    }
    compare("zero copy input", v);
    drop(z);
}

// The kernel finds the address of pinned memory in device memory. Such memory is not rewound, which docs/limits.md says: the
// kernel writes what does not depend on how often it runs.
static void check_indirect()
{
    vec z = make_pinned(21);
    unsigned **where;
    CK(cudaMalloc(&where, sizeof(*where)));
    CK(cudaMemcpy(where, &z.d, sizeof(*where), cudaMemcpyHostToDevice));
    CK(cudaDeviceSynchronize());
    for (unsigned k = 0; k < 6; k++) {
        fill_through<<<grid, block, 0, streams[0]>>>(where, 5, k);
        for (int i = 0; i < n; i++)
            z.h[i] = i * 5 + k;
    }
    CK(cudaStreamSynchronize(streams[0]));
    CK(cudaFree(where));
    compare("address in memory", z);
}

// The host learns from pinned memory alone that a kernel is done.
static void check_host_polls()
{
    unsigned *p, *device, model = 0, wrong = 0, late = 0;
    CK(cudaHostAlloc(&p, 2 * sizeof(unsigned), cudaHostAllocMapped));
    CK(cudaHostGetDevicePointer(&device, p, 0));
    p[0] = p[1] = 0;
    for (unsigned k = 1; k <= 10; k++) {
        publish<<<1, 1, 0, streams[0]>>>(device, device + 1, k);
        auto start = std::chrono::steady_clock::now();
        bool in_time = true;
        while (*(volatile unsigned *)&p[1] != k && in_time)
            in_time = std::chrono::steady_clock::now() - start < patience;
        model = model * 3 + k;
        late += !in_time;
        wrong += *(volatile unsigned *)&p[0] != model;
    }
    CK(cudaStreamSynchronize(streams[0]));
    wrong += p[0] != model;
    verdict("host polls memory", !wrong && !late, "%u, %u wrong, %u late", model, wrong, late);
    CK(cudaFreeHost(p));
}

// ---- order between streams ----

static void check_events()
{
    vec v = make_vec(22);
    cudaEvent_t done[3];
    for (cudaEvent_t &event : done)
        CK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int k = 0; k < 30; k++) {
        affine_on(v, 3 + 2 * (k % 5), k, streams[k % 3]);
        CK(cudaEventRecord(done[k % 3], streams[k % 3]));
        CK(cudaStreamWaitEvent(streams[(k + 1) % 3], done[k % 3], 0));
    }
    compare("events", v);
    for (cudaEvent_t event : done)
        CK(cudaEventDestroy(event));
}

static void check_legacy_stream()
{
    vec v = make_vec(23);
    for (int k = 0; k < 12; k++)
        affine_on(v, 5 + 2 * (k % 3), k, k % 2 ? cudaStreamLegacy : streams[1 + k / 2 % 2]);
    compare("legacy stream", v);
}

// Streams and events that are destroyed with their work still on its way.
static void check_short_lived()
{
    vec v = make_vec(24);
    for (int k = 0; k < 6; k++) {
        cudaStream_t s;
        cudaEvent_t before, after;
        CK(cudaStreamCreate(&s));
        CK(cudaEventCreate(&before));
        CK(cudaEventCreate(&after));
        affine_on(v, 3, k, streams[0]);
        CK(cudaEventRecord(before, streams[0]));
        CK(cudaStreamWaitEvent(s, before, 0));
        CK(cudaEventDestroy(before));
        affine_on(v, 5, k, s);
        CK(cudaEventRecord(after, s));
        CK(cudaStreamWaitEvent(streams[0], after, 0));
        CK(cudaStreamDestroy(s));
        CK(cudaEventDestroy(after));
    }
    affine_on(v, 7, 1, streams[0]);
    compare("short-lived streams", v);
}

static void check_polling()
{
    vec v = make_vec(25);
    unsigned *seen, wrong = 0;
    cudaEvent_t done;
    CK(cudaMallocHost(&seen, sizeof(*seen)));
    CK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    for (int k = 0; k < 6; k++) {
        affine_on(v, 3, k, streams[0]);
        while (is_busy(cudaStreamQuery(streams[0])))
            std::this_thread::yield();
        affine_on(v, 5, k, streams[0]);
        CK(cudaMemcpyAsync(seen, v.d + 7, sizeof(*seen), cudaMemcpyDeviceToHost, streams[0]));
        CK(cudaEventRecord(done, streams[0]));
        while (is_busy(cudaEventQuery(done)))
            std::this_thread::yield();
        wrong += *(volatile unsigned *)seen != v.h[7];
    }
    CK(cudaEventDestroy(done));
    CK(cudaFreeHost(seen));
    compare("polling", v, !wrong);
}

static void check_elapsed()
{
    vec v = make_vec(26);
    cudaEvent_t start, stop;
    int wrong = 0;
    CK(cudaEventCreate(&start));
    CK(cudaEventCreate(&stop));
    for (int k = 0; k < 6; k++) {
        auto begin = std::chrono::steady_clock::now();
        float ms = -1;
        CK(cudaEventRecord(start, streams[0]));
        affine_on(v, 3, k, streams[0]);
        if (k % 2)
            CK(cudaStreamSynchronize(streams[0]));
        affine_on(v, 5, k, streams[0]);
        CK(cudaEventRecord(stop, streams[0]));
        CK(cudaEventSynchronize(stop));
        CK(cudaEventElapsedTime(&ms, start, stop));
        std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
        wrong += !(ms >= 0 && ms <= wall.count() + 1);
    }
    CK(cudaEventDestroy(start));
    CK(cudaEventDestroy(stop));
    compare("elapsed time", v, !wrong);
}

static void *driver_function(const char *name)
{
    void *f = nullptr;
    cudaDriverEntryPointQueryResult found;
    CK(cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found));
    return found == cudaDriverEntryPointSuccess ? f : nullptr;
}

// ---- memory and code that come and go ----

static void check_allocations()
{
    vec v = make_vec(27);
    for (int k = 0; k < 6; k++) {
        vec w = make_vec(60 + k);
        affine_on(w, 3, k, streams[0]);
        mix_on(v, w, streams[0]);
        CK(cudaFree(w.d));
    }
    compare("malloc and free", v);
}

static void check_stream_allocations()
{
    vec v = make_vec(28);
    for (int k = 0; k < 6; k++) {
        vec w = {nullptr, nullptr, std::vector<unsigned>(n)};
        CK(cudaMallocAsync(&w.d, bytes, streams[0]));
        fill_on(w, k, 0, n, streams[0]);
        affine_on(w, 3, k, streams[0]);
        mix_on(v, w, streams[0]);
        CK(cudaFreeAsync(w.d, streams[0]));
    }
    compare("stream allocations", v);
}

// Addresses, with memory of the driver's behind as many of them as are needed by now: as PyTorch's expandable segments.
struct segment {
    CUdeviceptr at = 0;
    size_t unit = 0;
    std::vector<CUmemGenericAllocationHandle> memory;
    CUmemAllocationProp what = {};
    CUmemAccessDesc access = {};
    int failures = 0;
#define DRIVER(name) decltype(&name) name##_ = (decltype(&name))driver_function(#name)
    DRIVER(cuMemGetAllocationGranularity);
    DRIVER(cuMemAddressReserve);
    DRIVER(cuMemAddressFree);
    DRIVER(cuMemCreate);
    DRIVER(cuMemRelease);
    DRIVER(cuMemMap);
    DRIVER(cuMemUnmap);
    DRIVER(cuMemSetAccess);
#undef DRIVER

    explicit segment(int pieces)
    {
        CK(cudaGetDevice(&what.location.id));
        what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access.location = what.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        failures += cuMemGetAllocationGranularity_(&unit, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS;
        failures += cuMemAddressReserve_(&at, pieces * unit, 0, 0, 0) != CUDA_SUCCESS;
    }
    vec piece(int k)
    {
        return {(unsigned *)(at + k * unit), nullptr, std::vector<unsigned>(n)};
    }
    // Maps the next piece. Nobody may touch it before `grant`.
    void map()
    {
        CUmemGenericAllocationHandle m = 0;
        failures += cuMemCreate_(&m, unit, &what, 0) != CUDA_SUCCESS;
        failures += cuMemMap_(at + memory.size() * unit, unit, 0, m, 0) != CUDA_SUCCESS;
        memory.push_back(m);
    }
    void grant(int first, int pieces)
    {
        failures += cuMemSetAccess_(at + first * unit, pieces * unit, &access, 1) != CUDA_SUCCESS;
    }
    // The memory lives on as long as it is mapped.
    void release(int k)
    {
        failures += cuMemRelease_(memory[k]) != CUDA_SUCCESS;
        memory[k] = 0;
    }
    bool end()
    {
        size_t all = memory.size() * unit;
        failures += cuMemUnmap_(at, all) != CUDA_SUCCESS;
        for (size_t k = 0; k < memory.size(); k++)
            if (memory[k])
                release(k);
        failures += cuMemAddressFree_(at, all) != CUDA_SUCCESS;
        return !failures;
    }
};

// Between launches: none of the calls closes a window.
static void check_maps()
{
    const int pieces = 8;
    vec v = make_vec(54), w[pieces];
    segment s(pieces);
    int different = 0;
    for (int k = 0; k < pieces; k++) {
        affine_on(v, 3, k, streams[0]);
        s.map();
        affine_on(v, 5, k, streams[0]);
        w[k] = s.piece(k);
        if (k == 2) // with the next one
            continue;
        s.grant(k == 3 ? 2 : k, k == 3 ? 2 : 1);
        if (k % 2)
            s.release(k);
        for (int j = k == 3 ? 2 : k; j <= k; j++)
            fill_on(w[j], j + 1, 0, n, streams[0]);
        for (int j = 0; j <= k; j++)
            affine_on(w[j], 7, j, streams[0]);
        mix_on(v, w[k], streams[0]);
    }
    for (const vec &x : w)
        different += differences(x);
    CK(cudaDeviceSynchronize());
    compare("mapped memory", v, s.end() && !different);
}

// What new memory contains is read, and then changed.
static void check_maps_read()
{
    const int pieces = 6;
    vec v = make_vec(55), sum = make_vec(56);
    segment s(pieces);
    int different = 0;
    for (int k = 0; k < pieces; k++) {
        affine_on(v, 3, k, streams[0]);
        s.map();
        s.grant(k, 1);
        vec w = s.piece(k);
        CK(cudaMemcpy(w.h.data(), w.d, bytes, cudaMemcpyDeviceToHost));
        affine_on(w, 5, k + 1, streams[0]);
        affine_on(w, 7, k, streams[0]);
        mix_on(sum, w, streams[0]);
        different += differences(w);
    }
    different += differences(sum);
    drop(sum); // its contents are those of new memory
    compare("mapped, then read", v, s.end() && !different);
}

static void check_globals()
{
    vec v = make_vec(29);
    unsigned counted = 0, zero = 0;
    CK(cudaMemcpyToSymbol(device_counter, &zero, sizeof(zero)));
    CK(cudaDeviceSynchronize());
    for (unsigned k = 0; k < 8; k++) {
        unsigned scale = 2 * k + 1, offset = k * k;
        CK(cudaMemcpyToSymbolAsync(device_scale, &scale, sizeof(scale), 0, cudaMemcpyHostToDevice, streams[0]));
        CK(cudaMemcpyToSymbolAsync(constant_offset, &offset, sizeof(offset), 0, cudaMemcpyHostToDevice, streams[0]));
        for (unsigned &x : v.h)
            x = x * scale + offset;
        CK(cudaStreamSynchronize(streams[0]));
        scale = offset = 0xeeeeeeeeu;
        affine_by_globals<<<grid, block, 0, streams[0]>>>(v.d);
        count_global<<<4, 32, 0, streams[0]>>>();
    }
    CK(cudaStreamSynchronize(streams[0]));
    CK(cudaMemcpyFromSymbol(&counted, device_counter, sizeof(counted)));
    verdict("device counter", counted == 8 * 4 * 32, "%u", counted);
    compare("device variables", v);
}

static void check_second_kernel()
{
    vec v = make_vec(30);
    for (int k = 0; k < 3; k++)
        affine_on(v, 3, k, streams[0]);
    salted<7><<<grid, block, 0, streams[0]>>>(v.d);
    for (unsigned &x : v.h)
        x = (x ^ 7) * 5;
    affine_on(v, 3, 1, streams[0]);
    salted<9><<<grid, block, 0, streams[0]>>>(v.d);
    for (unsigned &x : v.h)
        x = (x ^ 9) * 5;
    compare("second kernel", v);
}

// v[i] = v[i] * 17 + a, in a module that comes and goes between launches.
static const char second_module[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry times17(.param .u64 v, .param .u32 a)
{
    .reg .u32 %r<7>;
    .reg .u64 %d<5>;
    ld.param.u64 %d1, [v];
    ld.param.u32 %r1, [a];
    cvta.to.global.u64 %d2, %d1;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    mul.wide.u32 %d3, %r5, 4;
    add.u64 %d4, %d2, %d3;
    ld.global.u32 %r6, [%d4];
    mad.lo.u32 %r6, %r6, 17, %r1;
    st.global.u32 [%d4], %r6;
    ret;
}
)";

static void check_second_module()
{
    vec v = make_vec(31);
    for (unsigned k = 0; k < 3; k++) {
        cudaLibrary_t library;
        cudaKernel_t kernel;
        void *args[] = {&v.d, &k};
        affine_on(v, 3, k, streams[0]);
        cudaError_t rc = cudaLibraryLoadData(&library, second_module, nullptr, nullptr, 0, nullptr, nullptr, 0);
        if (rc != cudaSuccess) { // a driver without its compiler
            verdict("second module", true, "not loaded: %s", cudaGetErrorName(rc));
            cudaGetLastError();
            drop(v);
            return;
        }
        CK(cudaLibraryGetKernel(&kernel, library, "times17"));
        CK(cudaLaunchKernel((const void *)kernel, dim3(grid), dim3(block), args, 0, streams[0]));
        for (unsigned &x : v.h)
            x = x * 17 + k;
        affine_on(v, 5, k, streams[0]);
        CK(cudaStreamSynchronize(streams[0]));
        CK(cudaLibraryUnload(library));
    }
    compare("second module", v);
}

// What a launch needed is taken back right after it.
static void check_attribute()
{
    vec v = make_vec(32);
    const unsigned large = 100 * 1024, last = large / sizeof(unsigned) - 1;
    for (int k = 0; k < 3; k++) {
        CK(cudaFuncSetAttribute(through_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, large));
        through_shared<<<grid, block, large, streams[0]>>>(v.d, last);
        CK(cudaGetLastError());
        CK(cudaFuncSetAttribute(through_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
        through_shared<<<grid, block, 1024, streams[0]>>>(v.d, 255);
        for (unsigned &x : v.h)
            x = (x * 9 + last) * 9 + 255;
    }
    compare("function attribute", v);
}

// ---- graphs, host functions, errors, output ----

static void check_graph()
{
    vec v = make_vec(33), w = make_vec(34), z = make_pinned(35);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    affine_on(v, 3, 1, streams[0]);
    CK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
    affine<<<grid, block, 0, streams[0]>>>(v.d, 11, 1);
    CK(cudaMemsetAsync(v.d + part, 0x11, part * sizeof(unsigned), streams[0]));
    CK(cudaMemcpyAsync(w.d, z.host, bytes, cudaMemcpyHostToDevice, streams[0]));
    mix<<<grid, block, 0, streams[0]>>>(v.d, w.d);
    CK(cudaStreamEndCapture(streams[0], &graph));
    CK(cudaGraphInstantiate(&exec, graph, 0));
    for (int k = 0; k < 4; k++) {
        affine_on(v, 5, k, streams[0]);
        CK(cudaGraphLaunch(exec, streams[0]));
        for (unsigned &x : v.h)
            x = x * 11 + 1;
        fill_model(v, 0x11, part, part);
        w.h = z.h;
        mix_model(v, w);
        affine_on(v, 7, k, streams[0]);
        CK(cudaStreamSynchronize(streams[0]));
        set_content(z.host, 70 + k); // the graph's copy has read it
        set_content(z.h.data(), 70 + k);
    }
    CK(cudaGraphExecDestroy(exec));
    CK(cudaGraphDestroy(graph));
    compare("graph", v);
    drop(w), drop(z);
}

// A graph launched again and again, each time with other parameters.
static void check_graph_update()
{
    vec v = make_vec(36);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    unsigned m = 3, a = 0;
    void *args[] = {&v.d, &m, &a};
    cudaKernelNodeParams params = {};
    params.func = (void *)affine;
    params.gridDim = dim3(grid);
    params.blockDim = dim3(block);
    params.kernelParams = args;
    CK(cudaGraphCreate(&graph, 0));
    CK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    CK(cudaGraphInstantiate(&exec, graph, 0));
    for (int k = 0; k < 5; k++) {
        m = 3 + 2 * k;
        a = k;
        CK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
        CK(cudaGraphLaunch(exec, streams[0]));
        for (unsigned &x : v.h)
            x = x * m + a;
        affine_on(v, 5, k, streams[0]);
    }
    CK(cudaStreamSynchronize(streams[0]));
    CK(cudaGraphExecDestroy(exec));
    CK(cudaGraphDestroy(graph));
    compare("graph update", v);
}

struct host_work {
    std::atomic<int> calls{0}, late{0};
    std::atomic<bool> go{false};
    unsigned *pinned, seed;
};

// Fills what the stream copies next.
static void CUDART_CB fill_pinned(void *data)
{
    host_work *work = (host_work *)data;
    set_content(work->pinned, work->seed++);
    work->calls++;
}

static void check_host_function()
{
    vec v = make_vec(37), w = make_vec(38);
    host_work work;
    work.seed = 80;
    CK(cudaMallocHost(&work.pinned, bytes));
    memset(work.pinned, 0, bytes);
    for (int k = 0; k < 6; k++) {
        affine_on(v, 3, k, streams[0]);
        CK(cudaLaunchHostFunc(streams[0], fill_pinned, &work));
        CK(cudaMemcpyAsync(w.d, work.pinned, bytes, cudaMemcpyHostToDevice, streams[0]));
        set_content(w.h.data(), 80 + k);
        mix_on(v, w, streams[0]);
    }
    CK(cudaStreamSynchronize(streams[0]));
    CK(cudaFreeHost(work.pinned));
    int calls = work.calls;
    verdict("host function calls", calls == 6, "%d", calls);
    compare("host function", v);
    drop(w);
}

static void check_invalid_launch()
{
    vec v = make_vec(39);
    affine_on(v, 3, 1, streams[0]);
    affine<<<grid, 2048, 0, streams[0]>>>(v.d, 99, 99);
    cudaError_t large = cudaGetLastError();
    affine_on(v, 5, 2, streams[0]);
    cudaError_t between = cudaGetLastError();
    affine<<<grid, block, 1 << 20, streams[0]>>>(v.d, 99, 99);
    cudaError_t greedy = cudaGetLastError();
    affine_on(v, 7, 3, streams[0]);
    printf("errors of launches: %s, %s, %s\n", cudaGetErrorName(large), cudaGetErrorName(between),
           cudaGetErrorName(greedy));
    compare("invalid launch", v, large != cudaSuccess && between == cudaSuccess && greedy != cudaSuccess);
}

// What kernels print is caught, and counted; two more lines go where this program's output goes.
static void check_printf()
{
    static const unsigned lines = 5;
    unsigned k, next = 0, others = 0;
    vec v = make_vec(40);
    FILE *caught = tmpfile();
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    dup2(fileno(caught), STDOUT_FILENO);
    for (unsigned i = 0; i < lines; i++) {
        say<<<1, 1, 0, streams[0]>>>(i);
        affine_on(v, 3, i, streams[0]);
    }
    CK(cudaStreamSynchronize(streams[0]));
    CK(cudaDeviceSynchronize());
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(caught);
    while (fscanf(caught, "kernel line %u\n", &k) == 1)
        k == next ? next++ : others++;
    fclose(caught);
    say<<<1, 1, 0, streams[0]>>>(100);
    affine_on(v, 5, 1, streams[0]);
    say<<<1, 1, 0, streams[0]>>>(101);
    CK(cudaDeviceSynchronize());
    verdict("printf", next == lines && !others, "%u lines in order, %u others", next, others);
    compare("launches that print", v);
}

// ---- threads, and many launches ----

static void thread_work(int k, int *different)
{
    vec v = make_vec(200 + k), w = make_vec(300 + k);
    cudaStream_t s;
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int i = 0; i < 40; i++) {
        affine_on(v, 3 + 2 * k, i, s);
        if (i % 8 == 3)
            fill_on(v, i, part, part, s);
        if (i % 10 == 5) {
            std::vector<unsigned> source(n);
            set_content(source.data(), i);
            w.h = source;
            CK(cudaMemcpyAsync(w.d, source.data(), bytes, cudaMemcpyHostToDevice, s));
            CK(cudaStreamSynchronize(s));
        }
        mix_on(v, w, s);
        if (i % 5 == 0)
            count_global<<<1, 32, 0, s>>>();
    }
    CK(cudaStreamSynchronize(s));
    *different = differences(v);
    CK(cudaStreamDestroy(s));
    drop(v), drop(w);
}

static void check_threads()
{
    int different[4], sum = 0;
    unsigned counted = 0, zero = 0;
    std::vector<std::thread> threads;
    CK(cudaMemcpyToSymbol(device_counter, &zero, sizeof(zero)));
    CK(cudaDeviceSynchronize());
    for (int k = 0; k < 4; k++)
        threads.emplace_back(thread_work, k, &different[k]);
    for (std::thread &t : threads)
        t.join();
    for (int d : different)
        sum += d;
    CK(cudaMemcpyFromSymbol(&counted, device_counter, sizeof(counted)));
    verdict("threads", !sum && counted == 4 * 8 * 32, "%d differ, %u counted", sum, counted);
}

static void check_many(int launches)
{
    vec v = make_vec(41);
    for (int k = 0; k < launches; k++) {
        affine_on(v, 2 * k + 1, k, streams[0]);
        if (k % 100 == 50)
            fill_on(v, k, part, part, streams[0]);
    }
    compare("many launches", v);
}

// ---- work that waits for something outside the launch ----

// Two streams, the first kernel waiting for what the second one, or a copy, brings.
static void check_wait_for_other(const char *name, bool by_copy)
{
    vec v = make_vec(42), u = make_vec(43);
    unsigned *flag, *pinned;
    CK(cudaMalloc(&flag, sizeof(*flag)));
    CK(cudaMemset(flag, 0, sizeof(*flag)));
    CK(cudaMallocHost(&pinned, 4 * sizeof(*pinned)));
    CK(cudaDeviceSynchronize());
    for (unsigned k = 1; k <= 3; k++) {
        affine_on(v, 3, k, streams[0]);
        wait_flag<<<1, 1, 0, streams[0]>>>(flag, k, v.d);
        affine_on(v, 5, k, streams[0]);
        affine_on(u, 7, k, streams[1]);
        pinned[k] = k;
        if (by_copy)
            CK(cudaMemcpyAsync(flag, &pinned[k], sizeof(*flag), cudaMemcpyHostToDevice, streams[1]));
        else
            set_flag<<<1, 1, 0, streams[1]>>>(flag, k);
    }
    bool ok = !differences(u);
    compare(name, v, ok);
    CK(cudaFree(flag));
    CK(cudaFreeHost(pinned));
    drop(u);
}

// The host sets the flag after the launch, and after having asked for the stream. With `again` it clears it as soon as
// the kernel is done.
static void check_wait_for_host(const char *name, bool again)
{
    vec v = make_vec(44);
    unsigned *flag, *device, first = 0, wrong = 0;
    int busy = 0;
    CK(cudaHostAlloc(&flag, sizeof(*flag), cudaHostAllocMapped));
    CK(cudaHostGetDevicePointer(&device, flag, 0));
    *flag = 0;
    for (unsigned k = 1; k <= 3; k++) {
        affine_on(v, 3, k, streams[0]);
        wait_flag<<<1, 1, 0, streams[0]>>>(device, again ? 1 : k, v.d);
        affine_on(v, 5, k, streams[0]);
        busy += is_busy(cudaStreamQuery(streams[0]));
        *(volatile unsigned *)flag = again ? 1 : k;
        CK(cudaStreamSynchronize(streams[0]));
        if (!again)
            continue;
        *(volatile unsigned *)flag = 0;
        CK(cudaMemcpy(&first, v.d, sizeof(first), cudaMemcpyDeviceToHost));
        wrong += first != v.h[0];
    }
    compare(name, v, busy == 3 && !wrong);
    CK(cudaFreeHost(flag));
}

static void CUDART_CB wait_for_go(void *data)
{
    host_work *work = (host_work *)data;
    auto start = std::chrono::steady_clock::now();
    while (!work->go && !work->late) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        work->late = std::chrono::steady_clock::now() - start > patience;
    }
    work->calls++;
}

// A host function holds a stream up until the program, which goes on launching, lets it go.
static void check_held_by_host_function()
{
    vec v = make_vec(45), u = make_vec(46);
    host_work work;
    affine_on(v, 3, 1, streams[0]);
    CK(cudaLaunchHostFunc(streams[0], wait_for_go, &work));
    affine_on(v, 5, 2, streams[0]);
    affine_on(u, 7, 3, streams[1]);
    bool busy = is_busy(cudaStreamQuery(streams[0]));
    work.go = true;
    CK(cudaStreamSynchronize(streams[0]));
    int late = work.late, calls = work.calls;
    bool ok = !differences(u);
    compare("held by a function", v, ok && busy && !late && calls == 1);
    drop(u);
}

// A stream that writes values, and one held up until memory has a value, with launches behind it.
static void check_stream_values()
{
    typedef CUresult (*value_fn)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    value_fn write_value = (value_fn)driver_function("cuStreamWriteValue32");
    value_fn wait_value = (value_fn)driver_function("cuStreamWaitValue32");
    if (!write_value || !wait_value) {
        verdict("held by a value", false, "the driver has no such functions");
        return;
    }
    vec v = make_vec(47), u = make_vec(48), z = make_pinned(49);
    for (unsigned k = 0; k < 4; k++) {
        affine_on(v, 3, k, streams[0]);
        int rc = write_value(streams[0], (CUdeviceptr)(v.d + k), 77 + k, CU_STREAM_WRITE_VALUE_DEFAULT);
        if (rc)
            verdict("written value", false, "error %d", rc);
        v.h[k] = 77 + k;
    }
    affine_on(v, 5, 1, streams[0]);
    std::mutex lock;
    std::condition_variable changed;
    bool released = false, late = false;
    z.host[0] = z.h[0] = 0;
    int rc = wait_value(streams[0], (CUdeviceptr)z.d, 1, CU_STREAM_WAIT_VALUE_GEQ);
    std::thread rescue([&] { // of a run in which the calls below never return
        std::unique_lock<std::mutex> hold(lock);
        late = !changed.wait_for(hold, patience, [&] { return released; });
        if (late)
            *(volatile unsigned *)z.host = 1;
    });
    affine_on(v, 7, 2, streams[0]);
    affine_on(u, 9, 3, streams[1]);
    bool busy = is_busy(cudaStreamQuery(streams[0]));
    *(volatile unsigned *)z.host = z.h[0] = 1;
    {
        std::lock_guard<std::mutex> hold(lock);
        released = true;
    }
    changed.notify_all();
    rescue.join();
    bool ok = !differences(u) && !differences(z);
    compare("held by a value", v, ok && !rc && busy && !late);
    drop(u), drop(z);
}

// ---- what ends all saving by windows: last ----

static void check_cooperative()
{
    vec v = make_vec(51);
    const int blocks = 8, threads = 32, size = blocks * threads;
    for (int k = 0; k < 6; k++) {
        void *args[] = {&v.d};
        affine_on(v, 3, k, streams[0]);
        CK(cudaLaunchCooperativeKernel((const void *)grid_mix, dim3(blocks), dim3(threads), args, 0, streams[0]));
        std::vector<unsigned> x(size);
        for (int i = 0; i < size; i++)
            x[i] = v.h[i] * 3 + 1;
        for (int i = 0; i < size; i++)
            v.h[i] = x[i] + x[(i + threads) % size];
    }
    compare("cooperative", v);
}

static void check_managed()
{
    vec m = {nullptr, nullptr, std::vector<unsigned>(n)}, v = make_vec(52);
    CK(cudaMallocManaged(&m.d, bytes));
    set_content(m.d, 53);
    set_content(m.h.data(), 53);
    for (int k = 0; k < 6; k++) {
        affine_on(m, 3, k, streams[0]);
        mix_on(v, m, streams[0]);
        CK(cudaStreamSynchronize(streams[0]));
        for (int i = k; i < n; i += 5) {
            m.d[i] = m.d[i] * 7 + 1;
            m.h[i] = m.h[i] * 7 + 1;
        }
    }
    compare("managed", m);
    compare("managed, read", v);
}

static void check_all(int launches)
{
    check_in_place();
    check_arguments();
    check_pageable();
    check_2d();
    check_synchronous_copies();
    check_pinned_event();
    check_loader();
    check_bounce();
    check_zero_copy();
    check_zero_copy_input();
    check_indirect();
    check_host_polls();
    check_events();
    check_legacy_stream();
    check_short_lived();
    check_polling();
    check_elapsed();
    check_allocations();
    check_stream_allocations();
    check_maps();
    check_maps_read();
    check_globals();
    check_second_kernel();
    check_second_module();
    check_attribute();
    check_graph();
    check_graph_update();
    check_host_function();
    check_invalid_launch();
    check_printf();
    check_threads();
    check_many(launches);
    check_wait_for_other("waits for a kernel", false);
    check_wait_for_other("waits for a copy", true);
    check_wait_for_host("waits for the host", false);
    check_wait_for_host("flag cleared again", true);
    check_held_by_host_function();
    check_stream_values();
    check_registered();
    check_cooperative();
    check_managed();
}

int main(int argc, char **argv)
{
    static const size_t written = 1 << 16;
    void *pinned;
    cudaFuncAttributes loaded; // their first launch must not wait for a kernel that waits for it
    setlinebuf(stdout);        // a crash leaves what came before
    CK(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking));
    CK(cudaStreamCreate(&streams[1]));
    streams[2] = cudaStreamPerThread;
    CK(cudaFuncGetAttributes(&loaded, wait_flag));
    CK(cudaFuncGetAttributes(&loaded, set_flag));
    CK(cudaMallocHost(&pinned, written));
    writer meanwhile(pinned, written);

    if (argc > 1 && !strcmp(argv[1], "maps"))
        check_maps();
    else
        check_all(argc > 1 ? atoi(argv[1]) : 1000);

    int lost = meanwhile.end();
    verdict("written meanwhile", !lost, "%d numbers lost", lost);
    CK(cudaFreeHost(pinned));
    CK(cudaDeviceSynchronize());
    puts(all_right ? "windows OK" : "windows WRONG");
    return all_right ? 0 : 1;
}
