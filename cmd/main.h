/* The `kprof` command. Nothing of it is part of libkprof.so: here, and only here, may code print and exit. */
#ifndef KP_CMD_MAIN_H
#define KP_CMD_MAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cmd/doctor.h"
#include "base/failures.h"
#include "report/view/display.h"
#include "report/define/sections.h"
#include "base/sink.h"

/* Exit statuses; those of a program that cannot be started are the shell's. */
enum {
    KP_EXIT_FAILED = 1,
    KP_EXIT_USAGE = 2,
    KP_EXIT_NOT_EXECUTABLE = 126,
    KP_EXIT_NOT_FOUND = 127,
    KP_EXIT_SIGNAL = 128, /* plus the signal's number */
};

/* Prints `==ERROR== text` to stderr and returns `status`. */
int kp_main_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints `==WARNING== line` to stderr for each line of `text`. */
void kp_main_warn(const char *text);
struct kp_option;
/* Loads the section folder that the environment, or its file of options, names in option `row`. Returns 0, or an exit
 * status after having said why. */
int kp_main_check_folder(const struct kp_option *row);
/* A switch that is thrown by naming it. */
bool kp_main_is_plain_switch(const struct kp_option *row);

/* What has been printed to stdout, `rc` telling how that went, is written out; `err` tells of rc where it is not NULL.
 * Returns the exit status, of which a line on stderr tells when it is no success. */
int kp_main_end(int rc, const char *err);

/* Prints what --help says to stdout. Returns the exit status. */
int kp_main_help(void);

/* ---- what the queries ask, of folders that report/ does not include ---- */

enum kp_catalog_kind {
    KP_CATALOG_COUNTER,
    KP_CATALOG_RATIO,
    KP_CATALOG_THROUGHPUT,
    KP_CATALOG_LAUNCH, /* of the launch and of the device: not counted */
    KP_CATALOG_SOURCE, /* sampled, or counted, at each instruction */
    KP_CATALOG_DERIVED,
    KP_CATALOG_GROUP, /* not a metric: a name that group: takes */
    KP_CATALOG_KINDS,
};

/* One metric; its strings last until the callback returns. */
struct kp_catalog_metric {
    enum kp_catalog_kind kind;
    const char *name; /* base name of what is counted */
    const char *unit; /* base unit, "" when there is none */
    const char *description;
};

/* What one chip has. */
struct kp_catalog;

/* Errors are -EINVAL for what the user can mend and another negative errno for the rest, each with *err (malloc'ed
 * line) where there is more to say. A callback's non-zero return ends the call and is returned. */
struct kp_catalog_ops {
    /* Opens the catalog of `chip`; "" is the chip of the first GPU, or where there is none a well-known one: then *note
     * is a malloc'ed line that says so. `cupti_dir`: see options.def. */
    int (*open)(const char *chip, const char *cupti_dir, struct kp_catalog **out, char **note, char **err);
    void (*close)(struct kp_catalog *c);
    /* "GH100 (CC 9.0), CUPTI 13.0"; valid while `c` is. */
    const char *(*title)(const struct kp_catalog *c);
    /* Every chip that CUPTI knows, and what is to be said of it. */
    int (*chips)(struct kp_catalog *c, int (*fn)(const char *chip, const char *about, void *arg), void *arg);
    /* Every metric, kind by kind. */
    int (*metrics)(struct kp_catalog *c, int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg);
    /* The same metric under each full name that it has. */
    int (*full_names)(struct kp_catalog *c, const struct kp_catalog_metric *m,
                      int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg);
    /* Every metric that one item of --metrics stands for, by its full name. */
    int (*listed)(struct kp_catalog *c, const char *item, int (*fn)(const struct kp_catalog_metric *m, void *arg),
                  void *arg, char **err);
    /* How many metrics the sections have on the chip when nothing else is asked for, and in how many passes. */
    int (*cost)(struct kp_catalog *c, const struct kp_section *const *sections, size_t n, size_t *metrics,
                size_t *passes, char **err);
    /* Calls `fn` for each item of a list of metrics (`columns`: of trace-columns) that no chip of this CUPTI has, with
     * a line that names the nearest. */
    int (*check_metrics)(const char *cupti_dir, const char *list, bool columns,
                         int (*fn)(const char *item, const char *why, void *arg), void *arg);
    /* What `kprof doctor` cannot find out itself: the driver, its GPUs, and CUPTI. Overwrites *out. */
    void (*machine)(const char *cupti_dir, struct kp_doctor_facts *out);
};

/* ---- the command ---- */

/* main() of the command. Returns the exit status. */
int kp_main(int argc, char **argv, const struct kp_catalog_ops *ops);

/* The sub-commands; NULL at the end. */
extern const char *const kp_main_commands[];

/* `kprof report FILE...`; argv[0] is "report". Returns the exit status. */
int kp_main_report(int argc, char **argv);

/* `kprof diff A B`; argv[0] is "diff". Returns the exit status. */
int kp_main_diff(int argc, char **argv);

/* A flag that only one sub-command has, and no option of the library. */
struct kp_main_flag {
    const char *flag, *value, *help; /* as in --help */
    /* Takes its value; returns 0, or an exit status after having said why. */
    int (*take)(const char *value, void *arg);
};
/* Those of `kprof diff`; *n receives their number. */
const struct kp_main_flag *kp_main_diff_flags(size_t *n);

/* The flags of a sub-command. */
struct kp_main_flags {
    const char *command, *takes; /* "report", "session files" */
    const size_t *rows;          /* options of options.def, by the offset of their field; the section folder first */
    size_t n_rows;
    const struct kp_main_flag *own;
    size_t n_own;
    void *arg; /* of their take */
};

struct option;
/* Whether getopt_long, which has just found this long flag, took a shorter word for it; *word receives that. */
bool kp_main_is_abbreviated(const struct option *flag, const char **word, char *const *argv);
/* "did you mean --x?" for a word without its dashes, its value left out: the flags that begin with it, else the
 * nearest. malloc'ed; NULL when there is none. */
char *kp_main_meant(const char *word, const char *const *names);

/* Puts the options into the environment, having checked them, and hands over the sub-command's own. Returns 0, or an
 * exit status; optind is then that of the first file. */
int kp_main_take_flags(const struct kp_main_flags *f, int argc, char **argv);

struct kp_options;
/* What the environment says of what is shown. Returns 0, or an exit status after having said why; free *o with
 * kp_options_free, once *d is not used any more. */
int kp_main_display(struct kp_options *o, struct kp_display *d);

struct kp_store;
/* Opens a session, and where wanted loads its folder of section files. Returns 0, or an exit status after having said
 * why, with the name of the file that is nearest. */
int kp_main_open(const char *path, bool load_folder, struct kp_store **out);

/* What the flags of the queries say; NULL: not given. */
struct kp_query {
    const char *command; /* of kp_main_commands */
    const char *chip, *mode;
};

/* Prints what is asked for, for the KPROF_ variables of the environment. Returns the exit status. */
int kp_main_query(const struct kp_query *q, const struct kp_catalog_ops *ops);

/* libkprof.so beside the command, or in the lib folder of the prefix it is installed in. malloc'ed, NULL if neither. */
char *kp_main_library(void);

/* Prints what would stop profiling here. Returns the exit status: 0 when nothing does. */
int kp_main_doctor(const struct kp_catalog_ops *ops);

/* Runs argv[0] with libkprof.so preloaded, as the KPROF_ variables of the environment say. Returns its exit status, or
 * with `strict` that of a failure; if a signal killed it, kills the command with the same signal. */
int kp_main_run(char **argv, const struct kp_catalog_ops *ops);

/* ---- what a run is checked for before it starts ---- */

/* Paths that do not begin at the root are made to, in *o and in the environment, and all is checked that can be: the
 * export, the log file, the metrics. Warns of metrics that there are not. Returns 0, or an exit status after having
 * said why. */
int kp_main_check_run(struct kp_options *o, const struct kp_catalog_ops *ops);

/* The export where its name is known beforehand; malloc'ed, NULL when it is not, or there is none. */
char *kp_main_export_path(const struct kp_options *o);

/* What execvp would execute for `name`; malloc'ed, NULL when there is nothing. */
char *kp_main_find_program(const char *name);

/* Why the loader would not preload a library into this program, as the end of a sentence; NULL when nothing is known
 * against it. Static text. */
const char *kp_main_not_followed(const char *program);

/* ---- how the processes of a run fared ---- */

/* The lines of the status file: "PROCESS WORD REST", with the WORDs started (CUDA has), failed KIND, stored PATH, left
 * (alone, as was asked for) and ended SEEN MATCHED. */
struct kp_run_outcome {
    kp_failure_set failures;
    bool started, left;
    char *stored;           /* an export that was written; malloc'ed */
    uint64_t seen, matched; /* launches of all processes; those that filters did not hold back */
    size_t unfinished;      /* processes that are gone and have not ended */
};

/* Reads the status file. Overwrites *out, of which the caller frees `stored`. 0 or -errno. */
int kp_run_outcome_read(const char *path, struct kp_run_outcome *out);

#endif
