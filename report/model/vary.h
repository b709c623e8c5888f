/*
 * What a profile series varies, in the user's words: "block=64,128;shared=0,16K". Each combination of the values is a
 * variant.
 */
#ifndef KP_REPORT_MODEL_VARY_H
#define KP_REPORT_MODEL_VARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kp_vary_kind {
    KP_VARY_BLOCK,    /* threads of a block */
    KP_VARY_SHARED,   /* dynamic shared memory of a block, in bytes */
    KP_VARY_CARVEOUT, /* the preferred share of shared memory, % */
    KP_VARY_KINDS,
};

enum { KP_VARY_VALUES = 32, KP_VARY_VARIANTS = 256, KP_VARY_WORD = 24 };

struct kp_vary_value {
    char word[KP_VARY_WORD]; /* as written */
    uint64_t number;         /* of a block: all its threads */
    uint32_t block[3];       /* of a block that was written as 16x16; else all 0 */
};

struct kp_vary {
    struct {
        size_t n;
        struct kp_vary_value values[KP_VARY_VALUES];
    } kinds[KP_VARY_KINDS];
    size_t n; /* variants: at least one */
};

/* One variant: a value of each kind that is varied, NULL of the others. */
struct kp_variation {
    const struct kp_vary_value *of[KP_VARY_KINDS];
    char name[KP_VARY_KINDS * (KP_VARY_WORD + 16)]; /* "block=64 shared=16K" */
};

/* Reads `text`: items separated by ';'. 0, -EINVAL with *err (malloc'ed line) or -ENOMEM. */
int kp_vary_read(const char *text, struct kp_vary *out, char **err);

/* Returns variant `i`, which points into `v`. The last kind varies fastest. */
struct kp_variation kp_vary_at(const struct kp_vary *v, size_t i);

#endif
