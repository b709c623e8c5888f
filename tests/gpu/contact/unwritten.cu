// Reads memory that the program has allocated and never written, of each allocator and of several sizes: before its
// first other launch, after many launches, and after it has given back memory that it had only read. All of it is zero.
#include "contact.cuh"

__global__ void not_zero(const unsigned char *p, size_t n, unsigned long long *count)
{
    unsigned long long c = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        c += p[i] != 0;
    if (c)
        atomicAdd(count, c);
}

enum kind { PLAIN, PITCHED, ORDERED, MANAGED, MAPPED, VIRTUAL, KINDS };
static const char *const names[] = {"cudaMalloc", "cudaMallocPitch", "cudaMallocAsync", "managed",
                                    "host",       "cuMemCreate"};

struct block {
    void *p;
    size_t n;
    CUmemGenericAllocationHandle handle;
};

static block allocate(kind k, size_t n)
{
    block b = {NULL, n, 0};
    CUmemAllocationProp p = {};
    CUmemAccessDesc d = {};
    size_t grain, pitch;
    switch (k) {
    case PLAIN:
        CK(cudaMalloc(&b.p, n));
        break;
    case PITCHED:
        CK(cudaMallocPitch(&b.p, &pitch, 1000, n / 1000 + 1));
        b.n = pitch * (n / 1000 + 1);
        break;
    case ORDERED:
        CK(cudaMallocAsync(&b.p, n, 0));
        break;
    case MANAGED:
        CK(cudaMallocManaged(&b.p, n));
        break;
    case MAPPED:
        CK(cudaHostAlloc(&b.p, n, cudaHostAllocMapped));
        break;
    default:
        p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        CU(cuMemGetAllocationGranularity(&grain, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
        b.n = (n + grain - 1) / grain * grain;
        CU(cuMemCreate(&b.handle, b.n, &p, 0));
        CU(cuMemAddressReserve((CUdeviceptr *)&b.p, b.n, 0, 0, 0));
        CU(cuMemMap((CUdeviceptr)b.p, b.n, 0, b.handle, 0));
        d.location = p.location;
        d.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        CU(cuMemSetAccess((CUdeviceptr)b.p, b.n, &d, 1));
    }
    return b;
}

static void release(kind k, block b)
{
    switch (k) {
    case ORDERED:
        CK(cudaFreeAsync(b.p, 0));
        break;
    case MAPPED:
        CK(cudaFreeHost(b.p));
        break;
    case VIRTUAL:
        CU(cuMemUnmap((CUdeviceptr)b.p, b.n));
        CU(cuMemRelease(b.handle));
        CU(cuMemAddressFree((CUdeviceptr)b.p, b.n));
        break;
    default:
        CK(cudaFree(b.p));
    }
}

int main()
{
    static const size_t sizes[] = {512, 40000, 1 << 20, 3 << 20, 33 << 20};
    unsigned long long *count = device_zeros<unsigned long long>(1), total = 0;
    unsigned *v = device_zeros<unsigned>(1 << 16);
    for (int phase = 0; phase < 3; phase++) {
        for (int k = 0; k < KINDS; k++) {
            block all[5];
            CK(cudaMemset(count, 0, 8));
            for (int i = 0; i < 5; i++) {
                all[i] = allocate((kind)k, sizes[i]);
                not_zero<<<256, 256>>>((unsigned char *)all[i].p, all[i].n, count);
            }
            CK(cudaDeviceSynchronize());
            unsigned long long found = from_device(count);
            total += found;
            printf("phase %d, %s: %llu bytes are not zero\n", phase, names[k], found);
            for (int i = 0; i < 5; i++)
                release((kind)k, all[i]);
        }
        for (unsigned i = 0; i < 40; i++)
            mix<<<64, 256>>>(v, 1 << 16, i);
        CK(cudaDeviceSynchronize());
    }
    return verdict("unwritten", total == 0);
}
