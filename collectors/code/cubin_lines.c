/*
 * The line tables of a cubin: line programs of DWARF 2 to 4 (dwarfstd.org, section 6.2 of each) with NVIDIA's two
 * instructions for inlined code. .debug_line leads to the source, .nv_debug_line_sass to the PTX.
 *
 * KP_VENDOR: extended instruction 0x90 has a context and the offset of a function's name in .debug_str. The rows that
 * follow belong to that function, inlined at the place of an earlier row of the sequence. The context is the number of
 * that row from 1 on; 0 ends the inlining. 0x91 has only the name. A sequence starts with an address of 0, and the
 * relocation of that operand names the function. Verified against nvdisasm -gi on the same modules
 * (tests/unit/collectors/test_collect_cubin.c).
 *
 * KP_VENDOR: files of the PTX table are sections of the cubin. A module that was compiled as a whole names none, and
 * uses file 0. Verified with nvcc 13.0 and ptxas 11.8.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "collectors/code/cubin_internal.h"

enum {
    COPY = 1,
    ADVANCE_PC = 2,
    ADVANCE_LINE = 3,
    SET_FILE = 4,
    CONST_ADD_PC = 8,
    FIXED_ADVANCE_PC = 9,
};

enum {
    END_SEQUENCE = 1,
    SET_ADDRESS = 2,
    INLINED_CALL = 0x90,
    FUNCTION_NAME = 0x91,
};

#define NO_NAME UINT64_MAX

/* ---- reading ---- */

/* Reads beyond the end return 0 and set `bad`, which stays set. */
struct cursor {
    const uint8_t *at, *end;
    bool bad;
};

static const uint8_t *take(struct cursor *c, uint64_t n)
{
    const uint8_t *at = c->at;
    if (n > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        c->at = c->end;
        return NULL;
    }
    c->at += n;
    return at;
}

static uint64_t number(struct cursor *c, size_t bytes)
{
    const uint8_t *at = take(c, bytes);
    uint64_t value = 0;
    for (size_t i = 0; at && i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* Reads a number in base 128, and its width in bits; drops bits beyond 64. */
static uint64_t leb128(struct cursor *c, unsigned *bits, bool *negative)
{
    uint64_t value = 0;
    uint8_t byte = 0x80;
    for (*bits = 0; byte & 0x80 && !c->bad; *bits += 7) {
        byte = (uint8_t)number(c, 1);
        if (*bits < 64)
            value |= (uint64_t)(byte & 0x7f) << *bits;
    }
    *negative = byte & 0x40;
    return value;
}

static uint64_t uleb(struct cursor *c)
{
    unsigned bits;
    bool negative;
    return leb128(c, &bits, &negative);
}

static int64_t sleb(struct cursor *c)
{
    unsigned bits;
    bool negative;
    uint64_t value = leb128(c, &bits, &negative);
    if (negative && bits < 64)
        value |= UINT64_MAX << bits;
    return (int64_t)value;
}

/* Returns NULL without a terminator. */
static const char *string(struct cursor *c)
{
    const uint8_t *at = c->at, *end = memchr(at, 0, (size_t)(c->end - at));
    if (!take(c, end ? (uint64_t)(end - at) + 1 : UINT64_MAX))
        return NULL;
    return (const char *)at;
}

/* ---- arrays of unique entries ---- */

/* How the entries of an array are compared. */
struct kind {
    size_t size; /* of an entry */
    uint64_t (*hash)(const void *entry);
    bool (*same)(const void *a, const void *b);
};

/* Entries with an index: open addressing by hash, a slot is index + 1. */
struct set {
    const struct kind *kind;
    void *entries;
    size_t n;
    uint32_t *slots;
    size_t n_slots; /* a power of two, or 0 */
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15; /* 2^64 divided by the golden ratio, an odd number without pattern */
    return hash ^ hash >> 32;
}

/* Returns the slot of the entry equal to `entry`, or a free one for it. */
static uint32_t *slot_of(const struct set *s, const void *entry)
{
    size_t mask = s->n_slots - 1, i = s->kind->hash(entry) & mask;
    while (s->slots[i] && !s->kind->same((char *)s->entries + (s->slots[i] - 1) * s->kind->size, entry))
        i = (i + 1) & mask;
    return &s->slots[i];
}

/* Makes room for one more entry. 0 or -ENOMEM. */
static int set_grow(struct set *s)
{
    struct set grown = *s;
    if (!kp_room(&s->entries, s->n, s->kind->size))
        return -ENOMEM;
    if (2 * s->n < s->n_slots)
        return 0;
    grown.entries = s->entries;
    grown.n_slots = s->n_slots ? 2 * s->n_slots : 64;
    grown.slots = calloc(grown.n_slots, sizeof(*grown.slots));
    if (!grown.slots)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        *slot_of(&grown, (char *)s->entries + i * s->kind->size) = (uint32_t)i + 1;
    free(s->slots);
    *s = grown;
    return 0;
}

/* Sets *out to the index + 1 of the entry equal to `entry`, which is copied if it is the first (*is_new). 0 or
 * -ENOMEM. */
static int set_add(struct set *s, const void *entry, uint32_t *out, bool *is_new)
{
    if (set_grow(s))
        return -ENOMEM;
    uint32_t *slot = slot_of(s, entry);
    *is_new = *slot == 0;
    if (*is_new) {
        memcpy((char *)s->entries + s->n * s->kind->size, entry, s->kind->size);
        *slot = (uint32_t)++s->n;
    }
    *out = *slot;
    return 0;
}

/* ---- the rows of one function's section ---- */

struct row {
    uint64_t address; /* in the section */
    uint32_t location;
    bool end; /* end of its sequence: no location from here on */
    size_t order;
};

/* A location before its strings are copied. */
struct spot {
    uint32_t file, parent; /* index + 1 */
    uint32_t line;
    uint64_t function; /* offset of its name, or NO_NAME */
};

struct relocation {
    uint64_t offset, symbol, addend;
};

/* A line table of a cubin. */
struct source {
    const char *table, *relocations, *relocations_with_addend; /* sections */
    const char *file_0;                                        /* NULL: file 0 is no file */
};

static const struct source of_source = {".debug_line", ".rel.debug_line", ".rela.debug_line", NULL},
                           of_ptx = {".nv_debug_line_sass", ".rel.nv_debug_line_sass", ".rela.nv_debug_line_sass",
                                     KP_PTX_SECTION};

struct lines {
    const struct kp_cubin *cubin;
    const struct source *from;
    uint32_t section;               /* the section whose rows are wanted */
    struct kp_bytes table;          /* the bytes of the line table */
    struct relocation *relocations; /* by offset */
    size_t n_relocations;
    bool with_addend; /* in the relocation, and not in the operand */

    struct row *rows;
    size_t n_rows;
    uint32_t *sequence; /* location of each row of the current sequence */
    size_t n_sequence;
    struct set spots; /* struct spot */
    struct set files; /* struct kp_source_file */
};

static uint64_t spot_hash(const void *entry)
{
    const struct spot *s = entry;
    return mix(mix(mix(mix(0, s->file), s->line), s->parent), s->function);
}

static bool same_spot(const void *a, const void *b)
{
    const struct spot *s = a, *t = b;
    return s->file == t->file && s->line == t->line && s->parent == t->parent && s->function == t->function;
}

static uint64_t file_hash(const void *entry)
{
    uint64_t hash = 0;
    for (const char *p = ((const struct kp_source_file *)entry)->path; *p; p++)
        hash = mix(hash, (uint8_t)*p);
    return hash;
}

static bool same_file(const void *a, const void *b)
{
    return strcmp(((const struct kp_source_file *)a)->path, ((const struct kp_source_file *)b)->path) == 0;
}

static const struct kind spot_kind = {sizeof(struct spot), spot_hash, same_spot};
static const struct kind file_kind = {sizeof(struct kp_source_file), file_hash, same_file};

/* ---- units and their files ---- */

struct unit_file {
    const char *name;
    uint64_t folder; /* from 1 on; 0 is the compiler's folder, which the table lacks */
    uint32_t index;  /* + 1, into the files of the lines; 0 = not looked up yet */
};

/* A unit of the table: its header, and the instructions of its line program. */
struct unit {
    uint8_t minimum_length, line_range, opcode_base;
    int8_t line_base;
    const uint8_t *lengths; /* operands of the standard instructions, by instruction - 1 */
    const char **folders;
    size_t n_folders;
    struct unit_file *files;
    size_t n_files;
    struct cursor program;
};

static int read_folders(struct unit *u, struct cursor *c)
{
    const char *name;
    while ((name = string(c)) && *name) {
        if (!KP_ROOM(u->folders, u->n_folders))
            return -ENOMEM;
        u->folders[u->n_folders++] = name;
    }
    return 0;
}

static int read_files(struct unit *u, struct cursor *c)
{
    const char *name;
    while ((name = string(c)) && *name) {
        if (!KP_ROOM(u->files, u->n_files))
            return -ENOMEM;
        u->files[u->n_files++] = (struct unit_file){.name = name, .folder = uleb(c)};
        uleb(c); /* time of the last change */
        uleb(c); /* size */
    }
    return 0;
}

/* Reads the unit that starts at `c` and moves to the next. 0, -ENOMEM, or -EINVAL if the rest is unreadable; u->program
 * is empty for a unit of an unknown form. */
static int read_unit(struct unit *u, struct cursor *c)
{
    size_t offset_size = 4;
    uint64_t length = number(c, 4);
    if (length == UINT32_MAX) {
        offset_size = 8;
        length = number(c, 8);
    }
    struct cursor rest = {.at = take(c, length)};
    if (c->bad)
        return -EINVAL;
    rest.end = rest.at + length;
    unsigned version = (unsigned)number(&rest, 2);
    length = number(&rest, offset_size);
    struct cursor header = {.at = take(&rest, length)};
    if (rest.bad || version < 2 || version > 4)
        return 0;
    header.end = header.at + length;
    u->minimum_length = (uint8_t)number(&header, 1);
    if (version >= 4)
        number(&header, 1); /* instructions of a bundle */
    number(&header, 1);     /* whether rows are statements at first */
    u->line_base = (int8_t)number(&header, 1);
    u->line_range = (uint8_t)number(&header, 1);
    u->opcode_base = (uint8_t)number(&header, 1);
    u->lengths = take(&header, u->opcode_base ? u->opcode_base - 1u : 0);
    if (header.bad || u->line_range == 0 || u->opcode_base == 0)
        return 0;
    u->program = rest;
    return read_folders(u, &header) || read_files(u, &header) ? -ENOMEM : 0;
}

static char *join(const char *folder, const char *name)
{
    if (name[0] == '/' || !*folder)
        return kp_strdup(name);
    return kp_asprintf("%s/%s", folder, name);
}

/* Takes over `path`, which is NULL without memory. Sets *index to the index + 1 of the file. 0 or -ENOMEM. */
static int add_file(struct lines *l, char *path, uint32_t *index)
{
    bool is_new = false;
    int rc = path ? set_add(&l->files, &(struct kp_source_file){.path = path}, index, &is_new) : -ENOMEM;
    if (!is_new)
        free(path);
    return rc;
}

/* Sets *out to the index + 1 of the unit's file `file`; 0 without such a file. 0 or -ENOMEM. */
static int file_of(struct lines *l, struct unit *u, uint64_t file, uint32_t *out)
{
    int rc = 0;
    *out = 0;
    if (file == 0 && l->from->file_0)
        return add_file(l, kp_strdup(l->from->file_0), out);
    if (file == 0 || file > u->n_files)
        return 0;
    struct unit_file *f = &u->files[file - 1];
    if (!f->index) {
        bool listed = f->folder >= 1 && f->folder <= u->n_folders;
        rc = add_file(l, join(listed ? u->folders[f->folder - 1] : "", f->name), &f->index);
    }
    *out = f->index;
    return rc;
}

/* ---- line programs ---- */

/* DWARF's registers, and NVIDIA's. */
struct state {
    uint64_t address, file, context, function;
    int64_t line;
    bool wanted; /* the address is in the wanted section */
};

/* Returns the location of the registers in *out, as an index + 1; 0: the line is unknown. 0 or -ENOMEM. */
static int location_of(struct lines *l, struct unit *u, const struct state *s, uint32_t *out)
{
    struct spot spot = {.line = (uint32_t)s->line, .function = s->function};
    bool is_new;
    if (s->context > 0 && s->context <= l->n_sequence)
        spot.parent = l->sequence[s->context - 1];
    int rc = file_of(l, u, s->file, &spot.file);
    if (rc)
        return rc;
    /* Line 0 is code that the compiler made; the surrounding place describes it best. */
    *out = spot.parent;
    if (!spot.file || s->line <= 0 || s->line > UINT32_MAX)
        return 0;
    return set_add(&l->spots, &spot, out, &is_new);
}

static int add_row(struct lines *l, uint64_t address, uint32_t location, bool end)
{
    if (!KP_ROOM(l->rows, l->n_rows) || !KP_ROOM(l->sequence, l->n_sequence))
        return -ENOMEM;
    l->rows[l->n_rows] = (struct row){.address = address, .location = location, .end = end, .order = l->n_rows};
    l->n_rows++;
    l->sequence[l->n_sequence++] = location;
    return 0;
}

/* Adds a row for the current registers. */
static int add_state(struct lines *l, struct unit *u, const struct state *s)
{
    uint32_t location;
    if (!s->wanted)
        return 0;
    int rc = location_of(l, u, s, &location);
    return rc ? rc : add_row(l, s->address, location, false);
}

/* Ends a sequence, ignoring rows for its end address. */
static int end_sequence(struct lines *l, const struct state *s)
{
    for (size_t i = 1; s->wanted && i <= l->n_sequence; i++) {
        struct row *r = &l->rows[l->n_rows - i];
        if (r->address < s->address)
            break;
        r->end = true;
    }
    return s->wanted ? add_row(l, s->address, 0, true) : 0;
}

static void start_sequence(struct lines *l, struct state *s)
{
    *s = (struct state){.file = 1, .line = 1, .function = NO_NAME};
    l->n_sequence = 0;
}

static int by_offset(const void *a, const void *b)
{
    uint64_t r = ((const struct relocation *)a)->offset, s = ((const struct relocation *)b)->offset;
    return r < s ? -1 : r > s;
}

/* Reads the relocations of the table; 0, -ENOENT without them, or -ENOMEM. */
static int read_relocations(struct lines *l)
{
    Elf64_Shdr section;
    Elf64_Rela r = {0};
    size_t size = sizeof(Elf64_Rela);
    l->with_addend = kp_cubin_section_named(l->cubin, l->from->relocations_with_addend, &section);
    if (!l->with_addend) {
        /* the same structure without the last member */
        size = sizeof(Elf64_Rel);
        if (!kp_cubin_section_named(l->cubin, l->from->relocations, &section))
            return -ENOENT;
    }
    struct kp_bytes from = kp_cubin_bytes(l->cubin, &section);
    l->relocations = calloc(from.size / size + 1, sizeof(*l->relocations));
    if (!l->relocations)
        return -ENOMEM;
    for (; from.size / size > l->n_relocations; l->n_relocations++) {
        memcpy(&r, from.at + l->n_relocations * size, size);
        l->relocations[l->n_relocations] = (struct relocation){r.r_offset, ELF64_R_SYM(r.r_info), (uint64_t)r.r_addend};
    }
    qsort(l->relocations, l->n_relocations, sizeof(*l->relocations), by_offset);
    return 0;
}

/* Sets the address from the operand at `at`, relocated by the symbol of a function or of its section. */
static void set_address(struct lines *l, struct state *s, const uint8_t *at, uint64_t operand)
{
    struct relocation key = {.offset = (uint64_t)(at - l->table.at)};
    const struct relocation *r = bsearch(&key, l->relocations, l->n_relocations, sizeof(key), by_offset);
    Elf64_Sym symbol;
    s->wanted = r && kp_cubin_symbol(l->cubin, r->symbol, &symbol) && symbol.st_shndx == l->section;
    if (s->wanted)
        s->address = symbol.st_value + (l->with_addend ? r->addend : operand);
}

static int run_extended(struct lines *l, struct unit *u, struct state *s)
{
    uint64_t length = uleb(&u->program);
    struct cursor c = {.at = take(&u->program, length)};
    int rc = 0;
    if (u->program.bad)
        return 0;
    c.end = c.at + length;
    switch (number(&c, 1)) {
    case END_SEQUENCE:
        rc = end_sequence(l, s);
        start_sequence(l, s);
        break;
    case SET_ADDRESS: {
        const uint8_t *at = c.at;
        set_address(l, s, at, number(&c, (size_t)(c.end - at) < 8 ? (size_t)(c.end - at) : 8));
        break;
    }
    case INLINED_CALL:
        s->context = uleb(&c);
        s->function = uleb(&c);
        if (s->context == 0)
            s->function = NO_NAME;
        break;
    case FUNCTION_NAME:
        s->function = uleb(&c);
        break;
    default:
        break;
    }
    return rc;
}

static void advance_special(const struct unit *u, struct state *s, uint8_t adjusted)
{
    s->address += (uint64_t)(adjusted / u->line_range) * u->minimum_length;
}

static int run_standard(struct lines *l, struct unit *u, struct state *s, uint8_t opcode)
{
    struct cursor *c = &u->program;
    switch (opcode) {
    case COPY:
        return add_state(l, u, s);
    case ADVANCE_PC:
        s->address += uleb(c) * u->minimum_length;
        break;
    case ADVANCE_LINE:
        s->line = (int64_t)((uint64_t)s->line + (uint64_t)sleb(c));
        break;
    case SET_FILE:
        s->file = uleb(c);
        break;
    case CONST_ADD_PC:
        advance_special(u, s, (uint8_t)(UINT8_MAX - u->opcode_base));
        break;
    case FIXED_ADVANCE_PC:
        s->address += number(c, 2);
        break;
    default: /* columns, blocks and newer data are not needed */
        for (uint8_t i = 0; i < u->lengths[opcode - 1]; i++)
            uleb(c);
    }
    return 0;
}

static int run_program(struct lines *l, struct unit *u)
{
    struct state s;
    int rc = 0;
    start_sequence(l, &s);
    while (!rc && !u->program.bad && u->program.at < u->program.end) {
        uint8_t opcode = (uint8_t)number(&u->program, 1);
        if (opcode == 0) {
            rc = run_extended(l, u, &s);
        } else if (opcode < u->opcode_base) {
            rc = run_standard(l, u, &s, opcode);
        } else {
            uint8_t adjusted = opcode - u->opcode_base;
            advance_special(u, &s, adjusted);
            s.line = (int64_t)((uint64_t)s.line + (uint64_t)(int64_t)(u->line_base + adjusted % u->line_range));
            rc = add_state(l, u, &s);
        }
    }
    return rc;
}

/* ---- from rows to instructions ---- */

static int by_address(const void *a, const void *b)
{
    const struct row *r = a, *s = b;
    if (r->address != s->address)
        return r->address < s->address ? -1 : 1;
    /* The next sequence may start where one ends. */
    if (r->end != s->end)
        return r->end ? -1 : 1;
    return r->order < s->order ? -1 : 1;
}

/* Locates instructions: of several rows for one address the last counts, because the rows before it are the places that
 * inline it. */
static void locate_instructions(struct lines *l, uint64_t begin, struct kp_code *code)
{
    size_t row = 0;
    if (l->n_rows)
        qsort(l->rows, l->n_rows, sizeof(*l->rows), by_address);
    for (size_t i = 0; i < code->n_instructions; i++) {
        struct kp_instruction *to = &code->instructions[i];
        while (row < l->n_rows && l->rows[row].address <= begin + to->offset)
            row++;
        to->location = row ? l->rows[row - 1].location : 0;
    }
}

/* Gives `code` the files and the locations, with copies of the names. */
static int hand_over(struct lines *l, struct kp_code *code)
{
    Elf64_Shdr section;
    struct kp_bytes names = {NULL, 0};
    code->files = l->files.entries;
    code->n_files = l->files.n;
    l->files.entries = NULL;
    l->files.n = 0;
    code->locations = calloc(l->spots.n + 1, sizeof(*code->locations));
    if (!code->locations)
        return -ENOMEM;
    if (kp_cubin_section_named(l->cubin, ".debug_str", &section))
        names = kp_cubin_bytes(l->cubin, &section);
    for (size_t i = 0; i < l->spots.n; i++) {
        const struct spot *s = (const struct spot *)l->spots.entries + i;
        struct kp_location *to = &code->locations[code->n_locations++];
        *to = (struct kp_location){.file = s->file - 1, .line = s->line, .parent = s->parent};
        to->function = kp_strdup(kp_bytes_string(names, s->function));
        if (!to->function)
            return -ENOMEM;
    }
    return 0;
}

static int run_units(struct lines *l)
{
    if (!l->table.size) /* an empty table also has no address */
        return 0;
    struct cursor c = {.at = l->table.at, .end = l->table.at + l->table.size};
    int rc = 0;
    while (!rc && c.at < c.end) {
        struct unit u = {0};
        rc = read_unit(&u, &c);
        if (!rc)
            rc = run_program(l, &u);
        free(u.folders);
        free(u.files);
    }
    return rc == -ENOMEM ? rc : 0;
}

/* Decodes the section's rows again for each function: a few milliseconds for a megabyte of table. */
static int read_lines(const struct kp_cubin *c, const struct source *from, const struct kp_cubin_place *place,
                      struct kp_code *code)
{
    Elf64_Shdr table;
    struct lines l = {
        .cubin = c, .from = from, .section = place->section, .spots.kind = &spot_kind, .files.kind = &file_kind};
    int rc;
    if (code->n_instructions == 0 || !kp_cubin_section_named(c, from->table, &table))
        return 0;
    l.table = kp_cubin_bytes(c, &table);
    rc = read_relocations(&l);
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    rc = run_units(&l);
    if (!rc) {
        locate_instructions(&l, place->begin, code);
        rc = hand_over(&l, code);
    }
    for (size_t i = 0; i < l.files.n; i++)
        free(((struct kp_source_file *)l.files.entries)[i].path);
    free(l.files.entries);
    free(l.files.slots);
    free(l.spots.entries);
    free(l.spots.slots);
    free(l.relocations);
    free(l.rows);
    free(l.sequence);
    return rc;
}

int kp_cubin_lines(const struct kp_cubin *c, const struct kp_cubin_place *place, struct kp_code *code)
{
    return read_lines(c, &of_source, place, code);
}

int kp_cubin_lines_of_ptx(const struct kp_cubin *c, const struct kp_cubin_place *place, struct kp_code *code)
{
    return read_lines(c, &of_ptx, place, code);
}
