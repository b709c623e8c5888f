/*
 * Names and values of metrics in the session file, for launches and for their variants. Tables: see store.c.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "report/store/store_body.h"

/* A row of table `name`. */
struct name {
    sqlite3_int64 id;
    const char *name, *unit;
};

/* ---- names ---- */

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->unit, y->unit);
}

/* Puts the name into the file unless it is there. */
static int put_name(struct kp_store *s, struct name *n)
{
    struct kp_sql put = kp_sql_begin(s, KP_SQL_PUT_NAME);
    kp_bind_text(&put, n->name);
    kp_bind_text(&put, n->unit);
    int rc = kp_sql_end(&put);
    if (rc)
        return rc;
    struct kp_sql get = kp_sql_begin(s, KP_SQL_GET_NAME);
    kp_bind_text(&get, n->name);
    kp_bind_text(&get, n->unit);
    if (kp_sql_next(&get))
        n->id = kp_column_int(&get);
    return kp_sql_finish(&get);
}

/* Remembers a name. Without memory the name is looked up in the file next time. */
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

int kp_store_name_id(struct kp_store *s, const struct kp_metric *m, sqlite3_int64 *id)
{
    struct name n = {0, m->name, m->unit};
    struct name **known = tfind(&n, &s->names, compare_names);
    int rc = known ? SQLITE_OK : put_name(s, &n);
    if (!known && !rc)
        remember_name(s, &n);
    *id = known ? (*known)->id : n.id;
    return rc;
}

/* ---- values ---- */

void kp_store_bind_value(struct kp_sql *r, const struct kp_metric *m)
{
    kp_bind_int(r, m->kind);
    if (m->kind == KP_VALUE_REAL)
        kp_bind_real(r, m->real);
    else if (m->kind == KP_VALUE_COUNT)
        kp_bind_uint(r, m->count);
    else
        kp_bind_text(r, m->text);
}

int kp_store_read_value(sqlite3_stmt *row, int at, int reason, struct kp_result *result)
{
    enum { NAME, UNIT };
    const char *name = (const char *)sqlite3_column_text(row, NAME),
               *unit = (const char *)sqlite3_column_text(row, UNIT);
    int value = at + 1;
    if (!name || !unit)
        return -ENOMEM;
    switch ((enum kp_value_kind)sqlite3_column_int(row, at)) {
    case KP_VALUE_REAL:
        return kp_result_set_real(result, name, unit, kp_column_real(&(struct kp_sql){row, value, 0, NULL}));
    case KP_VALUE_COUNT:
        return kp_result_set_count(result, name, unit, (uint64_t)sqlite3_column_int64(row, value));
    case KP_VALUE_TEXT:
        return kp_result_set_text(result, name, unit, (const char *)sqlite3_column_text(row, value));
    case KP_VALUE_NA:
        break;
    }
    const char *text = (const char *)sqlite3_column_text(row, value);
    enum kp_reason known = kp_column_reason(&(struct kp_sql){row, reason, 0, NULL});
    return kp_result_set_why(result, name, kp_why_of(known, (char *)(text ? text : "")));
}
