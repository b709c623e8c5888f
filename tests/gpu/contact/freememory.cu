// Free memory, as the driver says it, around each kind of allocation and between launches: printed as what each step
// took. Whole pages only: what a page of the driver holds in smaller pieces is not asked.
#include "contact.cuh"

enum { N = 1 << 20 };

static size_t before;
static void say(const char *what)
{
    size_t now, total;
    CK(cudaMemGetInfo(&now, &total));
    printf("%s: %lld\n", what, (long long)before - (long long)now);
    before = now;
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N), *p, *q, want = 0;
    size_t total;
    cudaStream_t s;
    cudaArray_t a;
    cudaChannelFormatDesc d = cudaCreateChannelDesc<unsigned>();
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    mix<<<64, 256, 0, s>>>(v, N, 0);
    CK(cudaMallocAsync(&q, 4, s)); // the pool and what it needs
    CK(cudaFreeAsync(q, s));
    CK(cudaDeviceSynchronize());
    CK(cudaMemGetInfo(&before, &total));
    for (unsigned r = 0; r < 3; r++) {
        for (unsigned k = 0; k < 4; k++) {
            mix<<<64, 256, 0, s>>>(v, N, r + k);
            want = mixed(want, r + k);
        }
        say("launches");
        CK(cudaMalloc(&p, 64 << 20));
        say("cudaMalloc of 64 MiB");
        mix<<<64, 256, 0, s>>>(p, N, r);
        say("a launch");
        CK(cudaMallocAsync(&q, 48 << 20, s));
        CK(cudaStreamSynchronize(s));
        say("cudaMallocAsync of 48 MiB");
        mix<<<64, 256, 0, s>>>(q, N, r);
        CK(cudaMallocArray(&a, &d, 2048, 2048));
        say("an array of 16 MiB");
        CK(cudaFree(p));
        say("cudaFree");
        CK(cudaFreeAsync(q, s));
        CK(cudaStreamSynchronize(s));
        say("cudaFreeAsync");
        CK(cudaFreeArray(a));
        say("cudaFreeArray");
    }
    CK(cudaDeviceSynchronize());
    unsigned got = from_device(v);
    printf("value %u\n", got);
    return verdict("freememory", got == want);
}
