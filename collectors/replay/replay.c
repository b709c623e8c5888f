#include "collectors/replay/replay.h"

#include <string.h>

#include "base/clock.h"
#include "base/work.h"

/* The state of memory, relative to the window. */
enum memory { BEFORE, BETWEEN, AFTER };

struct state {
    const struct kp_replay_ops *ops;
    void *arg;
    const struct kp_replay_request *request;
    struct kp_replay_outcome *out;
    enum memory memory;
    uint64_t lap;  /* ns: when the last stage ended */
    bool restored; /* since then, memory was not that of the program's own execution */
};

/* Ends a stage: notes its time, and the first failure. */
static bool failed(struct state *s, enum kp_stage stage, int code)
{
    uint64_t now = kp_clock_ns();
    s->out->ns[stage] += now - s->lap;
    s->lap = now;
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
    if (s->memory == BEFORE)
        return true;
    s->restored = true;
    if (failed(s, KP_STAGE_RESTORE, s->ops->restore(s->arg))) {
        s->out->damaged = true;
        return false;
    }
    s->memory = BEFORE;
    return true;
}

static bool execute(struct state *s, enum kp_stage stage, int (*issue)(void *arg))
{
    int code = issue(s->arg);
    s->memory = code == KP_ISSUE_REFUSED || code == KP_ISSUE_GIVEN_UP || code == KP_ISSUE_CUT ? BETWEEN : AFTER;
    if (code == KP_ISSUE_GIVEN_UP)
        return true;
    if (failed(s, stage, code))
        s->out->dead = code != KP_ISSUE_REFUSED && code != KP_ISSUE_TOO_LONG && code != KP_ISSUE_CUT;
    return !code;
}

static bool run_pass(struct state *s, bool *last)
{
    kp_safe_point();
    if (kp_work_is_cut())
        return !failed(s, KP_STAGE_ISSUE, KP_ISSUE_LEFT);
    if (!back_to_start(s))
        return false;
    if (failed(s, KP_STAGE_START, s->ops->start(s->arg)))
        return false;
    bool ok = execute(s, KP_STAGE_ISSUE, s->ops->issue);
    if (s->out->code == KP_ISSUE_UNENDED)
        return false;
    /* Stops even after a failed issue: a running profiler would fail every later pass. */
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

static bool rehearse(struct state *s)
{
    for (unsigned i = 0; i < s->request->rehearsals; i++)
        if (!back_to_start(s) || !execute(s, KP_STAGE_REHEARSE, s->ops->rehearse))
            return false;
    return true;
}

/* Restores the memory of the program's own execution, even after a failed restore. */
static void settle_own(struct state *s)
{
    if (s->restored && !s->out->dead)
        s->out->damaged = failed(s, KP_STAGE_RESTORE, s->ops->put_back(s->arg));
}

/* Restores memory to the state after one execution. */
static void settle(struct state *s)
{
    if (s->memory == AFTER || s->out->damaged || s->out->dead)
        return;
    if (back_to_start(s) && !execute(s, KP_STAGE_ISSUE, s->ops->plain) && !s->out->dead)
        s->out->damaged = s->memory != AFTER;
}

void kp_passes_run(const struct kp_replay_ops *ops, void *arg, const struct kp_replay_request *request,
                   struct kp_replay_outcome *out)
{
    struct state s = {.ops = ops, .arg = arg, .request = request, .out = out, .memory = AFTER};
    memset(out, 0, sizeof(*out));
    s.lap = kp_clock_ns();
    if (rehearse(&s))
        for (size_t g = 0; g < request->groups; g++)
            if (!run_group(&s, g))
                break;
    if (request->own)
        settle_own(&s);
    else
        settle(&s);
}
