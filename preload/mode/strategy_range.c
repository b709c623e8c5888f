/*
 * A range: all that the program launches and copies between its begin and its end is one workload with one result. Its
 * operations are recorded as those of a window that is replayed, and repeated together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "preload/program/hostmem.h"
#include "preload/contexts/ranges.h"
#include "preload/session/session.h"
#include "preload/journal/issue.h"
#include "preload/mode/range_window.h"
#include "preload/results/range_result.h"
#include "preload/journal/record.h"
#include "preload/mode/strategy.h"
#include "preload/journal/concurrent_repeat.h"

const char kp_range_over[] = "the end of the range";

static bool suits(const struct kp_question *q)
{
    return q->setup->ranges && !q->setup->run;
}

/* What would get a window of its own cannot be part of one. */
static const char *admit(const struct kp_question *q)
{
    return q->fit.alone;
}

/* ---- the result ---- */

/* What a range holds. */
struct content {
    size_t launches, graphs, copies, streams;
};

static CUstream stream_of(const struct kp_item *i)
{
    CUstream stream = i->is_launch ? kp_launch_stream(&i->launch) : i->op.stream;
    return stream == CU_STREAM_LEGACY ? NULL : stream;
}

static bool is_work(const struct kp_item *i)
{
    return i->is_launch || (i->op.real && !i->op.event && !i->sets && !i->backup);
}

/* Whether no earlier work is in the stream of item `k`. */
static bool is_first_of_stream(const struct kp_window *w, size_t k)
{
    size_t at = 0;
    while (at < k && (!is_work(&w->items[at]) || stream_of(&w->items[at]) != stream_of(&w->items[k])))
        at++;
    return at == k;
}

static struct content content_of(const struct kp_window *w)
{
    struct content c = {.launches = w->launches};
    for (size_t k = 0; k < w->n; k++) {
        const struct kp_item *i = &w->items[k];
        if (!is_work(i))
            continue;
        c.graphs += i->is_launch && i->launch.is_graph;
        c.copies += !i->is_launch;
        c.streams += is_first_of_stream(w, k);
    }
    return c;
}

/* Names the range with what it holds. */
static char *describe(const char *name, const struct content *c)
{
    char copies[64] = "", *text = NULL;
    if (c->copies)
        snprintf(copies, sizeof(copies), ", %zu cop%s and memset%s", c->copies, c->copies == 1 ? "y" : "ies",
                 c->copies == 1 ? "" : "s");
    return asprintf(&text, "%s: range of %zu launch%s%s in %zu stream%s", name && *name ? name : "(no name)",
                    c->launches, c->launches == 1 ? "" : "es", copies, c->streams, c->streams == 1 ? "" : "s") < 0
               ? NULL
               : text;
}

static void set_content(struct kp_window *w)
{
    struct kp_result *r = w->items[0].result;
    struct content c = content_of(w);
    r->launch.launches = c.launches;
    r->launch.demangled = describe(r->launch.mangled, &c);
    r->lossy |= !r->launch.demangled || kp_result_set_count(r, "range__launches", "", c.launches) ||
                kp_result_set_count(r, "range__graphs", "", c.graphs) ||
                kp_result_set_count(r, "range__copies", "", c.copies) ||
                kp_result_set_count(r, "range__streams", "", c.streams);
}

/* ---- the window ---- */

static bool open_window(struct kp_window *w, const struct kp_question *q, char **why, const char **refusal)
{
    struct kp_context *c = w->context;
    *refusal = q->fit.obstacle;
    if (!*refusal && !kp_admit_counters(q)) {
        *refusal = KP_SKIP_NO_COUNTERS;
        if (c->no_counters)
            kp_session_warn_once(c->no_counters);
    }
    if (*refusal)
        return false;
    if (kp_collector_save(c->collector, why)) {
        *refusal = "memory of a range could not be saved, not replayed";
        return false;
    }
    w->keeps_host = kp_hostmem_rewound() && kp_collector_has_room(c->collector, 0);
    *refusal = kp_hostmem_rewound() && !w->keeps_host ? kp_host_rewound : NULL;
    if (!*refusal && !kp_range_result_make(w))
        *refusal = kp_lost;
    if (*refusal)
        kp_collector_drop(c->collector);
    w->most = KP_MOST_ITEMS;
    return !*refusal;
}

static CUresult issue(struct kp_window *w, struct kp_item *i)
{
    return kp_issue_launch(w, i, NULL);
}

/* Notes that the range was not recorded to its end; its launches so far are counted. */
static void tell_cut(struct kp_window *w)
{
    kp_ranges_cut(KP_SKIP_RANGE_CUT);
    kp_range_result_cut(w, ": what follows cannot be repeated with it", w->launches);
}

static void close_window(struct kp_window *w, struct kp_window_outcome *out)
{
    if (!w->launches) { /* the next launch opens another */
        kp_range_result_drop(w);
    } else {
        set_content(w);
        if (w->closer != kp_range_over)
            tell_cut(w);
    }
    kp_replay_close(w, &kp_together, out);
}

static void abandon(struct kp_window *w)
{
    kp_ranges_cut(KP_SKIP_RANGE_CUT);
    kp_collector_leave(w->context->collector);
}

const struct kp_strategy kp_strategy_range = {
    .name = "range",
    .rewinds = true,
    .whole = true,
    .patience = SIZE_MAX,
    .suits = suits,
    .admit = admit,
    .open = open_window,
    .issue = issue,
    .close = close_window,
    .abandon = abandon,
};
