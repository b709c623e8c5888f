// A kernel and the launching thread itself in turns over mapped memory: the host's words are write-combined, those of
// the kernel are not. The host makes no call while the kernel runs; the kernel counts in device memory as well.
#include "contact.cuh"

enum { TURNS = 200, LAUNCHES = 3 };

__global__ void player(volatile unsigned *from_host, volatile unsigned *to_host, unsigned base, unsigned *sum,
                       unsigned *late)
{
    for (unsigned t = 1; t <= TURNS; t++) {
        if (!wait_for(from_host, base + t)) {
            *late += 1;
            return;
        }
        *sum = *sum * 5u + t;
        __threadfence_system();
        *to_host = base + t;
    }
}

int main()
{
    volatile unsigned *out, *in;
    unsigned *out_d, *in_d, *sum = device_zeros<unsigned>(1), *late = device_zeros<unsigned>(1), want = 0, lost = 0;
    CK(cudaHostAlloc((void **)&out, 64, cudaHostAllocMapped | cudaHostAllocWriteCombined));
    CK(cudaHostAlloc((void **)&in, 64, cudaHostAllocMapped));
    CK(cudaHostGetDevicePointer((void **)&out_d, (void *)out, 0));
    CK(cudaHostGetDevicePointer((void **)&in_d, (void *)in, 0));
    *out = *in = 0;
    for (unsigned l = 0; l < LAUNCHES; l++) {
        player<<<1, 1>>>(out_d, in_d, l * TURNS, sum, late);
        for (unsigned t = 1; t <= TURNS && !lost; t++) {
            *out = l * TURNS + t;
            __sync_synchronize();
            lost += !host_wait_for(in, l * TURNS + t);
        }
        for (unsigned t = 1; t <= TURNS; t++)
            want = want * 5u + t;
    }
    CK(cudaDeviceSynchronize());
    unsigned got = from_device(sum), la = from_device(late);
    printf("sum %u, late %u, lost %u\n", got, la, lost);
    return verdict("pingpong", got == want && !la && !lost);
}
