#include "preload/mode/time_launch.h"

#include <stdlib.h>

#include "preload/rotation/rotation.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/results/harvest.h"
#include "preload/mode/rotate.h"
#include "preload/mode/strategy.h"
#include "preload/results/describe.h"
#include "preload/results/harvest.h"
#include "preload/mode/timing_records.h"

/* Makes the result of the launch as a window would. NULL if memory is short. */
static struct kp_result *describe(const struct kp_question *q, struct kp_launch *l)
{
    struct kp_known_function *f = (struct kp_known_function *)q->function;
    struct kp_result *r = kp_describe_launch(q->setup, q->context, l, NULL, f);
    const struct kp_harvest h = {.setup = q->setup, .context = q->context, .no_config = KP_REASON_RECORD_COUNTED};
    const struct kp_entry e = {.launch = *l, .function = f};
    if (r)
        kp_harvest_fill(&h, &e, r);
    return r;
}

CUresult kp_timing_launch(const struct kp_question *q, struct kp_launch *l, enum kp_reason *skip_reason)
{
    struct kp_rotation *r = q->function ? kp_context_rotation(q->setup, q->context) : NULL;
    struct kp_rotation_key *key = !r ? NULL : kp_rotation_find(r, l, &q->function->facts);
    if (key)
        kp_rotation_apart(key, KP_REASON_ONLY_TIMED);
    kp_rotate_pass(q);
    kp_timed_settle();
    size_t group = r ? kp_rotation_timed(r) : 0;
    bool quiet = false, lacks = key && kp_rotation_lacks(key, group);
    bool can = kp_timed_has_room() && kp_context_may_probe() && !kp_timeline_is_on();
    struct kp_result *result = lacks && can && kp_rotation_times(key, &quiet) ? describe(q, l) : NULL;
    bool timed = false;
    CUresult rc =
        result ? kp_timed_issue(q, l, key, quiet && !q->window->open, result, &timed) : kp_launch_issue_own(l);
    *skip_reason = timed ? KP_REASON_NONE : key && !lacks ? KP_REASON_ROTATED : KP_REASON_ONLY_TIMED;
    if (result && !timed) {
        kp_result_free(result);
        free(result);
    }
    return rc;
}
