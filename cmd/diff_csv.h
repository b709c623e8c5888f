/* A comparison as CSV: a row for each value that changed, for each rule that appeared or went, and for each launch or
 * kernel that only one session has. Threads: one at a time for each stream. */
#ifndef KP_CMD_DIFF_CSV_H
#define KP_CMD_DIFF_CSV_H

#include "base/csv.h"
#include "report/model/model.h"

/* What the rows of a pair have in common; sides: the baseline, and what is compared with it. */
struct kp_diff_csv_pair {
    const char *file[2];
    const struct kp_launch_info *launch; /* of the side that has it */
    bool by_kernel;                      /* the launch stands for all of its kernel: it has no grid and no ID */
    uint64_t id[2];
    uint64_t launches[2]; /* 0: the side has none */
};

void kp_diff_csv_headings(struct kp_csv *c);
/* Writes a metric's row; a value is NULL where the side has none. `table`: of the section, "" for its first. `change`:
 * in percent, "" for none. */
void kp_diff_csv_metric(struct kp_csv *c, const struct kp_diff_csv_pair *p, const char *section, const char *table,
                        const char *name, const struct kp_metric *const value[2], const char *change);
/* Writes the row of a rule; `what`: "appeared" or "went". */
void kp_diff_csv_rule(struct kp_csv *c, const struct kp_diff_csv_pair *p, const char *section, const char *rule,
                      const char *type, const char *what);

#endif
