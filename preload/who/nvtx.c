#include "preload/who/nvtx.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/room.h"
#include "base/wait_limits.h"
#include "base/work.h"
#include "base/text.h"
#include "preload/who/timeline.h"
#include "report/model/nvtx_expr.h"

enum {
    MOST_THREADS = 1024,
    MOST_OPEN = 4096, /* start-end ranges */
    MOST_DOMAINS = 1024,
    MOST_LABELS = 4096,
    MOST_STRINGS = 16384,
    STRING_LISTS = 1024,
    MOST_SEEN = 512,
    SEEN_SLOTS = 2 * MOST_SEEN, /* a power of 2 */
    NUMBER_SIZE = 32,
};

struct kp_nvtx_domain {
    char name[KP_NVTX_NAME];
};

/* An open range. */
struct range {
    const struct kp_nvtx_domain *domain;
    uint64_t id; /* 0 for push-pop ranges that nobody watches */
    uint64_t thread;
    int64_t start; /* kp_timeline_now */
    int level;
    uint32_t category;
    int32_t payload_type;
    union kp_nvtx_payload payload;
    char name[KP_NVTX_NAME];
};

/* The push-pop ranges of a thread, of all domains in the order they were opened. Only its thread changes it, and so
 * reads it without the lock. Only the used part is ever touched and uses memory. */
struct stack {
    struct kp_lock lock;
    struct stack *next;
    unsigned n;
    uint64_t beyond; /* ranges pushed onto the full stack */
    struct range pushed[KP_NVTX_DEPTH];
};

/* A name given to a category, a thread or a stream. */
struct label {
    enum kp_nvtx_named what;
    const struct kp_nvtx_domain *domain;
    uint64_t id;
    char *name;
};

struct string {
    struct string *next;
    size_t number; /* in names.strings */
    char text[];
};

struct seen {
    enum kp_nvtx_kind kind;
    const struct kp_nvtx_domain *domain;
    uint64_t hash;
    atomic_uint_fast64_t times;
    char name[];
};

static struct {
    struct kp_lock *lock;
    struct stack *first;
    size_t n;
} stacks = {.lock = &kp_locks[KP_LOCK_NVTX_STACKS]};

static struct {
    struct kp_lock *lock;
    struct range *list[MOST_OPEN]; /* sorted by id, that is by age */
    size_t n;
    uint64_t last_id;
} started = {.lock = &kp_locks[KP_LOCK_NVTX_STARTED]};

static struct {
    struct kp_lock *lock;
    struct string *lists[STRING_LISTS];
    struct label *labels;
    size_t n_labels;
} names = {.lock = &kp_locks[KP_LOCK_NVTX_NAMES]};

/* What handles of domains and of registered strings point to: the program may pass any pointer, which is compared with
 * these arrays and never read. Filled under the lock of `names`, read without it; entries are never removed. */
static struct {
    struct kp_nvtx_domain domains[MOST_DOMAINS];
    const char *strings[MOST_STRINGS];
    atomic_size_t n_domains, n_strings;
} handles;

/* Filled under the lock of `names`, read without it. */
static struct {
    _Atomic(struct seen *) slots[SEEN_SLOTS];
    struct seen *list[MOST_SEEN]; /* in order of appearance */
    atomic_size_t n;
} seen;

/* If set, called for each range that is kept. Ids of push-pop ranges differ from those of start-end ranges. */
static void (*watcher)(uint64_t id, bool begins, const char *name);
static atomic_uint_fast64_t last_pushed = UINT64_C(1) << 63;

static struct kp_nvtx_domain default_domain;
static struct kp_nvtx_domain
    no_domain; /* stands for domains beyond the limit, and for unknown handles: their ranges are not kept */

static struct {
    bool on, all_threads;
    struct kp_nvtx_filter *include, *exclude;
} choice;

#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
THREAD_LOCAL struct stack *own;
THREAD_LOCAL bool untracked; /* a push of this thread found no stack, so later levels would be wrong */
THREAD_LOCAL bool inside;    /* a function of this file runs on this thread */

static bool enter_stacks(void)
{
    if (inside || kp_locks_forking())
        return false;
    kp_work_begin();
    inside = true;
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static void leave_stacks(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    inside = false;
    kp_work_end();
}

/* Returns the number of the entry that `handle` points to, among the first `n` of an array; SIZE_MAX: it points to
 * none. */
static size_t entry_of(const void *handle, const void *entries, size_t size, const atomic_size_t *n)
{
    size_t given = atomic_load_explicit(n, memory_order_acquire), at = (uintptr_t)handle - (uintptr_t)entries;
    return at % size || at / size >= given ? SIZE_MAX : at / size;
}

/* Returns the domain of a handle, &no_domain for one that was never given out. */
static const struct kp_nvtx_domain *domain_of(const struct kp_nvtx_domain *handle)
{
    if (!handle)
        return &default_domain;
    size_t i = entry_of(handle, handles.domains, sizeof(*handles.domains), &handles.n_domains);
    return i == SIZE_MAX ? &no_domain : &handles.domains[i];
}

/* Returns the length of `text`, at most KP_NVTX_NAME - 1 bytes, without cutting a UTF-8 character. */
static size_t name_length(const char *text)
{
    size_t len = strnlen(text, KP_NVTX_NAME);
    if (len < KP_NVTX_NAME)
        return len;
    len--;
    while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

/* ---- ranges seen ---- */

/* Returns the slot with the range, or the empty slot for it: half of them stay empty. */
static _Atomic(struct seen *) *find_seen(enum kp_nvtx_kind kind, const struct range *r, size_t len, uint64_t hash)
{
    for (size_t i = hash;; i++) {
        _Atomic(struct seen *) *slot = &seen.slots[i & (SEEN_SLOTS - 1)];
        const struct seen *s = atomic_load_explicit(slot, memory_order_acquire);
        if (!s || (s->hash == hash && s->kind == kind && s->domain == r->domain && !memcmp(s->name, r->name, len + 1)))
            return slot;
    }
}

static void add_seen(enum kp_nvtx_kind kind, const struct range *r, size_t len, uint64_t hash)
{
    kp_lock_take(names.lock, KP_FOREVER);
    _Atomic(struct seen *) *slot = find_seen(kind, r, len, hash);
    struct seen *s = atomic_load(slot);
    size_t n = atomic_load(&seen.n);
    if (!s && n < MOST_SEEN && (s = malloc(sizeof(*s) + len + 1))) {
        *s = (struct seen){.kind = kind, .domain = r->domain, .hash = hash};
        memcpy(s->name, r->name, len + 1);
        seen.list[n] = s;
        atomic_store(&seen.n, n + 1);
        atomic_store_explicit(slot, s, memory_order_release);
    }
    if (s)
        atomic_fetch_add_explicit(&s->times, 1, memory_order_relaxed);
    kp_lock_give(names.lock);
}

static void note_seen(enum kp_nvtx_kind kind, const struct range *r, size_t len)
{
    uint64_t hash = kp_hash(r->name, len, (uintptr_t)r->domain + kind);
    struct seen *s = atomic_load_explicit(find_seen(kind, r, len, hash), memory_order_acquire);
    if (s)
        atomic_fetch_add_explicit(&s->times, 1, memory_order_relaxed);
    else if (atomic_load_explicit(&seen.n, memory_order_relaxed) < MOST_SEEN)
        add_seen(kind, r, len, hash);
}

void kp_nvtx_each_seen(void (*fn)(const struct kp_nvtx_range *r, uint64_t times))
{
    size_t n = atomic_load(&seen.n);
    for (size_t i = 0; i < n; i++)
        fn(&(struct kp_nvtx_range){.kind = seen.list[i]->kind,
                                   .domain = (char *)(uintptr_t)seen.list[i]->domain->name,
                                   .name = seen.list[i]->name,
                                   .category = "",
                                   .payload = ""},
           atomic_load(&seen.list[i]->times));
}

static void fill(struct range *r, enum kp_nvtx_kind kind, const struct kp_nvtx_domain *d, const struct kp_nvtx_event *e)
{
    size_t len = name_length(e->text);
    r->domain = d;
    r->thread = (uint64_t)kp_thread_id();
    r->start = kp_timeline_now();
    r->category = e->category;
    r->payload_type = e->payload_type;
    r->payload = e->payload;
    memcpy(r->name, e->text, len);
    r->name[len] = '\0';
    note_seen(kind, r, len);
}

/* ---- stacks ---- */

/* Symbols that older glibc keeps in libpthread (see tools/glibc_compat.h): without it no threads can end. */
#pragma weak pthread_key_create
#pragma weak pthread_setspecific

static pthread_key_t key;
static bool has_key;

static void thread_ends(void *arg)
{
    struct stack *s = arg;
    kp_work_begin(); /* a handler on this thread would find it half freed */
    inside = true;
    kp_lock_take(stacks.lock, KP_FOREVER);
    for (struct stack **at = &stacks.first; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            stacks.n--;
            break;
        }
    own = NULL;
    kp_lock_give(stacks.lock);
    free(s);
    inside = false;
    kp_work_end();
}

/* Returns the stack of this thread; NULL if unavailable. */
static struct stack *stack_of_thread(void)
{
    if (own || untracked)
        return own;
    struct stack *s = malloc(sizeof(*s));
    untracked = !s;
    if (!s)
        return NULL;
    kp_lock_take(stacks.lock, KP_FOREVER);
    if (stacks.n < MOST_THREADS) {
        s->lock = KP_LOCK_FREE(NVTX_THREAD);
        s->n = 0;
        s->beyond = 0;
        s->next = stacks.first;
        stacks.first = own = s;
        stacks.n++;
    }
    kp_lock_give(stacks.lock);
    untracked = !own;
    if (!own)
        free(s);
    else if (has_key)
        pthread_setspecific(key, own);
    return own;
}

/* Returns the index of the domain's innermost range in the stack; -1 without one. */
static int top_of(const struct stack *s, const struct kp_nvtx_domain *d)
{
    int i = (int)s->n - 1;
    while (i >= 0 && s->pushed[i].domain != d)
        i--;
    return i;
}

static int push(struct stack *s, const struct kp_nvtx_domain *d, const struct kp_nvtx_event *e, uint64_t *id)
{
    int level = 0, below = top_of(s, d);
    if (below >= 0)
        level = s->pushed[below].level + 1;
    kp_lock_take(&s->lock, KP_FOREVER);
    if (s->n < KP_NVTX_DEPTH) {
        struct range *r = &s->pushed[s->n];
        fill(r, KP_NVTX_PUSH_POP, d, e);
        r->level = level;
        *id = r->id = watcher ? atomic_fetch_add(&last_pushed, 1) : 0;
        s->n++;
    } else {
        level += (int)s->beyond++;
    }
    kp_lock_give(&s->lock);
    return level;
}

void kp_nvtx_watch(void (*edge)(uint64_t id, bool begins, const char *name))
{
    watcher = edge;
}

/* Calls the watcher, outside this file's locks. */
static void tell(uint64_t id, bool begins, const char *name)
{
    if (watcher && id)
        watcher(id, begins, name);
}

int kp_nvtx_push(const struct kp_nvtx_domain *d, const struct kp_nvtx_event *e)
{
    if (!enter_stacks())
        return KP_NVTX_NOT_TRACKED;
    d = domain_of(d);
    struct stack *s = d != &no_domain ? stack_of_thread() : NULL;
    uint64_t id = 0;
    int level = s ? push(s, d, e, &id) : KP_NVTX_NOT_TRACKED;
    leave_stacks();
    tell(id, true, e->text);
    return level;
}

static void put_on_timeline(const struct range *r)
{
    kp_timeline_range(r->domain->name, r->name, r->thread, r->start, kp_timeline_now());
}

static int pop(struct stack *s, const struct kp_nvtx_domain *d, uint64_t *id)
{
    int i = top_of(s, d);
    int level = i >= 0 ? s->pushed[i].level : -1;
    if (s->beyond)
        return level + (int)s->beyond--;
    if (i < 0)
        return level;
    put_on_timeline(&s->pushed[i]);
    *id = s->pushed[i].id;
    kp_lock_take(&s->lock, KP_FOREVER);
    s->n--;
    /* closes the gap: ranges of another domain may be open inside this one */
    memmove(&s->pushed[i], &s->pushed[i + 1], (s->n - (unsigned)i) * sizeof(*s->pushed));
    kp_lock_give(&s->lock);
    return level;
}

int kp_nvtx_pop(const struct kp_nvtx_domain *d)
{
    if (!enter_stacks())
        return KP_NVTX_NOT_TRACKED;
    int level = -1;
    uint64_t id = 0;
    d = domain_of(d);
    if (untracked || d == &no_domain)
        level = KP_NVTX_NOT_TRACKED;
    else if (own)
        level = pop(own, d, &id);
    leave_stacks();
    tell(id, false, "");
    return level;
}

/* ---- start-end ranges ---- */

uint64_t kp_nvtx_start(const struct kp_nvtx_domain *d, const struct kp_nvtx_event *e)
{
    static const uint64_t not_kept = UINT64_MAX;
    if (!enter_stacks())
        return not_kept;
    d = domain_of(d);
    struct range *r = d != &no_domain ? malloc(sizeof(*r)) : NULL;
    if (r)
        fill(r, KP_NVTX_START_END, d, e);
    kp_lock_take(started.lock, KP_FOREVER);
    uint64_t id = ++started.last_id;
    if (r && started.n < MOST_OPEN) {
        r->id = id;
        started.list[started.n++] = r;
        r = NULL;
    }
    kp_lock_give(started.lock);
    bool kept = !r && d != &no_domain;
    free(r);
    leave_stacks();
    tell(kept ? id : 0, true, e->text);
    return id;
}

/* Returns the index of the first range whose id is not below `id`. */
static size_t place_of(uint64_t id)
{
    size_t low = 0, high = started.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (started.list[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void kp_nvtx_end(uint64_t id)
{
    struct range *r = NULL;
    if (!enter_stacks())
        return;
    kp_lock_take(started.lock, KP_FOREVER);
    size_t i = place_of(id);
    if (i < started.n && started.list[i]->id == id) {
        r = started.list[i];
        started.n--;
        memmove(&started.list[i], &started.list[i + 1], (started.n - i) * sizeof(*started.list));
    }
    kp_lock_give(started.lock);
    if (r)
        put_on_timeline(r);
    bool ended = r;
    free(r);
    leave_stacks();
    tell(ended ? id : 0, false, "");
}

/* The locks are only tried: a handler may end the program on a thread that holds one. */
void kp_nvtx_end_timeline(void)
{
    const long ms = kp_limit_first(KP_WAIT_NVTX);
    if (!kp_timeline_is_on() || !enter_stacks())
        return;
    bool taken = kp_lock_take(stacks.lock, ms);
    for (struct stack *s = taken ? stacks.first : NULL; s; s = s->next) {
        if (!kp_lock_take(&s->lock, ms))
            continue;
        for (unsigned i = 0; i < s->n; i++)
            put_on_timeline(&s->pushed[i]);
        kp_lock_give(&s->lock);
    }
    if (taken)
        kp_lock_give(stacks.lock);
    taken = kp_lock_take(started.lock, ms);
    for (size_t i = 0; taken && i < started.n; i++)
        put_on_timeline(started.list[i]);
    if (taken)
        kp_lock_give(started.lock);
    leave_stacks();
}

/* ---- names ---- */

static struct kp_nvtx_domain *find_domain(const char *name)
{
    size_t len = name_length(name), n = atomic_load(&handles.n_domains);
    for (size_t i = 0; i < n; i++)
        if (!strncmp(handles.domains[i].name, name, len) && !handles.domains[i].name[len])
            return &handles.domains[i];
    if (n == MOST_DOMAINS)
        return NULL;
    struct kp_nvtx_domain *d = &handles.domains[n];
    memcpy(d->name, name, len);
    d->name[len] = '\0';
    atomic_store_explicit(&handles.n_domains, n + 1, memory_order_release);
    return d;
}

const struct kp_nvtx_domain *kp_nvtx_domain_named(const char *name)
{
    if (!enter_stacks())
        return &no_domain;
    kp_lock_take(names.lock, KP_FOREVER);
    const struct kp_nvtx_domain *d = find_domain(name);
    kp_lock_give(names.lock);
    leave_stacks();
    return d ? d : &no_domain;
}

static struct string *find_string(const char *text)
{
    size_t len = name_length(text), n = atomic_load(&handles.n_strings);
    struct string **list = &names.lists[kp_hash(text, len, 0) % STRING_LISTS], *s = *list;
    while (s && (strncmp(s->text, text, len) || s->text[len]))
        s = s->next;
    if (s || n == MOST_STRINGS || !(s = malloc(sizeof(*s) + len + 1)))
        return s;
    s->number = n;
    memcpy(s->text, text, len);
    s->text[len] = '\0';
    s->next = *list;
    *list = s;
    handles.strings[n] = s->text;
    atomic_store_explicit(&handles.n_strings, n + 1, memory_order_release);
    return s;
}

static const char too_many[] = "(one of too many registered strings)";

const void *kp_nvtx_register(const char *text)
{
    if (!enter_stacks())
        return too_many;
    kp_lock_take(names.lock, KP_FOREVER);
    const struct string *s = find_string(text);
    kp_lock_give(names.lock);
    leave_stacks();
    return s ? (const void *)&handles.strings[s->number] : too_many;
}

const char *kp_nvtx_registered(const void *handle)
{
    size_t i = entry_of(handle, handles.strings, sizeof(*handles.strings), &handles.n_strings);
    return i < MOST_STRINGS ? handles.strings[i] : handle == too_many ? too_many : "";
}

/* Call under the lock. */
static struct label *find_label(enum kp_nvtx_named what, const struct kp_nvtx_domain *d, uint64_t id)
{
    for (size_t i = 0; i < names.n_labels; i++) {
        struct label *l = &names.labels[i];
        if (l->what == what && l->domain == d && l->id == id)
            return l;
    }
    return NULL;
}

static struct label *new_label(void)
{
    size_t n = names.n_labels;
    if (!KP_ROOM(names.labels, n))
        return NULL;
    names.labels[n] = (struct label){.name = NULL};
    return &names.labels[names.n_labels++];
}

void kp_nvtx_name(enum kp_nvtx_named what, const struct kp_nvtx_domain *d, uint64_t id, const char *name)
{
    char *copy = strndup(name, name_length(name));
    if (!copy || !enter_stacks()) {
        free(copy);
        return;
    }
    d = what == KP_NVTX_CATEGORY ? domain_of(d) : NULL;
    kp_lock_take(names.lock, KP_FOREVER);
    struct label *l = d != &no_domain ? find_label(what, d, id) : NULL;
    if (!l && d != &no_domain && names.n_labels < MOST_LABELS)
        l = new_label();
    if (l) {
        free(l->name);
        *l = (struct label){what, d, id, copy};
        copy = NULL;
    }
    kp_lock_give(names.lock);
    free(copy);
    leave_stacks();
}

/* Returns a malloc'ed label; NULL without one. */
static char *label_of(enum kp_nvtx_named what, const struct kp_nvtx_domain *d, uint64_t id)
{
    kp_lock_take(names.lock, KP_FOREVER);
    const struct label *l = find_label(what, d, id);
    char *name = l ? strdup(l->name) : NULL;
    kp_lock_give(names.lock);
    return name;
}

/* ---- ranges around a launch ---- */

static void write_payload(char out[NUMBER_SIZE], int32_t type, const union kp_nvtx_payload *p)
{
    *out = '\0';
    if (type == KP_NVTX_PAYLOAD_U64)
        snprintf(out, NUMBER_SIZE, "%llu", (unsigned long long)p->u64);
    else if (type == KP_NVTX_PAYLOAD_I64)
        snprintf(out, NUMBER_SIZE, "%lld", (long long)p->i64);
    else if (type == KP_NVTX_PAYLOAD_DOUBLE)
        snprintf(out, NUMBER_SIZE, "%.17g", p->real);
    else if (type == KP_NVTX_PAYLOAD_U32)
        snprintf(out, NUMBER_SIZE, "%lu", (unsigned long)p->u32);
    else if (type == KP_NVTX_PAYLOAD_I32)
        snprintf(out, NUMBER_SIZE, "%ld", (long)p->i32);
    else if (type == KP_NVTX_PAYLOAD_FLOAT)
        snprintf(out, NUMBER_SIZE, "%.9g", (double)p->single);
}

/* Adds a range; without memory it is left out. */
static void add_range(struct kp_nvtx *out, enum kp_nvtx_kind kind, const struct range *r)
{
    char payload[NUMBER_SIZE], category[NUMBER_SIZE] = "";
    char *name = r->category ? label_of(KP_NVTX_CATEGORY, r->domain, r->category) : NULL;
    if (r->category)
        snprintf(category, sizeof(category), "%lu", (unsigned long)r->category);
    write_payload(payload, r->payload_type, &r->payload);
    kp_nvtx_add(out, &(struct kp_nvtx_range){.kind = kind,
                                             .domain = (char *)(uintptr_t)r->domain->name,
                                             .name = (char *)(uintptr_t)r->name,
                                             .category = name ? name : category,
                                             .payload = payload,
                                             .thread = r->thread});
    free(name);
}

static void add_stack(struct kp_nvtx *out, const struct stack *s)
{
    for (unsigned i = 0; i < s->n; i++)
        add_range(out, KP_NVTX_PUSH_POP, &s->pushed[i]);
}

static void add_other_threads(struct kp_nvtx *out)
{
    kp_lock_take(stacks.lock, KP_FOREVER);
    for (struct stack *s = stacks.first; s; s = s->next) {
        if (s == own)
            continue;
        kp_lock_take(&s->lock, KP_FOREVER);
        add_stack(out, s);
        kp_lock_give(&s->lock);
    }
    kp_lock_give(stacks.lock);
}

static void add_started(struct kp_nvtx *out)
{
    kp_lock_take(started.lock, KP_FOREVER);
    for (size_t i = 0; i < started.n; i++)
        add_range(out, KP_NVTX_START_END, started.list[i]);
    kp_lock_give(started.lock);
}

static bool takes(const struct kp_nvtx *n)
{
    bool included =
        kp_nvtx_filter_empty(choice.include) || kp_nvtx_filter_match(choice.include, n->ranges, n->n_ranges);
    return included && !kp_nvtx_filter_match(choice.exclude, n->ranges, n->n_ranges);
}

bool kp_nvtx_judge(CUstream stream, struct kp_nvtx *out)
{
    if (!choice.on || !enter_stacks())
        return true;
    if (own)
        add_stack(out, own);
    if (choice.all_threads)
        add_other_threads(out);
    add_started(out);
    bool wanted = takes(out);
    if (wanted) {
        out->thread = (uint64_t)kp_thread_id();
        out->thread_name = label_of(KP_NVTX_THREAD, NULL, out->thread);
        out->stream_name = label_of(KP_NVTX_STREAM, NULL, (uintptr_t)stream);
    }
    leave_stacks();
    return wanted;
}

/* ---- start ---- */

int kp_nvtx_configure(const struct kp_options *o)
{
    char *err = NULL;
    kp_nvtx_filter_free(choice.include);
    kp_nvtx_filter_free(choice.exclude);
    choice.include = choice.exclude = NULL;
    int rc = kp_nvtx_filter_new(o->nvtx_include, &choice.include, &err);
    if (!rc)
        rc = kp_nvtx_filter_new(o->nvtx_exclude, &choice.exclude, &err);
    free(err);
    if (rc)
        return rc;
    choice.all_threads = o->nvtx_push_pop_scope == KP_SCOPE_PROCESS;
    choice.on = o->nvtx;
    return 0;
}

/* Keeps the forking thread's ranges: it is the only one left, with another id. */
void kp_nvtx_forked(void)
{
    stacks.first = own;
    stacks.n = own != NULL;
    if (own) {
        own->next = NULL;
        own->lock = KP_LOCK_FREE(NVTX_THREAD);
    }
}

void kp_nvtx_attached(void)
{
    static atomic_bool done;
    if (atomic_exchange(&done, true))
        return;
    if (pthread_key_create && pthread_setspecific)
        has_key = !pthread_key_create(&key, thread_ends);
}
