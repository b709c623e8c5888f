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

/* How many values each has: kp_page_id_values. */
#define KP_OPTION(field, flag, letter, kind, fallback, values, group, help)
#define KP_CHOICE(field, tag, flag, letter, fallback, values, group, help)  enum { tag##_values = values };
#define KP_CHOICES(field, tag, flag, letter, fallback, values, group, help) enum { tag##_values = values };
#define KP_VALUE(id, word)                                                  +1
#include "report/options/options.def"

/* Several of an enumeration, in the order given; what is beyond the most is left out. */
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

/* What a field is, by the row's kind. A text that is not given is ""; those of lists are separated by commas. */
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
#define KP_FIELD_PATH       char *
#define KP_FIELD_FOLDER     char *   /* absolute */
#define KP_FIELD_COUNT      uint64_t /* 0 = no limit, or automatic, where the help does not say more */
#define KP_FIELD_SIZE       uint64_t /* byte */
#define KP_FIELD_TIME       uint64_t /* ns */
#define KP_FIELD_DEVICES    uint64_t /* a bit each, the lowest for device 0; 0 = all */
#define KP_FIELD_AUTO_COUNT int
#define KP_FIELD_SWITCH     bool

/* One field a row of options.def. `set` is "basic" unless section or metrics are given, "" then; see also
 * kp_trace_wants and kp_page_wants. */
struct kp_options {
#define KP_OPTION(field, flag, letter, kind, fallback, values, group, help) KP_FIELD_##kind field;
#define KP_CHOICE(field, tag, flag, letter, fallback, values, group, help)  enum tag field;
#define KP_CHOICES(field, tag, flag, letter, fallback, values, group, help) struct kp_choices field;
#include "report/options/options.def"
    bool only_columns; /* `metrics` are the columns of the page trace, as nothing else is asked for: see kp_trace_wants
                        */
};

/* How the value of an option is checked and stored. */
enum kp_option_kind {
    KP_OPT_FILE,     /* read when the others are */
    KP_OPT_SET,      /* a name of kp_set_names() */
    KP_OPT_SECTIONS, /* as kp_sections_select() takes it */
    KP_OPT_RULES,    /* as kp_rules_select() takes it */
    KP_OPT_NAMES,    /* checked here for expressions only */
    KP_OPT_PATTERN,  /* as kp_pattern_new() takes it */
    KP_OPT_PATTERNS, /* a comma list of these */
    KP_OPT_KERNEL_ID,
    KP_OPT_RANGES,  /* as kp_nvtx_filter_new() takes it */
    KP_OPT_CHOICE,  /* a word, stored as its place among them */
    KP_OPT_CHOICES, /* a comma list of them */
    KP_OPT_COUNT,
    KP_OPT_AUTO_COUNT, /* a whole number, or auto */
    KP_OPT_SIZE,       /* K, M, G for binary multiples */
    KP_OPT_TIME,       /* in seconds, or with ms, s, m */
    KP_OPT_DEVICES,    /* a comma list of numbers */
    KP_OPT_PATH,       /* as kp_expand_path() takes it */
    KP_OPT_FOLDER,     /* as kp_sections_load() takes it, which checking does; stored as an absolute path */
    KP_OPT_SWITCH,
    KP_OPT_KINDS, /* how many there are */
};

/* Which sub-commands take an option: each group's, and those of all groups before it. */
enum kp_option_group { KP_OPT_TOOLS /* run */, KP_OPT_RUN, KP_OPT_REPORT, KP_OPT_DIFF };

/* A row of options.def; see there. */
struct kp_option {
    const char *flag;
    char letter;
    enum kp_option_kind kind;
    const char *fallback;     /* the default, as it would be written */
    const char *values;       /* "" of choices */
    const char *const *words; /* CHOICE, CHOICES: the values, NULL at the end; NULL of others */
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
/* The word for a value of a choice. Static text. */
const char *kp_option_word(size_t offset, unsigned value);
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

/* Whether the environment asks for the application alone. As in kp_options_want_nvtx, nothing else is looked at. */
bool kp_options_want_application(char *const *env);

/* Where the report goes, by the value of log-file. */
enum kp_log_target { KP_LOG_TO_STDERR, KP_LOG_TO_STDOUT, KP_LOG_TO_FILE };
enum kp_log_target kp_options_log_target(const char *log_file);

/* What the environment, or the file of options that it names, sets an option to: malloc'ed, NULL where neither does, or
 * the file cannot be read. `name`: the variable. */
char *kp_options_value(char *const *env, const char *name);

#endif
