#include "collectors/code/cubin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/code/cubin_internal.h"

/* KP_VENDOR: constants of the format, named as cuobjdump -elf prints them. */
enum {
    CUDA_MACHINE = 190,         /* EM_CUDA */
    ABI_WITH_SHIFTED_SM = 8,    /* first ABI version that keeps the compute capability in bits 8..15 of e_flags */
    INFO_SECTION = 0x70000000,  /* type of .nv.info, and of .nv.info.NAME whose sh_info is the code's section */
    ATTRIBUTE_REGISTERS = 0x2f, /* EIATTR_REGCOUNT: symbol, number */
    ATTRIBUTE_BARRIERS = 0x4c,  /* EIATTR_NUM_BARRIERS */
    FORMAT_SIZED = 4,           /* EIFMT_SVAL: 16 bits of size, then as many bytes; the others have 16 bits */
};

/* KP_VENDOR: EIATTR_ANNOTATIONS, pairs of a kind and an instruction's offset in the section. Kind 1 are the loads and
 * stores of spills. Found in the output of nvcc 13.0 for compute capabilities 7.5 to 12.0. There they are exactly the
 * local-memory accesses of kernels without local arrays, and, with spilling to shared memory enabled, also the
 * shared-memory ones. */
enum { ATTRIBUTE_ANNOTATIONS = 0x55, ANNOTATION_SIZE = 8, ANNOTATED_SPILL = 1 };

struct kp_cubin {
    const uint8_t *image;
    size_t size;
    uint64_t section_table;
    uint64_t symbol_table;
    size_t n_sections, n_symbols;
    struct kp_bytes section_names, symbol_names;
    uint32_t sm;
    /* By section: index of the section with its attributes, 0 = none. By symbol: registers per thread. Filled once, so
     * that a module of thousands of functions is not searched for each of them. */
    uint32_t *attributes;
    uint8_t *registers;
};

static bool read_at(const struct kp_cubin *c, uint64_t offset, void *to, size_t size)
{
    if (offset > c->size || size > c->size - offset)
        return false;
    memcpy(to, c->image + offset, size);
    return true;
}

static bool read_entry(const struct kp_cubin *c, uint64_t table, size_t n, size_t index, void *to, size_t size)
{
    /* Opening has checked that the tables are complete. */
    if (index < n && read_at(c, table + index * size, to, size))
        return true;
    memset(to, 0, size);
    return false;
}

uint32_t kp_cubin_sm(const struct kp_cubin *c)
{
    return c->sm;
}

bool kp_cubin_section(const struct kp_cubin *c, size_t index, Elf64_Shdr *out)
{
    return read_entry(c, c->section_table, c->n_sections, index, out, sizeof(*out));
}

bool kp_cubin_symbol(const struct kp_cubin *c, size_t index, Elf64_Sym *out)
{
    return read_entry(c, c->symbol_table, c->n_symbols, index, out, sizeof(*out));
}

struct kp_bytes kp_cubin_bytes(const struct kp_cubin *c, const Elf64_Shdr *s)
{
    if (s->sh_type == SHT_NOBITS || s->sh_offset > c->size || s->sh_size > c->size - s->sh_offset)
        return (struct kp_bytes){NULL, 0};
    return (struct kp_bytes){c->image + s->sh_offset, s->sh_size};
}

const char *kp_bytes_string(struct kp_bytes strings, uint64_t offset)
{
    if (offset >= strings.size || !memchr(strings.at + offset, 0, strings.size - offset))
        return NULL;
    return (const char *)strings.at + offset;
}

const char *kp_cubin_symbol_name(const struct kp_cubin *c, size_t index)
{
    Elf64_Sym s;
    return kp_cubin_symbol(c, index, &s) ? kp_bytes_string(c->symbol_names, s.st_name) : NULL;
}

const char *kp_cubin_section_name(const struct kp_cubin *c, const Elf64_Shdr *s)
{
    return kp_bytes_string(c->section_names, s->sh_name);
}

bool kp_cubin_section_named(const struct kp_cubin *c, const char *name, Elf64_Shdr *out)
{
    for (size_t i = 1; kp_cubin_section(c, i, out); i++) {
        const char *own = kp_cubin_section_name(c, out);
        if (own && strcmp(own, name) == 0)
            return true;
    }
    return false;
}

/* ---- opening ---- */

/* Reads the header, and the number of sections. */
static int read_header(struct kp_cubin *c)
{
    Elf64_Ehdr h;
    Elf64_Shdr first, names;
    uint64_t n, names_index;
    if (!read_at(c, 0, &h, sizeof(h)) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_machine != CUDA_MACHINE || h.e_shentsize != sizeof(Elf64_Shdr) ||
        !read_at(c, h.e_shoff, &first, sizeof(first)))
        return -EINVAL;
    /* A number too large for the header is in the first section. */
    n = h.e_shnum ? h.e_shnum : first.sh_size;
    names_index = h.e_shstrndx == SHN_XINDEX ? first.sh_link : h.e_shstrndx;
    if (n > (c->size - h.e_shoff) / sizeof(Elf64_Shdr))
        return -EINVAL;
    c->section_table = h.e_shoff;
    c->n_sections = n;
    if (!kp_cubin_section(c, names_index, &names))
        return -EINVAL;
    c->section_names = kp_cubin_bytes(c, &names);
    c->sm = (h.e_ident[EI_ABIVERSION] >= ABI_WITH_SHIFTED_SM ? h.e_flags >> 8 : h.e_flags) & 0xff;
    return 0;
}

static void find_symbols(struct kp_cubin *c)
{
    Elf64_Shdr s, names;
    for (size_t i = 1; kp_cubin_section(c, i, &s); i++) {
        if (s.sh_type != SHT_SYMTAB)
            continue;
        c->symbol_table = s.sh_offset;
        c->n_symbols = kp_cubin_bytes(c, &s).size / sizeof(Elf64_Sym);
        kp_cubin_section(c, s.sh_link, &names);
        c->symbol_names = kp_cubin_bytes(c, &names);
        return;
    }
}

static uint32_t u16_at(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

uint32_t kp_u32_at(const uint8_t *p)
{
    return u16_at(p) | u16_at(p + 2) << 16;
}

/* Takes the next attribute off *rest: its number, and its value of at least two bytes. */
static bool next_attribute(struct kp_bytes *rest, uint32_t *number, struct kp_bytes *value)
{
    size_t size = 0;
    if (rest->size < 4)
        return false;
    *number = rest->at[1];
    *value = (struct kp_bytes){rest->at + 2, 2};
    if (rest->at[0] == FORMAT_SIZED) {
        size = u16_at(rest->at + 2);
        if (size > rest->size - 4)
            return false;
        *value = (struct kp_bytes){rest->at + 4, size};
    }
    rest->at += 4 + size;
    rest->size -= 4 + size;
    return true;
}

static void read_registers(struct kp_cubin *c, struct kp_bytes rest)
{
    uint32_t number;
    struct kp_bytes value;
    while (next_attribute(&rest, &number, &value)) {
        if (number != ATTRIBUTE_REGISTERS || value.size < 8)
            continue;
        uint32_t symbol = kp_u32_at(value.at), registers = kp_u32_at(value.at + 4);
        if (symbol < c->n_symbols && registers <= UINT8_MAX)
            c->registers[symbol] = (uint8_t)registers;
    }
}

static void read_infos(struct kp_cubin *c)
{
    Elf64_Shdr s;
    for (size_t i = 1; kp_cubin_section(c, i, &s); i++) {
        if (s.sh_type != INFO_SECTION)
            continue;
        if (s.sh_info == 0)
            read_registers(c, kp_cubin_bytes(c, &s));
        else if (s.sh_info < c->n_sections)
            c->attributes[s.sh_info] = (uint32_t)i;
    }
}

int kp_cubin_open(const void *image, size_t size, struct kp_cubin **out)
{
    struct kp_cubin *c = calloc(1, sizeof(*c));
    int rc = -ENOMEM;
    *out = NULL;
    if (!c)
        return rc;
    c->image = image;
    c->size = size;
    rc = read_header(c);
    if (rc)
        goto out;
    find_symbols(c);
    c->attributes = calloc(c->n_sections, sizeof(*c->attributes));
    c->registers = calloc(c->n_symbols + 1, sizeof(*c->registers));
    if (!c->attributes || !c->registers) {
        rc = -ENOMEM;
        goto out;
    }
    read_infos(c);
    *out = c;
    c = NULL;
out:
    kp_cubin_close(c);
    return rc;
}

void kp_cubin_close(struct kp_cubin *c)
{
    if (!c)
        return;
    free(c->attributes);
    free(c->registers);
    free(c);
}

/* ---- functions ---- */

bool kp_cubin_place_of(const struct kp_cubin *c, uint32_t symbol, const char **name, struct kp_cubin_place *place)
{
    Elf64_Sym s;
    Elf64_Shdr section;
    if (!kp_cubin_symbol(c, symbol, &s) || ELF64_ST_TYPE(s.st_info) != STT_FUNC ||
        !kp_cubin_section(c, s.st_shndx, &section) || section.sh_type != SHT_PROGBITS)
        return false;
    struct kp_bytes bytes = kp_cubin_bytes(c, &section);
    size_t size = bytes.size;
    *name = kp_bytes_string(c->symbol_names, s.st_name);
    if (!*name || !bytes.at || s.st_value > size) /* also if the code lies outside the file */
        return false;
    *place = (struct kp_cubin_place){.section = s.st_shndx, .symbol = symbol, .begin = s.st_value};
    place->size = s.st_size < size - s.st_value ? s.st_size : size - s.st_value;
    return true;
}

int kp_cubin_function_at(const struct kp_cubin *c, uint32_t symbol, const char **name)
{
    struct kp_cubin_place place;
    return kp_cubin_place_of(c, symbol, name, &place) ? 0 : -ENOENT;
}

int kp_cubin_find(const struct kp_cubin *c, const char *name, struct kp_cubin_place *out)
{
    for (uint32_t i = 0; i < c->n_symbols; i++) {
        const char *own;
        if (kp_cubin_place_of(c, i, &own, out) && strcmp(own, name) == 0)
            return 0;
    }
    return -ENOENT;
}

/* Returns the registers. Up to CUDA 12 the headers of a code section have these numbers as well, in the upper bits
 * of ELF's fields. From CUDA 13 on, and from compute capability 9.0 on for registers, only the attributes have them. */
static uint32_t registers_of(const struct kp_cubin *c, uint32_t symbol, const Elf64_Shdr *section)
{
    return c->registers[symbol] ? c->registers[symbol] : section->sh_info >> 24;
}

/* Returns the attributes of the code in section `section`; empty if there are none. */
static struct kp_bytes attributes_of(const struct kp_cubin *c, uint32_t section)
{
    Elf64_Shdr info;
    kp_cubin_section(c, c->attributes[section], &info);
    return kp_cubin_bytes(c, &info);
}

static uint32_t barriers_of(const struct kp_cubin *c, uint32_t section_index, const Elf64_Shdr *section)
{
    struct kp_bytes rest = attributes_of(c, section_index), value;
    uint32_t number;
    while (next_attribute(&rest, &number, &value)) {
        if (number == ATTRIBUTE_BARRIERS && value.size > 0)
            return value.at[0];
    }
    return section->sh_flags >> 20 & 0x7f;
}

int kp_cubin_each_function(const struct kp_cubin *c, kp_cubin_function_fn *fn, void *arg)
{
    for (uint32_t i = 0; i < c->n_symbols; i++) {
        struct kp_cubin_function f = {.symbol = i, .sm = c->sm};
        struct kp_cubin_place place;
        Elf64_Shdr section;
        if (!kp_cubin_place_of(c, i, &f.name, &place))
            continue;
        kp_cubin_section(c, place.section, &section);
        f.size = place.size;
        f.registers = registers_of(c, i, &section);
        f.barriers = barriers_of(c, place.section, &section);
        int rc = fn(&f, arg);
        if (rc)
            return rc;
    }
    return 0;
}

int kp_cubin_each_spill(const struct kp_cubin *c, const struct kp_cubin_place *place, int (*fn)(uint64_t at, void *arg),
                        void *arg)
{
    struct kp_bytes rest = attributes_of(c, place->section), value;
    uint32_t number;
    int rc = 0;
    while (!rc && next_attribute(&rest, &number, &value)) {
        if (number != ATTRIBUTE_ANNOTATIONS)
            continue;
        for (size_t i = 0; !rc && i + ANNOTATION_SIZE <= value.size; i += ANNOTATION_SIZE) {
            uint64_t at = kp_u32_at(value.at + i + 4) - place->begin;
            if (kp_u32_at(value.at + i) == ANNOTATED_SPILL && at < place->size)
                rc = fn(at, arg);
        }
    }
    return rc;
}
