#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tests/support/rules_support.h"

enum { KEYS_MAX = 64, FIELDS = 8, SECTIONS_MAX = 32 };

size_t kp_test_fields(char *line, char *fields[], size_t max)
{
    size_t n = 0;
    for (char *field; n < max && (field = strsep(&line, "\t"));)
        fields[n++] = field;
    return n;
}

static void add_instance(struct kp_result *r, const char *metric, const char *key, double value)
{
    const struct kp_metric *m = kp_result_find(r, metric);
    const char *keys[KEYS_MAX];
    char *owned[KEYS_MAX];
    double values[KEYS_MAX];
    assert_non_null(m);
    size_t n = m->n_instances;
    assert_true(n < KEYS_MAX);
    for (size_t i = 0; i < n; i++) {
        keys[i] = owned[i] = kp_strdup(m->instances[i].key);
        values[i] = m->instances[i].value;
    }
    keys[n] = key;
    values[n] = value;
    assert_int_equal(kp_result_set_instances(r, metric, keys, values, n + 1), 0);
    while (n--)
        free(owned[n]);
}

void kp_test_add_metric(struct kp_result *r, char *const fields[])
{
    int rc = 0;
    if (!strcmp(fields[0], "instance"))
        add_instance(r, fields[1], fields[2], strtod(fields[3], NULL));
    else if (!strcmp(fields[2], "count"))
        rc = kp_result_set_count(r, fields[0], fields[1], strtoull(fields[3], NULL, 10));
    else if (!strcmp(fields[2], "real"))
        rc = kp_result_set_real(r, fields[0], fields[1], strtod(fields[3], NULL));
    else
        fail_msg("bad kind of %s", fields[0]);
    assert_int_equal(rc, 0);
}

static void add_device(struct kp_session *s, const char *throughput, const char *constituents)
{
    *s = (struct kp_session){.devices = calloc(1, sizeof *s->devices), .n_devices = 1};
    assert_non_null(s->devices);
    s->devices[0].sm_count = 132;
    assert_true(asprintf(&s->devices[0].breakdowns, "sm__other\tsm__one\n%s\t%s", throughput, constituents) > 0);
}

static void add_launch(struct kp_recording *r, char *const field[])
{
    r->results = realloc(r->results, (r->n + 1) * sizeof *r->results);
    assert_non_null(r->results);
    struct kp_result *result = &r->results[r->n++];
    *result = (struct kp_result){0};
    struct kp_launch_info *l = &result->launch;
    l->demangled = kp_strdup(field[1]);
    assert_int_equal(sscanf(field[2], "%u %u %u", &l->grid[0], &l->grid[1], &l->grid[2]), 3);
    assert_int_equal(sscanf(field[3], "%u %u %u", &l->block[0], &l->block[1], &l->block[2]), 3);
    assert_int_equal(sscanf(field[7], "%d %d", &l->cc_major, &l->cc_minor), 2);
}

struct kp_recording kp_test_rules_recording(void)
{
    struct kp_recording r = {0};
    char *text = kp_test_read(kp_test_source("tests/data/rules/h200.tsv")), *rest = text, *field[FIELDS];
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (*line == '#' || !*line)
            continue;
        size_t n = kp_test_fields(line, field, FIELDS);
        if (n == FIELDS)
            add_launch(&r, field);
        else if (n == 3)
            add_device(&r.session, field[1], field[2]);
        else if (n == 4 && r.n)
            kp_test_add_metric(&r.results[r.n - 1], field);
        else
            fail_msg("bad line in the data file: %s", line);
    }
    free(text);
    return r;
}

static bool wanted(const char *list, const char *id)
{
    const char *item;
    size_t len;
    if (!*list)
        return true;
    while (kp_list_next(&list, &item, &len))
        if (strlen(id) == len && !strncmp(item, id, len))
            return true;
    return false;
}

const struct kp_section *const *kp_test_rule_sections(const char *list, size_t *n)
{
    static const struct kp_section all[] = {
        {.id = "SpeedOfLight", .display = "GPU Speed Of Light Throughput"},
        {.id = "SpeedOfLight_RooflineChart", .display = "GPU Speed Of Light Roofline Chart"},
        {.id = "PmSampling", .display = "PM Sampling"},
        {.id = "ComputeWorkloadAnalysis", .display = "Compute Workload Analysis"},
        {.id = "MemoryWorkloadAnalysis", .display = "Memory Workload Analysis"},
        {.id = "MemoryWorkloadAnalysis_Chart", .display = "Memory Workload Analysis Chart"},
        {.id = "MemoryWorkloadAnalysis_Tables", .display = "Memory Workload Analysis Tables"},
        {.id = "SchedulerStats", .display = "Scheduler Statistics"},
        {.id = "WarpStateStats", .display = "Warp State Statistics"},
        {.id = "InstructionStats", .display = "Instruction Statistics"},
        {.id = "LaunchStats", .display = "Launch Statistics"},
        {.id = "Occupancy", .display = "Occupancy"},
        {.id = "WorkloadDistribution", .display = "GPU and Memory Workload Distribution"},
        {.id = "SourceCounters", .display = "Source Counters"},
    };
    static const struct kp_section *chosen[SECTIONS_MAX];
    *n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (wanted(list, all[i].id))
            chosen[(*n)++] = &all[i];
    return chosen;
}
