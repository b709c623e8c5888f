/*
 * Launch attributes, and what they mean for a repetition of the launch: the table is attributes.def.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_ATTRIBUTES_H
#define KP_PRELOAD_PROGRAM_ATTRIBUTES_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "report/model/reasons.h"

struct kp_attribute {
    CUlaunchAttributeID id;
    enum { KP_ATTRIBUTE_VALUE, KP_ATTRIBUTE_EVENT, KP_ATTRIBUTE_NEVER } use;
    bool of_nodes; /* kernel nodes of graphs have it, too */
};

enum {
#define KP_ATTRIBUTE(id, use, of) KP_ATTRIBUTE_AT_##id,
#include "preload/program/attributes.def"
#undef KP_ATTRIBUTE
    KP_ATTRIBUTES
};

extern const struct kp_attribute kp_attributes[KP_ATTRIBUTES];

/* Returns the row of an attribute; NULL: it comes from a later CUDA. */
const struct kp_attribute *kp_attribute_row(CUlaunchAttributeID id);

/* Returns why a launch with these attributes must not be repeated, if there is a reason. */
enum kp_reason kp_attributes_reason(const CUlaunchAttribute *list, size_t n);

/* Returns true if a launch with these attributes records an event. */
bool kp_attributes_record(const CUlaunchAttribute *list, size_t n);

/* Replaces each event that a launch with these attributes records by the event that `other` returns; for NULL the
 * attribute is left out. Returns how many attributes are left. */
size_t kp_attributes_replace_events(CUlaunchAttribute *list, size_t n, CUevent (*other)(void *arg, CUevent event),
                                    void *arg);

#endif
