#include "preload/program/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/work.h"
#include "preload/who/timeline.h"

/* Alignment of copied arguments: that of the widest vector type a kernel can receive by value. */
enum { ARGUMENT_ALIGN = 16 };

CUcontext kp_launch_context(const struct kp_driver *d, const struct kp_launch *l, bool *current)
{
    CUcontext ctx = NULL;
    bool special = !l->stream || l->stream == CU_STREAM_LEGACY || l->stream == CU_STREAM_PER_THREAD;
    CUresult rc = special ? CUDA_ERROR_NOT_SUPPORTED : d->cuStreamGetCtx(l->stream, &ctx);
    *current = rc == CUDA_ERROR_NOT_SUPPORTED || (rc == CUDA_SUCCESS && !ctx);
    if (!*current)
        return rc == CUDA_SUCCESS ? ctx : NULL;
    return d->cuCtxGetCurrent(&ctx) == CUDA_SUCCESS ? ctx : NULL;
}

void kp_launch_on_timeline(const struct kp_launch *l)
{
    kp_timeline_launching(l->is_graph ? NULL : l->shape.grid, l->shape.block);
}

struct call {
    const struct kp_launch *launch;
    CUresult rc;
};

static void issue(void *arg)
{
    struct call *c = arg;
    c->rc = c->launch->issue(c->launch);
}

CUresult kp_launch_call(const struct kp_launch *l)
{
    struct call c = {l, CUDA_ERROR_UNKNOWN};
    return kp_work_call(issue, &c) ? c.rc : CUDA_ERROR_UNKNOWN;
}

CUresult kp_launch_issue_own(const struct kp_launch *l)
{
    kp_launch_on_timeline(l);
    CUresult rc = kp_launch_call(l);
    kp_timeline_launched(rc != CUDA_SUCCESS);
    return rc;
}

CUresult kp_launch_issue_ex(const struct kp_launch *l)
{
    return l->real.kernel_ex(&l->config, l->f, l->params, l->extra);
}

/* Reads the launch attributes that the report shows. */
static void read_attributes(struct kp_launch *l)
{
    for (unsigned i = 0; i < l->config.numAttrs; i++) {
        const CUlaunchAttribute *a = &l->config.attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            l->shape.cluster[0] = a->value.clusterDim.x;
            l->shape.cluster[1] = a->value.clusterDim.y;
            l->shape.cluster[2] = a->value.clusterDim.z;
        } else if (a->id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) {
            l->shape.preferred_cluster[0] = a->value.preferredClusterDim.x;
            l->shape.preferred_cluster[1] = a->value.preferredClusterDim.y;
            l->shape.preferred_cluster[2] = a->value.preferredClusterDim.z;
        } else if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE) {
            l->shape.cluster_policy = (int)a->value.clusterSchedulingPolicyPreference;
        } else if (a->id == CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING) {
            l->shape.nvlink_centric = a->value.nvlinkUtilCentricScheduling;
        }
    }
}

void kp_launch_shape_ex(struct kp_launch *l)
{
    const CUlaunchConfig *c = &l->config;
    const unsigned grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
    const unsigned block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};
    memcpy(l->shape.grid, grid, sizeof(grid));
    memcpy(l->shape.block, block, sizeof(block));
    l->shape.dynamic_shared = c->sharedMemBytes;
    read_attributes(l);
}

/* ---- copying ---- */

static size_t aligned(size_t n)
{
    return (n + ARGUMENT_ALIGN - 1) / ARGUMENT_ALIGN * ARGUMENT_ALIGN;
}

static size_t params_space(const struct kp_launch *l, const struct kp_function *f)
{
    if (!l->params || !f->params_known)
        return 0;
    size_t bytes = aligned((f->n_params + 1) * sizeof(void *));
    for (size_t i = 0; i < f->n_params; i++)
        bytes += aligned(f->params[i].size);
    return bytes;
}

/* Entries of `extra`, key and value in turn, up to the end mark. */
struct extra_view {
    const void *buffer;
    const size_t *size;
};

/* Returns true if `extra` can be copied: it is empty, or has a buffer and its size. The driver is to see any other as
 * it came: it refuses it, or is a later one that knows its keys and sizes. */
static bool read_extra(const struct kp_launch *l, struct extra_view *v)
{
    enum { BUFFER_MOST = 32 << 10 }; /* the largest parameters of a kernel are 32,764 bytes */
    memset(v, 0, sizeof(*v));
    for (void **e = l->extra; e && e[0] != CU_LAUNCH_PARAM_END; e += 2) {
        if (e[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            v->buffer = e[1];
        else if (e[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            v->size = e[1];
        else
            return false;
    }
    bool empty = l->extra && l->extra[0] == CU_LAUNCH_PARAM_END;
    return empty || (v->buffer && v->size && *v->size <= BUFFER_MOST);
}

enum { EXTRA_WORDS = 5 }; /* buffer key and value, size key and value, end */

static char *copy_params(struct kp_launch *l, const struct kp_function *f, char *to)
{
    void **list = (void **)to;
    to += aligned((f->n_params + 1) * sizeof(void *));
    for (size_t i = 0; i < f->n_params; i++) {
        memcpy(to, l->params[i], f->params[i].size);
        list[i] = to;
        to += aligned(f->params[i].size);
    }
    list[f->n_params] = NULL;
    l->params = list;
    return to;
}

static char *copy_extra(struct kp_launch *l, const struct extra_view *v, char *to)
{
    void **list = (void **)to;
    to += aligned(EXTRA_WORDS * sizeof(void *));
    l->extra = list;
    list[0] = CU_LAUNCH_PARAM_END;
    if (!v->buffer)
        return to;
    size_t *size = (size_t *)to;
    to += aligned(sizeof(*size));
    *size = *v->size;
    memcpy(to, v->buffer, *size);
    list[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    list[1] = to;
    list[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    list[3] = size;
    list[4] = CU_LAUNCH_PARAM_END;
    return to + aligned(*size);
}

int kp_launch_copy(struct kp_launch *l, const struct kp_function *f)
{
    struct extra_view extra;
    if (l->copy || (l->params && l->extra))
        return 0; /* already copied; or the driver will report this error, and there is nothing to copy */
    if (kp_work_abandoned())
        return -ENOMEM; /* the arguments are gone */
    bool has_extra = read_extra(l, &extra);
    l->extra_copied = has_extra;
    size_t params = params_space(l, f);
    size_t attributes = l->config.numAttrs * sizeof(CUlaunchAttribute);
    size_t bytes = params + aligned(attributes);
    if (has_extra)
        bytes +=
            aligned(EXTRA_WORDS * sizeof(void *)) + aligned(sizeof(size_t)) + aligned(extra.size ? *extra.size : 0);
    if (!bytes)
        return 0;
    char *to = aligned_alloc(ARGUMENT_ALIGN, aligned(bytes));
    if (!to)
        return -ENOMEM;
    memset(to, 0, aligned(bytes));
    l->copy = to;
    l->copied = aligned(bytes);
    if (params)
        to = copy_params(l, f, to);
    if (has_extra)
        to = copy_extra(l, &extra, to);
    if (attributes) {
        memcpy(to, l->config.attrs, attributes);
        l->config.attrs = (CUlaunchAttribute *)to;
    }
    return 0;
}

void kp_launch_free(struct kp_launch *l)
{
    free(l->copy);
    l->copy = NULL;
    kp_nvtx_free(&l->nvtx);
}
