#include "collectors/code/codes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/room.h"
#include "base/text.h"
#include "base/wait_limits.h"
#include "collectors/code/cubin.h"
#include "collectors/code/disassemble.h"
#include "report/define/source.h"

struct entry {
    struct kp_code code;
    bool read;
};

struct kp_codes {
    const void *(*cubin)(uint32_t crc, size_t *size);
    bool texts;
    struct entry **entries; /* by id, from 1 on; entries never move */
    size_t n;
    uint64_t *slots; /* hash of the entries by function and CRC: ids, 0 = free */
    size_t n_slots;  /* a power of 2 */
    size_t ptx;      /* bytes of PTX of all functions */
};

static struct kp_lock *const lock = &kp_locks[KP_LOCK_CODES];

enum { FIRST_SLOTS = 256, PTX_OF_ALL = 64 << 20 /* bytes, for all functions together */ };

struct kp_codes *kp_codes_new(const void *(*cubin)(uint32_t crc, size_t *size), bool texts)
{
    struct kp_codes *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->cubin = cubin;
    c->texts = texts;
    return c;
}

void kp_codes_free(struct kp_codes *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++) {
        kp_code_free(&c->entries[i]->code);
        free(c->entries[i]);
    }
    free(c->entries);
    free(c->slots);
    free(c);
}

/* Returns the function's slot, or a free one for it. There is always a free one. */
static uint64_t *slot_of_code(const struct kp_codes *c, uint32_t crc, const char *name)
{
    for (size_t i = kp_hash(name, strlen(name), crc);; i++) {
        uint64_t *slot = &c->slots[i & (c->n_slots - 1)];
        if (!*slot)
            return slot;
        const struct kp_code *code = &c->entries[*slot - 1]->code;
        if (code->crc == crc && !strcmp(code->function, name))
            return slot;
    }
}

static bool grow_slots(struct kp_codes *c)
{
    if (2 * (c->n + 1) < c->n_slots)
        return true;
    size_t n = c->n_slots ? 2 * c->n_slots : FIRST_SLOTS;
    uint64_t *slots = calloc(n, sizeof(*slots));
    if (!slots)
        return false;
    free(c->slots);
    c->slots = slots;
    c->n_slots = n;
    for (size_t i = 0; i < c->n; i++)
        *slot_of_code(c, (uint32_t)c->entries[i]->code.crc, c->entries[i]->code.function) = i + 1;
    return true;
}

static uint64_t add(struct kp_codes *c, uint32_t crc, const char *name)
{
    struct entry *e = calloc(1, sizeof(*e));
    if (!e || !KP_ROOM(c->entries, c->n) || !grow_slots(c) || !(e->code.function = strdup(name))) {
        free(e);
        return 0;
    }
    e->code.crc = crc;
    e->code.id = c->n + 1;
    *slot_of_code(c, crc, name) = e->code.id;
    c->entries[c->n++] = e;
    return e->code.id;
}

uint64_t kp_codes_id(struct kp_codes *c, uint32_t crc, const char *name)
{
    kp_lock_take(lock, KP_FOREVER);
    uint64_t id = c->n_slots ? *slot_of_code(c, crc, name) : 0;
    if (!id)
        id = add(c, crc, name);
    kp_lock_give(lock);
    return id;
}

uint64_t kp_codes_count(struct kp_codes *c)
{
    kp_lock_take(lock, KP_FOREVER);
    uint64_t n = c->n;
    kp_lock_give(lock);
    return n;
}

/* Adds the facts of the image to those already known. */
static void read_image(struct kp_codes *c, struct kp_code *code)
{
    size_t size = 0;
    const void *image = c->cubin((uint32_t)code->crc, &size);
    struct kp_cubin *cubin = NULL;
    struct kp_code found = {0};
    if (!image || kp_cubin_open(image, size, &cubin))
        return;
    if (!kp_cubin_code(cubin, code->function, &found)) {
        found.id = code->id;
        found.crc = code->crc;
        free(found.function);
        found.function = code->function;
        *code = found;
    }
    kp_cubin_close(cubin);
}

const struct kp_code *kp_codes_get(struct kp_codes *c, uint64_t id)
{
    struct entry *e = NULL;
    kp_lock_take(lock, KP_FOREVER);
    if (id && id <= c->n) {
        e = c->entries[id - 1];
        if (!e->read) {
            read_image(c, &e->code);
            e->read = true;
        }
    }
    kp_lock_give(lock);
    return e ? &e->code : NULL;
}

/* ---- texts ---- */

/* Counts the functions of the module of codes[0] among `n`, and moves them to the front. */
static size_t same_module_first(struct kp_code **codes, size_t n)
{
    size_t same = 1;
    for (size_t i = 1; i < n; i++)
        if (codes[i]->crc == codes[0]->crc) {
            struct kp_code *other = codes[same];
            codes[same++] = codes[i];
            codes[i] = other;
        }
    return same;
}

/* Adds the PTX of `n` functions of a module while there is room. */
static void add_ptx(struct kp_codes *c, const void *image, size_t size, struct kp_code *const *codes, size_t n)
{
    struct kp_cubin *cubin = NULL;
    if (kp_cubin_open(image, size, &cubin))
        return;
    for (size_t i = 0; i < n && c->ptx < PTX_OF_ALL; i++) {
        kp_cubin_ptx(cubin, codes[i]);
        for (size_t k = 0; k < codes[i]->n_ptx; k++)
            c->ptx += strlen(codes[i]->ptx[k].text);
    }
    kp_cubin_close(cubin);
}

/* Adds the texts that the modules of the functions have. */
static void read_modules(struct kp_codes *c, struct kp_code **codes, size_t n)
{
    char *tool = n ? kp_disassembler_find() : NULL;
    for (size_t same; n; codes += same, n -= same) {
        size_t size = 0;
        const void *image = c->cubin((uint32_t)codes[0]->crc, &size);
        same = same_module_first(codes, n);
        if (image)
            add_ptx(c, image, size, codes, same);
        if (image && tool)
            kp_disassemble(tool, image, size, codes, same, (unsigned)kp_limit_first(KP_WAIT_DISASSEMBLER));
    }
    free(tool);
}

/* Fills texts without the lock, which launches need: nobody reads an id's texts before it has been prepared. */
void kp_codes_prepare(struct kp_codes *c, uint64_t from, uint64_t to)
{
    struct kp_code **codes = c->texts && to > from ? calloc(to - from, sizeof(struct kp_code *)) : NULL;
    size_t n = 0;
    for (uint64_t id = from; codes && id < to; id++) {
        struct kp_code *code = (struct kp_code *)kp_codes_get(c, id);
        if (!code || !code->n_instructions)
            continue;
        kp_source_embed(code);
        codes[n++] = code;
    }
    if (codes)
        read_modules(c, codes, n);
    free(codes);
}

/* ---- copies ---- */

static bool copy_instructions(const struct kp_code *from, struct kp_code *to)
{
    to->instructions = calloc(from->n_instructions + 1, sizeof(*to->instructions));
    for (size_t i = 0; to->instructions && i < from->n_instructions; i++) {
        const struct kp_instruction *f = &from->instructions[i];
        struct kp_instruction *t = &to->instructions[to->n_instructions++];
        *t = *f;
        t->opcode = kp_strdup(f->opcode);
        t->text = kp_strdup(f->text);
        if (!t->opcode || !t->text)
            return false;
    }
    return to->instructions;
}

static bool copy_places(const struct kp_code *from, struct kp_code *to)
{
    to->locations = calloc(from->n_locations + 1, sizeof(*to->locations));
    to->files = calloc(from->n_files + 1, sizeof(*to->files));
    if (!to->locations || !to->files)
        return false;
    for (size_t i = 0; i < from->n_locations; i++) {
        struct kp_location *t = &to->locations[to->n_locations++];
        *t = from->locations[i];
        if (!(t->function = kp_strdup(t->function)))
            return false;
    }
    for (size_t i = 0; i < from->n_files; i++) {
        struct kp_source_file *t = &to->files[to->n_files++];
        *t = (struct kp_source_file){kp_strdup(from->files[i].path), NULL};
        if (!t->path || (from->files[i].text && !(t->text = strdup(from->files[i].text))))
            return false;
    }
    return true;
}

static bool copy_ptx(const struct kp_code *from, struct kp_code *to)
{
    for (size_t i = 0; i < from->n_ptx; i++)
        if (kp_code_add_ptx(to, from->ptx[i].line, from->ptx[i].text, SIZE_MAX))
            return false;
    return true;
}

static int copy_code(void *arg, uint64_t id, struct kp_code *out)
{
    const struct kp_code *from = kp_codes_get(arg, id);
    *out = (struct kp_code){0};
    if (!from)
        return -ENOENT;
    out->id = from->id;
    out->crc = from->crc;
    out->function = kp_strdup(from->function);
    if (out->function && copy_instructions(from, out) && copy_places(from, out) && copy_ptx(from, out))
        return 0;
    kp_code_free(out);
    return -ENOMEM;
}

struct kp_lookup kp_codes_lookup(struct kp_codes *c)
{
    return (struct kp_lookup){.code = copy_code, .arg = c};
}
