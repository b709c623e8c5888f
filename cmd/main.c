#include "cmd/main.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/options/options.h"
#include "report/judge/rules.h"
#include "report/define/sections.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/version.h"
#include "base/wrap.h"

enum {
    HELP_COLUMN = 32,
    HELP_WIDTH = 100,
    MAX_ROWS = 256,    /* rows of options.def that the arrays here have room for */
    LIST_WORDS = 127,  /* getopt_long's value for --list-words */
    FIRST_QUERY = 128, /* getopt_long's value for the first flag of the queries: above all letters, */
    FIRST_ROW = 256,   /* and for the first row */
};

static const char usage[] = "Usage: kprof [run] [options] [--] program [arguments]\n"
                            "       kprof report [options] FILE...\n"
                            "       kprof diff [options] A B\n"
                            "       kprof doctor\n"
                            "       kprof {query-metrics,list-sets,list-sections,list-rules,list-chips} [options]\n";
static const char try_help[] = "`kprof --help` lists the options";

static const char run_command[] = "run", report_command[] = "report", diff_command[] = "diff",
                  doctor_command[] = "doctor";

const char *const kp_main_commands[] = {run_command, report_command,  diff_command, doctor_command, "query-metrics",
                                        "list-sets", "list-sections", "list-rules", "list-chips",   NULL};

/* Flags that are the command's own, and no options of the library. Those whose name is a sub-command's are as good as
 * that; the others say what it is about. */
static const struct query_flag {
    const char *flag, *value, *help;
    size_t offset; /* of its field in struct kp_query */
} query_flags[] = {
    {"query-metrics", "",
     "lists the metrics of a chip, or those of --metrics: names, regex:EXPR, and what group:NAME and breakdown:NAME "
     "stand for",
     offsetof(struct kp_query, command)},
    {"list-sets", "", "lists the sets, what is in them and how many passes they take",
     offsetof(struct kp_query, command)},
    {"list-sections", "", "lists the sections; enabled are those of --set and --section",
     offsetof(struct kp_query, command)},
    {"list-rules", "", "lists the rules that give advice, with their sections and what they look at; needs no CUPTI",
     offsetof(struct kp_query, command)},
    {"list-chips", "", "lists the chips that --chip takes", offsetof(struct kp_query, command)},
    {"chip", " NAME", "the chip that is meant; without it, that of the first GPU", offsetof(struct kp_query, chip)},
    {"query-metrics-mode", " {base,suffix,all}",
     "base: base names; suffix: and what may follow them; all: each full name (default base)",
     offsetof(struct kp_query, mode)},
};

enum { QUERY_FLAGS = sizeof query_flags / sizeof *query_flags };

int kp_main_error(int status, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len >= 0)
        kp_blank_controls(text, (size_t)len);
    fprintf(stderr, "==ERROR== %s\n", len >= 0 ? text : strerror(ENOMEM));
    if (len >= 0)
        free(text);
    return status;
}

void kp_main_warn(const char *text)
{
    const char *end;
    for (; *text; text = end + (*end == '\n')) {
        end = text + strcspn(text, "\n");
        fprintf(stderr, "==WARNING== %.*s\n", (int)(end - text), text);
    }
}

int kp_main_end(int rc, const char *err)
{
    if (fflush(stdout) && !rc)
        rc = -errno;
    return rc ? kp_main_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc)) : EXIT_SUCCESS;
}

bool kp_main_is_plain_switch(const struct kp_option *row)
{
    return row->kind == KP_OPT_SWITCH && !*row->values;
}

static void name_sets(char *out, size_t size)
{
    size_t len = 0;
    for (const char *const *set = kp_set_names(); *set && len < size; set++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", set == kp_set_names() ? " {" : ",", *set);
    if (len < size)
        snprintf(out + len, size - len, "}");
}

/* How --help names the value of an option. */
static void value_name(const struct kp_option *row, char *out, size_t size)
{
    if (kp_main_is_plain_switch(row))
        *out = '\0';
    else if (row->kind == KP_OPT_COUNT || row->kind == KP_OPT_AUTO_COUNT)
        snprintf(out, size, " N");
    else if (row->kind == KP_OPT_SIZE)
        snprintf(out, size, " SIZE");
    else if (row->kind == KP_OPT_SET)
        name_sets(out, size);
    else
        snprintf(out, size,
                 row->kind == KP_OPT_CHOICE || row->kind == KP_OPT_CHOICES || row->kind == KP_OPT_SWITCH ? " {%s}"
                                                                                                         : " %s",
                 row->values);
}

static void print_option(const char *flags, const char *text)
{
    struct kp_wrap w = {text, HELP_WIDTH - HELP_COLUMN};
    const char *line;
    size_t len;
    printf("%-*s", HELP_COLUMN, flags);
    if (strlen(flags) >= HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    for (const char *indent = ""; kp_wrap_next(&w, &line, &len); indent = " ")
        printf("%*s%.*s\n", *indent ? HELP_COLUMN : 0, "", (int)len, line);
}

static void print_row(const struct kp_option *row)
{
    char letter[8] = "    ", value[64] = "", flags[160], text[512];
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    value_name(row, value, sizeof value);
    snprintf(flags, sizeof flags, "  %s--%s%s", letter, row->flag, value);
    if (*row->fallback && !kp_main_is_plain_switch(row))
        snprintf(text, sizeof text, "%s (default %s)", row->help, row->fallback);
    else
        snprintf(text, sizeof text, "%s", row->help);
    print_option(flags, text);
}

static void print_rows(enum kp_option_group group)
{
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    for (size_t i = 0; i < n; i++)
        if (rows[i].group == group)
            print_row(&rows[i]);
}

static void print_diff_flags(void)
{
    size_t n;
    const struct kp_main_flag *own = kp_main_diff_flags(&n);
    printf("\nWhat `kprof diff` takes beside set, section, metrics, print-details and the like:\n");
    for (size_t i = 0; i < n; i++) {
        char flags[64];
        snprintf(flags, sizeof flags, "      --%s%s", own[i].flag, own[i].value);
        print_option(flags, own[i].help);
    }
}

static void print_statuses(void)
{
    printf("\nExit statuses with --strict, where the program's is 0:\n");
    for (size_t i = 0; i < KP_FAILURES; i++) {
        char status[32];
        snprintf(status, sizeof status, "  %d  %s", kp_failure_rows[i].status, kp_failure_rows[i].name);
        print_option(status, kp_failure_rows[i].text);
    }
}

int kp_main_help(void)
{
    printf("%s\n"
           "Runs a program with libkprof.so preloaded and reports on every GPU kernel that it launches, prints the\n"
           "report of stored sessions again, compares two of them, lists what can be collected, or says what would\n"
           "stop profiling here (doctor).\n\n"
           "Each option is also an environment variable, in capitals and with '_' for '-', so that\n"
           "`--launch-skip 5` is KPROF_LAUNCH_SKIP=5; LD_PRELOAD=libkprof.so and these variables do without this\n"
           "command. A switch is on or off there.\n\nOptions:\n",
           usage);
    print_rows(KP_OPT_USER);
    print_option("  -h, --help", "this text");
    print_option("  -v, --version", "the version");
    printf("\nWhat can be collected, on any chip, without a GPU:\n");
    for (size_t i = 0; i < QUERY_FLAGS; i++) {
        char flags[64];
        snprintf(flags, sizeof flags, "      --%s%s", query_flags[i].flag, query_flags[i].value);
        print_option(flags, query_flags[i].help);
    }
    print_diff_flags();
    print_statuses();
    printf("\nAdvanced:\n");
    print_rows(KP_OPT_ADVANCED);
    return kp_main_end(0, NULL);
}

static int version(void)
{
    printf("kprof %s\n", KP_VERSION);
    return kp_main_end(0, NULL);
}

static void list_options(void)
{
    static const char *const kinds[] = {
#define KP_OPTION(field, flag, letter, kind, fallback, values, group, help) #kind,
#include "report/options/options.def"
    };
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    for (size_t i = 0; i < n; i++, row++) {
        char env[KP_OPTION_NAME_MAX], value[64];
        kp_option_env_name(row, env);
        value_name(row, value, sizeof value);
        printf("option\t%s\t%.1s\t%s\t%s\t%s\t%s\t%s\t%s\n", row->flag, &row->letter, env, kinds[i],
               *value ? value + 1 : value, kp_main_is_plain_switch(row) ? "" : row->fallback,
               row->group == KP_OPT_USER ? "user" : "advanced", row->help);
    }
}

/* What the man pages and the completions are made of (tools/gen_docs.sh) and what completions ask at run time: a line
 * each, tabs between the fields. No user needs it, so --help is silent about it. */
static int list_words(void)
{
    size_t sections, rules;
    const struct kp_section *section = kp_sections(&sections);
    const struct kp_rule *rule = kp_rules(&rules);
    list_options();
    for (const struct query_flag *f = query_flags; f < query_flags + QUERY_FLAGS; f++)
        printf("query\t%s\t%s\t%s\n", f->flag, *f->value ? f->value + 1 : f->value, f->help);
    size_t own;
    const struct kp_main_flag *flag = kp_main_diff_flags(&own);
    for (size_t i = 0; i < own; i++)
        printf("own\tdiff\t%s\t%s\t%s\n", flag[i].flag, flag[i].value + 1, flag[i].help);
    for (const char *const *command = kp_main_commands; *command; command++)
        printf("command\t%s\n", *command);
    for (const char *const *set = kp_set_names(); *set; set++)
        printf("set\t%s\n", *set);
    for (size_t i = 0; i < sections; i++)
        printf("section\t%s\n", section[i].id);
    for (size_t i = 0; i < rules; i++)
        printf("rule\t%s\n", rule[i].id);
    for (size_t i = 0; i < KP_FAILURES; i++)
        printf("status\t%d\t%s\t%s\n", kp_failure_rows[i].status, kp_failure_rows[i].name, kp_failure_rows[i].text);
    return kp_main_end(0, NULL);
}

/* getopt's view of the rows. */
struct flags {
    struct option longs[MAX_ROWS + QUERY_FLAGS + 4];
    char letters[2 * MAX_ROWS + 8];
};

static void build_flags(struct flags *f, const struct kp_option *rows, size_t n)
{
    char *letter = stpcpy(f->letters, "+:hv"); /* stop at the program; tell a missing value from an unknown flag */
    for (size_t i = 0; i < n; i++) {
        bool is_switch = kp_main_is_plain_switch(&rows[i]);
        f->longs[i] =
            (struct option){rows[i].flag, is_switch ? optional_argument : required_argument, NULL, FIRST_ROW + (int)i};
        if (!rows[i].letter)
            continue;
        *letter++ = rows[i].letter;
        if (!is_switch)
            *letter++ = ':';
    }
    *letter = '\0';
    f->longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    f->longs[n + 1] = (struct option){"version", no_argument, NULL, 'v'};
    for (size_t i = 0; i < QUERY_FLAGS; i++)
        f->longs[n + 2 + i] = (struct option){
            query_flags[i].flag, *query_flags[i].value ? required_argument : no_argument, NULL, FIRST_QUERY + (int)i};
    f->longs[n + 2 + QUERY_FLAGS] = (struct option){"list-words", no_argument, NULL, LIST_WORDS};
    f->longs[n + 3 + QUERY_FLAGS] = (struct option){0};
}

/* ---- flags that are none ---- */

/* The flags that begin with a word, as `--a, --b or --c`; empty when there is none. */
static void list_longer(const char *word, size_t len, const char *const *names, FILE *to)
{
    size_t n = 0;
    for (size_t i = 0; names[i]; i++)
        n += !strncmp(names[i], word, len);
    for (size_t i = 0; names[i]; i++)
        if (!strncmp(names[i], word, len))
            fprintf(to, "--%s%s", names[i], --n > 1 ? ", " : n ? " or " : "");
}

char *kp_main_meant(const char *word, const char *const *names)
{
    char *list = NULL, *text = NULL, *name = strndup(word, strcspn(word, "="));
    size_t size;
    FILE *to = name && *name ? open_memstream(&list, &size) : NULL;
    if (to) {
        list_longer(name, strlen(name), names, to);
        const char *near = ftell(to) > 0 ? NULL : kp_nearest(name, names);
        if (near)
            fprintf(to, "--%s", near);
        fclose(to);
    }
    if (list && *list && asprintf(&text, "did you mean %s?", list) < 0)
        text = NULL;
    free(list);
    free(name);
    return text;
}

bool kp_main_is_abbreviated(const struct option *flag, const char **word, char *const *argv)
{
    *word = argv[optind - (optarg && optarg == argv[optind - 1] ? 2 : 1)];
    return strlen(flag->name) != strcspn(*word + 2, "=");
}

/* A long flag that there is not; an abbreviation is none either, as it would mean another one once there are more. */
static int unknown_flag(const struct flags *f, const char *word)
{
    const char *names[MAX_ROWS + QUERY_FLAGS + 4] = {0};
    for (size_t i = 0; f->longs[i].name; i++)
        names[i] = f->longs[i].val == LIST_WORDS ? "" : f->longs[i].name;
    int len = (int)strcspn(word, "=");
    char *meant = kp_main_meant(word + 2, names), *flag = strndup(word + 2, (size_t)len - 2);
    const char *instead = flag ? kp_option_instead(flag) : NULL;
    int status = kp_main_error(KP_EXIT_USAGE, "unknown option %.*s; %s", len, word,
                               instead ? instead
                               : meant ? meant
                                       : try_help);
    free(meant);
    free(flag);
    return status;
}

/* What getopt_long did not understand, or gave no value to. */
static int bad_flag(const struct flags *f, char *const *argv)
{
    const char *word = argv[optind - 1];
    if (optopt && optopt < FIRST_ROW && strncmp(word, "--", 2)) {
        const char *instead = kp_option_instead_of_letter(optopt);
        return kp_main_error(KP_EXIT_USAGE, "unknown option -%c; %s", optopt, instead ? instead : try_help);
    }
    if (optopt)
        return kp_main_error(KP_EXIT_USAGE, "%.*s takes no value", (int)strcspn(word, "="), word);
    return unknown_flag(f, word);
}

/* Expressions over ranges are alternatives, each flag with one or more: what the flags before gave stays. malloc'ed. */
static char *joined(const char *before, const char *value)
{
    char *text = NULL;
    return asprintf(&text, "%s;%s", before, value) < 0 ? NULL : text;
}

/* `again`: the flag has been given before. */
static int take_flag(const struct kp_option *row, const char *value, bool again)
{
    char name[KP_OPTION_NAME_MAX], shown[KP_OPTION_NAME_MAX], *err = NULL;
    snprintf(shown, sizeof shown, "--%s", row->flag);
    kp_option_env_name(row, name);
    value = value ? value : "on";
    int rc = kp_option_check(row, shown, value, &err);
    if (rc == -EINVAL)
        kp_main_error(0, "%s", err);
    free(err);
    /* A program below the program may have gone to another folder. */
    bool is_path = row->kind == KP_OPT_FOLDER || row->kind == KP_OPT_FILE;
    char *whole = !rc && is_path ? realpath(value, NULL) : NULL;
    if (!rc && again && row->kind == KP_OPT_RANGES && !(whole = joined(getenv(name), value)))
        rc = -ENOMEM;
    if (!rc && setenv(name, whole ? whole : value, 1))
        rc = -ENOMEM;
    free(whole);
    return !rc ? 0 : rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
}

static const struct kp_option *row_of(int c, const struct kp_option *rows, size_t n)
{
    if (c >= FIRST_ROW)
        return &rows[c - FIRST_ROW];
    size_t i = 0;
    while (i + 1 < n && rows[i].letter != c)
        i++;
    return &rows[i];
}

int kp_main_check_folder(const struct kp_option *row)
{
    char name[KP_OPTION_NAME_MAX], *err = NULL;
    kp_option_env_name(row, name);
    char *value = kp_options_value(environ, name);
    int rc = value ? kp_option_check(row, name, value, &err) : 0;
    if (rc)
        rc = kp_main_error(KP_EXIT_USAGE, "%s", err ? err : strerror(ENOMEM));
    free(value);
    free(err);
    return rc;
}

/* What other flags may name depends on the section folder, which the file of options may name: both are taken first,
 * wherever they stand. */
static int take_folder(int argc, char **argv, const struct flags *f, const struct kp_option *rows, size_t n)
{
    int c, rc = 0;
    bool given = false;
    while (!rc && (c = getopt_long(argc, argv, f->letters, f->longs, NULL)) != -1 && c != '?' && c != ':') {
        enum kp_option_kind kind = c < FIRST_ROW ? KP_OPT_SWITCH : rows[c - FIRST_ROW].kind;
        if (kind != KP_OPT_FOLDER && kind != KP_OPT_FILE)
            continue;
        rc = take_flag(&rows[c - FIRST_ROW], optarg, given);
        given |= kind == KP_OPT_FOLDER;
    }
    optind = 0; /* GNU: from the start again */
    for (size_t i = 0; !rc && !given && i < n; i++)
        if (rows[i].kind == KP_OPT_FOLDER)
            rc = kp_main_check_folder(&rows[i]);
    return rc;
}

/* One of the command's own flags. */
static void take_query_flag(const struct query_flag *flag, const char *value, struct kp_query *q)
{
    *(const char **)((char *)q + flag->offset) = *flag->value ? value : flag->flag;
}

/* Puts the flags into the environment, and those of the queries into *q. Returns -1 when a program or a command is to
 * be run, else an exit status. */
static int take_flags(int argc, char **argv, struct kp_query *q)
{
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    struct flags f;
    bool given[MAX_ROWS] = {false};
    int c;
    build_flags(&f, rows, n);
    opterr = 0;
    int rc = take_folder(argc, argv, &f, rows, n);
    for (int at = -1; !rc && (c = getopt_long(argc, argv, f.letters, f.longs, &at)) != -1; at = -1) {
        const char *word;
        if (at >= 0 && c != '?' && c != ':' && kp_main_is_abbreviated(&f.longs[at], &word, argv))
            return unknown_flag(&f, word);
        if (c == 'h')
            return kp_main_help();
        if (c == 'v')
            return version();
        if (c == LIST_WORDS)
            return list_words();
        if (c == '?')
            return bad_flag(&f, argv);
        if (c == ':')
            return kp_main_error(KP_EXIT_USAGE, "option %s needs a value; %s", argv[optind - 1], try_help);
        if (c >= FIRST_QUERY && c < FIRST_ROW) {
            take_query_flag(&query_flags[c - FIRST_QUERY], optarg, q);
            continue;
        }
        const struct kp_option *row = row_of(c, rows, n);
        rc = take_flag(row, optarg, given[row - rows]);
        given[row - rows] = true;
    }
    return rc ? rc : -1;
}

static const char *find_command(const char *word)
{
    const char *const *command = kp_main_commands;
    while (*command && strcmp(*command, word))
        command++;
    return *command;
}

static int query(int argc, char **argv, struct kp_query *q, const struct kp_catalog_ops *ops)
{
    if (optind < argc)
        return kp_main_error(KP_EXIT_USAGE, "kprof %s takes no '%s'; %s", q->command, argv[optind], try_help);
    return strcmp(q->command, doctor_command) ? kp_main_query(q, ops) : kp_main_doctor(ops);
}

static int run_word(int argc, char **argv, struct kp_query *q, const struct kp_catalog_ops *ops);

/* What the flags leave: a query, or a program, whose name may be a command's where `is_program`. */
static int go_on(int argc, char **argv, struct kp_query *q, const struct kp_catalog_ops *ops, bool is_program)
{
    if (q->command)
        return query(argc, argv, q, ops);
    if (optind == argc && (q->chip || q->mode))
        return kp_main_error(KP_EXIT_USAGE, "--%s says which metrics, sets or sections to list: add --query-metrics%s",
                             q->chip ? "chip" : "query-metrics-mode",
                             q->mode ? "" : ", --list-sets or --list-sections");
    if (optind == argc) {
        fputs(usage, stderr);
        return kp_main_error(KP_EXIT_USAGE, "no program given; %s", try_help);
    }
    bool separated = optind > 1 && !strcmp(argv[optind - 1], "--");
    if (!is_program && !separated && find_command(argv[optind]))
        return run_word(argc - optind, argv + optind, q, ops);
    if (q->chip || q->mode)
        return kp_main_error(KP_EXIT_USAGE, "--%s does not go with a program; %s",
                             q->chip ? "chip" : "query-metrics-mode", try_help);
    return kp_main_run(argv + optind, ops);
}

/* `kprof COMMAND ...`; argv[0] is the command. */
static int run_word(int argc, char **argv, struct kp_query *q, const struct kp_catalog_ops *ops)
{
    if (!strcmp(argv[0], report_command))
        return kp_main_report(argc, argv);
    if (!strcmp(argv[0], diff_command))
        return kp_main_diff(argc, argv);
    bool is_program = !strcmp(argv[0], run_command);
    q->command = is_program ? NULL : argv[0];
    optind = 0; /* GNU: a new list of arguments */
    int status = take_flags(argc, argv, q);
    return status >= 0 ? status : go_on(argc, argv, q, ops, is_program);
}

int kp_main(int argc, char **argv, const struct kp_catalog_ops *ops)
{
    struct kp_query q = {0};
    int status = take_flags(argc, argv, &q);
    return status >= 0 ? status : go_on(argc, argv, &q, ops, false);
}
