/*
 * Call stacks, code, counts and series in the JSON of a session. A launch names stacks and code by id; they come once,
 * after the launches.
 */
#ifndef KP_REPORT_PAGES_JSON_CODE_H
#define KP_REPORT_PAGES_JSON_CODE_H

#include "base/json.h"
#include "report/model/lookup.h"

/* The ids that launches have named so far, sorted, each once. Zero-initialised. */
struct kp_json_ids {
    uint64_t *list;
    size_t n;
};
struct kp_json_code {
    struct kp_json_ids stacks, codes;
};

/* Writes members of the launch: its stack, counts and series, if any. 0 or -ENOMEM. */
int kp_page_json_launch_code(struct kp_json *j, struct kp_json_code *c, const struct kp_result *r);
/* Writes members of the document: the stacks and code that launches have named, and the embedded source files. Those
 * that `lookup` lacks are left out. 0, -EIO or -ENOMEM. */
int kp_page_json_all_code(struct kp_json *j, const struct kp_json_code *c, const struct kp_lookup *lookup);
/* Frees the data that `c` owns. */
void kp_page_json_code_free(struct kp_json_code *c);

#endif
