// A captured graph that allocates, uses and frees memory of its own, launched often; and one that leaves its memory to
// the program, which frees it in the stream. What the device says of the memory of graphs is printed after each part.
#include "contact.cuh"

enum { N = 1 << 16, TIMES = 6 };

static void say(const char *when)
{
    unsigned long long v[3];
    CK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &v[0]));
    CK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &v[1]));
    CK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &v[2]));
    printf("%s: used %llu, at most %llu, reserved %llu\n", when, v[0], v[1], v[2]);
}

int main()
{
    unsigned *out = device_zeros<unsigned>(N), *a, *b, want = 0;
    cudaStream_t s;
    cudaGraph_t inner, leaves;
    cudaGraphExec_t inner_exec, leaves_exec;
    bool ok = true;
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    CK(cudaMallocAsync(&a, N * 4, s));
    CK(cudaMallocAsync(&b, N * 8, s));
    CK(cudaMemcpyAsync(a, out, N * 4, cudaMemcpyDeviceToDevice, s));
    mix<<<64, 256, 0, s>>>(a, N, 3);
    CK(cudaMemsetAsync(b, 0, N * 8, s));
    mix<<<64, 256, 0, s>>>(b, 2 * N, 4);
    CK(cudaFreeAsync(b, s));
    mix<<<64, 256, 0, s>>>(a, N, 5);
    CK(cudaMemcpyAsync(out, a, N * 4, cudaMemcpyDeviceToDevice, s));
    CK(cudaFreeAsync(a, s));
    CK(cudaStreamEndCapture(s, &inner));
    CK(cudaGraphInstantiate(&inner_exec, inner, 0));
    say("instantiated");
    for (int t = 0; t < TIMES; t++) {
        CK(cudaGraphLaunch(inner_exec, s));
        mix<<<64, 256, 0, s>>>(out, N, t);
        want = mixed(mixed(mixed(want, 3), 5), t);
    }
    CK(cudaStreamSynchronize(s));
    say("launched");

    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    CK(cudaMallocAsync(&a, N * 4, s));
    CK(cudaMemsetAsync(a, 0, N * 4, s));
    mix<<<64, 256, 0, s>>>(a, N, 7);
    CK(cudaStreamEndCapture(s, &leaves));
    CK(cudaGraphInstantiate(&leaves_exec, leaves, 0));
    for (int t = 0; t < TIMES; t++) {
        unsigned got = 0;
        CK(cudaGraphLaunch(leaves_exec, s));
        mix<<<64, 256, 0, s>>>(a, N, t);
        CK(cudaMemcpyAsync(&got, a + N - 1, 4, cudaMemcpyDeviceToHost, s));
        CK(cudaStreamSynchronize(s));
        ok = ok && got == mixed(7, t);
        CK(cudaFreeAsync(a, s));
    }
    CK(cudaStreamSynchronize(s));
    say("left and freed");
    CK(cudaGraphExecDestroy(inner_exec));
    CK(cudaGraphExecDestroy(leaves_exec));
    CK(cudaGraphDestroy(inner));
    CK(cudaGraphDestroy(leaves));
    CK(cudaDeviceGraphMemTrim(0));
    say("trimmed");
    unsigned got = from_device(out + 1);
    printf("value %u\n", got);
    return verdict("graphmemory", ok && got == want);
}
