// Two kernels of two streams that need each other: the first one waits for what the second one, launched later, writes
// to device memory, and the other way round. A third stream works in the meantime, and is waited for first.
#include "contact.cuh"

enum { TURNS = 50, ROUNDS = 4, N = 1 << 14 };

__global__ void side(volatile unsigned *mine, volatile unsigned *other, unsigned base, unsigned *late)
{
    for (unsigned t = 1; t <= TURNS; t++) {
        *mine = base + t;
        __threadfence();
        unsigned long long start = nanoseconds();
        while (*other < base + t)
            if (nanoseconds() - start > 5000000000ull) {
                atomicAdd(late, 1u);
                return;
            }
    }
}

int main()
{
    unsigned *w = device_zeros<unsigned>(64), *late = device_zeros<unsigned>(1), *v = device_zeros<unsigned>(N),
             want = 0;
    cudaStream_t s[3];
    for (int i = 0; i < 3; i++)
        CK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
    mix<<<16, 256, 0, s[2]>>>(v, N, 0);
    CK(cudaDeviceSynchronize());
    for (unsigned r = 0; r < ROUNDS; r++) {
        side<<<1, 1, 0, s[0]>>>(w, w + 32, r * TURNS, late);
        mix<<<16, 256, 0, s[2]>>>(v, N, r);
        want = mixed(want, r);
        CK(cudaStreamSynchronize(s[2]));
        side<<<1, 1, 0, s[1]>>>(w + 32, w, r * TURNS, late);
        CK(cudaStreamSynchronize(s[0]));
        CK(cudaStreamSynchronize(s[1]));
    }
    unsigned a = from_device(w), b = from_device(w + 32), got = from_device(v), l = from_device(late);
    printf("turns %u %u, value %u, late %u\n", a, b, got, l);
    return verdict("twokernels", a == ROUNDS * TURNS && b == a && got == want && !l);
}
