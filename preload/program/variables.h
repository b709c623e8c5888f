/*
 * Modules with variables or constants of the program's. What comes onto the device while a window is open is not in its
 * saved memory, so a repetition would find it changed. Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_VARIABLES_H
#define KP_PRELOAD_PROGRAM_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Notes the image of a module that is loaded (NULL: unknown), if it has variables. */
void kp_variables_note(const void *image, size_t size);

/* How many were noted. */
uint64_t kp_variables_count(void);

/* Whether a module that was noted may have kernel `mangled`, whose first launch may then bring the variables. Never
 * wrong when false; rarely when true. NULL: the name is unknown. */
bool kp_variables_come_with(const char *mangled);

#endif
