#include "collectors/code/sass.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const category_names[] = {
#define KP_SASS_CATEGORY(id, name) name,
#include "collectors/code/sass.def"
};

enum category {
#define KP_SASS_CATEGORY(id, name) id,
#include "collectors/code/sass.def"
};

static const struct {
    const char *name;
    enum category category;
} opcodes[] = {
#define KP_SASS_OPCODE(name, category) {#name, category},
#include "collectors/code/sass.def"
};

enum opcode {
#define KP_SASS_OPCODE(name, category) OPCODE_##name,
#include "collectors/code/sass.def"
};

#define ANY   0xff /* form */
#define LATER 0xff /* later compute capabilities as well */

static const struct code {
    uint16_t operation;
    uint8_t forms;        /* a bit for each */
    uint8_t first, last;  /* compute capability */
    uint32_t mask, value; /* of bits 64..95 */
    uint8_t opcode;
} codes[] = {
#define KP_SASS_CODE(operation, forms, first, last, mask, value, name)                                                 \
    {operation, forms, first, last, mask, value, OPCODE_##name},
#include "collectors/code/sass.def"
};

_Static_assert(sizeof(opcodes) / sizeof(*opcodes) <= UINT8_MAX + 1, "more opcodes than a code's row can name");

enum sizes {
#define KP_SASS_SIZES(id, ...) SIZES_##id,
#include "collectors/code/sass.def"
};

static const uint16_t sizes[][16] = {
#define KP_SASS_SIZES(id, ...) {__VA_ARGS__},
#include "collectors/code/sass.def"
};

static const struct access {
    uint16_t operation;
    uint8_t first, last;  /* compute capability */
    uint32_t mask, value; /* of bits 64..95 */
    uint8_t lowest, bits; /* of the field, within bits 64..95 */
    uint8_t sizes;
} accesses[] = {
#define KP_SASS_ACCESS(operation, first, last, mask, value, lowest, bits, list)                                        \
    {operation, first, last, mask, value, lowest, bits, SIZES_##list},
#include "collectors/code/sass.def"
};

static int by_operation(const void *key, const void *entry)
{
    return (int)*(const uint16_t *)key - ((const struct code *)entry)->operation;
}

const char *kp_disassembly_opcode(const uint8_t *instruction, uint32_t sm)
{
    uint64_t words[KP_SASS_SIZE / sizeof(uint64_t)];
    memcpy(words, instruction, sizeof(words));
    uint16_t operation = words[0] & 0x1ff;
    unsigned form = words[0] >> 9 & 7;
    const struct code *end = codes + sizeof(codes) / sizeof(*codes);
    const struct code *code = bsearch(&operation, codes, (size_t)(end - codes), sizeof(*codes), by_operation);
    /* The search may find any row of the operation. */
    while (code && code > codes && code[-1].operation == operation)
        code--;
    for (; code && code < end && code->operation == operation; code++) {
        if (code->forms >> form & 1 && sm >= code->first && (sm <= code->last || code->last == LATER) &&
            (words[1] & code->mask) == code->value)
            return opcodes[code->opcode].name;
    }
    return "";
}

unsigned kp_disassembly_access_bits(const uint8_t *instruction, uint32_t sm)
{
    uint64_t words[KP_SASS_SIZE / sizeof(uint64_t)];
    memcpy(words, instruction, sizeof(words));
    for (size_t i = 0; i < sizeof(accesses) / sizeof(*accesses); i++) {
        const struct access *a = &accesses[i];
        if (a->operation == (words[0] & 0x1ff) && sm >= a->first && (sm <= a->last || a->last == LATER) &&
            (words[1] & a->mask) == a->value)
            return sizes[a->sizes][words[1] >> a->lowest & ((1u << a->bits) - 1)];
    }
    return 0;
}

const char *kp_disassembly_category(const char *opcode)
{
    for (size_t i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++) {
        if (strcmp(opcodes[i].name, opcode) == 0)
            return category_names[opcodes[i].category];
    }
    return "";
}
