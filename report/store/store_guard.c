/*
 * Guards against session files that kprof may not have written: mailed, in others' folders, or damaged. A file may
 * make SQLite compute (views, generated columns, virtual tables). It may also refer to the same page many times, so
 * that a small file yields gigabytes. So only plain tables of ours are accepted, and reading costs at most a
 * multiple of the file's size. The cost counts steps of SQLite's machine and bytes handed out, not seconds.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "report/store/store_body.h"

enum {
    STEPS_A_CALL = 1000, /* between two checks of the budget */
    SCHEMA_STEPS = 30000,
    ROW_COST = 64, /* bytes in memory, without its texts */
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

/* Returns true if the file has the table that the statement of `len` bytes at `sql` creates, to the letter. The file's
 * text is what SQLite makes its tables of, so neither a view nor a generated column passes for a table of ours. */
static int has_table(struct kp_store *s, const char *sql, size_t len, bool *has)
{
    sqlite3_stmt *q = NULL;
    int rc =
        sqlite3_prepare_v2(s->db, "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND sql = ?", -1, &q, NULL);
    rc = rc ? rc : sqlite3_bind_text(q, 1, sql, (int)len, SQLITE_STATIC);
    rc = rc ? rc : sqlite3_step(q);
    *has = rc == SQLITE_ROW;
    sqlite3_finalize(q);
    return rc == SQLITE_NOMEM ? -ENOMEM : 0;
}

int kp_store_check_tables(struct kp_store *s, const char *const schemas[4], char **err)
{
    static const char create[] = "CREATE TABLE ";
    int failed = 0;
    for (int i = 0; !failed && i < 4; i++)
        for (const char *at = schemas[i], *end; !failed && (end = strchr(at, ';')); at = end + 1) {
            bool has = true;
            if (!strncmp(at, create, strlen(create)))
                failed = has_table(s, at, (size_t)(end - at), &has);
            if (!failed && !has) {
                const char *name = at + strlen(create);
                failed = kp_error(err, "'%s' is damaged, or kprof did not write it: '%.*s' is not a table of its own",
                                  s->path, (int)strcspn(name, "("), name);
            }
        }
    s->steps = 0;
    s->is_checked = true;
    return failed;
}
