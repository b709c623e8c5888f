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

/* Schedules `n` names; the number of passes is not 1 if they do not fit together or one is unknown. */
static int schedule(const struct scheduler *s, const char *const *names, size_t n, struct kp_config *out)
{
    int rc = kp_host_schedule_for(s->c, CUPTI_PROFILER_TYPE_PM_SAMPLING, s->chip, s->availability, names, n, out);
    return rc > 0 ? 0 : rc;
}

/* Adds names[0..n) to group `g`, if all of them fit. */
static int add_all(const struct scheduler *s, struct kp_config *g, const char *const *names, size_t n, bool *fit)
{
    struct kp_config grown;
    if (g->n_names)
        memcpy(s->trial, g->names, g->n_names * sizeof(*s->trial));
    memcpy(s->trial + g->n_names, names, n * sizeof(*s->trial));
    int rc = schedule(s, s->trial, g->n_names + n, &grown);
    if (rc)
        return rc;
    *fit = grown.passes == 1;
    if (*fit) {
        kp_config_free(g);
        *g = grown;
    } else {
        kp_config_free(&grown);
    }
    return 0;
}

/* Adds the names that fit, earlier ones first; names[0..*left) are the rest. Tries all at once, and halves if they do
 * not fit, because a schedule takes milliseconds. */
static int add_some(const struct scheduler *s, struct kp_config *g, const char **names, size_t n, size_t *left)
{
    bool fit = false;
    size_t half = n / 2, first, second = 0;
    int rc = add_all(s, g, names, n, &fit);
    *left = fit ? 0 : n;
    if (rc || fit || n == 1)
        return rc;
    rc = add_some(s, g, names, half, &first);
    if (!rc)
        rc = add_some(s, g, names + half, n - half, &second);
    memmove(names + first, names + half, second * sizeof(*names));
    *left = first + second;
    return rc;
}

static int leave_out(const struct scheduler *s, const char *name)
{
    struct kp_config alone;
    int rc = schedule(s, &name, 1, &alone);
    if (rc)
        return rc;
    enum kp_pm_left why = !alone.passes ? KP_PM_UNKNOWN : alone.passes > 1 ? KP_PM_SEVERAL_PASSES : KP_PM_NO_ROOM;
    s->out->left_out[s->out->n_left_out++] = (struct kp_pm_left_out){name, why};
    kp_config_free(&alone);
    return 0;
}

/* First fit: each name joins the first group with room for it, or a new one. */
static int split(const struct scheduler *s, const char **names, size_t n)
{
    int rc = 0;
    while (!rc && n && s->out->n < s->most) {
        struct kp_config group = {.n_names = 0};
        size_t left;
        rc = add_some(s, &group, names, n, &left);
        if (rc || left == n) {
            kp_config_free(&group);
            break;
        }
        s->out->at[s->out->n++] = group;
        n = left;
    }
    for (size_t i = 0; !rc && i < n; i++)
        rc = leave_out(s, names[i]);
    return rc;
}

int kp_pm_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability, const char *const *names,
                   size_t n, size_t most, struct kp_pm_groups *out)
{
    struct scheduler s = {c, chip, availability, most ? most : n, malloc((n ? n : 1) * sizeof(*s.trial)), out};
    const char **left = calloc(n + 1, sizeof(*left)); /* names without a group so far */
    struct kp_host *h;
    memset(out, 0, sizeof(*out));
    out->at = calloc(n ? n : 1, sizeof(*out->at));
    out->left_out = calloc(n ? n : 1, sizeof(*out->left_out));
    int rc = s.trial && left && out->at && out->left_out ? 0 : -ENOMEM;
    if (!rc && n)
        memcpy(left, names, n * sizeof(*left));
    if (!rc && !(rc = kp_pm_host(c, chip, availability, &h))) { /* otherwise each name would be reported as unknown */
        kp_host_close(h);
        rc = n ? split(&s, left, n) : 0;
    }
    free(left);
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
