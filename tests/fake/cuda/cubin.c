/*
 * The machine code of a module: an ELF image of the form that ptxas writes for CUDA 13. It has a section of
 * instructions for each kernel, symbols, numbers of registers, line tables and PTX. A module loaded from such an image
 * has a copy of it; for others one is made. Its code never runs but looks like a small kernel's, and its lines are of a
 * file of kernels that does not exist. Its PTX has an instruction for each of these lines.
 */
#include "core.h"

#include <elf.h>

enum {
    CUDA_MACHINE = 190,
    CUDA_OSABI = 0x41, /* and version 8, as in images of CUDA 13 */
    CUDA_ABI = 8,
    CUDA_FLAGS = 0x0a000004, /* with the compute capability in bits 8 to 15 */
    ENTRY = 0x10,            /* st_other of a kernel */
    RELOCATION_64 = 2,
    INFO_SECTION = 0x70000000,
    CALL_GRAPH_SECTION = 0x70000001,
    INFO_REGISTERS = 0x2f04, /* attribute and format: symbol, number */
    CODE_ALIGNMENT = 128,
    INSTRUCTION = 16, /* bytes */
    FIRST_LINE = 10,
    LINES_APART = 20,
};

enum cubin_section {
    NO_SECTION,
    SECTION_NAMES,
    SYMBOL_NAMES,
    SYMBOLS,
    LINES,
    LINE_RELOCATIONS,
    PTX_LINES,
    PTX_RELOCATIONS,
    PTX,
    INFO,
    CALL_GRAPH,
    FIRST_CODE
};

static const char line_file[] = "fake_kernels.cu";

/* Which kernels have an instruction, and how often. */
enum when { ALWAYS, WITH_SHARED_MEMORY, WITH_ATOMICS, WITHOUT_ATOMICS, REPEATED, THAT_WAITS, THAT_POSTS };

/* Opcode and form are the low 12 bits of an instruction, the four above them its predicate (7: none). */
static const struct body_instruction {
    uint16_t opcode;
    uint8_t predicate, line;
    enum when when;
} body[] = {
    {0xb82, 7, 0, ALWAYS},             /* LDC */
    {0x919, 7, 1, ALWAYS},             /* S2R */
    {0x824, 7, 1, ALWAYS},             /* IMAD */
    {0x20c, 7, 2, ALWAYS},             /* ISETP */
    {0x94d, 0, 2, ALWAYS},             /* EXIT */
    {0x981, 7, 3, ALWAYS},             /* LDG */
    {0x981, 7, 3, THAT_WAITS},         /* LDG.STRONG.SYS */
    {0x992, 7, 3, THAT_POSTS},         /* MEMBAR.SYS */
    {0x988, 7, 4, WITH_SHARED_MEMORY}, /* STS */
    {0xb1d, 7, 5, WITH_SHARED_MEMORY}, /* BAR */
    {0x984, 7, 6, WITH_SHARED_MEMORY}, /* LDS */
    {0x223, 7, 7, REPEATED},           /* FFMA */
    {0x947, 0, 8, ALWAYS},             /* BRA */
    {0x98e, 7, 9, WITH_ATOMICS},       /* REDG */
    {0x986, 7, 9, WITHOUT_ATOMICS},    /* STG */
    {0x94d, 7, 10, ALWAYS},            /* EXIT */
    {0x947, 7, 10, ALWAYS},            /* BRA to itself */
};
static const struct body_instruction padding = {0x918, 7, 10, ALWAYS}; /* NOP */

struct bytes {
    unsigned char *at;
    size_t size;
};

/* Returns where they start. */
static size_t put(struct bytes *to, const void *data, size_t size)
{
    size_t begin = to->size;

    to->at = realloc(to->at, begin + size + 1);
    if (!to->at)
        fake_misuse("out of host memory");
    if (data)
        memcpy(to->at + begin, data, size);
    else
        memset(to->at + begin, 0, size);
    to->size += size;
    return begin;
}

static size_t put_text(struct bytes *to, const char *text)
{
    return put(to, text, strlen(text) + 1);
}

static void put_byte(struct bytes *to, uint8_t byte)
{
    put(to, &byte, 1);
}

static void put_leb(struct bytes *to, int64_t value)
{
    for (; value < -64 || value > 63; value >>= 7)
        put_byte(to, (value & 0x7f) | 0x80);
    put_byte(to, value & 0x7f);
}

/* An image in the making: the contents of its sections, and the tables of them. */
struct cubin {
    struct bytes names, symbol_names, symbols, info, calls, pointer_calls;
    struct table {
        struct bytes lines, relocations;
    } source, to_ptx;
    struct bytes ptx;
    int ptx_lines;
    struct bytes headers; /* of the sections with code */
    struct bytes file;
};

/* --- code and its lines --- */

static int times(const struct body_instruction *i, const struct kernel_code *code)
{
    bool atomics = strstr(code->name, "atomic") != NULL;

    switch (i->when) {
    case WITH_SHARED_MEMORY:
        return code->shared_bytes != 0;
    case WITH_ATOMICS:
        return atomics;
    case WITHOUT_ATOMICS:
        return !atomics;
    case THAT_WAITS:
        return strstr(code->name, "gate") || strstr(code->name, "proxy");
    case THAT_POSTS:
        return strstr(code->name, "proxy") != NULL;
    case REPEATED:
        return 1 + (int)(fake_hash(FAKE_HASH_START, code->name, strlen(code->name)) % 4);
    default:
        return 1;
    }
}

static void put_instruction(struct bytes *text, const struct body_instruction *i)
{
    const uint64_t scope = i->when == THAT_WAITS   ? 0xa << 13
                           : i->when == THAT_POSTS ? 3 << 12
                                                   : 0; /* of 8.0 and later */
    const uint64_t words[] = {i->opcode | (uint64_t)i->predicate << 12, 0x000fe20000000000 | scope};

    put(text, words, sizeof(words));
}

/* The line table of a function in the making. */
struct rows {
    struct bytes *to;
    size_t offset;
    int line;
};

static void advance(struct rows *rows, size_t offset)
{
    enum { ADVANCE_PC = 2, MOST = 127 };

    for (size_t step; rows->offset < offset; rows->offset += step) {
        step = offset - rows->offset < MOST ? offset - rows->offset : MOST; /* one byte holds it */
        put_byte(rows->to, ADVANCE_PC);
        put_byte(rows->to, (uint8_t)step);
    }
}

static void put_row(struct rows *rows, size_t offset, int line)
{
    enum { COPY = 1, ADVANCE_LINE = 3 };

    if (line == rows->line)
        return;
    put_byte(rows->to, ADVANCE_LINE);
    put_leb(rows->to, line - rows->line);
    rows->line = line;
    advance(rows, offset);
    put_byte(rows->to, COPY);
}

static struct bytes put_code(const struct kernel_code *code)
{
    struct bytes text = {NULL, 0};

    for (size_t i = 0; i < sizeof(body) / sizeof(body[0]); i++)
        for (int n = times(&body[i], code); n; n--)
            put_instruction(&text, &body[i]);
    while (text.size % CODE_ALIGNMENT)
        put_instruction(&text, &padding);
    return text;
}

static void put_rows(struct bytes *lines, const struct kernel_code *code, size_t size, int line)
{
    struct rows rows = {lines, 0, 1};
    size_t offset = 0;

    for (size_t i = 0; i < sizeof(body) / sizeof(body[0]); i++)
        for (int n = times(&body[i], code); n; n--, offset += INSTRUCTION)
            put_row(&rows, offset, line + body[i].line);
    advance(&rows, size);
}

/* Where the line table says how many bytes of it follow. */
enum { UNIT_LENGTH = 0, HEADER_LENGTH = 6 };

static void set_length(struct bytes *lines, size_t offset)
{
    uint32_t length = (uint32_t)(lines->size - offset - sizeof(length));

    memcpy(lines->at + offset, &length, sizeof(length));
}

static void begin_lines(struct bytes *lines, const char *name)
{
    /* DWARF 2: lengths to be set at the end; one byte per step, statements, the range of special opcodes, the first of
     * these, the numbers of operands of the others */
    static const unsigned char start[] = {0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1};
    static const unsigned char file_end[] = {0, 0, 0, 0}; /* folder, time, size; and no other file */

    put(lines, start, sizeof(start));
    put_byte(lines, 0); /* no folders */
    if (name)
        put_text(lines, name);
    put(lines, file_end, name ? sizeof(file_end) : 1);
    set_length(lines, HEADER_LENGTH);
}

static void put_sequence(struct table *to, const struct kernel_code *code, size_t size, int line, size_t symbol)
{
    static const unsigned char set_address[] = {0, 9, 2}, end[] = {0, 1, 1};
    Elf64_Rela relocation;

    put(&to->lines, set_address, sizeof(set_address));
    relocation = (Elf64_Rela){.r_offset = put(&to->lines, NULL, 8), .r_info = ELF64_R_INFO(symbol, RELOCATION_64)};
    put(&to->relocations, &relocation, sizeof(relocation));
    put_rows(&to->lines, code, size, line);
    put(&to->lines, end, sizeof(end));
}

/* The file is 0, as in a module that was compiled as a whole. */
static void put_ptx_sequence(struct cubin *c, const struct kernel_code *code, size_t size, size_t symbol)
{
    static const unsigned char set_file[] = {4, 0};
    char text[600];

    put(&c->to_ptx.lines, set_file, sizeof(set_file));
    snprintf(text, sizeof(text), ".visible .entry %s()", code->name);
    put_text(&c->ptx, text);
    put_text(&c->ptx, "{");
    put_sequence(&c->to_ptx, code, size, c->ptx_lines + 3, symbol);
    for (int line = 0; line <= padding.line; line++) {
        snprintf(text, sizeof(text), "add.u32 \t%%r1, %%r1, %d;", line);
        put_text(&c->ptx, text);
    }
    put_text(&c->ptx, "}");
    put_text(&c->ptx, "");
    c->ptx_lines += padding.line + 5;
}

/* A kernel of the table has its lines, whichever the module. */
static int first_line(const struct kernel_code *code, size_t position)
{
    size_t n = sizeof(kernel_codes) / sizeof(kernel_codes[0]), row = 0;

    while (row < n && strcmp(kernel_codes[row].name, code->name))
        row++;
    return FIRST_LINE + LINES_APART * (int)(row < n ? row : n + position);
}

/* --- the file --- */

static void put_section(struct cubin *c, Elf64_Shdr *header, const char *name, Elf64_Shdr values,
                        const struct bytes *content)
{
    while (c->file.size % (values.sh_addralign ? values.sh_addralign : 1))
        put_byte(&c->file, 0);
    *header = values;
    header->sh_name = (Elf64_Word)put_text(&c->names, name);
    if (content->size)
        header->sh_offset = put(&c->file, content->at, content->size);
    header->sh_size = content->size;
}

/* What kernels call in the driver, by a part of their names. */
static const struct {
    const char *kernel, *function;
} driver_calls[] = {
    {"heap_swap", "malloc"},
    {"heap_swap", "free"},
    {"launching", "__cudaCDP2LaunchDeviceV2"},
};

static void put_calls(struct cubin *c, const struct kernel_code *code, uint32_t caller)
{
    const uint32_t unknown[] = {caller, 0};

    if (strstr(code->name, "by_pointer"))
        put(&c->pointer_calls, unknown, sizeof(unknown));
    for (size_t i = 0; i < sizeof(driver_calls) / sizeof(driver_calls[0]); i++) {
        Elf64_Sym undefined = {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
        const uint32_t pair[] = {caller, (uint32_t)(c->symbols.size / sizeof(undefined))};

        if (!strstr(code->name, driver_calls[i].kernel))
            continue;
        undefined.st_name = (Elf64_Word)put_text(&c->symbol_names, driver_calls[i].function);
        put(&c->symbols, &undefined, sizeof(undefined));
        put(&c->calls, pair, sizeof(pair));
    }
}

static void put_kernel(struct cubin *c, const struct kernel_code *code, size_t position)
{
    size_t index = c->symbols.size / sizeof(Elf64_Sym);
    const uint32_t registers[] = {INFO_REGISTERS | 8u << 16, (uint32_t)index, (uint32_t)code->regs};
    Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = ENTRY};
    Elf64_Shdr header;
    struct bytes text;
    char name[512];

    text = put_code(code);
    put_sequence(&c->source, code, text.size, first_line(code, position), index);
    put_ptx_sequence(c, code, text.size, index);
    snprintf(name, sizeof(name), ".text.%s", code->name);
    put_section(c, &header, name,
                (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                             .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                             .sh_link = SYMBOLS,
                             .sh_info = (Elf64_Word)index,
                             .sh_addralign = CODE_ALIGNMENT},
                &text);
    put(&c->headers, &header, sizeof(header));
    symbol.st_name = (Elf64_Word)put_text(&c->symbol_names, code->name);
    symbol.st_shndx = (Elf64_Half)(FIRST_CODE + position);
    symbol.st_size = text.size;
    put(&c->symbols, &symbol, sizeof(symbol));
    put(&c->info, registers, sizeof(registers));
    put_calls(c, code, (uint32_t)index);
    free(text.at);
}

/* Variables need no room in the file. Textures are in no section. */
static void put_variables(struct cubin *c, const struct module_image *image, enum global_kind kind, const char *section)
{
    enum { TEXTURE = 10 };
    Elf64_Shdr header = {.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_WRITE, .sh_addralign = 8};
    Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_GLOBAL, section ? STT_OBJECT : TEXTURE)};

    symbol.st_shndx = section ? (Elf64_Half)(FIRST_CODE + c->headers.size / sizeof(header)) : SHN_UNDEF;
    for (size_t i = 0; i < image->n_globals; i++) {
        if (image->globals[i].kind != kind)
            continue;
        symbol.st_name = (Elf64_Word)put_text(&c->symbol_names, image->globals[i].name);
        symbol.st_value = header.sh_size;
        symbol.st_size = image->globals[i].size;
        put(&c->symbols, &symbol, sizeof(symbol));
        header.sh_size += symbol.st_size;
    }
    if (!section || !header.sh_size)
        return;
    header.sh_name = (Elf64_Word)put_text(&c->names, section);
    header.sh_offset = c->file.size;
    put(&c->headers, &header, sizeof(header));
}

static void put_tables(struct cubin *c)
{
    const Elf64_Shdr strings = {.sh_type = SHT_STRTAB, .sh_addralign = 1};
    const Elf64_Shdr symbols = {.sh_type = SHT_SYMTAB,
                                .sh_link = SYMBOL_NAMES,
                                .sh_info = 1, /* the first that is not local */
                                .sh_addralign = 8,
                                .sh_entsize = sizeof(Elf64_Sym)};
    const Elf64_Shdr lines = {.sh_type = SHT_PROGBITS, .sh_addralign = 1};
    Elf64_Shdr relocations = {.sh_type = SHT_RELA,
                              .sh_flags = SHF_INFO_LINK,
                              .sh_link = SYMBOLS,
                              .sh_info = LINES,
                              .sh_addralign = 8,
                              .sh_entsize = sizeof(Elf64_Rela)};
    const Elf64_Shdr info = {.sh_type = INFO_SECTION, .sh_link = SYMBOLS, .sh_addralign = 4};
    const Elf64_Shdr calls = {.sh_type = CALL_GRAPH_SECTION, .sh_link = SYMBOLS, .sh_addralign = 4, .sh_entsize = 8};
    static const uint32_t to_pointers[] = {0, 0xfffffffe, 0, 0xfffffffd}, last_list[] = {0, 0xfffffffc};
    Elf64_Shdr headers[FIRST_CODE] = {{0}};
    size_t begin;

    put(&c->calls, to_pointers, sizeof(to_pointers));
    if (c->pointer_calls.size)
        put(&c->calls, c->pointer_calls.at, c->pointer_calls.size);
    put(&c->calls, last_list, sizeof(last_list));

    put_section(c, &headers[SYMBOL_NAMES], ".strtab", strings, &c->symbol_names);
    put_section(c, &headers[SYMBOLS], ".symtab", symbols, &c->symbols);
    put_section(c, &headers[LINES], ".debug_line", lines, &c->source.lines);
    put_section(c, &headers[LINE_RELOCATIONS], ".rela.debug_line", relocations, &c->source.relocations);
    relocations.sh_info = PTX_LINES;
    put_section(c, &headers[PTX_LINES], ".nv_debug_line_sass", lines, &c->to_ptx.lines);
    put_section(c, &headers[PTX_RELOCATIONS], ".rela.nv_debug_line_sass", relocations, &c->to_ptx.relocations);
    put_section(c, &headers[PTX], ".nv_debug_ptx_txt", lines, &c->ptx);
    put_section(c, &headers[INFO], ".nv.info", info, &c->info);
    put_section(c, &headers[CALL_GRAPH], ".nv.callgraph", calls, &c->calls);
    put_section(c, &headers[SECTION_NAMES], ".shstrtab", strings, &c->names);
    while (c->file.size % 8)
        put_byte(&c->file, 0);
    begin = put(&c->file, headers, sizeof(headers));
    put(&c->file, c->headers.at, c->headers.size);
    *(Elf64_Ehdr *)(void *)c->file.at = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, CUDA_OSABI, CUDA_ABI},
        .e_type = ET_EXEC,
        .e_machine = CUDA_MACHINE,
        .e_version = EV_CURRENT,
        .e_shoff = begin,
        .e_flags = CUDA_FLAGS | (Elf64_Word)(10 * the_chip()->major + the_chip()->minor) << 8,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (Elf64_Half)((sizeof(headers) + c->headers.size) / sizeof(Elf64_Shdr)),
        .e_shstrndx = SECTION_NAMES,
    };
}

static struct fake_cubin make_cubin(const struct module_image *image)
{
    static const uint32_t first_list[] = {0, 0xffffffff};
    struct cubin c = {0};

    put(&c.file, NULL, sizeof(Elf64_Ehdr));
    put(&c.symbols, NULL, sizeof(Elf64_Sym));
    put_text(&c.names, "");
    put_text(&c.symbol_names, "");
    begin_lines(&c.source.lines, line_file);
    begin_lines(&c.to_ptx.lines, NULL);
    put(&c.calls, first_list, sizeof(first_list));
    for (size_t i = 0; i < image->n_codes; i++)
        put_kernel(&c, &image->codes[i], i);
    put_variables(&c, image, GLOBAL_VARIABLE, ".nv.global");
    put_variables(&c, image, GLOBAL_CONSTANT, ".nv.constant3");
    put_variables(&c, image, GLOBAL_TEXTURE, NULL);
    set_length(&c.source.lines, UNIT_LENGTH);
    set_length(&c.to_ptx.lines, UNIT_LENGTH);
    put_tables(&c);
    free(c.names.at);
    free(c.symbol_names.at);
    free(c.symbols.at);
    free(c.source.lines.at);
    free(c.source.relocations.at);
    free(c.to_ptx.lines.at);
    free(c.to_ptx.relocations.at);
    free(c.ptx.at);
    free(c.info.at);
    free(c.calls.at);
    free(c.pointer_calls.at);
    free(c.headers.at);
    return (struct fake_cubin){c.file.at, c.file.size};
}

/* --- existing images --- */

static struct fake_cubin read_cubin(const char *path)
{
    struct bytes file = {NULL, 0};
    unsigned char block[4096];
    FILE *f = fopen(path, "rb");

    if (!f)
        fake_misuse("FAKE_CUBIN: cannot read %s", path);
    for (size_t n; (n = fread(block, 1, sizeof(block), f)) > 0;)
        put(&file, block, n);
    fclose(f);
    return (struct fake_cubin){file.at, file.size};
}

/* Returns the length of an image given only by its address; 0: it is no cubin. */
static size_t cubin_size(const unsigned char *data)
{
    const Elf64_Ehdr *header = (const void *)data;
    const Elf64_Shdr *sections;
    size_t size;

    if (memcmp(data, ELFMAG, SELFMAG) || data[EI_CLASS] != ELFCLASS64 || data[EI_DATA] != ELFDATA2LSB ||
        header->e_machine != CUDA_MACHINE)
        return 0;
    sections = (const void *)(data + header->e_shoff);
    size = header->e_shoff + header->e_shnum * sizeof(*sections);
    for (size_t i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type != SHT_NOBITS && sections[i].sh_offset + sections[i].sh_size > size)
            size = sections[i].sh_offset + sections[i].sh_size;
    if (header->e_phnum && header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr) > size)
        size = header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr);
    return size;
}

static struct fake_cubin cubin_of(const struct module_image *image, const void *data)
{
    const char *path = getenv("FAKE_CUBIN");
    size_t size = image->any_name ? cubin_size(data) : 0;
    struct bytes copy = {NULL, 0};

    if (path && *path)
        return read_cubin(path);
    if (!size)
        return make_cubin(image);
    put(&copy, data, size);
    return (struct fake_cubin){copy.at, copy.size};
}
