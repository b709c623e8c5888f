/* Writes CSV as in RFC 4180, but rows end with LF alone, as those of ncu: every field is in quotation marks. */
#ifndef KP_BASE_CSV_H
#define KP_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct kp_csv {
    FILE *to;
    size_t fields; /* of the row so far */
};

/* Writes the next field of the row; NULL is empty. Errors stay in the stream. */
void kp_csv_field(struct kp_csv *c, const char *text);
void kp_csv_fields(struct kp_csv *c, const char *const *texts, size_t n);
void kp_csv_empty(struct kp_csv *c, size_t n); /* so many fields without a text */
void kp_csv_formatted(struct kp_csv *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void kp_csv_end_row(struct kp_csv *c);

#endif
