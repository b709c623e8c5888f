// Two green contexts that split the device: a kernel in one waits for what a kernel in the other, launched later,
// writes. Kernels of the primary context run in between; one green context ends early, and another takes its place.
#include "contact.cuh"

enum { N = 1 << 12, TURNS = 20 };

__global__ void waits(volatile unsigned *word, unsigned value, unsigned *late)
{
    if (!wait_for(word, value))
        atomicAdd(late, 1u);
}
__global__ void writes(volatile unsigned *word, unsigned value)
{
    *word = value;
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N), *word = device_zeros<unsigned>(1), *late = device_zeros<unsigned>(1),
             want = 0;
    CUdevResource all, part[1], rest;
    CUdevResourceDesc d[2];
    CUgreenCtx green[2];
    CUstream s[2];
    CUdevice device;
    unsigned groups = 1;
    CU(cuDeviceGet(&device, 0));
    NEEDS(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM), "green contexts");
    NEEDS(cuDevSmResourceSplitByCount(part, &groups, &all, &rest, 0, all.sm.smCount / 2), "split of the SMs");
    CU(cuDevResourceGenerateDesc(&d[0], &part[0], 1));
    CU(cuDevResourceGenerateDesc(&d[1], &rest, 1));
    waits<<<1, 1>>>(word, 0, late);
    writes<<<1, 1>>>(word, 0);
    mix<<<8, 256>>>(v, N, 0);
    CK(cudaDeviceSynchronize());
    for (int i = 0; i < 2; i++)
        NEEDS(cuGreenCtxCreate(&green[i], d[i], device, CU_GREEN_CTX_DEFAULT_STREAM), "green context");
    for (int i = 0; i < 2; i++)
        CU(cuGreenCtxStreamCreate(&s[i], green[i], CU_STREAM_NON_BLOCKING, 0));
    for (unsigned t = 1; t <= TURNS; t++) {
        waits<<<1, 1, 0, s[0]>>>(word, t, late);
        mix<<<8, 256, 0, s[0]>>>(v, N, t);
        writes<<<1, 1, 0, s[1]>>>(word, t);
        CU(cuStreamSynchronize(s[0]));
        mix<<<8, 256>>>(v, N, t + 30);
        CK(cudaDeviceSynchronize());
        want = mixed(mixed(want, t), t + 30);
        if (t == TURNS / 2) {
            CU(cuStreamDestroy(s[1]));
            CU(cuGreenCtxDestroy(green[1]));
            CU(cuGreenCtxCreate(&green[1], d[1], device, CU_GREEN_CTX_DEFAULT_STREAM));
            CU(cuGreenCtxStreamCreate(&s[1], green[1], CU_STREAM_NON_BLOCKING, 0));
        }
    }
    unsigned got = from_device(v + N - 1), l = from_device(late);
    printf("value %u, late %u\n", got, l);
    return verdict("greenparts", got == want && !l);
}
