/* The page session: the facts of the run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/environment.h"
#include "base/text.h"
#include "report/define/units.h"
#include "report/pages/page_body.h"
#include "report/write/cells.h"
#include "report/write/csv_writer.h"

/* The facts, one group at a time. */
struct facts {
    struct kp_facts group;
    bool plain; /* values are written for programs */
    int rc;
};

static void add_any(struct facts *f, const char *attribute, const char *value, bool is_list)
{
    if (!f->rc)
        f->rc = kp_facts_add(&f->group, attribute, value, is_list);
}

/* Adds a fact; empty values were not given, or are unknown, and are left out. */
static void add(struct facts *f, const char *attribute, const char *value)
{
    add_any(f, attribute, value, false);
}

static void add_list(struct facts *f, const char *attribute, const char *list)
{
    add_any(f, attribute, list, true);
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

static void add_utc(struct facts *f, const char *attribute, int64_t unix_ns)
{
    char date[64], text[96];
    struct tm utc;
    time_t seconds = (time_t)(unix_ns / 1000000000);
    if (!gmtime_r(&seconds, &utc) || !strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &utc))
        return;
    snprintf(text, sizeof text, "%s.%03d UTC", date, (int)(unix_ns / 1000000 % 1000));
    add(f, attribute, text);
}

/* Adds a range of values of one unit; programs get both ends in the base unit. */
static void add_range(struct facts *f, const char *attribute, double low, double high, const char *unit)
{
    char from[KP_NUMBER_MAX], to[KP_NUMBER_MAX], scaled[KP_UNIT_MAX];
    double divisor = kp_unit_divisor(unit, high, f->plain, scaled);
    kp_write_number_cell(low / divisor, f->plain, from);
    kp_write_number_cell(high / divisor, f->plain, to);
    bool same = !strcmp(from, to);
    char *text = kp_asprintf("%s%s%s %s", from, same ? "" : " to ", same ? "" : to, scaled);
    if (text)
        add(f, attribute, text);
    else
        f->rc = -ENOMEM;
    free(text);
}

static void add_version(struct facts *f, const char *attribute, int version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    add(f, attribute, text);
}

static void add_process(struct facts *f, const struct kp_session *s)
{
    add_id(f, "Process ID", s->pid);
    add(f, "Program", s->exe);
    add(f, "Command Line", s->cmdline);
    add(f, "Host Name", s->host);
    add_utc(f, "Started", s->start_unix_ns);
    if (s->end_unix_ns) {
        int64_t ns;
        add_utc(f, "Ended", s->end_unix_ns);
        if (!__builtin_sub_overflow(s->end_unix_ns, s->start_unix_ns, &ns)) /* a file may have any */
            add_range(f, "Time", (double)ns, (double)ns, "ns");
    }
    add(f, "Complete", s->complete ? "yes" : "no");
}

static void add_software(struct facts *f, const struct kp_session *s)
{
    add(f, "kprof", s->kprof_version);
    add_version(f, "CUDA Driver", s->driver_version);
    add(f, "CUPTI", s->cupti_version);
}

static void add_environment(struct facts *f, const struct kp_session *s)
{
    const char *lines = s->environment, *name, *value;
    size_t name_len, value_len;
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
    add(f, "Set", s->set);
    add_list(f, "Sections", s->sections);
    add_list(f, "Metrics", s->metrics);
    add(f, "Section Folder", s->section_folder);
    add(f, "Cache Control", s->cache_control);
    add(f, "Clock Control", s->clock_control);
    if (s->replay && *s->replay)
        add(f, "Replay", s->replay);
}

static void add_counts(struct facts *f, const struct kp_session *s)
{
    add_count(f, "Launches Seen", s->launches_seen);
    add_count(f, "Launches Profiled", s->launches_profiled);
    for (size_t i = 0; i < s->n_skips; i++) {
        char *name;
        const struct kp_why *why = &s->skips[i].why;
        const char *key = f->plain ? kp_reason_key(why->reason) : "";
        if (asprintf(&name, "Skipped%s%s: %s", *key ? " " : "", key, kp_why_text(why)) < 0) {
            f->rc = -ENOMEM;
            return;
        }
        add_count(f, name, s->skips[i].count);
        free(name);
    }
    add_count(f, "Passes", s->passes);
    double spent = kp_whole(s->profiling_ns); /* sums of conversions have meaningless decimals */
    add_range(f, "Time Spent Profiling", spent, spent, "ns");
}

/* --- observed clocks: the frequencies in the header of the sections --- */

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

/* Calls `fn` for each row of a frequency. */
static void each_clock(void (*fn)(const struct kp_row *row, void *arg), void *arg)
{
    size_t n;
    const struct kp_section *sections = kp_sections(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < sections[i].n_rows; j++)
            if (sections[i].rows[j].kind == KP_ROW_HEADER && !strcmp(sections[i].rows[j].unit, "hz"))
                fn(&sections[i].rows[j], arg);
}

/* A launch whose frequencies are looked at. */
struct seen_launch {
    struct clocks *clocks;
    const struct kp_result *result;
};

static void see_row(const struct kp_row *row, void *arg)
{
    const struct seen_launch *l = arg;
    double hz;
    if (kp_metric_number(kp_result_find(l->result, row->metric), &hz) && hz > 0)
        see_clock(l->clocks, l->result->launch.device, row, hz);
}

static int see_clocks(struct kp_result *r, void *arg)
{
    each_clock(see_row, &(struct seen_launch){arg, r});
    return 0;
}

/* The metrics of these rows, and NULL at the end. */
struct clock_names {
    const char *at[CLOCKS_MAX + 1];
    size_t n;
    bool all; /* found room */
};

static void name_row(const struct kp_row *row, void *arg)
{
    struct clock_names *names = arg;
    size_t i = 0;
    while (i < names->n && strcmp(names->at[i], row->metric) != 0)
        i++;
    names->all &= i < CLOCKS_MAX;
    if (i == names->n && i < CLOCKS_MAX)
        names->at[names->n++] = row->metric;
}

static int find_clocks(const struct kp_page *p, struct clocks *c)
{
    struct clock_names names = {.all = true};
    each_clock(name_row, &names);
    return names.all ? kp_page_each_with(p, names.at, see_clocks, c) : kp_page_each(p, see_clocks, c);
}

static void add_device(struct facts *f, const struct kp_device_info *d, const struct clocks *c)
{
    char cc[32];
    snprintf(cc, sizeof cc, "%d.%d", d->cc_major, d->cc_minor);
    add(f, "Name", d->name);
    add(f, "Chip", d->chip);
    add(f, "Compute Capability", cc);
    add(f, "PCI Bus ID", d->pci_bus_id);
    add_count(f, "SMs", d->sm_count);
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].device == d->ordinal)
            add_range(f, c->at[i].row->label, c->at[i].low, c->at[i].high, c->at[i].row->unit);
}

/* --- the page --- */

static const struct group {
    const char *title;
    void (*add)(struct facts *f, const struct kp_session *s);
} groups[] = {
    {"Process", add_process}, {"Software", add_software},       {"Collection", add_collection},
    {"Counts", add_counts},   {"Environment", add_environment},
};

/* Writes the group and frees it. */
static int write_titled(struct kp_writer *w, struct facts *f, const char *title)
{
    f->group.title = title;
    if (!f->rc && f->group.n)
        kp_write_facts(w, &f->group);
    kp_facts_free(&f->group);
    return f->rc;
}

static int write_session_page(const struct kp_page *p, struct kp_writer *w)
{
    struct clocks clocks = {.n = 0};
    struct facts f = {.plain = w->kind->plain};
    const struct kp_session *s = p->session;
    char title[32];
    int rc = find_clocks(p, &clocks);
    for (size_t i = 0; !rc && i < sizeof groups / sizeof *groups; i++) {
        groups[i].add(&f, s);
        rc = write_titled(w, &f, groups[i].title);
    }
    for (size_t i = 0; !rc && i < s->n_devices; i++) {
        snprintf(title, sizeof title, "Device %d", s->devices[i].ordinal);
        add_device(&f, &s->devices[i], &clocks);
        rc = write_titled(w, &f, title);
    }
    return rc;
}

int kp_page_session(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    static const char *const fields[] = {"Group", "Attribute", "Value"};
    static const struct kp_layout layout = {.start = KP_START_EMPTY, .fields = fields, .n = 3};
    int rc = 0;
    kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        kp_page_enter(&pages[i], w);
        rc = write_session_page(&pages[i], w);
    }
    return rc;
}

/* --- the page as the CSV of ncu: four blocks, each with a line of its own before its table --- */

typedef void add_fn(struct facts *f, const struct kp_session *s);

static const struct ncu_block {
    const char *title, *heading;
    add_fn *add[4];
} ncu_blocks[] = {
    {"Launch Settings", "Launch Attribute", {add_process, add_collection, add_environment}},
    {"Session Info", "Session Attribute", {add_software, add_counts}},
};

static void write_pair(struct kp_csv *c, const char *name, const char *value)
{
    kp_csv_field(c, name);
    kp_csv_field(c, value);
    kp_csv_end_row(c);
}

static int write_ncu_block(struct kp_csv *c, const struct ncu_block *b, const struct kp_session *s)
{
    struct facts f = {.plain = true};
    for (size_t i = 0; b->add[i]; i++)
        b->add[i](&f, s);
    fprintf(c->to, "%s\n", b->title);
    write_pair(c, b->heading, "Value");
    for (size_t i = 0; i < f.group.n; i++)
        write_pair(c, f.group.at[i].attribute, f.group.at[i].value);
    kp_facts_free(&f.group);
    fputc('\n', c->to);
    return f.rc;
}

static const char attribute[] = "device__attribute_";

/* The devices whose attributes were written: a bit each. */
struct ncu_devices {
    struct kp_csv *csv;
    const struct kp_session *session;
    uint64_t written;
};

static bool is_fact(const char *name)
{
    static const char *const facts[] = {"display_name", "compute_capability_major", "compute_capability_minor"};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (!strcmp(facts[i], name))
            return true;
    return false;
}

/* Writes what is known of the device of a launch, which is the first there. */
static int write_ncu_device(struct kp_result *r, void *arg)
{
    struct ncu_devices *d = arg;
    const struct kp_launch_info *l = &r->launch;
    char number[KP_NUMBER_MAX];
    if (l->device < 0 || l->device > 63 || d->written >> l->device & 1)
        return 0;
    d->written |= (uint64_t)1 << l->device;
    fputs("Device Attributes\n", d->csv->to);
    kp_csv_field(d->csv, "Device Attribute");
    kp_csv_formatted(d->csv, "Device %d", l->device);
    kp_csv_end_row(d->csv);
    for (size_t i = 0; i < d->session->n_devices; i++)
        if (d->session->devices[i].ordinal == l->device)
            write_pair(d->csv, "display_name", d->session->devices[i].name);
    snprintf(number, sizeof number, "%d", l->cc_major);
    write_pair(d->csv, "compute_capability_major", number);
    snprintf(number, sizeof number, "%d", l->cc_minor);
    write_pair(d->csv, "compute_capability_minor", number);
    for (size_t i = 0; i < r->n_metrics; i++)
        if (!strncmp(r->metrics[i].name, attribute, strlen(attribute)) &&
            !is_fact(r->metrics[i].name + strlen(attribute)))
            write_pair(d->csv, r->metrics[i].name + strlen(attribute), kp_write_plain_value(&r->metrics[i], number));
    fputc('\n', d->csv->to);
    return 0;
}

int kp_page_ncu_session(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        const struct kp_session *s = pages[i].session;
        struct ncu_devices devices = {&((struct kp_csv_writer *)w)->csv, s, 0};
        char pid[KP_NUMBER_MAX];
        kp_page_enter(&pages[i], w);
        for (size_t k = 0; !rc && k < sizeof ncu_blocks / sizeof *ncu_blocks; k++)
            rc = write_ncu_block(devices.csv, &ncu_blocks[k], s);
        fputs("Processes\n", devices.csv->to);
        write_pair(devices.csv, "Process Id", "Process Name");
        kp_count_cell(s->pid, true, pid);
        write_pair(devices.csv, pid, s->exe);
        fputc('\n', devices.csv->to);
        if (ferror(devices.csv->to))
            kp_write_failed(w, -EIO);
        rc = rc ? rc : w->out.rc ? w->out.rc : kp_page_each(&pages[i], write_ncu_device, &devices);
    }
    return rc;
}
