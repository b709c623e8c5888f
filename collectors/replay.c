#include "collectors/replay.h"

#include <string.h>

struct state {
    const struct kp_replay_ops *ops;
    void *arg;
    const struct kp_replay_request *request;
    struct kp_replay_outcome *out;
    bool executed; /* memory is what one execution left; else it is what it was before the window */
};

/* Notes the first failure. */
static bool failed(struct state *s, enum kp_stage stage, int code)
{
    if (!code)
        return false;
    if (s->out->failed == KP_STAGE_NONE) {
        s->out->failed = stage;
        s->out->code = code;
    }
    return true;
}

static bool back_to_start(struct state *s)
{
    if (!s->executed)
        return true;
    if (failed(s, KP_STAGE_RESTORE, s->ops->restore(s->arg))) {
        s->out->damaged = true;
        return false;
    }
    s->executed = false;
    return true;
}

static bool execute(struct state *s)
{
    int code = s->ops->issue(s->arg);
    s->executed = code != KP_ISSUE_REFUSED;
    if (failed(s, KP_STAGE_ISSUE, code))
        s->out->dead = s->executed;
    return !code;
}

static bool probe(struct state *s)
{
    if (!s->request->probe)
        return true;
    /* A probe that does not start is no reason to give the counters up: its facts are shown as missing. */
    if (s->ops->probe_begin(s->arg))
        return true;
    bool ok = execute(s);
    s->ops->probe_end(s->arg);
    return ok;
}

static bool run_pass(struct state *s, bool *last)
{
    if (!back_to_start(s))
        return false;
    if (s->request->flush && failed(s, KP_STAGE_FLUSH, s->ops->flush(s->arg)))
        return false;
    if (failed(s, KP_STAGE_START, s->ops->start(s->arg)))
        return false;
    bool ok = execute(s);
    /* Stopped even after a failed issue: a profiler left running would fail every later pass. */
    if (failed(s, KP_STAGE_STOP, s->ops->stop(s->arg, last)))
        ok = false;
    s->out->passes++;
    return ok;
}

static bool run_group(struct state *s, size_t g)
{
    bool last = false;
    if (failed(s, KP_STAGE_BEGIN, s->ops->begin(s->arg, g)))
        return false;
    for (size_t p = 0; !last && p < s->request->passes[g]; p++)
        if (!run_pass(s, &last))
            return false;
    if (!last)
        return !failed(s, KP_STAGE_PASSES, 1);
    return !failed(s, KP_STAGE_DECODE, s->ops->decode(s->arg, g));
}

static size_t executions(const struct kp_replay_request *r)
{
    size_t n = r->probe ? 1 : 0;
    for (size_t g = 0; g < r->groups; g++)
        n += r->passes[g];
    return n;
}

void kp_replay_run(const struct kp_replay_ops *ops, void *arg, const struct kp_replay_request *request,
                   struct kp_replay_outcome *out)
{
    struct state s = {.ops = ops, .arg = arg, .request = request, .out = out};
    memset(out, 0, sizeof(*out));
    /* One execution changes nothing that a second one would see: nothing to save. */
    bool saved = executions(request) > 1 && !failed(&s, KP_STAGE_SAVE, ops->save(arg));
    if (saved || executions(request) == 1)
        if (probe(&s))
            for (size_t g = 0; g < request->groups; g++)
                if (!run_group(&s, g))
                    break;
    if (!s.executed && !out->damaged && !out->dead)
        execute(&s);
    if (saved)
        ops->drop(arg);
}
