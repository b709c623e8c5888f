#include "cmd/joined_codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"

/* Returns the id that the list has for a function of the session; *out stays if the session lacks the function. */
static int name(struct kp_joined_codes *c, struct kp_store *from, uint64_t id, uint64_t *out, char **err)
{
    struct kp_code code = {0};
    int rc = kp_store_get_code(from, id, &code, err);
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].crc == code.crc && !strcmp(c->at[i].function, code.function)) {
            *out = i + 1;
            kp_code_free(&code);
            return 0;
        }
    if (!KP_ROOM(c->at, c->n)) {
        kp_code_free(&code);
        return -ENOMEM;
    }
    c->at[c->n++] = code;
    *out = c->at[c->n - 1].id = c->n;
    return 0;
}

int kp_joined_codes_name(struct kp_joined_codes *c, struct kp_store *from, struct kp_result *r, char **err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < r->n_counts; i++)
        rc = name(c, from, r->counts[i].code, &r->counts[i].code, err);
    return rc;
}

int kp_joined_codes_put(const struct kp_joined_codes *c, struct kp_store *to, char **err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < c->n; i++) {
        rc = kp_store_put_code(to, &c->at[i], err);
        if (rc == -EINVAL) { /* as the library does with code that it cannot store */
            free(*err);
            *err = NULL;
            rc = 0;
        }
    }
    return rc;
}

void kp_joined_codes_free(struct kp_joined_codes *c)
{
    for (size_t i = 0; i < c->n; i++)
        kp_code_free(&c->at[i]);
    free(c->at);
    *c = (struct kp_joined_codes){.n = 0};
}
