/*
 * The functions with counts by instruction, each once per process: names, instructions and source lines. Threads: any.
 */
#ifndef KP_COLLECTORS_CODE_CODES_H
#define KP_COLLECTORS_CODE_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/model/lookup.h"
#include "report/model/model.h"

struct kp_codes;

/* `cubin` returns the image of the module with a CRC, valid for ever, or NULL. `texts`: kp_codes_prepare adds the
 * texts of source files and instructions. */
struct kp_codes *kp_codes_new(const void *(*cubin)(uint32_t crc, size_t *size), bool texts);
void kp_codes_free(struct kp_codes *c);

/* Returns the id of function `name` (mangled) of the cubin with that CRC; ids count from 1 in the order of the first
 * call. 0 without memory. Fast: it does not read the image. */
uint64_t kp_codes_id(struct kp_codes *c, uint32_t crc, const char *name);
/* Returns the number of ids assigned. */
uint64_t kp_codes_count(struct kp_codes *c);
/* Returns the code of an id, read from the image on the first call. It has no instructions if the image is missing
 * or unreadable. NULL for an unknown id, and without memory. Valid until kp_codes_free. */
const struct kp_code *kp_codes_get(struct kp_codes *c, uint64_t id);
/* Adds texts, if wanted, to the code of the ids [from, to): the source files that exist, the PTX in the image, up to 64
 * MiB for all functions, and disassembly if NVIDIA's tool is installed. The tool runs once per module and may need
 * seconds. Call it once for each id. */
void kp_codes_prepare(struct kp_codes *c, uint64_t from, uint64_t to);
/* Returns a look-up of code that makes copies; it has no stacks. Valid until kp_codes_free. */
struct kp_lookup kp_codes_lookup(struct kp_codes *c);

#endif
