/* Launches: every entry point ends in launch(), which checks, copies the arguments, records and runs. */
#include "core.h"

#include <stdatomic.h>
#include <sys/mman.h>

#define LEGACY_ID     1
#define PER_THREAD_ID 2
#define LEGACY        ((CUstream)0x1)
#define PER_THREAD    ((CUstream)0x2)

static struct fake_launch *launches;
static uint64_t n_launches, cap_launches;
static fake_launch_fn launch_hook;
static void *launch_hook_data;

/* A capture that work in the legacy stream would depend on. */
static struct stream *caught_by_legacy(void)
{
    for (struct object *o = objects[KIND_STREAM]; o; o = o->next) {
        struct stream *stream = (struct stream *)o;

        if (!o->dead && o->ctx == current() && stream->capture == CAPTURE_ACTIVE &&
            !(stream->flags & CU_STREAM_NON_BLOCKING))
            return stream;
    }
    return NULL;
}

/* The stream that `handle` means in the flavour of the function that was called. */
static CUresult name_stream(CUstream handle, bool per_thread, struct stream_ref *ref, const char *caller)
{
    memset(ref, 0, sizeof(*ref));
    if (handle && handle != LEGACY && handle != PER_THREAD) {
        ref->stream = (struct stream *)live(handle, KIND_STREAM, caller);
        if (!ref->stream || ref->stream->head.ctx != current())
            return CUDA_ERROR_INVALID_HANDLE;
        ref->id = ref->stream->id;
        return CUDA_SUCCESS;
    }
    ref->per_thread = handle == PER_THREAD || (!handle && per_thread);
    ref->id = ref->per_thread ? PER_THREAD_ID : LEGACY_ID;
    return CUDA_SUCCESS;
}

/* The same for a stream that is used, which ends captures. */
static CUresult resolve_stream(CUstream handle, bool per_thread, struct stream_ref *ref, const char *caller)
{
    CUresult result = name_stream(handle, per_thread, ref, caller);
    struct stream *caught = NULL;

    if (result)
        return result;
    if (ref->stream && ref->stream->capture == CAPTURE_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!ref->stream && !ref->per_thread)
        caught = caught_by_legacy();
    if (!caught)
        return CUDA_SUCCESS;
    caught->capture = CAPTURE_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static struct graph *capturing(const struct stream_ref *ref)
{
    return ref->stream && ref->stream->capture == CAPTURE_ACTIVE ? ref->stream->graph : NULL;
}

static CUresult pack_extra(struct call *call, void **extra)
{
    const void *buffer = NULL;
    const size_t *size = NULL;

    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!buffer || !size || *size > MAX_ARG_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (*size < param_bytes(call->function->code))
        fake_misuse("kernel %s launched with %zu bytes of arguments instead of %zu", call->info.name, *size,
                    param_bytes(call->function->code));
    memcpy(call->bytes, buffer, *size);
    call->n_bytes = *size;
    return CUDA_SUCCESS;
}

static CUresult pack_arguments(struct call *call, void **params, void **extra)
{
    const struct kernel_code *code = call->function->code;

    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra)
        return pack_extra(call, extra);
    if (code->n_params > 0 && !params)
        fake_misuse("kernel %s launched without its arguments", code->name);
    for (int i = 0; i < code->n_params; i++) {
        if (!params[i])
            fake_misuse("kernel %s launched without argument %d", code->name, i);
        memcpy(call->bytes + param_offset(code, i), params[i], code->param_size[i]);
    }
    call->n_bytes = param_bytes(code);
    return CUDA_SUCCESS;
}

/* Returns false for an event that a launch cannot record. A destroyed one is misuse. */
static bool take_event(struct call *call, CUevent handle)
{
    struct event *event = (struct event *)live(handle, KIND_EVENT, call->info.api);

    if (!event || !(event->flags & CU_EVENT_DISABLE_TIMING) || call->n_events == 2)
        return false;
    call->events[call->n_events++] = event;
    return true;
}

/* Values that cuda.h does not list stand for attributes of a later CUDA; this driver knows none from UNKNOWN on. */
enum { UNKNOWN = 32 };

static bool is_accepted(struct call *call, const CUlaunchAttribute *attr)
{
    switch ((int)attr->id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        return take_event(call, attr->value.programmaticEvent.event);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return take_event(call, attr->value.launchCompletionEvent.event);
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return false; /* only of streams and of captures */
    default:
        return (int)attr->id < UNKNOWN;
    }
}

static CUresult take_attributes(struct call *call, const CUlaunchConfig *config)
{
    struct fake_launch *info = &call->info;

    info->n_attrs = config->numAttrs;
    for (unsigned int i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attr = &config->attrs[i];

        if (!is_accepted(call, attr))
            return CUDA_ERROR_INVALID_VALUE;
        if (attr->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            memcpy(info->cluster, &attr->value.clusterDim, sizeof(info->cluster));
        else if (attr->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            info->cooperative = attr->value.cooperative;
        else if (attr->id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            info->priority = attr->value.priority;
        else if (attr->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            info->serialization = attr->value.programmaticStreamSerializationAllowed;
    }
    return CUDA_SUCCESS;
}

static CUresult check_shape(const struct call *call)
{
    const struct fake_launch *info = &call->info;
    uint64_t threads = (uint64_t)info->block[0] * info->block[1] * info->block[2];
    uint64_t blocks = (uint64_t)info->grid[0] * info->grid[1] * info->grid[2];

    if (!threads || !blocks || threads > 1024 || info->block[2] > 64 || info->grid[1] > 65535 || info->grid[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > (uint64_t)call->function->code->max_threads)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if ((int64_t)info->shared_bytes > call->function->set.max_dynamic_shared)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        if (info->cluster[i] && (!the_chip()->clusters || info->grid[i] % info->cluster[i]))
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (info->cooperative &&
        blocks > (uint64_t)blocks_per_sm(call->function, (int)threads, info->shared_bytes) * the_chip()->sms)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

static CUresult prepare(struct call *call, CUfunction f, const CUlaunchConfig *config, void **params, void **extra,
                        const char *api)
{
    CUresult result;

    memset(call, 0, sizeof(*call));
    call->function = function_or_kernel(f, api);
    if (!call->function || call->function->head.ctx != current())
        return CUDA_ERROR_INVALID_HANDLE;
    call->info = (struct fake_launch){
        .name = call->function->code->name,
        .api = api,
        .ctx = (CUcontext)current(),
        .ctx_id = current()->id,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .shared_bytes = config->sharedMemBytes,
        .static_shared_bytes = call->function->code->shared_bytes,
        .cubin = &call->function->module->image->cubin,
    };
    result = take_attributes(call, config);
    if (!result)
        result = check_shape(call);
    if (!result)
        result = pack_arguments(call, params, extra);
    call->info.args_hash = fake_hash(FAKE_HASH_START, call->bytes, call->n_bytes);
    return result;
}

/* fake_hash by words, for much data. */
static uint64_t hash_data(uint64_t hash, const void *data, size_t size)
{
    size_t whole = size / sizeof(uint64_t);
    uint64_t word;

    for (size_t i = 0; i < whole; i++) {
        memcpy(&word, (const char *)data + i * sizeof(word), sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return fake_hash(hash, (const char *)data + whole * sizeof(word), size % sizeof(word));
}

/* Returns true if an argument is a surface or texture, whose arrays have then been checked. */
static bool look_at_view(struct fake_launch *info, uintptr_t word)
{
    const struct view *view = view_of(word, info->name);

    for (unsigned int i = 0; launch_hook && view && i < view->n; i++) {
        const struct fake_allocation *a = &view->levels[i]->memory->info;

        info->data_hash = hash_data(info->data_hash, a->base, a->size);
        info->data_bytes += a->size;
    }
    return view;
}

/* Searches arguments for pointers: what they point to must be alive, and its content is what replay restores, except
 * for memory of graphs, which has no content when allocated. False: the kernel accesses nothing valid. */
static bool look_at_memory(struct call *call)
{
    enum { MOST = 65536 };
    struct fake_launch *info = &call->info;
    unsigned char *numbers = __builtin_alloca(call->n_bytes); /* MAX_ARG_BYTES are much for a small stack */
    uintptr_t word;
    size_t leading = 0;

    memcpy(numbers, call->bytes, call->n_bytes);
    /* Their queue differs from execution to execution. */
    bool in_any_order = !strcmp(info->name, "enqueue") || !strcmp(info->name, "serve");

    info->data_hash = FAKE_HASH_START;
    info->data_bytes = 0;
    /* Text that kernels print may go through host memory, too. */
    info->reaches_host = !strcmp(info->name, "ring_put") || !strcmp(info->name, "print_line");
    for (size_t i = 0; i + sizeof(word) <= call->n_bytes; i += sizeof(word)) {
        const struct allocation *a;
        size_t size;

        memcpy(&word, call->bytes + i, sizeof(word));
        if (look_at_view(info, word))
            memset(numbers + i, 0, sizeof(word));
        a = allocation_of(word);
        if (!a)
            continue;
        if (a->head.dead)
            fake_misuse("kernel %s was given a pointer into freed memory", info->name);
        if (faults(a))
            return false;
        info->reaches_host |= a->info.pinned_host;
        memset(numbers + i, 0, sizeof(word));
        leading += leading == i ? sizeof(word) : 0;
        size = (uintptr_t)a->info.base + a->info.size - word;
        size = size > MOST ? MOST : size;
        if (launch_hook && !a->info.sparse && !a->of_graph && !in_any_order) {
            info->data_hash = hash_data(info->data_hash, (const void *)word, size);
            info->data_bytes += size;
        }
    }
    info->numbers_hash = fake_hash(FAKE_HASH_START, numbers, call->n_bytes);
    info->number = 0;
    if (leading + sizeof(info->number) <= call->n_bytes)
        memcpy(&info->number, call->bytes + leading, sizeof(info->number));
    return true;
}

static void run(struct call *call)
{
    struct fake_launch *info = &call->info;

    if (!look_at_memory(call))
        return;
    info->call = running;
    info->ordinal = n_launches;
    if (n_launches == cap_launches) {
        cap_launches = cap_launches ? 2 * cap_launches : 256;
        launches = fake_realloc(launches, cap_launches * sizeof(*launches));
    }
    if (!launches)
        fake_misuse("out of host memory");
    launches[n_launches++] = *info;
    fake_log("launch pid=%d ctx=%llu stream=%llu grid=%u,%u,%u block=%u,%u,%u shared=%u cluster=%u,%u,%u coop=%d "
             "priority=%d serialization=%d attrs=%u args=%016llx api=%s name=%s\n",
             (int)getpid(), (unsigned long long)info->ctx_id, (unsigned long long)info->stream_id, info->grid[0],
             info->grid[1], info->grid[2], info->block[0], info->block[1], info->block[2], info->shared_bytes,
             info->cluster[0], info->cluster[1], info->cluster[2], info->cooperative, info->priority,
             info->serialization, info->n_attrs, (unsigned long long)info->args_hash, info->api, info->name);
    if (call->function->code->limit)
        fake_log("limited pid=%d name=%s limit=%d registers=%d shared=%u most=%d carveout=%d\n", (int)getpid(),
                 info->name, call->function->code->limit, call->function->code->regs, info->shared_bytes,
                 call->function->set.max_dynamic_shared, call->function->set.carveout);
    if (launch_hook)
        launch_hook(info, launch_hook_data);
    call->function->loaded = true;
    if (call->function->code->run)
        call->function->code->run(call);
}

static struct node *add_node(struct graph *graph, CUgraphNodeType type, struct node *const *deps, size_t n_deps);
static struct node *last_node(struct graph *graph);

/* Records a launch into a capturing stream, after what was recorded before. */
static void capture_call(struct graph *graph, const struct call *call)
{
    struct node *last = last_node(graph);
    struct node *node = add_node(graph, CU_GRAPH_NODE_TYPE_KERNEL, &last, last != NULL);

    node->call = malloc(sizeof(*call));
    if (!node->call)
        fake_misuse("out of host memory");
    *node->call = *call;
}

static bool call_ready(struct work *w)
{
    return w->call.function->code->ready(&w->call, now_ms() - w->since);
}

static void run_call(struct work *w)
{
    run(&w->call);
}

static void submit_call(struct work *w)
{
    const struct call *call = &w->call;
    w->run = run_call;
    w->ready = call->function->code->ready ? call_ready : NULL;
    uint64_t serial = submit(w);

    while (((struct context *)call->info.ctx)->serial && is_put_off(serial)) {
        rest();
        run_what_can();
    }
    for (size_t i = 0; i < call->n_events; i++) {
        call->events[i]->recorded = true;
        call->events[i]->work = serial;
    }
}

/* Records of launches that are not in use: a record is too large for a small stack, and a signal's handler that exits
 * must not find the allocator's lock taken by the driver. */
enum { SPARES = 16 };
static struct work *_Atomic spares[SPARES];

static struct work *take_record(void)
{
    struct work *w = NULL;

    for (int i = 0; i < SPARES && !w; i++)
        w = atomic_exchange(&spares[i], NULL);
    if (!w)
        w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w == MAP_FAILED)
        abort();
    memset(w, 0, sizeof(*w));
    return w;
}

static void give_record(struct work *w)
{
    for (int i = 0; i < SPARES && w; i++) {
        struct work *none = NULL;
        if (atomic_compare_exchange_strong(&spares[i], &none, w))
            w = NULL;
    }
    if (w)
        munmap(w, sizeof(*w));
}

static CUresult launch(CUfunction f, const CUlaunchConfig *config, bool per_thread, void **params, void **extra,
                       const char *api)
{
    struct work *w = take_record();
    CUresult result = resolve_stream(config->hStream, per_thread, &w->ref, api);

    if (!result)
        result = prepare(&w->call, f, config, params, extra, api);
    if (!result) {
        w->call.info.stream_id = w->ref.id;
        if (capturing(&w->ref))
            capture_call(capturing(&w->ref), &w->call);
        else
            submit_call(w);
    }
    give_record(w);
    return result;
}

#define ENTER_LAUNCH()                                                                                                 \
    if (current() && current()->head.dead)                                                                             \
        fake_misuse("%s: launch after the current context was destroyed", __func__);                                   \
    ENTER(NEED_CONTEXT)

#define LAUNCH_KERNEL(name, per_thread)                                                                                \
    CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,   \
                  unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra)                  \
    {                                                                                                                  \
        const CUlaunchConfig config = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};                               \
                                                                                                                       \
        ENTER_LAUNCH();                                                                                                \
        return launch(f, &config, per_thread, params, extra, __func__);                                                \
    }
LAUNCH_KERNEL(cuLaunchKernel, false)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)

#define LAUNCH_KERNEL_EX(name, per_thread)                                                                             \
    CUresult name(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)                             \
    {                                                                                                                  \
        ENTER_LAUNCH();                                                                                                \
        if (!config || (config->numAttrs && !config->attrs))                                                           \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        return launch(f, config, per_thread, params, extra, __func__);                                                 \
    }
LAUNCH_KERNEL_EX(cuLaunchKernelEx, false)
LAUNCH_KERNEL_EX(cuLaunchKernelEx_ptsz, true)

static CUresult launch_cooperative(CUfunction f, CUlaunchConfig config, bool per_thread, void **params, const char *api)
{
    CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};

    config.attrs = &cooperative;
    config.numAttrs = 1;
    return launch(f, &config, per_thread, params, NULL, api);
}

#define LAUNCH_COOPERATIVE(name, per_thread)                                                                           \
    CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,   \
                  unsigned int bz, unsigned int shared, CUstream stream, void **params)                                \
    {                                                                                                                  \
        ENTER_LAUNCH();                                                                                                \
        return launch_cooperative(f, (CUlaunchConfig){gx, gy, gz, bx, by, bz, shared, stream, NULL, 0}, per_thread,    \
                                  params, __func__);                                                                   \
    }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

/* Each part runs in the context of its stream, which must therefore be a created one. */
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int n, unsigned int flags)
{
    CUresult result = CUDA_SUCCESS;

    ENTER_LAUNCH();
    (void)flags;
    for (unsigned int i = 0; i < n && !result; i++) {
        const CUDA_LAUNCH_PARAMS *p = &list[i];

        TAKE(stream, stream, KIND_STREAM, p->hStream);
        push(stream->head.ctx);
        result = launch_cooperative(p->function,
                                    (CUlaunchConfig){p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY,
                                                     p->blockDimZ, p->sharedMemBytes, p->hStream, NULL, 0},
                                    false, p->kernelParams, __func__);
        context_depth--;
    }
    return result;
}

CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    f->block[0] = x, f->block[1] = y, f->block[2] = z;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(CUfunction handle, unsigned int bytes)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    f->shared_bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult cuParamSetSize(CUfunction handle, unsigned int bytes)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    if (bytes > sizeof(f->bytes))
        return CUDA_ERROR_INVALID_VALUE;
    f->n_bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult cuParamSetv(CUfunction handle, int offset, void *data, unsigned int bytes)
{
    ENTER(NEED_CONTEXT);
    TAKE(function, f, KIND_FUNCTION, handle);
    if (offset < 0 || offset + bytes > sizeof(f->bytes))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(f->bytes + offset, data, bytes);
    return CUDA_SUCCESS;
}

CUresult cuParamSeti(CUfunction handle, int offset, unsigned int value)
{
    return cuParamSetv(handle, offset, &value, sizeof(value));
}

CUresult cuParamSetf(CUfunction handle, int offset, float value)
{
    return cuParamSetv(handle, offset, &value, sizeof(value));
}

static CUresult launch_grid(CUfunction handle, int width, int height, CUstream stream, const char *api)
{
    struct function *f = (struct function *)live(handle, KIND_FUNCTION, api);
    CUlaunchConfig config = {width, height, 1, 1, 1, 1, 0, stream, NULL, 0};
    size_t size;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    config.blockDimX = f->block[0], config.blockDimY = f->block[1], config.blockDimZ = f->block[2];
    config.sharedMemBytes = f->shared_bytes;
    extra[1] = f->bytes;
    size = f->n_bytes;
    return launch(handle, &config, false, NULL, extra, api);
}

CUresult cuLaunch(CUfunction f)
{
    ENTER_LAUNCH();
    return launch_grid(f, 1, 1, NULL, __func__);
}

CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
    ENTER_LAUNCH();
    return launch_grid(f, width, height, NULL, __func__);
}

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
    ENTER_LAUNCH();
    return launch_grid(f, width, height, stream, __func__);
}

uint64_t fake_cuda_launch_count(void)
{
    return n_launches;
}

static int launch_get(uint64_t index, struct fake_launch *out)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    if (index >= n_launches)
        return -1;
    *out = launches[index];
    return 0;
}

/* A kernel that the driver runs for a call other than a launch: not a launch of the program, but the counters see
 * it. */
static void show_driver_kernel(const char *name)
{
    const struct fake_launch launch = {.name = name,
                                       .api = "",
                                       .ctx = (CUcontext)current(),
                                       .ctx_id = current()->id,
                                       .grid = {1, 1, 1},
                                       .block = {1, 1, 1},
                                       .cluster = {1, 1, 1}};

    if (launch_hook)
        launch_hook(&launch, launch_hook_data);
}

static void set_launch_hook(fake_launch_fn fn, void *data)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    launch_hook = fn;
    launch_hook_data = data;
}
