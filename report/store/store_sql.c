#include "report/store/store_body.h"

#include <math.h>
#include <string.h>

static const char *const statements[KP_SQL_COUNT] = {
#define KP_SQL(name, text) [KP_SQL_##name] = text,
#include "report/store/store.def"
#undef KP_SQL
};

struct kp_sql kp_sql_begin(struct kp_store *s, enum kp_sql_id q)
{
    struct kp_sql r = {s->statements[q], 0, SQLITE_OK, s};
    if (!r.statement) {
        r.rc = sqlite3_prepare_v3(s->db, statements[q], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[q], NULL);
        r.statement = s->statements[q];
    }
    return r;
}

static void bound(struct kp_sql *r, int rc)
{
    r->rc = r->rc ? r->rc : rc;
}

void kp_bind_uint(struct kp_sql *r, uint64_t value)
{
    bound(r, sqlite3_bind_int64(r->statement, ++r->column, (sqlite3_int64)value));
}

void kp_bind_int(struct kp_sql *r, int64_t value)
{
    bound(r, sqlite3_bind_int64(r->statement, ++r->column, value));
}

void kp_bind_real(struct kp_sql *r, double value)
{
    bound(r, sqlite3_bind_double(r->statement, ++r->column, value));
}

void kp_bind_text(struct kp_sql *r, const char *text)
{
    bound(r, sqlite3_bind_text(r->statement, ++r->column, text, -1, SQLITE_STATIC));
}

int kp_sql_end(struct kp_sql *r)
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

/* Counts the bytes of a row's texts. */
static size_t text_bytes(sqlite3_stmt *row)
{
    size_t bytes = 0;
    for (int c = 0, n = sqlite3_data_count(row); c < n; c++) {
        int type = sqlite3_column_type(row, c);
        if (type == SQLITE_TEXT || type == SQLITE_BLOB)
            bytes += (size_t)sqlite3_column_bytes(row, c);
    }
    return bytes;
}

bool kp_sql_next(struct kp_sql *r)
{
    r->column = 0;
    if (!r->rc)
        r->rc = sqlite3_step(r->statement);
    if (r->rc != SQLITE_ROW)
        return false;
    r->rc = kp_store_charge(r->store, text_bytes(r->statement));
    return !r->rc;
}

int kp_sql_finish(struct kp_sql *r)
{
    if (r->statement)
        sqlite3_reset(r->statement);
    return r->rc == SQLITE_DONE ? SQLITE_OK : r->rc;
}

int64_t kp_column_int(struct kp_sql *r)
{
    return sqlite3_column_int64(r->statement, r->column++);
}

uint64_t kp_column_uint(struct kp_sql *r)
{
    return (uint64_t)kp_column_int(r);
}

double kp_column_real(struct kp_sql *r)
{
    int c = r->column++;
    return sqlite3_column_type(r->statement, c) == SQLITE_NULL ? NAN : sqlite3_column_double(r->statement, c);
}

char *kp_column_text_or_null(struct kp_sql *r)
{
    int c = r->column++;
    const char *text = (const char *)sqlite3_column_text(r->statement, c);
    char *copy = text ? strdup(text) : NULL;
    if (!copy && sqlite3_column_type(r->statement, c) != SQLITE_NULL)
        r->rc = SQLITE_NOMEM;
    return copy;
}

char *kp_column_text(struct kp_sql *r)
{
    char *copy = kp_column_text_or_null(r);
    if (!copy && !r->rc && !(copy = kp_strdup("")))
        r->rc = SQLITE_NOMEM;
    return copy;
}
