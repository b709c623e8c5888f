/*
 * What values by instruction come to for a whole launch: the rows of sections that are sampled or counted in SASS (the
 * sources PCSAMP and SASS of sections.def).
 *
 * Threads: none is shared.
 */
#ifndef KP_REPORT_DEFINE_DERIVE_SOURCE_H
#define KP_REPORT_DEFINE_DERIVE_SOURCE_H

#include "report/model/lookup.h"
#include "report/model/model.h"

/*
 * Sets the metrics of `r` that are made of its counts by instruction: totals, excesses, averages over the threads of a
 * warp, the mixes of opcodes, and the compiler's spills. A metric that was counted gets its exact total in place of any
 * other value; one that the collector made n/a stays so. Where anything was sampled, or counted, what is missing of
 * that kind is 0, as counts leave out metrics that are 0 everywhere; where nothing was, nothing is set.
 *
 * `lookup` (NULL = none) finds the code of the launch: without it there is no mix of opcodes, and instructions that
 * were never executed are not known. `category` (NULL = not known) says what kind of instruction a basic opcode is, as
 * it is printed; static text, "" of an opcode that it does not know, which then counts as "Other".
 *
 * To be called before metrics are derived from others (kp_derive). 0 or -ENOMEM.
 */
int kp_derive_source(struct kp_result *r, const struct kp_lookup *lookup, const char *(*category)(const char *opcode));

#endif
