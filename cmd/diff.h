/*
 * Compares two sessions, here A with B. Launches are paired by name, grid and order, or kernels by name. Each pair gets
 * the rows of the shown sections, with both values and the change, and the rules that appeared or disappeared.
 *
 * Threads: one at a time for each store.
 */
#ifndef KP_CMD_DIFF_H
#define KP_CMD_DIFF_H

#include "base/json.h"
#include "base/sink.h"
#include "report/store/store.h"
#include "report/view/display.h"

/* The metric of the totals, and of a limit that names none. */
#define KP_DIFF_DURATION "gpu__time_duration.sum"

enum kp_diff_by {
    KP_DIFF_BY_LAUNCH,
    /* The averages over all launches of a kernel; texts that differ between launches are left out. A rule counts if
     * it spoke for at least half of the launches, with the average of its estimates. */
    KP_DIFF_BY_KERNEL,
};

/* How much a metric may grow from A to B. */
struct kp_diff_limit {
    const char *metric; /* full name; not owned */
    double percent;     /* of A's value */
};

struct kp_diff_options {
    enum kp_diff_by by;
    bool all;             /* prints unchanged rows, too */
    bool first, last;     /* of several comparisons: CSV begins with headings, and JSON is one list */
    struct kp_json *json; /* of all of them, zero-initialised before the first */
    double threshold;     /* a row changed if it differs by more percent of A's value */
    const struct kp_diff_limit *limits;
    size_t n_limits;
};

/* One of the two sessions. */
struct kp_diff_input {
    const char *name; /* the file's, for the reader */
    char letter;      /* which stands for the session in the text */
    struct kp_store *store;
};

/* Why a session has no launch to compare. */
enum kp_diff_empty {
    KP_DIFF_NOT_EMPTY,
    KP_DIFF_NO_LAUNCH,
    KP_DIFF_TIMELINE_ALONE, /* nothing was to be counted */
};

struct kp_diff_outcome {
    size_t pairs, exceeded;   /* of limits, one for every pair */
    bool brief;               /* kernels were listed instead of pairs */
    size_t unchecked;         /* limits without a comparable pair */
    bool without_counters[2]; /* the session has launches, but no counters for any */
    enum kp_diff_empty empty[2];
    char *over;          /* malloc'ed: of CSV and JSON, a line for each limit that was exceeded; NULL: none */
    char *warnings;      /* malloc'ed: a line for each limit with pairs that lack numbers; NULL: none */
    char *missing;       /* malloc'ed: a line for each chosen section that a session lacks; NULL: none */
    bool nothing_chosen; /* nothing that was chosen is in both: only limits were compared, if there are any */
};

/* Reads both sessions and writes the comparison. CSV and JSON have a row for each value of each pair, in base units.
 * Text lists the kernels that became slower or faster if there are more pairs than d->brief_above (0: any number) and
 * not all rows are asked for; else each pair. Compares rows that both launches have, in the sections and metrics that
 * both sessions asked for, or that `d` chooses. Returns 0; -EINVAL with *err (malloc'ed line) when no launch has a
 * limit's metric (other than the duration) or one that `d` lists. Also returns errors of `out`, and of a store with
 * *err. */
int kp_diff(const struct kp_sink *out, const struct kp_display *d, const struct kp_diff_options *o,
            const struct kp_diff_input input[2], struct kp_diff_outcome *outcome, char **err);

#endif
