// A pool of the host's NUMA node 0, and one of the node that the thread is on. Kernels and the host write the memory in
// turns; the host looks without a call, after the wait for an event.
#include "contact.cuh"

enum { N = 1 << 12, ROUNDS = 8 };

static bool use(cudaMemLocationType type, const char *what, unsigned *v)
{
    cudaMemPoolProps p = {};
    cudaMemPool_t pool;
    cudaMemAccessDesc d = {};
    cudaStream_t s;
    cudaEvent_t e;
    unsigned *h, want = 5;
    bool ok = true;
    p.allocType = cudaMemAllocationTypePinned;
    p.location.type = type;
    if (cudaMemPoolCreate(&pool, &p) != cudaSuccess) {
        cudaGetLastError();
        printf("%s: not here\n", what);
        return true;
    }
    d.location.type = cudaMemLocationTypeDevice;
    d.flags = cudaMemAccessFlagsProtReadWrite;
    CK(cudaMemPoolSetAccess(pool, &d, 1));
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    CK(cudaMallocFromPoolAsync((void **)&h, N * 4, pool, s));
    CK(cudaStreamSynchronize(s));
    for (int i = 0; i < N; i++)
        h[i] = 5;
    for (unsigned r = 0; r < ROUNDS; r++) {
        mix<<<8, 256, 0, s>>>(h, N, r);
        mix<<<8, 256, 0, s>>>(v, N, r);
        mix<<<8, 256, 0, s>>>(h, N, r + 20);
        CK(cudaEventRecord(e, s));
        CK(cudaEventSynchronize(e));
        want = mixed(mixed(want, r), r + 20);
        ok = ok && h[0] == want && h[N - 1] == want;
        for (int i = 0; i < N; i++)
            h[i] += r;
        want += r;
    }
    printf("%s: value %u\n", what, h[N / 2]);
    CK(cudaFreeAsync(h, s));
    CK(cudaStreamSynchronize(s));
    CK(cudaMemPoolDestroy(pool));
    return ok;
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N);
    bool ok = use(cudaMemLocationTypeHostNuma, "node 0", v);
    ok = use(cudaMemLocationTypeHostNumaCurrent, "this node", v) && ok;
    ok = use(cudaMemLocationTypeHost, "host", v) && ok;
    printf("device %u\n", from_device(v + 1));
    return verdict("numapool", ok);
}
