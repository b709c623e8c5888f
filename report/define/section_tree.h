/*
 * One section file, as a tree of fields, made into a section.
 * Facts: Nsight Compute's customization guide, and which fields its section files use.
 */
#ifndef KP_REPORT_DEFINE_SECTION_TREE_H
#define KP_REPORT_DEFINE_SECTION_TREE_H

#include "base/arena.h"
#include "base/prototext.h"
#include "report/define/derive.h"
#include "report/define/sections.h"

/* Something of a file that is not used. */
struct kp_section_note {
    const char *text; /* "'Ordr' at x.section:4:1" */
    const char *what; /* the field or the metric in it */
    const struct kp_section_note *next;
};

/* What is common to the files of a folder. */
struct kp_section_reader {
    struct kp_arena arena;               /* what the sections and definitions hold, and the notes */
    const char *file;                    /* of the tree being read, for messages */
    const struct kp_section_note *notes; /* each `what` once, the last one first; not all where there are many */
    size_t n_notes;                      /* their number */
};

/* What a file defines; all of it in the reader's arena. */
struct kp_section_file {
    struct kp_section section;
    struct kp_row *rows; /* those of the section; source is KP_SRC_COUNTER everywhere */
    struct kp_derived *definitions;
    size_t n_definitions;
};

/* Reads `root`. Bodies that cannot be drawn become tables; those without metrics of their own (memory tables and chart,
 * NVLink, NUMA) take the rows of the built-in body of the same title. Returns 0; -EINVAL with *err (malloc'ed,
 * "FILE:LINE:COLUMN: what; what is near"); -ENOMEM. */
int kp_section_tree_read(struct kp_section_reader *r, const struct kp_field *root, struct kp_section_file *out,
                         char **err);

#endif
