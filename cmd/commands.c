#include "cmd/commands.h"

#include <string.h>

#include "cmd/query.h"

static int doctor(const struct kp_query *q)
{
    (void)q;
    return kp_main_doctor();
}

static const struct kp_command_topic of_report = {
    "Usage: kprof report [options] FILE...",
    "Prints the report of stored sessions again, which `kprof -o FILE program` makes, also on a machine without a GPU.",
    "those of the options that are about sessions",
};

static const struct kp_command_topic of_diff = {
    "Usage: kprof diff [options] A B...",
    "Compares stored sessions, which `kprof -o FILE program` makes, launch by launch or kernel by kernel. The exit "
    "status is 0, or 1 when a limit of --fail-above was exceeded or nothing could be compared; 2 means wrong use.",
    "set, section, metrics, print-details and the like",
};

static const struct kp_command commands[] = {
    {"run", NULL, NULL, NULL, NULL, NULL, KP_OPT_TOOLS},
    {"series", kp_main_series, NULL, NULL, NULL, NULL, KP_OPT_TOOLS},
    {"report", NULL, kp_main_report, NULL, kp_main_report_flags, &of_report, KP_OPT_REPORT},
    {"diff", NULL, kp_main_diff, NULL, kp_main_diff_flags, &of_diff, KP_OPT_DIFF},
    {"doctor", NULL, NULL, doctor, NULL, NULL, KP_OPT_TOOLS},
    {"query-metrics", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS},
    {"list-sets", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS},
    {"list-sections", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS},
    {"list-rules", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS},
    {"list-chips", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

const struct kp_command *kp_commands(size_t *n)
{
    *n = COMMANDS;
    return commands;
}

const struct kp_command *kp_command_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

const char *const *kp_command_names(void)
{
    static const char *names[COMMANDS + 1];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    return names;
}

void kp_commands_know_flags(void)
{
    static struct kp_own_flags owners[COMMANDS];
    size_t n = 0;
    for (size_t i = 0; i < COMMANDS; i++)
        if (commands[i].flags) {
            owners[n].command = commands[i].name;
            owners[n].at = commands[i].flags(&owners[n].n);
            n++;
        }
    kp_flags_know(owners, n);
}
