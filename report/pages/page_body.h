/* What the files of the pages share: one function for each page and format. */
#ifndef KP_REPORT_PAGES_PAGE_BODY_H
#define KP_REPORT_PAGES_PAGE_BODY_H

#include "report/pages/page.h"
#include "report/write/cells.h"
#include "report/write/columns.h"
#include "report/write/csv_launch.h"
#include "report/write/writer.h"

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

/* Writes the blocks of its page, of `n` sessions: several only where w->kind->rows. Returns what failed of the launches
 * or of memory; errors of the writer stay there. */
typedef int kp_page_fn(const struct kp_page *pages, size_t n, struct kp_writer *w);
kp_page_fn kp_session_page, kp_summary_page;
/* What follows is of this session. */
void kp_page_enter(const struct kp_page *p, struct kp_writer *w);

typedef int kp_page_text_fn(const struct kp_page *p);
typedef int kp_page_csv_fn(const struct kp_page *pages, size_t n, struct kp_csv *to);
kp_page_text_fn kp_details_text, kp_raw_text, kp_trace_text, kp_source_text, kp_pm_text;
kp_page_csv_fn kp_details_csv, kp_raw_csv, kp_trace_csv, kp_source_csv, kp_pm_csv;
/* The pages details and raw where the display puts launches together. */
kp_page_text_fn kp_grouped_text;
kp_page_csv_fn kp_grouped_csv;
/* The whole session, or several of them. */
int kp_json_page(const struct kp_page *pages, size_t n, FILE *to);

/* The rows of a table, where it is shared each behind the columns of its process. */
void kp_csv_rows(struct kp_csv *to, const struct kp_page *p, const struct kp_columns *table);

#endif
