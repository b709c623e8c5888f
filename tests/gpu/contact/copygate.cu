// A kernel waits for a word of device memory, and another stream changes it: by a copy from the host, a fill, a copy
// within the device, a kernel, and a batch of all in a graph. Work is queued after the gate, and the word is read in
// turns.
#include "contact.cuh"

enum { WAYS = 5, ROUNDS = 2, N = 1 << 13 };

__global__ void gate(volatile unsigned *word, unsigned value, unsigned *late)
{
    if (!wait_for(word, value))
        atomicAdd(late, 1u);
}
__global__ void store(unsigned *word, unsigned value)
{
    *word = value;
}

int main()
{
    unsigned *word = device_zeros<unsigned>(1), *source = device_zeros<unsigned>(1), *late = device_zeros<unsigned>(1);
    unsigned *v = device_zeros<unsigned>(N), *host, *back, want = 0;
    cudaStream_t a, b;
    cudaGraph_t g;
    cudaGraphExec_t x;
    bool ok = true;
    CK(cudaHostAlloc(&host, 4, cudaHostAllocDefault));
    CK(cudaHostAlloc(&back, 4, cudaHostAllocDefault));
    CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CK(cudaStreamBeginCapture(b, cudaStreamCaptureModeRelaxed));
    CK(cudaMemcpyAsync(source, host, 4, cudaMemcpyHostToDevice, b));
    CK(cudaMemcpyAsync(word, source, 4, cudaMemcpyDeviceToDevice, b));
    CK(cudaStreamEndCapture(b, &g));
    CK(cudaGraphInstantiate(&x, g, 0));
    // Everything is loaded before a gate is closed.
    *host = 0;
    gate<<<1, 1, 0, a>>>(word, 0, late);
    store<<<1, 1, 0, a>>>(word, 0);
    mix<<<16, 256, 0, a>>>(v, N, 0);
    CK(cudaMemcpyAsync(source, host, 4, cudaMemcpyHostToDevice, a));
    CK(cudaMemcpyAsync(word, source, 4, cudaMemcpyDeviceToDevice, a));
    CK(cudaMemcpyAsync(back, word, 4, cudaMemcpyDeviceToHost, a));
    CK(cudaMemsetAsync(word, 0, 4, a));
    CK(cudaGraphLaunch(x, a));
    CK(cudaStreamSynchronize(a));
    for (unsigned r = 0; r < ROUNDS * WAYS; r++) {
        // Of four bytes that are alike, as a fill writes them.
        unsigned value = (r + 1) * 0x01010101u;
        gate<<<1, 1, 0, a>>>(word, value, late);
        mix<<<16, 256, 0, a>>>(v, N, r);
        want = mixed(want, r);
        *host = value;
        switch (r % WAYS) {
        case 0:
            CK(cudaMemcpyAsync(word, host, 4, cudaMemcpyHostToDevice, b));
            break;
        case 1:
            CK(cudaMemsetAsync(word, r + 1, 4, b));
            break;
        case 2:
            CK(cudaMemcpyAsync(source, host, 4, cudaMemcpyHostToDevice, b));
            CK(cudaMemcpyAsync(word, source, 4, cudaMemcpyDeviceToDevice, b));
            break;
        case 3:
            store<<<1, 1, 0, b>>>(word, value);
            break;
        default:
            CK(cudaGraphLaunch(x, b));
        }
        CK(cudaMemcpyAsync(back, word, 4, cudaMemcpyDeviceToHost, b));
        CK(cudaStreamSynchronize(b));
        ok = ok && *back == value;
        CK(cudaStreamSynchronize(a));
    }
    unsigned got = from_device(v + N - 1), l = from_device(late);
    printf("value %u, late %u\n", got, l);
    return verdict("copygate", ok && got == want && !l);
}
