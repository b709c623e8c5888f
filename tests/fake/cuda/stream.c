/* Streams, events, capture, and what is enqueued other than kernels; then what the other look-alikes may ask. */
#include "core.h"

/* Defines both stream flavours of `name` over name_in(arguments..., per_thread, caller). */
#define FLAVOURS(name, parameters, ...)                                                                                \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        ENTER(NEED_CONTEXT);                                                                                           \
        return name##_in(__VA_ARGS__, false, __func__);                                                                \
    }                                                                                                                  \
    CUresult name##_ptsz parameters                                                                                    \
    {                                                                                                                  \
        ENTER(NEED_CONTEXT);                                                                                           \
        return name##_in(__VA_ARGS__, true, __func__);                                                                 \
    }

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
    struct stream *stream;

    ENTER(NEED_CONTEXT);
    stream = make(sizeof(*stream), KIND_STREAM, current());
    stream->id = next_stream_id++;
    stream->ordinal = current()->n_streams++;
    stream->flags = flags;
    stream->priority = priority;
    *out = (CUstream)stream;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx green, unsigned int flags, int priority)
{
    ENTER(NEED_INIT);
    CUresult rc = cuCtxPushCurrent_v2((CUcontext)green);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = cuStreamCreateWithPriority(out, flags, priority);
    cuCtxPopCurrent_v2(NULL);
    return rc;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
    return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    ENTER(NEED_INIT);
    TAKE(stream, stream, KIND_STREAM, handle);
    stream->head.dead = true;
    return CUDA_SUCCESS;
}
SAME_AS(cuStreamDestroy, cuStreamDestroy_v2);

/* Waiting cannot be recorded: it ends the capture. */
static CUresult wait_for(CUstream handle, bool block, bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = resolve_stream(handle, per_thread, &ref, caller);

    if (result)
        return result;
    if (capturing(&ref)) {
        ref.stream->capture = CAPTURE_INVALIDATED;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (block) {
        wait_for_stream(&ref);
        pool_settles(current()->device);
    }
    return is_busy(current(), &ref) ? CUDA_ERROR_NOT_READY : current()->sticky;
}

static CUresult cuStreamSynchronize_in(CUstream stream, bool per_thread, const char *caller)
{
    return wait_for(stream, true, per_thread, caller);
}

static CUresult cuStreamQuery_in(CUstream stream, bool per_thread, const char *caller)
{
    return wait_for(stream, false, per_thread, caller);
}

FLAVOURS(cuStreamSynchronize, (CUstream stream), stream)
FLAVOURS(cuStreamQuery, (CUstream stream), stream)

static CUresult cuStreamGetId_in(CUstream handle, unsigned long long *id, bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = name_stream(handle, per_thread, &ref, caller);

    *id = ref.id;
    return result;
}
FLAVOURS(cuStreamGetId, (CUstream stream, unsigned long long *id), stream, id)

static CUresult cuStreamGetCtx_in(CUstream handle, CUcontext *ctx, bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = name_stream(handle, per_thread, &ref, caller);

    *ctx = (CUcontext)current();
    return result;
}
FLAVOURS(cuStreamGetCtx, (CUstream stream, CUcontext *ctx), stream, ctx)

static CUresult cuStreamGetFlags_in(CUstream handle, unsigned int *flags, bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = name_stream(handle, per_thread, &ref, caller);

    *flags = ref.stream ? ref.stream->flags : 0;
    return result;
}
FLAVOURS(cuStreamGetFlags, (CUstream stream, unsigned int *flags), stream, flags)

static CUresult cuStreamGetPriority_in(CUstream handle, int *priority, bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = name_stream(handle, per_thread, &ref, caller);

    *priority = ref.stream ? ref.stream->priority : 0;
    return result;
}
FLAVOURS(cuStreamGetPriority, (CUstream stream, int *priority), stream, priority)

static CUresult cuStreamIsCapturing_in(CUstream handle, CUstreamCaptureStatus *status, bool per_thread,
                                       const char *caller)
{
    struct stream_ref ref;
    CUresult result = name_stream(handle, per_thread, &ref, caller);

    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (ref.stream && ref.stream->capture == CAPTURE_ACTIVE)
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (ref.stream && ref.stream->capture == CAPTURE_INVALIDATED)
        *status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    if (!result && !ref.stream && !ref.per_thread && caught_by_legacy())
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; /* asking ends no capture */
    return result;
}
FLAVOURS(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status), stream, status)

static uint64_t captures;

static CUresult cuStreamGetCaptureInfo_v2_in(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                             CUgraph *graph, const CUgraphNode **dependencies, size_t *n,
                                             bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = cuStreamIsCapturing_in(handle, status, per_thread, caller);

    if (graph || dependencies || n)
        return CUDA_ERROR_NOT_SUPPORTED;
    name_stream(handle, per_thread, &ref, caller);
    if (id && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        *id = ref.stream->capture_id;
    return result;
}
FLAVOURS(cuStreamGetCaptureInfo_v2,
         (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
          const CUgraphNode **dependencies, size_t *n),
         stream, status, id, graph, dependencies, n)

static CUresult cuStreamBeginCapture_v2_in(CUstream handle, CUstreamCaptureMode mode, bool per_thread,
                                           const char *caller)
{
    struct stream_ref ref;
    CUresult result = resolve_stream(handle, per_thread, &ref, caller);

    if (result)
        return result;
    if (!ref.stream) /* the fake records created streams only */
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (ref.stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    ref.stream->capture = CAPTURE_ACTIVE;
    ref.stream->capture_id = ++captures;
    ref.stream->mode = mode;
    ref.stream->capturer = pthread_self();
    ref.stream->graph = make(sizeof(struct graph), KIND_GRAPH, NULL);
    return CUDA_SUCCESS;
}
FLAVOURS(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), stream, mode)

static CUresult cuStreamEndCapture_in(CUstream handle, CUgraph *out, bool per_thread, const char *caller)
{
    struct stream *stream = (struct stream *)live(handle, KIND_STREAM, caller);
    enum capture_state state;

    (void)per_thread;
    *out = NULL;
    if (!stream || !stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    state = stream->capture;
    stream->capture = CAPTURE_NONE;
    if (state == CAPTURE_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *out = (CUgraph)stream->graph;
    return CUDA_SUCCESS;
}
FLAVOURS(cuStreamEndCapture, (CUstream stream, CUgraph *graph), stream, graph)

static struct node *captured(struct graph *graph, CUgraphNodeType type)
{
    struct node *last = last_node(graph);

    return add_node(graph, type, &last, last != NULL);
}

static void run_host_function(struct work *w)
{
    w->host_fn(w->host_data);
}

/* A host function that runs in a thread of its own, like the real driver's: FAKE_HOST_THREADS. */
struct host_call {
    CUhostFn fn;
    void *data;
    bool begun;
    atomic_bool done;
};

static void *call_host(void *arg)
{
    struct host_call *call = arg;

    call->fn(call->data);
    atomic_store(&call->done, true);
    return NULL;
}

/* Starts it when its turn comes. */
static bool has_returned(struct work *w)
{
    struct host_call *call = w->host_call;
    pthread_t thread;

    if (!call->begun && !pthread_create(&thread, NULL, call_host, call)) {
        pthread_detach(thread);
        call->begun = true;
    }
    return atomic_load(&call->done);
}

static void forget_host_call(struct work *w)
{
    free(w->host_call);
}

static void submit_host_function(const struct stream_ref *ref, CUhostFn fn, void *data)
{
    struct host_call *call = getenv("FAKE_HOST_THREADS") ? calloc(1, sizeof(*call)) : NULL;

    if (!call) {
        submit(&(struct work){.ref = *ref, .run = run_host_function, .host_fn = fn, .host_data = data});
        return;
    }
    call->fn = fn;
    call->data = data;
    submit(&(struct work){.ref = *ref, .ready = has_returned, .run = forget_host_call, .host_call = call});
}

static CUresult cuLaunchHostFunc_in(CUstream handle, CUhostFn fn, void *data, bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = resolve_stream(handle, per_thread, &ref, caller);

    if (result)
        return result;
    if (capturing(&ref)) {
        struct node *node = captured(capturing(&ref), CU_GRAPH_NODE_TYPE_HOST);

        node->host_fn = fn;
        node->host_data = data;
    } else {
        submit_host_function(&ref, fn, data);
    }
    return CUDA_SUCCESS;
}
FLAVOURS(cuLaunchHostFunc, (CUstream stream, CUhostFn fn, void *data), stream, fn, data)

/* The function for cuStreamAddCallback, and its argument. */
struct callback {
    CUstreamCallback fn;
    CUstream stream;
    void *data;
};

static void CUDA_CB call_back(void *arg)
{
    struct callback c = *(struct callback *)arg;

    free(arg);
    c.fn(c.stream, CUDA_SUCCESS, c.data);
}

static CUresult cuStreamAddCallback_in(CUstream handle, CUstreamCallback fn, void *data, unsigned int flags,
                                       bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = resolve_stream(handle, per_thread, &ref, caller);
    struct callback *c;

    if (result || flags)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    if (capturing(&ref))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    c = malloc(sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c = (struct callback){fn, handle, data};
    submit_host_function(&ref, call_back, c);
    return CUDA_SUCCESS;
}
FLAVOURS(cuStreamAddCallback, (CUstream stream, CUstreamCallback fn, void *data, unsigned int flags), stream, fn, data,
         flags)

static void run_copy(struct work *w)
{
    copy_bytes(w->dst, w->src, w->size);
    transferred(w->dst, w->src, w->size, w->ref.id, 0);
}

/* Duration of asynchronous copies, ms: FAKE_COPY_MS. */
static double copy_ms(void)
{
    const char *text = getenv("FAKE_COPY_MS");

    return text ? atof(text) : 0;
}

static bool is_copied(struct work *w)
{
    return now_ms() - w->since >= copy_ms();
}

static CUresult copy_async(void *dst, const void *src, size_t bytes, CUstream handle, bool per_thread,
                           const char *caller)
{
    struct stream_ref ref;
    CUresult result = resolve_stream(handle, per_thread, &ref, caller);

    if (result)
        return result;
    if (capturing(&ref)) {
        struct node *node = captured(capturing(&ref), CU_GRAPH_NODE_TYPE_MEMCPY);

        node->dst = dst, node->src = src, node->size = bytes;
    } else {
        submit(&(struct work){.ref = ref,
                              .ready = copy_ms() > 0 ? is_copied : NULL,
                              .run = run_copy,
                              .dst = dst,
                              .src = src,
                              .size = bytes});
    }
    return CUDA_SUCCESS;
}

static CUresult cuMemcpyHtoDAsync_v2_in(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream,
                                        bool per_thread, const char *caller)
{
    CUresult result = check_device(dst, bytes, caller);

    return result ? result : copy_async((void *)dst, src, bytes, stream, per_thread, caller);
}
FLAVOURS(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream), dst, src, bytes,
         stream)

static CUresult cuMemcpyDtoHAsync_v2_in(void *dst, CUdeviceptr src, size_t bytes, CUstream stream, bool per_thread,
                                        const char *caller)
{
    CUresult result = check_device(src, bytes, caller);

    return result ? result : copy_async(dst, (const void *)src, bytes, stream, per_thread, caller);
}
FLAVOURS(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream), dst, src, bytes, stream)

static CUresult cuMemcpyDtoDAsync_v2_in(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream,
                                        bool per_thread, const char *caller)
{
    if (check_device(dst, bytes, caller) || check_device(src, bytes, caller))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_async((void *)dst, (const void *)src, bytes, stream, per_thread, caller);
}
FLAVOURS(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), dst, src, bytes,
         stream)

/* Copies within the device run as kernels of the driver, which counters see on an H200; single copies do not. */
static CUresult cuMemcpyBatchAsync_v2_in(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
                                         size_t n, CUstream stream, bool per_thread, const char *caller)
{
    CUresult rc = CUDA_SUCCESS;

    for (size_t i = 0; i < n && rc == CUDA_SUCCESS; i++) {
        const void *src = (const void *)srcs[i];
        void *dst = (void *)dsts[i];

        if (is_on_device(src) && is_on_device(dst))
            show_driver_kernel("copy_of_a_batch");
        rc = copy_async(dst, src, sizes[i], stream, per_thread, caller);
    }
    return rc;
}

#define BATCH(name, per_thread)                                                                                        \
    CUresult name(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t n, CUmemcpyAttributes *how,              \
                  size_t *first, size_t n_attributes, CUstream stream)                                                 \
    {                                                                                                                  \
        ENTER(NEED_CONTEXT);                                                                                           \
        if (!n_attributes || !how || !first)                                                                           \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        return cuMemcpyBatchAsync_v2_in(dsts, srcs, sizes, n, stream, per_thread, __func__);                           \
    }
#undef cuMemcpyBatchAsync
BATCH(cuMemcpyBatchAsync_v2, false)
BATCH(cuMemcpyBatchAsync_v2_ptsz, true)

static CUresult cuMemcpyAsync_in(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool per_thread,
                                 const char *caller)
{
    return copy_async((void *)dst, (const void *)src, bytes, stream, per_thread, caller);
}
FLAVOURS(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), dst, src, bytes, stream)

static void run_fill(struct work *w)
{
    fill(w->dst, w->value, w->element, w->size);
    transferred(w->dst, NULL, w->size * w->element, w->ref.id, 0);
}

static CUresult fill_async(CUdeviceptr dst, unsigned int value, size_t element, size_t n, CUstream handle,
                           bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = check_device(dst, element * n, caller);

    if (!result)
        result = resolve_stream(handle, per_thread, &ref, caller);
    if (result)
        return result;
    if (capturing(&ref)) {
        struct node *node = captured(capturing(&ref), CU_GRAPH_NODE_TYPE_MEMSET);

        node->dst = (void *)dst, node->value = value, node->element_size = element, node->size = n;
    } else {
        submit(&(struct work){
            .ref = ref, .run = run_fill, .dst = (void *)dst, .value = value, .element = element, .size = n});
    }
    return CUDA_SUCCESS;
}

#define cuMemsetD8Async_in  fill_async
#define cuMemsetD16Async_in fill_async
#define cuMemsetD32Async_in fill_async
FLAVOURS(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t n, CUstream stream), dst, value, 1, n, stream)
FLAVOURS(cuMemsetD16Async, (CUdeviceptr dst, unsigned short value, size_t n, CUstream stream), dst, value, 2, n, stream)
FLAVOURS(cuMemsetD32Async, (CUdeviceptr dst, unsigned int value, size_t n, CUstream stream), dst, value, 4, n, stream)

static CUresult fill_rows(CUdeviceptr dst, size_t pitch, unsigned int value, size_t element, size_t n, size_t rows,
                          CUstream stream, bool per_thread, const char *caller)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t row = 0; !result && row < rows; row++)
        result = fill_async(dst + row * pitch, value, element, n, stream, per_thread, caller);
    return result;
}

#define cuMemsetD2D8Async_in  fill_rows
#define cuMemsetD2D16Async_in fill_rows
#define cuMemsetD2D32Async_in fill_rows
FLAVOURS(cuMemsetD2D8Async,
         (CUdeviceptr dst, size_t pitch, unsigned char value, size_t n, size_t rows, CUstream stream), dst, pitch,
         value, 1, n, rows, stream)
FLAVOURS(cuMemsetD2D16Async,
         (CUdeviceptr dst, size_t pitch, unsigned short value, size_t n, size_t rows, CUstream stream), dst, pitch,
         value, 2, n, rows, stream)
FLAVOURS(cuMemsetD2D32Async,
         (CUdeviceptr dst, size_t pitch, unsigned int value, size_t n, size_t rows, CUstream stream), dst, pitch, value,
         4, n, rows, stream)

/* How each row of a copy is enqueued. */
struct rows_later {
    CUstream stream;
    bool per_thread;
    const char *caller;
};

static CUresult copy_row_later(void *to, const void *from, size_t bytes, void *data)
{
    const struct rows_later *later = data;

    return copy_async(to, from, bytes, later->stream, later->per_thread, later->caller);
}

static CUresult cuMemcpy3DAsync_v2_in(const CUDA_MEMCPY3D *p, CUstream stream, bool per_thread, const char *caller)
{
    return copy_rows(p, copy_row_later, &(struct rows_later){stream, per_thread, caller}, caller);
}
FLAVOURS(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *p, CUstream stream), p, stream)

static CUresult cuMemcpy2DAsync_v2_in(const CUDA_MEMCPY2D *p, CUstream stream, bool per_thread, const char *caller)
{
    const CUDA_MEMCPY3D as_3d = in_3d(p);

    return cuMemcpy3DAsync_v2_in(&as_3d, stream, per_thread, caller);
}
FLAVOURS(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *p, CUstream stream), p, stream)

static CUresult capture_alloc(struct graph *graph, CUdeviceptr *out, size_t bytes)
{
    const CUDA_MEM_ALLOC_NODE_PARAMS p = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current()->device}},
        .bytesize = bytes};
    struct allocation *memory;
    CUresult result = reserve_graph_memory(bytes, &memory);
    struct node *node;

    if (result)
        return result;
    node = captured(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    node->memory = memory;
    node->memory_params = p;
    node->memory_params.dptr = *out = (CUdeviceptr)memory->info.base;
    return CUDA_SUCCESS;
}

static CUresult capture_free(struct graph *graph, CUdeviceptr pointer)
{
    struct allocation *memory = allocation_of(pointer);

    if (!memory || !memory->of_graph || (CUdeviceptr)memory->info.base != pointer)
        return CUDA_ERROR_INVALID_VALUE;
    captured(graph, CU_GRAPH_NODE_TYPE_MEM_FREE)->memory = memory;
    return CUDA_SUCCESS;
}

static void run_nothing(struct work *w)
{
    (void)w;
}

static CUresult cuMemAllocAsync_in(CUdeviceptr *out, size_t bytes, CUstream handle, bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = resolve_stream(handle, per_thread, &ref, caller);

    if (!result && capturing(&ref))
        return capture_alloc(capturing(&ref), out, bytes);
    if (!result)
        result = allocate((void **)out, bytes, false);
    if (result)
        return result;
    allocation_of(*out)->of_pool = true;
    pool_takes(current()->device);
    return CUDA_SUCCESS;
}
FLAVOURS(cuMemAllocAsync, (CUdeviceptr * out, size_t bytes, CUstream stream), out, bytes, stream)

/* Pools that the program makes. Host or managed pools are left out of checkpoints. */
enum { MOST_POOLS = 16 };
static struct pool {
    bool host, managed;
} pools[MOST_POOLS];
static int n_pools;

static CUresult make_pool(CUmemoryPool *out, CUmemAllocationType type, CUmemLocationType where)
{
    if (n_pools == MOST_POOLS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pools[n_pools] =
        (struct pool){.managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED,
                      .host = type == CU_MEM_ALLOCATION_TYPE_PINNED && where != CU_MEM_LOCATION_TYPE_DEVICE};
    *out = (CUmemoryPool)&pools[n_pools++];
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    ENTER(NEED_INIT);
    return make_pool(out, props->allocType, props->location.type);
}

CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *where, CUmemAllocationType type)
{
    ENTER(NEED_INIT);
    return make_pool(out, type, where->type);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    ENTER(NEED_INIT);
    (void)pool;
    return CUDA_SUCCESS;
}

static CUresult cuMemAllocFromPoolAsync_in(CUdeviceptr *out, size_t bytes, CUmemoryPool handle, CUstream stream,
                                           bool per_thread, const char *caller)
{
    const struct pool *pool = (const struct pool *)handle;
    struct stream_ref ref;
    CUresult result = resolve_stream(stream, per_thread, &ref, caller);

    if (!result && capturing(&ref))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!result)
        result = allocate((void **)out, bytes, pool->host);
    if (result)
        return result;
    allocation_of(*out)->of_pool = true;
    allocation_of(*out)->info.managed = pool->managed;
    allocation_of(*out)->unsaved = pool->host || pool->managed;
    return CUDA_SUCCESS;
}
FLAVOURS(cuMemAllocFromPoolAsync, (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream), out, bytes,
         pool, stream)

static CUresult cuMemFreeAsync_in(CUdeviceptr pointer, CUstream handle, bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = resolve_stream(handle, per_thread, &ref, caller);

    if (!result && capturing(&ref))
        return capture_free(capturing(&ref), pointer);
    if (!result && copy_ms() > 0) /* earlier copies end by themselves */
        wait_for_work(submit(&(struct work){.ref = ref, .run = run_nothing}));
    const struct allocation *a = allocation_of(pointer);
    return result ? result : free_memory(pointer, a && a->of_pool && a->info.pinned_host, caller);
}
FLAVOURS(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), pointer, stream)

static CUresult cuStreamSetAttribute_in(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *value,
                                        bool per_thread, const char *caller)
{
    struct stream_ref ref;
    CUresult result = resolve_stream(handle, per_thread, &ref, caller);

    if (!result && id == CU_LAUNCH_ATTRIBUTE_PRIORITY && ref.stream)
        ref.stream->priority = value->priority;
    return result;
}
FLAVOURS(cuStreamSetAttribute, (CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value), stream, id, value)

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
    struct event *event;

    ENTER(NEED_CONTEXT);
    event = make(sizeof(*event), KIND_EVENT, current());
    event->flags = flags;
    *out = (CUevent)event;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle)
{
    ENTER(NEED_INIT);
    TAKE(event, event, KIND_EVENT, handle);
    event->head.dead = true;
    return CUDA_SUCCESS;
}
SAME_AS(cuEventDestroy, cuEventDestroy_v2);

static void run_record(struct work *w)
{
    w->event->ms = now_ms();
}

static CUresult cuEventRecord_in(CUevent handle, CUstream stream, bool per_thread, const char *caller)
{
    struct event *event = (struct event *)live(handle, KIND_EVENT, caller);
    struct stream_ref ref;
    CUresult result = resolve_stream(stream, per_thread, &ref, caller);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (result)
        return result;
    event->recorded = true;
    event->work = submit(&(struct work){.ref = ref, .run = run_record, .event = event});
    return CUDA_SUCCESS;
}
FLAVOURS(cuEventRecord, (CUevent event, CUstream stream), event, stream)

static bool event_done(struct work *w)
{
    return !is_put_off(w->after);
}

static CUresult cuStreamWaitEvent_in(CUstream stream, CUevent handle, unsigned int flags, bool per_thread,
                                     const char *caller)
{
    struct event *event = (struct event *)live(handle, KIND_EVENT, caller);
    struct stream_ref ref;
    CUresult result = resolve_stream(stream, per_thread, &ref, caller);

    (void)flags;
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!result && !capturing(&ref))
        submit(&(struct work){.ref = ref, .run = run_nothing, .ready = event_done, .after = event->work});
    return result;
}
FLAVOURS(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), stream, event, flags)

CUresult cuEventQuery(CUevent handle)
{
    ENTER_NOT_CAPTURING();
    TAKE(event, event, KIND_EVENT, handle);
    run_what_can();
    return is_put_off(event->work) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent handle)
{
    ENTER_NOT_CAPTURING();
    TAKE(event, event, KIND_EVENT, handle);
    wait_for_work(event->work);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    ENTER(NEED_CONTEXT);
    TAKE(event, first, KIND_EVENT, start);
    TAKE(event, second, KIND_EVENT, end);
    if (!first->recorded || !second->recorded || ((first->flags | second->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    run_what_can();
    if (is_put_off(first->work) || is_put_off(second->work))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)(second->ms - first->ms);
    return CUDA_SUCCESS;
}
SAME_AS(cuEventElapsedTime_v2, cuEventElapsedTime);

static enum fake_state api_context_state(CUcontext ctx)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    return state_of(ctx, KIND_CONTEXT);
}

static CUcontext api_context_current(void)
{
    return (CUcontext)current();
}

static uint64_t api_context_id(CUcontext ctx)
{
    return ((struct context *)ctx)->id;
}

static int api_context_device(CUcontext ctx)
{
    return ((struct context *)ctx)->device;
}

static int api_context_sticky(CUcontext ctx)
{
    return ((struct context *)ctx)->sticky;
}

static int api_context_capturing(CUcontext ctx)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    for (const struct object *o = objects[KIND_STREAM]; o; o = o->next)
        if (!o->dead && (CUcontext)o->ctx == ctx && ((const struct stream *)o)->capture)
            return 1;
    return 0;
}

static int api_stream_ordinal(CUcontext ctx, CUstream stream)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    if (state_of(stream, KIND_STREAM) != FAKE_LIVE || (CUcontext)((struct stream *)stream)->head.ctx != ctx)
        return -1;
    return ((struct stream *)stream)->ordinal;
}

/* Returns true for virtual memory on the context's device that is mapped. KP_VENDOR: seen on an H200, host memory is
 * not. */
static bool is_mapped_for(const struct allocation *a, const struct context *ctx)
{
    return a->physical && a->physical->where.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           a->physical->where.id == ctx->device && a->devices >> ctx->device & 1;
}

static void api_each_allocation(CUcontext ctx, fake_allocation_fn fn, void *data)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    for (const struct allocation *a = allocations; a; a = a->next)
        if (!a->head.dead && !a->of_graph && !a->unsaved &&
            ((CUcontext)a->head.ctx == ctx || is_mapped_for(a, (struct context *)ctx)))
            fn(&a->info, data);
}

static void api_take(CUcontext ctx, long bytes)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    used_bytes[((struct context *)ctx)->device] += (size_t)bytes;
}

static void api_wait(void)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    wait_for_context();
}

static void api_wait_for_kernels(CUcontext ctx)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    while (runs_kernels((const struct context *)ctx))
        rest();
}

static int api_green_settled(CUcontext handle)
{
    const struct context *ctx = (const struct context *)handle;
    int held __attribute__((cleanup(unlock), unused)) = lock();

    if (!ctx->green)
        return 0;
    while (is_device_busy(ctx->device))
        rest();
    return 1;
}

static int api_context_busy(CUcontext ctx)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    return is_busy((const struct context *)ctx, NULL);
}

static const char *api_chip_name(int device)
{
    return device >= 0 && device < n_devices() ? the_chip()->chip : NULL;
}

static int api_initialised(void)
{
    return init_pid == getpid() && !deinitialised;
}

static void api_one_at_a_time(CUcontext ctx, int on)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    ((struct context *)ctx)->serial = on;
}

static void api_lock(void)
{
    lock();
}

static void api_unlock(void)
{
    unlock(NULL);
}

const struct fake_cuda_api *fake_cuda_api(void)
{
    static const struct fake_cuda_api api = {
        fake_cuda_launch_count,
        launch_get,
        set_launch_hook,
        api_context_state,
        api_context_current,
        api_context_id,
        api_context_device,
        api_context_sticky,
        api_context_capturing,
        api_stream_ordinal,
        api_each_allocation,
        api_chip_name,
        api_initialised,
        api_lock,
        api_unlock,
        api_one_at_a_time,
        set_module_hook,
        set_transfer_hook,
        graph_count,
        api_take,
        api_wait,
        &tool,
        set_device_hook,
        api_wait_for_kernels,
        api_context_busy,
        api_green_settled,
        api_refuse_green,
    };

    return &api;
}
