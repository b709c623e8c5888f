/*
 * The stored session: one SQLite file. Each put is a transaction of its own, or part of one that the caller began: a
 * killed program keeps what it had. Threads: a store belongs to one thread at a time (the caller locks). No function
 * prints.
 */
#ifndef KP_REPORT_STORE_STORE_H
#define KP_REPORT_STORE_STORE_H

#include <stdbool.h>
#include <sys/types.h>

#include "report/model/lookup.h"
#include "report/model/model.h"

struct kp_store;

/* Creates `path` for writing, readable only by its owner. An existing file is -EEXIST unless `overwrite`. A forked
 * child cannot damage the file: every function returns -ECHILD there. On failure *err is a malloc'ed one-line message
 * that names the path and the remedy. */
int kp_store_create(const char *path, bool overwrite, struct kp_store **out, char **err);
/* Opens an existing session for reading, without changing anything on disk. Returns -ENOENT, or -EINVAL with *err:
 * not a kprof session, a newer schema, foreign tables, or still empty. If the writer was killed in a commit, a
 * private copy in TMPDIR is read. The file's size bounds memory and time of reading. */
int kp_store_open(const char *path, struct kp_store **out, char **err);
void kp_store_close(struct kp_store *s);
/* Returns who may read and write the file of an open session, as bits of 0666: files made from it must not be more
 * accessible. */
mode_t kp_store_mode(const struct kp_store *s);
/* Returns true if the path is an SQLite database, like a session. Opens only regular files: opening a pipe blocks, and
 * reading one consumes what others wait for. */
bool kp_store_is_database(const char *path);
/* Removes a session that is not open, with its side files. */
void kp_store_remove(const char *path);

/* Makes several puts one transaction. When commit returns 0, all of them are in the file, and survive the death of
 * the process. When a put or the commit fails, the transaction ends and leaves nothing in the file. 0 or -EIO with
 * *err. */
int kp_store_begin(struct kp_store *s, char **err);
int kp_store_commit(struct kp_store *s, char **err);

/* Writes or replaces the session row (facts of the run, counters). Returns 0 or -EIO with *err. */
int kp_store_put_session(struct kp_store *s, const struct kp_session *session, char **err);
/* Appends one launch with its metrics. It is durable against the death of the process on return, or when the
 * caller's transaction is committed. 0 or -EIO, *err. */
int kp_store_put_result(struct kp_store *s, const struct kp_result *result, char **err);

/* Replaces the stored launch of its id, which has only header, ranges and metrics. 0 or -EIO, *err.
 * */
int kp_store_replace_result(struct kp_store *s, const struct kp_result *result, char **err);

/* Sets how many launches the stored launch of this id stands for, and their recorded times: the members `alike`,
 * `recorded` and `recorded_ns` of its head. 0 or -EIO, *err. */
int kp_store_put_alike(struct kp_store *s, const struct kp_launch_info *l, char **err);

/* Append a call stack or the code of a function, before the first launch that names it. A rolled back transaction
 * removes them like a launch. Code is put once; a stack put again replaces the first. A stack without frames leaves
 * nothing; files of code are kept if a location names them. 0 or -EIO, *err. Unsound code is -EINVAL, *err, with the
 * transaction as it was: indices out of range, offsets that do not ascend, or code inlined into itself. */
int kp_store_put_stack(struct kp_store *s, const struct kp_stack *stack, char **err);
int kp_store_put_code(struct kp_store *s, const struct kp_code *code, char **err);

/* Append to the timeline: activities, whose names are numbers, and the name of a number, which replaces an earlier one.
 * 0 or -EIO with *err. */
int kp_store_put_activities(struct kp_store *s, const struct kp_activity *at, size_t n, char **err);
int kp_store_put_activity_name(struct kp_store *s, uint32_t number, const char *name, char **err);
/* Adds to the kernels stored so far who launched them and when, found by kp_timeline_link. */
int kp_store_link_activities(struct kp_store *s, const struct kp_launch_note *notes, size_t n, char **err);

int kp_store_get_session(struct kp_store *s, struct kp_session *out, char **err);
/* Calls `fn` for each launch by ascending id and frees the result after the call. A non-zero return of `fn` stops
 * and is returned. */
int kp_store_each_result(struct kp_store *s, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err);
/* Does the same; the results have only header, NVTX ranges and the metrics `only`, a list that ends with NULL; nothing
 * else is read. NULL: everything. */
int kp_store_each_result_with(struct kp_store *s, const char *const *only, int (*fn)(struct kp_result *r, void *arg),
                              void *arg, char **err);

/* Read the stack or code of that id, which the caller frees. -ENOENT (no *err) when there is none, -EIO with *err.
 * Callable while kp_store_each_result runs. */
int kp_store_get_stack(struct kp_store *s, uint64_t id, struct kp_stack *out, char **err);
int kp_store_get_code(struct kp_store *s, uint64_t id, struct kp_code *out, char **err);
/* Reads the timeline, sorted; the caller frees it. -ENOENT (no *err) when none was recorded, -EIO with *err. */
int kp_store_get_timeline(struct kp_store *s, struct kp_timeline *out, char **err);
/* The reports of `nsys stats`. Returns the name of report `i`, and its title; NULL after the last one. Static text. */
const char *kp_stats_report(size_t i, const char **title);
/* Gets the headings, and then the cells of each row, NULL for none. A result other than 0 ends the report. */
typedef int kp_stats_fn(const char *const *cells, size_t n, void *arg);
/* Makes report `report`. Returns what `fn` returned, -ENOMEM, or -EIO with *err. */
int kp_store_stats(struct kp_store *s, size_t report, kp_stats_fn *fn, void *arg, char **err);
/* Returns a look-up for pages; valid as long as the store. For NULL it is empty. */
struct kp_lookup kp_store_lookup(struct kp_store *s);
/* Returns a line about stacks and code that launches name and look-ups did not find; malloc'ed, NULL when nothing is
 * missing. */
char *kp_store_missing(const struct kp_store *s);

#endif
