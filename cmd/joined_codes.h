/*
 * Functions counted by instruction, of several sessions of the same program: the functions are the same, their ids are
 * not.
 *
 * Threads: a list belongs to its holder.
 */
#ifndef KP_CMD_JOINED_CODES_H
#define KP_CMD_JOINED_CODES_H

#include "report/model/model.h"
#include "report/store/store.h"

struct kp_joined_codes {
    struct kp_code *at; /* in the order of their ids, from 1 on */
    size_t n;
};

/* Gives the counts of `r`, which is of session `from`, the ids of the list; adds functions that are new to it. 0, or as
 * the store's functions with *err. */
int kp_joined_codes_name(struct kp_joined_codes *c, struct kp_store *from, struct kp_result *r, char **err);
/* Stores all functions but those that cannot be. Likewise. */
int kp_joined_codes_put(const struct kp_joined_codes *c, struct kp_store *to, char **err);
void kp_joined_codes_free(struct kp_joined_codes *c);

#endif
