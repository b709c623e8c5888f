/* The memory that a program has by its calls, with a driver of this test's own, which tells of memory what a test says:
 * what is listed, what is not, and why nothing can be listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "preload/program/unmapped_ranges.h"
#include "preload/program/device_memory.h"

/* ---- the driver ---- */

enum { PIECES = 2048, DEVICE = 1 };

/* Memory as the driver sees it. */
static struct piece {
    CUdeviceptr at;
    size_t bytes;
    int device;
    unsigned type, managed;
    unsigned long long access;
} pieces[PIECES];
static size_t n_pieces;
static struct kp_driver driver;
static CUstreamCaptureStatus capture_of[3]; /* by the stream's number */
static CUresult capture_answer;
static cuuint64_t capture_id = 1;

static struct piece *piece_of(CUdeviceptr p)
{
    for (size_t i = n_pieces; i--;)
        if (p >= pieces[i].at && p - pieces[i].at < pieces[i].bytes)
            return &pieces[i];
    return NULL;
}

static struct piece *there_is(CUdeviceptr at, size_t bytes)
{
    assert_true(n_pieces < PIECES);
    pieces[n_pieces] = (struct piece){at, bytes, DEVICE, CU_MEMORYTYPE_DEVICE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return &pieces[n_pieces++];
}

static void there_is_not(CUdeviceptr at)
{
    piece_of(at)->bytes = 0;
}

/* The question that fails, from 1; 0: none. */
static unsigned asked, failing;
static CUresult failure;

static bool fails(void)
{
    return ++asked == failing;
}

static CUresult CUDAAPI attribute(void *to, CUpointer_attribute which, CUdeviceptr p)
{
    const struct piece *m = piece_of(p);
    if (fails())
        return failure;
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)to = m->type;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)to = m->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)to = m->managed;
        return CUDA_SUCCESS;
    default:
        fail_msg("attribute %d", (int)which);
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult CUDAAPI range(CUdeviceptr *base, size_t *bytes, CUdeviceptr p)
{
    const struct piece *m = piece_of(p);
    if (fails())
        return failure;
    if (!m)
        return CUDA_ERROR_NOT_FOUND;
    *base = m->at;
    *bytes = m->bytes;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI access_of(unsigned long long *flags, const CUmemLocation *where, CUdeviceptr p)
{
    const struct piece *m = piece_of(p);
    if (fails())
        return failure;
    assert_int_equal(where->type, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(where->id, DEVICE);
    *flags = m ? m->access : 0;
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult CUDAAPI capturing(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                  const CUgraphNode **dependencies, size_t *n)
{
    (void)graph, (void)dependencies, (void)n;
    *id = capture_id;
    *status = capture_of[(uintptr_t)stream];
    return capture_answer;
}

static CUcontext here;

static CUresult CUDAAPI context(CUcontext *ctx)
{
    if (fails())
        return failure;
    *ctx = here;
    return CUDA_SUCCESS;
}

static int set_up(void **state)
{
    (void)state;
    n_pieces = 0;
    here = NULL;
    failing = 0;
    memset(capture_of, 0, sizeof(capture_of));
    capture_answer = CUDA_SUCCESS;
    driver = (struct kp_driver){.cuPointerGetAttribute = attribute,
                                .cuMemGetAddressRange = range,
                                .cuMemGetAccess = access_of,
                                .cuStreamGetCaptureInfo = capturing,
                                .cuCtxGetCurrent = context};
    kp_owned_forked();
    return 0;
}

/* ---- the program ---- */

/* A call that succeeded. */
static void call(const char *symbol, uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
    const struct kp_owning *row = kp_owned_row(symbol);
    const uint64_t args[KP_OWNED_ARGS] = {a, b, c, e};
    if (!row)
        fail_msg("%s has no row", symbol);
    kp_owned_note(&driver, row, args, 0);
}

/* One that gave memory at `at`, of which the driver knows. */
static void gets(const char *symbol, CUdeviceptr at, size_t bytes, uint64_t c, uint64_t e)
{
    there_is(at, bytes);
    call(symbol, (uintptr_t)&at, bytes, c, e);
}

static void allocates(CUdeviceptr at, size_t bytes)
{
    gets("cuMemAlloc_v2", at, bytes, 0, 0);
}

static void variable(CUdeviceptr at, size_t bytes)
{
    call("cuModuleGetGlobal_v2", (uintptr_t)&at, (uintptr_t)&bytes, 0, 0);
}

/* The list as text: from+bytes, with a c behind what is constant. */
#define assert_list(...) assert_parts((const struct kp_part[]){__VA_ARGS__}, sizeof((struct kp_part[]){__VA_ARGS__}))

static void assert_parts(const struct kp_part *wanted, size_t bytes)
{
    struct kp_part *parts;
    enum kp_reason why;
    size_t n;
    if (!kp_owned_list(&driver, DEVICE, &parts, &n, &why))
        fail_msg("%s", kp_reason_text(why));
    assert_int_equal(why, KP_REASON_NONE);
    assert_int_equal(n, bytes / sizeof(*wanted));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(parts[i].at, wanted[i].at);
        assert_int_equal(parts[i].bytes, wanted[i].bytes);
        assert_int_equal(parts[i].constant, wanted[i].constant);
    }
    free(parts);
}

static void assert_empty(void)
{
    assert_parts(NULL, 0);
}

static void assert_cannot(enum kp_reason wanted)
{
    struct kp_part *parts = (void *)&driver;
    enum kp_reason why = KP_REASON_NONE;
    size_t n = 1;
    assert_false(kp_owned_list(&driver, DEVICE, &parts, &n, &why));
    assert_null(parts);
    assert_int_equal(why, wanted);
}

/* ---- the rows ---- */

static const char *const exported[] = {
#define KP_API(symbol, base, class) #symbol,
#include "preload/doors/cuda_api.def"
#undef KP_API
};

static const char *const owned[] = {
#define KP_OWNS(symbol, does, bytes) #symbol,
#include "preload/program/device_memory.def"
#undef KP_OWNS
};

enum { EXPORTED = sizeof(exported) / sizeof(*exported), OWNED = sizeof(owned) / sizeof(*owned) };

static bool is_exported(const char *symbol)
{
    for (size_t i = 0; i < EXPORTED; i++)
        if (!strcmp(exported[i], symbol))
            return true;
    return false;
}

/* Whether the function has to do with memory: each that has is in the table, or here, where it changes none of it. */
static bool is_of_memory(const char *symbol)
{
    static const char *const makers[] = {"cuMemAlloc",
                                         "cuMemFree",
                                         "cuMemCreate",
                                         "cuMemMap",
                                         "cuMemUnmap",
                                         "cuMemRelease",
                                         "cuMemSetAccess",
                                         "cuArrayCreate",
                                         "cuArray3DCreate",
                                         "cuArrayDestroy",
                                         "cuMipmappedArrayC",
                                         "cuMipmappedArrayD",
                                         "cuMemImport",
                                         "cuExternalMemoryGetMapped",
                                         "cuGraphicsResourceGetMapped",
                                         "cuGraphicsSubResourceGetMapped",
                                         "cuIpcOpenMemHandle",
                                         "cuModuleGetGlobal",
                                         "cuLibraryGetGlobal",
                                         "cuLibraryGetManaged",
                                         "cuMemPoolImportPointer"};
    static const char *const others[] = {
        "cuMemAllocHost",    /* the host's */
        "cuMemAllocHost_v2", /* likewise */
        "cuMemFreeHost",     /* likewise */
        "cuMemFree",         /* of cuMemAlloc of that time, after which nothing is listed */
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (!strcmp(symbol, others[i]))
            return false;
    for (size_t i = 0; i < sizeof(makers) / sizeof(*makers); i++)
        if (!strncmp(symbol, makers[i], strlen(makers[i])))
            return true;
    return false;
}

static void each_row_is_a_function_of_the_driver(void **state)
{
    (void)state;
    for (size_t i = 0; i < OWNED; i++) {
        if (!is_exported(owned[i]))
            fail_msg("%s is no function of the driver", owned[i]);
        assert_string_equal(kp_owned_row(owned[i])->symbol, owned[i]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(owned[i], owned[k]);
    }
    assert_null(kp_owned_row("cuInit"));
    for (size_t i = 0; i < EXPORTED; i++)
        if (is_of_memory(exported[i]) && !kp_owned_row(exported[i]))
            fail_msg("%s has no row", exported[i]);
}

static void what_a_call_is_about_to_take(void **state)
{
    static const struct {
        const char *symbol;
        uint64_t bytes;
    } calls[] = {{"cuMemAlloc_v2", 22},
                 {"cuMemAllocAsync", 22},
                 {"cuMemAllocAsync_ptsz", 22},
                 {"cuMemAllocFromPoolAsync", 22},
                 {"cuMemAllocFromPoolAsync_ptsz", 22},
                 {"cuMemCreate", 22},
                 {"cuMemFree_v2", 0},
                 {"cuMemMap", 0},
                 {"cuMemAllocPitch_v2", 0}};
    const uint64_t args[KP_OWNED_ARGS] = {11, 22, 33, 44};
    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        assert_int_equal(kp_owned_takes(kp_owned_row(calls[i].symbol), args), calls[i].bytes);
}

/* ---- what is listed ---- */

static void allocations_are_listed_by_address(void **state)
{
    (void)state;
    assert_empty();
    allocates(0x30000, 0x1000);
    allocates(0x10000, 0x200);
    there_is(0x20000, 0x800); /* rows that lie apart */
    call("cuMemAllocPitch_v2", (uintptr_t) & (CUdeviceptr){0x20000}, (uintptr_t) & (size_t){0x100}, 0x80, 8);
    assert_list({0x10000, 0x200, false}, {0x20000, 0x800, false},
                {0x30000, 0x1000, false}); /* sizes are the driver's */
    there_is_not(0x20000);
    call("cuMemFree_v2", 0x20000, 0, 0, 0);
    assert_list({0x10000, 0x200, false}, {0x30000, 0x1000, false});
    call("cuMemFree_v2", 0, 0, 0, 0); /* frees nothing */
    call("cuMemFree_v2", 0x50000, 0, 0, 0);
    assert_list({0x10000, 0x200, false}, {0x30000, 0x1000, false});
    allocates(0x20000, 0x900); /* the address again */
    assert_list({0x10000, 0x200, false}, {0x20000, 0x900, false}, {0x30000, 0x1000, false});
}

/* With its context: no call told of it. */
static void what_has_ended_unseen_is_left_out(void **state)
{
    (void)state;
    allocates(0x10000, 0x200);
    allocates(0x20000, 0x200);
    allocates(0x30000, 0x200);
    there_is_not(0x20000);
    assert_list({0x10000, 0x200, false}, {0x30000, 0x200, false});
    there_is(0x1f000, 0x2000); /* another one's now, which begins elsewhere */
    assert_list({0x10000, 0x200, false}, {0x30000, 0x200, false});
    allocates(0x10000, 0x600); /* the same address, of which no end was seen */
    assert_list({0x10000, 0x600, false}, {0x30000, 0x200, false});
}

static void pools(void **state)
{
    static const char *const allocate[] = {"cuMemAllocAsync", "cuMemAllocAsync_ptsz", "cuMemAllocFromPoolAsync",
                                           "cuMemAllocFromPoolAsync_ptsz"},
                             *const frees[] = {"cuMemFreeAsync", "cuMemFreeAsync_ptsz", "cuMemFree_v2",
                                               "cuMemFreeAsync"};
    enum { POOL = 2, STREAM = 1, CAPTURES = 2 }; /* the pool's handle is no stream */
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        bool of_pool = i >= 2;
        set_up(NULL);
        capture_of[CAPTURES] = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        gets(allocate[i], 0x10000, 0x200, of_pool ? POOL : STREAM, of_pool ? STREAM : CAPTURES);
        assert_list({0x10000, 0x200, false});
        call(frees[i], 0x10000, STREAM, 0, 0);
        assert_empty();
        gets(allocate[i], 0x10000, 0x200, of_pool ? STREAM : CAPTURES, of_pool ? CAPTURES : STREAM);
        assert_cannot(KP_REASON_OWNED_GRAPH); /* a node of the graph that is captured */
        capture_id++;
        if (!strstr(frees[i], "_v2")) {
            call(frees[i], 0x10000, CAPTURES, 0, 0);
            assert_cannot(KP_REASON_OWNED_GRAPH); /* it lives until the other graph is launched */
        }
        call(frees[i], 0x10000, STREAM, 0, 0);
        assert_empty();
        gets(allocate[i], 0x10000, 0x200, of_pool ? STREAM : CAPTURES, of_pool ? CAPTURES : STREAM);
        if (!strstr(frees[i], "_v2")) {
            call(frees[i], 0x10000, CAPTURES, 0, 0); /* by the same capture: no launch finds anything there */
            assert_empty();
        }
        capture_answer = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        gets(allocate[i], 0x10000, 0x200, STREAM, STREAM);
        assert_cannot(KP_REASON_OWNED_GRAPH);
        allocates(0x10000, 0x200); /* the address again, of which no end was seen */
        assert_list({0x10000, 0x200, false});
    }
}

/* A pool is the device's, and so are mappings. */
static void memory_of_other_contexts(void **state)
{
    static int contexts[2];
    (void)state;
    here = (CUcontext)&contexts[0];
    allocates(0x10000, 0x200);
    gets("cuMemAllocAsync", 0x20000, 0x200, 1, 0);
    assert_list({0x10000, 0x200, false}, {0x20000, 0x200, false});
    here = (CUcontext)&contexts[1];
    assert_cannot(KP_REASON_OWNED_ELSEWHERE);
    there_is_not(0x10000); /* it ended with its context */
    assert_list({0x20000, 0x200, false});
}

static void per_thread_default_streams(void **state)
{
    (void)state;
    capture_of[(uintptr_t)CU_STREAM_PER_THREAD] = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    gets("cuMemAllocAsync", 0x10000, 0x200, 0, 0);
    assert_list({0x10000, 0x200, false});
    call("cuMemFreeAsync_ptsz", 0x10000, 0, 0, 0);
    assert_cannot(KP_REASON_OWNED_GRAPH);
    kp_owned_forked();
    gets("cuMemAllocAsync_ptsz", 0x10000, 0x200, 0, 0);
    assert_cannot(KP_REASON_OWNED_GRAPH);
}

/* The first argument of cuMemCreate receives the handle. */
static void makes(CUmemGenericAllocationHandle memory, CUmemLocationType where, int id, unsigned short usage)
{
    const CUmemAllocationProp what = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {where, id}, .allocFlags.usage = usage};
    call("cuMemCreate", (uintptr_t)&memory, 1, (uintptr_t)&what, 0);
}

static void memory_that_was_never_mapped(void **state)
{
    enum { UNIT = 2 << 20, MANY = 200 };
    (void)state;
    assert_false(kp_fresh_is(7, 0));
    makes(7, CU_MEM_LOCATION_TYPE_DEVICE, 0, 0);
    makes(8, CU_MEM_LOCATION_TYPE_DEVICE, 1, 0);
    makes(9, CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, 0);
    makes(10, CU_MEM_LOCATION_TYPE_DEVICE, 0, CU_MEM_CREATE_USAGE_TILE_POOL);
    assert_true(kp_fresh_is(7, 0));
    assert_false(kp_fresh_is(7, 1)); /* of another device */
    assert_true(kp_fresh_is(8, 1));
    assert_false(kp_fresh_is(9, 0));
    assert_false(kp_fresh_is(10, 0));
    assert_false(kp_owned_is_mapped(7));
    allocates(9 * UNIT, UNIT);
    assert_true(kp_owned_is_allocated(9 * UNIT));
    assert_false(kp_owned_is_allocated(8 * UNIT));
    call("cuMemFree_v2", 9 * UNIT, 0, 0, 0);
    assert_false(kp_owned_is_allocated(9 * UNIT));
    call("cuMemMap", UNIT, UNIT, 0, 7);
    assert_false(kp_owned_is_allocated(UNIT));
    assert_false(kp_fresh_is(7, 0));
    assert_true(kp_owned_is_mapped(7));
    call("cuMemMap", 4 * UNIT, UNIT, 0, 7);
    call("cuMemUnmap", UNIT, UNIT, 0, 0);
    assert_true(kp_owned_is_mapped(7)); /* elsewhere */
    call("cuMemUnmap", 4 * UNIT, UNIT, 0, 0);
    assert_false(kp_owned_is_mapped(7));
    assert_false(kp_fresh_is(7, 0)); /* it has been written by now */
    call("cuMemRelease", 8, 0, 0, 0);
    assert_false(kp_fresh_is(8, 1));
    makes(7, CU_MEM_LOCATION_TYPE_DEVICE, 1, 0); /* the handle is given out again */
    assert_true(kp_fresh_is(7, 1));
    call("cuMemSetAccess", UNIT, UNIT, 0, 0);
    assert_true(kp_fresh_is(7, 1));
    for (unsigned i = 0; i < MANY; i++)
        makes(1000 + i, CU_MEM_LOCATION_TYPE_DEVICE, 0, 0);
    for (unsigned i = 0; i < MANY; i++)
        assert_true(kp_fresh_is(1000 + i, 0));
    makes(7, CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, 0);
    assert_false(kp_fresh_is(7, 1));
    kp_owned_forked();
    assert_false(kp_fresh_is(1000, 0));
}

static void mappings(void **state)
{
    enum { UNIT = 2 << 20 };
    (void)state;
    for (size_t i = 0; i < 6; i++)
        there_is(i * UNIT + UNIT, UNIT);
    call("cuMemCreate", (uintptr_t) & (uint64_t){7}, UNIT, 0, 0); /* has no address */
    assert_empty();
    call("cuMemMap", 2 * UNIT, UNIT, 0, 7);
    call("cuMemMap", UNIT, UNIT, 0, 7);
    call("cuMemMap", 3 * UNIT, 2 * UNIT, 0, 8); /* by the call's size: the driver tells of pieces */
    assert_list({UNIT, UNIT, false}, {2 * UNIT, UNIT, false}, {3 * UNIT, 2 * UNIT, false});
    piece_of(UNIT)->access = CU_MEM_ACCESS_FLAGS_PROT_READ;
    piece_of(2 * UNIT)->access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    assert_list({3 * UNIT, 2 * UNIT, false});
    piece_of(2 * UNIT)->access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE; /* granted since */
    assert_list({2 * UNIT, UNIT, false}, {3 * UNIT, 2 * UNIT, false});
    call("cuMemMap", 6 * UNIT, UNIT, 0, 9);
    call("cuMemUnmap", 2 * UNIT, 3 * UNIT, 0, 0); /* two of them at once */
    assert_list({6 * UNIT, UNIT, false});
    call("cuMemMap", 2 * UNIT, UNIT, 0, 9);
    assert_list({2 * UNIT, UNIT, false}, {6 * UNIT, UNIT, false});
    piece_of(6 * UNIT)->type = CU_MEMORYTYPE_HOST;
    assert_list({2 * UNIT, UNIT, false});
    driver.cuMemGetAccess = NULL;
    assert_cannot(KP_REASON_OWNED_UNSAID);
}

static void variables(void **state)
{
    (void)state;
    there_is(0x10000, 0x1000); /* a module's */
    variable(0x10108, 8);
    assert_list({0x10100, 16, true}); /* from a unit on */
    variable(0x10100, 4);             /* in the same unit */
    variable(0x10110, 0x14);          /* in the next two */
    variable(0x10400, 16);
    assert_list({0x10100, 16, true}, {0x10110, 0x14, true}, {0x10400, 16, true});
    variable(0x1011c, 0x40); /* reaches beyond the one before */
    assert_list({0x10100, 16, true}, {0x10110, 0x4c, true}, {0x10400, 16, true});
    variable(0x10ff8, 16); /* reaches beyond the module's: another one has its address by now */
    assert_list({0x10100, 16, true}, {0x10110, 0x4c, true}, {0x10400, 16, true});
    there_is_not(0x10000);
    assert_empty();
    /* The address of what ended with its module, in an allocation. */
    allocates(0x10000, 0x800);
    assert_list({0x10000, 0x800, false});
    /* What the program did not want to know. */
    set_up(NULL);
    there_is(0x10000, 0x1000);
    call("cuModuleGetGlobal_v2", 0, (uintptr_t) & (size_t){8}, 0, 0);
    call("cuModuleGetGlobal_v2", (uintptr_t) & (CUdeviceptr){0x10000}, 0, 0, 0);
    call("cuLibraryGetGlobal", 0, 0, 0, 0);
    kp_owned_variable(0, 8);
    kp_owned_variable(0x10000, 0);
    assert_empty();
    call("cuLibraryGetGlobal", (uintptr_t) & (CUdeviceptr){0x10020}, (uintptr_t) & (size_t){32}, 0, 0);
    kp_owned_variable(0x10040, 16);
    assert_list({0x10020, 32, true}, {0x10040, 16, true});
    piece_of(0x10020)->managed = 1;
    assert_cannot(KP_REASON_MANAGED);
}

static void memory_of_other_devices_and_of_the_host(void **state)
{
    (void)state;
    allocates(0x10000, 0x200);
    allocates(0x20000, 0x200);
    piece_of(0x10000)->device = 0;
    assert_list({0x20000, 0x200, false});
    piece_of(0x20000)->type = CU_MEMORYTYPE_HOST;
    assert_empty();
    piece_of(0x20000)->type = CU_MEMORYTYPE_UNIFIED;
    assert_empty();
}

static void many(void **state)
{
    enum { MANY = 1500, EACH = 0x1000, STEP = 7 }; /* in an order of its own */
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        allocates(0x100000 + (i * STEP % MANY) * EACH, 0x100);
    for (size_t i = 0; i < MANY; i += 2)
        call("cuMemFree_v2", 0x100000 + i * EACH, 0, 0, 0);
    struct kp_part *parts;
    enum kp_reason why;
    size_t n;
    assert_true(kp_owned_list(&driver, DEVICE, &parts, &n, &why));
    assert_int_equal(n, MANY / 2);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(parts[i].at, 0x100000 + (2 * i + 1) * EACH);
    free(parts);
}

/* ---- what is not ---- */

static void what_cannot_be_listed_is_said(void **state)
{
    static const struct {
        const char *symbol;
        enum kp_reason why;
    } calls[] = {
        {"cuMemAllocManaged", KP_REASON_MANAGED},
        {"cuLibraryGetManaged", KP_REASON_MANAGED},
        {"cuMemMapArrayAsync", KP_REASON_OWNED_SPARSE},
        {"cuMemMapArrayAsync_ptsz", KP_REASON_OWNED_SPARSE},
        {"cuGraphAddMemAllocNode", KP_REASON_OWNED_GRAPH},
        {"cuIpcOpenMemHandle", KP_REASON_OWNED_FOREIGN},
        {"cuIpcOpenMemHandle_v2", KP_REASON_OWNED_FOREIGN},
        {"cuMemImportFromShareableHandle", KP_REASON_OWNED_FOREIGN},
        {"cuMemPoolImportPointer", KP_REASON_OWNED_FOREIGN},
        {"cuExternalMemoryGetMappedBuffer", KP_REASON_OWNED_FOREIGN},
        {"cuExternalMemoryGetMappedMipmappedArray", KP_REASON_OWNED_FOREIGN},
        {"cuGraphicsResourceGetMappedPointer", KP_REASON_OWNED_FOREIGN},
        {"cuGraphicsResourceGetMappedMipmappedArray", KP_REASON_OWNED_FOREIGN},
        {"cuGraphicsSubResourceGetMappedArray", KP_REASON_OWNED_FOREIGN},
        {"cuGraphicsResourceGetMappedPointer_v2", KP_REASON_OWNED_FOREIGN},
        {"cuMemAlloc", KP_REASON_OWNED_OLD},
        {"cuMemAllocPitch", KP_REASON_OWNED_OLD},
        {"cuArrayCreate", KP_REASON_OWNED_OLD},
        {"cuArray3DCreate", KP_REASON_OWNED_OLD},
        {"cuModuleGetGlobal", KP_REASON_OWNED_OLD},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        set_up(NULL);
        allocates(0x10000, 0x200);
        call(calls[i].symbol, 0, 0, 0, 0);
        assert_cannot(calls[i].why);
        call("cuMemFree_v2", 0x10000, 0, 0, 0); /* for good: what frees it is not known */
        assert_cannot(calls[i].why);
    }
}

static void arrays(void **state)
{
    static const char *const makes[] = {"cuArrayCreate_v2", "cuArray3DCreate_v2", "cuMipmappedArrayCreate"},
                             *const ends[] = {"cuArrayDestroy", "cuArrayDestroy", "cuMipmappedArrayDestroy"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        call(makes[i], 0, 0, 0, 0);
        assert_cannot(KP_REASON_OWNED_ARRAYS);
        call(makes[i], 0, 0, 0, 0);
        call(ends[i], 0, 0, 0, 0);
        assert_cannot(KP_REASON_OWNED_ARRAYS);
        call(ends[i], 0, 0, 0, 0);
        assert_empty();
    }
}

static void some_drivers_tell_nothing(void **state)
{
    (void)state;
    driver.cuPointerGetAttribute = NULL;
    assert_cannot(KP_REASON_OWNED_UNDESCRIBED);
    set_up(NULL);
    driver.cuMemGetAddressRange = NULL;
    assert_cannot(KP_REASON_OWNED_UNDESCRIBED);
}

/* ---- the rest ---- */

/* The program must not miss what kprof has. */
static void what_is_free_includes_what_kprof_has(void **state)
{
    size_t left = 1000;
    const uint64_t args[KP_OWNED_ARGS] = {(uintptr_t)&left}, none[KP_OWNED_ARGS] = {0};
    (void)state;
    kp_owned_note(&driver, kp_owned_row("cuMemGetInfo_v2"), args, 24);
    assert_int_equal(left, 1024);
    kp_owned_note(&driver, kp_owned_row("cuMemGetInfo_v2"), none, 24);
    const size_t total = 1500;
    const uint64_t both[KP_OWNED_ARGS] = {(uintptr_t)&left, (uintptr_t)&total};
    kp_owned_note(&driver, kp_owned_row("cuMemGetInfo_v2"), both, 400);
    assert_int_equal(left, 1424);
    kp_owned_note(&driver, kp_owned_row("cuMemGetInfo_v2"), both, 400); /* others gave memory back meanwhile */
    assert_int_equal(left, 1500);
}

/* A question that fails is no answer: memory that there is is listed, or the list is not made. */
static void a_failing_question_leaves_nothing_out(void **state)
{
    static const CUresult failures[] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_FOUND,
                                        CUDA_ERROR_INVALID_CONTEXT};
    struct kp_part *parts;
    enum kp_reason why;
    size_t n;
    (void)state;
    here = (CUcontext)0x10;
    allocates(0x10000, 0x200);
    there_is(0x20000, 0x400);
    variable(0x20000, 0x400);
    there_is(0x30000, 0x1000);
    call("cuMemMap", 0x30000, 0x1000, 0, 7);
    allocates(0x40000, 0x100);
    there_is_not(0x40000); /* with its context */
    asked = 0;
    assert_list({0x10000, 0x200, false}, {0x20000, 0x400, true}, {0x30000, 0x1000, false});
    const unsigned questions = asked;
    for (size_t f = 0; f < sizeof(failures) / sizeof(*failures); f++)
        for (unsigned k = 1; k <= questions; k++) {
            asked = 0;
            failing = k;
            failure = failures[f];
            if (kp_owned_list(&driver, DEVICE, &parts, &n, &why))
                assert_int_equal(n, 3);
            free(parts);
        }
}

/* Memory whose context the driver did not tell is of no context that there is. */
static void a_context_that_is_not_told(void **state)
{
    (void)state;
    here = (CUcontext)0x10;
    failing = asked + 1;
    failure = CUDA_ERROR_UNKNOWN;
    allocates(0x10000, 0x200);
    assert_cannot(KP_REASON_OWNED_ELSEWHERE);
}

/* Nobody else may hold the list in a forked child. */
static void a_forked_child_has_nothing(void **state)
{
    (void)state;
    allocates(0x10000, 0x200);
    call("cuMemAllocManaged", 0, 0, 0, 0);
    call("cuArrayCreate_v2", 0, 0, 0, 0);
    kp_owned_forked();
    assert_empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_row_is_a_function_of_the_driver, set_up),
        cmocka_unit_test_setup(what_a_call_is_about_to_take, set_up),
        cmocka_unit_test_setup(allocations_are_listed_by_address, set_up),
        cmocka_unit_test_setup(what_has_ended_unseen_is_left_out, set_up),
        cmocka_unit_test_setup(pools, set_up),
        cmocka_unit_test_setup(memory_of_other_contexts, set_up),
        cmocka_unit_test_setup(per_thread_default_streams, set_up),
        cmocka_unit_test_setup(memory_that_was_never_mapped, set_up),
        cmocka_unit_test_setup(memory_that_was_never_mapped, set_up),
        cmocka_unit_test_setup(mappings, set_up),
        cmocka_unit_test_setup(variables, set_up),
        cmocka_unit_test_setup(memory_of_other_devices_and_of_the_host, set_up),
        cmocka_unit_test_setup(many, set_up),
        cmocka_unit_test_setup(what_cannot_be_listed_is_said, set_up),
        cmocka_unit_test_setup(arrays, set_up),
        cmocka_unit_test_setup(some_drivers_tell_nothing, set_up),
        cmocka_unit_test_setup(what_is_free_includes_what_kprof_has, set_up),
        cmocka_unit_test_setup(a_failing_question_leaves_nothing_out, set_up),
        cmocka_unit_test_setup(a_context_that_is_not_told, set_up),
        cmocka_unit_test_setup(a_forked_child_has_nothing, set_up),
    };
    return cmocka_run_group_tests_name("preload/owned", tests, NULL, NULL);
}
