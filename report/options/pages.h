/* The pages of a report: their names, and what is collected for them. */
#ifndef KP_REPORT_OPTIONS_PAGES_H
#define KP_REPORT_OPTIONS_PAGES_H

#include <stddef.h>

#include "report/options/options.h"

enum {
    KP_PAGE_IDS = kp_page_id_values,
    KP_PAGES_MAX = KP_CHOICES_MAX, /* pages that are asked for in one go; what is beyond is not printed */
};

/* What is collected for the pages when neither set, section nor metrics are given: the sections that some of them need,
 * and no set where all do. Changes set and section of `o`. 0 or -ENOMEM. */
int kp_page_wants(struct kp_options *o);
/* What is collected for the page trace when neither set, section nor metrics are given: where it is all that is asked
 * for, what one pass has, or, if that has not all its columns, these. Changes set,
 * metrics and only_columns of `o`. 0 or -ENOMEM. */
int kp_trace_wants(struct kp_options *o);

#endif
