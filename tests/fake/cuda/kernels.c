/* The kernels: host functions that do what the device function of that name would, thread after thread. */
#include "core.h"

/* Argument `type` at byte `offset` of the packed arguments. */
#define ARG(call, type, offset)                                                                                        \
    __extension__({                                                                                                    \
        type value_;                                                                                                   \
        memcpy(&value_, (call)->bytes + (offset), sizeof(value_));                                                     \
        value_;                                                                                                        \
    })

static int64_t n_blocks(const struct call *call)
{
    return (int64_t)call->info.grid[0] * call->info.grid[1] * call->info.grid[2];
}

static int64_t n_threads(const struct call *call)
{
    return n_blocks(call) * call->info.block[0] * call->info.block[1] * call->info.block[2];
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* (const float *x, float *y, float a, int n): y[i] += a * x[i] */
static void run_axpy_inplace(const struct call *call)
{
    const float *x = ARG(call, float *, 0);
    float *y = ARG(call, float *, 8);
    float a = ARG(call, float, 16);
    int64_t n = smaller(ARG(call, int, 20), n_threads(call));

    for (int64_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

/* (int *data, int n): data[i]++ */
static void run_increment(const struct call *call)
{
    int *data = ARG(call, int *, 0);
    int64_t n = smaller(ARG(call, int, 8), n_threads(call));

    for (int64_t i = 0; i < n; i++)
        data[i]++;
}

/* (int *counter): each thread adds one */
static void run_atomic_count(const struct call *call)
{
    *ARG(call, int *, 0) += (int)n_threads(call);
}

/* (int *buffer, int *cursor, int capacity, int tag): each block appends; the entry depends on the one before it, so a
 * launch left out, repeated or out of order shows in all later entries */
static void run_append(const struct call *call)
{
    int *buffer = ARG(call, int *, 0), *cursor = ARG(call, int *, 8);
    int capacity = ARG(call, int, 16), tag = ARG(call, int, 20);

    for (int64_t block = 0; block < n_blocks(call) && *cursor < capacity; block++, ++*cursor)
        buffer[*cursor] = (*cursor ? buffer[*cursor - 1] * 31 : 0) + tag;
}

/* By value, so that only a copy of all its bytes gives the right result. */
struct scale_args {
    double *data;
    double factor;
    int n, shift;
    uint64_t check[2]; /* check[1] == ~check[0], or nothing is done */
};

static void run_scale_struct(const struct call *call)
{
    const struct scale_args args = ARG(call, struct scale_args, 0);

    if (args.check[1] != ~args.check[0])
        return;
    for (int64_t i = 0; i < smaller(args.n, n_threads(call)); i++)
        args.data[i] = args.data[i] * args.factor + args.shift;
}

/* (): like a kernel that reads a wild pointer, it breaks its context for good */
static void run_fail(const struct call *call)
{
    ((struct context *)call->info.ctx)->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* (int *data, int n): as increment; blocks of less than 64 threads read a wild pointer */
static void run_wide_only(const struct call *call)
{
    if (call->info.block[0] < 64)
        run_fail(call);
    else
        run_increment(call);
}

/* (int ms) */
static void run_slow(const struct call *call)
{
    double end = now_ms() + ARG(call, int, 0);

    while (now_ms() < end)
        ;
}

/* (const int *flag, int *data): waits until the flag is set, then adds it to data[0] */
static void run_wait_flag(const struct call *call)
{
    *ARG(call, int *, 8) += *ARG(call, volatile int *, 0);
}

static bool flag_is_set(const struct call *call, double ms)
{
    (void)ms;
    return *ARG(call, volatile int *, 0) != 0;
}

/* (const int *flag, int *data, int ms): waits until the flag is set, but at most this long. Adds 1 to data[0], and to
 * data[1] if the flag was not set by then */
static void run_gate(const struct call *call)
{
    ARG(call, int *, 8)[0]++;
    ARG(call, int *, 8)[1] += *ARG(call, volatile int *, 0) == 0;
}

static bool gate_is_open(const struct call *call, double ms)
{
    return *ARG(call, volatile int *, 0) != 0 || ms >= ARG(call, int, 16);
}

/* (const int **flag, int *data, int ms): like gate; the address of its flag is in device memory */
static void run_gate_behind(const struct call *call)
{
    ARG(call, int *, 8)[0]++;
    ARG(call, int *, 8)[1] += **ARG(call, volatile int **, 0) == 0;
}

static bool gate_behind_is_open(const struct call *call, double ms)
{
    return **ARG(call, volatile int **, 0) != 0 || ms >= ARG(call, int, 16);
}

/* (struct proxy *ring, int *sum, int number): posts a request in host memory, and adds the answer of a host thread to
 * sum[0] */
struct proxy {
    volatile int request, answer, posted;
};

static bool proxy_answers(const struct call *call, double ms)
{
    struct proxy *p = ARG(call, struct proxy *, 0);

    (void)ms;
    if (!p->posted) {
        p->posted = 1;
        p->request = ARG(call, int, 16);
    }
    return p->answer != 0;
}

static void run_proxy_client(const struct call *call)
{
    struct proxy *p = ARG(call, struct proxy *, 0);

    *ARG(call, int *, 8) += p->answer;
    p->answer = p->posted = 0; /* the memory is as before */
}

/* (int *flag, int value) */
static void run_set_flag(const struct call *call)
{
    *ARG(call, volatile int *, 0) = ARG(call, int, 8);
}

/* (int *data, int n, int ms): like increment, and lasts this long */
static bool time_is_over(const struct call *call, double ms)
{
    return ms >= ARG(call, int, 12);
}

/* (int number): printf */
static void run_print_line(const struct call *call)
{
    int n = snprintf(printed + n_printed, sizeof(printed) - n_printed, "kernel prints %d\n", ARG(call, int, 0));

    if (n > 0 && n_printed + n < sizeof(printed)) /* otherwise lost, as in a real fifo */
        n_printed += n;
}

/* A block of the device's heap, which no checkpoint knows. */
struct heap_block {
    bool taken;
    int64_t value;
};

/* (struct heap_block **blocks, int n, int k): each thread allocates a heap block with thrice the value of its previous
 * one plus k, and frees that one; a double free breaks the context, like a wild pointer */
static void run_heap_swap(const struct call *call)
{
    struct heap_block **blocks = ARG(call, struct heap_block **, 0);
    int64_t n = smaller(ARG(call, int, 8), n_threads(call));

    for (int64_t i = 0; i < n; i++) {
        struct heap_block *old = blocks[i];

        if (old && !old->taken)
            ((struct context *)call->info.ctx)->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
        blocks[i] = malloc(sizeof(**blocks)); /* never freed, so that it stays known */
        if (!blocks[i])
            fake_misuse("out of host memory");
        *blocks[i] = (struct heap_block){true, 3 * (old ? old->value : 0) + ARG(call, int, 12)};
        if (old)
            old->taken = false;
    }
}

/* (struct heap_block **blocks, int n, int k): changes their contents */
static void run_touch_blocks(const struct call *call)
{
    struct heap_block **blocks = ARG(call, struct heap_block **, 0);
    int64_t n = smaller(ARG(call, int, 8), n_threads(call));

    for (int64_t i = 0; i < n; i++)
        blocks[i]->value = 3 * blocks[i]->value + ARG(call, int, 12);
}

/* (struct heap_block **blocks, int *to, int n) */
static void run_read_blocks(const struct call *call)
{
    struct heap_block **blocks = ARG(call, struct heap_block **, 0);
    int *to = ARG(call, int *, 8);

    for (int64_t i = 0; i < smaller(ARG(call, int, 16), n_threads(call)); i++)
        to[i] = blocks[i] ? (int)blocks[i]->value : 0;
}

/* (const int *index, int *data, int n): adds one to data[*index]; breaks its context with an index out of bounds */
static void run_gather(const struct call *call)
{
    int index = *ARG(call, int *, 0);

    if (index < 0 || index >= ARG(call, int, 16))
        ((struct context *)call->info.ctx)->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    else
        ARG(call, int *, 8)[index]++;
}

/* (int *to, int every, int at): a value that no repetition reproduces: 1 if the runs of this kernel so far, repetitions
 * included, are `at` modulo `every`; for every = 0 their number */
static void run_varies(const struct call *call)
{
    static int runs;
    int every = ARG(call, int, 8);

    *ARG(call, int *, 0) = every ? runs % every == ARG(call, int, 12) : runs;
    runs++;
}

/* (int *data, int n): adds the first constant of its module, which the log shows */
static void run_add_constant(const struct call *call)
{
    int *data = ARG(call, int *, 0), constant = *(const int *)call->function->module->globals[0]->info.base;
    int64_t n = smaller(ARG(call, int, 8), n_threads(call));

    for (int64_t i = 0; i < n; i++)
        data[i] += constant;
    fake_log("constant pid=%d value=%d\n", (int)getpid(), constant);
}

/* (int *queue, int *cursor, int capacity): each thread takes the next place, in an order that no execution repeats;
 * breaks its context if there is none left */
static void run_enqueue(const struct call *call)
{
    static int runs;
    int *queue = ARG(call, int *, 0), *cursor = ARG(call, int *, 8), capacity = ARG(call, int, 16);
    int n = (int)n_threads(call), first = runs++;

    if (*cursor + n > capacity)
        run_fail(call);
    for (int i = 0; i < n && *cursor < capacity; i++)
        queue[(*cursor)++] = (first + i) % n;
}

/* (const int *queue, const int *cursor, int *data, int n): adds one for each of the last n places taken; breaks its
 * context on an invalid place */
static void run_serve(const struct call *call)
{
    int taken = *ARG(call, int *, 8), n = ARG(call, int, 24);
    const int *last = ARG(call, int *, 0) + taken - n;

    for (int i = 0; i < n; i++) {
        if (taken < n || last[i] < 0 || last[i] >= n) {
            run_fail(call);
            return;
        }
        ARG(call, int *, 16)[last[i]]++;
    }
}

/* (struct ring **at, int n, int value): puts values into a ring of host memory, whose address is in device memory */
struct ring {
    int put, taken, entries[64];
};

static void run_ring_put(const struct call *call)
{
    struct ring *ring = *ARG(call, struct ring **, 0);

    for (int i = 0; i < ARG(call, int, 8); i++)
        ring->entries[ring->put++ % 64] = ARG(call, int, 12);
}

/* (CUsurfObject surface, int n, int k): triples each of its ints and adds k */
static void run_surface_step(const struct call *call)
{
    int64_t there = 0, n = smaller(ARG(call, int, 8), n_threads(call));
    int *data = ints_of_view(ARG(call, uintptr_t, 0), 0, &there, call->info.name);

    for (int64_t i = 0; i < smaller(n, there); i++)
        data[i] = data[i] * 3 + ARG(call, int, 12);
}

/* (CUtexObject texture, int *to, int n, int level): to[i] += texture[i] */
static void run_texture_add(const struct call *call)
{
    int64_t there = 0, n = smaller(ARG(call, int, 16), n_threads(call));
    const int *data = ints_of_view(ARG(call, uintptr_t, 0), ARG(call, unsigned int, 20), &there, call->info.name);

    for (int64_t i = 0; i < smaller(n, there); i++)
        ARG(call, int *, 8)[i] += data[i];
}

/* (blocks, count, keys, digests, units, before, found, n_found): the fake's digests are simpler than the kernel's */
static uint64_t mixed(uint64_t lane, const unsigned char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
    return lane ^ lane >> 29;
}

static void run_kprof_scan(const struct call *call)
{
    const struct {
        const unsigned char *at;
        uint32_t bytes, constant;
    } *blocks = ARG(call, void *, 0);
    uint64_t *digests = ARG(call, uint64_t *, 24);
    unsigned char *units = ARG(call, unsigned char *, 32);
    const uint64_t *before = ARG(call, uint64_t *, 40);
    uint32_t *list = ARG(call, uint32_t *, 48), *n_found = ARG(call, uint32_t *, 56);

    for (uint32_t b = 0; b < ARG(call, uint32_t, 8); b++) {
        const unsigned char *p = blocks[b].at;
        bool uniform = !memcmp(p, p + 16, blocks[b].bytes - 16);
        uint64_t h0 = 0xcbf29ce484222325u, h1 = 1, h2 = 2, h3 = 3;

        for (uint32_t i = 0; i < blocks[b].bytes; i += 32) {
            h0 = mixed(h0, p + i);
            h1 = mixed(h1, p + i + 8);
            if (i + 16 == blocks[b].bytes)
                break;
            h2 = mixed(h2, p + i + 16);
            h3 = mixed(h3, p + i + 24);
        }
        memcpy(digests + 4 * (size_t)b, (uint64_t[]){h0, h1, h2, h3}, 32);
        memcpy(units + 16 * (size_t)b, p, 16);
        if (memcmp(digests + 4 * b, before + 4 * b, 32))
            list[(*n_found)++] = b | (uniform ? 1u << 31 : 0);
    }
}

/* (moves): each thread block makes one */
static void run_kprof_move(const struct call *call)
{
    const struct {
        unsigned char *to;
        const unsigned char *from;
        uint32_t bytes, repeats;
    } *moves = ARG(call, void *, 0);

    for (int64_t m = 0; m < n_blocks(call); m++)
        for (uint32_t i = 0, n = moves[m].repeats ? 16 : moves[m].bytes; i < moves[m].bytes; i += n)
            memcpy(moves[m].to + i, moves[m].from, n);
}

#define POINTER 8, 8
#define NUMBER  4, 4
#define CODE(name, run, regs, shared, n, ...)                                                                          \
    {                                                                                                                  \
        name, run, regs, shared, 0, 0, 1024, n, PARAMS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),   \
            NULL, 0                                                                                                    \
    }
#define LATE_CODE(name, run, ready, n, ...)                                                                            \
    {                                                                                                                  \
        name, run, 16, 0, 0, 0, 1024, n, PARAMS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), ready, 0 \
    }
/* Has __launch_bounds__, which makes the JIT ignore a limit of registers. */
#define BOUNDED_CODE(name, run, regs, threads, n, ...)                                                                 \
    {                                                                                                                  \
        name, run, regs, 0, 0, 0, threads, n, PARAMS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),     \
            NULL, 0                                                                                                    \
    }
#define PARAMS(s0, a0, s1, a1, s2, a2, s3, a3, s4, a4, s5, a5, s6, a6, s7, a7, ...)                                    \
    {s0, s1, s2, s3, s4, s5, s6, s7},                                                                                  \
    {                                                                                                                  \
        a0, a1, a2, a3, a4, a5, a6, a7                                                                                 \
    }

/* Mangled twins stand for C++ kernels: the names that a compiler gives to those signatures. */
static const struct kernel_code kernel_codes[] = {
    CODE("axpy_inplace", run_axpy_inplace, 16, 0, 4, POINTER, POINTER, NUMBER, NUMBER),
    CODE("_Z12axpy_inplacePKfPffi", run_axpy_inplace, 16, 0, 4, POINTER, POINTER, NUMBER, NUMBER),
    CODE("increment", run_increment, 16, 0, 2, POINTER, NUMBER),
    CODE("_Z9incrementPii", run_increment, 16, 0, 2, POINTER, NUMBER),
    CODE("_ZN5tests9incrementIiLi4EEEvPT_i", run_increment, 40, 4096, 2, POINTER, NUMBER),
    CODE("__nv_static_21__1e1ceecd_4_a_cu_main__Z10static_addPii", run_increment, 16, 0, 2, POINTER, NUMBER),
    CODE("atomic_count", run_atomic_count, 22, 0, 1, POINTER),
    CODE("append", run_append, 32, 0, 4, POINTER, POINTER, NUMBER, NUMBER),
    CODE("scale_struct", run_scale_struct, 28, 0, 1, sizeof(struct scale_args), 8),
    CODE("_Z12scale_struct10scale_args", run_scale_struct, 28, 0, 1, sizeof(struct scale_args), 8),
    CODE("fail", run_fail, 8, 0, 0, 0, 0),
    CODE("slow", run_slow, 8, 0, 1, NUMBER),
    LATE_CODE("wait_flag", run_wait_flag, flag_is_set, 2, POINTER, POINTER),
    LATE_CODE("gate", run_gate, gate_is_open, 3, POINTER, POINTER, NUMBER),
    LATE_CODE("pause", run_gate, gate_is_open, 3, POINTER, POINTER, NUMBER), /* a gate whose code does not show it */
    LATE_CODE("gate_behind", run_gate_behind, gate_behind_is_open, 3, POINTER, POINTER, NUMBER),
    LATE_CODE("proxy_client", run_proxy_client, proxy_answers, 3, POINTER, POINTER, NUMBER),
    LATE_CODE("late_increment", run_increment, time_is_over, 3, POINTER, NUMBER, NUMBER),
    CODE("set_flag", run_set_flag, 8, 0, 2, POINTER, NUMBER),
    CODE("print_line", run_print_line, 8, 0, 1, NUMBER),
    CODE("tiny_increment", run_increment, 16, 0, 2, POINTER, NUMBER),
    CODE("enqueue", run_enqueue, 16, 0, 3, POINTER, POINTER, NUMBER),
    CODE("serve", run_serve, 16, 0, 4, POINTER, POINTER, POINTER, NUMBER),
    CODE("gather", run_gather, 16, 0, 3, POINTER, POINTER, NUMBER),
    CODE("wide_only", run_wide_only, 16, 0, 2, POINTER, NUMBER),
    CODE("varies", run_varies, 16, 0, 3, POINTER, NUMBER, NUMBER),
    CODE("heap_swap", run_heap_swap, 16, 0, 3, POINTER, NUMBER, NUMBER),
    CODE("touch_blocks", run_touch_blocks, 16, 0, 3, POINTER, NUMBER, NUMBER),
    CODE("read_blocks", run_read_blocks, 16, 0, 3, POINTER, POINTER, NUMBER),
    CODE("launching_increment", run_increment, 16, 0, 2, POINTER, NUMBER),
    LATE_CODE("ncclDevKernel_wait", run_wait_flag, flag_is_set, 2, POINTER, POINTER),
    CODE("ncclDevKernel_set", run_set_flag, 8, 0, 2, POINTER, NUMBER),
    CODE("ncclDevKernel_increment", run_increment, 16, 0, 2, POINTER, NUMBER),
    BOUNDED_CODE("bounded_increment", run_increment, 40, 256, 2, POINTER, NUMBER),
    CODE("by_pointer", run_increment, 40, 0, 2, POINTER, NUMBER),
    CODE("wide_increment", run_increment, 72, 0, 2, POINTER, NUMBER),
    CODE("add_constant", run_add_constant, 40, 0, 2, POINTER, NUMBER),
    CODE("ring_put", run_ring_put, 16, 0, 3, POINTER, NUMBER, NUMBER),
    CODE("surface_step", run_surface_step, 16, 0, 3, POINTER, NUMBER, NUMBER),
    CODE("texture_add", run_texture_add, 16, 0, 4, POINTER, POINTER, NUMBER, NUMBER),
    CODE("kprof_scan", run_kprof_scan, 64, 2048, 8, POINTER, NUMBER, POINTER, POINTER, POINTER, POINTER, POINTER,
         POINTER),
    CODE("kprof_move", run_kprof_move, 16, 0, 1, POINTER),
};

#define N_KERNEL_CODES (sizeof(kernel_codes) / sizeof(kernel_codes[0]))

#undef CODE
#undef LATE_CODE
#undef BOUNDED_CODE
#undef PARAMS
#undef POINTER
#undef NUMBER

static const struct kernel_code *code_named(const struct kernel_code *codes, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(codes[i].name, name))
            return &codes[i];
    return NULL;
}

static size_t param_offset(const struct kernel_code *code, int index)
{
    size_t offset = 0;

    for (int i = 0;; i++) {
        offset = (offset + code->param_align[i] - 1) / code->param_align[i] * code->param_align[i];
        if (i == index)
            return offset;
        offset += code->param_size[i];
    }
}

static size_t param_bytes(const struct kernel_code *code)
{
    return code->n_params > 0 ? param_offset(code, code->n_params - 1) + code->param_size[code->n_params - 1] : 0;
}
