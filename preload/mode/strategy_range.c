/*
 * A range: all that the program launches and copies between its start and its end is one workload with one result. Its
 * operations are recorded like those of a replayed window, and repeated together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "preload/mode/repeat_common.h"
#include "preload/program/hostmem.h"
#include "preload/contexts/ranges.h"
#include "preload/session/session.h"
#include "preload/mode/range_window.h"
#include "preload/results/range_result.h"
#include "preload/mode/strategy.h"

/* A launch that needs a window of its own cannot be part of a range. */
static enum kp_reason admit_range(const struct kp_question *q)
{
    return q->fit.alone_reason;
}

/* ---- the result ---- */

/* Names the range and its contents. */
static char *describe_range(const char *name, size_t launches, const struct kp_journal_content *c)
{
    char copies[64] = "", *text = NULL;
    if (c->copies)
        snprintf(copies, sizeof(copies), ", %zu cop%s and memset%s", c->copies, c->copies == 1 ? "y" : "ies",
                 c->copies == 1 ? "" : "s");
    return asprintf(&text, "%s: range of %zu launch%s%s in %zu stream%s", name && *name ? name : "(no name)", launches,
                    launches == 1 ? "" : "es", copies, c->streams, c->streams == 1 ? "" : "s") < 0
               ? NULL
               : text;
}

static void set_content(void)
{
    struct kp_result *r = kp_journal_entry(0)->result;
    const struct kp_journal_content c = kp_journal_content();
    const size_t launches = kp_journal_facts().launches;
    r->launch.launches = launches;
    r->launch.demangled = describe_range(r->launch.mangled, launches, &c);
    r->lossy |= !r->launch.demangled || kp_result_set_count(r, "range__launches", "", launches) ||
                kp_result_set_count(r, "range__graphs", "", c.graphs) ||
                kp_result_set_count(r, "range__copies", "", c.copies) ||
                kp_result_set_count(r, "range__streams", "", c.streams);
}

/* ---- the window ---- */

static bool open_range(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    struct kp_context *c = w->context;
    *reason = q->fit.once_reason;
    if (!*reason && !kp_admit_counters(q)) {
        *reason = KP_REASON_NO_COUNTERS;
        if (c->no_counters.reason)
            kp_session_warn_once(kp_why_text(&c->no_counters));
    }
    if (*reason)
        return false;
    if (kp_collector_save(c->collector, why)) {
        *reason = KP_REASON_RANGE_UNSAVED;
        return false;
    }
    if (kp_hostmem_rewound() && kp_collector_has_room(c->collector, 0))
        kp_journal_keeps_host();
    *reason = kp_hostmem_rewound() && !kp_journal_facts().keeps_host ? KP_REASON_HOST_REWOUND : KP_REASON_NONE;
    if (!*reason && !kp_range_result_make(c))
        *reason = KP_REASON_LOST;
    if (*reason)
        kp_collector_drop(c->collector);
    w->most = KP_MOST_ITEMS;
    return !*reason;
}

static CUresult issue_range(struct kp_window *w, struct kp_entry *e)
{
    (void)w;
    return kp_journal_issue(e, NULL);
}

/* Notes that the range was not recorded to its end; the launches up to here are counted. */
static void tell_cut(const struct kp_window *w)
{
    kp_ranges_cut(KP_REASON_RANGE_CUT);
    kp_range_result_cut(w->closed_by, ": later work cannot be repeated with it", kp_journal_facts().launches);
}

static void close_one_range(struct kp_window *w, struct kp_window_outcome *out)
{
    if (!kp_journal_facts().launches) { /* the next launch opens another */
        kp_range_result_drop();
    } else {
        set_content();
        if (w->close_reason != KP_REASON_RANGE_END)
            tell_cut(w);
    }
    kp_replay_close(w, &kp_together, out);
}

static void abandon_range(struct kp_window *w)
{
    kp_ranges_cut(KP_REASON_RANGE_CUT);
    kp_collector_leave(w->context->collector);
}

const struct kp_strategy kp_strategy_range = {
    .name = "range",
    .rewinds = true,
    .whole = true,
    .patience = SIZE_MAX,
    .admit = admit_range,
    .open = open_range,
    .issue = issue_range,
    .close = close_one_range,
    .abandon = abandon_range,
};
