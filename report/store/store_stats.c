/*
 * The reports of `nsys stats`, as queries over the timeline. A file that is read has no views, which its guard turns
 * off: queries begin with them as common table expressions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqrt.h"
#include "base/text.h"
#include "report/store/store_body.h"

static const char views[] = "WITH unused AS (SELECT 1)"
#define KP_VIEW(name, select) ", " #name " AS (" select ")"
#include "report/store/nsys.def"
    ;

static const struct {
    const char *name, *title, *query;
} reports[] = {
#define KP_STATS(name, title, query) {#name, title, query},
#include "report/store/nsys.def"
};

enum { CELLS_MAX = 32 };

const char *kp_stats_report(size_t i, const char **title)
{
    bool is_there = i < sizeof reports / sizeof *reports;
    *title = is_there ? reports[i].title : NULL;
    return is_there ? reports[i].name : NULL;
}

static void root(sqlite3_context *c, int n, sqlite3_value **values)
{
    (void)n;
    sqlite3_result_double(c, kp_sqrt(sqlite3_value_double(values[0])));
}

/* Hands on the headings, and then each row. */
static int each_row(sqlite3_stmt *q, kp_stats_fn *fn, void *arg, int *rc)
{
    const char *cells[CELLS_MAX];
    size_t n = (size_t)sqlite3_column_count(q);
    n = n < CELLS_MAX ? n : CELLS_MAX;
    for (size_t i = 0; i < n; i++)
        cells[i] = sqlite3_column_name(q, (int)i);
    int stopped = fn(cells, n, arg);
    while (!stopped && (*rc = sqlite3_step(q)) == SQLITE_ROW) {
        for (size_t i = 0; i < n; i++)
            cells[i] = (const char *)sqlite3_column_text(q, (int)i);
        stopped = fn(cells, n, arg);
    }
    return stopped;
}

int kp_store_stats(struct kp_store *s, size_t report, kp_stats_fn *fn, void *arg, char **err)
{
    sqlite3_stmt *q = NULL;
    char *text = kp_asprintf("%s%s", views, reports[report].query);
    int stopped = 0;
    if (!text)
        return -ENOMEM;
    kp_store_next_reading(s);
    int rc = sqlite3_create_function(s->db, "root", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, root, NULL, NULL);
    rc = rc ? rc : sqlite3_prepare_v2(s->db, text, -1, &q, NULL);
    if (!rc)
        stopped = each_row(q, fn, arg, &rc);
    if (!stopped && rc != SQLITE_DONE)
        stopped = kp_error(err, "cannot read '%s': %s", s->path, sqlite3_errmsg(s->db)) == -ENOMEM ? -ENOMEM : -EIO;
    sqlite3_finalize(q);
    free(text);
    return stopped;
}
