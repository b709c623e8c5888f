#include "cmd/join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "cmd/joined_codes.h"
#include "cmd/match.h"
#include "collectors/code/sass.h"
#include "collectors/plan/runs.h"
#include "report/define/derive.h"
#include "report/define/derive_source.h"
#include "report/model/counts.h"
#include "report/store/store.h"

/* Run 1 counts nothing: see preload/contexts/program_runs.c. */
enum { FIRST_COUNTED = 1 };

/* The launches of one run. */
struct launches {
    struct kp_result *at;
    size_t n;
};

struct joining {
    const struct kp_join *j;
    struct kp_store *first, *to;
    struct kp_session session;
    struct launches launches;
    bool *missing; /* of launch i in run k, at i * runs + k */
    struct kp_joined_codes codes;
    FILE *notes;
    char *chip, *plan; /* the text of runs.h for that chip; NULL = not read yet */
};

/* ---- reading ---- */

static int add_launch(struct kp_result *r, void *arg)
{
    struct launches *l = arg;
    if (!KP_ROOM(l->at, l->n))
        return -ENOMEM;
    l->at[l->n++] = *r;
    *r = (struct kp_result){.launch.id = r->launch.id}; /* the store continues after it */
    return 0;
}

static void free_launches(struct launches *l)
{
    for (size_t i = 0; i < l->n; i++)
        kp_result_free(&l->at[i]);
    free(l->at);
    *l = (struct launches){.n = 0};
}

static const struct kp_launch_info **infos(const struct launches *l)
{
    const struct kp_launch_info **list = calloc(l->n + 1, sizeof *list);
    for (size_t i = 0; list && i < l->n; i++)
        list[i] = &l->at[i].launch;
    return list;
}

/* ---- a run ---- */

static int take_run_launch(struct joining *x, struct kp_result *r, struct kp_result *from, struct kp_store *store,
                           char **err)
{
    int rc = kp_result_take(r, from);
    if (!rc)
        rc = kp_joined_codes_name(&x->codes, store, from, err);
    for (size_t i = 0; !rc && i < from->n_counts; i++)
        rc = kp_counts_take(r, &from->counts[i]);
    for (size_t i = 0; !rc && i < from->n_series; i++)
        rc = kp_result_add_series(r, &from->series[i]);
    r->launch.passes += from->launch.passes;
    r->launch.profiler_ns += from->launch.profiler_ns;
    if (!r->launch.note && from->launch.note) {
        r->launch.note = from->launch.note;
        r->launch.reason = from->launch.reason;
        from->launch.note = NULL;
    }
    return rc;
}

/* What a workload is called. */
static const char *word(const struct kp_join *j)
{
    return j->ranges ? "range" : "launch";
}

/* What `n` of them are called. */
static const char *words(const struct kp_join *j, size_t n)
{
    return n == 1 ? word(j) : j->ranges ? "ranges" : "launches";
}

static const char *name_of(const struct joining *x, const struct launches *l, size_t at)
{
    const char *name = at < l->n ? l->at[at].launch.demangled : NULL;
    return name ? name : x->j->ranges ? "no range" : "no launch";
}

static void tell_match(const struct joining *x, size_t run, const struct kp_match *m, const struct launches *others)
{
    if (m->first != KP_NO_PARTNER)
        fprintf(x->notes,
                "run %zu of process %" PRIu64 " is left out (app-replay-mode strict): its %s %zu is %s instead of %s\n",
                run + 1, x->session.pid, word(x->j), m->first, name_of(x, others, m->first),
                name_of(x, &x->launches, m->first));
    else if (m->alone || m->more)
        fprintf(x->notes,
                "run %zu of process %" PRIu64 " made %zu %s instead of %zu: %zu of the first run %s no partner in "
                "it, and %zu of it none in the first run\n",
                run + 1, x->session.pid, others->n, words(x->j, others->n), x->launches.n, m->alone,
                m->alone == 1 ? "has" : "have", m->more);
}

/* Returns the launches in a range. */
static double launches_in(const struct kp_result *r)
{
    double n = 0;
    return kp_metric_number(kp_result_find(r, "range__launches"), &n) ? n : 0;
}

/* Tells of ranges that have another number of launches than in the first run. */
static void tell_other_ranges(const struct joining *x, size_t run, const struct launches *others, const size_t *partner)
{
    size_t n = 0, first = 0;
    for (size_t i = x->launches.n; i--;)
        if (partner[i] != KP_NO_PARTNER && launches_in(&x->launches.at[i]) != launches_in(&others->at[partner[i]])) {
            n++;
            first = i;
        }
    if (n)
        fprintf(x->notes,
                "run %zu of process %" PRIu64
                " has %zu range%s with another number of launches, the first of them range %zu: %.0f instead of %.0f\n",
                run + 1, x->session.pid, n, n == 1 ? "" : "s", first, launches_in(&others->at[partner[first]]),
                launches_in(&x->launches.at[first]));
}

static int take_matched(struct joining *x, size_t run, struct launches *others, struct kp_store *store, char **err)
{
    const struct kp_launch_info **a = infos(&x->launches), **b = infos(others);
    size_t *partner = calloc(x->launches.n + 1, sizeof *partner);
    struct kp_match m;
    int rc = a && b && partner ? kp_match_launches(a, x->launches.n, b, others->n, x->j->by, x->j->mode, partner, &m)
                               : -ENOMEM;
    if (!rc) {
        tell_match(x, run, &m, others);
        tell_other_ranges(x, run, others, partner);
    }
    for (size_t i = 0; !rc && i < x->launches.n; i++)
        if (partner[i] == KP_NO_PARTNER)
            x->missing[i * x->j->runs + run] = true;
        else
            rc = take_run_launch(x, &x->launches.at[i], &others->at[partner[i]], store, err);
    free(partner);
    free(a);
    free(b);
    return rc;
}

static void join_session(struct kp_session *s, const struct kp_session *of_run)
{
    s->passes += of_run->passes;
    s->profiling_ns += of_run->profiling_ns;
    s->complete &= of_run->complete;
}

static int take_run(struct joining *x, size_t run, char **err)
{
    struct kp_store *store = NULL;
    struct kp_session s = {0};
    struct launches others = {.n = 0};
    char *unreadable = NULL;
    if (!x->j->paths[run] || kp_store_open(x->j->paths[run], &store, &unreadable)) {
        free(unreadable);
        fprintf(x->notes, "run %zu has no session of process %" PRIu64 " of the first run\n", run + 1, x->session.pid);
        for (size_t i = 0; i < x->launches.n; i++)
            x->missing[i * x->j->runs + run] = true;
        return 0;
    }
    int rc = kp_store_get_session(store, &s, err);
    if (!rc)
        rc = kp_store_each_result(store, add_launch, &others, err);
    if (!rc)
        rc = take_matched(x, run, &others, store, err);
    if (!rc)
        join_session(&x->session, &s);
    free_launches(&others);
    kp_session_free(&s);
    kp_store_close(store);
    return rc;
}

/* ---- what all runs give together ---- */

/* A launch being completed. */
struct completing {
    struct joining *x;
    size_t launch;
    struct kp_result *r;
    enum { SET, DERIVE, REMOVE } step;
    size_t asked, counted; /* metrics that runs count, and those that have a value */
};

/* Sets what the launch lacks because the run that counts it was not made, or has no such launch. A value from several
 * passes needs them all; an incomplete one is removed. */
static int set_missing(struct completing *c, const struct kp_runs_line *line)
{
    char text[96];
    struct kp_why why = {KP_REASON_NOT_COLLECTED, NULL};
    size_t first = (size_t)line->list + FIRST_COUNTED, end = first + kp_plan_runs_passes(line), runs = c->x->j->runs;
    size_t run = first;
    while (run < end && run < runs && !c->x->missing[c->launch * runs + run])
        run++;
    double value;
    c->asked++;
    c->counted += run == end && kp_metric_number(kp_result_find(c->r, line->name), &value);
    if (run == end && kp_result_find(c->r, line->name))
        return 0;
    if (run < end && run >= runs)
        snprintf(text, sizeof text, "run %zu of the program was not made", run + 1);
    else if (run < end)
        snprintf(text, sizeof text, "run %zu of the program has no such %s", run + 1, word(c->x->j));
    if (run < end)
        why = (struct kp_why){run >= runs ? KP_REASON_RUN_NOT_MADE : KP_REASON_RUN_LACKS, text};
    return kp_result_set_why(c->r, line->name, why);
}

/* Sets a throughput to the largest of its constituents. Without one of them it is not known, in this round. */
static int set_largest(const struct completing *c, const struct kp_runs_line *line)
{
    if (kp_metric_number(kp_result_find(c->r, line->name), &(double){0}))
        return 0;
    const char *list = line->text, *item;
    size_t len;
    double largest = 0, value;
    while (kp_word_next(&list, &item, &len)) {
        char *name = strndup(item, len);
        const struct kp_metric *m = name ? kp_result_find(c->r, name) : NULL;
        free(name);
        if (!kp_metric_number(m, &value))
            return kp_result_set_why(c->r, line->name,
                                     m && m->kind == KP_VALUE_NA ? kp_metric_why(m)
                                                                 : kp_why_of(KP_REASON_NO_CONSTITUENT, NULL));
        largest = value > largest ? value : largest;
    }
    return kp_result_set_real(c->r, line->name, line->unit, largest);
}

static int set_line(struct completing *c, const struct kp_runs_line *line)
{
    switch (line->kind) {
    case KP_RUNS_COUNTED:
    case KP_RUNS_PART:
    case KP_RUNS_SEVERAL:
        return set_missing(c, line);
    case KP_RUNS_CANNOT:
        return kp_result_find(c->r, line->name) ? 0 : kp_result_set_why(c->r, line->name, kp_plan_runs_why(line));
    default:
        return 0;
    }
}

static int complete_line(const struct kp_runs_line *line, void *arg)
{
    struct completing *c = arg;
    if (c->step == SET)
        return set_line(c, line);
    if (c->step == REMOVE && kp_plan_runs_is_part(line))
        kp_result_remove(c->r, line->name);
    if (c->step == DERIVE && line->kind == KP_RUNS_LARGEST)
        return set_largest(c, line);
    return 0;
}

static int derive_line(const struct kp_runs_line *line, void *arg)
{
    const struct completing *c = arg;
    int rc = line->kind == KP_RUNS_DERIVED ? kp_derive(c->r, line->name) : 0;
    return rc == -ENOENT ? 0 : rc;
}

/* Reads how the counters of a chip were shared; "" if no run has counted on it. */
static int read_plan(struct joining *x, const char *chip)
{
    char *path = NULL;
    size_t size = 0;
    if (x->chip && !strcmp(x->chip, chip))
        return 0;
    free(x->chip);
    free(x->plan);
    x->plan = NULL;
    x->chip = strdup(chip);
    if (!x->chip || asprintf(&path, "%s/plan.%s", x->j->folder, chip) < 0)
        return -ENOMEM;
    FILE *f = fopen(path, "re");
    free(path);
    if (f && getdelim(&x->plan, &size, 0, f) < 0) {
        free(x->plan);
        x->plan = NULL;
    }
    if (f)
        fclose(f);
    x->plan = x->plan ? x->plan : strdup("");
    return x->plan ? 0 : -ENOMEM;
}

/* Calls `fn` for each line of the plan. */
static int each_line(struct completing *c, int (*fn)(const struct kp_runs_line *line, void *arg))
{
    char *text = strdup(c->x->plan);
    int rc = text ? kp_plan_runs_each(text, fn, c) : -ENOMEM;
    free(text);
    return rc;
}

static void note_missing(struct joining *x, size_t launch)
{
    struct kp_launch_info *l = &x->launches.at[launch].launch;
    size_t n = 0, first = 0;
    for (size_t k = x->j->runs; k--;)
        if (x->missing[launch * x->j->runs + k]) {
            n++;
            first = k;
        }
    if (!n || l->note)
        return;
    l->reason = KP_REASON_RUNS_DIFFER;
    l->note = kp_asprintf("%zu of %zu runs of the program %s no such %s, the first of them run %zu", n, x->j->runs,
                          n == 1 ? "has" : "have", word(x->j), first + 1);
}

/* Notes that a result has no counters: its launches are not profiled. */
static int take_back(struct joining *x, const struct kp_result *r)
{
    uint64_t launches = x->j->ranges ? (uint64_t)launches_in(r) : 1;
    launches = launches < x->session.launches_profiled ? launches : x->session.launches_profiled;
    x->session.launches_profiled -= launches;
    return launches ? kp_session_add_skip(&x->session, kp_why_of(KP_REASON_NO_COUNTERS, NULL), launches) : 0;
}

static int complete(struct joining *x, size_t launch)
{
    static const int steps[] = {SET, DERIVE, DERIVE, DERIVE, REMOVE}; /* constituents may be throughputs, too */
    struct kp_result *r = &x->launches.at[launch];
    struct completing c = {.x = x, .launch = launch, .r = r};
    struct kp_lookup code = kp_store_lookup(x->to);
    int rc = read_plan(x, r->launch.chip);
    for (size_t i = 0; !rc && i < sizeof steps / sizeof *steps; i++) {
        c.step = steps[i];
        rc = each_line(&c, complete_line);
    }
    if (!rc)
        rc = kp_derive_source(r, x->codes.n ? &code : NULL, kp_disassembly_category);
    if (!rc)
        rc = each_line(&c, derive_line);
    note_missing(x, launch);
    if (!rc && c.asked && !c.counted)
        rc = take_back(x, r);
    return rc;
}

/* ---- writing ---- */

static int put_stacks(struct joining *x, char **err)
{
    uint64_t last = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < x->launches.n; i++) {
        uint64_t id = x->launches.at[i].launch.stack;
        struct kp_stack s;
        if (id <= last || kp_store_get_stack(x->first, id, &s, err))
            continue; /* ids ascend with the first launch that has the stack */
        last = id;
        rc = kp_store_put_stack(x->to, &s, err);
        kp_frames_free(&s);
    }
    return rc;
}

static int put_results(struct joining *x, char **err)
{
    int rc = kp_store_begin(x->to, err);
    for (size_t i = 0; !rc && i < x->launches.n; i++) {
        rc = complete(x, i);
        if (!rc)
            rc = kp_store_put_result(x->to, &x->launches.at[i], err);
        kp_result_free(&x->launches.at[i]);
    }
    if (!rc) /* with the launches that turned out to have no counters */
        rc = kp_store_put_session(x->to, &x->session, err);
    return rc ? rc : kp_store_commit(x->to, err);
}

static int write_session(struct joining *x, const char *path, bool overwrite, char **err)
{
    struct kp_session *s = &x->session;
    free(s->replay);
    s->replay = kp_asprintf("application %sreplay, %zu run%s", x->j->ranges ? "range " : "", x->j->runs,
                            x->j->runs == 1 ? "" : "s");
    if (!s->replay)
        return -ENOMEM;
    int rc = kp_store_create(path, overwrite, &x->to, err);
    if (!rc)
        rc = kp_store_put_session(x->to, s, err);
    if (!rc)
        rc = kp_store_begin(x->to, err);
    if (!rc)
        rc = kp_joined_codes_put(&x->codes, x->to, err);
    if (!rc)
        rc = put_stacks(x, err);
    if (!rc)
        rc = kp_store_commit(x->to, err);
    return rc ? rc : put_results(x, err);
}

int kp_application_join(const struct kp_join *j, const char *to, bool overwrite, FILE *notes, char **err)
{
    struct joining x = {.j = j, .notes = notes};
    *err = NULL;
    int rc = kp_store_open(j->paths[0], &x.first, err);
    if (!rc)
        rc = kp_store_get_session(x.first, &x.session, err);
    if (!rc)
        rc = kp_store_each_result(x.first, add_launch, &x.launches, err);
    if (!rc && !(x.missing = calloc(x.launches.n * j->runs + 1, sizeof *x.missing)))
        rc = -ENOMEM;
    for (size_t k = 1; !rc && k < j->runs; k++)
        rc = take_run(&x, k, err);
    if (!rc)
        rc = write_session(&x, to, overwrite, err);
    kp_store_close(x.to);
    kp_store_close(x.first);
    free_launches(&x.launches);
    kp_session_free(&x.session);
    kp_joined_codes_free(&x.codes);
    free(x.missing);
    free(x.chip);
    free(x.plan);
    return rc;
}
