#include "preload/os/elf.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "base/wait_limits.h"

/* The data that a walk needs about one object. */
struct object {
    const char *path, *soname;
    uintptr_t base;
    const ElfW(Phdr) * phdr;
    size_t n_phdr;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
    const ElfW(Half) * versions;
    const ElfW(Dyn) * dynamic;
};

static bool contains(const struct object *o, const void *address)
{
    for (size_t i = 0; i < o->n_phdr; i++) {
        uintptr_t start = o->base + o->phdr[i].p_vaddr;
        if (o->phdr[i].p_type == PT_LOAD && (uintptr_t)address - start < o->phdr[i].p_memsz)
            return true;
    }
    return false;
}

/* Returns a pointer of the dynamic section: glibc relocates them in place; some objects (the vDSO) keep them as
 * offsets. */
static const void *pointer(const struct object *o, ElfW(Addr) p)
{
    return (const void *)(p < o->base ? o->base + p : p);
}

/* Reads the tables from the dynamic section at o->dynamic. */
static bool read_dynamic(struct object *o)
{
    size_t soname = 0;
    bool has_soname = false;
    for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++)
        switch (d->d_tag) {
        case DT_SYMTAB:
            o->symbols = pointer(o, d->d_un.d_ptr);
            break;
        case DT_STRTAB:
            o->strings = pointer(o, d->d_un.d_ptr);
            break;
        case DT_GNU_HASH:
            o->gnu_hash = pointer(o, d->d_un.d_ptr);
            break;
        case DT_HASH:
            o->hash = pointer(o, d->d_un.d_ptr);
            break;
        case DT_VERSYM:
            o->versions = pointer(o, d->d_un.d_ptr);
            break;
        case DT_SONAME:
            soname = d->d_un.d_val;
            has_soname = true;
            break;
        default:
            break;
        }
    if (!o->symbols || !o->strings)
        return false;
    o->soname = has_soname ? o->strings + soname : "";
    return true;
}

static bool read_object(const struct dl_phdr_info *info, struct object *o)
{
    *o = (struct object){.path = info->dlpi_name ? info->dlpi_name : "",
                         .base = info->dlpi_addr,
                         .phdr = info->dlpi_phdr,
                         .n_phdr = info->dlpi_phnum};
    for (size_t i = 0; i < o->n_phdr; i++)
        if (o->phdr[i].p_type == PT_DYNAMIC)
            o->dynamic = (const ElfW(Dyn) *)(o->base + o->phdr[i].p_vaddr);
    return read_dynamic(o);
}

/* Compares like strcmp, but calls nothing: see kp_elf_bootstrap. */
static bool equal(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* Returns true if a symbol is a defined, default-version function of that name. */
static bool fits(const struct object *o, uint32_t index, const char *name)
{
    const ElfW(Sym) *s = &o->symbols[index];
    bool hidden = o->versions && (o->versions[index] & 0x8000);
    return s->st_shndx != SHN_UNDEF && (s->st_info & 0xf) == STT_FUNC && !hidden &&
           equal(o->strings + s->st_name, name);
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

static uint32_t find_gnu(const struct object *o, const char *name)
{
    const uint32_t *table = o->gnu_hash;
    uint32_t n_buckets = table[0], first = table[1], bloom_words = table[2];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)&table[4];
    const uint32_t *buckets = (const uint32_t *)&bloom[bloom_words];
    const uint32_t *chain = &buckets[n_buckets];
    uint32_t hash = gnu_hash_of(name);
    if (!n_buckets)
        return 0;
    uint32_t i = buckets[hash % n_buckets];
    if (i < first)
        return 0;
    for (;; i++) {
        uint32_t h = chain[i - first];
        if ((h | 1) == (hash | 1) && fits(o, i, name))
            return i;
        if (h & 1)
            return 0;
    }
}

static uint32_t find_sysv(const struct object *o, const char *name)
{
    for (uint32_t i = 1; i < o->hash[1]; i++)
        if (fits(o, i, name))
            return i;
    return 0;
}

static void *find_in(const struct object *o, const char *name)
{
    uint32_t i = o->gnu_hash ? find_gnu(o, name) : o->hash ? find_sysv(o, name) : 0;
    return i ? (void *)(o->base + o->symbols[i].st_value) : NULL;
}

static bool named(const struct object *o, const char *prefix)
{
    size_t n = strlen(prefix);
    return !strncmp(o->soname, prefix, n) || !strncmp(kp_base_name(o->path), prefix, n);
}

static bool is_self(const struct object *o)
{
    static const char here;
    return contains(o, &here);
}

/* ---- walks ---- */

extern const ElfW(Dyn) own_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));

void *kp_elf_bootstrap(const char *name)
{
    extern struct r_debug _r_debug __attribute__((weak));
    const struct link_map *own = &_r_debug ? _r_debug.r_map : NULL;
    while (own && own->l_ld != own_dynamic)
        own = own->l_next;
    /* Search after this library, like RTLD_NEXT: an interposer before us calls us, and we would call it back. Search
     * before it only if this library was opened late: then nothing comes after. */
    for (int wrapped = 0; wrapped < 2; wrapped++)
        for (const struct link_map *l = wrapped ? _r_debug.r_map
                                        : own   ? own->l_next
                                                : NULL;
             l && l != own; l = l->l_next) {
            struct object o = {.base = l->l_addr, .dynamic = l->l_ld};
            void *found = read_dynamic(&o) ? find_in(&o, name) : NULL;
            if (found)
                return found;
        }
    return NULL;
}

/* Walks the loaded objects while no fork is made. glibc does not free the loader's lock in a child that another thread
 * forks meanwhile. If forks cannot be held back, it walks anyway. */
static void walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg)
{
    struct kp_lock *lock = &kp_locks[KP_LOCK_OBJECTS];
    bool taken = kp_lock_take(lock, kp_limit_first(KP_WAIT_OBJECTS));
    dl_iterate_phdr(visit, arg);
    if (taken)
        kp_lock_give(lock);
}

struct by_name {
    const char *soname, *name;
    void *found;
};

static int visit_by_name(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct by_name *w = arg;
    struct object o;
    (void)size;
    if (!read_object(info, &o) || is_self(&o) || (w->soname && !named(&o, w->soname)))
        return 0;
    w->found = find_in(&o, w->name);
    return w->found != NULL;
}

void *kp_elf_find(const char *soname, const char *name)
{
    struct by_name w = {.soname = soname, .name = name};
    walk(visit_by_name, &w);
    return w.found;
}

static int visit_all(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct by_name *w = arg;
    struct object o;
    (void)size;
    void *found = read_object(info, &o) && !is_self(&o) ? find_in(&o, w->name) : NULL;
    bool other = found && (w->found || !named(&o, w->soname));
    w->found = other ? NULL : found ? found : w->found;
    return other;
}

void *kp_elf_find_only(const char *soname, const char *name)
{
    struct by_name w = {.soname = soname, .name = name};
    walk(visit_all, &w);
    return w.found;
}

/* `use` gets the object that is found: after the walk another thread may have unloaded it. */
struct by_address {
    const void *address;
    const char *soname;
    bool (*use)(const struct object *o, void *arg);
    void *arg;
    bool found;
};

static int visit_by_address(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct by_address *w = arg;
    struct object o;
    (void)size;
    if (!read_object(info, &o))
        return 0;
    bool is = w->address ? contains(&o, w->address) : !is_self(&o) && named(&o, w->soname);
    w->found = is && w->use(&o, w->arg);
    return is;
}

struct directory {
    char *text;
    size_t size;
};

static bool copy_directory(const struct object *o, void *arg)
{
    const struct directory *to = arg;
    const char *slash = strrchr(o->path, '/');
    if (!slash || (size_t)(slash - o->path) >= to->size)
        return false;
    memcpy(to->text, o->path, (size_t)(slash - o->path));
    to->text[slash - o->path] = '\0';
    return true;
}

bool kp_elf_directory_of(const void *address, char *dir, size_t size)
{
    struct directory to = {dir, size};
    struct by_address w = {.address = address, .use = copy_directory, .arg = &to};
    walk(visit_by_address, &w);
    return w.found;
}

bool kp_elf_directory(const char *soname, char *dir, size_t size)
{
    struct directory to = {dir, size};
    struct by_address w = {.soname = soname, .use = copy_directory, .arg = &to};
    walk(visit_by_address, &w);
    return w.found;
}

/* The needed objects of an object, breadth first, without allocating. A bounded list of sonames suffices: only the
 * neighbourhood of the caller matters, because a second search covers all objects. The names stay valid: the caller,
 * which is running, holds what it needs. */
enum { MAX_NEEDED = 128 };

struct needed {
    const char *names[MAX_NEEDED];
    size_t n;
};

static bool add_needed(const struct object *o, void *arg)
{
    struct needed *list = arg;
    for (const ElfW(Dyn) *d = o->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag != DT_NEEDED || list->n == MAX_NEEDED)
            continue;
        const char *name = o->strings + d->d_un.d_val;
        bool known = false;
        for (size_t i = 0; i < list->n && !known; i++)
            known = !strcmp(list->names[i], name);
        if (!known)
            list->names[list->n++] = name;
    }
    return true;
}

struct by_exact {
    const char *soname, *name;
    struct needed *list; /* what the object needs is added */
    void *found;
};

static int visit_exact(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct by_exact *w = arg;
    struct object o;
    (void)size;
    if (!read_object(info, &o) || is_self(&o) ||
        (strcmp(o.soname, w->soname) && strcmp(kp_base_name(o.path), w->soname)))
        return 0;
    w->found = find_in(&o, w->name);
    add_needed(&o, w->list);
    return 1;
}

void *kp_elf_find_for(const void *caller, const char *name)
{
    struct needed list = {.n = 0};
    struct by_address from = {.address = caller, .use = add_needed, .arg = &list};
    walk(visit_by_address, &from);
    for (size_t i = 0; i < list.n; i++) {
        struct by_exact w = {.soname = list.names[i], .name = name, .list = &list};
        walk(visit_exact, &w);
        if (w.found)
            return w.found;
    }
    return kp_elf_find(NULL, name);
}

static bool take_range(const struct object *o, void *arg)
{
    struct kp_elf_range *out = arg;
    *out = (struct kp_elf_range){UINTPTR_MAX, 0};
    for (size_t i = 0; i < o->n_phdr; i++) {
        const ElfW(Phdr) *p = &o->phdr[i];
        uintptr_t start = o->base + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        out->start = start < out->start ? start : out->start;
        out->end = start + p->p_memsz > out->end ? start + p->p_memsz : out->end;
    }
    return true;
}

bool kp_elf_range(const void *address, struct kp_elf_range *out)
{
    struct by_address w = {.address = address, .use = take_range, .arg = out};
    walk(visit_by_address, &w);
    return w.found;
}

bool kp_elf_same(const void *a, const void *b)
{
    struct kp_elf_range r;
    return kp_elf_range(a, &r) && (uintptr_t)b >= r.start && (uintptr_t)b < r.end;
}

/* From the linker: the first byte of the object that contains this code. */
extern const ElfW(Ehdr) own_header __asm__("__ehdr_start") __attribute__((visibility("hidden")));

static uintptr_t own_base(void)
{
    const ElfW(Phdr) *phdr = (const ElfW(Phdr) *)((const char *)&own_header + own_header.e_phoff);
    for (size_t i = 0; i < own_header.e_phnum; i++)
        if (phdr[i].p_type == PT_LOAD && !phdr[i].p_offset)
            return (uintptr_t)&own_header - phdr[i].p_vaddr;
    return 0;
}

void *kp_elf_own(const char *name)
{
    struct object own = {.base = own_base(), .dynamic = own_dynamic};
    return read_dynamic(&own) ? find_in(&own, name) : NULL;
}

bool kp_elf_is_own(const void *address)
{
    struct object own = {.phdr = (const ElfW(Phdr) *)((const char *)&own_header + own_header.e_phoff),
                         .n_phdr = own_header.e_phnum,
                         .base = own_base()};
    return contains(&own, address);
}
