// One kernel in many shapes: SHAPES ROUNDS. Each round launches every shape once.
#include "bounded.cuh"

enum { N = 1 << 16 };

int main(int argc, char **argv)
{
    unsigned shapes = argc > 1 ? atoi(argv[1]) : 2000, rounds = argc > 2 ? atoi(argv[2]) : 1;
    unsigned *v = device_zeros<unsigned>(N);
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned s = 0; s < shapes; s++) {
            mix<<<1 + s / 8, 32 << (s % 4), s % 8 < 4 ? 0 : 1024>>>(v, N, r * shapes + s);
            CK(cudaGetLastError());
        }
    CK(cudaDeviceSynchronize());
    return ended("shapes", shapes * rounds, digest_of_device(v, N));
}
