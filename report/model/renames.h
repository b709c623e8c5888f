/*
 * Names that the user gives to kernels, from a file in the form of ncu's ncu-kernel-renames.yaml:
 *
 *   -
 *    - Original: void mergeSortSharedKernel<(unsigned int)1>(unsigned int *, unsigned int)
 *    - Renamed: Merge Sort Kernel
 *
 * Of YAML only this is read: a pair of lines for each kernel, in one list or in lists of two; comments; values as they
 * stand, or in quotes. Original is a kernel's whole demangled name, or regex:EXPR, which is looked for anywhere in it.
 *
 * Threads: load while no other thread looks for names.
 */
#ifndef KP_REPORT_MODEL_RENAMES_H
#define KP_REPORT_MODEL_RENAMES_H

#include <stdbool.h>

/* The values that mean no file, and the file that ncu looks for. */
#define KP_RENAMES_OFF "off"
#define KP_RENAMES_ON  "on"
/* Its name. */
#define KP_RENAMES_FILE "ncu-kernel-renames.yaml"

/* Returns the absolute path of the file that a value means, or "off" or "" where it means none; malloc'ed. NULL without
 * memory, or if the file is not there. */
char *kp_renames_path(const char *value);
/* Replaces all renames by those of the file; "off" drops them, and so does "on" where there is no such file. Returns 0,
 * -ENOMEM, or -EINVAL with *err a malloc'ed line that names the line of the file; renames are as they were then. */
int kp_renames_load(const char *value, char **err);
/* Returns the new name of a kernel, that of the first pair that fits; NULL when none does. Valid until the next load.
 */
const char *kp_renames_find(const char *demangled);
/* Returns true if this is one of the new names, which are not signatures. */
bool kp_renames_gave(const char *name);

#endif
