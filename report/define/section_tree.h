/*
 * Makes a section of one section file, given as a tree of fields.
 * Facts: Nsight Compute's customization guide, and the fields that its section files use.
 */
#ifndef KP_REPORT_DEFINE_SECTION_TREE_H
#define KP_REPORT_DEFINE_SECTION_TREE_H

#include "base/arena.h"
#include "base/prototext.h"
#include "report/define/derive.h"
#include "report/define/sections.h"

/* A part of a file that is not used. */
struct kp_section_note {
    const char *text; /* "'Ordr' at x.section:4:1" */
    const char *what; /* the field or the metric in it */
    const struct kp_section_note *next;
};

/* State shared by the files of a folder. */
struct kp_section_reader {
    struct kp_arena arena;               /* holds the notes and all text of sections and definitions */
    const char *file;                    /* of the tree being read, for messages */
    const struct kp_section_note *notes; /* each `what` once, the last one first; incomplete if there are many */
    size_t n_notes;                      /* their number */
};

/* The definitions of one file; the reader's arena owns all of them. */
struct kp_section_file {
    struct kp_section section;
    struct kp_row *rows; /* of the section; source is KP_SRC_COUNTER everywhere */
    struct kp_derived *definitions;
    size_t n_definitions;
};

/* Reads `root`. Bodies that cannot be drawn become tables. Bodies without metrics of their own (memory tables and
 * chart, NVLink, NUMA) get the rows of the built-in body of the same title. Returns 0; -EINVAL with *err (malloc'ed,
 * "FILE:LINE:COLUMN: what; what is near"); -ENOMEM. */
int kp_section_tree_read(struct kp_section_reader *r, const struct kp_field *root, struct kp_section_file *out,
                         char **err);

#endif
