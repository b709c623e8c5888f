/*
 * Handles operations between the launches: memsets, copies, events, attributes, new memory and variables join the open
 * window, or close it. Memory that is freed is kept.
 */
#include "preload/program/hostmem.h"
#include "preload/who/timeline.h"
#include "preload/program/variables.h"
#include "preload/journal/defer.h"
#include "preload/gate/window_facts.h"
#include "preload/journal/host_calls.h"
#include "preload/journal/reads.h"
#include "preload/journal/record.h"
#include "preload/mode/strategy.h"
#include "preload/contexts/context_scope.h"
#include "preload/program/waits.h"
#include "preload/mode/window.h"

/* The longest wait for a copy of new memory, which the driver makes behind the running work, ms. */
enum { COPY_MS = 1000 };

/* The wait for the work before a copy that returns after its end, ms. */
enum { BEFORE_MS = 1000 };

/* Less free device memory than this may be too little for a module, byte. */
enum { SCARCE = 256 << 20 };

static struct kp_window *const w = &kp_window_now;

static bool is_here(const struct kp_driver *d)
{
    return kp_record_is_here(w, d);
}

/* Whether it also holds all variables that there are. */
static bool takes_operations(const struct kp_driver *d)
{
    return is_here(d) && !kp_variables_pending(w->variables, w->serial);
}

static bool is_host(uint64_t address)
{
    void *base;
    size_t bytes;
    return kp_hostmem_find(address, &base, &bytes);
}

static bool wait_for_work(const struct kp_driver *d)
{
    return kp_wait_context(d, w->context->ctx, COPY_MS, KP_SHORT_MS) == CUDA_SUCCESS;
}

static bool wait_for_copy(const struct kp_driver *d)
{
    return kp_wait_copy(d, COPY_MS) == CUDA_SUCCESS;
}

/* A call of the program, about to be made. */
struct call {
    const struct kp_driver *d;
    const char *symbol;
    void *real;
    const uint64_t *args;
};

static bool record(const struct call *c, struct kp_op *op)
{
    return kp_join_record(c->d, c->symbol, c->real, c->args, is_host, KP_MOST_COPIED - w->copied, op) == KP_JOIN_YES;
}

/* Whether the window's own work may yet write what the call copies: pinned memory where a result comes, or any memory
 * of the host that a host function writes. */
static bool is_source_late(const struct kp_op *op)
{
    return op->from_host && (w->calls_host || (op->from_pinned && w->pending));
}

/* Records the call; what it copies from the host only once that is as the program's own copy finds it. */
static bool record_arrived(const struct call *c, struct kp_op *op)
{
    if (!record(c, op))
        return false;
    if (!is_source_late(op))
        return true;
    kp_op_free(op);
    return kp_reads_arrive(w) && record(c, op);
}

/* Whether a copy that waits for the work before it will return: that work may wait for another thread's call, which
 * would wait for this one at the gate. Behind the window both go on. */
static bool is_reached(const struct call *c, const struct kp_op *op)
{
    bool blocks = op->waits && (op->result || op->copied);
    CUstream stream = op->stream ? op->stream : CU_STREAM_LEGACY;
    return !blocks || kp_wait_stream(c->d, stream, BEFORE_MS) == CUDA_SUCCESS;
}

/* Whether the window takes the operation: reads and host functions under conditions. */
static bool takes(const struct call *c, const struct kp_op *op)
{
    return (!op->result || kp_reads_admit(w, op, c->symbol)) && (!op->calls_host || kp_host_calls_admit(w)) &&
           is_reached(c, op);
}

static enum kp_joined kind_of(const struct kp_op *op)
{
    if (op->calls_host)
        return KP_JOINED_LATER;
    return !op->result ? KP_JOINED : op->later ? KP_JOINED_LATER : KP_JOINED_READ;
}

enum kp_joined kp_window_join(const struct kp_context_setup *setup, const char *symbol, void *real,
                              const uint64_t *args, uint64_t *ticket)
{
    struct kp_op op;
    const struct call c = {setup->driver, symbol, real, args};
    if (!w->open)
        return KP_JOINED_NOT;
    bool joins = takes_operations(c.d) && !kp_host_calls_hinder(w) && record_arrived(&c, &op);
    struct kp_item *i = joins && takes(&c, &op) ? kp_record_new(w) : NULL;
    if (!i) {
        if (joins)
            kp_op_free(&op);
        kp_window_close(symbol);
        return KP_JOINED_NOT;
    }
    *ticket = kp_record_op(w, i, &op);
    if (op.result)
        kp_reads_begin(w, i, symbol);
    if (op.calls_host)
        kp_host_calls_begin(w, i);
    return kind_of(&op);
}

bool kp_window_log(uint64_t ticket)
{
    struct kp_item *i = w->open ? kp_record_find(w, ticket) : NULL;
    if (i && i->op.calls_host) {
        kp_host_calls_end(w, i);
        return true;
    }
    return !i || (kp_reads_log(w, i) && (w->strategy->whole || kp_reads_trusted(i)));
}

void kp_window_read(uint64_t ticket, const char *symbol)
{
    if (!w->open || !kp_record_find(w, ticket) || w->goes_on)
        return;
    /* A kernel that still runs may wait for what the program does with the value. */
    w->goes_on = !wait_for_work(w->setup->driver);
    if (!w->goes_on)
        kp_window_close(symbol);
}

/* Copies the contents of memory that the saved memory lacks, as the last operation of the window. The copy stays on the
 * device and costs next to nothing. False: it could not be made, and the window has no such operation. */
static bool copy_aside(const struct kp_driver *d, struct kp_item *i, CUdeviceptr memory, size_t bytes)
{
    i->epoch = kp_flags_epoch();
    if (d->cuMemAlloc(&i->backup, bytes) != CUDA_SUCCESS) {
        kp_record_drop_last(w);
        return false;
    }
    w->aside += bytes;
    w->aside_in_part |= !kp_defer_whole(i->backup, bytes);
    i->op = (struct kp_op){.real = (void *)(uintptr_t)d->cuMemcpyDtoDAsync,
                           .args = {memory, i->backup, bytes, (uint64_t)(uintptr_t)CU_STREAM_LEGACY}};
    kp_timeline_ours_copy(w->context->id, bytes);
    if (d->cuMemcpyDtoDAsync(i->backup, memory, bytes, CU_STREAM_LEGACY) == CUDA_SUCCESS)
        return true;
    kp_defer_ours(w->context->ctx, i->backup); /* whose contents nothing may be restored from */
    kp_record_drop_last(w);
    return false;
}

/* The module whose variables are copied. */
struct module {
    const struct kp_driver *d;
    CUmodule handle;
    size_t first;  /* of the operations that copy them */
    size_t copied; /* byte */
    bool failed;
};

/* Whether it is copied already: of a module that was loaded several times each image has the name. */
static bool is_copied(const struct module *m, CUdeviceptr memory)
{
    size_t k = m->first;
    while (k < w->n && w->items[k].op.args[0] != memory)
        k++;
    return k < w->n;
}

static bool copy_variable(void *arg, const char *name)
{
    enum { MOST = 64 << 20 };
    struct module *m = arg;
    CUdeviceptr memory;
    size_t bytes;
    if (m->d->cuModuleGetGlobal(&memory, &bytes, m->handle, name) != CUDA_SUCCESS)
        return false;
    if (is_copied(m, memory))
        return true;
    struct kp_item *i = bytes && bytes <= MOST - m->copied && w->n < KP_MOST_ITEMS ? kp_record_new(w) : NULL;
    m->failed |= bytes && (!i || !copy_aside(m->d, i, memory, bytes));
    m->copied += m->failed ? 0 : bytes;
    return true;
}

bool kp_window_holds_variables(const struct kp_context_setup *setup, CUfunction f, const char *mangled)
{
    struct module m = {.d = setup->driver, .first = w->n};
    if (!m.d->cuModuleGetGlobal || !m.d->cuFuncLoad || !m.d->cuFuncGetModule || m.d->cuFuncLoad(f) != CUDA_SUCCESS ||
        m.d->cuFuncGetModule(&m.handle, f) != CUDA_SUCCESS)
        return false;
    return kp_variables_hold(w->serial, *mangled ? mangled : NULL, copy_variable, &m) && !m.failed &&
           (!m.copied || wait_for_copy(m.d));
}

bool kp_window_sets(const struct kp_context_setup *setup, void *real, const uint64_t *before, const uint64_t *after,
                    uint64_t *ticket)
{
    struct kp_item *i = w->open && is_here(setup->driver) ? kp_record_new(w) : NULL;
    if (!i)
        return false;
    kp_context_forget_configs(w->context);
    *ticket = kp_record_setting(w, i, real, before, after);
    return true;
}

bool kp_window_frees(const struct kp_context_setup *setup, CUdeviceptr memory, bool later, CUresult *answer)
{
    return w->open && !kp_window_closes_at_sync() && is_here(setup->driver) &&
           kp_defer_take(setup->driver, w->context->ctx, memory, later, answer);
}

bool kp_window_ends_stream(const struct kp_context_setup *setup, CUstream stream, CUresult *answer)
{
    return w->open && is_here(setup->driver) && kp_defer_stream(setup->driver, w->context->ctx, stream, answer);
}

/* Whether there is little memory left. Asks in the window's context: the thread may have none yet. */
static bool is_scarce(const struct kp_driver *d)
{
    size_t left = 0, total;
    struct kp_visit v = kp_visit_begin(d, w->context->ctx);
    bool known = d->cuMemGetInfo(&left, &total) == CUDA_SUCCESS;
    kp_visit_end(d, &v);
    return !known || left < SCARCE;
}

void kp_window_makes_room(const struct kp_context_setup *setup)
{
    if (w->open && w->strategy->rewinds && is_scarce(setup->driver))
        kp_window_close("want of device memory");
}

static bool has_ended(CUcontext ctx)
{
    return !kp_context_is_known(ctx);
}

void kp_window_contexts_ended(void)
{
    kp_defer_forget(has_ended);
}

void kp_window_allocated(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr memory, size_t bytes,
                         bool later)
{
    if (!w->open || !w->strategy->rewinds)
        return;
    /* No other stream may touch memory that its stream has yet to reach. */
    bool there = is_here(setup->driver) && (!later || wait_for_work(setup->driver));
    struct kp_item *i = there ? kp_record_new(w) : NULL;
    /* Behind a long launch the driver still makes the copy, before anything can change the memory. Only the window
     * is lost. */
    if (!i || !copy_aside(setup->driver, i, memory, bytes) || !wait_for_copy(setup->driver))
        kp_window_close(symbol);
}
