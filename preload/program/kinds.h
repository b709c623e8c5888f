/*
 * What tells launches of one kernel and shape apart before they run: words of their arguments, and the launch before
 * them. Launches of a rotation that turn out to be of several kinds are then counted by kind.
 *
 * Threads: kp_trait_read for any; all else for one at a time.
 */
#ifndef KP_PRELOAD_PROGRAM_KINDS_H
#define KP_PRELOAD_PROGRAM_KINDS_H

#include "preload/program/launch.h"

enum {
    KP_KINDS_MOST = 8, /* of one kernel and shape; what has more values changes by itself, as a counter does */
    KP_KINDS_CANARIES = 2,
};

/* A word of 4 byte, fewer at the end of an argument; or the number of the launch before. */
struct kp_trait {
    bool before;
    uint32_t param, offset; /* of the argument, and in it, byte */
    uint32_t packed;        /* offset in a buffer of all arguments */
    uint32_t bytes;
    uint32_t of; /* byte that the argument has */
};

/* Whether launches of the function have it. */
bool kp_trait_fits(const struct kp_trait *t, const struct kp_function *f);
/* Reads a trait of a launch that comes after launch `before`. False: it has none, as it gives its arguments otherwise.
 */
bool kp_trait_read(const struct kp_trait *t, const struct kp_launch *l, uint32_t before, uint32_t *word);

/* Writes which launches have the value, as a clause that follows "launches": "whose argument 2 is 512"; for the launch
 * before, `name` is its kernel's. malloc'ed, or NULL. */
char *kp_trait_say(const struct kp_trait *t, uint32_t value, const char *name);

/* What a launch has counted, for its kind. */
struct kp_kept {
    bool counted;
    size_t group;
    double canaries[KP_KINDS_CANARIES]; /* NAN = not counted */
    double *values;                     /* of the group's names, NAN as well; NULL = nothing */
    double ns;
    unsigned char at[]; /* of each trait, which of its values the launch had */
};

/* The traits of the launches of one key. */
struct kp_kinds;

/* Makes room for the traits of the function's launches. NULL without memory. */
struct kp_kinds *kp_kinds_new(const struct kp_function *f);
void kp_kinds_free(struct kp_kinds *k);
/* Notes a launch of the key. False: its traits are not known, and so those of no launch any more. */
bool kp_kinds_see(struct kp_kinds *k, const struct kp_launch *l, const struct kp_function *f, uint32_t before);
/* Keeps the launch that was seen last, as one that counts. Returns its number from 1 on; 0: it is not known. */
size_t kp_kinds_keep(struct kp_kinds *k);
/* Forgets the launch that was kept last, as the driver refused it. */
void kp_kinds_drop(struct kp_kinds *k);
/* Returns the launch of that number, or NULL; valid as long as `k`. */
struct kp_kept *kp_kinds_kept(struct kp_kinds *k, size_t number);

/* A trait that tells kinds apart: its values in the order in which they came first, and how many launches had each. */
struct kp_kinds_choice {
    struct kp_trait trait;
    size_t number; /* of the trait: see kp_kept.at */
    size_t n;
    uint32_t values[KP_KINDS_MOST];
    uint64_t seen[KP_KINDS_MOST];
};

/* Chooses the trait of fewest values by which the launches that were kept and counted are alike. False without one. */
bool kp_kinds_choose(const struct kp_kinds *k, const char *const canaries[KP_KINDS_CANARIES],
                     struct kp_kinds_choice *out);

#endif
