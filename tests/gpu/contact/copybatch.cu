// Batches of copies, of all directions in one call, between launches: from memory that the program changes right after
// the call (its sources are read in the order of the call), and to host memory that it reads after the wait.
#include "contact.cuh"

enum { PARTS = 6, N = 1 << 10, ROUNDS = 10 };

int main()
{
    unsigned *v = device_zeros<unsigned>(PARTS * N), *w = device_zeros<unsigned>(PARTS * N), *back, pageable[N];
    unsigned want[PARTS] = {};
    cudaStream_t s;
    bool ok = true;
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaHostAlloc(&back, PARTS * N * 4, cudaHostAllocDefault));
    for (unsigned r = 0; r < ROUNDS; r++) {
        void *to[PARTS + 1];
        const void *from[PARTS + 1];
        size_t sizes[PARTS + 1], first[2] = {0, 1};
        cudaMemcpyAttributes a[2] = {};
        for (int i = 0; i < N; i++)
            pageable[i] = 1000 * r + i;
        a[0].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
        a[1].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
        to[0] = v;
        from[0] = pageable;
        for (int i = 0; i < PARTS; i++) {
            sizes[i] = N * 4;
            if (i > 0) {
                to[i] = v + i * N;
                from[i] = w + (i - 1) * N;
            }
        }
        mix<<<24, 256, 0, s>>>(v, PARTS * N, r);
        CK(cudaMemcpyAsync(w, v, PARTS * N * 4, cudaMemcpyDeviceToDevice, s));
        NEEDS(cudaMemcpyBatchAsync(to, from, sizes, PARTS, a, first, 2, s), "batches of copies");
        memset(pageable, 0xee, sizeof(pageable));
        mix<<<24, 256, 0, s>>>(v, PARTS * N, r + 3);
        for (int i = 0; i < PARTS; i++) {
            to[i] = back + i * N;
            from[i] = v + i * N;
        }
        CK(cudaMemcpyBatchAsync(to, from, sizes, PARTS, a + 1, first, 1, s));
        CK(cudaStreamSynchronize(s));
        for (int i = PARTS - 1; i > 0; i--)
            want[i] = mixed(mixed(want[i - 1], r), r + 3);
        want[0] = mixed(1000 * r + N - 1, r + 3);
        for (int i = 0; i < PARTS; i++)
            ok = ok && back[i * N + N - 1] == want[i];
    }
    for (int i = 0; i < PARTS; i++)
        printf("%u ", back[i * N + N - 1]);
    printf("\n");
    return verdict("copybatch", ok);
}
