/* The pages of a report: their names, and what is collected for them. */
#ifndef KP_REPORT_OPTIONS_PAGES_H
#define KP_REPORT_OPTIONS_PAGES_H

#include <stddef.h>

enum kp_page_id {
    KP_PAGE_DETAILS,
    KP_PAGE_RAW,
    KP_PAGE_SESSION,
    KP_PAGE_SUMMARY,
    KP_PAGE_TRACE,
    KP_PAGE_SOURCE,
    KP_PAGE_PM,
    KP_PAGE_IDS,
};
enum { KP_PAGES_MAX = 16 /* pages that are asked for in one go; what is beyond is not printed */ };

/* What the page is called in a list of pages. Static data. */
const char *kp_page_name(enum kp_page_id page);
/* Reads a comma list of names of pages, which has been checked, into out[]. Returns their number. */
size_t kp_page_ids(const char *list, enum kp_page_id out[KP_PAGES_MAX]);

struct kp_options;
/* What is collected for the pages when neither set, section nor metrics are given: the sections that some of them need,
 * and no set where all do. Changes set and section of `o`. 0 or -ENOMEM. */
int kp_page_wants(struct kp_options *o);
/* What is collected for the page trace when neither set, section nor metrics are given: where it is all that is asked
 * for, what one pass has, or, if that has not all its columns, these. Changes set and metrics of `o`. 0 or -ENOMEM. */
int kp_trace_wants(struct kp_options *o);

#endif
