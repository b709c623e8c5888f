/*
 * The rows of a drawn timeline: one for each stream, for each thread with NVTX ranges, and for kprof's own work. If its
 * activities overlap, it has several rows. There are 2,048 at most; the last one gets the rest.
 *
 * Errors: int results are 0 or -ENOMEM. Threads: any, each with objects of its own.
 */
#ifndef KP_REPORT_VIEW_TIMELINE_ROWS_H
#define KP_REPORT_VIEW_TIMELINE_ROWS_H

#include "report/model/timeline.h"

struct kp_timeline_row {
    enum kp_activity_kind kind; /* KERNEL: a stream, with its copies and memsets; RANGE: a thread; KPROF */
    int device;
    uint32_t context_id, stream_id;
    uint64_t thread;
    uint32_t lane; /* from 0, of what overlaps */
};

struct kp_timeline_rows {
    struct kp_timeline_row *at; /* in the order of their first activity */
    size_t n;
    uint32_t *of; /* of each activity the number of its row */
};

/* Finds the rows of a sorted timeline. `nested`: ranges that lie within each other share a row; others never do. Free
 * *out whatever is returned. */
int kp_timeline_rows_of(const struct kp_timeline *t, bool nested, struct kp_timeline_rows *out);
void kp_timeline_rows_free(struct kp_timeline_rows *r);

#endif
