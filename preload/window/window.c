#include "preload/window/window.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collectors/code/cubin.h"
#include "collectors/replay/rewound.h"
#include "collectors/facts/topology.h"
#include "preload/window/batch.h"
#include "preload/window/closers.h"
#include "preload/program/hostmem.h"
#include "base/lock.h"
#include "preload/os/log.h"
#include "preload/os/stdout_mute.h"
#include "preload/os/outcome.h"
#include "preload/program/ctx_wait.h"
#include "preload/os/exit_first.h"
#include "preload/os/progress.h"
#include "preload/session/session.h"
#include "preload/window/snapshot.h"
#include "preload/who/stack.h"
#include "preload/os/worker.h"

/* Operations of a window that the driver may refuse before it is given up: a program that errs all the time. */
enum { MOST_REFUSED = 16 };

/* Launches that nobody wants are taken along when they come between wanted ones, since closing costs as much as a few
 * dozen of them; this many in a row, and the window closes. */
enum { MOST_UNWANTED = 16 };

/* Room of a window whose launches are counted as they come. Starting and stopping the counters once for so many adds a
 * tenth to what each takes; more only delays the evaluation. */
enum { COUNTED_ROOM = 256 };

/* The most operations of a window, launches included: each is issued again for every pass. */
enum { MOST_ITEMS = 1 << 16 };

/* The most host memory copied for the operations of one window, byte. */
static const size_t most_copied = 256u << 20;

/* How long a launch that may wait for the host is given before the program goes on; how long the end of a window's
 * launches is waited for where the program itself would not wait; what a launch that is rehearsed is given on top; and
 * how long a window that is to open waits for the work that came before it, and the program's end for that of the
 * window; and how long a copy of new memory may take, which waits for what runs; ms. */
enum {
    ALONE_MS = 2000,
    END_MS = 30000,
    REHEARSAL_MS = 2000,
    OPEN_MS = 5000,
    STALLED_MS = 10,
    EXIT_MS = 2000,
    COPY_MS = 1000
};

/* A window that has been open for so long closes where the program waits, so that a program which is killed after hours
 * has lost little: closing takes a tenth of that, ms. */
enum { OLD_MS = 2000 };

static const char no_probe[] =
    "read from an activity record, which another user of CUPTI in this process holds, or which "
    "this CUPTI lacks";

static const char one_pass_probe[] =
    "read from an activity record of a run without counters, and this launch was counted as the program ran it";
static const char after_failure_probe[] = "a kernel had failed";
static const char waits_for_host[] = "waits for the host, not replayed";
static const char waits_for_more[] = "does not end by itself (waits for the host or another kernel), not replayed";
static const char no_context[] = "of a context that the driver gives no facts of";
static const char after_failure[] = "after a kernel had failed";

/* How the counters of a window are come by. */
enum way {
    REPLAYED, /* memory was saved; passes follow when it closes */
    COUNTED,  /* one pass, as the launches come */
    PLAIN,    /* none */
};

struct item {
    bool is_launch;
    unsigned epoch;  /* changes where the program has waited for something */
    struct kp_op op; /* real NULL: the driver refused it */
    uint64_t ticket;
    CUdeviceptr backup; /* of new memory, which the operation copies back */
    struct kp_launch launch;
    struct kp_graph graph;
    struct kp_known_function *function; /* NULL for a graph */
    struct kp_known_config config;      /* all 0 = not known */
    struct kp_result *result;           /* NULL: not wanted */
};

/* An event of the program's, and the one that stands for it when its records and waits are issued again. */
struct twin {
    CUevent of, event;
};

static struct {
    bool open;
    const struct kp_context_setup *setup;
    struct kp_context *context;
    enum way way;
    enum kp_range_mode mode;
    const char *obstacle; /* why it is counted instead of replayed */
    struct item *items;
    size_t n, cap;
    size_t launches, wanted, unwanted_in_a_row, copied;
    struct kp_snapshot host; /* host memory that its launches can reach */
    double opened_ns, ours_ns;
    bool has_per_thread;
    pthread_t per_thread;     /* whose default stream launches went to */
    bool hands_off;           /* the driver must not be called */
    bool hangs;               /* its launches did not end in time: nothing of the driver may be waited for */
    bool unsettled;           /* an operation was issued that may still run */
    bool has_stream, several; /* operations were issued into one stream; into more than one */
    CUstream stream;          /* the first */
    struct twin *twins;
    size_t n_twins;
    size_t stuck; /* index + 1 of the launch that did not end when it was rehearsed, 0 = none */
} w;

static uint64_t tickets;
static atomic_uint epoch;
static atomic_long old_at_ms;
static atomic_uint_fast64_t refused[MOST_REFUSED]; /* tickets of operations that the driver did not take */

static atomic_uint_fast64_t shared_bytes; /* the most dynamic shared memory of a launch in the open window */
static atomic_bool is_open, watches, spoiled, in_a_hurry, shared_memory, managed_memory, virtual_memory, heap_blocks;

bool kp_window_is_open(void)
{
    return atomic_load_explicit(&is_open, memory_order_acquire);
}

bool kp_window_watches(void)
{
    return atomic_load_explicit(&watches, memory_order_acquire);
}

bool kp_window_closes_at_sync(void)
{
    return atomic_load(&shared_memory) || atomic_load(&managed_memory) || kp_now_ms() > atomic_load(&old_at_ms);
}

void kp_window_spoil(void)
{
    atomic_store(&spoiled, true);
    atomic_store(&watches, false);
}

void kp_window_synchronised(void)
{
    if (kp_window_watches())
        atomic_fetch_add(&epoch, 1);
}

void kp_window_hurry(void)
{
    atomic_store(&in_a_hurry, true);
}

bool kp_window_needs_shared(uint64_t bytes)
{
    return kp_window_watches() && atomic_load(&shared_bytes) > bytes;
}

void kp_window_shared_memory(void)
{
    atomic_store(&shared_memory, true);
}

void kp_window_managed_memory(void)
{
    atomic_store(&managed_memory, true);
}

void kp_window_virtual_memory(void)
{
    atomic_store(&virtual_memory, true);
}

void kp_window_heap_blocks(void)
{
    atomic_store(&heap_blocks, true);
}

void kp_window_forked(void)
{
    atomic_store(&is_open, false);
    atomic_store(&watches, false);
    kp_patience_forked();
    memset(&w, 0, sizeof(w));
}

/* ---- contexts ---- */

/* The context of a launch made current, and captures of other threads kept from noticing what we do in it. */
struct visit {
    bool pushed, relaxed;
    CUstreamCaptureMode mode;
};

static struct visit enter(const struct kp_driver *d, CUcontext ctx)
{
    struct visit v = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    CUcontext current = NULL;
    d->cuCtxGetCurrent(&current);
    v.pushed = ctx != current && d->cuCtxPushCurrent(ctx) == CUDA_SUCCESS;
    /* Allocations and waits of ours must not break a capture that another thread opens in global mode. */
    v.relaxed = d->cuThreadExchangeStreamCaptureMode && d->cuThreadExchangeStreamCaptureMode(&v.mode) == CUDA_SUCCESS;
    return v;
}

static void leave(const struct kp_driver *d, struct visit *v)
{
    CUcontext popped;
    if (v->relaxed)
        d->cuThreadExchangeStreamCaptureMode(&v->mode);
    if (v->pushed)
        d->cuCtxPopCurrent(&popped);
}

/* ---- items ---- */

static struct item *new_item(void)
{
    if (w.n == w.cap) {
        size_t cap = w.cap ? 2 * w.cap : 64;
        struct item *grown = realloc(w.items, cap * sizeof(*grown));
        if (!grown)
            return NULL;
        w.items = grown;
        w.cap = cap;
    }
    struct item *i = &w.items[w.n++];
    memset(i, 0, sizeof(*i));
    return i;
}

static void free_item(struct item *i)
{
    if (i->is_launch)
        kp_launch_free(&i->launch);
    else
        kp_op_free(&i->op);
    if (i->result) {
        kp_result_free(i->result);
        free(i->result);
    }
}

static void drop_last(void)
{
    struct item *i = &w.items[--w.n];
    if (i->is_launch) {
        w.launches--;
        w.wanted -= i->result != NULL;
    } else {
        w.copied -= i->op.copied;
    }
    free_item(i);
}

static CUstream stream_of(const struct kp_launch *l)
{
    return l->ptsz && !l->stream ? CU_STREAM_PER_THREAD : l->stream;
}

/* Counted launches wait for their kernels; copies and memsets do not, and must not run beside the next kernel. */
static CUresult settle(void)
{
    bool wait = w.unsettled;
    w.unsettled = false;
    return wait ? w.setup->driver->cuCtxSynchronize() : CUDA_SUCCESS;
}

/* Waits for the launch's stream. CUDA_ERROR_NOT_READY: not done in time. */
static CUresult wait_for(const struct kp_driver *d, CUstream stream, long ms)
{
    long start = kp_now_ms(), waited = 0;
    CUresult rc = d->cuStreamQuery(stream);
    for (int spins = 0; rc == CUDA_ERROR_NOT_READY && waited < ms; rc = d->cuStreamQuery(stream)) {
        if (spins++ > 100)
            kp_nap(waited);
        waited = kp_now_ms() - start;
    }
    return rc;
}

/* Waits for what does not end cost the program time that it would not need without us: all of them together take no
 * more than this; then they are short, as what hangs is likely to hang again. ms. */
enum { WASTED_MS = 20000, SHORT_MS = 200, SHORT_END_MS = 500 };
static long wasted_ms;

static long within_budget(long ms, long least)
{
    long left = WASTED_MS - wasted_ms;
    left = left < least ? least : left;
    return ms < left ? ms : left;
}

static CUresult note_wasted(CUresult rc, long since)
{
    if (rc == CUDA_ERROR_NOT_READY)
        wasted_ms += kp_now_ms() - since;
    return rc;
}

/* For a launch that is rehearsed: what it took when the program made it is no waste. */
static CUresult wait_stream(CUstream stream, long ms)
{
    long start = kp_now_ms(), least = ms - REHEARSAL_MS + SHORT_MS;
    return note_wasted(wait_for(w.setup->driver, stream, within_budget(ms, least)), start);
}

/* Waits for a context, which is current. */
static CUresult wait_for_context(const struct kp_driver *d, CUcontext ctx, long ms, long least)
{
    long start = kp_now_ms();
    ms = within_budget(ms, least);
    kp_progress_step("waiting for launches to end", false);
    return note_wasted(kp_patience_wait(d, ctx, ms), start);
}

static CUresult wait_limited(long ms)
{
    return wait_for_context(w.setup->driver, w.context->ctx, ms, SHORT_MS);
}

/* New memory as it was when it was allocated. Nothing may use it before the copy is done, in whatever stream; it waits
 * for what was issued before it, which has ended once already. */
static CUresult put_back(const struct item *i)
{
    CUresult rc = kp_op_issue(&i->op);
    return rc == CUDA_SUCCESS ? wait_for(w.setup->driver, CU_STREAM_LEGACY, END_MS) : rc;
}

/* A launch between the hooks, where it has a result and there are any. */
static CUresult issue_launch(struct item *i, const struct kp_issue_hooks *hooks)
{
    if (!hooks || !i->result)
        return i->launch.issue(&i->launch);
    CUresult rc = settle();
    if (rc == CUDA_SUCCESS)
        rc = hooks->before(hooks->arg, stream_of(&i->launch));
    if (rc == CUDA_SUCCESS)
        rc = i->launch.issue(&i->launch);
    return rc == CUDA_SUCCESS ? hooks->after(hooks->arg) : rc;
}

static CUevent twin_of(uint64_t event)
{
    for (size_t i = 0; i < w.n_twins; i++)
        if ((uint64_t)(uintptr_t)w.twins[i].of == event)
            return w.twins[i].event;
    return NULL;
}

/* The program's events keep what its own execution recorded. Without a twin the operation is left out: it makes orders
 * between streams only, which hold where each operation waits for the one before it. */
static CUresult issue_op(const struct kp_op *op)
{
    struct kp_op with_twin = *op;
    if (!op->real)
        return CUDA_SUCCESS;
    if (!op->event)
        return kp_op_issue(op);
    CUevent twin = twin_of(op->args[op->event - 1]);
    if (!twin)
        return CUDA_SUCCESS;
    with_twin.args[op->event - 1] = (uintptr_t)twin;
    return kp_op_issue(&with_twin);
}

/* An operation of a repetition. The host of the program may have ordered operations of several streams by waiting in
 * between: there, `serial`, each waits for the end of the one before it. Within one stream they are in order anyway. */
static CUresult issue_again(struct item *i, const struct kp_issue_hooks *hooks, bool serial)
{
    serial = serial && w.several;
    CUresult rc = serial ? settle() : CUDA_SUCCESS;
    if (rc != CUDA_SUCCESS)
        return rc;
    if (i->backup)
        return put_back(i);
    if (!i->is_launch) {
        w.unsettled = true;
        return issue_op(&i->op);
    }
    rc = issue_launch(i, hooks);
    w.unsettled |= serial;
    return rc;
}

static CUresult issue_all(void *arg, const struct kp_issue_hooks *hooks)
{
    CUresult rc = CUDA_SUCCESS;
    (void)arg;
    kp_snapshot_restore(&w.host);
    w.unsettled = false; /* the context has been waited for */
    for (size_t i = 0; i < w.n && rc == CUDA_SUCCESS; i++)
        rc = issue_again(&w.items[i], hooks, !w.stuck || i < w.stuck);
    return rc;
}

/* In the window's context. Only for several streams: in one, records and waits change nothing. */
static void make_twins(void)
{
    const struct kp_driver *d = w.setup->driver;
    for (size_t k = 0; w.several && d->cuEventCreate && d->cuEventDestroy && k < w.n; k++) {
        const struct kp_op *op = &w.items[k].op;
        uint64_t of = !w.items[k].is_launch && op->real && op->event ? op->args[op->event - 1] : 0;
        struct twin *grown;
        if (!of || twin_of(of) || !(grown = realloc(w.twins, (w.n_twins + 1) * sizeof(*grown))))
            continue;
        w.twins = grown;
        grown[w.n_twins] = (struct twin){.of = (CUevent)(uintptr_t)of};
        w.n_twins += d->cuEventCreate(&grown[w.n_twins].event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
    }
}

/* Every operation that joins is told of here. */
static void note_stream(CUstream stream)
{
    stream = stream == CU_STREAM_LEGACY ? NULL : stream;
    w.several |= w.has_stream && w.stream != stream;
    w.stream = w.has_stream ? w.stream : stream;
    w.has_stream = true;
}

/* ---- the rehearsal ---- */

/* Graphs of which a launch did not end by itself: the last ones. */
enum { MOST_STUCK = 64 };
static CUgraphExec stuck_graphs[MOST_STUCK];
static size_t n_stuck_graphs;

/* Why a launch is not to be waited for, or NULL. */
static const char *known_to_wait(const struct kp_launch *l, const struct kp_known_function *f)
{
    for (size_t i = 0; l->is_graph && i < n_stuck_graphs && i < MOST_STUCK; i++)
        if (stuck_graphs[i] == l->graph)
            return waits_for_more;
    return f ? f->waits : NULL;
}

/* A launch is known not to end by itself: nothing waits for its kernel again. */
static void note_stuck(size_t at)
{
    w.stuck = w.stuck ? w.stuck : at + 1;
    if (w.items[at].function)
        w.items[at].function->waits = waits_for_more;
    else
        stuck_graphs[n_stuck_graphs++ % MOST_STUCK] = w.items[at].launch.graph;
}

/* Behind a launch that does not end: where the program has waited for something before it went on, what comes next may
 * need that. All that was issued is waited for, in limited time, unless that was of no use before: what the launch
 * waits for may come only later. Whether everything has ended. */
static bool wait_as_program(size_t at, long limit, unsigned *waits)
{
    enum { MOST_WAITS = 2 };
    if (!at || w.items[at].epoch == w.items[at - 1].epoch || *waits >= MOST_WAITS)
        return false;
    ++*waits;
    return wait_limited(limit) == CUDA_SUCCESS;
}

/* Dry run: waits after each launch, as counter passes do. A launch that waits for another one, or for something that
 * the host does later, would wait for ever there; here it is found out. The rest is issued without such waits, so that
 * all comes to its end. */
static int rehearse(void *arg)
{
    const struct kp_driver *d = w.setup->driver;
    const long *limit = arg;
    bool late = false;
    unsigned waits = 0;
    kp_snapshot_restore(&w.host);
    w.unsettled = false;
    kp_progress_step("a first repetition of a window, without counters", false);
    for (size_t i = 0; i < w.n; i++) {
        struct item *item = &w.items[i];
        late = late && !wait_as_program(i, *limit, &waits);
        CUresult rc = issue_again(item, NULL, !late);
        if (rc == CUDA_SUCCESS && item->is_launch && !late) {
            rc = wait_stream(stream_of(&item->launch), *limit);
            if (rc == CUDA_ERROR_NOT_READY) {
                late = true;
                rc = CUDA_SUCCESS;
                note_stuck(i);
            }
        }
        if (late)
            kp_snapshot_release(&w.host); /* what the host had set when the program's own launches ended */
        if (rc != CUDA_SUCCESS)
            return d->cuCtxSynchronize() == CUDA_SUCCESS ? KP_ISSUE_REFUSED : (int)rc;
    }
    CUresult rc = d->cuCtxSynchronize();
    return rc != CUDA_SUCCESS ? (int)rc : w.stuck ? KP_ISSUE_TOO_LONG : 0;
}

/* ---- what only an activity record tells ---- */

static uint32_t threads_of(const struct kp_launch *l)
{
    return l->shape.block[0] * l->shape.block[1] * l->shape.block[2];
}

static bool wants_probe(void)
{
    bool missing = false;
    for (size_t k = 0; w.setup->configs && k < w.n; k++) {
        struct item *i = &w.items[k];
        if (!i->function || !i->result)
            continue;
        const struct kp_known_config *known =
            kp_context_config(i->function, threads_of(&i->launch), i->launch.shape.dynamic_shared);
        if (known)
            i->config = *known;
        else
            missing = true;
    }
    return missing && kp_context_may_probe();
}

/* Takes over what the activity records say. They come in launch order; a record of another kernel (one that a kernel
 * launched itself) is passed over. */
static void learn(const struct kp_executed *records, size_t n)
{
    size_t next = 0;
    for (size_t k = 0; k < w.n; k++) {
        struct item *i = &w.items[k];
        if (!i->function)
            continue;
        while (next < n && strncmp(records[next].name, i->function->facts.mangled, sizeof(records[next].name) - 1))
            next++;
        if (next == n)
            return;
        const struct kp_executed *r = &records[next++];
        if (!r->shared_config_size || i->config.shared_config)
            continue;
        i->config = (struct kp_known_config){.threads = threads_of(&i->launch),
                                             .dynamic_shared = i->launch.shape.dynamic_shared,
                                             .shared_config = r->shared_config_size,
                                             .registers = r->registers};
        if (!kp_context_config(i->function, i->config.threads, i->config.dynamic_shared))
            kp_context_learn(i->function, &i->config);
    }
}

/* ---- results ---- */

static char *describe_graph(const struct kp_graph *g)
{
    char *text = NULL;
    return asprintf(&text, "CUDA graph of %u kernel%s, %u cop%s, %u memset%s, %u other node%s", g->kernels,
                    g->kernels == 1 ? "" : "s", g->copies, g->copies == 1 ? "y" : "ies", g->sets,
                    g->sets == 1 ? "" : "s", g->others, g->others == 1 ? "" : "s") < 0
               ? NULL
               : text;
}

/* A driver that cannot name functions leaves what the program called the runtime with. */
static char *fallback_name(const struct kp_launch *l)
{
    char *text = NULL;
    if (l->host_function)
        return asprintf(&text, "kernel of host function %p", l->host_function) < 0 ? NULL : text;
    return kp_strdup("unnamed kernel");
}

static void fill_header(struct item *item)
{
    struct kp_launch_info *i = &item->result->launch;
    const struct kp_launch *l = &item->launch;
    const struct kp_context *c = w.context;
    const char *mangled = item->function ? item->function->facts.mangled : "";
    i->kind = item->function ? KP_WORKLOAD_KERNEL : KP_WORKLOAD_GRAPH;
    i->mangled = kp_strdup(mangled);
    if (!item->function)
        i->demangled = describe_graph(&item->graph);
    else
        i->demangled = *mangled ? kp_strdup(item->function->demangled) : fallback_name(l);
    memcpy(i->grid, l->shape.grid, sizeof(i->grid));
    memcpy(i->block, l->shape.block, sizeof(i->block));
    i->context_id = c->id;
    i->stream_id = kp_context_stream_id(w.setup, c, l->stream, l->ptsz);
    i->device = c->device_ordinal;
    i->cc_major = c->device.cc_major;
    i->cc_minor = c->device.cc_minor;
    i->chip = kp_strdup(c->chip);
    i->reason = kp_strdup("");
    item->result->lossy |= !i->mangled || !i->demangled || !i->chip || !i->reason;
}

/* The values of a launch that need no counter. Attributes of the launch win over those of the function. */
static void fill_launch(struct item *i)
{
    struct kp_shape shape = i->launch.shape;
    const struct kp_function *f = &i->function->facts;
    struct kp_launch_extra extra = {.shared_config = i->config.shared_config,
                                    .registers = i->config.registers,
                                    .shared_config_why = !kp_context_cupti() ? w.context->no_counters
                                                         : w.context->dead   ? after_failure_probe
                                                         : w.way == COUNTED  ? one_pass_probe
                                                                             : no_probe,
                                    .curves = w.context->curves};
    if (!shape.cluster[0] && f->cluster[0])
        memcpy(shape.cluster, f->cluster, sizeof(shape.cluster));
    if (!shape.cluster_policy)
        shape.cluster_policy = f->cluster_policy;
    kp_launch_metrics(i->result, w.setup->driver, &w.context->device, &w.context->facts, f, &shape, &extra);
    kp_device_metrics_copy(i->result, &w.context->machine);
}

/* Hands the results on: to the worker, which evaluates and stores them. */
static void hand_on(struct kp_window_outcome *out)
{
    struct kp_context *c = w.context;
    struct kp_batch *b = kp_batch_new(w.wanted);
    double each = w.wanted ? (kp_now_ns() - w.opened_ns) : 0;
    if (w.ours_ns < each)
        each = w.ours_ns;
    each = w.wanted ? each / (double)w.wanted : 0;
    sigset_t before = kp_signals_hold();
    for (size_t k = 0; k < w.n; k++) {
        struct item *i = &w.items[k];
        if (!i->result)
            continue;
        if (i->function && !w.hands_off)
            fill_launch(i);
        i->result->launch.passes = (uint32_t)out->replay.passes;
        i->result->launch.profiler_ns = each;
        const char *name = i->function && *i->function->base ? i->function->base : i->result->launch.demangled;
        if (b) {
            kp_batch_add(b, i->result, name ? name : "");
            i->result = NULL;
        }
    }
    kp_signals_let(&before);
    if (!b)
        kp_session_warn(KP_FAILURE_MEMORY, "out of memory: results of a window are lost");
    const char *obstacle = w.setup->one_pass ? NULL : w.obstacle; /* where nothing is replayed it is no news */
    const char *why = c->no_counters ? c->no_counters : out->note ? out->note : obstacle;
    kp_batch_finish(b, w.setup, c, out->counters, why);
    out->counters = NULL;
}

/* ---- closing ---- */

static void judge(const struct kp_window_outcome *out)
{
    struct kp_context *c = w.context;
    if (out->replay.dead)
        c->dead = true;
    if (out->replay.damaged) {
        kp_outcome_failed(KP_FAILURE_DAMAGE);
        kp_log_error(
            "device memory could not be restored for a replay (%s): the program's results from here on are not "
            "to be trusted; no more launches are replayed",
            out->note ? out->note : "no reason given");
        if (!c->no_counters)
            c->no_counters = kp_strdup("a restore of the device memory failed earlier");
    }
    if (c->no_counters)
        kp_session_warn_once(c->no_counters);
    else if (out->note)
        kp_session_warn_once(out->note);
}

/* The profiler refused the plan: perhaps the device lacks some of the counters, or offers none to this user. */
static void plan_again(const struct kp_context_setup *setup, struct kp_context *c)
{
    kp_worker_drain(KP_FOREVER);
    kp_context_plan_again(setup, c);
    if (c->no_counters)
        kp_session_warn_once(c->no_counters);
}

static bool *launches_wanted(void)
{
    bool *list = calloc(w.launches + 1, sizeof(*list));
    size_t n = 0;
    for (size_t k = 0; list && k < w.n; k++)
        if (w.items[k].is_launch)
            list[n++] = w.items[k].result != NULL;
    return list;
}

static void run_passes(struct kp_window_outcome *out)
{
    /* The program's launches have ended: what one of them takes alone is no more than all took. */
    long limit = REHEARSAL_MS + 2 * (long)((kp_now_ns() - w.opened_ns) / 1e6);
    make_twins();
    struct kp_executed *records = calloc(w.launches + 1, sizeof(*records));
    bool *wanted = launches_wanted();
    struct kp_window_job job = {.issue = issue_all,
                                .rehearse = rehearse,
                                .arg = &limit,
                                .mode = w.mode,
                                .wanted = wanted,
                                .n_launches = w.launches,
                                .executed = records,
                                .probe = records && wants_probe()};
    if (!wanted) {
        out->note = kp_strdup("out of memory");
        w.launches = 0; /* a pass under way ends without results */
    }
    if (w.way == COUNTED) {
        job.n_launches = w.launches;
        kp_collector_count_end(w.context->collector, &job, out);
    } else if (wanted) {
        struct kp_mute mute;
        kp_mute_begin(&mute);
        kp_collector_replay(w.context->collector, &job, out);
        kp_mute_end(&mute);
        learn(records, job.n_executed);
    }
    free(wanted);
    free(records);
}

static long end_ms(void)
{
    return atomic_load(&in_a_hurry) ? EXIT_MS : END_MS;
}

/* The first launches of the streams that have not ended are those that wait, or what they wait behind. */
static void note_unended(void)
{
    for (size_t k = 0; k < w.n; k++) {
        struct item *i = &w.items[k];
        bool first = i->is_launch;
        for (size_t before = 0; first && before < k; before++)
            first = !w.items[before].is_launch || stream_of(&w.items[before].launch) != stream_of(&i->launch);
        if (first && i->function && w.setup->driver->cuStreamQuery(stream_of(&i->launch)) == CUDA_ERROR_NOT_READY)
            i->function->waits = waits_for_more;
    }
    w.context->stalled = true;
}

static void give_up_waiting(struct kp_window_outcome *out)
{
    kp_collector_leave(w.context->collector);
    w.hangs = true;
    if (w.way == COUNTED && !w.context->no_counters)
        w.context->no_counters = kp_strdup("work of the context did not end while its launches were counted");
    if (asprintf(&out->note,
                 "the window's launches did not end within %ld s (one of them waits for something that comes later): "
                 "not replayed",
                 end_ms() / 1000) < 0)
        out->note = NULL;
}

static void close_current(struct kp_window_outcome *out)
{
    struct kp_collector *c = w.context->collector;
    if (w.way == REPLAYED && atomic_load(&spoiled)) {
        w.hangs = kp_patience_wait(w.setup->driver, w.context->ctx, EXIT_MS) != CUDA_SUCCESS;
        if (w.hangs)
            kp_collector_leave(c);
        else
            kp_collector_drop(c);
        out->note = kp_strdup("a call of another thread did not end while the window was open: not replayed");
        return;
    }
    /* A window may close where the program itself would go on: then a launch that waits for the program would never
     * end, so patience has a limit. What is counted has ended already. */
    CUresult rc = w.way == COUNTED ? w.setup->driver->cuCtxSynchronize()
                                   : wait_for_context(w.setup->driver, w.context->ctx, end_ms(), SHORT_END_MS);
    if (rc == CUDA_ERROR_NOT_READY) {
        note_unended();
        give_up_waiting(out);
        return;
    }
    if (rc != CUDA_SUCCESS) { /* a fault of the program's own, which its next call tells it */
        w.context->dead = true;
        kp_collector_leave(c);
        out->note = kp_strdup("a kernel of the window failed");
    } else if (w.way == COUNTED || w.wanted) {
        kp_snapshot_keep(&w.host);
        run_passes(out);
        kp_snapshot_settle(&w.host);
    }
    if (w.way == REPLAYED && !w.context->dead)
        kp_collector_drop(c);
}

/* In the window's context. */
static void free_backups(void)
{
    for (size_t k = 0; k < w.n; k++)
        if (w.items[k].backup)
            w.setup->driver->cuMemFree(w.items[k].backup);
}

static void reset(void)
{
    sigset_t before = kp_signals_hold();
    free(w.twins);
    for (size_t k = 0; k < w.n; k++)
        free_item(&w.items[k]);
    kp_snapshot_free(&w.host);
    kp_signals_let(&before);
    struct item *items = w.items;
    size_t cap = w.cap;
    memset(&w, 0, sizeof(w));
    w.items = items;
    w.cap = cap;
    atomic_store(&watches, false);
    atomic_store(&is_open, false);
}

/* The program's calls have all returned: what the driver refused is known. */
static void drop_refused(void)
{
    for (int r = 0; r < MOST_REFUSED; r++) {
        uint64_t ticket = atomic_exchange(&refused[r], 0);
        for (size_t k = 0; ticket && k < w.n; k++)
            if (w.items[k].ticket == ticket) {
                kp_op_free(&w.items[k].op);
                memset(&w.items[k], 0, sizeof(w.items[k]));
            }
    }
}

/* KP_VENDOR: CUPTI registers exit handlers of its own when parts of it are first used. Ours, which may close a last
 * window, has to run before them. */
static void exit_before_cupti(void)
{
    enum { FIRST_WINDOWS = 3 };
    static int closed;
    if (closed++ < FIRST_WINDOWS)
        kp_exit_first();
}

/* What the collector lacks beside the counters: for good, or in this window. */
static void tell_complaints(void)
{
    char *text;
    while (w.context->collector && (text = kp_collector_complaint(w.context->collector))) {
        kp_session_warn(KP_FAILURE_IN_PART, text);
        free(text);
    }
}

void kp_window_close(const struct kp_context_setup *setup, const char *why)
{
    struct kp_window_outcome out;
    if (!w.open)
        return;
    if (w.way == REPLAYED && w.wanted)
        kp_closers_note(why, w.launches);
    memset(&out, 0, sizeof(out));
    double start = kp_now_ns();
    struct visit v = enter(setup->driver, w.context->ctx);
    kp_progress_begin("waiting for the launches of a window to end", w.way != PLAIN);
    drop_refused();
    if (w.way != PLAIN)
        close_current(&out);
    judge(&out);
    w.ours_ns += kp_now_ns() - start;
    hand_on(&out);
    tell_complaints();
    if (out.replay.failed == KP_STAGE_BEGIN || out.replay.failed == KP_STAGE_START)
        plan_again(setup, w.context);
    if (!w.context->dead && !w.hangs) {
        free_backups();
        for (size_t k = 0; k < w.n_twins; k++)
            setup->driver->cuEventDestroy(w.twins[k].event);
    }
    leave(setup->driver, &v);
    kp_counters_free(out.counters);
    free(out.note);
    if (w.way != PLAIN)
        exit_before_cupti();
    kp_progress_end();
    if (w.way == REPLAYED && w.wanted)
        kp_closers_tell_early(w.ours_ns);
    reset();
}

void kp_window_give_up(void)
{
    struct kp_window_outcome out;
    if (!w.open)
        return;
    memset(&out, 0, sizeof(out));
    out.note = kp_strdup("the program ended while the window was open, where the driver could not be called");
    w.context->dead = true; /* nothing of it is to be touched any more */
    w.hands_off = true;
    hand_on(&out);
    free(out.note);
    reset();
}

/* What is decided of a launch once its context and function are known. */
struct fit {
    enum kp_range_mode mode;
    const char *alone; /* why it takes a window of its own, or NULL */
    bool host;         /* it can reach host memory */
    bool ends;         /* and is known to end by itself */
    bool once;         /* the obstacle is that it must not be run again: it waits for nobody */
    const char *obstacle;
};

/* ---- opening ---- */

static bool open_replayed(char **why)
{
    if (kp_collector_save(w.context->collector, why))
        return false;
    w.way = REPLAYED;
    return true;
}

static bool open_counted(size_t room, char **why)
{
    if (!kp_context_one_pass(w.setup, w.context) || kp_collector_count_begin(w.context->collector, w.mode, room, why))
        return false;
    w.way = COUNTED;
    return true;
}

static bool has_counters(const struct kp_context_setup *setup, const struct kp_context *c)
{
    return c->collector && !c->no_counters && (setup->one_pass || kp_plan_counts(c->plan) || c->extras);
}

/* The most launches a window of this context may hold. */
static size_t room_for(const struct kp_context *c)
{
    size_t room = c->collector ? kp_collector_room(c->collector) : 1;
    return w.setup->one_pass && room > COUNTED_ROOM ? COUNTED_ROOM : room;
}

/* Opens a window for launches of this kind. A window of no counters at all is one too: of one launch. */
static void open_window(const struct kp_context_setup *setup, struct kp_context *c, const struct fit *fit)
{
    const char *obstacle = fit->obstacle;
    enum kp_range_mode mode = fit->mode;
    bool once = (!fit->host || fit->ends) && !kp_context_several(setup);
    char *why = NULL;
    kp_progress_begin("", false);
    w.open = true;
    w.setup = setup;
    w.context = c;
    w.mode = mode;
    w.obstacle = obstacle;
    w.way = PLAIN;
    w.opened_ns = kp_now_ns();
    if (has_counters(setup, c)) {
        bool count = setup->one_pass || obstacle;
        bool opened = count ? open_counted(obstacle ? 1 : room_for(c), &why) : open_replayed(&why);
        if (!opened && !count && once) {
            /* What cannot be saved can still be counted once. */
            kp_session_warn(KP_FAILURE_IN_PART, why ? why : "memory cannot be saved");
            w.obstacle = "its memory could not be saved, not replayed";
            free(why);
            why = NULL;
            opened = open_counted(1, &why);
        }
        if (!opened && why)
            kp_session_warn_once(why);
    }
    free(why);
    kp_progress_end();
    w.ours_ns = kp_now_ns() - w.opened_ns;
    atomic_store(&spoiled, false);
    atomic_store(&shared_bytes, 0);
    atomic_store(&old_at_ms, kp_now_ms() + OLD_MS);
    atomic_store(&watches, w.way == REPLAYED);
    atomic_store(&is_open, true);
}

/* ---- launches ---- */

/* Where kernels can read and write any memory of the host: whether a word of the arguments may be an address of such
 * memory, which is not known to CUDA but mapped in this process. It cannot be rewound, as its extent is not known. */
static bool reaches_heap(const struct kp_driver *d, const struct kp_launch *l)
{
    const uint64_t page = 4096, lowest = 1 << 16, end = 1ull << 47;
    for (size_t at = 0; at + sizeof(uint64_t) <= l->copied; at += sizeof(uint64_t)) {
        uint64_t word;
        unsigned char resident;
        unsigned type = 0;
        memcpy(&word, (const char *)l->copy + at, sizeof(word));
        bool ours = word >= (uint64_t)(uintptr_t)l->copy && word < (uint64_t)(uintptr_t)l->copy + l->copied;
        if (word < lowest || word >= end || ours || mincore((void *)(uintptr_t)(word / page * page), page, &resident))
            continue;
        if (!d->cuPointerGetAttribute ||
            d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) != CUDA_SUCCESS)
            return true;
    }
    return false;
}

/* Whether a word of the copied arguments is an address of host memory that the device can reach. Such memory is added
 * to `into`; *kept says whether all of it could be. */
static bool reaches_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, bool *kept)
{
    bool found = false;
    unsigned type = 0;
    for (size_t at = 0; at + sizeof(uint64_t) <= l->copied; at += sizeof(uint64_t)) {
        uint64_t word;
        void *base;
        size_t bytes;
        memcpy(&word, (const char *)l->copy + at, sizeof(word));
        /* Pinned memory ends with its context, of which the table is not told. */
        if (!kp_hostmem_find(word, &base, &bytes) ||
            (d->cuPointerGetAttribute &&
             (d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) != CUDA_SUCCESS ||
              type != CU_MEMORYTYPE_HOST)))
            continue;
        found = true;
        if (into && (kp_snapshot_bytes(into) + bytes > most_copied || !kp_snapshot_add(into, base, bytes)))
            *kept = false;
    }
    return found;
}

static bool is_host(uint64_t address)
{
    void *base;
    size_t bytes;
    return kp_hostmem_find(address, &base, &bytes);
}

/* Why a second execution of the kernel would find what a restore does not bring back, or NULL. */
static const char *why_once(const struct kp_known_function *f)
{
    unsigned once = f ? f->once : 0;
    const char *why = NULL;
    if (once & KP_ONCE_HEAP)
        return "takes or frees memory of the device's heap, which cannot be rewound, not replayed";
    if (once & KP_ONCE_LAUNCHES)
        return "gives the device work of its own (dynamic parallelism), not replayed";
    if (atomic_load(&heap_blocks))
        why = kp_not_rewound(KP_MEMORY_HEAP_BLOCKS);
    if (!why && atomic_load(&virtual_memory))
        why = kp_not_rewound(KP_MEMORY_HOST_VIRTUAL);
    return why;
}

static struct fit judge_launch(const struct kp_context_setup *setup, const struct kp_context *c,
                               const struct kp_launch *l, const struct kp_candidate *what,
                               const struct kp_known_function *f)
{
    struct fit fit = {.mode = l->is_graph ? KP_RANGE_USER : KP_RANGE_AUTO, .obstacle = what->obstacle};
    bool heap = f && c->device.pageable_access && reaches_heap(setup->driver, l);
    fit.host = f && (heap || atomic_load(&managed_memory) || reaches_host(setup->driver, l, NULL, NULL));
    fit.ends = f && f->ends;
    /* Where nothing is replayed, only what waits for other devices of this process is in the way; and KP_VENDOR: of
     * several graphs that allocate memory CUPTI counts the first range alone, seen on an H200. */
    if (setup->one_pass && !kp_context_several(setup) && !(what->graph && what->graph->allocates))
        fit.obstacle = NULL;
    if (!fit.obstacle && heap && !setup->one_pass)
        fit.obstacle = "can reach memory of the host that cannot be rewound, not replayed";
    /* What others write while a window is replayed would be rewound: a partner's message, and with it all that wait for
     * it. */
    if (!fit.obstacle && atomic_load(&shared_memory) && !setup->one_pass)
        fit.obstacle = "memory is shared with other processes or devices, not replayed";
    if (!fit.obstacle && kp_hostmem_shared() && !setup->one_pass)
        fit.obstacle = "host memory that other processes can map is registered, not replayed";
    if (!fit.obstacle && !setup->one_pass)
        fit.once = (fit.obstacle = why_once(f)) != NULL;
    /* Arguments of unknown size cannot be copied, so the launch must be over when the call returns. */
    bool uncopied = f && ((l->params && !f->facts.params_known) || (l->extra && !l->extra_copied));
    bool reads = what->graph && what->graph->reads_host;
    fit.alone = fit.obstacle                   ? fit.obstacle
                : fit.host                     ? "a kernel that can reach host memory"
                : uncopied                     ? "arguments of unknown size"
                : reads                        ? "a graph that reads host memory"
                : atomic_load(&managed_memory) ? "managed memory"
                : kp_hostmem_rewound()         ? "pinned memory that a replay would rewind"
                                               : NULL;
    return fit;
}

static bool per_thread(const struct kp_launch *l)
{
    return stream_of(l) == CU_STREAM_PER_THREAD;
}

/* Why the window that is open does not take it, or NULL. */
static const char *misfit(const struct kp_context *c, const struct kp_launch *l, const struct fit *fit, bool wanted)
{
    if (!w.open)
        return "none is open";
    if (w.context != c)
        return "a launch in another context";
    if (fit->obstacle || w.obstacle)
        return fit->obstacle ? fit->obstacle : w.obstacle;
    if (w.way == PLAIN || (fit->mode != w.mode && (wanted || fit->mode == KP_RANGE_USER || w.way == COUNTED)))
        return "a launch of another kind";
    if (per_thread(l) && w.has_per_thread && !pthread_equal(w.per_thread, pthread_self()))
        return "default streams of several threads"; /* issued into one stream again, they may wait for each other */
    if (w.launches >= room_for(c))
        return kp_closed_full;
    if (!wanted && w.unwanted_in_a_row >= MOST_UNWANTED)
        return "many launches that were not asked for";
    if (w.way != COUNTED)
        return fit->alone;
    return fit->host && !fit->ends ? "a kernel that can reach host memory" : NULL;
}

/* Takes the launch over, with the copy of its arguments. */
static bool take_over(struct kp_launch *l, const struct kp_candidate *what, struct kp_known_function *f)
{
    struct kp_result *result = what->wanted ? calloc(1, sizeof(*result)) : NULL;
    struct item *i = what->wanted && !result ? NULL : new_item();
    if (!i) {
        free(result);
        return false;
    }
    i->is_launch = true;
    i->function = f;
    i->launch = *l;
    i->result = result;
    i->launch.nvtx = (struct kp_nvtx){.ranges = NULL};
    l->copy = NULL;
    if (what->graph)
        i->graph = *what->graph;
    if (per_thread(l)) {
        w.has_per_thread = true;
        w.per_thread = pthread_self();
    }
    note_stream(stream_of(l));
    i->epoch = atomic_load(&epoch);
    w.launches++;
    w.wanted += what->wanted;
    if (l->shape.dynamic_shared > atomic_load(&shared_bytes))
        atomic_store(&shared_bytes, l->shape.dynamic_shared);
    if (result) {
        fill_header(i);
        result->launch.nvtx = l->nvtx;
        l->nvtx = (struct kp_nvtx){.ranges = NULL};
        result->launch.stack = kp_stack_capture(l->caller);
    }
    i->launch.caller = NULL;
    return true;
}

static bool record(struct kp_launch *l, const struct kp_candidate *what, struct kp_known_function *f)
{
    sigset_t before = kp_signals_hold();
    bool recorded = take_over(l, what, f);
    kp_signals_let(&before);
    return recorded;
}

/* Whether what was launched ends by itself, in reasonable time. */
static bool watch(const struct kp_driver *d, struct kp_context *c, struct kp_known_function *f)
{
    bool ends = wait_for_context(d, c->ctx, ALONE_MS, SHORT_MS) != CUDA_ERROR_NOT_READY;
    c->stalled = !ends; /* later launches need not wait as long to find that out */
    if (f) {
        f->ends = ends;
        f->waits = ends ? NULL : waits_for_host;
    }
    return ends;
}

/* A launch that can reach host memory may wait for the host. It has to end by itself, or the program goes on with it.
 */
static bool ends_alone(struct item *i)
{
    return watch(w.setup->driver, w.context, i->function);
}

/* A launch without counters: what only an activity record tells can be read from this one execution. */
static CUresult issue_plain(struct item *i)
{
    const struct kp_cupti *cupti = kp_context_cupti();
    struct kp_executed record;
    size_t n = 0;
    bool probing = i->result && wants_probe() && !kp_activity_begin(cupti);
    CUresult rc = issue_launch(i, NULL);
    if (!probing)
        return rc;
    CUresult end = rc == CUDA_SUCCESS ? wait_limited(ALONE_MS) : CUDA_SUCCESS;
    if (end != CUDA_SUCCESS && end != CUDA_ERROR_NOT_READY)
        w.context->dead = true;
    kp_activity_end(cupti, &record, 1, &n);
    learn(&record, n);
    return rc;
}

static CUresult issue_first(struct item *i)
{
    double start = kp_now_ns();
    if (w.way == REPLAYED)
        return issue_launch(i, NULL);
    CUresult rc = w.way == PLAIN ? issue_plain(i) : issue_launch(i, kp_collector_count_hooks(w.context->collector));
    w.ours_ns += kp_now_ns() - start;
    return rc;
}

/* What the window keeps of the device's memory may be what the launch lacks. */
static CUresult without_window(struct item *i)
{
    struct kp_launch l = i->launch;
    i->launch.copy = NULL;
    drop_last();
    kp_window_close(w.setup, "want of device memory");
    CUresult rc = l.issue(&l);
    kp_launch_free(&l);
    return rc;
}

/* The launch itself, with its record already the last of the window. */
static CUresult run_recorded(const struct kp_candidate *what, const struct fit *fit, const char **skipped)
{
    struct item *i = &w.items[w.n - 1];
    CUresult rc = issue_first(i);
    w.unwanted_in_a_row = what->wanted ? 0 : w.unwanted_in_a_row + 1;
    if (rc == CUDA_ERROR_OUT_OF_MEMORY && w.way == REPLAYED) {
        *skipped = "made again when the window had given its memory back";
        return without_window(i);
    }
    if (rc != CUDA_SUCCESS) {
        drop_last();
    } else if (fit->host && w.way == REPLAYED && !ends_alone(i)) {
        kp_collector_leave(w.context->collector);
        reset();
        *skipped = waits_for_host;
        return rc;
    } else if (i->result) {
        i->result->launch.ordinal = kp_session_seen(1);
    }
    const char *alone = w.way == REPLAYED ? fit->alone : NULL;
    if (alone || what->last || w.way == PLAIN || w.obstacle || !w.launches)
        kp_window_close(w.setup, alone ? alone : "the last launch that was asked for");
    else if (w.launches >= room_for(w.context))
        kp_window_close(w.setup, kp_closed_full);
    return rc;
}

static CUresult pass(struct kp_launch *l, const char *why, const char **skipped)
{
    *skipped = why;
    return l->issue(l);
}

/* A launch that is counted at once blocks until its kernel is done. One that can reach host memory may wait for what
 * the host does after the launch: that it does not has to be seen first. */
static bool may_hang(const struct kp_context_setup *setup, const struct fit *fit)
{
    return fit->host && (setup->one_pass || fit->obstacle) && !fit->ends;
}

/* Why no window can be opened for a launch, or NULL. */
static const char *hindrance(const struct kp_context_setup *setup, const struct fit *fit)
{
    if (may_hang(setup, fit))
        return "the first of a kernel that can reach host memory, watched for waiting for it, not counted";
    if (fit->obstacle && !fit->once && kp_context_several(setup))
        return fit->obstacle; /* counted at once it would wait for its partners on devices not yet launched on */
    return NULL;
}

/* Opens a window for the launch. False: it is to run outside of any; *why tells. */
static bool open_for(const struct kp_context_setup *setup, struct kp_context *c, const struct kp_launch *l,
                     const struct fit *fit, const char **why)
{
    *why = hindrance(setup, fit);
    if (*why)
        return false;
    /* Once is enough: while that other work goes on, the launches that follow find out at once. */
    long patience = c->stalled ? STALLED_MS : OPEN_MS;
    CUresult rc = has_counters(setup, c) ? wait_for_context(setup->driver, c->ctx, patience, STALLED_MS) : CUDA_SUCCESS;
    c->stalled = rc == CUDA_ERROR_NOT_READY;
    if (rc != CUDA_SUCCESS) {
        c->dead = rc != CUDA_ERROR_NOT_READY;
        *why = c->dead ? after_failure : "made while other work of the context did not end";
        return false;
    }
    open_window(setup, c, fit);
    if (fit->obstacle && w.way != COUNTED) {
        reset();
        *why = fit->obstacle;
        return false;
    }
    bool kept = true;
    if (fit->host && w.way == REPLAYED)
        reaches_host(setup->driver, l, &w.host, &kept);
    if (!kept) {
        kp_collector_drop(c->collector);
        reset();
        *why = "can reach more host memory than is kept for a replay";
    }
    return kept;
}

static CUresult launch_in(const struct kp_context_setup *setup, struct kp_context *c, struct kp_launch *l,
                          const struct kp_candidate *what, const char **skipped)
{
    struct kp_known_function *f = NULL;
    const char *why = NULL;
    /* The first function of a module brings the module's variables along, which the saved memory must hold. */
    if (!l->is_graph && !kp_context_module_known(setup, c, l->f))
        kp_window_close(setup, "the first launch of a module's kernels");
    if (!l->is_graph && (!(f = kp_context_function(setup, c, l->f)) || kp_launch_copy(l, &f->facts))) {
        kp_window_close(setup, "a kernel that the driver gives no facts of");
        return pass(l, "of a kernel that the driver gives no facts of", skipped);
    }
    if (f && f->once & KP_ONCE_HEAP)
        kp_window_heap_blocks();
    struct fit fit = judge_launch(setup, c, l, what, f);
    const char *waits = known_to_wait(l, f);
    const char *closer = waits ? waits : misfit(c, l, &fit, what->wanted);
    c->stalled |= waits != NULL; /* what follows need not wait long to find that out */
    if (closer)
        kp_window_close(setup, closer);
    if (!w.open && !what->wanted)
        return l->issue(l);
    if (!w.open && (waits || !open_for(setup, c, l, &fit, &why))) {
        why = waits ? waits : why;
        CUresult rc = pass(l, why, skipped);
        if (rc == CUDA_SUCCESS && may_hang(setup, &fit) && !waits)
            watch(setup->driver, c, f);
        return rc;
    }
    if (!record(l, what, f)) {
        kp_window_close(setup, "want of memory");
        return pass(l, "lost for want of memory", skipped);
    }
    return run_recorded(what, &fit, skipped);
}

CUresult kp_window_launch(const struct kp_context_setup *setup, struct kp_launch *l, const struct kp_candidate *what,
                          const char **skipped, char **bad_input)
{
    const struct kp_driver *d = setup->driver;
    bool current;
    CUcontext ctx = kp_launch_context(d, l, &current);
    *skipped = NULL;
    *bad_input = NULL;
    if (!ctx)
        return pass(l, no_context, skipped);
    struct visit v = enter(d, ctx);
    struct kp_context *c = kp_context_get(setup, ctx, bad_input);
    CUresult rc;
    if (!c || *bad_input || c->dead) {
        kp_window_close(setup, "a launch in another context");
        rc = pass(l, c && c->dead ? after_failure : no_context, skipped);
    } else {
        kp_session_device(&c->device, c->chip, c->plan ? c->plan->breakdowns : "");
        kp_session_collection(c->plan ? c->plan->listed : NULL,
                              kp_context_cupti() ? kp_cupti_version(kp_context_cupti()) : NULL);
        rc = launch_in(setup, c, l, what, skipped);
    }
    kp_launch_free(l);
    leave(d, &v);
    return rc;
}

/* ---- other operations ---- */

bool kp_window_join(const struct kp_context_setup *setup, const char *symbol, void *real, const uint64_t *args,
                    uint64_t *ticket)
{
    CUcontext current = NULL;
    struct kp_op op;
    if (!w.open)
        return false;
    setup->driver->cuCtxGetCurrent(&current);
    bool joins = current == w.context->ctx && w.way == REPLAYED && w.n < MOST_ITEMS &&
                 kp_join_record(setup->driver, symbol, real, args, is_host, most_copied - w.copied, &op) == KP_JOIN_YES;
    struct item *i = joins ? new_item() : NULL;
    if (!i) {
        if (joins)
            kp_op_free(&op);
        kp_window_close(setup, symbol);
        return false;
    }
    i->op = op;
    i->epoch = op.waits ? atomic_fetch_add(&epoch, 1) : atomic_load(&epoch);
    note_stream(op.stream);
    i->ticket = *ticket = ++tickets;
    w.copied += op.copied;
    return true;
}

/* Keeps what new memory contains, as an operation of the window. Device to device, so that it costs next to nothing.
 * False: it is not known to be kept; what was taken for it goes with the window. */
static bool back_up(const struct kp_driver *d, struct item *i, CUdeviceptr memory, size_t bytes)
{
    if (d->cuMemAlloc(&i->backup, bytes) != CUDA_SUCCESS) {
        i->backup = 0;
        return false;
    }
    i->op = (struct kp_op){.real = (void *)(uintptr_t)d->cuMemcpyDtoDAsync,
                           .args = {memory, i->backup, bytes, (uint64_t)(uintptr_t)CU_STREAM_LEGACY}};
    return d->cuMemcpyDtoDAsync(i->backup, memory, bytes, CU_STREAM_LEGACY) == CUDA_SUCCESS &&
           wait_limited(COPY_MS) == CUDA_SUCCESS;
}

void kp_window_allocated(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr memory, size_t bytes)
{
    CUcontext current = NULL;
    if (!w.open || w.way != REPLAYED)
        return;
    setup->driver->cuCtxGetCurrent(&current);
    struct item *i = current == w.context->ctx && w.n < MOST_ITEMS ? new_item() : NULL;
    if (i)
        i->epoch = atomic_load(&epoch);
    /* When it waits for long-running launches the copy is still made, in order, before anything can change the memory:
     * all that is lost is the window. */
    if (!i || !back_up(setup->driver, i, memory, bytes))
        kp_window_close(setup, symbol);
}

void kp_window_refused(uint64_t ticket)
{
    for (int i = 0; i < MOST_REFUSED; i++) {
        uint_fast64_t none = 0;
        if (atomic_compare_exchange_strong(&refused[i], &none, ticket))
            return;
    }
    kp_window_spoil();
}
