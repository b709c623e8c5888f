/*
 * Stores call stacks and code, which launches name by id, and the values of single instructions and samples. store.c
 * describes the tables.
 */
#include "report/store/store_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/room.h"

/* Values of code_metric are long, so it is a table with a separate small index, not one tree. */
const char kp_store_code_schema[] =
    "CREATE TABLE frame(stack INTEGER, position INTEGER, kind INTEGER, function TEXT, file TEXT, line INTEGER,"
    " module TEXT, offset INTEGER, PRIMARY KEY(stack, position)) WITHOUT ROWID;"
    "CREATE TABLE code(id INTEGER PRIMARY KEY, function TEXT, crc INTEGER);"
    "CREATE TABLE source_file(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, text TEXT);"
    "CREATE TABLE location(code INTEGER, position INTEGER, file INTEGER, line INTEGER, parent INTEGER, function TEXT,"
    " PRIMARY KEY(code, position)) WITHOUT ROWID;"
    "CREATE TABLE instruction(code INTEGER, offset INTEGER, location INTEGER, opcode TEXT, text TEXT,"
    " ptx INTEGER, access_bits INTEGER, PRIMARY KEY(code, offset)) WITHOUT ROWID;"
    "CREATE TABLE ptx(code INTEGER, line INTEGER, text TEXT, PRIMARY KEY(code, line)) WITHOUT ROWID;"
    "CREATE TABLE code_counts(launch INTEGER, position INTEGER, code INTEGER, offsets TEXT,"
    " PRIMARY KEY(launch, position));"
    "CREATE TABLE code_metric(launch INTEGER, position INTEGER, name TEXT, \"values\" TEXT,"
    " PRIMARY KEY(launch, position, name));"
    "CREATE TABLE series(launch INTEGER, name TEXT, unit TEXT, start_ns REAL, interval_ns REAL, \"values\" TEXT);"
    "CREATE INDEX series_launch ON series(launch);"
    /* A value goes through json_each so that sorted queries carry one value per row, and not the whole list. */
    "CREATE VIEW code_values AS SELECT c.launch, l.demangled AS kernel, c.code, d.function,"
    " o.value AS offset, i.opcode, i.location, f.path AS file, p.line, m.name, v.value FROM code_counts c JOIN "
    "json_each(c.offsets) o"
    " JOIN code_metric m USING (launch, position)"
    " JOIN json_each(json_array(json_extract(m.\"values\", '$[' || o.key || ']'))) v"
    " JOIN launch l ON l.id = c.launch LEFT JOIN code d ON d.id = c.code"
    " LEFT JOIN instruction i ON i.code = c.code AND i.offset = o.value"
    " LEFT JOIN location p ON p.code = c.code AND p.position = i.location"
    " LEFT JOIN source_file f ON f.id = p.file;"
    "CREATE VIEW line_values AS SELECT launch, kernel, file, line, name, sum(value) AS value FROM code_values"
    " GROUP BY launch, kernel, file, line, name;";

/* Returns the next element of *list, all 0. NULL without memory, which is noted, with the list as it was. */
static void *more(struct kp_sql *r, void *list, size_t *n, size_t size)
{
    char *at;
    if (!kp_room(list, *n, size)) {
        r->rc = SQLITE_NOMEM;
        return NULL;
    }
    memcpy(&at, list, sizeof at); /* a pointer of any type */
    return memset(at + (*n)++ * size, 0, size);
}

/* ---- call stacks ---- */

static const struct kp_sql_field frame_fields[] = {KP_SQL_FIELD(struct kp_frame, kind),
                                                   KP_SQL_FIELD(struct kp_frame, function),
                                                   KP_SQL_FIELD(struct kp_frame, file),
                                                   KP_SQL_FIELD(struct kp_frame, line),
                                                   KP_SQL_FIELD(struct kp_frame, module),
                                                   KP_SQL_FIELD(struct kp_frame, offset),
                                                   {KP_SQL_LAST, 0, 0}};

int kp_store_write_stack(struct kp_store *s, const struct kp_stack *stack)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_CLEAR_FRAMES);
    kp_bind_uint(&r, stack->id);
    int rc = kp_sql_end(&r);
    for (size_t i = 0; !rc && i < stack->n_frames; i++)
        rc = kp_sql_put(s, KP_SQL_PUT_FRAME, (const uint64_t[]){stack->id, i}, 2, frame_fields, &stack->frames[i]);
    return rc;
}

static void read_frame(struct kp_sql *r, void *arg)
{
    struct kp_stack *out = arg;
    struct kp_frame *f = more(r, &out->frames, &out->n_frames, sizeof *f);
    if (!f)
        return;
    out->id = kp_column_uint(r);
    kp_column_int(r); /* position */
    kp_column_fields(r, frame_fields, f);
}

int kp_store_read_stack(struct kp_store *s, uint64_t id, struct kp_stack *out, bool *found)
{
    int rc = kp_sql_each(s, KP_SQL_GET_FRAMES, id, read_frame, out);
    *found = out->n_frames > 0;
    return rc;
}

/* ---- code ---- */

/* More levels of inlining than a compiler makes; a longer chain may be a ring. */
enum { INLINED_MAX = 1024 };

static bool chain_ends(const struct kp_code *c, uint32_t parent)
{
    for (int i = 0; parent && i < INLINED_MAX; i++) {
        if (parent > c->n_locations)
            return false;
        parent = c->locations[parent - 1].parent;
    }
    return !parent;
}

bool kp_store_code_is_sound(const struct kp_code *c)
{
    for (size_t i = 0; i < c->n_locations; i++)
        if (c->locations[i].file >= c->n_files || !chain_ends(c, c->locations[i].parent))
            return false;
    for (size_t i = 0; i < c->n_instructions; i++)
        if (c->instructions[i].location > c->n_locations ||
            (i && c->instructions[i].offset <= c->instructions[i - 1].offset))
            return false;
    for (size_t i = 1; i < c->n_ptx; i++)
        if (c->ptx[i].line <= c->ptx[i - 1].line)
            return false;
    return true;
}

static int write_file(struct kp_store *s, const struct kp_source_file *f, uint64_t *id)
{
    struct kp_sql put = kp_sql_begin(s, KP_SQL_PUT_FILE);
    kp_bind_text(&put, f->path);
    int rc = kp_sql_end(&put);
    if (!rc && f->text) {
        struct kp_sql text = kp_sql_begin(s, KP_SQL_PUT_FILE_TEXT);
        kp_bind_text(&text, f->text);
        kp_bind_text(&text, f->path);
        rc = kp_sql_end(&text);
    }
    if (rc)
        return rc;
    struct kp_sql get = kp_sql_begin(s, KP_SQL_GET_FILE_ID);
    kp_bind_text(&get, f->path);
    if (kp_sql_next(&get))
        *id = kp_column_uint(&get);
    return kp_sql_finish(&get);
}

/* The columns that are fields. */
static const struct kp_sql_field location_fields[] = {KP_SQL_FIELD(struct kp_location, line),
                                                      KP_SQL_FIELD(struct kp_location, parent),
                                                      KP_SQL_FIELD(struct kp_location, function),
                                                      {KP_SQL_LAST, 0, 0}};
static const struct kp_sql_field instruction_fields[] = {KP_SQL_FIELD(struct kp_instruction, offset),
                                                         KP_SQL_FIELD(struct kp_instruction, location),
                                                         KP_SQL_FIELD(struct kp_instruction, opcode),
                                                         KP_SQL_FIELD(struct kp_instruction, text),
                                                         KP_SQL_FIELD(struct kp_instruction, ptx),
                                                         KP_SQL_FIELD(struct kp_instruction, access_bits),
                                                         {KP_SQL_LAST, 0, 0}};
static const struct kp_sql_field ptx_fields[] = {
    KP_SQL_FIELD(struct kp_ptx_line, line), KP_SQL_FIELD(struct kp_ptx_line, text), {KP_SQL_LAST, 0, 0}};

static int write_locations(struct kp_store *s, const struct kp_code *c)
{
    uint64_t *files = calloc(c->n_files + 1, sizeof *files);
    int rc = files ? SQLITE_OK : SQLITE_NOMEM;
    for (size_t i = 0; !rc && i < c->n_files; i++)
        rc = write_file(s, &c->files[i], &files[i]);
    for (size_t i = 0; !rc && i < c->n_locations; i++)
        rc = kp_sql_put(s, KP_SQL_PUT_LOCATION, (const uint64_t[]){c->id, i + 1, files[c->locations[i].file]}, 3,
                        location_fields, &c->locations[i]);
    free(files);
    return rc;
}

int kp_store_write_code(struct kp_store *s, const struct kp_code *c)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_PUT_CODE);
    kp_bind_uint(&r, c->id);
    kp_bind_text(&r, c->function);
    kp_bind_uint(&r, c->crc);
    int rc = kp_sql_end(&r);
    rc = rc ? rc : write_locations(s, c);
    for (size_t i = 0; !rc && i < c->n_instructions; i++)
        rc = kp_sql_put(s, KP_SQL_PUT_INSTRUCTION, &c->id, 1, instruction_fields, &c->instructions[i]);
    for (size_t i = 0; !rc && i < c->n_ptx; i++)
        rc = kp_sql_put(s, KP_SQL_PUT_PTX, &c->id, 1, ptx_fields, &c->ptx[i]);
    return rc;
}

/* The files that a function's locations name, and their ids in the file, ascending. */
struct files {
    uint64_t *ids;
    struct kp_code *code;
};

static void read_file(struct kp_sql *r, void *arg)
{
    struct files *f = arg;
    size_t n = f->code->n_files;
    uint64_t *id = more(r, &f->ids, &n, sizeof *id);
    struct kp_source_file *file = id ? more(r, &f->code->files, &f->code->n_files, sizeof *file) : NULL;
    if (!file)
        return;
    *id = kp_column_uint(r);
    file->path = kp_column_text(r);
    file->text = kp_column_text_or_null(r);
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b; /* as SQLite orders them */
    return (x > y) - (x < y);
}

static void read_location(struct kp_sql *r, void *arg)
{
    const struct files *f = arg;
    struct kp_code *c = f->code;
    struct kp_location *l = more(r, &c->locations, &c->n_locations, sizeof *l);
    if (!l)
        return;
    kp_column_int(r); /* code */
    bool next = kp_column_uint(r) == c->n_locations;
    uint64_t id = kp_column_uint(r);
    const uint64_t *file = c->n_files ? bsearch(&id, f->ids, c->n_files, sizeof id, compare_ids) : NULL;
    l->file = file ? (uint32_t)(file - f->ids) : UINT32_MAX; /* which makes the code unsound */
    kp_column_fields(r, location_fields, l);
    if (!r->rc && !next)
        r->rc = SQLITE_CORRUPT;
}

static int read_locations(struct kp_store *s, struct kp_code *out)
{
    struct files files = {NULL, out};
    int rc = kp_sql_each(s, KP_SQL_GET_FILES, out->id, read_file, &files);
    rc = rc ? rc : kp_sql_each(s, KP_SQL_GET_LOCATIONS, out->id, read_location, &files);
    free(files.ids);
    return rc;
}

static void read_instruction(struct kp_sql *r, void *arg)
{
    struct kp_code *out = arg;
    struct kp_instruction *i = more(r, &out->instructions, &out->n_instructions, sizeof *i);
    if (!i)
        return;
    kp_column_int(r); /* code */
    kp_column_fields(r, instruction_fields, i);
}

static void read_ptx_line(struct kp_sql *r, void *arg)
{
    struct kp_code *out = arg;
    uint32_t line = (uint32_t)kp_column_uint(r);
    char *text = kp_column_text(r);
    if (!r->rc && (!text || kp_code_add_ptx(out, line, text, SIZE_MAX)))
        r->rc = SQLITE_NOMEM;
    free(text);
}

int kp_store_read_code(struct kp_store *s, uint64_t id, struct kp_code *out, bool *found)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_CODE);
    kp_bind_uint(&r, id);
    *found = kp_sql_next(&r);
    if (*found) {
        out->id = kp_column_uint(&r);
        out->function = kp_column_text(&r);
        out->crc = kp_column_uint(&r);
    }
    int rc = kp_sql_finish(&r);
    if (rc || !*found)
        return rc;
    rc = read_locations(s, out);
    rc = rc ? rc : kp_sql_each(s, KP_SQL_GET_INSTRUCTIONS, id, read_instruction, out);
    rc = rc ? rc : kp_sql_each(s, KP_SQL_GET_PTX, id, read_ptx_line, out);
    return rc || kp_store_code_is_sound(out) ? rc : SQLITE_CORRUPT;
}

/* ---- values of launches ---- */

/* Binds the next parameter, a list; free *text after kp_sql_end. */
static void bind_numbers(struct kp_sql *r, enum kp_number type, const void *values, size_t n, char **text)
{
    *text = kp_numbers_write(type, values, n);
    kp_bind_text(r, *text);
    if (!*text && !r->rc)
        r->rc = SQLITE_NOMEM;
}

static void column_numbers(struct kp_sql *r, enum kp_number type, void **values, size_t *n)
{
    const char *json = (const char *)sqlite3_column_text(r->statement, r->column++);
    int rc = json ? kp_numbers_read(type, json, values, n) : -EINVAL;
    if (rc && !r->rc)
        r->rc = rc == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
}

static int write_head(struct kp_store *s, uint64_t launch, size_t position, const struct kp_code_counts *c)
{
    char *offsets;
    struct kp_sql r = kp_sql_begin(s, KP_SQL_PUT_COUNTS);
    kp_bind_uint(&r, launch);
    kp_bind_uint(&r, position);
    kp_bind_uint(&r, c->code);
    bind_numbers(&r, KP_NUMBER_U32, c->offsets, c->n_offsets, &offsets);
    int rc = kp_sql_end(&r);
    free(offsets);
    return rc;
}

static int write_metric(struct kp_store *s, uint64_t launch, size_t position, const struct kp_code_metric *m, size_t n)
{
    char *values;
    struct kp_sql r = kp_sql_begin(s, KP_SQL_PUT_CODE_METRIC);
    kp_bind_uint(&r, launch);
    kp_bind_uint(&r, position);
    kp_bind_text(&r, m->name);
    bind_numbers(&r, KP_NUMBER_U64, m->values, n, &values);
    int rc = kp_sql_end(&r);
    free(values);
    return rc;
}

int kp_store_write_counts(struct kp_store *s, const struct kp_result *result)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; !rc && i < result->n_counts; i++) {
        const struct kp_code_counts *c = &result->counts[i];
        rc = write_head(s, result->launch.id, i, c);
        for (size_t k = 0; !rc && k < c->n_metrics; k++)
            rc = write_metric(s, result->launch.id, i, &c->metrics[k], c->n_offsets);
    }
    return rc;
}

static bool ascend(const struct kp_code_counts *c)
{
    for (size_t i = 1; i < c->n_offsets; i++)
        if (c->offsets[i] <= c->offsets[i - 1])
            return false;
    return true;
}

static void read_head(struct kp_sql *r, void *result)
{
    struct kp_result *of = result;
    struct kp_code_counts counts = {0};
    void *offsets = NULL;
    kp_column_int(r); /* launch */
    bool next = kp_column_uint(r) == of->n_counts;
    counts.code = kp_column_uint(r);
    column_numbers(r, KP_NUMBER_U32, &offsets, &counts.n_offsets);
    counts.offsets = offsets;
    if (!r->rc && (!next || !ascend(&counts)))
        r->rc = SQLITE_CORRUPT;
    if (!r->rc && kp_result_add_counts(of, &counts))
        r->rc = SQLITE_NOMEM;
    kp_code_counts_free(&counts);
}

static void read_metric(struct kp_sql *r, struct kp_code_counts *c)
{
    size_t n = 0;
    void *values = NULL;
    struct kp_code_metric *m = more(r, &c->metrics, &c->n_metrics, sizeof *m);
    if (!m)
        return;
    kp_column_int(r); /* launch */
    kp_column_int(r); /* position */
    char *name = kp_column_text(r);
    column_numbers(r, KP_NUMBER_U64, &values, &n);
    *m = (struct kp_code_metric){name, values};
    if (!r->rc && n != c->n_offsets)
        r->rc = SQLITE_CORRUPT;
}

static int read_metrics(struct kp_store *s, uint64_t launch, size_t position, struct kp_code_counts *c)
{
    struct kp_sql r = kp_sql_begin(s, KP_SQL_GET_CODE_METRICS);
    kp_bind_uint(&r, launch);
    kp_bind_uint(&r, position);
    while (kp_sql_next(&r))
        read_metric(&r, c);
    return kp_sql_finish(&r);
}

int kp_store_read_counts(struct kp_store *s, struct kp_result *result)
{
    int rc = kp_sql_each(s, KP_SQL_GET_COUNTS, result->launch.id, read_head, result);
    for (size_t i = 0; !rc && i < result->n_counts; i++)
        rc = read_metrics(s, result->launch.id, i, &result->counts[i]);
    return rc;
}

static int write_one_series(struct kp_store *s, uint64_t launch, const struct kp_series *series)
{
    char *values;
    struct kp_sql r = kp_sql_begin(s, KP_SQL_PUT_SERIES);
    kp_bind_uint(&r, launch);
    kp_bind_text(&r, series->name);
    kp_bind_text(&r, series->unit);
    kp_bind_real(&r, series->start_ns);
    kp_bind_real(&r, series->interval_ns);
    bind_numbers(&r, KP_NUMBER_REAL, series->values, series->n_values, &values);
    int rc = kp_sql_end(&r);
    free(values);
    return rc;
}

int kp_store_write_series(struct kp_store *s, const struct kp_result *result)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; !rc && i < result->n_series; i++)
        rc = write_one_series(s, result->launch.id, &result->series[i]);
    return rc;
}

static void read_one_series(struct kp_sql *r, void *result)
{
    struct kp_series series = {0};
    void *values = NULL;
    kp_column_int(r); /* launch */
    series.name = kp_column_text(r);
    series.unit = kp_column_text(r);
    series.start_ns = kp_column_real(r);
    series.interval_ns = kp_column_real(r);
    column_numbers(r, KP_NUMBER_REAL, &values, &series.n_values);
    series.values = values;
    if (!r->rc && kp_result_add_series(result, &series))
        r->rc = SQLITE_NOMEM;
    kp_series_free(&series);
}

int kp_store_read_series(struct kp_store *s, struct kp_result *result)
{
    return kp_sql_each(s, KP_SQL_GET_SERIES, result->launch.id, read_one_series, result);
}
