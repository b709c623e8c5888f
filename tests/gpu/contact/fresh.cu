// What is in memory that nobody has written, of many sizes and of each allocator, after launches that were counted with
// memory and variables of their own: read by copies, so that no launch is counted meanwhile. Then of nearly all memory that
// the device has left, so that whoever copied the program's memory has to give room back.
#include "contact.cuh"

enum { SIZES = 36, SMALLEST = 256, PIECE = 1 << 30, STRIDE = 1 << 20, SAMPLE = 4096, MOST_PIECES = 4096 };
enum kind { PLAIN, ORDERED, MANAGED, PINNED, KINDS };
static const char *const names[] = {"cuMemAlloc", "cuMemAllocAsync", "managed", "pinned"};

__device__ unsigned table[4096];

__global__ void fill(unsigned *p, int n, unsigned value)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] = table[i % 4096] = value + i;
}

static unsigned long long not_zero, sum;

static void look(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        not_zero += bytes[i] != 0;
        sum = (sum ^ bytes[i]) * 1099511628211ull;
    }
}

static void *allocate(kind k, size_t n)
{
    CUdeviceptr at;
    void *p;
    switch (k) {
    case PLAIN:
        CU(cuMemAlloc(&at, n));
        return (void *)at;
    case ORDERED:
        CU(cuMemAllocAsync(&at, n, NULL));
        return (void *)at;
    case MANAGED:
        CK(cudaMallocManaged(&p, n));
        return p;
    default:
        CK(cudaMallocHost(&p, n));
        return p;
    }
}

static void release(kind k, void *p)
{
    if (k == ORDERED)
        CU(cuMemFreeAsync((CUdeviceptr)p, NULL));
    else if (k == PINNED)
        CK(cudaFreeHost(p));
    else
        CK(cudaFree(p));
}

static size_t size_of(int i)
{
    size_t power = (size_t)SMALLEST << i / 2;
    return i % 2 ? power + power / 2 : power;
}

static void of_each_size(kind k, unsigned char *host)
{
    void *p[SIZES];
    not_zero = 0;
    sum = 14695981039346656037ull;
    for (int i = 0; i < SIZES; i++) {
        p[i] = allocate(k, size_of(i));
        CK(cudaMemcpy(host, p[i], size_of(i), cudaMemcpyDefault));
        look(host, size_of(i));
    }
    printf("%s: %llu bytes are not zero, sum %016llx\n", names[k], not_zero, sum);
    for (int i = 0; i < SIZES; i++)
        release(k, p[i]);
    CK(cudaDeviceSynchronize());
}

static void of_all(unsigned char *host)
{
    static void *pieces[MOST_PIECES];
    size_t left, total, n = 0;
    not_zero = 0;
    while (n < MOST_PIECES && cudaMemGetInfo(&left, &total) == cudaSuccess && left > 3ull * PIECE &&
           cudaMalloc(&pieces[n], PIECE) == cudaSuccess) {
        CK(cudaMemcpy2D(host, SAMPLE, pieces[n++], STRIDE, SAMPLE, PIECE / STRIDE, cudaMemcpyDeviceToHost));
        look(host, (size_t)SAMPLE * (PIECE / STRIDE));
    }
    cudaGetLastError();
    printf("all that is left: %llu bytes of the samples are not zero\n", not_zero);
    while (n)
        CK(cudaFree(pieces[--n]));
}

int main()
{
    unsigned char *host = (unsigned char *)malloc(size_of(SIZES));
    unsigned *v = device_zeros<unsigned>(1 << 20), *own;
    unsigned long long found = 0;
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 4; i++) {
            CK(cudaMalloc(&own, 20000 << i)); // never freed: natively, too, it would be handed on as it is
            fill<<<8, 128>>>(own, 5000 << i, i);
            mix<<<64, 256>>>(v, 1 << 20, i);
        }
        CK(cudaDeviceSynchronize());
        for (int k = 0; k < KINDS; k++) {
            of_each_size((kind)k, host);
            found += not_zero;
        }
    }
    of_all(host);
    return verdict("fresh", found + not_zero == 0);
}
