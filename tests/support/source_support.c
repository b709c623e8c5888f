#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/source_support.h"

#define STALL "smsp__pcsamp_warps_issue_stalled_"

/* An instruction, what it did and where it comes from: index + 1 of the location. */
struct row {
    const char *opcode, *text;
    uint32_t location;
    uint64_t executed, threads, threads_on, divergent, sectors, sectors_ideal, waves, waves_ideal, long_scoreboard,
        other_samples; /* wait; of shared memory mio_throttle */
};

/* transpose_naive: rows of a matrix are read, columns are written; index2d is inlined twice. */
static const struct row transpose[] = {
    {"LDC", "LDC R1, c[0x0][0x28]", 1, 4096, 131072, 131072, 0, 0, 0, 0, 0, 0, 12},
    {"S2R", "S2R R0, SR_CTAID.X", 2, 4096, 131072, 131072, 0, 0, 0, 0, 0, 0, 7},
    {"IMAD", "IMAD R0, R0, UR4, R3", 2, 4096, 131072, 131072, 0, 0, 0, 0, 0, 3, 9},
    {"ISETP", "ISETP.GE.AND P0, PT, R0, UR5, PT", 3, 4096, 131072, 131072, 0, 0, 0, 0, 0, 0, 4},
    {"EXIT", "@P0 EXIT", 3, 4096, 131072, 0, 128, 0, 0, 0, 0, 0, 2},
    {"IMAD", "IMAD R5, R7, UR5, R0", 5, 4096, 131072, 131072, 0, 0, 0, 0, 0, 0, 11},
    {"LDG", "LDG.E.CONSTANT R9, desc[UR6][R4.64]", 4, 4096, 131072, 131072, 0, 16384, 16384, 0, 0, 0, 21},
    {"IMAD", "IMAD R5, R0, UR8, R7", 6, 4096, 131072, 131072, 0, 0, 0, 0, 0, 0, 14},
    {"STG", "STG.E desc[UR6][R4.64], R9", 4, 4096, 131072, 131072, 0, 131072, 16384, 0, 0, 1913, 5},
    {"EXIT", "EXIT", 7, 4096, 131072, 131072, 0, 0, 0, 0, 0, 0, 31},
    {"FADD", "FADD R2, R2, 1", 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, /* never executed */
    {"BRA", "BRA 0xb0", 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"NOP", "NOP", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"NOP", "NOP", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
};

/* file, line, parent, function */
static const struct kp_location transpose_places[] = {
    {0, 4, 0, ""},
    {0, 6, 0, ""},
    {0, 8, 0, ""},
    {0, 9, 0, ""},
    {1, 3, 4, "_Z7index2diii"},
    {1, 3, 9, "_Z7index2diii"},
    {0, 11, 0, ""},
    {0, 2, 0, ""},
    {0, 10, 0, ""},
};

const char kp_test_transpose_text[] = "#include \"index.h\"\n"
                                      "__device__ float never(float x) { return x + 1; }\n"
                                      "\n"
                                      "__global__ void transpose_naive(const float *in, float *out, int n)\n"
                                      "{\n"
                                      "\tint x = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                      "\tint y = blockIdx.y;\n"
                                      "    if (x >= n)\n"
                                      "    \tout[index2d(x, y, n)] = in[index2d(y, x, n)]; /* r\xc3\xbc"
                                      "ckw\xc3\xa4rts: \xe2\x86\x90 */\n"
                                      "    return;\n"
                                      "}\n";

static const struct row sum[] = {
    {"LDS", "LDS.128 R4, [R2+UR4+0x10]", 0, 2048, 65536, 60000, 0, 0, 0, 65536, 8192, 0, 903},
    {"FADD", "FADD R5, R4, R5", 0, 2048, 65536, 60000, 0, 0, 0, 0, 0, 0, 51},
    {"FMUL", "FMUL.FTZ R5, R4, R5", 0, 2048, 65536, 60000, 0, 0, 0, 0, 0, 0, 12},
    {"FFMA", "FFMA R5, R4, R5, R6", 0, 6144, 196608, 180000, 0, 0, 0, 0, 0, 0, 33},
    {"CALL", "CALL.REL.NOINC 0x0", 0, 2048, 65536, 65536, 0, 0, 0, 0, 0, 0, 8},
    {"HGMMA", "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8].tnspA.tnspB, R24, gsb0, !UPT, UR12, R200, R204, R208", 0, 64,
     2048, 2048, 0, 0, 0, 0, 0, 0, 0},
};

static const struct row sum_part[] = {
    {"LDL", "LDL.LU R3, [R1]", 0, 2048, 65536, 65536, 0, 0, 0, 0, 0, 77, 0},
    {"RET", "RET.REL.NODEC R20 0x0", 0, 2048, 65536, 65536, 0, 0, 0, 0, 0, 0, 6},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Lines of PTX, and the line of each instruction of transpose_naive. */
static const struct kp_ptx_line transpose_ptx[] = {
    {12, ".visible .entry _Z15transpose_naivePKfPfi("},
    {13, ".param .u64 _Z15transpose_naivePKfPfi_param_0,"},
    {16, "{"},
    {24, "mov.u32 \t%r1, %ctaid.x;"},
    {25, "mad.lo.s32 \t%r4, %r1, %r2, %r3;"},
    {27, "setp.ge.s32 \t%p1, %r4, %r5;"},
    {28, "@%p1 bra \t$L__BB0_2;"},
    {31, "mul.wide.s32 \t%rd5, %r6, 4;"},
    {32, "ld.global.nc.f32 \t%f1, [%rd6];"},
    {35, "st.global.f32 \t[%rd8], %f1; // a comment which makes it longer than what is left of a line of the page"},
    {38, "ret;"},
    {39, "}"},
};
static const uint32_t transpose_ptx_of[] = {16, 24, 25, 27, 28, 31, 32, 31, 35, 38, 40, 40, 0, 0};

/* Accesses are of 32 bits unless their text says otherwise. */
static uint16_t access_bits(const struct row *row)
{
    bool accesses = !strncmp(row->opcode, "LD", 2) || !strncmp(row->opcode, "ST", 2);
    return !accesses || !strcmp(row->opcode, "LDC") ? 0 : strstr(row->text, ".128 ") ? 128 : 32;
}

static void fill_code(struct kp_code *c, uint64_t id, const char *function, const struct row *rows, size_t n)
{
    *c = (struct kp_code){.id = id, .function = kp_strdup(function), .n_instructions = n};
    c->instructions = calloc(n, sizeof *c->instructions);
    assert_true(c->function && c->instructions);
    for (size_t i = 0; i < n; i++)
        c->instructions[i] = (struct kp_instruction){.offset = (uint32_t)(16 * i),
                                                     .location = rows[i].location,
                                                     .opcode = kp_strdup(rows[i].opcode),
                                                     .text = kp_strdup(rows[i].text),
                                                     .access_bits = access_bits(&rows[i])};
}

static void fill_places(struct kp_code *c)
{
    c->n_locations = COUNT(transpose_places);
    c->locations = calloc(c->n_locations, sizeof *c->locations);
    c->n_files = 2;
    c->files = calloc(c->n_files, sizeof *c->files);
    assert_true(c->locations && c->files);
    for (size_t i = 0; i < c->n_locations; i++) {
        c->locations[i] = transpose_places[i];
        c->locations[i].function = kp_strdup(transpose_places[i].function);
    }
    for (size_t i = 0; i < COUNT(transpose_ptx); i++)
        assert_int_equal(kp_code_add_ptx(c, transpose_ptx[i].line, transpose_ptx[i].text, SIZE_MAX), 0);
    for (size_t i = 0; i < c->n_instructions; i++)
        c->instructions[i].ptx = transpose_ptx_of[i];
    c->files[0].path = kp_strdup("/home/user/src/transpose.cu");
    c->files[0].text = kp_strdup(kp_test_transpose_text);
    c->files[1].path = kp_strdup("/home/user/no/such/folder/index.h");
}

static int find_code(void *arg, uint64_t id, struct kp_code *out)
{
    (void)arg;
    *out = (struct kp_code){0};
    switch (id) {
    case KP_TEST_TRANSPOSE:
        fill_code(out, id, "_Z15transpose_naivePKfPfi", transpose, COUNT(transpose));
        fill_places(out);
        return 0;
    case KP_TEST_SUM:
        fill_code(out, id, "_Z3sumPKfPf", sum, COUNT(sum));
        return 0;
    case KP_TEST_SUM_PART:
        fill_code(out, id, "_Z8sum_partf", sum_part, COUNT(sum_part));
        return 0;
    default:
        return -ENOENT;
    }
}

struct kp_lookup kp_test_code_lookup(void)
{
    return (struct kp_lookup){.code = find_code};
}

struct kp_code_counts kp_test_counts(uint64_t code, size_t n)
{
    struct kp_code_counts s = {.code = code, .n_offsets = n, .offsets = calloc(n, sizeof *s.offsets)};
    assert_non_null(s.offsets);
    for (size_t i = 0; i < n; i++)
        s.offsets[i] = (uint32_t)(16 * i);
    return s;
}

uint64_t *kp_test_metric(struct kp_code_counts *s, const char *name)
{
    s->metrics = realloc(s->metrics, (s->n_metrics + 1) * sizeof *s->metrics);
    assert_non_null(s->metrics);
    s->metrics[s->n_metrics] =
        (struct kp_code_metric){.name = kp_strdup(name), .values = calloc(s->n_offsets, sizeof(uint64_t))};
    assert_true(s->metrics[s->n_metrics].name && s->metrics[s->n_metrics].values);
    return s->metrics[s->n_metrics++].values;
}

/* Leaves out metrics that are 0 everywhere, as collecting does. */
static void add_metric(struct kp_code_counts *s, const char *name, const struct row *rows, size_t field, uint64_t scale)
{
    bool any = false;
    for (size_t i = 0; i < s->n_offsets; i++)
        any |= *(const uint64_t *)((const char *)&rows[i] + field) && scale;
    uint64_t *values = any ? kp_test_metric(s, name) : NULL;
    for (size_t i = 0; any && i < s->n_offsets; i++)
        values[i] = scale * *(const uint64_t *)((const char *)&rows[i] + field);
}

static void add(struct kp_result *r, uint64_t code, const struct row *rows, size_t n, const char *other, uint64_t scale)
{
    struct kp_code_counts s = kp_test_counts(code, n);
    uint64_t counted = scale ? scale : 1;
    add_metric(&s, "inst_executed", rows, offsetof(struct row, executed), counted);
    add_metric(&s, "thread_inst_executed", rows, offsetof(struct row, threads), counted);
    add_metric(&s, "thread_inst_executed_true", rows, offsetof(struct row, threads_on), counted);
    add_metric(&s, "smsp__branch_targets_threads_divergent", rows, offsetof(struct row, divergent), counted);
    add_metric(&s, "memory_l2_theoretical_sectors_global", rows, offsetof(struct row, sectors), counted);
    add_metric(&s, "memory_l2_theoretical_sectors_global_ideal", rows, offsetof(struct row, sectors_ideal), counted);
    add_metric(&s, "memory_l1_wavefronts_shared", rows, offsetof(struct row, waves), counted);
    add_metric(&s, "memory_l1_wavefronts_shared_ideal", rows, offsetof(struct row, waves_ideal), counted);
    add_metric(&s, STALL "long_scoreboard", rows, offsetof(struct row, long_scoreboard), scale);
    add_metric(&s, STALL "long_scoreboard_not_issued", rows, offsetof(struct row, long_scoreboard), scale);
    add_metric(&s, other, rows, offsetof(struct row, other_samples), scale);
    assert_int_equal(kp_result_add_counts(r, &s), 0);
}

void kp_test_add_transpose(struct kp_result *r, uint64_t scale)
{
    add(r, KP_TEST_TRANSPOSE, transpose, 10, STALL "wait", scale);
}

void kp_test_add_sum(struct kp_result *r)
{
    add(r, KP_TEST_SUM, sum, COUNT(sum), STALL "mio_throttle", 1);
    add(r, KP_TEST_SUM_PART, sum_part, COUNT(sum_part), STALL "wait", 1);
}

void kp_test_add_without_code(struct kp_result *r)
{
    static const struct row rows[] = {
        {"", "", 0, 5, 160, 160, 0, 0, 0, 0, 0, 2, 0},
        {"", "", 0, 5, 160, 160, 0, 0, 0, 0, 0, 0, 1},
    };
    add(r, KP_TEST_NO_CODE, rows, COUNT(rows), STALL "wait", 1);
}
