/*
 * A session file that somebody else has written: a valid one is changed by the statements that the input spells, and
 * then byte by byte. The store's reader opens it, and it is shown as text, CSV or JSON, page by page by turns.
 *
 * The input is a program: a byte chooses a statement from the table below, and the bytes behind it what it is about.
 */
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/diff.h"
#include "report/judge/rules.h"
#include "report/pages/page.h"
#include "report/store/store.h"
#include "report/view/listed.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/session_base.h"

enum {
    BASES = 2,
    MOST_STATEMENTS = 12,  /* of one input */
    MOST_FLIPS = 16,       /* bytes of the file */
    MOST_TABLES = 32,      /* of the schema */
    MOST_COLUMNS = 64,     /* of a table */
    MOST_STEPS = 100000,   /* of SQLite's machine, that one statement takes */
    MOST_LENGTH = 1000000, /* of a value that a statement makes */
};

static struct {
    char file[PATH_MAX], valid[PATH_MAX]; /* the one that is changed, and one that is not */
    struct kp_store *other;               /* the latter, opened */
    uint8_t *bases[BASES];
    size_t sizes[BASES];
    struct table {
        char *name, *columns[MOST_COLUMNS];
        size_t n;
    } tables[MOST_TABLES];
    size_t n_tables;
} fixed;

/* ---- the input ---- */

struct input {
    const uint8_t *at;
    size_t left;
};

static unsigned take(struct input *in)
{
    return in->left ? (in->left--, *in->at++) : 0;
}

static unsigned pick(struct input *in, size_t n)
{
    return take(in) % (unsigned)n;
}

static const struct table *pick_table(struct input *in)
{
    return &fixed.tables[pick(in, fixed.n_tables)];
}

static const char *pick_column(struct input *in, const struct table *t)
{
    return t->columns[pick(in, t->n)];
}

/* ---- values and conditions, as SQL; to be freed with sqlite3_free ---- */

/* %w is the column that it is for. */
static const char *const values[] = {
    "NULL",
    "0",
    "1",
    "2",
    "-1",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "0.1",
    "1e308",
    "-1e308",
    "9e999",
    "-9e999",
    "5e-324",
    "''",
    "'x'",
    "x'00ff80'",
    "x'c3'",
    "zeroblob(70000)",
    "hex(zeroblob(40000))",
    "'[]'",
    "'[1'",
    "'[0,16,32]'",
    "'[1e999,null]'",
    "'[[\"a\",1],[\"\\u001b\",-1e999]]'",
    "'[18446744073709551615,0]'",
    "'basic,detailed'",
    "'full'",
    "'regex:(.*)*\\1Q'",
    "'breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed'",
    "'group:memory__chart'",
    "char(27)||'[2J'||char(10)||'==KPROF== '||char(13)",
    "'_Z1fIiEvT_'",
    "'/proc/self/maps'",
    "\"%w\"+1",
    "-\"%w\"",
    "\"%w\"*1000003",
    "\"%w\"||\"%w\"",
    "substr(\"%w\",2)",
    "substr(\"%w\",1,length(\"%w\")-1)",
    "replace(\"%w\",',',',,')",
    "replace(\"%w\",'_','%%')",
    "CAST(\"%w\" AS BLOB)",
    "CAST(\"%w\" AS TEXT)",
    "CAST(\"%w\" AS INTEGER)",
};
enum { N_VALUES = sizeof values / sizeof *values };

static bool is_json(const char *value)
{
    return !strncmp(value, "'[", 2);
}

/* Where lists stand, a value is one that can be read every other time, as nothing else goes further than its reader. */
static unsigned pick_value(struct input *in, const char *column)
{
    unsigned which = pick(in, 2 * (N_VALUES + 4));
    bool of_lists = !strcmp(column, "values") || !strcmp(column, "offsets") || !strcmp(column, "instances");
    for (unsigned i = 0; of_lists && which >= N_VALUES + 4 && i < N_VALUES; i++, which++)
        if (is_json(values[which % N_VALUES]))
            return which % N_VALUES;
    return which % (N_VALUES + 4);
}

static char *make_value(struct input *in, const char *column)
{
    unsigned which = pick_value(in, column);
    if (which < N_VALUES)
        return sqlite3_mprintf(values[which], column, column, column);
    if (which == N_VALUES)
        return sqlite3_mprintf("%lld", (long long)take(in) << pick(in, 56));
    if (which == N_VALUES + 1) { /* a metric's or a section's name, whose end is cut off or followed by more */
        const struct table *t = pick_table(in);
        return sqlite3_mprintf("(SELECT \"%w\" FROM \"%w\" LIMIT 1 OFFSET %u)", pick_column(in, t), t->name, take(in));
    }
    unsigned len = pick(in, 40);
    len = len < in->left ? len : (unsigned)in->left;
    char *text = sqlite3_mprintf("%.*Q", (int)len, (const char *)in->at);
    in->at += len;
    in->left -= len;
    return text;
}

static char *make_condition(struct input *in, const struct table *t)
{
    static const char *const forms[] = {
        "1", "\"%w\" = %d", "\"%w\" > %d", "\"%w\" %% 7 = %d", "typeof(\"%w\") = 'text' AND %d", "length(\"%w\") > %d"};
    unsigned form = pick(in, sizeof forms / sizeof *forms);
    const char *column = t->columns[pick(in, t->n < 3 ? t->n : 3)]; /* those of keys come first */
    return form ? sqlite3_mprintf(forms[form], column, (int)take(in) % 20) : sqlite3_mprintf("1");
}

/* ---- statements ---- */

static char *change_cells(struct input *in)
{
    const struct table *t = pick_table(in);
    const char *column = pick_column(in, t);
    char *value = make_value(in, column), *condition = make_condition(in, t);
    char *sql = sqlite3_mprintf("UPDATE OR REPLACE \"%w\" SET \"%w\" = %z WHERE %z", t->name, column, value, condition);
    return sql;
}

static char *delete_rows(struct input *in)
{
    const struct table *t = pick_table(in);
    return sqlite3_mprintf("DELETE FROM \"%w\" WHERE %z", t->name, make_condition(in, t));
}

/* Rows once more, with another value in one column. */
static char *repeat_rows(struct input *in)
{
    const struct table *t = pick_table(in);
    const char *changed = pick_column(in, t);
    char *list = NULL;
    for (size_t i = 0; i < t->n; i++) {
        const char *comma = i ? "," : "";
        if (t->columns[i] == changed)
            list = sqlite3_mprintf("%z%s%z", list, comma, make_value(in, changed));
        else
            list = sqlite3_mprintf("%z%s\"%w\"", list, comma, t->columns[i]);
    }
    return sqlite3_mprintf("INSERT OR REPLACE INTO \"%w\" SELECT %z FROM \"%w\" WHERE %z LIMIT 50", t->name, list,
                           t->name, make_condition(in, t));
}

/* The same rows in a table that has no types and no keys. */
static char *loosen_table(struct input *in)
{
    const struct table *t = pick_table(in);
    return sqlite3_mprintf("CREATE TABLE loose AS SELECT * FROM \"%w\"; DROP TABLE \"%w\"; ALTER TABLE loose RENAME TO "
                           "\"%w\"",
                           t->name, t->name, t->name);
}

/* What stands in a table's place. %w is the table, which has become NAME0. */
static const char *const impostors[] = {
    "CREATE VIEW \"%w\" AS SELECT * FROM \"%w0\"",
    "CREATE VIEW \"%w\" AS SELECT b.* FROM \"%w0\" a, \"%w0\" b, \"%w0\" c, \"%w0\" d",
    "CREATE VIEW \"%w\" AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT 'a'||x, x, x FROM c",
    "CREATE VIEW \"%w\" AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE 0=0) SELECT x FROM c "
    "WHERE x<0",
    "CREATE VIEW \"%w\" AS SELECT hex(zeroblob(400000000)), 1",
    "CREATE VIEW \"%w\" AS WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x+1 FROM c WHERE x<1000000000) "
    "SELECT c.x, b.* FROM c, \"%w0\" b",
    "CREATE VIEW \"%w\" AS SELECT * FROM json_each('[1,2,3]'), \"%w0\"",
    "CREATE TABLE \"%w\"(id INTEGER PRIMARY KEY)",
    "CREATE TABLE \"%w\"(a, b AS (hex(zeroblob(100000000))), c AS (a||a)); INSERT INTO \"%w\" VALUES(1)",
    "CREATE TABLE \"%w\"(a TEXT PRIMARY KEY, b, c, d) WITHOUT ROWID; INSERT INTO \"%w\" VALUES('1',2,'x',x'00')",
    "CREATE VIRTUAL TABLE \"%w\" USING fts5(a, b, c)",
    "CREATE TABLE \"%w\"(a INTEGER PRIMARY KEY, b TEXT COLLATE NOCASE, c CHECK(c > randomblob(10)))",
};

static char *replace_table(struct input *in)
{
    const char *name = pick_table(in)->name;
    char *impostor =
        sqlite3_mprintf(impostors[pick(in, sizeof impostors / sizeof *impostors)], name, name, name, name, name);
    return sqlite3_mprintf("ALTER TABLE \"%w\" RENAME TO \"%w0\"; %z", name, name, impostor);
}

static char *change_columns(struct input *in)
{
    static const char *const forms[] = {"ALTER TABLE \"%w\" DROP COLUMN \"%w\"",
                                        "ALTER TABLE \"%w\" RENAME COLUMN \"%w\" TO other",
                                        "ALTER TABLE \"%w\" ADD COLUMN more DEFAULT 7 /*%w*/",
                                        "ALTER TABLE \"%w\" ADD COLUMN more AS (\"%w\"||'x')",
                                        "CREATE INDEX more ON \"%w\"(\"%w\"||1)",
                                        "DROP TABLE \"%w\" /*%w*/"};
    const struct table *t = pick_table(in);
    return sqlite3_mprintf(forms[pick(in, sizeof forms / sizeof *forms)], t->name, pick_column(in, t));
}

static char *change_header(struct input *in)
{
    static const char *const forms[] = {"PRAGMA user_version=%d", "PRAGMA application_id=%d",
                                        "PRAGMA schema_version=%d", "PRAGMA auto_vacuum=%d; VACUUM"};
    unsigned form = pick(in, sizeof forms / sizeof *forms);
    return sqlite3_mprintf(forms[form], (int)pick(in, 12) - 2);
}

/* The schema's own table, past all checks. */
static char *change_schema(struct input *in)
{
    static const char *const forms[] = {"rootpage = %d",
                                        "type = 'view' || (%d = 0)",
                                        "name = 'session' || %d",
                                        "tbl_name = 'launch' || %d",
                                        "sql = substr(sql, 1, %d)",
                                        "sql = replace(sql, 'INTEGER', 'TEXT') || (%d < 0)",
                                        "sql = replace(sql, ' PRIMARY KEY', '') || (%d < 0)",
                                        "sql = replace(sql, 'TEXT', 'TEXT AS (1)') || (%d < 0)"};
    char *set = sqlite3_mprintf(forms[pick(in, sizeof forms / sizeof *forms)], (int)take(in));
    return sqlite3_mprintf("PRAGMA writable_schema=ON; UPDATE sqlite_schema SET %z WHERE name = %Q OR rowid = %d", set,
                           pick_table(in)->name, (int)take(in) % 50);
}

/* Cells are what readers look at most. */
static char *(*const statements[])(struct input *) = {change_cells,  change_cells,   change_cells,  change_cells,
                                                      delete_rows,   repeat_rows,    repeat_rows,   loosen_table,
                                                      replace_table, change_columns, change_header, change_schema};

static int out_of_patience(void *arg)
{
    (void)arg;
    return 1;
}

static void change_by_statements(sqlite3 *db, struct input *in)
{
    sqlite3_progress_handler(db, MOST_STEPS, out_of_patience, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MOST_LENGTH);
    unsigned n = pick(in, MOST_STATEMENTS + 1);
    for (unsigned i = 0; i < n && in->left; i++) {
        char *sql = statements[pick(in, sizeof statements / sizeof *statements)](in);
        kp_fuzz_require(sql != NULL, "no memory for a statement");
        if (getenv("KP_FUZZ_SHOW"))
            fprintf(stderr, "fuzz: %s;\n", sql);
        sqlite3_exec(db, sql, NULL, NULL, NULL); /* it may fail */
        sqlite3_free(sql);
    }
}

/* A flip is an offset, from the file's begin or, as a schema's text, from its first page on, and a value. */
static void change_by_bytes(uint8_t *file, sqlite3_int64 *size, struct input *in)
{
    unsigned n = pick(in, MOST_FLIPS + 1);
    for (unsigned i = 0; i < n && in->left >= 3 && *size; i++) {
        sqlite3_int64 at = (sqlite3_int64)take(in) << 9;
        at += take(in) << 1;
        file[at % *size] ^= (uint8_t)(take(in) | 1);
    }
    if (in->left == 2) { /* cut off */
        sqlite3_int64 kept = (sqlite3_int64)take(in) << 9;
        kept += take(in);
        *size = kept < *size ? kept : *size;
    }
}

/* ---- the file ---- */

static void write_file(const uint8_t *content, sqlite3_int64 size)
{
    FILE *f = fopen(fixed.file, "wb");
    kp_fuzz_require(f && (!size || fwrite(content, (size_t)size, 1, f) == 1), "the session cannot be written");
    kp_fuzz_require(!fclose(f), "the session cannot be written");
}

static sqlite3 *open_in_memory(const uint8_t *content, size_t size)
{
    sqlite3 *db = NULL;
    uint8_t *copy = sqlite3_malloc64(size);
    kp_fuzz_require(copy && !sqlite3_open(":memory:", &db), "no database in memory");
    memcpy(copy, content, size);
    int rc = sqlite3_deserialize(db, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                                 SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    kp_fuzz_require(!rc, "no database in memory");
    return db;
}

/* The large one takes 20 times as long. Chosen by a hash, it comes seldom, whatever inputs libFuzzer holds most of. */
static unsigned pick_base(const struct input *in)
{
    return kp_hash(in->at, in->left, 0) % 32 == 31;
}

static void make_file(struct input *in)
{
    unsigned base = pick_base(in);
    sqlite3 *db = open_in_memory(fixed.bases[base], fixed.sizes[base]);
    sqlite3_int64 size = 0;
    change_by_statements(db, in);
    uint8_t *content = sqlite3_serialize(db, "main", &size, 0);
    sqlite3_close(db);
    if (content)
        change_by_bytes(content, &size, in);
    write_file(content, content ? size : 0);
    sqlite3_free(content);
}

/* ---- what is done with it ---- */

static int swallow(void *arg, const char *text, size_t len)
{
    size_t *all = arg;
    *all += len;
    kp_fuzz_require(text || !len, "text that is nowhere");
    return 0;
}

#define TEXT(page)                                                                                                     \
    {                                                                                                                  \
        .rules = KP_RULES_ALL, .details = KP_DETAILS_ALL, .naming = KP_NAMING_BOTH, .instances = KP_INSTANCES_DETAILS, \
        .n_pages = 1, .pages = {KP_PAGE_##page}, .range_names = true, .source_lines = true, .source_sass = true        \
    }
#define CSV(page)                                                                                                      \
    {                                                                                                                  \
        .format = KP_FORMAT_CSV, .rules = KP_RULES_ALL, .n_pages = 1, .pages = {KP_PAGE_##page}, .source_lines = true, \
        .source_sass = true                                                                                            \
    }

static const struct kp_display displays[] = {
    TEXT(DETAILS),
    TEXT(RAW),
    TEXT(SESSION),
    TEXT(SUMMARY),
    TEXT(TRACE),
    TEXT(SOURCE),
    {.n_pages = 1, .pages = {KP_PAGE_SOURCE}, .source_ptx = true},
    {.n_pages = 1, .pages = {KP_PAGE_SOURCE}, .source_sass = true, .source_ptx = true},
    TEXT(PM),
    CSV(DETAILS),
    CSV(RAW),
    CSV(SESSION),
    CSV(SUMMARY),
    CSV(TRACE),
    CSV(SOURCE),
    CSV(PM),
    {.format = KP_FORMAT_JSON, .rules = KP_RULES_ALL},
    {.grouping = KP_GROUPING_KERNEL, .n_pages = 1, .pages = {KP_PAGE_DETAILS}},
    {.grouping = KP_GROUPING_NVTX, .n_pages = 1, .pages = {KP_PAGE_RAW}},
};
enum { N_DISPLAYS = sizeof displays / sizeof *displays };

static void check_outcome(int rc, char **err)
{
    kp_fuzz_require(rc == 0 || rc == -EINVAL || rc == -EIO || rc == -ENOMEM || rc == -ENOENT, "an unknown outcome");
    free(*err);
    *err = NULL;
}

static void show(struct kp_store *store, const struct kp_display *d)
{
    size_t written = 0;
    struct kp_sink sink = {swallow, &written};
    char *err = NULL;
    check_outcome(kp_page_print_store(&sink, d, store, &err), &err);
}

static void compare(struct kp_store *store)
{
    size_t written = 0;
    struct kp_sink sink = {swallow, &written};
    static const struct kp_diff_options options[] = {{.by = KP_DIFF_BY_LAUNCH, .all = true}, {.by = KP_DIFF_BY_KERNEL}};
    const struct kp_diff_input input[2] = {{"a", 'A', fixed.other}, {"b", 'B', store}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct kp_diff_outcome outcome = {0};
        char *err = NULL;
        check_outcome(kp_diff(&sink, &displays[0], &options[i], input, &outcome, &err), &err);
        free(outcome.warnings);
    }
}

static void check_lists(struct kp_store *store)
{
    enum kp_missing missing;
    char *out = NULL, *err = NULL;
    check_outcome(kp_listed_check(store, "regex:dram,sm__throughput,nothing", NULL, 0, &out, &missing, &err), &err);
    free(out);
}

/* All that is shown of a file takes long, so each input has a few of the ways; `turn`, a byte of it, tells which. */
static void use(struct kp_store *store, unsigned turn)
{
    enum { WAYS = N_DISPLAYS + 2, STEP = 7, SHOWN = 3 };
    for (unsigned i = 0; i < SHOWN; i++) {
        unsigned way = (turn + i * STEP) % WAYS;
        if (way == N_DISPLAYS)
            compare(store);
        else if (way > N_DISPLAYS)
            check_lists(store);
        else
            show(store, &displays[way]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct kp_store *store = NULL;
    char *err = NULL;
    unsigned turn = take(&in);
    make_file(&in);
    int rc = kp_store_open(fixed.file, &store, &err);
    kp_fuzz_require(!rc || err, "a session that cannot be opened, and no message");
    check_outcome(rc, &err);
    if (!rc)
        use(store, turn);
    kp_store_close(store);
    return 0;
}

/* ---- the begin ---- */

static void read_base(unsigned i)
{
    kp_fuzz_write_session(fixed.valid, (int)i);
    fixed.bases[i] = kp_fuzz_source(fixed.valid, &fixed.sizes[i]);
}

static int add_column(void *arg, int n, char **cells, char **names)
{
    (void)arg;
    (void)n;
    (void)names;
    struct table *last = fixed.n_tables ? &fixed.tables[fixed.n_tables - 1] : NULL;
    if (!last || strcmp(last->name, cells[0])) {
        kp_fuzz_require(fixed.n_tables < MOST_TABLES, "more tables than there is room for");
        last = &fixed.tables[fixed.n_tables++];
        last->name = strdup(cells[0]);
    }
    kp_fuzz_require(last->n < MOST_COLUMNS, "more columns than there is room for");
    last->columns[last->n++] = strdup(cells[1]);
    return 0;
}

static void read_schema(void)
{
    sqlite3 *db = open_in_memory(fixed.bases[0], fixed.sizes[0]);
    sqlite3_exec(db,
                 "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER "
                 "BY m.rowid, c.cid",
                 add_column, NULL, NULL);
    sqlite3_close(db);
    kp_fuzz_require(fixed.n_tables > 10, "the session has no tables");
}

static void remove_files(void)
{
    char *slash = strrchr(fixed.file, '/');
    unlink(fixed.file);
    unlink(fixed.valid);
    *slash = '\0';
    rmdir(fixed.file);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const char *parent = getenv("TMPDIR");
    char folder[PATH_MAX / 2];
    snprintf(folder, sizeof folder, "%s/kprof-fuzz-XXXXXX", parent && *parent ? parent : "/tmp");
    kp_fuzz_require(mkdtemp(folder) != NULL, "no folder for sessions");
    snprintf(fixed.file, sizeof fixed.file, "%s/changed.kprof", folder);
    snprintf(fixed.valid, sizeof fixed.valid, "%s/valid.kprof", folder);
    atexit(remove_files);
    for (unsigned i = BASES; i-- > 0;)
        read_base(i);
    read_schema();
    char *err = NULL;
    kp_fuzz_require(!kp_store_open(fixed.valid, &fixed.other, &err), "the valid session cannot be opened");
    return 0;
}
