/*
 * Arrays, levels of mipmaps, and the surfaces and textures that kernels reach them by. Their bytes are an allocation of
 * the context, which a checkpoint saves; the program never sees its address. Rows follow each other.
 */
#include "core.h"

#define SAME_FOR_ALL_FLAVOURS(name) SAME_AS(name##_ptds, name)

/* A handle of a surface or texture is no address, and no number that a kernel would be given otherwise. */
#define VIEW_TAG   ((uintptr_t)0x5eff)
#define VIEW_SHIFT 48

static size_t element_bytes(CUarray_format format, unsigned int channels)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4 * channels;
    default:
        return 0;
    }
}

static size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

/* Each level of a mipmap has half the size of the previous one. */
static CUresult new_array(struct array **out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int level)
{
    size_t element = element_bytes(d->Format, d->NumChannels);
    struct array a = {.row = at_least_one(d->Width >> level) * element,
                      .height = at_least_one(d->Height >> level),
                      .depth = at_least_one(d->Depth >> level)};
    void *bytes;
    CUresult result;

    if (!element || !d->Width)
        return CUDA_ERROR_INVALID_VALUE;
    result = allocate(&bytes, a.row * a.height * a.depth, false);
    if (result)
        return result;
    a.memory = allocation_of((uintptr_t)bytes);
    *out = make(sizeof(**out), KIND_ARRAY, current());
    a.head = (*out)->head;
    **out = a;
    return CUDA_SUCCESS;
}

static void end_array(struct array *a)
{
    release_memory(&a->memory->head);
    a->head.dead = true;
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    ENTER_NOT_CAPTURING();
    return new_array((struct array **)out, d, 0);
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
    const CUDA_ARRAY3D_DESCRIPTOR as_3d = {
        .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};

    ENTER_NOT_CAPTURING();
    return new_array((struct array **)out, &as_3d, 0);
}

CUresult cuArrayDestroy(CUarray handle)
{
    ENTER_NOT_CAPTURING();
    TAKE(array, a, KIND_ARRAY, handle);
    if (a->of_mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    wait_for_context();
    end_array(a);
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels)
{
    CUresult result = CUDA_SUCCESS;
    struct mipmap *m;

    ENTER_NOT_CAPTURING();
    if (!levels || levels > MAX_LEVELS)
        return CUDA_ERROR_INVALID_VALUE;
    m = make(sizeof(*m), KIND_MIPMAP, current());
    for (; !result && m->n < levels; m->n += !result) {
        result = new_array(&m->levels[m->n], d, m->n);
        if (!result)
            m->levels[m->n]->of_mipmap = true;
    }
    for (unsigned int i = 0; result && i < m->n; i++)
        end_array(m->levels[i]);
    if (result)
        unmake(&m->head);
    else
        *out = (CUmipmappedArray)m;
    return result;
}

CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray handle, unsigned int level)
{
    ENTER(NEED_CONTEXT);
    TAKE(mipmap, m, KIND_MIPMAP, handle);
    if (level >= m->n)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUarray)m->levels[level];
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
    ENTER_NOT_CAPTURING();
    TAKE(mipmap, m, KIND_MIPMAP, handle);
    wait_for_context();
    for (unsigned int i = 0; i < m->n; i++)
        end_array(m->levels[i]);
    m->head.dead = true;
    return CUDA_SUCCESS;
}

/* ---- surfaces and textures ---- */

static CUresult new_view(unsigned long long *out, const CUDA_RESOURCE_DESC *d, const char *caller)
{
    struct view view = {.of = *d}, *made;
    const struct mipmap *m;
    bool linear = d->resType == CU_RESOURCE_TYPE_LINEAR;

    switch (d->resType) {
    case CU_RESOURCE_TYPE_LINEAR:
        if (!allocation_of(d->res.linear.devPtr))
            return CUDA_ERROR_INVALID_VALUE;
        break;
    case CU_RESOURCE_TYPE_ARRAY:
        view.levels[0] = (struct array *)live(d->res.array.hArray, KIND_ARRAY, caller);
        view.n = view.levels[0] != NULL;
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        m = (const struct mipmap *)live(d->res.mipmap.hMipmappedArray, KIND_MIPMAP, caller);
        view.n = m ? m->n : 0;
        for (unsigned int i = 0; i < view.n; i++)
            view.levels[i] = m->levels[i];
        break;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!view.n && !linear)
        return CUDA_ERROR_INVALID_HANDLE;
    made = make(sizeof(*made), KIND_VIEW, current());
    view.head = made->head;
    *made = view;
    *out = VIEW_TAG << VIEW_SHIFT | (uintptr_t)made;
    return CUDA_SUCCESS;
}

static struct view *view_of(uintptr_t handle, const char *function)
{
    if (handle >> VIEW_SHIFT != VIEW_TAG)
        return NULL;
    return (struct view *)live((void *)(handle ^ VIEW_TAG << VIEW_SHIFT), KIND_VIEW, function);
}

static CUresult end_view(unsigned long long handle, const char *caller)
{
    struct view *view = view_of(handle, caller);

    if (!view)
        return CUDA_ERROR_INVALID_VALUE;
    wait_for_context();
    view->head.dead = true;
    return CUDA_SUCCESS;
}

/* Asks about what may have been destroyed, which is an error of the driver's here. */
static CUresult tell_view(CUDA_RESOURCE_DESC *out, unsigned long long handle)
{
    const struct view *view = (const struct view *)(uintptr_t)(handle ^ VIEW_TAG << VIEW_SHIFT);

    if (handle >> VIEW_SHIFT != VIEW_TAG || state_of(view, KIND_VIEW) != FAKE_LIVE)
        return CUDA_ERROR_INVALID_VALUE;
    *out = view->of;
    return CUDA_SUCCESS;
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject handle)
{
    ENTER(NEED_CONTEXT);
    return tell_view(out, handle);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject handle)
{
    ENTER(NEED_CONTEXT);
    return tell_view(out, handle);
}

/* A surface has one level. */
CUresult cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *d)
{
    ENTER_NOT_CAPTURING();
    return d->resType == CU_RESOURCE_TYPE_ARRAY ? new_view(out, d, __func__) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuSurfObjectDestroy(CUsurfObject handle)
{
    ENTER_NOT_CAPTURING();
    return end_view(handle, __func__);
}

/* Kernels decide how it is read: element by element. */
CUresult cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *d, const CUDA_TEXTURE_DESC *how,
                           const CUDA_RESOURCE_VIEW_DESC *part)
{
    ENTER_NOT_CAPTURING();
    (void)how;
    return part ? CUDA_ERROR_NOT_SUPPORTED : new_view(out, d, __func__);
}

CUresult cuTexObjectDestroy(CUtexObject handle)
{
    ENTER_NOT_CAPTURING();
    return end_view(handle, __func__);
}

/* What a kernel finds of one: ints, `*n` of them. */
static int *ints_of_view(uintptr_t handle, unsigned int level, int64_t *n, const char *kernel)
{
    const struct view *view = view_of(handle, kernel);
    const struct array *a = view && level < view->n ? view->levels[level] : NULL;

    if (view && !view->n) {
        if (!allocation_of(view->of.res.linear.devPtr))
            fake_misuse("kernel %s was given a view of memory that was freed", kernel);
        *n = (int64_t)(view->of.res.linear.sizeInBytes / sizeof(int));
        return (int *)view->of.res.linear.devPtr;
    }
    if (!a)
        return NULL;
    if (a->head.dead)
        fake_misuse("kernel %s was given a view of an array that was destroyed", kernel);
    *n = (int64_t)(a->memory->info.size / sizeof(int));
    return a->memory->info.base;
}

/* ---- copies; their asynchronous flavours are in stream.c ---- */

/* One end of a copy of rows. */
struct rows_end {
    char *first;       /* byte to be copied */
    size_t row, slice; /* bytes from one to the next */
    const struct array *array;
};

static CUresult end_of(struct rows_end *out, CUmemorytype type, const void *host, CUdeviceptr device, CUarray handle,
                       const size_t at[3], size_t pitch, size_t height, const char *caller)
{
    *out = (struct rows_end){.first = type == CU_MEMORYTYPE_HOST ? (char *)host : (char *)device, .row = pitch};
    if (type == CU_MEMORYTYPE_ARRAY) {
        const struct array *a = (const struct array *)live(handle, KIND_ARRAY, caller);

        if (!a)
            return CUDA_ERROR_INVALID_HANDLE;
        *out = (struct rows_end){.first = a->memory->info.base, .row = a->row, .array = a};
        height = a->height;
    }
    out->slice = out->row * height;
    out->first += at[2] * out->slice + at[1] * out->row + at[0];
    return CUDA_SUCCESS;
}

static bool fits(const struct rows_end *end, const size_t at[3], const CUDA_MEMCPY3D *p)
{
    const struct array *a = end->array;

    if ((p->Height > 1 || p->Depth > 1) && at[0] + p->WidthInBytes > end->row)
        return false;
    return !a || (at[0] + p->WidthInBytes <= a->row && at[1] + p->Height <= a->height && at[2] + p->Depth <= a->depth);
}

/* Calls `copy` for each row. */
static CUresult copy_rows(const CUDA_MEMCPY3D *p, CUresult (*copy)(void *, const void *, size_t, void *), void *data,
                          const char *caller)
{
    const size_t from_at[3] = {p->srcXInBytes, p->srcY, p->srcZ}, to_at[3] = {p->dstXInBytes, p->dstY, p->dstZ};
    struct rows_end from = {0}, to = {0};
    CUresult result = end_of(&from, p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, from_at, p->srcPitch,
                             p->srcHeight, caller);

    if (!result)
        result = end_of(&to, p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, to_at, p->dstPitch, p->dstHeight,
                        caller);
    if (!result && (!fits(&from, from_at, p) || !fits(&to, to_at, p)))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t z = 0; z < p->Depth; z++)
        for (size_t y = 0; !result && y < p->Height; y++)
            result = copy(to.first + z * to.slice + y * to.row, from.first + z * from.slice + y * from.row,
                          p->WidthInBytes, data);
    return result;
}

static CUDA_MEMCPY3D in_3d(const CUDA_MEMCPY2D *p)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = p->srcXInBytes,
                           .srcY = p->srcY,
                           .srcMemoryType = p->srcMemoryType,
                           .srcHost = p->srcHost,
                           .srcDevice = p->srcDevice,
                           .srcArray = p->srcArray,
                           .srcPitch = p->srcPitch,
                           .dstXInBytes = p->dstXInBytes,
                           .dstY = p->dstY,
                           .dstMemoryType = p->dstMemoryType,
                           .dstHost = p->dstHost,
                           .dstDevice = p->dstDevice,
                           .dstArray = p->dstArray,
                           .dstPitch = p->dstPitch,
                           .WidthInBytes = p->WidthInBytes,
                           .Height = p->Height,
                           .Depth = 1};
}

static CUresult copy_now(void *to, const void *from, size_t bytes, void *unused)
{
    (void)unused;
    copy_bytes(to, from, bytes);
    transferred(to, from, bytes, DEFAULT_STREAM_ID, 0);
    return CUDA_SUCCESS;
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *p)
{
    ENTER_NOT_CAPTURING();
    wait_for_legacy();
    return copy_rows(p, copy_now, NULL, __func__);
}
SAME_FOR_ALL_FLAVOURS(cuMemcpy3D_v2);

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *p)
{
    const CUDA_MEMCPY3D as_3d = in_3d(p);

    ENTER_NOT_CAPTURING();
    wait_for_legacy();
    return copy_rows(&as_3d, copy_now, NULL, __func__);
}
SAME_FOR_ALL_FLAVOURS(cuMemcpy2D_v2);
SAME_AS(cuMemcpy2DUnaligned_v2, cuMemcpy2D_v2);
SAME_AS(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2D_v2);
