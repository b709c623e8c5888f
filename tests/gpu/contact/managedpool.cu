// Two pools of managed memory that the host and kernels change in turns, one of them with prefetches in between. Freed
// memory comes back to the next allocation while the other pool's is in use.
#include "contact.cuh"

enum { N = 1 << 13, ROUNDS = 8 };

int main()
{
    cudaMemPoolProps p = {};
    cudaMemPool_t pool[2];
    cudaStream_t s;
    unsigned *m[2], *v = device_zeros<unsigned>(N), want[2] = {1, 2}, plain = 0;
    bool ok = true;
    p.allocType = cudaMemAllocationTypeManaged;
    p.location.type = cudaMemLocationTypeNone;
    for (int i = 0; i < 2; i++)
        NEEDS(cudaMemPoolCreate(&pool[i], &p), "pools of managed memory");
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++) {
        CK(cudaMallocFromPoolAsync((void **)&m[i], N * 4, pool[i], s));
        CK(cudaStreamSynchronize(s));
        for (int k = 0; k < N; k++)
            m[i][k] = want[i];
    }
    for (unsigned r = 0; r < ROUNDS; r++) {
        cudaMemLocation to = {r & 1 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, 0};
        CK(cudaMemPrefetchAsync(m[0], N * 4, to, 0, s));
        for (int i = 0; i < 2; i++) {
            mix<<<16, 256, 0, s>>>(m[i], N, r + i);
            want[i] = mixed(want[i], r + i);
        }
        mix<<<16, 256, 0, s>>>(v, N, r);
        plain = mixed(plain, r);
        if (r % 2 == 0) {
            CK(cudaStreamSynchronize(s));
            for (int i = 0; i < 2; i++) {
                ok = ok && m[i][0] == want[i] && m[i][N - 1] == want[i];
                for (int k = 0; k < N; k++)
                    m[i][k] ^= 0x1234u;
                want[i] ^= 0x1234u;
            }
        }
        if (r == ROUNDS / 2) { // new memory of the same pool
            CK(cudaFreeAsync(m[1], s));
            CK(cudaMallocFromPoolAsync((void **)&m[1], N * 4, pool[1], s));
            CK(cudaMemsetAsync(m[1], 0, N * 4, s));
            want[1] = 0;
        }
    }
    CK(cudaStreamSynchronize(s));
    unsigned got = from_device(v + 1);
    printf("values %u %u %u\n", m[0][N / 2], m[1][N / 2], got);
    ok = ok && m[0][N / 2] == want[0] && m[1][N / 2] == want[1] && got == plain;
    for (int i = 0; i < 2; i++) {
        CK(cudaFreeAsync(m[i], s));
        CK(cudaStreamSynchronize(s));
        CK(cudaMemPoolDestroy(pool[i]));
    }
    return verdict("managedpool", ok);
}
