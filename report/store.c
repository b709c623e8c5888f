/*
 * The session file, schema version 3. Users may query it: every table but `name` is one struct of model.h.
 *
 *   PRAGMA application_id  0x4b505246 ("KPRF");  PRAGMA user_version  the schema version
 *   session  one row (id 1): the facts of the run; columns as the fields of struct kp_session
 *   device   one row a device: columns as the fields of struct kp_device_info
 *   skip     one row a reason: reason, count (launches not profiled)
 *   kernel   one row a kernel that no filter took: name, count
 *   range_seen    one row an NVTX range that was opened, written as nvtx-include takes it: name, count
 *   launch   one row a launch: columns as the fields of struct kp_launch_info; grid and block as _x, _y, _z
 *   launch_range  one row an NVTX range that was open around a launch: launch, position (0 ...; push-pop ranges of a
 *            thread from the outermost on), kind (enum kp_nvtx_kind), and the other fields of struct kp_nvtx_range
 *   name     id, name, unit: each metric name with its base unit, once
 *   metric   launch, name (an id of `name`), kind (enum kp_value_kind), value; REAL, INTEGER or TEXT by kind, and for
 *            kind 0 the reason why there is none. A REAL that is not a number is NULL. instances: NULL when the metric
 *            has none, else a JSON array of [key, value] pairs.
 *   metrics  a view of the last three: launch, kernel, name, unit, value
 * Unsigned 64-bit numbers are stored as the signed ones of the same bits.
 *
 * Columns are only ever added, each at the end of its table: a file of an earlier version has fewer, and what it lacks
 * reads as NULL. Version 2 added session.section_folder, device.breakdowns and metric.instances; version 3 the tables
 * range_seen and launch_range, and launch.thread, thread_name and stream_name.
 *
 * Why a rollback journal and not WAL: a killed process would leave its last launches in a side file. Why synchronous is
 * off: what must be survived is the death of the process, and what it wrote is then in the kernel's hands.
 */
#include "report/store.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <search.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/instances.h"
#include "report/text.h"

enum {
    APPLICATION_ID = 0x4b505246,
    SCHEMA_VERSION = 3,
    HAS_RANGES = 3, /* the version that brought the tables of NVTX ranges */
    /* A reader holds the file for one launch at a time, well under a millisecond. */
    BUSY_TIMEOUT_MS = 2000,
};

static const char schema[] =
    "CREATE TABLE session(id INTEGER PRIMARY KEY, pid INTEGER, exe TEXT, cmdline TEXT, host TEXT, kprof_version TEXT,"
    " start_unix_ns INTEGER, end_unix_ns INTEGER, driver_version INTEGER, cupti_version TEXT, \"set\" TEXT,"
    " sections TEXT, metrics TEXT, cache_control TEXT, clock_control TEXT, launches_seen INTEGER,"
    " launches_profiled INTEGER, passes INTEGER, profiling_ns REAL, complete INTEGER, section_folder TEXT);"
    "CREATE TABLE device(ordinal INTEGER, name TEXT, chip TEXT, pci_bus_id TEXT, cc_major INTEGER, cc_minor INTEGER,"
    " sm_count INTEGER, breakdowns TEXT);"
    "CREATE TABLE skip(reason TEXT, count INTEGER);"
    "CREATE TABLE kernel(name TEXT, count INTEGER);"
    "CREATE TABLE range_seen(name TEXT, count INTEGER);"
    "CREATE TABLE launch(id INTEGER PRIMARY KEY, ordinal INTEGER, kind INTEGER, mangled TEXT, demangled TEXT,"
    " grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER,"
    " context_id INTEGER, stream_id INTEGER, device INTEGER, cc_major INTEGER, cc_minor INTEGER, chip TEXT,"
    " passes INTEGER, profiler_ns REAL, note TEXT, reason TEXT, thread INTEGER, thread_name TEXT, stream_name TEXT);"
    "CREATE TABLE launch_range(launch INTEGER, position INTEGER, kind INTEGER, domain TEXT, name TEXT, category TEXT,"
    " payload TEXT, thread INTEGER, PRIMARY KEY(launch, position)) WITHOUT ROWID;"
    "CREATE TABLE name(id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, UNIQUE(name, unit));"
    "CREATE TABLE metric(launch INTEGER, name INTEGER, kind INTEGER, value, instances TEXT, PRIMARY KEY(launch, name))"
    " WITHOUT ROWID;"
    "CREATE VIEW metrics AS SELECT m.launch, l.demangled AS kernel, n.name, n.unit, m.value FROM metric m"
    " JOIN launch l ON l.id = m.launch JOIN name n ON n.id = m.name;";

enum query {
    Q_BEGIN,
    Q_COMMIT,
    Q_ROLLBACK,
    Q_PUT_SESSION,
    Q_CLEAR_DEVICES,
    Q_PUT_DEVICE,
    Q_CLEAR_SKIPS,
    Q_PUT_SKIP,
    Q_CLEAR_KERNELS,
    Q_PUT_KERNEL,
    Q_CLEAR_RANGES_SEEN,
    Q_PUT_RANGE_SEEN,
    Q_PUT_LAUNCH,
    Q_PUT_RANGE,
    Q_PUT_NAME,
    Q_GET_NAME,
    Q_PUT_METRIC,
    Q_GET_SESSION,
    Q_GET_DEVICES,
    Q_GET_SKIPS,
    Q_GET_KERNELS,
    Q_GET_RANGES_SEEN,
    Q_NEXT_LAUNCH,
    Q_GET_RANGES,
    Q_GET_METRICS,
    N_QUERIES,
};

static const char *const queries[N_QUERIES] = {
    [Q_BEGIN] = "BEGIN IMMEDIATE",
    [Q_COMMIT] = "COMMIT",
    [Q_ROLLBACK] = "ROLLBACK",
    [Q_PUT_SESSION] = "REPLACE INTO session VALUES(1,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [Q_CLEAR_DEVICES] = "DELETE FROM device",
    [Q_PUT_DEVICE] = "INSERT INTO device VALUES(?,?,?,?,?,?,?,?)",
    [Q_CLEAR_SKIPS] = "DELETE FROM skip",
    [Q_PUT_SKIP] = "INSERT INTO skip VALUES(?,?)",
    [Q_CLEAR_KERNELS] = "DELETE FROM kernel",
    [Q_PUT_KERNEL] = "INSERT INTO kernel VALUES(?,?)",
    [Q_CLEAR_RANGES_SEEN] = "DELETE FROM range_seen",
    [Q_PUT_RANGE_SEEN] = "INSERT INTO range_seen VALUES(?,?)",
    [Q_PUT_LAUNCH] = "INSERT INTO launch VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [Q_PUT_RANGE] = "INSERT INTO launch_range VALUES(?,?,?,?,?,?,?,?)",
    [Q_PUT_NAME] = "INSERT OR IGNORE INTO name(name, unit) VALUES(?,?)",
    [Q_GET_NAME] = "SELECT id FROM name WHERE name=? AND unit=?",
    [Q_PUT_METRIC] = "INSERT INTO metric VALUES(?,?,?,?,?)",
    [Q_GET_SESSION] = "SELECT * FROM session WHERE id = 1",
    [Q_GET_DEVICES] = "SELECT * FROM device ORDER BY rowid",
    [Q_GET_SKIPS] = "SELECT * FROM skip ORDER BY rowid",
    [Q_GET_KERNELS] = "SELECT * FROM kernel ORDER BY rowid",
    [Q_GET_RANGES_SEEN] = "SELECT * FROM range_seen ORDER BY rowid",
    [Q_NEXT_LAUNCH] = "SELECT * FROM launch WHERE id >= ? ORDER BY id LIMIT 1",
    [Q_GET_RANGES] = "SELECT * FROM launch_range WHERE launch = ? ORDER BY position",
    [Q_GET_METRICS] = "SELECT n.name, n.unit, m.* FROM metric m JOIN name n ON n.id = m.name WHERE launch = ?",
};

/* A row of table `name`. */
struct name {
    sqlite3_int64 id;
    const char *name, *unit;
};

struct kp_store {
    sqlite3 *db;
    pid_t pid; /* of the process that opened it: SQLite's handles are useless, and harmful, in a forked child */
    char *path;
    int version;                         /* of the schema of a file that is read */
    sqlite3_stmt *statements[N_QUERIES]; /* prepared at first use, kept */
    void *names;                         /* a tree (tsearch) of the struct name written so far: launches repeat them */
};

/* A statement that is being filled or read, one column after the other. The first failure is kept in `rc`. */
struct row {
    sqlite3_stmt *statement;
    int column, rc;
};

static int failed(struct kp_store *s, const char *what, char **err)
{
    int rc = kp_error(err, "cannot %s '%s': %s", what, s->path, sqlite3_errmsg(s->db));
    return rc == -EINVAL ? -EIO : rc;
}

static bool forked(const struct kp_store *s)
{
    return s->pid != getpid();
}

static struct row row_begin(struct kp_store *s, enum query q)
{
    struct row r = {s->statements[q], 0, SQLITE_OK};
    if (!r.statement) {
        r.rc = sqlite3_prepare_v3(s->db, queries[q], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[q], NULL);
        r.statement = s->statements[q];
    }
    return r;
}

static void bound(struct row *r, int rc)
{
    r->rc = r->rc ? r->rc : rc;
}

static void bind_uint(struct row *r, uint64_t value)
{
    bound(r, sqlite3_bind_int64(r->statement, ++r->column, (sqlite3_int64)value));
}

static void bind_int(struct row *r, int64_t value)
{
    bound(r, sqlite3_bind_int64(r->statement, ++r->column, value));
}

static void bind_real(struct row *r, double value)
{
    bound(r, sqlite3_bind_double(r->statement, ++r->column, value));
}

/* NULL stays NULL. The text must live until row_end. */
static void bind_text(struct row *r, const char *text)
{
    bound(r, sqlite3_bind_text(r->statement, ++r->column, text, -1, SQLITE_STATIC));
}

/* Runs a statement that gives no rows. */
static int row_end(struct row *r)
{
    if (!r->rc) {
        r->rc = sqlite3_step(r->statement);
        if (r->rc == SQLITE_DONE)
            r->rc = SQLITE_OK;
    }
    if (r->statement) {
        sqlite3_reset(r->statement);
        sqlite3_clear_bindings(r->statement);
    }
    return r->rc;
}

static int run(struct kp_store *s, enum query q)
{
    struct row r = row_begin(s, q);
    return row_end(&r);
}

/* Moves to the next row of a result; false at its end or on an error, see `rc`. */
static bool row_next(struct row *r)
{
    r->column = 0;
    if (!r->rc)
        r->rc = sqlite3_step(r->statement);
    if (r->rc != SQLITE_ROW)
        return false;
    r->rc = SQLITE_OK;
    return true;
}

/* Ends reading, which releases the file for the writer. Returns an SQLite error or SQLITE_OK. */
static int row_finish(struct row *r)
{
    if (r->statement)
        sqlite3_reset(r->statement);
    return r->rc == SQLITE_DONE ? SQLITE_OK : r->rc;
}

static int64_t column_int(struct row *r)
{
    int c = r->column++; /* a file of an earlier version may have fewer */
    return c < sqlite3_column_count(r->statement) ? sqlite3_column_int64(r->statement, c) : 0;
}

static uint64_t column_uint(struct row *r)
{
    return (uint64_t)column_int(r);
}

static double column_real(struct row *r)
{
    int c = r->column++;
    return sqlite3_column_type(r->statement, c) == SQLITE_NULL ? NAN : sqlite3_column_double(r->statement, c);
}

/* malloc'ed; NULL for NULL. */
static char *column_text_or_null(struct row *r)
{
    int c = r->column++;
    if (c >= sqlite3_column_count(r->statement))
        return NULL; /* a file of an earlier version */
    const char *text = (const char *)sqlite3_column_text(r->statement, c);
    char *copy = text ? strdup(text) : NULL;
    if (!copy && sqlite3_column_type(r->statement, c) != SQLITE_NULL)
        r->rc = SQLITE_NOMEM;
    return copy;
}

/* malloc'ed; "" for NULL. */
static char *column_text(struct row *r)
{
    char *copy = column_text_or_null(r);
    if (!copy && !r->rc && !(copy = kp_strdup("")))
        r->rc = SQLITE_NOMEM;
    return copy;
}

/* Claims the name: the file must be ours alone, and never a device or a folder that happens to have the name. */
static int claim(const char *path, bool overwrite, char **err)
{
    struct stat st;
    char *journal = NULL;
    int rc = 0;
    if (overwrite && !stat(path, &st)) {
        if (!S_ISREG(st.st_mode))
            return kp_error(err, "'%s' is not a regular file; choose another path", path);
        if (unlink(path))
            rc = -errno;
    }
    int fd = rc ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        rc = rc ? rc : -errno;
        const char *advice = rc == -EEXIST ? "use force-overwrite, or %i in the name" : "choose another path";
        if (kp_error(err, "cannot create '%s': %s; %s", path, strerror(-rc), advice) == -ENOMEM)
            rc = -ENOMEM;
        return rc;
    }
    close(fd);
    /* What a killed writer of an earlier file of this name left must not be taken for this one's. */
    if (asprintf(&journal, "%s-journal", path) < 0)
        return -ENOMEM;
    unlink(journal);
    free(journal);
    return 0;
}

static int connect_to(struct kp_store *s, int flags)
{
    int rc = sqlite3_open_v2(s->path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (s->db)
        sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MS);
    return rc;
}

static int store_new(const char *path, struct kp_store **out)
{
    struct kp_store *s = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return -ENOMEM;
    }
    s->pid = getpid();
    s->version = SCHEMA_VERSION;
    *out = s;
    return 0;
}

int kp_store_create(const char *path, bool overwrite, struct kp_store **out, char **err)
{
    struct kp_store *s = NULL;
    char setup[sizeof schema + 256];
    *out = NULL;
    *err = NULL;
    int rc = claim(path, overwrite, err);
    if (!rc)
        rc = store_new(path, &s);
    if (rc)
        return rc;
    /* The schema and the version number come in one transaction, so there is no half-made file. The cache must not
     * spill: then the file itself is touched only for the short time of a commit. */
    snprintf(setup, sizeof setup,
             "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY; PRAGMA cache_spill=OFF;"
             "BEGIN IMMEDIATE; PRAGMA application_id=%d; PRAGMA user_version=%d; %s COMMIT;",
             APPLICATION_ID, SCHEMA_VERSION, schema);
    if (connect_to(s, SQLITE_OPEN_READWRITE) || sqlite3_exec(s->db, setup, NULL, NULL, NULL)) {
        rc = failed(s, "set up", err);
        kp_store_close(s);
        unlink(path);
        return rc;
    }
    *out = s;
    return 0;
}

static int read_pragma(struct kp_store *s, const char *pragma, int *value)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(s->db, pragma, -1, &statement, NULL);
    if (!rc && (rc = sqlite3_step(statement)) == SQLITE_ROW)
        *value = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int check_schema(struct kp_store *s, int *rc_sqlite, char **err)
{
    int id = 0;
    *rc_sqlite = read_pragma(s, "PRAGMA application_id", &id);
    if (!*rc_sqlite)
        *rc_sqlite = read_pragma(s, "PRAGMA user_version", &s->version);
    if (*rc_sqlite == SQLITE_NOTADB || (!*rc_sqlite && id != APPLICATION_ID))
        return kp_error(err, "'%s' is not a kprof session", s->path);
    if (*rc_sqlite)
        return failed(s, "read", err);
    if (s->version > SCHEMA_VERSION)
        return kp_error(err, "'%s' was written by a newer kprof (format %d, this one reads up to %d)", s->path,
                        s->version, SCHEMA_VERSION);
    return 0;
}

int kp_store_open(const char *path, struct kp_store **out, char **err)
{
    struct kp_store *s = NULL;
    struct stat st;
    int sqlite_rc = SQLITE_OK;
    *out = NULL;
    *err = NULL;
    int why = stat(path, &st) || access(path, R_OK) ? errno : 0;
    if (why || !S_ISREG(st.st_mode)) {
        if (kp_error(err, "cannot open '%s': %s", path, why ? strerror(why) : "not a regular file") == -ENOMEM)
            return -ENOMEM;
        return why == ENOENT ? -ENOENT : -EINVAL;
    }
    int rc = store_new(path, &s);
    if (rc)
        return rc;
    rc = connect_to(s, SQLITE_OPEN_READONLY) ? failed(s, "open", err) : check_schema(s, &sqlite_rc, err);
    if (sqlite_rc == SQLITE_READONLY || sqlite_rc == SQLITE_CANTOPEN) {
        /* The writer was killed in the middle of a commit: that has to be undone, which needs the right to write. */
        free(*err);
        *err = NULL;
        sqlite3_close(s->db);
        rc = connect_to(s, SQLITE_OPEN_READWRITE) ? failed(s, "open", err) : check_schema(s, &sqlite_rc, err);
    }
    if (rc) {
        kp_store_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

static void forget_names(struct kp_store *s)
{
    tdestroy(s->names, free);
    s->names = NULL;
}

void kp_store_close(struct kp_store *s)
{
    if (!s)
        return;
    forget_names(s);
    /* In a forked child SQLite would take the parent's unfinished work for its own and undo it: leave it alone. */
    if (!forked(s)) {
        for (int i = 0; i < N_QUERIES; i++)
            sqlite3_finalize(s->statements[i]);
        sqlite3_close(s->db);
    }
    free(s->path);
    free(s);
}

static int put_session_row(struct kp_store *s, const struct kp_session *f)
{
    struct row r = row_begin(s, Q_PUT_SESSION);
    bind_uint(&r, f->pid);
    bind_text(&r, f->exe);
    bind_text(&r, f->cmdline);
    bind_text(&r, f->host);
    bind_text(&r, f->kprof_version);
    bind_int(&r, f->start_unix_ns);
    bind_int(&r, f->end_unix_ns);
    bind_int(&r, f->driver_version);
    bind_text(&r, f->cupti_version);
    bind_text(&r, f->set);
    bind_text(&r, f->sections);
    bind_text(&r, f->metrics);
    bind_text(&r, f->cache_control);
    bind_text(&r, f->clock_control);
    bind_uint(&r, f->launches_seen);
    bind_uint(&r, f->launches_profiled);
    bind_uint(&r, f->passes);
    bind_real(&r, f->profiling_ns);
    bind_int(&r, f->complete);
    bind_text(&r, f->section_folder);
    return row_end(&r);
}

static int put_device(struct kp_store *s, const struct kp_device_info *d)
{
    struct row r = row_begin(s, Q_PUT_DEVICE);
    bind_int(&r, d->ordinal);
    bind_text(&r, d->name);
    bind_text(&r, d->chip);
    bind_text(&r, d->pci_bus_id);
    bind_int(&r, d->cc_major);
    bind_int(&r, d->cc_minor);
    bind_uint(&r, d->sm_count);
    bind_text(&r, d->breakdowns);
    return row_end(&r);
}

/* A row of `skip`, `kernel` or `range_seen`. */
static int put_count(struct kp_store *s, enum query q, const char *text, uint64_t count)
{
    struct row r = row_begin(s, q);
    bind_text(&r, text);
    bind_uint(&r, count);
    return row_end(&r);
}

static int put_session(struct kp_store *s, const struct kp_session *f)
{
    int rc = put_session_row(s, f);
    rc = rc ? rc : run(s, Q_CLEAR_DEVICES);
    for (size_t i = 0; !rc && i < f->n_devices; i++)
        rc = put_device(s, &f->devices[i]);
    rc = rc ? rc : run(s, Q_CLEAR_SKIPS);
    for (size_t i = 0; !rc && i < f->n_skips; i++)
        rc = put_count(s, Q_PUT_SKIP, f->skips[i].reason, f->skips[i].count);
    rc = rc ? rc : run(s, Q_CLEAR_KERNELS);
    for (size_t i = 0; !rc && i < f->n_kernels; i++)
        rc = put_count(s, Q_PUT_KERNEL, f->kernels[i].name, f->kernels[i].count);
    rc = rc ? rc : run(s, Q_CLEAR_RANGES_SEEN);
    for (size_t i = 0; !rc && i < f->n_ranges; i++)
        rc = put_count(s, Q_PUT_RANGE_SEEN, f->ranges[i].name, f->ranges[i].count);
    return rc;
}

static int put_launch(struct kp_store *s, const struct kp_launch_info *l)
{
    struct row r = row_begin(s, Q_PUT_LAUNCH);
    bind_uint(&r, l->id);
    bind_uint(&r, l->ordinal);
    bind_int(&r, l->kind);
    bind_text(&r, l->mangled);
    bind_text(&r, l->demangled);
    for (int i = 0; i < 3; i++)
        bind_uint(&r, l->grid[i]);
    for (int i = 0; i < 3; i++)
        bind_uint(&r, l->block[i]);
    bind_uint(&r, l->context_id);
    bind_uint(&r, l->stream_id);
    bind_int(&r, l->device);
    bind_int(&r, l->cc_major);
    bind_int(&r, l->cc_minor);
    bind_text(&r, l->chip);
    bind_uint(&r, l->passes);
    bind_real(&r, l->profiler_ns);
    bind_text(&r, l->note);
    bind_text(&r, l->reason);
    bind_uint(&r, l->nvtx.thread);
    bind_text(&r, l->nvtx.thread_name);
    bind_text(&r, l->nvtx.stream_name);
    return row_end(&r);
}

static int put_range(struct kp_store *s, uint64_t launch, size_t position, const struct kp_nvtx_range *range)
{
    struct row r = row_begin(s, Q_PUT_RANGE);
    bind_uint(&r, launch);
    bind_uint(&r, position);
    bind_int(&r, range->kind);
    bind_text(&r, range->domain);
    bind_text(&r, range->name);
    bind_text(&r, range->category);
    bind_text(&r, range->payload);
    bind_uint(&r, range->thread);
    return row_end(&r);
}

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->unit, y->unit);
}

/* Makes sure that the file has the name. */
static int put_name(struct kp_store *s, struct name *n)
{
    struct row put = row_begin(s, Q_PUT_NAME);
    bind_text(&put, n->name);
    bind_text(&put, n->unit);
    int rc = row_end(&put);
    if (rc)
        return rc;
    struct row get = row_begin(s, Q_GET_NAME);
    bind_text(&get, n->name);
    bind_text(&get, n->unit);
    if (row_next(&get))
        n->id = column_int(&get);
    return row_finish(&get);
}

/* Without memory for it the name is looked up in the file again the next time. */
static void remember_name(struct kp_store *s, const struct name *n)
{
    size_t name = strlen(n->name) + 1, unit = strlen(n->unit) + 1;
    struct name *copy = malloc(sizeof *copy + name + unit);
    if (!copy)
        return;
    char *text = (char *)(copy + 1);
    *copy = (struct name){n->id, memcpy(text, n->name, name), memcpy(text + name, n->unit, unit)};
    if (!tsearch(copy, &s->names, compare_names))
        free(copy);
}

static int name_id(struct kp_store *s, const struct kp_metric *m, sqlite3_int64 *id)
{
    struct name n = {0, m->name, m->unit};
    struct name **known = tfind(&n, &s->names, compare_names);
    int rc = known ? SQLITE_OK : put_name(s, &n);
    if (!known && !rc)
        remember_name(s, &n);
    *id = known ? (*known)->id : n.id;
    return rc;
}

static int put_metric(struct kp_store *s, uint64_t launch, const struct kp_metric *m)
{
    sqlite3_int64 name = 0;
    char *instances = NULL;
    int rc = name_id(s, m, &name);
    if (rc)
        return rc;
    if (m->n_instances && !(instances = kp_instances_write(m->instances, m->n_instances)))
        return SQLITE_NOMEM;
    struct row r = row_begin(s, Q_PUT_METRIC);
    bind_uint(&r, launch);
    bind_int(&r, name);
    bind_int(&r, m->kind);
    if (m->kind == KP_VALUE_REAL)
        bind_real(&r, m->real);
    else if (m->kind == KP_VALUE_COUNT)
        bind_uint(&r, m->count);
    else
        bind_text(&r, m->text);
    bind_text(&r, instances);
    rc = row_end(&r);
    free(instances);
    return rc;
}

static int put_result(struct kp_store *s, const struct kp_result *result)
{
    const struct kp_launch_info *l = &result->launch;
    int rc = put_launch(s, l);
    for (size_t i = 0; !rc && i < l->nvtx.n_ranges; i++)
        rc = put_range(s, l->id, i, &l->nvtx.ranges[i]);
    for (size_t i = 0; !rc && i < result->n_metrics; i++)
        rc = put_metric(s, l->id, &result->metrics[i]);
    return rc;
}

/* ---- transactions ---- */

static bool in_transaction(const struct kp_store *s)
{
    return !sqlite3_get_autocommit(s->db);
}

/* A put joins the transaction that the caller has begun, else it is one of its own: *alone. */
static int enter(struct kp_store *s, bool *alone, char **err)
{
    *err = NULL;
    if (forked(s))
        return -ECHILD;
    *alone = !in_transaction(s);
    return *alone && run(s, Q_BEGIN) ? failed(s, "write", err) : 0;
}

/* After a write with the outcome `rc`, an SQLite code. */
static int leave(struct kp_store *s, bool commit, int rc, char **err)
{
    if (!rc && commit)
        rc = run(s, Q_COMMIT);
    if (!rc)
        return 0;
    rc = failed(s, "write", err); /* before the rollback, which has a message of its own */
    if (in_transaction(s))
        run(s, Q_ROLLBACK);
    forget_names(s);
    return rc;
}

int kp_store_begin(struct kp_store *s, char **err)
{
    bool alone;
    return enter(s, &alone, err);
}

int kp_store_commit(struct kp_store *s, char **err)
{
    *err = NULL;
    return forked(s) ? -ECHILD : leave(s, true, SQLITE_OK, err);
}

int kp_store_put_session(struct kp_store *s, const struct kp_session *session, char **err)
{
    bool alone;
    int rc = enter(s, &alone, err);
    return rc ? rc : leave(s, alone, put_session(s, session), err);
}

int kp_store_put_result(struct kp_store *s, const struct kp_result *result, char **err)
{
    bool alone;
    int rc = enter(s, &alone, err);
    return rc ? rc : leave(s, alone, put_result(s, result), err);
}

/* ---- reading back ---- */

static void get_session_row(struct row *r, struct kp_session *f)
{
    column_int(r); /* id */
    f->pid = column_uint(r);
    f->exe = column_text(r);
    f->cmdline = column_text(r);
    f->host = column_text(r);
    f->kprof_version = column_text(r);
    f->start_unix_ns = column_int(r);
    f->end_unix_ns = column_int(r);
    f->driver_version = (int)column_int(r);
    f->cupti_version = column_text(r);
    f->set = column_text(r);
    f->sections = column_text(r);
    f->metrics = column_text(r);
    f->cache_control = column_text(r);
    f->clock_control = column_text(r);
    f->launches_seen = column_uint(r);
    f->launches_profiled = column_uint(r);
    f->passes = column_uint(r);
    f->profiling_ns = column_real(r);
    f->complete = column_int(r);
    f->section_folder = column_text(r);
}

static int get_devices(struct kp_store *s, struct kp_session *f)
{
    struct row r = row_begin(s, Q_GET_DEVICES);
    while (row_next(&r)) {
        struct kp_device_info *grown = realloc(f->devices, (f->n_devices + 1) * sizeof *grown);
        if (!grown) {
            r.rc = SQLITE_NOMEM;
            break;
        }
        f->devices = grown;
        struct kp_device_info *d = &grown[f->n_devices++];
        *d = (struct kp_device_info){.ordinal = (int)column_int(&r)};
        d->name = column_text(&r);
        d->chip = column_text(&r);
        d->pci_bus_id = column_text(&r);
        d->cc_major = (int)column_int(&r);
        d->cc_minor = (int)column_int(&r);
        d->sm_count = (uint32_t)column_uint(&r);
        d->breakdowns = column_text(&r);
    }
    return row_finish(&r);
}

/* Rows of `skip`, `kernel` or `range_seen`, each into `add`. */
static int get_counts(struct kp_store *s, enum query q, struct kp_session *f,
                      int (*add)(struct kp_session *, const char *, uint64_t))
{
    struct row r = row_begin(s, q);
    while (row_next(&r)) {
        const char *text = (const char *)sqlite3_column_text(r.statement, 0);
        if (add(f, text ? text : "", (uint64_t)sqlite3_column_int64(r.statement, 1)))
            r.rc = SQLITE_NOMEM;
    }
    return row_finish(&r);
}

/* Error code and message of a read that ended with the SQLite code `rc`. */
static int read_error(struct kp_store *s, int rc, char **err)
{
    if (rc == SQLITE_CORRUPT) { /* found by us, perhaps: then SQLite has no message */
        rc = kp_error(err, "cannot read '%s': %s", s->path, sqlite3_errstr(rc));
        return rc == -EINVAL ? -EIO : rc;
    }
    return rc == SQLITE_NOMEM ? -ENOMEM : rc ? failed(s, "read", err) : 0;
}

int kp_store_get_session(struct kp_store *s, struct kp_session *out, char **err)
{
    *out = (struct kp_session){0};
    *err = NULL;
    if (forked(s))
        return -ECHILD;
    struct row r = row_begin(s, Q_GET_SESSION);
    bool found = row_next(&r);
    if (found)
        get_session_row(&r, out);
    int rc = row_finish(&r);
    rc = rc ? rc : get_devices(s, out);
    rc = rc ? rc : get_counts(s, Q_GET_SKIPS, out, kp_session_add_skip);
    rc = rc ? rc : get_counts(s, Q_GET_KERNELS, out, kp_session_add_kernel);
    if (!rc && s->version >= HAS_RANGES)
        rc = get_counts(s, Q_GET_RANGES_SEEN, out, kp_session_add_range);
    rc = read_error(s, rc, err);
    if (!rc && !found)
        rc = kp_error(err, "'%s' holds nothing yet: its program ended, or is, before the first line of it", s->path);
    if (rc)
        kp_session_free(out);
    return rc;
}

static void get_launch(struct row *r, struct kp_launch_info *l)
{
    l->id = column_uint(r);
    l->ordinal = column_uint(r);
    l->kind = (enum kp_workload_kind)column_int(r);
    l->mangled = column_text(r);
    l->demangled = column_text(r);
    for (int i = 0; i < 3; i++)
        l->grid[i] = (uint32_t)column_uint(r);
    for (int i = 0; i < 3; i++)
        l->block[i] = (uint32_t)column_uint(r);
    l->context_id = column_uint(r);
    l->stream_id = column_uint(r);
    l->device = (int)column_int(r);
    l->cc_major = (int)column_int(r);
    l->cc_minor = (int)column_int(r);
    l->chip = column_text(r);
    l->passes = (uint32_t)column_uint(r);
    l->profiler_ns = column_real(r);
    l->note = column_text_or_null(r);
    l->reason = column_text(r);
    l->nvtx.thread = column_uint(r);
    l->nvtx.thread_name = column_text(r);
    l->nvtx.stream_name = column_text(r);
}

static const char *text_at(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

static int get_ranges(struct kp_store *s, struct kp_launch_info *l)
{
    enum { R_LAUNCH, R_POSITION, R_KIND, R_DOMAIN, R_NAME, R_CATEGORY, R_PAYLOAD, R_THREAD };
    struct row r = row_begin(s, Q_GET_RANGES);
    bind_uint(&r, l->id);
    while (row_next(&r)) {
        struct kp_nvtx_range range = {.kind = (enum kp_nvtx_kind)sqlite3_column_int(r.statement, R_KIND),
                                      .domain = (char *)text_at(r.statement, R_DOMAIN),
                                      .name = (char *)text_at(r.statement, R_NAME),
                                      .category = (char *)text_at(r.statement, R_CATEGORY),
                                      .payload = (char *)text_at(r.statement, R_PAYLOAD),
                                      .thread = (uint64_t)sqlite3_column_int64(r.statement, R_THREAD)};
        if (kp_nvtx_add(&l->nvtx, &range))
            r.rc = SQLITE_NOMEM;
    }
    return row_finish(&r);
}

/* Columns of Q_GET_METRICS. */
enum { C_NAME, C_UNIT, C_LAUNCH, C_NAME_ID, C_KIND, C_VALUE, C_INSTANCES };

static int get_value(sqlite3_stmt *row, const char *name, const char *unit, struct kp_result *result)
{
    switch ((enum kp_value_kind)sqlite3_column_int(row, C_KIND)) {
    case KP_VALUE_REAL:
        return kp_result_set_real(result, name, unit, column_real(&(struct row){row, C_VALUE, 0}));
    case KP_VALUE_COUNT:
        return kp_result_set_count(result, name, unit, (uint64_t)sqlite3_column_int64(row, C_VALUE));
    case KP_VALUE_TEXT:
        return kp_result_set_text(result, name, unit, (const char *)sqlite3_column_text(row, C_VALUE));
    case KP_VALUE_NA:
        break;
    }
    return kp_result_set_na(result, name, (const char *)sqlite3_column_text(row, C_VALUE));
}

/* An SQLite code. */
static int get_metric(sqlite3_stmt *row, struct kp_result *result)
{
    const char *name = (const char *)sqlite3_column_text(row, C_NAME),
               *unit = (const char *)sqlite3_column_text(row, C_UNIT), *instances = NULL;
    int rc = name && unit ? get_value(row, name, unit, result) : -ENOMEM;
    if (!rc && sqlite3_column_count(row) > C_INSTANCES)
        instances = (const char *)sqlite3_column_text(row, C_INSTANCES);
    if (instances)
        rc = kp_instances_read(instances, result, name);
    return rc == -EINVAL ? SQLITE_CORRUPT : rc ? SQLITE_NOMEM : SQLITE_OK;
}

static int get_metrics(struct kp_store *s, struct kp_result *result)
{
    struct row r = row_begin(s, Q_GET_METRICS);
    bind_uint(&r, result->launch.id);
    while (row_next(&r))
        r.rc = get_metric(r.statement, result);
    return row_finish(&r);
}

/* The first launch from `id` on. The statements are finished when this returns, so that a reader who is slow to print
 * does not hold up the program that writes. */
static int next_launch(struct kp_store *s, uint64_t id, struct kp_result *result, bool *found)
{
    struct row r = row_begin(s, Q_NEXT_LAUNCH);
    bind_uint(&r, id);
    *found = row_next(&r);
    if (*found)
        get_launch(&r, &result->launch);
    int rc = row_finish(&r);
    if (!rc && *found && s->version >= HAS_RANGES)
        rc = get_ranges(s, &result->launch);
    return rc || !*found ? rc : get_metrics(s, result);
}

int kp_store_each_result(struct kp_store *s, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err)
{
    *err = NULL;
    if (forked(s))
        return -ECHILD;
    bool found = true;
    uint64_t id = 0;
    int rc = 0;
    while (!rc && found) {
        struct kp_result result = {0};
        rc = read_error(s, next_launch(s, id, &result, &found), err);
        if (!rc && found)
            rc = fn(&result, arg);
        found = found && result.launch.id < INT64_MAX; /* the next one would be SQLite's lowest: all over again */
        id = result.launch.id + 1;
        kp_result_free(&result);
    }
    return rc;
}
