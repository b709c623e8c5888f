/*
 * Rules say what limits a launch, how much could be gained, and where to look. They are one table, rules.def.
 *
 * Facts: rules of Nsight Compute 2025.3 (thresholds, formulas, which sections have them).
 *
 * Threads: all is read-only, except for the arguments.
 */
#ifndef KP_REPORT_JUDGE_RULES_H
#define KP_REPORT_JUDGE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/define/sections.h"
#include "report/model/model.h"

/* A metric that a rule reads. Inputs of one name are alternatives: the first that the chip and the launch have
 * counts. */
struct kp_rule_input {
    const char *name;   /* the rule's name for the value */
    const char *metric; /* full name with suffix */
    const char *cc;     /* as in kp_row */
    enum kp_source source;
    bool required;  /* without the metric and its alternatives, the rule is silent */
    bool collected; /* false: used if the launch has it, but never collected for the rule */
};

struct kp_rule_run;
struct kp_source_map;
struct kp_rule {
    const char *id;      /* "SOLBottleneck" */
    const char *section; /* identifier of its section */
    const char *parent;  /* rule that passes values to this one, if the launch has its inputs; "" = none */
    bool ceiling;        /* its estimate holds only if the data allow it: never reported as a gain of the kernel */
    const struct kp_rule_input *inputs;
    size_t n_inputs;
    void (*apply)(struct kp_rule_run *run);
    const char *about; /* its subject, a phrase */
};

/* Returns all rules, parents before their children; *n receives their number. Static data. */
const struct kp_rule *kp_rules(size_t *n);
/* Finds a rule by its exact, case-sensitive identifier; NULL when unknown. */
const struct kp_rule *kp_rule_find(const char *id);

/* A set of rules: a bit for each, in the order of the table. */
typedef uint64_t kp_rule_choice;
#define KP_RULES_ALL UINT64_MAX
/* Reads a comma list of identifiers or "regex:EXPR", which must match an identifier in full; "" chooses all. 0; -EINVAL
 * with *err a malloc'ed line that names the nearest valid choice; -ENOMEM. */
int kp_rules_select(const char *list, kp_rule_choice *out, char **err);

/* Calls `fn` for each metric to collect for the rules of section `section_id` on a chip of that compute capability.
 * A metric may come several times, and a chip may lack some of them. A non-zero return ends this and is returned. */
int kp_rule_inputs(const char *section_id, int major, int minor,
                   int (*fn)(const struct kp_rule_input *input, void *arg), void *arg);
/* Returns the value of the input `name` of a rule for this launch, or `other`. */
double kp_rule_value(const struct kp_result *r, const struct kp_rule *rule, const char *name, double other);

enum kp_severity { KP_SEVERITY_OPT, KP_SEVERITY_INF, KP_SEVERITY_WRN };
/* Returns "OPT" and the like. */
const char *kp_severity_name(enum kp_severity severity);

struct kp_message {
    const struct kp_rule *rule;
    const struct kp_section *section; /* of the rule, from the argument of kp_rules_apply */
    enum kp_severity severity;
    char *text;     /* one paragraph, not wrapped; owned */
    double speedup; /* estimate, in percent of the duration; NaN = none */
    bool global;    /* the estimate is for the whole kernel; else for the rule's unit */
    double rank;    /* orders the messages of one rule, descending */
};

/* Sorted by section in report order, then by rule identifier (like ncu). */
struct kp_messages {
    struct kp_message *list;
    size_t n;
};

/* Applies the rules of `sections` that are in `chosen` to launch `r`. `s` (may be NULL) knows the device: its SMs
 * and the constituents of its throughputs. Missing values make rules silent or their estimates local, never an
 * error. *out is overwritten; free it with kp_messages_free. 0 or -ENOMEM, with *out empty. */
int kp_rules_apply(const struct kp_result *r, const struct kp_session *s, const struct kp_section *const *sections,
                   size_t n_sections, kp_rule_choice chosen, struct kp_messages *out);
/* Does the same for a launch with values by instruction (NULL = without): messages name their source line. */
int kp_rules_apply_at(const struct kp_result *r, const struct kp_session *s, const struct kp_source_map *source,
                      const struct kp_section *const *sections, size_t n_sections, kp_rule_choice chosen,
                      struct kp_messages *out);
void kp_messages_free(struct kp_messages *m);

/* Returns the number of messages of the section. */
size_t kp_messages_count(const struct kp_messages *m, const char *section_id);

/* Returns the busiest part of the memory (DRAM, L2, L1), "" when unknown. Static data. */
const char *kp_rules_memory_unit(const struct kp_result *r, const struct kp_session *s);

/* Surrounds a name in a message, in which nothing is special. */
#define KP_VERBATIM "\x1f"
/* Returns the text of a rule for launch `r`, with the marks of rules.def replaced. malloc'ed; NULL without memory. */
char *kp_message_text(const struct kp_result *r, const char *text);
/* Returns true if the launch has values by source line: samples of its warps, or counts of its instructions. */
bool kp_rules_has_lines(const struct kp_result *r);

#endif
