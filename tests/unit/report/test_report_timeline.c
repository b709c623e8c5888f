/* The timeline: its order, the launches of records, gaps and streams in numbers, lanes, the file, and the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html/html.h"
#include "report/html/trace_json.h"
#include "report/pages/page.h"
#include "report/view/gaps.h"
#include "report/view/launch_ranges.h"
#include "report/view/timeline_rows.h"
#include "tests/support/report_support.h"
#include "tests/support/store_support.h"

#define KERNEL KP_ACTIVITY_KERNEL
#define COPY   KP_ACTIVITY_COPY
#define SET    KP_ACTIVITY_SET
#define RANGE  KP_ACTIVITY_RANGE

enum { A = 1, B, C, HTOD, STEP, INNER }; /* names */

static const char *const names[] = {
    "",     "a(float *)",   "b<int>(\"x\", \\, \n)", "a name, of some length, which text cuts(int, int)", "memcpy HtoD",
    "step", "in\xc3\xbcner"};

/* ---- a timeline that is made up ---- */

static struct kp_activity *add(struct kp_timeline *t, enum kp_activity_kind kind, uint32_t name, int64_t start,
                               int64_t end)
{
    const struct kp_activity a = {.kind = kind,
                                  .name = name,
                                  .device = kind >= KP_ACTIVITY_RANGE ? KP_NO_DEVICE : 0,
                                  .context_id = 1,
                                  .stream_id = 7,
                                  .start_ns = start,
                                  .end_ns = end,
                                  .ordinal = -1};
    assert_int_equal(kp_timeline_add(t, &a), 0);
    return &t->at[t->n - 1];
}

static void name_all(struct kp_timeline *t)
{
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(kp_timeline_set_name(t, i, names[i]), 0);
}

/* Two streams of a device, and one of another; times in us from 1000 on. A copy fills half of the gap before the last
 * kernel, and kprof holds the program up in the one before that. */
static struct kp_timeline made(void)
{
    struct kp_timeline t = {.n = 0};
    struct kp_activity *a;
    name_all(&t);
    add(&t, COPY, HTOD, 1000000, 1004000)->bytes = 4096;
    add(&t, KERNEL, A, 1010000, 1020000);
    a = add(&t, KERNEL, B, 1015000, 1030000); /* beside the one before it */
    a->stream_id = 8;
    add(&t, KERNEL, A, 1030000, 1031000); /* no gap */
    add(&t, KP_ACTIVITY_KPROF, 0, 1032000, 1132000);
    a = add(&t, KERNEL, A, 1140000, 1141000); /* 9 us after our work, 1 us before it */
    a->thread = 5;
    a->launched_ns = 1135000;
    a->ordinal = 11;
    a = add(&t, COPY, HTOD, 1150000, 1170000);
    a->bytes = 1000;
    a->stream_id = 8;
    a = add(&t, KERNEL, C, 1181000, 1191000);
    a->thread = 5;
    a->launched_ns = 1175000;
    add(&t, SET, 0, 1195000, 1199000);
    a = add(&t, KERNEL, B, 1100000, 1160000);
    a->device = 1;
    a->context_id = 2;
    a = add(&t, RANGE, INNER, 1174000, 1176000);
    a->thread = 5;
    a = add(&t, RANGE, STEP, 1130000, 1190000);
    a->thread = 5;
    assert_int_equal(kp_timeline_sort(&t), 0);
    return t;
}

/* ---- order ---- */

static void sorted_by_start(void **state)
{
    struct kp_timeline t = {.n = 0};
    (void)state;
    add(&t, RANGE, INNER, 20, 25);
    add(&t, RANGE, STEP, 20, 40);
    add(&t, KERNEL, A, 10, 50);
    add(&t, KERNEL, B, 20, 25);
    assert_int_equal(kp_timeline_sort(&t), 0);
    assert_int_equal(t.at[0].name, A);
    assert_int_equal(t.at[1].name, STEP); /* around the others */
    assert_int_equal(t.at[2].name, INNER);
    assert_int_equal(t.at[3].name, B);
    assert_string_equal(kp_timeline_name(&t, &t.at[0]), ""); /* a number without a name */
    assert_int_equal(kp_timeline_set_name(&t, UINT32_MAX, "x"), -EINVAL);
    kp_timeline_free(&t);
    assert_int_equal(kp_timeline_sort(&t), 0);
}

/* ---- launches of records ---- */

static struct kp_kernel_record record(uint64_t correlation, uint32_t shape)
{
    return (struct kp_kernel_record){.row = (int64_t)correlation, .correlation = correlation, .shape = shape};
}

static struct kp_launch_note note(int64_t ordinal, uint32_t shape)
{
    return (struct kp_launch_note){.launched_ns = 100 + ordinal, .ordinal = ordinal, .thread = 3, .shape = shape};
}

static void records_find_their_launches(void **state)
{
    struct kp_kernel_record r[] = {record(9, 1), record(4, 2), record(7, 3)};
    struct kp_launch_note n[] = {note(0, 2), note(1, 9), note(2, 3), note(3, 1)};
    (void)state;
    n[1].refused = true;
    kp_timeline_link(r, 3, n, 4);
    assert_int_equal(r[0].correlation, 4);
    assert_int_equal(r[0].ordinal, 0);
    assert_int_equal(r[1].ordinal, 2);
    assert_int_equal(r[2].ordinal, 3);
    assert_int_equal(r[2].own->launched_ns, 103);
}

/* Launches that CUPTI has no record of, and kernels that no door has seen: the rest still finds its launch. */
static void records_without_launches(void **state)
{
    struct kp_kernel_record r[] = {record(1, 1), record(2, 50), record(3, 51), record(4, 2), record(5, 3)};
    struct kp_launch_note n[] = {note(0, 1), note(1, 2), note(2, 70), note(3, 3)};
    (void)state;
    kp_timeline_link(r, 5, n, 4);
    assert_int_equal(r[0].ordinal, 0);
    assert_null(r[1].own);
    assert_int_equal(r[1].ordinal, -1);
    assert_null(r[2].own);
    assert_int_equal(r[3].ordinal, 1);
    assert_int_equal(r[4].ordinal, 3);
    kp_timeline_link(r, 5, n, 0);
    assert_null(r[0].own);
    kp_timeline_link(NULL, 0, n, 4);
}

/* Kernels of one graph launch share a number; those of equal shape get the nodes in their order. */
static void records_of_graphs(void **state)
{
    struct kp_kernel_record r[] = {record(1, 1), record(2, 5), record(2, 6), record(2, 5), record(3, 1), record(4, 5)};
    struct kp_launch_note n[] = {note(0, 1), note(-1, 0), note(1, 5), note(2, 5), note(3, 6), note(4, 1), note(5, 0)};
    (void)state;
    for (int i = 1; i <= 3; i++) {
        r[i].is_graph = true;
        r[i].start_ns = i;
        n[i + 1].is_node = true;
    }
    r[5].is_graph = true;
    n[1].is_graph = n[6].is_graph = true;
    kp_timeline_link(r, 6, n, 7);
    assert_int_equal(r[0].ordinal, 0);
    assert_int_equal(r[1].ordinal, 1);
    assert_int_equal(r[2].ordinal, 3);
    assert_int_equal(r[3].ordinal, 2);
    assert_ptr_equal(r[3].own, &n[1]);
    assert_int_equal(r[4].ordinal, 4);
    assert_int_equal(r[5].ordinal, 5); /* a graph that is one launch of the report */
}

static void shapes_differ(void **state)
{
    const uint32_t one[] = {1, 1, 1}, two[] = {2, 1, 1}, other[] = {1, 2, 1};
    (void)state;
    assert_int_equal(kp_timeline_shape(one, two), kp_timeline_shape(one, two));
    assert_int_not_equal(kp_timeline_shape(one, two), kp_timeline_shape(two, one));
    assert_int_not_equal(kp_timeline_shape(two, one), kp_timeline_shape(other, one));
}

/* ---- gaps ---- */

static void gaps_in_numbers(void **state)
{
    struct kp_timeline t = made();
    struct kp_gaps g;
    (void)state;
    assert_int_equal(kp_gaps_of(&t, &g), 0);
    assert_int_equal(g.n_devices, 2);
    const struct kp_device_line *d = &g.devices[0];
    assert_int_equal(d->device, 0);
    assert_int_equal(d->kernels, 5);
    assert_int_equal(d->held_ns, 100000);
    assert_int_equal(d->span_ns, 199000 - 100000);
    assert_int_equal(d->busy_ns, 21000 + 1000 + 10000);
    assert_int_equal(d->n_gaps, 2);
    assert_int_equal(d->gaps[0].ns, 40000);
    assert_int_equal(d->gaps[0].copying_ns, 20000);
    assert_int_equal(d->gaps[0].before->name, A);
    assert_int_equal(d->gaps[0].next->name, C);
    assert_int_equal(d->gaps[0].range->name, INNER);
    assert_int_equal(d->gaps[1].ns, 9000);
    assert_int_equal(d->gaps[1].copying_ns, 0);
    assert_int_equal(d->gaps[1].next->ordinal, 11);
    assert_int_equal(d->gaps[1].range->name, STEP);
    d = &g.devices[1];
    assert_int_equal(d->n_gaps, 0);
    assert_int_equal(d->held_ns, 0); /* its kernel ran meanwhile */
    assert_int_equal(d->busy_ns, 60000);
    assert_int_equal(d->span_ns, 60000);
    assert_null(kp_gaps_range_at(&t, 6, 1175000));
    assert_null(kp_gaps_range_at(&t, 5, 1195000));
    assert_null(kp_gaps_range_at(&t, 0, 1175000));
    kp_gaps_free(&g);
    kp_timeline_free(&t);
}

static void streams_and_kernels(void **state)
{
    struct kp_timeline t = made();
    struct kp_gaps g;
    (void)state;
    assert_int_equal(kp_gaps_of(&t, &g), 0);
    assert_int_equal(g.n_streams, 3);
    assert_int_equal(g.streams[0].stream_id, 7);
    assert_int_equal(g.streams[0].kernels, 4);
    assert_int_equal(g.streams[0].copies, 1);
    assert_int_equal(g.streams[0].sets, 1);
    assert_int_equal(g.streams[0].bytes, 4096);
    assert_int_equal(g.streams[0].busy_ns, 4000 + 10000 + 1000 + 1000 + 10000 + 4000);
    assert_int_equal(g.streams[0].kernel_ns, 22000);
    assert_int_equal(g.streams[1].stream_id, 8);
    assert_int_equal(g.streams[1].bytes, 1000);
    assert_int_equal(g.streams[2].device, 1);
    assert_int_equal(g.n_kernels, 3);
    assert_int_equal(g.kernels[0].name, B);
    assert_int_equal(g.kernels[0].total_ns, 75000);
    assert_int_equal(g.kernels[0].least_ns, 15000);
    assert_int_equal(g.kernels[0].most_ns, 60000);
    assert_int_equal(g.kernels[1].name, A);
    assert_int_equal(g.kernels[1].n, 3);
    kp_gaps_free(&g);
    kp_timeline_free(&t);
}

/* The longest gaps are kept, and of equal ones the first. */
static void only_the_longest(void **state)
{
    struct kp_timeline t = {.n = 0};
    struct kp_gaps g;
    int64_t at = 0;
    (void)state;
    for (int i = 0; i < 30; i++) {
        add(&t, KERNEL, A, at, at + 10);
        at += 10 + (i * 7) % 15 + 1;
    }
    assert_int_equal(kp_gaps_of(&t, &g), 0);
    assert_int_equal(g.devices[0].n_gaps, 29);
    for (int i = 0; i < KP_GAPS_MOST; i++)
        assert_int_equal(g.devices[0].gaps[i].ns, 15 - i / 2);
    assert_true(g.devices[0].gaps[0].start_ns < g.devices[0].gaps[1].start_ns);
    kp_gaps_free(&g);
    kp_timeline_free(&t);
}

static struct kp_activity *add_by(struct kp_timeline *t, enum kp_activity_kind kind, uint32_t name, int64_t start,
                                  int64_t end, uint64_t thread)
{
    struct kp_activity *a = add(t, kind, name, start, end);
    a->thread = thread;
    return a;
}

static void add_launch_at(struct kp_timeline *t, int64_t launched, uint64_t thread, int64_t ordinal)
{
    struct kp_activity *a = add_by(t, KERNEL, A, launched + 10000, launched + 10001, thread);
    a->launched_ns = launched;
    a->ordinal = ordinal;
}

static int count_loads, lookup_rc;

static int look_up_ranges(void *arg, struct kp_timeline *out)
{
    (void)arg;
    *out = (struct kp_timeline){.n = 0};
    count_loads++;
    if (lookup_rc)
        return lookup_rc;
    name_all(out);
    add_by(out, RANGE, STEP, 100, 900, 5);
    add_by(out, RANGE, INNER, 200, 300, 5);
    add_by(out, RANGE, A, 210, 220, 5);
    add_by(out, RANGE, INNER, 400, 500, 5);
    add_by(out, RANGE, 0, 450, 460, 5); /* without a name */
    add_by(out, RANGE, C, 0, 2000, 6);
    add_by(out, RANGE, B, 600, 950, 5); /* ends behind what it began in */
    const struct {
        int64_t at;
        uint64_t thread;
    } launches[] = {{50, 5}, {215, 5}, {350, 5}, {455, 5}, {920, 5}, {990, 5}, {250, 6}, {250, 7}};
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
        add_launch_at(out, launches[i].at, launches[i].thread, (int64_t)i);
    add_launch_at(out, 0, 5, 8); /* when is not known */
    return kp_timeline_sort(out);
}

/* Launches without ranges of their own are in those of the timeline that were open on their thread, the outermost
 * first. */
static void launches_find_their_ranges(void **state)
{
    static const char *const wanted[] = {"",
                                         "step|in\xc3\xbcner|a(float *)",
                                         "step",
                                         "step|in\xc3\xbcner|(no name)",
                                         "b<int>(\"x\", \\, \n)",
                                         "",
                                         "a name, of some length, which text cuts(int, int)",
                                         "",
                                         "",
                                         ""};
    const struct kp_lookup lookup = {.timeline = look_up_ranges};
    struct kp_launch_ranges r = {0};
    struct kp_range_names found;
    (void)state;
    count_loads = lookup_rc = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const struct kp_launch_info l = {.ordinal = i};
        char text[256] = "";
        assert_int_equal(kp_launch_ranges_find(&r, &lookup, &l, &found), 0);
        for (size_t k = 0; k < found.n; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", k ? "|" : "", found.at[k]);
        assert_string_equal(text, wanted[i]);
        free(found.at);
    }
    assert_int_equal(count_loads, 1);

    /* its own go first */
    char own[] = "own", other[] = "of another thread", none[] = "";
    struct kp_nvtx_range ranges[] = {{KP_NVTX_PUSH_POP, none, own, none, none, 5},
                                     {KP_NVTX_PUSH_POP, none, other, none, none, 6}};
    struct kp_launch_info l = {.ordinal = 1, .nvtx = {.ranges = ranges, .n_ranges = 2, .thread = 5}};
    assert_int_equal(kp_launch_ranges_find(&r, &lookup, &l, &found), 0);
    assert_int_equal(found.n, 1);
    assert_string_equal(found.at[0], "own");
    free(found.at);
    kp_launch_ranges_free(&r);

    /* there is none, or no memory for it */
    l.nvtx.n_ranges = 0;
    lookup_rc = -ENOENT;
    assert_int_equal(kp_launch_ranges_find(&r, &lookup, &l, &found), 0);
    assert_int_equal(kp_launch_ranges_find(&r, &lookup, &l, &found), 0);
    assert_int_equal(found.n, 0);
    assert_int_equal(count_loads, 2);
    kp_launch_ranges_free(&r);
    lookup_rc = -ENOMEM;
    assert_int_equal(kp_launch_ranges_find(&r, &lookup, &l, &found), -ENOMEM);
    kp_launch_ranges_free(&r);
    assert_int_equal(kp_launch_ranges_find(&r, NULL, &l, &found), 0);
    assert_int_equal(found.n, 0);
    kp_launch_ranges_free(&r);
}

static void rows_do_not_overlap(void **state)
{
    struct kp_timeline t = {.n = 0};
    struct kp_timeline_rows r;
    (void)state;
    add(&t, RANGE, A, 0, 20);
    add(&t, KERNEL, A, 0, 10);
    add(&t, KERNEL, A, 5, 8);
    add(&t, KERNEL, A, 6, 9)->stream_id = 9;
    add(&t, RANGE, A, 7, 9); /* within the other one */
    add(&t, COPY, HTOD, 8, 30);
    add(&t, RANGE, A, 9, 10)->thread = 4;
    add(&t, KERNEL, A, 10, 20);
    add(&t, KP_ACTIVITY_KPROF, A, 10, 20);
    add(&t, RANGE, A, 11, 21); /* crosses the first one */
    static const uint32_t apart[] = {0, 1, 2, 3, 4, 2, 5, 1, 6, 4}, nested[] = {0, 1, 2, 3, 0, 2, 4, 1, 5, 6};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kp_timeline_rows_of(&t, i, &r), 0);
        for (size_t k = 0; k < t.n; k++)
            assert_int_equal(r.of[k], (i ? nested : apart)[k]);
        assert_int_equal(r.n, 7);
        assert_int_equal(r.at[2].lane, 1);
        assert_int_equal(r.at[3].stream_id, 9);
        assert_int_equal(r.at[3].lane, 0);
        assert_int_equal(r.at[0].device, KP_NO_DEVICE);
        kp_timeline_rows_free(&r);
    }
    kp_timeline_free(&t);
    assert_int_equal(kp_timeline_rows_of(&t, true, &r), 0);
    assert_int_equal(r.n, 0);
    kp_timeline_rows_free(&r);
}

/* ---- the file ---- */

static struct kp_store *stored(const char *path, const struct kp_timeline *t, bool timeline)
{
    struct kp_store *s = NULL;
    struct kp_session session = {.pid = 42, .launches_seen = 6, .complete = true, .timeline = timeline};
    char *err = NULL;
    session.exe = kp_strdup("/bin/program");
    session.host = kp_strdup("host");
    kp_test_done(kp_store_create(path, false, &s, &err), &err);
    kp_test_done(kp_store_put_session(s, &session, &err), &err);
    for (uint32_t i = 0; i < t->n_names; i++)
        kp_test_done(kp_store_put_activity_name(s, i, t->names[i], &err), &err);
    kp_test_done(kp_store_put_activities(s, t->at, t->n, &err), &err);
    kp_session_free(&session);
    return s;
}

static void assert_same(const struct kp_activity *a, const struct kp_activity *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->name, b->name);
    assert_int_equal(a->device, b->device);
    assert_int_equal(a->context_id, b->context_id);
    assert_int_equal(a->stream_id, b->stream_id);
    assert_true(a->start_ns == b->start_ns && a->end_ns == b->end_ns && a->launched_ns == b->launched_ns);
    assert_true(a->correlation == b->correlation && a->ordinal == b->ordinal && a->thread == b->thread);
    assert_memory_equal(a->grid, b->grid, sizeof a->grid);
    assert_memory_equal(a->block, b->block, sizeof a->block);
    assert_true(a->bytes == b->bytes && a->graph == b->graph);
}

static void the_file_has_all(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_timeline t = made(), back;
    char *err = NULL;
    t.at[3] = (struct kp_activity){KERNEL,
                                   A,
                                   2,
                                   3,
                                   4,
                                   INT64_C(1795563459827191980),
                                   INT64_C(1795563459827191981),
                                   5,
                                   6,
                                   7,
                                   8,
                                   {9, 10, 11},
                                   {12, 13, 14},
                                   UINT64_C(1) << 40,
                                   15};
    struct kp_store *s = stored(p->file, &t, true);
    kp_store_close(s);
    s = kp_test_reopen(p->file);
    kp_test_done(kp_store_get_timeline(s, &back, &err), &err);
    assert_int_equal(kp_timeline_sort(&t), 0);
    assert_int_equal(back.n, t.n);
    assert_int_equal(back.n_names, t.n_names);
    for (size_t i = 0; i < t.n; i++)
        assert_same(&back.at[i], &t.at[i]);
    for (size_t i = 0; i < t.n_names; i++)
        assert_string_equal(back.names[i], t.names[i]);
    kp_store_close(s);
    kp_timeline_free(&back);
    kp_timeline_free(&t);
}

static void links_are_stored(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_timeline t = {.n = 0}, back;
    char *err = NULL;
    name_all(&t);
    for (uint32_t i = 0; i < 3; i++) {
        struct kp_activity *a = add(&t, KERNEL, A, 10 * i, 10 * i + 5);
        a->correlation = i;
        a->grid[0] = i;
    }
    struct kp_launch_note notes[3];
    for (uint32_t i = 0; i < 3; i++)
        notes[i] = note(i + 20, kp_timeline_shape(t.at[i].grid, t.at[i].block));
    notes[1].refused = true;
    struct kp_store *s = stored(p->file, &t, true);
    kp_test_done(kp_store_link_activities(s, notes, 3, &err), &err);
    kp_test_done(kp_store_get_timeline(s, &back, &err), &err);
    assert_int_equal(back.at[0].ordinal, 20);
    assert_int_equal(back.at[0].thread, 3);
    assert_int_equal(back.at[0].launched_ns, 120);
    assert_int_equal(back.at[1].ordinal, -1);
    assert_int_equal(back.at[2].ordinal, 22);
    kp_store_close(s);
    kp_timeline_free(&back);
    kp_timeline_free(&t);
}

/* Times with which arithmetic would overflow, and names that are none: kprof writes no such file. */
static void a_damaged_timeline(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_timeline t = made(), back;
    char *err = NULL;
    t.at[2].end_ns = INT64_MAX;
    struct kp_store *s = stored(p->file, &t, true);
    assert_int_equal(kp_store_get_timeline(s, &back, &err), -EIO);
    assert_non_null(err);
    assert_int_equal(back.n, 0);
    free(err);
    struct kp_lookup l = kp_store_lookup(s);
    assert_int_equal(kp_lookup_timeline(&l, &back), -EIO);
    char *missing = kp_store_missing(s);
    assert_non_null(strstr(missing, "timeline"));
    free(missing);
    kp_store_close(s);
    kp_timeline_free(&t);
    assert_int_equal(kp_lookup_timeline(NULL, &back), -ENOENT);
}

/* ---- the page ---- */

static void assert_page(struct kp_store *s, const struct kp_display *d, const char *golden)
{
    struct kp_test_text text = {NULL, 0};
    struct kp_sink sink = kp_test_sink(&text);
    char *err = NULL;
    kp_test_done(kp_page_print_store(&sink, d, s, &err), &err);
    kp_test_golden(text.text, golden);
    free(text.text);
}

static void the_page(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_timeline t = made();
    struct kp_store *s = stored(p->file, &t, true);
    struct kp_display d = {.pages = {KP_PAGE_TIMELINE}, .n_pages = 1, .top = 2};
    assert_page(s, &d, "tests/golden/timeline_page.txt");
    d.format = KP_FORMAT_CSV;
    d.top = 0;
    assert_page(s, &d, "tests/golden/timeline_page.csv");
    d.format = KP_FORMAT_JSON;
    assert_page(s, &d, "tests/golden/timeline_page.json");
    kp_store_close(s);
    kp_timeline_free(&t);
}

static void the_page_of_none(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_timeline none = {.n = 0};
    struct kp_store *s = stored(p->file, &none, false);
    const struct kp_display d = {.pages = {KP_PAGE_TIMELINE}, .n_pages = 1};
    assert_page(s, &d, "tests/golden/timeline_none.txt");
    kp_store_close(s);
}

/* ---- the trace ---- */

static void assert_trace(struct kp_store *const *s, size_t n, uint64_t activities, const char *golden)
{
    char *text = NULL, *err = NULL;
    size_t size;
    uint64_t found;
    FILE *to = open_memstream(&text, &size);
    kp_test_done(kp_html_trace_print(s, n, to, &found, &err), &err);
    assert_int_equal(fclose(to), 0);
    assert_true(found == activities);
    kp_test_golden(text, golden);
    free(text);
}

/* Names with all that JSON escapes; 1005 ns, which a parser that multiplies by 1000 and cuts would take for 1004; a
 * lane for what overlaps; samples of a launch of the report. */
static void the_trace(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_timeline t = made();
    struct kp_result r = {.launch = {.id = 3, .ordinal = 11}};
    struct kp_series series = {kp_strdup("pmsampling:a\"b"), kp_strdup("%"), malloc(2 * sizeof(double)), 2, 500, 1000};
    char *err = NULL;
    add(&t, KERNEL, B, 1001005, 1002010);
    assert_int_equal(kp_timeline_set_name(&t, HTOD, "bad \xff\t\x01 byte </script>"), 0);
    struct kp_store *s = stored(p->file, &t, true);
    r.launch.mangled = kp_strdup("a");
    r.launch.demangled = kp_strdup("a");
    r.launch.chip = kp_strdup("");
    series.values[0] = 12.5;
    series.values[1] = 50;
    assert_int_equal(kp_result_add_series(&r, &series), 0);
    kp_test_done(kp_store_put_result(s, &r, &err), &err);
    assert_trace(&s, 1, 13, "tests/golden/timeline_trace.json");
    kp_store_close(s);
    kp_result_free(&r);
    kp_timeline_free(&t);
}

static void the_trace_of_none(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_timeline none = {.n = 0};
    struct kp_store *s = stored(p->file, &none, false);
    assert_trace(&s, 1, 0, "tests/golden/timeline_trace_none.json");
    kp_store_close(s);
}

/* ---- the HTML file ---- */

static char *html_of(struct kp_store *s)
{
    struct kp_display d = {.n_pages = 0};
    struct kp_html *h = kp_html_new();
    char *text = NULL, *err = NULL;
    size_t size;
    kp_html_display(&d, 50);
    kp_test_done(kp_page_write_store(kp_html_writer(h), &d, s, &err), &err);
    FILE *to = open_memstream(&text, &size);
    assert_int_equal(kp_html_print(h, false, to), 0);
    fclose(to);
    kp_html_free(h);
    return text;
}

/* The file has the first activities only, and says how many there are. */
static void the_file_is_bounded(void **state)
{
    enum { MOST = 100000 };
    struct kp_test_place *p = *state;
    struct kp_timeline t = {.n = 0};
    name_all(&t);
    for (int i = 0; i < MOST + 5; i++)
        add(&t, KERNEL, A, 10 * i, 10 * i + 4);
    struct kp_store *s = stored(p->file, &t, true);
    char *text = html_of(s), *events = strstr(text, "\"events\":[");
    assert_non_null(strstr(text, "\"timeline\":{\"total\":100005,\"dropped\":0,\"rows\":[[0,0,1,7,0,0]]"));
    assert_non_null(events);
    size_t commas = 0;
    for (char *c = events + strlen("\"events\":["); *c != ']'; c++)
        commas += *c == ',';
    assert_int_equal(commas + 1, 6 * MOST);
    free(text);
    kp_store_close(s);
    kp_timeline_free(&t);
}

/* A file of another's making, each activity of which has a stream of its own: it costs no more than a sound one. */
static void streams_without_end(void **state)
{
    struct kp_timeline t = {.n = 0};
    struct kp_timeline_rows r;
    struct kp_gaps g;
    (void)state;
    for (uint32_t i = 0; i < 20000; i++)
        add(&t, KERNEL, A, i, 1000000)->stream_id = 20000 - i;
    assert_int_equal(kp_timeline_rows_of(&t, false, &r), 0);
    assert_int_equal(r.n, 2048);
    assert_int_equal(r.of[19999], 2047);
    assert_int_equal(kp_gaps_of(&t, &g), 0);
    assert_int_equal(g.n_streams, 8192);
    assert_int_equal(g.devices[0].kernels, 20000);
    kp_gaps_free(&g);
    kp_timeline_rows_free(&r);
    kp_timeline_free(&t);
}

/* A small file must not make its reader take much memory: numbers of names have no gaps, and devices are few. */
static void odd_numbers(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_timeline t = made(), back;
    char *err = NULL;
    struct kp_store *s = stored(p->file, &t, true);
    kp_test_done(kp_store_put_activity_name(s, 16000000, "far", &err), &err);
    assert_int_equal(kp_store_get_timeline(s, &back, &err), -EIO);
    free(err);
    kp_store_close(s);
    kp_store_remove(p->file);
    t.at[1].device = 100000;
    s = stored(p->file, &t, true);
    assert_int_equal(kp_store_get_timeline(s, &back, &err), -EIO);
    free(err);
    kp_store_close(s);
    kp_timeline_free(&t);
}

static void no_timeline_in_the_file(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_timeline none = {.n = 0};
    struct kp_store *s = stored(p->file, &none, false);
    char *text = html_of(s);
    assert_null(strstr(text, "\"timeline\":"));
    free(text);
    kp_store_close(s);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, kp_test_enter, kp_test_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorted_by_start),
        cmocka_unit_test(records_find_their_launches),
        cmocka_unit_test(records_without_launches),
        cmocka_unit_test(records_of_graphs),
        cmocka_unit_test(shapes_differ),
        cmocka_unit_test(gaps_in_numbers),
        cmocka_unit_test(streams_and_kernels),
        cmocka_unit_test(only_the_longest),
        cmocka_unit_test(launches_find_their_ranges),
        cmocka_unit_test(rows_do_not_overlap),
        IN_A_FOLDER(the_file_has_all),
        IN_A_FOLDER(links_are_stored),
        IN_A_FOLDER(a_damaged_timeline),
        cmocka_unit_test(streams_without_end),
        IN_A_FOLDER(odd_numbers),
        IN_A_FOLDER(the_page),
        IN_A_FOLDER(the_page_of_none),
        IN_A_FOLDER(the_trace),
        IN_A_FOLDER(the_trace_of_none),
        IN_A_FOLDER(the_file_is_bounded),
        IN_A_FOLDER(no_timeline_in_the_file),
    };
    return cmocka_run_group_tests_name("report/timeline", tests, NULL, NULL);
}
