// Virtual memory: two pieces of memory take turns at one address, and one of them is at a second address as well.
// Between the turns work for other memory is queued, and goes on while addresses are mapped and unmapped.
#include "contact.cuh"

enum { TURNS = 12 };

static void map(CUdeviceptr at, size_t n, CUmemGenericAllocationHandle h)
{
    CUmemAccessDesc d = {};
    d.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    d.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CU(cuMemMap(at, n, 0, h, 0));
    CU(cuMemSetAccess(at, n, &d, 1));
}

int main()
{
    CUmemAllocationProp p = {};
    CUmemGenericAllocationHandle piece[2];
    CUdeviceptr place, second;
    size_t n = 0;
    unsigned want[2] = {0, 0}, other = 0, *busy = device_zeros<unsigned>(1 << 20);
    cudaStream_t s, t;
    bool ok = true;
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    NEEDS(cuMemGetAllocationGranularity(&n, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "virtual memory");
    for (int i = 0; i < 2; i++)
        CU(cuMemCreate(&piece[i], n, &p, 0));
    CU(cuMemAddressReserve(&place, n, 0, 0, 0));
    CU(cuMemAddressReserve(&second, n, 0, 0, 0));
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    map(second, n, piece[0]);
    for (int i = 0; i < 2; i++) {
        map(place, n, piece[i]);
        CU(cuMemsetD8(place, 0, n));
        CK(cudaDeviceSynchronize());
        CU(cuMemUnmap(place, n));
    }
    for (unsigned k = 0; k < TURNS; k++) {
        int i = k % 2;
        for (unsigned q = 0; q < 4; q++) {
            mix<<<132, 256, 0, t>>>(busy, 1 << 20, k + q);
            other = mixed(other, k + q);
        }
        map(place, n, piece[i]);
        mix<<<64, 256, 0, s>>>((unsigned *)place, n / 4, k);
        want[i] = mixed(want[i], k);
        CK(cudaStreamSynchronize(s));
        if (i == 0) { // the same memory, at its other address
            mix<<<64, 256, 0, s>>>((unsigned *)second, n / 4, k + 40);
            want[0] = mixed(want[0], k + 40);
            mix<<<64, 256, 0, s>>>((unsigned *)place, n / 4, k + 50);
            want[0] = mixed(want[0], k + 50);
            CK(cudaStreamSynchronize(s));
        }
        unsigned got = from_device((unsigned *)place + n / 4 - 1);
        ok = ok && got == want[i];
        CU(cuMemUnmap(place, n));
    }
    CK(cudaStreamSynchronize(t));
    unsigned got = from_device((unsigned *)second), b = from_device(busy + 7);
    ok = ok && got == want[0] && b == other;
    CU(cuMemUnmap(second, n));
    for (int i = 0; i < 2; i++)
        CU(cuMemRelease(piece[i]));
    CU(cuMemAddressFree(place, n));
    CU(cuMemAddressFree(second, n));
    printf("values %u %u, other work %u\n", got, want[1], b);
    return verdict("remap", ok);
}
