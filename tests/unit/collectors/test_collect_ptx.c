/* The PTX of cubins: recorded ones, with the text that they have or one made here, and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/code/cubin.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

struct image {
    uint8_t *bytes;
    size_t size;
};

/* Room for a text behind an image. */
enum { ROOM = 4 << 20 };

static struct image read_image(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "tests/data/%s.cubin", name);
    FILE *f = fopen(kp_test_source(path), "re");
    struct image image = {calloc(1, ROOM), 0};
    assert_non_null(f);
    assert_non_null(image.bytes);
    image.size = fread(image.bytes, 1, ROOM, f);
    fclose(f);
    return image;
}

/* ---- as text ---- */

static void read_code(const struct kp_cubin *c, const char *name, struct kp_code *code)
{
    assert_int_equal(kp_cubin_code(c, name, code), 0);
    assert_int_equal(kp_cubin_ptx(c, code), 0);
    for (size_t i = 1; i < code->n_ptx; i++)
        assert_true(code->ptx[i].line > code->ptx[i - 1].line);
}

static int print_function(const struct kp_cubin_function *f, void *arg)
{
    struct kp_test_printing *p = arg;
    struct kp_code code;
    read_code(p->cubin, f->name, &code);
    fprintf(p->to, "%s:\n", f->name);
    for (size_t i = 0; i < code.n_instructions; i++) {
        const struct kp_instruction *at = &code.instructions[i];
        const char *text = kp_code_ptx(&code, at->ptx);
        fprintf(p->to, "  %04x %-8s %u %s\n", at->offset, at->opcode, at->ptx, text ? text : "(none)");
    }
    for (size_t i = 0; i < code.n_ptx; i++)
        fprintf(p->to, "  %3u| %s\n", code.ptx[i].line, code.ptx[i].text);
    kp_code_free(&code);
    return 0;
}

/* All PTX of an image; free it. NULL when it cannot be opened. */
static char *print_image(const struct image *image)
{
    return kp_test_print_image(image->bytes, image->size, print_function);
}

/* Images of tests/data/inline.cu, in the older layout too, and of parts.cu, which is linked of two modules. */
static void test_recorded(void **state)
{
    static const char *const recorded[] = {"inline.sm80-cuda11", "inline.sm90-cuda13", "parts.sm90-cuda13"};
    (void)state;
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        struct image image = read_image(recorded[i]);
        char *text = print_image(&image), golden[64];
        assert_non_null(text);
        snprintf(golden, sizeof golden, "tests/golden/ptx.%s.txt", recorded[i]);
        kp_test_golden(text, golden);
        free(text);
        free(image.bytes);
    }
}

/* Without -lineinfo there is neither text nor table. */
static void test_none(void **state)
{
    (void)state;
    struct image image = read_image("texts.sm90-cuda13");
    char *text = print_image(&image);
    assert_non_null(text);
    assert_null(strstr(text, "|"));
    free(text);
    free(image.bytes);
}

/* ---- other texts ---- */

/* Returns the PTX lines of `function` as "LINE LINE ..."; free it. */
static char *lines_with(const char *ptx, size_t size, const char *function)
{
    struct image image = read_image("inline.sm90-cuda13");
    struct kp_cubin *c;
    struct kp_code code;
    char *lines = NULL;
    size_t len;
    assert_true(image.size + size <= ROOM);
    kp_test_set_ptx(image.bytes, &image.size, ptx, size);
    assert_int_equal(kp_cubin_open(image.bytes, image.size, &c), 0);
    read_code(c, function, &code);
    FILE *f = open_memstream(&lines, &len);
    assert_non_null(f);
    for (size_t i = 0; i < code.n_ptx; i++)
        fprintf(f, "%s%u", i ? " " : "", code.ptx[i].line);
    fclose(f);
    kp_code_free(&code);
    kp_cubin_close(c);
    free(image.bytes);
    return lines;
}

/* A text of `n` lines, of which `at` are not empty; free it. */
struct at {
    unsigned line;
    const char *text;
};

static char *text_of(const struct at *at, unsigned n, size_t *size)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, size);
    assert_non_null(f);
    for (unsigned line = 1; line <= n; line++) {
        if (at->text && at->line == line)
            fputs(at++->text, f);
        fputc('\0', f);
    }
    fclose(f);
    assert_null(at->text); /* all were taken */
    return text;
}

/* Instructions of `nested` are of the lines 44 to 90. */
static void test_functions(void **state)
{
    static const struct {
        struct at at[16];
        const char *lines;
    } rows[] = {
        /* a declaration before it, data, and signs that are none */
        {{{3, ".extern .func f"},
          {4, "(.param .b64 a) ; // {"},
          {5, ".global .b8 d[2] = {1, 2};"},
          {30, "/* { .entry"},
          {31, "{ */"},
          {40, ".visible .entry nested("},
          {42, ") .pragma \"}{\"; // }"},
          {44, "{"},
          {46, ".pragma \"}{\";"},
          {50, "{ .reg .u32 t; }"},
          {89, " \t"},
          {90, "}"},
          {91, "ret;"}},
         "40 42 44 46 50 90"},
        /* a function that ptxas has inlined, and one between that it has not */
        {{{10, ".func g() {"},
          {44, "}"},
          {45, ".func(.reg .u32 r) h() {"},
          {46, "}"},
          {60, ".entry nested() {"},
          {95, "}"}},
         "10 44 60 95"},
        {{{40, ".entry nested() {"}, {60, "mov;"}}, ""},           /* without an end */
        {{{40, ".entrynested() {"}, {44, "}"}, {60, "}}}{"}}, ""}, /* no function */
        {{{40, "\"/* .entry n {"}, {60, "/ }"}}, ""},
        {{{0}}, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t size;
        char *text = text_of(rows[i].at, 100, &size), *lines = lines_with(text, size, "nested");
        if (strcmp(lines, rows[i].lines) != 0)
            fail_msg("row %zu: '%s'", i, lines);
        free(lines);
        free(text);
    }
}

/* The last line may lack its end. */
static void test_unended(void **state)
{
    (void)state;
    struct at at[] = {{40, ".entry nested() {"}, {90, "}"}, {0}};
    size_t size;
    char *text = text_of(at, 90, &size), *lines = lines_with(text, size - 1, "nested");
    assert_string_equal(lines, "40 90");
    free(lines);
    free(text);
}

/* No function is made of two parts: lines of a section other than the first instruction's are not taken. */
static void test_two_parts(void **state)
{
    static const uint8_t next_row[] = {3, 10, 2, 16, 1}, other_file[] = {4, 0};
    (void)state;
    struct image image = read_image("parts.sm90-cuda13");
    uint8_t *at = memmem(image.bytes, image.size, next_row, sizeof next_row);
    struct kp_cubin *c;
    struct kp_code code;
    assert_non_null(at);
    memcpy(at, other_file, sizeof other_file);
    assert_int_equal(kp_cubin_open(image.bytes, image.size, &c), 0);
    read_code(c, "doubled", &code);
    assert_int_equal(code.instructions[0].ptx, 23);
    for (size_t i = 1; i < code.n_instructions; i++)
        assert_int_equal(code.instructions[i].ptx, 0);
    kp_code_free(&code);
    kp_cubin_close(c);
    free(image.bytes);
}

/* Of what has more than 1 MiB there is no text; 1 MiB is kept. */
static void test_long(void **state)
{
    enum { MOST = 1 << 20 };
    static char line[MOST];
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        size_t size, len = MOST - (sizeof ".entry nested() {" + 50 + sizeof "}") - 1 + more;
        memset(line, '/', len);
        line[len] = '\0';
        struct at at[] = {{39, ".entry nested() {"}, {44, line}, {91, "}"}, {0}};
        char *text = text_of(at, 100, &size), *lines = lines_with(text, size, "nested");
        assert_string_equal(lines, more ? "" : "39 44 91");
        free(lines);
        free(text);
    }
}

/* ---- damage ---- */

/* Nothing but the places of bytes that are read is wrong, and a sanitiser would tell: any other byte, at each place of
 * table and text. */
static void test_damaged(void **state)
{
    static const char *const sections[] = {".nv_debug_line_sass", ".nv_debug_ptx_txt", ".rela.nv_debug_line_sass",
                                           ".shstrtab"};
    static const uint8_t values[] = {0, 0x7f, 0xff};
    (void)state;
    struct image image = read_image("inline.sm90-cuda13");
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        Elf64_Shdr section = *kp_test_elf_section(image.bytes, sections[s]);
        for (size_t i = 0; i < section.sh_size; i += s == 1 ? 7 : 1)
            for (size_t v = 0; v < sizeof values; v++) {
                uint8_t *at = &image.bytes[section.sh_offset + i], before = *at;
                *at = values[v];
                free(print_image(&image));
                *at = before;
            }
    }
    free(image.bytes);
}

static void test_missing(void **state)
{
    (void)state;
    struct image image = read_image("inline.sm90-cuda13");
    Elf64_Shdr *s = kp_test_elf_section(image.bytes, ".nv_debug_ptx_txt");
    struct kp_code none = {0};
    struct kp_cubin *c;
    s->sh_offset = image.size; /* beyond the end */
    char *text = print_image(&image);
    assert_non_null(text);
    assert_non_null(strstr(text, "44 (none)")); /* the lines are still known */
    assert_null(strstr(text, "|"));
    free(text);
    assert_int_equal(kp_cubin_open(image.bytes, image.size, &c), 0);
    assert_int_equal(kp_cubin_ptx(c, &none), 0);
    kp_cubin_close(c);
    free(image.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded), cmocka_unit_test(test_none),      cmocka_unit_test(test_functions),
        cmocka_unit_test(test_unended),  cmocka_unit_test(test_long),      cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_missing),  cmocka_unit_test(test_two_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
