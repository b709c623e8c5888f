/*
 * Lists of numbers as JSON arrays without blanks, for the session file. A launch may have some 100,000 of them, so
 * whole numbers are written and read without stdio. Nothing here depends on the program's locale, or changes it for
 * other threads.
 */
#ifndef KP_BASE_NUMBERS_H
#define KP_BASE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

enum kp_number { KP_NUMBER_U32, KP_NUMBER_U64, KP_NUMBER_REAL /* double */ };

/* `n` numbers of that type. malloc'ed; NULL without memory. A REAL is as kp_number_write writes it. */
char *kp_numbers_write(enum kp_number type, const void *values, size_t n);
/* *values is malloc'ed, and never NULL. 0; -EINVAL when `json` is not what kp_numbers_write writes, or a number does
 * not fit into the type; -ENOMEM. */
int kp_numbers_read(enum kp_number type, const char *json, void **values, size_t *n);

enum { KP_KEY_SIZE = 21 }; /* the longest 64-bit number, terminated */

/* Writes `number` in decimal into text[KP_KEY_SIZE]; returns where in it the digits start. */
char *kp_number_digits(char *text, uint64_t number);

/* ---- one number; callers take care of the locale (plain.h) ---- */

enum { KP_NUMBER_SIZE = 25 }; /* the longest one, terminated */

/* Returns the end. NaN is null, infinity 1e999 or -1e999; all other numbers read back as they were. */
char *kp_number_write(double value, char to[KP_NUMBER_SIZE]);
/* Reads the number at `at`. Returns the place behind it, or NULL when there is none. */
char *kp_number_read(const char *at, double *value);

#endif
