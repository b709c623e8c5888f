/* The variables of a module. */
#include <string.h>

#include "collectors/code/cubin_internal.h"

static bool begins_with_any(const char *name, const char *const *prefixes)
{
    while (name && *prefixes && strncmp(name, *prefixes, strlen(*prefixes)))
        prefixes++;
    return name && *prefixes;
}

/* KP_VENDOR: prefixes of the names of sections with variables; bank 3 has the program's constants, other banks those of
 * the compiler. Constants that the compiler itself adds to the variables have such names. */
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
