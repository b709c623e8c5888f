/*
 * Options: one table (options.def) for the environment (KPROF_SET), the command line (--set) and --help.
 */
#ifndef KP_REPORT_OPTIONS_OPTIONS_H
#define KP_REPORT_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The enumerations of options that are choices. */
#define KP_OPTION(field, flag, letter, kind, fallback, values, group, help)
#define KP_CHOICE(field, tag, flag, letter, fallback, values, group, help)  enum tag { values };
#define KP_CHOICES(field, tag, flag, letter, fallback, values, group, help) enum tag { values };
#define KP_VALUE(id, word)                                                  id,
#include "report/options/options.def"

/* The number of values of each: kp_page_id_values. */
#define KP_OPTION(field, flag, letter, kind, fallback, values, group, help)
#define KP_CHOICE(field, tag, flag, letter, fallback, values, group, help)  enum { tag##_values = values };
#define KP_CHOICES(field, tag, flag, letter, fallback, values, group, help) enum { tag##_values = values };
#define KP_VALUE(id, word)                                                  +1
#include "report/options/options.def"

/* Several values of an enumeration, in the order given; values beyond the maximum are left out. */
enum { KP_CHOICES_MAX = 16 };
struct kp_choices {
    size_t n;
    unsigned char at[KP_CHOICES_MAX];
};

static inline bool kp_choices_has(const struct kp_choices *c, unsigned value)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i] == value)
            return true;
    return false;
}

/* The type of a field, by the row's kind. A text that is not given is ""; lists are separated by commas. */
enum { KP_OPTION_AUTO = -1 }; /* of AUTO_COUNT */
#define KP_FIELD_FILE       char *
#define KP_FIELD_SET        char *
#define KP_FIELD_SECTIONS   char *
#define KP_FIELD_RULES      char *
#define KP_FIELD_NAMES      char *
#define KP_FIELD_PATTERN    char *
#define KP_FIELD_PATTERNS   char *
#define KP_FIELD_KERNEL_ID  char *
#define KP_FIELD_RANGES     char *
#define KP_FIELD_NUMBERS    char *
#define KP_FIELD_VARY       char *
#define KP_FIELD_PATH       char *
#define KP_FIELD_PLACE      char *
#define KP_FIELD_PATHS      char *   /* separated by ':' */
#define KP_FIELD_FOLDER     char *   /* absolute; separated by ':' */
#define KP_FIELD_RENAMES    char *   /* absolute */
#define KP_FIELD_COUNT      uint64_t /* 0 = no limit, or automatic, unless the help says more */
#define KP_FIELD_SIZE       uint64_t /* byte */
#define KP_FIELD_TIME       uint64_t /* ns */
#define KP_FIELD_DEVICES    uint64_t /* a bit each, the lowest for device 0; 0 = all */
#define KP_FIELD_AUTO_COUNT int
#define KP_FIELD_SWITCH     bool

/* One field for each row of options.def. `set` defaults to "basic", or to "" if section or metrics are given; see
 * also kp_options_wants_trace and kp_options_wants_page. */
struct kp_options {
#define KP_OPTION(field, flag, letter, kind, fallback, values, group, help) KP_FIELD_##kind field;
#define KP_CHOICE(field, tag, flag, letter, fallback, values, group, help)  enum tag field;
#define KP_CHOICES(field, tag, flag, letter, fallback, values, group, help) struct kp_choices field;
#include "report/options/options.def"
    bool only_columns;  /* `metrics` are the columns of the page trace: nothing else was asked for
                         * (kp_options_wants_trace)
                         */
    bool only_timeline; /* only the page timeline was requested: nothing is counted */
    bool unprinted;     /* face ncu: the session is written to a file, and no page was requested: nothing is printed */
    bool as_it_comes;   /* neither page, selection, format nor a print option was given: the report may be brief */
};

/* How the value of an option is checked and stored. */
enum kp_option_kind {
    KP_OPT_FILE,     /* read after all others */
    KP_OPT_SET,      /* a name of kp_set_names() */
    KP_OPT_SECTIONS, /* for kp_sections_select() */
    KP_OPT_RULES,    /* for kp_rules_select() */
    KP_OPT_NAMES,    /* checked here for expressions only */
    KP_OPT_PATTERN,  /* for kp_pattern_new() */
    KP_OPT_PATTERNS, /* a comma list of these */
    KP_OPT_KERNEL_ID,
    KP_OPT_RANGES,  /* for kp_nvtx_filter_new() */
    KP_OPT_NUMBERS, /* for kp_option_numbers_read() */
    KP_OPT_VARY,    /* for kp_vary_read() */
    KP_OPT_CHOICE,  /* a word, stored as its index */
    KP_OPT_CHOICES, /* a comma list of them */
    KP_OPT_COUNT,
    KP_OPT_AUTO_COUNT, /* a whole number, or auto */
    KP_OPT_SIZE,       /* K, M, G for binary multiples */
    KP_OPT_TIME,       /* in seconds, or with ms, s, m */
    KP_OPT_DEVICES,    /* a comma list of numbers */
    KP_OPT_PATH,       /* for kp_expand_path() */
    KP_OPT_PLACE,      /* a file or folder, its name as it is */
    KP_OPT_PATHS,      /* several of them, separated by ':' */
    KP_OPT_FOLDER,     /* for kp_sections_load(); checking loads it; stored as an absolute path */
    KP_OPT_RENAMES,    /* for kp_renames_load(); checking loads it; stored as an absolute path */
    KP_OPT_SWITCH,
    KP_OPT_KINDS, /* number of kinds */
};

/* Which sub-commands accept an option: those of its group and of all groups before it. */
enum kp_option_group {
    KP_OPT_HANDOVER, /* none: see handover.def */
    KP_OPT_TOOLS,    /* run; no document names it */
    KP_OPT_RUN,
    KP_OPT_REPORT,
    KP_OPT_DIFF,
    KP_OPT_NONE, /* no option has it: for a sub-command without options of the library */
};

/* A row of options.def; see there. */
struct kp_option {
    const char *flag;
    char letter;
    enum kp_option_kind kind;
    const char *fallback;     /* the default in a user's spelling */
    const char *values;       /* "" of choices */
    const char *const *words; /* CHOICE, CHOICES: the values, NULL at the end; NULL of others */
    enum kp_option_group group;
    const char *help;
    size_t offset; /* of the field in struct kp_options */
};

enum { KP_OPTION_NAME_MAX = 64 };
#define KP_OPTION_PREFIX "KPROF_"

/* Returns all rows; *n receives their number. Static data. */
const struct kp_option *kp_option_rows(size_t *n);
/* Returns the row of a field of struct kp_options, by its offset. */
const struct kp_option *kp_option_row(size_t offset);
/* Writes the environment variable of a row: KPROF_LAUNCH_SKIP for launch-skip. */
void kp_option_env_name(const struct kp_option *row, char out[KP_OPTION_NAME_MAX]);
/* Rewrites a flag, up to its end or the first '=', as the variable's name without the prefix: launch-skip becomes
 * LAUNCH_SKIP. A prefix before the flag stays. */
void kp_option_env_spell(char *flag);
/* Returns the value with its paths made absolute, if it has some: a child of the program may have changed its folder.
 * malloc'ed; NULL without memory, or if there is no such path. */
char *kp_option_absolute(const struct kp_option *row, const char *value);
/* Returns the word for a value of a choice. Static text. */
const char *kp_option_word(size_t offset, unsigned value);
/* Checks one value as kp_options_from_env does; `shown` is the option's name in the message (--launch-skip). Empty
 * text means the default and is always valid. Returns 0, -EINVAL with *err (malloc'ed line), -ENOMEM. */
int kp_option_check(const struct kp_option *row, const char *shown, const char *value, char **err);

/* Fills *o from `environ`-like array `env` over the defaults. On the first unknown KPROF_ name or bad value returns
 * -EINVAL and *err is a malloc'ed line such as
 *   unknown KPROF_KERNELNAME; did you mean KPROF_KERNEL_NAME?
 * Checks values fully (sets, sections, regexes, numbers), so that no misspelling fails later; metric names are checked
 * when the chip is known. Loads the section folder first because other values may name its sections; kp_sections_note()
 * names its unused parts. An empty value means the default. Reads the file that KPROF_CONFIG names (config.h); errors
 * in it name its line. Returns -ENOMEM otherwise. Frees nothing on entry: *o is overwritten; after a failure nothing in
 * *o needs freeing. */
int kp_options_from_env(struct kp_options *o, char *const *env, char **err);
void kp_options_free(struct kp_options *o);

/* Returns true if the environment needs NVTX: by `nvtx`, by a filter over ranges, or by names or a summary that use
 * them. Ignores everything else; kp_options_from_env reports bad values. */
bool kp_options_want_nvtx(char *const *env);

/* Returns true if the environment asks for the application only. Ignores everything else, like kp_options_want_nvtx. */
bool kp_options_want_application(char *const *env);

/* Returns the face that the environment asks for. Ignores everything else, like kp_options_want_nvtx. */
enum kp_face kp_options_face(char *const *env);

/* Returns true if the program runs once for each pass. */
bool kp_options_by_runs(const struct kp_options *o);
/* Returns true if ranges of the program are the workloads. */
bool kp_options_by_ranges(const struct kp_options *o);

/* Returns the destination of the report, by the value of log-file. */
enum kp_log_target { KP_LOG_TO_STDERR, KP_LOG_TO_STDOUT, KP_LOG_TO_FILE };
enum kp_log_target kp_options_log_target(const char *log_file);

/* Returns an option's value from the environment, or from the file of options that it names. malloc'ed; NULL if neither
 * sets it, or the file is unreadable. `name`: the variable. */
char *kp_options_value(char *const *env, const char *name);

#endif
