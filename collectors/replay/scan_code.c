#include "collectors/replay/scan_code.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    WORDS_A_UNIT = 4,
    WORDS = KP_SCAN_UNITS * WORDS_A_UNIT, /* of a part that a thread reads */
    WARPS = KP_SCAN_THREADS / 32,
    PAIR = 2, /* words that a product needs */
};

_Static_assert(KP_SCAN_WORDS == WORDS + PAIR * (KP_SCAN_LANES - 1), "each lane shifts the key by a pair of words");
_Static_assert(KP_SCAN_LANES == 4 && WARPS == 16, "the sums are added up for four lanes and 16 warps");

/* One block of threads takes one block of memory after the other:
 *   digest  sums of products, NH of UMAC (RFC 4418, section 5.2.2) with a Toeplitz key: two blocks that differ have
 *           the same digest once in 2^128 keys. Each thread reads the same part of the key for each block.
 *   uniform 1 if all units of 16 bytes are like the first one
 * Each warp adds its sums up, and the first warp those of all. It works from one half of the shared memory while the
 * others fill the other half, so that one barrier per block is enough. */
static const char scan_head[] =
    ".version 6.4\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry kprof_scan(.param .u64 blocks, .param .u32 count, .param .u64 keys, .param .u64 digests,\n"
    "                           .param .u64 values, .param .u64 before, .param .u64 found, .param .u64 n_found)\n"
    ".maxntid 512, 1, 1\n"
    ".minnctapersm 2\n"
    "{\n"
    ".shared .align 16 .b8 sums[1024];\n"
    ".reg .pred %p<16>;\n"
    ".reg .b32 %r<32>;\n"
    ".reg .b32 %k<22>;\n"
    ".reg .b32 %w<16>;\n"
    ".reg .b32 %f<4>;\n"
    ".reg .b32 %t<2>;\n"
    ".reg .b64 %d<40>;\n"
    ".reg .b64 %a<4>;\n"
    ".reg .pred %u<4>;\n"
    "ld.param.u64 %d1, [blocks];\n"
    "ld.param.u32 %r1, [count];\n"
    "ld.param.u64 %d2, [keys];\n"
    "ld.param.u64 %d3, [digests];\n"
    "ld.param.u64 %d4, [values];\n"
    "ld.param.u64 %d5, [before];\n"
    "ld.param.u64 %d6, [found];\n"
    "ld.param.u64 %d7, [n_found];\n"
    "mov.u32 %r2, %tid.x;\n"
    "mov.u32 %r3, %ctaid.x;\n"
    "mov.u32 %r4, %nctaid.x;\n"
    "and.b32 %r5, %r2, 31;\n" /* lane of the warp */
    "shr.u32 %r6, %r2, 5;\n"  /* warp */
    "mov.u32 %r7, 0;\n"       /* half of the shared memory */
    "mov.u32 %r8, sums;\n"
    "shl.b32 %r9, %r2, 4;\n" /* offset of the first unit */
    "and.b32 %r10, %r5, 16;\n"
    "setp.ne.u32 %p1, %r10, 0;\n" /* keeps the third and fourth sum */
    "and.b32 %r10, %r5, 8;\n"
    "setp.ne.u32 %p2, %r10, 0;\n" /* keeps the second of two sums */
    "and.b32 %r10, %r5, 7;\n"
    "setp.eq.u32 %p3, %r10, 0;\n"  /* holds a sum of the warp */
    "shr.u32 %r11, %r5, 3;\n"      /* which one */
    "setp.eq.u32 %p4, %r6, 0;\n"   /* first warp */
    "setp.lt.u32 %p11, %r5, 16;\n" /* adds up what a warp has left */
    "mul.wide.u32 %d8, %r2, 4;\n"
    "add.u64 %d2, %d2, %d8;\n";

static const char scan_block[] = "NEXT:\n"
                                 "setp.ge.u32 %p5, %r3, %r1;\n"
                                 "@%p5 bra END;\n"
                                 "mul.wide.u32 %d9, %r3, 16;\n"
                                 "add.u64 %d9, %d1, %d9;\n"
                                 "ld.global.u64 %d10, [%d9];\n"
                                 "ld.global.u32 %r12, [%d9+8];\n"
                                 "ld.global.v4.u32 {%f0, %f1, %f2, %f3}, [%d10];\n"
                                 "cvt.u64.u32 %d11, %r9;\n"
                                 "add.u64 %d11, %d10, %d11;\n"
                                 "mov.u32 %r13, 0;\n";

/* Adds what the lanes have in %a0 to %a3 to %a0: afterwards lane 8 * n of a warp holds the nth sum. */
static const char add_up[] = "selp.b64 %d12, %a2, %a0, %p1;\n"
                             "selp.b64 %d13, %a0, %a2, %p1;\n"
                             "selp.b64 %d14, %a3, %a1, %p1;\n"
                             "selp.b64 %d15, %a1, %a3, %p1;\n"
                             "mov.b64 {%r14, %r15}, %d13;\n"
                             "shfl.sync.bfly.b32 %r14, %r14, 16, 31, 0xffffffff;\n"
                             "shfl.sync.bfly.b32 %r15, %r15, 16, 31, 0xffffffff;\n"
                             "mov.b64 %d13, {%r14, %r15};\n"
                             "add.u64 %d12, %d12, %d13;\n"
                             "mov.b64 {%r14, %r15}, %d15;\n"
                             "shfl.sync.bfly.b32 %r14, %r14, 16, 31, 0xffffffff;\n"
                             "shfl.sync.bfly.b32 %r15, %r15, 16, 31, 0xffffffff;\n"
                             "mov.b64 %d15, {%r14, %r15};\n"
                             "add.u64 %d14, %d14, %d15;\n"
                             "selp.b64 %a0, %d14, %d12, %p2;\n"
                             "selp.b64 %d13, %d12, %d14, %p2;\n"
                             "mov.b64 {%r14, %r15}, %d13;\n"
                             "shfl.sync.bfly.b32 %r14, %r14, 8, 31, 0xffffffff;\n"
                             "shfl.sync.bfly.b32 %r15, %r15, 8, 31, 0xffffffff;\n"
                             "mov.b64 %d13, {%r14, %r15};\n"
                             "add.u64 %a0, %a0, %d13;\n";

/* Afterwards each lane holds the sum of its group of eight. */
static void print_group_sum(FILE *out)
{
    for (unsigned step = 4; step; step /= 2)
        fprintf(out,
                "mov.b64 {%%r14, %%r15}, %%a0;\n"
                "shfl.sync.bfly.b32 %%r14, %%r14, %u, 31, 0xffffffff;\n"
                "shfl.sync.bfly.b32 %%r15, %%r15, %u, 31, 0xffffffff;\n"
                "mov.b64 %%d13, {%%r14, %%r15};\n"
                "add.u64 %%a0, %%a0, %%d13;\n",
                step, step);
}

static const char share_sums[] = "shl.b32 %r16, %r7, 9;\n"
                                 "add.u32 %r16, %r8, %r16;\n"
                                 "shl.b32 %r17, %r6, 5;\n"
                                 "add.u32 %r17, %r16, %r17;\n"
                                 "shl.b32 %r18, %r11, 3;\n"
                                 "add.u32 %r17, %r17, %r18;\n"
                                 "@%p3 st.shared.u64 [%r17], %a0;\n"
                                 "setp.eq.u32 %p6, %r13, 0;\n"
                                 "bar.red.and.pred %p7, 0, %p6;\n"
                                 "xor.b32 %r7, %r7, 1;\n"
                                 "@!%p4 bra SKIP;\n"
                                 "shl.b32 %r17, %r5, 5;\n"
                                 "add.u32 %r17, %r16, %r17;\n"
                                 "mov.u64 %a0, 0;\n"
                                 "mov.u64 %a1, 0;\n"
                                 "mov.u64 %a2, 0;\n"
                                 "mov.u64 %a3, 0;\n"
                                 "@%p11 ld.shared.v2.u64 {%a0, %a1}, [%r17];\n"
                                 "@%p11 ld.shared.v2.u64 {%a2, %a3}, [%r17+16];\n";

/* The first warp's end of a block. The block is uniform if all units equal its first 16 bytes, its value. */
static const char scan_end[] = "mul.wide.u32 %d16, %r3, 32;\n"
                               "mul.wide.u32 %d17, %r11, 8;\n"
                               "add.u64 %d17, %d16, %d17;\n"
                               "mov.pred %p8, 0;\n"
                               "@!%p3 bra COMPARED;\n"
                               "add.u64 %d18, %d3, %d17;\n"
                               "st.global.u64 [%d18], %a0;\n"
                               "add.u64 %d19, %d5, %d17;\n"
                               "ld.global.u64 %d20, [%d19];\n"
                               "setp.ne.u64 %p8, %d20, %a0;\n"
                               "COMPARED:\n"
                               "vote.sync.any.pred %p9, %p8, 0xffffffff;\n"
                               "setp.ne.u32 %p10, %r5, 0;\n"
                               "@%p10 bra SKIP;\n"
                               "mul.wide.u32 %d21, %r3, 16;\n"
                               "add.u64 %d21, %d4, %d21;\n"
                               "st.global.v4.u32 [%d21], {%f0, %f1, %f2, %f3};\n"
                               "@!%p9 bra SKIP;\n"
                               "atom.global.add.u32 %r19, [%d7], 1;\n"
                               "mul.wide.u32 %d22, %r19, 4;\n"
                               "add.u64 %d22, %d6, %d22;\n"
                               "selp.u32 %r20, 0x80000000, 0, %p7;\n"
                               "or.b32 %r20, %r20, %r3;\n"
                               "st.global.u32 [%d22], %r20;\n"
                               "SKIP:\n"
                               "add.u32 %r3, %r3, %r4;\n"
                               "bra NEXT;\n"
                               "END:\n"
                               "ret;\n"
                               "}\n";

/* Each block of threads makes one move of the list: to, from, bytes, and if all units come from the first one. */
static const char move_code[] = ".visible .entry kprof_move(.param .u64 moves)\n"
                                "{\n"
                                ".reg .pred %p<4>;\n"
                                ".reg .b32 %r<16>;\n"
                                ".reg .b64 %d<16>;\n"
                                "ld.param.u64 %d1, [moves];\n"
                                "mov.u32 %r1, %ctaid.x;\n"
                                "mul.wide.u32 %d2, %r1, 24;\n"
                                "add.u64 %d1, %d1, %d2;\n"
                                "ld.global.u64 %d3, [%d1];\n"
                                "ld.global.u64 %d4, [%d1+8];\n"
                                "ld.global.u32 %r2, [%d1+16];\n"
                                "ld.global.u32 %r3, [%d1+20];\n"
                                "mov.u32 %r4, %tid.x;\n"
                                "shl.b32 %r4, %r4, 4;\n"
                                "mov.u32 %r5, %ntid.x;\n"
                                "shl.b32 %r5, %r5, 4;\n"
                                "setp.ne.u32 %p1, %r3, 0;\n"
                                "NEXT:\n"
                                "setp.ge.u32 %p2, %r4, %r2;\n"
                                "@%p2 bra END;\n"
                                "cvt.u64.u32 %d5, %r4;\n"
                                "add.u64 %d6, %d3, %d5;\n"
                                "selp.b64 %d7, 0, %d5, %p1;\n"
                                "add.u64 %d7, %d4, %d7;\n"
                                "ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%d7];\n"
                                "st.global.v4.u32 [%d6], {%r6, %r7, %r8, %r9};\n"
                                "add.u32 %r4, %r4, %r5;\n"
                                "bra NEXT;\n"
                                "END:\n"
                                "ret;\n"
                                "}\n";

/* The key of a thread for a part; its words follow each other thread by thread. */
static void print_keys(FILE *out, unsigned part)
{
    for (unsigned i = 0; i < KP_SCAN_WORDS; i++)
        fprintf(out, "ld.global.ca.u32 %%k%u, [%%d2+%u];\n", i, (part * KP_SCAN_WORDS + i) * KP_SCAN_THREADS * 4);
}

/* Reads the units of a part. Beyond the block's end they are zeros, which do not count for uniformity. */
static void print_reads(FILE *out, unsigned part)
{
    for (unsigned u = 0; u < KP_SCAN_UNITS; u++) {
        unsigned w = WORDS_A_UNIT * u, at = (part * KP_SCAN_UNITS + u) * KP_SCAN_THREADS * 16;
        fprintf(out, "add.u32 %%r21, %%r9, %u;\nsetp.lt.u32 %%u%u, %%r21, %%r12;\n", at, u);
        for (unsigned i = 0; i < WORDS_A_UNIT; i++)
            fprintf(out, "mov.u32 %%w%u, 0;\n", w + i);
        fprintf(out, "@%%u%u ld.global.cs.v4.u32 {%%w%u, %%w%u, %%w%u, %%w%u}, [%%d11+%u];\n", u, w, w + 1, w + 2,
                w + 3, at);
    }
    for (unsigned u = 0; u < KP_SCAN_UNITS; u++)
        for (unsigned i = 0; i < WORDS_A_UNIT; i++)
            fprintf(out, "xor.b32 %%t0, %%w%u, %%f%u;\n@%%u%u or.b32 %%r13, %%r13, %%t0;\n", WORDS_A_UNIT * u + i, i,
                    u);
}

static void print_products(FILE *out)
{
    for (unsigned w = 0; w < WORDS; w += PAIR)
        for (unsigned lane = 0; lane < KP_SCAN_LANES; lane++)
            fprintf(out,
                    "add.u32 %%t0, %%w%u, %%k%u;\n"
                    "add.u32 %%t1, %%w%u, %%k%u;\n"
                    "mad.wide.u32 %%a%u, %%t0, %%t1, %%a%u;\n",
                    w, w + PAIR * lane, w + 1, w + 1 + PAIR * lane, lane, lane);
}

/* Adds the products of a block to %a0 to %a3. */
static void print_sums(FILE *out)
{
    for (unsigned lane = 0; lane < KP_SCAN_LANES; lane++)
        fprintf(out, "mov.u64 %%a%u, 0;\n", lane);
    for (unsigned part = 0; part < KP_SCAN_PARTS; part++) {
        print_reads(out, part);
        print_keys(out, part);
        print_products(out);
    }
}

char *kp_scan_code(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fputs(scan_head, out);
    fputs(scan_block, out);
    print_sums(out);
    fputs(add_up, out);
    print_group_sum(out);
    fputs(share_sums, out);
    fputs(add_up, out);
    print_group_sum(out);
    fputs(scan_end, out);
    fputs(move_code, out);
    if (!fclose(out))
        return text;
    free(text);
    return NULL;
}
