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
#include "cmd/names.h"
#include "cmd/query.h"
#include "cmd/repeated.h"
#include "cmd/run.h"
#include "cmd/words.h"
#include "report/model/renames.h"
#include "report/options/ncu.h"
#include "report/options/options.h"

enum {
    MAX_ROWS = 256,                      /* most rows of options.def that the arrays can hold */
    MAX_QUERIES = 32,                    /* most flags of the queries */
    MAX_OF_NCU = 192,                    /* most options of ncu */
    LIST_WORDS = 127,                    /* getopt_long's value for --list-words */
    IMPORT = 'i',                        /* and for --import */
    FIRST_QUERY = 128,                   /* getopt_long's value for the first flag of the queries: above all letters, */
    FIRST_ROW = 256,                     /* for the first row, */
    FIRST_OF_NCU = FIRST_ROW + MAX_ROWS, /* and for the first option of ncu */
};

/* The rows as getopt's arrays. */
struct flags {
    struct option longs[MAX_ROWS + MAX_QUERIES + MAX_OF_NCU + 5];
    char letters[2 * (MAX_ROWS + MAX_OF_NCU) + 10];
};

static int argument_of(const char *values)
{
    return !*values ? no_argument : *values == '[' ? optional_argument : required_argument;
}

/* Lists the options of ncu that have no row. Returns the place after them. */
static struct option *build_of_ncu(struct option *to, char *letter)
{
    size_t n;
    const struct kp_ncu_option *o = kp_ncu_options(&n);
    for (size_t i = 0; i < n; i++) {
        if (o[i].how == KP_NCU_SAME || o[i].how >= KP_NCU_NOT)
            continue;
        *to++ = (struct option){o[i].flag, argument_of(o[i].values), NULL, FIRST_OF_NCU + (int)i};
        if (o[i].letter)
            letter = stpcpy(letter, (char[]){o[i].letter, *o[i].values ? ':' : '\0', '\0'});
    }
    if (kp_options_face(environ) == KP_FACE_NCU) {
        *to++ = (struct option){"import", required_argument, NULL, IMPORT};
        strcpy(letter, "i:");
    }
    return to;
}

static void build_flags(struct flags *f, const struct kp_option *rows, size_t n)
{
    size_t n_queries;
    const struct kp_query_flag *query = kp_query_flags(&n_queries);
    char *letter = stpcpy(f->letters, "+:hv"); /* stops at the program; reports a missing value as such */
    struct option *to = f->longs;
    for (size_t i = 0; i < n; i++) {
        int argument = kp_cli_meant_alone(&rows[i]) ? optional_argument : required_argument;
        *to++ = (struct option){rows[i].flag, argument, NULL, FIRST_ROW + (int)i};
        if (rows[i].letter)
            letter = stpcpy(letter, (char[]){rows[i].letter, argument == required_argument ? ':' : '\0', '\0'});
    }
    *to++ = (struct option){"help", no_argument, NULL, 'h'};
    *to++ = (struct option){"version", no_argument, NULL, 'v'};
    for (size_t i = 0; i < n_queries; i++)
        *to++ = (struct option){query[i].flag, argument_of(query[i].value), NULL, FIRST_QUERY + (int)i};
    *to++ = (struct option){"list-words", no_argument, NULL, LIST_WORDS};
    *build_of_ncu(to, letter) = (struct option){0};
}

/* ---- unknown flags ---- */

/* Reports an unknown long flag. */
static int refuse_flag(const struct flags *f, const char *word)
{
    const char *names[MAX_ROWS + MAX_QUERIES + MAX_OF_NCU + 5] = {0};
    for (size_t i = 0; f->longs[i].name; i++)
        names[i] = f->longs[i].val == LIST_WORDS ? "" : f->longs[i].name;
    int len = (int)strcspn(word, "=");
    char *meant = kp_cli_meant(word + 2, names), *flag = strndup(word + 2, (size_t)len - 2);
    const char *instead = flag ? kp_ncu_instead(flag) : NULL;
    if (flag && !instead)
        instead = kp_cli_home(flag);
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
        const char *instead = kp_ncu_instead_of_letter(optopt);
        return kp_console_error(KP_EXIT_USAGE, "unknown option -%c; %s", optopt, instead ? instead : KP_TRY_HELP);
    }
    if (optopt)
        return kp_console_error(KP_EXIT_USAGE, "%.*s accepts no value", (int)strcspn(word, "="), word);
    return refuse_flag(f, word);
}

/* ---- options ---- */

/* Returns what the environment is to have of a checked value: whole paths, and what was given before; malloc'ed. */
static char *value_to_keep(const struct kp_option *row, const char *name, const char *value, bool again)
{
    const char *before = getenv(name);
    if (row->kind == KP_OPT_RENAMES && !strcmp(value, KP_RENAMES_ON) && again) /* the file was named already */
        return strdup(before);
    char *whole = kp_option_absolute(row, value), *kept = whole ? whole : strdup(value);
    if (kept && again && kp_cli_separator(row)) {
        char *both = kp_cli_joined(row, before, kept);
        free(kept);
        kept = both;
    }
    return kept;
}

/* Handles a flag; `again`: it was given before. */
static int take_flag(const struct kp_option *row, const char *value, bool again)
{
    char name[KP_OPTION_NAME_MAX], shown[KP_OPTION_NAME_MAX], *err = NULL;
    snprintf(shown, sizeof shown, "--%s", row->flag);
    kp_option_env_name(row, name);
    if (value && (!*value || !strcmp(value, "--")))
        return kp_console_error(KP_EXIT_USAGE, "option %s needs a value; %s", shown, KP_TRY_HELP);
    value = value ? value : kp_cli_meant_alone(row);
    int rc = kp_option_check(row, shown, value, &err);
    if (rc == -EINVAL)
        kp_console_error(0, "%s", err);
    free(err);
    char *kept = rc ? NULL : value_to_keep(row, name, value, again);
    if (!rc && (!kept || setenv(name, kept, 1)))
        rc = -ENOMEM;
    free(kept);
    kp_idle_note(row);
    return !rc ? 0 : rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
}

static const struct kp_option *row_named(const char *flag)
{
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    while (strcmp(row->flag, flag) != 0)
        row++;
    return row;
}

/* Returns the option that one of ncu's sets; NULL: none. */
static const struct kp_option *row_of_ncu(int c)
{
    size_t n;
    const struct kp_ncu_option *o = &kp_ncu_options(&n)[c - FIRST_OF_NCU];
    return o->how == KP_NCU_AS ? row_named(o->values) : NULL;
}

/* Checks an option of ncu that asks for what kprof does anyway. */
static int take_any(const struct kp_ncu_option *o, const char *value)
{
    const char *word;
    size_t len;
    bool fine = !value || strchr(o->values, '*');
    for (const char *list = o->values; !fine && kp_word_next(&list, &word, &len);)
        fine = strlen(value) == len && !strncmp(word, value, len);
    return fine ? 0
                : kp_console_error(KP_EXIT_USAGE, "--%s accepts %s, not '%s'; %s", o->flag, o->values, value, o->text);
}

/* Returns the row that getopt_long's value stands for; NULL: none. */
static const struct kp_option *row_of(int c)
{
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    if (c >= FIRST_OF_NCU)
        return row_of_ncu(c);
    if (c >= FIRST_ROW)
        return &rows[c - FIRST_ROW];
    while (n && rows->letter != c) {
        n--;
        rows++;
    }
    return n ? rows : NULL;
}

/* The file of rename-kernels-path is written, and not read. */
static bool exports_names;

/* Handles a flag of a row, or an option of ncu that sets it: some of these name files where the row has folders. */
static int take_value(int c, const struct kp_option *row, const char *value, bool again)
{
    static const struct {
        const char *flag;
        char *(*change)(const char *value);
    } changes[] = {{"resolve-source-file", kp_words_folders_of}, {"section-folder-recursive", kp_words_folders_in}};
    size_t n;
    const char *flag = c < FIRST_OF_NCU ? "" : kp_ncu_options(&n)[c - FIRST_OF_NCU].flag;
    char *changed = NULL;
    if (exports_names && !strcmp(flag, "rename-kernels-path"))
        return 0;
    for (size_t i = 0; value && i < sizeof changes / sizeof *changes; i++)
        if (!strcmp(changes[i].flag, flag) && !(changed = changes[i].change(value)))
            return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    int status = take_flag(row, changed ? changed : value, again);
    free(changed);
    return status;
}

/* ---- what is read before all else ---- */

/* What a first look at the command line finds. */
struct ahead {
    bool imports, no_config;
    const char *config; /* the file of ncu's form */
    const char *names;  /* that of rename-kernels-path */
};

static bool is_yes(const char *value)
{
    return !strcmp(value, "on") || !strcmp(value, "yes") || !strcmp(value, "1");
}

static void note_ahead(int c, const char *value, struct ahead *a)
{
    size_t n;
    const char *flag = c < FIRST_OF_NCU ? "" : kp_ncu_options(&n)[c - FIRST_OF_NCU].flag;
    a->imports |= c == IMPORT;
    if (!strcmp(flag, "config-file"))
        a->no_config = !is_yes(value);
    if (!strcmp(flag, "config-file-path"))
        a->config = value;
    if (!strcmp(flag, "rename-kernels-path"))
        a->names = value;
    if (!strcmp(flag, "rename-kernels-export"))
        exports_names = is_yes(value);
}

/* Writes out an abbreviation that means one option of ncu's, though several of kprof's. Returns false if it does not.
 */
static bool write_out(const struct flags *f, struct kp_words *w)
{
    static char whole[KP_OPTION_NAME_MAX + 4096];
    const char *word = w->at[optind - 1], *flag = NULL;
    size_t n, len = strcspn(word, "=");
    const struct kp_ncu_option *o = kp_ncu_options(&n);
    for (; len > 2 && n; n--, o++)
        if (o->how != KP_NCU_ALIEN && !strncmp(o->flag, word + 2, len - 2)) {
            if (flag)
                return false;
            flag = o->flag;
        }
    bool known = false;
    for (size_t i = 0; flag && f->longs[i].name; i++)
        known |= !strcmp(f->longs[i].name, flag);
    if (!known || (size_t)snprintf(whole, sizeof whole, "--%s%s", flag, word + len) >= sizeof whole)
        return false;
    return !kp_words_put(w, optind - 1, whole);
}

/* Puts in place what stands in files: response files, and the file of options that ncu reads. */
static int look_ahead(struct kp_words *w, const struct flags *f, struct kp_query *q)
{
    struct ahead a = {.no_config = kp_options_face(environ) != KP_FACE_NCU};
    int c = 0, status = 0;
    while (!status) {
        c = getopt_long(w->n, w->at, f->letters, f->longs, NULL);
        bool is_file = c == -1 && optind < w->n && w->at[optind][0] == '@' && strcmp(w->at[optind - 1], "--") != 0;
        if (is_file)
            status = kp_words_take_response(w, optind);
        else if (c == '?' && !optopt && !strncmp(w->at[optind - 1], "--", 2) && write_out(f, w))
            optind--;
        else if (c == -1 || c == '?' || c == ':')
            break;
        else
            note_ahead(c, optarg, &a);
    }
    optind = 0; /* GNU: restarts getopt */
    q->names = !exports_names ? NULL : a.names ? a.names : KP_RENAMES_FILE;
    if (!status && (a.config || !a.no_config))
        status = kp_words_take_config(w, a.config, a.imports);
    return status;
}

/* Reads the section folders and the file of options first, wherever they stand: values may name sections of the
 * folders, and the file may name the folders. */
static int take_folder(const struct kp_words *w, const struct flags *f)
{
    int c, rc = 0;
    bool given = false;
    while (!rc && (c = getopt_long(w->n, w->at, f->letters, f->longs, NULL)) != -1 && c != '?' && c != ':') {
        const struct kp_option *row = row_of(c);
        if (!row || (row->kind != KP_OPT_FOLDER && row->kind != KP_OPT_FILE))
            continue;
        rc = take_value(c, row, optarg, given);
        given |= row->kind == KP_OPT_FOLDER;
    }
    optind = 0; /* GNU: restarts getopt */
    return !rc && !given ? kp_cli_check_folder(kp_option_row(offsetof(struct kp_options, section_folder))) : rc;
}

/* Handles one of the command's own flags. */
static void take_query_flag(const struct kp_query_flag *flag, const char *value, struct kp_query *q)
{
    *(const char **)((char *)q + flag->offset) = *flag->value ? value : flag->flag;
}

/* Handles a flag that is an option, and notes that it was given. `given`: what each row was given. */
static int take_given(int c, const char *value, struct kp_repeated *given)
{
    size_t n;
    const struct kp_option *row = row_of(c);
    if (!row)
        return take_any(&kp_ncu_options(&n)[c - FIRST_OF_NCU], value);
    given += row - kp_option_rows(&n);
    int rc = take_value(c, row, value, given->times > 0);
    kp_repeated_note(given, value ? value : kp_cli_meant_alone(row));
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
static int take_flags(struct kp_words *w, struct kp_query *q)
{
    size_t n, n_queries;
    const struct kp_option *rows = kp_option_rows(&n);
    const struct kp_query_flag *queries = kp_query_flags(&n_queries);
    struct flags f;
    struct kp_repeated given[MAX_ROWS] = {0};
    int c;
    build_flags(&f, rows, n);
    opterr = 0;
    int rc = look_ahead(w, &f, q);
    rc = rc ? rc : take_folder(w, &f);
    while (!rc && (c = getopt_long(w->n, w->at, f.letters, f.longs, NULL)) != -1) {
        if (c == 'h')
            return help(kp_command_find(q->command ? q->command : *w->at));
        if (c == 'v')
            return version();
        if (c == LIST_WORDS)
            return kp_help_words();
        if (c == '?')
            return bad_flag(&f, w->at);
        if (c == ':')
            return kp_console_error(KP_EXIT_USAGE, "option %s needs a value; %s", w->at[optind - 1], KP_TRY_HELP);
        if (c == IMPORT && q->import)
            rc = kp_console_error(KP_EXIT_USAGE, "--import takes one file; `kprof report FILE...` prints several");
        else if (c == IMPORT)
            q->import = optarg;
        else if (c >= FIRST_QUERY && c < FIRST_ROW)
            take_query_flag(&queries[c - FIRST_QUERY], optarg, q);
        else
            rc = take_given(c, optarg, given);
    }
    if (!rc && kp_options_face(environ) != KP_FACE_NCU)
        kp_cli_tell_repeated(given);
    return rc ? rc : -1;
}

static int run_command(const struct kp_command *command, struct kp_words w, struct kp_query *q);

/* Prints the session that the face ncu imports, and writes the names of its kernels if `names` is a file. Its ending
 * may be left out, or be that of ncu's. */
static int import(const char *name, const char *names)
{
    static const char ending[] = ".kprof", of_ncu[] = ".ncu-rep";
    size_t len = strlen(name),
           stem = len - (len > strlen(of_ncu) && !strcmp(name + len - strlen(of_ncu), of_ncu) ? strlen(of_ncu) : 0);
    char report[] = "report", *path = access(name, F_OK) ? kp_asprintf("%.*s%s", (int)stem, name, ending) : NULL,
         *own = path && access(path, F_OK) ? NULL : path,
         *args[] = {report, own ? own : (char *)(uintptr_t)name, NULL}; /* which a command does not change */
    const char *log = getenv("KPROF_LOG_FILE");
    bool to_file = log && kp_options_log_target(log) == KP_LOG_TO_FILE;
    int status = to_file && !freopen(log, "w", stdout)
                     ? kp_console_error(KP_EXIT_FAILED, "cannot write %s: %s", log, strerror(errno))
                     : kp_main_report(2, args);
    const char *force = getenv("KPROF_FORCE_OVERWRITE");
    if (!status && names)
        status = kp_names_export(args[1], names, force && !strcmp(force, "on"));
    free(path);
    return status;
}

/* Returns true if the command line asks for nothing but that clocks are given back, which kprof never took. */
static bool only_resets_clocks(void)
{
    const struct kp_option *row = kp_option_row(offsetof(struct kp_options, clock_control));
    const char *value = getenv("KPROF_CLOCK_CONTROL");
    return value && !strcmp(value, row->words[KP_CLOCKS_RESET]);
}

/* Returns the flag that says what a query is to list; NULL: none was given. */
static const char *subject_of(const struct kp_query *q)
{
    return q->mode               ? "query-metrics-mode"
           : q->collection       ? "query-metrics-collection"
           : q->chip || q->chips ? "chip"
                                 : NULL;
}

/* Handles what follows the flags: a query, or a program, whose name may be a command's if `is_program`. */
static int go_on(const struct kp_words *w, struct kp_query *q, bool is_program)
{
    char **rest = w->at + optind;
    if (!q->command && !*rest && (q->mode || q->collection))
        q->command = "query-metrics";
    if (q->command && *rest)
        return kp_console_error(KP_EXIT_USAGE, "kprof %s does not accept '%s'; " KP_TRY_HELP, q->command, *rest);
    if (q->command) {
        const struct kp_command *command = kp_command_find(q->command);
        kp_idle_tell_answer(command->name, command->heeds, q);
        return command->answer(q);
    }
    if (q->import)
        return import(q->import, q->names);
    if (!*rest && subject_of(q))
        return kp_console_error(
            KP_EXIT_USAGE,
            "--chip says which metrics, sets or sections to list: add --query-metrics, --list-sets or --list-sections");
    if (!*rest && only_resets_clocks())
        return 0;
    if (!*rest) {
        kp_help_usage();
        return kp_console_error(KP_EXIT_USAGE, "no program given; " KP_TRY_HELP);
    }
    bool separated = optind > 1 && !strcmp(rest[-1], "--");
    const struct kp_command *command = is_program || separated ? NULL : kp_command_find(*rest);
    if (command)
        return run_command(command, (struct kp_words){rest, w->n - optind}, q);
    if (subject_of(q))
        return kp_console_error(KP_EXIT_USAGE, "--%s cannot be used with a program; " KP_TRY_HELP, subject_of(q));
    return kp_main_run(rest, kp_command_names());
}

/* Returns true if --help or -h is among the flags. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

/* Runs `kprof COMMAND ...`; the first word is the command. */
static int run_command(const struct kp_command *command, struct kp_words w, struct kp_query *q)
{
    const struct kp_option *face = kp_option_row(offsetof(struct kp_options, face));
    if (command->face && setenv("KPROF_FACE", face->words[command->face], 1))
        return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    if (command->own && asks_for_help(w.n, w.at))
        return kp_help_of(command);
    if (command->own)
        return command->own(w.n, w.at);
    q->command = command->answer ? command->name : NULL;
    optind = 0; /* GNU: restarts getopt with new arguments */
    int status = take_flags(&w, q);
    if (status < 0 && command->prepare && (status = command->prepare()) == 0)
        status = -1;
    return status >= 0 ? status : go_on(&w, q, !command->answer);
}

int kp_main(int argc, char **argv)
{
    struct kp_query q = {0};
    struct kp_words w = {argv, argc};
    kp_commands_know_flags();
    char *slash = strrchr(*argv, '/');
    *argv = slash ? slash + 1 : *argv;
    if (!strcmp(*argv, kp_option_row(offsetof(struct kp_options, face))->words[KP_FACE_NCU]))
        return run_command(kp_command_find(*argv), w, &q);
    int status = take_flags(&w, &q);
    return status >= 0 ? status : go_on(&w, &q, false);
}
