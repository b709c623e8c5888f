/* The pages of a report: their names, and the sections they need. */
#ifndef KP_REPORT_OPTIONS_PAGES_H
#define KP_REPORT_OPTIONS_PAGES_H

#include <stddef.h>

#include "report/options/options.h"

enum {
    KP_PAGE_IDS = kp_page_id_values,
    KP_PAGES_MAX = KP_CHOICES_MAX, /* pages of one report; further ones are not printed */
};

/* Chooses what to collect for the pages when neither set, section nor metrics are given: the sections that some pages
 * need, and no set if all do. Changes set and section of `o`. 0 or -ENOMEM. */
int kp_options_wants_page(struct kp_options *o);
/* Chooses what to collect if only the page trace is requested, and neither set, section nor metrics are given. This is
 * the section of one pass, or the page's columns if that section lacks some. Changes set, metrics and only_columns of
 * `o`. 0 or -ENOMEM. */
int kp_options_wants_trace(struct kp_options *o);
/* Chooses to count nothing if only the page timeline is requested, and neither set, section nor metrics are given.
 * Changes set and only_timeline of `o`. 0 or -ENOMEM. */
int kp_options_wants_timeline(struct kp_options *o);

#endif
