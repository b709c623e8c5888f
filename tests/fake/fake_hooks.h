/*
 * What the fake driver (libcuda.so.1) offers the other look-alikes and the tests beyond the real interface. Get it with
 * dlsym(handle of libcuda.so.1, "fake_cuda_api").
 */
#ifndef TESTS_FAKE_HOOKS_H
#define TESTS_FAKE_HOOKS_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

/* The exit status of a process that did what a real driver punishes. */
#define FAKE_MISUSE_EXIT 99

enum fake_state { FAKE_NEVER_SEEN = 0, FAKE_LIVE, FAKE_DESTROYED };

/* The machine code of a module, in the driver's final form: an ELF image. It lives as long as the process, and each
 * load of an image has its own. */
struct fake_cubin {
    const void *image;
    size_t size;
};

/* One kernel that ran. Strings live as long as the process. */
struct fake_launch {
    uint64_t ordinal; /* 0-based over all kernels of the process, graph nodes included */
    const char *name;
    const char *api; /* the driver function called, e.g. "cuLaunchKernel_ptsz" */
    CUcontext ctx;
    uint64_t ctx_id, stream_id; /* as cuCtxGetId and cuStreamGetId */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared_bytes;        /* dynamic */
    uint32_t static_shared_bytes; /* of the function */
    uint32_t n_attrs;             /* attributes given to cuLaunchKernelEx */
    int priority;                 /* of the launch attribute; 0 without one */
    int cooperative;              /* 1: by function or by attribute */
    int serialization;            /* programmatic stream serialization attribute */
    int from_graph;               /* 1: a node of a launched graph */
    uint64_t args_hash;           /* FNV-1a of the packed arguments: equal for re-issues within a process */
    uint64_t data_hash;  /* FNV-1a of the device memory that arguments point to, before the kernel ran (64 KiB each) */
    uint64_t data_bytes; /* how many bytes that were */
    /* FNV-1a of the arguments with zeros for pointers to device memory: equal in every run of a program */
    uint64_t numbers_hash;
    uint32_t number; /* the first 4 bytes of the arguments after leading pointers to device memory; 0 = none */
    const struct fake_cubin *cubin; /* of the kernel's module */
    int reaches_host;               /* 1: it writes host memory, as far as its arguments and name show */
    uint64_t call;                  /* number of the call that made it; nodes of a graph launch share it */
};

/* A copy or memset that is done. */
struct fake_transfer {
    int direction; /* 0 a memset, else CUPTI's number: 1 HtoD, 2 DtoH, 8 DtoD, 9 HtoH */
    uint64_t bytes, call;
    uint64_t ctx_id, stream_id;
    int device, from_graph;
};

struct fake_allocation {
    void *base;
    size_t size;
    uint64_t serial; /* 1-based, never reused */
    int pinned_host; /* 1: cuMemAllocHost and its like */
    int sparse;      /* 1: too large to be poisoned; pages never written read as zero */
    int managed;     /* 1: cuMemAllocManaged */
    int is_mapping;  /* 1: of virtual memory management; one piece may be mapped several times */
};

/* What is live of virtual memory management. */
struct fake_virtual {
    size_t handles;  /* not released */
    size_t physical; /* pieces of memory: not released, or still mapped */
    size_t reservations, mappings;
};

typedef void (*fake_launch_fn)(const struct fake_launch *launch, void *data);
typedef void (*fake_transfer_fn)(const struct fake_transfer *transfer);
typedef void (*fake_module_fn)(const struct fake_cubin *cubin, void *data);
typedef void (*fake_allocation_fn)(const struct fake_allocation *allocation, void *data);

struct fake_cuda_api {
    /* Kernels run so far, and the `index`-th of them; returns 0, or -1 beyond the end. */
    uint64_t (*launch_count)(void);
    int (*launch_get)(uint64_t index, struct fake_launch *out);
    /* `fn` is called for each kernel, just before it runs, in the launching thread; NULL removes it. */
    void (*set_launch_hook)(fake_launch_fn fn, void *data);

    enum fake_state (*context_state)(CUcontext ctx);
    CUcontext (*context_current)(void);
    uint64_t (*context_id)(CUcontext ctx);
    int (*context_device)(CUcontext ctx);
    int (*context_sticky)(CUcontext ctx);    /* the CUresult that broke it, or 0 */
    int (*context_capturing)(CUcontext ctx); /* 1 while a stream of it captures */

    /* 0-based order of creation in its context, or -1: not a live stream of `ctx`. */
    int (*stream_ordinal)(CUcontext ctx, CUstream stream);

    /* Live allocations of `ctx`, in order of creation: pinned and registered host memory (unless the device may only
     * read it) and managed memory included, virtual memory management and that of graphs left out: what a checkpoint
     * saves. */
    void (*each_allocation)(CUcontext ctx, fake_allocation_fn fn, void *data);

    const char *(*chip_name)(int device); /* CUPTI's name, e.g. "GH100"; NULL: no such device */
    int (*initialised)(void);             /* 1 between cuInit and the driver's own exit handler */

    /* The driver's own lock, recursive. It is held when the launch hook runs: code that takes another lock there and
     * calls the driver under that lock elsewhere must use this one instead. */
    void (*lock)(void);
    void (*unlock)(void);

    /* While it is on, a launch returns only after its kernel, as under a profiler's automatic ranges. */
    void (*one_at_a_time)(CUcontext ctx, int on);

    /* `fn` is called for each module that is loaded from now on, in the loading thread, under the driver's lock. */
    void (*set_module_hook)(fake_module_fn fn, void *data);

    /* `fn` is called for each copy and memset, under the driver's lock; NULL removes it. */
    void (*set_transfer_hook)(fake_transfer_fn fn);

    uint64_t (*graph_count)(void); /* graphs instantiated so far */

    /* Takes this much memory of the context's device, or (negative) gives it back, in bytes. */
    void (*take)(CUcontext ctx, long bytes);

    /* Waits for the work of the current context. */
    void (*wait)(void);

    /* The copy of CUPTI attached to the driver: there can only be one. Each copy attaches by its own address. */
    const void *_Atomic *tool;

    /* `fn` is called when cuCtxGetDevice starts (0) and returns (1); NULL removes it. */
    void (*set_device_hook)(void (*fn)(int site));

    /* Waits for the kernels that run in a context, but not for kernels after other work, and not in a broken
     * context. */
    void (*wait_for_kernels)(CUcontext ctx);
    int (*context_busy)(CUcontext ctx); /* 1 while anything in it has not ended */

    /* For a green context waits for all work of its device, and returns 1; otherwise returns 0 at once. */
    int (*green_settled)(CUcontext ctx);

    /* From now on no green context is made: CUDA_ERROR_NOT_SUPPORTED. */
    void (*refuse_green)(void);
};

const struct fake_cuda_api *fake_cuda_api(void);

/* The same as launch_count above, for a test that is linked to the fake driver. */
uint64_t fake_cuda_launch_count(void);

/* To be taken by its name. */
struct fake_virtual fake_cuda_virtual(void);

#endif
