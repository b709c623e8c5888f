#include "cmd/main.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/version.h"
#include "cmd/commands.h"
#include "cmd/console.h"
#include "cmd/help.h"
#include "cmd/idle.h"
#include "cmd/query.h"
#include "cmd/repeated.h"
#include "cmd/run.h"
#include "report/options/options.h"

enum {
    MAX_ROWS = 256,                      /* most rows of options.def that the arrays can hold */
    MAX_QUERIES = 32,                    /* most flags of the queries */
    LIST_WORDS = 127,                    /* getopt_long's value for --list-words */
    IMPORT = 'i',                        /* and for --import */
    FIRST_QUERY = 128,                   /* getopt_long's value for the first flag of the queries: above all letters, */
    FIRST_ROW = 256,                     /* for the first row, */
    MAX_OF_NCU = 32,                     /* most options of ncu that are accepted without one, */
    FIRST_OF_NCU = FIRST_ROW + MAX_ROWS, /* and for the first of these */
};

/* The rows as getopt's arrays. */
struct flags {
    struct option longs[MAX_ROWS + MAX_QUERIES + MAX_OF_NCU + 5];
    char letters[2 * MAX_ROWS + 10];
};

static void build_flags(struct flags *f, const struct kp_option *rows, size_t n)
{
    size_t n_queries;
    const struct kp_query_flag *query = kp_query_flags(&n_queries);
    char *letter = stpcpy(f->letters, "+:hv"); /* stops at the program; reports a missing value as such */
    for (size_t i = 0; i < n; i++) {
        bool is_switch = kp_flags_is_plain_switch(&rows[i]);
        f->longs[i] =
            (struct option){rows[i].flag, is_switch ? optional_argument : required_argument, NULL, FIRST_ROW + (int)i};
        if (!rows[i].letter)
            continue;
        *letter++ = rows[i].letter;
        if (!is_switch)
            *letter++ = ':';
    }
    bool as_ncu = kp_options_face(environ) == KP_FACE_NCU;
    strcpy(letter, as_ncu ? "i:" : "");
    f->longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    f->longs[n + 1] = (struct option){"version", no_argument, NULL, 'v'};
    for (size_t i = 0; i < n_queries; i++)
        f->longs[n + 2 + i] = (struct option){query[i].flag, *query[i].value ? required_argument : no_argument, NULL,
                                              FIRST_QUERY + (int)i};
    f->longs[n + 2 + n_queries] = (struct option){"list-words", no_argument, NULL, LIST_WORDS};
    struct option *last = &f->longs[n + 3 + n_queries];
    const char *flag, *accepts;
    for (int i = 0; (flag = kp_option_of_ncu((size_t)i, &accepts)); i++)
        *last++ = (struct option){flag, *accepts ? required_argument : no_argument, NULL, FIRST_OF_NCU + i};
    if (as_ncu)
        *last++ = (struct option){"import", required_argument, NULL, IMPORT};
    *last = (struct option){0};
}

/* ---- unknown flags ---- */

/* Reports an unknown long flag; an abbreviation is unknown, too, because a later flag could change its meaning. */
static int refuse_flag(const struct flags *f, const char *word)
{
    const char *names[MAX_ROWS + MAX_QUERIES + MAX_OF_NCU + 5] = {0};
    for (size_t i = 0; f->longs[i].name; i++)
        names[i] = f->longs[i].val == LIST_WORDS || f->longs[i].val >= FIRST_OF_NCU ? "" : f->longs[i].name;
    int len = (int)strcspn(word, "=");
    char *meant = kp_flags_meant(word + 2, names), *flag = strndup(word + 2, (size_t)len - 2);
    const char *instead = flag ? kp_option_instead(flag) : NULL;
    if (flag && !instead)
        instead = kp_flags_home(flag);
    int status = kp_console_error(KP_EXIT_USAGE, "unknown option %.*s; %s", len, word,
                                  instead ? instead
                                  : meant ? meant
                                          : KP_TRY_HELP);
    free(meant);
    free(flag);
    return status;
}

/* Reports a flag that getopt_long did not know, or that lacks its value. */
static int bad_flag(const struct flags *f, char *const *argv)
{
    const char *word = argv[optind - 1];
    if (optopt && optopt < FIRST_ROW && strncmp(word, "--", 2)) {
        const char *instead = kp_option_instead_of_letter(optopt);
        return kp_console_error(KP_EXIT_USAGE, "unknown option -%c; %s", optopt, instead ? instead : KP_TRY_HELP);
    }
    if (optopt)
        return kp_console_error(KP_EXIT_USAGE, "%.*s accepts no value", (int)strcspn(word, "="), word);
    return refuse_flag(f, word);
}

/* Handles a flag; `again`: it was given before. */
static int take_flag(const struct kp_option *row, const char *value, bool again)
{
    char name[KP_OPTION_NAME_MAX], shown[KP_OPTION_NAME_MAX], *err = NULL;
    snprintf(shown, sizeof shown, "--%s", row->flag);
    kp_option_env_name(row, name);
    value = value ? value : "on";
    int rc = kp_option_check(row, shown, value, &err);
    if (rc == -EINVAL)
        kp_console_error(0, "%s", err);
    free(err);
    /* A child of the program may have changed its folder. */
    bool is_path = row->kind == KP_OPT_FOLDER || row->kind == KP_OPT_FILE || row->kind == KP_OPT_RENAMES;
    char *whole = !rc && is_path ? realpath(value, NULL) : NULL;
    if (!rc && again && kp_flags_separator(row) && !(whole = kp_flags_joined(row, getenv(name), value)))
        rc = -ENOMEM;
    if (!rc && setenv(name, whole ? whole : value, 1))
        rc = -ENOMEM;
    free(whole);
    kp_idle_note(row);
    return !rc ? 0 : rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
}

/* Handles an option of ncu that has no row: does nothing if the value asks for what kprof does anyway. */
static int take_of_ncu(size_t i, const char *value)
{
    const char *accepts, *flag = kp_option_of_ncu(i, &accepts), *word;
    size_t len;
    bool fine = !*accepts || !strcmp(accepts, "*");
    for (const char *list = accepts; !fine && kp_word_next(&list, &word, &len);)
        fine = strlen(value) == len && !strncmp(word, value, len);
    return fine ? 0
                : kp_console_error(KP_EXIT_USAGE, "--%s accepts %s, not '%s'; %s", flag, accepts, value,
                                   kp_option_instead(flag));
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

/* Reads the section folder and the file of options first, wherever they stand: values may name sections of the folder,
 * and the file may name the folder. */
static int take_folder(int argc, char **argv, const struct flags *f, const struct kp_option *rows, size_t n)
{
    int c, rc = 0;
    bool given = false;
    while (!rc && (c = getopt_long(argc, argv, f->letters, f->longs, NULL)) != -1 && c != '?' && c != ':') {
        bool is_row = c >= FIRST_ROW && c < FIRST_OF_NCU;
        enum kp_option_kind kind = is_row ? rows[c - FIRST_ROW].kind : KP_OPT_SWITCH;
        if (kind != KP_OPT_FOLDER && kind != KP_OPT_FILE)
            continue;
        rc = take_flag(&rows[c - FIRST_ROW], optarg, given);
        given |= kind == KP_OPT_FOLDER;
    }
    optind = 0; /* GNU: restarts getopt */
    for (size_t i = 0; !rc && !given && i < n; i++)
        if (rows[i].kind == KP_OPT_FOLDER)
            rc = kp_flags_check_folder(&rows[i]);
    return rc;
}

/* Handles one of the command's own flags. */
static void take_query_flag(const struct kp_query_flag *flag, const char *value, struct kp_query *q)
{
    *(const char **)((char *)q + flag->offset) = *flag->value ? value : flag->flag;
}

/* Stores an option, and notes that it was given. */
static int take_row(const struct kp_option *row, const char *value, struct kp_repeated *given)
{
    int rc = take_flag(row, value, given->times > 0);
    kp_repeated_note(given, value ? value : "on");
    return rc;
}

#define NCU_VERSION "2025.3.1" /* the version whose options and output are those of the face */

static int version(void)
{
    if (kp_options_face(environ) == KP_FACE_NCU)
        printf("In place of NVIDIA (R) Nsight Compute Command Line Profiler\nVersion %s.0 (kprof %s)\n", NCU_VERSION,
               KP_VERSION);
    else
        printf("kprof %s\n", KP_VERSION);
    return kp_console_end(0, NULL);
}

/* Prints the help of a sub-command, or all of it if `command` is NULL, or the one that runs a program. */
static int help(const struct kp_command *command)
{
    return command && (command->topic || command->answer) ? kp_help_of(command) : kp_help();
}

/* Puts the flags into the environment, and those of the queries into *q. Returns -1 when a program or a command
 * follows, else an exit status. */
static int take_flags(int argc, char **argv, struct kp_query *q)
{
    size_t n, n_queries;
    const struct kp_option *rows = kp_option_rows(&n);
    const struct kp_query_flag *queries = kp_query_flags(&n_queries);
    struct flags f;
    struct kp_repeated given[MAX_ROWS] = {0};
    int c;
    build_flags(&f, rows, n);
    opterr = 0;
    int rc = take_folder(argc, argv, &f, rows, n);
    for (int at = -1; !rc && (c = getopt_long(argc, argv, f.letters, f.longs, &at)) != -1; at = -1) {
        const char *word;
        if (at >= 0 && c != '?' && c != ':' && kp_flags_is_abbreviated(&f.longs[at], &word, argv))
            return refuse_flag(&f, word);
        if (c == 'h')
            return help(kp_command_find(q->command ? q->command : *argv));
        if (c == 'v')
            return version();
        if (c == LIST_WORDS)
            return kp_help_words();
        if (c == IMPORT) {
            q->import = optarg;
            continue;
        }
        if (c == '?')
            return bad_flag(&f, argv);
        if (c == ':')
            return kp_console_error(KP_EXIT_USAGE, "option %s needs a value; %s", argv[optind - 1], KP_TRY_HELP);
        if (c >= FIRST_QUERY && c < FIRST_ROW) {
            take_query_flag(&queries[c - FIRST_QUERY], optarg, q);
            continue;
        }
        if (c >= FIRST_OF_NCU) {
            rc = take_of_ncu((size_t)(c - FIRST_OF_NCU), optarg);
            continue;
        }
        const struct kp_option *row = row_of(c, rows, n);
        rc = take_row(row, optarg, &given[row - rows]);
    }
    if (!rc)
        kp_flags_tell_repeated(given);
    return rc ? rc : -1;
}

static int run_command(const struct kp_command *command, int argc, char **argv, struct kp_query *q);

/* Prints the session that the face ncu imports. Its ending may be left out, or be that of ncu's. */
static int import(const char *name)
{
    static const char ending[] = ".kprof", of_ncu[] = ".ncu-rep";
    size_t len = strlen(name),
           stem = len - (len > strlen(of_ncu) && !strcmp(name + len - strlen(of_ncu), of_ncu) ? strlen(of_ncu) : 0);
    char report[] = "report", *path = access(name, F_OK) ? kp_asprintf("%.*s%s", (int)stem, name, ending) : NULL,
         *own = path && access(path, F_OK) ? NULL : path,
         *args[] = {report, own ? own : (char *)(uintptr_t)name, NULL}; /* which a command does not change */
    int status = kp_main_report(2, args);
    free(path);
    return status;
}

/* Handles what follows the flags: a query, or a program, whose name may be a command's if `is_program`. */
static int go_on(int argc, char **argv, struct kp_query *q, bool is_program)
{
    if (q->command && optind < argc)
        return kp_console_error(KP_EXIT_USAGE, "kprof %s does not accept '%s'; " KP_TRY_HELP, q->command, argv[optind]);
    if (q->command) {
        const struct kp_command *command = kp_command_find(q->command);
        kp_idle_tell_answer(command->name, command->heeds, q);
        return command->answer(q);
    }
    if (q->import)
        return import(q->import);
    if (optind == argc && (q->chip || q->mode))
        return kp_console_error(
            KP_EXIT_USAGE, "--%s says which metrics, sets or sections to list: add --query-metrics%s",
            q->chip ? "chip" : "query-metrics-mode", q->mode ? "" : ", --list-sets or --list-sections");
    if (optind == argc) {
        kp_help_usage();
        return kp_console_error(KP_EXIT_USAGE, "no program given; " KP_TRY_HELP);
    }
    bool separated = optind > 1 && !strcmp(argv[optind - 1], "--");
    const struct kp_command *command = is_program || separated ? NULL : kp_command_find(argv[optind]);
    if (command)
        return run_command(command, argc - optind, argv + optind, q);
    if (q->chip || q->mode)
        return kp_console_error(KP_EXIT_USAGE, "--%s cannot be used with a program; " KP_TRY_HELP,
                                q->chip ? "chip" : "query-metrics-mode");
    return kp_main_run(argv + optind, kp_command_names());
}

/* Returns true if --help or -h is among the flags. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

/* Runs `kprof COMMAND ...`; argv[0] is the command. */
static int run_command(const struct kp_command *command, int argc, char **argv, struct kp_query *q)
{
    const struct kp_option *face = kp_option_row(offsetof(struct kp_options, face));
    if (command->face && setenv("KPROF_FACE", face->words[command->face], 1))
        return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    if (command->own && asks_for_help(argc, argv))
        return kp_help_of(command);
    if (command->own)
        return command->own(argc, argv);
    q->command = command->answer ? command->name : NULL;
    optind = 0; /* GNU: restarts getopt with new arguments */
    int status = take_flags(argc, argv, q);
    if (status < 0 && command->prepare && (status = command->prepare()) == 0)
        status = -1;
    return status >= 0 ? status : go_on(argc, argv, q, !command->answer);
}

int kp_main(int argc, char **argv)
{
    struct kp_query q = {0};
    kp_commands_know_flags();
    char *slash = strrchr(*argv, '/');
    *argv = slash ? slash + 1 : *argv;
    if (!strcmp(*argv, kp_option_row(offsetof(struct kp_options, face))->words[KP_FACE_NCU]))
        return run_command(kp_command_find(*argv), argc, argv, &q);
    int status = take_flags(argc, argv, &q);
    return status >= 0 ? status : go_on(argc, argv, &q, false);
}
