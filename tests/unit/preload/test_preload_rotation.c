/* The walk of kernels and shapes through groups of counters: which launch counts what, when a key is complete, and what
 * becomes of all that its launches have counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/os/outcome.h"
#include "preload/program/rotation.h"
#include "preload/session/session.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

/* ---- the session, in the place of the real one ---- */

enum { MOST = 16, EACH = 2 };

static struct {
    struct kp_result results[MOST];
    bool profiled[MOST];
    char bases[MOST][32];
    uint64_t alike[MOST];
    size_t n;
    struct kp_result replaced; /* the last one */
    char base[32];
    size_t n_replaced;
    struct kp_session_told told;
    bool in_part;
} t;

void kp_session_results(struct kp_session_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(t.n < MOST);
        t.results[t.n] = *entries[i].result;
        *entries[i].result = (struct kp_result){.n_metrics = 0};
        t.profiled[t.n] = entries[i].profiled;
        snprintf(t.bases[t.n], sizeof(t.bases[0]), "%s", entries[i].base);
        entries[i].id = t.n++;
    }
}

void kp_session_alike(uint64_t id, uint64_t alike)
{
    assert_true(id < MOST);
    t.alike[id] = alike;
}

void kp_session_replace(struct kp_result *result, const char *base, struct kp_session_told *told)
{
    t.told = *told;
    kp_result_free(&t.replaced);
    t.replaced = *result;
    snprintf(t.base, sizeof(t.base), "%s", base);
    *told = (struct kp_session_told){result->launch.counted, result->launch.passes, result->launch.profiler_ns};
    *result = (struct kp_result){.n_metrics = 0};
    t.n_replaced++;
}

void kp_session_warn_once(const char *text)
{
    fail_msg("%s", text);
}

void kp_session_warn(enum kp_failure kind, const char *text)
{
    (void)kind;
    fail_msg("%s", text);
}

char *kp_outcome_ended(uint64_t seen, uint64_t matched)
{
    (void)seen, (void)matched;
    return NULL;
}

void kp_outcome_failed(enum kp_failure kind)
{
    assert_int_equal(kind, KP_FAILURE_IN_PART);
    t.in_part = true;
}

static int reset(void **state)
{
    (void)state;
    for (size_t i = 0; i < t.n; i++)
        kp_result_free(&t.results[i]);
    kp_result_free(&t.replaced);
    memset(&t, 0, sizeof(t));
    return 0;
}

/* ---- help ---- */

static const char hits[] = "lts__t_sectors_lookup_hit.sum", misses[] = "lts__t_sectors_lookup_miss.sum",
                  duration[] = "gpu__time_duration.sum";

/* Lists that hold `hits` and `misses` apart, as the L2 counts one of them in a pass. */
static struct kp_plan *new_plan(void)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), "GH100", NULL, 9, 0, NULL, 0,
                                  "lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum", KP_PLAN_ROTATE, &p,
                                  &err),
                     0);
    assert_int_equal(p->n_groups, 2);
    return p;
}

static struct kp_launch launch_of(uintptr_t function, unsigned grid)
{
    struct kp_launch l = {.f = (CUfunction)function};
    for (int i = 0; i < 3; i++)
        l.shape.grid[i] = l.shape.block[i] = 1;
    l.shape.grid[0] = grid;
    return l;
}

/* A launch that counts a group: every metric of its list gets the value. */
static void count(struct kp_rotation_key *k, const struct kp_plan *p, size_t group, double value, const char *why)
{
    struct kp_result r = {.launch = {.profiler_ns = 10, .demangled = kp_strdup("kernel"), .ordinal = 7}};
    assert_int_equal(kp_result_set_count(&r, "launch__grid_size", "", 5), 0);
    for (size_t i = 0; !why && i < p->groups[group].n_names; i++)
        assert_int_equal(kp_result_set_real(&r, p->groups[group].names[i], "", value), 0);
    kp_rotation_take(k, group);
    kp_rotation_collect(k, group, &r, why);
    kp_result_free(&r);
}

static double number(const char *metric)
{
    double v = NAN;
    assert_true(t.n > 0);
    kp_metric_number(kp_result_find(&t.results[t.n - 1], metric), &v);
    return v;
}

/* ---- tests ---- */

static void test_a_key_walks_through_all_groups(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, EACH, 0);
    struct kp_launch l = launch_of(1, 3);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    (void)state;
    for (size_t g = 0; g < 2; g++)
        for (int i = 0; i < EACH; i++) {
            assert_true(kp_rotation_lacks_any(k) && kp_rotation_lacks(k, g) && !t.n);
            assert_true(kp_rotation_expects(r, g, 100));
            assert_false(kp_rotation_passes(&l));
            assert_int_equal(kp_rotation_choose(r, k, 100), g);
            count(k, p, g, 100 * (double)(g + 1) + i, NULL);
        }
    assert_false(kp_rotation_lacks_any(k) || kp_rotation_expects(r, 0, 100) || kp_rotation_expects(r, 1, 100));
    assert_int_equal(t.n, 1);
    const struct kp_launch_info *info = &t.results[0].launch;
    assert_true(info->alike == 1 && info->counted == 2 * EACH && info->groups == 2 && info->groups_counted == 2);
    assert_true(info->passes == 2 && info->profiler_ns == 40 && info->ordinal == 7);
    assert_true(t.profiled[0]);
    assert_string_equal(t.bases[0], "kernel");
    /* Each metric is the mean of the launches that counted it; the canary of all. */
    bool misses_first = number(misses) < number(hits);
    assert_true(number(misses) == (misses_first ? 100.5 : 200.5));
    assert_true(number(hits) == (misses_first ? 200.5 : 100.5));
    assert_true(number(duration) == 150.5);
    assert_int_equal(kp_result_find(&t.results[0], duration)->counted, 2 * EACH);
    assert_int_equal(kp_result_find(&t.results[0], hits)->counted, EACH);
    assert_int_equal(kp_result_find(&t.results[0], "launch__grid_size")->counted, 0);
    /* From now on, its launches pass without the gate, and are still counted as its own. */
    for (int i = 0; i < 5; i++)
        assert_true(kp_rotation_passes(&l));
    kp_rotation_end(r);
    assert_int_equal(t.alike[0], 6);
    assert_false(kp_rotation_passes(&l));
    kp_plan_free(p);
}

static void test_keys_differ(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1, 0);
    struct kp_launch l = launch_of(1, 3), other_grid = launch_of(1, 4), other_handle = launch_of(2, 3), shared = l;
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    (void)state;
    shared.shape.dynamic_shared = 16;
    assert_ptr_not_equal(kp_rotation_find(r, &other_grid, "kernel"), k);
    assert_ptr_not_equal(kp_rotation_find(r, &shared, "kernel"), k);
    assert_ptr_not_equal(kp_rotation_find(r, &other_handle, "other"), k);
    /* The same kernel by another handle, loaded again, is the same key. */
    struct kp_launch again = launch_of(3, 3);
    assert_ptr_equal(kp_rotation_find(r, &again, "kernel"), k);
    count(k, p, 0, 1, NULL);
    count(k, p, 1, 1, NULL);
    assert_true(kp_rotation_passes(&l) && kp_rotation_passes(&again));
    assert_string_equal(kp_rotation_passes(&l), KP_SKIP_ROTATED);
    assert_false(kp_rotation_passes(&other_grid) || kp_rotation_passes(&shared) || kp_rotation_passes(&other_handle));
    /* After an unload, a handle may be another function. */
    kp_rotation_forget();
    assert_false(kp_rotation_passes(&l));
    assert_ptr_equal(kp_rotation_find(r, &l, "kernel"), k);
    assert_true(kp_rotation_passes(&l));
    /* With a second context, a handle does not tell the key. */
    struct kp_rotation *second = kp_rotation_new(p, NULL, 1, 0);
    assert_false(kp_rotation_passes(&l));
    kp_rotation_end(second);
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* Ranks begin at different groups, and get round. */
static void test_ranks_begin_apart(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_launch l = launch_of(1, 3);
    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", rank);
        setenv("RANK", text, 1);
        struct kp_rotation *r = kp_rotation_new(p, NULL, 1, 0);
        unsetenv("RANK");
        struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
        size_t first = (size_t)rank % 2;
        assert_int_equal(kp_rotation_choose(r, k, 100), first);
        count(k, p, first, 1, NULL);
        assert_int_equal(kp_rotation_choose(r, k, 100), 1 - first);
        kp_rotation_end(r);
    }
    kp_plan_free(p);
}

/* The group that most keys lack comes first, among those that the launch's key lacks. */
static void test_the_next_group(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1, 0);
    struct kp_launch l[3] = {launch_of(1, 1), launch_of(1, 2), launch_of(1, 3)};
    struct kp_rotation_key *k[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        k[i] = kp_rotation_find(r, &l[i], "kernel");
    count(k[1], p, 0, 1, NULL);
    assert_int_equal(kp_rotation_choose(r, k[0], 100), 1);
    assert_int_equal(kp_rotation_choose(r, k[1], 100), 1);
    count(k[0], p, 1, 1, NULL);
    count(k[2], p, 1, 1, NULL);
    assert_int_equal(kp_rotation_choose(r, k[0], 100), 0);
    assert_int_equal(kp_rotation_choose(r, k[1], 100), 1);
    /* Keys that no longer come do not count. */
    assert_true(kp_rotation_expects(r, 0, 100));
    for (int i = 0; i < 5000; i++)
        kp_rotation_find(r, &l[1], "kernel");
    assert_false(kp_rotation_expects(r, 0, 100));
    assert_true(kp_rotation_expects(r, 1, 100));
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* Keys come as they came before: the next group is for those that come soon, and a window waits for no others. */
static void test_keys_that_come_soon(void **state)
{
    enum { OFTEN = 200, STEP = OFTEN + 2 };
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1, 0);
    struct kp_launch often = launch_of(1, 1), early = launch_of(1, 2), late = launch_of(1, 3), once = launch_of(1, 4);
    struct kp_rotation_key *k[3] = {kp_rotation_find(r, &often, "kernel"), NULL, NULL};
    (void)state;
    for (int step = 0; step < 2; step++) {
        k[1] = kp_rotation_find(r, &early, "kernel");
        for (int i = 0; i < OFTEN; i++)
            kp_rotation_find(r, &often, "kernel");
        k[2] = kp_rotation_find(r, &late, "kernel");
    }
    /* `late` was just there and lacks both groups; `early` comes next. */
    count(k[0], p, 0, 1, NULL);
    count(k[1], p, 0, 1, NULL);
    assert_true(kp_rotation_expects(r, 0, STEP));
    assert_false(kp_rotation_expects(r, 0, STEP - 1));
    assert_true(kp_rotation_expects(r, 1, 1));
    assert_int_equal(kp_rotation_choose(r, k[2], 10), 1);
    count(k[0], p, 1, 1, NULL);
    count(k[2], p, 1, 1, NULL);
    assert_true(kp_rotation_expects(r, 1, 1));
    count(k[1], p, 1, 1, NULL);
    assert_false(kp_rotation_expects(r, 1, STEP));
    /* Launches that pass count, too; what is late by as much again has another rhythm. */
    for (int i = 0; i < STEP - 10; i++)
        assert_true(kp_rotation_passes(&often));
    assert_true(kp_rotation_expects(r, 0, 10));
    assert_false(kp_rotation_expects(r, 0, 9));
    for (int i = 0; i < STEP + 10; i++)
        assert_true(kp_rotation_passes(&often));
    assert_true(kp_rotation_expects(r, 0, 1));
    assert_true(kp_rotation_passes(&often));
    assert_false(kp_rotation_expects(r, 0, STEP));
    /* Of one that came once nothing is known. */
    kp_rotation_find(r, &once, "kernel");
    assert_true(kp_rotation_expects(r, 0, 1));
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* Counts all groups of one key, with these durations one after the other; all else is 50 and 100. */
static void count_durations(const double *durations, size_t each)
{
    static const char rate[] = "lts__t_sector_hit_rate.pct";
    struct kp_plan *p = NULL;
    char *err = NULL;
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), "GH100", NULL, 9, 0, NULL, 0,
                                  "lts__t_sector_hit_rate.pct,lts__t_sectors_lookup_miss.sum", KP_PLAN_ROTATE, &p,
                                  &err),
                     0);
    struct kp_rotation *r = kp_rotation_new(p, NULL, each, 0);
    struct kp_launch l = launch_of(1, 1);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    for (size_t g = 0; g < p->n_groups; g++)
        for (size_t e = 0; e < each; e++) {
            struct kp_result counted = {.launch = {.demangled = kp_strdup("kernel")}};
            for (size_t i = 0; i < p->groups[g].n_names; i++) {
                const char *name = p->groups[g].names[i];
                double value = strcmp(name, duration) == 0 ? durations[e] : strstr(name, "hit") ? 50 : 100;
                assert_int_equal(kp_result_set_real(&counted, name, "", value), 0);
            }
            kp_rotation_take(k, g);
            kp_rotation_collect(k, g, &counted, NULL);
            kp_result_free(&counted);
        }
    kp_rotation_end(r);
    assert_int_equal(t.n, 1);
    assert_non_null(kp_result_find(&t.results[0], rate));
    assert_true(number("lts__t_sectors_lookup_miss.sum") == 100);
    kp_plan_free(p);
}

/* What mixes groups is refused where launches differ; what one group has counted is not. */
static void test_launches_that_differ(void **state)
{
    static const char rate[] = "lts__t_sector_hit_rate.pct";
    count_durations((double[]){100, 101, 99}, 3);
    assert_true(number(rate) == 50);
    reset(state);
    count_durations((double[]){100, 200, 100}, 3);
    const struct kp_metric *m = kp_result_find(&t.results[0], rate);
    assert_int_equal(m->kind, KP_VALUE_NA);
    assert_non_null(strstr(m->text, "of two kinds: gpu__time_duration.sum is 100 in"));
    reset(state);
    count_durations((double[]){100, 180, 140}, 3);
    m = kp_result_find(&t.results[0], rate);
    assert_int_equal(m->kind, KP_VALUE_NA);
    assert_non_null(strstr(m->text, "spreads by 2"));
}

static void test_the_time_is_over(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1, 1), *endless = NULL;
    struct kp_launch l = launch_of(1, 1), other = launch_of(1, 2), unseen = launch_of(1, 3);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    (void)state;
    kp_rotation_find(r, &other, "kernel");
    assert_false(kp_rotation_is_over(r)); /* it begins with the first launch that counts */
    count(k, p, 0, 5, NULL);
    assert_true(kp_rotation_is_over(r) && kp_rotation_is_over(r));
    assert_string_equal(kp_rotation_passes(&l), KP_SKIP_ROTATE_TIME);
    assert_string_equal(kp_rotation_passes(&other), KP_SKIP_ROTATE_TIME);
    assert_string_equal(kp_rotation_passes(&unseen), KP_SKIP_ROTATE_TIME);
    kp_rotation_end(r);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.results[0].launch.alike, 2);
    const struct kp_metric *lacking = kp_result_find(&t.results[0], isfinite(number(hits)) ? misses : hits);
    assert_non_null(strstr(lacking->text, "1 of 2 groups, in 1 launches, in the time given"));
    endless = kp_rotation_new(p, NULL, 1, 0);
    k = kp_rotation_find(endless, &l, "kernel");
    kp_rotation_take(k, 0);
    assert_false(kp_rotation_is_over(endless) || kp_rotation_passes(&l));
    kp_rotation_end(endless);
    kp_plan_free(p);
}

/* At the end, what is incomplete is reported with what there is, and with the reason for the rest. */
static void test_an_incomplete_key(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, EACH, 0);
    struct kp_launch l = launch_of(1, 1), never = launch_of(1, 2);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    (void)state;
    kp_rotation_find(r, &never, "kernel");
    count(k, p, 0, 5, NULL);
    count(k, p, 1, 0, "CUPTI failed");
    kp_rotation_end(r);
    assert_int_equal(t.n, 1);
    const struct kp_launch_info *info = &t.results[0].launch;
    assert_true(info->counted == 2 && info->groups == 2 && info->groups_counted == 1 && t.profiled[0]);
    const struct kp_metric *lacking = kp_result_find(&t.results[0], isfinite(number(hits)) ? misses : hits);
    assert_int_equal(lacking->kind, KP_VALUE_NA);
    assert_non_null(strstr(lacking->text, "1 of 2 groups, in 2 launches; CUPTI failed"));
    assert_true(number(duration) == 5);
    kp_plan_free(p);
}

static void test_a_group_that_fails(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1, 0);
    struct kp_launch l = launch_of(1, 1), later = launch_of(1, 2);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    (void)state;
    kp_rotation_failed(r, 0, NULL);
    kp_rotation_failed(r, 0, NULL);
    assert_true(kp_rotation_lacks(k, 0));
    kp_rotation_failed(r, 0, NULL);
    assert_false(kp_rotation_lacks(k, 0));
    assert_int_equal(kp_rotation_choose(r, k, 100), 1);
    kp_rotation_take(k, 1);
    assert_false(kp_rotation_lacks_any(k));
    assert_true(kp_rotation_passes(&l));
    kp_rotation_untake(k, 1); /* the driver refused the launch */
    assert_true(kp_rotation_lacks_any(k));
    assert_false(kp_rotation_passes(&l));
    struct kp_rotation_key *second = kp_rotation_find(r, &later, "kernel");
    kp_rotation_take(second, 1);
    assert_false(kp_rotation_lacks_any(second));
    kp_rotation_failed(r, 1, NULL);
    kp_rotation_failed(r, 1, NULL);
    kp_rotation_failed(r, 1, NULL);
    assert_false(kp_rotation_lacks_any(k) || kp_rotation_lacks_any(second));
    kp_rotation_end(r);
    assert_int_equal(t.n, 0);
    kp_plan_free(p);
}

/* ---- what is collected besides the counters ---- */

static const char samples[] = "smsp__pcsamp_sample_count", executed[] = "inst_executed",
                  stalls[] = "smsp__pcsamp_stalls";

enum { LISTS = 2, SAMPLES = LISTS, COUNTS }; /* groups behind the lists of new_plan */

static bool adds_up(void *of, size_t i)
{
    assert_ptr_equal(of, &t);
    return i == SAMPLES - LISTS;
}

static int set_missing(void *of, size_t i, const char *why, struct kp_result *r)
{
    const char *metric = i == SAMPLES - LISTS ? samples : executed;
    assert_ptr_equal(of, &t);
    return kp_result_find(r, metric) ? 0 : kp_result_set_na(r, metric, why);
}

/* As the real one, leaves alone what is n/a. */
static int derive(void *of, struct kp_result *r)
{
    const struct kp_metric *held = kp_result_find(r, executed);
    uint64_t sum = 0;
    assert_ptr_equal(of, &t);
    for (size_t c = 0; c < r->n_counts; c++) {
        const uint64_t *values = kp_code_counts_find(&r->counts[c], executed);
        sum += values ? values[0] : 0;
    }
    return !sum || (held && held->kind == KP_VALUE_NA) ? 0 : kp_result_set_count(r, executed, "inst", sum);
}

static const struct kp_rotation_extras extras = {
    .n = 2, .adds_up = adds_up, .is_first = adds_up, .missing = set_missing, .derive = derive, .of = &t};

/* A launch that counts an extra group, with this value at its one instruction. */
static void collect_extra(struct kp_rotation_key *k, size_t group, uint64_t value, const char *why)
{
    struct kp_result r = {.launch = {.profiler_ns = 10, .demangled = kp_strdup("kernel")}};
    assert_int_equal(kp_result_set_count(&r, "launch__grid_size", "", 5), 0);
    if (why) {
        assert_int_equal(set_missing(&t, group - LISTS, why, &r), 0);
    } else {
        struct kp_code_counts c = {.code = 1, .offsets = calloc(1, sizeof(*c.offsets)), .n_offsets = 1, .n_metrics = 1};
        c.metrics = calloc(1, sizeof(*c.metrics));
        assert_true(c.offsets && c.metrics);
        c.metrics->name = kp_strdup(group == SAMPLES ? stalls : executed);
        c.metrics->values = calloc(1, sizeof(*c.metrics->values));
        c.metrics->values[0] = value;
        assert_int_equal(kp_result_add_counts(&r, &c), 0);
        if (group == SAMPLES)
            assert_int_equal(kp_result_set_count(&r, samples, "", value), 0);
    }
    kp_rotation_take(k, group);
    kp_rotation_collect(k, group, &r, why);
    kp_result_free(&r);
}

static uint64_t counted_at(const struct kp_result *r, const char *metric)
{
    const uint64_t *values = r->n_counts == 1 ? kp_code_counts_find(&r->counts[0], metric) : NULL;
    return values ? values[0] : 0;
}

/* Samples are those of all launches, the rest is of one; none of them has the duration, which others tell. */
static void test_extras_are_groups(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, &extras, EACH, 0);
    struct kp_launch l = launch_of(1, 3);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    (void)state;
    assert_true(kp_rotation_extra_of(r, 0) == SIZE_MAX && kp_rotation_extra_of(r, COUNTS) == 1);
    assert_int_equal(kp_rotation_choose(r, k, 100), SAMPLES);
    for (int i = 0; i < EACH; i++)
        collect_extra(k, SAMPLES, 20 + (uint64_t)i, NULL);
    assert_false(kp_rotation_lacks(k, SAMPLES));
    assert_int_equal(kp_rotation_longest(r, COUNTS), 0);
    for (size_t g = 0; g < LISTS; g++)
        for (int i = 0; i < EACH; i++) {
            assert_int_equal(kp_rotation_choose(r, k, 100), g);
            count(k, p, g, 100 + 2 * i, NULL);
        }
    assert_int_equal(kp_rotation_longest(r, COUNTS), 102);
    assert_int_equal(kp_rotation_longest(r, SAMPLES), 0); /* no key lacks it */
    assert_true(kp_rotation_lacks_any(k) && kp_rotation_lacks(k, COUNTS) && !t.n);
    collect_extra(k, COUNTS, 32, NULL);
    assert_false(kp_rotation_lacks_any(k));
    assert_int_equal(t.n, 1);
    const struct kp_result *result = &t.results[0];
    assert_int_equal(result->launch.counted, 3 * EACH + 1);
    assert_true(result->launch.groups == 4 && result->launch.groups_counted == 4);
    assert_true(number(duration) == 101 && kp_result_find(result, duration)->counted == 2 * EACH);
    assert_true(number(hits) == 101 && number(samples) == 41 && number(executed) == 32);
    assert_true(counted_at(result, stalls) == 41 && counted_at(result, executed) == 32);
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* A function is sampled only if sampling has seen its first launch: that counts nothing else. */
static void test_the_first_launch_of_a_function(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, &extras, EACH, 0);
    struct kp_launch l = launch_of(1, 1), other_shape = launch_of(1, 2), other = launch_of(2, 1);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    (void)state;
    assert_true(kp_rotation_waits(k, 0) && kp_rotation_waits(k, COUNTS) && !kp_rotation_waits(k, SAMPLES));
    kp_rotation_take(k, SAMPLES);
    assert_false(kp_rotation_waits(k, 0));
    kp_rotation_untake(k, SAMPLES); /* the driver refused it */
    assert_true(kp_rotation_waits(k, 0));
    kp_rotation_take(k, SAMPLES);
    kp_rotation_take(k, SAMPLES);
    struct kp_rotation_key *same = kp_rotation_find(r, &other_shape, "kernel"),
                           *later = kp_rotation_find(r, &other, "x");
    assert_false(kp_rotation_waits(same, 0));
    assert_true(kp_rotation_waits(later, 0));
    assert_int_equal(kp_rotation_choose(r, same, 100), 0);
    assert_int_equal(kp_rotation_choose(r, later, 100), SAMPLES);
    for (int i = 0; i < 3; i++)
        kp_rotation_failed(r, SAMPLES, "no permission");
    assert_false(kp_rotation_waits(later, 0));
    assert_int_equal(kp_rotation_choose(r, later, 100), 0);
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* A launch that fails leaves its metrics to others. What none has collected has its reason. */
static void test_extras_that_fail(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, &extras, EACH, 0);
    struct kp_launch l = launch_of(1, 1), other = launch_of(2, 1), third = launch_of(3, 1);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    (void)state;
    collect_extra(k, SAMPLES, 0, "a buffer was full");
    collect_extra(k, SAMPLES, 7, NULL);
    kp_rotation_end(r);
    assert_true(t.n == 1 && number(samples) == 7 && t.results[0].launch.groups_counted == 1);
    assert_non_null(strstr(kp_result_find(&t.results[0], executed)->text, "1 of 4 groups, in 2 launches; a buffer"));
    r = kp_rotation_new(p, &extras, 1, 0);
    k = kp_rotation_find(r, &other, "kernel");
    for (int i = 0; i < 3; i++)
        kp_rotation_failed(r, COUNTS, "not on this chip");
    collect_extra(k, SAMPLES, 0, "a buffer was full");
    for (size_t g = 0; g < LISTS; g++)
        count(k, p, g, 5, NULL);
    assert_false(kp_rotation_lacks_any(k));
    kp_rotation_find(r, &third, "never counted");
    kp_rotation_end(r);
    assert_true(t.n == 2 && number(hits) == 5);
    assert_string_equal(kp_result_find(&t.results[1], executed)->text, "not on this chip");
    assert_non_null(strstr(kp_result_find(&t.results[1], samples)->text, "2 of 4 groups, in 3 launches; a buffer"));
    kp_plan_free(p);
}

/* ---- beside a replay ---- */

static const char heap[] = "uses the heap, not replayed", rate[] = "lts__t_sector_hit_rate.pct";

/* Lists that hold `hits` and `misses` apart, and compose `rate`. */
static struct kp_plan *mixing_plan(void)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), "GH100", NULL, 9, 0, NULL, 0,
                                  "lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum,"
                                  "lts__t_sector_hit_rate.pct",
                                  KP_PLAN_ROTATE, &p, &err),
                     0);
    return p;
}

/* A key whose first launch is entry 3 of the report, with a duration of 100 and a rate that its one list has counted.
 */
static struct kp_rotation_key *begun(struct kp_rotation *r, const struct kp_launch *l, bool profiled)
{
    struct kp_plan *quick = NULL;
    char *err = NULL;
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), "GH100", NULL, 9, 0, NULL, 0,
                                  "gpu__time_duration.sum,lts__t_sector_hit_rate.pct", 0, &quick, &err),
                     0);
    struct kp_rotation_key *k = kp_rotation_find(r, l, "_Z6kernelv");
    assert_true(kp_rotation_is_first(k));
    kp_rotation_take_first(k, heap);
    assert_false(kp_rotation_is_first(k));
    struct kp_result first = {
        .launch = {.profiler_ns = 5, .passes = 1, .ordinal = 9, .note = kp_strdup("other"), .node = 2}};
    assert_int_equal(kp_result_set_count(&first, "launch__grid_size", "", 5), 0);
    if (profiled) {
        assert_int_equal(kp_result_set_real(&first, duration, "ns", 100), 0);
        assert_int_equal(kp_result_set_real(&first, rate, "%", 42), 0);
    }
    kp_rotation_begin(k, quick, &first);
    kp_rotation_begun(k, &(struct kp_session_entry){.result = &first, .profiled = profiled, .id = 3});
    kp_result_free(&first);
    kp_plan_free(quick);
    return k;
}

static double replaced(const char *metric)
{
    double v = NAN;
    kp_metric_number(kp_result_find(&t.replaced, metric), &v);
    return v;
}

static void test_the_first_launch_is_an_entry(void **state)
{
    struct kp_rotation *r = kp_rotation_new_beside(EACH);
    struct kp_launch l = launch_of(1, 3);
    (void)state;
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    kp_rotation_take_first(k, heap);
    kp_rotation_untake_first(k); /* the driver refused it */
    assert_true(kp_rotation_is_first(k) && !kp_rotation_has_plan(r) && !kp_rotation_lacks_any(k));
    begun(r, &l, true);
    kp_rotation_end(r);
    assert_true(!t.n && !t.n_replaced && t.in_part); /* it stays as it is */
}

/* Each group is counted once before any is again; the entry has all of it by then, and the rest at the end. */
static void test_groups_take_turns_beside_a_replay(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new_beside(EACH);
    struct kp_launch l = launch_of(1, 3), other = launch_of(1, 4);
    struct kp_rotation_key *k = begun(r, &l, true);
    (void)state;
    assert_ptr_equal(kp_rotation_find(r, &l, "_Z6kernelv"), k);
    assert_int_equal(kp_rotation_set_plan(r, p, NULL), 0);
    assert_true(kp_rotation_has_plan(r) && kp_rotation_lacks_any(k));
    for (size_t g = 0; g < 2; g++) {
        assert_true(kp_rotation_lacks(k, g) && kp_rotation_expects(r, g, 100) && !t.n_replaced);
        assert_int_equal(kp_rotation_choose(r, k, 100), g);
        count(k, p, g, 102, NULL);
        assert_int_equal(kp_rotation_lacks(k, 0), g == 1);
    }
    assert_int_equal(t.n_replaced, 1);
    const struct kp_launch_info *info = &t.replaced.launch;
    assert_true(info->id == 3 && info->alike == 2 && info->counted == 3 && info->groups == 3 &&
                info->groups_counted == 3);
    assert_true(info->passes == 3 && info->profiler_ns == 25 && info->ordinal == 9 && !info->node);
    assert_true(t.told.counted == 1 && t.told.passes == 1 && t.told.profiler_ns == 5);
    assert_string_equal(info->note, heap);
    assert_string_equal(t.base, "kernel");
    assert_true(fabs(replaced(duration) - 304.0 / 3) < 1e-9 && replaced(hits) == 102 && replaced(rate) == 42);
    assert_int_equal(kp_result_find(&t.replaced, duration)->counted, 3);
    assert_int_equal(kp_result_find(&t.replaced, rate)->counted, 1);
    /* A key that comes later has groups, too. */
    assert_true(kp_rotation_is_first(kp_rotation_find(r, &other, "_Z6kernelv")));
    assert_true(kp_rotation_lacks_any(kp_rotation_find(r, &other, "_Z6kernelv")));
    kp_rotation_take(k, 1);
    kp_rotation_untake(k, 1);
    count(k, p, 1, 104, NULL);
    assert_int_equal(t.n_replaced, 1);
    count(k, p, 0, 104, NULL);
    assert_false(kp_rotation_lacks_any(k));
    assert_true(t.n_replaced == 2 && t.told.counted == 3 && replaced(hits) == 103);
    kp_rotation_find(r, &l, "_Z6kernelv");
    kp_rotation_end(r);
    assert_true(t.n_replaced == 2 && !t.n && !t.in_part);
    assert_int_equal(t.alike[3], 3);
    kp_plan_free(p);
}

/* What is incomplete is told at the end. What the first launch has counted stays where the groups have no value for it.
 */
static void test_an_entry_that_stays_incomplete(void **state)
{
    struct kp_plan *p = mixing_plan();
    for (int differ = 0; differ < 2; differ++) {
        struct kp_rotation *r = kp_rotation_new_beside(EACH);
        struct kp_launch l = launch_of(1, 3);
        struct kp_rotation_key *k = begun(r, &l, true);
        assert_int_equal(kp_rotation_set_plan(r, p, NULL), 0);
        for (size_t g = 0; g < (differ ? p->n_groups : 1); g++)
            count(k, p, g, differ ? 1000 : 102, NULL);
        kp_rotation_end(r);
        assert_true(replaced(rate) == 42);
        assert_int_equal(t.replaced.launch.groups_counted, (differ ? p->n_groups : 1) + 1);
        assert_int_equal(t.in_part, !differ);
        bool has_hits = isfinite(replaced(hits)), has_misses = isfinite(replaced(misses));
        assert_true(differ ? has_hits && has_misses : has_hits != has_misses);
        const struct kp_metric *lacking = kp_result_find(&t.replaced, has_hits ? misses : hits);
        assert_true(differ || strstr(lacking->text, "reached: 2 of 4 groups, in 2 launches"));
        reset(state);
    }
    kp_plan_free(p);
}

/* The entry has them each time that it is told; its first launch was counted otherwise. */
static void test_extras_beside_a_replay(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new_beside(EACH);
    struct kp_launch l = launch_of(1, 3);
    struct kp_rotation_key *k = begun(r, &l, true);
    (void)state;
    assert_int_equal(kp_rotation_set_plan(r, p, &extras), 0);
    assert_false(kp_rotation_waits(k, 0));
    for (size_t g = 0; g < LISTS; g++)
        count(k, p, g, 102, NULL);
    for (size_t g = SAMPLES; g <= COUNTS; g++) {
        assert_true(kp_rotation_choose(r, k, 100) == g && !t.n_replaced);
        collect_extra(k, g, 10, NULL);
    }
    assert_true(t.n_replaced == 1 && t.replaced.launch.groups == 5 && t.replaced.launch.groups_counted == 5);
    assert_true(counted_at(&t.replaced, stalls) == 10 && replaced(executed) == 10);
    for (size_t g = 0; g <= SAMPLES; g++)
        g < LISTS ? count(k, p, g, 102, NULL) : collect_extra(k, g, 10, NULL);
    assert_false(kp_rotation_lacks_any(k));
    assert_int_equal(t.n_replaced, 2);
    assert_true(counted_at(&t.replaced, stalls) == 20 && replaced(samples) == 20 && replaced(executed) == 10);
    kp_rotation_end(r);
    assert_true(t.n_replaced == 2 && !t.in_part);
    kp_plan_free(p);
}

/* Where the first launch has no counters, the others give the entry what they have. */
static void test_a_first_launch_without_counters(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new_beside(1);
    struct kp_launch l = launch_of(1, 3);
    struct kp_rotation_key *k = begun(r, &l, false);
    (void)state;
    assert_int_equal(kp_rotation_set_plan(r, p, NULL), 0);
    count(k, p, 0, 1, NULL);
    count(k, p, 1, 3, NULL);
    const struct kp_launch_info *info = &t.replaced.launch;
    assert_true(info->counted == 2 && info->groups == 2 && info->groups_counted == 2 && t.told.counted == 0);
    assert_true(replaced(duration) == 2);
    kp_rotation_end(r);
    assert_true(t.n_replaced == 1 && !t.n && !t.in_part);
    kp_plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_key_walks_through_all_groups, reset),
        cmocka_unit_test_teardown(test_keys_differ, reset),
        cmocka_unit_test_teardown(test_ranks_begin_apart, reset),
        cmocka_unit_test_teardown(test_the_next_group, reset),
        cmocka_unit_test_teardown(test_keys_that_come_soon, reset),
        cmocka_unit_test_teardown(test_launches_that_differ, reset),
        cmocka_unit_test_teardown(test_the_time_is_over, reset),
        cmocka_unit_test_teardown(test_an_incomplete_key, reset),
        cmocka_unit_test_teardown(test_a_group_that_fails, reset),
        cmocka_unit_test_teardown(test_extras_are_groups, reset),
        cmocka_unit_test_teardown(test_the_first_launch_of_a_function, reset),
        cmocka_unit_test_teardown(test_extras_that_fail, reset),
        cmocka_unit_test_teardown(test_extras_beside_a_replay, reset),
        cmocka_unit_test_teardown(test_the_first_launch_is_an_entry, reset),
        cmocka_unit_test_teardown(test_groups_take_turns_beside_a_replay, reset),
        cmocka_unit_test_teardown(test_an_entry_that_stays_incomplete, reset),
        cmocka_unit_test_teardown(test_a_first_launch_without_counters, reset),
    };
    return cmocka_run_group_tests_name("rotation", tests, NULL, NULL);
}
