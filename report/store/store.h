/*
 * The stored session: one SQLite file. Each put is a transaction of its own, or part of one that the caller began: a
 * killed program keeps what it had. Threads: a store belongs to one thread at a time (the caller locks). No function
 * prints.
 */
#ifndef KP_REPORT_STORE_STORE_H
#define KP_REPORT_STORE_STORE_H

#include <stdbool.h>

#include "report/model/lookup.h"
#include "report/model/model.h"

struct kp_store;

/* Creates `path` for writing, for its owner alone. An existing file is -EEXIST unless `overwrite`. A forked child
 * cannot damage the file: any function here returns -ECHILD to it. On failure *err is a malloc'ed one-line message
 * naming the path and what to do. */
int kp_store_create(const char *path, bool overwrite, struct kp_store **out, char **err);
/* Opens an existing session to read it, which changes nothing on disk: -ENOENT, -EINVAL (not a kprof session, a newer
 * schema, tables that are not ours, nothing in it yet) with *err. Where the file's program was killed as it wrote, a
 * private copy is read, in TMPDIR. What it reads is bounded in memory and time by the size of the file. */
int kp_store_open(const char *path, struct kp_store **out, char **err);
void kp_store_close(struct kp_store *s);
/* Removes a session that is not open, with what belongs to it. */
void kp_store_remove(const char *path);

/* Makes several puts one transaction. When commit returns 0, all are in the file, and survive the death of the
 * process. When a put or the commit fails, the transaction is over and nothing of it is in the file. 0 or -EIO with
 * *err. */
int kp_store_begin(struct kp_store *s, char **err);
int kp_store_commit(struct kp_store *s, char **err);

/* Writes or replaces the session row (facts of the run, counters). Returns 0 or -EIO with *err. */
int kp_store_put_session(struct kp_store *s, const struct kp_session *session, char **err);
/* Appends one launch with its metrics, durable against the death of the process when it returns, or when the
 * transaction that the caller began is committed. 0 or -EIO, *err. */
int kp_store_put_result(struct kp_store *s, const struct kp_result *result, char **err);

/* Append a call stack or the code of a function before the first launch that names it; in a transaction like a launch,
 * with which it is gone as well. Code is put once; a stack that is put again takes the place of what it was. A stack
 * without frames leaves nothing; of the code's files, those are kept that a location names. 0 or -EIO, *err; and
 * -EINVAL, *err, with the transaction as it was, for code whose indices lead nowhere, whose offsets do not ascend, or
 * where code is inlined into itself. */
int kp_store_put_stack(struct kp_store *s, const struct kp_stack *stack, char **err);
int kp_store_put_code(struct kp_store *s, const struct kp_code *code, char **err);

int kp_store_get_session(struct kp_store *s, struct kp_session *out, char **err);
/* Calls `fn` for each launch by ascending id; the result is freed after the call. A non-zero return of `fn` stops and
 * is returned. */
int kp_store_each_result(struct kp_store *s, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err);

/* The stack or code of that id, to be freed by the caller. -ENOENT (no *err) when there is none, -EIO with *err. They
 * may be called while kp_store_each_result runs. */
int kp_store_get_stack(struct kp_store *s, uint64_t id, struct kp_stack *out, char **err);
int kp_store_get_code(struct kp_store *s, uint64_t id, struct kp_code *out, char **err);
/* The same for pages; valid as long as the store. Of NULL it has nothing. */
struct kp_lookup kp_store_lookup(struct kp_store *s);
/* A line about stacks and code that launches name and look-ups did not find; malloc'ed, NULL where nothing is
 * missing. */
char *kp_store_missing(const struct kp_store *s);

#endif
