/* The code of a function in a cubin: instructions, their places in the source, and the marks of spills. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/code/cubin_internal.h"
#include "collectors/code/sass.h"

/* KP_VENDOR: earlier instructions have other sizes. */
enum { FIRST_SM_OF_WIDE_INSTRUCTIONS = 70 };

static int read_instructions(const struct kp_cubin *c, const struct kp_cubin_place *place, struct kp_code *code)
{
    Elf64_Shdr section;
    const uint32_t sm = kp_cubin_sm(c);
    size_t n = sm < FIRST_SM_OF_WIDE_INSTRUCTIONS ? 0 : place->size / KP_SASS_SIZE;
    if (n == 0) /* a section without bytes also has no address */
        return 0;
    kp_cubin_section(c, place->section, &section);
    const uint8_t *at = kp_cubin_bytes(c, &section).at + place->begin;
    code->instructions = calloc(n, sizeof(*code->instructions));
    if (!code->instructions)
        return -ENOMEM;
    code->n_instructions = n;
    for (size_t i = 0; i < n; i++) {
        struct kp_instruction *to = &code->instructions[i];
        to->offset = (uint32_t)(i * KP_SASS_SIZE);
        to->opcode = kp_strdup(kp_disassembly_opcode(at + i * KP_SASS_SIZE, sm));
        to->text = kp_strdup("");
        to->access_bits = (uint16_t)kp_disassembly_access_bits(at + i * KP_SASS_SIZE, sm);
        if (!to->opcode || !to->text)
            return -ENOMEM;
    }
    return 0;
}

/* Marks a spill; skips an annotation that is not on an instruction of the function. */
static int mark_spill(uint64_t at, void *arg)
{
    const struct kp_code *code = arg;
    if (at % KP_SASS_SIZE == 0 && at / KP_SASS_SIZE < code->n_instructions)
        code->instructions[at / KP_SASS_SIZE].spill = true;
    return 0;
}

int kp_cubin_code(const struct kp_cubin *c, const char *name, struct kp_code *out)
{
    struct kp_cubin_place place;
    memset(out, 0, sizeof(*out));
    int rc = kp_cubin_find(c, name, &place);
    if (rc)
        return rc;
    out->function = kp_strdup(name);
    rc = out->function ? read_instructions(c, &place, out) : -ENOMEM;
    if (!rc)
        rc = kp_cubin_lines(c, &place, out);
    if (rc)
        kp_code_free(out);
    else
        kp_cubin_each_spill(c, &place, mark_spill, out);
    return rc;
}
