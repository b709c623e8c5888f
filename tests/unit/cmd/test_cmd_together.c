/* Sessions of ranks put together: which entries are the same, what their ranks are called, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/together.h"
#include "report/model/launch_names.h"
#include "report/model/ranks.h"
#include "report/store/store.h"
#include "tests/support/report_support.h"
#include "tests/support/store_support.h"

enum { MOST = 4 };
#define DURATION "gpu__time_duration.sum"

/* An entry of a session: kernel, first number of the grid, device, dynamic shared memory, launches, duration of the
 * counted ones. */
struct made {
    const char *kernel;
    uint32_t grid;
    int device;
    uint64_t shared, launches;
    struct kp_mean ns;
    uint32_t groups; /* 0: not counted by rotation */
    bool has_stack;
    const char *note;
};

/* A session. */
struct rank {
    uint64_t pid;
    const char *environment, *sections, *chip;
    struct made at[MOST];
};

static void put_launch(struct kp_store *s, const struct rank *of, const struct made *m, uint64_t id)
{
    struct kp_result r = {.launch = {.id = id,
                                     .ordinal = id,
                                     .mangled = kp_strdup(m->kernel),
                                     .demangled = kp_strdup(m->kernel),
                                     .grid = {m->grid, 1, 1},
                                     .block = {32, 1, 1},
                                     .device = m->device,
                                     .chip = kp_strdup(of->chip ? of->chip : "GH100"),
                                     .stack = m->has_stack ? id + 1 : 0,
                                     .note = m->note ? kp_strdup(m->note) : NULL,
                                     .alike = m->launches,
                                     .counted = m->ns.counted,
                                     .groups = m->groups,
                                     .groups_counted = m->groups}};
    char *err = NULL;
    if (m->has_stack) {
        struct kp_frame frame = {.function = (char *)m->kernel, .file = "", .module = ""};
        assert_int_equal(kp_store_put_stack(s, &(struct kp_stack){id + 1, &frame, 1}, &err), 0);
    }
    assert_int_equal(kp_result_set_count(&r, "launch__shared_mem_per_block_dynamic", "byte", m->shared), 0);
    if (m->ns.counted)
        assert_int_equal(kp_result_add_mean(&r, DURATION, "ns", &m->ns), 0);
    kp_test_done(kp_store_put_result(s, &r, &err), &err);
    kp_result_free(&r);
}

static void put_session(const char *path, const struct rank *of)
{
    struct kp_device_info devices[] = {{.ordinal = 0, .name = "first", .chip = "GH100"},
                                       {.ordinal = 1, .name = "second", .chip = "GH100"}};
    struct kp_skip skip = {{KP_REASON_ROTATED, NULL}, 7};
    struct kp_session session = {.pid = of->pid,
                                 .host = "node",
                                 .environment = (char *)of->environment,
                                 .sections = (char *)of->sections,
                                 .start_unix_ns = 100 - (int64_t)of->pid,
                                 .end_unix_ns = 200 + (int64_t)of->pid,
                                 .launches_seen = 10,
                                 .launches_profiled = 3,
                                 .passes = 2,
                                 .profiling_ns = 5,
                                 .skips = &skip,
                                 .n_skips = 1,
                                 .devices = devices,
                                 .n_devices = of->pid == 1 ? 1 : 2,
                                 .complete = true,
                                 .timeline = true};
    struct kp_store *s;
    char *err = NULL;
    kp_test_done(kp_store_create(path, false, &s, &err), &err);
    for (size_t i = 0; i < MOST && of->at[i].kernel; i++)
        put_launch(s, of, &of->at[i], i);
    kp_test_done(kp_store_put_session(s, &session, &err), &err);
    kp_store_close(s);
}

/* What is put together: the launches, and the error. */
struct whole {
    struct kp_session session;
    struct kp_result at[2 * MOST];
    size_t n;
    char *err;
    char stack[2 * MOST][16]; /* the function of each launch's stack */
};

static int keep(struct kp_result *r, void *arg)
{
    struct whole *w = arg;
    w->at[w->n++] = *r;
    *r = (struct kp_result){.launch.id = r->launch.id};
    return 0;
}

static void read_whole(const char *path, struct whole *w)
{
    struct kp_store *s = kp_test_reopen(path);
    char *err = NULL;
    kp_test_done(kp_store_get_session(s, &w->session, &err), &err);
    kp_test_done(kp_store_each_result(s, keep, w, &err), &err);
    for (size_t i = 0; i < w->n; i++) {
        struct kp_stack stack;
        if (!w->at[i].launch.stack)
            continue;
        kp_test_done(kp_store_get_stack(s, w->at[i].launch.stack, &stack, &err), &err);
        snprintf(w->stack[i], sizeof w->stack[i], "%s", stack.frames[0].function);
        kp_frames_free(&stack);
    }
    kp_store_close(s);
}

/* Puts ranks together that end at one with pid 0. Returns what kp_put_together returns. */
static int put_together(const struct rank *ranks, struct whole *w)
{
    const char *folder = kp_test_folder();
    struct kp_rank_file files[MOST];
    char paths[MOST][64], to[64];
    size_t n = 0;
    memset(w, 0, sizeof *w);
    for (; ranks[n].pid; n++) {
        snprintf(paths[n], sizeof paths[n], "%s/%zu.kprof", folder, n);
        put_session(paths[n], &ranks[n]);
        files[n] = (struct kp_rank_file){strrchr(paths[n], '/') + 1, kp_test_reopen(paths[n])};
    }
    snprintf(to, sizeof to, "%s/to", folder);
    int rc = kp_put_together(files, n, to, &w->err);
    if (!rc)
        read_whole(to, w);
    for (size_t i = 0; i < n; i++)
        kp_store_close(files[i].store);
    kp_test_remove_folder(folder);
    return rc;
}

static void free_whole(struct whole *w)
{
    for (size_t i = 0; i < w->n; i++)
        kp_result_free(&w->at[i]);
    kp_session_free(&w->session);
    free(w->err);
}

/* The ranks of an entry, as "0: 80 x 100, 1: 40 x 130". */
static const char *ranks_of(const struct kp_result *r)
{
    static char text[256];
    const struct kp_metric *launches = kp_result_find(r, KP_RANK_LAUNCHES), *ns = kp_result_find(r, KP_RANK_DURATION);
    size_t len = 0;
    *text = '\0';
    for (size_t i = 0; launches && i < launches->n_instances; i++)
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s%s: %g x %g", i ? ", " : "", launches->instances[i].key,
                             launches->instances[i].value, ns && i < ns->n_instances ? ns->instances[i].value : -1);
    return text;
}

/* Kernels are the same by name, grid and dynamic shared memory, in whatever order ranks launch them. */
static void same_shapes(void **state)
{
    static const struct rank ranks[] = {
        {1,
         "RANK=0\n",
         "",
         NULL,
         {{"a", 8, 0, 0, 80, {4, 100, 2}, 2, true, NULL}, {"b", 8, 0, 0, 40, {4, 50, 0}, 2, true, NULL}}},
        {2,
         "RANK=1\n",
         "",
         NULL,
         {{"b", 9, 1, 0, 10, {4, 60, 0}, 3, true, NULL},
          {"a", 8, 1, 0, 20, {4, 130, 2}, 2, true, NULL},
          {"b", 8, 1, 64, 5, {4, 70, 0}, 2, false, NULL},
          {"b", 8, 1, 0, 1, {0, 0, 0}, 2, false, NULL}}},
        {0}};
    struct whole w;
    (void)state;
    assert_int_equal(put_together(ranks, &w), 0);
    assert_int_equal(w.n, 4);
    assert_string_equal(ranks_of(&w.at[0]), "0: 80 x 100, 1: 20 x 130");
    assert_string_equal(ranks_of(&w.at[1]), "0: 40 x 50, 1: 1 x -1");
    assert_string_equal(ranks_of(&w.at[2]), "1: 10 x 60");
    assert_string_equal(ranks_of(&w.at[3]), "1: 5 x 70");
    assert_int_equal(w.at[0].launch.alike, 100);
    assert_int_equal(w.at[0].launch.counted, 8);
    /* Four each of 100 and 130 with squares of 3 * 4: 24 + 30^2 * 16 / 8 = 1824. */
    const struct kp_metric *m = kp_result_find(&w.at[0], DURATION);
    assert_int_equal(m->counted, 8);
    assert_true(fabs(m->real - 115) < 1e-9 && fabs(m->deviation - sqrt(1824.0 / 7)) < 1e-9);
    assert_int_equal(w.at[2].launch.device, 1);
    assert_string_equal(w.stack[0], "a");
    assert_string_equal(w.stack[1], "b");
    assert_string_equal(w.stack[2], "b");
    assert_int_equal(w.at[3].launch.stack, 0);
    free_whole(&w);
}

/* Kinds of launches of one kernel and shape are put together each for itself; other notes do not count. */
static void same_kinds(void **state)
{
    static const char small[] = KP_KIND_NOTE "whose argument 1 is 1", large[] = KP_KIND_NOTE "whose argument 1 is 2";
    static const struct rank ranks[] = {{1,
                                         "RANK=0\n",
                                         "",
                                         NULL,
                                         {{"a", 8, 0, 0, 80, {4, 100, 2}, 2, false, small},
                                          {"a", 8, 0, 0, 40, {4, 200, 0}, 2, false, large},
                                          {"b", 8, 0, 0, 10, {4, 50, 0}, 2, false, "shares memory"}}},
                                        {2,
                                         "RANK=1\n",
                                         "",
                                         NULL,
                                         {{"a", 8, 0, 0, 30, {4, 210, 0}, 2, false, large},
                                          {"a", 8, 0, 0, 20, {4, 90, 0}, 2, false, small},
                                          {"b", 8, 0, 0, 11, {4, 60, 0}, 2, false, NULL}}},
                                        {0}};
    struct whole w;
    (void)state;
    assert_int_equal(put_together(ranks, &w), 0);
    assert_int_equal(w.n, 3);
    assert_string_equal(ranks_of(&w.at[0]), "0: 80 x 100, 1: 20 x 90");
    assert_string_equal(ranks_of(&w.at[1]), "0: 40 x 200, 1: 30 x 210");
    assert_string_equal(ranks_of(&w.at[2]), "0: 10 x 50, 1: 11 x 60");
    assert_string_equal(w.at[1].launch.note, large);
    free_whole(&w);
}

/* Counts add up, times are those of all, and devices are known. */
static void facts_of_the_run(void **state)
{
    static const struct rank ranks[] = {{1, "RANK=0\n", "", NULL, {{"a", 8, 0, 0, 1, {1, 1, 0}, 2, false, NULL}}},
                                        {2, "RANK=1\n", "", NULL, {{"a", 8, 0, 0, 1, {1, 1, 0}, 2, false, NULL}}},
                                        {0}};
    struct whole w;
    (void)state;
    assert_int_equal(put_together(ranks, &w), 0);
    assert_int_equal(w.session.launches_seen, 20);
    assert_int_equal(w.session.launches_profiled, 6);
    assert_int_equal(w.session.passes, 4);
    assert_true(w.session.profiling_ns == 10);
    assert_int_equal(w.session.n_skips, 1);
    assert_int_equal(w.session.skips[0].count, 14);
    assert_int_equal(w.session.start_unix_ns, 98);
    assert_int_equal(w.session.end_unix_ns, 202);
    assert_int_equal(w.session.n_devices, 2);
    assert_string_equal(w.session.devices[1].name, "second");
    assert_true(w.session.complete);
    assert_false(w.session.timeline);
    assert_string_equal(w.session.replay, "rotation, 2 ranks merged");
    free_whole(&w);
}

/* Several devices of a process are ranks of their own, and contexts of a device keep entries of their own. Sessions
 * that have no rank, or the same, are called after their files. What rotation did not count is kept as it is. */
static void names_of_ranks(void **state)
{
    static const struct rank devices[] = {{1,
                                           "RANK=4\n",
                                           "",
                                           NULL,
                                           {{"a", 8, 0, 0, 2, {1, 10, 0}, 2, false, NULL},
                                            {"a", 8, 1, 0, 3, {1, 20, 0}, 2, false, NULL},
                                            {"a", 8, 1, 0, 4, {1, 30, 0}, 2, false, NULL},
                                            {"a", 8, 1, 0, 0, {0, 0, 0}, 0, false, NULL}}},
                                          {0}},
                             alike[] = {{1, "RANK=0\n", "", NULL, {{"a", 8, 0, 0, 2, {1, 10, 0}, 2, false, NULL}}},
                                        {2, "RANK=0\n", "", NULL, {{"a", 8, 0, 0, 3, {1, 20, 0}, 2, false, NULL}}},
                                        {0}},
                             no_number[] = {{1, "RANK=x\n", "", NULL, {{"a", 8, 0, 0, 2, {1, 10, 0}, 2, false, NULL}}},
                                            {0}};
    struct whole w;
    (void)state;
    assert_int_equal(put_together(devices, &w), 0);
    assert_int_equal(w.n, 3);
    assert_string_equal(ranks_of(&w.at[0]), "4 GPU 0: 2 x 10, 4 GPU 1: 3 x 20");
    assert_string_equal(ranks_of(&w.at[1]), "4 GPU 1: 4 x 30");
    assert_string_equal(ranks_of(&w.at[2]), "");
    assert_string_equal(w.session.replay, "rotation, 1 rank merged");
    free_whole(&w);
    assert_int_equal(put_together(alike, &w), 0);
    assert_string_equal(ranks_of(&w.at[0]), "0.kprof: 2 x 10, 1.kprof: 3 x 20");
    free_whole(&w);
    assert_int_equal(put_together(no_number, &w), 0);
    assert_string_equal(ranks_of(&w.at[0]), "0.kprof: 2 x 10");
    free_whole(&w);
}

static void refused(void **state)
{
#define ONE                                                                                                            \
    {                                                                                                                  \
        {                                                                                                              \
            "a", 8, 0, 0, 2, {1, 10, 0}, 2, false, NULL                                                                \
        }                                                                                                              \
    }
    static const struct {
        struct rank ranks[MOST];
        const char *why;
    } cases[] = {
        {{{1, "", "", NULL, ONE}, {2, "", "", "GB100", ONE}, {0}},
         "0.kprof and 1.kprof cannot be merged: they have counters of different chips, GH100 and GB100"},
        {{{1, "", "", NULL, ONE}, {2, "", "", NULL, {{"a", 8, 0, 0, 0, {0, 0, 0}, 0, false, NULL}}}, {0}},
         "1.kprof cannot be merged with others: rotation (--replay-mode rotate) counted none of its launches"},
        {{{1, "", "", NULL, {{.kernel = NULL}}}, {0}},
         "0.kprof cannot be merged with others: rotation (--replay-mode rotate) counted none of its launches"},
        {{{1, "", "", NULL, ONE}, {2, "", "", NULL, ONE}, {1, "", "", NULL, ONE}, {0}},
         "0.kprof and 2.kprof cannot be merged: both are the same session"},
        {{{1, "", "Occupancy", NULL, ONE}, {2, "", "SpeedOfLight", NULL, ONE}, {0}},
         "0.kprof and 1.kprof cannot be merged: other sets, sections or metrics were collected"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct whole w;
        assert_int_equal(put_together(cases[i].ranks, &w), -EINVAL);
        assert_string_equal(w.err, cases[i].why);
        free_whole(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_shapes),    cmocka_unit_test(same_kinds), cmocka_unit_test(facts_of_the_run),
        cmocka_unit_test(names_of_ranks), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("cmd/together", tests, NULL, NULL);
}
