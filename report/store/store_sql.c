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

void kp_bind_reason(struct kp_sql *r, enum kp_reason reason)
{
    kp_bind_text(r, reason ? kp_reason_key(reason) : NULL);
}

enum kp_reason kp_column_reason(struct kp_sql *r)
{
    return kp_reason_find((const char *)sqlite3_column_text(r->statement, r->column++));
}

/* ---- the fields of a struct ---- */

/* Whole numbers lie in memory with the lowest byte first, on each processor that CUDA is for. */
static void bind_field(struct kp_sql *r, const struct kp_sql_field *f, const void *at)
{
    uint64_t bits = 0;
    switch (f->type) {
    case KP_SQL_BOOL:
    case KP_SQL_UNSIGNED:
        memcpy(&bits, at, f->size);
        kp_bind_uint(r, bits);
        break;
    case KP_SQL_SIGNED:
        kp_bind_int(r, f->size == sizeof(int) ? *(const int *)at : *(const int64_t *)at);
        break;
    case KP_SQL_REAL:
        kp_bind_real(r, *(const double *)at);
        break;
    case KP_SQL_REASON:
        kp_bind_reason(r, *(const enum kp_reason *)at);
        break;
    default:
        kp_bind_text(r, *(char *const *)at);
        break;
    }
}

void kp_bind_fields(struct kp_sql *r, const struct kp_sql_field *fields, const void *of)
{
    for (; fields->type; fields++)
        bind_field(r, fields, (const char *)of + fields->offset);
}

static void read_field(struct kp_sql *r, const struct kp_sql_field *f, void *at)
{
    int64_t whole;
    switch (f->type) {
    case KP_SQL_BOOL:
        *(bool *)at = kp_column_int(r);
        break;
    case KP_SQL_UNSIGNED:
    case KP_SQL_SIGNED:
        whole = kp_column_int(r);
        memcpy(at, &whole, f->size);
        break;
    case KP_SQL_REAL:
        *(double *)at = kp_column_real(r);
        break;
    case KP_SQL_REASON:
        *(enum kp_reason *)at = kp_column_reason(r);
        break;
    default:
        *(char **)at = f->type == KP_SQL_TEXT ? kp_column_text(r) : kp_column_text_or_null(r);
        break;
    }
}

void kp_column_fields(struct kp_sql *r, const struct kp_sql_field *fields, void *of)
{
    for (; fields->type; fields++)
        read_field(r, fields, (char *)of + fields->offset);
}

int kp_sql_put(struct kp_store *s, enum kp_sql_id q, const uint64_t *keys, size_t n, const struct kp_sql_field *fields,
               const void *of)
{
    struct kp_sql r = kp_sql_begin(s, q);
    for (size_t i = 0; i < n; i++)
        kp_bind_uint(&r, keys[i]);
    kp_bind_fields(&r, fields, of);
    return kp_sql_end(&r);
}

int kp_sql_each(struct kp_store *s, enum kp_sql_id q, uint64_t key, void (*read)(struct kp_sql *r, void *arg),
                void *arg)
{
    struct kp_sql r = kp_sql_begin(s, q);
    if (sqlite3_bind_parameter_count(r.statement))
        kp_bind_uint(&r, key);
    while (kp_sql_next(&r))
        read(&r, arg);
    return kp_sql_finish(&r);
}
