/* JSON, value by value. Nothing here depends on the locale, given kp_plain_begin. Errors stay in the stream. */
#ifndef KP_BASE_JSON_H
#define KP_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { KP_JSON_DEPTH = 16 };

/* Starts as all 0 but `to`. */
struct kp_json {
    FILE *to;
    int depth;
    struct kp_json_level {
        bool some;   /* has a member already */
        bool on_one; /* is written on one line, as is all within */
        char end;
    } levels[KP_JSON_DEPTH + 1];
};

/* Members of an object have a key, elements of an array and the document itself NULL. Objects and arrays are ended by
 * kp_json_end. */
void kp_json_object(struct kp_json *j, const char *key, bool on_one_line);
void kp_json_array(struct kp_json *j, const char *key, bool on_one_line);
void kp_json_end(struct kp_json *j);
/* NULL is null; bytes that are no UTF-8 become U+FFFD. */
void kp_json_text(struct kp_json *j, const char *key, const char *value);
void kp_json_count(struct kp_json *j, const char *key, uint64_t value);
void kp_json_int(struct kp_json *j, const char *key, int64_t value);
/* A number that is not finite is null, as JSON has none. */
void kp_json_real(struct kp_json *j, const char *key, double value);
void kp_json_bool(struct kp_json *j, const char *key, bool value);

#endif
