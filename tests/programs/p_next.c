/* LINK: -lcuda -ldl */
/* A program with a cuLaunchKernel of its own, which passes on by dlsym(RTLD_NEXT); and lookups with RTLD_DEFAULT and of
 * names that nobody intercepts. */
#include "linked.h"

static unsigned int seen;

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
                        void **extra)
{
    PFN_cuLaunchKernel_v4000 next;

    *(void **)&next = dlsym(RTLD_NEXT, "cuLaunchKernel");
    if (!next || next == cuLaunchKernel) {
        printf("RTLD_NEXT does not lead on\n");
        exit(2);
    }
    seen++;
    return next(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

int main(void)
{
    int wrong;

    report("RTLD_DEFAULT finds the program's own", dlsym(RTLD_DEFAULT, "cuLaunchKernel") == (void *)cuLaunchKernel);
    report("RTLD_NEXT finds libc's", dlsym(RTLD_NEXT, "strlen") != NULL);
    report("RTLD_NEXT finds nothing", dlsym(RTLD_NEXT, "no_such_name_anywhere") == NULL);
    report("and says why", dlerror() != NULL);
    wrong = run_scenario(&linked);
    report_number("launches passed on", seen, 17);
    return wrong | program_wrong;
}
