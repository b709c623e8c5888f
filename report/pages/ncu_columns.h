/* The columns of ncu's raw page. Threads: shares no data. */
#ifndef KP_REPORT_PAGES_NCU_COLUMNS_H
#define KP_REPORT_PAGES_NCU_COLUMNS_H

#include "report/model/model.h"

/* Makes the metrics of a launch those of ncu's raw page (ncu_columns.def), by name. `r` owns only the list itself, and
 * its metrics refer to others' text then, too. 0, or -ENOMEM with `r` still to free. */
int kp_page_ncu_columns(const struct kp_session *s, struct kp_result *r);

#endif
