/*
 * The session of this process: what was seen and profiled, kept in a file as it comes, and the report at the end.
 * Threads: any; locks inside serialise. What counts launches never waits for the file.
 */
#ifndef KP_PRELOAD_SESSION_SESSION_H
#define KP_PRELOAD_SESSION_SESSION_H

#include "base/failures.h"
#include "collectors/code/codes.h"
#include "collectors/facts/device.h"
#include "report/define/sections.h"
#include "report/model/model.h"
#include "report/options/options.h"

/* The path of the program; malloc'ed, "" where it cannot be read, NULL without memory. */
char *kp_session_executable(void);

/* Notes the facts of the process; `o` has to stay. No file is made yet: a process that counts the devices and then
 * starts the ranks of a program must not take the first one's. 0, or -ENOMEM. */
int kp_session_open(const struct kp_options *o, const struct kp_driver *d, const struct kp_section *const *sections,
                    size_t n_sections);

/* Opens log and store as the options say, before the first launch; relative paths start where kp_session_open was
 * called. Nothing when that has been done, or no session is open. 0; else *err is a malloc'ed line, or NULL without
 * memory, and the session is closed. */
int kp_session_begin(char **err);

/* Counts launches as seen; their ordinals begin with the number returned: of the launches seen before them. */
uint64_t kp_session_seen(uint64_t launches);
void kp_session_skip(const char *reason, uint64_t launches);

/* `n` launches of a kernel that no filter took. */
void kp_session_unwanted(const char *base, uint64_t n);
/* An NVTX range that was opened `n` times. */
void kp_session_range(const struct kp_nvtx_range *r, uint64_t n);

/* A device that launches ran on; noted once. `chip` is CUPTI's name; `breakdowns` as in kp_device_info. */
void kp_session_device(const struct kp_device *device, const char *chip, const char *breakdowns);

/* The metrics asked for, as resolved to exact names, and the CUPTI in use; noted when first known. */
void kp_session_collection(const char *metrics, const char *cupti_version);

/* Where the functions are that results count instructions of; those that are new are stored before the results. */
void kp_session_codes(struct kp_codes *codes);

/* A finished launch. */
struct kp_session_entry {
    struct kp_result *result; /* its ordinal is set: see kp_session_seen */
    const char *base;         /* the kernel's name, for the progress line */
    bool profiled;            /* its counters were collected, or none were wanted */
};

/* Numbers finished launches (launch.id) in the order given, writes their progress lines, stores them in one transaction
 * and leaves the results empty. They are durable against the death of the process when this returns; what the file does
 * not take is kept in memory for the report. After kp_session_close they are dropped. */
void kp_session_results(struct kp_session_entry *entries, size_t n);

/* A warning that is written once, however often it comes up: of a failure of that kind, or of counters. */
void kp_session_warn(enum kp_failure kind, const char *text);
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
