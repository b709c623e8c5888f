#include "report/write/account.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/nearest.h"
#include "base/pattern.h"
#include "base/text.h"
#include "report/write/cells.h"

enum { SEEN_SHOWN = 10 /* kernels, devices, or ranges, that no filter took */ };

int kp_render_process(const struct kp_sink *sink, const struct kp_display *d, const struct kp_session *s)
{
    struct kp_out o = {.sink = sink};
    kp_out_print(&o, "[%" PRIu64 "] %s@%s\n", s->pid, kp_write_process_name(s), kp_write_host(d, s));
    return o.rc;
}

static void print_counted(struct kp_out *o, uint64_t n, const char *one, const char *many)
{
    char number[KP_NUMBER_MAX];
    kp_format_count(n, number);
    kp_out_print(o, "%s %s", number, n == 1 ? one : many);
}

static uint64_t print_skips(struct kp_out *o, const struct kp_session *s)
{
    uint64_t total = 0;
    char number[KP_NUMBER_MAX];
    for (size_t i = 0; i < s->n_skips; i++)
        total += s->skips[i].count;
    print_counted(o, total, "skipped", "skipped");
    /* Puts the number last, so that a reason may be any clause, about one launch or many. */
    for (size_t i = 0; i < s->n_skips; i++) {
        kp_format_count(s->skips[i].count, number);
        kp_out_print(o, "%s%s: %s", i ? "; " : " (", kp_why_text(&s->skips[i].why), number);
    }
    kp_out_print(o, s->n_skips ? ")" : "");
    return total;
}

static void print_more(struct kp_out *o, size_t n)
{
    if (n > SEEN_SHOWN)
        kp_out_print(o, "==KPROF==   and %zu more\n", n - SEEN_SHOWN);
}

static void print_seen(struct kp_out *o, const char *what, const char *name, uint64_t count)
{
    char number[KP_NUMBER_MAX];
    kp_format_count(count, number);
    kp_out_print(o, "==KPROF==   %s: ", what);
    kp_out_one_line(o, name, strlen(name));
    kp_out_print(o, count ? " (%s)\n" : "\n", number);
}

/* Prints the kernels that the session saw: a line for each of the first ones and one line for the others. */
static void print_unselected(struct kp_out *o, const struct kp_session *s)
{
    for (size_t i = 0; i < s->n_kernels && i < SEEN_SHOWN; i++)
        print_seen(o, "seen", s->kernels[i].name, s->kernels[i].count);
    print_more(o, s->n_kernels);
}

static void print_ranges(struct kp_out *o, const struct kp_session *s)
{
    for (size_t i = 0; i < s->n_ranges && i < SEEN_SHOWN; i++)
        print_seen(o, "range seen", s->ranges[i].name, s->ranges[i].count);
    print_more(o, s->n_ranges);
}

/* Returns the value of a variable in the environment of the session, malloc'ed; NULL without it. */
static char *setting_of(const struct kp_session *s, const char *variable)
{
    const char *cursor = kp_or_empty(s->environment), *name, *value;
    size_t name_len, value_len;
    while (kp_environment_next(&cursor, &name, &name_len, &value, &value_len))
        if (name_len == strlen(variable) && !memcmp(name, variable, name_len))
            return strndup(value, value_len);
    return NULL;
}

/* Returns the name that is nearest to `word`, an exact one of several words and not a pattern; NULL for none. */
static const char *nearest_seen(const char *word, const struct kp_kernel_count *seen, size_t n)
{
    const char **names = calloc(n + 1, sizeof *names), *near;
    if (!names)
        return NULL;
    for (size_t i = 0; i < n; i++)
        names[i] = seen[i].name;
    near = kp_nearest(word, names);
    free(names);
    return near && strcmp(near, word) != 0 ? near : NULL;
}

/* Returns true if a name without "regex:" is found in one of `seen` when it is read as an expression. */
static bool is_expression(const char *word, const struct kp_kernel_count *seen, size_t n)
{
    struct kp_pattern *pattern = NULL;
    char *text = *word ? kp_asprintf(KP_REGEX "%s", word) : NULL, *why = NULL;
    bool found = false;
    if (text && strncmp(word, KP_REGEX, strlen(KP_REGEX)) && !kp_pattern_new(text, &pattern, &why))
        for (size_t i = 0; !found && i < n; i++)
            found = kp_pattern_match(pattern, seen[i].name);
    kp_pattern_free(pattern);
    free(text);
    free(why);
    return found;
}

/* Prints what the user may have meant by a word: a name near to it, an expression; `before` it, if there is any. */
static bool print_meant(struct kp_out *o, const char *before, const char *word, const char *near, bool expression)
{
    if (near || expression)
        kp_out_print(o, "%sdid you mean ", before);
    if (near) {
        kp_out_print(o, "'");
        kp_out_one_line(o, near, strlen(near));
        kp_out_print(o, "'%s", expression ? " or " : "?\n");
    }
    if (expression)
        kp_out_print(o, "'" KP_REGEX "%s'?\n", word);
    return near || expression;
}

static void advise_kernels(struct kp_out *o, const struct kp_session *s)
{
    char *name = setting_of(s, "KPROF_KERNEL_NAME");
    if (name && *name)
        print_meant(o, "==KPROF==   ", name, nearest_seen(name, s->kernels, s->n_kernels),
                    is_expression(name, s->kernels, s->n_kernels));
    free(name);
    print_unselected(o, s);
}

static void advise_ranges(struct kp_out *o, const struct kp_session *s)
{
    char *range = setting_of(s, "KPROF_NVTX_INCLUDE");
    if (range && *range)
        print_meant(o, "==KPROF==   ", range, nearest_seen(range, s->ranges, s->n_ranges), false);
    free(range);
    print_ranges(o, s);
    if (!s->n_ranges)
        kp_out_print(o, "==KPROF==   no NVTX range was opened\n");
}

static void print_devices(struct kp_out *o, const struct kp_session *s)
{
    for (size_t i = 0; i < s->n_devices && i < SEEN_SHOWN; i++)
        kp_out_print(o, "==KPROF==   seen: Device %d (%s, CC %d.%d)\n", s->devices[i].ordinal,
                     kp_or_empty(s->devices[i].name), s->devices[i].cc_major, s->devices[i].cc_minor);
    print_more(o, s->n_devices);
}

/* What is printed if nothing was profiled, by the reason that skipped the launches. Launches pass the filters in order,
 * so the last filter that stopped any of them is to blame: rows begin with the last filter. */
static const struct blamed {
    enum kp_reason reason;
    void (*seen)(struct kp_out *o, const struct kp_session *s);
} blamed[] = {
    {KP_REASON_NO_COUNTERS, NULL},
    {KP_REASON_LAUNCH_COUNT, NULL},
    {KP_REASON_LAUNCH_SKIP, NULL},
    {KP_REASON_NVTX, advise_ranges},
    {KP_REASON_KERNEL_ID, print_unselected},
    {KP_REASON_KERNEL_NAME, advise_kernels},
    {KP_REASON_GRAPHS, NULL},
    {KP_REASON_DEVICES, print_devices},
    {KP_REASON_BEFORE_MATCH, NULL},
    {KP_REASON_DURATION, NULL},
    {KP_REASON_DELAY, NULL},
    {KP_REASON_PROFILER, NULL},
    {KP_REASON_NO_RANGE, NULL},
};

static bool was_skipped_for(const struct kp_session *s, enum kp_reason reason)
{
    for (size_t i = 0; i < s->n_skips; i++)
        if (s->skips[i].why.reason == reason)
            return true;
    return false;
}

bool kp_account_of_timeline(const struct kp_session *s)
{
    return !s->launches_profiled && was_skipped_for(s, KP_REASON_TIMELINE);
}

/* Returns what is to blame; NULL: no row. */
static const struct blamed *find_blamed(const struct kp_session *s)
{
    for (size_t i = 0; i < sizeof blamed / sizeof *blamed; i++)
        if (was_skipped_for(s, blamed[i].reason))
            return &blamed[i];
    return NULL;
}

static const char *advice_of(const struct kp_session *s, const struct blamed *b)
{
    if (b)
        return kp_reason_row(b->reason)->advice;
    return s->n_skips ? "the line above says why every launch was skipped"
                      : "the program ended before the first launch was fully measured";
}

static void print_why_nothing(struct kp_out *o, const struct kp_session *s)
{
    static const char head[] = "==KPROF== Nothing was profiled:";
    if (!s->launches_seen && !s->complete) {
        kp_out_print(
            o,
            "%s no launch had been stored. Those of the window that was open when the program was killed are lost; "
            "KPROF_WINDOW (window) bounds how many.\n",
            head);
        return;
    }
    if (!s->launches_seen) {
        kp_out_print(o,
                     "%s the program launched no kernel that kprof could see. Does it use the GPU? Programs that start "
                     "others must pass on LD_PRELOAD; set-user-ID and fully static programs cannot be profiled.\n",
                     head);
        return;
    }
    if (kp_account_of_timeline(s))
        return; /* as the user wanted it */
    const struct blamed *b = find_blamed(s);
    kp_out_print(o, "%s %s.\n", head, advice_of(s, b));
    if (b && b->seen)
        b->seen(o, s);
}

/* Says that graphs were left out, unless there were none. */
static void print_graphs(struct kp_out *o, uint64_t graphs)
{
    if (!graphs)
        return;
    kp_out_print(o, "==KPROF== Left out because they have no kernel name: ");
    print_counted(o, graphs, "launch of a whole graph", "launches of whole graphs");
    kp_out_print(o, "\n");
}

static void print_choice(struct kp_out *o, const struct kp_choice *choice)
{
    char shown[KP_NUMBER_MAX], stored[KP_NUMBER_MAX];
    kp_format_count(choice->shown, shown);
    kp_format_count(choice->stored, stored);
    kp_out_print(o, "==KPROF== Shown above: the %s of %s stored launches that the filters choose\n", shown, stored);
    print_graphs(o, choice->graphs);
}

/* Says which kernels a budget left without all that was asked for, and what a further run should add. */
static void print_lacking(struct kp_out *o, const struct kp_session *s)
{
    char *further = kp_session_further(s);
    if (!s->n_lacking)
        return;
    kp_out_print(o, "==KPROF== The budget was not enough for all shapes of ");
    print_counted(o, s->n_lacking, "kernel", "kernels");
    kp_out_print(o, ". What a further run should add:\n");
    kp_out_print(o, "==KPROF==   ");
    kp_out_one_line(o, kp_or_empty(further), strlen(kp_or_empty(further)));
    kp_out_print(o, "\n");
    for (size_t i = 0; i < s->n_lacking && i < SEEN_SHOWN; i++)
        print_seen(o, "lacks shapes", s->lacking[i].name, s->lacking[i].count);
    print_more(o, s->n_lacking);
    free(further);
}

int kp_render_account(const struct kp_sink *sink, const struct kp_session *s, const struct kp_choice *choice)
{
    struct kp_out o = {.sink = sink};
    char spent[KP_NUMBER_MAX + KP_UNIT_MAX];
    kp_format_quantity(s->profiling_ns, "ns", false, spent);
    kp_out_print(&o, choice ? "==KPROF== The whole session: " : "==KPROF== ");
    print_counted(&o, s->launches_seen, "launch seen, ", "launches seen, ");
    print_counted(&o, s->launches_profiled, "profiled, ", "profiled, ");
    uint64_t done = s->launches_profiled + print_skips(&o, s);
    if (s->launches_seen > done) {
        kp_out_print(&o, ", ");
        print_counted(&o, s->launches_seen - done, "not finished", "not finished");
    }
    kp_out_print(&o, "; ");
    print_counted(&o, s->passes, "pass", "passes");
    kp_out_print(&o, "; %s spent profiling", spent);
    if (s->replay && *s->replay)
        kp_out_print(&o, "; %s", s->replay);
    kp_out_print(&o, "\n");
    if (!s->launches_profiled)
        print_why_nothing(&o, s);
    print_lacking(&o, s);
    if (choice)
        print_choice(&o, choice);
    return o.rc;
}

static void print_no_range(struct kp_out *o, const struct kp_unmatched *u)
{
    kp_out_print(o, "==KPROF== No launch is shown: none of this session is inside '%s' (nvtx-include)", u->range);
    if (!print_meant(o, "; ", "", nearest_seen(u->range, u->seen.ranges, u->seen.n_ranges), false))
        kp_out_print(o, ".\n");
    if (u->seen.n_ranges)
        print_ranges(o, &u->seen);
    else
        kp_out_print(o, "==KPROF==   no launch of it is inside an NVTX range\n");
}

int kp_render_unmatched(const struct kp_sink *out, const struct kp_unmatched *u)
{
    struct kp_out o = {.sink = out};
    char number[KP_NUMBER_MAX];
    kp_format_count(u->matched, number);
    if (!u->matched && *u->range) {
        print_no_range(&o, u);
        print_graphs(&o, u->graphs);
        return o.rc;
    }
    if (u->matched)
        kp_out_print(&o,
                     "==KPROF== No launch is shown: %s of this session match, but all come before the first one to "
                     "show; lower launch-skip.\n",
                     number);
    else if (*u->kernel_name)
        kp_out_print(&o, "==KPROF== No launch is shown: no kernel of this session matches '%s' (kernel-name)",
                     u->kernel_name);
    else
        kp_out_print(&o, "==KPROF== No launch is shown: none of this session passes %s", u->filters);
    bool expression = is_expression(kp_or_empty(u->kernel_name), u->seen.kernels, u->seen.n_kernels);
    if (!u->matched && !print_meant(&o, "; ", u->kernel_name, u->near, expression))
        kp_out_print(&o, ".\n");
    print_graphs(&o, u->graphs);
    print_unselected(&o, &u->seen);
    return o.rc;
}
