#include "preload/results/range_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "preload/results/describe.h"
#include "preload/journal/journal.h"
#include "base/lock.h"
#include "base/text.h"
#include "preload/contexts/ranges.h"
#include "preload/session/session.h"

static bool fill_header(const struct kp_context *c, struct kp_launch_info *i)
{
    struct kp_range_open *r = kp_ranges_open();
    i->kind = KP_WORKLOAD_RANGE;
    i->ordinal = kp_session_seen(0);
    i->mangled = kp_strdup(r->name);
    i->nvtx = r->nvtx;
    r->nvtx = (struct kp_nvtx){.ranges = NULL};
    return kp_describe_place(c, i) && i->mangled;
}

bool kp_range_result_make(const struct kp_context *c)
{
    struct kp_result *r = calloc(1, sizeof(*r));
    if (!r)
        return false;
    r->lossy = !fill_header(c, &r->launch);
    if (kp_journal_stand_in(r))
        return true;
    kp_result_free(r);
    free(r);
    return false;
}

void kp_range_result_drop(void)
{
    kp_journal_drop_result(kp_journal_entry(0));
}

void kp_range_result_cut(const char *closed_by, const char *what, uint64_t launches)
{
    struct kp_result *r = kp_journal_entry(0)->result;
    char *line = NULL;
    line = kp_asprintf("the range '%s' ends early (%s)%s; %" PRIu64 " launch%s counted",
                       r->launch.mangled ? r->launch.mangled : "", closed_by, what, launches,
                       launches == 1 ? " is" : "es are");
    if (line)
        kp_session_warn(KP_FAILURE_IN_PART, line);
    r->launch.note = line;
    r->launch.reason = KP_REASON_RANGE_EARLY;
}
