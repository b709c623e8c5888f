/* LINK: -lcuda -lpthread */
/*
 * Random calls of the driver: a program that is right whatever is drawn. Work on a piece of memory waits for what was
 * done with it before. All memory is written before it is read, and nothing is used when it is gone. Each step prints
 * what its calls returned, and a digest of all that was read back; launches depend on it.
 *
 * Arguments: the seed; how many steps; and, to find the steps that matter, the numbers of the only ones to make. Each
 * step draws from the seed and its own number, so that the others stay what they are.
 */
#include <stdbool.h>

#include "linked.h"

enum { HOST = -1, ANY = -2 }; /* in the place of a stream: nothing is under way; whoever */
enum { SLOTS = 6, LEGACY = 0, PER_THREAD = 1, OWN = 2, EVENTS = 6, BUFFERS = 14, GRAPHS = 3, NODES = 8, PLACES = 2 };
enum { MOST_INTS = 40000, GRANULE = 2 << 20, QUEUE_INTS = 64, AHEAD = 16 };

enum kind { PLAIN, PITCHED, POOL, MANAGED, MAPPED, PINNED, REGISTERED, OF_MODULE, KINDS };
enum use { INTS, CURSOR, QUEUE, HEAP }; /* only INTS are read back, and written by anything */

struct buffer {
    CUdeviceptr at;
    int *host; /* NULL: none */
    int n;     /* int; 0: this one is free */
    enum kind kind;
    enum use use;
    int owner; /* the stream that has used it last, HOST or ANY */
    int held;  /* by graphs */
    CUmemGenericAllocationHandle handle;
    CUdeviceptr alias; /* where the memory is mapped, too */
};

struct graph {
    CUgraphExec exec;
    CUgraph graph;
    CUgraphNode kernel; /* NULL: none */
    CUDA_KERNEL_NODE_PARAMS p;
    struct buffer *uses[NODES];
    int n_uses;
};

struct place {
    CUcontext ctx;
    CUdevice device;
    bool created;
    CUmodule module, extra;
    CUlibrary library;
    CUkernel of_library;
    CUstream streams[SLOTS];
    bool lives[SLOTS], apart[SLOTS]; /* apart: does not wait for the legacy stream */
    CUevent events[EVENTS];
    bool recorded[EVENTS], timed[EVENTS];
    struct buffer buffers[BUFFERS];
    struct graph graphs[GRAPHS];
    CUtexObject texture; /* 0: none; of `seen`, which it holds */
    struct buffer *seen;
    bool late; /* a kernel that takes its time may be under way */
};

static struct place places[PLACES], *here;
static int n_places, step;
static uint64_t state, seed, digest = 0xcbf29ce484222325u;
static int last_read;
static unsigned traits;

static const char image[] =
    "FAKEMOD increment _Z9incrementPii _ZN5tests9incrementIiLi4EEEvPT_i atomic_count append axpy_inplace scale_struct "
    "late_increment set_flag enqueue serve gather wide_only heap_swap read_blocks launching_increment tiny_increment "
    "ncclDevKernel_increment bounded_increment wide_increment print_line fail texture_add global:counters:2048";
static const char extra_image[] = "FAKEMOD by_pointer add_constant const:five:4 global:more:4096";

/* ---- what is drawn, and said ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* 0 to n - 1. */
static int draw(int n)
{
    state += 0x9e3779b97f4a7c15u;
    return (int)(mix(state) >> 33) % n;
}

static bool one_of(int n)
{
    return draw(n) == 0;
}

static CUresult said(const char *what, CUresult rc)
{
    printf(" %s", what);
    if (rc)
        printf("=%d", (int)rc);
    return rc;
}
#define SAY(call) said(first_word(#call), call)

static const char *first_word(const char *call)
{
    static char word[64];

    snprintf(word, sizeof(word), "%.*s", (int)strcspn(call, "("), call);
    return word;
}

static void digest_of(const void *data, size_t bytes)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ p[i]) * 0x100000001b3u;
    memcpy(&last_read, data, sizeof(last_read));
}

/* ---- streams, and who waits for whom ---- */

static int any_slot(void)
{
    int slot;

    do
        slot = draw(SLOTS);
    while (!here->lives[slot]);
    return slot;
}

static void all_done(void)
{
    SAY(cuCtxSynchronize());
    for (int i = 0; i < BUFFERS; i++)
        here->buffers[i].owner = HOST;
    here->late = false;
}

static CUevent event_of(int i)
{
    static const unsigned flags[] = {CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING, CU_EVENT_BLOCKING_SYNC};
    int kind = draw(3);

    if (here->events[i] && one_of(8)) {
        SAY(cuEventDestroy(here->events[i]));
        here->events[i] = NULL;
    }
    if (!here->events[i]) {
        MUST(cuEventCreate(&here->events[i], flags[kind]));
        here->timed[i] = kind != 1;
        here->recorded[i] = false;
    }
    return here->events[i];
}

static CUevent record(int slot)
{
    int i = draw(EVENTS);
    CUevent event = event_of(i);

    here->recorded[i] |= !SAY(cuEventRecord(event, here->streams[slot]));
    return event;
}

/* How often it is asked is a matter of time. */
static void poll_stream(int slot)
{
    CUresult rc;

    do
        rc = cuStreamQuery(here->streams[slot]);
    while (rc == CUDA_ERROR_NOT_READY);
    said("cuStreamQuery", rc);
}

static void poll_event(CUevent event)
{
    CUresult rc;

    do
        rc = cuEventQuery(event);
    while (rc == CUDA_ERROR_NOT_READY);
    said("cuEventQuery", rc);
}

static void host_waits(int slot)
{
    switch (slot == ANY ? 0 : draw(5)) {
    case 0:
        all_done();
        return;
    case 1:
        poll_stream(slot);
        break;
    case 2:
        SAY(cuEventSynchronize(record(slot)));
        break;
    case 3:
        poll_event(record(slot));
        break;
    default:
        SAY(cuStreamSynchronize(here->streams[slot]));
    }
    for (int i = 0; i < BUFFERS; i++)
        if (here->buffers[i].owner == slot)
            here->buffers[i].owner = HOST;
}

/* What is done in `slot` next, or by the host, comes behind all that was done with the buffer. */
static void take(struct buffer *b, int slot)
{
    bool one_is_legacy = slot == LEGACY || b->owner == LEGACY;

    if (b->owner != HOST && b->owner != slot) {
        if (slot < 0 || b->owner < 0)
            host_waits(b->owner);
        else if (one_is_legacy && !here->apart[slot] && !here->apart[b->owner] && one_of(2))
            ; /* the driver sees to it */
        else if (one_of(3))
            host_waits(b->owner);
        else
            SAY(cuStreamWaitEvent(here->streams[slot], record(b->owner), 0));
    }
    b->owner = slot;
}

/* The second wait may end all that is under way, but not what comes next. */
static void take_both(struct buffer *a, struct buffer *b, int slot)
{
    take(a, slot);
    take(b, slot);
    a->owner = slot;
}

/* ---- memory ---- */

/* NULL: there is none. */
static struct buffer *any_buffer(enum use use)
{
    int first = draw(BUFFERS);

    for (int i = 0; i < BUFFERS; i++) {
        struct buffer *b = &here->buffers[(first + i) % BUFFERS];

        if (b->n && b->use == use)
            return b;
    }
    return NULL;
}

static struct buffer *another(const struct buffer *b)
{
    struct buffer *other = any_buffer(INTS);

    return other == b ? NULL : other;
}

static void increment(void);

/* What comes between the calls that map memory, which is not to be used yet. */
static void between(struct buffer *b)
{
    int n = b->n;

    b->n = 0;
    if (one_of(2))
        increment();
    b->n = n;
}

static CUdeviceptr map_somewhere(struct buffer *b)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, here->device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr at;

    MUST(cuMemAddressReserve(&at, GRANULE, 0, 0, 0));
    SAY(cuMemMap(at, GRANULE, 0, b->handle, 0));
    between(b);
    SAY(cuMemSetAccess(at, GRANULE, &access, 1));
    return at;
}

static CUresult map(struct buffer *b)
{
    const CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = here->device}};
    CUresult rc;

    between(b);
    rc = cuMemCreate(&b->handle, GRANULE, &what, 0);
    if (rc)
        return rc;
    b->at = map_somewhere(b);
    b->alias = 0;
    if (one_of(4)) { /* the one that is used shows what is done through the other */
        b->alias = b->at;
        SAY(cuMemsetD32Async(b->alias, draw(100), GRANULE / sizeof(int), here->streams[any_slot()]));
        all_done();
        b->at = map_somewhere(b);
    }
    if (one_of(2)) {
        SAY(cuMemRelease(b->handle));
        b->handle = 0;
    }
    return rc;
}

static CUresult make_memory(struct buffer *b, int slot)
{
    size_t bytes = (size_t)b->n * sizeof(int), pitch;

    switch (b->kind) {
    case PITCHED:
        return cuMemAllocPitch(&b->at, &pitch, bytes, 1, 4);
    case POOL:
        return cuMemAllocAsync(&b->at, bytes, here->streams[slot]);
    case MANAGED:
        return cuMemAllocManaged(&b->at, bytes, CU_MEM_ATTACH_GLOBAL);
    case MAPPED:
        return map(b);
    case PINNED:
        if (one_of(2))
            return cuMemAllocHost((void **)&b->host, bytes);
        return cuMemHostAlloc((void **)&b->host, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
    case REGISTERED:
        b->host = malloc(bytes);
        return cuMemHostRegister(b->host, bytes, CU_MEMHOSTREGISTER_DEVICEMAP);
    default:
        return cuMemAlloc(&b->at, bytes);
    }
}

/* From pinned memory an asynchronous copy reads when its turn comes. */
static void fill_from_host(struct buffer *b, int slot, int value)
{
    struct buffer *from = any_buffer(INTS);
    size_t bytes = (size_t)b->n * sizeof(int);
    int *host = malloc(bytes);

    for (int i = 0; i < b->n; i++)
        host[i] = value + i;
    if (one_of(3) && from && from->host && from != b && from->n >= b->n) {
        take(from, HOST);
        memcpy(from->host, host, bytes);
        take_both(b, from, slot);
        SAY(cuMemcpyHtoDAsync(b->at, from->host, bytes, here->streams[slot]));
    } else {
        SAY(cuMemcpyHtoDAsync(b->at, host, bytes, here->streams[slot]));
    }
    memset(host, 0x55, bytes); /* pageable memory was copied by the call */
    free(host);
}

static void fill(struct buffer *b)
{
    int slot = any_slot(), value = draw(100);

    take(b, slot);
    switch (b->use == INTS ? draw(3) : 0) {
    case 0:
        if (b->use != INTS)
            value = b->use == CURSOR ? draw(AHEAD) : 0;
        SAY(cuMemsetD32Async(b->at, value, b->n, here->streams[slot]));
        break;
    case 1:
        take(b, LEGACY);
        SAY(cuMemsetD8(b->at, value, (size_t)b->n * sizeof(int)));
        if (here->late)
            all_done();
        break;
    default:
        fill_from_host(b, slot, value);
    }
}

static void allocate(void)
{
    static const enum kind kinds[] = {PLAIN, PLAIN, PLAIN, POOL, POOL, PITCHED, MAPPED, PINNED, REGISTERED, MANAGED};
    struct buffer *b = here->buffers;
    int slot = any_slot();
    CUresult rc;

    while (b < here->buffers + BUFFERS && b->n)
        b++;
    if (b == here->buffers + BUFFERS)
        return;
    *b = (struct buffer){.kind = kinds[draw(traits & 1 ? 10 : traits & 2 ? 9 : 8)], .owner = HOST};
    b->n = 1 << draw(12) << 4;
    if (traits & 4 && one_of(3))
        b->n = (1 + draw(3)) << 19;
    b->n = b->n > MOST_INTS && !(traits & 4) ? MOST_INTS : b->n;
    b->use = b->kind > POOL ? INTS : one_of(8) ? CURSOR : one_of(12) ? QUEUE : one_of(12) && traits & 8 ? HEAP : INTS;
    if (b->use != INTS)
        b->n = QUEUE_INTS;
    if (b->kind == MAPPED)
        b->n = GRANULE / sizeof(int);
    rc = make_memory(b, slot);
    printf(" kind %d, %d", (int)b->kind, b->n);
    said("allocated", rc);
    if (rc) {
        if (b->kind == REGISTERED)
            free(b->host);
        b->n = 0;
        return;
    }
    if (b->kind == POOL)
        b->owner = slot;
    if (b->host)
        MUST(cuMemHostGetDevicePointer(&b->at, b->host, 0));
    if (b->kind != MAPPED || one_of(2)) /* what the fake maps is 0 */
        fill(b);
}

static CUresult unmap(struct buffer *b)
{
    SAY(cuMemUnmap(b->at, GRANULE));
    if (b->alias) {
        SAY(cuMemUnmap(b->alias, GRANULE));
        SAY(cuMemAddressFree(b->alias, GRANULE));
    }
    if (b->handle)
        SAY(cuMemRelease(b->handle));
    return cuMemAddressFree(b->at, GRANULE);
}

static CUresult give_back(struct buffer *b)
{
    CUresult rc;
    int slot = any_slot();

    switch (b->kind) {
    case PINNED:
        return cuMemFreeHost(b->host);
    case REGISTERED:
        take(b, HOST);
        rc = cuMemHostUnregister(b->host);
        free(b->host);
        return rc;
    case MAPPED:
        take(b, HOST);
        return unmap(b);
    case POOL:
        take(b, slot);
        if (here->late) /* the fake frees at once */
            all_done();
        return cuMemFreeAsync(b->at, here->streams[slot]);
    default:
        if (one_of(4))
            take(b, HOST);
        return cuMemFree(b->at);
    }
}

static void free_one(void)
{
    struct buffer *b = &here->buffers[draw(BUFFERS)];
    CUdeviceptr at = b->at;

    if (!b->n || b->held || b->kind == OF_MODULE)
        return;
    said("freed", give_back(b));
    if (one_of(4) && (b->kind == PLAIN || b->kind == POOL))
        said("twice", cuMemFree(at));
    b->n = 0;
}

/* Other memory at the same address. */
static void remap(void)
{
    struct buffer *b = any_buffer(INTS);

    if (!b || b->kind != MAPPED || b->held)
        return;
    take(b, HOST);
    SAY(unmap(b));
    b->handle = 0;
    if (said("mapped", map(b)))
        b->n = 0;
    else
        fill(b);
}

/* ---- copies ---- */

static void refill(void)
{
    struct buffer *b = any_buffer(one_of(4) ? CURSOR : INTS);

    if (b)
        fill(b);
}

/* `host` has what was read when this returns. */
static void read_into(struct buffer *b, int *host, int n)
{
    size_t bytes = (size_t)n * sizeof(int);
    int slot = any_slot();

    switch (draw(4)) {
    case 0:
        take(b, slot);
        SAY(cuMemcpyDtoHAsync(host, b->at, bytes, here->streams[slot]));
        take(b, HOST);
        break;
    case 1:
        take(b, LEGACY);
        SAY(cuMemcpy((CUdeviceptr)host, b->at, bytes));
        take(b, HOST);
        break;
    case 2:
        take(b, slot);
        SAY(cuMemcpyAsync((CUdeviceptr)host, b->at, bytes, here->streams[slot]));
        take(b, HOST);
        break;
    default:
        take(b, LEGACY);
        SAY(cuMemcpyDtoH(host, b->at, bytes));
        take(b, HOST);
    }
}

static void read_back(void)
{
    struct buffer *b = any_buffer(INTS);
    int *host, n;

    if (!b)
        return;
    n = one_of(3) ? b->n : b->n < 16 ? b->n : 16;
    if (b->host && one_of(2)) {
        take(b, HOST);
        digest_of(b->host, (size_t)n * sizeof(int));
        return;
    }
    host = calloc((size_t)n, sizeof(int));
    read_into(b, host, n);
    digest_of(host, (size_t)n * sizeof(int));
    free(host);
}

static void copy_rows(struct buffer *to, struct buffer *from, int n, int slot)
{
    CUDA_MEMCPY2D p = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = from->at,
                       .srcPitch = 64,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = to->at,
                       .dstPitch = 64,
                       .srcXInBytes = 4 * (size_t)draw(4),
                       .WidthInBytes = 32,
                       .Height = (size_t)(n < 1024 ? n : 1024) / 16};

    SAY(cuMemcpy2DAsync(&p, here->streams[slot]));
}

static void copy(void)
{
    struct buffer *to = any_buffer(INTS), *from = to ? another(to) : NULL;
    int slot = any_slot(), n;
    size_t bytes;

    if (!from)
        return;
    n = to->n < from->n ? to->n : from->n;
    bytes = sizeof(int) * (size_t)(n - draw(n / 2));
    take_both(to, from, slot);
    switch (draw(5)) {
    case 0:
        SAY(cuMemcpyDtoDAsync(to->at, from->at, bytes, here->streams[slot]));
        break;
    case 1:
        take_both(to, from, LEGACY);
        SAY(cuMemcpyDtoD(to->at, from->at, bytes));
        break;
    case 2:
        copy_rows(to, from, n, slot);
        break;
    case 3:
        if (from->host)
            SAY(cuMemcpyHtoDAsync(to->at, from->host, bytes, here->streams[slot]));
        else if (to->host)
            SAY(cuMemcpyDtoHAsync(to->host, from->at, bytes, here->streams[slot]));
        break;
    default:
        SAY(cuMemcpyAsync(to->at, from->at, bytes, here->streams[slot]));
    }
}

static void write_on_host(void)
{
    struct buffer *b = any_buffer(INTS);

    if (!b || !(b->host || b->kind == MANAGED))
        return;
    take(b, HOST);
    if (b->kind == MANAGED)
        all_done(); /* while a kernel runs the host may not touch it */
    ((int *)(b->host ? b->host : (void *)b->at))[draw(b->n)] += 1 + draw(9);
    printf(" written");
}

/* ---- launches ---- */

static CUfunction function(const char *name)
{
    CUfunction f;

    MUST(cuModuleGetFunction(&f, here->module, name));
    return f;
}

static void launch_of(CUfunction f, int blocks, int threads, int slot, void **params)
{
    CUlaunchAttribute priority = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1};
    CUlaunchConfig config = {blocks, 1, 1, threads, 1, 1, 0, here->streams[slot], &priority, 1};

    switch (draw(6)) {
    case 0:
        SAY(cuLaunchKernelEx(&config, f, params, NULL));
        break;
    case 1:
        SAY(cuLaunchCooperativeKernel(f, blocks, 1, 1, threads, 1, 1, 0, here->streams[slot], params));
        break;
    default:
        SAY(cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, here->streams[slot], params, NULL));
    }
}

static void launch(const char *name, int blocks, int threads, int slot, void **params)
{
    printf(" %s", name);
    launch_of(function(name), blocks, threads, slot, params);
}

/* How many the program has read decides. */
static int some_blocks(void)
{
    return 1 + (int)((unsigned)last_read % 3 + (unsigned)draw(3));
}

static void increment(void)
{
    static const char *const names[] = {"increment",           "increment",
                                        "_Z9incrementPii",     "tiny_increment",
                                        "bounded_increment",   "_ZN5tests9incrementIiLi4EEEvPT_i",
                                        "wide_increment",      "wide_only",
                                        "launching_increment", "ncclDevKernel_increment"};
    struct buffer *b = any_buffer(INTS);
    int slot = any_slot(), times = 1 + draw(3);

    if (!b)
        return;
    for (int i = 0; i < times; i++) {
        take(b, slot);
        launch(names[draw(one_of(4) ? 10 : 8)], some_blocks(), 64 << draw(3), slot, (void *[]){&b->at, &b->n});
    }
}

static void increment_late(void)
{
    struct buffer *b = any_buffer(INTS);
    int slot = any_slot(), ms = 1 + draw(2);

    if (!b)
        return;
    take(b, slot);
    here->late = true;
    launch("late_increment", 1, 64, slot, (void *[]){&b->at, &b->n, &ms});
}

static void count_and_set(void)
{
    struct buffer *b = any_buffer(INTS);
    int slot = any_slot(), value = draw(1000);

    if (!b)
        return;
    take(b, slot);
    if (one_of(2))
        launch("atomic_count", some_blocks(), 32, slot, (void *[]){&b->at});
    else
        launch("set_flag", 1, 1, slot, (void *[]){&b->at, &value});
}

static void axpy(void)
{
    struct buffer *y = any_buffer(INTS), *x = y ? another(y) : NULL;
    int slot = any_slot(), n;
    float a = (float)(1 + draw(3));

    if (!x)
        return;
    n = x->n < y->n ? x->n : y->n;
    take_both(x, y, slot);
    launch("axpy_inplace", some_blocks(), 128, slot, (void *[]){&x->at, &y->at, &a, &n});
}

static void scale(void)
{
    struct buffer *b = any_buffer(INTS);
    struct scale_args args;
    int slot = any_slot();

    if (!b)
        return;
    args = make_scale_args(b->at, 0.5 + draw(3), b->n / 2, draw(5));
    take(b, slot);
    launch("scale_struct", 1, 64, slot, (void *[]){&args});
    memset(&args, 0, sizeof(args));
}

static void append(void)
{
    struct buffer *b = any_buffer(INTS), *cursor = any_buffer(CURSOR);
    int slot = any_slot(), tag = draw(100), times = 1 + draw(3);

    if (!b || !cursor)
        return;
    take_both(b, cursor, slot);
    for (int i = 0; i < times; i++, tag++)
        launch("append", 1 + draw(3), 1, slot, (void *[]){&b->at, &cursor->at, &b->n, &tag});
}

/* One texture, which is made, read through and destroyed, in one step or in several. */
static void change_texture(void)
{
    struct buffer *to = any_buffer(INTS), *from = to ? another(to) : NULL;
    const CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
    CUDA_RESOURCE_DESC what = {.resType = CU_RESOURCE_TYPE_LINEAR,
                               .res.linear = {.format = CU_AD_FORMAT_SIGNED_INT32, .numChannels = 1}};
    int slot = any_slot(), n, level = 0;

    if (!here->texture && from && from->kind != OF_MODULE) {
        what.res.linear.devPtr = from->at;
        what.res.linear.sizeInBytes = (size_t)from->n * sizeof(int);
        if (SAY(cuTexObjectCreate(&here->texture, &what, &how, NULL)))
            return;
        here->seen = from;
        from->held++;
    }
    if (!here->texture)
        return;
    if (to != here->seen && to) {
        n = to->n < here->seen->n ? to->n : here->seen->n;
        take_both(to, here->seen, slot);
        launch("texture_add", some_blocks(), 64, slot, (void *[]){&here->texture, &to->at, &n, &level});
    }
    if (one_of(3))
        return;
    SAY(cuTexObjectDestroy(here->texture));
    if (one_of(2))
        SAY(cuTexObjectGetResourceDesc(&what, here->texture));
    here->seen->held--;
    here->texture = 0;
}

/* Finds its place by a number in device memory; any other breaks the context. */
static void gather(void)
{
    struct buffer *b = any_buffer(INTS), *cursor = any_buffer(CURSOR);
    int slot = any_slot(), at = draw(AHEAD);

    if (!b || !cursor)
        return;
    take_both(b, cursor, slot);
    SAY(cuMemsetD32Async(cursor->at, at, 1, here->streams[slot]));
    launch("gather", 1, 1, slot, (void *[]){&cursor->at, &b->at, &b->n});
}

/* The order in the queue is another one in each execution; what comes of it is not. */
static void serve(void)
{
    struct buffer *b = any_buffer(INTS), *queue = any_buffer(QUEUE);
    int slot = any_slot(), n = AHEAD, capacity = QUEUE_INTS - AHEAD, rounds = 1 + draw(2);
    CUdeviceptr places_at;

    if (!b || !queue)
        return;
    places_at = queue->at + AHEAD * sizeof(int);
    take_both(b, queue, slot);
    SAY(cuMemsetD32Async(queue->at, 0, 1, here->streams[slot]));
    for (int i = 0; i < rounds; i++) {
        launch("enqueue", 1, n, slot, (void *[]){&places_at, &queue->at, &capacity});
        launch("serve", 1, 1, slot, (void *[]){&places_at, &queue->at, &b->at, &n});
    }
}

static void swap_blocks(void)
{
    struct buffer *b = any_buffer(INTS), *heap = any_buffer(HEAP);
    int slot = any_slot(), n = AHEAD, k = draw(10);

    if (!b || !heap)
        return;
    take_both(b, heap, slot);
    launch("heap_swap", 1, n, slot, (void *[]){&heap->at, &n, &k});
    launch("read_blocks", 1, n, slot, (void *[]){&heap->at, &b->at, &n});
}

static void print_line(void)
{
    int n = draw(100), slot = any_slot();
    CUfunction f = function("print_line");
    CUresult rc;

    printf("\n"); /* the kernel's text comes between this and what follows, whoever waits for it */
    rc = cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, here->streams[slot], (void *[]){&n}, NULL);
    cuCtxSynchronize();
    said("cuLaunchKernel", rc);
    all_done();
}

/* Nothing of this happens. */
static void refused(void)
{
    struct buffer *b = any_buffer(INTS);
    CUfunction f = function("increment");
    int slot = any_slot(), host[4] = {0};
    CUstream s = here->streams[slot];
    void *params[] = {&b->at, &b->n};
    float ms;

    if (!b)
        return;
    switch (draw(9)) {
    case 0:
        SAY(cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, s, params, NULL));
        break;
    case 1:
        SAY(cuLaunchKernel(f, 1, 0, 1, 32, 1, 1, 0, s, params, NULL));
        break;
    case 2:
        SAY(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 200000, s, params, NULL));
        break;
    case 3:
        SAY(cuMemcpyDtoHAsync(host, 16, sizeof(host), s));
        break;
    case 4:
        SAY(cuMemsetD32(16, 0, 4));
        break;
    case 5:
        SAY(cuMemFree(b->at + 4));
        break;
    case 6:
        SAY(cuEventElapsedTime(&ms, event_of(0), event_of(1)));
        break;
    case 7:
        SAY(cuStreamAddCallback(s, NULL, NULL, 1));
        break;
    default:
        SAY(cuMemcpyHtoD(16, host, sizeof(host)));
    }
}

/* ---- host functions ---- */

static void CUDA_CB add_one(void *data)
{
    ++*(int *)data;
}

static void CUDA_CB called_back(CUstream stream, CUresult rc, void *data)
{
    (void)stream;
    *(int *)data += 2 + (int)rc;
}

static void host_function(void)
{
    struct buffer *b = any_buffer(INTS);
    int slot = any_slot(), *at;

    if (!b || !b->host)
        return;
    at = b->host + draw(b->n < 8 ? b->n : 8);
    take(b, slot);
    if (one_of(3))
        SAY(cuStreamAddCallback(here->streams[slot], called_back, at, 0));
    else
        SAY(cuLaunchHostFunc(here->streams[slot], add_one, at));
}

/* ---- streams and events by themselves ---- */

static void open_stream(int slot)
{
    bool apart = one_of(2);

    if (SAY(cuStreamCreate(&here->streams[slot], apart ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT)))
        return;
    here->apart[slot] = apart;
    here->lives[slot] = true;
}

static void change_stream(void)
{
    int slot = OWN + draw(SLOTS - OWN);

    if (!here->lives[slot]) {
        open_stream(slot);
        return;
    }
    SAY(cuStreamDestroy(here->streams[slot]));
    here->lives[slot] = false;
    for (int i = 0; i < BUFFERS; i++)
        if (here->buffers[i].owner == slot)
            here->buffers[i].owner = ANY;
}

static void synchronise(void)
{
    host_waits(one_of(3) ? ANY : any_slot());
}

static void time_events(void)
{
    int first = draw(EVENTS), second = draw(EVENTS);
    float ms = -1;
    CUresult rc;

    if (!here->recorded[first] || !here->recorded[second])
        return;
    SAY(cuEventSynchronize(here->events[first]));
    SAY(cuEventSynchronize(here->events[second]));
    rc = SAY(cuEventElapsedTime(&ms, here->events[first], here->events[second]));
    if (!rc && first == second)
        printf(" %g", ms);
}

static void record_and_wait(void)
{
    int slot = any_slot();
    CUevent event = record(any_slot());

    SAY(cuStreamWaitEvent(here->streams[slot], event, 0));
}

/* ---- code and attributes ---- */

static struct buffer *variable(CUmodule module, const char *name)
{
    struct buffer *b = here->buffers;
    size_t bytes;

    while (b < here->buffers + BUFFERS && b->n)
        b++;
    if (b == here->buffers + BUFFERS)
        return NULL;
    *b = (struct buffer){.kind = OF_MODULE, .owner = HOST};
    if (SAY(cuModuleGetGlobal(&b->at, &bytes, module, name)))
        return NULL;
    b->n = (int)(bytes / sizeof(int));
    return b;
}

static struct buffer *of_extra[PLACES];

static void drop_extra(void)
{
    struct buffer **more = &of_extra[here - places];

    all_done();
    if (*more && (*more)->held)
        return;
    if (*more)
        (*more)->n = 0;
    *more = NULL;
    SAY(cuModuleUnload(here->extra));
    here->extra = NULL;
}

static void change_module(void)
{
    CUfunction f;
    struct buffer *b;
    int slot = any_slot();

    if (here->extra && one_of(2)) {
        drop_extra();
        return;
    }
    if (!here->extra && SAY(cuModuleLoadData(&here->extra, extra_image)))
        return;
    if (!of_extra[here - places])
        of_extra[here - places] = variable(here->extra, "more");
    if (of_extra[here - places])
        fill(of_extra[here - places]);
    b = any_buffer(INTS);
    if (!b || SAY(cuModuleGetFunction(&f, here->extra, one_of(2) ? "by_pointer" : "add_constant")))
        return;
    take(b, slot);
    launch_of(f, some_blocks(), 64, slot, (void *[]){&b->at, &b->n});
}

static void set_constant(void)
{
    CUdeviceptr at;
    int value = draw(50);

    if (!here->extra || SAY(cuModuleGetGlobal(&at, NULL, here->extra, "five")))
        return;
    all_done();
    SAY(cuMemcpyHtoD(at, &value, sizeof(value)));
}

static void use_library(void)
{
    struct buffer *b = any_buffer(INTS);
    int slot = any_slot();

    if (here->library && one_of(4)) {
        all_done();
        SAY(cuLibraryUnload(here->library));
        here->library = NULL;
        return;
    }
    if (!here->library) {
        if (SAY(cuLibraryLoadData(&here->library, "FAKEMOD increment", NULL, NULL, 0, NULL, NULL, 0)))
            return;
        MUST(cuLibraryGetKernel(&here->of_library, here->library, "increment"));
    }
    if (!b)
        return;
    take(b, slot);
    launch_of((CUfunction)here->of_library, some_blocks(), 64, slot, (void *[]){&b->at, &b->n});
}

static void attributes(void)
{
    CUfunction f = function("increment");
    struct buffer *b = any_buffer(INTS);
    int value = 1024 << draw(8), slot = any_slot();
    size_t limit = 1024 * (size_t)(1 + draw(4));

    switch (draw(4)) {
    case 0:
        SAY(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value));
        break;
    case 1:
        SAY(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, draw(101)));
        break;
    case 2:
        SAY(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, limit));
        break;
    default:
        SAY(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_L1));
    }
    SAY(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    SAY(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    printf(" %d %zu", value, limit);
    if (!b)
        return;
    take(b, slot);
    SAY(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 1024 << draw(8), here->streams[slot], (void *[]){&b->at, &b->n}, NULL));
}

static void ask_memory(void)
{
    size_t left, total;

    if (!SAY(cuMemGetInfo(&left, &total)))
        printf(" %zu of %zu KB", left >> 10, total >> 10);
}

static void ask_pool(void)
{
    CUmemoryPool pool;
    cuuint64_t bytes = 0, most = (cuuint64_t)draw(4) << 20, none = 0;

    if (SAY(cuDeviceGetDefaultMemPool(&pool, here->device)) ||
        SAY(cuMemPoolGetAttribute(
            pool, one_of(3) ? CU_MEMPOOL_ATTR_RELEASE_THRESHOLD : CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes)))
        return;
    printf(" %llu", (unsigned long long)bytes);
    if (one_of(3))
        SAY(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most));
    else if (one_of(8))
        SAY(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none));
}

/* Memory of whole blocks of the driver's: what is free is asked while it is there, and when it is not. */
static void whole_blocks(void)
{
    CUdeviceptr at, base;
    size_t size = 0, bytes = (size_t)(1 + draw(2)) << 21;
    unsigned type = 0;

    if (SAY(cuMemAlloc(&at, bytes)))
        return;
    SAY(cuMemsetD8(at, 7, 4096));
    ask_memory();
    SAY(cuMemFree(at));
    ask_memory();
    SAY(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + bytes / 2));
    SAY(cuMemGetAddressRange(&base, &size, at));
    printf(" %u %zu", type, size);
}

/* The copy reads it when its turn comes: cuMemFreeHost waits for that. */
static void copy_from(char *host, size_t bytes)
{
    struct buffer *to = any_buffer(INTS);
    int slot = any_slot();

    if (!to)
        return;
    bytes = bytes < (size_t)to->n * sizeof(int) ? bytes : (size_t)to->n * sizeof(int);
    memset(host, draw(9), bytes);
    take(to, slot);
    SAY(cuMemcpyHtoDAsync(to->at, host, bytes, here->streams[slot]));
}

/* Pinned memory, and what is told of it behind its end, and when it is freed. */
static void ask_pinned(void)
{
    size_t bytes = 1 + draw(one_of(4) ? 3 << 20 : 3000), size = 0;
    unsigned flags = 0, type = 0;
    CUdeviceptr base;
    char *host;

    if (SAY(cuMemHostAlloc((void **)&host, bytes, one_of(2) ? CU_MEMHOSTALLOC_PORTABLE : 0)))
        return;
    for (int i = 0; i < 2; i++) {
        SAY(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host + bytes - 1));
        SAY(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, (CUdeviceptr)(uintptr_t)host + bytes));
        SAY(cuMemGetAddressRange(&base, &size, (CUdeviceptr)(uintptr_t)host));
        SAY(cuMemHostGetFlags(&flags, host));
        SAY(cuMemHostGetDevicePointer(&base, host, 0));
        printf(" %u %zu %u", type, size, flags);
        if (!i && one_of(2))
            copy_from(host, bytes);
        if (!i && SAY(cuMemFreeHost(host)))
            return;
    }
}

static void ask_pointer(void)
{
    struct buffer *b = any_buffer(INTS);
    unsigned type = 0, flags = 0;
    CUdeviceptr base = 0;
    size_t size = 0;

    if (!b)
        return;
    SAY(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b->at));
    if (!SAY(cuMemGetAddressRange(&base, &size, b->at + 4)))
        printf(" type %u, at 0: %d, %zu", type, base == b->at, size);
    if (b->host && !SAY(cuMemHostGetFlags(&flags, b->host)))
        printf(" %u", flags);
}

/* ---- graphs ---- */

static struct graph *free_graph(void)
{
    for (int i = 0; i < GRAPHS; i++)
        if (!here->graphs[i].exec)
            return &here->graphs[i];
    return NULL;
}

static struct graph *any_graph(void)
{
    struct graph *g = &here->graphs[draw(GRAPHS)];

    return g->exec ? g : NULL;
}

static bool hold(struct graph *g, struct buffer *b)
{
    if (!b || g->n_uses == NODES || b->kind == OF_MODULE)
        return false;
    b->held++;
    g->uses[g->n_uses++] = b;
    return true;
}

static void end_graph(struct graph *g)
{
    all_done();
    if (g->exec)
        SAY(cuGraphExecDestroy(g->exec));
    if (g->graph)
        SAY(cuGraphDestroy(g->graph));
    for (int i = 0; i < g->n_uses; i++)
        g->uses[i]->held--;
    *g = (struct graph){0};
}

static void instantiate(struct graph *g)
{
    CUresult rc =
        SAY(cuGraphInstantiate(&g->exec, g->graph, one_of(2) ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0));

    if (rc) {
        g->exec = NULL;
        end_graph(g);
    }
}

/* A node behind the last one. */
static CUgraphNode add_node(struct graph *g, CUgraphNode before)
{
    const CUgraphNode *deps = before ? &before : NULL;
    size_t n_deps = before != NULL;
    struct buffer *b = any_buffer(INTS), *other = b ? another(b) : NULL;
    CUDA_MEMSET_NODE_PARAMS set = {.value = (unsigned)draw(9), .elementSize = 4, .width = 16, .height = 1};
    CUDA_MEMCPY3D copied = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .WidthInBytes = 64,
                            .Height = 1,
                            .Depth = 1};
    CUDA_HOST_NODE_PARAMS call = {add_one, NULL};
    CUgraphNode node = before;

    if (!hold(g, b))
        return before;
    switch (draw(5)) {
    case 0:
        set.dst = b->at;
        SAY(cuGraphAddMemsetNode(&node, g->graph, deps, n_deps, &set, here->ctx));
        break;
    case 1:
        if (!hold(g, other))
            break;
        copied.srcDevice = b->at;
        copied.dstDevice = other->at;
        SAY(cuGraphAddMemcpyNode(&node, g->graph, deps, n_deps, &copied, here->ctx));
        break;
    case 2:
        call.userData = b->host;
        if (b->host)
            SAY(cuGraphAddHostNode(&node, g->graph, deps, n_deps, &call));
        break;
    default:
        g->p = kernel_node(function(one_of(2) ? "increment" : "tiny_increment"), 1 + draw(3), 32 << draw(2), 0,
                           (void *[]){&b->at, &b->n});
        SAY(cuGraphAddKernelNode(&node, g->graph, deps, n_deps, &g->p));
        g->kernel = node;
    }
    return node;
}

/* Memory of its own, used between its allocation and its end. */
static CUgraphNode add_memory(struct graph *g, CUgraphNode before)
{
    CUDA_MEM_ALLOC_NODE_PARAMS p = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = here->device}},
        .bytesize = 4096};
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraphNode made, set, used, freed = before;
    int value = draw(100), n = 64;

    SAY(cuGraphAddMemAllocNode(&made, g->graph, before ? &before : NULL, before != NULL, &p));
    k = kernel_node(function("set_flag"), 1, 1, 0, (void *[]){&p.dptr, &value});
    SAY(cuGraphAddKernelNode(&set, g->graph, &made, 1, &k));
    k = kernel_node(function("increment"), 1, 64, 0, (void *[]){&p.dptr, &n});
    SAY(cuGraphAddKernelNode(&used, g->graph, &set, 1, &k));
    SAY(cuGraphAddMemFreeNode(&freed, g->graph, &used, 1, p.dptr));
    return freed;
}

static void build_graph(void)
{
    struct graph *g = free_graph();
    CUgraphNode last = NULL;
    int n = 1 + draw(4);

    if (!g)
        return;
    MUST(cuGraphCreate(&g->graph, 0));
    for (int i = 0; i < n; i++)
        last = one_of(8) ? add_memory(g, last) : add_node(g, last);
    instantiate(g);
}

static void run_graph(void)
{
    struct graph *g = any_graph();
    int slot = any_slot(), times = 1 + draw(2);

    if (!g)
        return;
    for (int i = 0; i < g->n_uses; i++)
        take(g->uses[i], slot);
    for (int i = 0; i < g->n_uses; i++)
        g->uses[i]->owner = slot;
    for (int i = 0; i < times; i++)
        SAY(cuGraphLaunch(g->exec, here->streams[slot]));
}

static void change_graph(void)
{
    struct graph *g = any_graph();
    struct buffer *b = any_buffer(INTS);
    CUgraphExecUpdateResultInfo info;
    CUgraphExec second;

    if (!g)
        return;
    switch (draw(5)) {
    case 0:
        end_graph(g);
        break;
    case 1:
        SAY(cuGraphExecUpdate(g->exec, g->graph, &info));
        break;
    case 2:
        if (!SAY(cuGraphInstantiate(&second, g->graph, 0)))
            SAY(cuGraphExecDestroy(second));
        break;
    case 3:
        if (g->kernel)
            SAY(cuGraphNodeSetEnabled(g->exec, g->kernel, (unsigned)draw(2)));
        break;
    default:
        if (!g->kernel || !hold(g, b))
            break;
        g->p = kernel_node(g->p.func, 1 + draw(3), 64, 0, (void *[]){&b->at, &b->n});
        SAY(cuGraphExecKernelNodeSetParams(g->exec, g->kernel, &g->p));
    }
}

/* ---- captures ---- */

/* What a stream that is captured gets; the buffers are the graph's from then on. */
static void captured_call(struct graph *g, CUstream s)
{
    struct buffer *b = any_buffer(INTS), *other = b ? another(b) : NULL;
    static int zeros[16];
    CUdeviceptr at;
    int n = 64;

    if (!hold(g, b))
        return;
    switch (draw(7)) {
    case 0:
        SAY(cuMemsetD32Async(b->at, draw(9), 16, s));
        break;
    case 1:
        if (hold(g, other))
            SAY(cuMemcpyDtoDAsync(other->at, b->at, 64, s));
        break;
    case 2:
        SAY(cuMemcpyHtoDAsync(b->at, zeros, sizeof(zeros), s));
        break;
    case 3:
        if (b->host)
            SAY(cuLaunchHostFunc(s, add_one, b->host));
        break;
    case 4:
        if (SAY(cuMemAllocAsync(&at, 4096, s)))
            break;
        SAY(cuMemsetD32Async(at, 3, n, s));
        SAY(cuLaunchKernel(function("increment"), 1, 1, 1, 64, 1, 1, 0, s, (void *[]){&at, &n}, NULL));
        SAY(cuMemFreeAsync(at, s));
        break;
    default:
        SAY(cuLaunchKernel(function("increment"), 1 + draw(3), 1, 1, 64, 1, 1, 0, s, (void *[]){&b->at, &b->n}, NULL));
    }
}

/* What is not captured; some of it ends the capture. */
static void beside_capture(CUstream s)
{
    struct buffer *b = any_buffer(INTS);
    int host[4];
    CUdeviceptr at;

    switch (draw(8)) {
    case 0:
        if (!SAY(cuMemAlloc(&at, 4096)))
            SAY(cuMemFree(at));
        break;
    case 1:
        SAY(cuStreamSynchronize(s));
        break;
    case 2:
        if (b && b->owner == HOST)
            SAY(cuMemcpyDtoH(host, b->at, sizeof(host)));
        break;
    case 3:
        ask_memory();
        break;
    case 5:
        b = &here->buffers[draw(BUFFERS)];
        if (b->n && b->kind == PINNED && !b->held && b->owner == HOST && !SAY(cuMemFreeHost(b->host)))
            b->n = 0;
        break;
    case 4:
        if (b && b->owner != HOST && b->owner != ANY && here->streams[b->owner] != s)
            SAY(cuLaunchKernel(function("increment"), 1, 1, 1, 64, 1, 1, 0, here->streams[b->owner],
                               (void *[]){&b->at, &b->n}, NULL));
        break;
    default:
        break;
    }
}

static void capture(void)
{
    struct graph *g = free_graph();
    int slot = OWN + draw(SLOTS - OWN), n = 1 + draw(5), mode = draw(3);
    CUstreamCaptureStatus status;

    if (!g || !here->lives[slot])
        return;
    if (SAY(cuStreamBeginCapture(here->streams[slot], (CUstreamCaptureMode)mode)))
        return;
    for (int i = 0; i < n; i++) {
        captured_call(g, here->streams[slot]);
        if (one_of(3))
            beside_capture(here->streams[slot]);
    }
    SAY(cuStreamIsCapturing(here->streams[slot], &status));
    printf(" %d", (int)status);
    if (SAY(cuStreamEndCapture(here->streams[slot], &g->graph)))
        end_graph(g);
    else
        instantiate(g);
}

/* ---- several contexts ---- */

static void open_place(struct place *p)
{
    here = p;
    p->module = NULL;
    MUST(cuModuleLoadData(&p->module, image));
    p->streams[LEGACY] = NULL;
    p->streams[PER_THREAD] = CU_STREAM_PER_THREAD;
    p->lives[LEGACY] = p->lives[PER_THREAD] = true;
    for (int slot = OWN; slot < SLOTS - 1; slot++)
        open_stream(slot);
    variable(p->module, "counters");
    for (int i = 0; i < 6; i++)
        allocate();
    refill();
    fill(&p->buffers[0]);
}

static void create_place(void)
{
    struct place *p = &places[1];
    int devices;

    MUST(cuDeviceGetCount(&devices));
    *p = (struct place){.created = true};
    MUST(cuDeviceGet(&p->device, devices > 1 ? 1 : 0));
    MUST(cuCtxCreate(&p->ctx, NULL, 0, p->device));
    open_place(p);
}

static void end_place(void)
{
    if (n_places < 2)
        return;
    here = &places[1];
    MUST(cuCtxSetCurrent(here->ctx));
    if (here->late || one_of(2) || getenv("FAKE_COPY_MS")) /* else what is put off may never run */
        all_done();
    SAY(cuCtxDestroy(here->ctx));
    of_extra[1] = NULL;
    for (int i = 0; i < BUFFERS; i++) /* memory of cuMemCreate is no context's */
        if (here->buffers[i].n && here->buffers[i].kind == MAPPED)
            unmap(&here->buffers[i]);
    MUST(cuCtxSetCurrent(places[0].ctx));
    create_place();
}

/* A copy from the other context's memory to this one's, or back. */
static void copy_across(void)
{
    struct place *before = here, *other = &places[here == places];
    struct buffer *b, *theirs;
    int slot;

    if (n_places < 2)
        return;
    here = other;
    MUST(cuCtxSetCurrent(other->ctx));
    theirs = any_buffer(INTS);
    if (theirs)
        take(theirs, HOST);
    here = before;
    MUST(cuCtxSetCurrent(here->ctx));
    b = any_buffer(INTS);
    slot = any_slot();
    if (!b || !theirs || b->kind == MAPPED || theirs->kind == MAPPED)
        return;
    take(b, slot);
    if (one_of(2))
        SAY(cuMemcpyDtoDAsync(b->at, theirs->at, 64, here->streams[slot]));
    else
        SAY(cuMemcpyDtoDAsync(theirs->at, b->at, 64, here->streams[slot]));
    take(b, HOST);
}

static void fail(void)
{
    launch("fail", 1, 1, LEGACY, NULL);
    all_done();
}

/* ---- all of it ---- */

static const struct {
    const char *name;
    void (*run)(void);
    int weight;
    unsigned trait; /* only where the seed has it */
} steps[] = {
    {"allocate", allocate, 8, 0},
    {"free", free_one, 6, 0},
    {"fill", refill, 8, 0},
    {"read", read_back, 9, 0},
    {"copy", copy, 8, 0},
    {"increment", increment, 14, 0},
    {"count", count_and_set, 6, 0},
    {"axpy", axpy, 4, 0},
    {"scale", scale, 4, 0},
    {"append", append, 6, 0},
    {"gather", gather, 4, 0},
    {"texture", change_texture, 4, 0},
    {"serve", serve, 3, 0},
    {"synchronise", synchronise, 4, 0},
    {"events", record_and_wait, 4, 0},
    {"elapsed", time_events, 2, 0},
    {"stream", change_stream, 3, 0},
    {"refused", refused, 4, 0},
    {"attributes", attributes, 3, 0},
    {"host write", write_on_host, 4, 0},
    {"pointer", ask_pointer, 2, 0},
    {"memory", ask_memory, 4, 0},
    {"pool", ask_pool, 2, 0},
    {"whole blocks", whole_blocks, 2, 0},
    {"pinned", ask_pinned, 2, 0},
    {"remap", remap, 2, 0},
    {"late", increment_late, 3, 0x10},
    {"host function", host_function, 5, 0x20},
    {"module", change_module, 4, 0x40},
    {"constant", set_constant, 2, 0x40},
    {"library", use_library, 3, 0x40},
    {"heap", swap_blocks, 4, 0x8},
    {"print", print_line, 1, 0x80},
    {"graph", build_graph, 4, 0x100},
    {"graph launch", run_graph, 8, 0x300},
    {"graph change", change_graph, 4, 0x300},
    {"capture", capture, 4, 0x200},
    {"across", copy_across, 3, 0x400},
    {"context", end_place, 1, 0x400},
    {"fail", fail, 1, 0x800},
};
enum { STEPS = sizeof(steps) / sizeof(*steps) };

static bool has(unsigned trait)
{
    return !trait || traits & trait;
}

static int any_step(void)
{
    int sum = 0, at, i;

    for (i = 0; i < STEPS; i++)
        sum += has(steps[i].trait) ? steps[i].weight : 0;
    at = draw(sum);
    for (i = 0; at >= 0; i++)
        at -= has(steps[i].trait) ? steps[i].weight : 0;
    return i - 1;
}

/* Managed memory, and registered memory; large pieces; the device's heap; kernels that take their time; host functions;
 * modules; kernels that print; graphs built, and captured; a second context; a kernel that breaks its context. */
static void draw_traits(void)
{
    static const struct {
        unsigned trait;
        int one_of;
    } odds[] = {{1, 6},    {2, 4},    {4, 6},     {8, 4},     {0x10, 4},  {0x20, 2},
                {0x40, 2}, {0x80, 4}, {0x100, 3}, {0x200, 3}, {0x400, 3}, {0x800, 12}};

    for (size_t i = 0; i < sizeof(odds) / sizeof(*odds); i++)
        traits |= one_of(odds[i].one_of) ? odds[i].trait : 0;
    if (getenv("RANDOM_TRAITS"))
        traits = (unsigned)strtoul(getenv("RANDOM_TRAITS"), NULL, 0);
    n_places = traits & 0x400 ? 2 : 1;
}

static void begin(void)
{
    MUST(cuInit(0));
    state = mix(seed);
    draw_traits();
    printf("traits %#x:", traits);
    MUST(cuDevicePrimaryCtxRetain(&places[0].ctx, 0));
    MUST(cuCtxSetCurrent(places[0].ctx));
    open_place(&places[0]);
    if (n_places > 1)
        create_place();
    printf("\n");
}

static void make_step(int i)
{
    int which;

    step = i;
    state = mix(seed * 1000003u + (uint64_t)i);
    here = &places[draw(n_places)];
    which = any_step();
    printf("%d %s%s:", i, steps[which].name, here == places ? "" : ", there");
    said("", cuCtxSetCurrent(here->ctx));
    steps[which].run();
    printf(" | %llx\n", (unsigned long long)digest);
    fflush(stdout);
}

static void read_all(void)
{
    for (int i = 0; i < n_places; i++) {
        here = &places[i];
        printf("at the end:");
        said("", cuCtxSetCurrent(here->ctx));
        all_done();
        for (struct buffer *b = here->buffers; b < here->buffers + BUFFERS; b++) {
            int *host = calloc((size_t)b->n + 1, sizeof(int));

            if (b->n && b->use == INTS && !SAY(cuMemcpyDtoH(host, b->at, (size_t)b->n * sizeof(int))))
                digest_of(host, (size_t)b->n * sizeof(int));
            free(host);
        }
        printf(" | %llx\n", (unsigned long long)digest);
    }
}

int main(int argc, char **argv)
{
    int length = argc > 2 ? atoi(argv[2]) : 50;

    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    begin();
    if (argc > 3)
        for (int i = 3; i < argc; i++)
            make_step(atoi(argv[i]));
    else
        for (int i = 0; i < length; i++)
            make_step(i);
    read_all();
    return (int)(digest & 63);
}
