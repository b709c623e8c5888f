// Each kind of device memory, changed in place by several launches without a copy to the host between them, so that a
// profiler which issues launches again must bring it back each time. Each row prints a value that is the same in every
// run, and OK or WRONG: whether each launch was executed exactly once.
//   rewind            in a program of its own: plain and under a profiler the output is the same
//   rewind LIBRARY    asks CUPTI's libcheckpoint.so (its path) itself: saves, launches, restores, and compares with
//                     what was there before: OK means that the checkpoint rewinds this kind of memory
// Build: nvcc -O2 -std=c++17 -arch=ARCH -rdc=true -o rewind rewind.cu -lcuda -lcudadevrt
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <vector>

#define CK(x)                                                                                                          \
    do {                                                                                                               \
        cudaError_t e_ = (x);                                                                                          \
        if (e_ != cudaSuccess) {                                                                                       \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));                                          \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const int n = 1 << 12, block = 128, grid = n / block, launches = 5;
static const size_t bytes = n * sizeof(unsigned);

// ---- kernels ----

__device__ unsigned module_variable[n];
__managed__ unsigned managed_variable[n];
__constant__ unsigned constant_variable[n];
__device__ unsigned *heap_block, **heap_list, *from_heap;
__device__ unsigned heap_wrong;

__device__ int at()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}
__global__ void step(unsigned *v, unsigned k)
{
    v[at()] = v[at()] * 3 + k;
}
__global__ void step_module(unsigned k)
{
    module_variable[at()] = module_variable[at()] * 3 + k;
}
__global__ void step_managed(unsigned k)
{
    managed_variable[at()] = managed_variable[at()] * 3 + k;
}
// The next kernel reads what this one wrote into the memory behind the constant, by its address.
__global__ void step_constant(unsigned *behind, unsigned k)
{
    behind[at()] = behind[at()] * 3 + k;
}
__global__ void add_constant(unsigned *sum)
{
    sum[at()] = sum[at()] * 5 + constant_variable[at()];
}
__global__ void step_surface(cudaSurfaceObject_t s, unsigned k)
{
    unsigned x = at() % 64, y = at() / 64, value;
    surf2Dread(&value, s, x * 4, y);
    surf2Dwrite(value * 3 + k, s, x * 4, y);
}
__global__ void read_surface(cudaSurfaceObject_t s, unsigned *to)
{
    surf2Dread(&to[at()], s, at() % 64 * 4, at() / 64);
}
__global__ void heap_take()
{
    heap_block = (unsigned *)malloc(n * sizeof(unsigned));
    if (!heap_block)
        heap_wrong++;
}
__global__ void heap_fill(unsigned seed)
{
    heap_block[at()] = seed + at();
}
__global__ void heap_step(unsigned k)
{
    heap_block[at()] = heap_block[at()] * 3 + k;
}
__global__ void heap_read(unsigned *to)
{
    to[at()] = heap_block[at()];
}
__global__ void heap_give()
{
    free(heap_block);
    heap_block = nullptr;
}
// Each thread takes a block, and gives back the one that it took in an earlier launch: a launch that runs twice frees
// twice.
__global__ void heap_swap(unsigned **list, unsigned k)
{
    unsigned *fresh = (unsigned *)malloc(16), *old = list[at()];
    if (!fresh) {
        atomicAdd(&heap_wrong, 1u);
        return;
    }
    fresh[0] = (old ? old[0] * 3 : 0) + k;
    list[at()] = fresh;
    free(old);
}
__global__ void heap_collect(unsigned **list, unsigned *to)
{
    to[at()] = list[at()] ? list[at()][0] : 0;
}
__global__ void heap_end(unsigned **list)
{
    free(list[at()]);
    list[at()] = nullptr;
}
struct shape {
    __device__ virtual unsigned of(unsigned v, unsigned k) = 0;
};
struct triple : shape {
    __device__ unsigned of(unsigned v, unsigned k) override
    {
        unsigned *t = new unsigned(v * 3 + k), r = *t;
        delete t;
        return r;
    }
};
// Reaches the heap through a pointer only.
__global__ void make_shape(shape **s)
{
    *s = new triple;
}
__global__ void by_shape(shape **s, unsigned *v, unsigned k)
{
    v[at()] = (*s)->of(v[at()], k);
}
__global__ void end_shape(shape **s)
{
    delete (triple *)*s;
}
__global__ void child(unsigned *v, unsigned k)
{
    v[at()] = v[at()] * 3 + k;
}
__global__ void parent(unsigned *v, unsigned k)
{
    child<<<grid, block>>>(v, k);
}

// ---- the checkpoint, asked directly ----

struct checkpoint { // as cupti_checkpoint.h declares it
    size_t size;
    CUcontext ctx;
    size_t reserve_device_mb, reserve_host_mb;
    uint8_t allow_overwrite, optimizations;
    void *priv;
};
static int (*save)(checkpoint *), (*restore)(checkpoint *), (*release)(checkpoint *);

static void load_checkpoint(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (library) {
        save = (int (*)(checkpoint *))dlsym(library, "cuptiCheckpointSave");
        restore = (int (*)(checkpoint *))dlsym(library, "cuptiCheckpointRestore");
        release = (int (*)(checkpoint *))dlsym(library, "cuptiCheckpointFree");
    }
    if (!save || !restore || !release) {
        printf("%s\n", dlerror());
        exit(2);
    }
}

// ---- rows ----

static bool all_right = true, asks;

static unsigned digest(const std::vector<unsigned> &v)
{
    unsigned h = 2166136261u;
    for (unsigned x : v)
        h = (h ^ x) * 16777619u;
    return h;
}

static void verdict(const char *name, const std::vector<unsigned> &is, const std::vector<unsigned> &wanted)
{
    bool ok = is == wanted;
    printf("%-28s %08x %s\n", name, digest(is), ok ? "OK" : "WRONG");
    fflush(stdout);
    all_right &= ok;
}

// `run(k)` is to multiply each element by 3 and add k; `read` gives the elements.
template <class Run, class Read> static void row(const char *name, std::vector<unsigned> now, Run run, Read read)
{
    checkpoint c = {};
    int rc = 0;
    CK(cudaDeviceSynchronize());
    std::vector<unsigned> before = now;
    if (asks) {
        c.size = offsetof(checkpoint, priv) + sizeof(void *);
        CK((cudaError_t)cuCtxGetCurrent(&c.ctx));
        rc = save(&c);
    }
    for (int k = 1; k <= launches; k++) {
        run((unsigned)k);
        for (unsigned &x : now)
            x = x * 3 + k;
    }
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
    if (asks && !rc)
        rc = restore(&c);
    if (asks && rc) {
        printf("%-28s checkpoint failed, code %d\n", name, rc);
        return;
    }
    verdict(name, read(), asks ? before : now);
    if (asks)
        release(&c);
}

static std::vector<unsigned> content(unsigned seed)
{
    std::vector<unsigned> v(n);
    for (int i = 0; i < n; i++)
        v[i] = seed + i;
    return v;
}

static std::vector<unsigned> get(const void *d)
{
    std::vector<unsigned> v(n);
    CK(cudaMemcpy(v.data(), d, bytes, cudaMemcpyDefault));
    return v;
}

// Memory that a kernel reaches by a pointer.
static void linear(const char *name, unsigned *d, unsigned seed)
{
    std::vector<unsigned> v = content(seed);
    CK(cudaMemcpy(d, v.data(), bytes, cudaMemcpyDefault));
    row(name, v, [=](unsigned k) { step<<<grid, block>>>(d, k); }, [=] { return get(d); });
}

static void skipped(const char *name, const char *why)
{
    printf("%-28s skipped: %s\n", name, why);
}

// ---- virtual memory ----

struct mapping {
    CUdeviceptr at;
    size_t size;
    CUmemGenericAllocationHandle memory;
    bool ok;
};

static CUmemAllocationProp what_for(CUmemLocationType type)
{
    CUmemAllocationProp p = {};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = type;
    return p;
}

static bool map(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle memory, CUmemLocationType type)
{
    CUmemAccessDesc access[2] = {};
    access[0].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[1].location.type = type;
    access[0].flags = access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return !cuMemMap(at, size, 0, memory, 0) &&
           !cuMemSetAccess(at, size, access, type == CU_MEM_LOCATION_TYPE_DEVICE ? 1 : 2);
}

static mapping create(CUmemLocationType type)
{
    mapping m = {};
    CUmemAllocationProp p = what_for(type);
    m.ok = !cuMemGetAllocationGranularity(&m.size, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM) &&
           !cuMemCreate(&m.memory, m.size, &p, 0) && !cuMemAddressReserve(&m.at, m.size, 0, 0, 0) &&
           map(m.at, m.size, m.memory, type);
    return m;
}

static void virtual_rows()
{
    mapping a = create(CU_MEM_LOCATION_TYPE_DEVICE), b = create(CU_MEM_LOCATION_TYPE_DEVICE);
    mapping h = create(CU_MEM_LOCATION_TYPE_HOST_NUMA);
    CUdeviceptr alias;
    if (!a.ok || !b.ok)
        return skipped("cuMemCreate", "no virtual memory management");
    linear("cuMemCreate", (unsigned *)a.at, 11);
    if (!cuMemAddressReserve(&alias, a.size, 0, 0, 0) && map(alias, a.size, a.memory, CU_MEM_LOCATION_TYPE_DEVICE))
        linear("cuMemCreate, mapped twice", (unsigned *)alias, 12);
    // Another handle at an address that had one.
    if (!cuMemUnmap(a.at, a.size) && map(a.at, b.size, b.memory, CU_MEM_LOCATION_TYPE_DEVICE))
        linear("cuMemCreate, mapped anew", (unsigned *)a.at, 13);
    // As PyTorch's expandable segments: grown by a handle behind another.
    CUdeviceptr grown;
    mapping c = create(CU_MEM_LOCATION_TYPE_DEVICE), d = create(CU_MEM_LOCATION_TYPE_DEVICE);
    if (c.ok && d.ok && !cuMemAddressReserve(&grown, 2 * c.size, 0, 0, 0) &&
        map(grown, c.size, c.memory, CU_MEM_LOCATION_TYPE_DEVICE) &&
        map(grown + c.size, d.size, d.memory, CU_MEM_LOCATION_TYPE_DEVICE))
        linear("cuMemCreate, two in a row", (unsigned *)(grown + c.size - bytes / 2), 14);
    cuMemRelease(b.memory);
    linear("cuMemCreate, handle released", (unsigned *)a.at, 15);
    if (h.ok)
        linear("cuMemCreate of the host", (unsigned *)h.at, 16);
    else
        skipped("cuMemCreate of the host", "not to be had");
}

// ---- pools, managed and host memory ----

static void pool_rows()
{
    unsigned *d;
    cudaMemPool_t pool;
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    CK(cudaMallocAsync(&d, bytes, 0));
    linear("cudaMallocAsync", d, 21);
    CK(cudaFreeAsync(d, 0));
    CK(cudaMallocAsync(&d, bytes, 0));
    linear("cudaMallocAsync again", d, 22);
    CK(cudaFreeAsync(d, 0));
    CK(cudaMemPoolCreate(&pool, &props));
    CK(cudaMallocFromPoolAsync(&d, bytes, pool, 0));
    linear("pool of its own", d, 23);
    CK(cudaFreeAsync(d, 0));
    CK(cudaDeviceSynchronize());
    CK(cudaMemPoolDestroy(pool));
}

static void graph_row()
{
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t e;
    unsigned *d;
    CK(cudaStreamCreate(&s));
    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CK(cudaMallocAsync(&d, bytes, s));
    CK(cudaStreamEndCapture(s, &g));
    CK(cudaGraphInstantiate(&e, g, 0));
    CK(cudaGraphLaunch(e, s));
    CK(cudaStreamSynchronize(s));
    linear("allocated by a graph", d, 31);
    CK(cudaFree(d));
    CK(cudaGraphExecDestroy(e));
    CK(cudaGraphDestroy(g));
    CK(cudaStreamDestroy(s));
}

static void host_rows()
{
    unsigned *d, *h;
    CK(cudaMallocManaged(&d, bytes));
    linear("cudaMallocManaged", d, 41);
    CK(cudaFree(d));
    CK(cudaHostAlloc(&h, bytes, cudaHostAllocMapped));
    CK(cudaHostGetDevicePointer(&d, h, 0));
    linear("pinned, mapped", d, 42);
    CK(cudaFreeHost(h));
}

// ---- arrays ----

static void surface_row(const char *name, cudaArray_t array, unsigned seed)
{
    cudaResourceDesc what = {};
    cudaSurfaceObject_t s;
    unsigned *out;
    std::vector<unsigned> v = content(seed);
    what.resType = cudaResourceTypeArray;
    what.res.array.array = array;
    CK(cudaMemcpy2DToArray(array, 0, 0, v.data(), 256, 256, n / 64, cudaMemcpyHostToDevice));
    CK(cudaCreateSurfaceObject(&s, &what));
    CK(cudaMalloc(&out, bytes));
    row(name, v, [=](unsigned k) { step_surface<<<grid, block>>>(s, k); },
        [=] {
            read_surface<<<grid, block>>>(s, out);
            return get(out);
        });
    CK(cudaDestroySurfaceObject(s));
    CK(cudaFree(out));
}

static void array_rows()
{
    cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
    cudaArray_t array, level;
    cudaMipmappedArray_t mipmap;
    CK(cudaMallocArray(&array, &format, 64, n / 64, cudaArraySurfaceLoadStore));
    surface_row("array by its surface", array, 51);
    CK(cudaFreeArray(array));
    CK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(128, n / 32, 0), 2, cudaArraySurfaceLoadStore));
    CK(cudaGetMipmappedArrayLevel(&level, mipmap, 1));
    surface_row("level of a mipmap", level, 52);
    CK(cudaFreeMipmappedArray(mipmap));
}

// ---- variables of the module ----

static void variable_rows()
{
    std::vector<unsigned> v = content(61), w = content(62), c = content(63), sum(n);
    void *behind;
    unsigned *out;
    CK(cudaMemcpyToSymbol(module_variable, v.data(), bytes));
    CK(cudaGetSymbolAddress(&behind, module_variable));
    row("__device__ variable", v, [](unsigned k) { step_module<<<grid, block>>>(k); }, [=] { return get(behind); });
    memcpy(managed_variable, w.data(), bytes);
    row("__managed__ variable", w, [](unsigned k) { step_managed<<<grid, block>>>(k); },
        [] { return std::vector<unsigned>(managed_variable, managed_variable + n); });
    CK(cudaMemcpyToSymbol(constant_variable, c.data(), bytes));
    CK(cudaGetSymbolAddress(&behind, constant_variable));
    row("constant, written by kernels", c, [=](unsigned k) { step_constant<<<grid, block>>>((unsigned *)behind, k); },
        [=] { return get(behind); });
    // What kernels read through the constant caches, set by copies of the host between the launches.
    CK(cudaMalloc(&out, bytes));
    CK(cudaMemset(out, 0, bytes));
    std::vector<unsigned> set = content(0);
    for (int k = 1; k <= launches && !asks; k++) {
        for (int i = 0; i < n; i++) {
            set[i] = i * 7 + k;
            sum[i] = sum[i] * 5 + set[i];
        }
        CK(cudaMemcpyToSymbolAsync(constant_variable, set.data(), bytes, 0, cudaMemcpyHostToDevice, 0));
        add_constant<<<grid, block>>>(out);
    }
    if (!asks)
        verdict("constant, set by copies", get(out), sum);
    CK(cudaFree(out));
}

// ---- the heap, and kernels that kernels launch ----

static void heap_rows()
{
    std::vector<unsigned> v = content(71);
    unsigned *out, **list, wrong;
    shape **s;
    CK(cudaMalloc(&out, bytes));
    heap_take<<<1, 1>>>();
    heap_fill<<<grid, block>>>(71);
    row("block of the heap", v, [](unsigned k) { heap_step<<<grid, block>>>(k); },
        [=] {
            heap_read<<<grid, block>>>(out);
            return get(out);
        });
    heap_give<<<1, 1>>>();
    CK(cudaDeviceSynchronize());
    CK(cudaMalloc(&s, sizeof(*s)));
    make_shape<<<1, 1>>>(s);
    CK(cudaMemcpy(out, v.data(), bytes, cudaMemcpyHostToDevice));
    row("heap through a pointer", v, [=](unsigned k) { by_shape<<<grid, block>>>(s, out, k); }, [=] { return get(out); });
    end_shape<<<1, 1>>>(s);
    CK(cudaDeviceSynchronize());
    // Blocks that come and go: last, as a block that is freed twice breaks the context.
    CK(cudaMalloc(&list, n * sizeof(*list)));
    CK(cudaMemset(list, 0, n * sizeof(*list)));
    heap_swap<<<grid, block>>>(list, 7); // so that the first launch of the row frees, too
    std::vector<unsigned> seven(n, 7);
    row("malloc and free", seven, [=](unsigned k) { heap_swap<<<grid, block>>>(list, k); },
        [=] {
            heap_collect<<<grid, block>>>(list, out);
            return get(out);
        });
    if (asks) // the blocks are what they were or not, but are they still free?
        row("malloc and free, once more", seven, [=](unsigned k) { heap_swap<<<grid, block>>>(list, k); },
            [=] {
                heap_collect<<<grid, block>>>(list, out);
                return get(out);
            });
    heap_end<<<grid, block>>>(list);
    CK(cudaDeviceSynchronize());
    CK(cudaMemcpyFromSymbol(&wrong, heap_wrong, sizeof(wrong)));
    printf("%-28s %u\n", "blocks that were refused", wrong);
    all_right &= !wrong;
    CK(cudaFree(list));
    CK(cudaFree(s));
    CK(cudaFree(out));
}

static void child_row()
{
    unsigned *d;
    std::vector<unsigned> v = content(81);
    CK(cudaMalloc(&d, bytes));
    CK(cudaMemcpy(d, v.data(), bytes, cudaMemcpyHostToDevice));
    row("launched by kernels", v, [=](unsigned k) { parent<<<1, 1>>>(d, k); }, [=] { return get(d); });
    CK(cudaFree(d));
}

int main(int argc, char **argv)
{
    unsigned *d;
    asks = argc > 1;
    CK(cudaFree(nullptr));
    if (asks)
        load_checkpoint(argv[1]);
    CK(cudaMalloc(&d, bytes));
    linear("cudaMalloc", d, 1);
    CK(cudaFree(d));
    size_t pitch;
    CK(cudaMallocPitch(&d, &pitch, bytes, 2));
    linear("cudaMallocPitch", d, 2);
    CK(cudaFree(d));
    virtual_rows();
    pool_rows();
    graph_row();
    host_rows();
    array_rows();
    variable_rows();
    child_row();
    heap_rows();
    printf("%s\n", all_right ? "all right" : "WRONG");
    return all_right ? 0 : 1;
}
