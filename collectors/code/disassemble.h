/* Disassembly by NVIDIA's nvdisasm, if a CUDA toolkit is installed. */
#ifndef KP_COLLECTORS_CODE_DISASSEMBLE_H
#define KP_COLLECTORS_CODE_DISASSEMBLE_H

#include <stddef.h>

#include "report/model/model.h"

/* Returns the first nvdisasm in the folders of PATH, in $CUDA_HOME/bin and in /usr/local/cuda/bin; malloc'ed, NULL
 * without one. */
char *kp_disassembler_find(void);

/* Fills the texts of the instructions of codes[0..n), functions of the cubin of `size` bytes at `image`. Runs the
 * nvdisasm at `tool` once, for at most `limit_ms` ms. Instructions that it does not print keep their text. Blocks, so
 * call it at the end of a session, not during launches. The tool runs as a child without our preloading; signal
 * handlers and other children are not affected. Writes no file. Returns 0 if at least one text was filled, otherwise
 * -EINVAL if the image is not a cubin, -ENOENT if no function is in it, -ENODATA without usable output, or an error of
 * starting the tool. */
int kp_disassemble(const char *tool, const void *image, size_t size, struct kp_code *const *codes, size_t n,
                   unsigned limit_ms);

#endif
