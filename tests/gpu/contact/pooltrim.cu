// What a pool of the program's own says of itself: used and reserved memory, now and at most, around allocations,
// kernels, trims and resets, with each of the flags of reuse off in turn. The default pool is asked as well.
#include "contact.cuh"

enum { N = 1 << 18 };

static void say(const char *when, cudaMemPool_t pool)
{
    static const cudaMemPoolAttr asked[] = {cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh,
                                            cudaMemPoolAttrReservedMemCurrent, cudaMemPoolAttrReservedMemHigh};
    unsigned long long v[4];
    for (int i = 0; i < 4; i++)
        CK(cudaMemPoolGetAttribute(pool, asked[i], &v[i]));
    printf("%s: used %llu, at most %llu; reserved %llu, at most %llu\n", when, v[0], v[1], v[2], v[3]);
}

static void reset(cudaMemPool_t pool)
{
    unsigned long long zero = 0;
    CK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    CK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &zero));
}

int main()
{
    static const cudaMemPoolAttr flags[] = {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
                                            cudaMemPoolReuseAllowInternalDependencies};
    cudaMemPool_t pool, standard;
    cudaMemPoolProps p = {};
    cudaStream_t s;
    unsigned long long keep = 96ull << 20;
    unsigned *a, *b, *c, want = 0;
    bool ok = true;
    p.allocType = cudaMemAllocationTypePinned;
    p.location.type = cudaMemLocationTypeDevice;
    CK(cudaMemPoolCreate(&pool, &p));
    CK(cudaDeviceGetDefaultMemPool(&standard, 0));
    CK(cudaStreamCreate(&s));
    CK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    say("start", pool);
    for (int f = 0; f < 3; f++) {
        int off = 0, was = -1;
        CK(cudaMemPoolGetAttribute(pool, flags[f], &was));
        CK(cudaMemPoolSetAttribute(pool, flags[f], &off));
        CK(cudaMallocFromPoolAsync((void **)&a, N * 4, pool, s));
        CK(cudaMallocFromPoolAsync((void **)&b, N * 16, pool, s));
        CK(cudaMemsetAsync(a, 0, N * 4, s));
        want = 0;
        for (unsigned k = 0; k < 5; k++) {
            mix<<<64, 256, 0, s>>>(a, N, k + f);
            mix<<<64, 256, 0, s>>>(b, N, k);
            want = mixed(want, k + f);
        }
        say("  in use", pool);
        CK(cudaFreeAsync(b, s));
        CK(cudaMallocFromPoolAsync((void **)&c, N * 4, pool, s));
        CK(cudaMemcpyAsync(c, a, N * 4, cudaMemcpyDeviceToDevice, s));
        CK(cudaFreeAsync(a, s));
        CK(cudaStreamSynchronize(s));
        unsigned got = from_device(c + N - 1);
        ok = ok && got == want;
        say("  one left", pool);
        CK(cudaFreeAsync(c, s));
        CK(cudaStreamSynchronize(s));
        say("  all freed", pool);
        CK(cudaMemPoolTrimTo(pool, f == 1 ? 40ull << 20 : 0));
        say("  trimmed", pool);
        reset(pool);
        say("  reset", pool);
        printf("flag %d was %d, value %u\n", f, was, got);
    }
    say("default pool", standard);
    CK(cudaMemPoolDestroy(pool));
    return verdict("pooltrim", ok);
}
