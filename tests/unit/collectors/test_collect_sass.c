/* The table of SASS opcodes: that no row hides another, the codes that are more than one opcode, and the categories
 * against what ncu counted on an H200. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/code/sass.h"

static const char *const opcodes[] = {
#define KP_SASS_OPCODE(name, category) #name,
#include "collectors/code/sass.def"
};
#define N_OPCODES (sizeof(opcodes) / sizeof(*opcodes))

#define ANY   0xff
#define LATER 0xff

static const struct code {
    unsigned operation, forms, first, last, mask, value;
    const char *opcode;
} codes[] = {
#define KP_SASS_CODE(operation, forms, first, last, mask, value, name)                                                 \
    {operation, forms, first, last, mask, value, #name},
#include "collectors/code/sass.def"
};
#define N_CODES (sizeof(codes) / sizeof(*codes))

/* The opcode of an instruction whose bits 0..11 are `low` and whose bits 64..95 are `high`. */
static const char *opcode_of(unsigned low, uint64_t high, uint32_t sm)
{
    /* The other bits, set, are of no importance. */
    uint64_t words[2] = {UINT64_MAX << 12 | low, UINT64_MAX << 32 | high};
    uint8_t bytes[sizeof(words) + 1];
    memcpy(bytes + 1, words, sizeof(words));
    return kp_sass_opcode(bytes + 1, sm);
}

/* May an instruction be of both rows? */
static int overlap(const struct code *a, const struct code *b)
{
    return a->operation == b->operation && a->forms & b->forms && a->first <= b->last && b->first <= a->last &&
           ((a->value ^ b->value) & a->mask & b->mask) == 0;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CODES; i++) {
        const struct code *c = &codes[i];
        /* They are searched by halves. */
        assert_true(i == 0 || codes[i - 1].operation <= c->operation);
        assert_true(c->operation < 512 && c->first >= 75 && c->first <= c->last && c->forms);
        assert_int_equal(c->value & ~c->mask, 0);
        for (size_t k = 0; k < i; k++) {
            if (overlap(c, &codes[k]))
                fail_msg("%s and %s have code 0x%x", c->opcode, codes[k].opcode, c->operation);
        }
        for (unsigned form = 0; form < 8; form++) {
            unsigned low = c->operation | form << 9;
            if (!(c->forms >> form & 1))
                continue;
            assert_string_equal(opcode_of(low, c->value, c->first), c->opcode);
            assert_string_equal(opcode_of(low, c->value | (~c->mask & UINT32_MAX), c->last), c->opcode);
            assert_string_not_equal(opcode_of(low, c->value, c->first - 1), c->opcode);
        }
    }
}

static void test_opcodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OPCODES; i++) {
        size_t n = 0;
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(opcodes[i], opcodes[k]);
        for (size_t k = 0; k < N_CODES; k++)
            n += strcmp(codes[k].opcode, opcodes[i]) == 0;
        assert_true(n > 0);
        assert_string_not_equal(kp_sass_category(opcodes[i]), "");
    }
    assert_string_equal(kp_sass_category("FFM"), "");
    assert_string_equal(kp_sass_category(""), "");
}

/* Taken from disassembled kernels. */
static void test_shared_codes(void **state)
{
    (void)state;
    assert_string_equal(opcode_of(0x98e, 0, 86), "RED");
    assert_string_equal(opcode_of(0x98e, 0, 90), "REDG");
    assert_string_equal(opcode_of(0x235, 0, 80), "HFMA2");
    assert_string_equal(opcode_of(0x235, 0, 121), "IADD");
    assert_string_equal(opcode_of(0x236, 0, 75), "HMMA");
    assert_string_equal(opcode_of(0x836, 0, 90), "VIADD");
    assert_string_equal(opcode_of(0x24a, 0, 103), "FMUL2");
    assert_string_equal(opcode_of(0x24a, 0, 120), "UVIMNMX");
    assert_string_equal(opcode_of(0x9ab, 0, 90), "ERRBAR");
    assert_string_equal(opcode_of(0x5ab, 0, 90), "CGAERRBAR");
    assert_string_equal(opcode_of(0x221, 0, 100), "FADD");
    assert_string_equal(opcode_of(0x221, 0xa0000, 100), "FHADD");
    assert_string_equal(opcode_of(0x5ea, 0x8, 100), "UTCHMMA");
    assert_string_equal(opcode_of(0x5ea, 0x108, 100), "UTCIMMA");
    assert_string_equal(opcode_of(0x5ea, 0x308, 100), "UTCQMMA");
    assert_string_equal(opcode_of(0x5ea, 0xa, 100), "UTCOMMA");
    assert_string_equal(opcode_of(0x223, 0, 70), "");
    assert_string_equal(opcode_of(0x000, 0, 90), "");
}

/* Instructions a warp in kernels of a reference run: by opcode, as their machine code has them, and by category, in
 * descending order, as ncu printed them without names. */
static const struct {
    const char *kernel;
    struct {
        const char *opcode;
        unsigned count;
    } opcodes[18];
    unsigned categories[8];
} runs[] = {
    {"stream_triad",
     {{"LDC", 5},
      {"IMAD", 4},
      {"FFMA", 4},
      {"ULDC", 2},
      {"EXIT", 2},
      {"LDG", 2},
      {"S2R", 1},
      {"S2UR", 1},
      {"ISETP", 1},
      {"STG", 1}},
     {8, 5, 4, 3, 2, 1}},
    {"fma_bound",
     {{"FFMA", 16384},
      {"ISETP", 263},
      {"BRA", 263},
      {"IADD3", 258},
      {"HFMA2", 256},
      {"FADD", 6},
      {"LDC", 3},
      {"ULDC", 2},
      {"S2R", 2},
      {"PLOP3", 2},
      {"IMAD", 2},
      {"LOP3", 1},
      {"STG", 1},
      {"EXIT", 1},
      {"I2FP", 1}},
     {16646, 524, 264, 4, 2, 2, 2, 1}},
    {"fp64_bound",
     {{"DFMA", 8192},
      {"IMAD", 515},
      {"ISETP", 263},
      {"BRA", 263},
      {"VIADD", 257},
      {"LDC", 3},
      {"ULDC", 2},
      {"S2R", 2},
      {"DADD", 2},
      {"PLOP3", 2},
      {"LOP3", 1},
      {"I2F", 1},
      {"STG", 1},
      {"EXIT", 1}},
     {8194, 1036, 264, 4, 2, 2, 2, 1}},
    {"transpose_conflict",
     {{"IMAD", 8},
      {"LEA", 6},
      {"S2R", 4},
      {"ULDC", 4},
      {"SHF", 2},
      {"LDC", 1},
      {"LDG", 1},
      {"S2UR", 1},
      {"UMOV", 1},
      {"ULEA", 1},
      {"STS", 1},
      {"BAR", 1},
      {"LDS", 1},
      {"STG", 1},
      {"EXIT", 1}},
     {16, 7, 5, 5, 1}},
};

struct sum {
    const char *category;
    unsigned count;
};

static int descending(const void *a, const void *b)
{
    unsigned m = ((const struct sum *)a)->count, n = ((const struct sum *)b)->count;
    return m < n ? 1 : -(m > n);
}

static void test_categories(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        struct sum sums[18] = {{0}};
        for (size_t k = 0; runs[i].opcodes[k].opcode; k++) {
            const char *category = kp_sass_category(runs[i].opcodes[k].opcode);
            size_t s = 0;
            while (sums[s].category && strcmp(sums[s].category, category) != 0)
                s++;
            sums[s].category = category;
            sums[s].count += runs[i].opcodes[k].count;
        }
        qsort(sums, sizeof(sums) / sizeof(*sums), sizeof(*sums), descending);
        for (size_t k = 0; k < 8; k++) {
            if (sums[k].count != runs[i].categories[k])
                fail_msg("%s: %s has %u, not %u", runs[i].kernel, sums[k].category, sums[k].count,
                         runs[i].categories[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_opcodes),
        cmocka_unit_test(test_shared_codes),
        cmocka_unit_test(test_categories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
