/*
 * Lists of numbers as JSON arrays without blanks, for the session file. A launch may have some 100,000 of them, so
 * whole numbers are written and read without stdio. Does not depend on the program's locale, or change it for other
 * threads.
 */
#ifndef KP_BASE_NUMBERS_H
#define KP_BASE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

enum kp_number { KP_NUMBER_U32, KP_NUMBER_U64, KP_NUMBER_REAL /* double */ };

/* Writes `n` numbers of that type. malloc'ed; NULL without memory. A REAL is as kp_number_write writes it. */
char *kp_numbers_write(enum kp_number type, const void *values, size_t n);
/* Reads numbers. *values is malloc'ed, and never NULL. 0; -EINVAL for text that kp_numbers_write would not write, or
 * a number beyond the type; -ENOMEM. */
int kp_numbers_read(enum kp_number type, const char *json, void **values, size_t *n);

enum { KP_KEY_SIZE = 21 }; /* holds the longest 64-bit number, terminated */

/* Writes `number` in decimal into text[KP_KEY_SIZE]; returns the start of the digits. */
char *kp_number_digits(char *text, uint64_t number);

/* ---- one number; callers handle the locale (plain.h) ---- */

enum { KP_NUMBER_SIZE = 25 }; /* holds the longest number, terminated */

/* Writes a number and returns its end. NaN is null, infinity 1e999 or -1e999; all other numbers read back exactly. */
char *kp_number_write(double value, char to[KP_NUMBER_SIZE]);
/* Reads the number at `at`. Returns its end, or NULL when there is none. */
char *kp_number_read(const char *at, double *value);

#endif
