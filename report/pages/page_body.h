/* What the files of the pages share: one function for each page and format. */
#ifndef KP_REPORT_PAGES_PAGE_BODY_H
#define KP_REPORT_PAGES_PAGE_BODY_H

#include "report/write/columns.h"
#include "base/csv.h"
#include "report/pages/page.h"
#include "report/define/units.h"
#include "report/write/out.h"

/* Stands in a cell without a value; readers of tables know it. */
#define KP_NO_VALUE "n/a"
/* The heading of a column that names ranges as kp_range_title does. */
#define KP_NVTX_RANGE "NVTX Range"

/* What is being printed of a session. */
struct kp_page {
    const struct kp_sink *out;
    const struct kp_display *display;
    const struct kp_session *session;
    const struct kp_launches *launches;
    struct kp_summary *summary; /* where the details page adds its launches, and leaves it; NULL: it has its own */
    char **err;
    bool shared; /* several sessions are in the table: each row says of which process it is */
    bool nvtx;   /* launches have the columns of NVTX */
};

/* Calls `fn` for each launch, with the metrics and under the name that it is shown with. */
int kp_page_each(const struct kp_page *p, int (*fn)(struct kp_result *r, void *arg), void *arg);

/* Each prints its page and returns as kp_page_print does. CSV: of `n` sessions, one table with one row of headings. */
typedef int kp_page_text_fn(const struct kp_page *p);
typedef int kp_page_csv_fn(const struct kp_page *pages, size_t n, struct kp_csv *to);
kp_page_text_fn kp_details_text, kp_raw_text, kp_session_text, kp_summary_text, kp_trace_text, kp_source_text,
    kp_pm_text;
kp_page_csv_fn kp_details_csv, kp_raw_csv, kp_session_csv, kp_summary_csv, kp_trace_csv, kp_source_csv, kp_pm_csv;
/* The pages details and raw where the display puts launches together. */
kp_page_text_fn kp_grouped_text;
kp_page_csv_fn kp_grouped_csv;
/* The whole session, or several of them. */
int kp_json_page(const struct kp_page *pages, size_t n, FILE *to);

/* ---- words and numbers that several of them have ---- */

/* The name of the program's file without its folder; valid as long as the session. */
const char *kp_process_name(const struct kp_session *s);
/* The value as a program reads it, in its base unit: KP_NO_VALUE when there is none. `number`, or text of the metric.
 */
const char *kp_plain_value(const struct kp_metric *m, char number[KP_NUMBER_MAX]);
/* A number for the reader, or, when `plain`, for a program. */
void kp_number_cell(double value, bool plain, char out[KP_NUMBER_MAX]);
void kp_count_cell(uint64_t value, bool plain, char out[KP_NUMBER_MAX]);

/* The columns of ncu's CSV that tell which launch it is: from the number to the compute capability. 0 or -ENOMEM. */
void kp_csv_launch_headings(struct kp_csv *c, const struct kp_page *p);
int kp_csv_launch(struct kp_csv *c, const struct kp_page *p, const struct kp_launch_info *l);
/* Those of them that tell the process. */
void kp_csv_process_headings(struct kp_csv *c);
void kp_csv_process(struct kp_csv *c, const struct kp_session *s);
/* The rows of a table, where it is shared each behind the columns of its process. */
void kp_csv_rows(struct kp_csv *to, const struct kp_page *p, const struct kp_columns *table);

#endif
