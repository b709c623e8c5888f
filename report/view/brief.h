/* Chooses which launches stand for all: of each kernel and shape the median by duration.
 * Threads: one at a time for each choice. */
#ifndef KP_REPORT_VIEW_BRIEF_H
#define KP_REPORT_VIEW_BRIEF_H

#include <stdbool.h>
#include <stddef.h>

#include "report/model/model.h"

/* The metric that launches are compared by. */
#define KP_BRIEF_METRIC "gpu__time_duration.sum"

struct kp_brief;
struct kp_brief *kp_brief_new(void); /* NULL without memory */
void kp_brief_free(struct kp_brief *b);
/* Adds a launch. Kernels are alike by the name to show, grid and block. 0 or -ENOMEM. */
int kp_brief_add(struct kp_brief *b, const struct kp_result *r);
/* Returns the number of launches added. */
size_t kp_brief_count(const struct kp_brief *b);
/* Chooses, once all are added; of more than `most` kernels and shapes (0 = any number) those that took most time.
 * Returns the number of launches chosen. */
size_t kp_brief_choose(struct kp_brief *b, size_t most);
/* Returns true if the launch of this id was chosen. */
bool kp_brief_has(const struct kp_brief *b, uint64_t id);

#endif
