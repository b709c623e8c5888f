#include "collectors/collector.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Codes that `issue` gives the replay loop; CUDA's own codes are kept in the outcome. */
enum { ISSUE_OK, ISSUE_FAULTED };

/* The code of the decode stage that is neither CUPTI's nor an errno. */
enum { WRONG_RANGES = INT_MIN };

struct kp_collector {
    struct kp_collector_setup setup;
    struct kp_host *host;
    struct kp_flush *flush;
    struct kp_range *range; /* the profiler enabled on the context, for the three below */
    size_t range_group, range_max;
    enum kp_range_mode range_mode;
    size_t *passes; /* of each group */
    double *values;
};

/* One window in flight: what the operations work on. */
struct flight {
    struct kp_collector *c;
    struct kp_window_job *job;
    struct kp_window_outcome *out;
    struct kp_checkpoint *saved;
    size_t seen_ranges;
    CUresult refused; /* what the driver said when it refused a re-issue */
};

static int op_save(void *arg)
{
    struct flight *f = arg;
    return kp_checkpoint_save(f->c->setup.cupti, f->c->setup.ctx, &f->saved);
}

static int op_restore(void *arg)
{
    return kp_checkpoint_restore(((struct flight *)arg)->saved);
}

static void op_drop(void *arg)
{
    struct flight *f = arg;
    kp_checkpoint_free(f->saved);
    f->saved = NULL;
}

static int op_flush(void *arg)
{
    return kp_flush_run(((struct flight *)arg)->c->flush);
}

static int op_probe_begin(void *arg)
{
    return kp_activity_begin(((struct flight *)arg)->c->setup.cupti);
}

static int op_probe_end(void *arg)
{
    struct flight *f = arg;
    return kp_activity_end(f->c->setup.cupti, f->job->executed, f->job->n_results, &f->job->n_executed);
}

/* Only one range profiler may be enabled on a context, and one that has run in one mode refuses the other. */
static int op_begin(void *arg, size_t group)
{
    struct flight *f = arg;
    struct kp_collector *c = f->c;
    size_t ranges = f->job->mode == KP_RANGE_AUTO ? f->job->n_results : 1;
    if (c->range && (c->range_group != group || c->range_mode != f->job->mode || c->range_max < ranges)) {
        kp_range_close(c->range);
        c->range = NULL;
    }
    if (!c->range) {
        int rc =
            kp_range_open(c->setup.cupti, c->setup.ctx, &c->setup.plan->groups[group], f->job->mode, ranges, &c->range);
        if (rc)
            return rc;
        c->range_group = group;
        c->range_mode = f->job->mode;
        c->range_max = ranges;
    }
    return kp_range_begin(c->range);
}

static int op_start(void *arg)
{
    return kp_range_start(((struct flight *)arg)->c->range);
}

static int op_stop(void *arg, bool *last)
{
    return kp_range_stop(((struct flight *)arg)->c->range, last);
}

static int op_issue(void *arg)
{
    struct flight *f = arg;
    f->out->launch = f->job->issue(f->job->arg);
    if (f->out->launch != CUDA_SUCCESS) {
        f->refused = f->out->launch;
        return KP_ISSUE_REFUSED;
    }
    f->out->context = f->c->setup.driver->cuCtxSynchronize();
    return f->out->context == CUDA_SUCCESS ? ISSUE_OK : ISSUE_FAULTED;
}

static int op_decode(void *arg, size_t group)
{
    struct flight *f = arg;
    struct kp_collector *c = f->c;
    const struct kp_config *config = &c->setup.plan->groups[group];
    const uint8_t *image;
    size_t size, ranges = 0, dropped = 0;
    int rc = kp_range_decode(c->range, &ranges, &dropped);
    if (rc)
        return rc;
    f->seen_ranges = ranges + dropped;
    if (f->seen_ranges != f->job->n_results || dropped)
        return WRONG_RANGES;
    kp_range_image(c->range, &image, &size);
    for (size_t i = 0; i < ranges && !rc; i++) {
        rc = kp_host_evaluate(c->host, image, size, i, config->names, config->n_names, c->values);
        if (!rc && kp_plan_store(c->setup.plan, group, c->values, f->job->results[i]))
            rc = -ENOMEM;
    }
    return rc;
}

static const struct kp_replay_ops operations = {
    .save = op_save,
    .restore = op_restore,
    .drop = op_drop,
    .flush = op_flush,
    .probe_begin = op_probe_begin,
    .probe_end = op_probe_end,
    .begin = op_begin,
    .start = op_start,
    .issue = op_issue,
    .stop = op_stop,
    .decode = op_decode,
};

int kp_collector_open(const struct kp_collector_setup *setup, struct kp_collector **out)
{
    const struct kp_plan *plan = setup->plan;
    size_t most = 1;
    struct kp_collector *c = calloc(1, sizeof(*c));
    *out = NULL;
    if (!c)
        return -ENOMEM;
    c->setup = *setup;
    int rc = -ENOMEM;
    c->passes = calloc(plan->n_groups + 1, sizeof(*c->passes));
    if (!c->passes)
        goto out;
    for (size_t g = 0; g < plan->n_groups; g++) {
        c->passes[g] = plan->groups[g].passes;
        if (plan->groups[g].n_names > most)
            most = plan->groups[g].n_names;
    }
    c->values = calloc(most, sizeof(*c->values));
    if (!c->values)
        goto out;
    rc = kp_host_open(setup->cupti, setup->chip, setup->availability, &c->host);
out:
    if (rc)
        kp_collector_close(c, true);
    else
        *out = c;
    return rc;
}

void kp_collector_close(struct kp_collector *c, bool context_alive)
{
    if (!c)
        return;
    if (context_alive)
        kp_range_close(c->range);
    else
        kp_range_abandon(c->range);
    kp_flush_close(c->flush, context_alive);
    kp_host_close(c->host);
    free(c->passes);
    free(c->values);
    free(c);
}

static const char *const stage_words[] = {
    [KP_STAGE_NONE] = "",
    [KP_STAGE_SAVE] = "cannot save the device memory that a replay must restore",
    [KP_STAGE_RESTORE] = "cannot restore the device memory",
    [KP_STAGE_FLUSH] = "cannot flush the caches (KPROF_CACHE_CONTROL=none does without)",
    [KP_STAGE_PROBE] = "cannot read the launch's configuration",
    [KP_STAGE_BEGIN] = "cannot enable the counters",
    [KP_STAGE_START] = "cannot start the counters",
    [KP_STAGE_ISSUE] = "the launch failed",
    [KP_STAGE_STOP] = "cannot stop the counters",
    [KP_STAGE_DECODE] = "cannot read the counters",
    [KP_STAGE_PASSES] = "the counters did not finish in the passes announced",
};

static char *explain(const struct flight *f)
{
    const struct kp_replay_outcome *r = &f->out->replay;
    const struct kp_driver *d = f->c->setup.driver;
    const char *words = stage_words[r->failed];
    char *note = NULL;
    switch (r->failed) {
    case KP_STAGE_NONE:
        return NULL;
    case KP_STAGE_ISSUE:
    case KP_STAGE_FLUSH: {
        CUresult code = r->failed == KP_STAGE_FLUSH   ? (CUresult)r->code
                        : r->code == KP_ISSUE_REFUSED ? f->refused
                                                      : f->out->context;
        return asprintf(&note, "%s: %s", words, kp_driver_error(d, code)) < 0 ? NULL : note;
    }
    case KP_STAGE_PASSES:
        return kp_strdup(words);
    default:
        break;
    }
    if (r->code == WRONG_RANGES)
        return asprintf(&note,
                        "the counters saw %zu kernels instead of %zu (a kernel that launches kernels, or another tool)",
                        f->seen_ranges, f->job->n_results) < 0
                   ? NULL
                   : note;
    return kp_cupti_explain(f->c->setup.cupti, words, r->code);
}

void kp_collector_run(struct kp_collector *c, struct kp_window_job *job, struct kp_window_outcome *out)
{
    struct flight f = {.c = c, .job = job, .out = out};
    struct kp_replay_request request = {
        .passes = c->passes, .groups = job->count ? c->setup.plan->n_groups : 0, .probe = job->probe};
    memset(out, 0, sizeof(*out));
    job->n_executed = 0;
    if (c->setup.flush && !c->flush && request.groups)
        kp_flush_open(c->setup.driver, c->setup.device, &c->flush);
    request.flush = c->setup.flush && request.groups;
    if (request.flush && !c->flush) {
        out->note = kp_strdup("the cache flush kernel could not be loaded: caches were warm");
        request.flush = false;
    }
    kp_replay_run(&operations, &f, &request, &out->replay);
    if (c->flush)
        kp_flush_give(c->flush);
    char *note = explain(&f);
    if (note) {
        free(out->note);
        out->note = note;
    }
}
