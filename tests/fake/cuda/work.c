/*
 * Work of streams. What can run does so inside the call that enqueues it, which keeps the fake simple and tests quick;
 * a kernel that waits for something (its code has `ready`) is deferred, together with later work of its stream.
 * Deferred work is reconsidered whenever the driver is asked for progress.
 */
#include "core.h"

struct work {
    uint64_t serial; /* in the order of submission */
    struct context *ctx;
    struct stream_ref ref;
    bool (*ready)(struct work *w); /* NULL: always */
    void (*run)(struct work *w);
    struct call call;
    void *dst;
    const void *src;
    void *staged; /* a copy of pageable memory, which a call reads before it returns */
    size_t size;  /* bytes, or elements */
    unsigned int value, element;
    struct event *event;
    uint64_t after; /* the work that an event stands for */
    struct graph *graph;
    CUhostFn host_fn;
    void *host_data;
    struct host_call *host_call;
    const char *api;
    double since; /* when nothing was left before it in its stream; ms */
    struct work *next;
};

static struct work *put_off, **put_off_end = &put_off;
static uint64_t last_serial;
static uint64_t running; /* serial of the work that runs; 0: none */
static bool looking;
static fake_transfer_fn transfer_hook;

static struct allocation *allocation_of(uintptr_t pointer);

static bool is_legacy(const struct stream_ref *ref)
{
    return !ref->stream && !ref->per_thread;
}

static bool heeds_legacy(const struct stream_ref *ref)
{
    return !ref->stream || !(ref->stream->flags & CU_STREAM_NON_BLOCKING);
}

/* Returns true if what `ref` enqueues now must wait for `w`. */
static bool comes_before(const struct work *w, const struct context *ctx, const struct stream_ref *ref)
{
    return w->ctx == ctx && (w->ref.id == ref->id || (is_legacy(ref) && heeds_legacy(&w->ref)) ||
                             (is_legacy(&w->ref) && heeds_legacy(ref)));
}

static bool may_run(struct work *w)
{
    for (const struct work *o = put_off; o && o->serial < w->serial; o = o->next)
        if (comes_before(o, w->ctx, &w->ref))
            return false;
    if (!w->since)
        w->since = now_ms();
    return !w->ready || w->ready(w);
}

static void unlink_work(struct work **link)
{
    struct work *w = *link;

    *link = w->next;
    if (!w->next)
        put_off_end = link;
}

static void run_work(struct work *w)
{
    uint64_t outer = running;

    running = w->serial;
    w->run(w);
    running = outer;
}

static bool look_again(void)
{
    for (struct work **link = &put_off; *link; link = &(*link)->next) {
        struct work *w = *link;
        bool gone = w->ctx->head.dead;

        if (!gone && !may_run(w))
            continue;
        unlink_work(link);
        if (!gone)
            run_work(w);
        free(w->staged);
        free(w);
        return true;
    }
    return false;
}

static void run_what_can(void)
{
    if (looking) /* a host function's calls */
        return;
    looking = true;
    while (look_again())
        ;
    looking = false;
}

static bool is_put_off(uint64_t serial)
{
    for (const struct work *w = put_off; w; w = w->next)
        if (w->serial == serial)
            return true;
    return false;
}

/* Memory that was once registered is the program's again. */
static bool is_pageable(const void *at)
{
    const struct allocation *a = allocation_of((uintptr_t)at);

    return !a || a->head.dead;
}

/* Runs `w`, or defers a copy of it. */
static uint64_t submit(struct work *w)
{
    struct work *later;

    w->serial = ++last_serial;
    w->ctx = current();
    run_what_can();
    if (may_run(w)) {
        run_work(w);
        return w->serial;
    }
    later = malloc(sizeof(*later));
    if (!later)
        fake_misuse("out of host memory");
    *later = *w;
    if (w->src && is_pageable(w->src)) {
        later->src = later->staged = malloc(w->size);
        if (!later->staged)
            fake_misuse("out of host memory");
        memcpy(later->staged, w->src, w->size);
    }
    *put_off_end = later;
    put_off_end = &later->next;
    return w->serial;
}

/* Text that kernels printed: it comes out when the program waits for them. */
static char printed[1 << 16];
static size_t n_printed;

static void print_out(void)
{
    char text[sizeof(printed)];
    size_t n = n_printed;

    if (!n)
        return;
    memcpy(text, printed, n);
    n_printed = 0;
    unlock(NULL); /* stdout may be held by a thread that needs the driver */
    fwrite(text, 1, n, stdout);
    lock();
}

/* Gives others a chance for a moment. */
static void rest(void)
{
    unlock(NULL);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    lock();
}

static void wait_for_work(uint64_t serial)
{
    for (run_what_can(); is_put_off(serial); run_what_can())
        rest();
    print_out();
}

/* Returns true if waiting for the context includes the work of `part`. */
static bool is_part(const struct context *part, const struct context *ctx)
{
    return part == ctx || (part->green && ctx->primary && part->device == ctx->device);
}

static bool is_busy(const struct context *ctx, const struct stream_ref *ref)
{
    run_what_can();
    for (const struct work *w = put_off; w; w = w->next)
        if (ref ? comes_before(w, ctx, ref) && (w->ref.id == ref->id || is_legacy(ref)) : is_part(w->ctx, ctx))
            return true;
    return false;
}

static bool is_device_busy(int device)
{
    run_what_can();
    for (const struct work *w = put_off; w; w = w->next)
        if (w->ctx->device == device && !w->ctx->head.dead)
            return true;
    return false;
}

static bool runs_kernels(const struct context *ctx)
{
    run_what_can();
    for (const struct work *w = put_off; w && !ctx->sticky; w = w->next)
        if (w->ctx == ctx && !ctx->head.dead && w->call.function && w->since > 0)
            return true;
    return false;
}

/* Waits for a stream of the current context, or for all its work. */
static void wait_for_stream(const struct stream_ref *ref)
{
    const struct context *ctx = current();

    while (is_busy(ctx, ref))
        rest();
    print_out();
}

static void wait_for_context(void)
{
    wait_for_stream(NULL);
}

static const struct stream_ref legacy_stream = {.id = 1};

/* Copies without a stream wait for the default stream. */
static void wait_for_legacy(void)
{
    wait_for_stream(&legacy_stream);
}

static void set_transfer_hook(fake_transfer_fn fn)
{
    lock();
    transfer_hook = fn;
    unlock(NULL);
}
