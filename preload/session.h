/*
 * The session of this process: what was seen and profiled, kept in a file as it comes, and the report at the end.
 * Threads: any; a lock inside serialises.
 */
#ifndef KP_PRELOAD_SESSION_H
#define KP_PRELOAD_SESSION_H

#include "collectors/device.h"
#include "report/model.h"
#include "report/options.h"
#include "report/sections.h"

/* Opens log and store as the options say and notes the facts of the process. 0; else *err is a malloc'ed line, or NULL
 * without memory. */
int kp_session_open(const struct kp_options *o, const struct kp_driver *d, const struct kp_section *const *sections,
                    size_t n_sections, char **err);

void kp_session_seen(uint64_t launches);
void kp_session_skip(const char *reason, uint64_t launches);

/* `n` launches of a kernel that no filter took. */
void kp_session_unwanted(const char *base, uint64_t n);

/* A device that launches ran on; noted once. `chip` is CUPTI's name. */
void kp_session_device(const struct kp_device *device, const char *chip);

/* The metrics asked for, as resolved to exact names, and the CUPTI in use; noted when first known. */
void kp_session_collection(const char *metrics, const char *cupti_version);

/* Counts as seen, numbers, stores and releases a finished launch; `profiled` says whether its counters were collected
 * or none were wanted. Its progress line is written. */
void kp_session_result(struct kp_result *r, const char *base, bool profiled);

/* A warning that is written once, however often it comes up. */
void kp_session_warn_once(const char *text);

/* Writes the report and closes the store. Nothing is accepted afterwards. */
void kp_session_close(void);

/* The program goes on unprofiled because of what the user asked for: what was already collected is still reported at
 * the end; a session without any launch is dropped with its file. */
void kp_session_discard_if_empty(void);
bool kp_session_is_open(void);

/* In a forked child: lets go of everything that belongs to the parent. */
void kp_session_forked(void);

#endif
