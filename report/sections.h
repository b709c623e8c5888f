/*
 * The section table: which metrics a section shows, under which label, on which chips. Data only; see sections.def.
 * Facts: section files of Nsight Compute 2025.3 (identifiers, labels, metric names).
 */
#ifndef KP_REPORT_SECTIONS_H
#define KP_REPORT_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum kp_source {
    KP_SRC_COUNTER,   /* hardware counter: range profiler */
    KP_SRC_LAUNCH,    /* launch parameter or function, context, device attribute */
    KP_SRC_OCCUPANCY, /* occupancy calculation */
};

/* How the counters of a section are collected when it is all that is asked for. */
enum kp_passes {
    KP_PASSES_ANY, /* in as many passes as they take: launches are replayed */
    KP_PASSES_ONE, /* in one pass, what does not fit is left out: nothing is replayed, saved or restored */
};

/* One header row. */
struct kp_row {
    const char *label;
    const char *metric;
    const char *unit; /* base unit */
    const char *cc;   /* compute capabilities that have it: "" all, else "75-86,89-100,103,120" ("90-" open end) */
    enum kp_source source;
};

struct kp_section {
    const char *id;            /* "SpeedOfLight" */
    const char *display;       /* "GPU Speed Of Light Throughput" */
    int order;                 /* ascending in the report */
    const char *sets;          /* comma list: "basic,detailed,full,roofline" */
    const struct kp_row *rows; /* KP_PASSES_ONE: by priority */
    size_t n_rows;
    enum kp_passes passes;
};

/* All sections by ascending order; *n receives their number. Static data. */
const struct kp_section *kp_sections(size_t *n);
/* Exact, case-sensitive identifier; NULL when unknown. */
const struct kp_section *kp_section_find(const char *id);
/* Names of all sets; NULL-terminated static array. */
const char *const *kp_set_names(void);
bool kp_section_in_set(const struct kp_section *s, const char *set);
/* Whether a selection (see kp_sections_select) with the user's `metrics` ("" = none) is collected in one pass: it is
 * made of KP_PASSES_ONE sections only, at least one, and no metric is listed. Beside others such a section is collected
 * like them. */
bool kp_sections_one_pass(const struct kp_section *const *selected, size_t n, const char *metrics);
/* The KP_PASSES_ONE section of launches that must not be replayed, whatever else is asked for. Static data. */
const struct kp_section *kp_section_quick(void);
/* Whether a cc condition (see kp_row.cc) holds for compute capability major.minor. */
bool kp_cc_matches(const char *cc, int major, int minor);

/* Resolves a wanted selection to sections: `set` ("" = none) plus the comma list `section_list` ("" = none; an item
 * may be "regex:EXPR", which must match an identifier in full). *out is a malloc'ed array of n pointers by ascending
 * order, to free(). Returns 0; -EINVAL with *err a malloc'ed one-line message that names the nearest valid choice;
 * -ENOMEM. */
int kp_sections_select(const char *set, const char *section_list, const struct kp_section ***out, size_t *n,
                       char **err);

#endif
