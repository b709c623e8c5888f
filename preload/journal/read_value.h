/*
 * The value that an operation of the window brings to the host: bytes, or rows of a CUDA_MEMCPY2D. It is kept without
 * gaps.
 */
#ifndef KP_PRELOAD_JOURNAL_READ_VALUE_H
#define KP_PRELOAD_JOURNAL_READ_VALUE_H

#include "preload/journal/op_encode.h"

/* Copies the value from the program's memory. */
void kp_value_take(const struct kp_op *op, void *into);

/* Returns how many bytes of the value to read at once, at most `most`. */
size_t kp_value_piece(const struct kp_op *op, size_t most);

/* Reads a piece of the value again, `bytes` from `at` on: whole pieces, except the last. */
CUresult kp_value_read(const struct kp_op *op, size_t at, size_t bytes, void *into);

/* Copies the value within the device, in the operation's stream. */
CUresult kp_value_aside(const struct kp_driver *d, const struct kp_op *op, CUdeviceptr to);

#endif
