/* The lines of a launch: applicable rows of a section, or metrics of the user's list. */
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
    char *made_label;               /* holds `label` if no table does; owned */
    const char *unit;               /* of the row; for drawings, if the metric has none; NULL = none */
};

struct kp_lines {
    struct kp_line *at;
    size_t n;
    void *names;      /* those that the user's list has added (tsearch): it may be long */
    const char *note; /* of the launch: stands above all lines, which do not repeat it; NULL = none */
    bool beside;      /* others, which have values, are shown above them */
};

/* One launch and the selection it was profiled for. */
struct kp_view {
    const struct kp_session *session;
    const struct kp_result *result;
    const struct kp_messages *messages; /* of the rules; NULL = none */
    const struct kp_source_map *source; /* its instructions and lines, if any; NULL = none */
};

/* Adds a line. The lines then own its made_label, even on failure. 0 or -ENOMEM. */
int kp_lines_add(struct kp_lines *l, const struct kp_line *line);
void kp_lines_free(struct kp_lines *l);
/* Sorts by the metrics' names; a header row comes before other rows of the same name. */
void kp_lines_sort(struct kp_lines *l);

/* Adds the rows first..end-1 of `s` that apply to the launch (see sections.h). Leaves out rows that have no value for
 * the reason in the launch's note, and rows whose metric the launch lacks. Of the latter, required ones
 * (kp_row_required) become lines without metric in a section that was `asked_for`. Of rows of one place, one with a
 * value wins. "breakdown:X" becomes the constituents of X. 0 or -ENOMEM. */
int kp_lines_of_rows(const struct kp_section *s, size_t first, size_t end, const struct kp_view *v, bool asked_for,
                     struct kp_lines *out);
/* Adds the constituents of the throughput `metric` on the launch's device that the launch has. 0 or -ENOMEM. */
int kp_lines_of_breakdown(const char *metric, const struct kp_view *v, struct kp_lines *out);
/* Adds the metrics of a list (as in kp_display.metrics), under their own names. An item is a metric's name; a name
 * without roll-up, for all roll-ups that the launch has; or "group:NAME". "regex:EXPR" adds the launch's metrics
 * that match; "breakdown:X" appends KP_THROUGHPUT_SUFFIX to a throughput X without suffix. A name that the launch
 * lacks is a line without metric. 0 or -ENOMEM. */
int kp_lines_of_list(const char *list, const struct kp_view *v, struct kp_lines *out);
/* Returns the constituents of a throughput, separated by commas; NULL when unknown for the device. *len receives
 * their length. */
const char *kp_breakdown_of(const char *metric, const struct kp_view *v, size_t *len);

/* Returns the base unit of the line in a drawing: the metric's, else the row's. */
const char *kp_line_unit(const struct kp_line *l);
/* Returns true if the launch has a metric of the section, or a reason for having none. */
bool kp_shown_section_has_any(const struct kp_section *s, const struct kp_result *r);
/* Returns true if the launch of session `s` has enough of the section to show it. A section that the session names
 * needs any of its metrics. Sections share metrics, so others need most of their header, or, without one, all that is
 * drawn. */
bool kp_shown_section_is_collected(const struct kp_section *section, const struct kp_session *s,
                                   const struct kp_result *r);
/* Counts the rows before the bodies of a section, of the kinds up to `last`, HEADER or EXTRA. */
size_t kp_rows_before_bodies(const struct kp_section *s, enum kp_row_kind last);
/* Returns true if the line has a value, not just a reason for having none. */
bool kp_line_has_value(const struct kp_line *l);
/* Returns the line's name in the form that print-metric-name chooses. malloc'ed; NULL without memory. */
char *kp_line_title(const struct kp_display *d, const struct kp_line *l);
/* Returns the name of a line outside its body: a value of a grid or chart has its row or link, too. */
char *kp_line_full_title(const struct kp_display *d, const struct kp_line *l);

#endif
