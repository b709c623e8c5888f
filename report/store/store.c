/*
 * The session file. Users may query it: most tables are a struct of model.h, docs/session.md lists their columns.
 *
 *   PRAGMA application_id  0x4b505246 ("KPRF");  PRAGMA user_version  the schema version
 *
 * Unsigned 64-bit numbers are stored as the signed ones of the same bits.
 *
 * The journal is a rollback journal because WAL would leave a killed process's last launches in a side file.
 * Synchronous is off: the data must survive the death of the process, not of the machine, and the kernel has it by
 * then.
 */
#include "report/store/store_body.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/room.h"
#include "base/text.h"
#include "report/model/instances.h"

enum {
    APPLICATION_ID = 0x4b505246,
    SCHEMA_VERSION = 1,
    /* A reader holds the file for one launch or function at a time, a few milliseconds. */
    BUSY_TIMEOUT_MS = 2000,
};

static const char schema[] =
    "CREATE TABLE session(id INTEGER PRIMARY KEY, pid INTEGER, exe TEXT, cmdline TEXT, host TEXT, kprof_version TEXT,"
    " start_unix_ns INTEGER, end_unix_ns INTEGER, driver_version INTEGER, cupti_version TEXT, \"set\" TEXT,"
    " sections TEXT, metrics TEXT, cache_control TEXT, clock_control TEXT, launches_seen INTEGER,"
    " launches_profiled INTEGER, passes INTEGER, profiling_ns REAL, complete INTEGER, section_folder TEXT,"
    " environment TEXT, timeline INTEGER, timeline_dropped INTEGER, replay TEXT);"
    "CREATE TABLE device(ordinal INTEGER, name TEXT, chip TEXT, pci_bus_id TEXT, cc_major INTEGER, cc_minor INTEGER,"
    " sm_count INTEGER, breakdowns TEXT);"
    "CREATE TABLE skip(reason TEXT, count INTEGER, key TEXT);"
    "CREATE TABLE kernel(name TEXT, count INTEGER);"
    "CREATE TABLE range_seen(name TEXT, count INTEGER);"
    "CREATE TABLE lacking(name TEXT, count INTEGER);"
    "CREATE TABLE launch(id INTEGER PRIMARY KEY, ordinal INTEGER, kind INTEGER, mangled TEXT, demangled TEXT,"
    " grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER,"
    " context_id INTEGER, stream_id INTEGER, device INTEGER, cc_major INTEGER, cc_minor INTEGER, chip TEXT,"
    " passes INTEGER, profiler_ns REAL, note TEXT, reason TEXT, thread INTEGER, thread_name TEXT, stream_name TEXT,"
    " stack INTEGER, graph INTEGER, node INTEGER, alike INTEGER, counted INTEGER, groups INTEGER,"
    " groups_counted INTEGER, recorded INTEGER, recorded_ns REAL);"
    "CREATE TABLE launch_range(launch INTEGER, position INTEGER, kind INTEGER, domain TEXT, name TEXT, category TEXT,"
    " payload TEXT, thread INTEGER, PRIMARY KEY(launch, position)) WITHOUT ROWID;"
    "CREATE TABLE name(id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, UNIQUE(name, unit));"
    "CREATE TABLE metric(launch INTEGER, name INTEGER, kind INTEGER, value, instances TEXT, counted INTEGER,"
    " deviation REAL, reason TEXT, PRIMARY KEY(launch, name)) WITHOUT ROWID;"
    "CREATE VIEW metrics AS SELECT m.launch, l.demangled AS kernel, n.name, n.unit, m.value FROM metric m"
    " JOIN launch l ON l.id = m.launch JOIN name n ON n.id = m.name;";

/* The columns of the tables, in their order. */
#define F(field) KP_SQL_FIELD(struct kp_session, field)
static const struct kp_sql_field session_fields[] = {F(pid),
                                                     F(exe),
                                                     F(cmdline),
                                                     F(host),
                                                     F(kprof_version),
                                                     F(start_unix_ns),
                                                     F(end_unix_ns),
                                                     F(driver_version),
                                                     F(cupti_version),
                                                     F(set),
                                                     F(sections),
                                                     F(metrics),
                                                     F(cache_control),
                                                     F(clock_control),
                                                     F(launches_seen),
                                                     F(launches_profiled),
                                                     F(passes),
                                                     F(profiling_ns),
                                                     F(complete),
                                                     F(section_folder),
                                                     F(environment),
                                                     F(timeline),
                                                     F(timeline_dropped),
                                                     F(replay),
                                                     {KP_SQL_LAST, 0, 0}};
#undef F

static const struct kp_sql_field device_fields[] = {KP_SQL_FIELD(struct kp_device_info, ordinal),
                                                    KP_SQL_FIELD(struct kp_device_info, name),
                                                    KP_SQL_FIELD(struct kp_device_info, chip),
                                                    KP_SQL_FIELD(struct kp_device_info, pci_bus_id),
                                                    KP_SQL_FIELD(struct kp_device_info, cc_major),
                                                    KP_SQL_FIELD(struct kp_device_info, cc_minor),
                                                    KP_SQL_FIELD(struct kp_device_info, sm_count),
                                                    KP_SQL_FIELD(struct kp_device_info, breakdowns),
                                                    {KP_SQL_LAST, 0, 0}};

#define F(field)  KP_SQL_FIELD(struct kp_launch_info, field)
#define F3(field) KP_SQL_FIELD3(struct kp_launch_info, field)
static const struct kp_sql_field launch_fields[] = {F(id),
                                                    F(ordinal),
                                                    F(kind),
                                                    F(mangled),
                                                    F(demangled),
                                                    F3(grid),
                                                    F3(block),
                                                    F(context_id),
                                                    F(stream_id),
                                                    F(device),
                                                    F(cc_major),
                                                    F(cc_minor),
                                                    F(chip),
                                                    F(passes),
                                                    F(profiler_ns),
                                                    KP_SQL_FIELD_AS(KP_SQL_NULLABLE, struct kp_launch_info, note),
                                                    KP_SQL_FIELD_AS(KP_SQL_REASON, struct kp_launch_info, reason),
                                                    F(nvtx.thread),
                                                    F(nvtx.thread_name),
                                                    F(nvtx.stream_name),
                                                    F(stack),
                                                    F(graph_number),
                                                    F(node),
                                                    F(alike),
                                                    F(counted),
                                                    F(groups),
                                                    F(groups_counted),
                                                    F(recorded),
                                                    F(recorded_ns),
                                                    {KP_SQL_LAST, 0, 0}};
#undef F
#undef F3

static const struct kp_sql_field range_fields[] = {KP_SQL_FIELD(struct kp_nvtx_range, kind),
                                                   KP_SQL_FIELD(struct kp_nvtx_range, domain),
                                                   KP_SQL_FIELD(struct kp_nvtx_range, name),
                                                   KP_SQL_FIELD(struct kp_nvtx_range, category),
                                                   KP_SQL_FIELD(struct kp_nvtx_range, payload),
                                                   KP_SQL_FIELD(struct kp_nvtx_range, thread),
                                                   {KP_SQL_LAST, 0, 0}};

/* Makes the error code and message for the SQLite code `rc`. SQLite has no message for faults that we found. */
static int failed(struct kp_store *s, const char *what, int rc, char **err)
{
    const char *why = sqlite3_errcode(s->db) == rc ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);
    if (s->is_guarded && (rc == SQLITE_TOOBIG || rc == SQLITE_INTERRUPT))
        why = "it claims more data than a file of its size can hold; it is damaged, or kprof did not write it";
    const char *advice = rc == SQLITE_CORRUPT ? "; it is damaged or truncated: copy it again, or record it anew" : "";
    rc = kp_error(err, "cannot %s '%s': %s%s", what, s->path, why, advice);
    return rc == -EINVAL ? -EIO : rc;
}

static int run(struct kp_store *s, enum kp_sql_id id)
{
    struct kp_sql r = kp_sql_begin(s, id);
    return kp_sql_end(&r);
}

static bool forked(const struct kp_store *s)
{
    return s->pid != getpid();
}

static int cannot_create(const char *path, int why, char **err)
{
    const char *advice = why == -EEXIST ? "use --force-overwrite, or %i, %p or %r in the name" : "choose another path";
    return kp_error(err, "cannot create '%s': %s; %s", path, strerror(-why), advice) == -ENOMEM ? -ENOMEM : why;
}

/* Creates the journal at once and keeps it. In a folder that others may write to, nobody can then plant a journal
 * for SQLite to replay. A journal left by a killed writer of an earlier file is removed. */
static int claim_journal(const char *path, char **err)
{
    char *journal = NULL;
    if (asprintf(&journal, "%s-journal", path) < 0)
        return -ENOMEM;
    unlink(journal);
    int fd = open(journal, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    int rc = fd < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    else if (kp_error(err, "cannot create '%s': %s; remove it, or choose another path", journal, strerror(-rc)) ==
             -ENOMEM)
        rc = -ENOMEM;
    free(journal);
    return rc;
}

bool kp_store_is_database(const char *path)
{
    static const char magic[] = "SQLite format 3";
    char start[sizeof magic] = "";
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, start, sizeof start);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)sizeof start && !memcmp(start, magic, sizeof magic);
}

/* Claims the name: the file must be only ours, and never a device or a folder of that name. Only the owner may read it
 * because it contains the environment. */
static int claim(const char *path, bool overwrite, char **err)
{
    struct stat st;
    int rc = 0;
    if (overwrite && !stat(path, &st)) {
        if (!S_ISREG(st.st_mode))
            return kp_error(err, "'%s' is not a regular file; choose another path", path);
        if (st.st_size && !kp_store_is_database(path)) /* one that was killed at once is empty */
            return kp_error(err, "'%s' is not a session and would be overwritten; choose another path", path);
        if (unlink(path))
            rc = -errno;
    }
    int fd = rc ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return cannot_create(path, rc ? rc : -errno, err);
    close(fd);
    rc = claim_journal(path, err);
    if (rc)
        unlink(path);
    return rc;
}

/* Opens the file of that name. "./" goes before a relative one: SQLite reads ":memory:", "file:..." and an empty name
 * as something else than a file. */
static int connect_to(struct kp_store *s, int flags)
{
    const char *path = s->copy ? s->copy : s->path;
    char *name = NULL;
    if (asprintf(&name, "%s%s", *path == '/' ? "" : "./", path) < 0)
        return SQLITE_NOMEM;
    int rc = sqlite3_open_v2(name, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    free(name);
    if (s->db)
        sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MS);
    return rc;
}

void kp_store_remove(const char *path)
{
    char *journal = NULL;
    unlink(path);
    if (asprintf(&journal, "%s-journal", path) < 0)
        return;
    unlink(journal);
    free(journal);
}

static int store_new(const char *path, struct kp_store **out)
{
    struct kp_store *s = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return -ENOMEM;
    }
    s->pid = getpid();
    *out = s;
    return 0;
}

int kp_store_create(const char *path, bool overwrite, struct kp_store **out, char **err)
{
    struct kp_store *s = NULL;
    char *setup = NULL;
    *out = NULL;
    *err = NULL;
    int rc = store_new(path, &s);
    if (!rc)
        rc = claim(path, overwrite, err);
    if (rc) {
        kp_store_close(s);
        return rc;
    }
    /* One transaction creates the schema and the version number, so no half-made file exists. The cache must not
     * spill, so that the file itself is touched only for the short time of a commit. */
    setup = kp_asprintf(
        "PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY; PRAGMA cache_spill=OFF;"
        "BEGIN IMMEDIATE; PRAGMA application_id=%d; PRAGMA user_version=%d; %s%s%s%s COMMIT;",
        APPLICATION_ID, SCHEMA_VERSION, schema, kp_store_code_schema, kp_store_timeline_schema,
        kp_store_variants_schema);
    rc = setup ? connect_to(s, SQLITE_OPEN_READWRITE) : SQLITE_NOMEM;
    rc = rc ? rc : sqlite3_exec(s->db, setup, NULL, NULL, NULL);
    free(setup);
    if (rc) {
        rc = failed(s, "set up", rc, err);
        kp_store_close(s);
        kp_store_remove(path);
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

static int nothing_yet(const struct kp_store *s, char **err)
{
    return kp_error(err, "'%s' is still empty: its program is running, or ended before anything was stored", s->path);
}

static int check_schema(struct kp_store *s, int *rc_sqlite, char **err)
{
    int id = 0, version = 0, pages = 0;
    *rc_sqlite = read_pragma(s, "PRAGMA application_id", &id);
    if (!*rc_sqlite)
        *rc_sqlite = read_pragma(s, "PRAGMA user_version", &version);
    if (!*rc_sqlite)
        *rc_sqlite = read_pragma(s, "PRAGMA page_count", &pages);
    if (!*rc_sqlite && !pages)
        return nothing_yet(s, err);
    if (*rc_sqlite == SQLITE_NOTADB || (!*rc_sqlite && id != APPLICATION_ID))
        return kp_error(err, "'%s' is not a kprof session; `kprof -o FILE program` makes one", s->path);
    if (*rc_sqlite)
        return failed(s, "read", *rc_sqlite, err);
    if (version != SCHEMA_VERSION)
        return kp_error(err, "'%s' was written by another kprof (format %d, this one reads %d)", s->path, version,
                        SCHEMA_VERSION);
    return kp_store_check_tables(
        s, (const char *const[]){schema, kp_store_code_schema, kp_store_timeline_schema, kp_store_variants_schema},
        err);
}

static int connect_and_check(struct kp_store *s, int flags, int *rc_sqlite, char **err)
{
    int rc = connect_to(s, flags);
    rc = rc ? rc : kp_store_guard(s);
    return rc ? failed(s, "open", rc, err) : check_schema(s, rc_sqlite, err);
}

/* Refuses a file if SQLite would leave or remove another file next to it: one without a page, and one in a journal mode
 * that kprof does not use. */
static int check_file(const struct kp_store *s, char **err)
{
    enum { WRITTEN_BY = 18, WAL = 2, HEADER = 20 };
    unsigned char header[HEADER] = {0};
    if (!s->size)
        return nothing_yet(s, err);
    int fd = kp_descriptor_raise(open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0)
        return kp_error(err, "cannot open '%s': %s", s->path, strerror(errno));
    ssize_t n = pread(fd, header, sizeof header, 0);
    close(fd);
    if (n == HEADER && header[WRITTEN_BY] == WAL)
        return kp_error(err, "'%s' has been changed to WAL mode; `sqlite3 '%s' 'PRAGMA journal_mode=DELETE'` undoes it",
                        s->path, s->path);
    return 0;
}

static int open_read_only(struct kp_store *s, char **err)
{
    int sqlite_rc = SQLITE_OK;
    int rc = check_file(s, err);
    rc = rc ? rc : connect_and_check(s, SQLITE_OPEN_READONLY, &sqlite_rc, err);
    if (sqlite_rc != SQLITE_READONLY && sqlite_rc != SQLITE_CANTOPEN)
        return rc;
    free(*err);
    *err = NULL;
    sqlite3_close(s->db);
    s->db = NULL;
    rc = kp_store_copy(s, err);
    return rc ? rc : connect_and_check(s, SQLITE_OPEN_READWRITE, &sqlite_rc, err);
}

int kp_store_open(const char *path, struct kp_store **out, char **err)
{
    struct kp_store *s = NULL;
    struct stat st = {0};
    *out = NULL;
    *err = NULL;
    int why = stat(path, &st) || access(path, R_OK) ? errno : 0;
    if (why || !S_ISREG(st.st_mode)) {
        const char *other = S_ISDIR(st.st_mode) ? "it is a folder; name the session files in it" : "not a regular file";
        if (kp_error(err, "cannot open '%s': %s", path, why ? strerror(why) : other) == -ENOMEM)
            return -ENOMEM;
        return why == ENOENT ? -ENOENT : -EINVAL;
    }
    int rc = store_new(path, &s);
    if (rc)
        return rc;
    s->size = (uint64_t)st.st_size;
    s->mode = st.st_mode & 0666;
    rc = open_read_only(s, err);
    if (rc) {
        kp_store_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

mode_t kp_store_mode(const struct kp_store *s)
{
    return s->mode;
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
    /* In a forked child SQLite would roll back the parent's unfinished work, so leave it alone. */
    if (!forked(s)) {
        for (int i = 0; i < KP_SQL_COUNT; i++)
            sqlite3_finalize(s->statements[i]);
        if (s->db && !s->is_guarded)
            sqlite3_exec(s->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL); /* removes the journal */
        sqlite3_close(s->db);
        kp_store_remove_copy(s);
    }
    free(s->path);
    free(s);
}

static int put_skip(struct kp_store *s, const struct kp_skip *skip)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_PUT_SKIP);
    kp_bind_text(&r, kp_why_text(&skip->why));
    kp_bind_uint(&r, skip->count);
    kp_bind_reason(&r, skip->why.reason);
    return kp_sql_end(&r);
}

/* Puts a row of `kernel`, `range_seen` or `lacking`. */
static int put_count(struct kp_store *s, enum kp_sql_id q, const char *text, uint64_t count)
{
    struct kp_sql r = kp_sql_begin(s, q);
    kp_bind_text(&r, text);
    kp_bind_uint(&r, count);
    return kp_sql_end(&r);
}

static int put_session(struct kp_store *s, const struct kp_session *f)
{
    int rc = kp_sql_put(s, KP_SQL_PUT_SESSION, NULL, 0, session_fields, f);
    rc = rc ? rc : run(s, KP_SQL_CLEAR_DEVICES);
    for (size_t i = 0; !rc && i < f->n_devices; i++)
        rc = kp_sql_put(s, KP_SQL_PUT_DEVICE, NULL, 0, device_fields, &f->devices[i]);
    rc = rc ? rc : run(s, KP_SQL_CLEAR_SKIPS);
    for (size_t i = 0; !rc && i < f->n_skips; i++)
        rc = put_skip(s, &f->skips[i]);
    rc = rc ? rc : run(s, KP_SQL_CLEAR_KERNELS);
    for (size_t i = 0; !rc && i < f->n_kernels; i++)
        rc = put_count(s, KP_SQL_PUT_KERNEL, f->kernels[i].name, f->kernels[i].count);
    rc = rc ? rc : run(s, KP_SQL_CLEAR_RANGES_SEEN);
    for (size_t i = 0; !rc && i < f->n_ranges; i++)
        rc = put_count(s, KP_SQL_PUT_RANGE_SEEN, f->ranges[i].name, f->ranges[i].count);
    rc = rc ? rc : run(s, KP_SQL_CLEAR_LACKING);
    for (size_t i = 0; !rc && i < f->n_lacking; i++)
        rc = put_count(s, KP_SQL_PUT_LACKING, f->lacking[i].name, f->lacking[i].count);
    return rc;
}

/* Binds a row of the table; *instances lives until the statement ends. */
static void bind_metric(struct kp_sql *r, uint64_t launch, const struct kp_metric *m, char **instances)
{
    sqlite3_int64 name = 0;
    *instances = NULL;
    if (!r->rc)
        r->rc = kp_store_name_id(r->store, m, &name);
    if (!r->rc && m->n_instances && !(*instances = kp_instances_write(m->instances, m->n_instances)))
        r->rc = SQLITE_NOMEM;
    if (r->rc)
        return;
    kp_bind_uint(r, launch);
    kp_bind_int(r, name);
    kp_store_bind_value(r, m);
    kp_bind_text(r, *instances);
    if (m->counted) {
        kp_bind_uint(r, m->counted);
        kp_bind_real(r, m->deviation);
    } else {
        r->column += 2; /* columns that are not bound are NULL */
    }
    kp_bind_reason(r, m->reason);
}

/* The rows of PUT_METRICS: one statement for several need not find the place of each. */
enum { METRICS_AT_ONCE = 8 };

static int put_metrics(struct kp_store *s, const struct kp_result *result)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; !rc && i < result->n_metrics;) {
        char *instances[METRICS_AT_ONCE];
        size_t n = result->n_metrics - i < METRICS_AT_ONCE ? 1 : METRICS_AT_ONCE;
        struct kp_sql r = kp_sql_begin(s, n > 1 ? KP_SQL_PUT_METRICS : KP_SQL_PUT_METRIC);
        for (size_t k = 0; k < n; k++)
            bind_metric(&r, result->launch.id, &result->metrics[i + k], &instances[k]);
        rc = kp_sql_end(&r);
        for (size_t k = 0; k < n; k++)
            free(instances[k]);
        i += n;
    }
    return rc;
}

static int put_result(struct kp_store *s, const struct kp_result *result)
{
    const struct kp_launch_info *l = &result->launch;
    int rc = kp_sql_put(s, KP_SQL_PUT_LAUNCH, NULL, 0, launch_fields, l);
    for (size_t i = 0; !rc && i < l->nvtx.n_ranges; i++)
        rc = kp_sql_put(s, KP_SQL_PUT_RANGE, (const uint64_t[]){l->id, i}, 2, range_fields, &l->nvtx.ranges[i]);
    rc = rc ? rc : put_metrics(s, result);
    rc = rc ? rc : kp_store_write_counts(s, result);
    rc = rc ? rc : kp_store_write_series(s, result);
    return rc ? rc : kp_store_write_variants(s, result);
}

/* ---- transactions ---- */

static bool in_transaction(const struct kp_store *s)
{
    return !sqlite3_get_autocommit(s->db);
}

/* Joins the transaction that the caller began, or else begins one: *alone. */
static int enter(struct kp_store *s, bool *alone, char **err)
{
    *err = NULL;
    if (forked(s))
        return -ECHILD;
    *alone = !in_transaction(s);
    int rc = *alone ? run(s, KP_SQL_BEGIN) : SQLITE_OK;
    return rc ? failed(s, "write", rc, err) : 0;
}

/* Ends a write with the outcome `rc`, an SQLite code. */
static int leave(struct kp_store *s, bool commit, int rc, char **err)
{
    if (!rc && commit)
        rc = run(s, KP_SQL_COMMIT);
    if (!rc)
        return 0;
    rc = failed(s, "write", rc, err); /* before the rollback, which replaces the message */
    if (in_transaction(s))
        run(s, KP_SQL_ROLLBACK);
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

static int replace_result(struct kp_store *s, const struct kp_result *result)
{
    static const enum kp_sql_id drops[] = {KP_SQL_DROP_LAUNCH, KP_SQL_DROP_RANGES,       KP_SQL_DROP_METRICS,
                                           KP_SQL_DROP_COUNTS, KP_SQL_DROP_CODE_METRICS, KP_SQL_DROP_SERIES};
    int rc = SQLITE_OK;
    for (size_t i = 0; !rc && i < sizeof drops / sizeof *drops; i++) {
        struct kp_sql r = kp_sql_begin(s, drops[i]);
        kp_bind_uint(&r, result->launch.id);
        rc = kp_sql_end(&r);
    }
    return rc ? rc : put_result(s, result);
}

int kp_store_replace_result(struct kp_store *s, const struct kp_result *result, char **err)
{
    bool alone;
    int rc = enter(s, &alone, err);
    return rc ? rc : leave(s, alone, replace_result(s, result), err);
}

static int put_alike(struct kp_store *s, const struct kp_launch_info *l)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_PUT_ALIKE);
    kp_bind_uint(&r, l->id);
    kp_bind_uint(&r, l->alike);
    kp_bind_uint(&r, l->recorded);
    kp_bind_real(&r, l->recorded_ns);
    return kp_sql_end(&r);
}

int kp_store_put_alike(struct kp_store *s, const struct kp_launch_info *l, char **err)
{
    bool alone;
    int rc = enter(s, &alone, err);
    return rc ? rc : leave(s, alone, put_alike(s, l), err);
}

int kp_store_put_stack(struct kp_store *s, const struct kp_stack *stack, char **err)
{
    bool alone;
    int rc = enter(s, &alone, err);
    return rc ? rc : leave(s, alone, kp_store_write_stack(s, stack), err);
}

int kp_store_put_code(struct kp_store *s, const struct kp_code *code, char **err)
{
    bool alone;
    *err = NULL;
    if (!kp_store_code_is_sound(code))
        return kp_error(err, "the line table of '%s' contradicts itself", code->function ? code->function : "");
    int rc = enter(s, &alone, err);
    return rc ? rc : leave(s, alone, kp_store_write_code(s, code), err);
}

/* ---- the timeline ---- */

int kp_store_put_activities(struct kp_store *s, const struct kp_activity *at, size_t n, char **err)
{
    bool alone;
    int rc = enter(s, &alone, err);
    return rc ? rc : leave(s, alone, kp_store_write_activities(s, at, n), err);
}

int kp_store_put_activity_name(struct kp_store *s, uint32_t number, const char *name, char **err)
{
    bool alone;
    int rc = enter(s, &alone, err);
    return rc ? rc : leave(s, alone, kp_store_write_activity_name(s, number, name), err);
}

int kp_store_link_activities(struct kp_store *s, const struct kp_launch_note *notes, size_t n, char **err)
{
    bool alone;
    int rc = enter(s, &alone, err);
    return rc ? rc : leave(s, alone, kp_store_write_links(s, notes, n), err);
}

/* ---- reading back ---- */

/* The longest lists that are read, and their longest names: each launch is looked up in them, and what a file costs to
 * read must not grow with launches times names. kprof's own are far shorter. */
enum { LONGEST_LIST = 64 << 10, LONGEST_NAME = 256 };

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void keep_all(void *unused)
{
    (void)unused;
}

/* Appends an item of a list to `out`, with a zero after it, unless it is there. Returns its size. */
static size_t take_name(void **names, char *out, const char *name, size_t len)
{
    char *const *found;
    memcpy(out, name, len);
    out[len] = '\0';
    found = tsearch(out, names, by_text);
    return found && *found == out ? len + 1 : 0;
}

/* Shortens a comma list that is too long for a session: each name once, while they fit. */
static void shorten(char *list)
{
    const char *cursor = list, *name;
    void *names = NULL;
    size_t len, n = 0;
    char *out = list && strlen(list) > LONGEST_LIST ? malloc(LONGEST_LIST + LONGEST_NAME) : NULL;
    if (!out)
        return;
    while (n < LONGEST_LIST && kp_list_next(&cursor, &name, &len))
        if (len < LONGEST_NAME)
            n += take_name(&names, out + n, name, len);
    tdestroy(names, keep_all);
    for (size_t i = 0; i < n; i++)
        list[i] = out[i] ? out[i] : ',';
    list[n ? n - 1 : 0] = '\0';
    free(out);
}

static void get_session_row(struct kp_sql *r, struct kp_session *f)
{
    kp_column_int(r); /* id */
    kp_column_fields(r, session_fields, f);
    shorten(f->set);
    shorten(f->sections);
    shorten(f->metrics);
}

static int get_devices(struct kp_store *s, struct kp_session *f)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_DEVICES);
    while (kp_sql_next(&r)) {
        if (!KP_ROOM(f->devices, f->n_devices)) {
            r.rc = SQLITE_NOMEM;
            break;
        }
        struct kp_device_info *d = &f->devices[f->n_devices++];
        *d = (struct kp_device_info){0};
        kp_column_fields(&r, device_fields, d);
    }
    return kp_sql_finish(&r);
}

static int get_skips(struct kp_store *s, struct kp_session *f)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_SKIPS);
    while (kp_sql_next(&r)) {
        char *text = kp_column_text(&r);
        uint64_t count = kp_column_uint(&r);
        if (!text || kp_session_add_skip(f, kp_why_of(kp_column_reason(&r), text), count))
            r.rc = SQLITE_NOMEM;
        free(text);
    }
    return kp_sql_finish(&r);
}

/* Reads rows of `kernel`, `range_seen` or `lacking`, each into `add`. */
static int get_counts(struct kp_store *s, enum kp_sql_id q, struct kp_session *f,
                      int (*add)(struct kp_session *, const char *, uint64_t))
{
    struct kp_sql r = kp_sql_begin(s, q);
    while (kp_sql_next(&r)) {
        const char *text = (const char *)sqlite3_column_text(r.statement, 0);
        if (add(f, text ? text : "", (uint64_t)sqlite3_column_int64(r.statement, 1)))
            r.rc = SQLITE_NOMEM;
    }
    return kp_sql_finish(&r);
}

static int get_rotated(struct kp_store *s, struct kp_session *f)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_HAS_ROTATED);
    if (kp_sql_next(&r))
        f->rotated = kp_column_int(&r);
    return kp_sql_finish(&r);
}

/* Makes the error of a read that ended with the SQLite code `rc`. */
static int read_error(struct kp_store *s, int rc, char **err)
{
    return rc == SQLITE_NOMEM ? -ENOMEM : rc ? failed(s, "read", rc, err) : 0;
}

int kp_store_get_session(struct kp_store *s, struct kp_session *out, char **err)
{
    *out = (struct kp_session){0};
    *err = NULL;
    if (forked(s))
        return -ECHILD;
    kp_store_next_reading(s);
    kp_store_next_object(s);
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_SESSION);
    bool found = kp_sql_next(&r);
    if (found)
        get_session_row(&r, out);
    int rc = kp_sql_finish(&r);
    rc = rc ? rc : get_devices(s, out);
    rc = rc ? rc : get_skips(s, out);
    rc = rc ? rc : get_counts(s, KP_SQL_GET_KERNELS, out, kp_session_add_kernel);
    rc = rc ? rc : get_counts(s, KP_SQL_GET_RANGES_SEEN, out, kp_session_add_range);
    rc = rc ? rc : get_counts(s, KP_SQL_GET_LACKING, out, kp_session_add_lacking);
    rc = rc ? rc : get_rotated(s, out);
    rc = read_error(s, rc, err);
    if (!rc && !found)
        rc = nothing_yet(s, err);
    if (rc)
        kp_session_free(out);
    return rc;
}

static const char *text_at(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

static int get_ranges(struct kp_store *s, struct kp_launch_info *l)
{
    enum { R_LAUNCH, R_POSITION, R_KIND, R_DOMAIN, R_NAME, R_CATEGORY, R_PAYLOAD, R_THREAD };
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_RANGES);
    kp_bind_uint(&r, l->id);
    while (kp_sql_next(&r)) {
        struct kp_nvtx_range range = {.kind = (enum kp_nvtx_kind)sqlite3_column_int(r.statement, R_KIND),
                                      .domain = (char *)text_at(r.statement, R_DOMAIN),
                                      .name = (char *)text_at(r.statement, R_NAME),
                                      .category = (char *)text_at(r.statement, R_CATEGORY),
                                      .payload = (char *)text_at(r.statement, R_PAYLOAD),
                                      .thread = (uint64_t)sqlite3_column_int64(r.statement, R_THREAD)};
        if (kp_nvtx_add(&l->nvtx, &range))
            r.rc = SQLITE_NOMEM;
    }
    return kp_sql_finish(&r);
}

/* Columns of KP_SQL_GET_METRICS. */
enum { C_NAME, C_UNIT, C_LAUNCH, C_NAME_ID, C_KIND, C_VALUE, C_INSTANCES, C_COUNTED, C_DEVIATION, C_REASON };

/* Returns an SQLite code. */
static int get_metric(sqlite3_stmt *row, struct kp_result *result)
{
    const char *name = (const char *)sqlite3_column_text(row, C_NAME), *instances = NULL;
    int rc = kp_store_read_value(row, C_KIND, C_REASON, result);
    if (!rc)
        instances = (const char *)sqlite3_column_text(row, C_INSTANCES);
    if (instances)
        rc = kp_instances_read(instances, result, name);
    if (!rc && sqlite3_column_int(row, C_COUNTED) > 0)
        rc = kp_result_set_spread(result, name, (uint32_t)sqlite3_column_int(row, C_COUNTED),
                                  sqlite3_column_double(row, C_DEVIATION));
    return rc == -EINVAL ? SQLITE_CORRUPT : rc ? SQLITE_NOMEM : SQLITE_OK;
}

/* Reads the metric of that name; NULL: all. */
static int get_metrics(struct kp_store *s, const char *name, struct kp_result *result)
{
    struct kp_sql r = kp_sql_begin(s, name ? KP_SQL_GET_METRIC : KP_SQL_GET_METRICS);
    kp_bind_uint(&r, result->launch.id);
    if (name)
        kp_bind_text(&r, name);
    while (kp_sql_next(&r))
        r.rc = get_metric(r.statement, result);
    return kp_sql_finish(&r);
}

/* Reads the first launch from `id` on, complete or with just the metrics `only`. Finishes the statements before it
 * returns, so that a reader that prints slowly does not block the writing program. */
static int next_launch(struct kp_store *s, uint64_t id, const char *const *only, struct kp_result *result, bool *found)
{
    kp_store_next_object(s);
    struct kp_sql r = kp_sql_begin(s, KP_SQL_NEXT_LAUNCH);
    kp_bind_uint(&r, id);
    *found = kp_sql_next(&r);
    if (*found)
        kp_column_fields(&r, launch_fields, &result->launch);
    int rc = kp_sql_finish(&r);
    if (!rc && *found)
        rc = get_ranges(s, &result->launch);
    for (size_t i = 0; only && only[i] && !rc && *found; i++)
        rc = get_metrics(s, only[i], result);
    if (rc || !*found || only)
        return rc;
    rc = get_metrics(s, NULL, result);
    rc = rc ? rc : kp_store_read_counts(s, result);
    rc = rc ? rc : kp_store_read_series(s, result);
    return rc ? rc : kp_store_read_variants(s, result);
}

/* Does the same in one transaction, with a fifth of the system calls. */
static int take_launch(struct kp_store *s, uint64_t id, const char *const *only, struct kp_result *result, bool *found)
{
    bool alone = !in_transaction(s);
    int rc = alone ? run(s, KP_SQL_BEGIN_READING) : SQLITE_OK;
    rc = rc ? rc : next_launch(s, id, only, result, found);
    if (alone && in_transaction(s)) {
        int end = run(s, KP_SQL_COMMIT);
        rc = rc ? rc : end;
    }
    return rc;
}

int kp_store_each_result(struct kp_store *s, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err)
{
    return kp_store_each_result_with(s, NULL, fn, arg, err);
}

int kp_store_each_result_with(struct kp_store *s, const char *const *only, int (*fn)(struct kp_result *r, void *arg),
                              void *arg, char **err)
{
    *err = NULL;
    if (forked(s))
        return -ECHILD;
    bool found = true;
    uint64_t id = 0;
    int rc = 0;
    while (!rc && found) {
        struct kp_result result = {0};
        rc = read_error(s, take_launch(s, id, only, &result, &found), err);
        if (!rc && found)
            rc = fn(&result, arg);
        found = found && result.launch.id < INT64_MAX; /* beyond it, SQLite would start again at the lowest */
        id = result.launch.id + 1;
        kp_result_free(&result);
    }
    return rc;
}

/* Ends a look-up with the SQLite code `rc`. */
static int looked_up(struct kp_store *s, int rc, bool found, char **err)
{
    return rc ? read_error(s, rc, err) : found ? 0 : -ENOENT;
}

int kp_store_get_stack(struct kp_store *s, uint64_t id, struct kp_stack *out, char **err)
{
    bool found = false;
    *out = (struct kp_stack){0};
    *err = NULL;
    if (forked(s))
        return -ECHILD;
    kp_store_next_object(s);
    int rc = kp_store_read_stack(s, id, out, &found);
    rc = looked_up(s, rc, found, err);
    if (rc)
        kp_frames_free(out);
    return rc;
}

int kp_store_get_code(struct kp_store *s, uint64_t id, struct kp_code *out, char **err)
{
    bool found = false;
    *out = (struct kp_code){0};
    *err = NULL;
    if (forked(s))
        return -ECHILD;
    kp_store_next_object(s);
    int rc = kp_store_read_code(s, id, out, &found);
    rc = looked_up(s, rc, found, err);
    if (rc)
        kp_code_free(out);
    return rc;
}

int kp_store_get_timeline(struct kp_store *s, struct kp_timeline *out, char **err)
{
    *out = (struct kp_timeline){.n = 0};
    *err = NULL;
    if (forked(s))
        return -ECHILD;
    int rc = kp_store_read_timeline(s, out);
    rc = looked_up(s, rc, out->n, err);
    if (rc)
        kp_timeline_free(out);
    return rc;
}

/* ---- for pages ---- */

static int look_up_code(void *arg, uint64_t id, struct kp_code *out)
{
    struct kp_store *s = arg;
    char *err = NULL;
    int rc = kp_store_get_code(s, id, out, &err);
    s->lost_codes += rc && rc != -ECHILD;
    free(err);
    return rc;
}

static int look_up_stack(void *arg, uint64_t id, struct kp_stack *out)
{
    struct kp_store *s = arg;
    char *err = NULL;
    int rc = kp_store_get_stack(s, id, out, &err);
    s->lost_stacks += rc && rc != -ENOENT && rc != -ECHILD; /* a stack without frames leaves nothing */
    free(err);
    return rc;
}

static int look_up_timeline(void *arg, struct kp_timeline *out)
{
    struct kp_store *s = arg;
    char *err = NULL;
    int rc = kp_store_get_timeline(s, out, &err);
    s->lost_timeline |= rc && rc != -ENOENT && rc != -ECHILD;
    free(err);
    return rc;
}

struct kp_lookup kp_store_lookup(struct kp_store *s)
{
    return s ? (struct kp_lookup){look_up_code, look_up_stack, look_up_timeline, s} : (struct kp_lookup){0};
}

char *kp_store_missing(const struct kp_store *s)
{
    char *text = NULL, *err = NULL;
    if (s->lost_timeline)
        return kp_error(&err, "'%s' is damaged or truncated, and its timeline cannot be read", s->path) == -EINVAL
                   ? err
                   : NULL;
    if (!s->lost_codes && !s->lost_stacks)
        return NULL;
    const char *what = !s->lost_stacks ? "the code of functions that launches name: their source lines and instructions"
                       : !s->lost_codes ? "call stacks that launches name: they"
                                        : "code and call stacks that launches name: they";
    if (kp_error(&err, "'%s' is damaged or truncated, and lacks some of %s are left out", s->path, what) == -EINVAL)
        text = err;
    return text;
}
