/* Texts of assertions and prints, and a table of the mathematical functions, which stand beside variables.
 * texts.sm90-cuda13.cubin: nvcc -arch=sm_90 -cubin */
#include <cassert>
#include <cstdio>

extern "C" __global__ void texts(int *p, float *f, int n)
{
    assert(p[0] < n);
    if (n == 7)
        printf("%d\n", n);
    f[0] = sinf(f[1] * 1e6f);
}
