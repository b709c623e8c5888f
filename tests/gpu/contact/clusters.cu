// Cooperative launches and clusters in one stream: blocks of a cluster read each other's shared memory, clusters of 16
// with the attribute that allows them, and a grid that waits for itself between two halves of its work.
#include "contact.cuh"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

enum { N = 1 << 13, TIMES = 8 };

__global__ void neighbour(unsigned *v, unsigned k)
{
    __shared__ unsigned mine[256];
    cg::cluster_group c = cg::this_cluster();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    mine[threadIdx.x] = v[i];
    c.sync();
    unsigned *theirs = c.map_shared_rank(mine, (c.block_rank() + 1) % c.num_blocks());
    unsigned got = theirs[threadIdx.x];
    c.sync();
    v[i] = got * 3u + k + c.block_rank();
}
__global__ void halves(unsigned *v, unsigned *w, int n)
{
    cg::grid_group g = cg::this_grid();
    for (int i = g.thread_rank(); i < n; i += g.size())
        w[i] = v[n - 1 - i];
    g.sync();
    for (int i = g.thread_rank(); i < n; i += g.size())
        v[i] += w[i] * 2u;
}

int main()
{
    static unsigned host[N], copy[N];
    unsigned *v = device_zeros<unsigned>(N), *w = device_zeros<unsigned>(N);
    cudaStream_t s;
    if (!attribute(cudaDevAttrClusterLaunch) || !attribute(cudaDevAttrCooperativeLaunch))
        NEEDS(1, "clusters");
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaFuncSetAttribute((const void *)neighbour, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    for (unsigned t = 0; t < TIMES; t++) {
        unsigned size = 2u << (t % 4);
        cudaLaunchAttribute a[2] = {};
        cudaLaunchConfig_t c = {};
        a[0].id = cudaLaunchAttributeClusterDimension;
        a[0].val.clusterDim.x = size;
        a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1;
        a[1].id = cudaLaunchAttributeClusterSchedulingPolicyPreference;
        a[1].val.clusterSchedulingPolicyPreference = cudaClusterSchedulingPolicySpread;
        c.gridDim = dim3(N / 256);
        c.blockDim = dim3(256);
        c.stream = s;
        c.attrs = a;
        c.numAttrs = 2;
        CK(cudaLaunchKernelEx(&c, neighbour, v, t));
        a[0].id = cudaLaunchAttributeCooperative;
        a[0].val.cooperative = 1;
        c.gridDim = dim3(16);
        c.numAttrs = 1;
        CK(cudaLaunchKernelEx(&c, halves, v, w, (int)N));
        for (int i = 0; i < N; i++) {
            unsigned block = i / 256, rank = block % size, other = block - rank + (rank + 1) % size;
            copy[i] = host[other * 256 + i % 256] * 3u + t + rank;
        }
        for (int i = 0; i < N; i++)
            host[i] = copy[i] + copy[N - 1 - i] * 2u;
    }
    CK(cudaMemcpyAsync(copy, v, sizeof(copy), cudaMemcpyDeviceToHost, s));
    CK(cudaStreamSynchronize(s));
    printf("values %u %u\n", copy[0], copy[N - 1]);
    return verdict("clusters", !memcmp(copy, host, sizeof(host)));
}
