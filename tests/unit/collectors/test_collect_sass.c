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
    return kp_disassembly_opcode(bytes + 1, sm);
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
        assert_string_not_equal(kp_disassembly_category(opcodes[i]), "");
    }
    assert_string_equal(kp_disassembly_category("FFM"), "");
    assert_string_equal(kp_disassembly_category(""), "");
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

static unsigned access_of(unsigned low, uint64_t high, uint32_t sm)
{
    uint64_t words[2] = {UINT64_MAX << 12 | low, UINT64_MAX << 32 | high};
    uint8_t bytes[sizeof(words) + 1];
    memcpy(bytes + 1, words, sizeof(words));
    return kp_disassembly_access_bits(bytes + 1, sm);
}

/* Bits that a thread accesses. Taken from disassembled kernels, too. */
static void test_accesses(void **state)
{
    static const struct {
        uint32_t sm;
        unsigned low;
        uint32_t high;
        unsigned bits;
    } rows[] = {
        {75, 0x981, 0x0c1ee500, 16},   /* LDG.E.U16.SYS */
        {75, 0x381, 0x001ee900, 32},   /* LDG.E.SYS */
        {75, 0x3a9, 0x001f410b, 32},   /* ATOMG.E.CAS.STRONG.GPU */
        {75, 0x986, 0x0c10e904, 32},   /* STG.E.SYS */
        {75, 0x388, 0x00004800, 32},   /* STS */
        {75, 0x83b, 0x00004200, 128},  /* LDSM.16.MT88.4 */
        {75, 0x83b, 0x00000100, 64},   /* LDSM.16.M88.2 */
        {75, 0x83b, 0x00000000, 32},   /* LDSM.16.M88 */
        {75, 0x984, 0x00001800, 32},   /* LDS.U */
        {75, 0x388, 0x00008a00, 64},   /* STS.64 */
        {75, 0x38c, 0x000040ff, 32},   /* ATOMS.ADD */
        {75, 0x984, 0x00009a00, 64},   /* LDS.U.64 */
        {75, 0x38d, 0x0180840e, 64},   /* ATOMS.CAST.SPIN.64 */
        {75, 0x38c, 0x040084ff, 64},   /* ATOMS.EXCH.64 */
        {75, 0x38d, 0x00004009, 32},   /* ATOMS.CAS */
        {75, 0x381, 0x001eeb00, 64},   /* LDG.E.64.SYS */
        {75, 0x38a, 0x041f41ff, 32},   /* ATOM.E.EXCH.STRONG.GPU */
        {75, 0x38b, 0x001f4111, 32},   /* ATOM.E.CAS.STRONG.GPU */
        {75, 0x38a, 0x041145ff, 64},   /* ATOM.E.EXCH.64.STRONG.GPU */
        {75, 0x980, 0x0010e900, 32},   /* LD.E.SYS */
        {75, 0x385, 0x0010eb0c, 64},   /* ST.E.64.SYS */
        {75, 0x38b, 0x0013450a, 64},   /* ATOM.E.CAS.64.STRONG.GPU */
        {75, 0x980, 0x0010eb00, 64},   /* LD.E.64.SYS */
        {75, 0x3a8, 0x041f41ff, 32},   /* ATOMG.E.EXCH.STRONG.GPU */
        {75, 0x3a8, 0x041f45ff, 64},   /* ATOMG.E.EXCH.64.STRONG.GPU */
        {75, 0x3a9, 0x001f4512, 64},   /* ATOMG.E.CAS.64.STRONG.GPU */
        {75, 0x385, 0x0010e905, 32},   /* ST.E.SYS */
        {75, 0x98e, 0x01914100, 32},   /* RED.E.INC.STRONG.GPU */
        {75, 0x386, 0x0010eb00, 64},   /* STG.E.64.SYS */
        {75, 0x98e, 0x03114500, 64},   /* RED.E.OR.64.STRONG.GPU */
        {75, 0x980, 0x00116100, 8},    /* LD.E.U8.STRONG.SYS */
        {75, 0x385, 0x0011610d, 8},    /* ST.E.U8.STRONG.SYS */
        {75, 0x385, 0x0011650f, 16},   /* ST.E.U16.STRONG.SYS */
        {75, 0x980, 0x00116500, 16},   /* LD.E.U16.STRONG.SYS */
        {75, 0x980, 0x00116d00, 128},  /* LD.E.128.STRONG.SYS */
        {75, 0x385, 0x00116d10, 128},  /* ST.E.128.STRONG.SYS */
        {75, 0x981, 0x0c1ee100, 8},    /* LDG.E.U8.SYS */
        {75, 0x388, 0x00000000, 8},    /* STS.U8 */
        {75, 0x388, 0x00000400, 16},   /* STS.U16 */
        {75, 0x984, 0x00001200, 8},    /* LDS.U.S8 */
        {75, 0x984, 0x00001600, 16},   /* LDS.U.S16 */
        {75, 0x381, 0x001eed00, 128},  /* LDG.E.128.SYS */
        {75, 0x388, 0x00000c00, 128},  /* STS.128 */
        {75, 0x984, 0x00001c00, 128},  /* LDS.U.128 */
        {75, 0x386, 0x0010ed00, 128},  /* STG.E.128.SYS */
        {75, 0x387, 0x00100a00, 64},   /* STL.64 */
        {75, 0x983, 0x00100a00, 64},   /* LDL.64 */
        {75, 0x386, 0x0010e500, 16},   /* STG.E.U16.SYS */
        {75, 0x387, 0x00100000, 8},    /* STL.U8 */
        {75, 0x983, 0x00100000, 8},    /* LDL.U8 */
        {75, 0x986, 0x0810e106, 8},    /* STG.E.U8.SYS */
        {90, 0x9a6, 0x0c10f586, 64},   /* REDG.E.ADD.F32x2.FTZ.RN.STRONG.GPU */
        {90, 0x9a6, 0x0c10f786, 128},  /* REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU */
        {90, 0x9a3, 0x081ef7c6, 128},  /* ATOMG.E.ADD.F32x4.FTZ.RN.STRONG.GPU */
        {90, 0x986, 0x0c101906, 32},   /* STG.E */
        {90, 0x9a3, 0x081ef5c6, 64},   /* ATOMG.E.ADD.F32x2.FTZ.RN.STRONG.GPU */
        {90, 0x9a6, 0x0c10e186, 32},   /* REDG.E.ADD.F16x2.RN.STRONG.GPU */
        {90, 0x981, 0x0c1e1b00, 64},   /* LDG.E.64 */
        {90, 0x9a8, 0x0c1ee9c6, 128},  /* ATOMG.E.EXCH.128.STRONG.GPU */
        {90, 0x3a9, 0x001ee90c, 128},  /* ATOMG.E.CAS.128.STRONG.GPU */
        {90, 0x986, 0x0c101b06, 64},   /* STG.E.64 */
        {90, 0x9a5, 0x0801597f, 32},   /* LDGMC.E.ADD.F32.RN.STRONG.SYS */
        {90, 0x9a5, 0x08015d7f, 128},  /* LDGMC.E.ADD.F32x4.RN.STRONG.SYS */
        {90, 0x9a5, 0x08015b7f, 64},   /* LDGMC.E.ADD.F32x2.RN.STRONG.SYS */
        {90, 0x98e, 0x0c114586, 64},   /* REDG.E.ADD.64.STRONG.SYS */
        {90, 0x988, 0x08000a04, 64},   /* STS.64 */
        {90, 0x981, 0x0c1e1900, 32},   /* LDG.E */
        {90, 0xdbd, 0x0c00083f, 32},   /* STAS */
        {90, 0xdbd, 0x0c000a3f, 64},   /* STAS.64 */
        {90, 0xdbd, 0x0c000c3f, 128},  /* STAS.128 */
        {90, 0xdbe, 0x0800013f, 32},   /* REDAS.ADD */
        {90, 0xdbe, 0x0800053f, 64},   /* REDAS.ADD.64 */
        {90, 0x984, 0x08000800, 32},   /* LDS */
        {90, 0x981, 0x0c1e1500, 16},   /* LDG.E.U16 */
        {90, 0x3a9, 0x001ee10d, 32},   /* ATOMG.E.CAS.STRONG.GPU */
        {90, 0x980, 0x0c101900, 32},   /* LD.E */
        {90, 0x38b, 0x001ee103, 32},   /* ATOM.E.CAS.STRONG.GPU */
        {90, 0xfae, 0x0b921844, 32},   /* LDGSTS.E */
        {90, 0xfae, 0x0b921a44, 64},   /* LDGSTS.E.64 */
        {90, 0xfae, 0x0b921c44, 128},  /* LDGSTS.E.128 */
        {90, 0x388, 0x00000800, 32},   /* STS */
        {90, 0x83b, 0x00004200, 128},  /* LDSM.16.MT88.4 */
        {90, 0x83b, 0x00000100, 64},   /* LDSM.16.M88.2 */
        {90, 0x83b, 0x00000000, 32},   /* LDSM.16.M88 */
        {90, 0x844, 0x00000000, 32},   /* STSM.16.M88 */
        {90, 0x844, 0x00000100, 64},   /* STSM.16.M88.2 */
        {90, 0x844, 0x00004200, 128},  /* STSM.16.MT88.4 */
        {90, 0x38c, 0x00000000, 32},   /* ATOMS.ADD */
        {90, 0x984, 0x00000a00, 64},   /* LDS.64 */
        {90, 0x38d, 0x0180040a, 64},   /* ATOMS.CAST.SPIN.64 */
        {90, 0x38c, 0x04000400, 64},   /* ATOMS.EXCH.64 */
        {90, 0x38d, 0x0000000d, 32},   /* ATOMS.CAS */
        {90, 0x98a, 0x0c1ee1c4, 32},   /* ATOM.E.EXCH.STRONG.GPU */
        {90, 0x98a, 0x0c10e5c4, 64},   /* ATOM.E.EXCH.64.STRONG.GPU */
        {90, 0x985, 0x0c101b04, 64},   /* ST.E.64 */
        {90, 0x38b, 0x0012e506, 64},   /* ATOM.E.CAS.64.STRONG.GPU */
        {90, 0x980, 0x00100b00, 64},   /* LD.E.64 */
        {90, 0x9a8, 0x0c1ee1c4, 32},   /* ATOMG.E.EXCH.STRONG.GPU */
        {90, 0x9a8, 0x0c1ee5c4, 64},   /* ATOMG.E.EXCH.64.STRONG.GPU */
        {90, 0x3a9, 0x001ee506, 64},   /* ATOMG.E.CAS.64.STRONG.GPU */
        {90, 0x9a2, 0x0810e1c6, 32},   /* ATOM.E.ADD.F16x2.RN.STRONG.GPU */
        {90, 0x985, 0x0c101906, 32},   /* ST.E */
        {90, 0x98e, 0x0d90e186, 32},   /* REDG.E.INC.STRONG.GPU */
        {90, 0x9a2, 0x0810ffc6, 64},   /* ATOM.E.ADD.F64.RN.STRONG.GPU */
        {90, 0x9a3, 0x081ee1c6, 32},   /* ATOMG.E.ADD.F16x2.RN.STRONG.GPU */
        {90, 0x980, 0x0c115100, 8},    /* LD.E.U8.STRONG.SYS */
        {90, 0x985, 0x0c115104, 8},    /* ST.E.U8.STRONG.SYS */
        {90, 0x985, 0x0c115504, 16},   /* ST.E.U16.STRONG.SYS */
        {90, 0x980, 0x0c115500, 16},   /* LD.E.U16.STRONG.SYS */
        {90, 0x980, 0x0c115d00, 128},  /* LD.E.128.STRONG.SYS */
        {90, 0x985, 0x0c115d04, 128},  /* ST.E.128.STRONG.SYS */
        {90, 0x981, 0x0c1e1100, 8},    /* LDG.E.U8 */
        {90, 0x988, 0x08000004, 8},    /* STS.U8 */
        {90, 0x388, 0x00000400, 16},   /* STS.U16 */
        {90, 0x984, 0x08000200, 8},    /* LDS.S8 */
        {90, 0x984, 0x00000600, 16},   /* LDS.S16 */
        {90, 0x981, 0x0c1e1d00, 128},  /* LDG.E.128 */
        {90, 0x387, 0x00100c00, 128},  /* STL.128 */
        {90, 0x983, 0x00100c00, 128},  /* LDL.128 */
        {90, 0x988, 0x08000c04, 128},  /* STS.128 */
        {90, 0x984, 0x08000c00, 128},  /* LDS.128 */
        {90, 0x986, 0x0c101d06, 128},  /* STG.E.128 */
        {90, 0x387, 0x00100a00, 64},   /* STL.64 */
        {90, 0x983, 0x00100a00, 64},   /* LDL.64 */
        {90, 0x986, 0x0c10150a, 16},   /* STG.E.U16 */
        {90, 0x387, 0x00100000, 8},    /* STL.U8 */
        {90, 0x983, 0x00100000, 8},    /* LDL.U8 */
        {90, 0x986, 0x0c101106, 8},    /* STG.E.U8 */
        {100, 0x97e, 0x08121908, 256}, /* LDG.E.ENL2.256 */
        {100, 0x97f, 0x0f121804, 256}, /* STG.E.ENL2.256 */
        {100, 0x986, 0x0c101904, 32},  /* STG.E */
        {100, 0x9a6, 0x0c12f506, 64},  /* REDG.E.ADD.F32x2.FTZ.RN.STRONG.GPU */
        {100, 0x9a6, 0x0c12f706, 128}, /* REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU */
        {100, 0x9a6, 0x0c12e106, 32},  /* REDG.E.ADD.F16x2.RN.STRONG.GPU */
        {100, 0x981, 0x0c1e1b00, 64},  /* LDG.E.64 */
        {100, 0x986, 0x0c101b06, 64},  /* STG.E.64 */
        {100, 0x98e, 0x0c134506, 64},  /* REDG.E.ADD.64.STRONG.SYS */
        {100, 0x981, 0x0c1e1900, 32},  /* LDG.E */
        {100, 0x981, 0x0c1e1500, 16},  /* LDG.E.U16 */
        {100, 0xfae, 0x0b9a1006, 32},  /* LDGSTS.E */
        {100, 0xfae, 0x0b9a1406, 64},  /* LDGSTS.E.64 */
        {100, 0xfae, 0x0b9a1806, 128}, /* LDGSTS.E.128 */
        {100, 0x83b, 0x00004200, 128}, /* LDSM.16.MT88.4 */
        {100, 0x83b, 0x00000100, 64},  /* LDSM.16.M88.2 */
        {100, 0x83b, 0x00000000, 32},  /* LDSM.16.M88 */
        {100, 0x98e, 0x0d92e106, 32},  /* REDG.E.INC.STRONG.GPU */
        {100, 0x981, 0x0c1e1100, 8},   /* LDG.E.U8 */
        {100, 0x981, 0x0c1e1d00, 128}, /* LDG.E.128 */
        {100, 0x986, 0x0c101d06, 128}, /* STG.E.128 */
        {100, 0x986, 0x0c101508, 16},  /* STG.E.U16 */
        {100, 0x986, 0x0c101106, 8},   /* STG.E.U8 */
        {75, 0x381, 0x0004ee00, 128},  /* LDG.U.128 */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (access_of(rows[i].low, rows[i].high, rows[i].sm) != rows[i].bits)
            fail_msg("%u: 0x%x 0x%x: %u bits", rows[i].sm, rows[i].low, rows[i].high,
                     access_of(rows[i].low, rows[i].high, rows[i].sm));
    assert_int_equal(access_of(0x223, 0x800, 90), 0);  /* FFMA */
    assert_int_equal(access_of(0x83b, 0x8000, 90), 0); /* LDSM.16.M816 */
    assert_int_equal(access_of(0x9a6, 0x1000, 90), 0); /* of no type */
    assert_int_equal(access_of(0xfae, 0x800, 75), 0);  /* LDGSTS came with 8.0 */
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
            const char *category = kp_disassembly_category(runs[i].opcodes[k].opcode);
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
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_opcodes),    cmocka_unit_test(test_shared_codes),
        cmocka_unit_test(test_accesses), cmocka_unit_test(test_categories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
