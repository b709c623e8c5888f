/* Shared declarations of the files that read cubins. */
#ifndef KP_COLLECTORS_CODE_CUBIN_INTERNAL_H
#define KP_COLLECTORS_CODE_CUBIN_INTERNAL_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/code/cubin.h"

/* Bytes of the image; none for a section that is missing or reaches beyond the end. */
struct kp_bytes {
    const uint8_t *at;
    size_t size;
};

/* The place of a function's code. */
struct kp_cubin_place {
    uint32_t section; /* index */
    uint32_t symbol;  /* of the function */
    uint64_t begin;   /* in the section, in bytes */
    uint64_t size;    /* in bytes; within the section */
};

/* Returns the compute capability of the code: 90 is 9.0. */
uint32_t kp_cubin_sm(const struct kp_cubin *c);

/* Returns false, and zeroes *out, for an index beyond the table. */
bool kp_cubin_section(const struct kp_cubin *c, size_t index, Elf64_Shdr *out);
bool kp_cubin_symbol(const struct kp_cubin *c, size_t index, Elf64_Sym *out);
/* Returns NULL if the image has no name for it. */
const char *kp_cubin_symbol_name(const struct kp_cubin *c, size_t index);
struct kp_bytes kp_cubin_bytes(const struct kp_cubin *c, const Elf64_Shdr *s);
/* Finds the first section of that name; false, and *out zeroed, without one. */
bool kp_cubin_section_named(const struct kp_cubin *c, const char *name, Elf64_Shdr *out);
/* Returns the name of a section; NULL if the image has none for it. */
const char *kp_cubin_section_name(const struct kp_cubin *c, const Elf64_Shdr *s);
/* Returns the string at `offset`; NULL if it does not end in `strings`. */
const char *kp_bytes_string(struct kp_bytes strings, uint64_t offset);

/* Returns the 32 bits at `at`, little-endian. */
uint32_t kp_u32_at(const uint8_t *at);

/* Finds the code of the function with ELF symbol `symbol`. False if it is no function, or has no code here. */
bool kp_cubin_place_of(const struct kp_cubin *c, uint32_t symbol, const char **name, struct kp_cubin_place *place);

/* Calls `fn` for the offset (in the function, in bytes) of each load or store that the compiler marks as a spill. A
 * result of `fn` other than 0 ends this and is returned. */
int kp_cubin_each_spill(const struct kp_cubin *c, const struct kp_cubin_place *place, int (*fn)(uint64_t at, void *arg),
                        void *arg);

/* Return KP_ONCE_POSTS and KP_WAITS_FOR_OTHERS for `size` bytes of code from `begin` on in a section; and for all code.
 * Code for compute capabilities below 7.5 has neither. */
unsigned kp_cubin_shares(const struct kp_cubin *c, uint32_t section, uint64_t begin, uint64_t size);
unsigned kp_cubin_shares_any(const struct kp_cubin *c);

/* Returns 0, or -ENOENT without such a function. */
int kp_cubin_find(const struct kp_cubin *c, const char *name, struct kp_cubin_place *out);

/* Sets the locations of the instructions of `code`, which is at `place`, and the code's locations and files. There are
 * none without a valid line table. 0 or -ENOMEM. */
int kp_cubin_lines(const struct kp_cubin *c, const struct kp_cubin_place *place, struct kp_code *code);

/* The same with the places in the PTX: files are sections of the cubin, or this cubin if unnamed. */
int kp_cubin_lines_of_ptx(const struct kp_cubin *c, const struct kp_cubin_place *place, struct kp_code *code);
#define KP_PTX_SECTION ".nv_debug_ptx_txt"

#endif
