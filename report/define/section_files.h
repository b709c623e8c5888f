/*
 * The user's own sections: files *.section in the text format that Nsight Compute reads. section_tree.h says which
 * parts are understood.
 *
 * Threads: call these functions while the options are read, before other threads look at sections or derived
 * metrics.
 */
#ifndef KP_REPORT_DEFINE_SECTION_FILES_H
#define KP_REPORT_DEFINE_SECTION_FILES_H

/* Reads all files *.section of a folder, by name, and adds their sections (kp_sections_add) and definitions
 * (kp_derived_add). A section replaces one of the same identifier. A folder is read only once; another folder adds
 * to the first. Returns 0; -EINVAL with *err (malloc'ed line) for an unreadable folder or file; -ENOMEM. A failure
 * other than -ENOMEM adds nothing. */
int kp_sections_load(const char *folder, char **err);

/* Returns one line that names the unused parts of the files read last, or "" when all parts are used. Valid until
 * the next kp_sections_load. */
const char *kp_sections_note(void);

#endif
