#include "preload/who/unwind.h"

#include <libunwind.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/lock.h"
#include "preload/os/symbols.h"

/* Part of libunwind's archive, though no header declares it: perf and others that supply their own memory call it as
 * well. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *table,
                                              unw_proc_info_t *out, int need_unwind_info, void *arg);

/* Return addresses whose rules are cached; libunwind accepts powers of 2 up to 2^15, and uses 230 bytes for each. */
enum { KEPT_RULES = 1 << 14 };

struct range {
    uintptr_t start, size;
};

/* One unwinding. */
struct walk {
    const struct kp_registers *from;
    struct range stack;  /* from its first frame to the end */
    struct range tables; /* the segment of the last unwind tables found */
};

static bool inside(const struct range *r, uintptr_t address, size_t bytes)
{
    return address - r->start < r->size && r->size - (address - r->start) >= bytes;
}

/* ---- memory ---- */

typedef unw_word_t __attribute__((aligned(1), may_alias)) any_word;

/* Reads memory; a sanitiser knows neither other frames' variables nor the tables. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static unw_word_t load(uintptr_t address)
{
    return *(const volatile any_word *)address;
}

/* Reads memory that may vanish at any time, or never existed: the operating system copies it, or reports an error. */
static int ask_kernel(uintptr_t address, unw_word_t *value)
{
    struct iovec to = {value, sizeof(*value)}, from = {(void *)address, sizeof(*value)};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof(*value) ? 0 : -UNW_EINVAL;
}

static int access_memory(unw_addr_space_t as, unw_word_t address, unw_word_t *value, int write, void *arg)
{
    const struct walk *w = arg;
    (void)as, (void)write; /* a walk only reads */
    if (!inside(&w->stack, address, sizeof(*value)) && !inside(&w->tables, address, sizeof(*value)))
        return ask_kernel(address, value);
    *value = load(address);
    return 0;
}

/* Calls do not preserve the other registers. */
static const struct {
    unw_regnum_t number;
    size_t offset;
} preserved[] = {
    {UNW_X86_64_RBX, offsetof(struct kp_registers, rbx)}, {UNW_X86_64_RBP, offsetof(struct kp_registers, rbp)},
    {UNW_X86_64_R12, offsetof(struct kp_registers, r12)}, {UNW_X86_64_R13, offsetof(struct kp_registers, r13)},
    {UNW_X86_64_R14, offsetof(struct kp_registers, r14)}, {UNW_X86_64_R15, offsetof(struct kp_registers, r15)},
    {UNW_X86_64_RSP, offsetof(struct kp_registers, rsp)}, {UNW_X86_64_RIP, offsetof(struct kp_registers, rip)},
};

static int access_register(unw_addr_space_t as, unw_regnum_t number, unw_word_t *value, int write, void *arg)
{
    const struct walk *w = arg;
    (void)as, (void)write; /* a walk only reads */
    for (size_t i = 0; i < sizeof(preserved) / sizeof(*preserved); i++)
        if (preserved[i].number == number) {
            memcpy(value, (const char *)w->from + preserved[i].offset, sizeof(*value));
            return 0;
        }
    return -UNW_EBADREG;
}

static int no_fp_register(unw_addr_space_t as, unw_regnum_t number, unw_fpreg_t *value, int write, void *arg)
{
    (void)as, (void)number, (void)value, (void)write, (void)arg;
    return -UNW_EBADREG;
}

/* ---- unwind tables ---- */

/* The table in .eh_frame_hdr, as the LSB describes it. */
struct table_header {
    uint8_t version, frame_encoding, count_encoding, table_encoding;
    int32_t frames; /* these two in the encodings checked below */
    uint32_t count;
};

enum {
    PCREL_SDATA4 = 0x1b,
    UDATA4 = 0x03,
    DATAREL_SDATA4 = 0x3b,
    TABLE_ENTRY = 8, /* bytes */
};

struct search {
    uintptr_t ip;
    unw_dyn_info_t table;
    struct range segment; /* that contains the table */
};

static int find_table(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *s = arg;
    const ElfW(Phdr) *code = NULL, *header = NULL, *holder = NULL;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && s->ip - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
            code = p;
        if (p->p_type == PT_GNU_EH_FRAME)
            header = p;
    }
    if (!code)
        return 0;
    for (size_t i = 0; header && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && header->p_vaddr - p->p_vaddr < p->p_filesz)
            holder = p;
    }
    const struct table_header *h = header ? (const void *)(info->dlpi_addr + header->p_vaddr) : NULL;
    if (!holder || header->p_memsz < sizeof(*h) || h->version != 1 || h->frame_encoding != PCREL_SDATA4 ||
        h->count_encoding != UDATA4 || h->table_encoding != DATAREL_SDATA4)
        return -1;
    s->segment = (struct range){info->dlpi_addr + holder->p_vaddr, holder->p_filesz};
    s->table = (unw_dyn_info_t){.format = UNW_INFO_FORMAT_REMOTE_TABLE,
                                .start_ip = info->dlpi_addr + code->p_vaddr,
                                .end_ip = info->dlpi_addr + code->p_vaddr + code->p_memsz};
    s->table.u.rti.segbase = (unw_word_t)(uintptr_t)h;
    s->table.u.rti.table_data = (unw_word_t)(uintptr_t)(h + 1);
    s->table.u.rti.table_len = (unw_word_t)h->count * TABLE_ENTRY / sizeof(unw_word_t);
    return 1;
}

static int find_rules(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *out, int need_unwind_info, void *arg)
{
    struct walk *w = arg;
    struct search s = {.ip = ip};
    if (dl_iterate_phdr(find_table, &s) <= 0)
        return -UNW_ENOINFO;
    w->tables = s.segment;
    return UNW_OBJ(dwarf_search_unwind_table)(as, ip, &s.table, out, need_unwind_info, arg);
}

static void put_rules(unw_addr_space_t as, unw_proc_info_t *info, void *arg)
{
    (void)as, (void)info, (void)arg;
}

static int no_dynamic_rules(unw_addr_space_t as, unw_word_t *address, void *arg)
{
    (void)as, (void)address, (void)arg;
    return -UNW_ENOINFO;
}

/* ---- the stack's end ---- */

/* Returns this thread's own stack. Other stacks (coroutines, signal stacks) are read through the operating system: such
 * memory may be freed unnoticed. */
static struct range own_stack(uintptr_t sp)
{
    static __thread struct range own __attribute__((tls_model("initial-exec")));
    static __thread bool known __attribute__((tls_model("initial-exec")));
    if (!known) {
        int (*attributes)(pthread_t thread, pthread_attr_t * attr);
        pthread_attr_t attr;
        void *start = NULL, *found = kp_symbols_dl()->sym(RTLD_DEFAULT, "pthread_getattr_np");
        size_t size = 0;
        memcpy(&attributes, &found, sizeof(found));
        if (attributes && !attributes(pthread_self(), &attr)) {
            pthread_attr_getstack(&attr, &start, &size);
            pthread_attr_destroy(&attr);
        }
        own = (struct range){(uintptr_t)start, size};
        known = true;
    }
    if (!inside(&own, sp, 1))
        return (struct range){0, 0};
    return (struct range){sp, own.size - (sp - own.start)};
}

/* ---- unwinding ---- */

static struct {
    _Atomic(unw_addr_space_t) as;
    atomic_uint_fast64_t generation; /* of the cached rules */
} space;

static unw_addr_space_t make_space(void)
{
    static unw_accessors_t accessors = {.find_proc_info = find_rules,
                                        .put_unwind_info = put_rules,
                                        .get_dyn_info_list_addr = no_dynamic_rules,
                                        .access_mem = access_memory,
                                        .access_reg = access_register,
                                        .access_fpreg = no_fp_register};
    unw_addr_space_t as = unw_create_addr_space(&accessors, 0);
    if (!as)
        return NULL;
    unw_set_caching_policy(as, UNW_CACHE_GLOBAL);
    unw_set_cache_size(as, KEPT_RULES, 0);
    return as;
}

static unw_addr_space_t the_space(void)
{
    struct kp_lock *lock = &kp_locks[KP_LOCK_UNWINDER];
    unw_addr_space_t as = atomic_load(&space.as);
    if (as)
        return as;
    kp_lock_take(lock, KP_FOREVER);
    as = atomic_load(&space.as);
    if (!as) {
        as = make_space();
        atomic_store(&space.as, as);
    }
    kp_lock_give(lock);
    return as;
}

static int read_generation(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    *(uint64_t *)arg = info->dlpi_subs;
    return 1;
}

uint64_t kp_unwind_generation(void)
{
    uint64_t subs = 0;
    dl_iterate_phdr(read_generation, &subs);
    return subs;
}

size_t kp_unwind(const struct kp_registers *from, uint64_t *out, size_t cap)
{
    struct walk w = {.from = from, .stack = own_stack(from->rsp)};
    unw_addr_space_t as = the_space();
    unw_cursor_t cursor;
    unw_word_t ip;
    size_t n = 0;
    uint64_t generation = kp_unwind_generation();
    if (!as)
        return 0;
    if (atomic_exchange(&space.generation, generation) != generation)
        unw_flush_cache(as, 0, 0);
    if (unw_init_remote(&cursor, as, &w))
        return 0;
    while (n < cap && unw_step(&cursor) > 0 && !unw_get_reg(&cursor, UNW_REG_IP, &ip) && ip)
        out[n++] = ip;
    return n;
}
