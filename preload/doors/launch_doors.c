#include "preload/doors/launch_doors.h"

#include <string.h>

#include "base/lock.h"
#include "base/work.h"
#include "preload/gate/gate.h"
#include "preload/gate/fast_path.h"
#include "preload/os/guard.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "preload/gate/window_facts.h"

__thread const void *kp_runtime_host_function __attribute__((tls_model("initial-exec")));

static CUresult issue_kernel(const struct kp_launch *l)
{
    const struct kp_shape *s = &l->shape;
    return l->real.kernel(l->f, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2],
                          (unsigned)s->dynamic_shared, l->stream, l->params, l->extra);
}

static CUresult issue_cooperative(const struct kp_launch *l)
{
    const struct kp_shape *s = &l->shape;
    return l->real.cooperative(l->f, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2],
                               (unsigned)s->dynamic_shared, l->stream, l->params);
}

static CUresult issue_once(const struct kp_launch *l)
{
    return l->real.once(l->f);
}

static CUresult issue_grid(const struct kp_launch *l)
{
    return l->real.grid(l->f, (int)l->shape.grid[0], (int)l->shape.grid[1]);
}

static CUresult issue_grid_async(const struct kp_launch *l)
{
    return l->real.grid_async(l->f, (int)l->shape.grid[0], (int)l->shape.grid[1], l->stream);
}

static CUresult issue_graph(const struct kp_launch *l)
{
    return l->real.graph(l->graph, l->stream);
}

static inline void set_shape(struct kp_launch *l, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared)
{
    l->shape.grid[0] = gx, l->shape.grid[1] = gy, l->shape.grid[2] = gz;
    l->shape.block[0] = bx, l->shape.block[1] = by, l->shape.block[2] = bz;
    l->shape.dynamic_shared = shared;
}

/* Reads the shape of a launch with `config`. Returns false if launches with its cluster never pass. */
static inline bool read_shape(const CUlaunchConfig *c, struct kp_pass_shape *s)
{
    *s = (struct kp_pass_shape){{c->gridDimX, c->gridDimY, c->gridDimZ},
                                {c->blockDimX, c->blockDimY, c->blockDimZ},
                                c->sharedMemBytes,
                                {0, 0, 0}};
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttributeValue *v = &c->attrs[i].value;
        if (c->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            continue;
        s->cluster[0] = (uint16_t)v->clusterDim.x;
        s->cluster[1] = (uint16_t)v->clusterDim.y;
        s->cluster[2] = (uint16_t)v->clusterDim.z;
        if ((v->clusterDim.x | v->clusterDim.y | v->clusterDim.z) > UINT16_MAX)
            return false;
    }
    return true;
}

/* Returns true if kprof ignores the launch. */
static bool is_bare(void)
{
    if (kp_guard)
        kp_work_reclaim();
    if (kp_guard)
        return true;
    if (kp_process_active())
        return false;
    kp_phase_hold();
    return true;
}

static CUresult bare(CUresult rc)
{
    if (rc == CUDA_SUCCESS && !kp_guard)
        kp_phase_launched();
    return rc;
}

/* All that is known of an examined launch. It is made on the stack of kprof's work, to spare the program's stack. */
struct looked_at {
    CUresult rc; /* first: the work's answer */
    bool in_room;
    struct kp_launch launch;
    struct kp_registers caller;
};

_Static_assert(sizeof(struct looked_at) <= KP_WORK_MOST, "it lies in the room of work");

static inline struct looked_at *cleared(struct looked_at *a, bool in_room)
{
    memset(a, 0, sizeof(*a));
    a->rc = CUDA_ERROR_UNKNOWN;
    a->in_room = in_room;
    return a;
}

/* Read at run time: for a size known at compile time the compiler reserves space in each frame. */
static const volatile size_t looked_at_bytes = sizeof(struct looked_at);

/* Declares an empty launch to be examined, for go(). Only if there is no stack for it, or inside other work, it uses
 * the program's. */
#define LOOKED_AT(a)                                                                                                   \
    void *const room = kp_work_room();                                                                                 \
    struct looked_at *const a = cleared(room ? room : __builtin_alloca(looked_at_bytes), room)

static void look(void *arg)
{
    struct looked_at *a = arg;
    a->launch.caller = &a->caller;
    a->rc = kp_process_launch(&a->launch);
}

static __attribute__((noinline)) CUresult go(struct looked_at *a)
{
    CUresult rc = CUDA_ERROR_UNKNOWN;
    kp_registers_here(&a->caller);
    a->launch.host_function = kp_runtime_host_function;
    if (a->in_room) {
        kp_work_go(look, a, &rc, sizeof(rc));
        return rc;
    }
    kp_work_run(look, a, sizeof(*a));
    return a->rc;
}

/* Fills what launches of a kernel with parameters have in common. */
static inline void fill_kernel(struct kp_launch *l, bool ptsz, CUfunction f, CUstream stream, void **params)
{
    l->ptsz = ptsz;
    l->f = f;
    l->stream = stream;
    l->params = params;
}

CUresult kp_cuLaunchKernel(PFN_cuLaunchKernel_v4000 real, bool ptsz, CUfunction f, unsigned gx, unsigned gy,
                           unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream,
                           void **params, void **extra)
{
    const struct kp_pass_shape shape = {{gx, gy, gz}, {bx, by, bz}, shared, {0, 0, 0}};
    struct kp_pass *pass = kp_passing_begin(f, &shape);
    if (pass)
        return kp_passing_end(pass, real(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
    if (is_bare())
        return bare(real(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
    LOOKED_AT(a);
    fill_kernel(&a->launch, ptsz, f, stream, params);
    a->launch.issue = issue_kernel;
    a->launch.real.kernel = real;
    a->launch.extra = extra;
    set_shape(&a->launch, gx, gy, gz, bx, by, bz, shared);
    return go(a);
}

CUresult kp_cuLaunchKernelEx(PFN_cuLaunchKernelEx_v11060 real, bool ptsz, const CUlaunchConfig *config, CUfunction f,
                             void **params, void **extra)
{
    if (!config || (config->numAttrs && !config->attrs))
        return real(config, f, params, extra); /* the driver refuses it */
    struct kp_pass_shape shape;
    struct kp_pass *pass = read_shape(config, &shape) ? kp_passing_begin(f, &shape) : NULL;
    if (pass)
        return kp_passing_end(pass, real(config, f, params, extra));
    if (is_bare())
        return bare(real(config, f, params, extra));
    LOOKED_AT(a);
    fill_kernel(&a->launch, ptsz, f, config->hStream, params);
    a->launch.issue = kp_launch_issue_ex;
    a->launch.real.kernel_ex = real;
    a->launch.config = *config;
    a->launch.extra = extra;
    kp_launch_shape_ex(&a->launch);
    return go(a);
}

CUresult kp_cuLaunchCooperativeKernel(PFN_cuLaunchCooperativeKernel_v9000 real, bool ptsz, CUfunction f, unsigned gx,
                                      unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                      CUstream stream, void **params)
{
    if (is_bare())
        return bare(real(f, gx, gy, gz, bx, by, bz, shared, stream, params));
    LOOKED_AT(a);
    fill_kernel(&a->launch, ptsz, f, stream, params);
    a->launch.issue = issue_cooperative;
    a->launch.real.cooperative = real;
    set_shape(&a->launch, gx, gy, gz, bx, by, bz, shared);
    return go(a);
}

/* A way into the gate: closes any window. */
static void enter_alone(const struct kp_door_call *c)
{
    kp_gate_enter_alone(c->symbol);
}

/* A note of doors.def. Its grids wait for each other across devices: a replay of one would wait forever. */
static void noted_on_several(CUresult rc, const CUDA_LAUNCH_PARAMS_v1 *list, unsigned devices, unsigned flags)
{
    (void)list, (void)flags;
    if (rc == CUDA_SUCCESS)
        kp_process_skip(KP_REASON_SEVERAL_DEVICES, devices);
}

/* The old launch interface keeps block shape and shared memory with the function. The functions with set values;
 * programs have few of these. */
enum { OLD_FUNCTIONS = 64 };

static struct old_function {
    CUfunction f;
    unsigned block[3], shared;
} old_functions[OLD_FUNCTIONS];

static struct kp_lock *const old_lock = &kp_locks[KP_LOCK_OLD_LAUNCHES];

/* Returns the entry of `f`, made on first use; NULL if the table is full. Call under old_lock. */
static struct old_function *old_function(CUfunction f)
{
    for (int i = 0; i < OLD_FUNCTIONS; i++)
        if (old_functions[i].f == f || !old_functions[i].f) {
            old_functions[i].f = f;
            return &old_functions[i];
        }
    return NULL;
}

static void noted_block_shape(CUresult rc, CUfunction f, int x, int y, int z)
{
    kp_lock_take(old_lock, KP_FOREVER);
    struct old_function *o = rc == CUDA_SUCCESS ? old_function(f) : NULL;
    if (o) {
        o->block[0] = (unsigned)x;
        o->block[1] = (unsigned)y;
        o->block[2] = (unsigned)z;
    }
    kp_lock_give(old_lock);
}

static void noted_shared_size(CUresult rc, CUfunction f, unsigned bytes)
{
    kp_lock_take(old_lock, KP_FOREVER);
    struct old_function *o = rc == CUDA_SUCCESS ? old_function(f) : NULL;
    if (o)
        o->shared = bytes;
    kp_lock_give(old_lock);
}

/* Returns what earlier calls have set for a function. */
static struct old_function known_of(CUfunction f)
{
    struct old_function o = {.block = {1, 1, 1}};
    kp_work_begin();
    kp_lock_take(old_lock, KP_FOREVER);
    const struct old_function *known = old_function(f);
    if (known && known->block[0])
        o = *known;
    kp_lock_give(old_lock);
    kp_work_end();
    return o;
}

/* Fills what launches of the old interface have in common. */
static void fill_old(struct kp_launch *l, bool ptsz, CUfunction f, int width, int height)
{
    const struct old_function o = known_of(f);
    l->ptsz = ptsz;
    l->f = f;
    l->fixed_shape = true;
    set_shape(l, (unsigned)width, (unsigned)height, 1, o.block[0], o.block[1], o.block[2], o.shared);
}

CUresult kp_cuLaunch(PFN_cuLaunch_v2000 real, bool ptsz, CUfunction f)
{
    if (is_bare())
        return bare(real(f));
    LOOKED_AT(a);
    fill_old(&a->launch, ptsz, f, 1, 1);
    a->launch.issue = issue_once;
    a->launch.real.once = real;
    return go(a);
}

CUresult kp_cuLaunchGrid(PFN_cuLaunchGrid_v2000 real, bool ptsz, CUfunction f, int width, int height)
{
    if (is_bare())
        return bare(real(f, width, height));
    LOOKED_AT(a);
    fill_old(&a->launch, ptsz, f, width, height);
    a->launch.issue = issue_grid;
    a->launch.real.grid = real;
    return go(a);
}

CUresult kp_cuLaunchGridAsync(PFN_cuLaunchGridAsync_v2000 real, bool ptsz, CUfunction f, int width, int height,
                              CUstream stream)
{
    if (is_bare())
        return bare(real(f, width, height, stream));
    LOOKED_AT(a);
    fill_old(&a->launch, ptsz, f, width, height);
    a->launch.issue = issue_grid_async;
    a->launch.real.grid_async = real;
    a->launch.stream = stream;
    return go(a);
}

CUresult kp_cuGraphLaunch(PFN_cuGraphLaunch_v10000 real, bool ptsz, CUgraphExec graph, CUstream stream)
{
    if (is_bare())
        return bare(real(graph, stream));
    LOOKED_AT(a);
    a->launch.issue = issue_graph;
    a->launch.real.graph = real;
    a->launch.is_graph = true;
    a->launch.ptsz = ptsz;
    a->launch.graph = graph;
    a->launch.stream = stream;
    return go(a);
}

static void note_profiling(void *arg)
{
    const bool *on = arg;
    kp_process_profile(*on);
}

static void profile(bool on)
{
    kp_work_run(note_profiling, &on, sizeof(on));
}

CUresult kp_cuProfilerStart(PFN_cuProfilerStart_v4000 real, bool ptsz)
{
    (void)ptsz;
    profile(true);
    return real();
}

CUresult kp_cuProfilerStop(PFN_cuProfilerStop_v4000 real, bool ptsz)
{
    (void)ptsz;
    profile(false);
    return real();
}

#define KP_GATED KP_GATED_LOGIC
#include "preload/doors/launch_doors.def"
#undef KP_GATED
