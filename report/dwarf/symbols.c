/* Not part of libkprof.so: the Makefile builds libkprof-symbols.so from this file. */
#include "report/dwarf/symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The most nested inlined functions that are shown. */
enum { PLACES_MAX = 32 };

/* A range of code that one compilation unit describes. */
struct stretch {
    Dwarf_Addr start, end;
    Dwarf_Die *unit;
    Dwarf_Addr bias; /* file's addresses minus the unit's */
};

/* One file being searched. */
struct module {
    Dwfl *dwfl;
    Dwfl_Module *m;
    const uint64_t *addresses;
    size_t n;
    const char **names;        /* of the function's symbol, for each address */
    GElf_Sym *symbols;         /* the chosen symbol, for each address */
    char (*paths)[PATH_MAX];   /* PLACES_MAX, made absolute */
    struct stretch *stretches; /* sorted */
    size_t n_stretches;
};

/* ---- symbol tables ---- */

/* Returns the index of the first address that is not below `value`. */
static size_t first_from(const struct module *f, uint64_t value)
{
    size_t low = 0, high = f->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (f->addresses[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Prefers a global name, which says more than a local alias of the function; else the nearer begin. */
static bool is_better(const GElf_Sym *new, const GElf_Sym *old)
{
    bool local = GELF_ST_BIND(new->st_info) == STB_LOCAL, was_local = GELF_ST_BIND(old->st_info) == STB_LOCAL;
    return new->st_size != old->st_size ? new->st_size < old->st_size : was_local && !local;
}

/* Names all functions in one pass over the symbols, instead of one pass for each address. */
static void name_functions(const struct module *f)
{
    int n = dwfl_module_getsymtab(f->m);
    for (int i = 1; i < n; i++) {
        GElf_Sym symbol;
        GElf_Addr start;
        const char *name = dwfl_module_getsym_info(f->m, i, &symbol, &start, NULL, NULL, NULL);
        int type = GELF_ST_TYPE(symbol.st_info);
        if (!name || !*name || symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
            continue;
        for (size_t a = first_from(f, start); a < f->n && f->addresses[a] - start < symbol.st_size; a++) {
            if (f->names[a] && !is_better(&symbol, &f->symbols[a]))
                continue;
            f->names[a] = name;
            f->symbols[a] = symbol;
        }
    }
}

/* ---- DWARF ---- */

static const char *name_of(Dwarf_Die *die)
{
    static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
    Dwarf_Attribute attribute;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *name = dwarf_formstring(dwarf_attr_integrate(die, names[i], &attribute));
        if (name)
            return name;
    }
    return NULL;
}

/* Makes `file` an absolute path, in `room`. */
static const char *absolute(Dwarf_Die *unit, const char *file, char room[PATH_MAX])
{
    Dwarf_Attribute attribute;
    const char *folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    if (!file || *file == '/' || !folder)
        return file;
    int length = snprintf(room, PATH_MAX, "%s/%s", folder, file);
    return length >= 0 && length < PATH_MAX ? room : file;
}

/* Reads the place that inlined the function of the copy `die`. */
static void read_call(Dwarf_Die *unit, Dwarf_Die *die, struct kp_symbol_place *out)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file = 0, line = 0;
    Dwarf_Files *files;
    size_t n;
    out->file = NULL;
    out->line = 0;
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &file) ||
        dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &line) || dwarf_getsrcfiles(unit, &files, &n))
        return;
    out->file = dwarf_filesrc(files, file, NULL, NULL);
    out->line = (uint32_t)line;
}

/* Reads the functions around `address`, innermost first: from each inlined copy out to its call. Their files are as
 * the unit has them. */
static size_t read_functions(Dwarf_Die *unit, Dwarf_Addr address, struct kp_symbol_place places[PLACES_MAX])
{
    Dwarf_Die *scopes = NULL, *nested = NULL;
    size_t n = 0;
    int n_scopes = dwarf_getscopes(unit, address, &scopes);
    /* From the innermost scope on, follow the scopes as they lie in the code; the other list continues with the
     * declaration. */
    int n_nested = n_scopes > 0 ? dwarf_getscopes_die(&scopes[0], &nested) : 0;
    for (int i = 0; i < n_nested && n < PLACES_MAX; i++) {
        int tag = dwarf_tag(&nested[i]);
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        places[n++].function = name_of(&nested[i]);
        if (tag == DW_TAG_subprogram)
            break;
        if (n < PLACES_MAX)
            read_call(unit, &nested[i], &places[n]);
    }
    free(scopes);
    free(nested);
    return n;
}

static bool add_stretches(struct module *f, Dwarf_Die *unit, Dwarf_Addr bias)
{
    Dwarf_Addr base, start, end;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;) {
        if (!(f->n_stretches & (f->n_stretches - 1))) { /* full: sizes are powers of 2 */
            size_t size = f->n_stretches ? 2 * f->n_stretches : 1;
            struct stretch *grown = realloc(f->stretches, size * sizeof(*grown));
            if (!grown)
                return false;
            f->stretches = grown;
        }
        f->stretches[f->n_stretches++] = (struct stretch){start + bias, end + bias, unit, bias};
    }
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Reads the units themselves: not every compiler writes their table by address. */
static int read_units(struct module *f)
{
    Dwarf_Addr bias;
    for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(f->m, unit, &bias));)
        if (!add_stretches(f, unit, bias))
            return -ENOMEM;
    if (f->n_stretches)
        qsort(f->stretches, f->n_stretches, sizeof(*f->stretches), by_start);
    return 0;
}

static const struct stretch *stretch_of(const struct module *f, uint64_t address)
{
    size_t low = 0, high = f->n_stretches; /* finds the last one that starts at or before it */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (f->stretches[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < f->stretches[low - 1].end ? &f->stretches[low - 1] : NULL;
}

static size_t read_places(const struct module *f, const struct stretch *s, uint64_t address,
                          struct kp_symbol_place places[PLACES_MAX])
{
    size_t n = read_functions(s->unit, address - s->bias, places);
    Dwarf_Line *line = dwarf_getsrc_die(s->unit, address - s->bias);
    int number = 0;
    if (line && !dwarf_lineno(line, &number)) {
        places[0].file = dwarf_linesrc(line, NULL, NULL);
        places[0].line = (uint32_t)number;
        n = n ? n : 1;
    }
    for (size_t i = 0; i < n; i++)
        places[i].file = absolute(s->unit, places[i].file, f->paths[i]);
    return n;
}

static void resolve(const struct module *f, size_t index, kp_symbols_found_fn *found, void *arg)
{
    struct kp_symbol_place places[PLACES_MAX] = {{0}};
    const struct stretch *s = stretch_of(f, f->addresses[index]);
    size_t n = s ? read_places(f, s, f->addresses[index], places) : 0;
    if (!n)
        n = f->names[index] != NULL;
    if (n && !places[n - 1].function)
        places[n - 1].function = f->names[index];
    if (n)
        found(arg, index, places, n);
}

/* ---- a file ---- */

static bool is_same(Dwfl_Module *m, const unsigned char *build_id, size_t size)
{
    const unsigned char *bits;
    GElf_Addr address;
    int length = dwfl_module_build_id(m, &bits, &address);
    return !build_id || length < 0 || ((size_t)length == size && !memcmp(bits, build_id, size));
}

/* Searches separate debug information only by build ID. elfutils' own search would contact servers that the environment
 * names. */
static const Dwfl_Callbacks callbacks = {.find_debuginfo = dwfl_build_id_find_debuginfo,
                                         .section_address = dwfl_offline_section_address};

static int open_module(struct module *f, const char *path)
{
    f->dwfl = dwfl_begin(&callbacks);
    f->names = calloc(f->n, sizeof(*f->names));
    f->symbols = calloc(f->n, sizeof(*f->symbols));
    f->paths = calloc(PLACES_MAX, sizeof(*f->paths));
    if (!f->dwfl || !f->names || !f->symbols || !f->paths)
        return -ENOMEM;
    dwfl_report_begin(f->dwfl);
    f->m = dwfl_report_elf(f->dwfl, path, path, -1, 0, true);
    if (dwfl_report_end(f->dwfl, NULL, NULL) || !f->m)
        return -EINVAL;
    return 0;
}

kp_symbols_resolve_fn kp_symbols_resolve_1;

__attribute__((visibility("default"))) int kp_symbols_resolve_1(const char *path, const unsigned char *build_id,
                                                                size_t build_id_size, const uint64_t *addresses,
                                                                size_t n, kp_symbols_found_fn *found, void *arg)
{
    struct module f = {.addresses = addresses, .n = n};
    if (!n)
        return 0;
    if (access(path, R_OK))
        return -ENOENT;
    int rc = open_module(&f, path);
    if (!rc && !is_same(f.m, build_id, build_id_size))
        rc = -ENOENT;
    if (!rc)
        rc = read_units(&f);
    if (!rc) {
        name_functions(&f);
        for (size_t i = 0; i < n; i++)
            resolve(&f, i, found, arg);
    }
    free(f.names);
    free(f.symbols);
    free(f.paths);
    free(f.stretches);
    if (f.dwfl)
        dwfl_end(f.dwfl);
    return rc;
}
