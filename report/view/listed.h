/* What a list of metrics stands for in a stored session, which has what was collected and no more. */
#ifndef KP_REPORT_VIEW_LISTED_H
#define KP_REPORT_VIEW_LISTED_H

#include "report/define/sections.h"
#include "report/store/store.h"

/* Reads all launches, and says which items of `list` (see kp_display.metrics) stand for nothing in any of them, and of
 * which of the n `sections` none has anything: in *out (malloc'ed) a line for each, with what is near in the session,
 * or what is wrong with the expression; "" for none. *missing receives how much of both there is. Returns 0, -ENOMEM,
 * or an error of the store with *err a malloc'ed line or NULL. */
enum kp_missing {
    KP_MISSING_NOT_ALL, /* some of the list is there, or nothing was listed */
    KP_MISSING_LIST,    /* none of the list, but a section, or a set that was not looked at */
    KP_MISSING_ALL,
};
int kp_listed_check(struct kp_store *store, const char *list, const struct kp_section *const *sections, size_t n,
                    char **out, enum kp_missing *missing, char **err);
/* The same of the columns that were chosen for the page trace, which are names of metrics. */
int kp_listed_check_columns(struct kp_store *store, const char *columns, char **out, char **err);

#endif
