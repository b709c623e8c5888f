/*
 * The section table: the metrics that each section shows, with their place, label and chips. Data only; see
 * sections.def.
 * Facts: section files of Nsight Compute 2025.3 (identifiers, labels, metric names).
 */
#ifndef KP_REPORT_DEFINE_SECTIONS_H
#define KP_REPORT_DEFINE_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum kp_source {
    KP_SRC_COUNTER,   /* hardware counter: range profiler */
    KP_SRC_LAUNCH,    /* launch parameter or function, context, device attribute, topology of the machine */
    KP_SRC_OCCUPANCY, /* occupancy calculation */
    KP_SRC_DERIVED,   /* computed from other metrics: derive.h */
    KP_SRC_PCSAMP,    /* PC sampling: stall reasons by instruction; derive_source.h */
    KP_SRC_SASS,      /* counted at each instruction of the code, or computed from that; derive_source.h */
    KP_SRC_PM,        /* PM sampling: rows of a SERIES body are sampled, others describe the sampling */
};

/* Kinds of rows. A section's rows are one flat list: header rows, extra rows, then its bodies. A body is a BODY row
 * followed by the rows that it shows. */
enum kp_row_kind {
    KP_ROW_HEADER, /* line of the table that is always printed */
    KP_ROW_EXTRA,  /* line that joins this table when bodies are printed */
    KP_ROW_BODY,   /* opens a body: label = title, group = heading above its values ("" = none), see `body` */
    KP_ROW_ITEM,   /* a value of the body; in a grid, group = row and label = column */
    /* Rows of a roofline; group names the roof or the point. Work per second is the sum of the WORK rows, times the
     * WORK_CLOCK row if those are per cycle. The same for traffic per second. */
    KP_ROW_WORK,
    KP_ROW_WORK_CLOCK,
    KP_ROW_TRAFFIC,
    KP_ROW_TRAFFIC_CLOCK,
};

/* How a body is drawn. */
enum kp_body {
    KP_BODY_NONE, /* of rows that open no body */
    KP_BODY_BARS, /* bar chart, longest bar first; an item "breakdown:X" stands for the constituents of throughput X */
    KP_BODY_BARS_AS,  /* bar chart in the order of its rows */
    KP_BODY_TABLE,    /* label, unit, value, in the order of the rows */
    KP_BODY_GRID,     /* rows and columns in order of first appearance */
    KP_BODY_ROOFLINE, /* roofs and points: see KP_ROW_WORK and KP_POINT_MARK */
    KP_BODY_CURVE,    /* values over the keys of each item's instances */
    KP_BODY_CHART,    /* the memory chart; an item's group is the link or box that it belongs to */
    KP_BODY_SERIES,   /* a timeline a row, of the kp_series of its metric; its group is a note below them */
};

/* Starts a roofline group that is a measured point; any other group is a roof. The mark is not printed. */
#define KP_POINT_MARK "@"

/* The suffix of a throughput named without one. */
#define KP_THROUGHPUT_SUFFIX ".avg.pct_of_peak_sustained_elapsed"

/* Stands for the unit that CUPTI gives the metric on the chip. */
#define KP_UNIT_OF_CHIP "*"

/* Precedes a unit that the metric lacks; only a drawing shows it. */
#define KP_UNIT_DRAWN "~"

/* One row. Fields that a kind does not use are "". */
struct kp_row {
    const char *label;
    const char *metric; /* full name with suffix */
    const char *unit;   /* base unit, KP_UNIT_OF_CHIP, or one after KP_UNIT_DRAWN */
    const char *cc;     /* compute capabilities that have it: "" all, else "75-86,89-100,103,120" ("90-" open end) */
    enum kp_source source;
    enum kp_row_kind kind;
    enum kp_body body; /* of KP_ROW_BODY */
    const char *group;
};

/* How a section's counters are collected when no other section is asked for. */
enum kp_passes {
    KP_PASSES_ANY, /* as many passes as the counters need: launches are replayed */
    KP_PASSES_ONE, /* one pass; counters that do not fit are left out: nothing is replayed, saved or restored */
};

struct kp_section {
    const char *id;            /* "SpeedOfLight" */
    const char *display;       /* "GPU Speed Of Light Throughput" */
    int order;                 /* ascending in the report */
    const char *sets;          /* comma list: "basic,detailed,full,roofline" */
    const char *cc;            /* compute capabilities that have the section; see kp_row */
    const struct kp_row *rows; /* KP_PASSES_ONE: by priority */
    size_t n_rows;
    enum kp_passes passes;
};

/* Returns all sections by ascending order, section files included; *n receives their number. The data lasts as long
 * as the process; kp_sections_add makes a new array. */
const struct kp_section *kp_sections(size_t *n);
/* Returns only the sections of the table. */
const struct kp_section *kp_sections_builtin(size_t *n);
/* Adds `n` sections. A section replaces one of the same identifier; others are placed by their order, after those of
 * the same order. New names of sets make new sets. Data that the sections point to must last as long as the process.
 * Call this while the options are read, before other threads look. Returns 0, or -ENOMEM with everything as it was. */
int kp_sections_add(const struct kp_section *added, size_t n);
/* Finds a section by its exact, case-sensitive identifier; NULL when unknown. */
const struct kp_section *kp_section_find(const char *id);
/* Returns the names of all sets, a NULL-terminated array that lasts as long as the process. */
const char *const *kp_set_names(void);
/* Returns the set name equal to `name`, NULL when there is none. */
const char *kp_set_find(const char *name);
bool kp_section_in_set(const struct kp_section *s, const char *set);
/* Returns true if a selection (see kp_sections_select) with the user's `metrics` ("" = none) is collected in one pass.
 * This holds when it has KP_PASSES_ONE sections only, at least one, and lists no metric. Beside other sections, such a
 * section is collected like them. */
bool kp_sections_one_pass(const struct kp_section *const *selected, size_t n, const char *metrics);
/* Returns the KP_PASSES_ONE section for launches that must not be replayed, whatever else is asked for. Lasts as long
 * as kp_sections. */
const struct kp_section *kp_section_quick(void);
/* Returns true if a chip without the row's metric shows the row as missing: true for the table that is always printed.
 * All other rows disappear on such a chip. */
bool kp_row_required(const struct kp_row *row);
/* Returns the unit in which the row's metric is collected. */
const char *kp_row_unit(const struct kp_row *row);
/* Returns the end of the body that begins at `from`: the next body row, or the section's end. */
size_t kp_section_body_end(const struct kp_section *s, size_t from);
/* Returns true if a cc condition (see kp_row.cc) holds for compute capability major.minor. */
bool kp_cc_matches(const char *cc, int major, int minor);

/* Resolves a selection to sections: `set` plus the comma list `section_list` ("" = none for both). An item may be
 * "regex:EXPR", which must match an identifier in full. *out is a malloc'ed array of n pointers by ascending order, to
 * free(). Returns 0; -EINVAL with *err a malloc'ed line that names the nearest valid choice; -ENOMEM. */
int kp_sections_select(const char *set, const char *section_list, const struct kp_section ***out, size_t *n,
                       char **err);

#endif
