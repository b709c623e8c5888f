/*
 * Launch metrics made of values by instruction: the rows of sections.def with the sources PCSAMP and SASS.
 *
 * Threads: shares no data.
 */
#ifndef KP_REPORT_DEFINE_DERIVE_SOURCE_H
#define KP_REPORT_DEFINE_DERIVE_SOURCE_H

#include <stdbool.h>

#include "report/model/lookup.h"
#include "report/model/model.h"

/*
 * Sets the metrics of `r` that are computed from its counts by instruction: totals, excesses, averages over the threads
 * of a warp, the compiler's spills, and the mixes of opcodes and of their memory accesses. A counted metric gets its
 * exact total in place of any other value; a metric that the collector made n/a stays n/a.
 *
 * Puts the counts of the kernel's own function before those of the functions that it calls.
 *
 * Counts leave out metrics that are 0 everywhere. So if anything was sampled, or counted, missing metrics of that kind
 * become 0; otherwise they stay unset.
 *
 * `lookup` (NULL = none) finds the code of the launch. Without code there is no mix of opcodes, and never executed
 * instructions are unknown; without its disassembly no mix of opcodes with modifiers. `category` (NULL = not known)
 * returns the kind of a basic opcode, as printed, in static text. Opcodes for which it returns "" count as "Other".
 *
 * Call this before deriving metrics from others (kp_derive). Returns 0 or -ENOMEM.
 */
int kp_derive_source(struct kp_result *r, const struct kp_lookup *lookup, const char *(*category)(const char *opcode));

/* Return the address space ("Global") and the access ("Load") of a basic opcode; "" for one that does not access
 * memory, and for NULL. */
const char *kp_memory_space(const char *opcode);
const char *kp_memory_access(const char *opcode);

/* Returns true if a metric of the list, of exact names separated by commas, is made of disassembly: the texts of the
 * code have to be there before kp_derive_source. `metrics` may be NULL. */
bool kp_derive_source_reads_texts(const char *metrics);

#endif
