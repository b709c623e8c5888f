/* The profile series of a launch: the program's own way of launching, and those that were tried in its place. */
#ifndef KP_REPORT_VIEW_VARIANTS_H
#define KP_REPORT_VIEW_VARIANTS_H

#include "report/model/model.h"

/* What the program's own launch is called among its variants. */
extern const char kp_variants_own[];

/* Ends every series: what its reader must know. */
extern const char kp_variants_unchecked[];

/* Returns the launch of number `i`: 0 is the program's own, the variants follow. */
const struct kp_result *kp_variants_at(const struct kp_result *r, size_t i);
const char *kp_variants_name(const struct kp_result *r, size_t i);

/* Returns how long it took, ns; false when that is not known. */
bool kp_variants_time(const struct kp_result *r, size_t i, double *ns);
/* Returns the change of the time against the program's own, %. False when one of them is not known. */
bool kp_variants_change(const struct kp_result *r, size_t i, double *percent);

/* Finds the shortest; false when no time is known. Of equal ones the first, so that the program's own stays. */
bool kp_variants_best(const struct kp_result *r, size_t *best);

#endif
