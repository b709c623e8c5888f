/*
 * The timeline of a run: what the program's own execution did on devices, and when, with the NVTX ranges of its
 * threads. All times are ns on one clock, that of CUPTI's time stamps.
 *
 * Errors: int results are 0 or -ENOMEM. Threads: the caller serialises calls for one object.
 */
#ifndef KP_REPORT_MODEL_TIMELINE_H
#define KP_REPORT_MODEL_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values stand in session files. */
enum kp_activity_kind {
    KP_ACTIVITY_KERNEL = 0,
    KP_ACTIVITY_COPY = 1,
    KP_ACTIVITY_SET = 2,
    KP_ACTIVITY_RANGE = 3, /* an NVTX range of a thread */
    KP_ACTIVITY_KPROF = 4, /* kprof held the program up: it planned, saved memory or repeated launches */
    KP_ACTIVITY_KINDS
};

enum { KP_NO_DEVICE = -1 };

/* What took place from one time to another. */
struct kp_activity {
    enum kp_activity_kind kind;
    uint32_t name; /* of the names of the timeline */
    int device;    /* CUDA ordinal; KP_NO_DEVICE of ranges and of kprof's own work */
    uint32_t context_id, stream_id;
    int64_t start_ns, end_ns;
    uint64_t correlation; /* CUPTI's number of the call; kernels of one graph launch share it */
    int64_t ordinal;      /* of the launch, the same as in kp_launch_info; -1: unknown, or not profiled */
    uint64_t thread;      /* operating system's id of the thread that launched, or opened the range; 0 = not known */
    int64_t launched_ns;  /* when the program made the call; 0 = not known */
    uint32_t grid[3], block[3];
    uint64_t bytes;
    uint32_t graph; /* CUPTI's number of the executable graph; 0 = none */
};

/* A timeline in memory; owns its parts. `at` is sorted: see kp_timeline_sort. */
struct kp_timeline {
    struct kp_activity *at;
    size_t n, cap;
    char **names;
    size_t n_names;
};

/* Returns the name of an activity; "" if the timeline has none. Owned by `t`. */
const char *kp_timeline_name(const struct kp_timeline *t, const struct kp_activity *a);
/* Returns the word for a kind in JSON: "kernel". Static text. */
const char *kp_timeline_activity_word(enum kp_activity_kind kind);
/* Appends a copy. */
int kp_timeline_add(struct kp_timeline *t, const struct kp_activity *a);
/* Sets the name of that number. Numbers need not come in order; gaps read as "". -EINVAL: a number that is absurd. */
int kp_timeline_set_name(struct kp_timeline *t, uint32_t number, const char *name);
/* Sorts by start, and of equal starts the longest first. */
int kp_timeline_sort(struct kp_timeline *t);
void kp_timeline_free(struct kp_timeline *t);

/* ---- which launch a record of a kernel belongs to ---- */

/* A call of the program that launched something, noted as it was made. */
struct kp_launch_note {
    int64_t launched_ns, ordinal; /* as in kp_activity */
    uint64_t thread;
    uint32_t shape; /* kp_timeline_shape */
    bool is_graph;  /* a launch of a graph: nodes with a launch of the report follow */
    bool is_node;   /* a node of the graph before it */
    bool refused;   /* the driver did not accept it: there is no record */
};

/* A record of a kernel. */
struct kp_kernel_record {
    int64_t row; /* the caller's */
    uint64_t correlation;
    int64_t start_ns;
    uint32_t shape;
    bool is_graph;                    /* a node of a graph */
    const struct kp_launch_note *own; /* out: the launch; NULL = not found */
    int64_t ordinal;                  /* out */
};

/* Returns a number for a grid and a block. */
uint32_t kp_timeline_shape(const uint32_t grid[3], const uint32_t block[3]);
/* Finds the launch of each record. CUPTI numbers calls in their order, so the order of both lists is the same. If
 * shapes differ, a few records or notes are skipped. Sorts `records` by call. */
void kp_timeline_link(struct kp_kernel_record *records, size_t n, const struct kp_launch_note *notes, size_t n_notes);

#endif
