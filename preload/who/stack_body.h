/* Shared declarations of the call stacks' files: how stacks are kept. */
#ifndef KP_PRELOAD_WHO_STACK_BODY_H
#define KP_PRELOAD_WHO_STACK_BODY_H

#include <stdbool.h>

#include "report/model/model.h"

enum { KP_STACK_FRAMES = 128, KP_BUILD_ID_MAX = 32 };

/* A loaded object, identified by its file: if loaded again, at any address, it is the same. */
struct kp_stack_module {
    char *path;
    unsigned char build_id[KP_BUILD_ID_MAX];
    size_t build_id_size; /* 0 = none */
};

/* A call: the address of its last byte in the module's file; without a module, in the process. */
struct kp_stack_call {
    uint32_t module; /* index + 1; 0 = none */
    uint64_t offset;
};

struct kp_stack_line {
    char *function, *file;
    uint32_t line;
};

/* Both lists have the innermost frame first. */
struct kp_raw_stack {
    struct kp_stack_call *calls;
    size_t n_calls;
    struct kp_stack_line *lines; /* of Python */
    size_t n_lines;
};

/* Names of one call: places from the innermost inlined function out. */
struct kp_stack_place {
    char *function, *file;
    uint32_t line;
};
struct kp_named_call {
    struct kp_stack_call call;
    struct kp_stack_place *places;
    size_t n_places;
};

/* Sorted by module and offset. */
struct kp_stack_names {
    struct kp_named_call *calls;
    size_t n;
};

int kp_stack_compare_calls(const void *a, const void *b);

/* Returns the path of the program itself, which has no name among the loaded objects; "" if unreadable. */
void kp_stack_program(char *path, size_t size);

/* Looks up the names of calls[n], which are sorted, like kp_stack_name_all; the caller frees *names. 0 or -ENOMEM. */
int kp_stack_look_up(const struct kp_stack_call *calls, size_t n, const struct kp_stack_module *modules,
                     struct kp_stack_names *names);
void kp_stack_names_free(struct kp_stack_names *names);

/* Makes frames of a stack, like kp_stack_get. Returns 0 or -ENOMEM. */
int kp_stack_frames(const struct kp_raw_stack *raw, const struct kp_stack_module *modules,
                    const struct kp_stack_names *names, struct kp_stack *out);

#endif
