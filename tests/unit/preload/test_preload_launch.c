/* Launch records: what the doors make of a call. A copied record issues the same launch again after the caller has
 * overwritten all that it passed. The process behind the doors is this test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "preload/doors/launch_doors.h"
#include "preload/gate/fast_path.h"
#include "preload/os/guard.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"

/* ---- the process: keeps the launch that a door hands it ---- */

static struct {
    bool active;
    unsigned launches, bare, skipped, closed;
    enum kp_reason reason;
    struct kp_launch last;
    void (*during)(struct kp_launch *l);
} process;

void kp_phase_hold(void)
{
}

void kp_phase_launched(void)
{
    process.bare++;
}

bool kp_process_active(void)
{
    return process.active;
}

void kp_process_cuda_started(void)
{
}

const struct kp_driver *kp_process_driver(void)
{
    return NULL;
}

CUresult kp_process_launch(struct kp_launch *l)
{
    process.launches++;
    process.last = *l;
    if (process.during)
        process.during(l);
    return l->issue(l);
}

void kp_process_skip(enum kp_reason reason, unsigned launches)
{
    process.reason = reason;
    process.skipped += launches;
}

bool kp_process_close_window(const char *why)
{
    assert_non_null(why);
    process.closed++;
    return true;
}

enum kp_joined kp_process_join(const char *symbol, void *real, const uint64_t *args)
{
    (void)symbol;
    (void)real;
    (void)args;
    return KP_JOINED_NOT;
}

bool kp_process_sets(void *real, const uint64_t *before, const uint64_t *after)
{
    (void)real, (void)before, (void)after;
    return false;
}

bool kp_process_log(void)
{
    return true;
}

void kp_process_read(const char *symbol)
{
    (void)symbol;
}

void kp_process_read_later(const char *symbol, CUresult rc)
{
    (void)symbol, (void)rc;
}

void kp_process_join_failed(void)
{
}

bool kp_process_allocates(enum kp_gift what, const uint64_t *args)
{
    (void)what, (void)args;
    return false;
}

void kp_process_allocated(const char *symbol, enum kp_gift what, CUresult rc)
{
    (void)symbol, (void)rc, (void)what;
}

bool kp_process_releases(CUmemGenericAllocationHandle memory)
{
    (void)memory;
    return false;
}

CUresult kp_process_calls_again(const char *symbol, void *real, const uint64_t *args, bool alone)
{
    (void)symbol, (void)real, (void)args, (void)alone;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

bool kp_process_loads(CUkernel kernel)
{
    (void)kernel;
    return false;
}

bool kp_process_replays(void)
{
    return true;
}

void kp_process_loads_images(void)
{
}

void kp_process_profile(bool on)
{
    (void)on;
}

void kp_process_context_ends(enum kp_ends which, uint64_t first, const char *symbol)
{
    (void)which;
    (void)first;
    (void)symbol;
}

void kp_process_forget(enum kp_stale what, uint64_t first)
{
    (void)what;
    (void)first;
}

void kp_process_finish(void)
{
}

/* ---- the driver: reads its arguments as a kernel would ---- */

struct wide {
    double d[3];
    char c;
};

/* void kernel(float *, struct wide, char, int) */
static struct kp_param params[] = {{0, 8}, {8, sizeof(struct wide)}, {40, 1}, {44, 4}};
static const struct kp_function kernel = {.params_known = true, .params = params, .n_params = 4, .params_bytes = 48};

static CUfunction const function = (CUfunction)(uintptr_t)0x1000;
static CUstream const stream = (CUstream)(uintptr_t)0x2000;
static CUgraphExec const graph = (CUgraphExec)(uintptr_t)0x3000;

static struct {
    unsigned calls, closed;
    CUfunction f;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void **params, **extra;
    uint8_t bytes[64]; /* the parameter buffer that the kernel would see */
    CUlaunchAttribute attributes[4];
    unsigned n_attributes;
} seen;

static void read_arguments(void **list, void **extra)
{
    seen.params = list;
    seen.extra = extra;
    if (list && !extra)
        for (size_t i = 0; i < kernel.n_params; i++)
            memcpy(seen.bytes + params[i].offset, list[i], params[i].size);
    for (void **e = extra; e && !list && e[0] != CU_LAUNCH_PARAM_END; e += 2)
        if (e[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            memcpy(seen.bytes, e[1], kernel.params_bytes);
        else if (e[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            assert_int_equal(*(size_t *)e[1], kernel.params_bytes);
}

static CUresult real_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared, CUstream s, void **list, void **extra)
{
    memset(seen.bytes, 0, sizeof(seen.bytes));
    seen.calls++;
    seen.f = f;
    memcpy(seen.grid, (unsigned[]){gx, gy, gz}, sizeof(seen.grid));
    memcpy(seen.block, (unsigned[]){bx, by, bz}, sizeof(seen.block));
    seen.shared = shared;
    seen.stream = s;
    read_arguments(list, extra);
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES; /* to see that results come back */
}

static CUresult real_launch_ex(const CUlaunchConfig *c, CUfunction f, void **list, void **extra)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    seen.n_attributes = c->numAttrs;
    assert_true(c->numAttrs <= 4);
    if (c->numAttrs)
        memcpy(seen.attributes, c->attrs, c->numAttrs * sizeof(*c->attrs));
    return real_launch(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                       c->sharedMemBytes, c->hStream, list, extra);
}

static CUresult real_cooperative(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, CUstream s, void **list)
{
    return real_launch(f, gx, gy, gz, bx, by, bz, shared, s, list, NULL);
}

static CUresult real_once(CUfunction f)
{
    return real_launch(f, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL);
}

static CUresult real_grid(CUfunction f, int width, int height)
{
    return real_launch(f, (unsigned)width, (unsigned)height, 0, 0, 0, 0, 0, NULL, NULL, NULL);
}

static CUresult real_grid_async(CUfunction f, int width, int height, CUstream s)
{
    return real_launch(f, (unsigned)width, (unsigned)height, 0, 0, 0, 0, 0, s, NULL, NULL);
}

static CUresult real_graph(CUgraphExec g, CUstream s)
{
    assert_ptr_equal(g, graph);
    return real_launch(NULL, 0, 0, 0, 0, 0, 0, 0, s, NULL, NULL);
}

static CUresult graph_that_runs(CUgraphExec g, CUstream s)
{
    (void)g, (void)s;
    return CUDA_SUCCESS;
}

static CUresult real_block_shape(CUfunction f, int x, int y, int z)
{
    (void)y;
    (void)z;
    return f && x ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult real_shared_size(CUfunction f, unsigned bytes)
{
    (void)bytes;
    return f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult real_multi_device(CUDA_LAUNCH_PARAMS_v1 *list, unsigned devices, unsigned flags)
{
    assert_int_equal(flags, 3);
    seen.closed = process.closed;
    seen.calls += devices;
    return list ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static int reset(void **state)
{
    (void)state;
    memset(&process, 0, sizeof(process));
    memset(&seen, 0, sizeof(seen));
    process.active = true;
    return 0;
}

/* ---- arguments ---- */

/* What a caller has on its stack, and what it does with it after the call. */
struct caller {
    void *pointer;
    struct wide wide;
    char c;
    int i;
    void *list[4];
};

static void call_of(struct caller *c)
{
    memset(c, 0, sizeof(*c));
    c->pointer = (void *)(uintptr_t)0x7f0012345678;
    memcpy(c->wide.d, (double[3]){1.5, -2.5, 1e300}, sizeof(c->wide.d));
    c->wide.c = 'w'; /* by members, as the padding is compared, too */
    c->c = 'c';
    c->i = -123456;
    memcpy(c->list, (void *[]){&c->pointer, &c->wide, &c->c, &c->i}, sizeof(c->list));
}

static void check_bytes(void)
{
    struct caller c;
    uint8_t expected[64] = {0};
    call_of(&c);
    for (size_t i = 0; i < 4; i++)
        memcpy(expected + params[i].offset, c.list[i], params[i].size);
    assert_memory_equal(seen.bytes, expected, sizeof(expected));
}

/* Overwrites what functions that have returned left on the stack. */
static __attribute__((noinline)) void scribble(void)
{
    volatile uint8_t frame[4096];
    for (size_t i = 0; i < sizeof(frame); i++)
        frame[i] = 0xee;
}

static struct kp_launch record(void **list, void **extra)
{
    struct kp_launch l = {.f = function, .stream = stream, .params = list, .extra = extra};
    return l;
}

/* Whether a word of the copy is `address`: that is how it is found out which memory a launch can reach. */
static bool finds(const struct kp_launch *l, uint64_t address)
{
    bool found = false;
    assert_int_equal(l->copied % 16, 0);
    for (size_t at = 0; at < l->copied; at += sizeof(address))
        found |= !memcmp((const char *)l->copy + at, &address, sizeof(address));
    return found;
}

static void test_copy_of_a_list(void **state)
{
    struct caller c;
    call_of(&c);
    struct kp_launch l = record(c.list, NULL);
    (void)state;
    assert_int_equal(kp_launch_copy(&l, &kernel), 0);
    assert_ptr_not_equal(l.params, c.list);
    assert_null(l.extra);
    memset(&c, 0xee, sizeof(c));
    read_arguments(l.params, l.extra);
    check_bytes();
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal((uintptr_t)l.params[i] % 16, 0); /* the widest type by value is aligned so */
        assert_in_range((uintptr_t)l.params[i], (uintptr_t)l.copy, (uintptr_t)l.copy + l.copied - params[i].size);
    }
    assert_true(finds(&l, 0x7f0012345678));
    kp_launch_free(&l);
    assert_null(l.copy);
    kp_launch_free(&l);
}

static void test_copy_of_extra(void **state)
{
    struct caller c;
    uint8_t buffer[48] = {0};
    size_t size = sizeof(buffer);
    call_of(&c);
    for (size_t i = 0; i < 4; i++)
        memcpy(buffer + params[i].offset, c.list[i], params[i].size);
    void *orders[][5] = {
        {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END},
        {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint8_t kept[sizeof(buffer)];
        struct kp_launch l = record(NULL, orders[i]);
        memcpy(kept, buffer, sizeof(kept));
        assert_int_equal(kp_launch_copy(&l, &kernel), 0);
        assert_ptr_not_equal(l.extra, orders[i]);
        assert_null(l.params);
        memset(orders[i], 0xee, sizeof(orders[i]));
        memset(buffer, 0xee, sizeof(buffer));
        size = 0;
        memset(seen.bytes, 0, sizeof(seen.bytes));
        scribble();
        read_arguments(l.params, l.extra);
        check_bytes();
        assert_true(finds(&l, 0x7f0012345678));
        kp_launch_free(&l);
        memcpy(buffer, kept, sizeof(kept));
        size = sizeof(buffer);
    }
}

/* An error that the driver is to report: it must see what the program passed. */
static void test_both_given(void **state)
{
    struct caller c;
    void *extra[] = {CU_LAUNCH_PARAM_END};
    call_of(&c);
    struct kp_launch l = record(c.list, extra);
    (void)state;
    assert_int_equal(kp_launch_copy(&l, &kernel), 0);
    assert_ptr_equal(l.params, c.list);
    assert_ptr_equal(l.extra, extra);
    assert_null(l.copy);
    kp_launch_free(&l);
}

/* Where the sizes are not known, or a key is not, the caller's memory stays in use: it is valid during the call. */
static void test_what_cannot_be_copied(void **state)
{
    struct caller c;
    const struct kp_function unknown = {.params_known = false};
    void *extra[] = {(void *)(uintptr_t)0x77, &c, CU_LAUNCH_PARAM_END};
    call_of(&c);
    struct kp_launch l = record(c.list, NULL);
    (void)state;
    assert_int_equal(kp_launch_copy(&l, &unknown), 0);
    assert_ptr_equal(l.params, c.list);
    assert_int_equal(l.copied, 0);
    kp_launch_free(&l);
    l = record(NULL, extra);
    assert_int_equal(kp_launch_copy(&l, &kernel), 0);
    assert_ptr_equal(l.extra, extra);
    kp_launch_free(&l);
}

static void test_kernel_without_parameters(void **state)
{
    const struct kp_function none = {.params_known = true};
    void *list[1] = {NULL};
    struct kp_launch l = record(NULL, NULL);
    (void)state;
    assert_int_equal(kp_launch_copy(&l, &none), 0);
    assert_null(l.params);
    assert_null(l.extra);
    kp_launch_free(&l);
    l = record(list, NULL);
    assert_int_equal(kp_launch_copy(&l, &none), 0);
    assert_non_null(l.params);
    kp_launch_free(&l);
}

static void test_copy_of_attributes(void **state)
{
    struct caller c;
    CUlaunchAttribute attributes[3], kept[3];
    call_of(&c);
    memset(attributes, 0, sizeof(attributes));
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value.clusterDim.x = 4;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[1].value.priority = -5;
    attributes[2].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[2].value.programmaticStreamSerializationAllowed = 1;
    memcpy(kept, attributes, sizeof(kept));
    struct kp_launch l = record(c.list, NULL);
    l.config.attrs = attributes;
    l.config.numAttrs = 3;
    (void)state;
    assert_int_equal(kp_launch_copy(&l, &kernel), 0);
    memset(attributes, 0xee, sizeof(attributes));
    memset(&c, 0xee, sizeof(c));
    assert_int_equal(l.config.numAttrs, 3);
    assert_memory_equal(l.config.attrs, kept, sizeof(kept));
    read_arguments(l.params, l.extra);
    check_bytes();
    kp_launch_free(&l);
}

/* ---- doors ---- */

static void check_issued(unsigned calls)
{
    assert_int_equal(seen.calls, calls);
    assert_ptr_equal(seen.f, function);
    assert_memory_equal(seen.grid, ((unsigned[]){10, 11, 12}), sizeof(seen.grid));
    assert_memory_equal(seen.block, ((unsigned[]){32, 2, 4}), sizeof(seen.block));
    assert_int_equal(seen.shared, 400);
    assert_ptr_equal(seen.stream, stream);
}

static void check_shape(const struct kp_launch *l)
{
    assert_memory_equal(l->shape.grid, ((uint32_t[]){10, 11, 12}), sizeof(l->shape.grid));
    assert_memory_equal(l->shape.block, ((uint32_t[]){32, 2, 4}), sizeof(l->shape.block));
    assert_int_equal(l->shape.dynamic_shared, 400);
    assert_ptr_equal(l->f, function);
    assert_ptr_equal(l->stream, stream);
    assert_false(l->is_graph);
}

static struct caller on_stack;

/* What a window does: keeps a copy, and issues it more than once after the caller's memory has changed. */
static void copy_and_issue_again(struct kp_launch *l)
{
    struct kp_launch kept = *l;
    assert_int_equal(kp_launch_copy(&kept, &kernel), 0);
    memset(&on_stack, 0xee, sizeof(on_stack));
    for (int i = 0; i < 3; i++) {
        kept.issue(&kept);
        check_bytes();
    }
    kp_launch_free(&kept);
    call_of(&on_stack);
}

static void test_launch(void **state)
{
    const void *host = &on_stack;
    (void)state;
    call_of(&on_stack);
    process.during = copy_and_issue_again;
    kp_runtime_host_function = host;
    CUresult rc =
        kp_cuLaunchKernel(real_launch, true, function, 10, 11, 12, 32, 2, 4, 400, stream, on_stack.list, NULL);
    kp_runtime_host_function = NULL;
    assert_int_equal(rc, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_int_equal(process.launches, 1);
    check_shape(&process.last);
    assert_true(process.last.ptsz);
    assert_ptr_equal(process.last.host_function, host);
    check_issued(4);
}

static void test_cooperative_launch(void **state)
{
    (void)state;
    call_of(&on_stack);
    process.during = copy_and_issue_again;
    kp_cuLaunchCooperativeKernel(real_cooperative, false, function, 10, 11, 12, 32, 2, 4, 400, stream, on_stack.list);
    check_shape(&process.last);
    assert_false(process.last.ptsz);
    assert_null(process.last.host_function);
    check_issued(4);
}

static void test_launch_with_config(void **state)
{
    CUlaunchAttribute attributes[4];
    (void)state;
    call_of(&on_stack);
    memset(attributes, 0, sizeof(attributes));
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value.clusterDim.x = 4;
    attributes[0].value.clusterDim.y = 2;
    attributes[0].value.clusterDim.z = 1;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    attributes[1].value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
    attributes[2].id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
    attributes[2].value.preferredClusterDim.x = 8;
    attributes[2].value.preferredClusterDim.y = 3;
    attributes[2].value.preferredClusterDim.z = 2;
    attributes[3].id = CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
    attributes[3].value.nvlinkUtilCentricScheduling = 1;
    const CUlaunchConfig config = {.gridDimX = 10,
                                   .gridDimY = 11,
                                   .gridDimZ = 12,
                                   .blockDimX = 32,
                                   .blockDimY = 2,
                                   .blockDimZ = 4,
                                   .sharedMemBytes = 400,
                                   .hStream = stream,
                                   .attrs = attributes,
                                   .numAttrs = 4};
    process.during = copy_and_issue_again;
    kp_cuLaunchKernelEx(real_launch_ex, false, &config, function, on_stack.list, NULL);
    check_shape(&process.last);
    assert_memory_equal(process.last.shape.cluster, ((uint32_t[]){4, 2, 1}), sizeof(process.last.shape.cluster));
    assert_memory_equal(process.last.shape.preferred_cluster, ((uint32_t[]){8, 3, 2}),
                        sizeof(process.last.shape.preferred_cluster));
    assert_int_equal(process.last.shape.cluster_policy, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    assert_true(process.last.shape.nvlink_centric);
    check_issued(4);
    assert_int_equal(seen.n_attributes, 4);
    assert_memory_equal(&seen.attributes[0].value.clusterDim, &attributes[0].value.clusterDim,
                        sizeof(attributes[0].value.clusterDim));
    reset(NULL);
    assert_int_equal(kp_cuLaunchKernelEx(real_launch_ex, false, NULL, function, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(process.launches, 0); /* the driver's error, no launch */
}

static CUresult real_accepted_ex(const CUlaunchConfig *config, CUfunction f, void **list, void **extra)
{
    real_launch_ex(config, f, list, extra);
    return CUDA_SUCCESS;
}

/* Has launches of the function with that shape pass. */
static void pass(const struct kp_pass_shape *shape)
{
    const struct kp_pass_known known = {KP_PASS_NAME, 0, NULL};
    kp_passing_learn(function, shape, &known, kp_passing_epoch());
}

static uint64_t passed;

static void add_passed(enum kp_pass_why why, uint64_t launches)
{
    assert_int_equal(why, KP_PASS_NAME);
    passed += launches;
}

/* What nobody wants reaches the driver as it is, and no record is made of it. A launch of another shape is recorded. */
static void test_passed_on(void **state)
{
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 3}};
    CUlaunchConfig config = {.gridDimX = 10,
                             .gridDimY = 11,
                             .gridDimZ = 12,
                             .blockDimX = 32,
                             .blockDimY = 2,
                             .blockDimZ = 4,
                             .sharedMemBytes = 400,
                             .hStream = stream,
                             .attrs = &cluster,
                             .numAttrs = 1};
    (void)state;
    call_of(&on_stack);
    process.active = true;
    pass(&(struct kp_pass_shape){{10, 11, 12}, {32, 2, 4}, 400, {0, 0, 0}});
    pass(&(struct kp_pass_shape){{10, 11, 12}, {32, 2, 4}, 400, {2, 1, 3}});
    CUresult rc =
        kp_cuLaunchKernel(real_launch, false, function, 10, 11, 12, 32, 2, 4, 400, stream, on_stack.list, NULL);
    assert_int_equal(rc, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    check_issued(1);
    assert_ptr_equal(seen.params, on_stack.list);
    kp_cuLaunchKernelEx(real_launch_ex, false, &config, function, on_stack.list, NULL);
    assert_int_equal(seen.calls, 2);
    assert_int_equal(process.launches, 0);
    kp_passing_take(add_passed);
    assert_int_equal(passed, 0); /* what the driver refuses is no launch */
    kp_cuLaunchKernelEx(real_accepted_ex, false, &config, function, on_stack.list, NULL);
    kp_passing_take(add_passed);
    assert_int_equal(passed, 1);
    kp_cuLaunchKernel(real_launch, false, function, 10, 11, 12, 32, 2, 4, 401, stream, on_stack.list, NULL);
    assert_int_equal(process.launches, 1);
    cluster.value.clusterDim.y = 2;
    kp_cuLaunchKernelEx(real_launch_ex, false, &config, function, on_stack.list, NULL);
    assert_int_equal(process.launches, 2);
    cluster.value.clusterDim.y = 1 + (1 << 16);
    kp_cuLaunchKernelEx(real_launch_ex, false, &config, function, on_stack.list, NULL);
    assert_int_equal(process.launches, 3);
    kp_passing_outdate();
}

static void test_old_launches(void **state)
{
    CUfunction never_set = (CUfunction)(uintptr_t)0x1010;
    (void)state;
    assert_int_equal(kp_gated_cuFuncSetBlockShape(real_block_shape, false, function, 32, 2, 4), CUDA_SUCCESS);
    assert_int_equal(kp_gated_cuFuncSetSharedSize(real_shared_size, false, function, 400), CUDA_SUCCESS);
    assert_int_equal(kp_gated_cuFuncSetBlockShape(real_block_shape, false, function, 0, 7, 7),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(kp_gated_cuFuncSetSharedSize(real_shared_size, false, NULL, 999), CUDA_ERROR_INVALID_VALUE);

    kp_cuLaunchGridAsync(real_grid_async, false, function, 10, 11, stream);
    assert_memory_equal(process.last.shape.grid, ((uint32_t[]){10, 11, 1}), sizeof(process.last.shape.grid));
    assert_memory_equal(process.last.shape.block, ((uint32_t[]){32, 2, 4}), sizeof(process.last.shape.block));
    assert_int_equal(process.last.shape.dynamic_shared, 400);
    assert_ptr_equal(seen.stream, stream);
    assert_int_equal(seen.grid[0], 10);
    assert_int_equal(seen.grid[1], 11);

    kp_cuLaunchGrid(real_grid, false, function, 3, 2);
    assert_memory_equal(process.last.shape.grid, ((uint32_t[]){3, 2, 1}), sizeof(process.last.shape.grid));
    assert_int_equal(seen.grid[1], 2);

    kp_cuLaunch(real_once, false, function);
    assert_memory_equal(process.last.shape.grid, ((uint32_t[]){1, 1, 1}), sizeof(process.last.shape.grid));
    assert_memory_equal(process.last.shape.block, ((uint32_t[]){32, 2, 4}), sizeof(process.last.shape.block));

    kp_cuLaunch(real_once, false, never_set);
    assert_memory_equal(process.last.shape.block, ((uint32_t[]){1, 1, 1}), sizeof(process.last.shape.block));
    assert_int_equal(process.launches, 4);
    assert_int_equal(seen.calls, 4);
}

/* More functions than are remembered: those that were are still right, and the others are launched as the driver has
 * them, which is not known. Runs last: nothing is forgotten. */
static void test_many_old_functions(void **state)
{
    enum { MANY = 80, LEAST = 60 };
    int right = 0;
    (void)state;
    for (uintptr_t i = 0; i < MANY; i++) {
        CUfunction f = (CUfunction)(0x9000 + i);
        assert_int_equal(kp_gated_cuFuncSetBlockShape(real_block_shape, false, f, (int)i + 2, 3, 4), CUDA_SUCCESS);
        assert_int_equal(kp_gated_cuFuncSetSharedSize(real_shared_size, false, f, 99), CUDA_SUCCESS);
    }
    for (uintptr_t i = 0; i < MANY; i++) {
        kp_cuLaunchGrid(real_grid, false, (CUfunction)(0x9000 + i), 5, 6);
        const struct kp_shape *s = &process.last.shape;
        bool known = s->block[0] == i + 2 && s->block[1] == 3 && s->block[2] == 4 && s->dynamic_shared == 99;
        bool unknown = s->block[0] == 1 && s->block[1] == 1 && s->block[2] == 1 && s->dynamic_shared == 0;
        assert_true(known || unknown);
        assert_true(known || i >= LEAST);
        right += known;
    }
    assert_in_range(right, LEAST, MANY - 1);
}

static void test_graph_launch(void **state)
{
    (void)state;
    kp_cuGraphLaunch(real_graph, true, graph, stream);
    assert_true(process.last.is_graph);
    assert_true(process.last.ptsz);
    assert_ptr_equal(process.last.graph, graph);
    assert_ptr_equal(seen.stream, stream);
    assert_int_equal(seen.calls, 1);
}

/* Grids over several devices wait for each other: run once, and accounted for. */
static void test_multi_device_launch(void **state)
{
    (void)state;
    assert_int_equal(kp_gated_cuLaunchCooperativeKernelMultiDevice(real_multi_device, false, NULL, 2, 3), CUDA_SUCCESS);
    assert_int_equal(seen.calls, 2);
    assert_int_equal(process.skipped, 2);
    assert_int_equal(process.reason, KP_REASON_SEVERAL_DEVICES);
    CUDA_LAUNCH_PARAMS_v1 refused;
    assert_int_equal(kp_gated_cuLaunchCooperativeKernelMultiDevice(real_multi_device, false, &refused, 2, 3),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(process.skipped, 2); /* what the driver refuses is no launch */
    assert_int_equal(process.launches, 0);
}

/* Before CUDA has started, and for kprof's own launches, doors are not there. */
static void test_straight_through(void **state)
{
    (void)state;
    call_of(&on_stack);
    for (int own = 0; own < 2; own++) {
        reset(NULL);
        process.active = own;
        kp_guard = own;
        kp_cuLaunchKernel(real_launch, false, function, 10, 11, 12, 32, 2, 4, 400, stream, on_stack.list, NULL);
        check_issued(1);
        assert_ptr_equal(seen.params, on_stack.list);
        kp_cuGraphLaunch(real_graph, false, graph, stream);
        kp_gated_cuLaunchCooperativeKernelMultiDevice(real_multi_device, false, NULL, 2, 3);
        assert_int_equal(seen.calls, 4);
        assert_int_equal(process.launches, 0);
        assert_int_equal(process.skipped, 0);
        assert_int_equal(process.closed, 0);
        assert_int_equal(process.bare, 0); /* what the driver refuses is no launch */
        kp_cuGraphLaunch(graph_that_runs, false, graph, stream);
        assert_int_equal(process.bare, !own);
        kp_guard = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_copy_of_a_list, reset),
        cmocka_unit_test_setup(test_copy_of_extra, reset),
        cmocka_unit_test_setup(test_both_given, reset),
        cmocka_unit_test_setup(test_what_cannot_be_copied, reset),
        cmocka_unit_test_setup(test_kernel_without_parameters, reset),
        cmocka_unit_test_setup(test_copy_of_attributes, reset),
        cmocka_unit_test_setup(test_launch, reset),
        cmocka_unit_test_setup(test_cooperative_launch, reset),
        cmocka_unit_test_setup(test_launch_with_config, reset),
        cmocka_unit_test_setup(test_passed_on, reset),
        cmocka_unit_test_setup(test_old_launches, reset),
        cmocka_unit_test_setup(test_graph_launch, reset),
        cmocka_unit_test_setup(test_multi_device_launch, reset),
        cmocka_unit_test_setup(test_straight_through, reset),
        cmocka_unit_test_setup(test_many_old_functions, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
