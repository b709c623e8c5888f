/* What is read of cubins: recorded ones, against what nvdisasm says where it is installed; made ones with what
 * compilers seldom write; damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collectors/code/cubin.h"
#include "collectors/code/disassemble.h"
#include "collectors/code/sass.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

/* Images of tests/data/inline.cu: of the older layout, and of that of CUDA 13; and of calls.cu. */
static const char *const recorded[] = {"inline.sm80-cuda11", "inline.sm90-cuda13", "calls.sm90-cuda13"};
/* Damaged, too: relocations that name variables. */
#define OBJECTS    "tests/data/objects.sm90-cuda13.cubin"
#define N_RECORDED (sizeof(recorded) / sizeof(*recorded))

struct image {
    uint8_t *bytes;
    size_t size;
};

static struct image read_image(const char *path)
{
    FILE *f = fopen(path, "re");
    struct image image = {malloc(1 << 24), 0};
    if (!f)
        fail_msg("cannot read %s", path);
    assert_non_null(image.bytes);
    image.size = fread(image.bytes, 1, 1 << 24, f);
    fclose(f);
    return image;
}

static struct image recorded_image(size_t i)
{
    char name[64];
    snprintf(name, sizeof(name), "tests/data/%s.cubin", recorded[i]);
    return read_image(kp_test_source(name));
}

/* ---- as text ---- */

/* "FILE:LINE", and with "< " what it was inlined at. */
static void print_location(FILE *to, const struct kp_code *code, uint32_t location)
{
    for (const char *between = " "; location; between = " < ") {
        const struct kp_location *l = &code->locations[location - 1];
        assert_in_range(l->file, 0, code->n_files - 1);
        fprintf(to, "%s%s:%u", between, code->files[l->file].path, l->line);
        if (*l->function)
            fprintf(to, " in %s", l->function);
        /* So a chain has an end. */
        assert_true(l->parent < location);
        location = l->parent;
    }
}

static void print_code(FILE *to, const struct kp_code *code)
{
    for (size_t i = 0; i < code->n_instructions; i++) {
        fprintf(to, "%04x %s", code->instructions[i].offset, code->instructions[i].opcode);
        if (code->instructions[i].spill)
            fputs(" (spill)", to);
        print_location(to, code, code->instructions[i].location);
        fputc('\n', to);
    }
}

static int print_function(const struct kp_cubin_function *f, void *arg)
{
    struct kp_test_printing *p = arg;
    struct kp_code code;
    const char *name;
    assert_int_equal(kp_cubin_function_at(p->cubin, f->symbol, &name), 0);
    assert_string_equal(name, f->name);
    struct kp_cubin_reach reach;
    int rc = kp_cubin_reach(p->cubin, f->symbol, &reach);
    assert_true(rc == 0 || rc == -E2BIG);
    fprintf(p->to, "%s: sm %u, %" PRIu64 " bytes, %u registers, %u barriers; reaches %u functions%s%s\n", f->name,
            f->sm, f->size, f->registers, f->barriers, reach.functions, reach.launches ? ", launches" : "",
            reach.spills ? ", spills" : "");
    assert_int_equal(kp_cubin_code(p->cubin, f->name, &code), 0);
    assert_string_equal(code.function, f->name);
    assert_int_equal(code.id, 0);
    assert_int_equal(code.crc, 0);
    print_code(p->to, &code);
    kp_code_free(&code);
    return 0;
}

/* All that is known of an image; free it. NULL when it cannot be opened. */
static char *print_image(const void *bytes, size_t size)
{
    return kp_test_print_image(bytes, size, print_function);
}

static void test_recorded(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_RECORDED; i++) {
        struct image image = recorded_image(i);
        char *text = print_image(image.bytes, image.size), golden[64];
        assert_non_null(text);
        snprintf(golden, sizeof(golden), "tests/golden/%s.txt", recorded[i]);
        kp_test_golden(text, golden);
        free(text);
        free(image.bytes);
    }
}

/* ---- images made here ---- */

enum { NAMES, STRINGS, SYMBOLS, TEXT, LINES, RELOCATIONS, LINE_STRINGS, INFO, N_SECTIONS };

struct made {
    struct made_section {
        uint8_t bytes[512];
        size_t size;
    } sections[N_SECTIONS];
    bool with_addend;
    uint8_t image[8192];
    size_t size;
};

static void put(struct made *m, int section, const void *bytes, size_t size)
{
    struct made_section *s = &m->sections[section];
    assert_true(s->size + size <= sizeof(s->bytes));
    memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
}

#define PUT(m, section, ...) put(m, section, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* A module of one function "f" of four instructions, without a line table. */
static void make(struct made *m, bool with_addend)
{
    static const uint8_t ffma[KP_SASS_SIZE] = {0x23, 0x72};
    Elf64_Sym none = {0}, f = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = TEXT + 1};
    memset(m, 0, sizeof(*m));
    m->with_addend = with_addend;
    f.st_size = 4 * sizeof(ffma);
    put(m, STRINGS, "\0f", 3);
    put(m, SYMBOLS, &none, sizeof(none));
    put(m, SYMBOLS, &f, sizeof(f));
    for (int i = 0; i < 4; i++)
        put(m, TEXT, ffma, sizeof(ffma));
}

/* Starts a unit with one folder and one file, without its instructions; end_unit gives it its length. */
static size_t begin_unit(struct made *m, uint16_t version, bool wide)
{
    static const char names[] = "/src\0\0a.cu\0\1\0\0"; /* and the terminator of the files */
    static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    size_t begin = m->sections[LINES].size;
    uint8_t header_size = (uint8_t)((version >= 4 ? 6 : 5) + sizeof(lengths) + sizeof(names));
    PUT(m, LINES, 0xff, 0xff, 0xff, 0xff);
    if (wide)
        PUT(m, LINES, 0, 0, 0, 0, 0, 0, 0, 0);
    PUT(m, LINES, (uint8_t)version, 0, header_size, 0, 0, 0);
    if (wide)
        PUT(m, LINES, 0, 0, 0, 0);
    PUT(m, LINES, 16); /* an advance is in instructions */
    if (version >= 4)
        PUT(m, LINES, 1);
    PUT(m, LINES, 1, 0xfb, 14, sizeof(lengths) + 1);
    put(m, LINES, lengths, sizeof(lengths));
    put(m, LINES, names, sizeof(names));
    return begin;
}

static void end_unit(struct made *m, size_t begin, bool wide)
{
    uint8_t *at = m->sections[LINES].bytes + begin + (wide ? 4 : 0);
    *at = (uint8_t)(m->sections[LINES].bytes + m->sections[LINES].size - at - (wide ? 8 : 4));
    if (!wide)
        memset(at + 1, 0, 3);
}

/* The start of a sequence at `address` of the function. */
static void begin_sequence(struct made *m, uint8_t address)
{
    Elf64_Rela r = {.r_info = ELF64_R_INFO(1, 2), .r_addend = address};
    PUT(m, LINES, 0, 9, 2);
    r.r_offset = m->sections[LINES].size;
    /* Where the relocation has an addend, that in place does not count. */
    PUT(m, LINES, m->with_addend ? 0x77 : address, 0, 0, 0, 0, 0, 0, 0);
    put(m, RELOCATIONS, &r, m->with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel));
}

static void finish(struct made *m)
{
    const char *const names[N_SECTIONS] = {".shstrtab",   ".strtab",
                                           ".symtab",     ".text.f",
                                           ".debug_line", m->with_addend ? ".rela.debug_line" : ".rel.debug_line",
                                           ".debug_str",  ".nv.info"};
    static const uint32_t types[N_SECTIONS] = {SHT_STRTAB,   SHT_STRTAB, SHT_SYMTAB,   SHT_PROGBITS,
                                               SHT_PROGBITS, SHT_RELA,   SHT_PROGBITS, 0x70000000};
    Elf64_Ehdr h = {.e_ident = ELFMAG, .e_machine = 190, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = N_SECTIONS + 1};
    Elf64_Shdr headers[N_SECTIONS + 1] = {{0}};
    size_t at = sizeof(h);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_ident[EI_DATA] = ELFDATA2LSB;
    h.e_ident[EI_ABIVERSION] = 8;
    h.e_flags = 90 << 8;
    h.e_shstrndx = NAMES + 1;
    for (int i = 0; i < N_SECTIONS; i++) {
        headers[i + 1].sh_name = (uint32_t)m->sections[NAMES].size;
        put(m, NAMES, names[i], strlen(names[i]) + 1);
    }
    for (int i = 0; i < N_SECTIONS; i++) {
        headers[i + 1].sh_type = types[i];
        headers[i + 1].sh_offset = at;
        headers[i + 1].sh_size = m->sections[i].size;
        headers[i + 1].sh_link = i == SYMBOLS ? STRINGS + 1 : 0;
        memcpy(m->image + at, m->sections[i].bytes, m->sections[i].size);
        at += m->sections[i].size;
    }
    h.e_shoff = at;
    memcpy(m->image, &h, sizeof(h));
    memcpy(m->image + at, headers, sizeof(headers));
    m->size = at + sizeof(headers);
    assert_true(m->size <= sizeof(m->image));
}

static void expect(struct made *m, const char *text)
{
    finish(m);
    char *got = print_image(m->image, m->size);
    assert_non_null(got);
    assert_string_equal(strchr(got, '\n') + 1, text);
    free(got);
}

enum { COPY = 1, ADVANCE_PC, ADVANCE_LINE, SET_FILE, CONST_ADD_PC = 8, FIXED_ADVANCE_PC, NEWER = 12 };
#define END                          0, 1, 1
#define SPECIAL(instructions, lines) (uint8_t)(13 + (instructions)*14 + (lines) + 5)

/* Each form of a unit's header, each kind of instruction, each kind of relocation. */
static void test_forms(void **state)
{
    (void)state;
    for (int form = 0; form < 8; form++) {
        struct made m;
        bool wide = form & 1, with_addend = form & 2;
        make(&m, with_addend);
        size_t unit = begin_unit(&m, form & 4 ? 4 : 2, wide);
        begin_sequence(&m, 16);
        PUT(&m, LINES, ADVANCE_LINE, 9, COPY, SPECIAL(1, 3), NEWER, 0x81, 0x01);
        /* On by 17 instructions, (255 - 13) / 14, and back. */
        PUT(&m, LINES, CONST_ADD_PC, ADVANCE_PC, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
        PUT(&m, LINES, ADVANCE_LINE, 0x7e, FIXED_ADVANCE_PC, 16, 0, SPECIAL(0, -5), ADVANCE_PC, 1, END);
        end_unit(&m, unit, wide);
        expect(&m, "0000 FFMA\n0010 FFMA /src/a.cu:10\n0020 FFMA /src/a.cu:13\n0030 FFMA /src/a.cu:6\n");
    }
}

/* Units of versions that are not known are passed over; those behind them are read. */
static void test_unknown_version(void **state)
{
    (void)state;
    struct made m;
    make(&m, true);
    size_t unit = begin_unit(&m, 5, false);
    begin_sequence(&m, 0);
    PUT(&m, LINES, COPY, ADVANCE_PC, 4, END);
    end_unit(&m, unit, false);
    unit = begin_unit(&m, 3, false);
    begin_sequence(&m, 16);
    PUT(&m, LINES, SPECIAL(0, 4), SPECIAL(1, 1), ADVANCE_PC, 1, END);
    end_unit(&m, unit, false);
    expect(&m, "0000 FFMA\n0010 FFMA /src/a.cu:5\n0020 FFMA /src/a.cu:6\n0030 FFMA\n");
}

/* Rows count from 1 in their own sequence; what is inlined nowhere has no parent; line 0 is that of the call. */
static void test_inlined(void **state)
{
    (void)state;
    struct made m;
    make(&m, true);
    put(&m, LINE_STRINGS, "one\0two", 8);
    size_t unit = begin_unit(&m, 2, false);
    begin_sequence(&m, 48);
    PUT(&m, LINES, 0, 3, 0x90, 9, 4, COPY, 0, 2, 0x91, 0, COPY, ADVANCE_PC, 1, END);
    begin_sequence(&m, 0);
    PUT(&m, LINES, ADVANCE_LINE, 9, COPY);                               /* row 1: 10 */
    PUT(&m, LINES, 0, 3, 0x90, 1, 0, SPECIAL(0, 4));                     /* row 2: 14 in one, at row 1 */
    PUT(&m, LINES, 0, 3, 0x90, 2, 4, SPECIAL(0, 4));                     /* row 3: 18 in two, at row 2 */
    PUT(&m, LINES, ADVANCE_LINE, 0x6e, ADVANCE_PC, 1, COPY);             /* row 4: line 0 of two */
    PUT(&m, LINES, 0, 3, 0x90, 0, 0, SPECIAL(1, 7), ADVANCE_PC, 1, END); /* row 5: 7, not inlined */
    end_unit(&m, unit, false);
    expect(&m, "0000 FFMA /src/a.cu:18 in two < /src/a.cu:14 in one < /src/a.cu:10\n"
               "0010 FFMA /src/a.cu:14 in one < /src/a.cu:10\n"
               "0020 FFMA /src/a.cu:7\n"
               "0030 FFMA /src/a.cu:1 in one\n");
}

/* What cannot be told of: a file that the table does not have, a name outside the strings, a sequence of no function.
 */
static void test_unknown(void **state)
{
    (void)state;
    struct made m;
    make(&m, true);
    size_t unit = begin_unit(&m, 2, false);
    begin_sequence(&m, 0);
    PUT(&m, LINES, SET_FILE, 2, COPY, SET_FILE, 1, 0, 3, 0x90, 1, 99, SPECIAL(1, 1), SPECIAL(1, 1), END);
    PUT(&m, LINES, 0, 9, 2, 48, 0, 0, 0, 0, 0, 0, 0, COPY, ADVANCE_PC, 1, END);
    end_unit(&m, unit, false);
    expect(&m, "0000 FFMA\n0010 FFMA /src/a.cu:2\n0020 FFMA\n0030 FFMA\n");
}

/* Number of registers, by the attribute of the symbol. */
static int see_registers(const struct kp_cubin_function *f, void *arg)
{
    *(uint32_t *)arg = f->registers;
    return 7;
}

static void test_registers(void **state)
{
    (void)state;
    struct made m;
    struct kp_cubin *c;
    uint32_t registers = 0;
    make(&m, true);
    PUT(&m, INFO, 2, 0x2f, 1, 0, 4, 0x11, 4, 0, 1, 0, 0, 0);     /* of one byte; another attribute */
    PUT(&m, INFO, 4, 0x2f, 8, 0, 9, 0, 0, 0, 50, 0, 0, 0);       /* of a symbol that is not there */
    PUT(&m, INFO, 4, 0x2f, 8, 0, 1, 0, 0, 0, 40, 0, 0, 0, 4, 1); /* and one that is cut off */
    finish(&m);
    assert_int_equal(kp_cubin_open(m.image, m.size, &c), 0);
    assert_int_equal(kp_cubin_each_function(c, see_registers, &registers), 7);
    assert_int_equal(registers, 40);
    kp_cubin_close(c);
}

/* The numbers of sections that do not fit the header are in the first section. */
static void test_many_sections(void **state)
{
    (void)state;
    struct made m;
    Elf64_Ehdr h;
    Elf64_Shdr first;
    make(&m, true);
    finish(&m);
    memcpy(&h, m.image, sizeof(h));
    memcpy(&first, m.image + h.e_shoff, sizeof(first));
    first.sh_size = h.e_shnum;
    first.sh_link = h.e_shstrndx;
    h.e_shnum = 0;
    h.e_shstrndx = SHN_XINDEX;
    memcpy(m.image, &h, sizeof(h));
    memcpy(m.image + h.e_shoff, &first, sizeof(first));
    char *text = print_image(m.image, m.size);
    assert_non_null(text);
    assert_non_null(strstr(text, "0030 FFMA\n"));
    free(text);
}

/* ---- what is refused ---- */

static void test_refused(void **state)
{
    (void)state;
    struct image image = recorded_image(0);
    struct kp_cubin *c;
    struct kp_code code = {.id = 1};
    const char *name;
    static const size_t fields[] = {EI_MAG0, EI_CLASS, EI_DATA, offsetof(Elf64_Ehdr, e_machine),
                                    offsetof(Elf64_Ehdr, e_shentsize)};
    assert_int_equal(kp_cubin_open(image.bytes, image.size, &c), 0);
    assert_int_equal(kp_cubin_code(c, "neste", &code), -ENOENT);
    assert_int_equal(code.id, 0);
    assert_int_equal(kp_cubin_function_at(c, 0, &name), -ENOENT);
    assert_int_equal(kp_cubin_function_at(c, UINT32_MAX, &name), -ENOENT);
    struct kp_cubin_reach reach;
    assert_int_equal(kp_cubin_reach(c, 0, &reach), -ENOENT);
    assert_int_equal(kp_cubin_reach(c, UINT32_MAX, &reach), -ENOENT);
    kp_cubin_close(c);
    assert_int_equal(kp_cubin_open(NULL, 0, &c), -EINVAL);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        image.bytes[fields[i]] ^= 3;
        assert_int_equal(kp_cubin_open(image.bytes, image.size, &c), -EINVAL);
        assert_null(c);
        image.bytes[fields[i]] ^= 3;
    }
    kp_cubin_close(NULL);
    free(image.bytes);
}

/* No field is where the processor would like it. */
static void test_unaligned(void **state)
{
    (void)state;
    struct image image = recorded_image(1);
    uint8_t *moved = malloc(image.size + 1);
    memcpy(moved + 1, image.bytes, image.size);
    char *expected = print_image(image.bytes, image.size), *got = print_image(moved + 1, image.size);
    assert_string_equal(got, expected);
    free(expected);
    free(got);
    free(moved);
    free(image.bytes);
}

/* ---- what a kernel shares ---- */

/* The names of the kernels say what they do. */
static int check_shares(const struct kp_cubin_function *f, void *arg)
{
    static const struct {
        const char *name;
        unsigned once;
    } kinds[] = {{"none_", 0},
                 {"waits_", KP_WAITS_FOR_OTHERS},
                 {"posts_", KP_ONCE_POSTS},
                 {"both_", KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS}};
    struct kp_cubin_reach reach;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strncmp(f->name, kinds[i].name, strlen(kinds[i].name)))
            continue;
        assert_int_equal(kp_cubin_reach(*(struct kp_cubin **)arg, f->symbol, &reach), 0);
        if (reach.once != kinds[i].once)
            fail_msg("%s: %u", f->name, reach.once);
    }
    return 0;
}

static void test_shares(void **state)
{
    static const char *const files[] = {"tests/data/scope.sm75-cuda13.cubin", "tests/data/scope.sm90-cuda13.cubin"};
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        struct image image = read_image(kp_test_source(files[i]));
        struct kp_cubin *c;
        assert_int_equal(kp_cubin_once(image.bytes, image.size), KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS);
        assert_int_equal(kp_cubin_open(image.bytes, image.size, &c), 0);
        assert_int_equal(kp_cubin_each_function(c, check_shares, &c), 0);
        kp_cubin_close(c);
        free(image.bytes);
    }
}

/* ---- damage ---- */

/* Reads all of it, from a block of just that size, so that a sanitiser sees what is read beyond. */
static void read_damaged(const uint8_t *bytes, size_t size)
{
    uint8_t *block = malloc(size ? size : 1);
    memcpy(block, bytes, size);
    free(print_image(block, size));
    free(block);
}

/* A name that ends with the image is none. */
static void test_unterminated(void **state)
{
    (void)state;
    struct made m;
    Elf64_Ehdr h;
    make(&m, true);
    size_t unit = begin_unit(&m, 2, false);
    begin_sequence(&m, 0);
    PUT(&m, LINES, 0, 3, 0x90, 1, 0, COPY, ADVANCE_PC, 1, END);
    end_unit(&m, unit, false);
    finish(&m);
    memcpy(&h, m.image, sizeof(h));
    size_t strings = h.e_shoff + (LINE_STRINGS + 1) * sizeof(Elf64_Shdr);
    const uint64_t place[] = {m.size, 1}; /* sh_offset, sh_size */
    memcpy(m.image + strings + offsetof(Elf64_Shdr, sh_offset), place, sizeof(place));
    m.image[m.size++] = 'x';
    read_damaged(m.image, m.size);
}

/* A function whose code the file does not have is none. */
static void test_outside(void **state)
{
    (void)state;
    struct made m;
    Elf64_Ehdr h;
    make(&m, true);
    finish(&m);
    memcpy(&h, m.image, sizeof(h));
    char *whole = print_image(m.image, m.size);
    size_t text = h.e_shoff + (TEXT + 1) * sizeof(Elf64_Shdr);
    const uint64_t offset = m.size + 1;
    memcpy(m.image + text + offsetof(Elf64_Shdr, sh_offset), &offset, sizeof(offset));
    char *without = print_image(m.image, m.size);
    assert_non_null(whole);
    assert_non_null(without);
    assert_true(strlen(without) < strlen(whole));
    free(whole);
    free(without);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_truncated(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_RECORDED; i++) {
        struct image image = recorded_image(i);
        for (size_t size = 0; size < image.size; size += size < 128 ? 1 : 61)
            read_damaged(image.bytes, size);
        free(image.bytes);
    }
}

/* Each field of the header and of each section, and what it may not be. */
static void test_wrong_fields(void **state)
{
    (void)state;
    struct image image = recorded_image(0);
    const uint64_t wrong[] = {0, 1, image.size - 1, image.size + 1, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX - 63};
    Elf64_Ehdr h;
    memcpy(&h, image.bytes, sizeof(h));
    for (size_t at = 0; at + sizeof(*wrong) <= image.size; at += at == sizeof(h) ? h.e_shoff - sizeof(h) : 4) {
        uint64_t right;
        memcpy(&right, image.bytes + at, sizeof(right));
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
            memcpy(image.bytes + at, &wrong[i], i & 1 ? sizeof(uint64_t) : sizeof(uint32_t));
            read_damaged(image.bytes, image.size);
            memcpy(image.bytes + at, &right, sizeof(right));
        }
    }
    free(image.bytes);
}

/* Damages of all kinds, for as long as a test may take. The fuzzer of cubins goes further. */
static void test_damaged(void **state)
{
    (void)state;
    double end = seconds() + 2;
    uint64_t random = 20;
    unsigned rounds = 0;
    for (; rounds < 6000 && seconds() < end; rounds++) {
        struct image image = recorded_image(rounds % N_RECORDED);
        Elf64_Ehdr h;
        memcpy(&h, image.bytes, sizeof(h));
        for (int i = 0; i < 1 + (int)(rounds % 7); i++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            size_t at = (size_t)(random >> 33);
            /* Every other time in the section headers, which decide most. */
            at = rounds & 2 ? h.e_shoff + at % (image.size - h.e_shoff) : at % image.size;
            if (rounds & 4)
                image.bytes[at] ^= (uint8_t)(1u << (random >> 20 & 7));
            else
                image.bytes[at] = (uint8_t)(random >> 20);
        }
        read_damaged(image.bytes, image.size);
        free(image.bytes);
    }
    assert_true(rounds > 50);
}

static void test_damaged_uses(void **state)
{
    uint64_t random = 21;
    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        struct image image = read_image(kp_test_source(OBJECTS));
        for (int i = 0; i < 8; i++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            image.bytes[(random >> 33) % image.size] = (uint8_t)(random >> 20);
        }
        read_damaged(image.bytes, image.size);
        free(image.bytes);
    }
}

/* ---- beside nvdisasm ---- */

/* The lines of nvdisasm -c -gi in the form of print_image, for the sections that it prints. */
struct listing {
    FILE *to;
    char location[16384];
    bool complete; /* an instruction came after the location */
};

static void take_location(struct listing *l, const char *line)
{
    char file[4096];
    unsigned number;
    size_t used = l->complete ? 0 : strlen(l->location);
    l->complete = false;
    if (sscanf(line, " //## File \"%4095[^\"]\", line %u", file, &number) == 2)
        snprintf(l->location + used, sizeof(l->location) - used, "%s%s:%u", used ? " < " : " ", file, number);
}

static void take_listed(struct listing *l, const char *line)
{
    char opcode[64], word[64];
    unsigned offset;
    if (strncmp(line, ".text.", 6) == 0) {
        fprintf(l->to, "\n%.*s\n", (int)strcspn(line + 6, ":"), line + 6);
        l->location[0] = 0;
    } else if (strstr(line, "//## File ")) {
        take_location(l, line);
    } else if (sscanf(line, " /*%x*/ %63s %63[A-Z0-9_]", &offset, word, opcode) >= 2) {
        if (word[0] != '@')
            snprintf(opcode, sizeof(opcode), "%.*s", (int)strcspn(word, ".;"), word);
        fprintf(l->to, "%04x %s%s\n", offset, opcode, l->location);
        l->complete = true;
    }
}

static char *listing_of(const char *tool, const char *cubin)
{
    char command[2 * PATH_MAX], *line = NULL, *text = NULL;
    size_t size = 0, len;
    struct listing l = {.to = open_memstream(&text, &len)};
    snprintf(command, sizeof(command), "'%s' -c -gi '%s' 2>/dev/null", tool, cubin);
    FILE *from = popen(command, "r");
    assert_non_null(from);
    while (getline(&line, &size, from) > 0)
        take_listed(&l, line);
    free(line);
    assert_int_equal(pclose(from), 0);
    fclose(l.to);
    return text;
}

struct comparing {
    struct kp_cubin *cubin;
    const char *listing;
    const char *of;
    unsigned compared;
};

/* Takes out `mark` and what follows it up to a blank, each time that it is there. */
static void drop(char *text, const char *mark)
{
    for (char *at = text; (at = strstr(at, mark));) {
        size_t len = strlen(mark) + strcspn(at + strlen(mark), " \n");
        memmove(at, at + len, strlen(at + len) + 1);
    }
}

/* Both texts are equal in front of the line that begins here. */
static size_t last_common_line(const char *a, const char *b)
{
    size_t begin = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        begin = a[i] == '\n' ? i + 1 : begin;
    return begin;
}

static int compare_function(const struct kp_cubin_function *f, void *arg)
{
    struct comparing *c = arg;
    struct kp_code code;
    char *text, *head;
    size_t len;
    FILE *to = open_memstream(&text, &len);
    assert_int_equal(kp_cubin_code(c->cubin, f->name, &code), 0);
    fprintf(to, "\n%s\n", f->name);
    print_code(to, &code);
    fclose(to);
    kp_code_free(&code);
    /* The listing has neither names of functions nor marks of spills. */
    drop(text, " in ");
    drop(text, " (spill)");
    /* Functions within another's section are listed as a part of it. */
    head = strndup(text, strlen(f->name) + 2);
    const char *at = strstr(c->listing, head);
    if (at && f->name[0] != '$') {
        c->compared++;
        if (strncmp(at, text, strlen(text)) != 0) {
            at += len = last_common_line(at, text);
            fail_msg("%s: %s differs\nnvdisasm: %.*s\nkprof: %.*s", c->of, f->name, (int)strcspn(at, "\n"), at,
                     (int)strcspn(text + len, "\n"), text + len);
        }
    }
    free(head);
    free(text);
    return 0;
}

static void compare(const char *tool, const char *path)
{
    struct image image = read_image(path);
    char *listing = listing_of(tool, path);
    struct comparing c = {.listing = listing, .of = path};
    assert_int_equal(kp_cubin_open(image.bytes, image.size, &c.cubin), 0);
    assert_int_equal(kp_cubin_each_function(c.cubin, compare_function, &c), 0);
    assert_true(c.compared > 0);
    kp_cubin_close(c.cubin);
    free(listing);
    free(image.bytes);
}

static char *tool_or_skip(void)
{
    char *tool = kp_disassembler_find();
    if (!tool) {
        print_message("no nvdisasm here: nothing to compare with\n");
        skip();
    }
    return tool;
}

static void test_beside_nvdisasm(void **state)
{
    (void)state;
    char *tool = tool_or_skip(), path[PATH_MAX];
    for (size_t i = 0; i < N_RECORDED; i++) {
        snprintf(path, sizeof(path), "%s/%s.cubin", kp_test_source("tests/data"), recorded[i]);
        compare(tool, path);
    }
    free(tool);
}

/* Every program of ours, as the nvcc that is installed compiles it. */
static void test_compiled(void **state)
{
    (void)state;
    static const char *const sources[] = {"tests/data/inline.cu", "examples/transpose.cu", "tests/gpu/patterns.cu",
                                          "tests/gpu/windows.cu"};
    static const char *const options[] = {"-lineinfo -arch=sm_75", "-lineinfo -arch=sm_90", "-lineinfo -arch=sm_120",
                                          "-G -arch=sm_80"};
    static const char *const below[] = {"../bin", "../../../bin", NULL};
    char *nvcc = kp_test_toolkit_file(below, "nvcc"), *tool = kp_disassembler_find(), folder[PATH_MAX];
    if (!nvcc) {
        free(tool);
        print_message("no nvcc here: nothing to compile with\n");
        skip();
    }
    snprintf(folder, sizeof(folder), "%s", kp_test_folder());
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
        char path[PATH_MAX + 16], command[4 * PATH_MAX];
        snprintf(path, sizeof(path), "%s/a.cubin", folder);
        snprintf(command, sizeof(command), "'%s' -cubin %s -o '%s' '%s' 2>&1", nvcc, options[i], path,
                 kp_test_source(sources[i]));
        if (system(command))
            fail_msg("nvcc failed: %s", command);
        struct image image = read_image(path);
        char *text = print_image(image.bytes, image.size), name[64];
        assert_non_null(text);
        snprintf(name, sizeof(name), "/%s:", strrchr(sources[i], '/') + 1);
        assert_non_null(strstr(text, name));
        if (tool)
            compare(tool, path);
        free(text);
        free(image.bytes);
    }
    kp_test_remove_folder(folder);
    free(nvcc);
    free(tool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_unknown_version), cmocka_unit_test(test_inlined),
        cmocka_unit_test(test_unknown),         cmocka_unit_test(test_registers),
        cmocka_unit_test(test_many_sections),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unaligned),       cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_unterminated),    cmocka_unit_test(test_outside),
        cmocka_unit_test(test_wrong_fields),    cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_beside_nvdisasm), cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_shares),          cmocka_unit_test(test_damaged_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
