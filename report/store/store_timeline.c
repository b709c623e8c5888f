/*
 * The timeline in the session file. Tables: see store.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/room.h"
#include "report/store/store_body.h"

const char kp_store_timeline_schema[] =
    "CREATE TABLE activity_name(id INTEGER PRIMARY KEY, name TEXT);"
    "CREATE TABLE activity(id INTEGER PRIMARY KEY, kind INTEGER, name INTEGER, device INTEGER, context_id INTEGER,"
    " stream_id INTEGER, start_ns INTEGER, end_ns INTEGER, correlation INTEGER, ordinal INTEGER, thread INTEGER,"
    " launched_ns INTEGER, grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER,"
    " block_z INTEGER, bytes INTEGER, graph INTEGER);"
    "CREATE VIEW activities AS SELECT a.id, a.kind, n.name, a.device, a.context_id, a.stream_id, a.start_ns, a.end_ns,"
    " a.end_ns - a.start_ns AS ns, a.bytes, a.thread, a.launched_ns, l.id AS launch FROM activity a"
    " LEFT JOIN activity_name n ON n.id = a.name LEFT JOIN launch l ON l.ordinal = a.ordinal AND a.ordinal >= 0;"
#define KP_VIEW(name, select) "CREATE VIEW " #name " AS " select ";"
#include "report/store/nsys.def"
    ;

/* Rows that are read in one go: the file is free for its writer between two of them. */
enum { ROWS = 4096 };

/* ---- writing ---- */

int kp_store_write_activity_name(struct kp_store *s, uint32_t number, const char *name)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_PUT_ACTIVITY_NAME);
    kp_bind_uint(&r, number);
    kp_bind_text(&r, name);
    return kp_sql_end(&r);
}

#define F(field)  KP_SQL_FIELD(struct kp_activity, field)
#define F3(field) KP_SQL_FIELD3(struct kp_activity, field)
static const struct kp_sql_field activity_fields[] = {
    F(kind),    F(name),   F(device),      F(context_id), F(stream_id), F(start_ns), F(end_ns), F(correlation),
    F(ordinal), F(thread), F(launched_ns), F3(grid),      F3(block),    F(bytes),    F(graph),  {KP_SQL_LAST, 0, 0}};
#undef F
#undef F3

int kp_store_write_activities(struct kp_store *s, const struct kp_activity *at, size_t n)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; !rc && i < n; i++)
        rc = kp_sql_put(s, KP_SQL_PUT_ACTIVITY, NULL, 0, activity_fields, &at[i]);
    return rc;
}

/* ---- reading ---- */

/* Returns true if arithmetic with the times is safe, and devices are few: kprof writes no others. */
static bool is_sound(const struct kp_activity *a)
{
    enum { MOST_DEVICES = 256 };
    static const int64_t most = INT64_MAX / 4;
    return (unsigned)a->kind < KP_ACTIVITY_KINDS && a->device >= KP_NO_DEVICE && a->device < MOST_DEVICES &&
           a->start_ns >= -most && a->start_ns <= a->end_ns && a->end_ns <= most;
}

/* Reads the rows after *last, which moves on. */
static int read_some(struct kp_store *s, int64_t *last, struct kp_timeline *out, bool *more)
{
    int found = 0;
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_ACTIVITIES);
    kp_store_next_object(s);
    kp_bind_int(&r, *last);
    kp_bind_int(&r, ROWS);
    while (kp_sql_next(&r)) {
        struct kp_activity a;
        *last = kp_column_int(&r);
        kp_column_fields(&r, activity_fields, &a);
        found++;
        if (!is_sound(&a))
            r.rc = SQLITE_CORRUPT;
        else if (kp_timeline_add(out, &a))
            r.rc = SQLITE_NOMEM;
    }
    *more = found == ROWS;
    return kp_sql_finish(&r);
}

static int read_names(struct kp_store *s, struct kp_timeline *out)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_ACTIVITY_NAMES);
    kp_store_next_object(s);
    while (kp_sql_next(&r)) {
        int64_t number = sqlite3_column_int64(r.statement, 0);
        const char *name = (const char *)sqlite3_column_text(r.statement, 1);
        /* Numbers without gaps: a small file must not ask for much memory. */
        bool sound = number >= 0 && (size_t)number == out->n_names;
        int rc = sound ? kp_timeline_set_name(out, (uint32_t)number, name ? name : "") : -EINVAL;
        if (rc)
            r.rc = rc == -EINVAL ? SQLITE_CORRUPT : SQLITE_NOMEM;
    }
    return kp_sql_finish(&r);
}

int kp_store_read_timeline(struct kp_store *s, struct kp_timeline *out)
{
    int64_t last = INT64_MIN;
    bool more = true;
    int rc = read_names(s, out);
    while (!rc && more)
        rc = read_some(s, &last, out, &more);
    return rc ? rc : kp_timeline_sort(out) ? SQLITE_NOMEM : SQLITE_OK;
}

/* ---- launches of kernels ---- */

static int read_records(struct kp_store *s, struct kp_kernel_record **at, size_t *n)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_KERNEL_RECORDS);
    while (kp_sql_next(&r)) {
        if (!KP_ROOM(*at, *n)) {
            r.rc = SQLITE_NOMEM;
            break;
        }
        struct kp_activity a;
        int64_t row = kp_column_int(&r);
        kp_column_fields(&r, activity_fields, &a);
        (*at)[(*n)++] = (struct kp_kernel_record){.row = row,
                                                  .correlation = a.correlation,
                                                  .start_ns = a.start_ns,
                                                  .shape = kp_timeline_shape(a.grid, a.block),
                                                  .is_graph = a.graph != 0};
    }
    return kp_sql_finish(&r);
}

static int put_link(struct kp_store *s, const struct kp_kernel_record *k)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_LINK_ACTIVITY);
    kp_bind_int(&r, k->ordinal);
    kp_bind_uint(&r, k->own->thread);
    kp_bind_int(&r, k->own->launched_ns);
    kp_bind_int(&r, k->row);
    return kp_sql_end(&r);
}

int kp_store_write_links(struct kp_store *s, const struct kp_launch_note *notes, size_t n)
{
    struct kp_kernel_record *records = NULL;
    size_t n_records = 0;
    int rc = read_records(s, &records, &n_records);
    if (!rc)
        kp_timeline_link(records, n_records, notes, n);
    for (size_t i = 0; !rc && i < n_records; i++)
        if (records[i].own)
            rc = put_link(s, &records[i]);
    free(records);
    return rc;
}
