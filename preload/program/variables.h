/*
 * Modules with variables or constants of the program. Variables that are loaded while a window is open are not in its
 * saved memory, so a repetition would find them changed, unless the window saves them separately.
 *
 * Threads: any; kp_variables_hold inside the gate's exclusive section.
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

/* Notes that the program asks for the address of a variable; how often it has. */
void kp_variables_asked(void);
uint64_t kp_variables_questions(void);

/* Returns true if a module that was noted may have kernel `mangled`, whose first launch may then bring the variables.
 * Never wrong when false; rarely when true. NULL: the name is unknown. */
bool kp_variables_come_with(const char *mangled);

/* How many images noted after the first `known` have not been held for `holder`. */
uint64_t kp_variables_pending(uint64_t known, uint64_t holder);

/* Calls `hold` for each variable of an image that may have kernel `mangled` (NULL: any); it returns false for a name
 * that the kernel's module does not have, and another image is tried. Only the first image with all of its variables in
 * the module is noted as held: modules of equal images have their own variables. Returns true if there is such an
 * image, or none that has the kernel. */
bool kp_variables_hold(uint64_t holder, const char *mangled, bool (*hold)(void *arg, const char *name), void *arg);

/* Does the same with `fn`, but notes nothing. */
bool kp_variables_list(const char *mangled, bool (*fn)(void *arg, const char *name), void *arg);

#endif
