/* What can be collected on each chip, for the queries of the kprof command. Needs CUPTI, but no GPU and no driver. */
#ifndef KP_CMD_CATALOG_H
#define KP_CMD_CATALOG_H

#include <stdbool.h>

#include "base/dl.h"
#include "cmd/main.h"

/* The operations as the command gets them. */
extern const struct kp_catalog_ops kp_catalog_ops;

/* The dynamic loader as it is: nothing of libkprof.so is in the command. */
extern const struct kp_dl kp_catalog_dl;

/* Compute capability of a chip that CUPTI knows; false for one that came after this table (chips.def). */
bool kp_catalog_chip_cc(const char *chip, int *major, int *minor);

#endif
