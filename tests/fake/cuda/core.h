/* Objects of the fake driver. Nothing is ever freed, so that a stale handle is recognised instead of being reused. */
#ifndef TESTS_FAKE_CUDA_CORE_H
#define TESTS_FAKE_CUDA_CORE_H

#include <cuda.h>
#include <cudaProfiler.h>

#include "../fake_common.h"
#include "../fake_hooks.h"

enum kind {
    KIND_CONTEXT,
    KIND_STREAM,
    KIND_EVENT,
    KIND_MODULE,
    KIND_LIBRARY,
    KIND_KERNEL,
    KIND_FUNCTION,
    KIND_GRAPH,
    KIND_NODE,
    KIND_EXEC,
    KIND_ALLOCATION,
    KIND_PHYSICAL,
    KIND_RESERVATION,
    KIND_ARRAY,
    KIND_MIPMAP,
    KIND_VIEW,
    KINDS
};

/* The head of every object that a program holds a handle to. */
struct object {
    enum kind kind;
    bool dead;
    struct context *ctx; /* it dies with this one; NULL if it belongs to no context */
    struct object *next; /* of its kind */
    struct object *same; /* of one bucket of addresses */
};

struct context {
    struct object head;
    uint64_t id;
    int device;
    bool primary;
    bool green; /* a part of the device's SMs, and of the primary context's work */
    unsigned int sms;
    int retained; /* primary: how often */
    unsigned int flags;
    CUresult sticky;
    int serial; /* a profiler runs one kernel at a time: a launch returns when it is done */
    int n_streams;
    size_t limits[CU_LIMIT_MAX];
};

enum capture_state { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED };

struct stream {
    struct object head;
    uint64_t id;
    int ordinal;
    unsigned int flags;
    int priority;
    enum capture_state capture;
    uint64_t capture_id; /* of the last one */
    CUstreamCaptureMode mode;
    pthread_t capturer;
    struct graph *graph;
};

/* What a stream argument means once the flavour of the function is known. */
struct stream_ref {
    struct stream *stream; /* NULL for the two default streams */
    bool per_thread;
    uint64_t id;
};

struct event {
    struct object head;
    unsigned int flags;
    bool recorded;
    uint64_t work; /* its last record */
    double ms;
};

#define MAX_PARAMS 16

struct call;

/* A kernel the driver can run: one row of the table in kernels.c, or a name found in an image (then run is NULL). */
struct kernel_code {
    const char *name;
    void (*run)(const struct call *call);
    int regs, shared_bytes, const_bytes, local_bytes, max_threads;
    int n_params; /* -1: unknown, arguments are not inspected */
    uint16_t param_size[MAX_PARAMS], param_align[MAX_PARAMS];
    /* Returns true once the kernel has what it waits for, `ms` after it could start; NULL: it waits for nothing. */
    bool (*ready)(const struct call *call, double ms);
    int limit; /* of registers that the linker was given for it; 0: none */
};

enum global_kind { GLOBAL_VARIABLE, GLOBAL_CONSTANT, GLOBAL_TEXTURE, GLOBAL_TARGET };

struct module_image {
    struct kernel_code *codes;
    size_t n_codes;
    bool any_name; /* a binary whose kernels cannot be listed */
    struct {
        char name[64];
        size_t size;
        enum global_kind kind;
    } globals[8];
    size_t n_globals;
    struct fake_cubin cubin;
};

struct module {
    struct object head;
    const struct module_image *image;
    struct library *library; /* NULL if loaded as a module */
    struct function *functions;
    struct allocation *globals[8];
};

struct library {
    struct object head;
    const struct module_image *image;
    struct kernel *kernels;
};

/* Attributes that a program may set; the others come from the code. */
struct settable {
    int max_dynamic_shared, carveout, cluster[3], non_portable_cluster, cluster_policy;
};

struct kernel {
    struct object head;
    struct library *library;
    const struct kernel_code *code;
    struct settable set;
    struct kernel *next;
};

struct function {
    struct object head;
    struct module *module;
    const struct kernel_code *code;
    struct settable set;
    bool loaded;
    /* for cuLaunchGrid and its like */
    int block[3];
    unsigned int shared_bytes, n_bytes;
    unsigned char bytes[1024];
    struct function *next;
};

/* Memory of cuMemCreate: its handle is dead once released, but mappings survive. */
struct physical {
    struct object head;
    size_t size;
    CUmemLocation where;
    void *pages; /* a mapping of it that nobody can access, to make others of */
    size_t mappings;
};

struct reservation {
    struct object head;
    uintptr_t base;
    size_t size;
    struct reservation *next;
};

/* Also a mapping of virtual memory management, and host memory that was registered: then `head` has a context only if
 * a checkpoint saves it. */
struct allocation {
    struct object head;
    struct fake_allocation info;
    size_t mapped; /* bytes, guard page excluded; 0 of registered memory */
    size_t canary; /* bytes after `size` that hold the canary */
    struct physical *physical;
    uint64_t devices; /* of a mapping: one bit for each device that has access */
    bool host;        /* of a mapping: so has the host */
    bool registered;
    unsigned int host_flags; /* of cuMemHostAlloc */
    bool of_pool;            /* allocated in the order of a stream */
    bool unsaved;            /* of a pool of the host's or of managed memory */
    bool used_for_good;      /* by its pool, because cuMemFree has freed it */
    bool of_graph;           /* of an allocation node: */
    bool backed;             /* there is memory at its addresses, */
    bool held;               /* and no free node was reached since */
    struct allocation *next;
};

struct array {
    struct object head;
    struct allocation *memory;
    size_t row, height, depth; /* bytes, rows, slices */
    bool of_mipmap;
};

#define MAX_LEVELS 8

struct mipmap {
    struct object head;
    struct array *levels[MAX_LEVELS];
    unsigned int n;
};

/* A surface or texture object. */
struct view {
    struct object head;
    CUDA_RESOURCE_DESC of;
    struct array *levels[MAX_LEVELS];
    unsigned int n; /* 0: linear memory */
};

#define MAX_ARG_BYTES 4096

/* A launch, validated, with its arguments copied. */
struct call {
    struct function *function;
    struct fake_launch info;
    struct event *events[2]; /* that it records, by attributes */
    size_t n_events;
    size_t n_bytes;
    unsigned char bytes[MAX_ARG_BYTES];
};

struct node {
    struct object head;
    struct graph *graph;
    CUgraphNodeType type;
    struct call *call;
    struct graph *child;
    CUhostFn host_fn;
    void *host_data;
    void *dst;
    const void *src;
    size_t size; /* memcpy: bytes; memset: elements */
    unsigned int value, element_size;
    struct node **deps;
    size_t n_deps;
    struct node *origin; /* in an executable graph: the node that names it */
    struct allocation *memory;
    CUDA_MEM_ALLOC_NODE_PARAMS memory_params;
    CUevent event;
    bool disabled;
};

struct graph {
    struct object head;
    struct node **nodes;
    size_t n_nodes;
};

struct exec {
    struct object head;
    struct graph *graph; /* a copy, so that later changes of the source do not show */
    unsigned long long flags;
};

/* The checks that functions share, by what they need. */
enum need { NEED_NOTHING, NEED_INIT, NEED_CONTEXT };

#define ENTER(need)                                                                                                    \
    static struct fake_counter counter_ = {__func__, 0, NULL};                                                         \
    int lock_ __attribute__((cleanup(unlock), unused)) = lock();                                                       \
    CUresult entered_ = enter(&counter_, need);                                                                        \
    if (entered_)                                                                                                      \
    return entered_

/* `object` from handle `h`: a handle that never existed is an error of the caller, a destroyed one ends the process. */
#define TAKE(type, object, kind, h)                                                                                    \
    struct type *object = (struct type *)live(h, kind, __func__);                                                      \
    if (!object)                                                                                                       \
    return CUDA_ERROR_INVALID_HANDLE

#endif
