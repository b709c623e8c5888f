#include "preload/who/stack.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/room.h"
#include "preload/os/elf.h"
#include "preload/who/python.h"
#include "preload/who/stack_body.h"

/* A hash and the id found under it, in a table with open addressing; id 0 = free. */
struct slot {
    uint64_t hash, id;
};
struct table {
    struct slot *slots;
    size_t n, size; /* size is a power of 2, or 0 */
};

static struct {
    bool native, python;                 /* asked for */
    struct table by_address, by_content; /* this and the following under the lock */
    struct kp_raw_stack *stacks;         /* id - 1 */
    size_t n;
    size_t given; /* how many kp_stack_each_new has passed on */
    struct kp_stack_module *modules;
    size_t n_modules;
    struct kp_stack_names names;
} kept;
static struct kp_lock *const lock = &kp_locks[KP_LOCK_STACKS];

/* The result of a capture. */
struct capture {
    uint64_t addresses[KP_STACK_FRAMES];
    size_t n;
    struct kp_python_frame lines[KP_PYTHON_FRAMES];
    size_t n_lines;
};

void kp_stack_configure(const struct kp_options *o)
{
    kept.native |= kp_choices_has(&o->call_stack, KP_CALL_STACK_NATIVE);
    kept.python |= kp_choices_has(&o->call_stack, KP_CALL_STACK_PYTHON);
}

/* ---- tables ---- */

/* Mixes with the finalizer of MurmurHash3 over a running value: each input bit affects all of the result. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ (hash >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ (hash >> 33);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = mix(hash, (unsigned char)*text);
    return mix(hash, 0);
}

static uint64_t find(const struct table *t, uint64_t hash)
{
    for (size_t i = hash; t->size; i++) {
        const struct slot *s = &t->slots[i & (t->size - 1)];
        if (!s->id || s->hash == hash)
            return s->id;
    }
    return 0;
}

static void put(struct table *t, uint64_t hash, uint64_t id)
{
    size_t i = hash;
    while (t->slots[i & (t->size - 1)].id)
        i++;
    t->slots[i & (t->size - 1)] = (struct slot){hash, id};
    t->n++;
}

/* Keeps the table at most half full. */
static bool table_has_room(struct table *t)
{
    enum { FIRST_SIZE = 1024 };
    struct table larger = {.size = t->size ? 2 * t->size : FIRST_SIZE};
    if (2 * (t->n + 1) <= t->size)
        return true;
    larger.slots = calloc(larger.size, sizeof(*larger.slots));
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < t->size; i++)
        if (t->slots[i].id)
            put(&larger, t->slots[i].hash, t->slots[i].id);
    free(t->slots);
    *t = larger;
    return true;
}

/* ---- modules ---- */

struct search {
    uintptr_t address;
    uintptr_t base;
    struct kp_stack_module found;
    char path[PATH_MAX];
};

static void read_build_id(const char *notes, size_t size, struct kp_stack_module *out)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)notes;
        size_t name = (note->n_namesz + 3) & ~(size_t)3,
               all = sizeof(*note) + name + ((note->n_descsz + 3) & ~(size_t)3);
        if (all > size)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= sizeof(out->build_id) &&
            note->n_namesz == sizeof(ELF_NOTE_GNU) && !memcmp(note + 1, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU))) {
            out->build_id_size = note->n_descsz;
            memcpy(out->build_id, (const char *)(note + 1) + name, note->n_descsz);
        }
        notes += all;
        size -= all;
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *s = arg;
    bool here = false;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum && !here; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        here = p->p_type == PT_LOAD && s->address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz;
    }
    if (!here)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            read_build_id((const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, info->dlpi_phdr[i].p_memsz,
                          &s->found);
    strncpy(s->path, info->dlpi_name ? info->dlpi_name : "", sizeof(s->path) - 1);
    s->base = info->dlpi_addr;
    return 1;
}

static bool is_same(const struct kp_stack_module *a, const struct kp_stack_module *b)
{
    return !strcmp(a->path, b->path) && a->build_id_size == b->build_id_size &&
           !memcmp(a->build_id, b->build_id, a->build_id_size);
}

/* Returns index + 1 of the module, copied when new; 0 without memory. Call under the lock. */
static uint32_t module_number(const struct kp_stack_module *m)
{
    for (size_t i = 0; i < kept.n_modules; i++)
        if (is_same(&kept.modules[i], m))
            return (uint32_t)i + 1;
    if (!KP_ROOM(kept.modules, kept.n_modules))
        return 0;
    kept.modules[kept.n_modules] = *m;
    kept.modules[kept.n_modules].path = kp_strdup(m->path);
    return kept.modules[kept.n_modules].path ? (uint32_t)++kept.n_modules : 0;
}

static struct kp_stack_call locate(uint64_t address)
{
    struct search s = {.address = address};
    if (!dl_iterate_phdr(visit, &s))
        return (struct kp_stack_call){0, address};
    if (!*s.path)
        kp_stack_program(s.path, sizeof(s.path));
    s.found.path = s.path;
    uint32_t module = module_number(&s.found);
    return (struct kp_stack_call){module, module ? address - s.base : address};
}

/* ---- stacks ---- */

static void free_raw(struct kp_raw_stack *s)
{
    for (size_t i = 0; i < s->n_lines; i++) {
        free(s->lines[i].function);
        free(s->lines[i].file);
    }
    free(s->lines);
    free(s->calls);
}

static bool read_calls(const struct capture *c, struct kp_raw_stack *out)
{
    out->calls = calloc(c->n + 1, sizeof(*out->calls));
    for (size_t i = 0; out->calls && i < c->n; i++)
        /* Uses the call's last byte: the return address may belong to another function, or another line. */
        if (!kp_elf_is_own((const void *)(uintptr_t)c->addresses[i]))
            out->calls[out->n_calls++] = locate(c->addresses[i] - 1);
    return out->calls != NULL;
}

static bool read_lines(const struct capture *c, struct kp_raw_stack *out)
{
    out->lines = calloc(c->n_lines + 1, sizeof(*out->lines));
    for (size_t i = 0; out->lines && i < c->n_lines; i++) {
        struct kp_stack_line *l = &out->lines[out->n_lines];
        if (kp_python_describe(&c->lines[i], &l->function, &l->file))
            return false;
        l->line = c->lines[i].line;
        out->n_lines++;
    }
    return out->lines != NULL;
}

static uint64_t content_of(const struct kp_raw_stack *s)
{
    uint64_t hash = s->n_calls;
    for (size_t i = 0; i < s->n_calls; i++)
        hash = mix(mix(hash, s->calls[i].module), s->calls[i].offset);
    for (size_t i = 0; i < s->n_lines; i++)
        hash = mix(mix_text(mix_text(hash, s->lines[i].function), s->lines[i].file), s->lines[i].line);
    return hash;
}

/* Returns the same stack seen at other addresses, or a new one. Call under the lock. */
static uint64_t keep_stack(const struct capture *c, uint64_t hash)
{
    struct kp_raw_stack raw = {.n_calls = 0};
    if (!table_has_room(&kept.by_address) || !table_has_room(&kept.by_content) || !KP_ROOM(kept.stacks, kept.n) ||
        !read_calls(c, &raw) || !read_lines(c, &raw)) {
        free_raw(&raw);
        return 0;
    }
    uint64_t content = content_of(&raw), id = find(&kept.by_content, content);
    if (id) {
        free_raw(&raw);
    } else {
        kept.stacks[kept.n++] = raw;
        id = kept.n;
        put(&kept.by_content, content, id);
    }
    put(&kept.by_address, hash, id);
    return id;
}

/* Hashes the addresses with the generation, because an address may change its meaning once a module has been
 * unloaded. */
static uint64_t address_hash(const struct capture *c)
{
    uint64_t hash = kept.native ? kp_unwind_generation() : 0;
    for (size_t i = 0; i < c->n; i++)
        hash = mix(hash, c->addresses[i]);
    for (size_t i = 0; i < c->n_lines; i++)
        hash = mix(mix(hash, (uint64_t)(uintptr_t)c->lines[i].code), c->lines[i].line);
    return hash;
}

uint64_t kp_stack_capture(const struct kp_registers *from)
{
    struct capture c;
    int error = errno;
    if (!kept.native && !kept.python)
        return 0;
    c.n = kept.native ? kp_unwind(from, c.addresses, KP_STACK_FRAMES) : 0;
    c.n_lines = kept.python ? kp_python_frames(c.lines, KP_PYTHON_FRAMES) : 0;
    uint64_t hash = address_hash(&c);
    kp_lock_take(lock, KP_FOREVER);
    uint64_t id = find(&kept.by_address, hash);
    if (!id && (c.n || c.n_lines))
        id = keep_stack(&c, hash);
    kp_lock_give(lock);
    errno = error;
    return id;
}

/* ---- reading stacks ---- */

int kp_stack_get(uint64_t id, struct kp_stack *out)
{
    int rc = -ENOENT;
    *out = (struct kp_stack){.id = id};
    kp_lock_take(lock, KP_FOREVER);
    if (id && id <= kept.n)
        rc = kp_stack_frames(&kept.stacks[id - 1], kept.modules, &kept.names, out);
    kp_lock_give(lock);
    return rc;
}

int kp_stack_each_new(int (*fn)(const struct kp_stack *s, void *arg), void *arg)
{
    int rc = 0;
    while (!rc) {
        struct kp_stack s;
        if (kp_stack_get(kept.given + 1, &s))
            return 0;
        rc = fn(&s, arg);
        kp_frames_free(&s);
        kept.given += !rc;
    }
    return rc;
}

/* Returns the calls of all stacks, sorted, each once; malloc'ed. NULL if memory is short. Call under the lock. */
static struct kp_stack_call *all_calls(size_t *n)
{
    size_t total = 0, unique = 0;
    for (size_t i = 0; i < kept.n; i++)
        total += kept.stacks[i].n_calls;
    struct kp_stack_call *all = calloc(total + 1, sizeof(*all));
    *n = 0;
    if (!all)
        return NULL;
    total = 0;
    for (size_t i = 0; i < kept.n; i++) {
        memcpy(all + total, kept.stacks[i].calls, kept.stacks[i].n_calls * sizeof(*all));
        total += kept.stacks[i].n_calls;
    }
    qsort(all, total, sizeof(*all), kp_stack_compare_calls);
    for (size_t i = 0; i < total; i++)
        if (!unique || kp_stack_compare_calls(&all[unique - 1], &all[i]))
            all[unique++] = all[i];
    *n = unique;
    return all;
}

uint64_t kp_stack_name_all(void)
{
    struct kp_stack_names names = {.n = 0};
    size_t n = 0;
    kp_lock_take(lock, KP_FOREVER);
    struct kp_stack_call *calls = all_calls(&n);
    uint64_t stacks = kept.n;
    if (calls && n && !kp_stack_look_up(calls, n, kept.modules, &names)) {
        kp_stack_names_free(&kept.names);
        kept.names = names;
    }
    kp_lock_give(lock);
    free(calls);
    return n ? stacks : 0;
}

const char *kp_stack_python_missing(void)
{
    return kept.python ? kp_python_why_not() : NULL;
}
