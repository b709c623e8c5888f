#include "collectors/facts/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "collectors/facts/occupancy.h"
#include "collectors/facts/topology.h"
#include "report/model/instances.h"

const char *const kp_launch_metric_names[] = {
    "derived__local_spilling_requests",
    "derived__local_spilling_requests_pct",
    "derived__pct_occupancy_per_barrier_count",
    "derived__pct_occupancy_per_block_size",
    "derived__pct_occupancy_per_register_count",
    "derived__pct_occupancy_per_shared_mem_size",
    "launch__barrier_count",
    "launch__block_dim_x",
    "launch__block_dim_y",
    "launch__block_dim_z",
    "launch__block_size",
    "launch__cluster_dim_x",
    "launch__cluster_dim_y",
    "launch__cluster_dim_z",
    "launch__cluster_max_active",
    "launch__cluster_max_potential_size",
    "launch__cluster_scheduling_policy",
    "launch__cluster_size",
    "launch__context_id",
    "launch__device_id",
    "launch__func_cache_config",
    "launch__function_pcs",
    "launch__grid_dim_x",
    "launch__grid_dim_y",
    "launch__grid_dim_z",
    "launch__grid_size",
    "launch__kernel_name",
    "launch__occupancy_cluster_gpu_pct",
    "launch__occupancy_cluster_pct",
    "launch__occupancy_limit_barriers",
    "launch__occupancy_limit_blocks",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
    "launch__occupancy_per_barrier_count",
    "launch__occupancy_per_block_size",
    "launch__occupancy_per_cluster_size",
    "launch__occupancy_per_register_count",
    "launch__occupancy_per_shared_mem_size",
    "launch__persisting_l2_cache_size",
    "launch__preferred_cluster_size",
    "launch__preferred_cluster_x",
    "launch__preferred_cluster_y",
    "launch__preferred_cluster_z",
    "launch__registers_per_thread",
    "launch__registers_per_thread_allocated",
    "launch__shared_mem_config_size",
    "launch__shared_mem_per_block",
    "launch__shared_mem_per_block_allocated",
    "launch__shared_mem_per_block_driver",
    "launch__shared_mem_per_block_dynamic",
    "launch__shared_mem_per_block_static",
    "launch__sm_count",
    "launch__stack_size",
    "launch__stream_id",
    "launch__thread_count",
    "launch__tpc_count",
    "launch__tpc_enabled",
    "launch__uses_cdp",
    "launch__uses_green_context",
    "launch__uses_mps",
    "launch__uses_nvlink_centric_scheduling",
    "launch__waves_per_multiprocessor",
    "sm__maximum_warps_avg_per_active_cycle",
    "sm__maximum_warps_per_active_cycle_pct",
    "smsp__maximum_warps_avg_per_active_cycle",
    NULL,
};

static int by_name(const void *key, const void *element)
{
    return strcmp(key, *(const char *const *)element);
}

bool kp_launch_is_metric(const char *name)
{
    return bsearch(name, kp_launch_metric_names, sizeof(kp_launch_metric_names) / sizeof(*kp_launch_metric_names) - 1,
                   sizeof(*kp_launch_metric_names), by_name) ||
           kp_device_is_metric(name);
}

/* The reason if only the kernel's code has the value; its image is kept if anything is collected by instruction. */

struct source {
    struct kp_result *r;
    const struct kp_driver *d;
    const struct kp_device *device;
    const struct kp_context_facts *context;
    const struct kp_function *f;
    const struct kp_shape *s;
    const struct kp_launch_extra *extra;
    struct kp_occupancy_in in;
    struct kp_occupancy o;
    int rc; /* the first error; later calls do not change it */
};

static void count(struct source *x, const char *name, const char *unit, uint64_t value)
{
    int rc = kp_result_set_count(x->r, name, unit, value);
    x->rc = x->rc ? x->rc : rc;
}

static void real(struct source *x, const char *name, const char *unit, double value)
{
    int rc = kp_result_set_real(x->r, name, unit, value);
    x->rc = x->rc ? x->rc : rc;
}

static void text(struct source *x, const char *name, const char *value)
{
    int rc = kp_result_set_text(x->r, name, "", value);
    x->rc = x->rc ? x->rc : rc;
}

static void missing_as(struct source *x, const char *name, struct kp_why why)
{
    int rc = kp_result_set_why(x->r, name, why);
    x->rc = x->rc ? x->rc : rc;
}

static void missing(struct source *x, const char *name, enum kp_reason reason)
{
    missing_as(x, name, kp_why_of(reason, NULL));
}

static void instances(struct source *x, const char *name, const char *const *keys, const double *values, size_t n)
{
    int rc = kp_result_set_instances(x->r, name, keys, values, n);
    x->rc = x->rc ? x->rc : rc;
}

static uint64_t volume(const uint32_t v[3])
{
    return (uint64_t)v[0] * v[1] * v[2];
}

static const char *cache_name(CUfunc_cache c)
{
    switch (c) {
    case CU_FUNC_CACHE_PREFER_SHARED:
        return "CachePreferShared";
    case CU_FUNC_CACHE_PREFER_L1:
        return "CachePreferL1";
    case CU_FUNC_CACHE_PREFER_EQUAL:
        return "CachePreferEqual";
    default:
        return "CachePreferNone";
    }
}

static uint32_t registers_of(const struct source *x)
{
    return x->extra->registers ? x->extra->registers : x->f->registers;
}

/* Returns the blocks that the named barriers allow; 0 = unknown. Uses the code if the driver does not know, on chips
 * with a known number of barriers. */
static uint32_t barrier_limit(const struct source *x)
{
    uint32_t most = x->device->max_blocks, n = x->f->code.barriers;
    if (x->f->barrier_limit || !x->f->code_known || x->device->cc_major < 9)
        return x->f->barrier_limit;
    return n && KP_BARRIERS_PER_SM / n < most ? KP_BARRIERS_PER_SM / n : most;
}

static void compute_occupancy(struct source *x)
{
    int driver_blocks = 0;
    const struct kp_device *v = x->device;
    struct kp_occupancy_in in = {
        .cc_major = v->cc_major,
        .warp_size = v->warp_size,
        .schedulers = v->schedulers,
        .max_warps = v->max_warps,
        .max_blocks = v->max_blocks,
        .registers = v->registers,
        .reserved_shared = (uint32_t)v->reserved_shared,
        .block_threads = (uint32_t)volume(x->s->block),
        .shared_per_sm = v->shared_per_sm,
        .shared_per_block = v->shared_per_block,
        .shared_per_block_optin = v->shared_per_block_optin,
        .registers_per_thread = registers_of(x),
        .static_shared = x->f->static_shared,
        .dynamic_shared = x->s->dynamic_shared,
        .shared_config = x->extra->shared_config,
        .barrier_limit = barrier_limit(x),
    };
    x->d->cuOccupancyMaxActiveBlocksPerMultiprocessor(&driver_blocks, x->f->handle, (int)in.block_threads,
                                                      (size_t)in.dynamic_shared);
    in.driver_blocks = driver_blocks > 0 ? (uint32_t)driver_blocks : 0;
    kp_occupancy_compute(&in, &x->o);
    x->in = in;
}

/* Sets one metric for each axis: `base` and x, y or z. */
static void axes(struct source *x, const char *base, const char *unit, const uint32_t v[3])
{
    char name[64];
    size_t end = strlen(base);
    memcpy(name, base, end);
    name[end + 1] = '\0';
    for (int i = 0; i < 3; i++) {
        name[end] = (char)('x' + i);
        count(x, name, unit, v[i]);
    }
}

/* Sets the spilling metrics. Spills go through local memory, so a kernel without local memory spills nothing. With
 * local memory, only the code shows which accesses are spills; they are counted by instruction (derive_source.h). */
static void spilling(struct source *x)
{
    static const char *const names[] = {"derived__local_spilling_requests", "derived__local_spilling_requests_pct"};
    for (int i = 0; i < 2; i++)
        if (x->f->local_bytes && (!x->f->code_known || x->f->code.spills))
            missing(x, names[i], KP_REASON_SPILLS_UNCOUNTED);
        else
            count(x, names[i], i ? "%" : "", 0);
}

static void identity(struct source *x)
{
    const struct kp_launch_info *l = &x->r->launch;
    count(x, "launch__context_id", "", l->context_id);
    count(x, "launch__stream_id", "", l->stream_id);
    count(x, "launch__device_id", "", (uint64_t)l->device);
    text(x, "launch__kernel_name", l->demangled);
}

static void geometry(struct source *x)
{
    axes(x, "launch__grid_dim_", "", x->s->grid);
    axes(x, "launch__block_dim_", "block", x->s->block);
    count(x, "launch__grid_size", "", volume(x->s->grid));
    count(x, "launch__block_size", "", volume(x->s->block));
    count(x, "launch__thread_count", "thread", volume(x->s->grid) * volume(x->s->block));
    count(x, "launch__registers_per_thread", "register/thread", registers_of(x));
    count(x, "launch__registers_per_thread_allocated", "register/thread", x->o.registers_per_thread_allocated);
    text(x, "launch__func_cache_config", cache_name(x->context->cache_config));
    count(x, "launch__stack_size", "", x->context->stack_size);
    count(x, "launch__sm_count", "SM", x->context->sm_count);
    count(x, "launch__tpc_count", "", x->context->sm_count / 2); /* two SMs per TPC from compute capability 7.0 on */
    if (x->context->sm_count == x->device->sm_count)
        text(x, "launch__tpc_enabled", "all");
    else
        missing(x, "launch__tpc_enabled", KP_REASON_GREEN_CONTEXT);
    count(x, "launch__uses_green_context", "", x->context->sm_count != x->device->sm_count);
    count(x, "launch__uses_nvlink_centric_scheduling", "", x->s->nvlink_centric);
    if (x->device->mps >= 0)
        count(x, "launch__uses_mps", "", (uint64_t)x->device->mps);
    else
        missing(x, "launch__uses_mps", KP_REASON_UNTOLD);
    if (x->device->cc_major < 8)
        return; /* persisting accesses came with compute capability 8.0 */
    if (x->context->persisting_l2_known)
        count(x, "launch__persisting_l2_cache_size", "byte", x->context->persisting_l2);
    else
        missing(x, "launch__persisting_l2_cache_size", KP_REASON_CONTEXT_UNTOLD);
}

/* Sets the number of barriers. Without the code, the number of blocks that they allow often determines it. */
static void barriers(struct source *x)
{
    uint32_t limit = barrier_limit(x), n = limit ? KP_BARRIERS_PER_SM / limit : 0;
    bool exact = n > 1 && limit < x->device->max_blocks && KP_BARRIERS_PER_SM / n == limit &&
                 KP_BARRIERS_PER_SM / (n - 1) != limit;
    if (x->f->code_known)
        count(x, "launch__barrier_count", "", x->f->code.barriers);
    else if (x->device->cc_major >= 9 && exact)
        count(x, "launch__barrier_count", "", n);
    else
        missing(x, "launch__barrier_count", KP_REASON_BARRIERS_UNTOLD);
    if (x->device->cc_major < 9)
        return;
    if (limit)
        count(x, "launch__occupancy_limit_barriers", "block", limit);
    else
        missing(x, "launch__occupancy_limit_barriers", KP_REASON_BARRIERS_UNTOLD);
}

static void code(struct source *x)
{
    if (x->f->code_known) {
        count(x, "launch__function_pcs", "", x->f->code.functions);
        count(x, "launch__uses_cdp", "", x->f->code.launches);
    } else {
        missing(x, "launch__function_pcs", KP_REASON_CODE_UNTOLD);
        missing(x, "launch__uses_cdp", KP_REASON_CODE_UNTOLD);
    }
}

static void shared_memory(struct source *x)
{
    count(x, "launch__shared_mem_per_block_static", "byte/block", x->f->static_shared);
    count(x, "launch__shared_mem_per_block_dynamic", "byte/block", x->s->dynamic_shared);
    count(x, "launch__shared_mem_per_block_driver", "byte/block", x->device->reserved_shared);
    count(x, "launch__shared_mem_per_block", "byte/block", x->o.shared_per_block);
    count(x, "launch__shared_mem_per_block_allocated", "byte/block", x->o.shared_per_block_allocated);
    if (x->extra->shared_config) {
        count(x, "launch__shared_mem_config_size", "byte", x->extra->shared_config);
        count(x, "launch__occupancy_limit_shared_mem", "block", x->o.limit_shared);
    } else {
        missing_as(x, "launch__shared_mem_config_size", x->extra->shared_config_why);
        missing_as(x, "launch__occupancy_limit_shared_mem", x->extra->shared_config_why);
    }
}

static void occupancy(struct source *x)
{
    const struct kp_occupancy *o = &x->o;
    count(x, "launch__occupancy_limit_registers", "block", o->limit_registers);
    count(x, "launch__occupancy_limit_warps", "block", o->limit_warps);
    count(x, "launch__occupancy_limit_blocks", "block", o->limit_blocks);
    real(x, "sm__maximum_warps_avg_per_active_cycle", "warp", o->warps);
    real(x, "smsp__maximum_warps_avg_per_active_cycle", "warp", o->warps_per_scheduler);
    real(x, "sm__maximum_warps_per_active_cycle_pct", "%", o->percent);
    double slots = (double)x->context->sm_count * o->blocks;
    if (slots > 0)
        real(x, "launch__waves_per_multiprocessor", "", (double)volume(x->s->grid) / slots);
    else
        missing(x, "launch__waves_per_multiprocessor", KP_REASON_NO_BLOCK_FITS);
}

static void config_for_driver(const struct source *x, CUlaunchConfig *c, CUlaunchAttribute *a)
{
    memset(c, 0, sizeof(*c));
    memset(a, 0, sizeof(*a));
    c->gridDimX = x->s->grid[0];
    c->gridDimY = x->s->grid[1];
    c->gridDimZ = x->s->grid[2];
    c->blockDimX = x->s->block[0];
    c->blockDimY = x->s->block[1];
    c->blockDimZ = x->s->block[2];
    c->sharedMemBytes = (unsigned)x->s->dynamic_shared;
    a->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a->value.clusterDim.x = x->s->cluster[0];
    a->value.clusterDim.y = x->s->cluster[1];
    a->value.clusterDim.z = x->s->cluster[2];
}

/* The points of one curve, in the form of a metric. */
struct points {
    uint32_t warps[KP_CURVE_POINTS];
    double values[KP_CURVE_POINTS];
    const char *keys[KP_CURVE_POINTS];
    char text[KP_CURVE_POINTS][KP_KEY_SIZE];
};

/* Returns the active clusters of `size` blocks. The grid must be whole clusters; its size does not matter. */
static int active_clusters(const struct source *x, CUlaunchConfig *config, CUlaunchAttribute *attribute, uint32_t size)
{
    int active = 0;
    attribute->value.clusterDim.x = config->gridDimX = size;
    attribute->value.clusterDim.y = config->gridDimY = 1;
    attribute->value.clusterDim.z = config->gridDimZ = 1;
    return x->d->cuOccupancyMaxActiveClusters(&active, x->f->handle, config) == CUDA_SUCCESS ? active : 0;
}

/* Sets the curve of active clusters over their size. As in ncu, it starts at 0 and has as many points as this launch
 * has active clusters. Sizes that the driver refuses have the driver's answer. Sizes from twice the largest on are 0
 * (H200), without asking. */
static void cluster_curve(struct source *x, CUlaunchConfig *config, CUlaunchAttribute *attribute, uint32_t largest,
                          uint32_t active)
{
    struct points *p = malloc(sizeof(*p)); /* too large for the stack of a program's thread */
    size_t n = active < KP_CURVE_POINTS ? active : KP_CURVE_POINTS;
    double sum = 0;
    if (!p)
        x->rc = x->rc ? x->rc : -ENOMEM;
    for (uint32_t size = 0; p && size < n; size++) {
        p->keys[size] = kp_number_digits(p->text[size], size);
        p->values[size] = size && size < 2 * largest ? active_clusters(x, config, attribute, size) : 0;
        sum += p->values[size];
    }
    if (p) {
        real(x, "launch__occupancy_per_cluster_size", "", sum);
        instances(x, "launch__occupancy_per_cluster_size", p->keys, p->values, n);
    }
    free(p);
}

/* Sets metrics of clusters, which exist from compute capability 9.0 on. */
static void clusters(struct source *x)
{
    CUlaunchConfig config;
    CUlaunchAttribute attribute;
    int largest = 0, active = 0;
    uint64_t size = volume(x->s->cluster);
    config_for_driver(x, &config, &attribute);
    count(x, "launch__cluster_size", "", size);
    axes(x, "launch__cluster_dim_", "", x->s->cluster);
    if (x->device->cc_major >= 10) {
        count(x, "launch__preferred_cluster_size", "", volume(x->s->preferred_cluster));
        axes(x, "launch__preferred_cluster_", "", x->s->preferred_cluster);
    }
    if (x->extra->curves)
        count(x, "launch__occupancy_per_cluster_size", "", 0);
    text(x, "launch__cluster_scheduling_policy",
         x->s->cluster_policy == CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING ? "PolicyLoadBalancing" : "PolicySpread");
    if (x->d->cuOccupancyMaxPotentialClusterSize &&
        x->d->cuOccupancyMaxPotentialClusterSize(&largest, x->f->handle, &config) == CUDA_SUCCESS)
        count(x, "launch__cluster_max_potential_size", "block", (uint64_t)largest);
    else
        missing(x, "launch__cluster_max_potential_size", KP_REASON_NO_ANSWER);
    if (size) {
        config.attrs = &attribute;
        config.numAttrs = 1;
        if (!x->d->cuOccupancyMaxActiveClusters ||
            x->d->cuOccupancyMaxActiveClusters(&active, x->f->handle, &config) != CUDA_SUCCESS) {
            missing(x, "launch__cluster_max_active", KP_REASON_NO_ANSWER);
            missing(x, "launch__occupancy_cluster_pct", KP_REASON_NO_ANSWER);
            missing(x, "launch__occupancy_cluster_gpu_pct", KP_REASON_NO_ANSWER);
            return;
        }
        if (x->extra->curves)
            cluster_curve(x, &config, &attribute, (uint32_t)largest, (uint32_t)active);
    }
    /* Share of the GPU's block slots that resident clusters fill; for the GPU, the theoretical occupancy is its
     * weight. Fitted to ncu on cluster launches of 1 to 16 blocks on an H200. */
    double slots = (double)x->device->sm_count * x->device->max_blocks;
    double percent = 100.0 * active * (double)size / slots;
    count(x, "launch__cluster_max_active", "cluster", (uint64_t)active);
    real(x, "launch__occupancy_cluster_pct", "%", percent);
    real(x, "launch__occupancy_cluster_gpu_pct", "%", percent * x->o.percent / 100.0);
}

/* The curves, each in warps and in percent of the maximum. A chip without the limit by barriers lacks the curve over
 * them. Units as in ncu: the first list has none. */
static const struct {
    const char *warps, *percent, *unit;
    int from_cc_major;
} curve_metrics[KP_CURVES] = {
    [KP_CURVE_REGISTERS] = {"launch__occupancy_per_register_count", "derived__pct_occupancy_per_register_count",
                            "%/register", 0},
    [KP_CURVE_THREADS] = {"launch__occupancy_per_block_size", "derived__pct_occupancy_per_block_size", "%", 0},
    [KP_CURVE_SHARED] = {"launch__occupancy_per_shared_mem_size", "derived__pct_occupancy_per_shared_mem_size",
                         "%/byte", 0},
    [KP_CURVE_BARRIERS] = {"launch__occupancy_per_barrier_count", "derived__pct_occupancy_per_barrier_count", "", 9},
};

static void curve(struct source *x, struct points *p, enum kp_curve c)
{
    uint32_t step = 0;
    uint64_t warps = 0, percent = 0;
    size_t n = kp_occupancy_curve(&x->in, c, p->warps, &step);
    for (size_t i = 0; i < n; i++) {
        p->keys[i] = kp_number_digits(p->text[i], i * step);
        warps += p->warps[i];
        p->values[i] = p->warps[i];
    }
    count(x, curve_metrics[c].warps, "", warps);
    instances(x, curve_metrics[c].warps, p->keys, p->values, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t whole = 100 * (uint64_t)p->warps[i] / x->in.max_warps; /* truncates, like ncu */
        percent += whole;
        p->values[i] = (double)whole;
    }
    real(x, curve_metrics[c].percent, curve_metrics[c].unit, (double)percent);
    instances(x, curve_metrics[c].percent, p->keys, p->values, n);
}

static void curves(struct source *x)
{
    struct points *p = malloc(sizeof(*p)); /* too large for the stack of a program's thread */
    if (!p)
        x->rc = x->rc ? x->rc : -ENOMEM;
    for (int c = 0; p && c < KP_CURVES; c++) {
        if (x->device->cc_major < curve_metrics[c].from_cc_major)
            continue;
        if (x->extra->shared_config) {
            curve(x, p, (enum kp_curve)c);
        } else {
            missing_as(x, curve_metrics[c].warps, x->extra->shared_config_why);
            missing_as(x, curve_metrics[c].percent, x->extra->shared_config_why);
        }
    }
    free(p);
}

int kp_launch_metrics(struct kp_result *r, const struct kp_driver *d, const struct kp_device *device,
                      const struct kp_context_facts *context, const struct kp_function *f, const struct kp_shape *s,
                      const struct kp_launch_extra *extra)
{
    struct source x = {.r = r, .d = d, .device = device, .context = context, .f = f, .s = s, .extra = extra};
    compute_occupancy(&x);
    identity(&x);
    spilling(&x);
    geometry(&x);
    shared_memory(&x);
    occupancy(&x);
    barriers(&x);
    code(&x);
    if (device->cc_major >= 9)
        clusters(&x);
    if (extra->curves)
        curves(&x);
    return x.rc;
}
