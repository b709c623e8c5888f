#include "preload/window/timing.h"

#include <stdlib.h>

#include "preload/program/rotation.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/window/harvest.h"
#include "preload/window/record.h"
#include "preload/window/rotate.h"
#include "preload/window/strategy.h"
#include "preload/window/timed.h"

static const char waits_outside[] = "it waits for the host, other processes or devices, and the program would wait for "
                                    "a launch that is counted: only timed";

/* Makes the result of the launch as a window would. NULL without memory. */
static struct kp_result *describe(const struct kp_question *q, struct kp_launch *l)
{
    struct kp_window w = {.setup = q->setup, .context = q->context, .strategy = &kp_strategy_count};
    struct kp_result *r = NULL;
    if (kp_record_launch(&w, l, true, NULL, (struct kp_known_function *)q->function)) {
        kp_harvest_fill(&w, &w.items[0], w.items[0].result);
        r = w.items[0].result;
        w.items[0].result = NULL;
        *l = w.items[0].launch; /* it keeps its arguments, as they are copied with it */
        w.items[0].is_launch = false;
    }
    free(w.items);
    return r;
}

CUresult kp_timing_launch(const struct kp_question *q, struct kp_launch *l, const char **skipped)
{
    struct kp_rotation *r = q->function ? kp_context_rotation(q->setup, q->context) : NULL;
    struct kp_rotation_key *key = !r ? NULL : kp_rotation_find(r, l, &q->function->facts);
    if (key)
        kp_rotation_apart(key, waits_outside);
    kp_rotate_pass(q);
    kp_timed_settle();
    size_t group = r ? kp_rotation_timed(r) : 0;
    bool quiet = false, lacks = key && kp_rotation_lacks(key, group);
    bool can = kp_timed_has_room() && kp_context_may_probe() && !kp_timeline_is_on();
    struct kp_result *result = lacks && can && kp_rotation_times(key, &quiet) ? describe(q, l) : NULL;
    bool timed = false;
    CUresult rc =
        result ? kp_timed_issue(q, l, key, quiet && !q->window->open, result, &timed) : kp_launch_issue_own(l);
    *skipped = timed ? NULL : key && !lacks ? KP_SKIP_ROTATED : waits_outside;
    if (result && !timed) {
        kp_result_free(result);
        free(result);
    }
    return rc;
}
