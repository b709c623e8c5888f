#include "collectors/launch.h"

#include <errno.h>
#include <string.h>

#include "collectors/occupancy.h"

const char *const kp_launch_metric_names[] = {
    "launch__block_dim_x",
    "launch__block_dim_y",
    "launch__block_dim_z",
    "launch__block_size",
    "launch__cluster_max_active",
    "launch__cluster_max_potential_size",
    "launch__cluster_scheduling_policy",
    "launch__cluster_size",
    "launch__func_cache_config",
    "launch__grid_dim_x",
    "launch__grid_dim_y",
    "launch__grid_dim_z",
    "launch__grid_size",
    "launch__occupancy_cluster_gpu_pct",
    "launch__occupancy_cluster_pct",
    "launch__occupancy_limit_barriers",
    "launch__occupancy_limit_blocks",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
    "launch__preferred_cluster_size",
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
    "launch__thread_count",
    "launch__tpc_count",
    "launch__tpc_enabled",
    "launch__uses_green_context",
    "launch__waves_per_multiprocessor",
    "sm__maximum_warps_avg_per_active_cycle",
    "sm__maximum_warps_per_active_cycle_pct",
    "smsp__maximum_warps_avg_per_active_cycle",
    NULL,
};

static const char barrier_unknown[] = "the driver does not tell how many barriers this kernel uses";

struct source {
    struct kp_result *r;
    const struct kp_driver *d;
    const struct kp_device *device;
    const struct kp_context_facts *context;
    const struct kp_function *f;
    const struct kp_shape *s;
    const struct kp_launch_extra *extra;
    struct kp_occupancy o;
    int rc; /* the first error; later calls keep it */
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

static void missing(struct source *x, const char *name, const char *why)
{
    int rc = kp_result_set_na(x->r, name, why);
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
        .registers_per_thread = registers_of(x),
        .static_shared = x->f->static_shared,
        .dynamic_shared = x->s->dynamic_shared,
        .shared_config = x->extra->shared_config,
        .barrier_limit = x->f->barrier_limit,
    };
    x->d->cuOccupancyMaxActiveBlocksPerMultiprocessor(&driver_blocks, x->f->handle, (int)in.block_threads,
                                                      (size_t)in.dynamic_shared);
    in.driver_blocks = driver_blocks > 0 ? (uint32_t)driver_blocks : 0;
    kp_occupancy_compute(&in, &x->o);
}

static void geometry(struct source *x)
{
    static const char *const axes[] = {"x", "y", "z"};
    char name[32];
    for (int i = 0; i < 3; i++) {
        strcpy(name, "launch__grid_dim_");
        strcat(name, axes[i]);
        count(x, name, "", x->s->grid[i]);
        strcpy(name, "launch__block_dim_");
        strcat(name, axes[i]);
        count(x, name, "", x->s->block[i]);
    }
    count(x, "launch__grid_size", "", volume(x->s->grid));
    count(x, "launch__block_size", "", volume(x->s->block));
    count(x, "launch__thread_count", "thread", volume(x->s->grid) * volume(x->s->block));
    count(x, "launch__registers_per_thread", "register/thread", registers_of(x));
    count(x, "launch__registers_per_thread_allocated", "register/thread", x->o.registers_per_thread_allocated);
    text(x, "launch__func_cache_config", cache_name(x->context->cache_config));
    count(x, "launch__stack_size", "", x->context->stack_size);
    count(x, "launch__sm_count", "SM", x->context->sm_count);
    count(x, "launch__tpc_count", "", x->context->sm_count / 2); /* two SMs a TPC from compute capability 7.0 on */
    if (x->context->sm_count == x->device->sm_count)
        text(x, "launch__tpc_enabled", "all");
    else
        missing(x, "launch__tpc_enabled", "the driver does not tell which TPCs a green context has");
    count(x, "launch__uses_green_context", "", x->context->sm_count != x->device->sm_count);
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
        missing(x, "launch__shared_mem_config_size", x->extra->shared_config_why);
        missing(x, "launch__occupancy_limit_shared_mem", x->extra->shared_config_why);
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
        missing(x, "launch__waves_per_multiprocessor", "no block of this launch fits on a multiprocessor");
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

/* Clusters exist from compute capability 9.0 on. */
static void clusters(struct source *x)
{
    CUlaunchConfig config;
    CUlaunchAttribute attribute;
    int largest = 0, active = 0;
    uint64_t size = volume(x->s->cluster);
    config_for_driver(x, &config, &attribute);
    count(x, "launch__cluster_size", "", size);
    if (x->device->cc_major >= 10)
        count(x, "launch__preferred_cluster_size", "", volume(x->s->preferred_cluster));
    text(x, "launch__cluster_scheduling_policy",
         x->s->cluster_policy == CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING ? "PolicyLoadBalancing" : "PolicySpread");
    if (x->d->cuOccupancyMaxPotentialClusterSize &&
        x->d->cuOccupancyMaxPotentialClusterSize(&largest, x->f->handle, &config) == CUDA_SUCCESS)
        count(x, "launch__cluster_max_potential_size", "block", (uint64_t)largest);
    else
        missing(x, "launch__cluster_max_potential_size", "the driver does not answer for this launch");
    if (size) {
        config.attrs = &attribute;
        config.numAttrs = 1;
        if (!x->d->cuOccupancyMaxActiveClusters ||
            x->d->cuOccupancyMaxActiveClusters(&active, x->f->handle, &config) != CUDA_SUCCESS) {
            missing(x, "launch__cluster_max_active", "the driver does not answer for this launch");
            missing(x, "launch__occupancy_cluster_pct", "the driver does not answer for this launch");
            missing(x, "launch__occupancy_cluster_gpu_pct", "the driver does not answer for this launch");
            return;
        }
    }
    /* Share of the GPU's block slots that resident clusters fill; over the GPU it is weighted by the theoretical
     * occupancy. Fitted to ncu on cluster launches of 1 to 16 blocks on an H200. */
    double slots = (double)x->device->sm_count * x->device->max_blocks;
    double percent = 100.0 * active * (double)size / slots;
    count(x, "launch__cluster_max_active", "cluster", (uint64_t)active);
    real(x, "launch__occupancy_cluster_pct", "%", percent);
    real(x, "launch__occupancy_cluster_gpu_pct", "%", percent * x->o.percent / 100.0);
}

int kp_launch_metrics(struct kp_result *r, const struct kp_driver *d, const struct kp_device *device,
                      const struct kp_context_facts *context, const struct kp_function *f, const struct kp_shape *s,
                      const struct kp_launch_extra *extra)
{
    struct source x = {.r = r, .d = d, .device = device, .context = context, .f = f, .s = s, .extra = extra};
    compute_occupancy(&x);
    geometry(&x);
    shared_memory(&x);
    occupancy(&x);
    if (device->cc_major >= 9) {
        clusters(&x);
        if (f->barrier_limit)
            count(&x, "launch__occupancy_limit_barriers", "block", f->barrier_limit);
        else
            missing(&x, "launch__occupancy_limit_barriers", barrier_unknown);
    }
    return x.rc;
}
