/* Checks a list of metrics against a stored session, which has only the metrics that were collected. */
#ifndef KP_REPORT_VIEW_LISTED_H
#define KP_REPORT_VIEW_LISTED_H

#include "report/define/sections.h"
#include "report/store/store.h"

/* Reads all launches and reports the items of `list` (see kp_display.metrics) and the `sections` that no launch has.
 * *out (malloc'ed, "" for none) receives a line for each, with a near name of the session or the error of the
 * expression. *missing receives how much is missing. Returns 0, -ENOMEM, or an error of the store with *err a
 * malloc'ed line or NULL. */
enum kp_missing {
    KP_MISSING_NOT_ALL, /* some of the list was found, or nothing was listed */
    KP_MISSING_LIST,    /* nothing of the list was found, but a section was, or a set is shown, which is not checked */
    KP_MISSING_ALL,
};
int kp_listed_check(struct kp_store *store, const char *list, const struct kp_section *const *sections, size_t n,
                    char **out, enum kp_missing *missing, char **err);
/* Does the same for the columns of the page trace, which are names of metrics. */
int kp_listed_check_columns(struct kp_store *store, const char *columns, char **out, char **err);

#endif
