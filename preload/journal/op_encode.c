#include "preload/journal/op_encode.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static const struct row {
    const char *base;
    unsigned to, from, host, any, bytes, result, copy2d, event, flags, stream, function;
} rows[] = {
#define KP_JOIN(function, ...) {.base = #function, __VA_ARGS__},
#include "preload/journal/op_encode.def"
#undef KP_JOIN
};

/* A call being judged. */
struct call {
    const struct kp_driver *d;
    const struct row *row;
    bool (*reaches_host)(uint64_t address);
    size_t most;
    struct kp_op *op;
};

/* Finds the row. No base name has an underscore: a version or a flavour starts there. */
static const struct row *row_of(const char *symbol)
{
    size_t n = strcspn(symbol, "_");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (!strncmp(rows[i].base, symbol, n) && !rows[i].base[n])
            return &rows[i];
    return NULL;
}

bool kp_join_known(const char *symbol)
{
    return row_of(symbol) != NULL;
}

/* Returns an argument by its number in op_encode.def; 0 for a column that does not apply. */
static uint64_t arg(const struct call *c, unsigned number)
{
    return number ? c->op->args[number - 1] : 0;
}

enum place { DEVICE, PINNED, PAGEABLE, UNCLEAR };

static enum place place_of(const struct call *c, uint64_t address)
{
    const CUdeviceptr p = address;
    unsigned type = 0;
    uint64_t managed = 0; /* wider than any boolean that the driver may write */
    CUresult rc = c->d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
    if (rc == CUDA_ERROR_INVALID_VALUE) /* not an address of the driver's */
        return PAGEABLE;
    if (rc != CUDA_SUCCESS || c->d->cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p) || managed)
        return UNCLEAR;
    return type == CU_MEMORYTYPE_DEVICE ? DEVICE : type == CU_MEMORYTYPE_HOST ? PINNED : UNCLEAR;
}

/* Returns true if the stream belongs to this context: the window does not restore the memory of other contexts. */
static bool stream_is_here(const struct call *c)
{
    CUstream stream = (CUstream)(uintptr_t)arg(c, c->row->stream);
    CUcontext current = NULL, of_stream = NULL;
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return true;
    return c->d->cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
           c->d->cuStreamGetCtx(stream, &of_stream) == CUDA_SUCCESS && current == of_stream;
}

/* Returns true if the address is restorable memory that the host cannot see. */
static bool may_write(const struct call *c, uint64_t address, bool anywhere)
{
    return address && !c->reaches_host(address) && (!anywhere || place_of(c, address) == DEVICE);
}

static bool may_read(const struct call *c, uint64_t address)
{
    return address && !c->reaches_host(address);
}

/* Allocates the record's storage, for a descriptor and its data. */
static void *allocate(const struct call *c, size_t descriptor, size_t bytes)
{
    bool fits = bytes <= c->most && descriptor <= c->most - bytes;
    void *copy = fits ? malloc(descriptor + bytes) : NULL;
    if (copy) {
        c->op->copy = copy;
        c->op->copied = descriptor + bytes;
    }
    return copy;
}

/* `height` rows of `width` bytes, `pitch` apart. */
struct rows_of_bytes {
    uint64_t from;
    size_t width, height, pitch;
};

/* Has the operating system copy, so that an unreadable address is an error here; the driver judges it. */
static bool copy_pageable(char *to, const struct rows_of_bytes *r)
{
    enum { AT_ONCE = 64 };
    struct iovec remote[AT_ONCE];
    size_t total = r->width * r->height;
    for (size_t done = 0; done < total;) {
        size_t n = 0, asked = 0;
        for (; n < AT_ONCE && done + asked < total; n++) {
            size_t row = (done + asked) / r->width, at = (done + asked) % r->width;
            remote[n] = (struct iovec){(void *)(uintptr_t)(r->from + row * r->pitch + at), r->width - at};
            asked += r->width - at;
        }
        ssize_t got = process_vm_readv(getpid(), &(struct iovec){to + done, asked}, 1, remote, n, 0);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* Copies the rows, without gaps. KP_VENDOR: pinned memory may be a mapping of the driver's device, which the operating
 * system does not read for us. The driver has checked its address. */
static bool copy_rows(char *to, enum place place, struct rows_of_bytes r)
{
    if (r.pitch == r.width)
        r = (struct rows_of_bytes){r.from, r.width * r.height, 1, 0};
    if (place == PAGEABLE)
        return copy_pageable(to, &r);
    for (size_t row = 0; row < r.height; row++)
        memcpy(to + row * r.width, (const char *)(uintptr_t)r.from + row * r.pitch, r.width);
    return true;
}

/* Keeps the source at argument `number`, in host memory. */
static bool keep_source(const struct call *c, unsigned number, enum place place, size_t bytes)
{
    if (!bytes)
        return true;
    char *copy = allocate(c, 0, bytes);
    if (!copy || !copy_rows(copy, place, (struct rows_of_bytes){arg(c, number), bytes, 1, bytes}))
        return false;
    c->op->args[number - 1] = (uintptr_t)copy;
    return true;
}

/* Notes a result of so many bytes that goes to `address`, by argument `number`: the call returns with it if the host
 * memory is not pinned, or if it has no stream. */
static bool record_result(const struct call *c, unsigned number, uint64_t address, size_t bytes)
{
    enum place place = place_of(c, address);
    c->op->result = number;
    c->op->result_bytes = bytes;
    c->op->later = place == PINNED && c->row->stream;
    c->op->waits = !c->op->later;
    return bytes && (place == PINNED || place == PAGEABLE);
}

static bool is_on_device(const struct call *c, uint64_t address)
{
    return may_read(c, address) && place_of(c, address) == DEVICE;
}

static bool record_bytes(const struct call *c, unsigned number)
{
    return record_result(c, number, arg(c, number), arg(c, c->row->bytes));
}

static bool record_addresses(const struct call *c)
{
    const struct row *r = c->row;
    if (r->result)
        return is_on_device(c, arg(c, r->from)) && record_bytes(c, r->result);
    if (r->to && !may_write(c, arg(c, r->to), r->any))
        return r->any && is_on_device(c, arg(c, r->any)) && record_bytes(c, r->to);
    if (r->from && !may_read(c, arg(c, r->from)))
        return false;
    if (!r->host && !r->any)
        return true;
    unsigned source = r->host ? r->host : r->any;
    enum place place = place_of(c, arg(c, source));
    c->op->from_pinned = place == PINNED;
    c->op->from_host = place != DEVICE;
    if (place == PAGEABLE || place == PINNED)
        return keep_source(c, source, place, arg(c, r->bytes));
    return place == DEVICE && r->any && may_read(c, arg(c, source));
}

static uint64_t first_byte(uint64_t base, size_t x, size_t y, size_t pitch)
{
    return base + y * pitch + x;
}

static bool may_write_2d(const struct call *c, const CUDA_MEMCPY2D *m)
{
    uint64_t to = first_byte(m->dstDevice, m->dstXInBytes, m->dstY, m->dstPitch);
    switch (m->dstMemoryType) {
    case CU_MEMORYTYPE_DEVICE:
        return may_write(c, to, false);
    case CU_MEMORYTYPE_UNIFIED:
        return may_write(c, to, true);
    case CU_MEMORYTYPE_ARRAY:
        return true;
    default:
        return false;
    }
}

/* Returns the place of the source; an array is on the device. UNCLEAR also if it must not be read again. */
static enum place place_of_2d(const struct call *c, const CUDA_MEMCPY2D *m, uint64_t *from)
{
    CUmemorytype type = m->srcMemoryType;
    uint64_t base = type == CU_MEMORYTYPE_HOST ? (uintptr_t)m->srcHost : m->srcDevice;
    *from = first_byte(base, m->srcXInBytes, m->srcY, m->srcPitch);
    if (type == CU_MEMORYTYPE_ARRAY)
        return DEVICE;
    enum place place = type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_UNIFIED ? place_of(c, *from)
                       : type == CU_MEMORYTYPE_DEVICE                              ? DEVICE
                                                                                   : UNCLEAR;
    bool again = place != DEVICE || (type != CU_MEMORYTYPE_HOST && may_read(c, *from));
    return again ? place : UNCLEAR;
}

/* Records rows that go to the host: only the descriptor. */
static bool record_rows_read(const struct call *c, const CUDA_MEMCPY2D *given)
{
    enum { WIDEST = 1 << 20 };
    size_t width = given->WidthInBytes, height = given->Height;
    bool host = given->dstMemoryType == CU_MEMORYTYPE_HOST;
    uint64_t from, base = host ? (uintptr_t)given->dstHost : given->dstDevice;
    if ((!host && given->dstMemoryType != CU_MEMORYTYPE_UNIFIED) || place_of_2d(c, given, &from) != DEVICE || !width ||
        width > WIDEST || height > SIZE_MAX / width)
        return false;
    if (given->dstXInBytes > given->dstPitch || given->dstPitch - given->dstXInBytes < width)
        return false; /* the driver refuses it */
    CUDA_MEMCPY2D *m = allocate(c, sizeof(*m), 0);
    if (!m)
        return false;
    *m = *given;
    c->op->args[c->row->copy2d - 1] = (uintptr_t)m;
    c->op->rows = true;
    return record_result(c, c->row->copy2d, first_byte(base, m->dstXInBytes, m->dstY, m->dstPitch), width * height);
}

/* Records a copy of rows: the descriptor, followed by the rows of a host source. */
static bool record_2d(const struct call *c)
{
    const CUDA_MEMCPY2D *given = (const CUDA_MEMCPY2D *)(uintptr_t)arg(c, c->row->copy2d);
    uint64_t from = 0;
    if (!given)
        return false;
    if (!may_write_2d(c, given))
        return record_rows_read(c, given);
    size_t width = given->WidthInBytes, height = given->Height;
    enum place place = place_of_2d(c, given, &from);
    bool host = place != DEVICE && width && height;
    if (place == UNCLEAR || (host && height > c->most / width))
        return false;
    if (host && (given->srcXInBytes > given->srcPitch || given->srcPitch - given->srcXInBytes < width))
        return false; /* the driver refuses it */
    CUDA_MEMCPY2D *m = allocate(c, sizeof(*m), host ? width * height : 0);
    if (!m)
        return false;
    *m = *given;
    c->op->args[c->row->copy2d - 1] = (uintptr_t)m;
    if (!host)
        return true;
    c->op->from_pinned = place == PINNED;
    c->op->from_host = true;
    m->srcMemoryType = CU_MEMORYTYPE_HOST;
    m->srcHost = m + 1;
    m->srcXInBytes = m->srcY = 0;
    m->srcPitch = width;
    return copy_rows((char *)(m + 1), place, (struct rows_of_bytes){from, width, height, given->srcPitch});
}

/* Returns the stream of a call: with the suffixes _ptsz and _ptds, no stream means the thread's own. */
static CUstream stream_of_call(const struct call *c, const char *symbol)
{
    CUstream stream = (CUstream)(uintptr_t)arg(c, c->row->stream);
    if (stream == CU_STREAM_LEGACY)
        return NULL;
    return !stream && (strstr(symbol, "_ptsz") || strstr(symbol, "_ptds")) ? CU_STREAM_PER_THREAD : stream;
}

enum kp_join kp_join_record(const struct kp_driver *d, const char *symbol, void *real, const uint64_t args[KP_OP_ARGS],
                            bool (*reaches_host)(uint64_t address), size_t most, struct kp_op *op)
{
    const struct call c = {d, row_of(symbol), reaches_host, most, op};
    *op = (struct kp_op){.real = real};
    memcpy(op->args, args, sizeof(op->args));
    if (!c.row || (uint32_t)arg(&c, c.row->flags) || (c.row->event && !arg(&c, c.row->event)) || !stream_is_here(&c))
        return KP_JOIN_CLOSE;
    op->stream = stream_of_call(&c, symbol);
    op->event = c.row->event;
    op->waits = !c.row->stream;
    op->calls_host = c.row->function;
    if (c.row->copy2d ? record_2d(&c) : record_addresses(&c))
        return KP_JOIN_YES;
    kp_op_free(op);
    return KP_JOIN_CLOSE;
}

/* Calls all functions through one type: in the System V calling convention a function ignores registers beyond its
 * parameters, and reads only the width of each parameter.
 *
 * For a function of the per-thread flavour, a NULL stream means the issuing thread's stream, which may differ from the
 * first one. That is harmless: a replay waits after each pass, so the program's work is ordered before and after it. */
CUresult kp_op_issue(const struct kp_op *op)
{
    typedef CUresult (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    const uint64_t *a = op->args;
    return ((function)(uintptr_t)op->real)(a[0], a[1], a[2], a[3], a[4], a[5]);
}

void kp_op_free(struct kp_op *op)
{
    free(op->copy);
    op->copy = NULL;
    op->copied = 0;
}
