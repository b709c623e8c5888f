/* Registry of handles, the lock, and what every entry point checks first. */
#include "core.h"

#include <time.h>

static pthread_mutex_t big_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct object *objects[KINDS], *by_address[4096];
static pid_t init_pid;
static bool deinitialised;
static uint64_t next_context_id = 1, next_stream_id = 20;

#define CONTEXT_STACK 32
static __thread struct context *context_stack[CONTEXT_STACK];
static __thread int context_depth;
static __thread CUstreamCaptureMode thread_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static int lock(void)
{
    pthread_mutex_lock(&big_lock);
    return 1;
}

static void unlock(int *held)
{
    (void)held;
    pthread_mutex_unlock(&big_lock);
}

static struct context *current(void)
{
    return context_depth ? context_stack[context_depth - 1] : NULL;
}

static CUresult enter(struct fake_counter *counter, enum need need)
{
    struct context *ctx = current();
    int code;

    if (fake_count(counter, &code))
        return (CUresult)code;
    if (need == NEED_NOTHING)
        return CUDA_SUCCESS;
    if (deinitialised)
        return CUDA_ERROR_DEINITIALIZED;
    if (init_pid && init_pid != getpid()) {
        fake_log("forked pid=%d %s\n", (int)getpid(), counter->name);
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (!init_pid)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (need == NEED_INIT)
        return CUDA_SUCCESS;
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (ctx->head.dead)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return ctx->sticky;
}

static struct object **bucket_of(const void *handle)
{
    return &by_address[((uintptr_t)handle >> 4) % (sizeof(by_address) / sizeof(*by_address))];
}

static void *make(size_t size, enum kind kind, struct context *ctx)
{
    struct object *object = calloc(1, size);

    if (!object)
        fake_misuse("out of host memory");
    object->kind = kind;
    object->ctx = ctx;
    object->next = objects[kind];
    objects[kind] = object;
    object->same = *bucket_of(object);
    *bucket_of(object) = object;
    return object;
}

/* For an object without a handle in the program. */
static void unmake(struct object *object)
{
    struct object **link = &objects[object->kind];

    while (*link != object)
        link = &(*link)->next;
    *link = object->next;
    for (link = bucket_of(object); *link != object;)
        link = &(*link)->same;
    *link = object->same;
    free(object);
}

static enum fake_state state_of(const void *handle, enum kind kind)
{
    for (const struct object *o = *bucket_of(handle); o; o = o->same)
        if (o == handle && o->kind == kind)
            return o->dead ? FAKE_DESTROYED : FAKE_LIVE;
    return FAKE_NEVER_SEEN;
}

static struct object *live(void *handle, enum kind kind, const char *function)
{
    static const char *const names[] = {"context",     "stream",     "event",      "module",
                                        "library",     "kernel",     "function",   "graph",
                                        "graph node",  "graph exec", "allocation", "memory handle",
                                        "reservation", "array",      "mipmap",     "surface or texture"};

    switch (state_of(handle, kind)) {
    case FAKE_LIVE:
        return handle;
    case FAKE_DESTROYED:
        fake_misuse("%s: the %s was destroyed", function, names[kind]);
    default:
        return NULL;
    }
}

static double now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static void on_exit_of_process(void)
{
    deinitialised = true;
}

CUresult cuInit(unsigned int flags)
{
    ENTER(NEED_NOTHING);
    static atomic_int calls;
    const char *ms = getenv("FAKE_INIT_MS"), *fails = getenv("FAKE_INIT_FAILS");
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (ms)
        usleep((useconds_t)atoi(ms) * 1000);
    if (fails && atomic_fetch_add(&calls, 1) < atoi(fails))
        return CUDA_ERROR_NO_DEVICE;
    if (init_pid && init_pid != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!init_pid)
        atexit(on_exit_of_process);
    init_pid = getpid();
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    ENTER(NEED_NOTHING);
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

static const struct {
    CUresult code;
    const char *name, *text;
} error_names[] = {
#define ERROR(code, text)                                                                                              \
    {                                                                                                                  \
        code, #code, text                                                                                              \
    }
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing stream"),
    ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "cluster misconfiguration"),
    ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
    ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

CUresult cuGetErrorName(CUresult error, const char **name)
{
    ENTER(NEED_NOTHING);
    *name = NULL;
    for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++)
        if (error_names[i].code == error)
            *name = error_names[i].name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    ENTER(NEED_NOTHING);
    *text = NULL;
    for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++)
        if (error_names[i].code == error)
            *text = error_names[i].text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Nobody can fake the table of private functions that a real cudart asks for. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    ENTER(NEED_NOTHING);
    (void)id;
    if (table)
        *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuProfilerStart(void)
{
    ENTER(NEED_CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
    ENTER(NEED_CONTEXT);
    return CUDA_SUCCESS;
}
