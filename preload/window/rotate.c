#include "preload/window/rotate.h"

#include "base/lock.h"
#include "collectors/providers/observe.h"
#include "preload/gate/gate.h"
#include "preload/program/rotation.h"
#include "preload/window/close.h"
#include "preload/window/flags.h"
#include "preload/window/reach.h"
#include "preload/window/waits.h"
#include "preload/window/window.h"

static const char graph_as_a_whole[] = "a graph as one workload, which a rotation does not count";

static const char too_many[] = "of more kernels and shapes than a rotation takes";

static const char none_comes_soon[] = "a group of counters that no kernel lacks which comes soon";

/* Sets the key of a wanted launch. Returns why it has none, or NULL. */
static const char *find_key(struct kp_question *q, struct kp_rotation *r)
{
    if (!q->function)
        return graph_as_a_whole;
    q->key = kp_rotation_find(r, q->launch, &q->function->facts);
    return q->key ? NULL : too_many;
}

/* Whether the window counts a group that the launch lacks, or that a later one does which is worth waiting for. */
static bool is_worth_going_on(const struct kp_question *q, const struct kp_rotation *r)
{
    /* Launches that pass cost nothing but the groups that they lack. So a window waits for as long as it takes to begin
     * another. */
    enum { WINDOW_MS = 45 };
    const struct kp_window *w = q->window;
    if (q->key && kp_rotation_lacks(q->key, w->group))
        return true;
    if (w->chooses && kp_now_ms() - w->wanted_ms >= WINDOW_MS)
        return false;
    if (w->unwanted_in_a_row < KP_ROTATE_PATIENCE && kp_rotation_expects(r, w->group, KP_ROTATE_PATIENCE))
        return true;
    return w->chooses && w->unwanted_in_a_row < KP_ROTATE_FAR && kp_rotation_awaits(r, w->group, KP_ROTATE_FAR);
}

/* Returns why the window ends before the launch, or NULL. */
static const char *why_not_on(const struct kp_question *q, const struct kp_rotation *r)
{
    if (q->window->chooses && kp_collector_count_failed(q->window->context->collector))
        return "a launch at which collecting failed";
    return is_worth_going_on(q, r) ? NULL : none_comes_soon;
}

/* Return why a launch of the key is not counted by the window at hand, or opens none, or NULL. Shapes that come a few
 * times are counted where a window counts all that it sees, and once where each launch that it counts costs 1 ms. */
static const char *why_not_in(const struct kp_rotation_key *k, const struct kp_window *w)
{
    if (!kp_rotation_lacks(k, w->group))
        return KP_SKIP_ROTATED;
    return w->chooses && kp_rotation_is_fleeting(k) && kp_rotation_has_any(k) ? KP_SKIP_ROTATE_FLEETING : NULL;
}

static const char *why_not_open(const struct kp_rotation *r, const struct kp_rotation_key *k)
{
    if (!kp_rotation_lacks_any(k))
        return KP_SKIP_ROTATED;
    if (kp_rotation_is_fleeting(k))
        return KP_SKIP_ROTATE_FLEETING;
    return kp_rotation_rests(r) ? KP_SKIP_ROTATE_RESTS : NULL;
}

/* The streams of launches that have passed beside the window, since its context was idle. */
static struct {
    uint64_t window; /* kp_window.serial */
    CUstream streams[8];
    size_t n;
    bool others;     /* there were more, or one that another thread cannot ask about */
    unsigned unseen; /* kp_flags_unseen() when the context was idle */
} passed;

static void note_passed(const struct kp_launch *l)
{
    enum { MOST = sizeof(passed.streams) / sizeof(*passed.streams) };
    CUstream stream = kp_launch_stream(l);
    size_t i = 0;
    while (i < passed.n && passed.streams[i] != stream)
        i++;
    if (stream == CU_STREAM_PER_THREAD || i == MOST)
        passed.others = true;
    else
        passed.streams[i] = stream;
    passed.n += i == passed.n && i < MOST;
}

static void note_idle(uint64_t window)
{
    passed.window = window;
    passed.n = 0;
    passed.others = false;
    passed.unseen = kp_flags_unseen();
}

/* Forgets what an earlier window has let by, whose streams may be gone with their context. What has begun since this
 * one opened is not known. */
static void know_window(uint64_t window)
{
    if (passed.window == window)
        return;
    note_idle(window);
    passed.others = true;
}

/* Whether all launches that have passed end soon. Asks their streams, as the wait for a context takes a thread, for 0.2
 * ms and more. */
static bool ends_soon(const struct kp_driver *d)
{
    enum { MOST_MS = 3 };
    long start = kp_now_ms();
    if (passed.others || passed.unseen != kp_flags_unseen())
        return false;
    for (size_t i = 0; i < passed.n;) {
        CUresult rc = d->cuStreamQuery(passed.streams[i]);
        if (rc == CUDA_SUCCESS)
            i++;
        else if (rc != CUDA_ERROR_NOT_READY || kp_now_ms() - start >= MOST_MS)
            return false;
    }
    return true;
}

/* Whether the context of a window becomes idle, for which nothing waits long: its work may wait for a later launch, of
 * another context even. Only streams of the current context can be asked. */
static bool becomes_idle(const struct kp_window *w, bool is_current)
{
    enum { FIRST_MS = 500, NEXT_MS = 10 };
    const struct kp_driver *d = w->setup->driver;
    struct kp_context *c = w->context;
    long ms = c->stalled ? NEXT_MS : FIRST_MS;
    kp_context_settle_ends();
    if (c->ended)
        return true; /* nothing is waited for any more */
    know_window(w->serial);
    bool idle = (is_current && ends_soon(d)) || kp_wait_briefly(d, c->ctx, ms, NEXT_MS) != CUDA_ERROR_NOT_READY;
    c->stalled = !idle;
    if (idle)
        note_idle(w->serial);
    return idle;
}

/* Whether the open window may close now: the end of a pass may wait for work that passed the window. */
static bool may_close(const struct kp_question *q)
{
    return !q->window->chooses || becomes_idle(q->window, q->window->context == q->context);
}

bool kp_window_may_close(void)
{
    const struct kp_window *w = &kp_window_now;
    return !w->open || !w->chooses || (kp_gate_captures() <= 0 && becomes_idle(w, false));
}

const char *kp_rotate_judge(struct kp_question *q, struct kp_candidate *what)
{
    struct kp_rotation *r = q->setup->rotates ? kp_context_rotation(q->setup, q->context) : NULL;
    const struct kp_window *w = q->window;
    const char *why = r && what->wanted ? find_key(q, r) : NULL;
    if (!r)
        return NULL;
    bool counts = w->open && w->rotates && w->context == q->context;
    const char *closer = counts ? why_not_on(q, r) : NULL;
    if (closer && !may_close(q)) {
        why = q->key ? KP_SKIP_UNENDED : why;
        q->key = NULL;
    } else if (closer) {
        kp_window_close(closer);
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

/* Returns why the window does not count a wanted launch: the counters would wait for what may not end. */
static const char *why_not_waited(const struct kp_question *q)
{
    if (q->fit.waits)
        return q->fit.waits;
    if (q->fit.host && !q->fit.ends)
        return kp_reaches_host;
    return becomes_idle(q->window, true) ? NULL : KP_SKIP_UNENDED;
}

bool kp_rotate_lets_by(struct kp_question *q, struct kp_candidate *what, const char **why)
{
    const struct kp_window *w = q->window;
    *why = NULL;
    if (!w->open || !w->chooses)
        return false;
    know_window(w->serial);
    if (what->wanted)
        *why = w->context == q->context ? why_not_waited(q) : may_close(q) ? NULL : KP_SKIP_UNENDED;
    if (*why) {
        what->wanted = false;
        q->key = NULL;
    }
    if (!what->wanted && w->context == q->context)
        note_passed(q->launch);
    return !what->wanted;
}

void kp_rotate_pass(const struct kp_question *q)
{
    const struct kp_window *w = q->window;
    if (!w->open)
        return;
    if (!w->chooses) {
        kp_window_close("a launch that nothing waits for");
        return;
    }
    if (w->context != q->context)
        return; /* what passed the window may wait for this very launch */
    know_window(w->serial);
    if (!is_worth_going_on(q, q->context->rotation) && may_close(q))
        kp_window_close(none_comes_soon);
    else
        note_passed(q->launch);
}

/* ---- beside a replay ---- */

const char *kp_rotate_find_turn(struct kp_question *q)
{
    bool beside = q->setup->falls_back && q->function;
    struct kp_rotation *r = beside ? kp_context_rotation(q->setup, q->context) : NULL;
    struct kp_rotation_key *k = r ? kp_rotation_find(r, q->launch, &q->function->facts) : NULL;
    bool first = k && kp_rotation_is_first(k);
    if (!k || (!first && !kp_context_turns(q->setup, q->context)))
        return NULL; /* it is counted by itself */
    q->key = first || kp_rotation_lacks_any(k) ? k : NULL;
    return q->key ? NULL : KP_SKIP_ROTATED;
}

static bool takes_turns(const struct kp_question *q)
{
    return q->what->wanted && q->function && q->fit.obstacle && kp_admit_counters(q) && !kp_admit_hindrance(q);
}

const char *kp_rotate_beside(struct kp_question *q, struct kp_candidate *what)
{
    const struct kp_window *w = q->window;
    const char *why = NULL;
    if (!q->setup->falls_back)
        return NULL;
    if (takes_turns(q))
        why = kp_rotate_find_turn(q);
    what->wanted &= !why;
    if (!w->open || !w->rotates)
        return why;
    bool alone = what->wanted && (!q->key || kp_rotation_is_first(q->key));
    if (alone || !is_worth_going_on(q, q->context->rotation)) {
        kp_window_close(alone ? "a launch that is counted by itself" : none_comes_soon);
    } else if (what->wanted && !kp_rotation_lacks(q->key, w->group)) {
        what->wanted = false;
        q->key = NULL;
        why = KP_SKIP_ROTATED;
    }
    return why;
}

/* ---- first launches ---- */

bool kp_rotate_record(const struct kp_context *c)
{
    if (!kp_context_samples(c) || !kp_context_may_probe())
        return false;
    kp_context_uses_cupti();
    return !kp_probe_begin(kp_context_cupti());
}

void kp_rotate_end_record(void)
{
    kp_record_off(kp_context_cupti());
}

/* ---- records ---- */

void kp_rotate_took(struct kp_window *w, struct kp_rotation_key *key)
{
    struct kp_item *i = &w->items[w->n - 1];
    if (!key || !i->result)
        return;
    if (w->rotates)
        kp_rotation_take(key, w->group);
    else if (w->obstacle && kp_rotation_is_first(key))
        kp_rotation_take_first(key, w->obstacle);
    else
        return; /* it is counted by itself after all */
    i->key = key;
}

void kp_rotate_refused(struct kp_window *w, struct kp_rotation_key *key)
{
    if (key && w->rotates)
        kp_rotation_untake(key, w->group);
    else if (key)
        kp_rotation_untake_first(key);
}
