// 100,000 launches of ten kernels and shapes, queued as fast as the driver takes them. The argument is their number.
#include "bounded.cuh"

enum { KINDS = 10, N = 1 << 16 };

template <int KIND> __global__ void step(unsigned *v, int n, unsigned k)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned x = v[i];
        for (int j = 0; j <= KIND; j++)
            x = x * (2 * KIND + 3) + (k ^ (x >> (KIND + 3)));
        v[i] = x;
    }
}

using Kernel = void (*)(unsigned *, int, unsigned);
static const Kernel kernels[KINDS] = {step<0>, step<1>, step<2>, step<3>, step<4>,
                                      step<5>, step<6>, step<7>, step<8>, step<9>};

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? atoi(argv[1]) : 100000, *v = device_zeros<unsigned>(N);
    for (unsigned k = 0; k < n; k++) {
        int kind = k % KINDS;
        kernels[kind]<<<16 + 8 * kind, 64 + 32 * (kind % 4)>>>(v, N, k);
        CK(cudaGetLastError());
    }
    CK(cudaDeviceSynchronize());
    return ended("tenkinds", n, digest_of_device(v, N));
}
