/*
 * The functions that have counts by instruction, each once in a process: their names, their instructions, and the lines
 * these come from. Threads: any.
 */
#ifndef KP_COLLECTORS_CODE_CODES_H
#define KP_COLLECTORS_CODE_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/model/lookup.h"
#include "report/model/model.h"

struct kp_codes;

/* `cubin` gives the image of the module with a CRC, valid for ever, or NULL. `texts`: kp_codes_prepare adds the texts
 * of source files and instructions. */
struct kp_codes *kp_codes_new(const void *(*cubin)(uint32_t crc, size_t *size), bool texts);
void kp_codes_free(struct kp_codes *c);

/* The id of function `name` (mangled) of the cubin with that CRC; ids count from 1 in the order of the first call. 0
 * without memory. Fast: the image is not looked at. */
uint64_t kp_codes_id(struct kp_codes *c, uint32_t crc, const char *name);
/* How many ids have been given. */
uint64_t kp_codes_count(struct kp_codes *c);
/* The code of an id, read from the image on the first call; it has no instructions where there is no image, or none
 * that can be read. NULL for no id, and without memory. Valid until kp_codes_free. */
const struct kp_code *kp_codes_get(struct kp_codes *c, uint64_t id);
/* Adds texts, where they are wanted, to the code of the ids [from, to): those of the source files that are there,
 * and disassembly where NVIDIA's tool is installed. The tool is run once a module and may take seconds. To be called
 * once for each id. */
void kp_codes_prepare(struct kp_codes *c, uint64_t from, uint64_t to);
/* A look-up of code, which hands out copies; it has no stacks. Good until kp_codes_free. */
struct kp_lookup kp_codes_lookup(struct kp_codes *c);

#endif
