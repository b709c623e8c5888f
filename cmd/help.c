#include "cmd/help.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/failures.h"
#include "base/terminal.h"
#include "base/wrap.h"
#include "cmd/commands.h"
#include "cmd/console.h"
#include "cmd/flags.h"
#include "cmd/query.h"
#include "report/define/sections.h"
#include "report/judge/rules.h"
#include "report/options/ncu.h"
#include "report/options/options.h"

enum { HELP_COLUMN = 32, HELP_WIDTH = 100, HELP_NARROWEST = 40, HELP_INDENT = 8, VALUE_MAX = 128, TEXT_MAX = 1024 };

static const char usage[] =
    "Usage: kprof [run] [options] [--] program [arguments]\n"
    "       kprof ncu [options of ncu] [--] program [arguments]\n"
    "       kprof series --vary NAME=LIST [options] [--] program [arguments]\n"
    "       kprof report [options] FILE...\n"
    "       kprof diff [options] A B...\n"
    "       kprof doctor\n"
    "       kprof {query-metrics,list-sets,list-sections,list-metrics,list-rules,list-chips} [options]\n";

void kp_help_usage(void)
{
    fputs(usage, stderr);
}

static size_t help_width(void)
{
    size_t width = kp_terminal_width(STDOUT_FILENO);
    return !width || width > HELP_WIDTH ? HELP_WIDTH : width > HELP_NARROWEST ? width : HELP_NARROWEST;
}

/* Prints a text in lines of `width`; the first continues at `at`, the others begin in the column `indent`. */
static void print_text(const char *text, size_t at, size_t indent, size_t width)
{
    struct kp_wrap w = {text, width - indent};
    const char *line;
    size_t len;
    for (bool first = true; kp_wrap_next(&w, &line, &len); first = false)
        printf("%*s%.*s\n", (int)(first ? indent - at : indent), "", (int)len, line);
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
    if (kp_cli_is_plain_switch(row))
        *out = '\0';
    else if (row->kind == KP_OPT_COUNT || row->kind == KP_OPT_AUTO_COUNT)
        snprintf(out, size, " N");
    else if (row->kind == KP_OPT_SIZE)
        snprintf(out, size, " SIZE");
    else if (row->kind == KP_OPT_SET)
        join_words(kp_set_names(), out, size);
    else if (row->words) {
        size_t opened = kp_cli_meant_alone(row) ? (size_t)snprintf(out, size, "[=") : 0;
        join_words(row->words, out + opened, size - opened - 1);
        if (opened) {
            out[opened] = '{'; /* in place of the blank before it */
            memmove(out + opened, out + opened + 1, strlen(out + opened));
            strcat(out, "]");
        }
    } else
        snprintf(out, size, row->kind == KP_OPT_SWITCH ? " {%s}" : " %s", row->values);
}

/* Prints flags whose line is too long: it may be broken after a comma of their words, too. */
static void print_flags(const char *flags, size_t width)
{
    while (strlen(flags) > width) {
        size_t cut = width;
        while (cut > width / 2 && !strchr(", ", flags[cut - 1]))
            cut--;
        printf("%.*s\n%*s", (int)cut, flags, HELP_INDENT, "");
        flags += cut;
        width -= width == help_width() ? HELP_INDENT : 0;
    }
    puts(flags);
}

/* A narrow terminal has the text below the flags. */
static void print_option(const char *flags, const char *text)
{
    size_t width = help_width(), used = strlen(flags), column = width < 2 * HELP_COLUMN ? HELP_INDENT : HELP_COLUMN;
    if (used >= column) {
        print_flags(flags, width);
        used = 0;
    } else {
        fputs(flags, stdout);
    }
    print_text(text, used, column, width);
}

static void print_row(const struct kp_option *row)
{
    char letter[8] = "    ", value[VALUE_MAX] = "", flags[VALUE_MAX + 96], text[TEXT_MAX];
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    value_name(row, value, sizeof value);
    snprintf(flags, sizeof flags, "  %s--%s%s", letter, row->flag, value);
    if (*row->fallback && !kp_cli_is_plain_switch(row))
        snprintf(text, sizeof text, "%s (default %s)", row->help, row->fallback);
    else
        snprintf(text, sizeof text, "%s", row->help);
    print_option(flags, text);
}

static void print_rows(void)
{
    size_t n;
    const struct kp_option *rows = kp_option_rows(&n);
    for (size_t i = 0; i < n; i++)
        if (rows[i].group > KP_OPT_TOOLS)
            print_row(&rows[i]);
}

static void print_query_flag(const struct kp_query_flag *f)
{
    char flags[64];
    snprintf(flags, sizeof flags, "      --%s%s", f->flag, f->value);
    print_option(flags, f->help);
}

static void print_query_flags(void)
{
    size_t n;
    const struct kp_query_flag *f = kp_query_flags(&n);
    for (; n; n--, f++)
        print_query_flag(f);
}

/* Prints the flags that only this sub-command accepts. */
static void print_own_flags(const struct kp_command *command)
{
    size_t n;
    for (const struct kp_own_flag *own = command->flags(&n); n; n--, own++) {
        char flags[64];
        snprintf(flags, sizeof flags, "      --%s%s", own->flag, own->value);
        print_option(flags, own->help);
    }
}

static void print_title(const char *title)
{
    putchar('\n');
    print_text(title, 0, 0, help_width());
}

static void print_usage(size_t width)
{
    char line[128];
    for (const char *at = usage, *end; (end = strchr(at, '\n')); at = end + 1) {
        snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
        print_flags(line, width);
    }
}

/* Prints the flags of all sub-commands that have some. */
static void print_all_own_flags(void)
{
    size_t n;
    for (const struct kp_command *c = kp_commands(&n); n; n--, c++) {
        char title[TEXT_MAX];
        if (!c->flags)
            continue;
        snprintf(title, sizeof title, "What `kprof %s` accepts in addition to %s:", c->name, c->topic->beside);
        print_title(title);
        print_own_flags(c);
    }
}

static void print_statuses(void)
{
    print_title("Exit statuses with --strict, if the program's is 0:");
    for (size_t i = 0; i < KP_FAILURES; i++) {
        char status[32];
        snprintf(status, sizeof status, "  %d  %s", kp_failure_rows[i].status, kp_failure_rows[i].name);
        print_option(status, kp_failure_rows[i].text);
    }
}

/* Says what an option of ncu's does. */
static void print_of_ncu(const struct kp_ncu_option *o)
{
    static const char *const means[] = {[KP_NCU_SAME] = "the same",
                                        [KP_NCU_AS] = "",
                                        [KP_NCU_FILE] = "",
                                        [KP_NCU_ANY] = "accepted, without an effect: ",
                                        [KP_NCU_NOT] = "not there: "};
    char letter[8] = "    ", flags[96], text[TEXT_MAX];
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    bool some = o->how != KP_NCU_AS && *o->values && !strchr(o->values, '*');
    snprintf(flags, sizeof flags, "  %s--%s%s%s", letter, o->flag, some ? " " : "", some ? o->values : "");
    snprintf(text, sizeof text, "%s%s%s", means[o->how], o->how == KP_NCU_SAME && *o->text ? "; " : "", o->text);
    print_option(flags, text);
}

static void print_all_of_ncu(void)
{
    size_t n;
    print_title("The options of ncu, and what they are here:");
    for (const struct kp_ncu_option *o = kp_ncu_options(&n); n; n--, o++)
        if (o->how != KP_NCU_ALIEN)
            print_of_ncu(o);
}

int kp_help(void)
{
    size_t width = help_width();
    print_usage(width);
    putchar('\n');
    print_text("Runs a program with libkprof.so preloaded and reports on every GPU kernel that it launches; prints or "
               "compares stored sessions (report, diff); lists what can be collected; says what would prevent "
               "profiling here (doctor).",
               0, 0, width);
    putchar('\n');
    print_text("Each option is also an environment variable, in capitals and with '_' for '-': `--launch-skip 5` is "
               "KPROF_LAUNCH_SKIP=5. With LD_PRELOAD=libkprof.so and these variables, this command is not needed. "
               "There, a switch is on or off.",
               0, 0, width);
    puts("\nOptions:");
    print_rows();
    print_option("  -h, --help", "this text; `kprof report --help` and the like show the options of one command");
    print_option("  -v, --version", "the version");
    print_title("What can be collected, on any chip, without a GPU:");
    print_query_flags();
    print_all_own_flags();
    print_statuses();
    print_all_of_ncu();
    return kp_console_end(0, NULL);
}

/* Prints usage and purpose of a query without a topic: what its flag says. */
static void print_query_topic(const struct kp_command *command)
{
    size_t n;
    char line[TEXT_MAX];
    const struct kp_query_flag *f = kp_query_flags(&n);
    printf("Usage: kprof %s [options]\n", command->name);
    for (; n; n--, f++)
        if (!strcmp(f->flag, command->name)) {
            snprintf(line, sizeof line, "%c%s.", toupper((unsigned char)*f->help), f->help + 1);
            print_title(line);
        }
}

/* Prints the options that the sub-command accepts, in their order, and flags of the queries among them. */
static void print_taken(const struct kp_command *command)
{
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    puts("\nOptions:");
    for (; n; n--, row++)
        if (row->group > KP_OPT_TOOLS && row->group >= command->least && kp_command_heeds(command, row->flag))
            print_row(row);
    const struct kp_query_flag *f = kp_query_flags(&n);
    for (; command->heeds && n; n--, f++)
        if (kp_command_heeds(command, f->flag))
            print_query_flag(f);
    print_option("  -h, --help", "this text");
}

int kp_help_of(const struct kp_command *command)
{
    if (command->topic) {
        print_flags(command->topic->usage, help_width());
        print_title(command->topic->text);
    } else {
        print_query_topic(command);
    }
    if (command->flags) {
        printf("\nOptions of kprof %s alone:\n", command->name);
        print_own_flags(command);
    }
    print_taken(command);
    print_title("`kprof --help` has the options of a run, too, and says how each is set in the environment.");
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
        if (row->group <= KP_OPT_TOOLS)
            continue;
        printf("option\t%s\t%.1s\t%s\t%s\t%s\t%s\t%s\t%s\n", row->flag, &row->letter, env, kinds[i],
               *value ? value + 1 : value, kp_cli_is_plain_switch(row) ? "" : row->fallback, "user", row->help);
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

/* Lists the options of a sub-command: for a query those that affect it. Queries are left out here. */
static void list_takes(const struct kp_command *command)
{
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    for (; n; n--, row++)
        if (row->group > KP_OPT_TOOLS && row->group >= command->least &&
            (!command->answer || kp_command_heeds(command, row->flag)))
            printf("takes\t%s\t%s\n", command->name, row->flag);
}

static void list_own(const struct kp_command *command)
{
    size_t n = 0;
    const struct kp_own_flag *own = command->flags ? command->flags(&n) : NULL;
    for (; n; n--, own++)
        printf("own\t%s\t%s\t%s\t%s\n", command->name, own->flag, *own->value ? own->value + 1 : "", own->help);
}

static void list_commands(void)
{
    size_t n;
    const struct kp_command *command = kp_commands(&n);
    for (size_t i = 0; i < n; i++)
        list_own(&command[i]);
    for (; n; n--, command++) {
        printf("command\t%s\n", command->name);
        if (!is_query(command->name))
            list_takes(command);
    }
}

static void list_of_ncu(void)
{
    static const char *const hows[] = {[KP_NCU_SAME] = "same", [KP_NCU_AS] = "as",   [KP_NCU_ANY] = "any",
                                       [KP_NCU_FILE] = "file", [KP_NCU_NOT] = "not", [KP_NCU_ALIEN] = "alien"};
    size_t n;
    for (const struct kp_ncu_option *o = kp_ncu_options(&n); n; n--, o++)
        printf("ncu\t%s\t%s\t%s\t%s\n", o->flag, hows[o->how], o->values, o->text);
}

int kp_help_words(void)
{
    size_t sections, rules;
    const struct kp_section *section = kp_sections(&sections);
    const struct kp_rule *rule = kp_rules(&rules);
    list_options();
    size_t queries;
    const struct kp_query_flag *f = kp_query_flags(&queries);
    for (; queries; queries--, f++)
        printf("query\t%s\t%s\t%s\n", f->flag, *f->value ? f->value + 1 : f->value, f->help);
    list_commands();
    for (const char *const *set = kp_set_names(); *set; set++)
        printf("set\t%s\n", *set);
    for (size_t i = 0; i < sections; i++)
        printf("section\t%s\n", section[i].id);
    for (size_t i = 0; i < rules; i++)
        printf("rule\t%s\n", rule[i].id);
    for (size_t i = 0; i < KP_FAILURES; i++)
        printf("status\t%d\t%s\t%s\n", kp_failure_rows[i].status, kp_failure_rows[i].name, kp_failure_rows[i].text);
    list_of_ncu();
    return kp_console_end(0, NULL);
}
