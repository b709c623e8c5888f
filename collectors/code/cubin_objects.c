/*
 * What a module has of its own beside code: variables, constants, references to textures; and which of them a kernel
 * uses.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/code/cubin_internal.h"

static bool begins_with_any(const char *name, const char *const *prefixes)
{
    while (name && *prefixes && strncmp(name, *prefixes, strlen(*prefixes)))
        prefixes++;
    return name && *prefixes;
}

/* KP_VENDOR: these begin the names of the sections with variables; bank 3 has the program's constants, others those of
 * the compiler. Constants that the compiler itself puts beside the variables have such names. */
static bool is_variable(const struct kp_cubin *c, size_t index, const Elf64_Sym *symbol)
{
    static const char *const sections[] = {".nv.global", ".nv.constant3", NULL};
    static const char *const constants[] = {"$str", "__unnamed_", "__cudart_", NULL};
    Elf64_Shdr s;
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && kp_cubin_section(c, symbol->st_shndx, &s) &&
           begins_with_any(kp_cubin_section_name(c, &s), sections) &&
           !begins_with_any(kp_cubin_symbol_name(c, index), constants);
}

int kp_cubin_each_variable(const struct kp_cubin *c, int (*fn)(const char *name, void *arg), void *arg)
{
    Elf64_Sym symbol;
    int rc = 0;
    for (size_t i = 1; !rc && kp_cubin_symbol(c, i, &symbol); i++)
        if (is_variable(c, i, &symbol))
            rc = fn(kp_cubin_symbol_name(c, i), arg);
    return rc;
}

/* KP_VENDOR: symbols of textures, samplers and surfaces, by type. */
static bool is_reference(const Elf64_Sym *symbol)
{
    enum { TEXTURE = 10, SURFACE = 12 };
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return type >= TEXTURE && type <= SURFACE;
}

static bool is_constant(const struct kp_cubin *c, const Elf64_Sym *symbol)
{
    static const char *const bank[] = {".nv.constant3", NULL};
    Elf64_Shdr s;
    return kp_cubin_section(c, symbol->st_shndx, &s) && begins_with_any(kp_cubin_section_name(c, &s), bank);
}

/* Returns whether the symbol is an object, and of which kind. */
static bool is_object(const struct kp_cubin *c, size_t index, const Elf64_Sym *symbol, enum kp_cubin_object *kind)
{
    bool reference = is_reference(symbol);
    *kind = reference ? KP_CUBIN_REFERENCE : is_constant(c, symbol) ? KP_CUBIN_CONSTANT : KP_CUBIN_VARIABLE;
    return reference || is_variable(c, index, symbol);
}

static int stop_at_variable(const char *name, void *arg)
{
    (void)name, (void)arg;
    return 1;
}

bool kp_cubin_variables(const void *image, size_t size)
{
    struct kp_cubin *c;
    if (!image || kp_cubin_open(image, size, &c))
        return true;
    bool found = kp_cubin_each_variable(c, stop_at_variable, NULL);
    kp_cubin_close(c);
    return found;
}

/* ---- what a kernel uses ---- */

/* KP_VENDOR: code that the linker has put together is in a section for each function, and has relocations for what it
 * refers to. In modules that were compiled as a whole, addresses of variables are in a bank that all kernels share.
 * Found in the output of nvcc 13.0 and its nvlink, for compute capabilities 7.5 to 12.0. */
struct uses {
    const struct kp_cubin *c;
    size_t n, n_sections;
    bool *reached, *named; /* by symbol: by code of the kernel, by any code */
    bool *sections;        /* those with code of the kernel */
};

static bool make_uses(struct uses *u)
{
    Elf64_Shdr section;
    Elf64_Sym symbol;
    while (kp_cubin_symbol(u->c, u->n, &symbol))
        u->n++;
    while (kp_cubin_section(u->c, u->n_sections, &section))
        u->n_sections++;
    u->reached = calloc(u->n + 1, sizeof(*u->reached));
    u->named = calloc(u->n + 1, sizeof(*u->named));
    u->sections = calloc(u->n_sections + 1, sizeof(*u->sections));
    return u->reached && u->named && u->sections;
}

static void reach(const struct uses *u, size_t symbol)
{
    Elf64_Sym s;
    u->reached[symbol] = true;
    if (kp_cubin_symbol(u->c, symbol, &s) && ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx < u->n_sections)
        u->sections[s.st_shndx] = true;
}

/* Marks what the relocations of one section name. Returns whether a symbol was added to the kernel's. */
static bool read_relocations(const struct uses *u, const Elf64_Shdr *s)
{
    size_t each = s->sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    struct kp_bytes bytes = kp_cubin_bytes(u->c, s);
    bool added = false;
    for (; bytes.size >= each; bytes.at += each, bytes.size -= each) {
        Elf64_Rel r;
        memcpy(&r, bytes.at, sizeof(r)); /* the other kind begins with it */
        size_t symbol = ELF64_R_SYM(r.r_info);
        if (symbol >= u->n)
            continue;
        u->named[symbol] = true;
        if (!u->sections[s->sh_info] || u->reached[symbol])
            continue;
        reach(u, symbol);
        added = true;
    }
    return added;
}

static bool read_all_relocations(const struct uses *u)
{
    Elf64_Shdr s, of;
    bool added = false;
    for (size_t i = 1; kp_cubin_section(u->c, i, &s); i++)
        if ((s.sh_type == SHT_RELA || s.sh_type == SHT_REL) && kp_cubin_section(u->c, s.sh_info, &of) &&
            of.sh_flags & SHF_EXECINSTR)
            added |= read_relocations(u, &s);
    return added;
}

int kp_cubin_each_use(const struct kp_cubin *c, uint32_t symbol,
                      int (*fn)(const char *name, enum kp_cubin_object kind, void *arg), void *arg)
{
    struct uses u = {.c = c};
    enum kp_cubin_object kind;
    Elf64_Sym s;
    int rc = make_uses(&u) ? 0 : -ENOMEM;
    if (!rc && symbol >= u.n)
        rc = -ENOENT;
    if (!rc)
        reach(&u, symbol);
    while (!rc && read_all_relocations(&u))
        ;
    for (size_t i = 1; !rc && kp_cubin_symbol(c, i, &s); i++)
        if (is_object(c, i, &s, &kind) && (kind != KP_CUBIN_VARIABLE || u.reached[i] || !u.named[i])) {
            const char *name = kp_cubin_symbol_name(c, i);
            rc = fn(name ? name : "", kind, arg);
        }
    free(u.reached);
    free(u.named);
    free(u.sections);
    return rc;
}
