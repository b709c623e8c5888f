/* What the files that read cubins share. */
#ifndef KP_COLLECTORS_CODE_CUBIN_INTERNAL_H
#define KP_COLLECTORS_CODE_CUBIN_INTERNAL_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/code/cubin.h"

/* Bytes of the image; none for a section that is not there or reaches beyond the end. */
struct kp_bytes {
    const uint8_t *at;
    size_t size;
};

/* Where the code of a function is. */
struct kp_cubin_place {
    uint32_t section; /* index */
    uint32_t symbol;  /* of the function */
    uint64_t begin;   /* in the section, byte */
    uint64_t size;    /* byte; within the section */
};

/* False, and *out zeroed, for an index beyond the table. */
bool kp_cubin_section(const struct kp_cubin *c, size_t index, Elf64_Shdr *out);
bool kp_cubin_symbol(const struct kp_cubin *c, size_t index, Elf64_Sym *out);
/* NULL when the image has none for it. */
const char *kp_cubin_symbol_name(const struct kp_cubin *c, size_t index);
struct kp_bytes kp_cubin_bytes(const struct kp_cubin *c, const Elf64_Shdr *s);
/* The first section of that name; false, and *out zeroed, without one. */
bool kp_cubin_section_named(const struct kp_cubin *c, const char *name, Elf64_Shdr *out);
/* The name of a section; NULL when the image has none for it. */
const char *kp_cubin_section_name(const struct kp_cubin *c, const Elf64_Shdr *s);
/* The string at `offset`; NULL when it does not end in `strings`. */
const char *kp_bytes_string(struct kp_bytes strings, uint64_t offset);

/* The 32 bits at `at`, little-endian. */
uint32_t kp_u32_at(const uint8_t *at);

/* Where the code of the function with ELF symbol `symbol` is. False when it is something else, or has no code here. */
bool kp_cubin_place_of(const struct kp_cubin *c, uint32_t symbol, const char **name, struct kp_cubin_place *place);

/* Calls `fn` for each place in the function, byte, that the compiler notes as a load or store of a spill, until it
 * returns other than 0, and returns that. */
int kp_cubin_each_spill(const struct kp_cubin *c, const struct kp_cubin_place *place, int (*fn)(uint64_t at, void *arg),
                        void *arg);

/* 0, or -ENOENT without such a function. */
int kp_cubin_find(const struct kp_cubin *c, const char *name, struct kp_cubin_place *out);

/* Gives the instructions of `code`, which is at `place`, their locations, and the code its locations and files. A
 * module without a line table, or with a broken one, gives none. 0 or -ENOMEM. */
int kp_cubin_lines(const struct kp_cubin *c, const struct kp_cubin_place *place, struct kp_code *code);

#endif
