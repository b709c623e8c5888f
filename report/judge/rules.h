/*
 * Rules say what limits a launch, what it would gain, and where to look. They are one table, rules.def.
 * Facts: rules of Nsight Compute 2025.3 (thresholds, formulas, which sections have them).
 *
 * Threads: all is read-only, except what is passed in.
 */
#ifndef KP_REPORT_JUDGE_RULES_H
#define KP_REPORT_JUDGE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/define/sections.h"
#include "report/model/model.h"

/* A metric that a rule looks at. Several of one name are alternatives: the first that the chip and the launch have. */
struct kp_rule_input {
    const char *name;   /* what the rule calls the value */
    const char *metric; /* full name with suffix */
    const char *cc;     /* as in kp_row */
    enum kp_source source;
    bool required;  /* without it, and without its alternatives, the rule is silent */
    bool collected; /* false: used where the launch has it, but nobody is asked to collect it */
};

struct kp_rule_run;
struct kp_source_map;
struct kp_rule {
    const char *id;      /* "SOLBottleneck" */
    const char *section; /* identifier of the section that it belongs to */
    const char *parent;  /* rule that passes values on to it, where the launch has what that one needs; "" = none */
    bool ceiling;        /* its estimate holds only if the data allow it: never named as a gain of the kernel */
    const struct kp_rule_input *inputs;
    size_t n_inputs;
    void (*apply)(struct kp_rule_run *run);
    const char *about; /* what it looks at, a phrase */
};

/* All rules, parents before their children; *n receives their number. Static data. */
const struct kp_rule *kp_rules(size_t *n);
/* Exact, case-sensitive identifier; NULL when unknown. */
const struct kp_rule *kp_rule_find(const char *id);

/* A choice of rules: a bit for each, in the order of the table. */
typedef uint64_t kp_rule_choice;
#define KP_RULES_ALL UINT64_MAX
/* Reads a comma list of identifiers or "regex:EXPR", which must match an identifier in full; "" chooses all. 0; -EINVAL
 * with *err a malloc'ed line that names the nearest valid choice; -ENOMEM. */
int kp_rules_select(const char *list, kp_rule_choice *out, char **err);

/* Calls `fn` for each metric to be collected for the rules of section `section_id` on a chip of that compute
 * capability. A metric may come several times, and a chip may lack some of them. A non-zero return ends it and is
 * returned. */
int kp_rule_inputs(const char *section_id, int major, int minor,
                   int (*fn)(const struct kp_rule_input *input, void *arg), void *arg);
/* The value of the input `name` of a rule for this launch, or `other`. */
double kp_rule_value(const struct kp_result *r, const struct kp_rule *rule, const char *name, double other);

enum kp_severity { KP_SEVERITY_OPT, KP_SEVERITY_INF, KP_SEVERITY_WRN };
/* "OPT" and the like. */
const char *kp_severity_name(enum kp_severity severity);

struct kp_message {
    const struct kp_rule *rule;
    const struct kp_section *section; /* that of the rule, as kp_rules_apply was given it */
    enum kp_severity severity;
    char *text;     /* one paragraph, not wrapped; owned */
    double speedup; /* estimated, in percent of the duration; NaN when there is none */
    bool global;    /* the estimate is of the whole kernel; else of the unit that the rule looks at */
    double rank;    /* messages of one rule come by descending rank */
};

/* By section in the order of the report, then by rule identifier, as ncu prints them. */
struct kp_messages {
    struct kp_message *list;
    size_t n, capacity;
};

/* Lets the rules of `sections` that are in `chosen` judge launch `r`. `s` (may be NULL) knows the device: its SMs and
 * what its throughputs are made of. Values that were not collected make rules silent or their estimates local, never
 * an error. *out is overwritten; free it with kp_messages_free. 0 or -ENOMEM, with *out empty. */
int kp_rules_apply(const struct kp_result *r, const struct kp_session *s, const struct kp_section *const *sections,
                   size_t n_sections, kp_rule_choice chosen, struct kp_messages *out);
/* The same for a launch with values by instruction (NULL = without): messages name the line that they are about. */
int kp_rules_apply_at(const struct kp_result *r, const struct kp_session *s, const struct kp_source_map *source,
                      const struct kp_section *const *sections, size_t n_sections, kp_rule_choice chosen,
                      struct kp_messages *out);
void kp_messages_free(struct kp_messages *m);

/* How many messages the section has. */
size_t kp_messages_count(const struct kp_messages *m, const char *section_id);

/* The part of the memory (DRAM, L2, L1) that is busiest, "" when not known. Static data. */
const char *kp_memory_unit(const struct kp_result *r, const struct kp_session *s);

/* Around a name in a message, in which nothing is special. */
#define KP_VERBATIM "\x1f"
/* The text of a rule for launch `r`, with the marks of rules.def replaced. malloc'ed; NULL without memory. */
char *kp_message_text(const struct kp_result *r, const char *text);
/* Whether the launch has values by source line: samples of its warps, or counts of its instructions. */
bool kp_result_has_lines(const struct kp_result *r);

#endif
