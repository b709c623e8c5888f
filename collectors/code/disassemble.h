/* Disassembly by NVIDIA's nvdisasm, where a CUDA toolkit is installed. */
#ifndef KP_COLLECTORS_CODE_DISASSEMBLE_H
#define KP_COLLECTORS_CODE_DISASSEMBLE_H

#include <stddef.h>

#include "report/model/model.h"

/* The first nvdisasm in the folders of PATH, in $CUDA_HOME/bin and in /usr/local/cuda/bin; malloc'ed, NULL without one.
 */
char *kp_disassembler_find(void);

/* Fills the texts of the instructions of codes[0..n), functions of the cubin of `size` bytes at `image`, by one run of
 * the nvdisasm at `tool`, which is ended after `limit_ms` ms. Instructions it does not print keep their text. Blocks
 * for as long as it takes: for the end of a session, off the launches' way.
 *
 * The tool is a child of this process, without our preloading; signal handlers and other children are not touched. No
 * file is written. Returns 0 when at least one text was filled, -EINVAL for an image that is not a cubin, -ENOENT when
 * no function is in it, -ENODATA when nothing usable came, or what starting the tool failed with. */
int kp_disassemble(const char *tool, const void *image, size_t size, struct kp_code *const *codes, size_t n,
                   unsigned limit_ms);

#endif
