/* LINK: -lcuda */
/* Graphs that allocate memory: a kernel writes an index there, another one changes it, and a third one uses it. What
 * takes the memory from behind its addresses comes between launches. */
#include "linked.h"

enum { N = 64, ROUNDS = 3 };

static struct session s;
static CUfunction increment;
static CUdeviceptr values;

/* What is special about a graph. */
struct kind {
    const char *kernel; /* instead of `increment` */
    int keeps;          /* it frees nothing */
    CUdeviceptr frees;  /* memory of another graph */
    int device;         /* of the memory */
    int others;         /* other devices have access, too */
    int sets, copies;   /* its memory */
    CUdeviceptr pinned; /* given to the second kernel */
    CUdeviceptr index;  /* given to the third kernel */
    unsigned long long flags;
};

struct made {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode first; /* kernel */
    CUdeviceptr memory;
};

static CUgraphNode add_kernel(CUgraph graph, const char *name, void **params, CUgraphNode after)
{
    CUDA_KERNEL_NODE_PARAMS p = kernel_node(get_function(&linked, &s, name), 1, 32, 0, params);
    CUgraphNode node;

    MUST(cuGraphAddKernelNode(&node, graph, &after, 1, &p));
    return node;
}

static CUgraphNode add_copy(CUgraph graph, CUdeviceptr to, CUdeviceptr from, CUgraphNode after)
{
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = from,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = to,
                                .WidthInBytes = sizeof(int),
                                .Height = 1,
                                .Depth = 1};
    CUgraphNode node;

    MUST(cuGraphAddMemcpyNode(&node, graph, &after, 1, &copy, s.ctx));
    return node;
}

static CUgraphNode add_set(CUgraph graph, CUdeviceptr to, CUgraphNode after)
{
    const CUDA_MEMSET_NODE_PARAMS set = {.dst = to, .value = 9, .elementSize = 4, .width = 1, .height = 1};
    CUgraphNode node;

    MUST(cuGraphAddMemsetNode(&node, graph, &after, 1, &set, s.ctx));
    return node;
}

static CUgraphNode add_alloc(const struct kind *k, CUgraph graph, CUdeviceptr *memory)
{
    const CUmemAccessDesc access[] = {
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    CUDA_MEM_ALLOC_NODE_PARAMS p = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = k->device}},
                                    .accessDescs = access,
                                    .accessDescCount = k->others ? 2 : 1 - (size_t)k->device,
                                    .bytesize = N * sizeof(int)};
    CUgraphNode node;

    MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &p));
    *memory = p.dptr;
    return node;
}

static struct made make(const struct kind *k)
{
    struct made m;
    CUgraphNode node;
    CUdeviceptr second, third;
    int index = 3, one = 1, n = N;

    MUST(cuGraphCreate(&m.graph, 0));
    node = add_alloc(k, m.graph, &m.memory);
    second = k->pinned ? k->pinned : m.memory;
    third = k->index ? k->index : m.memory;
    m.first = node = add_kernel(m.graph, "set_flag", (void *[]){&m.memory, &index}, node);
    if (k->sets)
        node = add_set(m.graph, m.memory, node);
    node = add_kernel(m.graph, k->kernel ? k->kernel : "increment", (void *[]){&second, &one}, node);
    node = add_kernel(m.graph, "gather", (void *[]){&third, &values, &n}, node);
    if (k->copies)
        node = add_copy(m.graph, values, m.memory, node);
    node = add_set(m.graph, values + 4, node); /* memory that is no graph's */
    if (k->frees)
        MUST(cuGraphAddMemFreeNode(&node, m.graph, &node, 1, k->frees));
    if (!k->keeps)
        MUST(cuGraphAddMemFreeNode(&node, m.graph, &node, 1, m.memory));
    MUST(cuGraphInstantiateWithFlags(&m.exec, m.graph, k->flags));
    return m;
}

static void plain(void)
{
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuLaunchKernel(increment, 2, 1, 1, 32, 1, 1, 0, s.stream, params, NULL));
}

static void launch(const struct made *m)
{
    MUST(cuGraphLaunch(m->exec, s.stream));
}

/* ---- cases ---- */

static void rounds(const struct kind *k)
{
    struct made m = make(k);

    plain();
    for (int i = 0; i < ROUNDS; i++)
        launch(&m);
    plain();
}

static void paired(void)
{
    rounds(&(struct kind){.keeps = 0});
}

/* As libraries make it: by stream-ordered calls, of which a capture makes nodes. */
static void from_stream(void)
{
    int index = 3, one = 1, n = N;
    CUdeviceptr memory;
    struct made m;
    void *set[] = {&memory, &index}, *add[] = {&memory, &one}, *use[] = {&memory, &values, &n};

    plain();
    MUST(cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemAllocAsync(&memory, N * sizeof(int), s.stream));
    MUST(cuLaunchKernel(get_function(&linked, &s, "set_flag"), 1, 1, 1, 32, 1, 1, 0, s.stream, set, NULL));
    MUST(cuLaunchKernel(increment, 1, 1, 1, 32, 1, 1, 0, s.stream, add, NULL));
    MUST(cuLaunchKernel(get_function(&linked, &s, "gather"), 1, 1, 1, 32, 1, 1, 0, s.stream, use, NULL));
    MUST(cuMemFreeAsync(memory, s.stream));
    MUST(cuStreamEndCapture(s.stream, &m.graph));
    MUST(cuGraphInstantiateWithFlags(&m.exec, m.graph, 0));
    for (int i = 0; i < ROUNDS; i++)
        launch(&m);
    plain();
}

/* Allocations that differ in time alone, in child graphs. */
static void child(void)
{
    const struct kind usual = {.keeps = 0};
    struct made inner = make(&usual), outer = inner;
    CUgraphNode node;

    MUST(cuGraphExecDestroy(inner.exec));
    MUST(cuGraphCreate(&outer.graph, 0));
    MUST(cuGraphAddChildGraphNode(&node, outer.graph, NULL, 0, inner.graph));
    MUST(cuGraphAddChildGraphNode(&node, outer.graph, &node, 1, inner.graph));
    MUST(cuGraphInstantiateWithFlags(&outer.exec, outer.graph, 0));
    launch(&outer);
    launch(&outer);
    plain();
}

static void kept(void)
{
    rounds(&(struct kind){.keeps = 1, .flags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH});
}

static void freed_by_launch(void)
{
    rounds(&(struct kind){.flags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH});
}

static void set(void)
{
    rounds(&(struct kind){.sets = 1});
}

static void copied(void)
{
    rounds(&(struct kind){.copies = 1});
}

/* Its memset is made one of its memory. */
static void set_later(void)
{
    const struct kind usual = {.keeps = 0};
    struct made m = make(&usual);
    CUDA_MEMSET_NODE_PARAMS set;
    CUgraphNode nodes[8];
    size_t n = 8;

    MUST(cuGraphGetNodes(m.graph, nodes, &n));
    MUST(cuGraphMemsetNodeGetParams(nodes[4], &set));
    launch(&m);
    set.dst = m.memory;
    MUST(cuGraphExecMemsetNodeSetParams(m.exec, nodes[4], &set, s.ctx));
    launch(&m);
    launch(&m);
}

static void elsewhere(void)
{
    rounds(&(struct kind){.device = 1});
}

static void peers(void)
{
    rounds(&(struct kind){.others = 1});
}

static void once(void)
{
    rounds(&(struct kind){.kernel = "launching_increment"});
}

static void pinned(void)
{
    void *host;
    int *numbers;

    MUST(cuMemHostAlloc(&host, N * sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP));
    numbers = host;
    rounds(&(struct kind){.pinned = (CUdeviceptr)host});
    MUST(cuCtxSynchronize());
    report_number("pinned memory", numbers[0], ROUNDS);
}

/* More host memory than is compared. */
static void much_pinned(void)
{
    void *host;

    MUST(cuMemHostAlloc(&host, 1 << 20, CU_MEMHOSTALLOC_DEVICEMAP));
    rounds(&(struct kind){.index = (CUdeviceptr)host});
}

/* One graph allocates, and another one frees. */
static void across(void)
{
    const struct kind left = {.keeps = 1};
    struct made first = make(&left), second;
    const struct kind foreign = {.frees = first.memory};

    second = make(&foreign);
    for (int i = 0; i < ROUNDS; i++) {
        launch(&first);
        launch(&second);
    }
    plain();
}

static void trim(void)
{
    const struct kind usual = {.keeps = 0};
    struct made m = make(&usual);

    for (int i = 0; i < ROUNDS; i++) {
        launch(&m);
        MUST(cuDeviceGraphMemTrim(0));
        plain();
    }
}

static void destroy(void)
{
    const struct kind usual = {.keeps = 0};

    for (int i = 0; i < ROUNDS; i++) {
        struct made m = make(&usual);
        launch(&m);
        MUST(cuGraphExecDestroy(m.exec));
        plain();
    }
}

static void two(void)
{
    const struct kind usual = {.keeps = 0};
    struct made first = make(&usual), second = make(&usual);

    for (int i = 0; i < ROUNDS; i++) {
        launch(&first);
        launch(&second);
        plain();
    }
}

/* An allocation for which there is too little memory may cost graphs theirs. */
static void full(void)
{
    const struct kind usual = {.keeps = 0};
    struct made m = make(&usual);
    CUdeviceptr much;

    launch(&m);
    report_number("much memory", cuMemAlloc(&much, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
    launch(&m);
}

/* Beside one of which the kernels are not wanted. */
static void two_kernels(void)
{
    const struct kind usual = {.keeps = 0};
    const struct kind other = {.kernel = "tiny_increment"};
    struct made first = make(&usual), second = make(&other);

    for (int i = 0; i < ROUNDS; i++) {
        launch(&first);
        launch(&second);
    }
}

static void instantiate(void)
{
    const struct kind usual = {.keeps = 0};
    struct made first = make(&usual), second;

    launch(&first);
    second = make(&usual);
    plain();
    launch(&second);
}

static void changes(void)
{
    const struct kind usual = {.keeps = 0};
    struct made m = make(&usual);
    CUgraphExecUpdateResultInfo info;
    int index = 7;
    void *params[] = {&m.memory, &index};
    const CUDA_KERNEL_NODE_PARAMS other = kernel_node(get_function(&linked, &s, "set_flag"), 1, 32, 0, params);

    launch(&m);
    MUST(cuGraphExecKernelNodeSetParams(m.exec, m.first, &other));
    launch(&m);
    MUST(cuGraphExecUpdate(m.exec, m.graph, &info));
    launch(&m);
    MUST(cuGraphUpload(m.exec, s.stream));
    launch(&m);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"paired", paired},
    {"from-stream", from_stream},
    {"full", full},
    {"much-pinned", much_pinned},
    {"set", set},
    {"copied", copied},
    {"set-later", set_later},
    {"child", child},
    {"kept", kept},
    {"freed-by-launch", freed_by_launch},
    {"elsewhere", elsewhere},
    {"peers", peers},
    {"once", once},
    {"pinned", pinned},
    {"across", across},
    {"trim", trim},
    {"destroy", destroy},
    {"two", two},
    {"two-kernels", two_kernels},
    {"changes", changes},
    {"instantiate", instantiate},
};

int main(int argc, char **argv)
{
    static const int zeros[N];

    open_session(&linked, &s, 0);
    MUST(cuModuleUnload(s.module));
    MUST(cuModuleLoadData(&s.module, "FAKEMOD increment tiny_increment launching_increment set_flag gather"));
    increment = get_function(&linked, &s, "increment");
    values = device_ints(&linked, zeros, N);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (argc > 1 && !strcmp(cases[i].name, argv[1])) {
            cases[i].run();
            MUST(cuCtxSynchronize());
            printf("%s: %lld\n", argv[1], (long long)sum_ints(&linked, values, N));
            close_session(&linked, &s);
            return program_wrong;
        }
    printf("no such case\n");
    return 3;
}
