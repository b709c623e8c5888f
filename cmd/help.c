#include "cmd/help.h"

#include <stdio.h>
#include <string.h>

#include "base/failures.h"
#include "base/wrap.h"
#include "cmd/console.h"
#include "cmd/flags.h"
#include "cmd/main.h"
#include "cmd/query.h"
#include "report/define/sections.h"
#include "report/judge/rules.h"
#include "report/options/options.h"

enum { HELP_COLUMN = 32, HELP_WIDTH = 100, VALUE_MAX = 128, TEXT_MAX = 1024 };

static const char usage[] = "Usage: kprof [run] [options] [--] program [arguments]\n"
                            "       kprof series --vary NAME=LIST [options] [--] program [arguments]\n"
                            "       kprof report [options] FILE...\n"
                            "       kprof diff [options] A B...\n"
                            "       kprof doctor\n"
                            "       kprof {query-metrics,list-sets,list-sections,list-rules,list-chips} [options]\n";

void kp_help_usage(void)
{
    fputs(usage, stderr);
}

static void join_words(const char *const *words, char *out, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; words[i] && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i ? "," : " {", words[i]);
    if (len < size)
        snprintf(out + len, size - len, "}");
}

/* Names the value of an option for --help. */
static void value_name(const struct kp_option *row, char *out, size_t size)
{
    if (kp_flags_is_plain_switch(row))
        *out = '\0';
    else if (row->kind == KP_OPT_COUNT || row->kind == KP_OPT_AUTO_COUNT)
        snprintf(out, size, " N");
    else if (row->kind == KP_OPT_SIZE)
        snprintf(out, size, " SIZE");
    else if (row->kind == KP_OPT_SET)
        join_words(kp_set_names(), out, size);
    else if (row->words)
        join_words(row->words, out, size);
    else
        snprintf(out, size, row->kind == KP_OPT_SWITCH ? " {%s}" : " %s", row->values);
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
    char letter[8] = "    ", value[VALUE_MAX] = "", flags[VALUE_MAX + 96], text[TEXT_MAX];
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    value_name(row, value, sizeof value);
    snprintf(flags, sizeof flags, "  %s--%s%s", letter, row->flag, value);
    if (*row->fallback && !kp_flags_is_plain_switch(row))
        snprintf(text, sizeof text, "%s (default %s)", row->help, row->fallback);
    else
        snprintf(text, sizeof text, "%s", row->help);
    print_option(flags, text);
}

static void print_rows(bool for_tools)
{
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    for (size_t i = 0; i < n; i++)
        if ((rows[i].group == KP_OPT_TOOLS) == for_tools)
            print_row(&rows[i]);
}

static void print_query_flags(void)
{
    size_t n;
    const struct kp_query_flag *f = kp_query_flags(&n);
    for (; n; n--, f++) {
        char flags[64];
        snprintf(flags, sizeof flags, "      --%s%s", f->flag, f->value);
        print_option(flags, f->help);
    }
}

static void print_own_flags(const struct kp_own_flag *own, size_t n)
{
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

int kp_help(void)
{
    printf("%s\n"
           "Runs a program with libkprof.so preloaded and reports on every GPU kernel that it launches, prints the\n"
           "report of stored sessions again, compares two of them, lists what can be collected, or says what would\n"
           "stop profiling here (doctor).\n\n"
           "Each option is also an environment variable, in capitals and with '_' for '-', so that\n"
           "`--launch-skip 5` is KPROF_LAUNCH_SKIP=5; LD_PRELOAD=libkprof.so and these variables do without this\n"
           "command. A switch is on or off there.\n\nOptions:\n",
           usage);
    print_rows(false);
    print_option("  -h, --help", "this text");
    print_option("  -v, --version", "the version");
    printf("\nWhat can be collected, on any chip, without a GPU:\n");
    print_query_flags();
    const struct kp_own_flags own = kp_main_own_flags();
    printf("\nWhat `kprof report` takes beside those of the options that are about sessions:\n");
    print_own_flags(own.report, own.n_report);
    printf("\nWhat `kprof diff` takes beside set, section, metrics, print-details and the like:\n");
    print_own_flags(own.diff, own.n_diff);
    print_statuses();
    printf("\nAdvanced:\n");
    print_rows(true);
    return kp_console_end(0, NULL);
}

static void list_options(void)
{
    static const char *const kinds[] = {
#define KP_OPTION(field, flag, letter, kind, fallback, values, group, help) #kind,
#define KP_CHOICE(field, tag, flag, letter, fallback, values, group, help)  "CHOICE",
#define KP_CHOICES(field, tag, flag, letter, fallback, values, group, help) "CHOICES",
#include "report/options/options.def"
    };
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    for (size_t i = 0; i < n; i++, row++) {
        char env[KP_OPTION_NAME_MAX], value[VALUE_MAX];
        kp_option_env_name(row, env);
        value_name(row, value, sizeof value);
        printf("option\t%s\t%.1s\t%s\t%s\t%s\t%s\t%s\t%s\n", row->flag, &row->letter, env, kinds[i],
               *value ? value + 1 : value, kp_flags_is_plain_switch(row) ? "" : row->fallback,
               row->group == KP_OPT_TOOLS ? "advanced" : "user", row->help);
    }
}

static bool is_query(const char *command)
{
    size_t n;
    const struct kp_query_flag *f = kp_query_flags(&n);
    while (n && strcmp(f->flag, command)) {
        n--;
        f++;
    }
    return n;
}

/* Lists the options of a sub-command. Queries take those of a run, too, and are left out here. */
static void list_takes(const char *command)
{
    enum kp_option_group least = !strcmp(command, "diff")     ? KP_OPT_DIFF
                                 : !strcmp(command, "report") ? KP_OPT_REPORT
                                                              : KP_OPT_TOOLS;
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    for (; n; n--, row++)
        if (row->group >= least)
            printf("takes\t%s\t%s\n", command, row->flag);
}

static void list_own(const char *command, const struct kp_own_flag *flags, size_t n)
{
    for (; n; n--, flags++)
        printf("own\t%s\t%s\t%s\t%s\n", command, flags->flag, *flags->value ? flags->value + 1 : "", flags->help);
}

int kp_help_words(const char *const *commands)
{
    size_t sections, rules;
    const struct kp_section *section = kp_sections(&sections);
    const struct kp_rule *rule = kp_rules(&rules);
    list_options();
    size_t queries;
    const struct kp_query_flag *f = kp_query_flags(&queries);
    for (; queries; queries--, f++)
        printf("query\t%s\t%s\t%s\n", f->flag, *f->value ? f->value + 1 : f->value, f->help);
    const struct kp_own_flags own = kp_main_own_flags();
    list_own("report", own.report, own.n_report);
    list_own("diff", own.diff, own.n_diff);
    for (; *commands; commands++) {
        printf("command\t%s\n", *commands);
        if (!is_query(*commands))
            list_takes(*commands);
    }
    for (const char *const *set = kp_set_names(); *set; set++)
        printf("set\t%s\n", *set);
    for (size_t i = 0; i < sections; i++)
        printf("section\t%s\n", section[i].id);
    for (size_t i = 0; i < rules; i++)
        printf("rule\t%s\n", rule[i].id);
    for (size_t i = 0; i < KP_FAILURES; i++)
        printf("status\t%d\t%s\t%s\n", kp_failure_rows[i].status, kp_failure_rows[i].name, kp_failure_rows[i].text);
    return kp_console_end(0, NULL);
}
