/*
 * The session of this process: its launches and results, kept in a file as they come, and the report at the end.
 * Threads: any; locks inside serialise. Counting launches never waits for the file.
 */
#ifndef KP_PRELOAD_SESSION_SESSION_H
#define KP_PRELOAD_SESSION_SESSION_H

#include "base/failures.h"
#include "collectors/code/codes.h"
#include "collectors/facts/device.h"
#include "report/define/sections.h"
#include "report/model/model.h"
#include "report/options/options.h"

/* Returns the path of the program; malloc'ed, "" if unreadable, NULL if memory is short. */
char *kp_session_executable(void);

/* Notes the facts of the process; `o` must stay. Makes no file yet: a process may count the devices and then start the
 * ranks of a program, whose file it must not claim. Returns 0 or -ENOMEM. */
int kp_session_open(const struct kp_options *o, const struct kp_driver *d, const struct kp_section *const *sections,
                    size_t n_sections);

/* Opens the log as the options say, before the first launch; with `stores` the session's file, too, before the first
 * one that is wanted. Relative paths start where kp_session_open was called. Does nothing if already done, or without
 * an open session. Returns 0; otherwise *err is a malloc'ed line, or NULL if memory is short, and the session is
 * closed. */
int kp_session_begin(bool stores, char **err);

/* Counts launches as seen. Returns the number seen before, which is the first ordinal of these launches. */
uint64_t kp_session_seen(uint64_t launches);

/* Counts launches that have no results by their reason. If there is no memory for that, a line at the end reports their
 * number. */
void kp_session_skip(enum kp_reason reason, uint64_t launches);
/* Counts launches as seen, and that they have no results, by their reason. */
void kp_session_let_through(enum kp_reason reason, uint64_t launches);

/* Counts `n` launches of a kernel that no filter accepted. */
void kp_session_unwanted(const char *base, uint64_t n);
/* Counts `n` openings of an NVTX range. */
void kp_session_range(const struct kp_nvtx_range *r, uint64_t n);

/* Notes a device that launches ran on, once. `chip` is CUPTI's name; `breakdowns` as in kp_device_info. */
void kp_session_device(const struct kp_device *device, const char *chip, const char *breakdowns);

/* Notes the metrics asked for, as exact names, and the CUPTI version, when first known. */
void kp_session_collection(const char *metrics, const char *cupti_version);

/* Sets the functions whose instructions results count; new ones are stored before the results. */
void kp_session_codes(struct kp_codes *codes);
/* Adds the texts, if wanted, to the code of functions that are new, before results are derived from them. May take
 * seconds, in which nothing can be stored. */
void kp_session_prepare_codes(void);

/* A finished launch. */
struct kp_session_entry {
    struct kp_result *result; /* with its ordinal: see kp_session_seen */
    const char *base;         /* the kernel's name, for the progress line */
    bool profiled;            /* its counters were collected, or none were asked for */
    bool goes_on;             /* kp_session_replace may come: what it lacks is not noted yet */
    uint64_t id;              /* receives its number */
};

/* Numbers finished launches (launch.id) in the order given and writes their progress lines. Stores them in one
 * transaction and leaves the results empty. On return they are durable against the death of the process; results that
 * the file does not accept stay in memory for the report. After kp_session_close they are dropped. */
void kp_session_results(struct kp_session_entry *entries, size_t n);

/* What the session knows about an entry that goes on, to be kept by its owner. */
struct kp_session_told {
    uint64_t counted; /* launches */
    uint32_t passes;
    double profiler_ns;
};

/* Replaces the finished launch of that number (launch.id) by what several launches have counted, and updates `told`.
 * Leaves the result empty. */
void kp_session_replace(struct kp_result *result, const char *base, struct kp_session_told *told);

/* Notes shapes of a kernel that lack results: see kp_session_add_lacking. */
void kp_session_lacks(const char *base, uint64_t shapes);
/* Sets how many launches the one of number `l->id` stands for, after more have been made, and their recorded times. */
void kp_session_alike(const struct kp_launch_info *l);
/* Stores what the timeline has recorded since the last time, if a file is open. */
void kp_session_timeline(void);
/* Stores the rest, and which launches kernels belong to. Call it before kp_session_close. */
void kp_session_timeline_end(void);

/* Writes a warning once, however often it comes up: about a failure of that kind, or about counters. */
void kp_session_warn(enum kp_failure kind, const char *text);
void kp_session_warn_once(const char *text);

/* Writes the report and closes the store. Nothing is accepted afterwards. */
void kp_session_close(void);

/* Ends profiling because of the user's options; the program goes on. Results so far are still reported at the end; a
 * session without launches is dropped with its file. */
void kp_session_discard_if_empty(void);
bool kp_session_is_open(void);

/* Drops, in a forked child, everything that belongs to the parent. */
void kp_session_forked(void);

#endif
