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
    assert_true(id < t.n);
    t.alike[id] = alike;
}

void kp_session_warn_once(const char *text)
{
    fail_msg("%s", text);
}

static int reset(void **state)
{
    (void)state;
    for (size_t i = 0; i < t.n; i++)
        kp_result_free(&t.results[i]);
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
    struct kp_rotation *r = kp_rotation_new(p, EACH, 0);
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
    struct kp_rotation *r = kp_rotation_new(p, 1, 0);
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
    struct kp_rotation *second = kp_rotation_new(p, 1, 0);
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
        struct kp_rotation *r = kp_rotation_new(p, 1, 0);
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
    struct kp_rotation *r = kp_rotation_new(p, 1, 0);
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
    struct kp_rotation *r = kp_rotation_new(p, 1, 0);
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
    struct kp_rotation *r = kp_rotation_new(p, each, 0);
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
    struct kp_rotation *r = kp_rotation_new(p, 1, 1), *endless = NULL;
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
    endless = kp_rotation_new(p, 1, 0);
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
    struct kp_rotation *r = kp_rotation_new(p, EACH, 0);
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
    struct kp_rotation *r = kp_rotation_new(p, 1, 0);
    struct kp_launch l = launch_of(1, 1), later = launch_of(1, 2);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, "kernel");
    (void)state;
    kp_rotation_failed(r, 0);
    kp_rotation_failed(r, 0);
    assert_true(kp_rotation_lacks(k, 0));
    kp_rotation_failed(r, 0);
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
    kp_rotation_failed(r, 1);
    kp_rotation_failed(r, 1);
    kp_rotation_failed(r, 1);
    assert_false(kp_rotation_lacks_any(k) || kp_rotation_lacks_any(second));
    kp_rotation_end(r);
    assert_int_equal(t.n, 0);
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
    };
    return cmocka_run_group_tests_name("rotation", tests, NULL, NULL);
}
