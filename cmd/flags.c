#include "cmd/flags.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/text.h"
#include "cmd/console.h"
#include "cmd/idle.h"
#include "cmd/query.h"
#include "cmd/repeated.h"
#include "report/options/ncu.h"
#include "report/options/options.h"

enum {
    MAX_FLAGS = 256,                    /* most flags of a sub-command */
    FIRST_FLAG = 256,                   /* getopt_long's value for the first row: above all letters */
    FIRST_OWN = FIRST_FLAG + MAX_FLAGS, /* and for the first flag of the sub-command's own */
};

bool kp_cli_is_plain_switch(const struct kp_option *row)
{
    return row->kind == KP_OPT_SWITCH && !*row->values;
}

const char *kp_cli_meant_alone(const struct kp_option *row)
{
    return kp_cli_is_plain_switch(row)                              ? "on"
           : row->offset == offsetof(struct kp_options, call_stack) ? row->words[KP_CALL_STACK_NATIVE]
                                                                    : NULL;
}

/* Lists the flags that begin with a word: `--a, --b or --c`; empty if there is none. */
static void list_longer(const char *word, size_t len, const char *const *names, FILE *to)
{
    size_t n = 0;
    for (size_t i = 0; names[i]; i++)
        n += !strncmp(names[i], word, len);
    for (size_t i = 0; names[i]; i++)
        if (!strncmp(names[i], word, len))
            fprintf(to, "--%s%s", names[i], --n > 1 ? ", " : n ? " or " : "");
}

char *kp_cli_meant(const char *word, const char *const *names)
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

int kp_cli_check_folder(const struct kp_option *row)
{
    char name[KP_OPTION_NAME_MAX], *err = NULL;
    kp_option_env_name(row, name);
    char *value = kp_options_value(environ, name);
    int rc = value ? kp_option_check(row, name, value, &err) : 0;
    if (rc)
        rc = kp_console_error(KP_EXIT_USAGE, "%s", err ? err : strerror(ENOMEM));
    free(value);
    free(err);
    return rc;
}

int kp_cli_take_choice(const char *flag, const char *value, const char *const choices[], size_t *out)
{
    char *err = NULL, *head = NULL;
    for (*out = 0; choices[*out]; ++*out)
        if (!strcmp(choices[*out], value))
            return 0;
    head = kp_asprintf("--%s: unknown value", flag);
    kp_error_choice(&err, head ? head : flag, value, choices);
    kp_console_error(0, "%s", err ? err : strerror(ENOMEM));
    free(head);
    free(err);
    return KP_EXIT_USAGE;
}

const char *kp_cli_separator(const struct kp_option *row)
{
    switch (row->kind) {
    case KP_OPT_RANGES:
    case KP_OPT_VARY:
        return ";";
    case KP_OPT_SECTIONS:
    case KP_OPT_RULES:
    case KP_OPT_NAMES:
    case KP_OPT_PATTERNS:
    case KP_OPT_DEVICES:
        return ",";
    case KP_OPT_PATHS:
    case KP_OPT_FOLDER:
        return ":";
    case KP_OPT_CHOICES:
        return row->offset == offsetof(struct kp_options, call_stack) ? "," : NULL;
    default:
        return NULL;
    }
}

char *kp_cli_joined(const struct kp_option *row, const char *before, const char *value)
{
    return kp_asprintf("%s%s%s", before, kp_cli_separator(row), value);
}

void kp_cli_tell_repeated(const struct kp_repeated *given)
{
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    for (; n; n--, row++, given++)
        if (!kp_cli_separator(row))
            kp_repeated_tell(given, row->flag, row);
}

/* ---- owners of flags ---- */

/* The sub-commands that accept the options of a group. */
static const char *const takers[] = {
    [KP_OPT_TOOLS] = "it belongs to `kprof run`",
    [KP_OPT_RUN] = "it belongs to `kprof run`",
    [KP_OPT_REPORT] = "it belongs to `kprof run` and `kprof report`",
    [KP_OPT_DIFF] = "it belongs to `kprof run`, `kprof report` and `kprof diff`",
};

static bool has_flag(const struct kp_own_flag *flags, size_t n, const char *flag)
{
    while (n && strcmp(flags->flag, flag) != 0) {
        flags++;
        n--;
    }
    return n;
}

static const struct kp_own_flags *owners;
static size_t n_owners;

void kp_cli_know(const struct kp_own_flags *all, size_t n)
{
    owners = all;
    n_owners = n;
}

/* Does the same as kp_cli_home for flags that are not options. */
static const char *home_of_own(const char *flag)
{
    static char text[128];
    size_t len = 0;
    for (size_t i = 0; i < n_owners; i++)
        if (has_flag(owners[i].at, owners[i].n, flag) && len < sizeof text)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s`kprof %s`", len ? " and " : "it belongs to ",
                                    owners[i].command);
    return len ? text : NULL;
}

const char *kp_cli_home(const char *flag)
{
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    for (; n; n--, row++)
        if (row->group != KP_OPT_HANDOVER && !strcmp(row->flag, flag))
            return takers[row->group];
    const struct kp_query_flag *query = kp_query_flags(&n);
    for (; n; n--, query++)
        if (!strcmp(query->flag, flag))
            return "it belongs to `kprof query-metrics` and the lists, such as `kprof list-sets`";
    return home_of_own(flag);
}

static const char *home_of_letter(int letter)
{
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    for (; n; n--, row++)
        if (letter && row->letter == letter)
            return takers[row->group];
    return NULL;
}

/* ---- parsing flags ---- */

/* Returns the row with the short flag. */
static size_t row_of_letter(int letter)
{
    size_t n, i = 0;
    const struct kp_option *rows = kp_option_rows(&n);
    while (rows[i].letter != letter)
        i++;
    return i;
}

/* Lists the flags for getopt; returns the number of long ones. */
static size_t list_flags(const struct kp_cli_of *f, struct option longs[MAX_FLAGS + 1], char letters[2 * MAX_FLAGS + 2])
{
    size_t n = 0, n_rows;
    const struct kp_option *rows = kp_option_rows(&n_rows);
    letters = stpcpy(letters, ":");
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].group < f->least)
            continue;
        int argument = kp_cli_meant_alone(&rows[i]) ? optional_argument : required_argument;
        longs[n++] = (struct option){rows[i].flag, argument, NULL, FIRST_FLAG + (int)i};
        if (rows[i].letter)
            letters = stpcpy(letters, (char[]){rows[i].letter, argument == required_argument ? ':' : '\0', '\0'});
    }
    for (size_t i = 0; i < f->n_own; i++)
        longs[n++] = (struct option){f->own[i].flag, *f->own[i].value ? required_argument : no_argument, NULL,
                                     FIRST_OWN + (int)i};
    longs[n] = (struct option){0};
    return n;
}

/* Returns advice on a flag that the sub-command does not accept; malloc'ed. `word`: as given, with its dashes. */
static char *advice_on(const struct option *longs, size_t n, const char *word)
{
    const char *flags[MAX_FLAGS + 1] = {0}, *known = NULL;
    if (!strncmp(word, "--", 2)) {
        char *flag = strndup(word + 2, strcspn(word + 2, "="));
        known = flag ? kp_ncu_instead(flag) : NULL;
        if (flag && !known)
            known = kp_cli_home(flag);
        free(flag);
        for (size_t i = 0; i < n; i++)
            flags[i] = longs[i].name;
        return known ? strdup(known) : kp_cli_meant(word + 2, flags);
    }
    known = kp_ncu_instead_of_letter(optopt);
    known = known ? known : home_of_letter(optopt);
    return known ? strdup(known) : NULL;
}

static int unknown_flag(const struct kp_cli_of *f, const struct option *longs, size_t n, const char *word)
{
    bool is_long = !strncmp(word, "--", 2);
    char *advice = advice_on(longs, n, word), letter[] = {'-', (char)optopt, '\0'};
    const char *shown = is_long ? word : letter; /* letters may be combined */
    int status = kp_console_error(KP_EXIT_USAGE,
                                  advice ? "kprof %s has no option %s; %s" : "kprof %s has no option %s; it accepts %s",
                                  f->command, shown, advice ? advice : f->takes);
    free(advice);
    return status;
}

/* Checks the flag's value, else that of the environment; puts the flag's value into the environment. 0 or an exit
 * status. */
static int take_option(const struct kp_option *row, const char *flag)
{
    char name[KP_OPTION_NAME_MAX], shown[KP_OPTION_NAME_MAX], *err = NULL;
    if (!flag && row->kind == KP_OPT_FOLDER)
        return kp_cli_check_folder(row);
    kp_option_env_name(row, name);
    snprintf(shown, sizeof shown, flag ? "--%s" : "%s", flag ? row->flag : name);
    const char *value = flag ? flag : getenv(name);
    int rc = value ? kp_option_check(row, shown, value, &err) : 0;
    if (rc == -EINVAL)
        kp_console_error(0, "%s", err);
    free(err);
    if (rc || (flag && setenv(name, flag, 1)))
        return rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
    if (flag)
        kp_idle_note(row);
    return 0;
}

/* Reads `folders` first, then all others: values may name sections of the section folder. */
static int take_options(const struct kp_cli_of *f, const char *const *values, bool folders)
{
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    int status = 0;
    for (size_t i = 0; !status && i < n; i++)
        if (rows[i].group >= f->least && (rows[i].kind == KP_OPT_FOLDER) == folders)
            status = take_option(&rows[i], values[i]);
    return status;
}

/* What the flags say: a row of the options each. */
struct values {
    const char *at[MAX_FLAGS];
    char *owned[MAX_FLAGS]; /* to be freed */
    struct kp_repeated given[MAX_FLAGS], given_own[MAX_FLAGS];
};

/* Notes the value of a flag: added to what it was given before, or in its place. 0 or -ENOMEM. */
static int keep_value(size_t row, const char *value, struct values *v)
{
    size_t n;
    const struct kp_option *of = &kp_option_rows(&n)[row];
    value = value ? value : kp_cli_meant_alone(of);
    char *whole = v->at[row] && kp_cli_separator(of) ? kp_cli_joined(of, v->at[row], value) : strdup(value);
    free(v->owned[row]);
    v->at[row] = v->owned[row] = whole;
    kp_repeated_note(&v->given[row], value);
    return whole ? 0 : -ENOMEM;
}

/* Handles the sub-command's own flag. */
static int take_own(const struct kp_cli_of *f, size_t i, const char *value, struct values *v)
{
    if (value)
        kp_repeated_note(&v->given_own[i], value);
    return f->own[i].take(value, f->arg);
}

/* Reads the flags into *v. Returns 0, or an exit status after reporting why. */
static int read_flags(const struct kp_cli_of *f, int argc, char **argv, struct values *v)
{
    struct option longs[MAX_FLAGS + 1];
    char letters[2 * MAX_FLAGS + 2];
    size_t n = list_flags(f, longs, letters);
    int c, status = 0;
    optind = 0; /* restarts getopt, after the command's own flags */
    opterr = 0;
    while (!status && (c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (c == ':')
            return kp_console_error(KP_EXIT_USAGE, "option %s needs a value; " KP_TRY_HELP, argv[optind - 1]);
        if (c == '?')
            return unknown_flag(f, longs, n, argv[optind - 1]);
        if (c >= FIRST_OWN)
            status = take_own(f, (size_t)(c - FIRST_OWN), optarg, v);
        else if (keep_value(c < FIRST_FLAG ? row_of_letter(c) : (size_t)(c - FIRST_FLAG), optarg, v))
            status = kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    }
    return status;
}

int kp_cli_take(const struct kp_cli_of *f, int argc, char **argv)
{
    struct values v = {0};
    int status = read_flags(f, argc, argv, &v);
    if (!status)
        status = take_options(f, v.at, true);
    if (!status)
        status = take_options(f, v.at, false);
    if (!status)
        kp_cli_tell_repeated(v.given);
    for (size_t i = 0; !status && i < f->n_own; i++)
        if (!f->own[i].adds)
            kp_repeated_tell(&v.given_own[i], f->own[i].flag, NULL);
    for (size_t i = 0; i < MAX_FLAGS; i++)
        free(v.owned[i]);
    return status;
}
