#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/pages/details.h"
#include "report/pages/page.h"
#include "report/write/account.h"
#include "tests/support/code_support.h"
#include "tests/support/end_support.h"
#include "tests/support/report_support.h"
#include "tests/support/store_support.h"

static const struct kp_display plain; /* by default */

static struct kp_store *create(const char *path)
{
    struct kp_store *s = NULL;
    char *err = NULL;
    int rc = kp_store_create(path, false, &s, &err);
    kp_test_done(rc, &err);
    return s;
}

static void put_session(struct kp_store *s, const struct kp_session *session)
{
    char *err = NULL;
    int rc = kp_store_put_session(s, session, &err);
    kp_test_done(rc, &err);
}

static void put_result(struct kp_store *s, const struct kp_result *result)
{
    char *err = NULL;
    int rc = kp_store_put_result(s, result, &err);
    kp_test_done(rc, &err);
}

/* Every field a value of its own, so that a swapped column shows. */
static struct kp_session full_session(void)
{
    struct kp_session s = {
        .pid = 1,
        .exe = kp_strdup("/bin/\xc3\xa9xe"),
        .cmdline = kp_strdup("exe 'a\nb'"),
        .host = kp_strdup("host"),
        .kprof_version = kp_strdup("0.1"),
        .start_unix_ns = 1700000000123456789,
        .end_unix_ns = -5,
        .driver_version = 13000,
        .cupti_version = kp_strdup("13.0.85"),
        .set = kp_strdup("basic"),
        .sections = kp_strdup("Occupancy"),
        .metrics = kp_strdup("a,b"),
        .section_folder = kp_strdup("/sections"),
        .environment = kp_strdup("RANK=3\n"),
        .replay = kp_strdup("application replay, 9 runs"),
        .cache_control = kp_strdup("all"),
        .clock_control = kp_strdup("none"),
        .launches_seen = UINT64_MAX,
        .launches_profiled = 7,
        .passes = 8,
        .profiling_ns = 0.1,
        .complete = true,
        .timeline = true,
        .timeline_dropped = 9,
        .n_devices = 2,
    };
    s.devices = calloc(2, sizeof *s.devices);
    for (int i = 0; i < 2; i++)
        s.devices[i] = (struct kp_device_info){.ordinal = i,
                                               .name = kp_strdup("Device"),
                                               .chip = kp_strdup("GH100"),
                                               .pci_bus_id = kp_strdup(i ? "0000:02:00.0" : "0000:01:00.0"),
                                               .cc_major = 9,
                                               .cc_minor = i,
                                               .sm_count = 132,
                                               .breakdowns = kp_strdup(i ? "" : "a.pct\tb.pct,c.pct\nd\te")};
    kp_session_add_skip(&s, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"first"), 3);
    kp_session_add_skip(&s, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"a reason"), 4);
    kp_session_add_kernel(&s, "k<int>()", 5);
    kp_session_add_lacking(&s, "late", 0);
    kp_session_add_lacking(&s, "few", 3);
    return s;
}

static void assert_same_text(const char *a, const char *b)
{
    assert_string_equal(a ? a : "", b ? b : "");
}

static void assert_same_session(const struct kp_session *a, const struct kp_session *b)
{
    assert_int_equal(a->pid, b->pid);
    assert_same_text(a->exe, b->exe);
    assert_same_text(a->cmdline, b->cmdline);
    assert_same_text(a->host, b->host);
    assert_same_text(a->kprof_version, b->kprof_version);
    assert_true(a->start_unix_ns == b->start_unix_ns);
    assert_true(a->end_unix_ns == b->end_unix_ns);
    assert_int_equal(a->driver_version, b->driver_version);
    assert_same_text(a->cupti_version, b->cupti_version);
    assert_same_text(a->set, b->set);
    assert_same_text(a->sections, b->sections);
    assert_same_text(a->metrics, b->metrics);
    assert_same_text(a->section_folder, b->section_folder);
    assert_same_text(a->environment, b->environment);
    assert_same_text(a->replay, b->replay);
    assert_same_text(a->cache_control, b->cache_control);
    assert_same_text(a->clock_control, b->clock_control);
    assert_true(a->launches_seen == b->launches_seen);
    assert_true(a->launches_profiled == b->launches_profiled);
    assert_true(a->passes == b->passes);
    assert_true(a->profiling_ns == b->profiling_ns);
    assert_int_equal(a->complete, b->complete);
    assert_int_equal(a->timeline, b->timeline);
    assert_true(a->timeline_dropped == b->timeline_dropped);
    assert_int_equal(a->n_skips, b->n_skips);
    for (size_t i = 0; i < a->n_skips; i++) {
        assert_int_equal(a->skips[i].why.reason, b->skips[i].why.reason);
        assert_string_equal(kp_why_text(&a->skips[i].why), kp_why_text(&b->skips[i].why));
        assert_true(a->skips[i].count == b->skips[i].count);
    }
    assert_int_equal(a->n_kernels, b->n_kernels);
    for (size_t i = 0; i < a->n_kernels; i++) {
        assert_string_equal(a->kernels[i].name, b->kernels[i].name);
        assert_true(a->kernels[i].count == b->kernels[i].count);
    }
    assert_int_equal(a->n_lacking, b->n_lacking);
    for (size_t i = 0; i < a->n_lacking; i++) {
        assert_string_equal(a->lacking[i].name, b->lacking[i].name);
        assert_true(a->lacking[i].count == b->lacking[i].count);
    }
    assert_int_equal(a->n_devices, b->n_devices);
    for (size_t i = 0; i < a->n_devices; i++) {
        const struct kp_device_info *d = &a->devices[i], *e = &b->devices[i];
        assert_int_equal(d->ordinal, e->ordinal);
        assert_string_equal(d->name, e->name);
        assert_string_equal(d->chip, e->chip);
        assert_string_equal(d->pci_bus_id, e->pci_bus_id);
        assert_int_equal(d->cc_major, e->cc_major);
        assert_int_equal(d->cc_minor, e->cc_minor);
        assert_int_equal(d->sm_count, e->sm_count);
        assert_same_text(d->breakdowns, e->breakdowns);
    }
}

/* Keys that a text format may stumble over, and values that not every one can hold. */
static void add_instances(struct kp_result *r)
{
    static const char *const keys[] = {
        "", "0", "a \"b\" \\ [c],{d}", "\n\t\x01\x1f", "\xc3\xa9 \xff", "1", "1024 x 2", "\\u0041", "null"};
    static const double values[] = {0, 0.1, -1.0 / 3, NAN, INFINITY, -INFINITY, 9007199254740993.0, 5e-324, 1e300};
    assert_int_equal(kp_result_set_instances(r, "a.real", keys, values, sizeof keys / sizeof *keys), 0);
    assert_int_equal(kp_result_set_instances(r, "d.count", NULL, values, 2), 0);
    assert_int_equal(kp_result_set_instances(r, "e.text", keys, values, 1), 0);
}

static void add_variants(struct kp_result *r)
{
    static const char *const names[] = {"block=64", "block=4096 shared=1K"};
    for (int i = 0; i < 2; i++) {
        struct kp_variant *v = kp_result_add_variant(r, names[i]);
        assert_non_null(v);
        v->of->launch.grid[0] = v->of->launch.block[2] = (uint32_t)i + 17;
        v->of->launch.grid[1] = v->of->launch.block[1] = (uint32_t)i + 34;
        v->of->launch.grid[2] = v->of->launch.block[0] = UINT32_MAX;
        v->of->launch.passes = i ? 0 : 9;
        v->of->launch.note = i ? kp_strdup("too many threads") : NULL;
        kp_result_set_real(v->of, "a.real", "%", 0.5 + i);
    }
    kp_result_set_count(r->variants[0].of, "d.count", "byte", UINT64_MAX);
    kp_result_set_text(r->variants[0].of, "e.text", "", "text");
    kp_result_set_why(r->variants[0].of, "g.na", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no reason"));
}

static struct kp_result full_result(uint64_t id)
{
    struct kp_result r = {.launch = {.id = id,
                                     .ordinal = id + 100,
                                     .kind = KP_WORKLOAD_GRAPH,
                                     .mangled = kp_strdup("_Z1fv"),
                                     .demangled = kp_strdup("f()"),
                                     .grid = {1, 2, UINT32_MAX},
                                     .block = {4, 5, 6},
                                     .context_id = UINT64_MAX,
                                     .stream_id = 8,
                                     .device = 9,
                                     .cc_major = 10,
                                     .cc_minor = 3,
                                     .chip = kp_strdup("GB103"),
                                     .passes = 11,
                                     .alike = 1234,
                                     .recorded = 1200,
                                     .recorded_ns = 1200.5,
                                     .counted = 21,
                                     .groups = 9,
                                     .groups_counted = 7,
                                     .profiler_ns = 0.3,
                                     .note = kp_strdup("a note"),
                                     .reason = KP_REASON_CAPTURE}};
    kp_result_set_real(&r, "a.real", "%", 0.1);
    kp_result_set_real(&r, "a.integral", "ns", 4096);
    kp_result_set_spread(&r, "a.integral", 3, 0.25);
    kp_result_set_real(&r, "b.nan", "", NAN);
    kp_result_set_real(&r, "c.inf", "", -INFINITY);
    kp_result_set_count(&r, "d.count", "byte", UINT64_MAX);
    kp_result_set_text(&r, "e.text", "", "it's \"text\"");
    kp_result_set_text(&r, "f.empty", "", "");
    kp_result_set_why(&r, "g.na", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no permission"));
    kp_result_set_real(&r, "h.ninth", "", 9.5); /* eight are written at once, the others one by one */
    kp_result_set_spread(&r, "h.ninth", 5, 0.125);
    kp_result_set_count(&r, "i.tenth", "", 10);
    add_instances(&r);
    add_variants(&r);
    return r;
}

static void assert_same_launch(const struct kp_result *a, const struct kp_result *b)
{
    const struct kp_launch_info *l = &a->launch, *m = &b->launch;
    assert_true(l->id == m->id && l->ordinal == m->ordinal && l->kind == m->kind);
    assert_same_text(l->mangled, m->mangled);
    assert_same_text(l->demangled, m->demangled);
    assert_memory_equal(l->grid, m->grid, sizeof l->grid);
    assert_memory_equal(l->block, m->block, sizeof l->block);
    assert_true(l->context_id == m->context_id && l->stream_id == m->stream_id && l->device == m->device);
    assert_true(l->cc_major == m->cc_major && l->cc_minor == m->cc_minor);
    assert_same_text(l->chip, m->chip);
    assert_int_equal(l->passes, m->passes);
    assert_true(l->alike == m->alike && l->counted == m->counted);
    assert_true(l->recorded == m->recorded && l->recorded_ns == m->recorded_ns);
    assert_true(l->groups == m->groups && l->groups_counted == m->groups_counted);
    assert_true(l->profiler_ns == m->profiler_ns);
    assert_int_equal(!l->note, !m->note);
    if (l->note)
        assert_string_equal(l->note, m->note);
    assert_int_equal(l->reason, m->reason);
    assert_true(l->stack == m->stack);
    assert_true(l->graph_number == m->graph_number && l->node == m->node);
    assert_int_equal(a->n_metrics, b->n_metrics);
    for (size_t i = 0; i < a->n_metrics; i++) {
        const struct kp_metric *x = &a->metrics[i], *y = &b->metrics[i];
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->unit, y->unit);
        assert_int_equal(x->kind, y->kind);
        assert_true(x->count == y->count);
        assert_true(x->real == y->real || (isnan(x->real) && isnan(y->real)));
        assert_int_equal(!x->text, !y->text);
        if (x->text)
            assert_string_equal(x->text, y->text);
        assert_true(x->counted == y->counted && x->deviation == y->deviation);
        assert_int_equal(x->n_instances, y->n_instances);
        for (size_t k = 0; k < x->n_instances; k++) {
            double v = x->instances[k].value, w = y->instances[k].value;
            assert_string_equal(x->instances[k].key, y->instances[k].key);
            assert_true(v == w || (isnan(v) && isnan(w)));
        }
    }
}

static void assert_same_result(const struct kp_result *a, const struct kp_result *b)
{
    assert_same_launch(a, b);
    assert_int_equal(a->n_variants, b->n_variants);
    for (size_t i = 0; i < a->n_variants; i++) {
        assert_string_equal(a->variants[i].name, b->variants[i].name);
        assert_same_launch(a->variants[i].of, b->variants[i].of);
    }
}

struct expected {
    const struct kp_result *results;
    size_t n;
};

static int expect_next(struct kp_result *r, void *arg)
{
    struct expected *e = arg;
    assert_true(e->n > 0);
    assert_same_result(r, e->results++);
    e->n--;
    return 0;
}

static void assert_holds(struct kp_store *s, const struct kp_session *session, const struct kp_result *results,
                         size_t n)
{
    struct kp_session got;
    struct expected e = {results, n};
    char *err = NULL;
    assert_int_equal(kp_store_get_session(s, &got, &err), 0);
    assert_same_session(&got, session);
    kp_session_free(&got);
    assert_int_equal(kp_store_each_result(s, expect_next, &e, &err), 0);
    assert_null(err);
    assert_int_equal(e.n, 0);
}

static void every_field_comes_back(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    struct kp_result results[] = {full_result(0), full_result(7)};
    free(results[1].launch.note);
    results[1].launch.note = NULL;
    kp_result_set_real(&results[1], "a.real", "another unit", 0.2);
    put_session(s, &session);
    put_result(s, &results[1]); /* read back by id, not in the order of writing */
    put_result(s, &results[0]);
    assert_holds(s, &session, results, 2); /* the writer can read, too */
    kp_session_add_skip(&session, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"first"), 1);
    session.end_unix_ns = 9;
    put_session(s, &session);
    char *err = NULL;
    struct kp_launch_info *more = &results[1].launch;
    more->alike = 5678;
    more->recorded = 5000;
    more->recorded_ns = 77.25;
    assert_int_equal(kp_store_put_alike(s, more, &err), 0);
    kp_store_close(s);

    s = kp_test_reopen(p->file);
    assert_holds(s, &session, results, 2);
    kp_store_close(s);
    kp_session_free(&session);
    for (int i = 0; i < 2; i++)
        kp_result_free(&results[i]);
}

/* A copy has header, ranges and metrics, and is of its own. It takes the place of a launch whose metrics are others. */
static void a_launch_is_replaced(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    const struct kp_nvtx_range range = {
        .domain = (char *)"d", .name = (char *)"n", .category = (char *)"", .payload = (char *)"4", .thread = 5};
    struct kp_result whole = full_result(0), results[2];
    char *err = NULL;
    assert_int_equal(kp_nvtx_add(&whole.launch.nvtx, &range), 0);
    whole.launch.nvtx.thread_name = kp_strdup("main");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kp_result_copy(&whole, &results[i]), 0);
        assert_same_launch(&whole, &results[i]);
        assert_string_equal(results[i].launch.nvtx.ranges[0].payload, "4");
        assert_string_equal(results[i].launch.nvtx.thread_name, "main");
        results[i].launch.id = 7 * (uint64_t)i;
    }
    kp_result_free(&whole);
    put_session(s, &session);
    put_result(s, &results[1]);
    put_result(s, &results[0]);
    kp_result_remove(&results[0], "a.real");
    kp_result_set_real(&results[0], "h.ninth", "ns", 1);
    kp_result_set_count(&results[0], "j.eleventh", "", 11);
    results[0].launch.groups_counted = 9;
    kp_nvtx_free(&results[0].launch.nvtx);
    assert_int_equal(kp_store_replace_result(s, &results[0], &err), 0);
    assert_holds(s, &session, results, 2);
    kp_store_close(s);
    s = kp_test_reopen(p->file);
    assert_holds(s, &session, results, 2);
    kp_store_close(s);
    kp_session_free(&session);
    for (int i = 0; i < 2; i++)
        kp_result_free(&results[i]);
}

static int stop_at_second(struct kp_result *r, void *arg)
{
    (void)r;
    return ++*(int *)arg == 2 ? 77 : 0;
}

static void a_callback_can_stop(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    char *err = NULL;
    int calls = 0;
    for (uint64_t id = 0; id < 3; id++) {
        struct kp_result r = full_result(id);
        put_result(s, &r);
        kp_result_free(&r);
    }
    assert_int_equal(kp_store_each_result(s, stop_at_second, &calls, &err), 77);
    assert_int_equal(calls, 2);
    kp_store_close(s);
}

static void a_failed_put_leaves_no_half_launch(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    struct kp_result r = full_result(3);
    char *err = NULL;
    put_session(s, &session);
    put_result(s, &r);
    assert_int_equal(kp_store_put_result(s, &r, &err), -EIO); /* the same id again */
    assert_non_null(strstr(err, p->file));
    free(err);
    assert_holds(s, &session, &r, 1);
    kp_result_free(&r);
    r = full_result(4);
    put_result(s, &r); /* and the store goes on */
    kp_store_close(s);
    kp_result_free(&r);
    kp_session_free(&session);
}

/* The first value that `query` gives, malloc'ed. */
static char *one_text(const char *path, const char *query)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    char *text = kp_strdup((const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    sqlite3_close(db);
    return text;
}

static void sql(const char *path, const char *text)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* The last metric of the second launch is refused, when most of it has been written. */
static void a_launch_is_written_whole_or_not_at_all(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    struct kp_result first = full_result(1), second = full_result(2);
    char *err = NULL;
    put_session(s, &session);
    put_result(s, &first);
    sql(p->file, "CREATE TRIGGER refuse BEFORE INSERT ON metric WHEN NEW.kind = 0"
                 " BEGIN SELECT RAISE(FAIL, 'refused'); END");
    assert_int_equal(kp_store_put_result(s, &second, &err), -EIO);
    assert_non_null(strstr(err, "refused"));
    free(err);
    assert_holds(s, &session, &first, 1);
    sql(p->file, "DROP TRIGGER refuse");
    put_result(s, &second);
    kp_store_close(s);
    kp_session_free(&session);
    kp_result_free(&first);
    kp_result_free(&second);
}

static int count_one(struct kp_result *r, void *arg)
{
    (void)r;
    return ++*(int *)arg > 1000 ? -ELOOP : 0;
}

static int launches_in(const char *path)
{
    struct kp_store *s = kp_test_reopen(path);
    char *err = NULL;
    int n = 0;
    assert_int_equal(kp_store_each_result(s, count_one, &n, &err), 0);
    kp_store_close(s);
    return n;
}

/* Behind the highest number there is none: it must not begin again. */
static void the_highest_launch_is_the_last(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    struct kp_result first = full_result(1), second = full_result(2);
    put_session(s, &session);
    put_result(s, &first);
    put_result(s, &second);
    kp_store_close(s);
    sql(p->file, "UPDATE launch SET id = 9223372036854775807 WHERE id = 2");
    assert_int_equal(launches_in(p->file), 2);
    kp_session_free(&session);
    kp_result_free(&first);
    kp_result_free(&second);
}

static void several_puts_are_one_transaction(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    struct kp_result results[] = {full_result(0), full_result(1), full_result(2)};
    char *err = NULL;
    put_session(s, &session);
    session.launches_profiled++;
    assert_int_equal(kp_store_begin(s, &err), 0);
    for (int i = 0; i < 3; i++)
        put_result(s, &results[i]);
    put_session(s, &session);
    assert_int_equal(launches_in(p->file), 0); /* not yet, for others */
    assert_int_equal(kp_store_commit(s, &err), 0);
    assert_null(err);
    struct kp_store *other = kp_test_reopen(p->file);
    assert_holds(other, &session, results, 3);
    kp_store_close(other);
    kp_store_close(s);
    kp_session_free(&session);
    for (int i = 0; i < 3; i++)
        kp_result_free(&results[i]);
}

/* The third launch is refused in the middle: the ones before it go with it, and so do the names that they brought. */
static void a_failed_transaction_leaves_nothing(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    struct kp_result results[] = {full_result(0), full_result(1), full_result(2)};
    char *err = NULL;
    put_session(s, &session);
    put_result(s, &results[0]);
    sql(p->file, "CREATE TRIGGER refuse BEFORE INSERT ON metric WHEN NEW.kind = 0 AND NEW.launch = 2"
                 " BEGIN SELECT RAISE(FAIL, 'refused'); END");
    kp_result_set_real(&results[1], "z.new", "s", 1);
    kp_result_set_real(&results[2], "b.new", "s", 2);
    assert_int_equal(kp_store_begin(s, &err), 0);
    put_result(s, &results[1]);
    assert_int_equal(kp_store_put_result(s, &results[2], &err), -EIO);
    assert_non_null(strstr(err, "refused"));
    free(err);
    assert_holds(s, &session, results, 1);
    assert_int_equal(kp_store_commit(s, &err), -EIO); /* it is over */
    free(err);
    sql(p->file, "DROP TRIGGER refuse");
    put_result(s, &results[2]);
    put_result(s, &results[1]);
    assert_holds(s, &session, results, 3);
    kp_store_close(s);
    kp_session_free(&session);
    for (int i = 0; i < 3; i++)
        kp_result_free(&results[i]);
}

static void assert_no_create(const char *path, bool overwrite, int expected, const char *part)
{
    struct kp_store *s = NULL;
    char *err = NULL;
    assert_int_equal(kp_store_create(path, overwrite, &s, &err), expected);
    assert_null(s);
    if (!strstr(err, part) || !strstr(err, path))
        fail_msg("'%s' does not say '%s'", err, part);
    free(err);
}

static void creating(void **state)
{
    struct kp_test_place *p = *state;
    struct stat st;
    char path[PATH_MAX + 16];
    kp_store_close(create(p->file));
    assert_no_create(p->file, false, -EEXIST, "force-overwrite");
    assert_no_create(p->folder, true, -EINVAL, "not a regular file");
    assert_no_create("/dev/null", true, -EINVAL, "not a regular file");
    assert_int_equal(stat("/dev/null", &st), 0);
    snprintf(path, sizeof path, "%s/notes", p->folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("what I know", f);
    fclose(f);
    assert_no_create(path, true, -EINVAL, "is not a session and would be overwritten");
    assert_true(!kp_store_is_database(path) && kp_store_is_database(p->file));
    unlink(path);
    snprintf(path, sizeof path, "%s/none/file", p->folder);
    assert_no_create(path, false, -ENOENT, "choose another path");

    struct kp_store *s = NULL;
    struct kp_session session;
    char *err = NULL;
    struct kp_result r = full_result(1);
    assert_int_equal(kp_store_create(p->file, true, &s, &err), 0);
    put_result(s, &r);
    assert_int_equal(kp_store_get_session(s, &session, &err), -EINVAL); /* none was put yet */
    free(err);
    kp_store_close(s);
    kp_result_free(&r);
    snprintf(path, sizeof path, "%s-journal", p->file);
    assert_int_equal(stat(path, &st), -1); /* one file is all there is */
}

static void assert_no_open(const char *path, int expected, const char *part)
{
    struct kp_store *s = NULL;
    char *err = NULL;
    assert_int_equal(kp_store_open(path, &s, &err), expected);
    assert_null(s);
    if (!strstr(err, part) || !strstr(err, path))
        fail_msg("'%s' does not say '%s'", err, part);
    free(err);
}

static void opening_what_is_no_session(void **state)
{
    struct kp_test_place *p = *state;
    assert_no_open(p->file, -ENOENT, "No such file");
    assert_no_open(p->folder, -EINVAL, "it is a folder; name the session files in it");
    FILE *f = fopen(p->file, "we");
    assert_no_open(p->file, -EINVAL, "is still empty"); /* empty */
    for (int i = 0; i < 1000; i++)
        fprintf(f, "some text\n");
    fclose(f);
    assert_no_open(p->file, -EINVAL, "not a kprof session");
    unlink(p->file);
    sql(p->file, "CREATE TABLE t(x)");
    assert_no_open(p->file, -EINVAL, "not a kprof session");
    unlink(p->file);
    kp_store_close(create(p->file));
    sql(p->file, "PRAGMA user_version=1000");
    assert_no_open(p->file, -EINVAL, "another kprof (format 1000, this one reads 1)");
}

static int count_files(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_mode & 07777;
}

/* A session holds what the environment does, whatever the program's umask. While it is written, nobody else can put a
 * journal beside it, as there is one. */
static void a_session_is_its_owners_alone(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = NULL;
    char journal[PATH_MAX + 16], *err = NULL;
    snprintf(journal, sizeof journal, "%s-journal", p->file);
    mode_t before = umask(0);
    s = create(p->file);
    assert_int_equal(mode_of(p->file), 0600);
    assert_int_equal(mode_of(journal), 0600);
    struct kp_result r = full_result(1);
    put_result(s, &r);
    kp_result_free(&r);
    assert_int_equal(mode_of(journal), 0600); /* still */
    kp_store_close(s);
    umask(before);
    assert_int_equal(mode_of(journal), 0);
    unlink(p->file);
    assert_int_equal(mkdir(journal, 0700), 0); /* which cannot be removed as a file can */
    assert_int_equal(kp_store_create(p->file, false, &s, &err), -EEXIST);
    assert_non_null(strstr(err, journal));
    free(err);
    assert_int_equal(mode_of(p->file), 0);
    rmdir(journal);
}

/* A process runs `statements` and is gone in the middle of the transaction that they begin. */
static void be_killed_in(const char *path, const char *statements)
{
    int status;
    pid_t child = fork();
    if (!child) {
        sqlite3 *db;
        int rc = sqlite3_open(path, &db);
        rc = rc ? rc : sqlite3_exec(db, "PRAGMA cache_size=1; PRAGMA synchronous=OFF", NULL, NULL, NULL);
        _exit(rc ? rc : sqlite3_exec(db, statements, NULL, NULL, NULL));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define MANY " WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<2000)"

struct kept_file {
    struct stat st;
    char *bytes;
};

static struct kept_file keep_file(const char *path)
{
    struct kept_file k;
    assert_int_equal(stat(path, &k.st), 0);
    k.bytes = malloc((size_t)k.st.st_size + 1);
    FILE *f = fopen(path, "re");
    assert_true(f && k.bytes && fread(k.bytes, 1, (size_t)k.st.st_size, f) == (size_t)k.st.st_size);
    fclose(f);
    return k;
}

static void assert_untouched(const char *path, struct kept_file *before)
{
    struct kept_file now = keep_file(path);
    assert_int_equal(now.st.st_ino, before->st.st_ino);
    assert_int_equal(now.st.st_size, before->st.st_size);
    assert_memory_equal(&now.st.st_mtim, &before->st.st_mtim, sizeof now.st.st_mtim);
    assert_memory_equal(now.bytes, before->bytes, (size_t)now.st.st_size);
    free(now.bytes);
    free(before->bytes);
}

/* What a commit had begun is undone for the reader, and nothing on disk is another. */
static void reading_changes_nothing(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_session session = full_session();
    struct kp_result r = full_result(1);
    char journal[PATH_MAX + 16];
    struct kp_store *s = create(p->file);
    put_session(s, &session);
    put_result(s, &r);
    kp_store_close(s);
    snprintf(journal, sizeof journal, "%s-journal", p->file);
    be_killed_in(p->file, "BEGIN; UPDATE session SET exe='half'; DELETE FROM launch;" MANY
                          " INSERT INTO kernel SELECT hex(zeroblob(100)), x FROM c");
    struct kept_file file = keep_file(p->file), hot = keep_file(journal);
    assert_true(hot.st.st_size > 0);
    assert_int_equal(setenv("TMPDIR", p->folder, 1), 0);
    s = kp_test_reopen(p->file);
    assert_holds(s, &session, &r, 1);
    kp_store_close(s);
    assert_untouched(p->file, &file);
    assert_untouched(journal, &hot);
    assert_int_equal(setenv("TMPDIR", "/dev/null", 1), 0);
    assert_no_open(p->file, -EINVAL, "set TMPDIR to another folder");
    unsetenv("TMPDIR");
    assert_int_equal(count_files(p->folder), 2); /* no copy is left */
    kp_session_free(&session);
    kp_result_free(&r);
}

/* A journal that is not the one of the session: SQLite would replay it, and delete the file that it names at its end.
 */
static void strange_journals_are_refused(void **state)
{
    struct kp_test_place *p = *state;
    char journal[PATH_MAX + 16];
    struct stat st;
    snprintf(journal, sizeof journal, "%s-journal", p->file);
    kp_store_close(create(p->file));
    be_killed_in(p->file, "BEGIN;" MANY " INSERT INTO kernel SELECT hex(zeroblob(100)), x FROM c");
    if (!geteuid()) {
        assert_int_equal(chown(journal, 65534, (gid_t)-1), 0);
        assert_no_open(p->file, -EINVAL, "is not the journal that kprof wrote");
        assert_true(!stat(journal, &st) && st.st_uid == 65534); /* SQLite would change that as root */
        assert_int_equal(chown(journal, 0, (gid_t)-1), 0);
    }
    FILE *f = fopen(journal, "ae");
    assert_non_null(f);
    fwrite("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8, 1, f);
    fclose(f);
    assert_no_open(p->file, -EINVAL, "is not the journal that kprof wrote");
    unlink(journal);
}

static void killed_in_the_first_transaction(void **state)
{
    struct kp_test_place *p = *state;
    char journal[PATH_MAX + 16];
    struct stat st;
    snprintf(journal, sizeof journal, "%s-journal", p->file);
    FILE *f = fopen(journal, "we");
    fclose(f);
    f = fopen(p->file, "we");
    fclose(f);
    assert_no_open(p->file, -EINVAL, "is still empty");
    assert_int_equal(stat(journal, &st), 0); /* SQLite would remove it */
    be_killed_in(p->file, "BEGIN; CREATE TABLE kernel(name TEXT, count INTEGER);" MANY
                          " INSERT INTO kernel SELECT hex(zeroblob(100)), x FROM c");
    assert_true(!stat(p->file, &st) && st.st_size > 0);
    assert_no_open(p->file, -EINVAL, "is still empty");
}

static void another_journal_mode(void **state)
{
    struct kp_test_place *p = *state;
    kp_store_close(create(p->file));
    sql(p->file, "PRAGMA journal_mode=WAL");
    assert_no_open(p->file, -EINVAL, "PRAGMA journal_mode=DELETE");
    assert_int_equal(count_files(p->folder), 1);
}

/* Instances are JSON for whoever queries the file; a program's decimal comma does not get in, or in the way. */
static void instances_are_json(void **state)
{
    static const char *const locales[] = {"C", "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
    struct kp_test_place *p = *state;
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (!setlocale(LC_ALL, locales[i]))
            continue; /* not on this machine */
        struct kp_store *s = create(p->file);
        struct kp_session session = full_session();
        struct kp_result r = full_result(1);
        put_session(s, &session);
        put_result(s, &r);
        assert_holds(s, &session, &r, 1);
        kp_store_close(s);
        setlocale(LC_ALL, "C");
        char *text =
            one_text(p->file, "SELECT instances FROM metric m JOIN name n ON n.id = m.name WHERE n.name='d.count'");
        assert_string_equal(text, "[[\"0\",0],[\"1\",0.10000000000000001]]");
        free(text);
        text = one_text(p->file, "SELECT count(*) FROM metric WHERE instances IS NOT NULL");
        assert_string_equal(text, "3");
        free(text);
        unlink(p->file);
        kp_result_free(&r);
        kp_session_free(&session);
    }
}

static int expect_none(struct kp_result *r, void *arg)
{
    (void)r;
    (void)arg;
    fail_msg("a launch with broken instances was handed out");
    return 0;
}

static void broken_instances_are_an_error(void **state)
{
    static const char *const broken[] = {
        "",          "[",           "[[\"a\",1]",           "[[\"a\",1]]x",       "[[\"a\"]]",     "[[\"a\",]]",
        "[[a,1]]",   "[[\"a,1]]",   "[[\"a\",1][\"b\",2]]", "[[\"\\u00\",1]]",    "[[\"\\n\",1]]", "[[\"\\u0000\",1]]",
        "{\"a\":1}", "[[\"a\",x]]", "[[\"a\",inf]]",        "[[\"\\u12345\",1]]", "[[[[[[[",       "[[\"a\",1],]",
        "[[\"\\",
    };
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_result r = full_result(1);
    put_result(s, &r);
    kp_store_close(s);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char *statement = sqlite3_mprintf("UPDATE metric SET instances=%Q WHERE instances IS NOT NULL", broken[i]);
        char *err = NULL;
        sql(p->file, statement);
        s = kp_test_reopen(p->file);
        int rc = kp_store_each_result(s, expect_none, NULL, &err);
        if (rc != -EIO || !err || !strstr(err, p->file))
            fail_msg("'%s' is taken for instances: %d, %s", broken[i], rc, err ? err : "");
        free(err);
        kp_store_close(s);
        sqlite3_free(statement);
    }
    kp_result_free(&r);
}

static int count_metrics(struct kp_result *r, void *arg)
{
    *(size_t *)arg += r->n_metrics;
    return 0;
}

static int has_those_alone(struct kp_result *r, void *arg)
{
    struct kp_result whole = full_result(r->launch.id);
    assert_string_equal(r->launch.demangled, whole.launch.demangled);
    assert_int_equal(r->launch.nvtx.n_ranges, whole.launch.nvtx.n_ranges);
    assert_int_equal(r->n_metrics, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct kp_metric *m = kp_result_find(&whole, r->metrics[i].name);
        assert_non_null(m);
        assert_int_equal(r->metrics[i].kind, m->kind);
        assert_int_equal(r->metrics[i].n_instances, m->n_instances);
        assert_string_equal(r->metrics[i].unit, m->unit);
    }
    assert_int_equal(r->n_series + r->n_variants, 0);
    kp_result_free(&whole);
    ++*(int *)arg;
    return 0;
}

static void metrics_can_be_read_by_name(void **state)
{
    static const char *const only[] = {"h.ninth", "no such metric", "a.integral", NULL}, *const none[] = {NULL};
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    char *err = NULL;
    int n = 0;
    put_session(s, &session);
    for (uint64_t id = 1; id <= 2; id++) {
        struct kp_result r = full_result(id);
        put_result(s, &r);
        kp_result_free(&r);
    }
    kp_store_close(s);
    s = kp_test_reopen(p->file);
    kp_test_done(kp_store_each_result_with(s, only, has_those_alone, &n, &err), &err);
    assert_int_equal(n, 2);
    size_t metrics = 0;
    kp_test_done(kp_store_each_result_with(s, none, count_metrics, &metrics, &err), &err);
    assert_int_equal(metrics, 0);
    kp_test_done(kp_store_each_result_with(s, NULL, count_metrics, &metrics, &err), &err);
    assert_true(metrics > 4);
    kp_store_close(s);
    kp_session_free(&session);
}

static int count_launch(struct kp_result *r, void *arg)
{
    assert_true(r->n_metrics > 0);
    ++*(size_t *)arg;
    return 0;
}

static void the_example_can_be_read(void **state)
{
    (void)state;
    struct kp_store *s = kp_test_reopen(kp_test_source("examples/h200-demo.kprof"));
    struct kp_session session;
    size_t n = 0;
    char *err = NULL;
    assert_int_equal(kp_store_get_session(s, &session, &err), 0);
    assert_string_equal(session.clock_control, "none");
    assert_true(session.complete);
    assert_int_equal(session.n_devices, 1);
    assert_int_equal(session.devices[0].sm_count, 132);
    assert_int_equal(kp_store_each_result(s, count_launch, &n, &err), 0);
    assert_true(n > 0);
    kp_session_free(&session);
    kp_store_close(s);
}

/* What one reading may cost is no bound for how often a file is read: a comparison of many reads the first each time.
 */
static void a_file_can_be_read_many_times(void **state)
{
    (void)state;
    struct kp_store *s = kp_test_reopen(kp_test_source("examples/h200-demo.kprof"));
    char *err = NULL;
    for (int i = 0; i < 200; i++) {
        struct kp_session session;
        size_t n = 0;
        assert_int_equal(kp_store_get_session(s, &session, &err), 0);
        if (kp_store_each_result(s, count_launch, &n, &err))
            fail_msg("reading %d: %s", i, err);
        kp_session_free(&session);
    }
    kp_store_close(s);
}

/* The view that the schema promises to users. */
static void users_can_query(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_result r = full_result(5);
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    put_result(s, &r);
    assert_int_equal(sqlite3_open_v2(p->file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT kernel, unit, value FROM metrics WHERE launch=5 AND name='a.real'",
                                        -1, &q, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(q, 0), "f()");
    assert_string_equal((const char *)sqlite3_column_text(q, 1), "%");
    assert_true(sqlite3_column_double(q, 2) == 0.1);
    sqlite3_finalize(q);
    sqlite3_close(db);
    kp_store_close(s);
    kp_result_free(&r);
}

struct writing_reader {
    struct kp_store *writer;
    uint64_t next, seen;
};

static int write_while_reading(struct kp_result *r, void *arg)
{
    struct writing_reader *w = arg;
    (void)r;
    w->seen++;
    if (w->next < 5) {
        struct kp_result more = full_result(w->next++);
        put_result(w->writer, &more);
        kp_result_free(&more);
    }
    return 0;
}

static void a_slow_reader_does_not_hold_up_the_writer(void **state)
{
    struct kp_test_place *p = *state;
    struct writing_reader w = {create(p->file), 1, 0};
    struct kp_result r = full_result(0);
    char *err = NULL;
    put_result(w.writer, &r);
    struct kp_store *reader = kp_test_reopen(p->file);
    assert_int_equal(kp_store_each_result(reader, write_while_reading, &w, &err), 0);
    assert_int_equal(w.seen, 5); /* and it sees what came meanwhile */
    kp_store_close(reader);
    kp_store_close(w.writer);
    kp_result_free(&r);
}

/* Runs in the forked child; its exit status is the number of the first check that failed. */
static int child_checks(struct kp_store *s, const struct kp_session *session, const struct kp_result *r)
{
    struct kp_session got;
    struct kp_stack stack;
    struct kp_code code;
    char *err = NULL;
    int calls = 0;
    if (kp_store_put_result(s, r, &err) != -ECHILD)
        return 1;
    if (kp_store_put_session(s, session, &err) != -ECHILD)
        return 2;
    if (kp_store_begin(s, &err) != -ECHILD || kp_store_commit(s, &err) != -ECHILD)
        return 5;
    if (kp_store_get_session(s, &got, &err) != -ECHILD)
        return 3;
    if (kp_store_each_result(s, stop_at_second, &calls, &err) != -ECHILD || calls)
        return 4;
    if (kp_store_put_stack(s, &(struct kp_stack){.id = 1}, &err) != -ECHILD ||
        kp_store_put_code(s, &(struct kp_code){.id = 1}, &err) != -ECHILD)
        return 6;
    if (kp_store_get_stack(s, 1, &stack, &err) != -ECHILD || kp_store_get_code(s, 1, &code, &err) != -ECHILD)
        return 7;
    kp_store_close(s);
    return 0;
}

static void a_forked_child_is_kept_out(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    struct kp_result r = full_result(0);
    int status;
    put_session(s, &session);
    pid_t child = fork();
    if (!child)
        kp_test_end(child_checks(s, &session, &r));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    put_result(s, &r);
    assert_holds(s, &session, &r, 1);
    kp_store_close(s);
    kp_session_free(&session);
    kp_result_free(&r);
}

/* Whether descriptor `fd` is the file `path`. */
static bool is_file(int fd, const char *path)
{
    char link[64], target[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n < 0)
        return false;
    target[n] = '\0';
    return !strcmp(target, path);
}

static int descriptor_checks(const char *path)
{
    struct kp_store *s = NULL;
    char *err = NULL;
    int found = 0;
    close(0);
    if (kp_store_create(path, false, &s, &err))
        return 1;
    struct kp_result r = full_result(0);
    if (kp_store_put_result(s, &r, &err))
        return 2;
    for (int fd = 0; fd < 1024; fd++) {
        if (!is_file(fd, path))
            continue;
        found++;
        if (fd < 64)
            return 3;
        if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            return 4;
    }
    return found ? 0 : 5;
}

static void descriptors_stay_out_of_the_way(void **state)
{
    struct kp_test_place *p = *state;
    int status;
    pid_t child = fork();
    if (!child)
        kp_test_end(descriptor_checks(p->file));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

enum { ROUNDS = 60, METRICS_A_LAUNCH = 50 };

static struct kp_result typical_result(uint64_t id)
{
    struct kp_result r = full_result(id);
    char name[64];
    for (int i = 0; i < METRICS_A_LAUNCH - 8; i++) {
        snprintf(name, sizeof name, "unit__counter_number_%d.avg.pct_of_peak_sustained_elapsed", i);
        kp_result_set_real(&r, name, "%", (double)id + i / 7.0);
    }
    r.launch.stack = 2 * id + 1;
    r.launch.graph_number = (uint32_t)id % 3;
    r.launch.node = (uint32_t)id % 5;
    kp_test_add_counts(&r, 2 * id + 1);
    return r;
}

/* What it names, the launch itself being the last. */
static int put_typical(struct kp_store *s, uint64_t id)
{
    char *err = NULL;
    struct kp_result r = typical_result(id);
    struct kp_stack stack = kp_test_stack(r.launch.stack);
    int rc = kp_store_put_stack(s, &stack, &err);
    for (size_t i = 0; !rc && i < r.n_counts; i++) {
        struct kp_code code = kp_test_code(r.counts[i].code);
        rc = kp_store_put_code(s, &code, &err);
        kp_code_free(&code);
    }
    rc = rc ? rc : kp_store_put_result(s, &r, &err);
    kp_frames_free(&stack);
    kp_result_free(&r);
    return rc;
}

/* In the child: writes windows of `n` launches until it is killed, and counts the launches of those that are done where
 * the parent sees it. */
static void write_for_ever(const char *path, uint64_t n, volatile uint64_t *returned)
{
    struct kp_store *s = NULL;
    struct kp_session session = full_session();
    char *err = NULL;
    session.complete = false;
    if (kp_store_create(path, true, &s, &err) || kp_store_put_session(s, &session, &err))
        _exit(1);
    for (uint64_t id = 0;; id += n) {
        if (n > 1 && kp_store_begin(s, &err))
            _exit(2);
        for (uint64_t i = 0; i < n; i++)
            if (put_typical(s, id + i))
                _exit(3);
        session.launches_seen = id + n;
        if (kp_store_put_session(s, &session, &err))
            _exit(4);
        if (n > 1 && kp_store_commit(s, &err))
            _exit(5);
        *returned = id + n;
    }
}

struct typical {
    struct kp_store *store;
    uint64_t next;
};

static void expect_code(struct kp_store *s, uint64_t id)
{
    struct kp_code got, expected = kp_test_code(id);
    char *err = NULL;
    assert_int_equal(kp_store_get_code(s, id, &got, &err), 0);
    kp_test_same_code(&got, &expected);
    kp_code_free(&got);
    kp_code_free(&expected);
}

static int expect_typical(struct kp_result *r, void *arg)
{
    struct typical *t = arg;
    struct kp_result expected = typical_result(t->next++);
    struct kp_stack got, stack = kp_test_stack(expected.launch.stack);
    char *err = NULL;
    assert_same_result(r, &expected);
    kp_test_same_counts(r, &expected);
    assert_int_equal(kp_store_get_stack(t->store, r->launch.stack, &got, &err), 0);
    kp_test_same_stack(&got, &stack);
    for (size_t i = 0; i < r->n_counts; i++)
        expect_code(t->store, r->counts[i].code);
    kp_frames_free(&got);
    kp_frames_free(&stack);
    kp_result_free(&expected);
    return 0;
}

static uint64_t count_typical(struct kp_store *s)
{
    struct typical t = {s, 0};
    char *err = NULL;
    assert_int_equal(kp_store_each_result(s, expect_typical, &t, &err), 0);
    return t.next;
}

static void a_killed_writer_loses_nothing(void **state)
{
    struct kp_test_place *p = *state;
    volatile uint64_t *returned =
        mmap(NULL, sizeof *returned, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(returned, MAP_FAILED);
    srand(1);
    for (int round = 0; round < ROUNDS; round++) {
        int status;
        uint64_t n = round % 2 ? 5 : 1;
        *returned = 0;
        pid_t child = fork();
        if (!child)
            write_for_ever(p->file, n, returned);
        while (!*returned && !waitpid(child, &status, WNOHANG))
            usleep(100);
        assert_true(*returned > 0);
        usleep((useconds_t)(rand() % 8000));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

        struct kp_store *s = kp_test_reopen(p->file);
        struct kp_session session;
        char *err = NULL;
        assert_int_equal(kp_store_get_session(s, &session, &err), 0);
        uint64_t found = count_typical(s);
        assert_true(found == *returned || found == *returned + n); /* one may be written but not yet returned */
        if (n > 1)
            assert_int_equal(session.launches_seen, found);
        assert_false(session.complete);
        kp_session_free(&session);
        kp_store_close(s);
    }
    munmap((void *)returned, sizeof *returned);
}

/* The rarest moment made certain: pages of the file are changed, the commit is not done, the process dies. */
static void die_within_a_commit(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_open(path, &db);
    sqlite3_exec(db, "PRAGMA cache_size=2; BEGIN; UPDATE metric SET value = 0; DELETE FROM launch WHERE id > 5;", NULL,
                 NULL, NULL);
    kill(getpid(), SIGKILL);
}

static void a_commit_cut_short_is_undone(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = create(p->file);
    struct kp_session session = full_session();
    char journal[PATH_MAX + 16];
    struct stat st;
    int status;
    put_session(s, &session);
    for (uint64_t id = 0; id < 100; id++)
        assert_int_equal(put_typical(s, id), 0);
    kp_store_close(s);
    pid_t child = fork();
    if (!child)
        die_within_a_commit(p->file);
    assert_int_equal(waitpid(child, &status, 0), child);
    snprintf(journal, sizeof journal, "%s-journal", p->file);
    assert_int_equal(stat(journal, &st), 0);
    assert_true(st.st_size > 4096);

    s = kp_test_reopen(p->file);
    assert_int_equal(count_typical(s), 100);
    kp_store_close(s);
    kp_session_free(&session);
}

/* What SQLite itself would take for a database in memory, or for a URI, is the name of a file. */
static void any_name_is_that_of_a_file(void **state)
{
    static const char *const names[] = {":memory:", "file:y", "file:z?mode=memory", "a?b#c%41", "q\nq\t%"};
    const struct kp_test_place *p = *state;
    struct kp_session session = full_session();
    char before[PATH_MAX], path[2 * PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(p->folder), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct kp_store *s = create(names[i]);
        put_session(s, &session);
        assert_int_equal(put_typical(s, 0), 0);
        kp_store_close(s);
        snprintf(path, sizeof path, "%s/%s", p->folder, names[i]);
        const char *const both[] = {names[i], path};
        for (size_t k = 0; k < 2; k++) {
            s = kp_test_reopen(both[k]);
            assert_int_equal(count_typical(s), 1);
            kp_store_close(s);
        }
        snprintf(path, sizeof path, "%s-journal", names[i]);
        assert_int_equal(access(path, F_OK), -1);
    }
    assert_int_equal(chdir(before), 0);
    kp_session_free(&session);
}

static void the_page_is_what_was_rendered_in_the_process(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_recording rec = kp_test_recording();
    struct kp_test_text direct = {0}, stored = {0};
    struct kp_sink direct_out = kp_test_sink(&direct), stored_out = kp_test_sink(&stored);
    struct kp_store *s = create(p->file);
    char *err = NULL;
    kp_render_process(&direct_out, NULL, &rec.session);
    for (size_t i = 0; i < rec.n; i++) {
        kp_test_launch(&direct_out, &plain, &rec.session, &rec.results[i]);
        put_result(s, &rec.results[i]);
    }
    kp_render_account(&direct_out, &rec.session, NULL);
    put_session(s, &rec.session);
    kp_store_close(s);
    s = kp_test_reopen(p->file);
    assert_int_equal(kp_page_print_store(&stored_out, &plain, s, &err), 0);
    assert_string_equal(stored.text, direct.text);
    kp_store_close(s);
    free(direct.text);
    free(stored.text);
    kp_test_recording_free(&rec);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, kp_test_enter, kp_test_leave)

/* Lists of a session are bounded: pages look each launch up in them. What kprof writes is kept as it is. */
static void long_lists_are_cut(void **state)
{
    enum { ITEMS = 100000, LONGEST = 64 << 10 };
    char *err = NULL, *many = malloc(8 * ITEMS + 1), *end = many, none[] = "", set[] = "full", metrics[] = "a,b, a";
    const char *path = ((struct kp_test_place *)*state)->file;
    struct kp_store *store;
    struct kp_session out = {0};
    assert_non_null(many);
    for (int i = 0; i < ITEMS; i++)
        end += sprintf(end, "s%d,", i % 5000);
    memset(many + 2 * LONGEST, 'x', LONGEST); /* no name is that long */
    struct kp_session in = {.exe = none,
                            .cmdline = none,
                            .host = none,
                            .kprof_version = none,
                            .cupti_version = none,
                            .set = set,
                            .sections = many,
                            .metrics = metrics,
                            .cache_control = none,
                            .clock_control = none,
                            .section_folder = none,
                            .environment = none};
    assert_int_equal(kp_store_create(path, true, &store, &err), 0);
    assert_int_equal(kp_store_put_session(store, &in, &err), 0);
    kp_store_close(store);
    assert_int_equal(kp_store_open(path, &store, &err), 0);
    assert_int_equal(kp_store_get_session(store, &out, &err), 0);
    assert_int_equal(strncmp(out.sections, "s0,s1,s2,", 9), 0);
    assert_true(strlen(out.sections) <= LONGEST);
    assert_non_null(strstr(out.sections, ",s4999"));
    assert_null(strstr(strstr(out.sections, ",s17,") + 1, ",s17,"));
    assert_string_equal(out.metrics, "a,b, a");
    assert_string_equal(out.set, "full");
    kp_session_free(&out);
    kp_store_close(store);
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(every_field_comes_back),
        IN_A_FOLDER(long_lists_are_cut),
        IN_A_FOLDER(a_launch_is_replaced),
        IN_A_FOLDER(a_callback_can_stop),
        IN_A_FOLDER(a_failed_put_leaves_no_half_launch),
        IN_A_FOLDER(a_launch_is_written_whole_or_not_at_all),
        IN_A_FOLDER(the_highest_launch_is_the_last),
        IN_A_FOLDER(several_puts_are_one_transaction),
        IN_A_FOLDER(a_failed_transaction_leaves_nothing),
        IN_A_FOLDER(creating),
        IN_A_FOLDER(opening_what_is_no_session),
        IN_A_FOLDER(a_session_is_its_owners_alone),
        IN_A_FOLDER(reading_changes_nothing),
        IN_A_FOLDER(strange_journals_are_refused),
        IN_A_FOLDER(killed_in_the_first_transaction),
        IN_A_FOLDER(another_journal_mode),
        IN_A_FOLDER(instances_are_json),
        IN_A_FOLDER(broken_instances_are_an_error),
        IN_A_FOLDER(metrics_can_be_read_by_name),
        IN_A_FOLDER(the_example_can_be_read),
        IN_A_FOLDER(a_file_can_be_read_many_times),
        IN_A_FOLDER(users_can_query),
        IN_A_FOLDER(a_slow_reader_does_not_hold_up_the_writer),
        IN_A_FOLDER(a_forked_child_is_kept_out),
        IN_A_FOLDER(descriptors_stay_out_of_the_way),
        IN_A_FOLDER(a_killed_writer_loses_nothing),
        IN_A_FOLDER(a_commit_cut_short_is_undone),
        IN_A_FOLDER(any_name_is_that_of_a_file),
        IN_A_FOLDER(the_page_is_what_was_rendered_in_the_process),
    };
    return cmocka_run_group_tests_name("report/store", tests, NULL, NULL);
}
