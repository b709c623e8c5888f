/* The page session: the facts of the run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/environment.h"
#include "report/pages/page_body.h"

enum { GROUP, ATTRIBUTE, VALUE, COLUMNS };
enum { LIST_WIDTH = 100 }; /* what the attributes beside them leave of a line */
static const char *const headings[COLUMNS] = {"Group", "Attribute", "Value"};
static const bool to_the_left[COLUMNS] = {true, true, true};

struct facts {
    struct kp_columns table;
    const char *group; /* that the next facts belong to */
    bool plain;        /* values as a program reads them */
    int rc;
};

/* What is empty was not given, or is not known. */
static void add(struct facts *f, const char *attribute, const char *value)
{
    if (!f->rc && value && *value)
        f->rc = kp_columns_add(&f->table, (const char *[COLUMNS]){f->group, attribute, value});
}

/* How much of a list goes on one line: all, or what ends with its last comma or blank that fits. No item is broken. */
static size_t list_line(const char *list)
{
    static const char separators[] = ", \t";
    size_t end = 0;
    if (strlen(list) <= LIST_WIDTH)
        return strlen(list);
    for (size_t at = 0; list[at] && (!end || at < LIST_WIDTH); at++)
        if (strchr(separators, list[at]))
            end = at + 1;
    return end ? end : strlen(list);
}

/* A list for the reader is wrapped. */
static void add_list(struct facts *f, const char *attribute, const char *list)
{
    static const char blanks[] = " \t";
    while (!f->rc && list && *list) {
        size_t len = f->plain ? strlen(list) : list_line(list);
        size_t end = len;
        while (!f->plain && end && strchr(blanks, list[end - 1]))
            end--;
        char *line = strndup(list, end);
        if (line)
            add(f, attribute, line);
        else
            f->rc = -ENOMEM;
        free(line);
        list += len + strspn(list + len, blanks);
        attribute = "";
    }
}

static void add_count(struct facts *f, const char *attribute, uint64_t value)
{
    char text[KP_NUMBER_MAX];
    kp_count_cell(value, f->plain, text);
    add(f, attribute, text);
}

static void add_id(struct facts *f, const char *attribute, uint64_t value)
{
    char text[KP_NUMBER_MAX];
    kp_count_cell(value, true, text);
    add(f, attribute, text);
}

static void add_time(struct facts *f, const char *attribute, int64_t unix_ns)
{
    char date[64], text[96];
    struct tm utc;
    time_t seconds = (time_t)(unix_ns / 1000000000);
    if (!gmtime_r(&seconds, &utc) || !strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &utc))
        return;
    snprintf(text, sizeof text, "%s.%03d UTC", date, (int)(unix_ns / 1000000 % 1000));
    add(f, attribute, text);
}

/* A range of values of one unit; a program gets both ends in the base unit. */
static void add_range(struct facts *f, const char *attribute, double low, double high, const char *unit)
{
    char from[KP_NUMBER_MAX], to[KP_NUMBER_MAX], scaled[KP_UNIT_MAX], *text;
    double divisor = kp_unit_divisor(unit, high, f->plain, scaled);
    kp_number_cell(low / divisor, f->plain, from);
    kp_number_cell(high / divisor, f->plain, to);
    int n =
        strcmp(from, to) ? asprintf(&text, "%s to %s %s", from, to, scaled) : asprintf(&text, "%s %s", from, scaled);
    if (n < 0) {
        f->rc = -ENOMEM;
        return;
    }
    add(f, attribute, text);
    free(text);
}

static void add_version(struct facts *f, const char *attribute, int version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    add(f, attribute, text);
}

static void add_run(struct facts *f, const struct kp_session *s)
{
    f->group = "Process";
    add_id(f, "Process ID", s->pid);
    add(f, "Program", s->exe);
    add(f, "Command Line", s->cmdline);
    add(f, "Host Name", s->host);
    add_time(f, "Started", s->start_unix_ns);
    if (s->end_unix_ns) {
        int64_t ns;
        add_time(f, "Ended", s->end_unix_ns);
        if (!__builtin_sub_overflow(s->end_unix_ns, s->start_unix_ns, &ns)) /* both are what the file says */
            add_range(f, "Time", (double)ns, (double)ns, "ns");
    }
    add(f, "Complete", s->complete ? "yes" : "no");
    f->group = "Software";
    add(f, "kprof", s->kprof_version);
    add_version(f, "CUDA Driver", s->driver_version);
    add(f, "CUPTI", s->cupti_version);
}

static void add_environment(struct facts *f, const char *lines)
{
    const char *name, *value;
    size_t name_len, value_len;
    f->group = "Environment";
    while (!f->rc && kp_environment_next(&lines, &name, &name_len, &value, &value_len)) {
        char *attribute = strndup(name, name_len), *text = strndup(value, value_len);
        if (attribute && text)
            add(f, attribute, text);
        else
            f->rc = -ENOMEM;
        free(attribute);
        free(text);
    }
}

static void add_collection(struct facts *f, const struct kp_session *s)
{
    f->group = "Collection";
    add(f, "Set", s->set);
    add_list(f, "Sections", s->sections);
    add_list(f, "Metrics", s->metrics);
    add(f, "Section Folder", s->section_folder);
    add(f, "Cache Control", s->cache_control);
    add(f, "Clock Control", s->clock_control);
    f->group = "Counts";
    add_count(f, "Launches Seen", s->launches_seen);
    add_count(f, "Launches Profiled", s->launches_profiled);
    for (size_t i = 0; i < s->n_skips; i++) {
        char *name;
        if (asprintf(&name, "Skipped: %s", s->skips[i].reason) < 0) {
            f->rc = -ENOMEM;
            return;
        }
        add_count(f, name, s->skips[i].count);
        free(name);
    }
    add_count(f, "Passes", s->passes);
    add_range(f, "Time Spent Profiling", s->profiling_ns, s->profiling_ns, "ns");
}

/* --- clocks that were seen: the frequencies in the header of the sections --- */

enum { CLOCKS_MAX = 64 };

struct clock_seen {
    int device;
    const struct kp_row *row;
    double low, high;
};

struct clocks {
    struct clock_seen at[CLOCKS_MAX];
    size_t n;
};

static void see_clock(struct clocks *c, int device, const struct kp_row *row, double hz)
{
    struct clock_seen *seen = c->at, *end = c->at + c->n;
    while (seen < end && (seen->device != device || strcmp(seen->row->label, row->label)))
        seen++;
    if (seen == c->at + CLOCKS_MAX)
        return;
    if (seen == end)
        c->at[c->n++] = (struct clock_seen){device, row, hz, hz};
    seen->low = hz < seen->low ? hz : seen->low;
    seen->high = hz > seen->high ? hz : seen->high;
}

static int see_clocks(struct kp_result *r, void *arg)
{
    size_t n;
    const struct kp_section *sections = kp_sections(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < sections[i].n_rows; j++) {
            const struct kp_row *row = &sections[i].rows[j];
            double hz;
            if (row->kind == KP_ROW_HEADER && !strcmp(row->unit, "hz") &&
                kp_metric_number(kp_result_find(r, row->metric), &hz) && hz > 0)
                see_clock(arg, r->launch.device, row, hz);
        }
    return 0;
}

static void add_device(struct facts *f, const struct kp_device_info *d, const struct clocks *c)
{
    char group[32], cc[32];
    snprintf(group, sizeof group, "Device %d", d->ordinal);
    snprintf(cc, sizeof cc, "%d.%d", d->cc_major, d->cc_minor);
    f->group = group;
    add(f, "Name", d->name);
    add(f, "Chip", d->chip);
    add(f, "Compute Capability", cc);
    add(f, "PCI Bus ID", d->pci_bus_id);
    add_count(f, "SMs", d->sm_count);
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].device == d->ordinal)
            add_range(f, c->at[i].row->label, c->at[i].low, c->at[i].high, c->at[i].row->unit);
}

static int find_facts(const struct kp_page *p, struct facts *f)
{
    struct clocks clocks = {.n = 0};
    f->table = (struct kp_columns){.headings = headings, .to_the_left = to_the_left, .n = COLUMNS};
    int rc = kp_page_each(p, see_clocks, &clocks);
    add_run(f, p->session);
    add_collection(f, p->session);
    add_environment(f, p->session->environment);
    for (size_t i = 0; i < p->session->n_devices; i++)
        add_device(f, &p->session->devices[i], &clocks);
    return rc ? rc : f->rc;
}

/* The facts of one group, from the one at `at` on. Returns where the next group starts. */
static size_t print_group(struct kp_out *o, const struct kp_columns *all, size_t at)
{
    static const struct kp_columns_look look = {KP_INDENT, 1, true};
    const char *group = all->cells[at];
    struct kp_columns part = {.headings = &headings[ATTRIBUTE], .to_the_left = to_the_left, .n = COLUMNS - ATTRIBUTE};
    for (; at < all->n_cells && !strcmp(all->cells[at], group); at += COLUMNS)
        if (kp_columns_add(&part, (const char *const *)&all->cells[at + ATTRIBUTE]))
            o->rc = o->rc ? o->rc : -ENOMEM;
    kp_out_print(o, "    %s\n", group);
    kp_columns_print(o, &part, &look);
    kp_out_print(o, "\n");
    kp_columns_free(&part);
    return at;
}

int kp_session_text(const struct kp_page *p)
{
    struct kp_out o = {.sink = p->out, .display = p->display};
    struct facts f = {.plain = false};
    int rc = find_facts(p, &f);
    for (size_t at = 0; !rc && at < f.table.n_cells;)
        at = print_group(&o, &f.table, at);
    kp_columns_free(&f.table);
    return rc ? rc : o.rc;
}

int kp_session_csv(const struct kp_page *pages, size_t n, struct kp_csv *to)
{
    int rc = 0;
    if (pages->shared)
        kp_csv_process_headings(to);
    kp_csv_fields(to, headings, COLUMNS);
    kp_csv_end_row(to);
    for (size_t i = 0; !rc && i < n; i++) {
        struct facts f = {.plain = true};
        rc = find_facts(&pages[i], &f);
        if (!rc)
            kp_csv_rows(to, &pages[i], &f.table);
        kp_columns_free(&f.table);
    }
    return rc;
}
