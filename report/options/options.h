/*
 * Options: one table (options.def) for the environment (KPROF_SET), the command line (--set) and --help.
 */
#ifndef KP_REPORT_OPTIONS_OPTIONS_H
#define KP_REPORT_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One field a row of options.def. */
struct kp_options {
    char *config; /* "" = none */
    char *set; /* "basic" unless section or metrics were given, "" then; of pages see kp_trace_wants and kp_page_wants
                */
    char *section;     /* comma list */
    char *metrics;     /* comma list */
    char *kernel_name; /* exact or regex:, "" = all */
    uint64_t launch_skip;
    uint64_t launch_count;  /* 0 = no limit */
    char *kernel_name_base; /* function | demangled | mangled */
    char *kernel_id;        /* as kp_kernel_id_new takes it, "" = all */
    uint64_t launch_skip_before_match;
    char *filter_mode;                  /* global | per-gpu | per-launch-config */
    uint64_t devices;                   /* a bit each, the lowest for device 0; 0 = all */
    uint64_t delay;                     /* ns */
    uint64_t duration;                  /* ns; 0 = to the end */
    char *target_processes;             /* all | application-only */
    char *target_processes_filter;      /* comma list of exact or regex:, "" = all */
    uint64_t application;               /* process number; 0 = not known */
    uint64_t window;                    /* the most launches that share one series of passes; 1 = each for itself */
    uint64_t window_memory;             /* byte of host memory that the counters of windows may take */
    char *warp_sampling_interval;       /* auto | 0 to 31: exponent less 5, in cycles */
    uint64_t warp_sampling_buffer_size; /* byte; 0 = automatic */
    char *cache_control;                /* all | none */
    char *clock_control;                /* none */
    char *log_file;                     /* path with %-macros, "stdout", "stderr" */
    char *export_file;                  /* path with %-macros, "" = none */
    bool force_overwrite;
    char *section_folder; /* absolute; "" = none */
    bool apply_rules;
    char *rule;                   /* comma list; "" = all */
    char *print_details;          /* header | body | all */
    char *print_metric_name;      /* label | name | label-name */
    char *print_units;            /* auto | base */
    char *print_metric_instances; /* none | values | details */
    char *page;                   /* comma list, at least one */
    bool csv, json;               /* at most one of them */
    bool csv_defuse;              /* texts in CSV are no formulas */
    char *print_summary;          /* none | per-gpu | per-kernel | per-nvtx */
    char *print_nvtx_rename;      /* none | kernel */
    char *trace_columns;          /* comma list; "" = the page's own */
    char *print_source;           /* comma list of cuda, sass */
    char *source_folders;         /* comma list; "" = none */
    bool import_source;           /* the texts of source files are stored in the session */
    bool quiet;                   /* no progress lines */
    char *debug;                  /* comma list of debug.def; "" = none */
    bool strict;                  /* each kind of failure is told as an exit status: see failures.def */
    bool profile_from_start;
    bool nvtx;                 /* also set by all that needs it, see kp_options_want_nvtx */
    char *nvtx_include;        /* "" = all */
    char *nvtx_exclude;        /* "" = none */
    char *nvtx_push_pop_scope; /* thread | process */
    char *call_stack;          /* comma list of native, python; "" = none */
    char *cupti_dir;           /* "" = searched for */
    char *status_file;         /* where processes note how they fared; "" = nowhere */
    char *metrics_told;        /* items of `metrics` of which the user has been warned */
    char *session_file; /* path with %-macros: where the session is kept without an export; "" = a file of our own */
    /* 0 = automatic, of the passes no limit */
    uint64_t pm_sampling_interval;    /* ns; of CC 7.5 and 8.0 cycles */
    uint64_t pm_sampling_buffer_size; /* byte */
    uint64_t pm_sampling_max_passes;
};

/* How the value of an option is checked and stored: SWITCH as bool, COUNT, SIZE, TIME and
 * DEVICES as uint64_t, all others as text. */
enum kp_option_kind {
    KP_OPT_FILE,     /* read when the others are */
    KP_OPT_SET,      /* a name of kp_set_names() */
    KP_OPT_SECTIONS, /* as kp_sections_select() takes it */
    KP_OPT_RULES,    /* as kp_rules_select() takes it */
    KP_OPT_NAMES,    /* checked here for expressions only */
    KP_OPT_PATTERN,  /* as kp_pattern_new() takes it */
    KP_OPT_PATTERNS, /* a comma list of these */
    KP_OPT_KERNEL_ID,
    KP_OPT_RANGES, /* as kp_nvtx_filter_new() takes it */
    KP_OPT_CHOICE,
    KP_OPT_CHOICES, /* a comma list of them */
    KP_OPT_COUNT,
    KP_OPT_AUTO_COUNT, /* a whole number, or auto */
    KP_OPT_SIZE,       /* byte; K, M, G for binary multiples */
    KP_OPT_TIME,       /* ns; written in seconds, or with ms, s, m */
    KP_OPT_DEVICES,    /* a bit each; written as a comma list of numbers */
    KP_OPT_PATH,       /* as kp_expand_path() takes it */
    KP_OPT_FOLDER,     /* as kp_sections_load() takes it, which checking does; stored as an absolute path */
    KP_OPT_SWITCH,
};

enum kp_option_group { KP_OPT_USER, KP_OPT_ADVANCED };

/* A row of options.def; see there. */
struct kp_option {
    const char *flag;
    char letter;
    enum kp_option_kind kind;
    const char *fallback; /* the default, as it would be written */
    const char *values;
    enum kp_option_group group;
    const char *help;
    size_t offset; /* of the field in struct kp_options */
};

enum { KP_OPTION_NAME_MAX = 64 };
#define KP_OPTION_PREFIX "KPROF_"

/* All rows; *n receives their number. Static data. */
const struct kp_option *kp_option_rows(size_t *n);
/* The row of a field of struct kp_options, by its offset. */
const struct kp_option *kp_option_row(size_t offset);
/* The environment variable of a row: KPROF_LAUNCH_SKIP for launch-skip. */
void kp_option_env_name(const struct kp_option *row, char out[KP_OPTION_NAME_MAX]);
/* Turns a flag, up to its end or the first '=', into what its variable has behind the prefix: LAUNCH_SKIP of
 * launch-skip. A prefix before it stays. */
void kp_option_env_spell(char *flag);
/* What stands in kprof for an option of ncu's that has no row (its flag: import), as the end of a sentence; NULL for
 * any other name. Static text. */
const char *kp_option_instead(const char *flag);
const char *kp_option_instead_of_letter(int letter);
/* Checks one value as kp_options_from_env does; `shown` is what the message calls the option (--launch-skip). Empty
 * text stands for the default and is always valid. Returns 0, -EINVAL with *err (malloc'ed line), -ENOMEM. */
int kp_option_check(const struct kp_option *row, const char *shown, const char *value, char **err);

/* Fills *o from `environ`-like array `env` over the defaults. On the first unknown KPROF_ name or bad value returns
 * -EINVAL and *err is a malloc'ed line such as
 *   unknown KPROF_KERNELNAME; did you mean KPROF_KERNEL_NAME?
 * Values are fully checked here (sets, sections, regexes, numbers), so nothing fails later for its spelling; metric
 * names are checked where the chip is known. The section folder is loaded before all else, as other values may name
 * what it brings; kp_sections_note() says what of it is not used. An empty value is as good as none. What the variable
 * KPROF_CONFIG names is read (config.h), and what is wrong there is said with its line. -ENOMEM
 * otherwise. Frees nothing on entry: *o is overwritten; after a failure nothing in it needs freeing. */
int kp_options_from_env(struct kp_options *o, char *const *env, char **err);
void kp_options_free(struct kp_options *o);

/* Whether the environment asks for NVTX: by `nvtx`, by a filter over ranges, or by names or a summary that need them.
 * Nothing else is looked at, and what is wrong with a value is left for kp_options_from_env to say. */
bool kp_options_want_nvtx(char *const *env);

/* What the environment, or the file of options that it names, sets an option to: malloc'ed, NULL where neither does, or
 * the file cannot be read. `name`: the variable. */
char *kp_options_value(char *const *env, const char *name);

#endif
