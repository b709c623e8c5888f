/* Which parts of a session are shown, and how. */
#ifndef KP_REPORT_VIEW_DISPLAY_H
#define KP_REPORT_VIEW_DISPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/model/lookup.h"
#include "report/options/pages.h"

struct kp_chooser;
struct kp_code_cache;
/* What ncu prints in place of launches. */
#define KP_NONE_PROFILED "==WARNING== No kernels were profiled.\n"

enum kp_format { KP_FORMAT_TEXT, KP_FORMAT_CSV, KP_FORMAT_JSON };
/* How much is printed, and how. */
struct kp_display {
    enum kp_face face; /* ncu: blocks that ncu does not print are left out */
    enum kp_details details;
    enum kp_naming naming;
    bool base_units;
    bool decimals;                /* all numbers have some */
    enum kp_printed_base name_as; /* how kernels are named */
    enum kp_instances instances;
    uint64_t rules; /* kp_rule_choice: the rules that give advice */
    /* The selection shown in place of the session's own, if `choose` is set: for kp_sections_select, and a comma list;
     * NULL is "". Not owned. */
    bool choose;
    const char *set, *sections, *metrics;
    struct kp_chooser *chooser; /* of the stored launches that a page shows (chooser.h); NULL = all. Not owned */
    enum kp_page_id pages[KP_PAGES_MAX]; /* in this order */
    size_t n_pages;                      /* 0: only the details page */
    enum kp_format format;
    enum kp_grouping grouping;      /* for the pages details and raw: how launches are grouped */
    const struct kp_lookup *lookup; /* finds the call stacks of launches; NULL: stacks are not shown. Not owned */
    const char *trace_columns;      /* metrics, a comma list; NULL or "": the page's own. Not owned */
    bool range_names;               /* kernels are named after their NVTX range, too */
    bool source_lines, source_sass, source_ptx; /* contents of the page source */
    const char *source_folders;  /* searched for source files that have moved, a comma list; NULL is "". Not owned */
    struct kp_code_cache *codes; /* of the session; set while its pages are printed, NULL without code */
    enum kp_sort sort;           /* of kernels in summaries */
    size_t top, top_ranges;      /* kernels and NVTX ranges that a summary lists; 0 = all */
    size_t screen;               /* lines of the page summary, which lists fewer of them then; 0 = any number */
    uint64_t brief_above;        /* more launches than this are shown in brief on the page details; 0 = never */
    size_t brief_lines;          /* of text: so are launches that need more lines than this; 0 = any number */
    size_t brief_most;           /* and then at most this many of them in full; 0 = one of each kernel and shape */
    size_t width;         /* of a line of text; 0 = no terminal: laid out for KP_LINE_WIDTH, and not broken (out.h) */
    bool colors;          /* of text */
    bool *lost_instances; /* set if CSV has a metric without its instances; NULL: nobody asks. Not owned */
    bool from_records;    /* a session without launches has those of its timeline, for their times */
    const char *file;     /* the session file for a command line, if it stays; NULL: there is none. Not owned */
};

/* Makes a display of the print-* and page options, which must have been checked. Only trace_columns and
 * source_folders of `o` must outlive the display. */
struct kp_display kp_display_of(const struct kp_options *o);
/* Returns true if the display has a page. */
bool kp_display_shows(const struct kp_display *d, enum kp_page_id page);
/* Sets the width and the colours of text that goes to the descriptor `fd`; -1 is none. */
void kp_display_fit(struct kp_display *d, const struct kp_options *o, int fd);

#endif
