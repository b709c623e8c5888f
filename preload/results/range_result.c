#include "preload/results/range_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lock.h"
#include "preload/contexts/ranges.h"
#include "preload/session/session.h"
#include "preload/journal/record.h"

static bool fill_header(const struct kp_window *w, struct kp_launch_info *i)
{
    struct kp_range_open *r = kp_ranges_open();
    i->kind = KP_WORKLOAD_RANGE;
    i->ordinal = kp_session_seen(0);
    i->mangled = kp_strdup(r->name);
    i->nvtx = r->nvtx;
    r->nvtx = (struct kp_nvtx){.ranges = NULL};
    return kp_record_place(w, i) && i->mangled;
}

bool kp_range_result_make(struct kp_window *w)
{
    struct kp_item *i = kp_record_new(w);
    struct kp_result *r = i ? calloc(1, sizeof(*r)) : NULL;
    if (r) {
        i->result = r;
        w->wanted = 1;
        r->lossy = !fill_header(w, &r->launch);
    }
    return r;
}

void kp_range_result_drop(struct kp_window *w)
{
    kp_result_free(w->items[0].result);
    free(w->items[0].result);
    w->items[0].result = NULL;
    w->wanted = 0;
}

void kp_range_result_cut(struct kp_window *w, const char *what, uint64_t launches)
{
    struct kp_result *r = w->items[0].result;
    char *line = NULL;
    if (asprintf(&line, "the range '%s' ends early (%s)%s; %" PRIu64 " launch%s counted",
                 r->launch.mangled ? r->launch.mangled : "", w->closer, what, launches,
                 launches == 1 ? " is" : "es are") < 0)
        line = NULL;
    if (line)
        kp_session_warn(KP_FAILURE_IN_PART, line);
    r->launch.note = line;
}
