/*
 * What a timeline says in numbers: for each device the time in which kernels ran and the gaps between them, for each
 * stream what ran there, and each kernel's time. Times when kprof held the program up do not count.
 *
 * Errors: int results are 0 or -ENOMEM. Threads: any, each with objects of its own.
 */
#ifndef KP_REPORT_VIEW_GAPS_H
#define KP_REPORT_VIEW_GAPS_H

#include "report/model/timeline.h"

enum { KP_GAPS_MOST = 10 };

/* A time between two kernels when no kernel ran on a device. */
struct kp_gap {
    int64_t start_ns, end_ns;
    int64_t ns;                       /* without kprof's own work */
    int64_t copying_ns;               /* of it, in which copies or memsets ran */
    const struct kp_activity *before; /* the kernel that ended last */
    const struct kp_activity *next;   /* the one that ran next */
    const struct kp_activity *range;  /* innermost NVTX range in which that was launched; NULL: none, or not known */
};

struct kp_device_line {
    int device;
    int64_t first_ns, last_ns; /* of all activities of the device */
    int64_t held_ns;           /* between them, without a kernel, while kprof held the program up */
    int64_t span_ns;           /* without that */
    int64_t busy_ns;           /* in which kernels ran */
    size_t kernels;
    size_t n_gaps;                    /* in total; longer than 0 */
    struct kp_gap gaps[KP_GAPS_MOST]; /* the longest first; as many as there are */
};

struct kp_stream_line {
    int device;
    uint32_t context_id, stream_id;
    size_t kernels, copies, sets;
    int64_t busy_ns; /* in which something ran there */
    int64_t kernel_ns;
    uint64_t bytes; /* copied */
    int64_t end_ns; /* of the last activity */
};

struct kp_kernel_line {
    uint32_t name;
    size_t n;
    int64_t total_ns, least_ns, most_ns;
};

struct kp_gaps {
    struct kp_device_line *devices; /* by number */
    size_t n_devices;
    struct kp_stream_line *streams; /* by device, context and stream */
    size_t n_streams;
    struct kp_kernel_line *kernels; /* by time, the most first */
    size_t n_kernels;
};

/* Computes them of a sorted timeline, which must outlive *out. Free *out whatever is returned. */
int kp_gaps_of(const struct kp_timeline *t, struct kp_gaps *out);
void kp_gaps_free(struct kp_gaps *g);

/* Returns the innermost range of the thread at that time; NULL: there is none. */
const struct kp_activity *kp_gaps_range_at(const struct kp_timeline *t, uint64_t thread, int64_t ns);

#endif
