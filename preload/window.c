#include "preload/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "preload/log.h"
#include "preload/session.h"

static const char no_probe[] =
    "read from an activity record, which another user of CUPTI in this process holds, or which "
    "this CUPTI lacks";

/* One launch of the window on its way through. */
struct entry {
    struct kp_launch *launch;
    const struct kp_graph *graph;
    struct kp_known_function *function; /* NULL for a graph */
    struct kp_result result;
    struct kp_known_config config; /* all 0 = not known */
};

struct window {
    const struct kp_context_setup *setup;
    struct kp_context *context;
    struct entry *entries;
    size_t n;
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static CUresult issue_all(void *arg)
{
    const struct window *w = arg;
    CUresult rc = CUDA_SUCCESS;
    for (size_t i = 0; i < w->n && rc == CUDA_SUCCESS; i++)
        rc = w->entries[i].launch->issue(w->entries[i].launch);
    return rc;
}

static uint32_t threads_of(const struct kp_launch *l)
{
    return l->shape.block[0] * l->shape.block[1] * l->shape.block[2];
}

/* Whether some launch is made in a way that has yet to be read. */
static bool wants_probe(struct window *w)
{
    bool missing = false;
    for (size_t i = 0; i < w->n; i++) {
        struct entry *e = &w->entries[i];
        if (!e->function)
            continue;
        const struct kp_known_config *known =
            kp_context_config(e->function, threads_of(e->launch), e->launch->shape.dynamic_shared);
        if (known)
            e->config = *known;
        else
            missing = true;
    }
    return missing && kp_context_may_probe();
}

/* Takes over what the activity records say. They come in launch order; a record of another kernel (one that a kernel
 * launched itself) is passed over. */
static void learn(struct window *w, const struct kp_executed *records, size_t n)
{
    size_t next = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct entry *e = &w->entries[i];
        if (!e->function)
            continue;
        while (next < n && strncmp(records[next].name, e->function->facts.mangled, sizeof(records[next].name) - 1))
            next++;
        if (next == n)
            return;
        const struct kp_executed *r = &records[next++];
        if (!r->shared_config_size || e->config.shared_config)
            continue;
        e->config = (struct kp_known_config){.threads = threads_of(e->launch),
                                             .dynamic_shared = e->launch->shape.dynamic_shared,
                                             .shared_config = r->shared_config_size,
                                             .registers = r->registers};
        kp_context_learn(e->function, &e->config);
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

static void fill_header(const struct window *w, struct entry *e)
{
    struct kp_launch_info *i = &e->result.launch;
    const struct kp_launch *l = e->launch;
    const struct kp_context *c = w->context;
    const char *mangled = e->function ? e->function->facts.mangled : "";
    i->kind = e->graph ? KP_WORKLOAD_GRAPH : KP_WORKLOAD_KERNEL;
    i->mangled = kp_strdup(mangled);
    if (e->graph)
        i->demangled = describe_graph(e->graph);
    else
        i->demangled = *mangled ? kp_strdup(e->function->demangled) : fallback_name(l);
    memcpy(i->grid, l->shape.grid, sizeof(i->grid));
    memcpy(i->block, l->shape.block, sizeof(i->block));
    i->context_id = c->id;
    i->stream_id = kp_context_stream_id(w->setup, c, l->stream, l->ptsz);
    i->device = c->device_ordinal;
    i->cc_major = c->device.cc_major;
    i->cc_minor = c->device.cc_minor;
    i->chip = kp_strdup(c->chip);
    i->reason = kp_strdup("");
}

/* The values of a launch that need no counter. Attributes of the launch win over those of the function. */
static void fill_launch(const struct window *w, struct entry *e)
{
    struct kp_shape shape = e->launch->shape;
    const struct kp_function *f = &e->function->facts;
    struct kp_launch_extra extra = {.shared_config = e->config.shared_config,
                                    .registers = e->config.registers,
                                    .shared_config_why = kp_context_cupti() ? no_probe : w->context->no_counters};
    if (!shape.cluster[0] && f->cluster[0])
        memcpy(shape.cluster, f->cluster, sizeof(shape.cluster));
    if (!shape.cluster_policy)
        shape.cluster_policy = f->cluster_policy;
    kp_launch_metrics(&e->result, w->setup->driver, &w->context->device, &w->context->facts, f, &shape, &extra);
}

/* Sections without a plan: CUPTI was never reached, so what to show as missing comes from the table. */
static void mark_section_rows(const struct window *w, struct kp_result *r, const char *why)
{
    const struct kp_context *c = w->context;
    for (size_t s = 0; s < w->setup->n_sections; s++)
        for (size_t i = 0; i < w->setup->sections[s]->n_rows; i++) {
            const struct kp_row *row = &w->setup->sections[s]->rows[i];
            if (row->source == KP_SRC_COUNTER && kp_cc_matches(row->cc, c->device.cc_major, c->device.cc_minor) &&
                !kp_result_find(r, row->metric))
                kp_result_set_na(r, row->metric, why);
        }
}

static void finish_entry(const struct window *w, struct entry *e, const struct kp_window_outcome *out, double ns)
{
    struct kp_launch_info *i = &e->result.launch;
    const char *why = w->context->no_counters ? w->context->no_counters : out->note ? out->note : "not collected";
    if (e->function)
        fill_launch(w, e);
    if (w->context->plan)
        kp_plan_store_missing(w->context->plan, why, &e->result);
    else
        mark_section_rows(w, &e->result, why);
    i->passes = (uint32_t)out->replay.passes;
    i->profiler_ns = ns;
    if (out->note && !w->context->no_counters)
        i->note = kp_strdup(out->note);
    bool wanted_counters = !w->context->plan || kp_plan_counts(w->context->plan);
    bool complete = !w->context->no_counters && out->replay.failed == KP_STAGE_NONE;
    const char *base = e->function && *e->function->base ? e->function->base : i->demangled ? i->demangled : "";
    kp_session_result(&e->result, base, complete || !wanted_counters);
}

/* ---- running ---- */

static void run_counted(struct window *w, struct kp_window_outcome *out)
{
    struct kp_executed *records = calloc(w->n, sizeof(*records));
    struct kp_result **results = calloc(w->n, sizeof(*results));
    struct kp_window_job job = {
        .issue = issue_all,
        .arg = w,
        .mode = w->entries[0].graph ? KP_RANGE_USER : KP_RANGE_AUTO,
        .results = results,
        .n_results = w->n,
        .executed = records,
        .probe = records && wants_probe(w),
        .count = !w->context->no_counters,
    };
    if (records && results) {
        for (size_t i = 0; i < w->n; i++)
            results[i] = &w->entries[i].result;
        kp_collector_run(w->context->collector, &job, out);
        learn(w, records, job.n_executed);
    } else {
        out->launch = issue_all(w);
        out->note = kp_strdup("out of memory");
    }
    free(results);
    free(records);
}

static void judge(struct window *w, const struct kp_window_outcome *out)
{
    struct kp_context *c = w->context;
    if (out->context != CUDA_SUCCESS)
        c->dead = true;
    if (out->replay.damaged) {
        kp_log_error(
            "device memory could not be restored for a replay (%s): the program's results from here on are not "
            "to be trusted; no more launches are replayed",
            out->note ? out->note : "no reason given");
        if (!c->no_counters)
            c->no_counters = kp_strdup("a restore of the device memory failed earlier");
    }
    if (c->no_counters)
        kp_session_warn_once(c->no_counters);
    else if (out->note && out->launch == CUDA_SUCCESS)
        kp_session_warn_once(out->note);
}

/* With the context current and everything of the program done. */
static CUresult run_in_context(struct window *w)
{
    struct kp_window_outcome out;
    double start = now_ns();
    struct entry *e = &w->entries[0];
    memset(&out, 0, sizeof(out));
    fill_header(w, e);
    if (w->context->collector) {
        run_counted(w, &out);
    } else {
        out.launch = issue_all(w);
    }
    judge(w, &out);
    if (out.launch == CUDA_SUCCESS)
        finish_entry(w, e, &out, now_ns() - start);
    else
        kp_result_free(&e->result);
    free(out.note);
    return out.launch;
}

static CUcontext context_of(const struct kp_driver *d, const struct kp_launch *l)
{
    CUcontext ctx = NULL;
    bool special = !l->stream || l->stream == CU_STREAM_LEGACY || l->stream == CU_STREAM_PER_THREAD;
    if (!special && d->cuStreamGetCtx(l->stream, &ctx) == CUDA_SUCCESS && ctx)
        return ctx;
    return d->cuCtxGetCurrent(&ctx) == CUDA_SUCCESS ? ctx : NULL;
}

static CUresult run_current(const struct kp_context_setup *setup, struct kp_launch *l, const struct kp_graph *graph,
                            CUcontext ctx, enum kp_skip_reason *reason, char **bad_input)
{
    struct entry e = {.launch = l, .graph = graph};
    struct window w = {.setup = setup, .entries = &e, .n = 1};
    w.context = kp_context_get(setup, ctx, bad_input);
    if (!w.context || *bad_input || w.context->dead) {
        *reason = w.context && w.context->dead ? KP_SKIP_CONTEXT_DEAD : KP_SKIP_UNREADABLE;
        return l->issue(l);
    }
    kp_session_device(&w.context->device, w.context->chip);
    kp_session_collection(w.context->plan ? w.context->plan->listed : NULL,
                          kp_context_cupti() ? kp_cupti_version(kp_context_cupti()) : NULL);
    if (setup->driver->cuCtxSynchronize() != CUDA_SUCCESS) {
        w.context->dead = true;
        *reason = KP_SKIP_CONTEXT_DEAD;
        return l->issue(l);
    }
    if (!l->is_graph && !(e.function = kp_context_function(setup, w.context, l->f))) {
        *reason = KP_SKIP_UNREADABLE;
        return l->issue(l);
    }
    if (e.function && kp_launch_copy(l, &e.function->facts))
        kp_session_warn_once("out of memory: a launch's arguments were not copied");
    CUresult rc = run_in_context(&w);
    kp_launch_free(l);
    return rc;
}

CUresult kp_window_run(const struct kp_context_setup *setup, struct kp_launch *l, const struct kp_graph *graph,
                       enum kp_skip_reason *reason, char **bad_input)
{
    const struct kp_driver *d = setup->driver;
    CUcontext current = NULL, popped, ctx = context_of(d, l);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!ctx) {
        *reason = KP_SKIP_UNREADABLE;
        return l->issue(l);
    }
    d->cuCtxGetCurrent(&current);
    bool pushed = ctx != current && d->cuCtxPushCurrent(ctx) == CUDA_SUCCESS;
    /* Allocations and waits of ours must not break a capture that another thread opens in global mode. */
    bool relaxed = d->cuThreadExchangeStreamCaptureMode && d->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
    CUresult rc = run_current(setup, l, graph, ctx, reason, bad_input);
    if (relaxed)
        d->cuThreadExchangeStreamCaptureMode(&mode);
    if (pushed)
        d->cuCtxPopCurrent(&popped);
    return rc;
}
