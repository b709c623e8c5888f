/*
 * Variants of launches in the session file. Tables: see store.c.
 */
#include <stdlib.h>
#include <string.h>

#include "report/store/store_body.h"

const char kp_store_variants_schema[] =
    "CREATE TABLE variant(launch INTEGER, position INTEGER, name TEXT, grid_x INTEGER, grid_y INTEGER, grid_z INTEGER,"
    " block_x INTEGER, block_y INTEGER, block_z INTEGER, passes INTEGER, note TEXT, reason TEXT,"
    " PRIMARY KEY(launch, position)) WITHOUT ROWID;"
    "CREATE TABLE variant_metric(launch INTEGER, position INTEGER, name INTEGER, kind INTEGER, value, reason TEXT,"
    " PRIMARY KEY(launch, position, name)) WITHOUT ROWID;"
    "CREATE VIEW variants AS SELECT v.launch, v.position, v.name AS variant, n.name, n.unit, m.value FROM variant v"
    " JOIN variant_metric m ON m.launch = v.launch AND m.position = v.position JOIN name n ON n.id = m.name;";

/* The columns that are fields of the variant's launch. */
static const struct kp_sql_field launch_fields[] = {KP_SQL_FIELD3(struct kp_launch_info, grid),
                                                    KP_SQL_FIELD3(struct kp_launch_info, block),
                                                    KP_SQL_FIELD(struct kp_launch_info, passes),
                                                    KP_SQL_FIELD_AS(KP_SQL_NULLABLE, struct kp_launch_info, note),
                                                    KP_SQL_FIELD_AS(KP_SQL_REASON, struct kp_launch_info, reason),
                                                    {KP_SQL_LAST, 0, 0}};

/* ---- writing ---- */

static int put_metric(struct kp_store *s, uint64_t launch, size_t position, const struct kp_metric *m)
{
    sqlite3_int64 name = 0;
    int rc = kp_store_name_id(s, m, &name);
    if (rc)
        return rc;
    struct kp_sql r = kp_sql_begin(s, KP_SQL_PUT_VARIANT_METRIC);
    kp_bind_uint(&r, launch);
    kp_bind_uint(&r, position);
    kp_bind_int(&r, name);
    kp_store_bind_value(&r, m);
    kp_bind_reason(&r, m->reason);
    return kp_sql_end(&r);
}

static int put_variant(struct kp_store *s, uint64_t launch, size_t position, const struct kp_variant *v)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_PUT_VARIANT);
    kp_bind_uint(&r, launch);
    kp_bind_uint(&r, position);
    kp_bind_text(&r, v->name);
    kp_bind_fields(&r, launch_fields, &v->of->launch);
    int rc = kp_sql_end(&r);
    for (size_t i = 0; !rc && i < v->of->n_metrics; i++)
        rc = put_metric(s, launch, position, &v->of->metrics[i]);
    return rc;
}

int kp_store_write_variants(struct kp_store *s, const struct kp_result *r)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; !rc && i < r->n_variants; i++)
        rc = put_variant(s, r->launch.id, i, &r->variants[i]);
    return rc;
}

/* ---- reading back ---- */

static int get_variant(struct kp_sql *r, struct kp_result *result)
{
    kp_column_int(r); /* the launch, and the position: that of the row */
    if (kp_column_uint(r) != result->n_variants)
        return SQLITE_CORRUPT;
    char *name = kp_column_text(r);
    struct kp_variant *v = name ? kp_result_add_variant(result, name) : NULL;
    free(name);
    if (!v)
        return SQLITE_NOMEM;
    kp_column_fields(r, launch_fields, &v->of->launch);
    return r->rc;
}

static int get_variant_metrics(struct kp_store *s, uint64_t launch, size_t position, struct kp_result *of)
{
    enum { KIND = 5, REASON = 7 }; /* after the name, the unit, the launch, the position and the name's identifier */
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_VARIANT_METRICS);
    kp_bind_uint(&r, launch);
    kp_bind_uint(&r, position);
    while (kp_sql_next(&r))
        if (kp_store_read_value(r.statement, KIND, REASON, of))
            r.rc = SQLITE_NOMEM;
    return kp_sql_finish(&r);
}

int kp_store_read_variants(struct kp_store *s, struct kp_result *result)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_VARIANTS);
    kp_bind_uint(&r, result->launch.id);
    while (kp_sql_next(&r))
        r.rc = get_variant(&r, result);
    int rc = kp_sql_finish(&r);
    for (size_t i = 0; !rc && i < result->n_variants; i++)
        rc = get_variant_metrics(s, result->launch.id, i, result->variants[i].of);
    return rc;
}
