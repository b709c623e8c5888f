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

/* The value that means no file. */
#define KP_RENAMES_OFF "off"

/* Replaces all renames by those of the file; "off" drops them. Returns 0, -ENOMEM, or -EINVAL with *err a malloc'ed
 * line that names the line of the file; renames are as they were then. */
int kp_renames_load(const char *path, char **err);
/* Returns the new name of a kernel, that of the first pair that fits; NULL when none does. Valid until the next load.
 */
const char *kp_renames_find(const char *demangled);
/* Returns true if this is one of the new names, which are not signatures. */
bool kp_renames_gave(const char *name);

#endif
