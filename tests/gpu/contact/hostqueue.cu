// A persistent kernel takes work from a queue of the host. The host makes each item by a kernel and a copy in another
// stream, so the program waits for work while the persistent kernel runs. The last item ends it.
#include "contact.cuh"

enum { BLOCKS = 4, ITEMS = 24, N = 4096 };
struct queue {
    volatile unsigned pushed, done[BLOCKS];
    unsigned value[ITEMS + 1]; // 0 ends
};

__global__ void persistent(queue *q, unsigned long long *sum, unsigned *late)
{
    for (unsigned i = 0;; i++) {
        unsigned long long start = nanoseconds();
        while (q->pushed <= i)
            if (nanoseconds() - start > 5000000000ull) {
                atomicAdd(late, 1u);
                return;
            }
        __threadfence_system();
        unsigned v = *(volatile unsigned *)&q->value[i];
        if (!v)
            return;
        atomicAdd(sum, (unsigned long long)v * (blockIdx.x + 1));
        __threadfence_system();
        q->done[blockIdx.x] = i + 1;
    }
}

int main()
{
    queue *q, *q_d;
    unsigned *v = device_zeros<unsigned>(N), *late = device_zeros<unsigned>(1), *item, next = 0;
    unsigned long long *sum = device_zeros<unsigned long long>(1), want = 0;
    cudaStream_t forever, s;
    CK(cudaHostAlloc(&q, sizeof(*q), cudaHostAllocMapped));
    CK(cudaHostAlloc(&item, 4, cudaHostAllocDefault));
    memset((void *)q, 0, sizeof(*q));
    CK(cudaHostGetDevicePointer((void **)&q_d, q, 0));
    CK(cudaStreamCreateWithFlags(&forever, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    mix<<<8, 128, 0, s>>>(v, N, 0);
    CK(cudaStreamSynchronize(s));
    persistent<<<BLOCKS, 1, 0, forever>>>(q_d, sum, late);
    bool ok = true;
    for (unsigned i = 0; i < ITEMS && ok; i++) {
        mix<<<8, 128, 0, s>>>(v, N, i + 1);
        CK(cudaMemcpyAsync(item, v + 7, 4, cudaMemcpyDeviceToHost, s));
        CK(cudaStreamSynchronize(s));
        next = mixed(next, i + 1);
        ok = *item == next;
        q->value[i] = *item % 1000 + 1;
        want += (unsigned long long)(next % 1000 + 1) * (BLOCKS * (BLOCKS + 1) / 2);
        __sync_synchronize();
        q->pushed = i + 1;
        if (i % 8 == 7)
            for (int b = 0; b < BLOCKS; b++)
                ok = ok && host_wait_for(&q->done[b], i + 1);
    }
    __sync_synchronize();
    q->pushed = ITEMS + 1;
    CK(cudaStreamSynchronize(forever));
    unsigned long long got = from_device(sum);
    unsigned l = from_device(late);
    printf("sum %llu, late %u, value %u\n", got, l, next);
    return verdict("hostqueue", ok && got == want && !l);
}
