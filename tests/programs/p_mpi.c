/* LINK: -lcuda -ldl */
/* A rank of an MPI program: launches as many as its rank says and two, between barriers, then ends as the argument
 * says: return (the default), fail (rank 1 ends with 3 after the others), abort (rank 1 by MPI_Abort). Open MPI is
 * opened, not linked, so that the program builds without it. */
#include "linked.h"

enum { N = 32 };

static struct {
    int (*init)(int *, char ***);
    int (*rank)(void *, int *);
    int (*barrier)(void *);
    int (*abort)(void *, int);
    int (*finalize)(void);
    void *world;
} mpi;

static int open_mpi(void)
{
    void *library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);

    if (!library)
        return 1;
    *(void **)&mpi.init = dlsym(library, "MPI_Init");
    *(void **)&mpi.rank = dlsym(library, "MPI_Comm_rank");
    *(void **)&mpi.barrier = dlsym(library, "MPI_Barrier");
    *(void **)&mpi.abort = dlsym(library, "MPI_Abort");
    *(void **)&mpi.finalize = dlsym(library, "MPI_Finalize");
    mpi.world = dlsym(library, "ompi_mpi_comm_world");
    return !mpi.init || !mpi.rank || !mpi.barrier || !mpi.abort || !mpi.finalize || !mpi.world;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";
    struct session session;
    CUdeviceptr values;
    int rank, n = N;
    void *params[] = {&values, &n};

    if (open_mpi() || mpi.init(&argc, &argv) || mpi.rank(mpi.world, &rank))
        return 77;
    open_session(&linked, &session, 0);
    values = device_ints(&linked, (int[N]){0}, N);
    for (int i = 0; i < rank + 2; i++) {
        MUST(cuLaunchKernel(get_function(&linked, &session, "increment"), 1, 1, 1, N, 1, 1, 0, session.stream, params,
                            NULL));
        if (i < 2)
            mpi.barrier(mpi.world);
    }
    printf("rank %d: %lld\n", rank, sum_ints(&linked, values, N));
    fflush(stdout);
    mpi.barrier(mpi.world);
    if (rank == 1 && !strcmp(how, "abort"))
        mpi.abort(mpi.world, 9);
    if (!strcmp(how, "abort"))
        mpi.barrier(mpi.world); /* that does not come to its end */
    mpi.finalize();
    return rank == 1 && !strcmp(how, "fail") ? 3 : program_wrong;
}
