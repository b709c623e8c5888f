/* Writes JSON, value by value. Between kp_plain_begin and kp_plain_end, the locale does not matter. Errors stay in
 * the stream. */
#ifndef KP_BASE_JSON_H
#define KP_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { KP_JSON_DEPTH = 16 };

/* Zero-initialised except for `to`. */
struct kp_json {
    FILE *to;
    int depth;
    struct kp_json_level {
        bool some;   /* has a member already */
        bool on_one; /* is on one line, with all it contains */
        char end;
    } levels[KP_JSON_DEPTH + 1];
};

/* Write values. Members of an object have a key; for elements of an array and the document itself it is NULL.
 * kp_json_end ends objects and arrays. */
void kp_json_object(struct kp_json *j, const char *key, bool on_one_line);
void kp_json_array(struct kp_json *j, const char *key, bool on_one_line);
void kp_json_end(struct kp_json *j);
/* Writes text. NULL becomes null, invalid UTF-8 U+FFFD. */
void kp_json_text(struct kp_json *j, const char *key, const char *value);
void kp_json_count(struct kp_json *j, const char *key, uint64_t value);
void kp_json_int(struct kp_json *j, const char *key, int64_t value);
/* Writes a number; NaN and infinity become null because JSON lacks them. */
void kp_json_real(struct kp_json *j, const char *key, double value);
/* Writes a number as it is spelled. */
void kp_json_number(struct kp_json *j, const char *key, const char *spelled);
void kp_json_bool(struct kp_json *j, const char *key, bool value);

#endif
