/* Groups of metrics: the metrics of a section's body, under a name that the user's list of metrics accepts. */
#ifndef KP_REPORT_DEFINE_GROUPS_H
#define KP_REPORT_DEFINE_GROUPS_H

#include "report/define/sections.h"

/* Precedes a group's name in a list. */
#define KP_GROUP "group:"
/* Precedes a throughput, in lists and rows, to name its constituents. */
#define KP_BREAKDOWN "breakdown:"
/* Precedes a metric of a list that is sampled over time. */
#define KP_SAMPLED "pmsampling:"

/* rows[first..end) of the section under one of their names. */
struct kp_group {
    const char *name, *title; /* title of the body */
    const struct kp_section *section;
    size_t first, end;
};

/* Calls `fn` for every name that "group:" accepts on chips of that compute capability; a negative `major` means any
 * chip. A name is the body's title in lower case with an underscore for every other character, plus ncu's name if it
 * has one. A name may come more than once. Bodies of series are not groups, and some of ncu's groups belong to no
 * section. The group passed to `fn` is valid until `fn` returns. A non-zero return ends the calls and is returned. */
int kp_groups_each(int major, int minor, int (*fn)(const struct kp_group *group, void *arg), void *arg);
/* Does the same with each name once. */
int kp_groups_each_name(int major, int minor, int (*fn)(const struct kp_group *group, void *arg), void *arg);

#endif
