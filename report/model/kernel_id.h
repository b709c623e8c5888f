/* The launch identifier of kernel-id: context:stream:[regex:]name:invocation. */
#ifndef KP_REPORT_MODEL_KERNEL_ID_H
#define KP_REPORT_MODEL_KERNEL_ID_H

#include <stdbool.h>
#include <stdint.h>

struct kp_kernel_id;

/* Parses an identifier. Context, stream and invocation are numbers, comma lists of numbers, or expressions that match a
 * whole number. The name has the syntax of kp_pattern_new. An empty field matches everything. Names may have colons:
 * the first two and the last one separate. Returns 0; -EINVAL with *err (malloc'ed line); -ENOMEM. */
int kp_kernelid_new(const char *text, struct kp_kernel_id **out, char **err);
void kp_kernelid_free(struct kp_kernel_id *id);

/* Tell whether context or stream matter; whether they, the name and the invocation match. Threads: any. */
bool kp_kernelid_asks_place(const struct kp_kernel_id *id);
bool kp_kernelid_place(const struct kp_kernel_id *id, uint64_t context, uint64_t stream);
bool kp_kernelid_name(const struct kp_kernel_id *id, const char *name);
/* `nth` is 1 for the first invocation. */
bool kp_kernelid_invocation(const struct kp_kernel_id *id, uint64_t nth);

#endif
