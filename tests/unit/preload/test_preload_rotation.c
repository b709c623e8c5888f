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
#include <unistd.h>

#include "preload/os/outcome.h"
#include "preload/rotation/rotation.h"
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

static uint64_t skipped;

void kp_session_lacks(const char *base, uint64_t shapes)
{
    (void)base, (void)shapes;
}

void kp_session_skip(enum kp_reason reason, uint64_t launches)
{
    assert_true(reason);
    skipped += launches;
}

void kp_session_alike(const struct kp_launch_info *l)
{
    assert_true(l->id < MOST);
    t.alike[l->id] = l->alike;
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

/* A kernel without arguments. */
static const struct kp_function *named(const char *name)
{
    static char names[4][32];
    static struct kp_function of[4];
    static unsigned at;
    at = (at + 1) % 4;
    snprintf(names[at], sizeof(names[at]), "%s", name);
    of[at] = (struct kp_function){.mangled = names[at]};
    return &of[at];
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
    kp_rotation_collect(k, group, false, &r, kp_why_of(why ? KP_REASON_NOT_STARTED : KP_REASON_NONE, (char *)why));
    kp_result_free(&r);
}

static double number(const char *metric)
{
    double v = NAN;
    assert_true(t.n > 0);
    kp_metric_number(kp_result_find(&t.results[t.n - 1], metric), &v);
    return v;
}

/* A window for one latecomer of nine keys waits until the last window was a tenth of the time. One for all of them, for
 * another where all launches of a window count, or behind a window that took nothing, does not. */
static void test_latecomers_wait(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
    struct kp_rotation_key *k[9];
    const uint64_t hour = 3600000000000;
    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        struct kp_launch l = launch_of(16, i + 1);
        k[i] = kp_rotation_find(r, &l, named("kernel"));
    }
    kp_rotation_counts(r, 0, true);
    kp_rotation_spent(r, hour);
    assert_false(kp_rotation_rests(r));
    for (unsigned i = 1; i < 9; i++)
        for (size_t g = 0; g < p->n_groups; g++)
            kp_rotation_take(k[i], g);
    assert_true(kp_rotation_rests(r));
    /* One that is only timed lacks what no window counts. */
    struct kp_launch l = launch_of(17, 1);
    kp_rotation_apart(kp_rotation_find(r, &l, named("collective")), KP_REASON_ONLY_TIMED);
    assert_true(kp_rotation_rests(r));
    kp_rotation_counts(r, 0, false);
    assert_false(kp_rotation_rests(r));
    kp_rotation_counts(r, 0, true);
    kp_rotation_spent(r, 0);
    assert_false(kp_rotation_rests(r));
    kp_rotation_spent(r, 1000000);
    assert_true(kp_rotation_rests(r));
    usleep(11000);
    assert_false(kp_rotation_rests(r));
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* ---- tests ---- */

static void test_a_key_walks_through_all_groups(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, EACH);
    struct kp_launch l = launch_of(1, 3);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    (void)state;
    for (size_t g = 0; g < 2; g++)
        for (int i = 0; i < EACH; i++) {
            assert_true(kp_rotation_lacks_any(k) && kp_rotation_lacks(k, g) && !t.n);
            assert_true(kp_rotation_expects(r, g, 100));
            assert_false(kp_rotation_passes(&l, false));
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
        assert_true(kp_rotation_passes(&l, false));
    kp_rotation_end(r);
    assert_int_equal(t.alike[0], 6);
    assert_false(kp_rotation_passes(&l, false));
    kp_plan_free(p);
}

static void test_keys_differ(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
    struct kp_launch l = launch_of(1, 3), other_grid = launch_of(1, 4), other_handle = launch_of(2, 3), shared = l;
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    (void)state;
    shared.shape.dynamic_shared = 16;
    assert_ptr_not_equal(kp_rotation_find(r, &other_grid, named("kernel")), k);
    assert_ptr_not_equal(kp_rotation_find(r, &shared, named("kernel")), k);
    assert_ptr_not_equal(kp_rotation_find(r, &other_handle, named("other")), k);
    /* The same kernel by another handle, loaded again, is the same key. */
    struct kp_launch again = launch_of(3, 3);
    assert_ptr_equal(kp_rotation_find(r, &again, named("kernel")), k);
    count(k, p, 0, 1, NULL);
    count(k, p, 1, 1, NULL);
    assert_true(kp_rotation_passes(&l, false) && kp_rotation_passes(&again, false));
    assert_int_equal(kp_rotation_passes(&l, false), KP_REASON_ROTATED);
    assert_false(kp_rotation_passes(&other_grid, false) || kp_rotation_passes(&shared, false) ||
                 kp_rotation_passes(&other_handle, false));
    /* After an unload, a handle may be another function. */
    kp_rotation_forget();
    assert_false(kp_rotation_passes(&l, false));
    assert_ptr_equal(kp_rotation_find(r, &l, named("kernel")), k);
    assert_true(kp_rotation_passes(&l, false));
    /* With a second context, a handle does not tell the key. */
    struct kp_rotation *second = kp_rotation_new(p, NULL, 1);
    assert_false(kp_rotation_passes(&l, false));
    kp_rotation_end(second);
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* Puts the launch into a range of thread 5 inside of those that it is in. */
static void enter(struct kp_launch *l, uint64_t thread, enum kp_nvtx_kind kind, const char *domain, const char *name)
{
    l->nvtx.thread = 5;
    assert_int_equal(kp_nvtx_add(&l->nvtx, &(struct kp_nvtx_range){.kind = kind,
                                                                   .domain = (char *)domain,
                                                                   .name = (char *)name,
                                                                   .category = "",
                                                                   .payload = "7",
                                                                   .thread = thread}),
                     0);
}

/* A launch in two ranges; *l is to be freed. */
static struct kp_rotation_key *find_in(struct kp_rotation *r, struct kp_launch *l, const char *outer, const char *inner)
{
    *l = launch_of(1, 3);
    enter(l, 5, KP_NVTX_PUSH_POP, "", outer);
    enter(l, 5, KP_NVTX_PUSH_POP, "", inner);
    return kp_rotation_find(r, l, named("kernel"));
}

/* On request launches in other NVTX ranges are of another key. Numbers of steps do not count, nor do ranges that
 * are not of the thread. */
static void test_keys_by_path(void **state)
{
    static const struct {
        const char *outer, *inner;
        bool same;
    } cases[] = {
        {"step 17", "forward", true},     {"step 3", "forward", true},    {"step 3", "backward", false},
        {"step", "forward", false},       {"forward", "step 3", false},   {"step 3f", "orward", false},
        {"step three", "forward", false}, {"step 3", "forward2d", false}, {"step #", "forward", false},
        {"step 3", "forward1", false},
    };
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
    struct kp_launch first, l, nowhere = launch_of(1, 3);
    (void)state;
    assert_ptr_equal(find_in(r, &first, "step 3", "forward"), kp_rotation_find(r, &nowhere, named("kernel")));
    kp_launch_free(&first);
    kp_rotation_end(r);
    kp_rotation_by_path(true);
    r = kp_rotation_new(p, NULL, 1);
    struct kp_rotation_key *k = find_in(r, &first, "step 0", "forward");
    assert_ptr_not_equal(kp_rotation_find(r, &nowhere, named("kernel")), k);
    count(k, p, 0, 1, NULL);
    count(k, p, 1, 1, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bool same = find_in(r, &l, cases[i].outer, cases[i].inner) == k;
        if (same != cases[i].same || !kp_rotation_passes(&l, false) == same)
            fail_msg("%s / %s", cases[i].outer, cases[i].inner);
        kp_launch_free(&l);
    }
    enter(&first, 6, KP_NVTX_PUSH_POP, "", "of another thread");
    enter(&first, 5, KP_NVTX_START_END, "", "epoch");
    assert_ptr_equal(kp_rotation_find(r, &first, named("kernel")), k);
    assert_non_null(kp_rotation_passes(&first, false));
    enter(&first, 5, KP_NVTX_PUSH_POP, "io", "forward");
    assert_ptr_not_equal(kp_rotation_find(r, &first, named("kernel")), k);
    kp_launch_free(&first);
    kp_rotation_end(r);
    kp_rotation_by_path(false);
    kp_plan_free(p);
}

/* Lets launches in those ranges count all groups. Returns the entry that they become. */
static const struct kp_launch_info *counted_in(struct kp_rotation *r, const struct kp_plan *p, struct kp_launch *l)
{
    struct kp_rotation_key *k = kp_rotation_find(r, l, named("kernel"));
    for (size_t g = 0; g < 2; g++) {
        struct kp_result one = {.launch = {.groups = 0}};
        one.launch.nvtx = l->nvtx;
        l->nvtx = (struct kp_nvtx){.ranges = NULL};
        kp_rotation_take(k, g);
        kp_rotation_collect(k, g, false, &one, kp_why_of(KP_REASON_NONE, NULL));
        kp_result_free(&one);
    }
    (void)p;
    return &t.results[t.n - 1].launch;
}

/* An entry has its path, in place of all that was open around its first launch, and says so. */
static void test_an_entry_of_a_path(void **state)
{
    struct kp_plan *p = new_plan();
    kp_rotation_by_path(true);
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
    struct kp_launch l = launch_of(1, 3), nowhere = launch_of(1, 3), one = launch_of(1, 3);
    (void)state;
    enter(&l, 5, KP_NVTX_PUSH_POP, "", "step 12");
    enter(&l, 5, KP_NVTX_PUSH_POP, "io", "conv2d_7\n");
    enter(&l, 5, KP_NVTX_PUSH_POP, "", "");
    enter(&l, 6, KP_NVTX_PUSH_POP, "", "of another thread");
    enter(&l, 5, KP_NVTX_START_END, "", "epoch 1");
    enter(&one, 5, KP_NVTX_PUSH_POP, "", "forward");
    const struct kp_launch_info *info = counted_in(r, p, &l);
    assert_string_equal(info->note,
                        "the launches in the NVTX ranges step # / io@conv2d_#  / (no name) (#: any number)");
    assert_true(info->nvtx.n_ranges == 3 && info->nvtx.thread == 5);
    assert_string_equal(info->nvtx.ranges[0].name, "step #");
    assert_string_equal(info->nvtx.ranges[1].domain, "io");
    assert_string_equal(info->nvtx.ranges[1].payload, "");
    assert_string_equal(counted_in(r, p, &nowhere)->note, "the launches in no NVTX range");
    assert_string_equal(counted_in(r, p, &one)->note, "the launches in the NVTX range forward");
    kp_rotation_end(r);
    kp_rotation_by_path(false);
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
        struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
        unsetenv("RANK");
        struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
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
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
    struct kp_launch l[3] = {launch_of(1, 1), launch_of(1, 2), launch_of(1, 3)};
    struct kp_rotation_key *k[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        k[i] = kp_rotation_find(r, &l[i], named("kernel"));
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
        kp_rotation_find(r, &l[1], named("kernel"));
    assert_false(kp_rotation_expects(r, 0, 100));
    assert_true(kp_rotation_expects(r, 1, 100));
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* Lists that share an image come in turn: the next one is chosen before one that others must be passed over for. */
static void test_groups_in_turn(void **state)
{
    enum { LISTS = 5 };
    uint8_t image[] = {1, 2, 3}, other[] = {4, 5, 6};
    struct kp_config lists[LISTS];
    struct kp_plan p = {.groups = lists, .n_groups = LISTS};
    struct kp_launch l[2] = {launch_of(1, 1), launch_of(1, 2)};
    (void)state;
    for (size_t i = 0; i < LISTS; i++)
        lists[i] = (struct kp_config){.image = image, .size = 3, .passes = 1, .turn = i, .turns = LISTS};
    struct kp_rotation *r = kp_rotation_new(&p, NULL, 1);
    struct kp_rotation_key *k[2] = {kp_rotation_find(r, &l[0], named("kernel")),
                                    kp_rotation_find(r, &l[1], named("kernel"))};
    assert_int_equal(kp_rotation_choose(r, k[0], 100), 0);
    kp_rotation_counts(r, 3, false);
    assert_int_equal(kp_rotation_choose(r, k[0], 100), 4);
    kp_rotation_counts(r, 4, false);
    assert_int_equal(kp_rotation_choose(r, k[0], 100), 0);
    kp_rotation_take(k[1], 0); /* twice as many keys for a list that is one further */
    assert_int_equal(kp_rotation_choose(r, k[0], 100), 1);
    kp_rotation_take(k[1], 1);
    kp_rotation_take(k[1], 2);
    kp_rotation_take(k[1], 3);
    assert_int_equal(kp_rotation_choose(r, k[0], 10), 0); /* not where four are passed over */
    lists[0].image = other;                               /* nor where the profiler is enabled anew */
    assert_int_equal(kp_rotation_choose(r, k[0], 10), 1);
    kp_rotation_end(r);
}

/* Shapes of a kernel that come once each are not worth a window from the fifth on, unless they come again. */
static void test_fleeting_shapes(void **state)
{
    enum { SHAPES = 4, LONG = 1025 };
    struct kp_plan *p = new_plan();
    struct kp_launch often = launch_of(1, 1);
    (void)state;
    for (int enough = 0; enough < 2; enough++) {
        struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
        struct kp_rotation_key *k = NULL;
        for (unsigned i = 0; i < SHAPES - 1u + enough; i++) {
            struct kp_launch l = launch_of(2, 10 + i);
            k = kp_rotation_find(r, &l, named("grows"));
            assert_false(kp_rotation_is_fleeting(k));
        }
        for (int i = 0; i < LONG; i++)
            k = kp_rotation_find(r, &often, named("kernel"));
        count(k, p, 0, 1, NULL);
        count(k, p, 1, 1, NULL);
        assert_true(kp_rotation_expects(r, 0, 100)); /* those that came once: their shapes may come again */
        struct kp_launch next = launch_of(2, 99), other = launch_of(3, 99);
        k = kp_rotation_find(r, &next, named("grows"));
        assert_true(kp_rotation_is_fleeting(k) == enough);
        assert_false(kp_rotation_is_fleeting(kp_rotation_find(r, &other, named("another"))));
        assert_false(kp_rotation_is_fleeting(kp_rotation_find(r, &next, named("grows")))); /* as often as groups */
        kp_rotation_end(r);
        reset(NULL);
    }
    kp_plan_free(p);
}

/* Keys come as they came before: the next group is for those that come soon, and a window waits for no others. */
static void test_keys_that_come_soon(void **state)
{
    enum { OFTEN = 200, STEP = OFTEN + 2 };
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
    struct kp_launch often = launch_of(1, 1), early = launch_of(1, 2), late = launch_of(1, 3), once = launch_of(1, 4);
    struct kp_rotation_key *k[3] = {kp_rotation_find(r, &often, named("kernel")), NULL, NULL};
    (void)state;
    for (int step = 0; step < 2; step++) {
        k[1] = kp_rotation_find(r, &early, named("kernel"));
        for (int i = 0; i < OFTEN; i++)
            kp_rotation_find(r, &often, named("kernel"));
        k[2] = kp_rotation_find(r, &late, named("kernel"));
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
        assert_true(kp_rotation_passes(&often, false));
    assert_true(kp_rotation_expects(r, 0, 10));
    assert_false(kp_rotation_expects(r, 0, 9));
    for (int i = 0; i < STEP + 10; i++)
        assert_true(kp_rotation_passes(&often, false));
    assert_true(kp_rotation_expects(r, 0, 1));
    assert_true(kp_rotation_passes(&often, false));
    assert_false(kp_rotation_expects(r, 0, STEP));
    /* Of one that came once nothing is known. */
    kp_rotation_find(r, &once, named("kernel"));
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
    struct kp_rotation *r = kp_rotation_new(p, NULL, each);
    struct kp_launch l = launch_of(1, 1);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    for (size_t g = 0; g < p->n_groups; g++)
        for (size_t e = 0; e < each; e++) {
            struct kp_result counted = {.launch = {.demangled = kp_strdup("kernel")}};
            for (size_t i = 0; i < p->groups[g].n_names; i++) {
                const char *name = p->groups[g].names[i];
                double value = strcmp(name, duration) == 0 ? durations[e] : strstr(name, "hit") ? 50 : 100;
                assert_int_equal(kp_result_set_real(&counted, name, "", value), 0);
            }
            kp_rotation_take(k, g);
            kp_rotation_collect(k, g, false, &counted, kp_why_of(KP_REASON_NONE, NULL));
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

/* At the end, what is incomplete is reported with what there is, and with the reason for the rest. */
static void test_an_incomplete_key(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, EACH);
    struct kp_launch l = launch_of(1, 1), never = launch_of(1, 2);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    (void)state;
    kp_rotation_find(r, &never, named("kernel"));
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
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
    struct kp_launch l = launch_of(1, 1), later = launch_of(1, 2);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    (void)state;
    kp_rotation_failed(r, 0, kp_why_of(KP_REASON_NONE, NULL));
    kp_rotation_failed(r, 0, kp_why_of(KP_REASON_NONE, NULL));
    assert_true(kp_rotation_lacks(k, 0));
    kp_rotation_failed(r, 0, kp_why_of(KP_REASON_NONE, NULL));
    assert_false(kp_rotation_lacks(k, 0));
    assert_int_equal(kp_rotation_choose(r, k, 100), 1);
    kp_rotation_take(k, 1);
    assert_false(kp_rotation_lacks_any(k));
    assert_true(kp_rotation_passes(&l, false));
    kp_rotation_untake(k, 1); /* the driver refused the launch */
    assert_true(kp_rotation_lacks_any(k));
    assert_false(kp_rotation_passes(&l, false));
    struct kp_rotation_key *second = kp_rotation_find(r, &later, named("kernel"));
    kp_rotation_take(second, 1);
    assert_false(kp_rotation_lacks_any(second));
    kp_rotation_failed(r, 1, kp_why_of(KP_REASON_NONE, NULL));
    kp_rotation_failed(r, 1, kp_why_of(KP_REASON_NONE, NULL));
    kp_rotation_failed(r, 1, kp_why_of(KP_REASON_NONE, NULL));
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

static int set_missing(void *of, size_t i, struct kp_why why, struct kp_result *r)
{
    const char *metric = i == SAMPLES - LISTS ? samples : executed;
    assert_ptr_equal(of, &t);
    return kp_result_find(r, metric) ? 0 : kp_result_set_why(r, metric, why);
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

static bool none_adds_up(void *of, size_t i)
{
    (void)of, (void)i;
    return false;
}

static const struct kp_rotation_extras extras = {
    .n = 2, .adds_up = adds_up, .missing = set_missing, .derive = derive, .of = &t};

/* A launch that counts an extra group, with this value at its one instruction. */
static void collect_extra(struct kp_rotation_key *k, size_t group, uint64_t value, const char *why)
{
    struct kp_result r = {.launch = {.profiler_ns = 10, .demangled = kp_strdup("kernel")}};
    assert_int_equal(kp_result_set_count(&r, "launch__grid_size", "", 5), 0);
    if (why) {
        assert_int_equal(set_missing(&t, group - LISTS, kp_why_of(KP_REASON_NOT_STARTED, (char *)why), &r), 0);
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
    kp_rotation_collect(k, group, false, &r, kp_why_of(why ? KP_REASON_NOT_STARTED : KP_REASON_NONE, (char *)why));
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
    struct kp_rotation *r = kp_rotation_new(p, &extras, EACH);
    struct kp_launch l = launch_of(1, 3);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    (void)state;
    assert_true(kp_rotation_extra_of(r, 0) == SIZE_MAX && kp_rotation_extra_of(r, COUNTS) == 1);
    assert_int_equal(kp_rotation_choose(r, k, 100), 0);
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

/* A launch that fails leaves its metrics to others. What none has collected has its reason. */
static void test_extras_that_fail(void **state)
{
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, &extras, EACH);
    struct kp_launch l = launch_of(1, 1), other = launch_of(2, 1), third = launch_of(3, 1);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    (void)state;
    collect_extra(k, SAMPLES, 0, "a buffer was full");
    collect_extra(k, SAMPLES, 7, NULL);
    kp_rotation_end(r);
    assert_true(t.n == 1 && number(samples) == 7 && t.results[0].launch.groups_counted == 1);
    assert_non_null(strstr(kp_result_find(&t.results[0], executed)->text, "1 of 4 groups, in 2 launches; a buffer"));
    r = kp_rotation_new(p, &extras, 1);
    k = kp_rotation_find(r, &other, named("kernel"));
    for (int i = 0; i < 3; i++)
        kp_rotation_failed(r, COUNTS, kp_why_of(KP_REASON_NOT_OFFERED, (char *)"not on this chip"));
    collect_extra(k, SAMPLES, 0, "a buffer was full");
    for (size_t g = 0; g < LISTS; g++)
        count(k, p, g, 5, NULL);
    assert_false(kp_rotation_lacks_any(k));
    kp_rotation_find(r, &third, named("never counted"));
    kp_rotation_end(r);
    assert_true(t.n == 2 && number(hits) == 5);
    assert_string_equal(kp_result_find(&t.results[1], executed)->text, "not on this chip");
    assert_non_null(strstr(kp_result_find(&t.results[1], samples)->text, "2 of 4 groups, in 3 launches; a buffer"));
    kp_plan_free(p);
}

/* Launches that nothing may wait for lack no group but their times, ten of which are wanted. */
static void test_launches_that_are_timed(void **state)
{
    const enum kp_reason apart = KP_REASON_ONLY_TIMED;
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, &extras, EACH);
    struct kp_launch l = launch_of(1, 3);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    const size_t timed = kp_rotation_timed(r);
    (void)state;
    for (int again = 0; again < 2; again++)
        kp_rotation_apart(k, apart);
    for (size_t g = 0; g < timed; g++)
        assert_false(kp_rotation_lacks(k, g));
    assert_true(kp_rotation_lacks_any(k) && kp_rotation_lacks(k, timed));
    /* The first, and few others until nothing else is counted: their times are forgotten when those of others come. */
    struct kp_launch counted = launch_of(2, 3);
    struct kp_rotation_key *other = kp_rotation_find(r, &counted, named("counted"));
    bool quiet = true;
    assert_true(kp_rotation_times(k, &quiet) && !quiet);
    for (unsigned n = 2; n <= 300; n++) {
        kp_rotation_find(r, &counted, named("counted"));
        assert_ptr_equal(kp_rotation_find(r, &l, named("kernel")), k);
        assert_int_equal(kp_rotation_times(k, &quiet), n == 128 || n == 256);
        assert_false(quiet);
    }
    for (unsigned i = 0; i < 10; i++) {
        struct kp_result one = {.launch = {.profiler_ns = 0, .demangled = kp_strdup("kernel")}};
        assert_int_equal(kp_result_set_real(&one, duration, "ns", i < 3 ? 5000 : 100 + 10 * i), 0);
        if (i == 3)
            for (size_t g = 0; g < timed; g++)
                for (unsigned n = 0; n < EACH; n++)
                    kp_rotation_take(other, g);
        assert_true(!t.n && kp_rotation_lacks(k, timed));
        assert_int_equal(kp_rotation_times(k, &quiet), i >= 3);
        assert_int_equal(quiet, i >= 3);
        kp_rotation_take(k, timed);
        kp_rotation_collect(k, timed, i >= 3, &one, kp_why_of(KP_REASON_NONE, NULL));
        kp_result_free(&one);
    }
    assert_true(!kp_rotation_lacks_any(k) && t.n == 1);
    const struct kp_launch_info *info = &t.results[0].launch;
    assert_true(info->groups == 1 && info->groups_counted == 1 && info->counted == 7 && !info->passes);
    assert_int_equal(info->reason, apart);
    assert_string_equal(info->note, kp_reason_text(apart));
    assert_true(number(duration) == 160 && kp_result_find(&t.results[0], duration)->counted == 7);
    assert_int_equal(skipped, 3); /* the account has those that were forgotten */
    assert_string_equal(kp_result_find(&t.results[0], hits)->text, kp_reason_text(apart));
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* ---- windows that choose their launches ---- */

/* Launches of another key pass. */
static void let_by(struct kp_rotation *r, unsigned n)
{
    struct kp_launch l = launch_of(77, 1);
    for (unsigned i = 0; i < n; i++)
        kp_rotation_find(r, &l, named("another"));
}

/* A rotation of one group, which launches of the other key have counted. */
static struct kp_rotation *rotation_of_one(struct kp_plan *p, struct kp_config *list)
{
    static uint8_t image[] = {1};
    *list = (struct kp_config){.image = image, .size = sizeof(image), .passes = 1};
    *p = (struct kp_plan){.groups = list, .n_groups = 1};
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
    struct kp_launch l = launch_of(77, 1);
    kp_rotation_take(kp_rotation_find(r, &l, named("another")), 0);
    return r;
}

/* A window waits far for keys alone of which it is known when they come. */
static void test_keys_that_are_awaited(void **state)
{
    struct kp_config list;
    struct kp_plan p;
    struct kp_rotation *r = rotation_of_one(&p, &list);
    struct kp_launch l = launch_of(1, 1);
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    (void)state;
    assert_true(kp_rotation_expects(r, 0, 1000) && !kp_rotation_awaits(r, 0, 1000)); /* it came once */
    let_by(r, 99);
    kp_rotation_find(r, &l, named("kernel"));
    assert_true(kp_rotation_awaits(r, 0, 100));
    assert_false(kp_rotation_awaits(r, 0, 99));
    let_by(r, 1);
    assert_true(kp_rotation_awaits(r, 0, 99));
    kp_rotation_take(k, 0);
    assert_false(kp_rotation_awaits(r, 0, 1000));
    kp_rotation_untake(k, 0);
    let_by(r, 199);
    assert_true(kp_rotation_awaits(r, 0, 1));
    let_by(r, 1); /* late by as much again */
    assert_false(kp_rotation_awaits(r, 0, 1000));
    kp_rotation_end(r);
}

/* A key whose launches are not evenly spaced comes as soon as the nearest of its last and its mean distance, and is
 * late by the farthest. */
static void test_keys_with_gaps_that_differ(void **state)
{
    static const struct {
        unsigned gaps[2], soonest, latest;
    } rows[] = {{{190, 10}, 10, 100}, {{10, 190}, 100, 190}, {{50, 50}, 50, 50}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_config list;
        struct kp_plan p;
        struct kp_rotation *r = rotation_of_one(&p, &list);
        struct kp_launch l = launch_of(1, 1);
        kp_rotation_find(r, &l, named("kernel"));
        for (size_t g = 0; g < 2; g++) {
            let_by(r, rows[i].gaps[g] - 1);
            kp_rotation_find(r, &l, named("kernel"));
        }
        assert_true(kp_rotation_expects(r, 0, rows[i].soonest));
        assert_false(kp_rotation_expects(r, 0, rows[i].soonest - 1));
        assert_int_equal(kp_rotation_demand(r, 0, rows[i].soonest), 1);
        let_by(r, 2 * rows[i].latest);
        assert_true(kp_rotation_expects(r, 0, 1));
        let_by(r, 1);
        assert_false(kp_rotation_expects(r, 0, 1000));
        kp_rotation_end(r);
    }
}

/* The profiler stays while something comes that lacks a group. */
static void test_a_rotation_goes_on(void **state)
{
    struct kp_config list;
    struct kp_plan p;
    struct kp_rotation *r = rotation_of_one(&p, &list);
    struct kp_launch l = launch_of(1, 1);
    (void)state;
    assert_false(kp_rotation_goes_on(r, 1000));
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    assert_true(kp_rotation_goes_on(r, 50)); /* it may come again */
    let_by(r, 49);
    assert_true(kp_rotation_goes_on(r, 50));
    let_by(r, 1);
    assert_false(kp_rotation_goes_on(r, 50));
    let_by(r, 49);
    kp_rotation_find(r, &l, named("kernel")); /* 100 behind its first */
    assert_true(kp_rotation_goes_on(r, 100));
    assert_false(kp_rotation_goes_on(r, 99));
    let_by(r, 200);
    assert_true(kp_rotation_goes_on(r, 1));
    let_by(r, 1);
    assert_false(kp_rotation_goes_on(r, 1000));
    kp_rotation_find(r, &l, named("kernel"));
    assert_true(kp_rotation_goes_on(r, 1000));
    kp_rotation_take(k, 0);
    assert_false(kp_rotation_goes_on(r, 1000));
    kp_rotation_end(r);
}

/* New shapes of a kernel whose shapes do not come again hold nothing open. */
static void test_fleeting_shapes_do_not_go_on(void **state)
{
    enum { SHAPES = 4, LONG = 1025 };
    struct kp_plan *p = new_plan();
    struct kp_rotation *r = kp_rotation_new(p, NULL, 1);
    struct kp_launch often = launch_of(77, 1), next = launch_of(2, 99);
    (void)state;
    for (unsigned i = 0; i < SHAPES; i++) {
        struct kp_launch l = launch_of(2, 10 + i);
        kp_rotation_find(r, &l, named("grows"));
    }
    let_by(r, LONG);
    struct kp_rotation_key *k = kp_rotation_find(r, &often, named("another"));
    kp_rotation_take(k, 0);
    kp_rotation_take(k, 1);
    assert_false(kp_rotation_goes_on(r, LONG));
    assert_true(kp_rotation_is_fleeting(kp_rotation_find(r, &next, named("grows"))));
    assert_false(kp_rotation_goes_on(r, LONG));
    kp_rotation_end(r);
    kp_plan_free(p);
}

/* Where the last window chose its launches, those alone that count take time, and a session stays for all lists, but
 * for one of patched code, and for what is no list. */
static void test_groups_where_launches_are_chosen(void **state)
{
    enum { N = 3, PATCHED = 2, KEYS = 4, WITHIN = 100 };
    static const char *hardware[] = {"dram__bytes.sum"}, *patches[] = {"smsp__sass_inst_executed.sum"};
    uint8_t images[N][1] = {{1}, {2}, {3}};
    struct kp_config lists[N];
    struct kp_plan p = {.groups = lists, .n_groups = N};
    struct kp_rotation_extras one = extras;
    struct kp_rotation_key *k[KEYS];
    (void)state;
    one.adds_up = none_adds_up;
    one.n = 1;
    for (size_t i = 0; i < N; i++)
        lists[i] = (struct kp_config){
            .image = images[i], .size = 1, .passes = 1, .names = i == PATCHED ? patches : hardware, .n_names = 1};
    struct kp_rotation *r = kp_rotation_new(&p, &one, 1);
    for (unsigned i = 0; i < KEYS; i++) {
        struct kp_launch l = launch_of(1 + i, 1);
        char name[16];
        snprintf(name, sizeof(name), "kernel%u", i);
        k[i] = kp_rotation_find(r, &l, named(name));
    }
    assert_false(kp_rotation_chooses(r));
    /* Two keys lack list 1, and the others four: patched code, the extra group. */
    kp_rotation_take(k[2], 1);
    kp_rotation_take(k[3], 1);
    kp_rotation_counts(r, 1, false); /* its image is there */
    assert_false(kp_rotation_chooses(r));
    assert_int_equal(kp_rotation_choose(r, k[0], WITHIN), 1);
    kp_rotation_counts(r, 1, true); /* no image is needed */
    assert_true(kp_rotation_chooses(r));
    assert_int_equal(kp_rotation_choose(r, k[0], WITHIN), 0);
    for (unsigned i = 0; i < KEYS; i++)
        kp_rotation_take(k[i], 0);
    /* One key for a list is worth more than four for what ends the session. */
    kp_rotation_take(k[1], 1);
    assert_int_equal(kp_rotation_choose(r, k[0], WITHIN), 1);
    kp_rotation_counts(r, N, true); /* no list: it says nothing of whether they choose */
    assert_true(kp_rotation_chooses(r));
    kp_rotation_counts(r, N, false);
    assert_true(kp_rotation_chooses(r));
    assert_int_equal(kp_rotation_choose(r, k[0], WITHIN), N); /* a list begins a session */
    kp_rotation_counts(r, PATCHED, true);
    for (unsigned i = 1; i < KEYS; i++)
        kp_rotation_take(k[i], PATCHED);
    assert_int_equal(kp_rotation_choose(r, k[0], WITHIN), PATCHED); /* one key: the session takes it, */
    kp_rotation_take(k[0], PATCHED);
    assert_int_equal(kp_rotation_choose(r, k[0], 1), N); /* and none else: four keys are more than one */
    kp_rotation_end(r);
}

/* ---- beside a replay ---- */

static const char rate[] = "lts__t_sector_hit_rate.pct";

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
    struct kp_rotation_key *k = kp_rotation_find(r, l, named("_Z6kernelv"));
    assert_true(kp_rotation_is_first(k));
    kp_rotation_take_first(k, KP_REASON_DEVICE_HEAP);
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
    struct kp_rotation_key *k = kp_rotation_find(r, &l, named("kernel"));
    kp_rotation_take_first(k, KP_REASON_DEVICE_HEAP);
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
    assert_ptr_equal(kp_rotation_find(r, &l, named("_Z6kernelv")), k);
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
    assert_string_equal(info->note, kp_reason_text(KP_REASON_DEVICE_HEAP));
    assert_string_equal(t.base, "kernel");
    assert_true(fabs(replaced(duration) - 304.0 / 3) < 1e-9 && replaced(hits) == 102 && replaced(rate) == 42);
    assert_int_equal(kp_result_find(&t.replaced, duration)->counted, 3);
    assert_int_equal(kp_result_find(&t.replaced, rate)->counted, 1);
    /* A key that comes later has groups, too. */
    assert_true(kp_rotation_is_first(kp_rotation_find(r, &other, named("_Z6kernelv"))));
    assert_true(kp_rotation_lacks_any(kp_rotation_find(r, &other, named("_Z6kernelv"))));
    kp_rotation_take(k, 1);
    kp_rotation_untake(k, 1);
    count(k, p, 1, 104, NULL);
    assert_int_equal(t.n_replaced, 1);
    count(k, p, 0, 104, NULL);
    assert_false(kp_rotation_lacks_any(k));
    assert_true(t.n_replaced == 2 && t.told.counted == 3 && replaced(hits) == 103);
    kp_rotation_find(r, &l, named("_Z6kernelv"));
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

/* ---- kinds of launches ---- */

/* A refusal names the paths where launches have several. */
static void test_a_refusal_names_paths(void **state)
{
    static const char hint[] = "; they come from several NVTX ranges, which --rotate-key nvtx counts separately";
    (void)state;
    for (int several = 0; several < 2; several++) {
        struct kp_plan *p = mixing_plan();
        struct kp_rotation *r = kp_rotation_new(p, NULL, EACH);
        for (size_t i = 0; i < 6; i++) {
            struct kp_launch l = launch_of(1, 1);
            enter(&l, 5, KP_NVTX_PUSH_POP, "", several && i % 2 ? "backward" : "forward");
            count(kp_rotation_find(r, &l, named("kernel")), p, i / 2, i % 2 ? 100 : 200, NULL);
            kp_launch_free(&l);
        }
        assert_int_equal(t.n, 1);
        const struct kp_metric *m = kp_result_find(&t.results[0], rate);
        assert_int_equal(m->kind, KP_VALUE_NA);
        assert_int_equal(strstr(m->text, hint) != NULL, several);
        kp_rotation_end(r);
        kp_plan_free(p);
        reset(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_keys_that_are_awaited, reset),
        cmocka_unit_test_teardown(test_keys_with_gaps_that_differ, reset),
        cmocka_unit_test_teardown(test_a_rotation_goes_on, reset),
        cmocka_unit_test_teardown(test_fleeting_shapes_do_not_go_on, reset),
        cmocka_unit_test_teardown(test_groups_where_launches_are_chosen, reset),
        cmocka_unit_test_teardown(test_a_key_walks_through_all_groups, reset),
        cmocka_unit_test_teardown(test_keys_differ, reset),
        cmocka_unit_test_teardown(test_keys_by_path, reset),
        cmocka_unit_test_teardown(test_an_entry_of_a_path, reset),
        cmocka_unit_test_teardown(test_ranks_begin_apart, reset),
        cmocka_unit_test_teardown(test_the_next_group, reset),
        cmocka_unit_test_teardown(test_groups_in_turn, reset),
        cmocka_unit_test_teardown(test_fleeting_shapes, reset),
        cmocka_unit_test_teardown(test_keys_that_come_soon, reset),
        cmocka_unit_test_teardown(test_latecomers_wait, reset),
        cmocka_unit_test_teardown(test_launches_that_differ, reset),
        cmocka_unit_test_teardown(test_an_incomplete_key, reset),
        cmocka_unit_test_teardown(test_a_group_that_fails, reset),
        cmocka_unit_test_teardown(test_extras_are_groups, reset),
        cmocka_unit_test_teardown(test_extras_that_fail, reset),
        cmocka_unit_test_teardown(test_launches_that_are_timed, reset),
        cmocka_unit_test_teardown(test_extras_beside_a_replay, reset),
        cmocka_unit_test_teardown(test_the_first_launch_is_an_entry, reset),
        cmocka_unit_test_teardown(test_groups_take_turns_beside_a_replay, reset),
        cmocka_unit_test_teardown(test_an_entry_that_stays_incomplete, reset),
        cmocka_unit_test_teardown(test_a_first_launch_without_counters, reset),
        cmocka_unit_test_teardown(test_a_refusal_names_paths, reset),
    };
    return cmocka_run_group_tests_name("rotation", tests, NULL, NULL);
}
