#include "collectors/plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/plan/plan_internal.h"
#include "collectors/providers/library.h"

static size_t counters(const struct kp_planner *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->plan->n_metrics; i++)
        n += x->plan->metrics[i].group == KP_NOT_SCHEDULED;
    return n;
}

/* Limits the counters: for more, the library needs minutes while the program waits. */
static int bound(struct kp_planner *x)
{
    size_t n = counters(x);
    if (n <= KP_PLAN_MOST_COUNTERS)
        return 0;
    if (asprintf(x->err, "%s: these are %zu counters of %s, but at most %d can be scheduled; name fewer", x->option, n,
                 x->chip, KP_PLAN_MOST_COUNTERS) < 0) {
        *x->err = NULL;
        return -ENOMEM;
    }
    return -EINVAL;
}

/* Checks that there is something to collect. */
static int check_known(struct kp_planner *x, size_t n_sections)
{
    if (n_sections || x->n_known || !x->n_unknown)
        return 0;
    size_t size;
    FILE *f = fflush(x->unknown) ? NULL : open_memstream(x->err, &size);
    if (!f)
        return -ENOMEM;
    for (const char *line = x->plan->unknown, *end; *line; line = end + 1) {
        const char *text = strchr(line, '\t') + 1;
        end = strchr(line, '\n');
        fprintf(f, "%s%.*s", line == x->plan->unknown ? "" : "\n", (int)(end - text), text);
    }
    return kp_text_end(f, x->err) ? -ENOMEM : -EINVAL;
}

/* Alongside replays, which use sessions, a session counts this list, too. */
static int schedule_one_pass(struct kp_planner *x, bool beside)
{
    int rc = kp_plan_schedule_one_pass(x);
    return rc || !beside ? rc : kp_plan_lay_out(x);
}

static int schedule_groups(struct kp_planner *x, unsigned how)
{
    if (how & KP_PLAN_UNSHARED)
        return 0;
    if (how & KP_PLAN_RUNS)
        return kp_plan_schedule_runs(x);
    if (how & KP_PLAN_ONE_PASS)
        return schedule_one_pass(x, how & KP_PLAN_BESIDE);
    if (how & KP_PLAN_ROTATE)
        return kp_plan_schedule_rotation(x, how & KP_PLAN_BESIDE);
    int rc = kp_plan_schedule(x);
    if (!rc && how & KP_PLAN_WATCH)
        rc = kp_plan_watch(x);
    if (!rc)
        rc = kp_plan_share_images(x);
    if (!rc)
        rc = kp_plan_lay_out(x);
    return rc ? rc : kp_plan_roll_up(x);
}

static int fill(struct kp_planner *x, const struct kp_section *const *sections, size_t n_sections, const char *metrics,
                unsigned how)
{
    bool had;
    int rc = kp_tables_open(x->cupti, KP_TABLES_COUNTED, x->chip, x->availability, &x->host);
    for (size_t i = 0; !rc && i < n_sections; i++)
        rc = kp_plan_want_section(x, sections[i]);
    for (size_t i = 0; !rc && how & KP_PLAN_RULES && i < n_sections; i++)
        rc = kp_plan_want_rules(x, sections[i]);
    if (!rc)
        rc = kp_plan_list(x, metrics);
    if (!rc)
        rc = check_known(x, n_sections);
    if (!rc && how & KP_PLAN_DURATION && counters(x))
        rc = kp_plan_want(x, "gpu__time_duration.sum", KP_UNIT_OF_CHIP, false, &had);
    if (!rc)
        rc = bound(x);
    if (!rc)
        rc = schedule_groups(x, how);
    kp_plan_forget_first(x);
    kp_tables_close(x->host);
    return rc;
}

int kp_plan_watch_more(const struct kp_cupti *c, const char *chip, const uint8_t *availability, struct kp_plan *p)
{
    struct kp_planner x = {.plan = p, .cupti = c, .chip = chip, .availability = availability};
    int rc = kp_tables_open(c, KP_TABLES_COUNTED, chip, availability, &x.host);
    size_t before = p->n_metrics;
    if (!rc)
        rc = kp_plan_watch(&x);
    if (!rc && p->n_metrics > before) /* the first list is no longer in the image */
        rc = kp_plan_share_images(&x);
    if (!rc)
        rc = kp_plan_lay_out(&x);
    if (!rc)
        rc = kp_plan_roll_up(&x);
    kp_tables_close(x.host);
    return rc;
}

/* Indexed by: the items are columns; the command asks, and calls them flags. */
static const char *const option_names[2][2] = {{"KPROF_METRICS", "--metrics"},
                                               {"KPROF_TRACE_COLUMNS", "--trace-columns"}};

int kp_plan_make(const struct kp_cupti *c, const char *chip, const uint8_t *availability, int major, int minor,
                 const struct kp_section *const *sections, size_t n_sections, const char *metrics, unsigned how,
                 struct kp_plan **out, char **err)
{
    struct kp_plan *p = calloc(1, sizeof(*p));
    size_t size;
    *out = NULL;
    *err = NULL;
    if (!p)
        return -ENOMEM;
    struct kp_planner x = {
        .plan = p,
        .cupti = c,
        .chip = chip,
        .owner = how & KP_PLAN_ANY_CHIP ? "CUPTI" : chip,
        .availability = availability,
        .major = major,
        .minor = minor,
        .own = metrics && *metrics,
        .option = option_names[(how & KP_PLAN_COLUMNS) != 0][(how & (KP_PLAN_QUERY | KP_PLAN_ANY_CHIP)) != 0],
        .listed = open_memstream(&p->listed, &size),
        .breakdowns = open_memstream(&p->breakdowns, &size),
        .unknown = open_memstream(&p->unknown, &size),
        .err = err};
    int rc = x.listed && x.breakdowns && x.unknown ? fill(&x, sections, n_sections, metrics, how) : -ENOMEM;
    const struct {
        FILE *to;
        char **text;
    } lists[] = {{x.listed, &p->listed}, {x.breakdowns, &p->breakdowns}, {x.unknown, &p->unknown}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        if (lists[i].to && kp_text_end(lists[i].to, lists[i].text) && !rc)
            rc = -ENOMEM;
    if (rc > 0) {
        *err = kp_library_explain(c, KP_REASON_NOT_PLANNED, rc).text;
        rc = -EIO;
    }
    if (rc)
        kp_plan_free(p);
    else
        *out = p;
    return rc;
}
