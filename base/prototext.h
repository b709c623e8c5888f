/*
 * Reads the text format of protocol buffers, without a schema, into a tree of fields.
 *
 * Fact: the text format language specification. Beyond it, a message may have a colon, values of a list may be
 * messages and scalars alike, and `#` comments may stand anywhere.
 * Threads: no locking here; a tree is read-only once parsed.
 */
#ifndef KP_BASE_PROTOTEXT_H
#define KP_BASE_PROTOTEXT_H

#include <stddef.h>

#include "base/arena.h"

enum kp_field_kind {
    KP_FIELD_MESSAGE, /* `first` */
    KP_FIELD_STRING,  /* `text`: escapes replaced, parts joined */
    KP_FIELD_NUMBER,  /* `text`: as written, without blanks after the sign */
    KP_FIELD_WORD,    /* `text`: the name of an enumerator, true, -inf ... */
};

/* A field; a list of values becomes several fields of the same name. */
struct kp_field {
    const char *name; /* extensions with their brackets */
    enum kp_field_kind kind;
    const char *text;             /* "" for a message */
    const struct kp_field *first; /* of a message's fields, in the order of the text */
    const struct kp_field *next;  /* the next field of the same message */
    unsigned line, column;        /* of the name, both from 1 on, in bytes */
};

/* Parses `text`, up to its first NUL, into *out: the message of the whole text, without a name, in `a`. Returns 0;
 * -ENOMEM; -EINVAL with *err (malloc'ed, "LINE:COLUMN: what") for text that is unreadable, too deeply nested, or has
 * a NUL in a string. Failures do not free memory of `a`. */
int kp_prototext_parse(struct kp_arena *a, const char *text, const struct kp_field **out, char **err);

#endif
