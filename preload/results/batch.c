#include "preload/results/batch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "base/text.h"
#include "base/traps.h"
#include "collectors/code/sass.h"
#include "preload/os/worker.h"
#include "preload/rotation/rotation.h"
#include "preload/session/session.h"
#include "preload/program/host_writes.h"
#include "report/define/derive_source.h"

/* Few results are stored at once: unprocessed ones are lost when the program is killed. */
enum { FEW = 16 };

struct kp_batch {
    struct kp_result **results;
    char **bases;
    struct kp_rotation_key **keys, **kinds;
    bool *quiet;   /* see kp_rotation_times */
    bool *watched; /* see kp_batch_watch */
    bool first;    /* it may be the first to show that of a kernel */
    bool rotates;
    size_t group;
    size_t n;
    const struct kp_context_setup *setup;
    const struct kp_context *context;
    struct kp_counters *counters;
    struct kp_why why;  /* why values are missing */
    size_t counted;     /* results before those of kp_batch_cut */
    enum kp_reason cut; /* NULL: all were counted */
};

static void free_batch(struct kp_batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        kp_result_free(b->results[i]);
        free(b->results[i]);
        free(b->bases[i]);
    }
    kp_counters_free(b->counters);
    free(b->results);
    free(b->bases);
    free(b->keys);
    free(b->kinds);
    free(b->quiet);
    free(b->watched);
    kp_why_free(&b->why);
    free(b);
}

struct kp_batch *kp_batch_new(size_t n)
{
    struct kp_batch *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    b->results = calloc(n + 1, sizeof(*b->results));
    b->bases = calloc(n + 1, sizeof(*b->bases));
    b->keys = calloc(n + 1, sizeof(*b->keys));
    b->kinds = calloc(n + 1, sizeof(*b->kinds));
    b->quiet = calloc(n + 1, sizeof(*b->quiet));
    b->watched = calloc(n + 1, sizeof(*b->watched));
    if (b->results && b->bases && b->keys && b->kinds && b->quiet && b->watched)
        return b;
    free_batch(b);
    return NULL;
}

void kp_batch_group(struct kp_batch *b, size_t group)
{
    b->rotates = true;
    b->group = group;
}

/* Adds a launch, which keeps its position even after failures: counters are assigned by position. */
void kp_batch_add(struct kp_batch *b, struct kp_result *r, const char *base, struct kp_rotation_key *key, bool quiet)
{
    b->quiet[b->n] = quiet;
    b->keys[b->n] = key;
    b->results[b->n] = r;
    b->bases[b->n++] = kp_strdup(base);
}

void kp_batch_kind(struct kp_batch *b, struct kp_rotation_key *kind)
{
    b->kinds[b->n - 1] = kind;
}

void kp_batch_watch(struct kp_batch *b, bool first)
{
    b->watched[b->n - 1] = true;
    b->first |= first;
}

void kp_batch_cut(struct kp_batch *b, enum kp_reason why)
{
    b->counted = b->n;
    b->cut = why;
}

/* Marks metrics asked for by name as missing, except for those that the driver provided. */
static void mark_listed(const char *list, struct kp_result *r, struct kp_why why)
{
    const char *item;
    size_t len;
    while (list && kp_word_next(&list, &item, &len)) {
        char *name = memchr(item, ':', len) ? NULL : strndup(item, len); /* expressions stay as they are */
        if (name && !kp_result_find(r, name))
            kp_result_set_why(r, name, why);
        free(name);
    }
}

/* Marks rows of sections without a plan: CUPTI was never reached, so the table shows what is missing. */
static void mark_section_rows(const struct kp_batch *b, struct kp_result *r, struct kp_why why)
{
    const struct kp_context *c = b->context;
    for (size_t s = 0; s < b->setup->n_sections; s++)
        for (size_t i = 0; i < b->setup->sections[s]->n_rows; i++) {
            const struct kp_row *row = &b->setup->sections[s]->rows[i];
            bool counted = row->source == KP_SRC_COUNTER || row->source == KP_SRC_DERIVED;
            if (kp_row_required(row) && counted && kp_cc_matches(row->cc, c->device.cc_major, c->device.cc_minor) &&
                !kp_result_find(r, row->metric))
                kp_result_set_why(r, row->metric, why);
        }
}

static void complete(const struct kp_batch *b, struct kp_result *r, struct kp_why lack)
{
    struct kp_why why = lack.reason ? lack : kp_why_of(KP_REASON_NOT_COLLECTED, NULL);
    if (b->context->plan) {
        kp_plan_store_missing(b->context->plan, why, r);
        struct kp_lookup code = kp_codes_lookup(kp_context_codes());
        if (!kp_mode_reruns(b->setup->mode)) /* otherwise done when the runs are joined */
            kp_derive_source(r, kp_context_codes() ? &code : NULL, kp_disassembly_category);
        kp_plan_derive(b->context->plan, r);
    } else {
        mark_section_rows(b, r, why);
        mark_listed(b->setup->options->metrics, r, why);
    }
    if (lack.reason && !b->context->no_counters.reason)
        kp_launch_set_note(&r->launch, lack);
    if (r->lossy)
        kp_session_warn_once("out of memory: values of launches are missing");
}

/* Learns which kernels have written host memory, and removes the counters that show it. */
static void look_at_host_writes(const struct kp_batch *b)
{
    for (size_t i = 0; i < b->n && b->context->plan && !b->rotates; i++) {
        const struct kp_launch_info *l = &b->results[i]->launch;
        bool writes = kp_plan_host_writes(b->context->plan, b->results[i]) > 0;
        if (writes && b->watched[i])
            kp_hostwrites_note(l->mangled, l->demangled, l->passes);
        else if (writes)
            kp_debug(KP_DEBUG_WINDOW, "%s: no news: its arguments show it, or it was not repeated",
                     l->demangled ? l->demangled : "a kernel");
    }
}

/* Keeps what the first launches of kernels have counted, for later launches to be added. */
static void begin(struct kp_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->keys[i])
            kp_rotation_begin(b->keys[i], b->context->one_pass, b->results[i]);
}

/* Hands on what launches have counted for others of their kernel. */
static void collect(struct kp_batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (b->keys[i]) {
            struct kp_why none = {KP_REASON_NONE, NULL}, lost = b->counters ? kp_counters_lost(b->counters, i) : none;
            kp_rotation_collect(b->keys[i], b->group, b->quiet[i], b->results[i], b->why.reason ? b->why : lost);
            kp_result_free(b->results[i]);
            free(b->results[i]);
            free(b->bases[i]);
            continue;
        }
        b->results[n] = b->results[i];
        b->bases[n++] = b->bases[i];
    }
    b->n = n;
}

/* Stores `n` results from the `first` on; the keys of first ones, and kinds, learn their place. */
static void hand_over(struct kp_session_entry *entries, const struct kp_batch *b, size_t first, size_t n)
{
    kp_session_results(entries, n);
    for (size_t i = 0; i < n; i++) {
        if (entries[i].goes_on)
            kp_rotation_begun(b->keys[first + i], &entries[i]);
        if (b->kinds[first + i])
            kp_rotation_was_served(b->kinds[first + i], entries[i].id, entries[i].profiled);
    }
}

/* Stores each result separately if there is no memory for the list. */
static void store(struct kp_batch *b)
{
    struct kp_session_entry *entries = calloc(b->n + 1, sizeof(*entries));
    const struct kp_plan *plan = b->context->plan;
    bool profiled = b->counters || (kp_mode_reruns(b->setup->mode) && !b->context->no_counters.reason) ||
                    (plan && !kp_plan_counts(plan));
    kp_session_prepare_codes();
    for (size_t i = 0; i < b->n; i++) {
        bool cut = b->cut && i >= b->counted;
        complete(b, b->results[i], cut ? kp_why_of(b->cut, NULL) : b->why);
        struct kp_session_entry one = {.result = b->results[i],
                                       .base = b->bases[i] ? b->bases[i] : "",
                                       .profiled = profiled && !cut,
                                       .goes_on = !b->rotates && b->keys[i]};
        if (entries)
            entries[i] = one;
        else
            hand_over(&one, b, i, 1);
    }
    if (entries)
        hand_over(entries, b, 0, b->n);
    free(entries);
}

/* The worker has a batch that may be the first to show that a kernel writes host memory. */
static bool telling;

void kp_batch_settle(void)
{
    if (telling)
        kp_worker_drain(KP_FOREVER);
    telling = false;
}

static void finish(struct kp_batch *b)
{
    struct kp_why wrong = {KP_REASON_NONE, NULL};
    if (b->counters)
        wrong = kp_counters_evaluate(b->counters, b->results);
    if (wrong.reason) {
        kp_session_warn_once(kp_why_text(&wrong));
        kp_why_free(&b->why);
        b->why = wrong;
    }
    look_at_host_writes(b);
    (b->rotates ? collect : begin)(b);
    store(b);
    free_batch(b);
}

/* Batches that the worker has not finished. Each holds its results, and the counter data of all its passes. */
enum { MOST_WAITING = 8 };
static atomic_uint waiting;

static void finish_waiting(void *arg)
{
    finish(arg);
    atomic_fetch_sub(&waiting, 1);
}

/* Hands a batch to the worker, unless it is small or the worker is behind. Returns false if the caller keeps it. */
static bool hand_to_worker(struct kp_batch *b)
{
    if (b->n < FEW || atomic_fetch_add(&waiting, 1) >= MOST_WAITING || !kp_worker_submit(finish_waiting, b)) {
        if (b->n >= FEW)
            atomic_fetch_sub(&waiting, 1);
        return false;
    }
    return true;
}

void kp_batch_finish(struct kp_batch *b, const struct kp_context_setup *setup, const struct kp_context *c,
                     struct kp_counters *counters, struct kp_why why)
{
    if (!b || !b->n) {
        kp_counters_free(counters);
        if (b)
            free_batch(b);
        return;
    }
    b->setup = setup;
    b->context = c;
    b->counters = counters;
    b->why = kp_why_copy(why);
    bool tells = b->first && counters && c->plan && kp_plan_watches(c->plan);
    if (hand_to_worker(b)) {
        telling |= tells;
        return;
    }
    telling = false;
    kp_worker_drain(KP_FOREVER); /* one evaluation at a time */
    struct kp_traps traps;
    kp_traps_hold(&traps);
    finish(b);
    kp_traps_let(&traps);
}
