/*
 * Sections of the user's own: files *.section in the text format that Nsight Compute reads. See section_tree.h for what
 * of them is understood.
 *
 * Threads: to be called while the options are read, before other threads look at sections or derived metrics.
 */
#ifndef KP_REPORT_DEFINE_SECTION_FILES_H
#define KP_REPORT_DEFINE_SECTION_FILES_H

/* Reads all files *.section of a folder, by name, and adds their sections (kp_sections_add) and definitions
 * (kp_derived_add). A section takes the place of one of the same identifier. A folder that was read before is not read
 * again; another one adds to it. Returns 0; -EINVAL with *err (malloc'ed line) for a folder or file that cannot be
 * read; -ENOMEM. A failure adds nothing, short of memory apart. */
int kp_sections_load(const char *folder, char **err);

/* What of the files that were read last is not used, as one line, or "" when all of it is. Lasts until the next
 * kp_sections_load. */
const char *kp_sections_note(void);

#endif
