/* The lines of a launch: rows of a section that apply to it, or what a list of metrics stands for. */
#ifndef KP_REPORT_VIEW_LINES_H
#define KP_REPORT_VIEW_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "report/define/sections.h"
#include "report/model/model.h"

struct kp_display;
struct kp_messages;
struct kp_source_map;

struct kp_line {
    enum kp_row_kind kind;
    const char *group, *label;
    const char *name;               /* of the metric */
    const struct kp_metric *metric; /* NULL when the launch has no such metric */
    char *made_label;               /* what `label` points to where no table has it; owned */
    const char *unit;               /* of the row; for drawings, where the metric has none; NULL = none */
};

struct kp_lines {
    struct kp_line *at;
    size_t n, capacity;
    const char *note; /* of the launch: stands above all, so what it tells is not repeated; NULL = none */
};

/* One launch and what it was profiled for. */
struct kp_view {
    const struct kp_session *session;
    const struct kp_result *result;
    const struct kp_messages *messages; /* of the rules; NULL = none */
    const struct kp_source_map *source; /* its instructions and lines, if any; NULL = none */
};

/* Adds a line, whose made_label is then owned by the lines, or freed. 0 or -ENOMEM. */
int kp_lines_add(struct kp_lines *l, const struct kp_line *line);
void kp_lines_free(struct kp_lines *l);
/* Ascending by the metrics' names; those of header rows come before the same of others. */
void kp_lines_sort(struct kp_lines *l);

/* The rows first..end-1 of `s`, as sections.h says which of them apply. A metric that the launch lacks is left out; of
 * rows that are always shown (kp_row_required) only where the section was `asked_for`. "breakdown:X" becomes the
 * constituents of X. 0 or -ENOMEM. */
int kp_lines_of_rows(const struct kp_section *s, size_t first, size_t end, const struct kp_view *v, bool asked_for,
                     struct kp_lines *out);
/* The constituents of the throughput `metric` on the device of the launch, those that the launch has. 0 or -ENOMEM. */
int kp_lines_of_breakdown(const char *metric, const struct kp_view *v, struct kp_lines *out);
/* What a list of metrics (as in kp_display.metrics) stands for, under the metrics' names: a name of a metric, or what
 * comes before its roll-up, which stands for all that the launch has of it; "regex:EXPR", what of the launch matches;
 * "breakdown:X", where a throughput X without suffix has KP_THROUGHPUT_SUFFIX; "group:NAME". A name that the launch
 * lacks is a line without metric. 0 or -ENOMEM. */
int kp_lines_of_list(const char *list, const struct kp_view *v, struct kp_lines *out);
/* Those constituents, separated by commas; NULL when the device's are not known. *len receives their length. */
const char *kp_breakdown_of(const char *metric, const struct kp_view *v, size_t *len);

/* The base unit of the line in a drawing: the metric's, or where that has none the row's. */
const char *kp_line_unit(const struct kp_line *l);
/* Whether the launch has a metric of the section, or a reason for having none. */
bool kp_section_has_any(const struct kp_section *s, const struct kp_result *r);
/* What stands before the bodies of a section: rows of the kinds up to `last`, HEADER or EXTRA. */
size_t kp_rows_before_bodies(const struct kp_section *s, enum kp_row_kind last);
/* Whether the line has a value, not just a reason for having none. */
bool kp_line_has_value(const struct kp_line *l);
/* What the line is called, as print-metric-name says. malloc'ed; NULL without memory. */
char *kp_line_title(const struct kp_display *d, const struct kp_line *l);
/* The same where it stands without its body: a value of a grid or chart with its row or link, too. */
char *kp_line_full_title(const struct kp_display *d, const struct kp_line *l);

#endif
