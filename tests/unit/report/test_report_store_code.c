#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/numbers.h"
#include "report/pages/page.h"
#include "tests/support/code_support.h"
#include "tests/support/report_support.h"
#include "tests/support/store_support.h"

/* Begins with one frame alone, so that not all ids are as good. */
enum { FIRST_STACK = 3, FIRST_CODE = 11, LAUNCHES = 3 };

static struct kp_result result(uint64_t id)
{
    struct kp_result r = {.launch = {.id = id,
                                     .mangled = kp_strdup("_Z6kernelPf"),
                                     .demangled = kp_strdup("kernel(float *)"),
                                     .chip = kp_strdup("GH100"),
                                     .stack = FIRST_STACK + id}};
    kp_result_set_real(&r, "gpu__time_duration.sum", "ns", 1000);
    kp_test_add_counts(&r, FIRST_CODE);
    return r;
}

static void put_stack(struct kp_store *s, uint64_t id)
{
    char *err = NULL;
    struct kp_stack stack = kp_test_stack(id);
    int rc = kp_store_put_stack(s, &stack, &err);
    kp_test_done(rc, &err);
    kp_frames_free(&stack);
}

static void put_code(struct kp_store *s, uint64_t id)
{
    char *err = NULL;
    struct kp_code code = kp_test_code(id);
    int rc = kp_store_put_code(s, &code, &err);
    kp_test_done(rc, &err);
    kp_code_free(&code);
}

/* A session with a few launches that share their code, and with a stack for each. */
static void write_session(const char *path)
{
    struct kp_store *s = NULL;
    struct kp_recording rec = kp_test_recording();
    char *err = NULL;
    int rc = kp_store_create(path, true, &s, &err);
    rc = rc ? rc : kp_store_put_session(s, &rec.session, &err);
    kp_test_done(rc, &err);
    put_code(s, FIRST_CODE);
    put_code(s, FIRST_CODE + 1);
    for (uint64_t id = 0; id < LAUNCHES; id++) {
        struct kp_result r = result(id);
        put_stack(s, FIRST_STACK + id);
        rc = kp_store_put_result(s, &r, &err);
        kp_test_done(rc, &err);
        kp_result_free(&r);
    }
    kp_store_close(s);
    kp_test_recording_free(&rec);
}

static void sql(const char *path, const char *text)
{
    sqlite3 *db = NULL;
    char *err = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, &err))
        fail_msg("%s: %s", text, err);
    sqlite3_close(db);
}

/* --- reading back --- */

struct reading {
    struct kp_store *store;
    uint64_t next;
};

/* What a launch names is there while it is shown. */
static int expect_next(struct kp_result *r, void *arg)
{
    struct reading *reading = arg;
    struct kp_result expected = result(reading->next++);
    struct kp_lookup lookup = kp_store_lookup(reading->store);
    struct kp_stack stack, stack_wanted = kp_test_stack(r->launch.stack);
    assert_true(r->launch.id == expected.launch.id && r->launch.stack == expected.launch.stack);
    kp_test_same_counts(r, &expected);
    assert_int_equal(kp_lookup_stack(&lookup, r->launch.stack, &stack), 0);
    kp_test_same_stack(&stack, &stack_wanted);
    for (size_t i = 0; i < r->n_counts; i++) {
        struct kp_code code, code_wanted = kp_test_code(FIRST_CODE + i);
        assert_int_equal(kp_lookup_code(&lookup, r->counts[i].code, &code), 0);
        kp_test_same_code(&code, &code_wanted);
        kp_code_free(&code);
        kp_code_free(&code_wanted);
    }
    kp_frames_free(&stack);
    kp_frames_free(&stack_wanted);
    kp_result_free(&expected);
    return 0;
}

static void assert_holds_all(const char *path)
{
    struct reading reading = {kp_test_reopen(path), 0};
    char *err = NULL;
    int rc = kp_store_each_result(reading.store, expect_next, &reading, &err);
    kp_test_done(rc, &err);
    assert_int_equal(reading.next, LAUNCHES);
    kp_store_close(reading.store);
}

static void all_comes_back(void **state)
{
    static const char *const locales[] = {"C", "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
    struct kp_test_place *p = *state;
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (!setlocale(LC_ALL, locales[i]))
            continue; /* not on this machine */
        write_session(p->file);
        assert_holds_all(p->file);
        setlocale(LC_ALL, "C");
    }
}

/* Of a result that takes the place of another nothing of the other is left: fewer functions, metrics and series, too.
 */
static void a_replaced_result_has_its_own(void **state)
{
    struct kp_test_place *p = *state;
    char *err = NULL;
    write_session(p->file);
    struct kp_store *s = NULL;
    int rc = kp_store_create(p->file, true, &s, &err);
    kp_test_done(rc, &err);
    for (uint64_t id = 0; id < LAUNCHES; id++) {
        struct kp_result r = result(id), bare = {.launch = {.id = id}};
        kp_test_add_counts(&r, FIRST_CODE + 2); /* more than there will be */
        put_stack(s, FIRST_STACK + id);
        rc = kp_store_put_result(s, &r, &err);
        rc = rc ? rc : kp_store_replace_result(s, &bare, &err);
        kp_result_free(&r);
        r = result(id);
        rc = rc ? rc : kp_store_replace_result(s, &r, &err);
        rc = rc ? rc : kp_store_replace_result(s, &r, &err);
        kp_test_done(rc, &err);
        kp_result_free(&r);
    }
    put_code(s, FIRST_CODE);
    put_code(s, FIRST_CODE + 1);
    struct kp_recording rec = kp_test_recording();
    rc = kp_store_put_session(s, &rec.session, &err);
    kp_test_done(rc, &err);
    kp_test_recording_free(&rec);
    kp_store_close(s);
    assert_holds_all(p->file);
}

static void what_is_not_there(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_stack stack;
    struct kp_code code;
    char *err = NULL;
    write_session(p->file);
    struct kp_store *s = kp_test_reopen(p->file);
    struct kp_lookup lookup = kp_store_lookup(s), none = kp_store_lookup(NULL);
    assert_int_equal(kp_store_get_stack(s, 99, &stack, &err), -ENOENT);
    assert_null(err);
    assert_null(stack.frames);
    assert_int_equal(kp_store_get_code(s, 99, &code, &err), -ENOENT);
    assert_null(err);
    assert_null(code.function);
    assert_int_equal(kp_lookup_stack(&lookup, 0, &stack), -ENOENT);
    assert_int_equal(kp_lookup_code(&lookup, UINT64_MAX, &code), -ENOENT);
    assert_int_equal(kp_lookup_stack(&none, FIRST_STACK, &stack), -ENOENT);
    assert_int_equal(kp_lookup_code(NULL, FIRST_CODE, &code), -ENOENT);
    kp_store_close(s);
}

static void nothing_is_something(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = NULL;
    struct kp_stack stack = {.id = 1}, stack_back;
    struct kp_code code = {.id = UINT64_MAX}, code_back;
    char *err = NULL;
    kp_test_done(kp_store_create(p->file, false, &s, &err), &err);
    kp_test_done(kp_store_put_stack(s, &stack, &err), &err);
    kp_test_done(kp_store_put_code(s, &code, &err), &err);
    assert_int_equal(kp_store_get_stack(s, 1, &stack_back, &err), -ENOENT);
    assert_int_equal(kp_store_get_code(s, UINT64_MAX, &code_back, &err), 0);
    kp_test_same_code(&code_back, &code);
    kp_code_free(&code_back);
    kp_store_close(s);
}

static int count_one(struct kp_result *r, void *arg)
{
    assert_int_equal(r->n_counts, 0);
    assert_int_equal(r->n_series, 0);
    assert_true(r->launch.stack == 0);
    ++*(int *)arg;
    return 0;
}

/* --- writing --- */

static void code_that_contradicts_itself_is_refused(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = NULL;
    char *err = NULL;
    kp_test_done(kp_store_create(p->file, false, &s, &err), &err);
    kp_test_done(kp_store_begin(s, &err), &err);
    put_stack(s, FIRST_STACK);
    for (int i = 0; i < 7; i++) {
        struct kp_code code = kp_test_code(FIRST_CODE);
        uint32_t *const broken[] = {
            &code.locations[1].file,   &code.locations[1].parent,    &code.locations[3].parent,
            &code.locations[0].parent, &code.instructions[1].offset, &code.instructions[1].location,
            &code.ptx[1].line};
        const uint32_t values[] = {3, 5, 2, 1, 0, 5, 7};
        *broken[i] = values[i];
        if (kp_store_put_code(s, &code, &err) != -EINVAL || !err || !strstr(err, "_Z6kernelPf"))
            fail_msg("fault %d: %s", i, err ? err : "is taken");
        free(err);
        kp_code_free(&code);
    }
    put_code(s, FIRST_CODE); /* the transaction goes on */
    kp_test_done(kp_store_commit(s, &err), &err);
    struct kp_stack stack;
    kp_test_done(kp_store_get_stack(s, FIRST_STACK, &stack, &err), &err);
    kp_frames_free(&stack);
    kp_store_close(s);
}

/* The last row that a launch writes is refused: nothing of it, or of the code that came with it, is left. */
static void a_failed_window_takes_its_code_along(void **state)
{
    struct kp_test_place *p = *state;
    struct kp_store *s = NULL;
    struct kp_result r = result(0);
    struct kp_code code;
    char *err = NULL;
    int n = 0;
    kp_test_done(kp_store_create(p->file, false, &s, &err), &err);
    sql(p->file, "CREATE TRIGGER refuse BEFORE INSERT ON series WHEN NEW.name = 'none'"
                 " BEGIN SELECT RAISE(FAIL, 'refused'); END");
    kp_test_done(kp_store_begin(s, &err), &err);
    put_code(s, FIRST_CODE);
    put_stack(s, FIRST_STACK);
    assert_int_equal(kp_store_put_result(s, &r, &err), -EIO);
    assert_non_null(strstr(err, "refused"));
    free(err);
    assert_int_equal(kp_store_get_code(s, FIRST_CODE, &code, &err), -ENOENT);
    kp_test_done(kp_store_each_result(s, count_one, &n, &err), &err);
    assert_int_equal(n, 0);
    sql(p->file, "DROP TRIGGER refuse");
    put_code(s, FIRST_CODE);
    kp_test_done(kp_store_put_result(s, &r, &err), &err);
    kp_store_close(s);
    kp_result_free(&r);
}

/* --- files that nobody of ours has written --- */

static int take_any(struct kp_result *r, void *arg)
{
    (void)r;
    (void)arg;
    return 0;
}

/* Reads all there is; the first error, which has a message. */
static int read_all(const char *path)
{
    struct kp_store *s = NULL;
    struct kp_stack stack;
    struct kp_code code;
    char *err = NULL;
    if (kp_store_open(path, &s, &err)) {
        free(err);
        return -EINVAL;
    }
    int first = kp_store_each_result(s, take_any, NULL, &err);
    assert_int_equal(!first, !err);
    free(err);
    for (uint64_t id = 0; id < 20; id++) {
        int rc = kp_store_get_stack(s, id, &stack, &err);
        first = first || rc == -ENOENT ? first : rc;
        free(err);
        kp_frames_free(&stack);
        rc = kp_store_get_code(s, id, &code, &err);
        first = first || rc == -ENOENT ? first : rc;
        free(err);
        kp_code_free(&code);
    }
    kp_store_close(s);
    return first;
}

static void broken_rows_are_an_error(void **state)
{
    static const char *const broken[] = {
        "UPDATE code_counts SET offsets = NULL",
        "UPDATE code_counts SET offsets = ''",
        "UPDATE code_counts SET offsets = '[0,16'",
        "UPDATE code_counts SET offsets = '[0,16]x'",
        "UPDATE code_counts SET offsets = '[0,,16]'",
        "UPDATE code_counts SET offsets = '[0,-16]'",
        "UPDATE code_counts SET offsets = '[16,0,32,48,64]' WHERE position = 0", /* not by offset */
        "UPDATE code_counts SET offsets = '[0,16,32,48,4294967296]'",
        "UPDATE code_counts SET offsets = x'5b305d00ff'",
        "UPDATE code_counts SET offsets = 7",
        "UPDATE code_counts SET position = position + 1 WHERE position = 1",
        "UPDATE code_metric SET \"values\" = '[1]'",
        "UPDATE code_metric SET \"values\" = '[]'",
        "UPDATE code_metric SET \"values\" = '[1,2,3,4,5,6,7,8,9]'",
        "UPDATE code_metric SET \"values\" = replace(\"values\", '18446744073709551615', '18446744073709551616')",
        "UPDATE code_metric SET \"values\" = replace(\"values\", '18446744073709551615', '1.5')",
        "UPDATE code_metric SET \"values\" = replace(\"values\", '18446744073709551615', '\"a\"')",
        "UPDATE code_metric SET \"values\" = NULL WHERE name = 'inst_executed'",
        "UPDATE code_metric SET \"values\" = zeroblob(1000000)",
        "UPDATE series SET \"values\" = '[0,nan]'",
        "UPDATE series SET \"values\" = '[0,0x10]'",
        "UPDATE series SET \"values\" = '{}'",
        "UPDATE series SET \"values\" = NULL",
        "UPDATE location SET position = 9 WHERE position = 2",
        "UPDATE location SET parent = 9 WHERE position = 2",
        "UPDATE location SET parent = 2 WHERE position = 2",
        "UPDATE location SET parent = -1 WHERE position = 2",
        "UPDATE location SET parent = 3 WHERE position = 4",
        "UPDATE location SET file = 99 WHERE position = 2",
        "UPDATE location SET file = NULL WHERE position = 2",
        "DELETE FROM source_file WHERE path = '/src/math.cuh'",
        "UPDATE instruction SET location = 5 WHERE offset = 16",
        "UPDATE instruction SET location = -1 WHERE offset = 16",
        "UPDATE instruction SET offset = 4294967296 WHERE offset = 16",
        "UPDATE ptx SET line = 4294967297 WHERE line = 14",
    };
    struct kp_test_place *p = *state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        write_session(p->file);
        assert_int_equal(read_all(p->file), 0);
        sql(p->file, broken[i]);
        if (read_all(p->file) != -EIO)
            fail_msg("not noticed: %s", broken[i]);
    }
}

/* What has another type is taken for what SQLite makes of it. */
static void odd_rows_do_no_harm(void **state)
{
    static const char *const odd[] = {
        "UPDATE frame SET kind = 'x', function = x'00ff', line = -1, module = 7, offset = 'y', file = 1.5",
        "UPDATE frame SET function = zeroblob(3000000)",
        "UPDATE code SET function = NULL, crc = 'x'",
        "UPDATE code_metric SET name = NULL",
        "UPDATE code_metric SET name = 'one' || rowid",
        "UPDATE code_counts SET code = 'x'",
        "UPDATE launch SET stack = 'x'",
        "UPDATE location SET line = -1, function = 8",
        "UPDATE instruction SET opcode = NULL, text = x'ff'",
        "UPDATE instruction SET ptx = -1",
        "UPDATE instruction SET ptx = 'x'",
        "UPDATE ptx SET text = NULL",
        "UPDATE ptx SET text = x'ff00ff', line = -line",
        "UPDATE ptx SET code = 99 WHERE code = 11",
        "UPDATE source_file SET text = x'00', path = path || zeroblob(20)",
        "UPDATE series SET name = NULL, unit = NULL, start_ns = 'x', interval_ns = NULL",
    };
    struct kp_test_place *p = *state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        write_session(p->file);
        sql(p->file, odd[i]);
        if (read_all(p->file))
            fail_msg("an error: %s", odd[i]);
    }
}

/* Each of these makes SQLite compute for ever, or gigabytes, or reads something else than what a table of ours holds.
 */
static void other_tables_are_refused(void **state)
{
    static const struct {
        const char *table, *statements;
    } others[] = {
        {"frame", "DROP TABLE frame"},
        {"code", "DROP TABLE code"},
        {"series", "DROP TABLE series"},
        {"skip", "DROP TABLE skip; CREATE VIEW skip AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "
                 "SELECT 'reason'||x AS reason, x AS count FROM c"},
        {"skip", "DROP TABLE skip; CREATE VIEW skip AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c "
                 "WHERE 0=0) SELECT 'a' AS reason, x AS count FROM c WHERE x<0"},
        {"skip", "DROP TABLE skip; CREATE VIEW skip AS SELECT hex(zeroblob(400000000)) AS reason, 1 AS count"},
        {"launch", "ALTER TABLE launch RENAME TO l; CREATE VIEW launch AS WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL "
                   "SELECT x+1 FROM c WHERE x<1000000000) SELECT c.x AS id, l.* FROM c, l"},
        {"source_file", "DROP TABLE source_file; CREATE VIEW source_file AS SELECT DISTINCT file AS id, 'x' AS path, "
                        "'y' AS text FROM location"},
        {"kernel", "DROP TABLE kernel; CREATE TABLE kernel(name TEXT AS (hex(zeroblob(400000000))), count INTEGER)"},
        {"kernel", "DROP TABLE kernel; CREATE TABLE kernel(name TEXT, count INTEGER AS (length(name)) STORED)"},
        {"skip", "DROP TABLE skip; CREATE VIRTUAL TABLE skip USING fts5(reason, count)"},
        {"skip", "DROP TABLE skip; CREATE TABLE skip(reason TEXT, count INTEGER, more TEXT)"},
        {"device", "ALTER TABLE device RENAME COLUMN chip TO ship"},
        {"name", "DROP TABLE name; CREATE TABLE name(id INTEGER, name TEXT NOT NULL, unit TEXT NOT NULL)"},
    };
    struct kp_test_place *p = *state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct kp_store *s = NULL;
        char *err = NULL, part[64];
        write_session(p->file);
        sql(p->file, others[i].statements);
        snprintf(part, sizeof part, "'%s' is not a table of its own", others[i].table);
        if (kp_store_open(p->file, &s, &err) != -EINVAL || !strstr(err, part) || !strstr(err, p->file))
            fail_msg("%s: %s", others[i].statements, err ? err : "taken");
        free(err);
    }
    /* what somebody adds for himself does no harm */
    write_session(p->file);
    sql(p->file, "CREATE TABLE notes(x); CREATE VIEW mine AS SELECT * FROM metrics; CREATE INDEX fast ON metric(value);"
                 "CREATE TRIGGER t AFTER INSERT ON launch BEGIN SELECT 1; END; ANALYZE");
    assert_int_equal(read_all(p->file), 0);
}

static int read_session(const char *path, char **err)
{
    struct kp_store *s = NULL;
    struct kp_session session = {0};
    int rc = kp_store_open(path, &s, err);
    rc = rc ? rc : kp_store_get_session(s, &session, err);
    kp_session_free(&session);
    kp_store_close(s);
    return rc;
}

static uint32_t read_be32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void write_be32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* An interior page of a table, all of whose children become one page. */
static void lead_to(unsigned char *page, uint32_t child)
{
    enum { CELLS = 3, RIGHTMOST = 8, POINTERS = 12 };
    int n = page[CELLS] << 8 | page[CELLS + 1];
    write_be32(page + RIGHTMOST, child);
    for (int i = 0; i < n; i++)
        write_be32(page + (page[POINTERS + 2 * i] << 8 | page[POINTERS + 2 * i + 1]), child);
}

static uint32_t root_page(const char *path, const char *table)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_schema WHERE name = ?", -1, &q, NULL), 0);
    sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    uint32_t page = (uint32_t)sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return page;
}

/* Puts pages between a table's root and its first leaf, each of which has the next one as its child many times: rows to
 * the power of the levels. */
static void stack_pages(const char *path, const char *table, int levels)
{
    enum { SIZE = 4096, PAGES = 28 };
    unsigned char page[SIZE], header[SIZE];
    long root = (long)(root_page(path, table) - 1) * SIZE;
    FILE *f = fopen(path, "r+e");
    assert_non_null(f);
    assert_int_equal(fread(header, SIZE, 1, f), 1);
    fseek(f, root, SEEK_SET);
    assert_int_equal(fread(page, SIZE, 1, f), 1);
    assert_int_equal(page[0], 5); /* an interior page */
    uint32_t child = read_be32(page + (page[12] << 8 | page[13])), pages = read_be32(header + PAGES);
    fseek(f, 0, SEEK_END);
    for (int i = 0; i < levels; i++) {
        lead_to(page, child);
        assert_int_equal(fwrite(page, SIZE, 1, f), 1);
        child = ++pages;
    }
    lead_to(page, child);
    write_be32(header + PAGES, pages);
    fseek(f, root, SEEK_SET);
    assert_int_equal(fwrite(page, SIZE, 1, f), 1);
    fseek(f, 0, SEEK_SET);
    assert_int_equal(fwrite(header, SIZE, 1, f), 1);
    fclose(f);
}

static void rows_without_end_are_an_error(void **state)
{
    struct kp_test_place *p = *state;
    char *err = NULL;
    struct rusage before, after;
    write_session(p->file);
    sql(p->file, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<10000) INSERT INTO skip "
                 "SELECT 'reason ' || x, 1, NULL FROM c");
    stack_pages(p->file, "skip", 8);
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(read_session(p->file, &err), -EIO);
    getrusage(RUSAGE_SELF, &after);
    assert_non_null(strstr(err, "it claims more data than a file of its size can hold"));
    free(err);
    assert_true(after.ru_maxrss - before.ru_maxrss < 200 << 10);
    assert_true(after.ru_utime.tv_sec - before.ru_utime.tv_sec < 20); /* it takes 0.1; all of them would take years */
}

/* Bytes of the file are changed anywhere. What is read is anything; that it is read to the end is the test. */
static void damaged_files_do_no_harm(void **state)
{
    enum { ROUNDS = 300, BYTES = 20 };
    struct kp_test_place *p = *state;
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 10 == 0)
            write_session(p->file); /* else what is damaged is damaged more */
        FILE *f = fopen(p->file, "r+e");
        assert_non_null(f);
        fseek(f, 0, SEEK_END);
        long size = ftell(f);
        for (int i = 0; i < BYTES; i++) {
            fseek(f, 100 + rand() % (size - 100), SEEK_SET);
            fputc(rand() & 0xff, f);
        }
        fclose(f);
        read_all(p->file);
    }
}

/* --- on pages --- */

/* The session as JSON, malloc'ed. */
static char *print(struct kp_store *s)
{
    static const struct kp_display json = {.format = KP_FORMAT_JSON};
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    char *err = NULL;
    int rc = kp_page_print_store(&sink, &json, s, &err);
    kp_test_done(rc, &err);
    return t.text;
}

static size_t times(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

/* The ids of two sessions that are open at once are the same, and what they stand for is not. */
static void each_session_has_its_own_ids(void **state)
{
    struct kp_test_place *p = *state;
    char other[PATH_MAX + 8];
    snprintf(other, sizeof other, "%s.2", p->file);
    write_session(p->file);
    write_session(other);
    sql(other, "UPDATE code SET function = 'another'; UPDATE frame SET function = 'elsewhere'");
    struct kp_store *a = kp_test_reopen(p->file), *b = kp_test_reopen(other);
    char *text = print(a), *text_b = print(b);
    assert_int_equal(times(text, "\"_Z6kernelPf 1"), 2);
    assert_int_equal(times(text, "\"step "), 1 + 2 + 2); /* the last of three frames has no name */
    assert_int_equal(times(text, "\"line 1"), 1);        /* a text that both functions have */
    assert_int_equal(times(text_b, "\"_Z6kernelPf 1") + times(text_b, "\"step "), 0);
    assert_int_equal(times(text_b, "\"another\""), 2);
    assert_int_equal(times(text_b, "\"elsewhere\""), 1 + 2 + 3);
    free(text);
    free(text_b);
    kp_store_close(a);
    kp_store_close(b);
}

/* --- the lists --- */

static void lists_of_numbers(void **state)
{
    static const uint64_t counts[] = {0, 9, 10, 99, 4294967295, 4294967296, UINT64_MAX};
    static const double reals[] = {0, 3, 0.5, -7, NAN, INFINITY, -INFINITY, 9007199254740993.0, 1e22};
    static const char *const faults[] = {
        "",       "[",     "]",    "[]]",  "[,]",  "[1,]",  "[,1]", "[1 ]",
        "1",      "[1]]",  "[1]1", "[-1]", "[+1]", "[1e1]", "[x]",  "[18446744073709551616]",
        "[null]", "[[1]]", "[1;2]"};
    void *back;
    size_t n;
    (void)state;
    char *text = kp_numbers_write(KP_NUMBER_U64, counts, 7);
    assert_string_equal(text, "[0,9,10,99,4294967295,4294967296,18446744073709551615]");
    assert_int_equal(kp_numbers_read(KP_NUMBER_U64, text, &back, &n), 0);
    assert_int_equal(n, 7);
    assert_memory_equal(back, counts, sizeof counts);
    free(back);
    assert_int_equal(kp_numbers_read(KP_NUMBER_U32, text, &back, &n), -EINVAL);
    free(text);
    text = kp_numbers_write(KP_NUMBER_REAL, reals, 9);
    assert_string_equal(text, "[0,3,0.5,-7,null,1e999,-1e999,9007199254740992,1e+22]");
    assert_int_equal(kp_numbers_read(KP_NUMBER_REAL, text, &back, &n), 0);
    for (size_t i = 0; i < 9; i++)
        assert_true(((double *)back)[i] == reals[i] || isnan(reals[i]));
    free(back);
    free(text);
    text = kp_numbers_write(KP_NUMBER_U32, NULL, 0);
    assert_string_equal(text, "[]");
    assert_int_equal(kp_numbers_read(KP_NUMBER_U32, text, &back, &n), 0);
    assert_int_equal(n, 0);
    free(back);
    free(text);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (kp_numbers_read(KP_NUMBER_U64, faults[i], &back, &n) != -EINVAL)
            fail_msg("taken: %s", faults[i]);
}

/* --- what users are told they may ask --- */

/* The queries of the document: indented lines up to one that ends with a semicolon. NULL when there is no other. */
static char *next_query(char **at)
{
    char *query = NULL;
    size_t len = 0;
    for (char *line = *at; line && *line; line = *at) {
        size_t n = strcspn(line, "\n");
        *at = line + n + (line[n] == '\n');
        bool within = !strncmp(line, "    ", 4) && (query || !strncmp(line + 4, "SELECT", 6));
        if (!within)
            continue;
        query = realloc(query, len + n + 1);
        memcpy(query + len, line + 3, n - 3);
        len += n - 3;
        query[len] = '\0';
        if (line[n - 1] == ';')
            return query;
    }
    free(query);
    return NULL;
}

static void print_rows(FILE *to, sqlite3 *db, const char *query)
{
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(db, query, -1, &q, NULL))
        fail_msg("%s: %s", query, sqlite3_errmsg(db));
    fprintf(to, "%s\n", query + 1);
    int rows = 0, rc;
    for (; (rc = sqlite3_step(q)) == SQLITE_ROW; rows++)
        for (int c = 0, n = sqlite3_column_count(q); c < n; c++) {
            const char *text = (const char *)sqlite3_column_text(q, c);
            fprintf(to, "%s%s", text ? text : "NULL", c + 1 < n ? "|" : "\n");
        }
    if (rc != SQLITE_DONE)
        fail_msg("%s: %s", query, sqlite3_errmsg(db));
    sqlite3_finalize(q);
}

static void the_documented_queries_answer(void **state)
{
    struct kp_test_place *p = *state;
    char *document = kp_test_read(kp_test_source("docs/session.md")), *at = document, *query, *text = NULL;
    size_t size;
    sqlite3 *db = NULL;
    FILE *to = open_memstream(&text, &size);
    write_session(p->file);
    assert_int_equal(sqlite3_open(p->file, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "INSERT INTO activity_name VALUES(1, 'a(int)'), (2, 'memcpy HtoD');"
                     "INSERT INTO activity(kind, name, start_ns, end_ns) VALUES(0, 1, 5, 7), (0, 1, 8, 12),"
                     " (1, 2, 1, 4)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    for (; (query = next_query(&at)); free(query))
        print_rows(to, db, query);
    fclose(to);
    sqlite3_close(db);
    kp_test_golden(text, "tests/golden/session_queries.txt");
    free(text);
    free(document);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, kp_test_enter, kp_test_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(all_comes_back),
        IN_A_FOLDER(a_replaced_result_has_its_own),
        IN_A_FOLDER(what_is_not_there),
        IN_A_FOLDER(nothing_is_something),
        IN_A_FOLDER(code_that_contradicts_itself_is_refused),
        IN_A_FOLDER(a_failed_window_takes_its_code_along),
        IN_A_FOLDER(broken_rows_are_an_error),
        IN_A_FOLDER(odd_rows_do_no_harm),
        IN_A_FOLDER(other_tables_are_refused),
        IN_A_FOLDER(rows_without_end_are_an_error),
        IN_A_FOLDER(damaged_files_do_no_harm),
        IN_A_FOLDER(each_session_has_its_own_ids),
        cmocka_unit_test(lists_of_numbers),
        IN_A_FOLDER(the_documented_queries_answer),
    };
    return cmocka_run_group_tests_name("report/store_code", tests, NULL, NULL);
}
