#include "preload/window/rotate.h"

#include "preload/program/rotation.h"
#include "preload/window/close.h"

static const char graph_as_a_whole[] = "a graph as one workload, which a rotation does not count";

static const char too_many[] = "of more kernels and shapes than a rotation takes";

const char *kp_rotate_judge(struct kp_question *q, struct kp_candidate *what)
{
    struct kp_rotation *r = q->setup->rotates ? kp_context_rotation(q->setup, q->context) : NULL;
    if (!r || !what->wanted)
        return NULL;
    if (!q->function) {
        what->wanted = false;
        return graph_as_a_whole;
    }
    q->key = kp_rotation_find(r, q->launch, q->function->facts.mangled);
    if (!q->key) {
        what->wanted = false;
        return too_many;
    }
    const struct kp_window *w = q->window;
    bool counts = w->open && w->rotates && w->context == q->context;
    if (counts && !kp_rotation_is_wanted(r, w->group)) {
        kp_window_close("a group of counters that all kernels have counted");
        counts = false;
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
