#include "cmd/commands.h"

#include <string.h>

#include "cmd/idle.h"
#include "cmd/query.h"

static int doctor(const struct kp_query *q)
{
    (void)q;
    return kp_main_doctor();
}

static const struct kp_command_topic of_report = {
    "Usage: kprof report [options] FILE...",
    "Prints the report of sessions that `kprof -o FILE program` has stored; works on a machine without a GPU.",
    "the options of a run that apply to sessions",
};

static const struct kp_command_topic of_diff = {
    "Usage: kprof diff [options] A B...",
    "Compares sessions that `kprof -o FILE program` has stored, launch by launch or kernel by kernel. The exit status "
    "is 0, or 1 if a limit of --fail-above was exceeded or nothing could be compared; 2 means wrong use.",
    "set, section, metrics, print-details and the like",
};

static const struct kp_command_topic of_stats = {
    "Usage: kprof stats [options] FILE...",
    "Prints the reports of `nsys stats` from the timelines of sessions, which `kprof --timeline -o FILE program` "
    "records.",
    NULL,
};

static const struct kp_command_topic of_ncu = {
    "Usage: kprof ncu [options] [--] program [arguments]\n       kprof ncu --import FILE [options]",
    "Runs a program as ncu does: with its defaults, each launch by itself in the report, the report on stdout, and no "
    "line that ncu does not print. The command does so under the name ncu, too.",
    NULL,
};

static const struct kp_command_topic of_series = {
    "Usage: kprof series --vary NAME=LIST [options] [--] program [arguments]",
    "Runs a program, tries a launch with other launch parameters, and reports the fastest. It accepts the options of a "
    "run; these matter most.",
    NULL,
};

static const struct kp_command_topic of_doctor = {
    "Usage: kprof doctor [options]",
    "Says what would prevent profiling here, and what to do. The exit status is 0 if profiling can work, else 1.",
    NULL,
};

/* Options that affect the answers. Sections, metrics and pages decide what is enabled if no set is named. */
#define OF_ALL    "config"
#define OF_TABLES OF_ALL, "cupti-dir", "section-folder", "chip", "chips"
static const char *const by_series[] = {"vary",         "kernel-name", "kernel-id", "launch-skip",
                                        "launch-count", "page",        "export",    NULL};
static const char *const by_cupti[] = {OF_ALL, "cupti-dir", NULL};
static const char *const by_metrics[] = {OF_TABLES, "metrics", "query-metrics-mode", "query-metrics-collection", NULL};
static const char *const by_lists[] = {OF_TABLES, "set",         "section",       "metrics",
                                       "page",    "replay-mode", "trace-columns", NULL};
static const char *const by_rules[] = {OF_ALL, NULL};

static const struct kp_command commands[] = {
    {.name = "run", .least = KP_OPT_TOOLS},
    {.name = "ncu", .topic = &of_ncu, .least = KP_OPT_TOOLS, .face = KP_FACE_NCU},
    {"series", kp_main_series, NULL, NULL, NULL, &of_series, KP_OPT_TOOLS, by_series, KP_FACE_KPROF},
    {"report", NULL, kp_main_report, NULL, kp_main_report_flags, &of_report, KP_OPT_REPORT, NULL, KP_FACE_KPROF},
    {"diff", NULL, kp_main_diff, NULL, kp_main_diff_flags, &of_diff, KP_OPT_DIFF, NULL, KP_FACE_KPROF},
    {"stats", NULL, kp_main_stats, NULL, kp_main_stats_flags, &of_stats, KP_OPT_NONE, NULL, KP_FACE_KPROF},
    {"doctor", NULL, NULL, doctor, NULL, &of_doctor, KP_OPT_TOOLS, by_cupti, KP_FACE_KPROF},
    {"query-metrics", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS, by_metrics, KP_FACE_KPROF},
    {"list-sets", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS, by_lists, KP_FACE_KPROF},
    {"list-sections", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS, by_lists, KP_FACE_KPROF},
    {"list-metrics", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS, by_lists, KP_FACE_KPROF},
    {"list-rules", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS, by_rules, KP_FACE_KPROF},
    {"list-chips", NULL, NULL, kp_main_query, NULL, NULL, KP_OPT_TOOLS, by_cupti, KP_FACE_KPROF},
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

bool kp_command_heeds(const struct kp_command *command, const char *flag)
{
    return !command->heeds || kp_idle_heeds(command->heeds, flag);
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
    kp_cli_know(owners, n);
}
