/*
 * Why kprof does not do what was asked for. Each reason is a row of reasons.def; code passes, compares and stores the
 * enumeration, and 0 means that there is none.
 *
 * Threads: any; the table is constant.
 */
#ifndef KP_REPORT_MODEL_REASONS_H
#define KP_REPORT_MODEL_REASONS_H

#include <stddef.h>

enum kp_reason {
    KP_REASON_NONE = 0,
#define KP_REASON(id, key, kind, text, advice, why) KP_REASON_##id,
#include "report/model/reasons.def"
#undef KP_REASON
    KP_REASONS
};

enum kp_reason_kind {
    KP_REASON_KIND_FILTER,
    KP_REASON_KIND_UNCOUNTED,
    KP_REASON_KIND_ONCE,
    KP_REASON_KIND_WHOLE,
    KP_REASON_KIND_CLOSE,
    KP_REASON_KIND_FAILURE,
    KP_REASON_KIND_VALUE,
    KP_REASON_KIND_VARIANT,
    KP_REASON_KIND_SAVE,
    KP_REASON_KIND_LIMIT,
    KP_REASON_KINDS
};

/* A row of reasons.def. The first, for KP_REASON_NONE, is empty. */
struct kp_reason_row {
    const char *id, *key;
    enum kp_reason_kind kind;
    const char *text, *advice, *why;
};

/* Returns the row; a number out of range gives that of KP_REASON_NONE. */
const struct kp_reason_row *kp_reason_row(enum kp_reason reason);

/* Return the key and the text, "" for KP_REASON_NONE. Static. */
const char *kp_reason_key(enum kp_reason reason);
const char *kp_reason_text(enum kp_reason reason);

/* Returns the reason with that key; KP_REASON_NONE if no row has it, or `key` is NULL. */
enum kp_reason kp_reason_find(const char *key);

/* A reason together with what varies in it. Functions with a parameter by value only read it. */
struct kp_why {
    enum kp_reason reason;
    char *text; /* the whole clause, malloc'ed; NULL = the row's own */
};

/* Returns the clause: the text, or that of the row; NULL if there is no reason. Valid as long as `why`. */
const char *kp_why_text(const struct kp_why *why);

/* Makes "text of the row: detail". Without memory the clause is the row's own. The caller frees it by kp_why_free. */
struct kp_why kp_why_make(enum kp_reason reason, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes one with this clause, which it then owns; NULL is the row's own. */
struct kp_why kp_why_of(enum kp_reason reason, char *text);
/* Copies it. Without memory the clause is the row's own. */
struct kp_why kp_why_copy(struct kp_why why);
/* Frees the text, and leaves no reason. */
void kp_why_free(struct kp_why *why);

#endif
