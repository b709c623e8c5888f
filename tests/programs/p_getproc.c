/* LINK: -ldl */
/* One dlsym for cuGetProcAddress_v2, everything else by function pointer, as a statically linked cudart does. */
#include "opened.h"

static PFN_cuGetProcAddress_v12000 get_proc;

static void *get(const char *name, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
    void *p = NULL;

    if (get_proc(name, &p, version, flags, &status) || status || !p) {
        printf("%s at %d: not found\n", name, version);
        exit(2);
    }
    return p;
}

/* What is asked for and is not there: answers and status must be the driver's. */
static void misses(void)
{
    static const struct {
        const char *name;
        int version;
    } asked[] = {{"cuNoSuchFunction", 12000},  {"cuLaunchKernel", 3000},   {"cuLaunchKernelEx", 11050},
                 {"cuLaunchKernel_v2", 12000}, {"cuLaunchKernel", 990000}, {"cuGraphLaunch", 9000}};

    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
        void *p = (void *)&status;
        CUresult result = get_proc(asked[i].name, &p, asked[i].version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);

        printf("%s at %d: result %d, status %d, pointer %s\n", asked[i].name, asked[i].version, (int)result,
               (int)status,
               !p                     ? "null"
               : p == (void *)&status ? "untouched"
                                      : "set");
    }
    report("no status wanted", get_proc("cuLaunchKernel", &(void *){0}, 4000, 0, NULL) == CUDA_SUCCESS);
}

int main(void)
{
    PFN_cuGetProcAddress_v11030 first_version;
    struct driver d;
    void *p;

    *(void **)&get_proc = dlsym(open_driver(), "cuGetProcAddress_v2");
    /* what it hands out for its own name is what is used from here on */
    *(void **)&get_proc = get("cuGetProcAddress", 12000, CU_GET_PROC_ADDRESS_DEFAULT);
    *(void **)&first_version = get("cuGetProcAddress", 11030, CU_GET_PROC_ADDRESS_DEFAULT);
    misses();
#define FIELD(base, version) *(void **)&d.base = get(#base, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    DRIVER_FUNCTIONS(FIELD)
#undef FIELD
    *(void **)&d.launch_ptsz = get("cuLaunchKernel", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    *(void **)&d.launch_ex_ptsz = get("cuLaunchKernelEx", 11060, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    report("the flavours differ", (void *)d.launch_ptsz != (void *)d.cuLaunchKernel);
    report("newer versions give the same", get("cuLaunchKernel", 13000, 0) == (void *)d.cuLaunchKernel);
    report("first version: a hit",
           first_version("cuLaunchKernel", &p, 11030, 0) == CUDA_SUCCESS && p == (void *)d.cuLaunchKernel);
    report("first version: a miss", first_version("cuNoSuchFunction", &p, 11030, 0) == CUDA_ERROR_NOT_FOUND);
    return run_scenario(&d);
}
