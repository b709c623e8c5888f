#include "report/main.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/options.h"
#include "report/sections.h"
#include "report/version.h"
#include "report/wrap.h"

enum {
    HELP_COLUMN = 32,
    HELP_WIDTH = 100,
    MAX_ROWS = 256,  /* rows of options.def that the arrays here have room for */
    FIRST_ROW = 256, /* getopt_long's value for the first row: above all letters */
};

static const char usage[] = "Usage: kprof [options] [--] program [arguments]\n"
                            "       kprof report FILE\n";
static const char try_help[] = "`kprof --help` lists the options";

int kp_main_error(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("==ERROR== ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return status;
}

static int write_stream(void *arg, const char *text, size_t len)
{
    return fwrite(text, 1, len, arg) == len ? 0 : -EIO;
}

struct kp_sink kp_main_sink(FILE *stream)
{
    return (struct kp_sink){write_stream, stream};
}

/* A switch that is thrown by naming it. */
static bool is_plain_switch(const struct kp_option *row)
{
    return row->kind == KP_OPT_SWITCH && !*row->values;
}

static void name_sets(char *out, size_t size)
{
    FILE *f = fmemopen(out, size, "w");
    if (!f)
        return;
    for (const char *const *set = kp_set_names(); *set; set++)
        fprintf(f, "%s%s", set == kp_set_names() ? " {" : ",", *set);
    fputc('}', f);
    fclose(f);
}

/* How --help names the value of an option. */
static void value_name(const struct kp_option *row, char *out, size_t size)
{
    if (is_plain_switch(row))
        *out = '\0';
    else if (row->kind == KP_OPT_COUNT)
        snprintf(out, size, " N");
    else if (row->kind == KP_OPT_SIZE)
        snprintf(out, size, " SIZE");
    else if (row->kind == KP_OPT_SET)
        name_sets(out, size);
    else
        snprintf(out, size, row->kind == KP_OPT_CHOICE || row->kind == KP_OPT_SWITCH ? " {%s}" : " %s", row->values);
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
    if (*row->fallback && !is_plain_switch(row))
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

int kp_main_help(void)
{
    printf("%s\n"
           "Runs a program with libkprof.so preloaded and reports on every GPU kernel that it launches, or prints\n"
           "the report of a stored session again.\n\n"
           "Each option is also an environment variable, in capitals and with '_' for '-', so that\n"
           "`--launch-skip 5` is KPROF_LAUNCH_SKIP=5; LD_PRELOAD=libkprof.so and these variables do without this\n"
           "command. A switch is on or off there.\n\nOptions:\n",
           usage);
    print_rows(KP_OPT_USER);
    print_option("  -h, --help", "this text");
    print_option("  -v, --version", "the version");
    printf("\nAdvanced:\n");
    print_rows(KP_OPT_ADVANCED);
    return fflush(stdout) ? KP_EXIT_FAILED : EXIT_SUCCESS;
}

static int version(void)
{
    printf("kprof %s\n", KP_VERSION);
    return fflush(stdout) ? KP_EXIT_FAILED : EXIT_SUCCESS;
}

/* getopt's view of the rows. */
struct flags {
    struct option longs[MAX_ROWS + 3];
    char letters[2 * MAX_ROWS + 8];
};

static void build_flags(struct flags *f, const struct kp_option *rows, size_t n)
{
    char *letter = stpcpy(f->letters, "+:hv"); /* stop at the program; tell a missing value from an unknown flag */
    for (size_t i = 0; i < n; i++) {
        bool is_switch = is_plain_switch(&rows[i]);
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
    f->longs[n + 2] = (struct option){0};
}

/* What getopt_long did not understand, or gave no value to. */
static int bad_flag(const struct flags *f, char *const *argv)
{
    if (optopt && optopt < FIRST_ROW && strncmp(argv[optind - 1], "--", 2))
        return kp_main_error(KP_EXIT_USAGE, "unknown option -%c; %s", optopt, try_help);
    const char *names[MAX_ROWS + 3] = {0}, *word = argv[optind - 1] + 2;
    for (size_t i = 0; f->longs[i].name; i++)
        names[i] = f->longs[i].name;
    int len = (int)strcspn(word, "=");
    if (optopt)
        return kp_main_error(KP_EXIT_USAGE, "--%.*s takes no value", len, word);
    char *name = strndup(word, (size_t)len);
    const char *near = name ? kp_nearest(name, names) : NULL;
    free(name);
    if (near)
        return kp_main_error(KP_EXIT_USAGE, "unknown option --%.*s; did you mean --%s?", len, word, near);
    return kp_main_error(KP_EXIT_USAGE, "unknown option --%.*s; %s", len, word, try_help);
}

static int take_flag(const struct kp_option *row, const char *value)
{
    char name[KP_OPTION_NAME_MAX], shown[KP_OPTION_NAME_MAX], *err = NULL;
    snprintf(shown, sizeof shown, "--%s", row->flag);
    kp_option_env_name(row, name);
    value = value ? value : "on";
    int rc = kp_option_check(row, shown, value, &err);
    if (rc == -EINVAL)
        kp_main_error(0, "%s", err);
    free(err);
    if (rc || setenv(name, value, 1))
        return rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
    return 0;
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

/* Puts the flags into the environment. Returns -1 when a program or a command is to be run, else an exit status. */
static int take_flags(int argc, char **argv)
{
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    struct flags f;
    int c, rc = 0;
    build_flags(&f, rows, n);
    opterr = 0;
    while (!rc && (c = getopt_long(argc, argv, f.letters, f.longs, NULL)) != -1) {
        if (c == 'h')
            return kp_main_help();
        if (c == 'v')
            return version();
        if (c == '?')
            return bad_flag(&f, argv);
        if (c == ':')
            return kp_main_error(KP_EXIT_USAGE, "option %s needs a value; %s", argv[optind - 1], try_help);
        rc = take_flag(row_of(c, rows, n), optarg);
    }
    return rc ? rc : -1;
}

int main(int argc, char **argv)
{
    int status = take_flags(argc, argv);
    if (status >= 0)
        return status;
    if (optind == argc) {
        fputs(usage, stderr);
        return kp_main_error(KP_EXIT_USAGE, "no program given; %s", try_help);
    }
    bool separated = optind > 1 && !strcmp(argv[optind - 1], "--");
    if (!separated && !strcmp(argv[optind], KP_MAIN_REPORT))
        return kp_main_report(argc - optind, argv + optind);
    return kp_main_run(argv + optind);
}
