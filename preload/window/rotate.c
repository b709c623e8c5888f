#include "preload/window/rotate.h"

#include "preload/program/rotation.h"
#include "preload/window/close.h"

static const char graph_as_a_whole[] = "a graph as one workload, which a rotation does not count";

static const char too_many[] = "of more kernels and shapes than a rotation takes";

/* Sets the key of a wanted launch. Returns why it has none, or NULL. */
static const char *find_key(struct kp_question *q, struct kp_rotation *r)
{
    if (!q->function)
        return graph_as_a_whole;
    q->key = kp_rotation_find(r, q->launch, q->function->facts.mangled);
    return q->key ? NULL : too_many;
}

/* Whether the window counts a group that the launch lacks, or that a later one does which is worth waiting for. */
static bool is_worth_going_on(const struct kp_question *q, const struct kp_rotation *r)
{
    const struct kp_window *w = q->window;
    return (q->key && kp_rotation_lacks(q->key, w->group)) ||
           (w->unwanted_in_a_row < KP_ROTATE_PATIENCE && kp_rotation_expects(r, w->group, KP_ROTATE_PATIENCE));
}

const char *kp_rotate_judge(struct kp_question *q, struct kp_candidate *what)
{
    struct kp_rotation *r = q->setup->rotates ? kp_context_rotation(q->setup, q->context) : NULL;
    const struct kp_window *w = q->window;
    const char *why = r && what->wanted ? find_key(q, r) : NULL;
    if (!r)
        return NULL;
    if (kp_rotation_is_over(r)) {
        if (w->open && w->rotates)
            kp_window_close("the time for the rotation");
        what->wanted = false;
        return why || !q->key ? why : KP_SKIP_ROTATE_TIME;
    }
    bool counts = w->open && w->rotates && w->context == q->context;
    if (counts && !is_worth_going_on(q, r)) {
        kp_window_close("a group of counters that no kernel lacks which comes soon");
        counts = false;
    }
    if (!q->key) {
        what->wanted = false;
        return why;
    }
    what->wanted = counts ? kp_rotation_lacks(q->key, w->group) : kp_rotation_lacks_any(q->key);
    if (what->wanted)
        return NULL;
    q->key = NULL;
    return KP_SKIP_ROTATED;
}

void kp_rotate_took(struct kp_window *w, struct kp_rotation_key *key)
{
    struct kp_item *i = &w->items[w->n - 1];
    if (!key || !w->rotates || !i->result)
        return;
    i->key = key;
    kp_rotation_take(key, w->group);
}

void kp_rotate_refused(struct kp_window *w, struct kp_rotation_key *key)
{
    if (key && w->rotates)
        kp_rotation_untake(key, w->group);
}
