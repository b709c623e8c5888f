// A kernel and stream memory operations answer each other: the kernel reports a step, another stream waits for that
// value and writes the next one. Nothing of the host takes part once all is queued, and work waits after the kernel.
#include "contact.cuh"

enum { STEPS = 20, N = 1 << 16 };

__global__ void stepper(volatile unsigned *said, volatile unsigned *heard, unsigned first, unsigned *late)
{
    for (unsigned i = 1; i <= STEPS; i++) {
        *said = first + i;
        __threadfence_system();
        if (!wait_for(heard, first + i))
            *late += 1;
    }
}

int main()
{
    unsigned *words = device_zeros<unsigned>(64), *late = device_zeros<unsigned>(1), *v = device_zeros<unsigned>(N);
    CUdeviceptr said = (CUdeviceptr)words, heard = (CUdeviceptr)(words + 32);
    cudaStream_t a, b;
    CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    mix<<<64, 256, 0, a>>>(v, N, 1); // loads it
    CK(cudaStreamSynchronize(a));
    NEEDS(cuStreamWriteValue32(b, heard, 0, 0), "stream memory operations");
    CK(cudaStreamSynchronize(b));
    unsigned want = mixed(0, 1);
    for (unsigned round = 0; round < 3; round++) {
        stepper<<<1, 1, 0, a>>>(words, words + 32, round * STEPS, late);
        for (unsigned k = 2; k < 6; k++) {
            mix<<<64, 256, 0, a>>>(v, N, k);
            want = mixed(want, k);
        }
        for (unsigned i = 1; i <= STEPS; i++) {
            CU(cuStreamWaitValue32(b, said, round * STEPS + i, CU_STREAM_WAIT_VALUE_EQ));
            CU(cuStreamWriteValue32(b, heard, round * STEPS + i, 0));
        }
        CK(cudaStreamSynchronize(a));
    }
    CK(cudaStreamSynchronize(b));
    unsigned got = from_device(v + N - 1), l = from_device(late);
    printf("value %u, late %u\n", got, l);
    return verdict("streamwrite", got == want && l == 0);
}
