/* Kinds of failure of a run: the rows of failures.def. Threads: pure functions. */
#ifndef KP_BASE_FAILURES_H
#define KP_BASE_FAILURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kp_failure {
#define KP_FAILURE(id, status, name, text) KP_FAILURE_##id,
#include "base/failures.def"
    KP_FAILURES
};

struct kp_failure_row {
    int status; /* exit status with `strict` */
    const char *name, *text;
};

/* KP_FAILURES rows. Static data. */
extern const struct kp_failure_row kp_failure_rows[];

/* A set of kinds: a bit each. */
typedef uint64_t kp_failure_set;

static inline kp_failure_set kp_failure_bit(enum kp_failure f)
{
    return (kp_failure_set)1 << f;
}

/* Returns the kind of that name, KP_FAILURES when there is none. */
enum kp_failure kp_failure_find(const char *name);

/* Returns the kind that sets the exit status, KP_FAILURES for an empty set. */
enum kp_failure kp_failure_first(kp_failure_set set);

/* Returns "export: the session ... (also: metric, not-counted)" for a non-empty set; malloc'ed, NULL without memory. */
char *kp_failure_line(kp_failure_set set);

#endif
