/* Whatever fails in kprof, the program's results are those without it: each call of the driver that kprof makes for
 * itself, each function that an older driver lacks, and each piece of memory. All of libkprof.so is in the test's
 * process, in front of the fake driver. The program runs once for each fault, in a context of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cudaProfiler.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/doors/doors.h"
#include "preload/os/kept_environment.h"
#include "preload/os/log.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "tests/support/child_support.h"
#include "tests/support/end_support.h"
#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"

/* ---- memory that is short ---- */

/* The piece of memory that cannot be had, from 1; 0 = each can. Those of the fakes and of the C library do not count:
 * the linker leads the calls of this program here (--wrap). */
static atomic_long lacks;
static long lacks_left; /* after the program */
static long lacks_next; /* the same, once the context is known: its plan takes most pieces */

static bool is_short(void)
{
    return atomic_load(&lacks) > 0 && atomic_fetch_sub(&lacks, 1) == 1;
}

#define WRAP(type, name, parameters, arguments, nothing)                                                               \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        return is_short() ? nothing : __real_##name arguments;                                                         \
    }
WRAP(void *, malloc, (size_t size), (size), NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAP(void *, realloc, (void *old, size_t size), (old, size), NULL)
WRAP(void *, aligned_alloc, (size_t align, size_t size), (align, size), NULL)
WRAP(char *, strndup, (const char *text, size_t most), (text, most), NULL)
WRAP(FILE *, open_memstream, (char **text, size_t *size), (text, size), NULL)

/* ---- a function that the driver lacks ---- */

static const char *lacking = "";

void *__real_kp_symbols_driver(const char *symbol);
void *__wrap_kp_symbols_driver(const char *symbol);
void *__wrap_kp_symbols_driver(const char *symbol)
{
    return strcmp(symbol, lacking) ? __real_kp_symbols_driver(symbol) : NULL;
}

/* ---- the driver's functions ---- */

enum {
#define KP_DRIVER(name, type, symbol, needed) OF_##name,
#include "collectors/facts/driver.def"
#undef KP_DRIVER
    FUNCTIONS
};

static const struct {
    const char *name;
    size_t offset;
    bool needed;
} functions[] = {
#define KP_DRIVER(name, type, symbol, needed) {#name, offsetof(struct kp_driver, name), needed},
#include "collectors/facts/driver.def"
#undef KP_DRIVER
};

/* No function has more arguments, and none has one that is no integer and no pointer. */
typedef CUresult (*any_function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                 uint64_t, uint64_t, uint64_t);

static any_function real[FUNCTIONS];
static atomic_uint calls[FUNCTIONS];
static struct {
    int of;
    unsigned nth; /* call, from 1; 0 = none */
    bool each;
} refused;

static CUresult call(int i, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
                     uint64_t h, uint64_t j, uint64_t k, uint64_t l)
{
    unsigned nth = atomic_fetch_add(&calls[i], 1) + 1;
    return i == refused.of && (refused.each || nth == refused.nth) ? CUDA_ERROR_UNKNOWN
                                                                   : real[i](a, b, c, d, e, f, g, h, j, k, l);
}

#define KP_DRIVER(name, type, symbol, needed)                                                                          \
    static CUresult call_##name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,    \
                                uint64_t h, uint64_t j, uint64_t k, uint64_t l)                                        \
    {                                                                                                                  \
        return call(OF_##name, a, b, c, d, e, f, g, h, j, k, l);                                                       \
    }
#include "collectors/facts/driver.def"
#undef KP_DRIVER

static const any_function counted[FUNCTIONS] = {
#define KP_DRIVER(name, type, symbol, needed) call_##name,
#include "collectors/facts/driver.def"
#undef KP_DRIVER
};

static void put(int i, any_function f)
{
    memcpy((char *)&kp_process_now.driver + functions[i].offset, &f, sizeof(f));
}

static void count_calls(void)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        memcpy(&real[i], (char *)&kp_process_now.driver + functions[i].offset, sizeof(real[i]));
        if (real[i])
            put(i, counted[i]);
    }
}

/* ---- the program ---- */

enum { WORDS = 64 };

static bool profiled;

/* A function as the program gets it from the dynamic linker. */
static void *found(const char *symbol)
{
    void *f = kp_test_fake(symbol);
    return profiled ? kp_door_wrap_symbol(symbol, f) : f;
}
#define CU(function) ((__typeof__(&function))(uintptr_t)found(KP_TEST_EXPORTED(function)))

static const char *fault; /* what fails, for a message */

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        CUresult must_ = (call);                                                                                       \
        if (must_ != CUDA_SUCCESS) {                                                                                   \
            fprintf(stderr, "%s: %s: %d\n", fault, #call, must_);                                                      \
            kp_test_end(1);                                                                                            \
        }                                                                                                              \
    } while (0)

struct results {
    int buffer[WORDS], counts[WORDS], copied[WORDS], cleared[WORDS], cursor, read, pinned, host;
};

static struct program {
    CUcontext ctx;
    CUstream stream;
    CUfunction append, increment, late;
    CUdeviceptr buffer, cursor, counts, copied, cleared;
    int *pinned;
    struct results out;
} p;

static void launch(CUfunction f, unsigned blocks, CUstream stream, void **params)
{
    MUST(CU(cuLaunchKernel)(f, blocks, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

/* Each entry depends on the one before it. */
static void append(int tag)
{
    int capacity = WORDS;
    void *params[] = {&p.buffer, &p.cursor, &capacity, &tag};
    launch(p.append, 2, NULL, params);
}

static void increment(CUdeviceptr at, CUstream stream)
{
    int n = WORDS;
    void *params[] = {&at, &n};
    launch(p.increment, 2, stream, params);
}

static void CUDA_CB add(void *to)
{
    *(int *)to += 1;
}

/* Memory that comes, is used and goes; results that the host reads, and goes on with. */
static void use_memory(void)
{
    CUdeviceptr fresh;
    size_t left, total;
    MUST(CU(cuMemAlloc)(&fresh, WORDS * sizeof(int)));
    MUST(CU(cuMemsetD32)(fresh, 5, WORDS));
    increment(fresh, NULL);
    MUST(CU(cuMemcpyDtoD)(p.copied, fresh, WORDS * sizeof(int)));
    MUST(CU(cuMemGetInfo)(&left, &total));
    MUST(CU(cuMemFree)(fresh));
    MUST(CU(cuMemcpyDtoH)(&p.out.read, p.cursor, sizeof(p.out.read)));
    append(p.out.read);
    MUST(CU(cuMemAllocAsync)(&fresh, WORDS * sizeof(int), p.stream));
    MUST(CU(cuMemsetD32Async)(fresh, 3, WORDS, p.stream));
    increment(fresh, p.stream);
    MUST(CU(cuMemcpyDtoDAsync)(p.cleared, fresh, WORDS * sizeof(int), p.stream));
    MUST(CU(cuMemFreeAsync)(fresh, p.stream));
    MUST(CU(cuStreamSynchronize)(p.stream));
}

static void use_host(void)
{
    MUST(CU(cuLaunchHostFunc)(p.stream, add, &p.out.host));
    increment(p.counts, p.stream);
    MUST(CU(cuMemcpyDtoHAsync)(p.pinned, p.counts, sizeof(int), p.stream));
    increment(p.counts, p.stream);
    MUST(CU(cuStreamSynchronize)(p.stream));
    p.out.pinned = *p.pinned;
    increment((CUdeviceptr)(uintptr_t)p.pinned, NULL);
    MUST(CU(cuCtxSynchronize)());
    p.out.pinned += *p.pinned;
}

static CUDA_KERNEL_NODE_PARAMS node_of(unsigned blocks, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = p.increment,
                                     .gridDimX = blocks,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 32,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params};
}

/* The graph is instantiated where kprof does not see it. */
static bool unseen;

static void use_graph(void)
{
    int n = WORDS;
    void *params[] = {&p.counts, &n};
    CUDA_KERNEL_NODE_PARAMS whole = node_of(2, params), half = node_of(1, params);
    CUDA_MEMSET_NODE_PARAMS clear = {.dst = p.cleared, .value = 7, .elementSize = 4, .width = WORDS / 2, .height = 1};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = p.counts,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = p.copied,
                          .WidthInBytes = 4 * sizeof(int),
                          .Height = 1,
                          .Depth = 1};
    CUgraph graph, child;
    CUgraphNode first, node;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    CUevent event;
    MUST(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    MUST(CU(cuGraphCreate)(&graph, 0));
    MUST(CU(cuGraphCreate)(&child, 0));
    MUST(CU(cuGraphAddKernelNode)(&first, graph, NULL, 0, &whole));
    MUST(CU(cuGraphAddMemsetNode)(&node, graph, &first, 1, &clear, p.ctx));
    MUST(CU(cuGraphAddMemcpyNode)(&node, graph, &node, 1, &copy, p.ctx));
    MUST(CU(cuGraphAddEventRecordNode)(&node, graph, &node, 1, event));
    MUST(CU(cuGraphAddKernelNode)(&(CUgraphNode){NULL}, child, NULL, 0, &half));
    MUST(CU(cuGraphAddChildGraphNode)(&node, graph, &node, 1, child));
    if (unseen)
        MUST(KP_TEST_FAKE(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    else
        MUST(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    MUST(CU(cuGraphLaunch)(exec, p.stream));
    MUST(CU(cuGraphExecKernelNodeSetParams)(exec, first, &half));
    increment(p.counts, p.stream);
    MUST(CU(cuGraphLaunch)(exec, p.stream));
    MUST(CU(cuGraphExecUpdate)(exec, graph, &info));
    MUST(CU(cuGraphLaunch)(exec, p.stream));
    MUST(CU(cuStreamSynchronize)(p.stream));
    MUST(CU(cuGraphExecDestroy)(exec));
    MUST(CU(cuGraphDestroy)(child));
    MUST(CU(cuGraphDestroy)(graph));
    MUST(CU(cuEventDestroy)(event));
}

static CUdeviceptr zeros(void)
{
    CUdeviceptr at;
    MUST(CU(cuMemAlloc)(&at, WORDS * sizeof(int)));
    MUST(CU(cuMemsetD8)(at, 0, WORDS * sizeof(int)));
    return at;
}

static void fetch(int *to, CUdeviceptr from)
{
    MUST(CU(cuMemcpyDtoH)(to, from, WORDS * sizeof(int)));
}

static const struct results *run_program(void)
{
    CUmodule module, other;
    CUdeviceptr *const memory[] = {&p.buffer, &p.cursor, &p.counts, &p.copied, &p.cleared};
    int words[WORDS];
    memset(&p, 0, sizeof(p));
    MUST(((CUresult(*)(CUcontext *, unsigned, CUdevice))(uintptr_t)found("cuCtxCreate_v2"))(&p.ctx, 0, 0));
    MUST(CU(cuStreamCreate)(&p.stream, CU_STREAM_DEFAULT));
    MUST(CU(cuModuleLoadData)(&module, "FAKEMOD append increment"));
    MUST(CU(cuModuleGetFunction)(&p.append, module, "append"));
    MUST(CU(cuModuleGetFunction)(&p.increment, module, "increment"));
    for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++)
        *memory[i] = zeros();
    MUST(CU(cuMemAllocHost)((void **)&p.pinned, WORDS * sizeof(int)));
    memset(p.pinned, 0, WORDS * sizeof(int));
    append(1);
    atomic_store(&lacks, lacks_next);
    append(2);
    MUST(CU(cuMemcpyHtoD)(p.counts, (const int[]){4, 5, 6}, 3 * sizeof(int)));
    increment(p.counts, p.stream);
    use_memory();
    MUST(CU(cuModuleLoadData)(&other, "FAKEMOD tiny_increment"));
    MUST(CU(cuModuleGetFunction)(&p.late, other, "tiny_increment"));
    launch(p.late, 1, NULL, (void *[]){&p.counts, &(int){WORDS}});
    MUST(CU(cuProfilerStart)());
    use_host();
    use_graph();
    MUST(CU(cuProfilerStop)());
    append(3);
    MUST(CU(cuModuleUnload)(other));
    fetch(p.out.buffer, p.buffer);
    fetch(p.out.counts, p.counts);
    fetch(p.out.copied, p.copied);
    fetch(p.out.cleared, p.cleared);
    fetch(words, p.cursor);
    p.out.cursor = words[0];
    MUST(CU(cuMemFreeHost)(p.pinned));
    MUST(((CUresult(*)(CUcontext))(uintptr_t)found("cuCtxDestroy_v2"))(p.ctx));
    lacks_left = atomic_exchange(&lacks, 0);
    return &p.out;
}

/* ---- faults ---- */

static struct results expected;

static void check(const char *what)
{
    fault = what;
    if (!memcmp(run_program(), &expected, sizeof(expected)))
        return;
    fprintf(stderr, "%s: other results\n", what);
    kp_test_end(1);
}

static void refuse_calls(void)
{
    CHECK(kp_process_active());
    count_calls();
    unsigned made[FUNCTIONS];
    char what[128];
    memset(calls, 0, sizeof(calls));
    check("nothing");
    for (int i = 0; i < FUNCTIONS; i++)
        made[i] = atomic_load(&calls[i]);
    for (int i = 0; i < FUNCTIONS; i++) {
        const unsigned points[] = {1, made[i]};
        unsigned before = 0;
        for (size_t k = 0; k < sizeof(points) / sizeof(*points); k++) {
            if (points[k] <= before)
                continue;
            before = points[k];
            if (points[k] > made[i])
                break;
            snprintf(what, sizeof(what), "call %u of %s fails", points[k], functions[i].name);
            memset(calls, 0, sizeof(calls));
            refused.of = i;
            refused.nth = points[k];
            check(what);
        }
    }
    refused.nth = 0;
}

static long most_points;

/* Each of the first pieces, and from there on some of the others. */
static void lack_memory(void)
{
    char what[128];
    CHECK(kp_process_active());
    lacks_next = LONG_MAX;
    check("nothing");
    const long n = LONG_MAX - lacks_left, each = most_points / 2, step = n / (most_points - each) + 1;
    for (long i = 1; i <= n; i += i < each ? 1 : step) {
        snprintf(what, sizeof(what), "piece %ld of %ld of memory lacks", i, n);
        lacks_next = i;
        check(what);
    }
}

static void name_nothing(void)
{
    count_calls();
    refused.of = OF_cuFuncGetName;
    refused.each = true;
    check("functions have no names");
}

static void hide_graph(void)
{
    unseen = true;
    check("a graph that was not seen before");
}

static void go_on(void)
{
    check("nothing");
}

/* What the driver refuses leaves the window as it is. */
static void refuse_access(void)
{
    CUmemAccessDesc to = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                          .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAllocationProp of = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = to.location};
    CUmemGenericAllocationHandle piece;
    CUdeviceptr at;
    size_t bytes;
    check("nothing");
    MUST(((CUresult(*)(CUcontext *, unsigned, CUdevice))(uintptr_t)found("cuCtxCreate_v2"))(&p.ctx, 0, 0));
    CUmodule module;
    MUST(CU(cuModuleLoadData)(&module, "FAKEMOD increment"));
    MUST(CU(cuModuleGetFunction)(&p.increment, module, "increment"));
    p.counts = zeros();
    increment(p.counts, NULL);
    MUST(CU(cuMemGetAllocationGranularity)(&bytes, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(CU(cuMemCreate)(&piece, bytes, &of, 0));
    MUST(CU(cuMemAddressReserve)(&at, bytes, 0, 0, 0));
    MUST(CU(cuMemMap)(at, bytes, 0, piece, 0));
    to.location.id = 99; /* no such device */
    CHECK(CU(cuMemSetAccess)(at, bytes, &to, 1) != CUDA_SUCCESS);
    to.location.id = 0;
    MUST(CU(cuMemSetAccess)(at, bytes, &to, 1));
    increment(at, NULL);
    increment(at, NULL);
    int first = 0;
    MUST(CU(cuMemcpyDtoH)(&first, at, sizeof(first)));
    CHECK(first == 2);
}

static void stay_out(void)
{
    CHECK(!kp_process_active());
    check("nothing is profiled");
}

/* ---- the settings ---- */

#define GRAPH_UNSEEN "graph whose instantiation was not seen"
#define BAD_METRIC   "KPROF_METRICS=no_such_metric.sum,no_such_other.sum"

static const struct row {
    const char *variables[3]; /* NAME=VALUE */
    void (*faults)(void);
    long points;         /* of the faults, about */
    const char *lacking; /* of the driver's functions; NULL = none */
    const char *says;    /* a part of a line of the report; NULL = it does not matter */
} rows[] = {
    {.variables = {"KPROF_REPLAY_MODE=kernel"}, .faults = refuse_calls},
    {.variables = {"KPROF_REPLAY_MODE=kernel"}, .faults = lack_memory, .points = 120},
    {.variables = {"KPROF_REPLAY_MODE=rotate", "KPROF_TIMELINE=yes", "KPROF_CALL_STACK=native"},
     .faults = lack_memory,
     .points = 40},
    {.variables = {"KPROF_REPLAY_MODE=range"}, .faults = lack_memory, .points = 40},
    {.faults = refuse_access},
    {.faults = name_nothing, .says = "unnamed kernel"},
    {.variables = {"KPROF_REPLAY_MODE=kernel"}, .faults = hide_graph, .says = GRAPH_UNSEEN},
    {.variables = {"KPROF_REPLAY_MODE=range"},
     .faults = hide_graph,
     .says = "15 launches seen, 3 profiled, 12 skipped"},
    {.variables = {"KPROF_REPLAY_MODE=range", BAD_METRIC}, .faults = go_on, .says = "no_such_metric"},
    {.variables = {"KPROF_KERNEL_ID=1::increment:2", BAD_METRIC}, .faults = go_on, .says = "no_such_metric"},
    {.variables = {"KPROF_SECTION=NoSuchSection"}, .faults = stay_out},
    /* without it kprof would not see which memory of the host a launch reaches */
    {.faults = stay_out,
     .lacking = "cuFuncGetParamInfo",
     .says = "the CUDA driver has no cuFuncGetParamInfo: a newer driver is needed"},
};

static void set(const char *name, const char *value)
{
    CHECK(!setenv(name, value, 1));
}

static bool has_line(const char *path, const char *part)
{
    char line[4096];
    bool found = false;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof(line), f))
        found = strstr(line, part);
    if (f)
        fclose(f);
    return found;
}

/* In a child: there is one kprof a process. */
static void run_row(const struct row *r)
{
    char report[] = "/tmp/kprof_failsXXXXXX";
    int fd = mkstemp(report);
    CHECK(fd >= 0);
    alarm(300);
    MUST(CU(cuInit)(0));
    fault = "without kprof";
    expected = *run_program();
    set("KPROF_CUPTI_DIR", kp_test_build("fake"));
    set("KPROF_LOG_FILE", report);
    set("KPROF_METRICS", "sm__cycles_active.avg,dram__bytes.sum,launch__registers_per_thread");
    most_points = r->points;
    for (size_t i = 0; i < sizeof(r->variables) / sizeof(*r->variables) && r->variables[i]; i++) {
        char *name = kp_strdup(r->variables[i]), *value = strchr(name, '=');
        *value = '\0';
        set(name, value + 1);
        free(name);
    }
    kp_kept_note();
    if (r->lacking) { /* it is told before there is a session with a log */
        CHECK(dup2(fd, STDERR_FILENO) >= 0);
        kp_log_remember_stderr();
    }
    lacking = r->lacking ? r->lacking : "";
    profiled = true;
    MUST(CU(cuInit)(0));
    r->faults();
    kp_process_finish();
    if (r->says && !has_line(report, r->says)) {
        fprintf(stderr, "%s does not say: %s\n", report, r->says);
        kp_test_end(1);
    }
    unlink(report);
    kp_test_end(0);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int status = -1;
        fflush(NULL);
        pid_t child = fork();
        if (!child)
            run_row(&rows[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests_name("preload/fails", tests, NULL, NULL);
}
