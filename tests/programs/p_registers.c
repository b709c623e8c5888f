/* LINK: -lcuda */
/* Kernels of modules that were loaded in several ways, one of them for each argument, which a profile series compiles
 * again with other registers. What the program can see of its modules and of the device's memory stays. */
#include <stddef.h>

#include "linked.h"

enum { N = 512, SHARED = 1024 };

static CUdeviceptr values;
static struct session s;

static void launch(CUfunction f)
{
    int n = N;
    void *params[] = {&values, &n};
    CUlaunchAttribute carveout = {.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                  .value.sharedMemCarveout = 30};
    CUlaunchConfig config = {4, 1, 1, 128, 1, 1, SHARED, s.stream, &carveout, 1};

    MUST(cuLaunchKernelEx(&config, f, params, NULL));
}

/* A fat binary: its container has code for a GPU, and PTX. */
struct fatbin {
    struct {
        uint32_t magic, version;
        const void *container;
        void *more;
    } wrapper;
    struct {
        uint32_t magic;
        uint16_t version, header_size;
        uint64_t size;
        struct {
            uint16_t kind, version;
            uint32_t header_size;
            uint64_t size;
            char text[64];
        } entries[2];
    } container;
};

static const void *make_fatbin(struct fatbin *f, const char *text)
{
    memset(f, 0, sizeof(*f));
    f->wrapper.magic = 0x466243b1;
    f->wrapper.container = &f->container;
    f->container.magic = 0xba55ed50;
    f->container.header_size = offsetof(struct fatbin, container.entries) - offsetof(struct fatbin, container);
    f->container.size = sizeof(f->container.entries);
    for (int i = 0; i < 2; i++) {
        f->container.entries[i].kind = i ? 1 : 2;
        f->container.entries[i].header_size = 16;
        f->container.entries[i].size = sizeof(f->container.entries[i].text);
    }
    strcpy(f->container.entries[0].text, "\177ELF");
    strcpy(f->container.entries[1].text, text);
    return &f->wrapper;
}

static CUfunction of_module(const void *image, const char *kernel)
{
    CUmodule module;
    CUfunction f;

    MUST(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    MUST(cuModuleGetFunction(&f, module, kernel));
    return f;
}

/* Options of which some change the code; the first is in and out. */
enum { OPTIONS = 8 };

static CUjit_option options[OPTIONS] = {
    CU_JIT_THREADS_PER_BLOCK,  CU_JIT_MAX_REGISTERS,      CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
    CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_GENERATE_LINE_INFO, CU_JIT_CACHE_MODE,      CU_JIT_OPTIMIZATION_LEVEL,
};

static void **option_values(void)
{
    static char log[64];
    static void *given[OPTIONS];

    const uintptr_t numbers[OPTIONS] = {96, 40, (uintptr_t)log, sizeof(log), 1, 1, CU_JIT_CACHE_OPTION_CG, 2};
    for (int i = 0; i < OPTIONS; i++)
        given[i] = (void *)numbers[i];
    return given;
}

static CUfunction with_options(void)
{
    CUmodule module;
    CUfunction f;

    MUST(cuModuleLoadDataEx(&module, "FAKEMOD wide_increment", OPTIONS, options, option_values()));
    MUST(cuModuleGetFunction(&f, module, "wide_increment"));
    return f;
}

static CUfunction library_with_options(void)
{
    CUlibrary library;
    CUkernel k;
    CUfunction f;

    MUST(cuLibraryLoadData(&library, "FAKEMOD wide_increment", options, option_values(), OPTIONS, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&k, library, "wide_increment"));
    MUST(cuKernelGetFunction(&f, k));
    return f;
}

static CUkernel of_library(const char *image, const char *kernel)
{
    CUlibrary library;
    CUkernel k;

    MUST(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&k, library, kernel));
    return k;
}

static CUfunction by_function(CUkernel kernel)
{
    CUfunction f;

    MUST(cuKernelGetFunction(&f, kernel));
    return f;
}

/* The image is gone once it is loaded. */
static CUfunction from_text(const char *text, const char *kernel)
{
    char image[256];
    CUfunction f;

    snprintf(image, sizeof(image), "%s", text);
    f = of_module(image, kernel);
    memset(image, 'x', sizeof(image));
    return f;
}

static CUfunction with_constant(void)
{
    static const int five = 5;
    CUmodule module;
    CUfunction f = of_module("FAKEMOD add_constant const:five:4", "add_constant");
    CUdeviceptr at;
    size_t size;

    MUST(cuFuncGetModule(&module, f));
    MUST(cuModuleGetGlobal(&at, &size, module, "five"));
    MUST(cuMemcpyHtoD(at, &five, sizeof(five)));
    return f;
}

static CUfunction find(const char *what)
{
    static struct fatbin fatbin;

    if (!strcmp(what, "text"))
        return from_text("FAKEMOD wide_increment", "wide_increment");
    if (!strcmp(what, "fatbin"))
        return of_module(make_fatbin(&fatbin, "FAKEMOD wide_increment"), "wide_increment");
    if (!strcmp(what, "accelerated"))
        return of_module("FAKEMOD wide_increment target:90a:1", "wide_increment");
    if (!strcmp(what, "options"))
        return with_options();
    if (!strcmp(what, "library-options"))
        return library_with_options();
    if (!strcmp(what, "bounded"))
        return of_module("FAKEMOD bounded_increment", "bounded_increment");
    if (!strcmp(what, "cubin"))
        return of_module("\177ELF is no PTX", "of_cubin");
    if (!strcmp(what, "pointer"))
        return of_module("FAKEMOD by_pointer", "by_pointer");
    if (!strcmp(what, "variable"))
        return of_module("FAKEMOD increment global:g_count:16", "increment");
    if (!strcmp(what, "texture"))
        return of_module("FAKEMOD increment texref:g_texture:1", "increment");
    if (!strcmp(what, "constant"))
        return with_constant();
    if (!strcmp(what, "library"))
        return (CUfunction)of_library("FAKEMOD wide_increment", "wide_increment");
    if (!strcmp(what, "function"))
        return by_function(of_library("FAKEMOD wide_increment", "wide_increment"));
    of_library("FAKEMOD wide_increment", "wide_increment");
    if (!strcmp(what, "twins"))
        return by_function(of_library("FAKEMOD wide_increment", "wide_increment"));
    return by_function(of_library("FAKEMOD wide_increment append", "wide_increment"));
}

static void print_function(CUfunction f)
{
    int registers = 0, most = 0, carveout = 0;

    if (cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f) != CUDA_SUCCESS)
        return; /* of a library's kernel */
    MUST(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    MUST(cuFuncGetAttribute(&carveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, f));
    printf("registers: %d, dynamic shared memory: %d, carve-out: %d\n", registers, most, carveout);
}

int main(int argc, char **argv)
{
    static const int zeros[N];
    size_t before = 0, after = 0, total = 0;
    CUmodule module;

    open_session(&linked, &s, 0);
    values = device_ints(&linked, zeros, N);
    CUfunction f = find(argc > 1 ? argv[1] : "text");
    cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2 * SHARED);
    cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 40);
    MUST(cuMemGetInfo(&before, &total));
    launch(f);
    MUST(cuStreamSynchronize(s.stream));
    MUST(cuMemGetInfo(&after, &total));
    printf("memory taken: %zd, sum: %ld\n", (ssize_t)(before - after), (long)sum_ints(&linked, values, N));
    print_function(f);
    MUST(cuModuleLoadData(&module, "FAKEMOD append"));
    MUST(cuModuleUnload(module));
    close_session(&linked, &s);
    return program_wrong;
}
