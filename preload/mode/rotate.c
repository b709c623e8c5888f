#include "preload/mode/rotate.h"

#include "preload/contexts/unending.h"
#include "base/lock.h"
#include "collectors/providers/observe.h"
#include "preload/gate/gate.h"
#include "preload/rotation/rotation.h"
#include "preload/mode/close.h"
#include "preload/gate/window_facts.h"
#include "preload/graphs/host_pointers.h"
#include "preload/program/host_snapshot.h"
#include "preload/program/waits.h"
#include "preload/mode/strategy.h"
#include "preload/mode/window.h"

/* Applies to an open window. */
static bool chooses(const struct kp_window *w)
{
    return kp_strategy_chooses(w->strategy);
}

static size_t group_of(const struct kp_window *w)
{
    return w->strategy->turn->group;
}

/* Sets the key of a wanted launch. Returns why it has none, if there is a reason. */
static enum kp_reason find_key(struct kp_question *q, struct kp_rotation *r)
{
    if (!q->function)
        return KP_REASON_ROTATE_GRAPH;
    q->key = kp_rotation_find(r, q->launch, &q->function->facts);
    return q->key ? KP_REASON_NONE : KP_REASON_ROTATE_FULL;
}

/* Returns true if the window counts a group that the launch lacks, or one that a later launch worth waiting for
 * lacks. */
static bool is_worth_going_on(const struct kp_question *q, const struct kp_rotation *r)
{
    /* Launches that pass cost nothing but the groups that they lack. So a window waits for as long as it takes to begin
     * another. */
    const struct kp_window *w = q->window;
    if (q->key && kp_rotation_lacks(q->key, group_of(w)))
        return true;
    if (chooses(w) && kp_now_ms() - w->wanted_ms >= kp_span_ms(KP_SPAN_ROTATION_WINDOW))
        return false;
    if (w->unwanted_in_a_row < KP_ROTATE_PATIENCE && kp_rotation_expects(r, group_of(w), KP_ROTATE_PATIENCE))
        return true;
    return chooses(w) && w->unwanted_in_a_row < KP_ROTATE_FAR && kp_rotation_awaits(r, group_of(w), KP_ROTATE_FAR);
}

/* Returns why the window ends before the launch, if there is a reason. */
static enum kp_reason why_not_on(const struct kp_question *q, const struct kp_rotation *r)
{
    if (chooses(q->window) && kp_collector_count_failed(q->window->context->collector))
        return KP_REASON_COLLECT_FAILED;
    return is_worth_going_on(q, r) ? KP_REASON_NONE : KP_REASON_NONE_COMES;
}

/* Return why the current window does not count a launch of the key, or why the launch opens none, if there is a reason.
 * Shapes that occur a few times are counted if a window counts all that it sees, and once if each launch that it counts
 * costs 1 ms. */
static enum kp_reason why_not_in(const struct kp_rotation_key *k, const struct kp_window *w)
{
    if (!kp_rotation_lacks(k, group_of(w)))
        return KP_REASON_ROTATED;
    return chooses(w) && kp_rotation_is_fleeting(k) && kp_rotation_has_any(k) ? KP_REASON_ROTATE_FLEETING
                                                                              : KP_REASON_NONE;
}

static enum kp_reason why_not_open(const struct kp_rotation *r, const struct kp_rotation_key *k)
{
    if (!kp_rotation_lacks_any(k))
        return KP_REASON_ROTATED;
    if (kp_rotation_is_fleeting(k))
        return KP_REASON_ROTATE_FLEETING;
    return kp_rotation_rests(r) ? KP_REASON_ROTATE_RESTS : KP_REASON_NONE;
}

/* The streams of launches that have passed the window uncounted since its context was idle. */
static struct {
    uint64_t window; /* its journal's serial */
    CUstream streams[8];
    size_t n;
    bool others;                           /* there were more, or one that another thread cannot ask about */
    unsigned unseen;                       /* kp_flags_unseen() when the context was idle */
    struct kp_known_function *reaching[8]; /* functions of those that can reach host memory, and are not known to end */
    size_t n_reaching;
} passed;

static void note_reaching(struct kp_known_function *f)
{
    enum { MOST = sizeof(passed.reaching) / sizeof(*passed.reaching) };
    size_t i = 0;
    while (i < passed.n_reaching && passed.reaching[i] != f)
        i++;
    if (i < MOST)
        passed.reaching[i] = f;
    passed.n_reaching += i == passed.n_reaching && i < MOST;
}

static void note_passed(const struct kp_question *q)
{
    enum { MOST = sizeof(passed.streams) / sizeof(*passed.streams) };
    CUstream stream = kp_launch_stream(q->launch);
    if (q->function && q->fit.host && !q->fit.ends)
        note_reaching((struct kp_known_function *)q->function);
    size_t i = 0;
    while (i < passed.n && passed.streams[i] != stream)
        i++;
    if (stream == CU_STREAM_PER_THREAD || i == MOST)
        passed.others = true;
    else
        passed.streams[i] = stream;
    passed.n += i == passed.n && i < MOST;
}

/* The context is idle: what has passed has ended by itself. */
static void note_idle(uint64_t window)
{
    for (size_t i = 0; i < passed.n_reaching; i++)
        passed.reaching[i]->ends += passed.reaching[i]->ends < KP_ENDS_ENOUGH;
    passed.n_reaching = 0;
    passed.window = window;
    passed.n = 0;
    passed.others = false;
    passed.unseen = kp_flags_unseen();
}

/* Forgets what an earlier window has let by, whose streams may be gone with their context. What has started since this
 * one opened is not known. */
static void know_window(uint64_t window)
{
    if (passed.window == window)
        return;
    passed.n_reaching = 0;
    note_idle(window);
    passed.others = true;
}

/* Returns true if all launches that have passed end within `ms`; 0: have ended. Asks their streams, because the wait
 * for a context needs a thread, which costs 0.2 ms or more. */
static bool end_within(const struct kp_driver *d, long ms)
{
    long start = kp_now_ms();
    if (passed.others || passed.unseen != kp_flags_unseen())
        return false;
    for (size_t i = 0; i < passed.n;) {
        CUresult rc = d->cuStreamQuery(passed.streams[i]);
        if (rc == CUDA_SUCCESS)
            i++;
        else if (rc != CUDA_ERROR_NOT_READY || kp_now_ms() - start >= ms)
            return false;
    }
    return true;
}

/* Returns true if the context of a window becomes idle. The wait is short: its work may wait for a later launch, even
 * in another context. Only streams of the current context can be queried. */
static bool becomes_idle(const struct kp_window *w, bool is_current)
{
    const struct kp_driver *d = w->setup->driver;
    struct kp_context *c = w->context;
    long next = kp_limit_next(KP_WAIT_ROTATION), ms = c->stalled ? next : kp_limit_first(KP_WAIT_ROTATION);
    kp_context_settle_ends();
    if (c->ended)
        return true; /* no more waits */
    know_window(kp_journal_facts().serial);
    bool idle = (is_current && end_within(d, kp_limit_first(KP_WAIT_ROTATION_STREAMS))) ||
                kp_wait_briefly(d, c->ctx, ms, next) != CUDA_ERROR_NOT_READY;
    c->stalled = !idle;
    if (idle)
        note_idle(kp_journal_facts().serial);
    return idle;
}

/* Returns true if the open window may close now: the end of a pass may wait for work that passed the window. */
static bool may_close(const struct kp_question *q)
{
    return !chooses(q->window) || becomes_idle(q->window, q->window->context == q->context);
}

bool kp_window_may_close(void)
{
    const struct kp_window *w = &kp_window_now;
    return !w->open || !chooses(w) || (kp_gate_captures() <= 0 && becomes_idle(w, false));
}

enum kp_reason kp_rotate_judge(struct kp_question *q, struct kp_candidate *what)
{
    struct kp_rotation *r = kp_mode_recurs(q->setup->mode) ? kp_context_rotation(q->setup, q->context) : NULL;
    const struct kp_window *w = q->window;
    enum kp_reason why = r && what->wanted ? find_key(q, r) : KP_REASON_NONE;
    if (!r)
        return KP_REASON_NONE;
    bool counts = w->open && w->strategy->turn && w->context == q->context;
    enum kp_reason close_reason = counts ? why_not_on(q, r) : KP_REASON_NONE;
    if (close_reason && !may_close(q)) {
        why = q->key ? KP_REASON_UNENDED : why;
        q->key = NULL;
    } else if (close_reason) {
        kp_window_close(close_reason);
        counts = false;
    }
    if (!q->key) {
        what->wanted = false;
        return why;
    }
    why = counts ? why_not_in(q->key, w) : why_not_open(r, q->key);
    what->wanted = !why;
    if (why)
        q->key = NULL;
    return why;
}

/* Returns why the window does not count a wanted launch: the counters would wait for work that may not end. */
static enum kp_reason why_not_waited(const struct kp_question *q)
{
    if (q->fit.waits_reason)
        return q->fit.waits_reason;
    if (q->fit.host && !q->fit.ends && passed.n_reaching && end_within(q->setup->driver, 0))
        note_idle(passed.window);
    if (q->fit.host && !kp_admit_ends(q->function))
        return KP_REASON_REACHES_HOST;
    return becomes_idle(q->window, true) ? KP_REASON_NONE : KP_REASON_UNENDED;
}

bool kp_rotate_lets_by(struct kp_question *q, struct kp_candidate *what, enum kp_reason *why)
{
    const struct kp_window *w = q->window;
    *why = KP_REASON_NONE;
    if (!w->open || !chooses(w))
        return false;
    know_window(kp_journal_facts().serial);
    if (what->wanted)
        *why = w->context == q->context ? why_not_waited(q) : may_close(q) ? KP_REASON_NONE : KP_REASON_UNENDED;
    if (*why) {
        what->wanted = false;
        q->key = NULL;
    }
    if (!what->wanted && w->context == q->context)
        note_passed(q);
    return !what->wanted;
}

void kp_rotate_pass(const struct kp_question *q)
{
    const struct kp_window *w = q->window;
    if (!w->open)
        return;
    if (!chooses(w)) {
        kp_window_close(KP_REASON_UNWAITED);
        return;
    }
    if (w->context != q->context)
        return; /* what passed the window may wait for this very launch */
    know_window(kp_journal_facts().serial);
    if (!is_worth_going_on(q, q->context->rotation) && may_close(q))
        kp_window_close(KP_REASON_NONE_COMES);
    else
        note_passed(q);
}

/* ---- alongside a replay ---- */

enum kp_reason kp_rotate_find_turn(struct kp_question *q)
{
    bool beside = kp_mode_recurs_beside(q->setup->mode) && q->function;
    struct kp_rotation *r = beside ? kp_context_rotation(q->setup, q->context) : NULL;
    struct kp_rotation_key *k = q->kind ? q->kind : r ? kp_rotation_find(r, q->launch, &q->function->facts) : NULL;
    bool first = k && kp_rotation_is_first(k);
    if (!k || (!first && !kp_context_turns(q->setup, q->context)))
        return KP_REASON_NONE; /* it is counted by itself */
    q->key = first || kp_rotation_lacks_any(k) ? k : NULL;
    return q->key ? KP_REASON_NONE : KP_REASON_ROTATED;
}

static bool takes_turns(const struct kp_question *q)
{
    return q->what->wanted && q->function && q->fit.once_reason && kp_admit_counters(q) && !kp_admit_open_reason(q);
}

enum kp_reason kp_rotate_beside(struct kp_question *q, struct kp_candidate *what)
{
    const struct kp_window *w = q->window;
    enum kp_reason why = KP_REASON_NONE;
    if (!kp_mode_recurs_beside(q->setup->mode))
        return KP_REASON_NONE;
    if (takes_turns(q))
        why = kp_rotate_find_turn(q);
    what->wanted &= !why;
    if (!w->open || !w->strategy->turn)
        return why;
    bool alone = what->wanted && (!q->key || kp_rotation_is_first(q->key));
    if (alone || !is_worth_going_on(q, q->context->rotation)) {
        kp_window_close(alone ? KP_REASON_COUNTED_ALONE : KP_REASON_NONE_COMES);
    } else if (what->wanted && !kp_rotation_lacks(q->key, group_of(w))) {
        what->wanted = false;
        q->key = NULL;
        why = KP_REASON_ROTATED;
    }
    return why;
}

/* ---- first launches ---- */

bool kp_rotate_record(const struct kp_context *c)
{
    if (!kp_context_samples(c) || !kp_context_may_probe())
        return false;
    kp_context_uses_cupti();
    return !kp_providers_probe_begin(kp_context_cupti());
}

void kp_rotate_end_record(void)
{
    kp_providers_record_off(kp_context_cupti());
}

/* ---- records ---- */

void kp_rotate_took(const struct kp_window *w, struct kp_entry *e, struct kp_rotation_key *key)
{
    if (!key || !e->result)
        return;
    if (w->strategy->turn)
        kp_rotation_take(key, group_of(w));
    else if (w->once_reason && kp_rotation_is_first(key))
        kp_rotation_take_first(key, w->once_reason);
    else
        return; /* it is counted by itself after all */
    e->key = key;
}

void kp_rotate_refused(const struct kp_window *w, struct kp_rotation_key *key)
{
    if (key && w->strategy->turn)
        kp_rotation_untake(key, group_of(w));
    else if (key)
        kp_rotation_untake_first(key);
}
