/* Groups of metrics: what a body of a section shows, under a name that the user's list of metrics takes. */
#ifndef KP_REPORT_DEFINE_GROUPS_H
#define KP_REPORT_DEFINE_GROUPS_H

#include "report/define/sections.h"

/* What stands before a group's name in a list. */
#define KP_GROUP "group:"
/* What stands before a throughput whose constituents are meant, in lists and in rows. */
#define KP_BREAKDOWN "breakdown:"
/* What stands before a metric of a list that is sampled over time. */
#define KP_SAMPLED "pmsampling:"

/* rows[first..end) of the section under one of their names. */
struct kp_group {
    const char *name, *title; /* title of the body */
    const struct kp_section *section;
    size_t first, end;
};

/* Calls `fn` for every name that group: takes on a chip of that compute capability (`major` below 0: of any): the
 * body's title in lower case with an underscore for all that is no letter or digit, and ncu's name where it has one. A
 * name may come more than once. Bodies of series are no groups, and some groups of ncu's are of no section. What `fn`
 * gets lasts until it returns. A non-zero return ends it and is returned. */
int kp_groups_each(int major, int minor, int (*fn)(const struct kp_group *group, void *arg), void *arg);
/* The same with each name once. */
int kp_groups_each_name(int major, int minor, int (*fn)(const struct kp_group *group, void *arg), void *arg);

#endif
