// A gate in host memory of another origin, as the argument says: pageable (malloc, for devices that reach it), file (a
// shared mapping of a file in memory, registered), readonly (registered as such), vmm (cuMemCreate on the host's NUMA
// node), pool (a pool of host memory) or managedpool. Work is queued after the gate, and a second stream's work goes
// on.
#include "contact.cuh"
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 3, N = 1 << 14, SIZE = 2 << 20 };

__global__ void gate(volatile unsigned *flag, unsigned value, unsigned *late)
{
    if (!wait_for(flag, value))
        atomicAdd(late, 1u);
}

static unsigned *registered(void *p, unsigned flags)
{
    unsigned *d;
    NEEDS(cudaHostRegister(p, SIZE, flags), "registration of this memory");
    CK(cudaHostGetDevicePointer((void **)&d, p, 0));
    return d;
}

static unsigned *from_vmm(void)
{
    CUmemAllocationProp p = {};
    CUmemGenericAllocationHandle h;
    CUmemAccessDesc d[2] = {};
    CUdeviceptr at;
    size_t grain;
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    NEEDS(cuMemGetAllocationGranularity(&grain, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "virtual memory of the host");
    size_t n = (SIZE + grain - 1) / grain * grain;
    NEEDS(cuMemCreate(&h, n, &p, 0), "virtual memory of the host");
    CU(cuMemAddressReserve(&at, n, 0, 0, 0));
    CU(cuMemMap(at, n, 0, h, 0));
    d[0].location = p.location;
    d[1].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    d[0].flags = d[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CU(cuMemSetAccess(at, n, d, 2));
    return (unsigned *)at;
}

static unsigned *from_pool(bool managed)
{
    cudaMemPoolProps p = {};
    cudaMemPool_t pool;
    cudaMemAccessDesc d = {};
    unsigned *v;
    p.allocType = managed ? cudaMemAllocationTypeManaged : cudaMemAllocationTypePinned;
    p.location.type = managed ? cudaMemLocationTypeNone : cudaMemLocationTypeHost;
    NEEDS(cudaMemPoolCreate(&pool, &p), "such pools");
    d.location.type = cudaMemLocationTypeDevice;
    d.flags = cudaMemAccessFlagsProtReadWrite;
    if (!managed)
        CK(cudaMemPoolSetAccess(pool, &d, 1));
    CK(cudaMallocFromPoolAsync((void **)&v, SIZE, pool, 0));
    CK(cudaStreamSynchronize(0));
    return v;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "file";
    unsigned *x = device_zeros<unsigned>(N), *y = device_zeros<unsigned>(N), *late = device_zeros<unsigned>(1);
    unsigned *host = NULL, *device = NULL, want = 0;
    if (!strcmp(how, "vmm")) {
        host = device = from_vmm();
    } else if (!strcmp(how, "pool") || !strcmp(how, "managedpool")) {
        host = device = from_pool(*how == 'm');
    } else {
        bool file = !strcmp(how, "file");
        int f = file ? memfd_create("origin", 0) : -1;
        if (file)
            NEEDS(ftruncate(f, SIZE), "file in memory");
        host =
            (unsigned *)mmap(NULL, SIZE, PROT_READ | PROT_WRITE, file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, f, 0);
        *(volatile unsigned *)host = 0;
        if (!strcmp(how, "pageable")) {
            NEEDS(!attribute(cudaDevAttrPageableMemoryAccess), "access to pageable memory");
            device = host;
        } else {
            device = registered(host, cudaHostRegisterMapped | (file ? 0 : cudaHostRegisterReadOnly));
        }
    }
    volatile unsigned *flag = host;
    cudaStream_t a, b;
    CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    *flag = 0;
    gate<<<1, 1, 0, a>>>(device, 0, late);
    mix<<<16, 256, 0, a>>>(x, N, 0);
    CK(cudaStreamSynchronize(a));
    for (unsigned r = 1; r <= ROUNDS; r++) {
        gate<<<1, 1, 0, a>>>(device, r, late);
        mix<<<16, 256, 0, a>>>(x, N, r);
        mix<<<16, 256, 0, b>>>(y, N, r);
        CK(cudaStreamSynchronize(b));
        want = mixed(want, r);
        *flag = r;
        CK(cudaStreamSynchronize(a));
    }
    unsigned gx = from_device(x), gy = from_device(y + N - 1), l = from_device(late);
    printf("values %u %u, late %u\n", gx, gy, l);
    return verdict("origin", gx == want && gy == want && !l);
}
