#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/internal.h"
#include "cupti/pm.h"

int kp_pm_host(const struct kp_cupti *c, const char *chip, const uint8_t *availability, struct kp_host **out)
{
    return kp_host_open_for(c, CUPTI_PROFILER_TYPE_PM_SAMPLING, chip, availability, out);
}

/* The arguments of scheduling a list. */
struct scheduler {
    const struct kp_cupti *c;
    const char *chip;
    const uint8_t *availability;
    size_t most;
    const char **trial; /* room for all names */
    struct kp_pm_groups *out;
};

/* Schedules `n` names; if they do not fit together, or one is unknown, the number of passes is not 1. */
static int schedule(const struct scheduler *s, const char *const *names, size_t n, struct kp_config *out)
{
    int rc = kp_host_schedule_for(s->c, CUPTI_PROFILER_TYPE_PM_SAMPLING, s->chip, s->availability, names, n, out);
    return rc > 0 ? 0 : rc;
}

/* Adds `name` to group `g`, if it fits. */
static int try_group(const struct scheduler *s, struct kp_config *g, const char *name, bool *fits)
{
    struct kp_config grown;
    memcpy(s->trial, g->names, g->n_names * sizeof(*s->trial));
    s->trial[g->n_names] = name;
    int rc = schedule(s, s->trial, g->n_names + 1, &grown);
    if (rc)
        return rc;
    *fits = grown.passes == 1;
    if (*fits) {
        kp_config_free(g);
        *g = grown;
    } else {
        kp_config_free(&grown);
    }
    return 0;
}

static void leave_out(const struct scheduler *s, const char *name, enum kp_pm_left why)
{
    s->out->left_out[s->out->n_left_out++] = (struct kp_pm_left_out){name, why};
}

/* First fit: the first group with room for the name, or a new one. */
static int place(const struct scheduler *s, const char *name)
{
    struct kp_config alone;
    bool fits = false;
    int rc = schedule(s, &name, 1, &alone);
    if (rc)
        return rc;
    size_t passes = alone.passes;
    for (size_t i = 0; !rc && !fits && passes == 1 && i < s->out->n; i++)
        rc = try_group(s, &s->out->at[i], name, &fits);
    if (!rc && !fits && passes == 1 && s->out->n < s->most) {
        s->out->at[s->out->n++] = alone;
        return 0;
    }
    if (!rc && !fits)
        leave_out(s, name, !passes ? KP_PM_UNKNOWN : passes > 1 ? KP_PM_SEVERAL_PASSES : KP_PM_NO_ROOM);
    kp_config_free(&alone);
    return rc;
}

static int split(const struct scheduler *s, const char *const *names, size_t n)
{
    struct kp_config whole;
    int rc = schedule(s, names, n, &whole);
    if (rc)
        return rc;
    if (whole.passes == 1) {
        s->out->at[s->out->n++] = whole;
        return 0;
    }
    kp_config_free(&whole);
    for (size_t i = 0; !rc && i < n; i++)
        rc = place(s, names[i]);
    return rc;
}

int kp_pm_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability, const char *const *names,
                   size_t n, size_t most, struct kp_pm_groups *out)
{
    struct scheduler s = {c, chip, availability, most ? most : n, malloc((n ? n : 1) * sizeof(*s.trial)), out};
    struct kp_host *h;
    memset(out, 0, sizeof(*out));
    out->at = calloc(n ? n : 1, sizeof(*out->at));
    out->left_out = calloc(n ? n : 1, sizeof(*out->left_out));
    int rc = s.trial && out->at && out->left_out ? 0 : -ENOMEM;
    if (!rc && !(rc = kp_pm_host(c, chip, availability, &h))) { /* otherwise each name would be reported as unknown */
        kp_host_close(h);
        rc = n ? split(&s, names, n) : 0;
    }
    free(s.trial);
    if (rc)
        kp_pm_groups_free(out);
    return rc;
}

void kp_pm_groups_free(struct kp_pm_groups *g)
{
    for (size_t i = 0; i < g->n; i++)
        kp_config_free(&g->at[i]);
    free(g->at);
    free(g->left_out);
    memset(g, 0, sizeof(*g));
}
