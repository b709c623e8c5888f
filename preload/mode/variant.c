#include "preload/mode/variant.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most threads and blocks in each dimension, of every device from compute capability 7.5 on. */
static const uint64_t most_threads[3] = {1024, 1024, 64}, most_blocks[3] = {INT32_MAX, 65535, 65535};

static uint64_t volume(const uint32_t size[3])
{
    return (uint64_t)size[0] * size[1] * size[2];
}

/* ---- the shape ---- */

/* Sets the block: all three sizes, or only x and the rest as in the program. */
static void set_block(struct kp_trial *t, const struct kp_vary_value *v)
{
    const uint32_t *own = t->own->shape.block;
    uint64_t others = (uint64_t)own[1] * own[2];
    if (v->block[0]) {
        memcpy(t->shape.block, v->block, sizeof(v->block));
        return;
    }
    t->divides = others && v->number % others == 0;
    if (t->divides)
        t->shape.block[0] = (uint32_t)(v->number / others);
}

static void set_grid(struct kp_trial *t)
{
    const struct kp_shape *own = &t->own->shape;
    for (int i = 0; i < 3; i++) {
        uint64_t threads = (uint64_t)own->grid[i] * own->block[i], block = t->shape.block[i];
        uint64_t blocks = block ? (threads + block - 1) / block : 0;
        t->shape.grid[i] = blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks;
    }
}

struct kp_trial kp_trial_make(const struct kp_device *device, const struct kp_function *f, const struct kp_launch *own,
                              const struct kp_variation *of)
{
    struct kp_trial t = {device, f, own, *of, own->shape, true};
    if (of->of[KP_VARY_BLOCK]) {
        set_block(&t, of->of[KP_VARY_BLOCK]);
        set_grid(&t);
    }
    if (of->of[KP_VARY_SHARED])
        t.shape.dynamic_shared = of->of[KP_VARY_SHARED]->number;
    return t;
}

void kp_trial_apply(const struct kp_trial *t, struct kp_launch *l)
{
    const struct kp_shape *s = &t->shape;
    l->f = t->f->handle; /* the handle of this context, whose attributes are set */
    l->shape = *s;
    l->config.gridDimX = s->grid[0];
    l->config.gridDimY = s->grid[1];
    l->config.gridDimZ = s->grid[2];
    l->config.blockDimX = s->block[0];
    l->config.blockDimY = s->block[1];
    l->config.blockDimZ = s->block[2];
    l->config.sharedMemBytes = (unsigned)s->dynamic_shared;
}

/* ---- why it may not be ---- */

static struct kp_why nothing(void)
{
    return kp_why_of(KP_REASON_NONE, NULL);
}

static struct kp_why has_no_size(const struct kp_trial *t)
{
    return kp_why_of(t->own->fixed_shape ? KP_REASON_VARIANT_FIXED : KP_REASON_NONE, NULL);
}

static struct kp_why does_not_divide(const struct kp_trial *t)
{
    return kp_why_of(t->divides ? KP_REASON_NONE : KP_REASON_VARIANT_DIVISION, NULL);
}

static struct kp_why has_many_threads(const struct kp_trial *t)
{
    uint64_t threads = volume(t->shape.block);
    return threads <= t->f->max_threads
               ? nothing()
               : kp_why_make(KP_REASON_VARIANT_THREADS, "%" PRIu64 ", at most %u", threads, t->f->max_threads);
}

static struct kp_why exceeds_dimension(const struct kp_trial *t)
{
    for (int i = 0; i < 3; i++) {
        if (!t->shape.block[i] || t->shape.block[i] > most_threads[i])
            return kp_why_make(KP_REASON_VARIANT_SIZE, "%u threads in %c, 1 to %" PRIu64 " are allowed",
                               t->shape.block[i], "xyz"[i], most_threads[i]);
        if (t->shape.grid[i] > most_blocks[i])
            return kp_why_make(KP_REASON_VARIANT_SIZE, "%u blocks in %c, at most %" PRIu64 " are allowed",
                               t->shape.grid[i], "xyz"[i], most_blocks[i]);
    }
    return nothing();
}

static struct kp_why breaks_clusters(const struct kp_trial *t)
{
    const uint32_t *size = t->shape.cluster[0] ? t->shape.cluster : t->f->cluster;
    for (int i = 0; i < 3; i++)
        if (size[i] && t->shape.grid[i] % size[i])
            return kp_why_make(KP_REASON_VARIANT_CLUSTER, "%u blocks in %c, clusters of %u", t->shape.grid[i], "xyz"[i],
                               size[i]);
    return nothing();
}

static struct kp_why exceeds_shared(const struct kp_trial *t)
{
    uint64_t all = t->shape.dynamic_shared + t->f->static_shared, most = t->device->shared_per_block_optin;
    return all <= most ? nothing()
                       : kp_why_make(KP_REASON_VARIANT_SHARED_SIZE,
                                     "%" PRIu64 " bytes, %" PRIu64 " of them static, at most %" PRIu64, all,
                                     t->f->static_shared, most);
}

/* A kernel with as many threads would most likely reach past its end, which breaks the program's context. */
static struct kp_why lacks_shared(const struct kp_trial *t)
{
    const struct kp_shape *own = &t->own->shape;
    bool lacks = t->shape.dynamic_shared < own->dynamic_shared && volume(t->shape.block) >= volume(t->own->shape.block);
    return lacks ? kp_why_make(KP_REASON_VARIANT_SHARED_LESS, "less than %" PRIu64 " bytes", own->dynamic_shared)
                 : nothing();
}

struct kp_why kp_trial_reason(const struct kp_trial *t)
{
    static struct kp_why (*const reasons[])(const struct kp_trial *t) = {
        has_no_size,     does_not_divide, has_many_threads, exceeds_dimension,
        breaks_clusters, exceeds_shared,  lacks_shared,
    };
    struct kp_why why = nothing();
    for (size_t i = 0; !why.reason && i < sizeof(reasons) / sizeof(*reasons); i++)
        why = reasons[i](t);
    return why;
}
