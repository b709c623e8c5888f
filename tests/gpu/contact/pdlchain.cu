// Programmatic dependent launches in two streams: within a stream each kernel starts early and waits for the one before
// it on the device; between the streams one event that is used again at once carries the dependency.
#include "contact.cuh"

enum { N = 1 << 14, TIMES = 30 };

__global__ void early(unsigned *x, unsigned k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
    x[i] = x[i] * 3u + k;
}

static void launch(cudaStream_t s, unsigned *x, unsigned k, cudaEvent_t e)
{
    cudaLaunchAttribute a[2] = {};
    cudaLaunchConfig_t c = {};
    a[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a[0].val.programmaticStreamSerializationAllowed = 1;
    a[1].id = cudaLaunchAttributeProgrammaticEvent;
    a[1].val.programmaticEvent.event = e;
    c.gridDim = dim3(N / 256);
    c.blockDim = dim3(256);
    c.stream = s;
    c.attrs = a;
    c.numAttrs = e ? 2 : 1;
    CK(cudaLaunchKernelEx(&c, early, x, k));
}

int main()
{
    unsigned *x = device_zeros<unsigned>(N), *y = device_zeros<unsigned>(N), want_x = 0, want_y = 0;
    cudaStream_t a, b;
    cudaEvent_t e;
    CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    for (unsigned t = 0; t < TIMES; t++) {
        launch(a, x, t, e);
        CK(cudaStreamWaitEvent(b, e, 0));
        launch(a, x, t + 100, NULL);
        launch(b, y, t, NULL);
        launch(b, y, t + 200, NULL);
        want_x = mixed(mixed(want_x, t), t + 100);
        want_y = mixed(mixed(want_y, t), t + 200);
    }
    CK(cudaEventDestroy(e));
    CK(cudaStreamSynchronize(b));
    CK(cudaStreamSynchronize(a));
    unsigned gx = from_device(x + 1), gy = from_device(y + N - 1);
    printf("values %u %u\n", gx, gy);
    return verdict("pdlchain", gx == want_x && gy == want_y);
}
