/*
 * Names and categories of SASS, the machine code of NVIDIA's GPUs.
 *
 * KP_VENDOR: the encoding is not documented; collectors/code/sass.def names the sources of the table.
 */
#ifndef KP_COLLECTORS_CODE_SASS_H
#define KP_COLLECTORS_CODE_SASS_H

#include <stdint.h>

#define KP_SASS_SIZE 16 /* bytes per instruction, from compute capability 7.0 on */

/* Returns the basic opcode ("FFMA", "LDG") of the KP_SASS_SIZE bytes at `instruction` on a GPU of compute capability
 * `sm` (90 is 9.0); "" if unknown. */
const char *kp_disassembly_opcode(const uint8_t *instruction, uint32_t sm);

/* Returns how many bits of memory a thread accesses by that instruction; 0 if it accesses none, or the size is
 * unknown. */
unsigned kp_disassembly_access_bits(const uint8_t *instruction, uint32_t sm);

/* Returns the category of a basic opcode ("Load/Store"); "" if unknown. */
const char *kp_disassembly_category(const char *opcode);

#endif
