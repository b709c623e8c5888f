#include "collectors/facts/occupancy.h"

#include <stdbool.h>

/* Registers are allocated in units of 256 per warp on every chip from compute capability 7.0 on. */
enum { REGISTERS_GRANULE = 256 };

enum { MOST_REGISTERS = 256, MOST_THREADS = 1024, THREADS_STEP = 16, SHARED_STEP = 512 };

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint64_t round_up(uint64_t value, uint64_t granule)
{
    return (value + granule - 1) / granule * granule;
}

static uint32_t warps_of(const struct kp_occupancy_in *in, uint32_t threads)
{
    uint32_t warps = (threads + in->warp_size - 1) / in->warp_size;
    return warps ? warps : 1;
}

/* Returns the allocated shared memory: units of 128 bytes per block from compute capability 8.0 on, of 256 before. */
static uint64_t shared_allocated(const struct kp_occupancy_in *in, uint64_t shared)
{
    return round_up(shared + in->reserved_shared, in->cc_major >= 8 ? 128 : 256);
}

/* Divides per scheduler first: the register file is split evenly over the schedulers, and a warp stays on one of
 * them. */
static uint32_t register_limit(const struct kp_occupancy_in *in, uint32_t registers, uint32_t warps)
{
    uint64_t per_warp = round_up((uint64_t)registers * in->warp_size, REGISTERS_GRANULE);
    if (!per_warp)
        return in->max_blocks;
    uint64_t per_scheduler = in->registers / in->schedulers / per_warp;
    return (uint32_t)(per_scheduler * in->schedulers / warps);
}

static uint32_t shared_limit(const struct kp_occupancy_in *in, uint64_t allocated, uint64_t capacity)
{
    return allocated ? (uint32_t)(capacity / allocated) : in->max_blocks;
}

void kp_occupancy_compute(const struct kp_occupancy_in *in, struct kp_occupancy *out)
{
    uint32_t w = warps_of(in, in->block_threads);
    out->warps_per_block = w;
    out->registers_per_thread_allocated =
        (uint32_t)round_up(in->registers_per_thread, REGISTERS_GRANULE / in->warp_size);
    out->shared_per_block = in->static_shared + in->dynamic_shared + in->reserved_shared;
    out->shared_per_block_allocated = shared_allocated(in, in->static_shared + in->dynamic_shared);
    out->limit_registers = register_limit(in, in->registers_per_thread, w);
    out->limit_warps = in->max_warps / w;
    out->limit_blocks = in->max_blocks;
    out->limit_shared =
        in->shared_config ? shared_limit(in, out->shared_per_block_allocated, in->shared_config) : in->max_blocks;
    out->blocks = min_u32(min_u32(out->limit_registers, out->limit_warps), out->limit_blocks);
    out->blocks = min_u32(out->blocks, out->limit_shared);
    if (in->barrier_limit)
        out->blocks = min_u32(out->blocks, in->barrier_limit);
    /* If a limit is unknown, the driver's own answer is the better bound. */
    if (in->driver_blocks && (!in->shared_config || !in->barrier_limit))
        out->blocks = min_u32(out->blocks, in->driver_blocks);
    out->warps = (double)out->blocks * w;
    out->warps_per_scheduler = out->warps / in->schedulers;
    out->percent = 100.0 * out->warps / in->max_warps;
}

uint32_t kp_occupancy_without_barriers(const struct kp_occupancy_in *in, uint32_t threads, uint64_t shared,
                                       uint64_t shared_capacity)
{
    uint32_t w = warps_of(in, threads);
    uint32_t blocks =
        min_u32(min_u32(register_limit(in, in->registers_per_thread, w), in->max_warps / w), in->max_blocks);
    return min_u32(blocks, shared_limit(in, shared_allocated(in, shared), shared_capacity));
}

/* Limits of a launch in blocks; a curve replaces one of them at each point. */
struct limits {
    uint32_t registers, warps, blocks, shared, barriers;
};

static uint32_t fewest(const struct limits *l)
{
    uint32_t blocks = min_u32(min_u32(l->registers, l->warps), min_u32(l->blocks, l->shared));
    return min_u32(blocks, l->barriers);
}

/* Returns the limit for blocks of `shared` bytes; a block too large for the configured size gets a larger
 * configuration, up to a block's maximum. */
static uint32_t shared_limit_at(const struct kp_occupancy_in *in, uint64_t shared)
{
    /* From 30 launches on an H200: without static shared memory, a kernel that needs no opt-in keeps the limit without
     * it. */
    bool optin = in->static_shared || in->dynamic_shared > in->shared_per_block;
    uint64_t most = optin ? in->shared_per_block_optin : in->shared_per_block;
    if (!shared)
        return in->max_blocks;
    if (shared > most)
        return 0;
    uint32_t blocks = (uint32_t)(in->shared_config / shared);
    return blocks ? blocks : 1;
}

static size_t curve_points(const struct kp_occupancy_in *in, enum kp_curve curve, uint32_t *step)
{
    switch (curve) {
    case KP_CURVE_REGISTERS:
        *step = 1;
        return MOST_REGISTERS + 1;
    case KP_CURVE_THREADS:
        *step = THREADS_STEP;
        return MOST_THREADS / THREADS_STEP + 1;
    case KP_CURVE_SHARED:
        *step = SHARED_STEP;
        return min_u32((uint32_t)(in->shared_per_sm / SHARED_STEP), KP_CURVE_POINTS);
    case KP_CURVE_BARRIERS:
        *step = 1;
        return KP_BARRIERS_PER_SM + 1;
    case KP_CURVES:
        break;
    }
    return 0;
}

/* Returns the active warps if the curve's property is `x`. */
static uint32_t warps_at(const struct kp_occupancy_in *in, enum kp_curve curve, uint32_t x, struct limits l, uint32_t w)
{
    switch (curve) {
    case KP_CURVE_REGISTERS:
        l.registers = register_limit(in, x, w);
        break;
    case KP_CURVE_THREADS:
        w = warps_of(in, x);
        l.registers = register_limit(in, in->registers_per_thread, w);
        l.warps = in->max_warps / w;
        break;
    case KP_CURVE_SHARED:
        l.shared = shared_limit_at(in, x);
        break;
    case KP_CURVE_BARRIERS:
        l.barriers = x ? KP_BARRIERS_PER_SM / x : in->max_blocks;
        break;
    case KP_CURVES:
        break;
    }
    return fewest(&l) * w;
}

size_t kp_occupancy_curve(const struct kp_occupancy_in *in, enum kp_curve curve, uint32_t *warps, uint32_t *step)
{
    struct kp_occupancy o;
    kp_occupancy_compute(in, &o);
    const struct limits l = {o.limit_registers, o.limit_warps, o.limit_blocks, o.limit_shared,
                             in->barrier_limit ? in->barrier_limit : in->max_blocks};
    size_t n = curve_points(in, curve, step);
    for (size_t i = 0; i < n; i++)
        warps[i] = warps_at(in, curve, (uint32_t)i * *step, l, o.warps_per_block);
    return n;
}
