/*
 * Shared declarations of the store's files. Functions return SQLite codes, SQLITE_OK being 0; store.c turns them
 * into those of store.h, and manages transactions.
 */
#ifndef KP_REPORT_STORE_STORE_BODY_H
#define KP_REPORT_STORE_STORE_BODY_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "report/model/model.h"
#include "report/store/store.h"

enum kp_sql_id {
#define KP_SQL(name, text) KP_SQL_##name,
#include "report/store/store.def"
#undef KP_SQL
    KP_SQL_COUNT,
};

struct kp_store {
    sqlite3 *db;
    pid_t pid; /* of the opening process: in a forked child SQLite's handles are useless and harmful */
    char *path;
    sqlite3_stmt *statements[KP_SQL_COUNT]; /* prepared at first use, then kept */
    void *names; /* a tree (tsearch) of the struct name written so far: launches repeat them */

    /* For a file being read: see store_guard.c. */
    size_t lost_codes, lost_stacks; /* named by launches, but unreadable */
    bool lost_timeline;             /* likewise */
    char *copy, *copy_folder;       /* read in its place, or NULL: see store_copy.c */
    bool is_guarded, is_checked;
    uint64_t size;                       /* bytes */
    mode_t mode;                         /* of a file that was opened, bits of 0666 */
    uint64_t steps, bytes, bytes_of_one; /* spent */
};

/* ---- files that kprof may not have written: store_guard.c ---- */

/* Restricts a file; call it with `size` set, before the first statement that looks into the file. */
int kp_store_guard(struct kp_store *s);
/* Checks that the tables of `schemas` are in the file as we write them. Returns 0, or -ENOMEM or -EINVAL as in store.h.
 */
int kp_store_check_tables(struct kp_store *s, const char *const schemas[4], char **err);
/* Begins another reading of the file: each has its own budget because a caller may read the file many times. */
void kp_store_next_reading(struct kp_store *s);
/* Begins a session, launch, stack or function, which memory holds as a whole. */
void kp_store_next_object(struct kp_store *s);
/* Charges a row with that many bytes of text to the budget. SQLITE_TOOBIG: more than the file can hold. */
int kp_store_charge(struct kp_store *s, size_t bytes);

/* Makes a private copy of file and journal, to be removed even after a failure. 0, -ENOMEM, or -EINVAL with *err. */
int kp_store_copy(struct kp_store *s, char **err);
void kp_store_remove_copy(struct kp_store *s);

/* ---- one statement ---- */

/* A statement being filled or read, column by column. `rc` keeps the first failure. */
struct kp_sql {
    sqlite3_stmt *statement;
    int column, rc;
    struct kp_store *store;
};

struct kp_sql kp_sql_begin(struct kp_store *s, enum kp_sql_id q);

/* Bind the next parameter. A NULL text stays NULL; a text must live until kp_sql_end. */
void kp_bind_uint(struct kp_sql *r, uint64_t value);
void kp_bind_int(struct kp_sql *r, int64_t value);
void kp_bind_real(struct kp_sql *r, double value);
void kp_bind_text(struct kp_sql *r, const char *text);
void kp_bind_reason(struct kp_sql *r, enum kp_reason reason); /* its key */
/* A field of a struct that a column holds; a list ends with KP_SQL_LAST. */
struct kp_sql_field {
    enum {
        KP_SQL_LAST,
        KP_SQL_BOOL,
        KP_SQL_UNSIGNED,
        KP_SQL_SIGNED,
        KP_SQL_REAL,
        KP_SQL_TEXT,     /* owned; NULL is read as "" */
        KP_SQL_NULLABLE, /* owned; NULL stays */
        KP_SQL_REASON,   /* a kp_reason, by its key */
    } type;
    unsigned offset, size; /* of the field, in bytes */
};
/* The row of a field whose type tells that of the column. Enumerations without negative values are unsigned. */
#define KP_SQL_FIELD(of, field)                                                                                         \
    {                                                                                                                   \
        _Generic(((of *)0)->field, bool : KP_SQL_BOOL, uint16_t : KP_SQL_UNSIGNED, uint32_t : KP_SQL_UNSIGNED,        \
                 uint64_t : KP_SQL_UNSIGNED, int : KP_SQL_SIGNED, int64_t : KP_SQL_SIGNED, double : KP_SQL_REAL,      \
                 char * : KP_SQL_TEXT),                                                                               \
            offsetof(of, field), sizeof(((of *)0)->field) \
    }
#define KP_SQL_FIELD3(of, field) KP_SQL_FIELD(of, field[0]), KP_SQL_FIELD(of, field[1]), KP_SQL_FIELD(of, field[2])
/* The same for a type of column that the field's does not tell. */
#define KP_SQL_FIELD_AS(type, of, field)                                                                               \
    {                                                                                                                  \
        type, offsetof(of, field), sizeof(((of *)0)->field)                                                            \
    }

/* Bind the fields of the struct `of`, or read them. */
void kp_bind_fields(struct kp_sql *r, const struct kp_sql_field *fields, const void *of);
void kp_column_fields(struct kp_sql *r, const struct kp_sql_field *fields, void *of);
/* Runs a statement whose parameters are `n` keys, and then the fields of `of`. */
int kp_sql_put(struct kp_store *s, enum kp_sql_id q, const uint64_t *keys, size_t n, const struct kp_sql_field *fields,
               const void *of);
/* Calls `read` for each row of a statement whose parameter is `key`, until one fails. */
int kp_sql_each(struct kp_store *s, enum kp_sql_id q, uint64_t key, void (*read)(struct kp_sql *r, void *arg),
                void *arg);
/* Runs a statement that returns no rows. */
int kp_sql_end(struct kp_sql *r);

/* Moves to the next row of a result; false at its end or on an error, see `rc`. */
bool kp_sql_next(struct kp_sql *r);
/* Ends reading, which releases the file for the writer. */
int kp_sql_finish(struct kp_sql *r);

/* Read the next column. NULL is 0, or not a number. Texts are malloc'ed, and "" or NULL for NULL. */
int64_t kp_column_int(struct kp_sql *r);
uint64_t kp_column_uint(struct kp_sql *r);
double kp_column_real(struct kp_sql *r);
char *kp_column_text(struct kp_sql *r);
char *kp_column_text_or_null(struct kp_sql *r);
enum kp_reason kp_column_reason(struct kp_sql *r); /* of a later kprof it may not be known: KP_REASON_NONE */

/* ---- call stacks, code and the counts of launches: store_code.c ---- */

extern const char kp_store_code_schema[];

/* Returns true if all references between its parts hold, so that readers may follow them. */
bool kp_store_code_is_sound(const struct kp_code *c);

int kp_store_write_stack(struct kp_store *s, const struct kp_stack *stack);
int kp_store_write_code(struct kp_store *s, const struct kp_code *code); /* must be sound */
int kp_store_write_counts(struct kp_store *s, const struct kp_result *r);
int kp_store_write_series(struct kp_store *s, const struct kp_result *r);

/* Reading functions add to an object that was all 0. Data that the writing ones cannot have written is
 * SQLITE_CORRUPT. */
int kp_store_read_stack(struct kp_store *s, uint64_t id, struct kp_stack *out, bool *found);
int kp_store_read_code(struct kp_store *s, uint64_t id, struct kp_code *out, bool *found);
int kp_store_read_counts(struct kp_store *s, struct kp_result *r);
int kp_store_read_series(struct kp_store *s, struct kp_result *r);

/* ---- variants of launches: store_variants.c ---- */

extern const char kp_store_variants_schema[];

int kp_store_write_variants(struct kp_store *s, const struct kp_result *r);
int kp_store_read_variants(struct kp_store *s, struct kp_result *r);

/* ---- metrics: store_metric.c ---- */

/* Finds the identifier of a metric's name, or makes it. */
int kp_store_name_id(struct kp_store *s, const struct kp_metric *m, sqlite3_int64 *id);
/* Reads a metric into `result` from a row whose columns are name, unit, and from `at` on kind and value; column
 * `reason` has the key of the reason. 0 or a code of kp_result_set_real. */
int kp_store_read_value(sqlite3_stmt *row, int at, int reason, struct kp_result *result);
/* Binds the columns kind and value. */
void kp_store_bind_value(struct kp_sql *r, const struct kp_metric *m);

/* ---- the timeline: store_timeline.c ---- */

extern const char kp_store_timeline_schema[];

int kp_store_write_activity_name(struct kp_store *s, uint32_t number, const char *name);
int kp_store_write_activities(struct kp_store *s, const struct kp_activity *at, size_t n);
int kp_store_write_links(struct kp_store *s, const struct kp_launch_note *notes, size_t n);
int kp_store_read_timeline(struct kp_store *s, struct kp_timeline *out);

#endif
