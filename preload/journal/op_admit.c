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
#include "preload/contexts/context_scope.h"
#include "preload/program/waits.h"

/* Less free device memory than this may be too little for a module, bytes. */
enum { SCARCE = 256 << 20 };

static struct kp_journal *const j = &kp_journal_now;

static bool is_here(const struct kp_driver *d)
{
    return kp_record_is_here(j, d);
}

/* Returns true if the journal also holds all existing variables. */
static bool takes_operations(const struct kp_driver *d)
{
    return is_here(d) && !kp_variables_pending(j->variables, j->serial);
}

static bool is_host(uint64_t address)
{
    void *base;
    size_t bytes;
    return kp_hostmem_find(address, &base, &bytes);
}

static bool wait_for_work(const struct kp_driver *d)
{
    return kp_wait_for(d, j->context->ctx, KP_WAIT_WORK) == CUDA_SUCCESS;
}

static bool wait_for_copy(const struct kp_driver *d)
{
    return kp_wait_copy(d) == CUDA_SUCCESS;
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
    return kp_join_record(c->d, c->symbol, c->real, c->args, is_host, KP_MOST_COPIED - j->copied, op) == KP_JOIN_YES;
}

/* Returns true if the window's own work may yet write what the call copies: pinned memory where a result comes, or any
 * memory of the host that a host function writes. */
static bool is_source_late(const struct kp_op *op)
{
    return op->from_host && (j->calls_host || (op->from_pinned && j->pending));
}

/* Records the call; what it copies from the host only once that is what the program's own copy reads. */
static bool record_arrived(const struct call *c, struct kp_op *op)
{
    if (!record(c, op))
        return false;
    if (!is_source_late(op))
        return true;
    kp_op_free(op);
    return kp_reads_arrive(j) && record(c, op);
}

/* Returns true if a copy that waits for the work before it will return: that work may wait for another thread's call,
 * which would wait for this one at the gate. Once the window has closed, both go on. */
static bool is_reached(const struct call *c, const struct kp_op *op)
{
    bool blocks = op->waits && (op->result || op->copied);
    CUstream stream = op->stream ? op->stream : CU_STREAM_LEGACY;
    return !blocks || kp_wait_stream(c->d, stream, kp_limit_first(KP_WAIT_BEFORE_COPY)) == CUDA_SUCCESS;
}

/* Returns true if the window accepts the operation: reads and host functions under conditions. */
static bool takes(const struct call *c, const struct kp_op *op)
{
    return (!op->result || kp_reads_admit(j, op, c->symbol)) && (!op->calls_host || kp_hostcalls_admit(j)) &&
           is_reached(c, op);
}

static enum kp_joined kind_of(const struct kp_op *op)
{
    if (op->calls_host)
        return KP_JOINED_LATER;
    return !op->result ? KP_JOINED : op->later ? KP_JOINED_LATER : KP_JOINED_READ;
}

enum kp_joined kp_journal_join(const struct kp_context_setup *setup, const char *symbol, void *real,
                               const uint64_t *args, uint64_t *ticket)
{
    struct kp_op op;
    const struct call c = {setup->driver, symbol, real, args};
    if (!j->open)
        return KP_JOINED_NOT;
    bool joins = takes_operations(c.d) && !kp_hostcalls_hinder(j) && record_arrived(&c, &op);
    struct kp_item *i = joins && takes(&c, &op) ? kp_record_new(j) : NULL;
    if (!i) {
        if (joins)
            kp_op_free(&op);
        return KP_JOINED_NOT;
    }
    *ticket = kp_record_op(j, i, &op);
    if (op.result)
        kp_reads_begin(j, i, symbol);
    if (op.calls_host)
        kp_hostcalls_begin(j, i);
    return kind_of(&op);
}

bool kp_journal_log(uint64_t ticket)
{
    struct kp_item *i = j->open ? kp_record_find(j, ticket) : NULL;
    if (i && i->op.calls_host) {
        kp_hostcalls_end(j, i);
        return true;
    }
    return !i || (kp_reads_log(j, i) && (j->whole || kp_reads_trusted(i)));
}

bool kp_journal_ends_read(uint64_t ticket)
{
    if (!j->open || !kp_record_find(j, ticket) || j->goes_on)
        return false;
    /* A kernel that still runs may wait for what the program does with the value. */
    j->goes_on = !wait_for_work(j->setup->driver);
    return !j->goes_on;
}

/* Copies the contents of memory that the saved memory lacks, as the last operation of the window. The copy stays on the
 * device and costs next to nothing. Returns false if it could not be made, and adds no operation. */
static bool copy_aside(const struct kp_driver *d, struct kp_item *i, CUdeviceptr memory, size_t bytes)
{
    i->epoch = kp_flags_epoch();
    if (d->cuMemAlloc(&i->backup, bytes) != CUDA_SUCCESS) {
        kp_journal_drop_last();
        return false;
    }
    j->aside += bytes;
    j->aside_in_part |= !kp_defer_whole(i->backup, bytes);
    i->op = (struct kp_op){.real = (void *)(uintptr_t)d->cuMemcpyDtoDAsync,
                           .args = {memory, i->backup, bytes, (uint64_t)(uintptr_t)CU_STREAM_LEGACY}};
    kp_timeline_ours_copy(j->context->id, bytes);
    if (d->cuMemcpyDtoDAsync(i->backup, memory, bytes, CU_STREAM_LEGACY) == CUDA_SUCCESS)
        return true;
    kp_defer_ours(j->context->ctx, i->backup, bytes); /* whose contents nothing may be restored from */
    kp_journal_drop_last();
    return false;
}

/* The module whose variables are copied. */
struct module {
    const struct kp_driver *d;
    CUmodule handle;
    size_t first;  /* of the operations that copy them */
    size_t copied; /* bytes */
    bool failed;
};

/* Returns true if it is copied already: the images of a module loaded several times share the name. */
static bool is_copied(const struct module *m, CUdeviceptr memory)
{
    size_t k = m->first;
    while (k < j->n && j->items[k].op.args[0] != memory)
        k++;
    return k < j->n;
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
    struct kp_item *i = bytes && bytes <= MOST - m->copied && j->n < KP_MOST_ITEMS ? kp_record_new(j) : NULL;
    m->failed |= bytes && (!i || !copy_aside(m->d, i, memory, bytes));
    m->copied += m->failed ? 0 : bytes;
    return true;
}

bool kp_journal_holds_variables(const struct kp_context_setup *setup, CUfunction f, const char *mangled)
{
    struct module m = {.d = setup->driver, .first = j->n};
    if (m.d->cuFuncLoad(f) != CUDA_SUCCESS || m.d->cuFuncGetModule(&m.handle, f) != CUDA_SUCCESS)
        return false;
    return kp_variables_hold(j->serial, *mangled ? mangled : NULL, copy_variable, &m) && !m.failed &&
           (!m.copied || wait_for_copy(m.d));
}

bool kp_journal_sets(const struct kp_context_setup *setup, void *real, const uint64_t *before, const uint64_t *after,
                     uint64_t *ticket)
{
    struct kp_item *i = j->open && is_here(setup->driver) ? kp_record_new(j) : NULL;
    if (!i)
        return false;
    kp_context_forget_configs(j->context);
    *ticket = kp_record_setting(j, i, real, before, after);
    return true;
}

/* A graph may launch any function. */
static bool may_launch(const struct kp_item *i, CUfunction f)
{
    const struct kp_known_function *of = i->entry.function;
    return i->is_launch && (!of || of->key == f || of->facts.handle == f);
}

bool kp_journal_prefers(const struct kp_context_setup *setup, CUfunction f)
{
    size_t k = 0;
    if (!j->open || !f || !is_here(setup->driver))
        return false;
    while (k < j->n && !may_launch(&j->items[k], f))
        k++;
    if (k == j->n)
        kp_context_forget_configs(j->context);
    return k == j->n;
}

bool kp_journal_frees(const struct kp_context_setup *setup, CUdeviceptr memory, bool later, CUresult *answer)
{
    return j->open && !kp_window_closes_at_sync() && is_here(setup->driver) &&
           kp_defer_take(setup->driver, j->context->ctx, memory, later, answer);
}

bool kp_journal_ends(const struct kp_context_setup *setup, enum kp_ended kind, uint64_t handle, CUresult *answer)
{
    return j->open && (!kp_defer_waits(kind) || !kp_window_closes_at_sync()) && is_here(setup->driver) &&
           kp_defer_handle(setup->driver, j->context->ctx, kind, handle, answer);
}

/* Returns true if there is little memory left. Asks in the window's context: the thread may have none yet. */
static bool is_scarce(const struct kp_driver *d)
{
    size_t left = 0, total;
    struct kp_visit v = kp_visit_begin(d, j->context->ctx);
    bool known = d->cuMemGetInfo(&left, &total) == CUDA_SUCCESS;
    kp_visit_end(d, &v);
    return !known || left < SCARCE;
}

bool kp_journal_is_scarce(const struct kp_context_setup *setup)
{
    return j->open && j->rewinds && is_scarce(setup->driver);
}

static bool context_has_ended(CUcontext ctx)
{
    return !kp_context_is_known(ctx);
}

void kp_journal_contexts_ended(void)
{
    kp_defer_forget(context_has_ended);
}

bool kp_journal_allocated(const struct kp_context_setup *setup, CUdeviceptr memory, size_t bytes, bool later)
{
    if (!j->open || !j->rewinds)
        return true;
    /* No other stream may touch memory that its stream has yet to reach. */
    bool there = is_here(setup->driver) && (!later || wait_for_work(setup->driver));
    struct kp_item *i = there ? kp_record_new(j) : NULL;
    /* After a long launch the driver still makes the copy, before anything can change the memory. Only the window is
     * lost. */
    return i && copy_aside(setup->driver, i, memory, bytes) && wait_for_copy(setup->driver);
}
