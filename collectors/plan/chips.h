/* The chips of chips.def. */
#ifndef KP_COLLECTORS_PLAN_CHIPS_H
#define KP_COLLECTORS_PLAN_CHIPS_H

#include <stdbool.h>
#include <stddef.h>

struct kp_chip {
    const char *name; /* CUPTI's: "GH100" */
    int major, minor; /* the compute capability */
};

/* In the table's order, oldest first. */
extern const struct kp_chip kp_chips[];
extern const size_t kp_n_chips;

/* Returns the compute capability of a chip; false for a chip newer than the table. */
bool kp_chip_cc(const char *chip, int *major, int *minor);

/* Returns the only chip of the table with that compute capability, a static string; NULL for none, or several. */
const char *kp_chip_only(int major, int minor);

#endif
