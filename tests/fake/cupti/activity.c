/*
 * Activity records of kernels, copies and memsets. Kernels of the fake driver take no time: a record says that one took
 * 100 ns and 1 ns a block, a transfer 50 ns. What has not fit before in its stream begins when that is free.
 *
 * FAKE_ACTIVITY_BYTES=n     size of the buffers that are filled, if not all of what is given
 * FAKE_ACTIVITY_DROPS=n     that many records are said to have been dropped, once
 */

/* A record of any kind, with CUPTI's parts. */
union noted {
    CUpti_Activity head;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemset4 set;
};

static CUpti_BuffersCallbackRequestFunc request_buffer;
static CUpti_BuffersCallbackCompleteFunc complete_buffer;
static bool kinds_on[CUPTI_ACTIVITY_KIND_COUNT];
static union noted *noted;
static size_t n_noted, cap_noted;

enum { KERNEL_NS = 100, BLOCK_NS = 1, TRANSFER_NS = 50, STREAMS = 64 };

static uint64_t activity_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns when an activity of a stream starts that lasts so long. */
static uint64_t begin_in_stream(uint64_t stream, uint64_t takes)
{
    static uint64_t free_at[STREAMS];
    uint64_t now = activity_now(), *end = &free_at[stream % STREAMS], start = now > *end ? now : *end;

    *end = start + takes;
    return start;
}

static uint64_t graphs_before;

static void take_into_use(void)
{
    if (!in_use && fake_driver())
        graphs_before = fake_driver()->graph_count();
    in_use = true;
}

/* Stands in for the driver's unpublished choice: the smallest of these that holds a block, and at least 32 KiB. */
static uint32_t shared_config(const struct fake_launch *launch)
{
    static const uint32_t sizes[] = {32768, 65536, 102400, 135168, 167936, 199680, 233472};
    uint32_t need = launch->shared_bytes + launch->static_shared_bytes + 1024;
    size_t i = 0;

    while (i + 1 < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] < need)
        i++;
    return sizes[i];
}

/* Like CUPTI 13.0: once it is in use and a graph was instantiated, plain launches are reported with the value of the
 * last launch recorded before that, or 0. */
static uint32_t recorded_config(const struct fake_launch *launch)
{
    static uint32_t last;

    if (launch->from_graph)
        return shared_config(launch);
    if (fake_driver()->graph_count() == graphs_before)
        last = shared_config(launch);
    return last;
}

static union noted *new_record(CUpti_ActivityKind kind)
{
    union noted *n;

    if (n_noted == cap_noted) {
        cap_noted = cap_noted ? 2 * cap_noted : 256;
        noted = fake_realloc(noted, cap_noted * sizeof(*noted));
    }
    if (!noted)
        fake_misuse("out of host memory");
    n = &noted[n_noted++];
    memset(n, 0, sizeof(*n));
    n->head.kind = kind;
    return n;
}

static void note_activity(const struct fake_launch *launch)
{
    CUpti_ActivityKernel10 *k;

    if (!kinds_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
        return;
    k = &new_record(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)->kernel;
    k->name = launch->name;
    k->gridX = launch->grid[0], k->gridY = launch->grid[1], k->gridZ = launch->grid[2];
    k->blockX = launch->block[0], k->blockY = launch->block[1], k->blockZ = launch->block[2];
    k->staticSharedMemory = launch->static_shared_bytes;
    k->dynamicSharedMemory = launch->shared_bytes;
    k->sharedMemoryExecuted = recorded_config(launch);
    k->contextId = (uint32_t)launch->ctx_id;
    k->deviceId = (uint32_t)fake_driver()->context_device(launch->ctx);
    k->streamId = (uint32_t)launch->stream_id;
    k->correlationId = (uint32_t)launch->call;
    k->graphId = launch->from_graph ? 1 : 0;
    k->start = begin_in_stream(launch->stream_id, KERNEL_NS + BLOCK_NS * launch->grid[0]);
    k->end = k->start + KERNEL_NS + BLOCK_NS * launch->grid[0];
}

/* Notes the kernel that CUPTI itself launches after each counted range. */
static void note_own_kernel(const struct fake_launch *launch)
{
    struct fake_launch own = *launch;

    own.name = "WaitNs";
    own.shared_bytes = own.static_shared_bytes = 0;
    for (int i = 0; i < 3; i++)
        own.grid[i] = own.block[i] = 1;
    note_activity(&own);
}

static void note_transfer(const struct fake_transfer *t)
{
    LOCKED();

    if (!t->direction && kinds_on[CUPTI_ACTIVITY_KIND_MEMSET]) {
        CUpti_ActivityMemset4 *s = &new_record(CUPTI_ACTIVITY_KIND_MEMSET)->set;

        s->bytes = t->bytes;
        s->deviceId = (uint32_t)t->device, s->contextId = (uint32_t)t->ctx_id, s->streamId = (uint32_t)t->stream_id;
        s->correlationId = (uint32_t)t->call;
        s->graphId = t->from_graph ? 1 : 0;
        s->start = begin_in_stream(t->stream_id, TRANSFER_NS);
        s->end = s->start + TRANSFER_NS;
    } else if (t->direction && kinds_on[CUPTI_ACTIVITY_KIND_MEMCPY]) {
        CUpti_ActivityMemcpy6 *c = &new_record(CUPTI_ACTIVITY_KIND_MEMCPY)->copy;

        c->copyKind = (uint8_t)t->direction;
        c->bytes = t->bytes;
        c->deviceId = (uint32_t)t->device, c->contextId = (uint32_t)t->ctx_id, c->streamId = (uint32_t)t->stream_id;
        c->correlationId = (uint32_t)t->call;
        c->graphId = t->from_graph ? 1 : 0;
        c->start = begin_in_stream(t->stream_id, TRANSFER_NS);
        c->end = c->start + TRANSFER_NS;
    }
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete)
{
    COUNT_CALL();
    LOCKED();
    need_whole(__func__);
    if (!request || !complete)
        return CUPTI_ERROR_INVALID_PARAMETER;
    take_into_use();
    request_buffer = request;
    complete_buffer = complete;
    return CUPTI_SUCCESS;
}

static bool is_known(CUpti_ActivityKind kind)
{
    return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_MEMCPY ||
           kind == CUPTI_ACTIVITY_KIND_MEMCPY2 || kind == CUPTI_ACTIVITY_KIND_MEMSET;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    COUNT_CALL();
    LOCKED();
    need_whole(__func__);
    if (!is_known(kind))
        return CUPTI_ERROR_INVALID_KIND;
    if (!fake_driver())
        return CUPTI_ERROR_NOT_INITIALIZED;
    fake_driver()->set_launch_hook(on_launch, NULL);
    fake_driver()->set_transfer_hook(note_transfer);
    kinds_on[kind] = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    COUNT_CALL();
    LOCKED();
    need_whole(__func__);
    if (!is_known(kind))
        return CUPTI_ERROR_INVALID_KIND;
    kinds_on[kind] = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream_id, size_t *dropped)
{
    static bool told;
    const char *text = getenv("FAKE_ACTIVITY_DROPS");

    COUNT_CALL();
    (void)context;
    (void)stream_id;
    *dropped = text && !told ? (size_t)atol(text) : 0;
    told = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    const char *text = getenv("FAKE_ACTIVITY_BYTES");
    size_t done = 0;

    COUNT_CALL();
    LOCKED();
    need_whole(__func__);
    (void)flag;
    while (request_buffer && done < n_noted) {
        size_t size = 0, max_records = 0, n = n_noted - done;
        uint8_t *buffer = NULL;

        request_buffer(&buffer, &size, &max_records);
        if (!buffer || size < sizeof(*noted))
            return CUPTI_ERROR_OUT_OF_MEMORY;
        if (text && (size_t)atol(text) < size)
            size = (size_t)atol(text);
        if (n > size / sizeof(*noted)) /* as many buffers as needed */
            n = size / sizeof(*noted);
        if (max_records && n > max_records)
            n = max_records;
        memcpy(buffer, noted + done, n * sizeof(*noted));
        done += n;
        complete_buffer(NULL, 0, buffer, size, n * sizeof(*noted));
    }
    n_noted = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    uint8_t *next;

    COUNT_CALL();
    next = *record ? (uint8_t *)*record + sizeof(noted[0]) : buffer;
    if (next + sizeof(noted[0]) > buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}
