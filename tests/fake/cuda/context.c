/* Contexts: the primary one of each device, created ones, and the stack of each thread. */
#include "core.h"

#define MAX_DEVICES 16
static struct context *primaries[MAX_DEVICES];

static struct context *new_context(int device, bool primary, unsigned int flags)
{
    struct context *ctx = make(sizeof(*ctx), KIND_CONTEXT, NULL);

    ctx->id = next_context_id++;
    ctx->device = device;
    ctx->primary = primary;
    ctx->sms = the_chip()->sms;
    ctx->flags = flags;
    ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
    ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7340032;
    ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608;
    return ctx;
}

static void release_memory(struct object *object);
static void wait_for_context(void);

/* Everything made in a context ends with it; a primary context keeps its handle and may come back. */
static void end_context(struct context *ctx)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (struct object *o = objects[kind]; o; o = o->next) {
            if (o->ctx != ctx || o->dead)
                continue;
            if (kind == KIND_ALLOCATION)
                release_memory(o);
            o->dead = true;
        }
    ctx->head.dead = true;
    ctx->sticky = CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev)
{
    ENTER_DEVICE(dev);
    if (dev >= MAX_DEVICES)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!primaries[dev])
        primaries[dev] = new_context(dev, true, 0);
    if (primaries[dev]->head.dead)
        primaries[dev]->id = next_context_id++;
    primaries[dev]->head.dead = false;
    primaries[dev]->retained++;
    *out = (CUcontext)primaries[dev];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    ENTER_DEVICE(dev);
    if (!primaries[dev] || !primaries[dev]->retained)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!--primaries[dev]->retained)
        end_context(primaries[dev]);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    ENTER_DEVICE(dev);
    if (primaries[dev])
        end_context(primaries[dev]);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    ENTER_DEVICE(dev);
    if (!primaries[dev]) {
        primaries[dev] = new_context(dev, true, flags);
        primaries[dev]->head.dead = true;
    }
    primaries[dev]->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    ENTER_DEVICE(dev);
    *flags = primaries[dev] ? primaries[dev]->flags : 0;
    *active = primaries[dev] && !primaries[dev]->head.dead;
    return CUDA_SUCCESS;
}

static CUresult push(struct context *ctx)
{
    if (context_depth == CONTEXT_STACK)
        fake_misuse("more than %d contexts pushed by one thread", CONTEXT_STACK);
    context_stack[context_depth++] = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
    struct context *ctx;

    ENTER_DEVICE(dev);
    if (!out || (params && params->numExecAffinityParams))
        return CUDA_ERROR_INVALID_VALUE;
    ctx = new_context(dev, false, flags);
    *out = (CUcontext)ctx;
    return push(ctx);
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice dev)
{
    return cuCtxCreate_v4(out, NULL, flags, dev);
}
__typeof__(cuCtxCreate_v2) cuCtxCreate __attribute__((alias("cuCtxCreate_v2")));

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *params, int n_params, unsigned int flags, CUdevice dev)
{
    CUctxCreateParams create = {params, n_params, NULL};

    return cuCtxCreate_v4(out, &create, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext handle)
{
    ENTER(NEED_INIT);
    TAKE(context, ctx, KIND_CONTEXT, handle);
    if (ctx->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    end_context(ctx);
    if (current() == ctx)
        context_depth--;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
    ENTER(NEED_INIT);
    TAKE(context, ctx, KIND_CONTEXT, handle);
    return push(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    ENTER(NEED_INIT);
    if (!context_depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_depth--;
    if (out)
        *out = (CUcontext)context_stack[context_depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle)
{
    ENTER(NEED_INIT);
    if (!handle) {
        context_depth -= context_depth > 0;
        return CUDA_SUCCESS;
    }
    TAKE(context, ctx, KIND_CONTEXT, handle);
    if (!context_depth)
        return push(ctx);
    context_stack[context_depth - 1] = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    ENTER(NEED_INIT);
    *out = (CUcontext)current();
    return CUDA_SUCCESS;
}

static void (*_Atomic device_hook)(int site);
static const void *_Atomic tool;

static void set_device_hook(void (*fn)(int site))
{
    device_hook = fn;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
    void (*hook)(int) = device_hook;
    ENTER(NEED_CONTEXT);
    if (hook)
        hook(0);
    *dev = current()->device;
    if (hook)
        hook(1);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext handle)
{
    ENTER(NEED_INIT);
    TAKE(context, ctx, KIND_CONTEXT, handle ? handle : (CUcontext)current());
    *dev = ctx->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    ENTER(NEED_CONTEXT);
    *flags = current()->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    ENTER(NEED_INIT);
    TAKE(context, ctx, KIND_CONTEXT, handle ? handle : (CUcontext)current());
    *id = ctx->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
    ENTER(NEED_INIT);
    TAKE(context, ctx, KIND_CONTEXT, handle ? handle : (CUcontext)current());
    (void)ctx;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    ENTER(NEED_CONTEXT);
    if ((unsigned int)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = current()->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    ENTER(NEED_CONTEXT);
    if ((unsigned int)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    current()->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    ENTER(NEED_CONTEXT);
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource *resource, CUdevResourceType type)
{
    ENTER(NEED_INIT);
    TAKE(context, ctx, KIND_CONTEXT, handle);
    return sm_resource(resource, type, ctx->sms);
}

static bool green_refused;

static void api_refuse_green(void)
{
    green_refused = true;
}

/* Green contexts: contexts of a part of the SMs, whose work the primary context also waits for. On a real device memory
 * belongs to the primary context; here it belongs to the context that makes it. */
CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc part, CUdevice dev, unsigned int flags)
{
    struct context *ctx;

    ENTER_DEVICE(dev);
    if (!part || flags != CU_GREEN_CTX_DEFAULT_STREAM || dev >= MAX_DEVICES || !primaries[dev] ||
        primaries[dev]->head.dead)
        return CUDA_ERROR_INVALID_VALUE;
    if (green_refused)
        return CUDA_ERROR_NOT_SUPPORTED;
    ctx = new_context(dev, false, 0);
    ctx->green = true;
    ctx->sms = *(const unsigned int *)part;
    *out = (CUgreenCtx)ctx;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle)
{
    ENTER(NEED_INIT);
    TAKE(context, ctx, KIND_CONTEXT, (CUcontext)handle);
    end_context(ctx);
    return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx handle)
{
    ENTER(NEED_INIT);
    TAKE(context, ctx, KIND_CONTEXT, (CUcontext)handle);
    *out = (CUcontext)ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(NEED_CONTEXT);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

/* Capture forbids what it cannot record: the call fails and the captures it breaks are lost. */
static bool breaks_capture(struct context *ctx)
{
    bool broke = false;

    if (thread_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    for (struct object *o = objects[KIND_STREAM]; o; o = o->next) {
        struct stream *stream = (struct stream *)o;

        if (o->dead || o->ctx != ctx || stream->capture != CAPTURE_ACTIVE)
            continue;
        if (stream->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
            (stream->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && !pthread_equal(stream->capturer, pthread_self())))
            continue;
        stream->capture = CAPTURE_INVALIDATED;
        broke = true;
    }
    return broke;
}

#define ENTER_NOT_CAPTURING()                                                                                          \
    ENTER(NEED_CONTEXT);                                                                                               \
    if (breaks_capture(current()))                                                                                     \
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED

static void pool_settles(int device);

CUresult cuCtxSynchronize(void)
{
    ENTER(NEED_CONTEXT);
    for (struct object *o = objects[KIND_STREAM]; o; o = o->next)
        if (!o->dead && o->ctx == current() && ((struct stream *)o)->capture) {
            ((struct stream *)o)->capture = CAPTURE_INVALIDATED;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    wait_for_context();
    pool_settles(current()->device);
    return current()->sticky;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = thread_capture_mode;

    ENTER(NEED_INIT);
    thread_capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
