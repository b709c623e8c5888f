// Handles that end as early as CUDA allows: streams, events and executable graphs right after asynchronous use,
// textures, arrays, surfaces and libraries right after the wait. New ones take their places at once.
#include "contact.cuh"

enum { N = 1 << 12, TIMES = 10, WIDTH = 64 };

__global__ void from_texture(cudaTextureObject_t t, unsigned *v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] += tex2D<unsigned>(t, i % WIDTH, i / WIDTH % WIDTH);
}
__global__ void to_surface(cudaSurfaceObject_t s, unsigned add)
{
    unsigned x = threadIdx.x, y = blockIdx.x, was;
    surf2Dread(&was, s, x * 4, y);
    surf2Dwrite(was + add, s, x * 4, y);
}

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry plus(.param .u64 p, .param .u32 k)\n{\n.reg .u64 %a<4>;\n.reg .u32 %r<8>;\n"
                          "ld.param.u64 %a0, [p];\nld.param.u32 %r0, [k];\ncvta.to.global.u64 %a1, %a0;\n"
                          "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
                          "mad.lo.u32 %r4, %r1, %r2, %r3;\nmul.wide.u32 %a2, %r4, 4;\nadd.u64 %a3, %a1, %a2;\n"
                          "ld.global.u32 %r5, [%a3];\nadd.u32 %r6, %r5, %r0;\nst.global.u32 [%a3], %r6;\nret;\n}\n";

int main()
{
    static unsigned picture[WIDTH * WIDTH];
    unsigned *v = device_zeros<unsigned>(N), *w = device_zeros<unsigned>(N), want_v = 0, want_w = 0, pixel = 0;
    cudaEvent_t order = NULL;
    CK(cudaGetLastError());
    for (unsigned t = 0; t < TIMES; t++) {
        // Asynchronous: the stream, the event it waited for and the graph go while all of it may be queued.
        cudaStream_t s;
        cudaGraph_t g;
        cudaGraphExec_t x;
        CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
        if (order) {
            CK(cudaStreamWaitEvent(s, order, 0));
            CK(cudaEventDestroy(order));
        }
        CK(cudaEventCreateWithFlags(&order, cudaEventDisableTiming));
        CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
        mix<<<16, 256, 0, s>>>(v, N, t);
        CK(cudaStreamEndCapture(s, &g));
        CK(cudaGraphInstantiate(&x, g, 0));
        CK(cudaGraphLaunch(x, s));
        CK(cudaGraphExecDestroy(x));
        CK(cudaGraphDestroy(g));
        mix<<<16, 256, 0, s>>>(v, N, t + 60);
        CK(cudaEventRecord(order, s));
        CK(cudaStreamDestroy(s));
        want_v = mixed(mixed(want_v, t), t + 60);

        // After a wait: an array with a surface and a texture, and a module.
        cudaArray_t a;
        cudaChannelFormatDesc d = cudaCreateChannelDesc<unsigned>();
        cudaResourceDesc r = {};
        cudaTextureDesc td = {};
        cudaSurfaceObject_t surface;
        cudaTextureObject_t texture;
        CUlibrary library;
        CUkernel plus;
        CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
        CK(cudaMallocArray(&a, &d, WIDTH, WIDTH, cudaArraySurfaceLoadStore));
        for (unsigned i = 0; i < WIDTH * WIDTH; i++)
            picture[i] = i + t;
        CK(cudaMemcpy2DToArrayAsync(a, 0, 0, picture, WIDTH * 4, WIDTH * 4, WIDTH, cudaMemcpyHostToDevice, s));
        r.resType = cudaResourceTypeArray;
        r.res.array.array = a;
        td.readMode = cudaReadModeElementType;
        CK(cudaCreateSurfaceObject(&surface, &r));
        CK(cudaCreateTextureObject(&texture, &r, &td, NULL));
        to_surface<<<WIDTH, WIDTH, 0, s>>>(surface, 7);
        from_texture<<<16, 256, 0, s>>>(texture, w, N);
        NEEDS(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), "compiler of PTX");
        CU(cuLibraryGetKernel(&plus, library, "plus"));
        unsigned k = 3 + t;
        void *args[] = {&w, &k};
        CU(cuLaunchKernel((CUfunction)plus, 16, 1, 1, 256, 1, 1, 0, s, args, NULL));
        CK(cudaStreamSynchronize(s));
        CU(cuLibraryUnload(library));
        CK(cudaDestroyTextureObject(texture));
        CK(cudaDestroySurfaceObject(surface));
        CK(cudaFreeArray(a));
        CK(cudaStreamDestroy(s));
        pixel = 100 + t + 7;
        want_w += pixel + k;
    }
    CK(cudaEventSynchronize(order));
    CK(cudaEventDestroy(order));
    unsigned gv = from_device(v + N - 1), gw = from_device(w + 100);
    printf("values %u %u\n", gv, gw);
    return verdict("destroyed", gv == want_v && gw == want_w);
}
