/*
 * Guards against session files that kprof may not have written: mailed, in others' folders, or damaged. A file may
 * make SQLite compute (views, generated columns, virtual tables). It may also refer to the same page many times, so
 * that a small file yields gigabytes. So only plain tables of ours are accepted, and reading costs at most a
 * multiple of the file's size. The cost counts steps of SQLite's machine and bytes handed out, not seconds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "report/store/store_body.h"

enum {
    STEPS_A_CALL = 1000, /* between two checks of the budget */
    SCHEMA_STEPS = 30000,
    ROW_COST = 64, /* bytes in memory, besides its texts */
    MIB = 1 << 20,
};

/* The budget of reading: a fixed part, and one for each byte of the file. */
static const struct allowance {
    uint64_t fixed, each;
} of_steps = {UINT64_C(20000000), 32},   /* in total */
    of_bytes = {UINT64_C(64) << 20, 64}, /* in total: pages read a session more than once */
    of_one = {UINT64_C(8) << 20, 24}; /* at once, for a session or launch: short rows refer to the names of metrics */

static bool exceeds(struct kp_store *s, uint64_t spent, const struct allowance *a)
{
    struct stat st;
    if (spent <= a->fixed + a->each * s->size)
        return false;
    if (!stat(s->path, &st) && (uint64_t)st.st_size > s->size) /* the program may still be writing */
        s->size = (uint64_t)st.st_size;
    return spent > a->fixed + a->each * s->size;
}

static int count_steps(void *store)
{
    struct kp_store *s = store;
    s->steps += STEPS_A_CALL;
    return s->is_checked ? exceeds(s, s->steps, &of_steps) : s->steps > SCHEMA_STEPS;
}

void kp_store_next_reading(struct kp_store *s)
{
    if (s->is_checked)
        s->steps = s->bytes = 0;
}

void kp_store_next_object(struct kp_store *s)
{
    s->bytes_of_one = 0;
}

int kp_store_charge(struct kp_store *s, size_t bytes)
{
    if (!s->is_guarded)
        return SQLITE_OK;
    s->bytes += ROW_COST + bytes;
    s->bytes_of_one += ROW_COST + bytes;
    return exceeds(s, s->bytes, &of_bytes) || exceeds(s, s->bytes_of_one, &of_one) ? SQLITE_TOOBIG : SQLITE_OK;
}

int kp_store_guard(struct kp_store *s)
{
    static const struct {
        int id, most;
    } limits[] = {{SQLITE_LIMIT_SQL_LENGTH, 16 << 10}, {SQLITE_LIMIT_COLUMN, 100},      {SQLITE_LIMIT_EXPR_DEPTH, 50},
                  {SQLITE_LIMIT_COMPOUND_SELECT, 4},   {SQLITE_LIMIT_FUNCTION_ARG, 16}, {SQLITE_LIMIT_ATTACHED, 0},
                  {SQLITE_LIMIT_TRIGGER_DEPTH, 1},     {SQLITE_LIMIT_WORKER_THREADS, 0}};
    static const struct {
        int id, on;
    } switches[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                    {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(s->db, limits[i].id, limits[i].most);
    sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, s->size < 512 * MIB ? 64 * MIB + (int)s->size : 600 * MIB);
    int rc = SQLITE_OK;
    for (size_t i = 0; !rc && i < sizeof switches / sizeof *switches; i++)
        rc = sqlite3_db_config(s->db, switches[i].id, switches[i].on, NULL);
    rc = rc ? rc : sqlite3_drop_modules(s->db, NULL);
    sqlite3_progress_handler(s->db, STEPS_A_CALL, count_steps, s);
    s->is_guarded = true;
    /* Sorting would go to a file; no query of ours needs it. */
    return rc ? rc : sqlite3_exec(s->db, "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0", NULL, NULL, NULL);
}

/* ---- tables ---- */

static const struct table {
    const char *name;
    int since; /* the version that brought it */
} tables[] = {
    {"session", 1},        {"device", 1},      {"skip", 1},       {"kernel", 1},        {"launch", 1},
    {"name", 1},           {"metric", 1},      {"range_seen", 3}, {"launch_range", 3},  {"frame", 4},
    {"code", 4},           {"source_file", 4}, {"location", 4},   {"instruction", 4},   {"code_counts", 4},
    {"code_metric", 4},    {"series", 4},      {"activity", 7},   {"activity_name", 7}, {"variant", 8},
    {"variant_metric", 8}, {"ptx", 9},
};

enum { X_NUMBER, X_NAME, X_TYPE, X_NOT_NULL, X_DEFAULT, X_KEY, X_HIDDEN };

static sqlite3_stmt *columns_of(sqlite3 *db, const char *table)
{
    char statement[64];
    sqlite3_stmt *columns = NULL;
    snprintf(statement, sizeof statement, "PRAGMA main.table_xinfo(%s)", table);
    return sqlite3_prepare_v2(db, statement, -1, &columns, NULL) ? NULL : columns;
}

static bool same_text(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
    const char *x = (const char *)sqlite3_column_text(a, column), *y = (const char *)sqlite3_column_text(b, column);
    return x && y && !strcmp(x, y);
}

/* Whether a stored column is the one that we write in that place. */
static bool same_column(sqlite3_stmt *a, sqlite3_stmt *b)
{
    return same_text(a, b, X_NAME) && same_text(a, b, X_TYPE) &&
           sqlite3_column_int(a, X_KEY) == sqlite3_column_int(b, X_KEY) && !sqlite3_column_int(a, X_HIDDEN);
}

/* Whether the table's columns are the first, or all, of those that we write. */
static bool is_ours(sqlite3 *db, sqlite3 *model, const char *table)
{
    /* This function fails for a view without looking into it; preparing a statement would look. */
    if (sqlite3_table_column_metadata(db, "main", table, NULL, NULL, NULL, NULL, NULL, NULL))
        return false;
    sqlite3_stmt *columns = columns_of(db, table), *expected = columns_of(model, table);
    int n = 0;
    bool same = columns && expected;
    while (same && sqlite3_step(columns) == SQLITE_ROW) {
        same = sqlite3_step(expected) == SQLITE_ROW && same_column(columns, expected);
        n++;
    }
    sqlite3_finalize(columns);
    sqlite3_finalize(expected);
    return same && n;
}

int kp_store_check_tables(struct kp_store *s, const char *const schemas[4], char **err)
{
    sqlite3 *model = NULL;
    int rc = sqlite3_open(":memory:", &model);
    for (int i = 0; !rc && i < 4; i++)
        rc = sqlite3_exec(model, schemas[i], NULL, NULL, NULL);
    int failed = rc ? -ENOMEM : 0;
    for (size_t i = 0; !failed && i < sizeof tables / sizeof *tables; i++)
        if (tables[i].since <= s->version && !is_ours(s->db, model, tables[i].name))
            failed = kp_error(err, "'%s' is damaged, or kprof did not write it: '%s' is not a table of its own",
                              s->path, tables[i].name);
    sqlite3_close(model);
    s->steps = 0;
    s->is_checked = true;
    return failed;
}
