#include "preload/journal/reads.h"

#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "base/text.h"
#include "collectors/replay/footprint.h"
#include "collectors/replay/replay.h"
#include "preload/os/log.h"
#include "preload/program/hostmem.h"
#include "preload/who/timeline.h"
#include "preload/journal/defer.h"
#include "preload/journal/reread.h"
#include "preload/gate/window_facts.h"
#include "preload/journal/read_value.h"
#include "preload/program/waits.h"

enum {
    ALWAYS_LOGGED = 64 << 20, /* byte of a window that are logged whatever memory there is */
    SHARE = 8,                /* of the host's free memory that may be logged beyond that: one in so many */
    MOST_CUTS = 3,            /* of a context, before its reads close windows as other calls do */
    ROOM = 2 << 20            /* device memory for values that come later, in multiples of so many byte */
};

/* ---- sites ---- */

/* At a site where all reads came out equal, a window may read this many times as often as all windows before it: a
 * first difference then costs few launches, and a site that is always equal few windows. */
enum { GROWTH = 8 };

struct kp_read_site {
    uint64_t last; /* hash of the last kernel's name; 0 for a graph */
    const char *symbol;
    size_t equal;    /* reads that came out equal */
    bool never;      /* one did not */
    uint64_t window; /* the last one that read here, and how often */
    size_t here;
};

/* Finds the site, or makes it. NULL: there are too many. */
static struct kp_read_site *site_of(const struct kp_journal *j, const char *symbol)
{
    enum { MOST_SITES = 1024 };
    static struct kp_read_site sites[MOST_SITES];
    static size_t n;
    size_t k = j->n;
    while (k && !j->items[k - 1].is_launch)
        k--;
    const struct kp_known_function *f = k ? j->items[k - 1].entry.function : NULL;
    uint64_t last = f ? kp_hash(f->facts.mangled, strlen(f->facts.mangled), 0) : 0;
    for (size_t i = 0; i < n; i++)
        if (sites[i].last == last && !strcmp(sites[i].symbol, symbol))
            return &sites[i];
    if (n == MOST_SITES)
        return NULL;
    sites[n] = (struct kp_read_site){.last = last, .symbol = symbol};
    return &sites[n++];
}

bool kp_reads_trusted(const struct kp_item *i)
{
    const struct kp_read_site *s = i->read.site;
    return s && !s->never && s->here < GROWTH * s->equal;
}

/* ---- whether a window accepts a read ---- */

/* A read being judged. */
struct question {
    struct kp_journal *j;
    const struct kp_op *op;
    const char *symbol;
};

static bool is_off(const struct question *q)
{
    return !q->j->setup->options->window_reads;
}

/* Returns true if others may write the memory, or a repetition would not find it as it was. */
static bool is_not_alone(const struct question *q)
{
    return kp_context_several(q->j->setup) || kp_flags_met(KP_MET_SHARED) || kp_flags_met(KP_MET_MANAGED) ||
           kp_flags_met(KP_MET_VIRTUAL) || kp_flags_met(KP_MET_HEAP_BLOCKS) ||
           (kp_hostmem_rewound() && !q->j->keeps_host);
}

static bool is_old(const struct question *q)
{
    (void)q;
    return kp_window_closes_at_sync();
}

/* Returns true if the log would grow beyond the memory available for it. Each byte is read again in every repetition,
 * so exceeding the option's limit would cost more time than opening new windows. */
static bool is_much(const struct question *q)
{
    struct kp_journal *j = q->j;
    if (q->op->result_bytes + j->logged <= ALWAYS_LOGGED)
        return false;
    if (!j->most_logged) {
        size_t most = j->setup->options->window_memory, left = kp_footprint_host("") / SHARE;
        j->most_logged = left < most ? left : most;
    }
    return q->op->result_bytes + j->logged > j->most_logged;
}

static bool differed(const struct question *q)
{
    const struct kp_read_site *s = site_of(q->j, q->symbol);
    return !s || s->never || q->j->context->cuts >= MOST_CUTS;
}

/* Asks once a window: the driver is slow to answer. */
static bool lacks_room(const struct question *q)
{
    static bool told;
    struct kp_journal *j = q->j;
    if (!j->logged && !j->keeps_host && !kp_collector_has_room(j->context->collector, 0)) {
        if (!told)
            kp_log_progress("Copies to the host close windows: the device has no room for a second copy of its memory");
        told = true;
        return true;
    }
    return false;
}

/* Reserves device memory for a value that comes later. */
static bool lacks_log(const struct question *q)
{
    struct kp_journal *j = q->j;
    size_t bytes = (q->op->result_bytes + 15) / 16 * 16;
    if (!q->op->later || (j->n_logs && bytes <= j->logs[j->n_logs - 1].room))
        return false;
    if (bytes > ROOM && !kp_collector_has_room(j->context->collector, bytes))
        return true;
    size_t room = (bytes + ROOM - 1) / ROOM * ROOM;
    struct kp_read_log *grown = realloc(j->logs, (j->n_logs + 1) * sizeof(*grown));
    if (!grown)
        return true;
    j->logs = grown;
    CUdeviceptr memory;
    if (j->setup->driver->cuMemAlloc(&memory, room) != CUDA_SUCCESS)
        return true;
    grown[j->n_logs++] = (struct kp_read_log){memory, memory, room, room};
    return false;
}

/* The first row that holds says why the window closes instead. */
static const struct row {
    bool (*holds)(const struct question *q);
    enum kp_reason why;
} read_reasons[] = {
    {is_off, KP_REASON_READS_OFF},    {is_not_alone, KP_REASON_READS_SHARED}, {is_old, KP_REASON_READS_OLD},
    {is_much, KP_REASON_READS_MUCH},  {differed, KP_REASON_READS_DIFFERED},   {lacks_room, KP_REASON_READS_ROOM},
    {lacks_log, KP_REASON_READS_LOG},
};

bool kp_reads_admit(struct kp_journal *j, const struct kp_op *op, const char *symbol)
{
    const struct question q = {j, op, symbol};
    enum kp_reason why = KP_REASON_NONE;
    for (size_t i = 0; i < sizeof(read_reasons) / sizeof(*read_reasons) && !why; i++)
        why = read_reasons[i].holds(&q) ? read_reasons[i].why : KP_REASON_NONE;
    if (why)
        kp_debug(KP_DEBUG_WINDOW, "accepts no read: %s", kp_reason_text(why));
    return !why;
}

/* ---- the log ---- */

void kp_reads_begin(struct kp_journal *j, struct kp_item *i, const char *symbol)
{
    struct kp_read_site *s = i->read.site = site_of(j, symbol);
    if (s && s->window != j->serial) {
        s->window = j->serial;
        s->here = 0;
    }
    if (s)
        s->here++;
    j->reads++;
    j->logged += i->op.result_bytes;
}

/* Copies the value in its stream, as it is after the program's own copy. */
static bool log_behind(struct kp_journal *j, struct kp_item *i)
{
    struct kp_read_log *log = &j->logs[j->n_logs - 1];
    size_t bytes = i->op.result_bytes, taken = (bytes + 15) / 16 * 16;
    kp_timeline_ours_copy(j->context->id, bytes);
    if (kp_value_aside(j->setup->driver, &i->op, log->next) != CUDA_SUCCESS)
        return false;
    i->read.behind = log->next;
    log->next += taken;
    log->room -= taken;
    j->pending = true;
    return true;
}

bool kp_reads_log(struct kp_journal *j, struct kp_item *i)
{
    if (i->op.later)
        return log_behind(j, i);
    i->read.seen = kp_again_room(i->op.result_bytes);
    if (!i->read.seen)
        return false;
    kp_value_take(&i->op, i->read.seen);
    return true;
}

bool kp_reads_arrive(struct kp_journal *j)
{
    if (j->pending && kp_wait_for(j->setup->driver, j->context->ctx, KP_WAIT_WORK) == CUDA_SUCCESS)
        j->pending = j->calls_host = false;
    return !j->pending;
}

static void fetch(const struct kp_driver *d, struct kp_item *i)
{
    i->read.seen = kp_again_room(i->op.result_bytes);
    if (i->read.seen && d->cuMemcpyDtoH(i->read.seen, i->read.behind, i->op.result_bytes) != CUDA_SUCCESS) {
        free(i->read.seen);
        i->read.seen = NULL;
    }
    i->read.behind = 0;
}

void kp_reads_collect(struct kp_journal *j)
{
    const struct kp_driver *d = j->setup->driver;
    for (size_t k = 0; k < j->end; k++) {
        struct kp_item *i = &j->items[k];
        if (i->read.behind)
            fetch(d, i);
        if (!i->is_launch && i->op.result && !i->read.seen)
            j->end = k;
    }
    kp_reads_leave_log(j);
}

void kp_reads_leave_log(struct kp_journal *j)
{
    for (size_t k = 0; k < j->n_logs; k++)
        kp_defer_ours(j->context->ctx, j->logs[k].memory, j->logs[k].bytes);
    j->n_logs = 0;
}

/* ---- repetitions ---- */

CUresult kp_reads_again(struct kp_journal *j, struct kp_item *i)
{
    bool same;
    CUresult rc = kp_again_read(j, i, &same);
    if (rc != CUDA_SUCCESS || same)
        return rc;
    j->cut = (size_t)(i - j->items) + 1;
    return (CUresult)KP_ISSUE_CUT;
}

void kp_reads_learn(struct kp_journal *j, bool well)
{
    for (size_t k = 0; well && k < j->end; k++) {
        struct kp_read_site *s = j->items[k].read.site;
        if (s)
            s->equal++;
    }
    struct kp_read_site *s = j->cut ? j->items[j->cut - 1].read.site : NULL;
    if (s)
        s->never = true;
    j->context->cuts += j->cut != 0;
}
