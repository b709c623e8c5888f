#include "preload/os/rebind.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/text.h"
#include "base/wait_limits.h"
#include "preload/os/elf.h"

/* The relocations of one object that name a symbol, and what they need. */
struct image {
    const char *path;
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t bytes[2];
    uintptr_t sealed, sealed_end; /* the pages that are read-only since it was relocated */
};

static uintptr_t page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static uintptr_t page_of(uintptr_t address)
{
    return address & ~(page_bytes() - 1);
}

static const void *at(const struct image *o, ElfW(Addr) p)
{
    return (const void *)(p < o->base ? o->base + p : p); /* the loader relocates these of most objects */
}

static void read_entry(struct image *o, const ElfW(Dyn) * d)
{
    switch (d->d_tag) {
    case DT_SYMTAB:
        o->symbols = at(o, d->d_un.d_ptr);
        break;
    case DT_STRTAB:
        o->strings = at(o, d->d_un.d_ptr);
        break;
    case DT_JMPREL:
        o->tables[0] = at(o, d->d_un.d_ptr);
        break;
    case DT_PLTRELSZ:
        o->bytes[0] = d->d_un.d_val;
        break;
    case DT_RELA:
        o->tables[1] = at(o, d->d_un.d_ptr);
        break;
    case DT_RELASZ:
        o->bytes[1] = d->d_un.d_val;
        break;
    default:
        break;
    }
}

static bool read_image(const struct dl_phdr_info *info, struct image *o)
{
    *o = (struct image){.path = info->dlpi_name ? info->dlpi_name : "", .base = info->dlpi_addr};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_DYNAMIC)
            for (const ElfW(Dyn) *d = (const void *)(o->base + p->p_vaddr); d->d_tag != DT_NULL; d++)
                read_entry(o, d);
        if (p->p_type == PT_GNU_RELRO) {
            o->sealed = page_of(o->base + p->p_vaddr);
            o->sealed_end = page_of(o->base + p->p_vaddr + p->p_memsz);
        }
    }
    return o->symbols && o->strings;
}

static bool begins_with_one(const char *const *list, const char *path)
{
    const char *file = kp_base_name(path);
    for (; *list; list++)
        if (!strncmp(file, *list, strlen(*list)))
            return true;
    return false;
}

/* Objects whose calls stay as they are: the system's, and those that this library depends on. */
static const char *const left_alone[] = {"ld-linux",   "linux-vdso", "libc.so",   "libdl.so",    "libpthread",
                                         "libcuda.so", "libcupti",   "libnvperf", "libcheckpoi", "libpcsampl",
                                         "libnvidia-", "libasan",    "libtsan",   "libclang_rt", NULL};
/* Objects whose functions this library stands in front of. */
static const char *const stood_before[] = {"libc.so", "libdl.so", "libcuda.so", "libcudart", "libcupti", NULL};

struct owner {
    const void *address;
    bool stood_before;
};

static int visit_owner(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct owner *w = arg;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || (uintptr_t)w->address - (info->dlpi_addr + p->p_vaddr) >= p->p_memsz)
            continue;
        w->stood_before = begins_with_one(stood_before, info->dlpi_name ? info->dlpi_name : "");
        return 1;
    }
    return 0;
}

/* Returns true if the function at `address` is one that this library stands in front of, and not another definition. */
static bool is_stood_before(const void *address)
{
    struct owner w = {.address = address};
    return address && dl_iterate_phdr(visit_owner, &w) && w.stood_before;
}

static bool change(const struct image *o, uintptr_t slot, uintptr_t to)
{
    void *page = (void *)page_of(slot);
    bool sealed = slot >= o->sealed && slot < o->sealed_end;
    if (sealed && mprotect(page, page_bytes(), PROT_READ | PROT_WRITE))
        return false;
    __atomic_store_n((uintptr_t *)slot, to, __ATOMIC_RELEASE);
    if (sealed)
        mprotect(page, page_bytes(), PROT_READ);
    return true;
}

/* Redirects one call here if it should be. A lazily bound call points to code of its own object until it is first
 * made. */
static bool rebind(const struct image *o, const ElfW(Rela) * r)
{
    const ElfW(Sym) *s = &o->symbols[ELF64_R_SYM(r->r_info)];
    uint32_t type = ELF64_R_TYPE(r->r_info);
    bool holds_address =
        type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || (type == R_X86_64_64 && !r->r_addend);
    if (!holds_address || s->st_shndx != SHN_UNDEF || !ELF64_R_SYM(r->r_info))
        return false;
    const void *door = kp_elf_own(o->strings + s->st_name);
    uintptr_t slot = o->base + r->r_offset, now = door ? *(const uintptr_t *)slot : 0;
    if (!now || now == (uintptr_t)door || kp_elf_is_own((const void *)now))
        return false;
    bool unbound = type == R_X86_64_JUMP_SLOT && kp_elf_same((const void *)slot, (const void *)now);
    const void *leads_to = unbound ? kp_elf_find_for((const void *)slot, o->strings + s->st_name) : (const void *)now;
    return is_stood_before(leads_to) && change(o, slot, (uintptr_t)door);
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    size_t *changed = arg;
    struct image o;
    (void)size;
    if (!read_image(info, &o) || kp_elf_is_own(o.strings) || begins_with_one(left_alone, o.path))
        return 0;
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; o.tables[t] && i < o.bytes[t] / sizeof(ElfW(Rela)); i++)
            *changed += rebind(&o, &o.tables[t][i]);
    return 0;
}

size_t kp_rebind_all(void)
{
    struct kp_lock *lock = &kp_locks[KP_LOCK_OBJECTS];
    size_t changed = 0;
    /* No fork happens meanwhile: it would leave the loader's lock held. */
    bool taken = kp_lock_take(lock, kp_limit_first(KP_WAIT_OBJECTS));
    dl_iterate_phdr(visit, &changed);
    if (taken)
        kp_lock_give(lock);
    return changed;
}
