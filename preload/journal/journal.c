#include "preload/journal/journal.h"

#include <string.h>

#include "base/debug.h"
#include "collectors/code/cubin.h"
#include "preload/contexts/unending.h"
#include "preload/gate/window_facts.h"
#include "preload/journal/defer.h"
#include "preload/journal/graph_memory_check.h"
#include "preload/journal/host_calls.h"
#include "preload/journal/issue.h"
#include "preload/journal/new_memory.h"
#include "preload/journal/reads.h"
#include "preload/journal/record.h"
#include "preload/journal/event_twins.h"
#include "preload/journal/repeat.h"
#include "preload/journal/reread.h"
#include "preload/journal/state.h"
#include "preload/graphs/host_pointers.h"
#include "preload/program/hostmem.h"
#include "preload/program/variables.h"
#include "preload/who/timeline.h"

/* The most host memory compared at each launch that can reach it, bytes. */
enum { MOST_COMPARED = 256 << 10 };

static struct kp_journal *const j = &kp_journal_now;

void kp_journal_open(const struct kp_context_setup *setup, struct kp_context *c, bool rewinds, bool whole)
{
    static uint64_t serials;
    j->open = true;
    j->setup = setup;
    j->context = c;
    j->rewinds = rewinds;
    j->whole = whole;
    j->serial = ++serials;
    j->variables = kp_variables_count();
    j->questions = kp_variables_questions();
}

static bool may_wait(const struct kp_item *i)
{
    const struct kp_entry *e = &i->entry;
    return e->reaches_host || (e->function && e->function->once & KP_WAITS_FOR_OTHERS);
}

struct kp_journal_facts kp_journal_facts(void)
{
    return (struct kp_journal_facts){.open = j->open,
                                     .records = j->n,
                                     .launches = j->launches,
                                     .wanted = j->wanted,
                                     .repeated = j->end,
                                     .reads = j->reads,
                                     .settings = j->settings,
                                     .serial = j->serial,
                                     .variables = j->variables,
                                     .questions = j->questions,
                                     .has_per_thread = j->has_per_thread,
                                     .per_thread = j->per_thread,
                                     .keeps_host = j->keeps_host,
                                     .hangs = j->hangs,
                                     .much_host = kp_snapshot_bytes(&j->host) > MOST_COMPARED,
                                     .allocates = j->allocates};
}

bool kp_journal_may_wait(void)
{
    size_t k = 0;
    while (k < j->n && !may_wait(&j->items[k]))
        k++;
    return k < j->n;
}

/* ---- what it accepts ---- */

/* Waits for what was issued before a launch that waits, or is waited for. */
static bool settle(void)
{
    bool settled = !j->rewinds || j->n <= j->settled || kp_stuck_settle(j->setup->driver, j->context);
    j->settled = settled ? j->n : j->settled;
    return settled;
}

/* Returns true if all host memory that a launch can reach is in the snapshot, and unchanged since. Missing memory is
 * added, up to `most` bytes in all. */
static bool is_as_before(const struct kp_launch *l, size_t most)
{
    return kp_reach_compare(j->setup->driver, l, &j->host, most);
}

enum kp_reason kp_journal_refuses(const struct kp_launch *l, bool reaches, bool quiet)
{
    if (kp_hostcalls_hinder(j))
        return KP_REASON_HOST_FUNCTION;
    if ((reaches && !(settle() && kp_reads_arrive(j))) || (j->rewinds && quiet && !is_as_before(l, MOST_COMPARED)))
        return KP_REASON_REACHES_HOST;
    return KP_REASON_NONE;
}

bool kp_journal_arrives(void)
{
    return kp_reads_arrive(j);
}

bool kp_journal_takes_host(const struct kp_launch *l)
{
    bool kept = true;
    kp_reach_host(j->setup->driver, l, &j->host, KP_MOST_COPIED, &kept);
    return kept;
}

void kp_journal_keeps_host(void)
{
    j->keeps_host = true;
}

void kp_journal_learn(const struct kp_entry *e)
{
    struct kp_known_function *f = e->function;
    j->settled = j->n;
    if (!f || f->loud)
        return;
    f->loud = !is_as_before(&e->launch, 0);
    if (f->loud)
        kp_debug(KP_DEBUG_WINDOW, "%s writes host memory, or waits for the host to do so", f->base);
}

/* ---- what it holds ---- */

static CUstream stream_of(const struct kp_item *i)
{
    CUstream stream = i->is_launch ? kp_launch_stream(&i->entry.launch) : i->op.stream;
    return stream == CU_STREAM_LEGACY ? NULL : stream;
}

static bool is_work(const struct kp_item *i)
{
    return i->is_launch || (i->op.real && !i->op.event && !i->sets && !i->backup);
}

/* Returns true if no earlier work is in the stream of item `k`. */
static bool is_first_of_stream(size_t k)
{
    size_t at = 0;
    while (at < k && (!is_work(&j->items[at]) || stream_of(&j->items[at]) != stream_of(&j->items[k])))
        at++;
    return at == k;
}

struct kp_journal_content kp_journal_content(void)
{
    struct kp_journal_content c = {.graphs = 0};
    for (size_t k = 0; k < j->n; k++) {
        const struct kp_item *i = &j->items[k];
        if (!is_work(i))
            continue;
        c.graphs += i->is_launch && i->entry.launch.is_graph;
        c.copies += !i->is_launch;
        c.streams += is_first_of_stream(k);
    }
    return c;
}

bool kp_journal_repeats_graph(CUgraphExec exec)
{
    size_t k = 0;
    while (k < j->n &&
           !(j->items[k].is_launch && j->items[k].entry.launch.is_graph && j->items[k].entry.launch.graph == exec))
        k++;
    return k < j->n || j->allocates == exec;
}

/* ---- its end ---- */

CUresult kp_journal_wait(long *ms, bool *called)
{
    return kp_hostcalls_wait(j, ms, called);
}

void kp_journal_collect(void)
{
    kp_reads_collect(j);
}

void kp_journal_hangs(void)
{
    j->hangs = true;
}

CUresult kp_journal_end_repeat(void *unused)
{
    (void)unused;
    return kp_issue_end(j);
}

void kp_journal_note_unended(void)
{
    for (size_t k = 0; k < j->n; k++) {
        struct kp_entry *e = &j->items[k].entry;
        CUstream stream = kp_launch_stream(&e->launch);
        bool first = j->items[k].is_launch;
        for (size_t before = 0; first && before < k; before++)
            first = !j->items[before].is_launch || kp_launch_stream(&j->items[before].entry.launch) != stream;
        if (first && e->function && j->setup->driver->cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
            kp_stuck_note(&e->launch, e->function);
    }
    j->context->stalled = true;
}

enum kp_reason kp_journal_prepare(bool lacks_new)
{
    if (lacks_new && !kp_new_memory_keep(j))
        return KP_REASON_NO_NEW_COPY;
    if (!kp_mapped_still(j))
        return KP_REASON_GRAPH_MEMORY_GONE;
    if (!kp_event_twins_make(j))
        return KP_REASON_NO_EVENTS;
    kp_snapshot_keep(&j->host);
    return KP_REASON_NONE;
}

CUresult kp_journal_restore(bool dead)
{
    CUresult rc = dead ? CUDA_SUCCESS : kp_new_memory_put_back(j);
    kp_repeat_set_all(j);
    kp_snapshot_settle(&j->host);
    return rc;
}

void kp_journal_keep_host(void)
{
    kp_snapshot_keep(&j->host);
}

void kp_journal_release_host(void)
{
    kp_snapshot_release(&j->host);
}

void kp_journal_begin_repeats(void)
{
    j->cut = j->stuck = 0;
}

bool kp_journal_was_cut(bool well)
{
    kp_reads_learn(j, well);
    if (!j->cut)
        return false;
    j->end = j->cut - 1;
    return true;
}

/* Gives back what it holds in its context. In a context that has failed, nothing can be freed. */
static void give_back(void)
{
    if (j->context->dead)
        return;
    kp_hostcalls_drop(j);
    kp_hostmem_window_closed(!j->hangs);
    kp_new_memory_leave(j);
    kp_reads_leave_log(j);
    if (j->hangs)
        return; /* a journal that closes when its launches have ended frees them */
    kp_timeline_ours_begin(j->context->id);
    kp_defer_free(j->setup->driver, j->context->ctx);
    kp_timeline_ours_end();
    kp_event_twins_free(j);
    kp_again_prepare(j->setup->driver);
}

void kp_journal_close(enum kp_leave how)
{
    if (how == KP_LEAVE_CLOSED)
        give_back();
    else if (how == KP_LEAVE_ABANDONED)
        kp_event_twins_free(j);
    kp_record_drop_all(j);
}

void kp_journal_forked(void)
{
    kp_defer_forget(NULL);
    memset(j, 0, sizeof(*j));
}
