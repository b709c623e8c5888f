#include "preload/program/filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/lock.h"
#include "base/pattern.h"
#include "base/text.h"
#include "preload/os/log.h"
#include "report/model/kernel_id.h"
#include "report/model/model.h"
#include "report/view/chooser.h"

enum { SLOTS = 4096, BUCKETS = 1024 };

/* A kernel by the name that the filter uses; kept to the end. */
struct kernel {
    char *name;
    bool wanted, in_id;              /* by kernel-name; by the name in kernel-id */
    atomic_bool outside;             /* written under the lock, read without it */
    _Atomic(enum kp_pass_why) never; /* why no launch of it is wanted, regardless of its other properties */
    uint64_t invocations;            /* counted by kernel-id */
    uint64_t unwanted;
    atomic_uint_fast64_t passed; /* and those that pass unexamined */
    struct {                     /* the place at which kernel-id last rejected it, and the count there */
        uint64_t context, stream;
        struct kernel *counted;
    } at;
    struct kernel *next, *later; /* in the bucket; in order of appearance */
};

/* The launches that launch-skip and launch-count count together. Compared as bytes: zero it first. */
struct group {
    const void *kernel; /* struct kernel, or the graph */
    uint32_t grid[3], block[3];
    uint64_t shared; /* bytes */
    int64_t device;
};

struct counter {
    struct group group;
    uint64_t matched;
    struct counter *next;
};

/* A function whose kernel is known. Written under the lock, read without it: `writes` is odd meanwhile. */
struct slot {
    atomic_uint writes;
    _Atomic(CUfunction) f;
    _Atomic(struct kernel *) kernel;
};

struct kp_filter {
    const struct kp_options *options;
    struct kp_filter_source source;
    struct kp_pattern *name;
    struct kp_kernel_id *id; /* NULL = any */

    bool before, after;   /* the time range has not started; is over */
    uint64_t from, until; /* ns of the source's clock; `until` UINT64_MAX = no end */

    uint64_t launches; /* up to launch-skip-before-match */
    struct counter all;
    atomic_bool settled; /* the stages before kernel-name no longer count, read the clock or ask for anything */
    atomic_bool over;    /* duration is */
    atomic_bool used_up; /* launch-count is, for all kernels */
    bool chooses_more;   /* stages between kernel-name and launch-count choose */
    struct counter *counters[BUCKETS];

    struct kernel *kernels[BUCKETS], *first, **end;
    struct kernel nameless;         /* stands for kernels without memory for an entry */
    atomic_uint forgotten, cleared; /* how often functions were forgotten; the same when `slots` was last cleared */
    struct slot slots[SLOTS];
};

static struct kp_lock *const lock = &kp_locks[KP_LOCK_FILTER];

/* ---- names ---- */

bool kp_filter_waits_outside(const char *mangled)
{
    /* XLA's DelayKernel holds a stream until the host has enqueued what it measures. */
    static const struct {
        const char *begins, *within;
    } names[] = {{"ncclDevKernel", ""}, {"ncclKernel", ""}, {"nvshmem", ""}, {"DelayKernel", "stream_executor"}};
    char *base = kp_demangle_base(mangled);
    bool waits = false;
    for (size_t i = 0; base && i < sizeof(names) / sizeof(*names); i++)
        waits |= !strncmp(base, names[i].begins, strlen(names[i].begins)) && strstr(mangled, names[i].within);
    free(base);
    return waits;
}

static size_t bucket_of(const void *data, size_t size)
{
    return kp_hash(data, size, 0) % BUCKETS;
}

static struct kernel *intern(struct kp_filter *f, const char *name)
{
    struct kernel **bucket = &f->kernels[bucket_of(name, strlen(name))];
    for (struct kernel *k = *bucket; k; k = k->next)
        if (!strcmp(k->name, name))
            return k;
    struct kernel *k = calloc(1, sizeof(*k));
    char *copy = k ? strdup(name) : NULL;
    if (!copy) {
        free(k);
        return &f->nameless;
    }
    k->name = copy;
    k->next = *bucket;
    *f->end = k;
    f->end = &k->later;
    return *bucket = k;
}

static void judge(const struct kp_filter *f, struct kernel *k, const char *mangled)
{
    bool gave_up = kp_pattern_gave_up(f->name);
    k->wanted = kp_pattern_match(f->name, k->name);
    if (!gave_up && kp_pattern_gave_up(f->name))
        kp_log_warning("kernel-name takes too long to match '%s', which is left out; other names may be, too", k->name);
    k->in_id = !f->id || kp_kernelid_name(f->id, k->name);
    atomic_store(&k->outside, kp_filter_waits_outside(mangled));
    bool by_name = f->id && !k->in_id && !kp_kernelid_asks_place(f->id);
    atomic_store(&k->never, !k->wanted ? KP_PASS_NAME : by_name ? KP_PASS_ID : KP_PASS_NOT);
}

static struct kernel *read_kernel(struct kp_filter *f, CUfunction function)
{
    char *symbol = f->source.mangled(function);
    const char *mangled = symbol ? symbol : "";
    char *name = kp_chooser_name(f->options->kernel_name_base, mangled);
    struct kernel *k = name ? intern(f, name) : &f->nameless;
    judge(f, k, mangled);
    free(name);
    free(symbol);
    return k;
}

static struct slot *slot_of_function(struct kp_filter *f, CUfunction function)
{
    return &f->slots[((uintptr_t)function >> 4) % SLOTS];
}

static void fill(struct slot *s, CUfunction function, struct kernel *k)
{
    atomic_fetch_add(&s->writes, 1);
    atomic_store(&s->f, function);
    atomic_store(&s->kernel, k);
    atomic_fetch_add(&s->writes, 1);
}

/* Finds a kernel without the lock; NULL if it is unknown, or being changed. */
static struct kernel *known_kernel(struct kp_filter *f, CUfunction function)
{
    const struct slot *s = slot_of_function(f, function);
    unsigned before = atomic_load(&s->writes);
    struct kernel *k = atomic_load(&s->f) == function ? atomic_load(&s->kernel) : NULL;
    bool whole = before % 2 == 0 && atomic_load(&s->writes) == before;
    return whole && atomic_load(&f->forgotten) == atomic_load(&f->cleared) ? k : NULL;
}

static struct kernel *kernel_of(struct kp_filter *f, CUfunction function)
{
    unsigned forgotten = atomic_load(&f->forgotten);
    if (forgotten != atomic_load(&f->cleared)) {
        for (size_t i = 0; i < SLOTS; i++)
            fill(&f->slots[i], NULL, NULL);
        atomic_store(&f->cleared, forgotten);
    }
    struct slot *s = slot_of_function(f, function);
    if (atomic_load(&s->f) != function || !atomic_load(&s->kernel))
        fill(s, function, read_kernel(f, function));
    return atomic_load(&s->kernel);
}

void kp_filter_forget(struct kp_filter *f)
{
    atomic_fetch_add(&f->forgotten, 1);
}

/* ---- the stages ---- */

/* Counts a launch, and notes the counter. Returns the count before. */
static uint64_t count_in(struct kp_filter_counted *c, uint64_t *counter)
{
    c->in[c->n++] = counter;
    return (*counter)++;
}

/* Reads the clock only until its answer is final. */
static enum kp_reason out_of_time(struct kp_filter *f)
{
    if (f->after)
        return KP_REASON_DURATION;
    if (!f->before && f->until == UINT64_MAX)
        return KP_REASON_NONE;
    uint64_t now = f->source.now();
    f->before = now < f->from;
    f->after = now >= f->until;
    atomic_store(&f->over, f->after);
    return f->before ? KP_REASON_DELAY : f->after ? KP_REASON_DURATION : KP_REASON_NONE;
}

/* Returns true if the stages before kernel-name only look at the launch's function from now on. */
static bool is_settled(const struct kp_filter *f)
{
    bool timeless = f->after || (!f->before && f->until == UINT64_MAX);
    return timeless && (f->after || (f->launches >= f->options->launch_skip_before_match && !f->options->devices));
}

static enum kp_reason before_match(struct kp_filter *f, struct kp_filter_counted *c)
{
    if (f->launches >= f->options->launch_skip_before_match)
        return KP_REASON_NONE;
    count_in(c, &f->launches);
    return KP_REASON_BEFORE_MATCH;
}

static enum kp_reason on_other_device(const struct kp_filter *f, const struct kp_launch *l, int *other)
{
    uint64_t devices = f->options->devices;
    if (!devices)
        return KP_REASON_NONE;
    int device = f->source.device(l);
    if (device >= 0 && device < 64 && devices >> device & 1)
        return KP_REASON_NONE;
    *other = device;
    return KP_REASON_DEVICES;
}

static enum kp_reason with_other_name(struct kp_filter *f, const struct kp_launch *l, struct kp_filter_counted *c,
                                      struct kernel **k)
{
    if (l->is_graph)
        return *f->options->kernel_name || f->id ? KP_REASON_GRAPHS : KP_REASON_NONE;
    *k = kernel_of(f, l->f);
    if ((*k)->wanted)
        return KP_REASON_NONE;
    count_in(c, &(*k)->unwanted);
    return KP_REASON_KERNEL_NAME;
}

/* Counts for the list of kernels seen. */
static void count_at(struct kp_filter *f, struct kp_filter_counted *c, struct kernel *k, uint64_t context,
                     uint64_t stream)
{
    char *text = NULL;
    if (!k->at.counted || k->at.context != context || k->at.stream != stream) {
        if (asprintf(&text, "%s, Context %" PRIu64 ", Stream %" PRIu64, k->name, context, stream) < 0)
            return;
        k->at.context = context;
        k->at.stream = stream;
        k->at.counted = intern(f, text);
        free(text);
    }
    count_in(c, &k->at.counted->unwanted);
}

/* Releases the lock to ask for ids, which may wait for other threads inside the filter. */
static enum kp_reason with_other_id(struct kp_filter *f, const struct kp_launch *l, struct kp_filter_counted *c,
                                    struct kernel *k)
{
    bool asks = kp_kernelid_asks_place(f->id);
    uint64_t context = 0, stream = 0;
    if (asks) {
        kp_lock_give(lock);
        enum kp_reason why = f->source.place(l, &context, &stream);
        kp_lock_take(lock, KP_FOREVER);
        if (why)
            return why;
    }
    if (k->in_id && (!asks || kp_kernelid_place(f->id, context, stream)) &&
        kp_kernelid_invocation(f->id, count_in(c, &k->invocations) + 1))
        return KP_REASON_NONE;
    if (asks)
        count_at(f, c, k, context, stream);
    else
        count_in(c, &k->unwanted);
    return KP_REASON_KERNEL_ID;
}

static struct group group_of(const struct kp_filter *f, const struct kp_launch *l, const struct kernel *k)
{
    struct group g;
    memset(&g, 0, sizeof(g));
    if (f->options->filter_mode == KP_FILTER_PER_GPU) {
        g.device = f->source.device(l);
        return g;
    }
    g.kernel = l->is_graph ? (const void *)l->graph : k;
    memcpy(g.grid, l->shape.grid, sizeof(g.grid));
    memcpy(g.block, l->shape.block, sizeof(g.block));
    g.shared = l->shape.dynamic_shared;
    return g;
}

static struct counter *counter_of(struct kp_filter *f, const struct kp_launch *l, const struct kernel *k)
{
    if (f->options->filter_mode == KP_FILTER_GLOBAL)
        return &f->all;
    struct group g = group_of(f, l, k);
    struct counter **bucket = &f->counters[bucket_of(&g, sizeof(g))];
    for (struct counter *c = *bucket; c; c = c->next)
        if (!memcmp(&c->group, &g, sizeof(g)))
            return c;
    struct counter *c = calloc(1, sizeof(*c));
    if (!c)
        return &f->all;
    c->group = g;
    c->next = *bucket;
    return *bucket = c;
}

static bool counts_numbers(const struct kp_filter *f)
{
    return f->options->launch_skip || f->options->launch_count;
}

static enum kp_reason why_number(const struct kp_filter *f, uint64_t index)
{
    uint64_t first = f->options->launch_skip, count = f->options->launch_count;
    if (index < first)
        return KP_REASON_LAUNCH_SKIP;
    return count && index - first >= count ? KP_REASON_LAUNCH_COUNT : KP_REASON_NONE;
}

static enum kp_reason by_number(struct kp_filter *f, const struct kp_launch *l, const struct kernel *k,
                                struct kp_filter_counted *c, bool *last)
{
    uint64_t first = f->options->launch_skip, count = f->options->launch_count;
    if (!counts_numbers(f))
        return KP_REASON_NONE;
    uint64_t index = count_in(c, &counter_of(f, l, k)->matched);
    enum kp_reason why = why_number(f, index);
    if (f->options->filter_mode == KP_FILTER_GLOBAL && count && index >= first && index - first + 1 >= count)
        atomic_store(&f->used_up, true);
    *last = !why && f->options->filter_mode == KP_FILTER_GLOBAL && count && index - first + 1 == count;
    return why;
}

/* All unwanted launches of a kernel. */
static uint64_t unwanted_of(const struct kernel *k)
{
    return k->unwanted + atomic_load(&k->passed);
}

/* Returns true if later launches may be wanted: of its kernel, if names choose. An earlier stage may have refused it
 * before its name was read: then `k` is NULL. */
static bool may_follow(const struct kp_filter *f, const struct kernel *k)
{
    if (f->after || atomic_load(&f->used_up))
        return false;
    return k ? k->wanted && k->in_id : !*f->options->kernel_name && !f->id;
}

void kp_filter_choose(struct kp_filter *f, struct kp_launch *l, struct kp_filter_choice *out)
{
    struct kernel *k = NULL;
    *out = (struct kp_filter_choice){.other_device = -1};
    kp_lock_take(lock, KP_FOREVER);
    out->unwanted = out_of_time(f);
    if (!out->unwanted)
        out->unwanted = before_match(f, &out->counted);
    if (!out->unwanted)
        out->unwanted = on_other_device(f, l, &out->other_device);
    if (!out->unwanted)
        out->unwanted = with_other_name(f, l, &out->counted, &k);
    if (!out->unwanted && f->id)
        out->unwanted = with_other_id(f, l, &out->counted, k);
    if (!out->unwanted && f->source.inside && !f->source.inside(l))
        out->unwanted = KP_REASON_NVTX;
    if (!out->unwanted)
        out->unwanted = by_number(f, l, k, &out->counted, &out->last);
    out->outside = !out->unwanted && k && atomic_load(&k->outside);
    out->may_follow = out->unwanted && out->other_device < 0 && may_follow(f, k);
    if (!atomic_load(&f->settled) && is_settled(f))
        atomic_store(&f->settled, true);
    kp_lock_give(lock);
}

void kp_filter_refused(struct kp_filter *f, struct kp_filter_counted *c)
{
    uint64_t most = f->options->launch_skip + f->options->launch_count;
    if (!c->n)
        return;
    kp_lock_take(lock, KP_FOREVER);
    while (c->n)
        --*c->in[--c->n];
    if (f->options->launch_count && f->all.matched < most && atomic_exchange(&f->used_up, false))
        kp_passing_outdate();
    bool settled = is_settled(f);
    if (atomic_exchange(&f->settled, settled) && !settled)
        kp_passing_outdate();
    kp_lock_give(lock);
}

enum kp_pass_why kp_filter_passes(struct kp_filter *f, CUfunction function, atomic_uint_fast64_t **also)
{
    *also = NULL;
    if (!atomic_load(&f->settled))
        return KP_PASS_NOT;
    if (atomic_load(&f->over))
        return KP_PASS_DURATION;
    struct kernel *k = known_kernel(f, function);
    if (!k || k == &f->nameless)
        return KP_PASS_NOT;
    enum kp_pass_why never = atomic_load(&k->never);
    if (never)
        *also = &k->passed;
    else if (atomic_load(&f->used_up) && !f->chooses_more)
        never = KP_PASS_COUNT;
    return never;
}

bool kp_filter_takes_all(struct kp_filter *f, CUfunction function)
{
    const struct kernel *k = known_kernel(f, function);
    return k && k != &f->nameless && atomic_load(&f->settled) && !atomic_load(&f->over) && !f->chooses_more &&
           !counts_numbers(f) && !atomic_load(&k->outside) && !atomic_load(&k->never);
}

void kp_filter_choose_range(struct kp_filter *f, const struct kp_launch *at, bool inside, struct kp_filter_choice *out)
{
    *out = (struct kp_filter_choice){.other_device = -1};
    kp_lock_take(lock, KP_FOREVER);
    out->unwanted = out_of_time(f);
    if (!out->unwanted)
        out->unwanted = before_match(f, &out->counted);
    if (!out->unwanted)
        out->unwanted = on_other_device(f, at, &out->other_device);
    if (!out->unwanted && !inside)
        out->unwanted = KP_REASON_NVTX;
    if (!out->unwanted)
        out->unwanted = by_number(f, at, NULL, &out->counted, &out->last);
    kp_lock_give(lock);
}

bool kp_filter_wants_range(struct kp_filter *f, const struct kp_launch *at)
{
    int other;
    kp_lock_take(lock, KP_FOREVER);
    bool wanted = !out_of_time(f) && f->launches >= f->options->launch_skip_before_match &&
                  !on_other_device(f, at, &other) &&
                  (!counts_numbers(f) || !why_number(f, counter_of(f, at, NULL)->matched));
    kp_lock_give(lock);
    return wanted;
}

bool kp_filter_takes_first(const struct kp_options *o)
{
    return !*o->kernel_name && !*o->kernel_id && !*o->nvtx_include && !o->delay && !o->launch_skip_before_match &&
           !o->launch_skip;
}

bool kp_filter_asks_device(const struct kp_options *o)
{
    return o->devices || (o->filter_mode == KP_FILTER_PER_GPU && (o->launch_skip || o->launch_count));
}

bool kp_filter_outside(struct kp_filter *f, CUfunction function)
{
    kp_lock_take(lock, KP_FOREVER);
    bool outside = atomic_load(&kernel_of(f, function)->outside);
    kp_lock_give(lock);
    return outside;
}

void kp_filter_unwanted(struct kp_filter *f, void (*fn)(void *arg, const char *name, uint64_t launches), void *arg)
{
    kp_passing_settle();
    kp_lock_take(lock, KP_FOREVER);
    for (const struct kernel *k = f->first; k; k = k->later)
        if (unwanted_of(k))
            fn(arg, k->name, unwanted_of(k));
    kp_lock_give(lock);
}

/* ---- making ---- */

/* Adds without overflow: times beyond the clock's range never come. */
static uint64_t later(uint64_t time, uint64_t ns)
{
    return ns < UINT64_MAX - time ? time + ns : UINT64_MAX;
}

static void set_range(struct kp_filter *f)
{
    const struct kp_options *o = f->options;
    f->before = o->delay > 0;
    f->until = UINT64_MAX;
    if (!o->delay && !o->duration)
        return;
    f->from = later(f->source.now(), o->delay);
    if (o->duration)
        f->until = later(f->from, o->duration);
}

int kp_filter_new(const struct kp_options *o, const struct kp_filter_source *source, struct kp_filter **out, char **err)
{
    *out = NULL;
    *err = NULL;
    struct kp_filter *f = calloc(1, sizeof(*f));
    if (!f)
        return -ENOMEM;
    f->options = o;
    f->source = *source;
    f->nameless.name = "";
    f->end = &f->first;
    set_range(f);
    f->chooses_more = *o->kernel_id || *o->nvtx_include || *o->nvtx_exclude || *o->range_filter;
    int rc = kp_pattern_new(o->kernel_name, &f->name, err);
    if (!rc && *o->kernel_id)
        rc = kp_kernelid_new(o->kernel_id, &f->id, err);
    if (rc)
        kp_filter_free(f);
    else
        *out = f;
    return rc;
}

void kp_filter_free(struct kp_filter *f)
{
    if (!f)
        return;
    for (struct kernel *k = f->first, *later; k; k = later) {
        later = k->later;
        free(k->name);
        free(k);
    }
    for (size_t b = 0; b < BUCKETS; b++) {
        for (struct counter *c = f->counters[b], *next; c; c = next) {
            next = c->next;
            free(c);
        }
    }
    kp_pattern_free(f->name);
    kp_kernelid_free(f->id);
    free(f);
}

/* ---- processes ---- */

static bool item_matches(const char *item, size_t len, const char *name)
{
    struct kp_pattern *pattern = NULL;
    char *text = strndup(item, len), *err = NULL;
    bool matches = text && !kp_pattern_new(text, &pattern, &err) && kp_pattern_match(pattern, name);
    kp_pattern_free(pattern);
    free(text);
    free(err);
    return matches;
}

/* Takes a word off the front of an item. */
static bool begins_with(const char **item, size_t *len, const char *word)
{
    size_t n = strlen(word);
    if (*len < n || strncmp(*item, word, n) != 0)
        return false;
    *item += n;
    *len -= n;
    return true;
}

bool kp_filter_process(const char *list, const char *name, const char *short_name, bool *tree)
{
    const char *item;
    size_t len;
    bool chosen = true;
    *tree = false;
    while (kp_list_next(&list, &item, &len)) {
        *tree = begins_with(&item, &len, "exclude-tree:");
        bool excludes = *tree || begins_with(&item, &len, "exclude:");
        if (item_matches(item, len, name) || item_matches(item, len, short_name))
            return !excludes;
        chosen &= excludes; /* those of a name are chosen alone */
    }
    *tree = false;
    return chosen;
}
