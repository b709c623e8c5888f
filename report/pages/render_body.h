/*
 * What the files that draw the details page share: where text goes, the lines of a section that a launch has, and one
 * function for each kind of body. Everything is drawn in ASCII, LINE_WIDTH wide, as reports go to files.
 *
 * Errors: the first one, of the sink or of memory, stays in kp_out.rc; from then on nothing is written.
 */
#ifndef KP_REPORT_PAGES_RENDER_BODY_H
#define KP_REPORT_PAGES_RENDER_BODY_H

#include <errno.h>

#include "report/define/groups.h"
#include "report/pages/render.h"
#include "report/judge/rules.h"
#include "report/define/sections.h"
#include "report/define/source.h"
#include "report/define/units.h"

enum {
    /* Only what is not to be broken is wider: a metric's name, a number of 300 digits, a frame of a call stack. */
    KP_LINE_WIDTH = 120,
    KP_INDENT = 4,
    KP_DRAWING_WIDTH = KP_LINE_WIDTH - KP_INDENT,
};

struct kp_out {
    const struct kp_sink *sink;
    const struct kp_display *display;
    int rc;
};

void kp_out_text(struct kp_out *o, const char *text, size_t len);
/* The same with blanks for the ends of lines and tabs, too. */
void kp_out_one_line(struct kp_out *o, const char *text, size_t len);
void kp_out_print(struct kp_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `prefix` and `text`, further lines indented to stand below the text. */
void kp_out_wrapped(struct kp_out *o, const char *prefix, const char *text);
/* `n` times `c`. */
void kp_out_repeat(struct kp_out *o, char c, size_t n);
/* Whether `p` is there; if not, memory was short, which is noted. */
static inline bool kp_out_has(struct kp_out *o, const void *p)
{
    if (!p && !o->rc)
        o->rc = -ENOMEM;
    return p != NULL;
}

/* What NVTX tells of a launch, a line or more for each thread's stack; nothing where that is nothing. */
void kp_render_nvtx(struct kp_out *o, const struct kp_nvtx *n);

/* The call stack of that id, below a launch's header; nothing where there is none. */
void kp_render_stack(struct kp_out *o, uint64_t id);

/* Launches put together by their call stack. Starts as all 0. */
struct kp_stack_totals {
    struct kp_stack_total {
        uint64_t stack, launches;
        double ns;
        char *text; /* of its frames, while they are put together */
    } * at;
    size_t n;
};
/* 0 or -ENOMEM. */
int kp_stack_totals_add(struct kp_stack_totals *t, const struct kp_result *r);
/* The table of them, the longest total duration first; nothing where there is none. */
void kp_stack_totals_render(struct kp_out *o, struct kp_stack_totals *t);
void kp_stack_totals_free(struct kp_stack_totals *t);

/* --- lines: rows of a section that apply to a launch --- */

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

/* --- what is shown of a launch --- */

struct kp_wanted {
    const struct kp_section **sections; /* to free() */
    size_t n;
    const char *metrics; /* comma list; not owned */
};

/* `set` and `sections` as kp_sections_select() takes them. They were checked when the session began, or when they were
 * given; what came from a folder of section files that is not at hand any more is left out. 0 or -ENOMEM. */
int kp_find_wanted(const char *set, const char *sections, const char *metrics, struct kp_wanted *w);
/* Whether the launch has the counters of the section of one pass instead of those asked for, as it must not be
 * replayed. */
bool kp_has_quick_instead(const struct kp_view *v, const struct kp_wanted *asked);
/* The lines of kp_lines_of_list, with the note of the launch. 0 or -ENOMEM; `out` must be empty. */
int kp_lines_of_metrics(const char *list, const struct kp_view *v, struct kp_lines *out);
/* The title of their section. */
extern const char kp_metrics_title[];

/* The kernel's name as reports have it; valid as long as `l`. */
const char *kp_launch_name(const struct kp_launch_info *l);
/* That name with the range before it that print-nvtx-rename means, the innermost push-pop range of the launching
 * thread, as ncu writes it: RANGE/NAME. malloc'ed in *out, which is NULL where there is no such range. 0 or -ENOMEM. */
int kp_launch_range_name(const struct kp_launch_info *l, char **out);
/* The kernels that the session says were seen, a line for each of the first ones and one for the others. */
void kp_render_kernels(struct kp_out *o, const struct kp_session *s);
/* How much of kp_launch_name is that range with its '/', where kp_launch_range_name has become the name; else 0. */
size_t kp_launch_range_length(const struct kp_launch_info *l);
/* The first `range` bytes of such a name or, where these are more than `most`, their beginning and ".../", which `most`
 * has to have room for. *out, which is not terminated, has `most` bytes; returns how many of them were written. */
size_t kp_range_cut(const char *name, size_t range, size_t most, char *out);
/* What a range is called where launches are put together by ranges: as a filter would name it, without what would break
 * a line. malloc'ed; NULL without memory. */
char *kp_range_title(const struct kp_nvtx_range *r);
/* Whether range `i` is the first of its kind, domain and name around the launch: a recursion has several. */
bool kp_range_is_new(const struct kp_nvtx *n, size_t i);
/* `  name`, whatever it holds in one line, without its end. */
void kp_launch_print_name(struct kp_out *o, const struct kp_launch_info *l);
/* `  name (grid)x(block)`, the same. */
void kp_launch_print(struct kp_out *o, const struct kp_launch_info *l);

/* Whether the line has a value, not just a reason for having none. */
bool kp_line_has_value(const struct kp_line *l);
/* What the line is called, as print-metric-name says. malloc'ed; NULL without memory, which is then noted. */
char *kp_line_title(struct kp_out *o, const struct kp_line *l);

/* What the launch has of one section. A section that nobody `asked_for` shows only what was collected. 0 or -ENOMEM;
 * what the sink returned stays in o->rc. */
int kp_render_section(struct kp_out *o, const struct kp_section *s, const struct kp_view *v, bool asked_for);

/* --- what is shown of a launch --- */

struct kp_shown {
    struct kp_view view;
    struct kp_messages messages; /* of the rules that were chosen, in the sections that are shown */
    struct kp_messages beyond; /* where sections were chosen: those of all sections of the session and of the choice */
    const struct kp_messages *gains; /* one of the two: what the launch could gain does not depend on what is shown */
    struct kp_source_map source;
    const struct kp_section **sections; /* asked for when the session was made, or chosen for display */
    size_t n;
    const char *metrics; /* the user's list, shown behind the sections */
    bool quick; /* the first section is kp_section_quick(), which the launch has instead of what was asked for */
};

/* Fills `out`, which must stay where it is until kp_shown_free, as must what is given. 0, or -ENOMEM with nothing to
 * free. */
int kp_shown_of(const struct kp_display *d, const struct kp_session *s, const struct kp_result *r,
                struct kp_shown *out);
void kp_shown_free(struct kp_shown *s);
/* The title of section `at`, and its lines by name: of header, bodies or both, though a body's rows may come twice. The
 * one behind the last is that of the user's metrics. 0 or -ENOMEM; `out` must be empty. */
const char *kp_shown_title(const struct kp_shown *s, size_t at);
int kp_shown_lines(const struct kp_shown *s, size_t at, enum kp_details details, struct kp_lines *out);

/* The launch's header line and its note. `quick`: as in kp_shown. */
void kp_launch_head(struct kp_out *o, const struct kp_launch_info *l, bool quick);

/* --- bodies: each draws lines that hold at least one value --- */

/* Name, unit and value in a frame. */
void kp_table_print(struct kp_out *o, const struct kp_lines *l);
/* Below a table or a drawing: which of the lines have no value, and why. */
void kp_table_print_missing(struct kp_out *o, const struct kp_lines *l);
/* Below a drawing: the instances, where print-metric-instances wants them. */
void kp_table_print_instances(struct kp_out *o, const struct kp_lines *l);

void kp_bars_draw(struct kp_out *o, const struct kp_lines *l, bool sorted);
void kp_grid_draw(struct kp_out *o, const struct kp_lines *l);
void kp_roofline_draw(struct kp_out *o, const struct kp_lines *l);
void kp_curve_draw(struct kp_out *o, const struct kp_lines *l);
void kp_chart_draw(struct kp_out *o, const struct kp_lines *l);

/* --- timelines --- */

struct kp_series_row {
    const char *label;
    const struct kp_series *series;
};

/* A table with least, mean and largest value of each of `n` > 0 series, and its values over time, folded to the width
 * of the line. `dropped`: as kp_series_dropped. */
void kp_series_draw(struct kp_out *o, const struct kp_series_row *rows, size_t n, double dropped);
/* How many samples of the launch were lost; 0 where that is not known. */
double kp_series_dropped(const struct kp_result *r);
/* The rows first..end-1 of `s` that the launch has series for. *out is malloc'ed, *n may be 0. 0 or
 * -ENOMEM. */
int kp_series_of_rows(const struct kp_section *s, size_t first, size_t end, const struct kp_result *r,
                      struct kp_series_row **out, size_t *n);
/* Ditto of the items KP_SAMPLED of a list of metrics, under their names. */
int kp_series_of_list(const char *list, const struct kp_result *r, struct kp_series_row **out, size_t *n);

/* --- a canvas of characters --- */

struct kp_canvas {
    int width, height;
    char *cells; /* blanks at first */
};

/* 0 or -ENOMEM; free cells. */
int kp_canvas_new(struct kp_canvas *c, int width, int height);
/* What does not fit is cut. (0, 0) is the left upper corner. */
void kp_canvas_put(struct kp_canvas *c, int x, int y, char what);
void kp_canvas_text(struct kp_canvas *c, int x, int y, const char *text);
char kp_canvas_at(const struct kp_canvas *c, int x, int y); /* blank outside */
/* Line `y` without its last blanks, and a newline. */
void kp_canvas_print_line(struct kp_out *o, const struct kp_canvas *c, int y);

#endif
