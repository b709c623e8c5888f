#include "preload/journal/read_value.h"

#include <string.h>

static const CUDA_MEMCPY2D *rows_of(const struct kp_op *op)
{
    return op->rows ? (const CUDA_MEMCPY2D *)(uintptr_t)op->args[op->result - 1] : NULL;
}

void kp_value_take(const struct kp_op *op, void *into)
{
    const CUDA_MEMCPY2D *m = rows_of(op);
    if (!m) {
        memcpy(into, (const void *)(uintptr_t)op->args[op->result - 1], op->result_bytes);
        return;
    }
    uintptr_t base = m->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)m->dstHost : (uintptr_t)m->dstDevice;
    const char *first = (const char *)(base + m->dstY * m->dstPitch + m->dstXInBytes);
    for (size_t row = 0; row < m->Height; row++)
        memcpy((char *)into + row * m->WidthInBytes, first + row * m->dstPitch, m->WidthInBytes);
}

size_t kp_value_piece(const struct kp_op *op, size_t most)
{
    const CUDA_MEMCPY2D *m = rows_of(op);
    size_t piece = m ? most / m->WidthInBytes * m->WidthInBytes : most;
    return piece < op->result_bytes ? piece : op->result_bytes;
}

CUresult kp_value_read(const struct kp_op *op, size_t at, size_t bytes, void *into)
{
    struct kp_op now = *op;
    uint64_t *args = &now.args[op->result - 1];
    CUDA_MEMCPY2D m;
    if (op->rows) {
        m = *rows_of(op);
        m.dstMemoryType = CU_MEMORYTYPE_HOST;
        m.dstHost = into;
        m.dstXInBytes = m.dstY = 0;
        m.dstPitch = m.WidthInBytes;
        m.srcY += at / m.WidthInBytes;
        m.Height = bytes / m.WidthInBytes;
        args[0] = (uintptr_t)&m;
    } else {
        args[0] = (uintptr_t)into;
        args[1] += at; /* the source and the size follow the result */
        args[2] = bytes;
    }
    return kp_op_issue(&now);
}

CUresult kp_value_aside(const struct kp_driver *d, const struct kp_op *op, CUdeviceptr to)
{
    CUstream stream = op->stream ? op->stream : CU_STREAM_LEGACY;
    if (!op->rows)
        return d->cuMemcpyDtoDAsync(to, op->args[op->result], op->result_bytes, stream);
    struct kp_op now = *op;
    CUDA_MEMCPY2D m = *rows_of(op);
    m.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    m.dstDevice = to;
    m.dstXInBytes = m.dstY = 0;
    m.dstPitch = m.WidthInBytes;
    now.args[op->result - 1] = (uintptr_t)&m;
    return kp_op_issue(&now);
}
